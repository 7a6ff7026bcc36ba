"""The Functions of a controller: its step, and what it does where the step cannot be made.

memory: [unknowns; multipliers of their bounds; multipliers of the rows; controls in flight; parameters; failures in a
row]. The unknowns are the plan of the last step that was good, moved on to the present, and the parameters those it was
made for; where on_failure is a law, those that it took last. Controls are in flight where there is a delay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError, UnknownName
from ..numbers import shortened
from ..types import Array
from .delay import Delay, is_control
from .priorities import hard_limits
from .program import program_of
from .quadratic import Quadratic, by_conic, by_stages
from .sqp import FAILED, sqp, violation
from .stage_qp import OF_FLOATS
from .status import Status

DAMPING = 1e-9  # of the Hessian, see program_of
FAR = 1.0  # violation of a scaled constraint beyond which a plan is worth nothing
_MET, _KEPT = 1e-4, 1e-6  # violations of constraints that are met, of limits that are kept
_NEAR = 1e-2  # and of constraints that are met by a single quadratic program, which linearises them
_COLD = 2  # failures in a row after which the next try starts from the guess


class StepFunctions:
    """function: (memory, *parameters) -> (*outputs, next_memory, objective, violation, status, iterations); preparation
    and feedback: its two halves for one quadratic program; fallback: (memory, *parameters) -> (*outputs, next_memory).
    start: the memory to begin with. measured: names of the parameters of feedback."""

    def __init__(
        self, made: Any, outputs: Mapping[str, Any], name: str, hessian: str, qp: tuple[str, Any], iterations: int,
        options: Any, shift: int, on_failure: Any, measured: Sequence[str] | None, delay: Delay | None,
        floats: bool = False,
    ) -> None:  # fmt: skip
        self.asked = made, outputs, name, hessian, qp, iterations, options, shift, on_failure, measured, delay
        self.of_stages: dict[str, float] = dict(OF_FLOATS) if floats else {}
        self.met, self.kept = (1e-3, 1e-4) if floats else (_MET, _KEPT)
        self.made, self.outputs, self.shift, self.program = made, outputs, shift, program_of(made, hessian, DAMPING)
        self.parts = _parameters(made)
        n, m = made.assembly.size
        self.n, self.m, self.sizes = n, m, [x.numel() for x in self.parts]
        self.delay = delay
        self.flight = 0 if delay is None else delay.count * made.u_scale.size
        guess = made.guess(None)
        begin = made.x_scale.size + len(made.times)
        # where the memory has the controls that were sent last, and which outputs these are
        newest = 2 * n + m + self.flight - (made.u_scale.size if self.flight else 0)
        self.sent = [] if delay is None else list(zip(range(newest, 2 * n + m + self.flight), delay.sent, strict=True))
        flying = np.tile(guess[begin : begin + made.u_scale.size], 0 if delay is None else delay.count)
        self.start = np.concatenate([guess, np.zeros(n + m), flying, np.zeros(sum(self.sizes) + 1)])
        self.measured = measured_names(made, measured)
        self.qp = self._quadratic(name, *qp)
        self.preparation, self.feedback = self._preparation(name), self._feedback(name)
        self.function = self._both(name) if iterations == 1 else self._step(name, iterations, options)
        self.fallback = self._fallback(name, on_failure)

    def of_floats(self) -> StepFunctions:
        """The same, its quadratic programs solved as far as single precision can."""
        return StepFunctions(*self.asked, floats=True)

    def _quadratic(self, name: str, qpsol: str, options: Any) -> Quadratic:
        x, p = ca.MX.sym("x", self.n), ca.MX.sym("p", self.program.sizes[2])
        hard = hard_limits(self.made, self.program, ca.Function("outputs", [x, p], self._first(x, p)))
        if qpsol == "riccati":
            return by_stages(name, self.made, self.program, hard, {**options, **self.of_stages})
        if qpsol == "hpipm":
            structure = self.made.assembly.structure
            options = {**{k: structure[k] for k in ("N", "nx", "nu", "ng")}, **options}
        if qpsol == "qrqp" and self.of_stages:
            options = {**options, "constr_viol_tol": self.of_stages["tol"], "dual_inf_tol": self.of_stages["tol"]}
        return by_conic(name, self.made, self.program, hard, qpsol, options, self.of_stages)

    def _split(self, memory: Any) -> list[Any]:
        """[unknowns, multipliers, multipliers of rows, parameters, failures]."""
        x, lam_x, lam_g, _, *rest = self._all_of(memory)
        return [x, lam_x, lam_g, *rest]

    def _all_of(self, memory: Any) -> list[Any]:
        """As _split, with controls in flight before the parameters."""
        return ca.vertsplit(memory, np.cumsum([0, self.n, self.n, self.m, self.flight, sum(self.sizes), 1]).tolist())

    def _now(self, memory: Any, parts: list[Any]) -> list[Any]:
        """Parameters for when the output acts."""
        if self.delay is None:
            return parts
        return self.delay.moved_on(self.made, self._all_of(memory)[3], parts, self._p(parts))

    def _begin(self, memory: Any) -> list[Any]:
        """[unknowns, multipliers] to start from: those of the memory, or of the guess where it failed."""
        x, lam_x, lam_g, _, failures = self._split(memory)
        cold = failures >= _COLD
        return [ca.if_else(cold, self.start[: self.n], x), ca.if_else(cold, 0, ca.vertcat(lam_x, lam_g))]

    def _step(self, name: str, iterations: int, options: Any) -> ca.Function:
        memory = ca.MX.sym("memory", self.start.size)
        p = self._p(self._now(memory, self.parts))
        x, lam = self._begin(memory)
        solve = sqp(f"{name}_sqp", self.program, iterations, self.qp, options)
        x, lam_x, lam_g, f, g, ended, over, count, gave = solve.call(
            [x, *ca.vertsplit(lam, [0, self.n, self.n + self.m]), p]
        )
        found = [x, ca.vertcat(lam_x, lam_g), f, g, ca.logic_and(ended != FAILED, over <= FAR), gave, count]
        return self._ended(name, [memory, *self.parts], ["memory", *self._names()], memory, p, found)

    def _both(self, name: str) -> ca.Function:
        """Preparation and feedback in one."""
        inputs = [ca.MX.sym("memory", self.start.size), *self.parts]
        names = ["memory", *self._names()]
        (prepared,) = self.preparation.call(inputs)
        known = dict(zip(names, inputs, strict=True))
        outputs = self.feedback.call([prepared, *(known[k] for k in self.measured)])
        return ca.Function(name, inputs, outputs, names, self.feedback.name_out())

    def _preparation(self, name: str) -> ca.Function:
        """(memory, *parameters) -> [memory; unknowns; multipliers; parameters; gradient; rows; quadratic program]."""
        inputs = [ca.MX.sym("memory", self.start.size), *self.parts]
        x, lam = self._begin(inputs[0])
        p = self._p(self.parts)
        _, gradient, g, J = self.program.jac_fg.call([x, p])
        of_lagrangian: Any = self.program.hessian
        (H,) = of_lagrangian.call([x, p, 1, lam[self.n :]])
        qp, _ = self.qp.prepare.call([J, H, gradient, lam])
        prepared = [inputs[0], x, lam, *map(ca.vec, self.parts), gradient, g, qp]
        return ca.Function(
            f"{name}_preparation", inputs, [ca.vertcat(*prepared)], ["memory", *self._names()], ["prepared"]
        )

    def _feedback(self, name: str) -> ca.Function:
        """(prepared, *measured) -> the outputs of function, by one quadratic program."""
        n, m = self.n, self.m
        sizes = [self.start.size, n, n + m, sum(self.sizes), n, m, self.qp.solve.size1_in(0)]
        prepared = ca.MX.sym("prepared", sum(sizes))
        memory, x, lam, known, gradient, g, qp = ca.vertsplit(prepared, np.cumsum([0, *sizes]).tolist())
        parts = self._ports(known)
        places = [self._names().index(k) for k in self.measured]
        seen = [self.parts[k] for k in places]
        for k, symbol in zip(places, seen, strict=True):
            parts[k] = symbol
        p = self._p(self._now(memory, parts))
        rows = np.flatnonzero(self.made.assembly.stage_rows[0] >= 0)
        now = self._first_rows(x, p)[rows.tolist()]  # what is measured enters here
        of_first = self.made.assembly.stage_rows[0][rows]
        order = np.arange(m)
        order[of_first] = m + np.arange(of_first.size)
        z = ca.vertcat(x, ca.vertcat(g, now)[order.tolist()])
        lower, upper = (ca.DM(np.concatenate([self.program.bounds[k + "x"], self.program.bounds[k + "g"]])) - z
                        for k in ("lb", "ub"))  # fmt: skip
        dx, new, solved, gave = self.qp.solve.call([qp, gradient, lower, upper, lam])
        x = ca.if_else(solved, x + dx, x)
        f, g = self.program.fg.call([x, p])
        over = violation(self.program.bounds, x, g, np.isinf(self.qp.prices))
        found = [x, new, f, g, ca.logic_and(solved, over <= FAR), gave, 1]
        return self._ended(f"{name}_feedback", [prepared, *seen], ["prepared", *self.measured], memory, p, found, parts)

    def _first_rows(self, x: Any, p: Any) -> Any:
        """Rows of the first stage."""
        made, of = self.made, self.made.groups[0].kind
        z = x[: int(made.assembly.first[1])]
        return of.value.call([z, p[: made.n_p], p[made.n_p : made.n_p + made.n_s]])[1]

    def _ended(
        self, name: str, inputs: list[Any], names: list[str], memory: Any, p: Any, found: list[Any], parts: Any = None
    ) -> ca.Function:
        """Function of a step from [unknowns, multipliers, objective, rows, whether they are sound, violation of limits
        that gave way, quadratic programs]."""
        x, lam, f, g, works, gave, count = found
        beyond = violation(self.program.bounds, x, g)
        relaxing = ca.logic_and(gave > self.kept, beyond > self.kept)
        met = max(_NEAR if parts is not None else 0, self.met)
        status = ca.if_else(beyond > met, int(Status.ITERATION_LIMIT), int(Status.OK))
        status = ca.if_else(relaxing, int(Status.INFEASIBLE_RELAXED), status)
        status = ca.if_else(works, status, int(Status.FALLBACK))
        # a plan from far outside of the limits is no place to start from once what is measured is sound again
        keep = ca.logic_and(works, ca.logic_not(ca.logic_and(relaxing, beyond > FAR)))
        flying = self._all_of(memory)[3]
        after = self._moved(ca.vertcat(x, lam, flying, *map(ca.vec, self.parts if parts is None else parts), 0))
        failed = self._failed(memory)
        first = self._first(x, p)
        out = [*first, ca.if_else(keep, after, failed), f, beyond, status, count]
        outputs = [*self.outputs, "next_memory", "objective", "violation", "status", "iterations"]
        return ca.Function(name, inputs, out, names, outputs)

    def _fallback(self, name: str, on_failure: Any) -> ca.Function:
        memory = ca.MX.sym("memory", self.start.size)
        if on_failure == "zero":
            first = [ca.MX.zeros(ca.MX(e).numel()) for e in self.outputs.values()]
        elif on_failure == "shifted":
            x, _, _, known, _ = self._split(memory)
            first = self._first(x, self._p(self._ports(known)))
        else:
            first = self._given(on_failure)
        # a law goes on with what is good of every sample, a plan with what it was made for
        out = [*first, self._failed(memory, None if isinstance(on_failure, str) else self.parts)]
        names = [*self.outputs, "next_memory"]
        return ca.Function(f"{name}_fallback", [memory, *self.parts], out, ["memory", *self._names()], names)

    def _given(self, law: ca.Function) -> list[Any]:
        """Outputs of the caller's own law, looked at."""
        names, sizes = self._names(), {k: ca.MX(e).numel() for k, e in self.outputs.items()}
        for k in range(law.n_in()):
            if law.name_in(k) not in names:
                raise UnknownName("mpc: on_failure: input, a parameter of the problem,", law.name_in(k), names)
        given = dict(zip(names, self.parts, strict=True))
        for k in range(law.n_in()):
            if law.size_in(k) != given[law.name_in(k)].shape:
                got, expected = law.size_in(k), given[law.name_in(k)].shape
                raise ShapeError(f"mpc: on_failure: input {law.name_in(k)} has shape {got}, expected {expected}")
        found = dict(zip(law.name_out(), law.call([given[k] for k in law.name_in()]), strict=True))
        if len(sizes) == 1 and law.n_out() == 1:
            found = dict(zip(sizes, found.values(), strict=True))
        for k, size in sizes.items():
            if k not in found:
                raise UnknownName("mpc: on_failure lacks an output, it", k, law.name_out())
            if found[k].numel() != size:
                raise ShapeError(f"mpc: on_failure: output {k} has {found[k].numel()} values, expected {size}")
        return [ca.densify(ca.vec(found[k])) for k in sizes]

    def _failed(self, memory: Any, parts: Any = None) -> Any:
        """The plan moved on, and one failure more. parts: parameters to keep, by default those of the memory."""
        *plan, known, failures = self._all_of(memory)
        known = known if parts is None else ca.vertcat(ca.MX(0, 1), *map(ca.vec, parts))
        return self._moved(ca.vertcat(*plan, known, failures + 1))

    def _names(self) -> list[str]:
        return list(self.made.description.parameter_names)

    def _p(self, parts: Any) -> Any:
        """Parameter of the program from the parameters of the step."""
        made = self.made
        common, rows = parts[: len(made.description.parameters)], parts[len(made.description.parameters) :]
        own = ca.vertcat(ca.DM(made.shares[None, :]), *rows)
        return ca.vertcat(ca.MX(0, 1), *common, ca.DM(made.hidden_values()), ca.vec(own))

    def _ports(self, known: Any) -> list[Any]:
        """The parameters of the step from the column of all of them."""
        columns = ca.vertsplit(known, np.cumsum([0, *self.sizes]).tolist()) if self.sizes else []
        return [ca.reshape(c, *x.shape) for c, x in zip(columns, self.parts, strict=True)]

    def _first(self, unknowns: Any, p: Any) -> Any:
        made = self.made
        x = made.x_scale * unknowns[: made.x_scale.size]
        at = made.x_scale.size
        u = made.u_scale * unknowns[at : at + made.u_scale.size]
        columns = []
        for y, some in ((x, made.states), (u, made.controls)):
            columns += ca.vertsplit(y, np.cumsum([0, *(v.size for v in some)]).tolist()) if some else []
        sizes = [s.numel() for s in (*made.p, *made.own)]
        columns += ca.vertsplit(p[: made.n_p + made.n_s], np.cumsum([0, *sizes]).tolist())
        f = made.at_nodes([ca.vec(ca.MX(e)) for e in self.outputs.values()])
        return f.call([*columns, ca.MX(0)], True, False)

    def _moved(self, memory: Any) -> Any:
        """Memory for the next step: stages some intervals on, those that have none behind them as they are."""
        n, m = self.n, self.m
        of, to = _ahead(self.made.assembly, self.shift)
        nu, begin = self.made.u_scale.size, self.made.x_scale.size + len(self.made.times)
        flying = [*range(2 * n + m + nu, 2 * n + m + self.flight), *range(begin, begin + nu)] if self.flight else []
        varying, at = [], 2 * n + m + self.flight
        for x in self.parts:
            columns = np.minimum(np.arange(x.shape[1]) + self.shift, x.shape[1] - 1)
            varying += list(at + (np.arange(x.shape[0])[:, None] + x.shape[0] * columns).ravel(order="F"))
            at += x.numel()
        places = [*of, *(n + of), *(2 * n + to), *flying, *varying, at]
        return memory[[int(k) for k in places]]


