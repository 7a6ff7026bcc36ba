"""Poses of links at random configurations, and the pairs of shapes that touch at all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from ..lie.so3 import axis_frame
from ..model import joints as jt
from ..model.robot import Robot
from ..types import Array
from .shapes import Shape

Placed = tuple[str, str, Shape, Array]  # name, link, shape, matrix (4, 4) in the link's frame


def link_poses(robot: Robot, links: Iterable[str], q: Array) -> dict[str, Array]:
    """{link: matrices (N, 4, 4) in the root frame} at configurations q (nq, N)."""
    frames = {link: robot.frame(link) for link in links}
    symbol = ca.SX.sym("q", robot.nq)
    R, p = [ca.SX.eye(3)], [ca.SX.zeros(3)]
    for b in robot.bodies:
        turn, shift = _displacement(b.joint, symbol)
        R.append(R[b.parent] @ ca.DM(b.rotation) @ turn)
        p.append(R[b.parent] @ (ca.DM(b.rotation) @ shift + ca.DM(b.translation)) + p[b.parent])
    rows = [ca.horzcat(R[f.body], p[f.body]) for f in frames.values()]
    values = np.array(ca.Function("poses", [symbol], [ca.vertcat(*map(ca.vec, rows))])(q), float)
    out = {}
    for k, (link, f) in enumerate(frames.items()):
        T = np.tile(np.eye(4), (q.shape[1], 1, 1))
        T[:, :3, :] = values[12 * k : 12 * k + 12].T.reshape(-1, 4, 3).transpose(0, 2, 1)
        local = np.eye(4)
        local[:3, :3], local[:3, 3] = f.rotation, f.translation
        out[link] = T @ local
    return out


def _displacement(joint: Any, q: Any) -> tuple[Any, Any]:
    own = q[joint.q_index : joint.q_index + joint.nq]
    if joint.mimic is not None:
        own = joint.mimic.multiplier * own + joint.mimic.offset
    turn, shift = jt.displacement(joint.kind, own, joint.pitch, joint.motion)
    if joint.kind in jt.QUATERNIONS:
        return turn, shift
    A = ca.DM(np.array(axis_frame(joint.axis, 0.0), float))
    return A @ turn @ A.T, A @ shift


def configurations(robot: Robot, count: int, seed: int) -> Array:
    """(nq, count) at random within the limits of the joints."""
    rng = np.random.default_rng(seed)
    return np.array([robot.random_configuration(rng) for _ in range(count)]).reshape(count, robot.nq).T


def always_touching(
    robot: Robot,
    shapes: Sequence[Placed],
    pairs: Iterable[tuple[str, str]],
    q: Array,
    distance: Callable[[Shape, Array, Shape, Array], float],
) -> list[tuple[str, str]]:
    """Those of the pairs (link, link) of which at every configuration q (nq, N) some shapes touch or overlap.

    distance(shape, pose, shape, pose) [m] of two shapes at matrices (4, 4), at most 0 where they touch. Whatever has
    come apart once is not looked at again, so that the time goes with what touches.
    """
    of_link: dict[str, list[Placed]] = {}
    for shape in shapes:
        of_link.setdefault(shape[1], []).append(shape)
    poses = link_poses(robot, of_link, q)
    left = list(pairs)
    for k in range(q.shape[1]):
        placed = {
            link: [(x[2], poses[link][k] @ x[3], x[2].radius_about_origin) for x in some]
            for link, some in of_link.items()
        }
        left = [(a, b) for a, b in left if _touch(placed[a], placed[b], distance)]
        if not left:
            break
    return left


def _touch(first: Sequence[Any], second: Sequence[Any], distance: Callable[..., float]) -> bool:
    for a, A, reach_a in first:
        for b, B, reach_b in second:
            gap = float(np.linalg.norm(A[:3, 3] - B[:3, 3])) - reach_a - reach_b
            if gap <= 0 and distance(a, A, b, B) <= 0:
                return True
    return False
