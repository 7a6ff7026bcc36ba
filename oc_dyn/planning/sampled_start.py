"""Ways round obstacles for searches to start from: by OMPL where it is installed, else by detours and trees of our own.

Both know nothing of time: configurations (k, n), the straight lines between which are free. The same arguments lead to
the same way, in every process, however fast it is: searches are bounded by how often they look.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

from ..interrupts import expired
from ..types import Array
from .obstacles import Obstacles
from .quick_looks import QuickLooks

_STEP = 0.05  # [rad or m] between configurations of a line that are looked at
CHECKS = 2000  # lines and configurations that OMPL looks at for a way, at most: some seconds
_REACH = 0.15  # of the box: a branch of a tree
_SHORTER = 60  # tries to cut a way short
_TRIES, _SHORT = 4, 1.3  # ways of which the shortest is taken; by the straight line, what is short enough
_POINTS = 60  # configurations that detours may lead through
_BOTH = 8  # that are looked at in pairs


class _Nothing:
    """As QuickLooks where nothing is in the way."""

    def free(self, q: Array) -> Any:
        """(K,) true."""
        return np.ones(len(np.atleast_2d(q)), bool)


Looks = Obstacles | QuickLooks | _Nothing


def ways(
    obstacles: Obstacles, start: Array, goal: Array, limits: tuple[Array, Array], seeds: int,
    checks: int = CHECKS,
) -> Iterator[Array]:  # fmt: skip
    """Ways (k, n) from start to goal (n,) within limits, lower and upper (n,): so many by OMPL, each the shortest of a
    few, else detours and ways of our own trees. checks: lines and configurations that each search looks at, at most."""
    box, around = _box(start, goal, *limits), QuickLooks(obstacles)
    if installed():
        for first in range(0, seeds * _TRIES, _TRIES):
            yield from _batch(around, start, goal, box, range(first, first + _TRIES), checks)
        return
    found = detours(around, start, goal, box, seeds)
    for seed in range(seeds - len(found)):
        way = by_trees(around, start, goal, box, seed, checks)
        found += [] if way is None else [way]
    for seed, way in enumerate(found):
        yield shortened(around, way, seed)


def _batch(around: Looks, start: Array, goal: Array, box: tuple[Array, Array], seeds: range, checks: int) -> Any:
    """The shortest of OMPL's ways of some seeds; no more than one is sought where that is little longer than the
    straight line."""
    found: list[Array] = []
    for seed in seeds:
        way = by_ompl(around, start, goal, box, seed, checks)
        if way is not None:
            found.append(shortened(around, way, seed))
            if _length(found[-1]) < _SHORT * np.linalg.norm(goal - start):
                break
    return [min(found, key=_length)] if found else []


def installed() -> bool:
    """Whether there is OMPL: pip install "oc-dyn[sampling]"."""
    return find_spec("ompl") is not None


def line(a: Array, b: Array) -> Array:
    """(K, n) configurations from a to b, so near each other that little fits between."""
    count = max(2, int(np.ceil(np.abs(b - a).max() / _STEP)) + 1)
    return a + (b - a) * np.linspace(0, 1, count)[:, None]


def free_line(around: Looks, a: Array, b: Array) -> bool:
    """Whether all of them are free, those at its ends apart."""
    inner = line(a, b)[1:-1]
    coarse = inner[len(inner) % 4 // 2 :: 4]
    return not len(inner) or bool(around.free(coarse).all() and around.free(inner).all())


def shortened(around: Looks, way: Array, seed: int) -> Array:
    """The way with corners cut: lines between points of it, where they are free."""
    rng, points = np.random.default_rng(seed), list(way)
    for _ in range(_SHORTER):
        if len(points) < 3:
            break
        dense, at = _dense(points)
        i, j = sorted(rng.integers(0, len(dense), 2))
        if at[j] - at[i] < 1 or not free_line(around, dense[i], dense[j]):
            continue
        points = [*points[: at[i] + 1], dense[i], dense[j], *points[at[j] + 1 :]]
        points = [p for k, p in enumerate(points) if k == 0 or np.abs(p - points[k - 1]).max() > 1e-9]
    return np.array(points)


def _dense(points: list[Array]) -> tuple[Array, list[int]]:
    """(configurations along the way, number of the piece each is of)."""
    parts = [line(a, b)[:-1] for a, b in pairwise(points)]
    at = [k for k, part in enumerate(parts) for _ in part]
    return np.concatenate([*parts, points[-1][None]]), [*at, len(parts) - 1]


def _box(start: Array, goal: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Where configurations are drawn from: all of the range of a joint, or a turn about its way where it has none."""
    low = np.where(np.isfinite(lower), lower, np.minimum(start, goal) - np.pi)
    high = np.where(np.isfinite(upper), upper, np.maximum(start, goal) + np.pi)
    return np.minimum(low, np.minimum(start, goal)), np.maximum(high, np.maximum(start, goal))


