"""Kinds of joints: coordinates, displacement, motion subspace, and steps on their manifolds.

Everything here is in the joint's own frame, whose z axis is the joint's axis. The displacement E(q) is the pose
of the moved frame in the resting one; the joint's twist, in the moved frame, is S v.

| kind        | q                                  | v                                          |
|-------------|------------------------------------|--------------------------------------------|
| revolute    | angle about z [rad]                | rate                                       |
| continuous  | as revolute, without end           | rate                                       |
| prismatic   | distance along z [m]               | rate                                       |
| helical     | angle about z; pitch [m/rad]       | rate                                       |
| spherical   | quaternion (w, x, y, z)            | body angular velocity [rad/s]              |
| planar      | angle about z, position x, y       | body twist: wz, vx, vy                     |
| free        | quaternion (w, x, y, z), position  | body twist: angular (3), linear (3)        |
| cylindrical | angle about z, distance along z    | rates                                      |
| universal   | angle about z, then about the new x| rates                                      |
| transform   | any, given by its pose E(q)        | rates; S depends on q                      |

A cylindrical or universal joint is two simple ones with a body without mass between: SPLIT says which; it may be more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from ..lie import se3, so3
from ..types import Array

_E = np.eye(6)
SUBSPACE = {  # columns of S, twist [angular; linear]
    "revolute": _E[:, [2]],
    "continuous": _E[:, [2]],
    "prismatic": _E[:, [5]],
    "helical": _E[:, [2]],  # plus the pitch, see subspace()
    "spherical": _E[:, :3],
    "planar": _E[:, [2, 3, 4]],
    "free": _E,
}
_Z_TO_X = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # the next z is this x
SPLIT = {  # simple joints from the parent on: (kind, which coordinate is its own, turn from the one before)
    "cylindrical": (("prismatic", 1, np.eye(3)), ("revolute", 0, np.eye(3))),
    "universal": (("revolute", 0, np.eye(3)), ("revolute", 1, _Z_TO_X)),
}
KINDS = (*SUBSPACE, *SPLIT, "transform")
NQ = {"revolute": 1, "continuous": 1, "prismatic": 1, "helical": 1, "spherical": 4, "planar": 3, "free": 7}
NQ |= {kind: len(parts) for kind, parts in SPLIT.items()}
NV = {kind: S.shape[1] for kind, S in SUBSPACE.items()} | {kind: len(parts) for kind, parts in SPLIT.items()}
GROUPS = ("spherical", "planar", "free")  # their velocities do not commute, and are not the rates of q
QUATERNIONS = ("spherical", "free")  # their coordinates begin with one
WITHOUT_AXIS = (*QUATERNIONS, "transform")
Q_NAMES = {  # of the coordinates and the velocities of one joint; "1", "2", ... for kinds that are not here
    "spherical": ("qw", "qx", "qy", "qz"),
    "planar": ("angle", "x", "y"),
    "cylindrical": ("angle", "distance"),
    "free": ("qw", "qx", "qy", "qz", "x", "y", "z"),
}
V_NAMES = {
    "spherical": ("wx", "wy", "wz"),
    "planar": ("wz", "vx", "vy"),
    "cylindrical": ("angle", "distance"),
    "free": ("wx", "wy", "wz", "vx", "vy", "vz"),
}
UNITS = {"prismatic": ("m",), "cylindrical": ("rad", "m")}  # of coordinates whose rates are v; "rad" for others


def subspace(kind: str, pitch: float = 0.0) -> Array:
    """Motion subspace S (6, nv) as numpy array, in the joint's frame."""
    S = SUBSPACE[kind].copy()
    if kind == "helical":
        S[5, 0] = pitch
    return S


def displacement(kind: str, q: Any, pitch: float = 0.0, motion: Any = None) -> Any:
    """Pose (R, p) of the moved joint frame in the resting one; `motion` is the pose function of a transform joint."""
    zero = ca.DM.zeros(3)
    if kind in ("revolute", "continuous"):
        return so3.rot_z(q[0]), zero
    if kind == "prismatic":
        return ca.DM.eye(3), ca.vertcat(0, 0, q[0])
    if kind == "helical":
        return so3.rot_z(q[0]), ca.vertcat(0, 0, pitch * q[0])
    if kind == "spherical":
        return so3.quat_to_rot(q), zero
    if kind == "planar":
        return so3.rot_z(q[0]), ca.vertcat(q[1], q[2], 0)
    if kind == "cylindrical":
        return so3.rot_z(q[0]), ca.vertcat(0, 0, q[1])
    if kind == "universal":
        return so3.rot_z(q[0]) @ so3.rot_x(q[1]), zero
    if kind == "transform":
        return motion(q)
    return so3.quat_to_rot(q[:4]), q[4:7]


