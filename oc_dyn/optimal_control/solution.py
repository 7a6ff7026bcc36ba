"""What Problem.solve found: a Solution, which answers to symbols, expressions and names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError, UnknownName
from ..model.robot import Robot
from ..types import Array, Figure, StrPath
from ..validation import count as positive
from ..validation import expression as expression_of
from ..validation import number
from .costates import costates
from .error_estimate import ErrorEstimate, estimated
from .integrators import METHODS, chosen_method
from .resampling import Curves, SolutionSamples, nodes_to_csv, times_of
from .scaling import Scaling, report
from .solution_check import SolutionCheck, check, parts_of
from .solution_file import save
from .solution_plot import plot
from .two_meshes import TwoMeshes, two_meshes
from .worst_rows import WorstRows, worst_rows


class Solution:
    """What solve found. found[symbol, expression or name] -> values (N + 1, size) at the nodes, (N, size) at the
    starts of intervals for what depends on controls of intervals, constant or polynomials. Names are those of states
    and controls, and of what rigid_body and chains with the basis "b_spline" return. t (N + 1,): times of the nodes.
    objective, status, success, iterations, seconds: {part: seconds} in the functions of the program, from the solver.
    local_optima: (objective, status, iterations) of all starts, where there were several. rounds: of
    solve(tolerance=...), a table when printed, else empty. info: {"tries": [(name, status, iterations)]}: a warm start,
    a plain one, one with safer options where the solver lost its way. sample, resample: values between nodes. save:
    to a file that Problem.load reads.
    """

    local_optima: tuple = ()
    objective_changed: bool = False  # by the user of an Opti, see Problem.opti
    constraints_changed: bool = False
    rounds: tuple = ()
    objective: float
    status: str
    success: bool
    iterations: int
    info: dict[str, Any]
    t: Array
    to_trajectory: Any = None  # what makes a Trajectory is above this layer: planning.trajectory sets it

    def __init__(self, problem: Any, transcribed: Any, found: Any, given: dict[str, Any]) -> None:
        self.problem, self.transcribed, self.parameters = problem, transcribed, given["p"]
        self.description, self.method = transcribed.description, transcribed.method
        self.bounds = given["lbx"], given["ubx"]
        self.unknowns, self.multipliers = found.x, (found.lam_x, found.lam_g)
        self.objective, self.status, self.success = found.objective, found.status, found.success
        self.iterations, self.seconds = found.iterations, found.seconds
        self.info = {"tries": list(getattr(found, "tries", ()))}
        self.x, self.u, self.durations = transcribed.values(found.x)
        for values in (self.x, self.u, self.unknowns):  # what is told of a solution is told of the one that was found
            values.flags.writeable = False
        self.limit_bounds = dict(transcribed.numbers.bounds)  # as they are now
        self.times = transcribed.times_of(self.durations)  # values of the symbols of the free durations
        self.relative_lengths = transcribed.relative_lengths(found.x)
        if self.relative_lengths is not None:
            self.relative_lengths.flags.writeable = False
        of_time = self.description.time
        first = self.description.start_time if of_time is None else self.x[0, transcribed.state_rows[of_time][0]]
        self.t = first + np.concatenate([[0.0], np.cumsum(transcribed.steps(self.durations, self.relative_lengths))])

    def __repr__(self) -> str:
        """The outcome in a line."""
        length = float(self.t[-1] - self.t[0])
        found = f"objective {self.objective:.8g}, {length:.6g} s, {self.iterations} iterations"
        return f"<Solution: {self.status}, {found}>"

    @cached_property
    def transcribed(self):
        """The nonlinear program; of a Solution that comes from another process it is made when it is asked for."""
        return self.problem.transcribed(self.method)

    @property
    def duration(self) -> float:
        """Time from start to end [s]."""
        return float(self.t[-1] - self.t[0])

    def check(self, tolerance: float = 1e-3) -> SolutionCheck:
        """SolutionCheck: dynamics and cost of every interval integrated again, all bounds and limits between the nodes.

        tolerance: relative to the scales of the states and to the bounds; what .ok() and .summary() go by, and 20 times
        what the integration may be off. States of methods of order 2 and below count with their bounds alone: their
        defects, and what their objective is off by, are told, and shrink with the intervals, as what is left between
        nodes of equations that they hold at nodes; so do those of contact bodies. The objective of a problem with a
        mean is told alone, too. Defects are those of single intervals: over a motion they may add up.
        """
        tolerance = number("check: tolerance", tolerance)
        if not tolerance > 0:
            raise ShapeError(f"check: tolerance is {tolerance:g}, expected a positive number")
        return check(self, tolerance)

    def worst_rows(self, count: int = 10) -> WorstRows:
        """WorstRows: bounds, limits and equations of the nonlinear program that the solution, or the last iterate of a
        solve that failed, violates most, at most so many, worst first: each by name with phase, node, value, bound,
        and its violation relative to the scale of the state or control, or to the larger bound of a limit.
        Printing it gives a table. It asks the program itself, check() an integration of its own."""
        return worst_rows(self, positive("worst_rows: count", count, 1))

    def scaling(self) -> Scaling:
        """Scaling of the unknowns and rows at the solution; see Problem.scaling."""
        return report(self.transcribed, self.unknowns, self.parameters, "the solution")

    @cached_property
    def _flows(self) -> dict[int, Any]:
        """{number of a phase: where the integration of its intervals ends, a Flow}, as check() and error leave it."""
        return {}

    @cached_property
    def error(self) -> ErrorEstimate:
        """ErrorEstimate: what the states of single intervals, and the objective, are off by; see there. It goes on from
        the integration of check(). It is a first-order estimate by one mesh: `two_meshes` is a second opinion."""
        return estimated(self)

    def two_meshes(self, **how: Any) -> TwoMeshes:
        """TwoMeshes: what the objective is off by, from solving again with every interval in two, from this solution
        and with its parameters: takes a solve, but no multipliers, and sees what `error` does not.

        how: arguments of Problem.solve, as solver and solver_options; the method is that of this solution. Raises
        OrderError for one whose objective or constraints were changed in an Opti: a finer mesh knows nothing of that.
        """
        return two_meshes(self, how)

    @cached_property
    def costates(self) -> Array:
        """(N + 1, n) at the nodes, in the order of `x` and the units of the objective over those of the states: the
        derivative of the least cost from there on by the states of the node; the adjoint variables of the minimum
        principle, u = argmin of H = L + costates' f. No scale is left in them.

        Where a state's bound or a limit holds at a node, they are the values before the jump there. At free ends they
        are the derivative of the terminal cost, at free starts zero. Of a solution that failed they mean nothing.
        Raises OrderError for bernstein and b_spline chains, contact bodies, and states on manifolds.
        """
        return costates(self)

    def trajectory(
        self, chain: Sequence[ca.MX], robot: Robot | None = None, limits: Any = None, friction: bool = True,
    ) -> Any:  # fmt: skip
        """Trajectory of a robot from the symbols [q, dq, ...] of a chain, polynomials on every interval.

        friction: whether the friction of the robot's joints counts in its torques.

        Without a robot it is one of anything: its coordinates are "1", "2", ...; it has no torques.
        """
        return self.to_trajectory(self, chain, robot, limits, friction)

    def sample(self, expression: Any, times: Any, side: str = "after") -> Array:
        """Values (M, size) of a symbol, expression or name at times (M,) [s] from start to end, (size,) at one time, on
        the polynomials of the method; see resampling.py.

        side: what counts where something jumps at a node, as constant controls do and states between phases: the value
        "after" it, which is that of a node in found[...], or "before" it. At the end of the motion that is the value
        before it. Raises ShapeError for a time outside, UnknownName for a name or symbol."""
        values = SolutionSamples(self, times, side)[expression]
        return values[0] if np.ndim(times) == 0 else values

    def resample(self, *, rate: float | None = None, times: Any = None, side: str = "after") -> SolutionSamples:
        """SolutionSamples at times (M,) [s], or at so many a second and the end; see sample."""
        return SolutionSamples(self, times_of(self, rate, times), side)

    def save(self, path: StrPath) -> None:
        """Write an .npz file, which Problem.load reads: the numbers that were found, with names, method, mesh, bounds,
        multipliers and versions. It holds no expressions: to read it takes the Problem. Parameters are kept; guesses
        are not. Raises ShapeError for an iterate that is not finite."""
        save(self, path)

    def to_csv(self, path: StrPath, *, rate: float | None = None) -> None:
        """Write a table: time [s], states, controls, what else has a name, and limits that have one, at the nodes, or
        at so many times a second and the end. Cells are blank where controls have ended or a phase has no such
        limit."""
        if rate is None:
            nodes_to_csv(self, path)
        else:
            self.resample(rate=rate).to_csv(path)

    def plot(self, path: StrPath | None = None) -> Figure:
        """matplotlib Figure of states, controls and named limits over the time, on the polynomials of the method, with
        bounds that are near (dashed, what is beyond them grey), the mesh as ticks, phases, and the error of the
        states over every interval, see error. path: PNG, SVG or PDF file to write. Raises ShapeError for more lines
        than a figure holds."""
        return plot(self, path)

    @cached_property
    def curves(self) -> list[Curves]:
        """States and controls between the nodes, a Curves of every phase."""
        return [Curves(part) for part in parts_of(self)]

    @property
    def named(self) -> dict[str, ca.MX]:
        """{name: symbol or expression} of states, controls and what else has one."""
        made = self.transcribed
        own = {v.name: v.symbol for v in (*made.states, *made.controls)}
        return own | {name: x for name, x in self.description.named.items() if name not in own}

    def expression(self, what: str, expression: Any) -> ca.MX:
        """What a symbol, expression or name stands for, all of it known; else UnknownName."""
        made = self.transcribed
        if isinstance(expression, str):
            if expression not in (named := self.named):
                raise UnknownName("state or control of the problem that was solved", expression, named)
            expression = named[expression]
        expression = expression_of(what, expression)
        made.check_known("symbol of the problem that was solved", expression)
        return expression

    def __getitem__(self, expression: Any) -> Array:
        made, expression = self.transcribed, self.expression("solution[...]", expression)
        f = made.at_nodes([expression])
        u = ca.vertcat(ca.MX(0, 1), *(v.symbol for v in made.controls), *made.controlled_outputs)
        count = len(self.u) if made.controls and ca.depends_on(expression, u) else len(self.x)
        controls = self.u if len(self.u) >= count else np.vstack([self.u, self.u[-1:]])
        given = [
            np.split(y[:count], np.cumsum([v.size for v in some])[:-1], axis=1)
            for y, some in ((self.x, made.states), (controls, made.controls))
            if some
        ]
        columns = [y.T for some in given for y in some]
        columns += [np.full((1, count), T) for T in self.times]
        parts = np.split(self.parameters[: made.n_p], np.cumsum([s.numel() for s in made.p])[:-1]) if made.p else []
        columns += [np.tile(x[:, None], (1, count)) for x in parts]
        rows = self.parameters[made.n_p :].reshape(-1, made.n_s)[:count].T
        columns += np.split(rows, np.cumsum([s.numel() for s in made.own])[:-1])
        if made.free_mesh:
            columns.append(np.append(self.relative_lengths, 1.0)[None, :count])
        return np.array(f.map(count)(*columns, np.zeros((1, count)))).T

    def __getstate__(self):
        """What another process can read; see Problem.__getstate__."""
        made = ("description", "transcribed", "curves", "_flows")
        state = {k: x for k, x in vars(self).items() if k not in made}
        method = next((name for name, x in METHODS.items() if x is self.method), self.method)
        return {**state, "problem": self.problem.as_described(self.description), "method": method}

    def __setstate__(self, state):
        vars(self).update(state, method=chosen_method(state["method"]), description=state["problem"].description)
        vars(self).setdefault("limit_bounds", dict(self.problem.numbers.bounds))  # of one saved before it kept them
        vars(self).setdefault("info", {"tries": []})  # as above