# -- OMPL -------------------------------------------------------------------------------------------------------------


def by_ompl(
    around: Looks, start: Array, goal: Array, box: tuple[Array, Array], seed: int, checks: int,
) -> Array | None:  # fmt: skip
    """Way of RRT-Connect (Kuffner and LaValle 2000) in OMPL (Sucan, Moll and Kavraki 2012); None for none."""
    from ompl import base, geometric, util

    util.noOutputHandler()
    util.RNG.setSeed(seed + 1)
    n = len(start)
    space = base.RealVectorStateSpace(n)
    bounds = base.RealVectorBounds(n)
    for i, (a, b) in enumerate(zip(*box, strict=True)):
        bounds.setLow(i, float(a))
        bounds.setHigh(i, float(b))
    space.setBounds(bounds)
    looked = _Looked(around, n, checks)
    setup = geometric.SimpleSetup(space)
    info = setup.getSpaceInformation()
    setup.setStateValidityChecker(looked.state)
    info.setMotionValidator(_validator(base, info, looked))
    ends = [space.allocState(), space.allocState()]
    for state, q in zip(ends, (start, goal), strict=True):
        for i, x in enumerate(q):
            state[i] = float(x)
    setup.setStartAndGoalStates(*ends)
    planner = geometric.RRTConnect(info)
    planner.setRange(_REACH * float(np.linalg.norm(box[1] - box[0])))
    setup.setPlanner(planner)
    setup.solve(base.PlannerTerminationCondition(looked.enough))
    if not setup.haveExactSolutionPath():
        return None
    path = setup.getSolutionPath()
    return np.array([[path.getState(k)[i] for i in range(n)] for k in range(path.getStateCount())])


class _Looked:
    """What OMPL asks, as configurations, and how often it has asked."""

    def __init__(self, around: Looks, n: int, most: int) -> None:
        self.around, self.n, self.most, self.count = around, n, most, 0

    def _q(self, state: Any) -> Array:
        return np.array([state[i] for i in range(self.n)])

    def state(self, state: Any) -> bool:
        """Whether a state is free."""
        self.count += 1
        return bool(self.around.free(self._q(state))[0])

    def motion(self, a: Any, b: Any) -> bool:
        """Whether a line is free, its end included."""
        self.count += 1
        points = line(self._q(a), self._q(b))[1:]
        some = np.arange(len(points)) % 4 == (len(points) - 1) % 4  # its end among them
        return bool(self.around.free(points[some]).all() and (some.all() or self.around.free(points[~some]).all()))

    def enough(self) -> bool:
        """Whether to stop."""
        return self.count >= self.most or expired()


def _validator(base: Any, info: Any, looked: _Looked) -> Any:
    class Validator(base.MotionValidator):
        """Lines looked at as a whole."""

        def checkMotion(self, a: Any, b: Any, last_valid: Any = None) -> Any:
            return looked.motion(a, b)

    return Validator(info)


# -- without it -------------------------------------------------------------------------------------------------------


