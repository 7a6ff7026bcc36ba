"""Shapes as triangles, for pictures."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from ...scene.shapes import Box, Capsule, Cylinder, Ellipsoid, HalfSpace, Polytope, Shape, Sphere
from ...types import Array

_AROUND, _ALONG = 20, 10  # pieces of a circle, and of a quarter turn from pole to pole
_FLAT = 1e-9  # of the size of a polytope: points that near a plane are in it
_BY_HAND = 40  # vertices of a polytope at most where there is no scipy

_BOX = (  # corners as x, y, z count
    (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
    (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
)  # fmt: skip

_CELLS = (512, 256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8)  # of a grid in which near points become one

Triangles = tuple[Array, Array]  # vertices (n, 3) [m], their indices (m, 3), outward by the right-hand rule


def triangles(shape: Shape, reach: float = 1.0) -> Triangles:
    """Vertices (n, 3) [m] in the shape's frame and triangles (m, 3) of a shape; of a half-space a square of its plane
    with edges of 2 `reach` [m]."""
    if isinstance(shape, Sphere):
        return _round(shape.radius, shape.radius, shape.radius)
    if isinstance(shape, Ellipsoid):
        return _round(shape.a, shape.b, shape.c)
    if isinstance(shape, Capsule):
        points, faces = _round(shape.radius, shape.radius, shape.radius)
        return points + np.where(points[:, 2:] > 0, 1, -1) * np.array([0, 0, shape.length / 2]), faces
    if isinstance(shape, Cylinder):
        return _cylinder(shape.radius, shape.length)
    if isinstance(shape, Box):
        corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2
        return corners * [shape.x, shape.y, shape.z], np.array(_BOX)
    if isinstance(shape, HalfSpace):
        return _square(np.array(shape.normal), shape.offset, reach)
    assert isinstance(shape, Polytope)
    return hull(shape.points)


def _round(a: float, b: float, c: float) -> Triangles:
    """An ellipsoid; no ring is on the equator, so that halves can be moved apart."""
    polar = np.linspace(0, np.pi, 2 * _ALONG)[1:-1]  # an even number of rings
    around = np.linspace(0, 2 * np.pi, _AROUND, endpoint=False)
    rings = [[np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)] for t in polar for p in around]
    points = np.array([[0, 0, 1.0], *rings, [0, 0, -1.0]]) * [a, b, c]
    faces, last = [], len(points) - 1
    for i in range(_AROUND):
        j = (i + 1) % _AROUND
        faces.append((0, 1 + i, 1 + j))
        for k in range(len(polar) - 1):
            at, below = 1 + k * _AROUND, 1 + (k + 1) * _AROUND
            faces += [(at + i, below + i, below + j), (at + i, below + j, at + j)]
        faces.append((last, last - _AROUND + j, last - _AROUND + i))
    return points, np.array(faces)


def _cylinder(radius: float, length: float) -> Triangles:
    around = np.linspace(0, 2 * np.pi, _AROUND, endpoint=False)
    ring = radius * np.column_stack([np.cos(around), np.sin(around)])
    ends = [np.column_stack([ring, np.full(_AROUND, z)]) for z in (length / 2, -length / 2)]
    points = np.vstack([*ends, [[0, 0, length / 2], [0, 0, -length / 2]]])
    faces = []
    for i in range(_AROUND):
        j, n = (i + 1) % _AROUND, _AROUND
        faces += [(i, n + i, n + j), (i, n + j, j), (2 * n, i, j), (2 * n + 1, n + j, n + i)]
    return points, np.array(faces)


def _square(normal: Array, offset: float, reach: float) -> Triangles:
    n = normal / np.linalg.norm(normal)
    side = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
    side /= np.linalg.norm(side)
    other = np.cross(n, side)
    middle = n * offset / np.linalg.norm(normal)
    corners = [middle + reach * (x * side + y * other) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    return np.array(corners), np.array([(0, 1, 2), (0, 2, 3)])


def hull(points: Array) -> Triangles:
    """The convex hull of points (n, 3); of many without scipy, that of some of them."""
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ImportError:
        return _hull_by_hand(points)
    try:
        found: Any = ConvexHull(points)
    except QhullError:  # flat
        return _hull_by_hand(points)
    outward = found.equations[:, :3]
    return points, np.array([_turned(points, face, n) for face, n in zip(found.simplices, outward, strict=True)])


def _hull_by_hand(points: Array) -> Triangles:
    """All triples with every point on one side; coplanar ones lie over each other, which pictures do not show."""
    if len(points) > _BY_HAND:
        points = points[np.unique(np.linspace(0, len(points) - 1, _BY_HAND).astype(int))]
    size, middle = max(float(np.ptp(points, axis=0).max(initial=0)), 1e-12), points.mean(axis=0)
    faces = []
    for face in combinations(range(len(points)), 3):
        a, b, c = points[list(face)]
        n = np.cross(b - a, c - a)
        if not np.linalg.norm(n) > _FLAT * size**2:
            continue
        n /= np.linalg.norm(n)
        height = (points - a) @ n
        if height.max() <= _FLAT * size or height.min() >= -_FLAT * size:
            faces.append(_turned(points, face, n if (a - middle) @ n >= 0 else -n))
    return points, np.array(faces, int).reshape(-1, 3)


def _turned(points: Array, face: Any, outward: Array) -> tuple[int, int, int]:
    """The corners in the order that looks outward."""
    i, j, k = (int(x) for x in face)
    return (i, j, k) if np.cross(points[j] - points[i], points[k] - points[i]) @ outward >= 0 else (i, k, j)


def simplified(points: Array, faces: Array, most: int) -> Triangles:
    """The surface with about `most` triangles at most: points in a cell of a grid become their mean, in the finest grid
    that does."""
    if len(faces) <= most:
        return points, faces
    corner, size = points.min(axis=0), max(float(np.ptp(points, axis=0).max()), 1e-12)
    for cells in _CELLS:
        cell = np.minimum((points - corner) * (cells / size), cells - 1).astype(int)
        _, where = np.unique(cell, axis=0, return_inverse=True)
        where = where.reshape(-1)
        kept = where[faces]
        kept = kept[(kept[:, 0] != kept[:, 1]) & (kept[:, 1] != kept[:, 2]) & (kept[:, 2] != kept[:, 0])]
        if len(kept) <= most:
            break
    counts = np.bincount(where)
    return np.column_stack([np.bincount(where, x) / counts for x in points.T]), kept


def along(start: Array, end: Array) -> Array:
    """Poses (K, 4, 4) in the middle between points (K, 3), with z along them; of points that meet, with z upward."""
    length = np.linalg.norm(end - start, axis=1, keepdims=True)
    z = np.where(length > 1e-12, (end - start) / np.maximum(length, 1e-12), [0.0, 0.0, 1.0])
    other = np.where(np.abs(z[:, 2:]) < 0.9, [0.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    x = np.cross(other, z)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    C = np.tile(np.eye(4), (len(z), 1, 1))
    C[:, :3, 0], C[:, :3, 1], C[:, :3, 2], C[:, :3, 3] = x, np.cross(z, x), z, (start + end) / 2
    return C


def at(points: Array) -> Array:
    """Poses (K, 4, 4) at points (K, 3)."""
    C = np.tile(np.eye(4), (len(points), 1, 1))
    C[:, :3, 3] = points
    return C
