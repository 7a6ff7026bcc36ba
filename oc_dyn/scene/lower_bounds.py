"""Lower bounds of the distance of two convex shapes, at an instant and over an interval of time.

For a unit vector n, all of shape B lies beyond its support plane n . x = n . p_B - h_B(-n), all of A below
n . x = n . p_A + h_A(n), so the gap between both planes is at most the distance, whatever n is; h are the exact support
functions of the shapes, and rounding is all that is not accounted for.
"""

from __future__ import annotations

import numpy as np

from ..types import Array
from .chains import ShapeMotion
from .numeric import farthest
from .shapes import HalfSpace, Shape

_PARALLEL = 1e-9  # angle [rad] up to which a direction is that of a half-space's normal


def support(shape: Shape, u: Array) -> Array:
    """(K,) largest u . x over the shape, directions u (K, 3) of any length in its frame; infinity for none."""
    if isinstance(shape, HalfSpace):
        normal = np.array(shape.normal)
        along = u @ normal
        off = np.linalg.norm(u - along[:, None] * normal, axis=1)
        return np.where((along >= 0) & (off <= _PARALLEL * np.linalg.norm(u, axis=1)), along * shape.offset, np.inf)
    return np.asarray(np.einsum("ki,ki->k", u, farthest(shape, u)))


def plane_gap(a: Shape, A: ShapeMotion, b: Shape, B: ShapeMotion, n: Array, time: Array | float = 0.0) -> Array:
    """(K,) gap [m] of the support planes with normals n (K, 3), from A to B, where every point is where it would be
    a `time` (K,) [s] after the middle of its interval, had it kept the velocity it had there."""
    t = np.broadcast_to(time, len(n))[:, None]
    turned_a = np.einsum("kji,kj->ki", A.R + t[:, :, None] * A.dR, n)
    turned_b = np.einsum("kji,kj->ki", B.R + t[:, :, None] * B.dR, -n)
    way = (B.p - A.p) + t * (B.dp - A.dp)
    return np.einsum("ki,ki->k", n, way) - support(a, turned_a) - support(b, turned_b)


def over_interval(a: Shape, A: ShapeMotion, b: Shape, B: ShapeMotion, n: Array, h: Array) -> tuple[Array, Array]:
    """((K,) lower bounds of the distance [m] on the whole of intervals of half length h (K,), those in their middle).

    The larger of two bounds. With points that kept their velocities the gap is the least of functions that are linear
    in time, one a pair of points, so it is concave and least at an end of the interval; accelerations of at most a move
    every point from there by at most a h^2 / 2 (so the bound converges with the square of h). Speeds of at most s take
    at most s h from the gap in the middle.
    """
    middle = plane_gap(a, A, b, B, n)
    with np.errstate(invalid="ignore"):
        ends = np.minimum(plane_gap(a, A, b, B, n, -h), plane_gap(a, A, b, B, n, h))
        curved = ends - (A.acceleration + B.acceleration) * h**2 / 2
        straight = middle - (A.speed + B.speed) * h
    return np.fmax(np.where(np.isnan(curved), -np.inf, curved), np.where(np.isnan(straight), -np.inf, straight)), middle
