"""Problem.solve(tolerance=...): solved on one mesh after the other until states and objective are as exact as asked.

A round solves the problem on a mesh, from the solution before, and Solution.error tells what each interval is off by,
in its states and in what it adds to the objective. Then the mesh is made finer where that is too much (h), or the
method gets a higher degree where it is too much nearly everywhere (p), or nodes move, where controls switch. The end is
reached when the states of all intervals, and the objective, are within the tolerance by the estimate, and two meshes
say so: objectives less their estimates agree.
Sources: Betts, Practical Methods for Optimal Control, 2010, section 4.7; Patterson, Hager, Rao, Optim. Control Appl.
Meth. 36, 2015, 398-421 (ph).
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace

import numpy as np

from ..errors import CheckWarning, OrderError, ShapeError, SolveError
from ..interrupts import TIME_LIMIT, building, deadline, expired
from ..numbers import shortened
from ..validation import count, number
from .integrators import chosen_method, order_of_cost
from .moving import breakpoints, movable
from .remeshing import ROOM, Demand, halved, remeshed, shares_of_losses
from .solution import Solution

RAN_OUT = "tolerance not reached"
STALLED = 4  # rounds in which nothing gets better, after which there are no more
MOST_DEGREE, MOST_MOVES, MOST_FAILURES = 8, 3, 4
MOSTLY = 0.7  # of the intervals, which a higher degree serves better
TOO_MUCH, CONTRADICTED = 0.3, 10.0  # where an estimate of the objective is none, over that, or over what meshes say
ALL = "all in two"
MOVING_ITERATIONS = 150


@dataclass(frozen=True)
class Round:
    """One round of Problem.solve(tolerance=...).

    done: how its mesh came from the one before. nodes: intervals of each phase. degree: of the method, 0 where it has
    none. status: of the solver. error: largest of the states over an interval, relative to their scales. loss: how much
    the objective is above the optimum by the estimate (below it, if negative). seconds: of the round, its estimate
    included.
    """

    done: str
    nodes: tuple[int, ...]
    degree: int
    status: str
    iterations: int
    seconds: float
    objective: float
    error: float
    loss: float


class Rounds(tuple[Round, ...]):
    """The rounds of a Solution; printing them gives a table."""

    __slots__ = ()

    def __str__(self) -> str:
        heads = "round intervals degree iterations seconds objective error loss status"
        lines = ["{:>5} {:>9} {:>6} {:>10} {:>8}  {:<18} {:>9} {:>10}  {:<22} ".format(*heads.split()) + "mesh"]
        for k, r in enumerate(self):
            lines.append(
                f"{k + 1:>5} {sum(r.nodes):>9} {r.degree or '':>6} {r.iterations:>10} {r.seconds:>8.3f}  "
                f"{r.objective:<18.12g} {r.error:>9.2g} {r.loss:>+10.2g}  {r.status:<22} {r.done}"
            )
        return "\n".join(line.rstrip() for line in lines)


def rounds_of(told):
    """Rounds from [{name of a field: value}] of a file, None for numbers that are not known; TypeError for all else."""
    kinds = {"done": str, "status": str, "degree": int, "iterations": int, "nodes": list}
    out = Rounds()
    for r in told:
        if not isinstance(r, dict) or any(type(x) is not kinds.get(k, float) for k, x in r.items() if x is not None):
            raise TypeError("expected one object of each, with the fields of a Round")
        r = {k: np.nan if x is None else x for k, x in r.items()}
        out = Rounds((*out, Round(**{**r, "nodes": tuple(r["nodes"])}))) if isinstance(r.get("nodes"), list) else out
    return out


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of a solution: tolerance, at most so many rounds and intervals."""

    tolerance: float
    rounds: int
    most: int

    def allowed(self, solution):
        """What the objective may be off by."""
        return self.tolerance * max(1.0, abs(solution.objective))


