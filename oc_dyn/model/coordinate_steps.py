"""Derivatives by the coordinates of a robot from those by a step on its tangent space.

A change d of the coordinates, at q, is the step e(d) = difference(q, q + d). For what depends on rotations alone, and
so not on the lengths of quaternions, f(q + d) = F(e(d)) with F(e) = f(q (+) e), at quaternions of any length but zero:

    f_q = F_e L,    f_qq = L' F_ee L + sum_m F_e[m] e_m'',    L = e'(0)

n = Q / |Q|^2, w = L_Q d_Q, y = R' d_p: to second order a quaternion turns by w - (n' d_Q) w, a position in a free joint
moves by y - w x y / 2, and one in a planar joint likewise about z.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca

from ..lie import so3
from .joints import GROUPS, QUATERNIONS
from .robot import Robot

_QUARTER_TURN = ca.DM([[0, -1], [1, 0]])  # a quarter turn about z of columns of the plane


def on_vector_space(robot: Robot) -> bool:
    """Whether the velocities of a robot are the rates of its coordinates, so that steps are changes of these."""
    return not robot.features & set(GROUPS)


def step_map(robot: Robot, q: Any) -> Any:
    """(nv, nq) sparse L: the step on the tangent space that a small change of the coordinates q (nq,) is."""
    return _blocks(robot, q, robot.nv, lambda j, own: (j.v_index, _map(j.kind, own, j.nv)))


def step_curvature(robot: Robot, q: Any, gradient: Any) -> Any:
    """(nq, nq) sparse and symmetric: second derivatives, by the coordinates q (nq,), of gradient' e, gradient (nv,)."""

    def own(j: Any, own: Any) -> tuple[int, Any]:
        return j.q_index, _curvature(j.kind, own, gradient[j.v_index : j.v_index + j.nv])

    return _blocks(robot, q, robot.nq, own)


def _blocks(robot: Robot, q: Any, rows: int, block: Callable[[Any, Any], tuple[int, Any]]) -> Any:
    """(rows, nq) with a block for each joint, at the row that comes with it."""
    out = []
    for j in robot.joints:
        first, made = block(j, q[j.q_index : j.q_index + j.nq])
        above, below = ca.SX(first, j.nq), ca.SX(rows - first - made.shape[0], j.nq)
        out.append(ca.vertcat(above, made, below))
    return ca.horzcat(*out) if out else ca.SX(rows, 0)


def _turn_map(Q: Any) -> Any:
    """(3, 4) body turn of a change of a quaternion: twice the vector of Q^-1 dQ."""
    return 2 / ca.dot(Q, Q) * ca.horzcat(-Q[1:4], Q[0] * ca.SX.eye(3) - so3.skew(Q[1:4]))


def _map(kind: str, q: Any, nv: int) -> Any:
    if kind == "spherical":
        return _turn_map(q)
    if kind == "planar":
        return ca.diagcat(1, so3.rot_z(q[0])[:2, :2].T)
    if kind == "free":
        return ca.diagcat(_turn_map(q[:4]), so3.quat_to_rot(q[:4]).T)
    return ca.SX.eye(nv)


def _curvature(kind: str, q: Any, g: Any) -> Any:
    if kind == "planar":
        across = -0.5 * g[1:3].T @ _QUARTER_TURN @ so3.rot_z(q[0])[:2, :2].T
        return _bordered(ca.SX(1, 1), across, ca.SX(2, 2))
    if kind not in QUATERNIONS:
        return ca.SX(q.shape[0], q.shape[0])
    Q, L = q[:4], _turn_map(q[:4])
    one = -(Q / ca.dot(Q, Q)) @ (g[:3].T @ L)
    turned = ca.triu2symm(ca.triu(one + one.T))
    if kind == "spherical":
        return turned
    across = 0.5 * L.T @ so3.skew(g[3:6]) @ so3.quat_to_rot(Q).T
    return _bordered(turned, across, ca.SX(3, 3))


def _bordered(A: Any, B: Any, C: Any) -> Any:
    return ca.vertcat(ca.horzcat(A, B), ca.horzcat(B.T, C))
