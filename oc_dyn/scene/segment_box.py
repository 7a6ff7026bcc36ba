"""Distances of spheres and capsules beside a box or cylinder as numbers, exact, in its frame.

Along the segment the slope of half the squared distance from the box is piecewise linear and rises; its zero is between
two of the places at which it bends. Where both meet, the way out is along a face of the box grown by the segment: an
axis of the box, or one across an axis and the segment. Beside a cylinder the slope is not linear, and its zero is
found by secants that keep it between two places, each halved where the other end stays (Illinois method).
"""

from __future__ import annotations

import numpy as np

from ..types import Array

_TINY = 1e-300
_NEAR = 1e-9  # of sizes: nearer ones have no direction of their own
_SECANTS, _FLAT = 60, 1e-15  # looks for the zero of a slope, at most; a slope by length that counts as zero
_SLANTED = 1e-7  # sine of axes that have a direction across both


def normal_and_place(c: Array, u: Array, half: float, box: Array) -> tuple[Array, Array]:
    """(n (K, 3), t (K,)): unit normal from a segment c_a + t u, |t| <= half, to a box of half-edges `box` (3,), and the
    place of the nearest point; c (K, 3) from the middle of the segment to that of the box, all in the box's frame.

    The gap of support planes across n is the distance, or minus the least depth.
    """
    t = _place(c, u, half, box) if half else np.zeros(len(c))
    y = c - t[:, None] * u
    way = y - np.clip(y, -box, box)
    size = np.linalg.norm(way, axis=1)
    n = way / np.maximum(size, _TINY)[:, None]
    met = np.flatnonzero(size <= _NEAR * (half + box.max()))
    if met.size:
        n[met] = _way_out(c[met], u[met], half, box)
    return n, t


def _place(c: Array, u: Array, half: float, box: Array) -> Array:
    inverse = 1 / np.where(np.abs(u) < _TINY, _TINY, u)
    with np.errstate(over="ignore", invalid="ignore"):
        bends = np.concatenate([(c - box) * inverse, (c + box) * inverse], axis=1)
    t = np.clip(np.nan_to_num(bends), -half, half)
    t = np.concatenate([np.full((len(c), 1), -half), t, np.full((len(c), 1), half)], axis=1)
    t.sort(axis=1)
    y = c[:, None] - t[:, :, None] * u[:, None]
    slope = -np.einsum("kji,ki->kj", y - np.clip(y, -box, box), u)
    rows = np.arange(len(c))
    after = np.clip((slope < 0).sum(axis=1), 1, t.shape[1] - 1)  # the first place of those whose slope is not below 0
    low, high, at_low, at_high = t[rows, after - 1], t[rows, after], slope[rows, after - 1], slope[rows, after]
    rise = at_high - at_low
    share = np.where(rise > _TINY, -at_low / np.maximum(rise, _TINY), 0.0)
    return low + np.clip(share, 0, 1) * (high - low)


def _way_out(c: Array, u: Array, half: float, box: Array) -> Array:
    axes = [np.broadcast_to(x, c.shape) for x in np.eye(3)]
    if half:
        axes += [np.cross(x, u) for x in np.eye(3)]
    axis = np.array(axes)  # (A, K, 3)
    size = np.linalg.norm(axis, axis=2)
    axis = axis / np.maximum(size, _TINY)[:, :, None]
    along = np.einsum("aki,ki->ak", axis, c)
    gap = np.abs(along) - np.abs(axis) @ box - half * np.abs(np.einsum("aki,ki->ak", axis, u))
    best = np.argmax(np.where(size > _SLANTED, gap, -np.inf), axis=0)
    rows = np.arange(len(c))
    return np.where(along[best, rows] < 0, -1.0, 1.0)[:, None] * axis[best, rows]


def beside_cylinder(c: Array, u: Array, half: float, radius: float, length: float) -> tuple[Array, Array, Array]:
    """(n (K, 3), t (K,), whether they are apart (K,)) as normal_and_place, of a cylinder along z of half a length; n is
    of no use where they are not."""
    t = _zero(c, u, half, radius, length) if half else np.zeros(len(c))
    way = _beyond(c - t[:, None] * u, radius, length)
    size = np.linalg.norm(way, axis=1)
    return way / np.maximum(size, _TINY)[:, None], t, size > _NEAR * (half + radius + length)


def _beyond(y: Array, radius: float, length: float) -> Array:
    """y (..., 3) minus the nearest point of the cylinder."""
    rho = np.hypot(y[..., 0], y[..., 1])
    scale = np.maximum(rho - radius, 0) / np.maximum(rho, _TINY)
    z = y[..., 2]
    return np.stack([scale * y[..., 0], scale * y[..., 1], z - np.clip(z, -length, length)], axis=-1)


def _zero(c: Array, u: Array, half: float, radius: float, length: float) -> Array:
    """t where the slope, which rises with t, is zero, or the end nearest to that."""

    def slope(t: Array) -> Array:
        return -np.asarray(np.einsum("ki,ki->k", _beyond(c - t[:, None] * u, radius, length), u))

    low, high = np.full(len(c), -half), np.full(len(c), half)
    at_low, at_high = slope(low), slope(high)
    begun, ended = at_low >= 0, at_high <= 0
    kept = np.zeros(len(c), int)
    for _ in range(_SECANTS):
        rise = at_high - at_low
        t = np.clip(low - at_low * (high - low) / np.where(rise > 0, rise, 1.0), low, high)
        at = slope(t)
        below = at < 0
        low, high = np.where(below, t, low), np.where(below, high, t)
        at_high = np.where(below, np.where(kept == 1, at_high / 2, at_high), at)
        at_low = np.where(below, at, np.where(kept == -1, at_low / 2, at_low))
        kept = np.where(below, 1, -1)
        if (np.abs(at) <= _FLAT * half)[~(begun | ended)].all():
            break
    return np.where(begun, -half, np.where(ended, half, t))