def checked(problem, tolerance, rounds, most_nodes, how):
    """Asked, from what a caller gives."""
    tolerance = number("solve: tolerance", tolerance)
    if not 0 < tolerance < np.inf:
        raise ShapeError(f"solve: tolerance is {shortened(tolerance)}, expected a positive number, or None")
    rounds, most = count("solve: rounds", rounds, 1, 1000), count("solve: most_nodes", most_nodes, 1, 10**6)
    if problem.description.varying:
        values = {k if isinstance(k, str) else k.name(): x for k, x in (how["parameters"] or {}).items()}
        for name, symbol in problem.description.varying:
            if np.size(values.get(name, 0.0)) not in (1, symbol.numel()):
                raise OrderError(
                    f"solve: parameter {name!r} has a row for every node, and tolerance= changes the nodes; write it "
                    "as an expression of ocp.time"
                )
    return Asked(float(tolerance), rounds, most)


def ran_out(solution):
    """Whether a solution is not as exact as was asked."""
    return solution.status.startswith(RAN_OUT)


def tell(solution, check):
    """Say that a solution is not as exact as was asked, as Problem.solve(check=...) does."""
    if check == "raise":
        raise SolveError(f"Problem.solve: {solution.status}", "tolerance", solution=solution)
    if check == "warn":
        warnings.warn(f"Problem.solve: {solution.status}", CheckWarning, stacklevel=3)


def refined(problem, asked, how, first):
    """Solution on the mesh that it takes. how: arguments of Problem._found; first: function that gives the Solution of
    the first round from them."""
    how, limit = {**how, "time_limit": None, "solver_options": dict(how["solver_options"] or {})}, how["time_limit"]
    with deadline(limit):
        run = _Run(problem, asked, how, first)
        solution = run.to_the_end()
    solution.rounds, solution.local_optima = Rounds(run.rounds), run.local_optima
    if run.why:
        solution.status, solution.success = f"{RAN_OUT}: {run.why}", False
    return solution


