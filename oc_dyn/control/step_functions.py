"""The Functions of a controller: its step, and what it does where the step cannot be made.

memory: [unknowns; multipliers of their bounds; multipliers of the rows; parameters; failures in a row]. The unknowns
are the plan of the last step that was good, moved on to the present, and the parameters those it was made for.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError, UnknownName
from ..numbers import shortened
from ..types import Array
from .softened import Program, Softened, program_of, softened
from .sqp import FAILED, sqp, violation
from .status import Status

DAMPING, WEIGHT = 1e-9, 1e3  # of the Hessian, see program_of; of limits that give way
FAR = 1.0  # violation of a scaled constraint beyond which a plan is worth nothing
_MET, _KEPT = 1e-4, 1e-6  # violations of constraints that are met, of limits that are kept
_COLD = 2  # failures in a row after which the next try starts from the guess


class StepFunctions:
    """function: (memory, *parameters) -> (*outputs, next_memory, objective, violation, status, iterations); fallback:
    (memory, *parameters) -> (*outputs, next_memory). start: the memory to begin with."""

    def __init__(
        self, made: Any, outputs: Mapping[str, Any], name: str, hessian: str, qp: tuple[str, Any], iterations: int,
        options: Any, shift: int, on_failure: Any,
    ) -> None:  # fmt: skip
        self.made, self.outputs, self.shift = made, outputs, shift
        self.parts = _parameters(made)
        program = program_of(made, hessian, DAMPING)
        relaxed = softened(made, program, WEIGHT)
        n, m = made.assembly.size
        self.n, self.m, self.sizes = n, m, [x.numel() for x in self.parts]
        self.start = np.concatenate([made.guess(None), np.zeros(n + m + sum(self.sizes) + 1)])
        self.function = self._step(name, program, relaxed, qp, iterations, options)
        self.fallback = self._fallback(name, on_failure)

    def _split(self, memory: Any) -> list[Any]:
        """[unknowns, multipliers, multipliers of rows, parameters, failures]."""
        ends = np.cumsum([0, self.n, self.n, self.m, sum(self.sizes), 1]).tolist()
        return ca.vertsplit(memory, ends)

    def _step(
        self, name: str, program: Program, relaxed: Softened | None, qp: tuple[str, Any], iterations: int, options: Any
    ) -> ca.Function:
        n = self.n
        memory, p = ca.MX.sym("memory", self.start.size), self._p(self.parts)
        x, lam_x, lam_g, _, failures = self._split(memory)
        cold = failures >= _COLD
        begin = [ca.if_else(cold, self.start[:n], x), ca.if_else(cold, 0, lam_x), ca.if_else(cold, 0, lam_g), p]
        solve = sqp(f"{name}_sqp", program, iterations, *qp, options)
        hard = solve.call(begin)
        good = ca.logic_and(hard[5] != FAILED, hard[6] <= FAR)
        if relaxed is None:
            found = [*hard, 0]
        else:
            found = _or_relaxed(name, program, relaxed, iterations, qp, options, solve).call([good, *hard, *begin])
        x, lam_x, lam_g, f, g, ended, over, count, gave = found
        works = ca.logic_and(ended != FAILED, over <= FAR)
        beyond = violation(program.bounds, x, g)
        relaxing = ca.logic_and(gave, beyond > _KEPT)
        status = ca.if_else(over > _MET, int(Status.ITERATION_LIMIT), int(Status.OK))
        status = ca.if_else(relaxing, int(Status.INFEASIBLE_RELAXED), status)
        status = ca.if_else(works, status, int(Status.FALLBACK))
        # a plan from far outside of the limits is no place to start from once what is measured is sound again
        keep = ca.logic_and(works, ca.logic_not(ca.logic_and(gave, beyond > FAR)))
        after = self._moved(ca.vertcat(x, lam_x, lam_g, *map(ca.vec, self.parts), 0))
        failed = self._failed(memory, ca.if_else(works, 0, 1))
        first = self._first(x, p)
        out = [*first, ca.if_else(keep, after, failed), f, beyond, status, count]
        names = [*self.outputs, "next_memory", "objective", "violation", "status", "iterations"]
        return ca.Function(name, [memory, *self.parts], out, ["memory", *self._names()], names)

    def _fallback(self, name: str, on_failure: Any) -> ca.Function:
        memory = ca.MX.sym("memory", self.start.size)
        if on_failure == "zero":
            first = [ca.MX.zeros(ca.MX(e).numel()) for e in self.outputs.values()]
        elif on_failure == "shifted":
            x, _, _, known, _ = self._split(memory)
            first = self._first(x, self._p(self._ports(known)))
        else:
            first = self._given(on_failure)
        out = [*first, self._failed(memory, 1)]
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

    def _failed(self, memory: Any, by: Any) -> Any:
        """The plan moved on, and one failure more."""
        x, lam_x, lam_g, known, failures = self._split(memory)
        return self._moved(ca.vertcat(x, lam_x, lam_g, known, ca.if_else(by, failures + 1, 0)))

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
        varying, at = [], 2 * n + m
        for x in self.parts:
            columns = np.minimum(np.arange(x.shape[1]) + self.shift, x.shape[1] - 1)
            varying += list(at + (np.arange(x.shape[0])[:, None] + x.shape[0] * columns).ravel(order="F"))
            at += x.numel()
        places = [*of, *(n + of), *(2 * n + to), *varying, at]
        return memory[[int(k) for k in places]]


def _or_relaxed(
    name: str,
    program: Program,
    relaxed: Softened,
    iterations: int,
    qp: tuple[str, Any],
    options: Any,
    solve: ca.Function,
) -> ca.Function:
    """Function (good, *found, x, lam_x, lam_g, p) -> (*found, whether limits gave way), where it is not good with them
    relaxed."""
    again = sqp(f"{name}_relaxed_sqp", relaxed.program, iterations, *qp, options)
    found: Any = [ca.MX.sym(f"f{k}", again.size1_out(k)) for k in range(again.n_out())]
    begin: Any = [ca.MX.sym(f"b{k}", again.size1_in(k)) for k in range(4)]
    x, lam_x, lam_g, p = begin
    keep = ca.Function(f"{name}_keep", [*found, *begin], [*found, 0])
    y, y_lam, y_lam_g, _, g, ended, over, count = again.call([x, lam_x * ~relaxed.unknowns, lam_g * ~relaxed.rows, p])
    of_x, of_g = relaxed.multipliers.call([y, y_lam, g, y_lam_g])
    # multipliers tell which limits are active: no more than a guess where they are far from kept
    near = violation(program.bounds, y, g) <= 1e-2
    objective = program.fg.call([y, p])[0]
    results: Any = [
        y,
        ca.if_else(near, of_x, 0),
        ca.if_else(near, of_g, 0),
        objective,
        g,
        ended,
        over,
        count + found[7],
        1,
    ]
    # where the limits can almost be kept, their multipliers tell which ones the solution with them is at
    symbols: Any = [ca.MX.sym(f"r{k}", ca.MX(z).numel()) for k, z in enumerate((*results, p))]
    polished = solve.call([*symbols[:3], symbols[9]])
    sound = ca.logic_and(polished[5] != FAILED, polished[6] <= _KEPT)
    better = [ca.if_else(sound, a, b) for a, b in zip(polished, symbols[:8], strict=True)]
    better[7], gave = polished[7] + symbols[7], ca.if_else(sound, 0, 1)
    polish = ca.Function(f"{name}_polish", symbols, [*better, gave])
    rough = ca.Function(f"{name}_rough", symbols, symbols[:9])
    last = ca.Function.if_else(f"{name}_polish_or_not", polish, rough)
    results = last.call([ca.logic_and(near, ended != FAILED), *results, p])
    give = ca.Function(f"{name}_give", [*found, *begin], results)
    return ca.Function.if_else(f"{name}_or_relaxed", keep, give)


def _parameters(made: Any) -> list[ca.MX]:
    """Symbols of the parameters of a step: (size,) each, (size, N + 1) of those that vary."""
    common = [ca.MX.sym(n, s.numel()) for n, s in made.description.parameters]
    return [*common, *(ca.MX.sym(n, s.numel(), made.total + 1) for n, s in made.description.varying)]


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
        control = next((v for v in made.controls if ca.is_equal(ca.vec(v.symbol), ca.MX(expression), 2)), None)
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
    return lower, upper
