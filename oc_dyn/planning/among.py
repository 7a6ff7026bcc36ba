"""How motions from point to point are found among obstacles.

The motion without obstacles comes first: where it keeps the clearance it is the plan. Otherwise searches begin from
ways round what is hit, and pairs of shapes enter the program when they come near. What is kept is proven between nodes,
and asked for a little more where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from ..errors import SolveError
from ..interrupts import TIME_LIMIT
from .clearance import KEPT
from .feasibility import rest_to_rest, torque_can_wait
from .guess import along_passage, along_way, resampled
from .moving_obstacles import frozen, still_part
from .obstacles import ROUNDING, SPARE, Along, along, asked_more, course, reduced, told_of
from .point_to_point_search import MARGINS, Rounds, plan, told
from .report import with_clearance
from .sampled_start import free_line, installed, ways, ways_about
from .starts import outcomes

NEAR, WIDE = 0.04, 0.08  # [m] besides what is wanted: pairs that come that near what a search begins from are in its
# program; of long ways, from which motions go farther
MORE = 0.02  # [m] for later ones
_ROUNDS = 8
_ITERATIONS = 300  # of a search, where others may follow
_LONG, _FEW, _SKETCHES = 1.25, 20, 3  # by the straight line: ways that are sketched first; pieces and rounds of that
_THROUGH = 0.02  # [m] that a sketch may be too near between places
_DEEP = 0.001  # [m] that a pair may come too near between places until there are more of them
_PLACES = ((0.0,), (0.0, 0.5), (0.0, 0.25, 0.5, 0.75))
SEEDS = 2  # ways that searches begin from
AS_GOOD = 1.001  # cost over that without obstacles, from which no other way is tried
_DETOURS = 24  # ways that are tried where what moves is in the way all the time


@dataclass(frozen=True, eq=False)
class Apart:
    """What of a scene is in a program: near (P,) pairs, spare (P,) [m] that they keep besides, places of pieces where
    they do."""

    near: Any
    spare: Any
    places: tuple


def plan_among(task, settings, solver, initial, executor="serial"):
    """(motion, its Report, Along) of the search from `initial` or by itself; see the module. executor: that runs the
    starts. Raises SolveError."""
    around, bare, errors = task.around, replace(task, around=None), []
    rest = rest_to_rest(task.limits, task.distance) if task.rests else [0.0]
    settings = {**settings, "shortest": float(np.max(rest))}
    known = None if initial is None else _known(around, initial)
    if known is not None:
        try:
            return _search(task, settings, solver, initial, torque_can_wait(task, settings, initial), known)
        except SolveError as error:
            _stop(error)
            errors.append(error)
    motion, checked = plan(bare, settings, solver, initial if known is None else None)
    seen = along(around, motion)
    if not seen.short.any():
        return motion, checked, seen
    kinematic = torque_can_wait(bare, settings, None)  # ways round are other motions: torque may not bind there
    given = [] if initial is None or known is not None else [initial]
    starts = chain(given, _starts(task, settings, motion, kinematic))
    starts = ((start, start is not motion) for start in starts)
    found: list[Any] = []
    for result, error in outcomes(partial(_from_start, task, settings, kinematic), starts, solver, executor):
        if error is not None:
            errors.append(error)
            if error.status in (None, TIME_LIMIT):
                break
            continue
        found.append((told(result[0], solver), *result[1:]))
        if not around.scene.timed or _cost(result[0]) <= AS_GOOD * _cost(motion):
            break  # of what moves it may be quicker to pass in front
    if found:
        return min(found, key=lambda x: _cost(x[0]))
    last = errors[-1]
    if last.status is None:
        raise last
    raise _failed(around, seen, errors)


def _from_start(task, settings, kinematic, solver, start):
    """(motion, its Report, Along) of the search from a start, and whether others follow it."""
    what, others = start
    if others and solver.name == "ipopt":
        solver.inner = _impatient(solver.inner)
    if not isinstance(what, np.ndarray):
        return _search(task, settings, solver, what, kinematic, None)
    return _search(task, settings, solver, _sketched(task, settings, solver, what, kinematic), kinematic, None, WIDE)


def plan_clear(task, settings, solver, initial, executor="serial"):
    """(motion, its Report with the clearance) as plan_among finds them."""
    motion, checked, seen = plan_among(task, settings, solver, initial, executor)
    return motion, _with(motion, checked, seen)


def clear(motion, checked, around):
    """The Report with the clearance of a motion."""
    return _with(motion, checked, along(around, motion))


def _with(motion, checked, seen):
    motion.info |= told_of(seen)
    return checked if seen.proof is None else with_clearance(checked, seen.proof)


def _cost(motion):
    return motion.info["objective_value"]


def _impatient(options):
    """Options of ipopt with fewer iterations, as there are more starts."""
    return {**options, "max_iter": min(_ITERATIONS, options.get("max_iter", _ITERATIONS))}


def _stop(error):
    if error.status in (None, TIME_LIMIT):
        raise error


def _starts(task, settings, motion, kinematic):
    """What searches begin from, (T, derivatives): the straight way where it is free, ways round the obstacles, and the
    motion that hits."""
    a, b = task.start[0], task.goal[0]
    limits = tuple(np.where(task.moving, x, a) for x in task.limits.q)
    if task.around.scene.timed:
        yield from passages(task, settings, (a, b), limits, lambda t, way: along_way(t, settings, way, kinematic)[0])
        for way in ways_past(task.around, motion, (a, b), limits):
            yield along_way(replace(task, around=None), settings, way, kinematic)
    else:
        if free_line(task.around, a, b):
            yield along_way(task, settings, np.array([a, b]), kinematic)
        straight = float(np.linalg.norm(b - a))
        for way in ways(task.around, a, b, limits, SEEDS):
            length = np.linalg.norm(np.diff(way, axis=0), axis=1).sum()
            long = length > _LONG * straight and settings["nodes"] > 2 * _FEW
            yield way if long else along_way(task, settings, way, kinematic)
    yield motion


def _sketched(task, settings, solver, way, kinematic):
    """(T, derivatives) of a motion on few pieces from a way, on which a search takes a third of the time. Raises
    SolveError where there is none."""
    few, around = {**settings, "nodes": _FEW}, task.around
    begun = along_way(task, few, way, kinematic)
    known = _Clear(task, few, solver, kinematic, begun, None, WIDE).apart
    for _ in range(_SKETCHES):
        rounds = _Clear(task, few, solver, kinematic, begun, known, WIDE)
        motion = rounds.solve(rounds.margins, None)[0]
        q, t = course(motion)
        missing = around.missing(q, t).max(axis=0)
        through = missing > _THROUGH
        if not through.any():
            break  # else once more from the way, as what is on the far side of something stays there
        finer = through[known.near].any() and known.places != _PLACES[-1]
        places = _PLACES[_PLACES.index(known.places) + 1] if finer else known.places
        known = replace(known, near=known.near | (missing > -MORE), places=places)
    return resampled(motion, task, settings)


def passages(task, settings, ends, limits, shortest):
    """Starts, (T, derivatives), the soonest first, that pass what moves in time: along ways round what stands still,
    else along a few others. shortest(task, way) [s]: of a motion along a way."""
    still = still_part(task.around)
    bare, straight = replace(task, around=still), still is None or free_line(still, *ends)
    first = [np.array(ends)] if straight else ways(still, *ends, limits, SEEDS)
    for several in (first, ways_about(still, *ends, limits, _DETOURS)):
        found = (along_passage(bare, settings, way, task.around, shortest(bare, way)) for way in several)
        starts = sorted((x for x in found if x is not None), key=lambda x: x[0])
        if starts:
            yield from starts[:SEEDS]
            return


def ways_past(around, motion, ends, limits):
    """Ways (k, n) round what moves where it is when a motion hits it, where the ends are free then."""
    seen = along(around, motion)
    then = frozen(around, seen.time[np.argmax(seen.missing)])
    if then.free(np.array(ends)).all():
        yield from ways(then, *ends, limits, 1)


def course_of(start):
    """(configurations (K, nq), times (K,)) along a Trajectory or (T, derivatives)."""
    if not isinstance(start, tuple):
        return course(start)
    T, derivatives = start
    return derivatives[0], np.linspace(0, T, len(derivatives[0]))


def _search(task, settings, solver, start, kinematic, known, within=NEAR):
    """(motion, its Report, Along) from a Trajectory or (T, derivatives); known: Apart of a solution. within [m]: which
    pairs are in the program at first."""
    while True:
        rounds = _Clear(task, settings, solver, kinematic, start, known, within)
        motion, checked, seen = rounds.found()
        if not kinematic or checked.worst <= rounds.within:
            return motion, checked, seen
        kinematic, start, known = False, motion, rounds.apart


def _known(around, initial):
    """Apart of a plan in the same scene."""
    kept = getattr(initial.solver_state, "apart", None)
    return kept[1] if kept is not None and kept[0] == (around.scene.key, around.clearance) else None


class _Clear(Rounds):
    """Rounds of solving with the pairs that are near."""

    def __init__(self, task, settings, solver, kinematic, start, known, within):
        self.around = task.around
        self.own = self.around.scene.key, self.around.clearance
        motion = None if isinstance(start, tuple) else start
        if known is None:
            q, t = course_of(start)
            near = self.around.near(q, within, t)
            known = Apart(near, self._least(task), _PLACES[0])
        self.apart = known
        self.kept = -self._missing_at_ends(task)  # (2, P) besides what is wanted
        self.start = start if motion is None else None
        super().__init__(task, settings, solver, kinematic, motion)

    more = property(lambda self: (self.own, self.apart.near.tobytes(), self.apart.places, self._eased().any()))

    def _eased(self):
        """(2, near pairs) [m] that less is kept at the start and the goal, where they keep less themselves."""
        near = self.apart.near
        return np.maximum(self.apart.spare[near] - self.kept[:, near] + 2 * ROUNDING, 0.0)

    def _least(self, task):
        """(P,) [m] that pairs keep besides what is wanted: a little, but no more than both ends do."""
        ends = self._missing_at_ends(task).max(axis=0)
        return np.clip(-ends - 2 * ROUNDING, 0.0, SPARE)

    def _missing_at_ends(self, task):
        return self.around.missing_at_ends(np.array([task.start[0], task.goal[0]]), task.duration)

    def _begun(self, initial):
        return self.start if self.start is not None else super()._begun(initial)

    def _problem(self):
        near = self.apart.near
        self.kind = replace(self.kind, clock=self.around.scene.timed)
        if near.any():
            kept = {"near": reduced(self.around.scene, near), "places": self.apart.places}
            self.kind = replace(self.kind, **kept, eased=bool(self._eased().any()))
        made = super()._problem()
        made.eased = self._eased()
        made.apart = (self.around.wanted + self.apart.spare)[near] if near.any() else None
        return made

    def solve(self, margins, _):
        """(motion, its Report). No slow motion is tried where the solver fails: it would hit what is in the way."""
        row = np.concatenate([margins[k] for k in MARGINS])
        try:
            found = self.solver.run(self.problem, self.guess, row, self.multipliers)
        except SolveError as error:
            _stop(error)
            if self.multipliers is None and not self.solver.becomes_ipopt(error.status, self.problem.free_time):
                raise
            found = self.solver.run(self.problem, self.guess, row)
        self.guess, self.multipliers = found
        return self._looked_at(row)

    def _looked_at(self, margins):
        motion, checked = super()._looked_at(margins)
        motion.solver_state = replace(motion.solver_state, apart=(self.own, self.apart))
        return motion, checked

    def found(self):
        """(motion, its Report, Along) of a motion that keeps the clearance. Raises SolveError where none is found."""
        for _ in range(_ROUNDS):
            motion, checked = self.tightened()
            seen = along(self.around, motion)
            short = seen.missing > np.where(self.kept.min(axis=0) > KEPT, 0.0, KEPT)  # where ends touch, rounding
            if not short.any():
                return told(motion, self.solver), checked, seen
            self.margins = dict(zip(MARGINS, np.split(motion.solver_state.margins, len(MARGINS)), strict=True))
            self._ask_more(motion, seen, short)
        text = f"after {_ROUNDS} rounds the clearance is not kept between nodes: {blocked(self.around, seen)}"
        raise SolveError(f"{text}; use more nodes", "clearance", trajectory=motion)

    def _ask_more(self, motion, seen, short):
        """More pairs, places, or more of the pairs that are there: of those that are too near (P,)."""
        now, old = self.apart, self.apart.near & short
        places, spare = now.places, asked_more(now.spare, old, seen)
        again = (seen.missing > SPARE) & (now.spare > SPARE)
        if old.any() and places != _PLACES[-1] and (again.any() or seen.missing[old].max() > _DEEP):
            places, spare = _PLACES[_PLACES.index(places) + 1], np.minimum(now.spare, SPARE)
        near = now.near
        if (short & ~near).any():
            q, t = course(motion)
            near = near | short | self.around.near(q, MORE, t)
        self.go_on(Apart(near, spare, places))

    def go_on(self, apart):
        """With other pairs, places, or more to keep."""
        self.apart = apart
        self.shape = (*self.shape[: -len(self.more)], *self.more)
        self._change()


def blocked(around, seen: Along) -> str:
    """Text of the pairs that are too near, the worst first."""
    order = [k for k in np.argsort(-seen.missing) if seen.short[k]]
    parts = [f"{around.pair(k, around.wanted[k] - seen.missing[k])} at {seen.time[k]:.4g} s" for k in order[:3]]
    return ", ".join(parts) + (f" and {len(order) - 3} pairs more" if len(order) > 3 else "")


def _failed(around, seen, errors):
    """SolveError that names the pairs that block, where no search has found a motion."""
    last = errors[-1]
    motion = last.trajectory
    if motion is not None and last.status != TIME_LIMIT:
        again = along(around, motion)
        seen = again if again.short.any() else seen
    how = "" if installed() else '; pip install "oc-dyn[sampling]" brings better ways to begin from'
    if last.status == TIME_LIMIT:
        how = "; the limit of time has passed, give more"
    said = "no motion was found that keeps the clearance; in the way of the last one"
    text = f"{said}: {blocked(around, seen)}{how}; the last search: {last}"
    return SolveError(text, last.status, last.violations, motion)
