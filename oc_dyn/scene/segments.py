"""Distances of spheres and capsules as numbers, by the nearest points of two segments: quick, where many are asked for.

The squared distance is a convex quadratic function of both places on the segments: its minimum is inside, or on one of
four edges, where it is that of a point and a segment. Source: Ericson 2005, Real-Time Collision Detection, 5.1.9.
"""

from __future__ import annotations

import numpy as np

from ..types import Array
from .chains import ShapeMotion
from .shapes import Shape, ball, half_length

_TINY = 1e-300
_ROUNDING = 1e-13  # of sines, and of lengths
_SLANTED = 1e-15  # sine of axes from which their product is a direction


def between_segments(a: Shape, A: ShapeMotion, b: Shape, B: ShapeMotion) -> tuple[Array, Array]:
    """(d (K,), n (K, 3)): distance [m] in the middle of the intervals, and unit normal from a to b, of spheres and
    capsules. d < 0: minus the depth along n, which is across both axes where these meet."""
    d, n, _, _ = segments_apart(B.p - A.p, A.R[:, :, 2], half_length(a), B.R[:, :, 2], half_length(b))
    return d - ball(a) - ball(b), n


def segments_apart(way: Array, u: Array, h: float, v: Array, k: float) -> tuple[Array, Array, Array, Array]:
    """(d (K,), n (K, 3), s, t (K,)): distance [m] of segments c_a + s u and c_b + t v, |s| <= h, |t| <= k, unit normal,
    and nearest points; way = c_b - c_a (K, 3), unit axes u, v (K, 3).

    d is the gap of the planes across n that touch both, so a lower bound, and exact to rounding. Of two n the better
    one is taken: along what parts the nearest points, which rounding spoils where they meet, and across the axes.
    """
    s, t = (x * half for x, half in zip(nearest_places(way, h * u, k * v), (h, k), strict=True))
    y = way + t[:, None] * v - s[:, None] * u
    tiny = _ROUNDING * (h + k + np.linalg.norm(way, axis=1))
    size = np.linalg.norm(y, axis=1)
    apart = size > tiny
    n = y / np.where(apart, size, 1.0)[:, None]
    other = _across(y, u, h, v, k, tiny)
    gap, own = (_dot(x, way) - h * np.abs(_dot(x, u)) - k * np.abs(_dot(x, v)) for x in (n, other))
    better = ~apart | (own > gap)
    return np.where(better, own, gap), np.where(better[:, None], other, n), s, t


def _across(y: Array, u: Array, h: float, v: Array, k: float, tiny: Array) -> Array:
    """Unit vectors (K, 3) across both segments, nearest to y (K, 3); those that are points count as parallel."""
    axis = u if h else v
    helper = np.where(np.abs(axis[:, :1]) < 0.6, [[1.0, 0, 0]], [[0, 1.0, 0]])
    flat = y - _dot(axis, y)[:, None] * axis
    out = np.where((np.linalg.norm(flat, axis=1) > tiny)[:, None], flat, np.cross(axis, helper))
    if h and k:
        cross = np.cross(u, v)
        cross = np.where((_dot(cross, y) < 0)[:, None], -cross, cross)
        size = np.linalg.norm(cross, axis=1, keepdims=True)
        cross = cross / np.maximum(size, _SLANTED)
        out = np.where(size > _SLANTED, cross - _dot(axis, cross)[:, None] * axis, out)
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def nearest_places(way: Array, u: Array, v: Array) -> tuple[Array, Array]:
    """Places (s, t), each (K,), from -1 to 1 where |way + t v - s u| is least; way, u, v (K, 3)."""
    uu, vv, uv = _dot(u, u), _dot(v, v), _dot(u, v)
    wu, wv = _dot(way, u), _dot(way, v)
    cross = np.cross(u, v)  # products with it stay exact for small angles, where those of cosines cancel
    square = _dot(cross, cross)
    safe = np.where(square > _ROUNDING**2 * uu * vv, square, np.inf)
    inner = [_dot(np.cross(way, v), cross) / safe, _dot(np.cross(way, u), cross) / safe]
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