def detours(around: Looks, start: Array, goal: Array, box: tuple[Array, Array], most: int) -> list[Array]:
    """Ways through one or two configurations of a fixed set, the shortest first, `most` at most."""
    rng = np.random.default_rng(0)
    points = box[0] + (box[1] - box[0]) * rng.random((_POINTS, len(start)))
    middle = (start + goal) / 2
    size = np.abs(goal - start).max()
    near = np.clip(middle + size * rng.uniform(-1, 1, points.shape), *box)  # those near the straight way
    points = np.concatenate([near, points])
    points = points[around.free(points)]
    order = np.argsort(np.linalg.norm(points - start, axis=1) + np.linalg.norm(points - goal, axis=1))
    points = points[order]
    first = [p for p in points if free_line(around, start, p)]
    last = [p for p in points if free_line(around, p, goal)]
    ids = {id(p) for p in last}
    found = [np.array([start, p, goal]) for p in first if id(p) in ids]
    if len(found) < most:
        both = [(p, r) for p in first[:_BOTH] for r in last[:_BOTH] if p is not r]
        both.sort(key=lambda x: _length(np.array([start, *x, goal])))
        for p, r in both:
            if len(found) >= most:
                break
            if free_line(around, p, r):
                found.append(np.array([start, p, r, goal]))
    return sorted(found, key=_length)[:most]


def by_trees(
    around: Looks, start: Array, goal: Array, box: tuple[Array, Array], seed: int, checks: int,
) -> Array | None:  # fmt: skip
    """Way of RRT-Connect (Kuffner and LaValle 2000): trees from both ends, one of which grows towards a random
    configuration, the other towards what it reached; None for none within so many looks."""
    rng, reach = np.random.default_rng(seed), _REACH * float(np.linalg.norm(box[1] - box[0]))
    trees = [_Tree(start), _Tree(goal)]
    looks, grown = 0, 0
    while looks < checks and not expired():
        a, b = trees[grown], trees[1 - grown]
        tip = a.towards(around, box[0] + (box[1] - box[0]) * rng.random(len(start)), reach)
        looks += 1
        while tip is not None and looks < checks:
            met = b.towards(around, a.points[tip], reach)
            looks += 1
            if met is None:
                break
            if np.abs(b.points[met] - a.points[tip]).max() < 1e-12:
                ways = (a.way(tip), b.way(met)) if grown == 0 else (b.way(met), a.way(tip))
                return np.array([*ways[0], *ways[1][::-1][1:]])
        grown = 1 - grown
    return None


class _Tree:
    """Configurations, each with the number of the one that it grew from."""

    def __init__(self, root: Array) -> None:
        self.points, self.above = [np.asarray(root, float)], [-1]

    def towards(self, around: Looks, q: Array, reach: float) -> int | None:
        """Number of a new configuration on the line from the nearest one to q, `reach` at most away; None where that
        line is not free."""
        far = np.linalg.norm(np.array(self.points) - q, axis=1)
        near = int(np.argmin(far))
        new = q if far[near] <= reach else self.points[near] + (q - self.points[near]) * (reach / far[near])
        if not (free_line(around, self.points[near], new) and bool(around.free(new)[0])):
            return None
        self.points.append(new)
        self.above.append(near)
        return len(self.points) - 1

    def way(self, k: int) -> list[Array]:
        """From the root to configuration k."""
        out = []
        while k >= 0:
            out.append(self.points[k])
            k = self.above[k]
        return out[::-1]


def ways_about(
    obstacles: Obstacles | None, start: Array, goal: Array, limits: tuple[Array, Array], most: int,
) -> Iterator[Array]:  # fmt: skip
    """Ways (k, n) through one configuration each of a fixed set, `most` at most; obstacles: those that stand still.
    They lead all about, as what moves may be in the way of those that are near each other."""
    around = _Nothing() if obstacles is None else QuickLooks(obstacles)
    low, high = _box(start, goal, *limits)
    size = np.abs(goal - start).max()
    low, high = (np.maximum(low, np.minimum(start, goal) - size), np.minimum(high, np.maximum(start, goal) + size))
    for p in low + (high - low) * np.random.default_rng(0).random((most, len(start))):
        if free_line(around, start, p) and around.free(p)[0] and free_line(around, p, goal):
            yield np.array([start, p, goal])


def _length(way: Array) -> float:
    return float(np.linalg.norm(np.diff(way, axis=0), axis=1).sum())