def _parameters(made: Any) -> list[ca.MX]:
    """Symbols of the parameters of a step: (size,) each, (size, N + 1) of those that vary."""
    common = [ca.MX.sym(n, s.numel()) for n, s in made.description.parameters]
    return [*common, *(ca.MX.sym(n, s.numel(), made.total + 1) for n, s in made.description.varying)]


def measured_names(made: Any, asked: Sequence[str] | None) -> list[str]:
    """Names of the parameters that enter the rows of the start, or those that were asked for."""
    description = made.description
    known = list(description.parameter_names)
    if asked is not None:
        if isinstance(asked, str) or not isinstance(asked, Iterable):
            raise ShapeError(f"mpc: measured is {shortened(asked)}, expected a list of names of parameters")
        asked = list(asked)
        for k in asked:
            if k not in known:
                raise UnknownName("mpc: measured: parameter of the problem", k, known)
        return [k for k in known if k in asked]
    rows = [s for row in description.start_rows for s in ca.symvar(ca.MX(row.expression))]
    symbols = [s for _, s in (*description.parameters, *description.varying)]
    return [k for k, s in zip(known, symbols, strict=True) if any(ca.is_equal(s, y) for y in rows)]


def _ahead(assembly: Any, shift: int) -> tuple[Array, Array]:
    """Numbers of the unknowns, and of the rows, `shift` stages on."""
    n, m = assembly.size
    of, to = np.arange(n), np.arange(m)
    stages = [np.arange(a, b) for a, b in pairwise(assembly.first)]
    for k, rows in enumerate(stages):
        ahead = stages[min(k + shift, len(stages) - 1)]
        both = min(rows.size, ahead.size)
        of[rows[:both]] = ahead[:both]
    counts = [int((rows >= 0).sum()) for rows in assembly.stage_rows]
    following = [g.kind.n_next for g in assembly.groups for _ in range(g.count)]
    starts = np.cumsum([0, *(a + b for a, b in zip(counts, following, strict=True))])
    blocks = [np.arange(a, b) for a, b in pairwise(starts)]
    for k, rows in enumerate(blocks):
        ahead = blocks[min(k + shift, len(blocks) - 1)]
        if rows.size == ahead.size:
            to[rows] = ahead
    return of, to


