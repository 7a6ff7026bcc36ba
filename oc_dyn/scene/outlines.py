"""Shapes as lines to draw: edges where a shape has them, ellipses in its planes where it is round."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..types import Array, Indices
from .shapes import Box, Capsule, Cylinder, Ellipsoid, HalfSpace, Polytope, Shape, Sphere

_ROUND = 24  # chords of a full circle
_VERTICES = 32  # of a polytope that are drawn at most
_LINES = 7  # of a half-space, in each direction
_FLAT = 1e-9  # of the size of a polytope: vertices that near a plane are in it


def outline(shape: Shape, center: Any = (0.0, 0.0, 0.0), reach: float = 1.0) -> Array:
    """Lines (k, 3) [m] of a shape in its own frame, one after the other, rows of NaN between them.

    Every point is on the shape; of polytopes with more than 32 vertices, on the hull of 32 of them. A half-space is a
    grid of its plane within `reach` [m] of where it is nearest to `center` (3,). Raises ShapeError for other shapes.
    """
    if isinstance(shape, (Sphere, Ellipsoid)):
        half = (shape.radius,) * 3 if isinstance(shape, Sphere) else (shape.a, shape.b, shape.c)
        return joined(_ellipse(half, i, j) for i, j in ((0, 1), (0, 2), (1, 2)))
    if isinstance(shape, Capsule):
        r, h = (shape.radius, shape.radius, shape.radius), np.array([0.0, 0.0, shape.length / 2])
        rings = [_ellipse(r, 0, 1) + sign * h for sign in (1, -1)]
        return joined([*rings, *(_stadium(_ellipse(r, i, 2), h) for i in (0, 1))])
    if isinstance(shape, Cylinder):
        ring, h = _ellipse((shape.radius,) * 3, 0, 1), np.array([0.0, 0.0, shape.length / 2])
        sides = (np.array([p - h, p + h]) for p in ring[: -1 : _ROUND // 4])
        return joined([ring - h, ring + h, *sides])
    if isinstance(shape, Box):
        x, y, z = shape.x / 2, shape.y / 2, shape.z / 2
        ring = np.array([(-x, -y, 0), (x, -y, 0), (x, y, 0), (-x, y, 0), (-x, -y, 0)])
        h = np.array([0, 0, z])
        return joined([ring - h, ring + h, *(np.array([p - h, p + h]) for p in ring[:-1])])
    if isinstance(shape, Polytope):
        return joined(shape.points[list(edge)] for edge in edges(shape.points))
    if isinstance(shape, HalfSpace):
        return _grid(np.array(shape.normal), shape.offset, np.array(center, float), reach)
    raise ShapeError(f"outline: {shape!r} is none of the shapes of od.shapes")


def joined(lines: Any) -> Array:
    """Lines (k, 3) in one, rows of NaN between them; none gives (0, 3)."""
    parts = [np.concatenate([x, np.full((1, 3), np.nan)]) for x in lines]
    return np.concatenate(parts)[:-1] if parts else np.empty((0, 3))


def _ellipse(half: Any, i: int, j: int) -> Array:
    """Closed, about the origin in the plane of axes i and j, from the first of them on."""
    angle = np.linspace(0, 2 * np.pi, _ROUND + 1)
    out = np.zeros((_ROUND + 1, 3))
    out[:, i], out[:, j] = half[i] * np.cos(angle), half[j] * np.sin(angle)
    return out


def _stadium(circle: Array, h: Array) -> Array:
    """A circle cut in halves, which are moved by h and -h."""
    half = _ROUND // 2
    return np.concatenate([circle[: half + 1] + h, circle[half:] - h, circle[:1] + h])


def _grid(n: Array, offset: float, center: Array, reach: float) -> Array:
    """Lines of a square in the plane n . x = offset, along the axes where the plane allows it."""
    across = np.eye(3)[int(np.argmin(np.abs(n)))]
    across = across - (across @ n) * n
    across = across / np.linalg.norm(across)
    u, w = across, np.cross(n, across)
    middle = center + (offset - n @ center) * n
    steps, lines = np.linspace(-reach, reach, _LINES), []
    for a, b in ((u, w), (w, u)):
        lines += [middle + np.array([s * a - reach * b, s * a + reach * b]) for s in steps]
    return joined(lines)


def edges(points: Array) -> list[tuple[int, int]]:
    """Pairs of vertices (n, 3) joined by an edge of their convex hull, each once; of a flat one, those of its polygon,
    of points on a line, its ends."""
    kept = _few(points)
    P = points[kept]
    size = float(np.ptp(P, axis=0).max(initial=0.0))
    if len(P) < 2 or size == 0:
        return []
    found: set[tuple[int, int]] = set()
    i, j, k = np.array(list(combinations(range(len(P)), 3)), int).reshape(-1, 3).T
    n = np.cross(P[j] - P[i], P[k] - P[i])
    length = np.linalg.norm(n, axis=1)
    good = length > _FLAT * size * size
    n, i = n[good] / length[good, None], i[good]
    off = n @ P.T - np.einsum("ki,ki->k", n, P[i])[:, None]
    tol = _FLAT * size
    outer = (off <= tol).all(axis=1) | (off >= -tol).all(axis=1)
    faces = {tuple(np.flatnonzero(np.abs(row) <= tol).tolist()): m for row, m in zip(off[outer], n[outer], strict=True)}
    for members, normal in faces.items():
        ring = _ring(P, members, normal)
        found |= {(min(a, b), max(a, b)) for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)}
    if not len(n):  # on a line
        along = (P - P[0]) @ (P[np.argmax(np.linalg.norm(P - P[0], axis=1))] - P[0])
        found.add((int(np.argmin(along)), int(np.argmax(along))))
    return sorted((int(kept[a]), int(kept[b])) for a, b in found)


def _few(points: Array) -> Indices:
    """Places of all points, or of those that are farthest in some directions where there are many."""
    if len(points) <= _VERTICES:
        return np.arange(len(points))
    k = np.arange(_VERTICES) + 0.5
    height, turn = 1 - 2 * k / _VERTICES, np.pi * (1 + 5**0.5) * k  # evenly over the sphere
    flat = np.sqrt(1 - height**2)
    directions = np.column_stack([flat * np.cos(turn), flat * np.sin(turn), height])
    return np.unique(np.argmax(directions @ points.T, axis=1))


def _ring(P: Array, members: tuple[int, ...], n: Array) -> list[int]:
    """Those of the members, in one plane across n, that are corners of their polygon, in turn (Andrew 1979)."""
    u = P[members[1]] - P[members[0]]
    u = u / np.linalg.norm(u)
    x, y = (P[list(members)] @ axis for axis in (u, np.cross(n, u)))
    order = np.lexsort((y, x))
    tol = _FLAT * max(float(np.ptp(x)), float(np.ptp(y))) ** 2
    chains = []
    for way in (order, order[::-1]):
        chain: list[int] = []
        for c in way:
            while len(chain) > 1:
                a, b = chain[-2:]
                if (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a]) > tol:
                    break
                chain.pop()
            chain.append(int(c))
        chains += chain[:-1]
    return [members[c] for c in chains]
