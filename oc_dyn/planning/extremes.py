"""Where along a motion quantities are largest: polynomials by control points, others on a grid that is refined."""

from dataclasses import dataclass
from itertools import pairwise
from math import factorial

import numpy as np

from ..optimal_control.polynomials import bernstein

LEAST, MOST = 8, 200_000  # intervals of a piece, samples of a motion
_BLOCK = 8192  # samples that are in memory at a time
_ACCURATE = 1e-7  # share of the largest control point up to which an extreme of a polynomial is found
_LOOK_CLOSER = 0.9  # share of a limit from which on the surroundings of a sample are looked at
_CLOSER = 8  # points to either side, twice


@dataclass
class Extreme:
    """The worst of each joint, all (n,): share of the limit, value, limit on that side, time."""

    share: np.ndarray
    value: np.ndarray
    limit: np.ndarray
    time: np.ndarray


def of_polynomials(t, pieces, d):
    """(low, time of low, high, time of high), each (n,), of derivative d of the pieces of a motion.

    t (M + 1,): breakpoints. pieces (M, k, n): derivatives at the start of each. Ends of pieces count on both sides.
    Where the control points of a piece exceed what is found already it is halved, so nothing is missed.
    """
    h, degree, n = np.diff(t), pieces.shape[1] - 1, pieces.shape[2]
    if d > degree:
        zero = np.zeros(n)
        return zero, np.full(n, t[0]), zero, np.full(n, t[0])
    weights = bernstein(degree, d)[:, d:] / [factorial(j) for j in range(d, degree + 1)]
    scaled = pieces[:, d:] * (h[:, None] ** np.arange(degree + 1 - d))[:, :, None]
    points = np.einsum("ij,kjn->kin", weights, scaled)
    points = np.concatenate([-points, points], axis=2)
    ends = points[:, [0, -1]].reshape(-1, 2 * n)
    k = np.argmax(ends, axis=0)
    best, time = ends[k, np.arange(2 * n)], np.where(k % 2, t[1:][k // 2], t[:-1][k // 2])
    slack = _ACCURATE * np.abs(points).max(axis=(0, 1))
    piece, joint = np.nonzero(points.max(axis=1) > best + slack)
    rest, start, width = points[piece, :, joint], np.zeros(len(piece)), 1.0
    while len(piece):
        rest, width = np.concatenate(_halves(rest)), width / 2
        start = np.concatenate([start, start + width])
        piece, joint = np.tile(piece, 2), np.tile(joint, 2)
        for i in np.flatnonzero(rest[:, 0] > best[joint]):
            if rest[i, 0] > best[joint[i]]:
                best[joint[i]], time[joint[i]] = rest[i, 0], t[piece[i]] + start[i] * h[piece[i]]
        more = rest.max(axis=1) > best[joint] + slack[joint]
        rest, start, piece, joint = rest[more], start[more], piece[more], joint[more]
        if width < 1e-12:
            break
    return -best[:n], time[:n], best[n:], time[n:]


def _halves(points):
    """Control points (K, m) of both halves: de Casteljau's algorithm."""
    left, right, level = [points[:, 0]], [points[:, -1]], points
    while level.shape[1] > 1:
        level = (level[:, 1:] + level[:, :-1]) / 2
        left.append(level[:, 0])
        right.append(level[:, -1])
    return np.array(left).T, np.array(right[::-1]).T


def intervals(t, sweep, dt):
    """(M,) number of intervals that the pieces between the breakpoints t are looked at in: as many as dt asks for and
    the way (M,) [rad or m] that joints go, MOST in all but LEAST in any piece."""
    with np.errstate(over="ignore"):
        wanted = np.maximum(np.diff(t) / dt, 40 * sweep)
    most = max(MOST, LEAST * len(wanted))
    wanted = np.ceil(np.minimum(wanted, most))
    if wanted.sum() > most:
        wanted = wanted * (most / wanted.sum())
    return np.maximum(wanted, LEAST).astype(int)


def on_grid(t, counts, measure):
    """{quantity: Extreme} of what `measure` finds, on a grid of counts (M,) intervals in the pieces between t (M + 1,).

    measure: (piece (K,), s (K,), in order) -> {quantity: (share, value, limit)}, each (K, n), s: times after the start
    of the piece; in order: whether rows follow each other in time.
    """
    h, found = np.diff(t), {}
    for pieces in _blocks(counts):
        m = counts[pieces]
        piece = np.repeat(pieces, m + 1)
        step = np.arange(len(piece)) - np.repeat(np.cumsum(m + 1) - (m + 1), m + 1)
        s = h[piece] * step / np.repeat(m, m + 1)
        _keep(found, t, piece, s, measure(piece, s, True))
    for quantity in found:
        _look_closer(found, quantity, t, counts, measure)
    return {quantity: x[0] for quantity, x in found.items()}


def _blocks(counts):
    """Numbers of pieces, some at a time, so that each has about _BLOCK samples."""
    edges = np.searchsorted(np.cumsum(counts + 1), np.arange(0, (counts + 1).sum(), _BLOCK), side="left")
    edges = np.unique([0, *edges[1:] + 1, len(counts)])
    edges = edges[edges <= len(counts)]
    return [np.arange(a, b) for a, b in pairwise(edges)]


def _keep(found, t, piece, s, measured, only=None):
    """Take over what is worse than what has been found; without any limit what is largest."""
    for quantity, (share, value, limit) in measured.items():
        if only not in (None, quantity):
            continue
        columns = np.arange(share.shape[1])
        limited = np.isfinite(limit).any(axis=0)
        k = np.where(limited, np.argmax(share, axis=0), np.argmax(np.abs(value), axis=0))
        new = Extreme(share[k, columns], value[k, columns], limit[k, columns], t[piece[k]] + s[k])
        if quantity not in found:
            found[quantity] = [new, piece[k], s[k]]
            continue
        old, at, after = found[quantity]
        worse = np.where(limited, new.share > old.share, np.abs(new.value) > np.abs(old.value))
        for name in ("share", "value", "limit", "time"):
            setattr(old, name, np.where(worse, getattr(new, name), getattr(old, name)))
        found[quantity] = [old, np.where(worse, piece[k], at), np.where(worse, s[k], after)]


def _look_closer(found, quantity, t, counts, measure):
    """Look between the worst sample and those next to it, of joints that are near or over a limit."""
    h = np.diff(t)
    for level in range(2):
        worst, piece, s = found[quantity]
        near = np.isfinite(worst.share) & (worst.share > _LOOK_CLOSER)
        if not near.any():
            return
        piece, s = piece[near], s[near]
        reach = h[piece] / counts[piece] / _CLOSER**level
        offsets = np.linspace(-1, 1, 2 * _CLOSER + 1)[1:-1]
        at = np.clip(s[:, None] + reach[:, None] * offsets, 0.0, h[piece][:, None]).ravel()
        piece = np.repeat(piece, len(offsets))
        _keep(found, t, piece, at, measure(piece, at, False), quantity)
