"""The nonlinear program of a Problem as a casadi.Opti, and the way back from what Opti found to a Solution.

Rows of the Opti are those of the program, in its order, then the bounds of its unknowns, which nlpsol's option
detect_simple_bounds makes bounds again. Derivatives of the stages reach ipopt by nlpsol's option `cache`, put together
anew at every solve whose Opti has changed: for what a user has added, behind it, by AD.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..interrupts import iteration_watch, solver_run
from ..numbers import shortened
from .opti_symbols import OptiSymbols
from .solver import SolverResult, checked_options, told_by

_TINY = 1e-300  # times an unknown: no number changes where it is added, but Opti sees that it is there


@dataclass(eq=False)
class Program:
    """What an Opti of a Problem knows: the program as it was, and what is set now.

    x, p: symbols of its unknowns and parameters. constraints: the two comparisons given to subject_to, of the rows, and
    of the unknowns with the numbers `bounded`. given: what solve would give the solver. solver: (name, plugin options,
    solver options). installed: f and constraints of the Opti for which derivatives were put together.
    """

    problem: Any
    made: Any
    hessian: str
    given: dict[str, Any]
    x: ca.MX
    p: ca.MX
    f: ca.MX
    constraints: list[ca.MX]
    bounded: np.ndarray
    solver: tuple[str, dict[str, Any], dict[str, Any]]
    watched: bool = True
    installed: Any = None
    timed_out: bool = False


class _WithDerivatives:
    """What ProblemOpti does besides casadi.Opti; see there."""

    program: Program

    def solver(
        self, name: str, plugin_options: dict[str, Any] | None = None, solver_options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """As of casadi.Opti. Unless told otherwise, rows of single unknowns are bounds (detect_simple_bounds)."""
        outer = {"detect_simple_bounds": True, "calc_lam_p": False, **(plugin_options or {})}
        if "iteration_callback" in outer:
            self.program.watched = False
        self.program.solver, self.program.installed = (name, outer, dict(solver_options or {})), None
        super().solver(name, outer, self.program.solver[2])  # type: ignore[misc]

    def callback(self, fh: Any = None) -> Any:
        """As of casadi.Opti; solves can then not be interrupted between iterations."""
        self.program.watched = fh is None and "iteration_callback" not in self.program.solver[1]
        self.program.installed = None
        return super().callback(fh)  # type: ignore[misc]

    def solve(self) -> ca.OptiSol:
        """As of casadi.Opti. Ctrl-C and od.deadline stop ipopt at its next iteration."""
        return self._run(super().solve)  # type: ignore[misc]

    def solve_limited(self) -> ca.OptiSol:
        """As of casadi.Opti: the last iterate where a limit of iterations or time has stopped the solver."""
        return self._run(super().solve_limited)  # type: ignore[misc]

    def to_function(self, *args: Any) -> ca.Function:
        """As of casadi.Opti."""
        self._install()
        return super().to_function(*args)  # type: ignore[misc]

    def copy(self) -> Any:
        """As of casadi.Opti: one that can be changed without this one."""
        return _of_program(super().copy(), replace(self.program, installed=None))  # type: ignore[misc]

    @property
    def advanced(self) -> Any:
        """As of casadi.Opti: a copy."""
        return _of_program(super().advanced, replace(self.program, installed=None))  # type: ignore[misc]

    @property
    def debug(self) -> Any:
        """As of casadi.Opti: a copy, for values of the last iterate, and for ocp.solution."""
        return _of_program(super().debug, replace(self.program, installed=None))  # type: ignore[misc]

    def _run(self, solve):
        self._install()
        with solver_run(stops=self.program.watched) as run:
            try:
                found = solve()
            finally:
                self.program.timed_out = run.timed_out
        found.__class__, found.program = ProblemOptiSol, replace(self.program)
        return found

    def _install(self):
        """Put derivatives together for the program as it is now, unless they are there."""
        program, advanced = self.program, super().advanced
        now = [self.f, *advanced.constraints()]
        if program.installed is not None and _same(now, program.installed):
            return
        name, outer, inner = program.solver
        outer = dict(outer)
        if program.watched and name == "ipopt":
            outer["iteration_callback"] = iteration_watch()
        if name == "ipopt" and "cache" not in outer and not outer.get("expand") and _as_it_was(program, self, now):
            outer["cache"] = _cache(program, self, bool(outer["detect_simple_bounds"]))
        super().solver(name, outer, inner)
        program.installed = now


class ProblemOpti(_WithDerivatives, ca.Opti):  # type: ignore[misc]
    """casadi.Opti of a Problem, made by Problem.opti; what a user adds joins what is there.

    With ipopt, the derivatives of the Problem's part are those of its stages, and AD's for what was added: constraints,
    variables, parameters, terms of the objective as in minimize(opti.f + ...). With another solver, a scaling of one's
    own, the option "expand", or without the Problem's constraints (subject_to()), all are AD's.
    """


class ProblemOptiAdvanced(_WithDerivatives, ca.OptiAdvanced):  # type: ignore[misc]
    """casadi.OptiAdvanced of a Problem, as ProblemOpti."""


class ProblemOptiSol(ca.OptiSol):
    """casadi.OptiSol of a Problem."""

    program: Program

    @property
    def opti(self) -> Any:
        """As of casadi.OptiSol: a copy of the Opti that was solved."""
        return _of_program(super().opti, replace(self.program, installed=None))


def _of_program(opti, program):
    opti.__class__ = ProblemOptiAdvanced if isinstance(opti, ca.OptiAdvanced) else ProblemOpti
    opti.program = program
    return opti


def opti_of(problem, made, hessian, given, solver_options):
    """(ProblemOpti, OptiSymbols) of a Transcribed; see Problem.opti. given: {p, lbx, ubx, lbg, ubg, x0}."""
    opti = ca.Opti()
    nlp = made.assembly.nlp
    x, p = opti.variable(nlp["x"].numel()), opti.parameter(nlp["p"].numel())
    f, g = ca.Function("nlp", [nlp["x"], nlp["p"]], [nlp["f"], nlp["g"]]).call([x, p], True, False)
    opti.minimize(f)
    bounded = np.flatnonzero(np.isfinite(given["lbx"]) | np.isfinite(given["ubx"]))
    constraints = []
    g = _of_several_unknowns(g, x, made.assembly.parts["jacobian"].sparsity())
    for value, sides in ((g, ("lbg", "ubg")), (x[bounded.tolist()], ("lbx", "ubx"))):
        lower, upper = (ca.DM(given[side][bounded] if side.endswith("x") else given[side]) for side in sides)
        constraints.append(opti.bounded(lower, value, upper))
        if value.numel():
            opti.subject_to(constraints[-1])
    opti.set_initial(x, given["x0"])
    opti.set_value(p, ca.DM(np.reshape(given["p"], (-1, 1))))
    constraints = [c for c, some in zip(constraints, (g, bounded), strict=True) if np.prod(some.shape)]
    outer, inner = checked_options("ipopt", solver_options, free_time=made.description.free_time)
    if hessian == "limited_memory":
        inner["hessian_approximation"] = "limited-memory"
    program = Program(problem, made, hessian, given, x, p, opti.f, constraints, bounded, ("ipopt", outer, inner))
    opti = _of_program(opti, program)
    opti.solver("ipopt", outer, inner)
    return opti, OptiSymbols(made, x, p)


def _of_several_unknowns(g, x, pattern):
    """g such that none of its rows looks like a bound of one unknown, which it would become: the program stays as it
    is, row by row."""
    row, column = pattern.get_triplet()
    only = np.bincount(row, minlength=pattern.size1()) == 1
    places = [(r, (c + 1) % x.numel()) for r, c in zip(row, column, strict=True) if only[r]]
    if not places or x.numel() < 2:
        return g
    rows, columns = zip(*places, strict=True)
    return g + ca.mtimes(ca.DM.triplet(rows, columns, _TINY * ca.DM.ones(len(rows)), *pattern.shape), x)


# -- derivatives ------------------------------------------------------------------------------------------------------


def _same(some, others):
    return len(some) == len(others) and all(a.__hash__() == b.__hash__() for a, b in zip(some, others, strict=True))


def _as_it_was(program, opti, now):
    """Whether the program still begins with what it was made of, unscaled."""
    known = len(program.constraints)
    symbols = ca.symvar(opti.x)
    for what in ("x_linear_scale", "g_linear_scale", "f_linear_scale"):
        if not np.all(np.array(getattr(opti, what, 1.0)) == 1.0):
            return False
    if np.any(np.array(getattr(opti, "x_linear_scale_offset", 0.0))):
        return False
    return bool(symbols) and ca.is_equal(symbols[0], program.x) and _same(now[1 : 1 + known], program.constraints)


def _cache(program, opti, simple_bounds):
    """Functions that ipopt asks for, of the program of the Opti: those of the assembly, with AD for the rest."""
    assembly, hessian = program.made.assembly, program.hessian
    of_stages = assembly.cache("ipopt", hessian)
    n, m = assembly.size
    ours, rest = _terms(opti.f, program.f)
    variables, parameters = ca.symvar(opti.x), ca.symvar(opti.p)
    x, p = ca.MX.sym("x", opti.nx), ca.MX.sym("p", opti.np)
    known = ca.Function("added", [*variables, *parameters], [rest, opti.g[m:]])
    added, rows = known.call([*_split(x, variables), *_split(p, parameters)], True, False)
    if simple_bounds and rows.numel():
        rows = rows[_no_bounds(rows, x)]
    if opti.nx == n and not rows.numel() and ours and added.is_zero() and _only(parameters, program.p):
        return of_stages
    own = dict(zip((s.__hash__() for s in parameters), _split(p, parameters), strict=True))
    common = x[:n], own.get(program.p.__hash__(), ca.MX.zeros(*program.p.shape))
    f, gradient = of_stages["nlp_grad_f"](*common) if ours else (ca.MX(0), ca.MX.zeros(n))
    g, J = of_stages["nlp_jac_g"](*common)
    f_value = of_stages["nlp_f"](*common) if ours else ca.MX(0)
    extra = opti.nx - n
    rows_J = ca.jacobian(rows, x)
    J = ca.vertcat(ca.horzcat(J, ca.MX(m, extra)), rows_J)
    gradient = ca.densify(ca.vertcat(gradient, ca.MX.zeros(extra)) + ca.gradient(added, x))
    lam_f, lam_g = ca.MX.sym("lam_f"), ca.MX.sym("lam_g", m + rows.numel())
    given, every, g = [x, p], [x, p, lam_f, lam_g], ca.densify(ca.vertcat(g, rows))
    g_value = ca.densify(ca.vertcat(of_stages["nlp_g"](*common), rows))
    made = {"nlp_f": (given, [ca.densify(f_value + added)], ["f"]), "nlp_g": (given, [g_value], ["g"])}
    made["nlp_jac_g"] = (given, [g, J], ["g", "jac_g_x"])
    made["nlp_grad_f"] = (given, [ca.densify(f + added), gradient], ["f", "grad_f_x"])
    of_lagrangian = ca.densify(lam_f * gradient + ca.mtimes(J.T, lam_g))
    outputs = [made["nlp_f"][1][0], g_value, of_lagrangian, ca.MX.zeros(*p.shape)]  # see Assembly.cache
    made["nlp_grad"] = (every, outputs, ["f", "g", "grad_gamma_x", "grad_gamma_p"])
    if "nlp_hess_l" in of_stages:
        H = of_stages["nlp_hess_l"](*common, lam_f if ours else 0, lam_g[:m])
        of_added, _ = ca.hessian(lam_f * added + ca.dot(lam_g[m:], rows), x)
        made["nlp_hess_l"] = (every, [ca.diagcat(H, ca.MX(extra, extra)) + ca.triu(of_added)], ["triu_hess_gamma_x_x"])
    names = ["x", "p", "lam_f", "lam_g"]
    return {k: ca.Function(k, i, o, names[: len(i)], out) for k, (i, o, out) in made.items()}


def _terms(f, ours):
    """(whether an objective has the Problem's among its terms, the sum of all others)."""
    if f.__hash__() == ours.__hash__():
        return True, ca.MX(0)
    if f.is_op(ca.OP_ADD) and f.dep(0).shape == f.dep(1).shape:
        for i in (0, 1):
            found, rest = _terms(f.dep(i), ours)
            if found:
                return True, rest + f.dep(1 - i)
    return False, f


def _split(column, symbols):
    """Values of symbols from the column of all of them."""
    if not symbols:
        return []
    parts = ca.vertsplit(column, np.cumsum([0, *(s.numel() for s in symbols)]).tolist())
    return [ca.reshape(part, *s.shape) for part, s in zip(parts, symbols, strict=True)]


def _no_bounds(rows, x):
    """Numbers of the rows that nlpsol keeps with detect_simple_bounds: not linear, or of several unknowns."""
    column, _ = ca.jacobian_sparsity(rows, x).T.get_ccs()
    nonlinear = np.array(ca.which_depends(rows, x, 2, True), bool)
    return np.flatnonzero((np.diff(column) != 1) | nonlinear).tolist()


def _only(parameters, own):
    return len(parameters) == 1 and parameters[0].__hash__() == own.__hash__()


# -- and back ---------------------------------------------------------------------------------------------------------


def found_by(problem, solution):
    """(Program, SolverResult, {p, lbx, ubx}, {what a user may change: whether it is another}) from what an Opti of the
    Problem found; see Problem.solution."""
    program = getattr(solution, "program", None)
    if not isinstance(program, Program):
        expected = "what solve() of an Opti returned that ocp.opti() has made, or that Opti itself for its last iterate"
        raise ShapeError(f"solution: got {shortened(solution)}, expected {expected}")
    if program.problem is not problem:
        raise ShapeError("solution: it is of an Opti that another Problem has made; ask that for it")
    opti = solution.opti if isinstance(solution, ca.OptiSol) else solution
    try:
        stats = solution.stats()
        x, lam, f = (np.array(ca.DM(solution.value(e))).ravel() for e in (program.x, opti.lam_g, opti.f))
    except RuntimeError:
        raise ShapeError("solution: this Opti has not been solved yet; call its solve() first") from None
    n, m = program.made.assembly.size
    now, known = ca.Opti.advanced.fget(opti).constraints(), len(program.constraints)
    ours = _same(now[:known], program.constraints)
    lam_x, lam_g = np.zeros(n), np.zeros(m)
    if ours:
        lam_g, lam_x[program.bounded] = lam[:m], lam[m : m + program.bounded.size]
    result = SolverResult(x, lam_x, lam_g, float(f[0]), *told_by(stats, program.timed_out))
    p = np.array(ca.DM(solution.value(program.p))).ravel()
    changed = {"objective": opti.f.__hash__() != program.f.__hash__(), "constraints": not ours or len(now) > known}
    return program, result, {**program.given, "p": p}, changed
