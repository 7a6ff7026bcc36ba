"""The rounds of plan_elastic: from a smooth guess, with bounds of the time that move with what is found, and slower
guesses where the solver fails; limits that are exceeded between points are tightened."""

from dataclasses import replace

import numpy as np

from ..errors import SolveError
from ..interrupts import TIME_LIMIT, building
from ..planning.tightening import tighten
from ..planning.trajectory import Trajectory, joint_units
from ..validation import options_of
from .damped_flat import wanted_continuity
from .plan import ElasticPlan
from .plan_costs import value_of
from .plan_guess import smooth
from .plan_problem import LEAST, MOST, elastic_problem
from .plan_stiffness import stiffness_along

_TIGHTEN, _CLEAN, _ROUNDS = 1.001, 1.005, 8
_SPARE, _AIM = 1.0001, 1.0006  # share of a limit below which its margin was tightened too far; that it is then to have
# weights, one after the other, of the highest derivative, which would else be undetermined where no limit binds: first
# only the last one, and where that fails all
_SMOOTH = (1e-7, 1e-9)
# of ipopt, from the guess, which is near the limits: multipliers by the barrier instead of 1; two thirds of the
# iterations
_FIRST = {"bound_mult_init_method": "mu-based"}


def search(task, solver, solver_options, compiled):
    """ElasticPlan of an ElasticTask; one with damped springs begins with the plan without dampers."""
    if task.elastic.damped and task.known is None:
        task = _with_start(task, solver, solver_options, compiled)
    rounds = _Search(task, solver, solver_options, compiled)
    settings = {"within": _TIGHTEN, "excess": 1.0002, "rounds": _ROUNDS}
    found = tighten(rounds.solve, rounds.shares, task.margins, **settings)
    best, looser = found.result, _looser(found)
    if task.objective == "time" and looser is not None and _within(best):
        more = tighten(lambda m, plan: rounds.solve(m, plan or best), rounds.shares, looser, **settings | {"rounds": 3})
        if more is not None and _within(more.result) and more.result.objective < best.objective:
            best = more.result
    best.info |= {"iterations": rounds.iterations, "rounds": rounds.solves}
    return best


def _with_start(task, solver, solver_options, compiled):
    """The task with the motion that it begins with, where the springs without dampers have one."""
    elastic = task.elastic.undamped()
    smoother = max(task.continuity, wanted_continuity(elastic, "torque_rate" if task.rate else "torque"))
    alone = replace(task, elastic=elastic, continuity=smoother)
    if task.nodes <= smoother:
        return task
    try:
        rounds = _Search(alone, solver, solver_options, compiled)
        return replace(task, known=rounds.solve(alone.margins, None).motion, begun=None, way=None)
    except SolveError as error:
        if error.status == TIME_LIMIT:
            raise
        return task


def _within(plan):
    """Whether a plan keeps its limits everywhere."""
    return max(plan.info["shares"].values()) <= _TIGHTEN


def _looser(found):
    """Margins that were tightened further than they had to be, as far as the shares tell; None if none were."""
    margins, changed = {}, False
    for name, m in found.margins.items():
        share = np.asarray((found.shares or {}).get(name, 1.0), float)
        over = (m < 1) & (share < _SPARE)
        margins[name] = np.where(over, np.minimum(m * _AIM / np.maximum(share, 0.5), 1.0), m)
        changed = changed or over.any()
    return margins if changed else None