class _Run:
    """The rounds of one solve. good: solutions that were found, and seen, what they are off by; why: there are no more
    rounds, "" at the end. blind: Solution.error tells nothing of the objective, as meshes contradict it, so that the
    difference of two, all intervals in two, stands for it."""

    def __init__(self, problem, asked, how, first):
        self.problem, self.asked, self.how, self.first = problem, asked, how, first
        self.method = chosen_method(how["method"])
        self.rounds, self.good, self.seen, self.why, self.failures = [], [], [], "", 0
        self.moves, self.last, self.local_optima, self.done = 0, None, (), "as given"
        self.blind, self.begin, self.before_move = False, how["initial"], None

    def to_the_end(self):
        """The Solution, with self.why set where it is not as exact as asked."""
        while not self._end():
            solution = self._solved()
            if solution is not None and self._reached():
                return solution
            if not self._end():
                self._remesh(solution)
        if not self.good:  # not even one: a failure of the solver, which is told as without a tolerance
            self.why = ""
            return self.last
        best = min(range(len(self.good)), key=lambda k: (self.seen[k].over, -k))
        seen = self.seen[best]
        off = f"the states of an interval are off by {seen.states:.2g}, the objective by {abs(seen.loss):.2g}"
        self.why = f"{self.why}; {off}"
        return self.good[best]

    def _end(self):
        if not self.why and len(self.rounds) >= self.asked.rounds:
            self.why = f"{len(self.rounds)} round{'s' * (len(self.rounds) > 1)} did not do"
        return bool(self.why)

    # -- a round --------------------------------------------------------------------------------------------

    def _solved(self):
        """Solution of a round, None where the solver failed."""
        begun = time.perf_counter()
        try:
            solution = self._once(begun)
        except SolveError as error:
            if not self.rounds:
                raise
            self._failed(error.status or "failed", 0, begun, None)
            return None
        if not solution.success:
            self._failed(solution.status, solution.iterations, begun, solution)
            return None
        self.good.append(solution)
        self.seen.append(self._assessed(solution))
        self.failures, self.begin = 0, solution
        seen = self.seen[-1]
        self._told(solution.status, solution.iterations, begun, solution.objective, seen.states, seen.loss)
        if self.before_move and seen.over > self.seen[-2].over:  # lengths were chosen to make use of errors
            self.problem, self.moves = self.before_move, MOST_MOVES
            self.begin = solution = self.good[-2]
            self.good, self.seen = [*self.good, solution], [*self.seen, self.seen[-2]]
        self.before_move = None
        return solution

    def _once(self, begun):
        if not self.rounds:
            solution = self.first(self.problem, self.how)
            self.local_optima = solution.local_optima
            return solution
        initial = self.how["initial"] if self.failures else self.begin
        how = {**self.how, "method": self.method, "initial": initial}
        with building(stops=bool(self.good)):  # there is a solution without it
            self.problem._program(self.method, how["compiled"], how["hessian"])
        return Solution(self.problem, *self.problem._found(**how))

    def _assessed(self, solution):
        """Seen, by the estimate or, where that is none, by the mesh before."""
        error, allowed = solution.error, self.asked.allowed(solution)
        loss, losses = error.objective, np.concatenate([np.zeros(0), *error.losses])
        before = self.good[-2] if len(self.good) > 1 else None
        change = np.nan if before is None else solution.objective - before.objective
        if not (np.isfinite(loss) and np.isfinite(losses).all()):
            self.blind = True
        elif before is None:
            self.blind = abs(loss) > TOO_MUCH * max(1.0, abs(solution.objective))
        elif not self.blind:
            told = loss - before.error.objective  # how much the objective is said to have changed
            self.blind = abs(told) > CONTRADICTED * max(abs(change), allowed)
        else:
            told = loss - before.error.objective
            self.blind = not abs(told - change) <= max(0.5 * abs(change), 0.1 * allowed)
        if self.blind:
            loss, losses = change, np.zeros(len(losses))
        uncertain = 0.0 if self.blind else error.uncertainty
        over = max(error.states / self.asked.tolerance, (abs(loss) + uncertain) / allowed)
        if not self.blind and abs(told := self._change_told(loss)) > CONTRADICTED * abs(change):
            loss *= max(abs(change) / abs(loss), abs(change / told)) if abs(change) < abs(loss) else 1.0
        return Seen(error.states, loss, losses, float(np.nan_to_num(over, nan=np.inf)))

    def _change_told(self, loss):
        """How much the objective has changed by the estimates of this and the last round."""
        return loss - self.good[-2].error.objective if len(self.good) > 1 else np.nan

    def _told(self, status, iterations, begun, *numbers):
        nodes = tuple(phase.nodes for phase in self.problem.description.phases)
        degree, seconds = getattr(self.method, "degree", 0), time.perf_counter() - begun
        self.rounds.append(Round(self.done, nodes, degree, status, iterations, seconds, *map(float, numbers)))

    def _failed(self, status, iterations, begun, solution):
        self._told(status, iterations, begun, *[np.nan] * 3)
        self.failures, self.last = self.failures + 1, solution or self.last
        if status == TIME_LIMIT or expired():
            self.why = f"{TIME_LIMIT} in round {len(self.rounds)}"
        elif self.failures > (MOST_FAILURES if self.good else 1):
            self.why = f"the solver stopped with {status!r} in round {len(self.rounds)}"

    def _reached(self):
        """Whether the last solution is as exact as asked, and two meshes say so."""
        seen, solution = self.seen[-1], self.good[-1]
        if seen.over > 1:
            over = [x.over for x in self.seen]
            if len(over) > STALLED and min(over[-STALLED:]) > 0.7 * min(over[:-STALLED]):
                self.why = f"no better in {STALLED} rounds, as where the solver's own accuracy ends"
            return False
        if len(self.good) < 2 or self.blind:
            return self.blind and self.done == ALL
        here, before = (
            (s.objective, s.objective - x.loss) for s, x in zip(self.good[-2:], self.seen[-2:], strict=True)
        )
        return min(abs(a - b) for a, b in zip(here, before, strict=True)) <= self.asked.allowed(solution)

    # -- the next mesh --------------------------------------------------------------------------------------

    def _remesh(self, solution):
        """Set problem, method and what was done for the next round."""
        phases = self.problem.description.phases
        if expired():
            self.why = f"{TIME_LIMIT} after round {len(self.rounds)}"
        elif solution is None and self.good and self.failures == 1:
            self.done = "again, from the guess"
        elif solution is None or not may_differ(self.problem):
            self._finer([halved(p.breakpoints) for p in phases], ALL)
        elif not self._move(solution):
            demands = self._demands(solution)
            parts = np.concatenate([d.parts() for d in demands])
            if not (parts > 1).any():
                self._finer([halved(p.breakpoints) for p in phases], ALL)
            elif not self._higher(demands):
                self._finer([remeshed(demand) for demand in demands], f"{(parts > 1).sum()} split")

    def _finer(self, meshes, done):
        """Take other meshes, if they are not too fine."""
        nodes = [len(m) - 1 for m in meshes]
        if sum(nodes) > self.asked.most:
            self.why = f"{sum(nodes)} intervals would be more than most_nodes={self.asked.most}"
            return
        try:
            self.problem = on_meshes(self.problem, meshes)
        except (OrderError, ShapeError) as error:  # as where nodes with values of their own are on a free mesh
            self.why = f"the mesh cannot be finer: {error}"
        self.done = done

    def _demands(self, solution):
        """[Demand] of the phases."""
        error, seen, allowed = solution.error, self.seen[-1], self.asked.allowed(solution)
        loss, first, out = shares_of_losses(seen.losses, allowed), 0, []
        orders = getattr(self.method, "order", 1) + 1, order_of_cost(self.method) + 1
        for phase, errors in zip(self.problem.description.phases, error.intervals, strict=True):
            here = slice(first, first + phase.nodes)
            kept = tuple(r.fraction for r in phase.node_rows)
            every = seen.losses[here] * len(seen.losses) / allowed + (np.inf if self.blind else 0.0)
            out.append(Demand(phase.breakpoints, errors / self.asked.tolerance, loss[here], every, *orders, kept))
            first += phase.nodes
        return out

    def _higher(self, demands):
        """Raise the degree of the method, where most intervals are to be split and splitting would take many."""
        degree = getattr(self.method, "degree", 0)
        if not hasattr(self.method, "with_degree") or not 0 < degree < MOST_DEGREE or len(self.good) < 2:
            return False
        if not getattr(self.method, "control_degree", 0):  # what constant controls lose stays
            demands = [replace(demand, losses=0 * demand.losses) for demand in demands]
        parts = np.concatenate([demand.parts() for demand in demands])
        if (parts > 1).mean() < MOSTLY or parts.mean() < 2 * MOSTLY:
            return False
        self.method = self.method.with_degree(degree + 1)
        self.done = f"degree {degree + 1}"
        return True

    def _move(self, solution):
        """Take the mesh that nodes move to where controls switch, if few intervals make up what is lost there."""
        seen, allowed = self.seen[-1], self.asked.allowed(solution)
        bounded = any(np.isfinite([v.lower, v.upper]).all() for v in self.problem.description.controls)
        bounded &= not getattr(self.method, "controls_are_states", False)  # which cannot switch at a node
        sizes = np.sort(seen.losses)[::-1]
        few = sizes[: max(3, len(sizes) // 4)].sum() > 0.9 * sizes.sum() > ROOM * allowed
        if not (bounded and few) or self.moves >= MOST_MOVES or len(self.good) < 2:
            return False
        self.moves += 1
        try:
            moved = movable(self.problem)
            options = dict(self.how["solver_options"])
            options |= {"max_iter": MOVING_ITERATIONS} if self.how["solver"] == "ipopt" else {}
            how = {**self.how, "method": self.method, "initial": solution, "solver_options": options}
            found = Solution(moved, *moved._found(**how))
        except (OrderError, SolveError):
            return False
        if not found.success:
            return False
        before = self.problem
        self._finer(breakpoints(found), f"nodes moved, in {found.iterations} iterations")
        self.begin, self.before_move = found, before
        return True


@dataclass(frozen=True, eq=False)
class Seen:
    """What a solution is off by: states of an interval, the objective, what intervals add to that; over: how many times
    what it may be, the worse of both, inf where that is not known."""

    states: float
    loss: float
    losses: np.ndarray
    over: float


def on_meshes(problem, meshes):
    """The problem on other meshes, one for each phase."""
    nodes = [len(m) - 1 for m in meshes]
    mesh = list(meshes) if may_differ(problem) else None
    return problem.with_mesh(nodes, mesh=mesh)


def may_differ(problem):
    """Whether intervals may be of different lengths."""
    d = problem.description
    reused = any(x.nominal_step is not None for x in d.durations)
    return not (d.bernstein or d.splines or reused or d.relative_length is not None)
