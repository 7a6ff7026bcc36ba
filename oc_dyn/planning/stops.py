"""Paths on which the motion has to stop: where they turn back, and where it is asked for.

A path turns back at a way point whose neighbours lie in one direction from it. Between stops the stretches of the path
are curves of their own: way points are joined by a spline each, so that there may be a corner at a stop; a Function is
taken as it is. Where a Function turns back by itself q' passes through zero, and the motion stands still for an instant
without being asked to.
"""

from itertools import pairwise

import numpy as np

from ..errors import OrderError, ShapeError, UnknownName
from ..numbers import as_floats
from ..validation import count
from .curves import curve, places_of

_PARALLEL = 1e-6  # sine of the angle up to which two directions count as one


class Part:
    """A curve between two places of another one, by a share from 0 to 1 of its own."""

    def __init__(self, on, a, b):
        self.on, self.a, self.b, self.n, self.continuity = on, a, b, on.n, on.continuity
        inside = on.knots[(on.knots > a + 1e-12) & (on.knots < b - 1e-12)]
        self.knots = (inside - a) / (b - a)

    def at(self, s, count, before=False):
        """As Spline.at."""
        width, s = self.b - self.a, np.asarray(s, float)
        places = np.where(s == 1, self.b, self.a + width * s)
        P = self.on.at(places, count, before)
        for end, side in ((0.0, False), (1.0, True)):  # what belongs to the part, where the derivatives jump
            there = s == end
            if there.any() and before != side:
                P[:, there] = self.on.at(places[there], count, side)
        return P * (width ** np.arange(count))[:, None, None]


class Joined:
    """Stretches one after the other as one curve. edges (m + 1,): places from 0 to 1 where they meet: the stops."""

    def __init__(self, stretches, edges, points_at=None):
        self.stretches, self.edges, self.points_at = stretches, np.asarray(edges, float), points_at
        self.n, self.continuity = stretches[0].n, min(x.continuity for x in stretches)
        self.stops = self.edges[1:-1]
        spans = zip(stretches, pairwise(self.edges), strict=True)
        self.knots = np.unique(np.concatenate([self.stops, *(a + (b - a) * x.knots for x, (a, b) in spans)]))

    @property
    def widths(self):
        """(m,) how much of the path each stretch is."""
        return np.diff(self.edges)

    def at(self, s, count, before=False):
        """As Spline.at; at a stop the derivatives of the stretch behind it, or before it."""
        s = np.asarray(s, float)
        which = np.searchsorted(self.edges, s, side="left" if before else "right") - 1
        which = np.clip(which, 0, len(self.stretches) - 1)
        out = np.zeros((count, len(s), self.n))
        for i, (a, b) in enumerate(pairwise(self.edges)):
            mine = which == i
            if not mine.any():
                continue
            share = np.where(s[mine] == b, 1.0, np.where(s[mine] == a, 0.0, np.clip((s[mine] - a) / (b - a), 0.0, 1.0)))
            out[:, mine] = self.stretches[i].at(share, count, before) / ((b - a) ** np.arange(count))[:, None, None]
        return out


def path_with_stops(path, at, degree, continuity, names, stops):
    """The curve of plan_along_path: of one stretch as it is, of several a Joined."""
    if hasattr(path, "numel_out"):  # a casadi.Function
        whole = curve(path, at, degree, continuity, names)
        return _parted(whole, sorted(set(_places(stops))))
    points = as_floats("path", path)
    if points.ndim != 2 or len(points) < 3 or not np.isfinite(points).all():
        _numbers_of_points(stops, len(points) if points.ndim == 2 else 0)
        return curve(path, at, degree, continuity, names)
    inner = sorted({*_numbers_of_points(stops, len(points)), *_turning(points)})
    if not inner:
        return curve(path, at, degree, continuity, names)
    if points.shape[1] != len(names):
        raise ShapeError(f"path: got shape {points.shape}, expected (k, {len(names)}) with k of at least 2")
    return _split(points, at, degree, continuity, names, inner)


def _split(points, at, degree, continuity, names, inner):
    """Joined splines between the way points of these numbers."""
    at = places_of(points, at)
    stretches, edges = [], [0.0]
    for a, b in pairwise([0, *inner, len(points) - 1]):
        own = (at[a : b + 1] - at[a]) / (at[b] - at[a])
        own[-1] = 1.0
        stretches.append(curve(points[a : b + 1], own, degree, continuity, names))
        edges.append(at[b])
    return Joined(stretches, edges, at)


def _parted(whole, places):
    """A curve, parted at places."""
    if not places:
        return whole
    edges = [0.0, *places, 1.0]
    return Joined([Part(whole, a, b) for a, b in pairwise(edges)], edges, getattr(whole, "points_at", None))


def _numbers_of_points(stops, k):
    """Numbers of way points inside a path of k of them."""
    if stops is None:
        return []
    if isinstance(stops, str) or not hasattr(stops, "__iter__"):
        raise ShapeError(f"plan_along_path: stops is {stops!r}, expected numbers of way points: [3, 5]")
    numbers = [count("plan_along_path: stops", i) for i in stops]
    for i in numbers:
        if not 0 < i < k - 1:
            raise UnknownName("way point to stop at", str(i), [str(j) for j in range(1, k - 1)])
    return numbers


def _places(stops):
    """Places to stop at on a Function, inside it."""
    places = [] if stops is None else as_floats("plan_along_path: stops", stops).ravel().tolist()
    for s in places:
        if not 0 < s < 1:
            raise ShapeError(f"plan_along_path: stops has {s:g}, expected places of the path, between 0 and 1")
    return places


def _turning(points):
    """Numbers of the way points at which a path turns back."""
    steps = np.diff(points, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = steps / lengths[:, None]
    opposite = np.linalg.norm(steps[1:] + steps[:-1], axis=1) < _PARALLEL
    return (np.flatnonzero(opposite) + 1).tolist()


def shared_nodes(widths, nodes, least):
    """Numbers of intervals of the stretches, `nodes` in all, at least so many each."""
    if nodes < least * len(widths):
        raise OrderError(
            f"plan_along_path: {nodes} nodes for {len(widths)} stretches between stops; give at least "
            f"{least * len(widths)}"
        )
    wanted = np.maximum(widths / np.sum(widths) * nodes, least)
    counts = np.floor(wanted).astype(int)
    while counts.sum() != nodes:
        k = np.argmax(wanted - counts) if counts.sum() < nodes else np.argmax(np.where(counts > least, counts, 0))
        counts[k] += 1 if counts.sum() < nodes else -1
    return counts.tolist()
