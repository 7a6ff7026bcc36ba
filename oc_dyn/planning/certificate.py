"""The clearance of a whole motion, proven: conservative advancement over its pairs of shapes.

An interval of time with a lower bound of a pair's distance is settled when the bound tells enough, and halved when not
(Mirtich 1996; bounds of speeds and of accelerations after Schwarzer, Saha and Latombe 2005 and Zhang, Redon, Lee and
Kim 2007). Bounds come from support planes, `oc_dyn/scene/lower_bounds.py`, and from how fast links can move,
`oc_dyn/scene/chains.py`. Nothing between samples can be missed; rounding, 1e-15 of the numbers, is not accounted for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ModelError, ShapeError
from ..scene.chains import ShapeMotion, Tree
from ..scene.lower_bounds import over_interval
from ..scene.numeric import separation
from ..scene.pairs import Pair, PairsInMotion, seen
from ..scene.scene import Scene
from ..scene.segments import between_segments
from ..scene.shapes import ROUND, HalfSpace
from ..types import Array, Indices
from ..validation import number
from .clearance import KEPT, Clearance, PairClearance
from .coordinate_ranges import ranges_of

TOLERANCE = 1e-5  # [m] between what is certified and what is met
_FINE = 1e-2  # share of it that the proof of a clearance may miss where the motion only just keeps it
_DEPTH, _DEEPER = 0.1, 3  # share of a depth that is left open, looks at a pair that hits
_NO_GAIN = 1e-3  # share of it that shorter intervals could gain at most, where it stops
_SHORTEST = 1e-12  # half length of an interval, of the motion
_PARTS = 16  # of an interval at most, in the next look
_BLOCK = 4096  # intervals that are in memory at a time
_MOST = 1_000_000  # pairs on intervals that are looked at


def certify(motion: Any, scene: Scene, clearance: float = 0.0, tolerance: float = TOLERANCE) -> Clearance:
    """Clearance of a Trajectory or PathMotion among the shapes of a Scene, proven on the whole motion.

    clearance [m]: asked of all pairs, besides their margins; below 0 it is a depth that does no harm. tolerance [m]: by
    how much what is certified may stay below what is met; of pairs nearer than `clearance`, or else of the nearest one.
    Of pairs that hit it may be a tenth of their depth, or more where they do for long: that they hit is shown, and
    `certified` is a coarse bound. Where the motion only just keeps the clearance the proof may miss a hundredth of the
    tolerance; what is short by less than a micrometre is kept.
    For floating bases coordinates are those of robot.nq, quaternions of any length. Poses that are Functions
    take the time of the motion.
    Raises ModelError without the robot and for transform joints; ShapeError for obstacles at a port, pairs of
    half-spaces, and coordinates that do not fit; UnknownName for links that the robot does not have, and for names of
    pairs left out that neither it nor the scene has.
    Source: conservative advancement, Mirtich 1996.
    """
    asked = number("certify: clearance [m]", clearance)
    tolerance = number("certify: tolerance [m]", tolerance, above=0)
    if not isinstance(scene, Scene):
        raise ShapeError(f"certify: scene is {scene!r}, expected an od.Scene")
    robot = motion.robot
    if robot is None:
        raise ModelError("certify", ["shapes on links need the robot; load the file with robot=..."])
    if motion.q.shape[1] != robot.nq:
        raise ShapeError(f"certify: a motion of {motion.q.shape[1]} coordinates for {robot.name}, which has {robot.nq}")
    scene.check_names(robot)
    ranges, notes = ranges_of(motion)
    moving = PairsInMotion(robot, scene)
    search = _Search(moving.pairs, asked, tolerance)
    length = np.diff(motion.t)
    work: Any = np.arange(len(length)), length / 2, length / 2, np.ones((len(length), len(moving.pairs)), int)
    while len(work[0]) and moving.pairs:
        rest, (piece, middle, h, waits) = [x[:-_BLOCK] for x in work], (x[-_BLOCK:] for x in work)
        at = motion.t[piece] + middle
        tree = moving.tree(ranges(piece, middle, h), at, h)
        final = (h < _SHORTEST * motion.duration) | (search.looked_at > _MOST)
        waits = search.settle(tree, at, h, waits, final)
        work = tuple(map(np.concatenate, zip(rest, _parted(piece, middle, h, waits), strict=True)))
    return search.result(moving.notes + notes)


def _parted(piece: Indices, middle: Array, h: Array, parts: Indices) -> tuple[Indices, Array, Array, Indices]:
    """Intervals in as many equal parts as any pair asks for (K, P); those that none does are left out."""
    most = parts.max(axis=1, initial=0)
    of = np.repeat(np.arange(len(piece)), most)
    step = np.arange(len(of)) - np.repeat(np.cumsum(most) - most, most)
    small = h[of] / most[of]
    return piece[of], middle[of] - h[of] + (2 * step + 1) * small, small, parts[of]


class _Search:
    """What is known so far. certified, met, time (P,): of every pair. deeper (P,): looks after a hit."""

    def __init__(self, pairs: tuple[Pair, ...], asked: float, tolerance: float) -> None:
        self.pairs, self.asked, self.tolerance, self.looked_at = pairs, asked, tolerance, 0
        self.certified, self.deeper = np.full(len(pairs), np.inf), np.zeros(len(pairs), int)
        self.met, self.time = (np.full(len(pairs), np.inf) for _ in range(2))

    def settle(self, tree: Tree, at: Array, h: Array, waits: Indices, final: Any) -> Indices:
        """(K, P) in how many parts to look at intervals again, 0 where bounds tell enough or this look is
        `final` (K,)."""
        placed: dict[Any, Any] = {}
        for pair in self.pairs:
            for member in (pair.a, pair.b):
                if (member.name, pair.on) not in placed:
                    placed[member.name, pair.on] = seen(tree, member, pair.on)
        self.looked_at += int(np.count_nonzero(waits))
        if not np.isfinite(self.met).any():
            self._start(placed, at)
        out = np.zeros_like(waits)
        for p, pair in enumerate(self.pairs):
            rows = np.flatnonzero(waits[:, p])
            if rows.size:
                A, B = (placed[x.name, pair.on].rows(rows) for x in (pair.a, pair.b))
                out[rows, p] = self._look(p, A, B, at[rows], h[rows], final[rows])
        return out

    def _start(self, placed: Any, at: Array) -> None:
        """A first distance, of the pair whose balls come nearest, so that there is something to compare with."""
        nearest = []
        for pair in self.pairs:
            gap = self._between_balls(pair, placed[pair.a.name, pair.on], placed[pair.b.name, pair.on])
            nearest.append((float(gap.min()), int(np.argmin(gap))))
        p = min(range(len(nearest)), key=lambda i: nearest[i][0])
        A, B = (placed[x.name, self.pairs[p].on].rows([nearest[p][1]]) for x in (self.pairs[p].a, self.pairs[p].b))
        self._separated(p, A, B, at[[nearest[p][1]]])

    @staticmethod
    def _between_balls(pair: Pair, A: ShapeMotion, B: ShapeMotion) -> Array:
        """(K,) gap of balls that hold the shapes, less the margin; -infinity for a half-space."""
        return np.linalg.norm(B.p - A.p, axis=1) - pair.a.radius - pair.b.radius - pair.margin

    def _look(self, p: int, A: ShapeMotion, B: ShapeMotion, at: Array, h: Array, final: Any) -> Indices:
        """(K,) in how many parts to look at intervals of a pair again."""
        pair, parts = self.pairs[p], np.zeros(len(h), int)
        with np.errstate(invalid="ignore"):
            lower = self._between_balls(pair, A, B) - (A.speed + B.speed) * h
        lower[np.isnan(lower)] = -np.inf
        near = np.flatnonzero(lower < self._wanted(p))
        if near.size:
            A, B = A.rows(near), B.rows(near)
            n = self._separated(p, A, B, at[near])
            found, middle = (x - pair.margin for x in over_interval(pair.a.shape, A, pair.b.shape, B, n, h[near]))
            lower[near] = np.maximum(lower[near], found)
            loss, wanted = middle - lower[near], self._wanted(p)
            more = np.sqrt(
                np.maximum(loss, 0) / np.maximum(middle - wanted, _NO_GAIN * self.tolerance)
            )  # as it goes with h^2
            again = (lower[near] < wanted) & (loss > _NO_GAIN * self.tolerance)
            parts[near] = np.where(again, np.ceil(np.clip(more, 2, _PARTS)), 0)
        self.deeper[p] += self.met[p] < min(self.asked, -pair.margin) - KEPT
        parts[final | (self.deeper[p] > _DEEPER)] = 0
        self.certified[p] = min(self.certified[p], lower[parts == 0].min(initial=np.inf))
        return parts

    def _wanted(self, p: int) -> float:
        """The bound from which on an interval of a pair is settled: near what is met, or beyond what matters."""
        own, least = self.met[p], self.met.min()
        if own < self.asked - KEPT:
            depth = -own - self.pairs[p].margin
            return float(own - max(self.tolerance, _DEPTH * depth))
        return float(max(least - self.tolerance, min(self.asked, own - _FINE * self.tolerance)))

    def _separated(self, p: int, A: ShapeMotion, B: ShapeMotion, at: Array) -> Array:
        """Normals (K, 3) of the planes between a pair, from its distances in the middle of intervals, which count."""
        a, b, margin = self.pairs[p].a.shape, self.pairs[p].b.shape, self.pairs[p].margin
        if isinstance(a, ROUND) and isinstance(b, ROUND):
            d, n = between_segments(a, A, b, B)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                found, n, *_ = separation(a, _pose(A), b, _pose(B))
            d = np.asarray(found)
        k = int(np.argmin(d))
        if d[k] - margin < self.met[p]:
            self.met[p], self.time[p] = float(d[k]) - margin, float(at[k])
        if isinstance(a, HalfSpace):
            return A.R @ np.array(a.normal)
        if isinstance(b, HalfSpace):
            return -B.R @ np.array(b.normal)
        return _unit(n)

    def result(self, notes: tuple[str, ...]) -> Clearance:
        """What was found."""
        rows = zip(self.pairs, self.certified, self.met, self.time, strict=True)
        found = tuple(PairClearance(p.names, p.margin, float(c), float(m), float(t)) for p, c, m, t in rows)
        return Clearance(self.asked, found, self.looked_at, notes)


def _unit(n: Array) -> Array:
    """(K, 3) of length 1: those that are no directions, if there are any, along x, as any direction will do."""
    size = np.linalg.norm(n, axis=1, keepdims=True)
    good = np.isfinite(size) & (size > 0)
    return np.where(good, n / np.where(good, size, 1.0), [1.0, 0.0, 0.0])


def _pose(x: ShapeMotion) -> Array:
    out = np.zeros((len(x.p), 4, 4))
    out[:, :3, :3], out[:, :3, 3], out[:, 3, 3] = x.R, x.p, 1.0
    return out
