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
from ..scene.lower_bounds import over_interval
from ..scene.numeric import separation
from ..scene.pairs import Pair, PairsInMotion, seen
from ..scene.scene import Scene
from ..scene.shapes import HalfSpace
from ..types import Array, Indices
from ..validation import number
from .clearance import Clearance, PairClearance
from .coordinate_ranges import ranges_of

TOLERANCE = 1e-5  # [m] between what is certified and what is met
_FINE = 1e-2  # share of it that the proof of a clearance may miss where the motion only just keeps it
_NO_GAIN = 1e-3  # share of it that halving could gain at most, where it stops
_SHORTEST = 1e-12  # half length of an interval, of the motion
_MOST = 1_000_000  # pairs on intervals that are looked at


def certify(motion: Any, scene: Scene, clearance: float = 0.0, tolerance: float = TOLERANCE) -> Clearance:
    """Clearance of a Trajectory or PathMotion among the shapes of a Scene, proven on the whole motion.

    clearance [m]: asked of all pairs, besides their margins. tolerance [m]: by how much what is certified may stay
    below what is met; of pairs nearer than `clearance`, or else of the nearest one. Where the motion only just keeps
    the clearance the proof may miss a hundredth of that. For floating bases coordinates are those of robot.nq,
    quaternions of any length. Poses that are Functions take the time of the motion.
    Raises ModelError without the robot and for transform joints; ShapeError for obstacles at a port, pairs of
    half-spaces, and coordinates that do not fit; UnknownName for links that the robot does not have.
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
    ranges, notes = ranges_of(motion)
    moving = PairsInMotion(robot, scene)
    search = _Search(moving.pairs, asked, tolerance)
    length = np.diff(motion.t)
    piece, middle, h = np.arange(len(length)), length / 2, length / 2
    waits = np.ones((len(piece), len(moving.pairs)), bool)
    while waits.any():
        at = motion.t[piece] + middle
        tree = moving.tree(ranges(piece, middle, h), at, h)
        final = search.looked_at > _MOST or bool(h.max() < _SHORTEST * motion.duration)
        waits = search.settle(tree, at, h, waits, final)
        piece, middle, h, waits = _halved(piece, middle, h, waits)
    return search.result(moving.notes + notes)


def _halved(piece: Indices, middle: Array, h: Array, waits: Any) -> tuple[Indices, Array, Array, Any]:
    """Both halves of the intervals that wait."""
    left = waits.any(axis=1)
    piece, middle, h, waits = piece[left], middle[left], h[left] / 2, waits[left]
    both = np.concatenate([middle - h, middle + h])
    return np.tile(piece, 2), both, np.tile(h, 2), np.tile(waits, (2, 1))


class _Search:
    """What is known so far. certified, met, time (P,): of every pair."""

    def __init__(self, pairs: tuple[Pair, ...], asked: float, tolerance: float) -> None:
        self.pairs, self.asked, self.tolerance, self.looked_at = pairs, asked, tolerance, 0
        self.certified = np.full(len(pairs), np.inf)
        self.met, self.time = np.full(len(pairs), np.inf), np.full(len(pairs), np.nan)

    def settle(self, tree: Any, at: Array, h: Array, waits: Any, final: bool) -> Any:
        """(K, P) of the pairs and intervals whose bounds do not tell enough yet; none where this look is final."""
        placed: dict[Any, Any] = {}
        for pair in self.pairs:
            for member in (pair.a, pair.b):
                if (member.name, pair.on) not in placed:
                    placed[member.name, pair.on] = seen(tree, member, pair.on)
        self.looked_at += int(waits.sum())
        if np.isinf(self.met).any():
            self._start(placed, at)
        out = waits.copy()
        for p, pair in enumerate(self.pairs):
            rows = np.flatnonzero(waits[:, p])
            if rows.size:
                A, B = (placed[x.name, pair.on].rows(rows) for x in (pair.a, pair.b))
                out[rows, p] = self._look(p, A, B, at[rows], h[rows], final)
        return out

    def _start(self, placed: Any, at: Array) -> None:
        """Distances at one time for every pair, so that there is something to compare with."""
        for p, pair in enumerate(self.pairs):
            A, B = (placed[x.name, pair.on] for x in (pair.a, pair.b))
            k = int(np.argmin(np.linalg.norm(B.p - A.p, axis=1)))
            self._separated(p, A.rows([k]), B.rows([k]), at[[k]])

    def _look(self, p: int, A: Any, B: Any, at: Array, h: Array, final: bool) -> Any:
        """(K,) whether intervals of a pair have to be halved."""
        a, b, margin = self.pairs[p].a, self.pairs[p].b, self.pairs[p].margin
        apart = np.linalg.norm(B.p - A.p, axis=1) - a.radius - b.radius - margin
        with np.errstate(invalid="ignore"):
            lower = np.nan_to_num(apart - (A.speed + B.speed) * h, nan=-np.inf, neginf=-np.inf)
        near = np.flatnonzero(lower < self._wanted(p))
        stuck = np.zeros(len(h), bool)
        if near.size:
            A, B = A.rows(near), B.rows(near)
            n = self._separated(p, A, B, at[near])
            found, middle = over_interval(a.shape, A, b.shape, B, n, h[near])
            lower[near] = np.maximum(lower[near], found - margin)
            stuck[near] = middle - found < _NO_GAIN * self.tolerance
        done = (lower >= self._wanted(p)) | stuck | final
        self.certified[p] = min(self.certified[p], lower[done].min(initial=np.inf))
        return ~done

    def _wanted(self, p: int) -> float:
        """The bound from which on an interval of a pair is settled: near what is met, or beyond what matters."""
        own, least = self.met[p], self.met.min()
        if own < self.asked:
            return float(own - self.tolerance)
        return float(max(least - self.tolerance, min(self.asked, own - _FINE * self.tolerance)))

    def _separated(self, p: int, A: Any, B: Any, at: Array) -> Array:
        """Normals (K, 3) of the planes between a pair, from its distances in the middle of intervals, which count."""
        a, b, margin = self.pairs[p].a.shape, self.pairs[p].b.shape, self.pairs[p].margin
        d, n, *_ = separation(a, _pose(A), b, _pose(B))
        k = int(np.argmin(d))
        if d[k] - margin < self.met[p]:
            self.met[p], self.time[p] = float(d[k]) - margin, float(at[k])
        if isinstance(a, HalfSpace):
            return A.R @ np.array(a.normal)
        if isinstance(b, HalfSpace):
            return -B.R @ np.array(b.normal)
        return n / np.linalg.norm(n, axis=1, keepdims=True)

    def result(self, notes: tuple[str, ...]) -> Clearance:
        """What was found."""
        rows = zip(self.pairs, self.certified, self.met, self.time, strict=True)
        found = tuple(PairClearance(p.names, p.margin, float(c), float(m), float(t)) for p, c, m, t in rows)
        return Clearance(self.asked, found, self.looked_at, notes)


def _pose(x: Any) -> Array:
    out = np.zeros((len(x.p), 4, 4))
    out[:, :3, :3], out[:, :3, 3], out[:, 3, 3] = x.R, x.p, 1.0
    return out