class _Search:
    """What goes from one round to the next."""

    def __init__(self, task, solver, solver_options, compiled):
        self.task = task
        self.options = {"method": "euler", "solver": solver, "compiled": compiled}
        self.given = options_of("solver_options", solver_options)
        asked = {key.removeprefix("ipopt.") for key in self.given}
        ours = {key: x for key, x in _FIRST.items() if key not in asked} if solver == "ipopt" else {}
        self.of_first = {**ours, **self.given}
        self.T, self.guess, self.scale = smooth(task)
        self.problem = self.initial = None
        self.weights, self.first_try = list(_SMOOTH[-1:]), True
        self.iterations, self.solves, self.slower = 0, 0, 1.0

    def solve(self, margins, plan):
        """The next plan; None where the solver fails and the plan before is within limits as it is: that one is a
        little smoother than it would have to be."""
        task = self.task
        found = self._run(margins)
        while not found.success:
            if plan is not None and max(plan.info["shares"].values()) <= _CLEAN:
                return None
            last = self.slower > 2 or (task.duration is not None and not self.first_try)
            if last or found.status == TIME_LIMIT:
                message = f"planning {task.elastic.name}: the solver stopped with {found.status!r}"
                raise SolveError(message, found.status, trajectory=_trajectory(task, found, self.problem.flat))
            if self.first_try:
                self.first_try = False
            else:
                self.slower *= 1.6
                self.T, self.guess, self.scale = smooth(task, self.slower)
            self.weights, self.problem, self.initial = list(_SMOOTH), None, None
            found = self._run(margins)
        self.initial = found
        motion, sigma = _trajectory(task, found, self.problem.flat), task.sigma
        if task.stiffness is not None:
            sigma = stiffness_along(found, self.problem.flat.sigma, task.stiffness)
        info = {"iterations": self.iterations, "rounds": self.solves}
        how = {"electrical": task.electrical, "periodic": task.kind == "periodic", "stiffness": task.stiffness}
        plan = ElasticPlan(task.elastic, motion, task.given, 0.0, info, sigma, **how)
        plan.objective = value_of(task, plan)
        return plan

    def _run(self, margins):
        if self.problem is None:
            self.problem = elastic_problem(self.task, self.task.duration or self.T, self.guess)
        values = self.problem.given(margins, self.weights[0], self.scale[-1])
        options = self.of_first if self.initial is None and self.first_try else self.given
        given = {"initial": self.initial, "parameters": values, "solver_options": options}
        try:
            with building():
                found = self.problem.ocp.solve(**given, raises=False, check="off", **self.options)
        except SolveError as error:
            if error.status != TIME_LIMIT:
                raise
            text = f"planning {self.task.elastic.name}: {error}"  # there is no program yet, and so no iterate
            raise SolveError(text, TIME_LIMIT, trajectory=self._last()) from None
        self.iterations, self.solves = self.iterations + found.iterations, self.solves + 1
        return found

    def _last(self):
        """The links' motion that the next solve would have begun with."""
        task = self.task
        if self.initial is not None:
            return _trajectory(task, self.initial, self.problem.flat)
        pieces, links = np.array([x[:-1] for x in self.guess]).transpose(1, 0, 2), task.elastic.links
        t = np.linspace(0.0, task.duration or self.T, len(pieces) + 1)
        given = {"joints": links.coordinate_names, "units": joint_units(links), "robot": links, "limits": task.limits}
        return Trajectory(t, pieces, **given, friction=False)

    def shares(self, plan):
        """{quantity: shares of its limits} everywhere; None where the time met its bounds, which are moved then."""
        motion, task = plan.motion, self.task
        shares = plan.check(task.grid(motion), dynamics=False).shares
        plan.info["shares"] = {k: float(np.max(x, initial=0)) for k, x in shares.items()}
        if task.duration is None and not 1.01 * LEAST < motion.duration / self.T < 0.99 * MOST:
            self.T, self.problem = motion.duration, None
            return None
        if len(self.weights) > 1:
            self.weights.pop(0)
            return None
        return shares


def _trajectory(task, found, flat):
    """The links' motion as polynomial pieces."""
    # friction of the links' joints is none of the flat map's: elastic_robot says so, or counts it at the motors
    motion = found.trajectory(flat.q, task.elastic.links, task.limits, friction=False)
    motion.info |= {"robot": task.elastic.name}
    if task.kind == "rest":
        fixed = zip(("start", "goal"), task.ends, strict=True)
        ends = {side: [x.tolist()] + [[0.0] * len(x)] * task.continuity for side, x in fixed}
        motion.info |= {"request": ends}
    return motion
