"""Distances of spheres and capsules as numbers, by the nearest points of two segments: quick, where many are asked for.

The squared distance is a convex quadratic function of both places on the segments: its minimum is inside, or on one of
four edges, where it is that of a point and a segment. Source: Ericson 2005, Real-Time Collision Detection, 5.1.9.
"""

from __future__ import annotations

import numpy as np

from ..types import Array
from .chains import ShapeMotion
from .shapes import Capsule, Shape, Sphere

_TINY = 1e-300


def is_round(shape: Shape) -> bool:
    """Whether it is all points within a radius of a segment or a point."""
    return isinstance(shape, (Sphere, Capsule))


def between_segments(a: Shape, A: ShapeMotion, b: Shape, B: ShapeMotion) -> tuple[Array, Array]:
    """(d (K,), n (K, 3)): distance [m] in the middle of the intervals, and unit normal from a to b, of spheres and
    capsules. d < 0: minus the depth along n, which is across both axes where these meet."""
    (half_a, radius_a), (half_b, radius_b) = _sizes(a), _sizes(b)
    u, v = A.R[:, :, 2] * half_a, B.R[:, :, 2] * half_b
    way = B.p - A.p
    s, t = _nearest(way, u, v)
    x = way + t[:, None] * v - s[:, None] * u
    size = np.linalg.norm(x, axis=1)
    across = np.cross(A.R[:, :, 2], B.R[:, :, 2])
    other = np.where(np.abs(A.R[:, :1, 2]) < 0.6, [[1.0, 0, 0]], [[0, 1.0, 0]])
    meet = size < 1e-12
    if meet.any():
        parallel = np.linalg.norm(across, axis=1) < 1e-9
        across = np.where(parallel[:, None], np.cross(A.R[:, :, 2], other), across)
        x = np.where(meet[:, None], across, x)
    n = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), _TINY)
    return size - radius_a - radius_b, n


def _sizes(shape: Shape) -> tuple[float, float]:
    """(half the length of its segment, radius)."""
    if isinstance(shape, Capsule):
        return shape.length / 2, shape.radius
    assert isinstance(shape, Sphere)
    return 0.0, shape.radius


def _nearest(way: Array, u: Array, v: Array) -> tuple[Array, Array]:
    """Places (s, t) from -1 to 1 where |way + t v - s u| is least."""
    uu, vv, uv = _dot(u, u), _dot(v, v), _dot(u, v)
    wu, wv = _dot(way, u), _dot(way, v)
    determinant = uu * vv - uv * uv
    safe = np.where(determinant > 1e-12 * uu * vv, determinant, np.inf)
    inner = [(wu * vv - wv * uv) / safe, (wu * uv - wv * uu) / safe]
    one = np.ones(len(way))
    candidates = [(np.clip(inner[0], -1, 1), np.clip(inner[1], -1, 1))]
    for end in (-one, one):
        candidates.append((end, np.clip((end * uv - wv) / np.maximum(vv, _TINY), -1, 1)))
        candidates.append((np.clip((wu + end * uv) / np.maximum(uu, _TINY), -1, 1), end))
    s, t = (np.array(x) for x in zip(*candidates, strict=True))
    away = way + t[:, :, None] * v - s[:, :, None] * u
    best = np.argmin(np.einsum("cki,cki->ck", away, away), axis=0)
    columns = np.arange(len(way))
    return s[best, columns], t[best, columns]


def _dot(x: Array, y: Array) -> Array:
    return np.einsum("ki,ki->k", x, y)
