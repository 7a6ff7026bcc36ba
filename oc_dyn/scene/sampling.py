"""Poses of links at random configurations, and the pairs of shapes that touch at all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..lie.so3 import axis_frame
from ..model import joints as jt
from ..model.robot import Robot
from ..types import Array
from .numeric import separation
from .shapes import Box, Capsule, Cylinder, Ellipsoid, Polytope, Shape, Sphere

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
    robot: Robot, shapes: Sequence[Placed], pairs: Iterable[tuple[str, str]], q: Array
) -> list[tuple[str, str]]:
    """Those of the pairs (link, link) of which at every configuration q (nq, N) some shapes touch or overlap.

    Pairs that have come apart once are not looked at again, so that the time goes with what touches.
    """
    of_link: dict[str, list[tuple[_Between, Array]]] = {}
    for _, link, shape, matrix in shapes:
        of_link.setdefault(link, []).append((_Between.of(shape), matrix))
    poses, left, done, ahead = link_poses(robot, of_link, q), list(pairs), 0, 1
    while left and done < q.shape[1]:
        some = slice(done, done + ahead)
        placed = {link: [(x, poses[link][some] @ T) for x, T in of_link[link]] for pair in left for link in pair}
        left = [(a, b) for a, b in left if _touch(placed[a], placed[b], poses[a][some].shape[0])]
        done, ahead = done + ahead, 4 * ahead
    return left


@dataclass(frozen=True)
class _Between:
    """A shape, a ball that contains it, and a capsule within it, which tell of most pairs at once: those whose balls
    are apart do not touch, those whose capsules touch do."""

    shape: Shape
    centre: Array  # of the ball, in the shape's frame
    reach: float
    half: Array  # from the middle of the capsule, which is that of the ball, to its end
    radius: float

    @classmethod
    def of(cls, shape: Shape) -> _Between:
        centre, reach, half, radius = np.zeros(3), shape.radius_about_origin, np.zeros(3), 0.0
        if isinstance(shape, Polytope):
            points = shape.points
            centre = (points.min(axis=0) + points.max(axis=0)) / 2
            reach = float(np.linalg.norm(points - centre, axis=1).max())
            return cls(shape, centre, reach, half, -np.inf if len(points) < 4 else _inscribed(points - centre))
        if isinstance(shape, Sphere):
            radius = shape.radius
        elif isinstance(shape, Capsule):
            radius, half = shape.radius, np.array([0.0, 0.0, shape.length / 2])
        elif isinstance(shape, Cylinder):
            radius = min(shape.radius, shape.length / 2)
            half = np.array([0.0, 0.0, shape.length / 2 - radius])
        elif isinstance(shape, Box):
            edges = np.array([shape.x, shape.y, shape.z]) / 2
            radius = float(edges.min())
            half = np.where(np.arange(3) == edges.argmax(), edges - radius, 0.0)
        elif isinstance(shape, Ellipsoid):
            radius = min(shape.a, shape.b, shape.c)
        return cls(shape, centre, reach, half, radius)

    @property
    def exact(self) -> bool:
        """Whether the capsule within it is all of it."""
        return isinstance(self.shape, (Sphere, Capsule))


def _inscribed(points: Array) -> float:
    """Radius of a ball about the origin within the hull of points; minus infinity where there is none."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        depth = float(-ConvexHull(points).equations[:, 3].max())
    except QhullError:
        return -np.inf
    return depth if depth > 0 else -np.inf


def _touch(first: Sequence[Any], second: Sequence[Any], count: int) -> bool:
    """Whether at each of so many poses some shape of the first touches one of the second."""
    touch = np.zeros(count, bool)
    for a, A in first:
        for b, B in second:
            w = (A[:, :3, :3] @ a.centre + A[:, :3, 3]) - (B[:, :3, :3] @ b.centre + B[:, :3, 3])
            near = np.linalg.norm(w, axis=1) <= a.reach + b.reach
            touch |= near & (_segments(w, A[:, :3, :3] @ a.half, B[:, :3, :3] @ b.half) <= a.radius + b.radius)
            unsure = np.flatnonzero(near & ~touch) if not (a.exact and b.exact) else ()
            if len(unsure):
                touch[unsure] = separation(a.shape, A[unsure], b.shape, B[unsure])[0] <= 0
    return bool(touch.all())


def _segments(w: Array, u: Array, v: Array) -> Array:
    """Distances (k,) of segments from -u to u and from -v to v, (k, 3), whose middles are w (k, 3) apart."""
    uu, vv, uv, uw, vw = (np.einsum("ki,ki->k", x, y) for x, y in ((u, u), (v, v), (u, v), (u, w), (v, w)))
    det = uu * vv - uv * uv
    skew = det > 1e-12 * uu * vv
    safe = np.where(skew, det, 1.0)
    s, t = (uv * vw - vv * uw) / safe, (uu * vw - uv * uw) / safe
    inside = skew & (np.abs(s) <= 1) & (np.abs(t) <= 1)

    def gap(s: Array, t: Array) -> Array:
        return np.linalg.norm(w + s[:, None] * u - t[:, None] * v, axis=1)

    best = np.where(inside, gap(s, t), np.inf)
    for end in (-1.0, 1.0):  # an end of one segment, and the point of the other that is next to it
        e = np.full(len(w), end)
        best = np.minimum(best, gap(e, np.clip((vw + end * uv) / np.where(vv > 0, vv, 1.0), -1, 1)))
        best = np.minimum(best, gap(np.clip((end * uv - uw) / np.where(uu > 0, uu, 1.0), -1, 1), e))
    return np.asarray(best)
