"""od.mpc: model-predictive control, a Problem that is solved again and again from where the last solution left off.

ocp = od.Problem(nodes=20, duration=0.4)
q_now = ocp.parameter("q_now", 7)              # what is measured
...                                            # states, controls, limits, costs as for any Problem
control = od.mpc(ocp, outputs={"tau": tau})
tau = control.step({"q_now": q})["tau"]        # of the first node
control.codegen("controller")                  # the same as C
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import casadi as ca
import numpy as np

from .._moved import renamed
from ..codegen.build import checked_flags, find_compiler, run, run_compiler
from ..codegen.disk import write_texts
from ..codegen.names import checked_c_name
from ..codegen.source import c_source
from ..errors import ModelError, ShapeError, SolveError, UnknownName
from ..interrupts import check_deadline, watched
from ..numbers import shortened
from ..optimal_control.problem import Problem
from ..optimal_control.solver import checked_options, refusal
from ..types import Array, ExpressionLike, Numbers, StrPath
from ..validation import count, one_of, options_of
from ..validation import expression as expression_of
from .closed_loop_codegen import STEP_DECLARED, is_of_another, program, step

_QP = {
    "qrqp": ({"print_iter": False, "print_header": False}, ()),
    "osqp": ({"osqp": {"verbose": False, "eps_abs": 1e-9, "eps_rel": 1e-9, "max_iter": 20000}}, ("osqp",)),
    "daqp": ({"daqp": {"eps_prox": 1e-6}}, ("daqp",)),  # without it a singular Hessian ends in u = 0
}


def mpc(
    problem: Problem, *, outputs: Mapping[str, ExpressionLike] | None = None, method: str = "rk4",
    hessian: str = "gauss_newton", qpsol: str = "qrqp", iterations: int = 10, shift: int | None = None,
    name: str = "mpc", solver_options: Mapping[str, Any] | None = None,
) -> PredictiveController:  # fmt: skip
    """PredictiveController of a Problem of fixed size: sequential quadratic programming, warm-started, bounded work.

    problem: its parameters are what is measured and what is wanted; the first node is the present. Durations are fixed.
    outputs: {name: expression} of the first node that step gives, by default all controls.
    method, hessian: as those of Problem.solve; "gauss_newton" needs the squares of minimize and is never indefinite.
    qpsol: "qrqp" (its C needs nothing else), "osqp" or "daqp" (their C needs headers and libraries of CasADi's wheel).
    iterations: quadratic programs solved in a step at most; fewer where the solution does not change any more.
    shift: intervals that pass from one step to the next; the last solution is moved by as many. Default 1, or 0 where
    there is one interval, or a mesh of unequal ones, which do not move into each other.
    name: of the C function and its files, the start of all their names; controllers in one program need different ones.
    Raises ShapeError, UnknownName, OrderError for what does not fit.
    """
    if not isinstance(problem, Problem):
        raise ShapeError(f"mpc: got {shortened(problem)}, expected an od.Problem")
    if problem.description.relative_length is not None:
        raise ShapeError("mpc: the problem has a free mesh, whose intervals have no fixed lengths; take mesh='uniform'")
    if problem.description.free_time:
        raise ShapeError("mpc: the problem has a free duration; give its phases fixed ones")
    one_of("solver of quadratic programs with C code", qpsol, tuple(_QP))
    one_of("hessian of mpc", hessian, ("exact", "gauss_newton"))
    count("mpc: iterations", iterations, 1)
    solver_options = options_of("mpc: solver_options", solver_options)
    made = problem.transcribed(method)
    unequal = any(phase.shares is not None for phase in made.phases)
    shift = (0 if unequal else min(1, made.total - 1)) if shift is None else shift
    if count("mpc: shift", shift) >= made.total:
        raise ShapeError(f"mpc: shift is {shift!r}, expected an integer from 0 to {made.total - 1}")
    if shift and unequal:
        raise ShapeError("mpc: shift is for intervals of equal length; take shift=0, or mesh='uniform'")
    if outputs is None:
        outputs = {v.name: v.symbol for v in made.controls}
    given = {k: expression_of(f"output {k!r}", x) for k, x in options_of("mpc: outputs", outputs).items()}
    if not given:
        raise ShapeError("mpc: there are no outputs; the problem has no controls, or outputs={} was given")
    for what, expression in given.items():
        made.check_known(f"symbol in output {what!r}", expression)
    checked_c_name("mpc", name, "give another name=")
    _check_ports(problem.description.parameter_names, list(given))
    options: Any = _QP[qpsol][0]
    quiet: dict[str, Any] = {"qpsol": qpsol, "qpsol_options": {**options, "error_on_fail": False}}
    quiet["max_iter"] = int(iterations)
    quiet["convexify_strategy"] = "none" if hessian == "gauss_newton" else "regularize"
    quiet["error_on_fail"] = False
    options, inner = checked_options("sqpmethod", {**quiet, **solver_options}, free_time=False)
    return PredictiveController(made, given, {**options, **inner}, hessian, qpsol, int(shift), name)


class PredictiveController:
    """What od.mpc made.

    function: casadi.Function (memory, *parameters) -> (*outputs, memory, objective, violation), all that a step does.
    memory: unknowns and multipliers, where the next step starts; reset() forgets them.
    """

    def __init__(
        self, made: Any, outputs: dict[str, Any], options: dict[str, Any], hessian: str, qpsol: str, shift: int,
        name: str,
    ) -> None:  # fmt: skip
        self.made, self.qpsol, self.name = made, qpsol, name
        self.names = made.description.parameter_names
        self.outputs = {k: ca.MX(x).numel() for k, x in outputs.items()}
        assembly = made.assembly
        options = {**options, "cache": assembly.cache("sqpmethod", hessian)}
        try:
            solver = ca.nlpsol(f"{name}_nlp", "sqpmethod", assembly.nlp, options)
        except RuntimeError as error:
            raise SolveError(refusal("sqpmethod", error)) from None
        n, m = assembly.size
        memory = ca.MX.sym("memory", 2 * n + m)
        p, parts = self._parameters()
        bounds = {k: ca.DM(x) for k, x in made.bounds.items()}
        found = solver(x0=memory[:n], lam_x0=memory[n : 2 * n], lam_g0=memory[2 * n :], p=p, **bounds)
        lower, upper = bounds["lbg"], bounds["ubg"]
        over = ca.vertcat(
            lower - found["g"], found["g"] - upper, bounds["lbx"] - found["x"], found["x"] - bounds["ubx"]
        )
        kept = np.flatnonzero(np.isfinite(np.concatenate([made.bounds[k] for k in ("lbg", "ubg", "lbx", "ubx")])))
        violation = ca.mmax(ca.vertcat(0, over[kept.tolist()]))
        first = self._first(outputs, found["x"], p)
        moved = self._moved(found, shift)
        self.function = ca.Function(
            name, [memory, *parts], [*first, moved, found["f"], violation], ["memory", *self.names],
            [*outputs, "next_memory", "objective", "violation"],
        )  # fmt: skip
        self.solver = solver
        self.reset()

    def _parameters(self) -> tuple[ca.MX, list[ca.MX]]:
        """(parameter of the program, [symbols of each])."""
        made = self.made
        common = [ca.MX.sym(n, s.numel()) for n, s in made.description.parameters]
        rows = [ca.MX.sym(n, s.numel(), made.total + 1) for n, s in made.description.varying]
        own, hidden = ca.vertcat(ca.DM(made.shares[None, :]), *rows), ca.DM(made.hidden_values())
        return ca.vertcat(ca.MX(0, 1), *common, hidden, ca.vec(own)), [*common, *rows]

    def _first(self, outputs: dict[str, Any], unknowns: Any, p: Any) -> Any:
        made = self.made
        x = made.x_scale * unknowns[: made.x_scale.size]
        at = made.x_scale.size
        u = made.u_scale * unknowns[at : at + made.u_scale.size]
        columns = []
        for y, some in ((x, made.states), (u, made.controls)):
            columns += ca.vertsplit(y, np.cumsum([0, *(v.size for v in some)]).tolist()) if some else []
        sizes = [s.numel() for s in (*made.p, *made.own)]
        columns += ca.vertsplit(p[: made.n_p + made.n_s], np.cumsum([0, *sizes]).tolist())
        f = made.at_nodes([ca.vec(ca.MX(e)) for e in outputs.values()])
        return f.call([*columns, ca.MX(0)], True, False)

    def _moved(self, found: dict[str, Any], shift: int) -> Any:
        """Memory for the next step: stages one interval on, those that have none behind them as they are."""
        assembly = self.made.assembly
        n, m = assembly.size
        of, to = np.arange(n), np.arange(m)
        stages = [np.arange(a, b) for a, b in zip(assembly.first[:-1], assembly.first[1:], strict=True)]
        for k, rows in enumerate(stages):
            ahead = stages[min(k + shift, len(stages) - 1)]
            both = min(rows.size, ahead.size)
            of[rows[:both]] = ahead[:both]
        starts = np.cumsum([0, *(r.size for r in self._rows())])
        blocks = [to[a:b] for a, b in pairwise(starts)]
        for k, rows in enumerate(blocks):
            ahead = blocks[min(k + shift, len(blocks) - 1)]
            if rows.size == ahead.size:
                to[rows] = ahead
        return ca.vertcat(found["x"][of.tolist()], found["lam_x"][of.tolist()], found["lam_g"][to.tolist()])

    def _rows(self) -> list[Array]:
        """Numbers of the constraints, stage by stage."""
        assembly = self.made.assembly
        counts = [int((rows >= 0).sum()) for rows in assembly.stage_rows]
        following = [g.kind.n_next for g in assembly.groups for _ in range(g.count)]
        return [np.zeros(a + b) for a, b in zip(counts, following, strict=True)]

    def reset(self) -> PredictiveController:
        """Back to the guesses of the problem."""
        n, m = self.made.assembly.size
        self.memory = np.concatenate([self.made.guess(None), np.zeros(n + m)])
        return self

    def values(self, parameters: Mapping[Any, Numbers]) -> list[Array]:
        """[values of the parameters], in the order of function, from {symbol or name: value}."""
        made = self.made
        p = made.parameters(parameters)
        common = np.split(p[: made.n_p], np.cumsum([s.numel() for s in made.p])) if made.p else [np.zeros(0)]
        rows = np.split(p[made.n_p :].reshape(-1, made.n_s).T, np.cumsum([s.numel() for s in made.own]))
        return [*common[: len(made.description.parameters)], *rows[1:-1]]

    def step(self, parameters: Mapping[Any, Numbers]) -> dict[str, Any]:
        """{output: value (size,)} of the first node, with "objective", "violation" (largest of a scaled constraint) and
        "seconds"; the next step starts from this solution."""
        given = self.values(parameters)
        begun = time.perf_counter()
        with watched(hold=True):  # its work is bounded: a signal waits for the end of the step
            found = self.function(self.memory, *given)
        seconds = time.perf_counter() - begun
        *first, memory, objective, violation = (np.array(x).ravel() for x in found)
        self.memory = memory
        out = dict(zip(self.outputs, first, strict=True))
        return out | {"objective": float(objective[0]), "violation": float(violation[0]), "seconds": seconds}

    def closed_loop(
        self, plant: ca.Function, x: Numbers, steps: int, parameters: Mapping[Any, Numbers], measured: ca.Function,
    ) -> ClosedLoop | None:  # fmt: skip
        """ClosedLoop of so many steps: x_next = plant(x, *outputs), a casadi.Function, from x (nx,).

        measured: a casadi.Function x -> (*parameters), its outputs named like those parameters, (size, 1), or
        (size, N + 1) where they vary along the nodes: what is measured, and what is wanted if x holds the time.
        parameters: {name: value} of the others.
        A deadline that passes ends it, with the ClosedLoop so far as the trajectory of SolveError.
        """
        plant, measured = self._checked(plant, measured)
        x = np.array(x, float).ravel()
        rows: list[tuple[Any, ...]] = []
        for _ in range(steps):
            check_deadline("closed_loop", trajectory=_loop(rows))
            seen = dict(zip(measured.name_out(), measured.call([x]), strict=True))
            found = self.step({**parameters, **{k: np.array(v).T for k, v in seen.items()}})
            u = [found[k] for k in self.outputs]
            rows.append((x, np.concatenate(u), found["objective"], found["violation"], found["seconds"]))
            x = np.array(plant.call([x, *u])[0]).ravel()
        return _loop(rows)

    def closed_loop_in_c(
        self, plant: ca.Function, x: Numbers, steps: int, parameters: Mapping[Any, Numbers], measured: ca.Function,
        *, rate: float | None = None, flags: Sequence[str] = ("-O2",), folder: StrPath | None = None,
    ) -> ClosedLoop:  # fmt: skip
        """As closed_loop, from the memory as it is now, by a C program that is written, built and run without Python.

        rate [1/s], flags: see codegen and build. folder: where the files stay; by default none does.
        """
        with tempfile.TemporaryDirectory() as temporary:
            folder = temporary if folder is None else folder
            self.codegen(folder, plant, measured, parameters, x, steps, rate)
            self.build(folder, flags)
            return self.run_in_c(folder)

    def _checked(self, plant: ca.Function, measured: Any) -> tuple[ca.Function, ca.Function]:
        if plant.n_in() != 1 + len(self.outputs) or plant.numel_out(0) != plant.numel_in(0):
            raise ShapeError(f"plant: {plant} should take x and {', '.join(self.outputs)}, and give the next x")
        for k in measured.name_out():
            if k not in self.names:
                raise UnknownName("parameter of the problem that is measured", k, self.names)
            got, expected = measured.numel_out(k), self.function.numel_in(k)
            if got != expected:
                raise ShapeError(f"measured: {k} has {got} values, expected {expected}")
        return plant, measured

    def codegen(
        self, folder: StrPath, plant: ca.Function | None = None, measured: ca.Function | None = None,
        parameters: Mapping[Any, Numbers] | None = None, x: Numbers | None = None, steps: int = 0,
        rate: float | None = None,
    ) -> list[Path]:  # fmt: skip
        """Write the controller as C, <name>.c and <name>.h; with a plant, also loop.c, a program that closes the loop.

        <name>_step is the function <name> with its numbers looked at: where one is NaN or infinite it returns a status
        and leaves outputs and memory as they are; see <name>.h. All symbols start with the name. The program prints a
        line a step, as ClosedLoop has it, and takes the rate [1/s] at which it runs from `rate`, else it runs freely.
        Returns the list of files. Raises ModelError for a folder that cannot be written to, or holds the program of
        another controller.
        """
        folder, functions = Path(folder), [self.function]
        if plant is not None:
            plant, measured = self._checked(plant, measured)
            functions += [_named(plant, f"{self.name}_plant"), _named(measured, f"{self.name}_measured")]
            self._check_program(folder)
        texts = {
            f"{self.name}.c": c_source(functions, self.name, more=step(self)),
            f"{self.name}.h": _header(functions, self.name) + STEP_DECLARED % {"name": self.name} + _HEADER_END,
        }
        if plant is not None:
            seen = cast(ca.Function, measured).name_out()
            given = {**{k: 0.0 for k in seen}, **(parameters or {})}
            values = dict(zip(self.names, self.values(given), strict=True))
            texts["loop.c"] = program(self, values, seen, np.array(x, float).ravel(), steps, rate)
        write_texts("mpc", folder, texts)
        return [folder / file for file in texts]

    def _check_program(self, folder: StrPath) -> None:
        """ModelError if loop.c in a folder is not of this controller."""
        path = Path(folder, "loop.c")
        if path.exists() and is_of_another(self.name, path.read_text(encoding="utf-8", errors="replace")):
            problem = f"loop.c in it is not the program of the controller {self.name}; give another folder"
            raise ModelError(f"mpc: folder {folder}", [problem])

    def build(self, folder: StrPath, flags: Sequence[str] = ("-O2",), compiler: str | None = None) -> Path:
        """Path of the program that the files of codegen in a folder make."""
        folder, root = Path(folder), Path(ca.__file__).parent
        self._check_program(folder)
        words = [*find_compiler(compiler), *checked_flags("build", flags), "-o", "loop", "loop.c", f"{self.name}.c"]
        for library in _QP[self.qpsol][1]:
            words += [
                f"-I{root}/include",
                f"-I{root}/include/{library}",
                f"-L{root}",
                f"-Wl,-rpath,{root}",
                f"-l{library}",
            ]
        run_compiler([*words, "-lm"], folder)
        return folder / "loop"

    def run_in_c(self, folder: StrPath, seconds: float = 600) -> ClosedLoop:
        """ClosedLoop that the program in a folder ran, without Python."""
        self._check_program(folder)
        program_ = Path(folder).resolve() / "loop"
        status, out, err = run([str(program_)], time_limit=seconds, env={})
        if status:
            raise SolveError(f"{program_} ended with status {status}: {err.strip()[:500]}")
        rows = np.array([[float(x) for x in line.split(",")] for line in out.split()])
        nu = sum(self.outputs.values())
        nx = rows.shape[1] - nu - 3
        return ClosedLoop(rows[:, :nx], rows[:, nx : nx + nu], *rows[:, nx + nu :].T)


def _loop(rows: list[tuple[Any, ...]]) -> ClosedLoop | None:
    return ClosedLoop(*(np.array(y) for y in zip(*rows, strict=True))) if rows else None


def _check_ports(parameters: Sequence[str], outputs: Sequence[str]) -> None:
    """ShapeError for names that cannot be those of a C function's inputs and outputs, all different."""
    own = ("memory", "next_memory", "objective", "violation")
    known: dict[str, str] = {}
    for what, names in (("parameter", parameters), ("output", outputs)):
        for name in names:
            if not ca.Function.check_name(name):
                raise ShapeError(f"mpc: {what} {name!r} cannot name a port in C; give it a name of letters and digits")
            if name in own or name in known:
                other = "what every controller has" if name in own else f"the {known[name]} of this name"
                raise ShapeError(f"mpc: {what} {name!r} would be called like {other}; give it another name")
            known[name] = what


_HEADER_END = """
#ifdef __cplusplus
}
#endif
"""


def _header(functions: Sequence[ca.Function], name: str) -> str:
    """Text of the header that CasADi writes, up to what closes it."""
    code = ca.CodeGenerator(f"{name}.c", {"with_header": True})
    for f in functions:
        code.add(f)
    with tempfile.TemporaryDirectory() as folder:
        code.generate(f"{folder}/")
        text = Path(folder, f"{name}.h").read_text(encoding="utf-8")
    return text[: text.rindex("#ifdef __cplusplus")]


def _named(function: ca.Function, name: str) -> ca.Function:
    inputs = function.mx_in()
    return ca.Function(name, inputs, function.call(inputs), function.name_in(), function.name_out())


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """A closed loop: states x (steps, nx), outputs u (steps, nu), objective, violation, seconds (steps,) of solving."""

    x: Array
    u: Array
    objective: Array
    violation: Array
    seconds: Array

    def deadlines(self, deadline: float, bins: int = 12) -> str:
        """Text: how long steps took against a deadline [s], with a histogram."""
        ms, late = 1e3 * self.seconds, int(np.sum(self.seconds > deadline))
        edges = np.geomspace(max(ms.min(), 1e-6), max(ms.max(), ms.min() * 1.01, 1e-5) * (1 + 1e-9), bins + 1)
        counts, _ = np.histogram(ms, edges)
        lines = [f"{len(ms)} steps, deadline {1e3 * deadline:g} ms, {late} late"]
        marks = zip(("median", "99 %", "longest"), np.percentile(ms, [50, 99, 100]), strict=True)
        lines.append(", ".join(f"{what} {x:.3f} ms" for what, x in marks))
        widest = max(counts.max(), 1)
        for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True):
            lines.append(f"{a:9.3f} to {b:9.3f} ms {n:6} {'#' * int(np.ceil(40 * n / widest))}")
        return "\n".join(lines)


__getattr__ = renamed(__name__, {"Controller": "PredictiveController", "Loop": "ClosedLoop"})
