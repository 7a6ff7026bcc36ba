"""Random configurations, and the pairs of shapes that touch at all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.robot import Robot
from ..types import Array
from .link_poses import link_poses
from .numeric import separation
from .segments import nearest_places
from .shapes import ROUND, Box, Capsule, Cylinder, Ellipsoid, Polytope, Shape, Sphere

Placed = tuple[str, str, Shape, Array]  # name, link, shape, matrix (4, 4) in the link's frame


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
        return isinstance(self.shape, ROUND)


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
            u, v = A[:, :3, :3] @ a.half, B[:, :3, :3] @ b.half
            s, t = nearest_places(-w, u, v)
            apart = np.linalg.norm(w + s[:, None] * u - t[:, None] * v, axis=1)
            touch |= near & (apart <= a.radius + b.radius)
            unsure = np.flatnonzero(near & ~touch) if not (a.exact and b.exact) else ()
            if len(unsure):
                touch[unsure] = separation(a.shape, A[unsure], b.shape, B[unsure])[0] <= 0
    return bool(touch.all())
