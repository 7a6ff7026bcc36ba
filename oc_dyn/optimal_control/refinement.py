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
from dataclasses import dataclass

import numpy as np

from ..errors import CheckWarning, OrderError, ShapeError, SolveError
from ..interrupts import TIME_LIMIT, deadline, expired
from ..numbers import shortened
from ..validation import count, number
from .integrators import chosen_method
from .remeshing import Demand, halved, remeshed, shares_of_losses
from .solution import Solution

RAN_OUT = "tolerance not reached"
STALLED = 4  # rounds in which nothing gets better, after which there are no more
MOST_DEGREE = 8
_WARM = {"bound_push": 1e-6, "bound_frac": 1e-6, "mu_init": 1e-4}  # of ipopt, from the solution of another mesh


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

    def over(self, solution):
        """How many times what it may be a solution is off by, the worst of states and objective; inf for not known."""
        error = solution.error
        loss = (abs(error.objective) + error.uncertainty) / self.allowed(solution)
        return float(np.nan_to_num(max(error.states / self.tolerance, loss), nan=np.inf))


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
    with deadline(how["time_limit"]):
        run = _Run(problem, asked, {**how, "time_limit": None}, first)
        solution = run.to_the_end()
    solution.rounds, solution.local_optima = Rounds(run.rounds), run.local_optima
    if run.why:
        solution.status, solution.success = f"{RAN_OUT}: {run.why}", False
    return solution