def bounds_of(given: Mapping[str, Any], made: Any, asked: Any) -> dict[str, tuple[Array, Array]]:
    """{output: (lower, upper)}: what was asked for, else the bounds of the control that an output is, else none."""
    asked, own = dict(asked or {}), {}
    for name in asked:
        if name not in given:
            raise UnknownName("mpc: output_bounds: output", name, list(given))
    for name, expression in given.items():
        size = ca.MX(expression).numel()
        if name in asked:
            own[name] = _pair(name, asked[name], size)
            continue
        control = next((v for v in made.controls if is_control(v, expression)), None)
        lower, upper = (control.lower, control.upper) if control else (np.full(size, -np.inf), np.full(size, np.inf))
        own[name] = np.array(lower, float), np.array(upper, float)
    return own


def _pair(name: str, value: Any, size: int) -> tuple[Array, Array]:
    what = f"mpc: output_bounds of {name!r}"
    try:
        lower, upper = (np.broadcast_to(np.asarray(x, float).ravel(), (size,)).copy() for x in value)
    except (TypeError, ValueError):
        raise ShapeError(f"{what} is {shortened(value)}, expected (lower, upper) of {size} numbers each") from None
    if not np.all(lower <= upper):  # NaN is refused, too
        raise ShapeError(f"{what} is {shortened(value)}, expected lower bounds that are not above the upper ones")
    if np.any(lower == np.inf) or np.any(upper == -np.inf):
        raise ShapeError(f"{what} is {shortened(value)}, expected lower bounds below inf and upper ones above -inf")
    return lower, upper