def rate(kind: str, q: Any, v: Any) -> Any:
    """Time derivative of q from the joint velocity v."""
    if kind == "spherical":
        return so3.quat_rate(q, v)
    if kind == "planar":
        c, s = ca.cos(q[0]), ca.sin(q[0])
        return ca.vertcat(v[0], c * v[1] - s * v[2], s * v[1] + c * v[2])
    if kind == "free":
        return ca.vertcat(so3.quat_rate(q[:4], v[:3]), so3.quat_to_rot(q[:4]) @ v[3:6])
    return v


def neutral(kind: str, nq: int) -> Array:
    """Configuration without displacement (zero for a transform joint), as numpy array."""
    q = np.zeros(nq)
    if kind in QUATERNIONS:
        q[0] = 1.0
    return q


def transform_subspace(motion: Callable[[Any], Any], n: int) -> ca.Function:
    """Motion subspace of a transform joint as casadi.Function q (n,) -> S (6, n): S v is its twist, in the moved frame.

    Source: Kim 2012, section 2: columns vee(E^-1 dE/dq_k).
    """
    q = ca.SX.sym("q", n)
    R, p = motion(q)
    columns = []
    for k in range(n):
        dR = ca.reshape(ca.jacobian(ca.vec(R), q[k]), 3, 3)
        W = R.T @ dR
        columns.append(ca.vertcat(W[2, 1], W[0, 2], W[1, 0], R.T @ ca.jacobian(p, q[k])))
    return ca.Function("S", [q], [ca.densify(ca.horzcat(*columns))])


def _planar_terms(w: Any) -> tuple[Any, Any]:
    first, second, _ = so3.sinc_terms(ca.vertcat(0, 0, w))
    return first, second * w  # sin(w)/w, (1 - cos w)/w


def integrate(kind: str, q: Any, dv: Any) -> Any:
    """Configuration after the constant body twist S dv acting for unit time: E(q) exp(S dv)."""
    if kind == "spherical":
        return so3.quat_mul(q, so3.quat_exp(dv))
    if kind == "planar":
        a, b = _planar_terms(dv[0])
        x, y = a * dv[1] - b * dv[2], b * dv[1] + a * dv[2]
        c, s = ca.cos(q[0]), ca.sin(q[0])
        return ca.vertcat(q[0] + dv[0], q[1] + c * x - s * y, q[2] + s * x + c * y)
    if kind == "free":
        _, p = se3.exp_se3(dv)
        return ca.vertcat(so3.quat_mul(q[:4], so3.quat_exp(dv[:3])), q[4:7] + so3.quat_to_rot(q[:4]) @ p)
    return q + dv


def difference(kind: str, q0: Any, q1: Any) -> Any:
    """The dv for which integrate(q0, dv) is q1."""
    if kind == "spherical":
        return so3.quat_log(so3.quat_mul(so3.quat_conj(q0), q1))
    if kind == "planar":
        w = q1[0] - q0[0]
        a, b = _planar_terms(w)
        c, s = ca.cos(q0[0]), ca.sin(q0[0])
        dx, dy = q1[1] - q0[1], q1[2] - q0[2]
        x, y = c * dx + s * dy, -s * dx + c * dy
        square = a * a + b * b
        return ca.vertcat(w, (a * x + b * y) / square, (-b * x + a * y) / square)
    if kind == "free":
        w = so3.quat_log(so3.quat_mul(so3.quat_conj(q0[:4]), q1[:4]))
        p = so3.quat_to_rot(q0[:4]).T @ (q1[4:7] - q0[4:7])
        return ca.vertcat(w, se3.left_jacobian_inverse(w) @ p)
    return q1 - q0


def step_rate(kind: str, dv: Any, v: Any) -> Any:
    """Time derivative of the step dv where integrate(kind, q, dv), from a q that stays, moves with joint velocity v:
    turns of the step stay below 2 pi."""
    if kind == "spherical":
        return so3.exponential_rate(dv, v)
    if kind == "planar":
        twists = (ca.vertcat(0, 0, x[0], x[1], x[2], 0) for x in (dv, v))
        return se3.exponential_rate(*twists)[2:5]
    if kind == "free":
        return se3.exponential_rate(dv, v)
    return v