class _Run:
    """The rounds of one solve. good: solutions that were found; why: there are no more rounds, "" at the end."""

    def __init__(self, problem, asked, how, first):
        self.problem, self.asked, self.how, self.first = problem, asked, how, first
        self.method = chosen_method(how["method"])
        self.rounds, self.good, self.why, self.failures = [], [], "", 0
        self.moved, self.last, self.local_optima = 0, None, ()
        self.done = "as given"

    def to_the_end(self):
        """The Solution, with self.why set where it is not as exact as asked."""
        while not self._end():
            solution = self._solved()
            if solution is not None:
                self.good.append(solution)
                self.failures = 0
                if self._reached():
                    return solution
            if not self._end():
                self._remesh(solution)
        if not self.good:  # not even one: a failure of the solver, which is told as without a tolerance
            self.why = ""
            return self.last
        best = min(self.good, key=self.asked.over)
        error = best.error
        off = f"the states of an interval are off by {error.states:.2g}, the objective by {abs(error.objective):.2g}"
        self.why = f"{self.why}; {off}"
        return best

    def _end(self):
        if not self.why and len(self.rounds) >= self.asked.rounds:
            self.why = f"{len(self.rounds)} round{'s' * (len(self.rounds) > 1)} did not do"
        return bool(self.why)

    # -- a round --------------------------------------------------------------------------------------------

    def _solved(self):
        """Solution of a round, None where the solver failed."""
        begun = time.perf_counter()
        if not self.rounds:
            solution = self.first(self.problem, self.how)
            self.local_optima = solution.local_optima
        else:
            options, initial = dict(self.how["solver_options"] or {}), self.how["initial"]
            if self.good and not self.failures:
                initial = self.good[-1]
                options = {**(_WARM if self.how["solver"] == "ipopt" else {}), **options}
            how = {**self.how, "method": self.method, "initial": initial}
            try:
                solution = Solution(self.problem, *self.problem._found(**{**how, "solver_options": options}))
            except SolveError as error:
                self._failed(error.status or "failed", 0, begun)
                return None
        if not solution.success:
            self._failed(solution.status, solution.iterations, begun, solution)
            return None
        error = solution.error
        self._told(solution.status, solution.iterations, begun, solution.objective, error.states, error.objective)
        return solution

    def _told(self, status, iterations, begun, *numbers):
        nodes = tuple(phase.nodes for phase in self.problem.description.phases)
        degree, seconds = getattr(self.method, "degree", 0), time.perf_counter() - begun
        self.rounds.append(Round(self.done, nodes, degree, status, iterations, seconds, *numbers))

    def _failed(self, status, iterations, begun, solution=None):
        self._told(status, iterations, begun, *[np.nan] * 3)
        self.failures += 1
        self.last = solution
        if status == TIME_LIMIT or expired():
            self.why = f"{TIME_LIMIT} in round {len(self.rounds)}"
        elif self.failures > (2 if self.good else 1):
            self.why = f"the solver stopped with {status!r} in round {len(self.rounds)}"

    def _reached(self):
        """Whether the last solution is as exact as asked, and two meshes say so."""
        solution = self.good[-1]
        if self.asked.over(solution) > 1:
            self._stalled()
            return False
        if len(self.good) < 2:
            return False
        allowed = self.asked.allowed(solution)
        here, before = ((s.objective, s.objective - s.error.objective) for s in (solution, self.good[-2]))
        return min(abs(a - b) for a, b in zip(here, before, strict=True)) <= allowed

    def _stalled(self):
        over = [self.asked.over(s) for s in self.good]
        if len(over) > STALLED and min(over[-STALLED:]) > 0.7 * min(over[:-STALLED]):
            self.why = f"no better in {STALLED} rounds, as where the solver's own accuracy ends"

    # -- the next mesh --------------------------------------------------------------------------------------

    def _remesh(self, solution):
        """Set problem, method and what was done for the next round."""
        if expired():
            self.why = f"{TIME_LIMIT} after round {len(self.rounds)}"
            return
        phases = self.problem.description.phases
        if solution is None and self.good and self.failures == 1:
            self.done = "again, from the guess"
            return None
        if solution is None or self.asked.over(solution) <= 1 or not _may_differ(self.problem):
            return self._finer([halved(p.breakpoints) for p in phases], "all in two")
        if self._move(solution):
            return None
        demands = self._demands(solution)
        above = np.mean(np.concatenate([d.parts() > 1 for d in demands]))
        if above > 0.5 and self._higher(demands):
            return None
        meshes = [remeshed(demand) for demand in demands]
        split = sum(int((d.parts() > 1).sum()) for d in demands)
        return self._finer(meshes, f"{split} split")

    def _finer(self, meshes, done):
        """Take other meshes, if they are not too fine."""
        nodes = [len(m) - 1 for m in meshes]
        if sum(nodes) > self.asked.most:
            self.why = f"{sum(nodes)} intervals would be more than most_nodes={self.asked.most}"
            return
        mesh = None if not _may_differ(self.problem) else meshes if len(meshes) > 1 else meshes[0]
        self.problem = self.problem.with_mesh(nodes if len(nodes) > 1 else nodes[0], mesh=mesh)
        self.done = done

    def _demands(self, solution):
        """[Demand] of the phases."""
        error, allowed = solution.error, self.asked.allowed(solution)
        losses = np.concatenate([np.zeros(0), *error.losses])
        if not np.isfinite(losses).all():
            losses = np.zeros(len(losses))
        loss, first, out = shares_of_losses(losses, allowed), 0, []
        order = getattr(self.method, "order", 1) + 1
        for phase, errors in zip(self.problem.description.phases, error.intervals, strict=True):
            here = slice(first, first + phase.nodes)
            kept = tuple(r.fraction for r in phase.node_rows)
            own = errors / self.asked.tolerance
            every = losses[here] * len(losses) / allowed
            loss_order = _order_of_cost(self.method) + 1
            out.append(Demand(phase.breakpoints, own, loss[here], every, order, loss_order, kept))
            first += phase.nodes
        return out

    def _higher(self, demands):
        """Raise the degree of the method, if there is a higher one."""
        degree = getattr(self.method, "degree", 0)
        if not hasattr(self.method, "with_degree") or not 0 < degree < MOST_DEGREE or len(self.good) < 2:
            return False
        self.method = self.method.with_degree(degree + 1)
        self.done = f"degree {degree + 1}"
        return True

    def _move(self, solution):
        """Let nodes move to where controls switch; see moving."""
        return False


def _may_differ(problem):
    """Whether intervals may be of different lengths."""
    d = problem.description
    reused = any(x.nominal_step is not None for x in d.durations)
    return not (d.bernstein or d.splines or reused or d.relative_length is not None)


def _order_of_cost(method):
    """Order of the error of the objective of smooth problems."""
    order = getattr(method, "order", 1)
    if getattr(method, "controls_are_states", False):
        return order
    return min(order, 2 * (getattr(method, "control_degree", 0) + 1))
