"""The quadratic program of an iteration as casadi.Functions, by our own stages or by a solver of CasADi.

Bounds and multipliers are those of [unknowns; rows]. Limits have a price, a multiple of a scale, and none but equations
cannot give way: a program that another solver does not solve, as its limits cannot all be kept, is solved by stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..types import Array
from .program import Program, complementarity
from .stage_program import stage_program
from .stage_qp import StageQp, scale_of, stage_qp

SOFT, HARD = 1e4, 1e8  # prices of limits that give way, and of those that do so last
_SOLVED = 1e-5  # residuals of a quadratic program that counts as solved, relative to its multipliers and its step
_LARGEST = 1e16  # sum of what is found; a multiplier is at most the highest price


@dataclass(frozen=True, eq=False)
class Quadratic:
    """prepare: (J, H, g, lam) -> (prepared, scale). solve: (prepared, g, lower, upper, lam) -> (dx, lam, solved,
    beyond), the last the largest violation of a limit that gave way. prices (n + m,): infinite for equations."""

    prepare: ca.Function
    solve: ca.Function
    prices: Array


def by_stages(name: str, made: Any, program: Program, hard: Array, options: Any) -> Quadratic:
    """Quadratic on the stages of a transcribed Problem. hard (n + m,): which limits give way last."""
    parts, prices = _stages(name, made, program, hard, options)
    given = _inputs(parts.prepare.size1_out(0), prices.size, program)
    dx, lam, _, beyond, *_ = parts.solve.call(given)
    solve = ca.Function(f"{name}_by_stages", given, [dx, lam, sound(dx, lam), beyond], {"never_inline": True})
    return Quadratic(parts.prepare, solve, prices)


def by_conic(
    name: str, made: Any, program: Program, hard: Array, qpsol: str, options: Any, of_stages: Any
) -> Quadratic:
    """Quadratic by a solver of CasADi, and by stages where that does not solve it."""
    parts, prices = _stages(name, made, program, hard, of_stages)
    J, H = _sparsities(program)
    a, b, g, lam = ca.MX.sym("J", J), ca.MX.sym("H", H), ca.MX.sym("g", H.size1()), ca.MX.sym("lam", prices.size)
    entries = ca.vertcat(a.nz[:], b.nz[:])
    prepare = ca.Function(f"{name}_prepare_{qpsol}", [a, b, g, lam], [entries, scale_of(b, g)], {"never_inline": True})
    given = _inputs(entries.numel(), prices.size, program)
    whole = _whole(name, program, qpsol, options).call(given)
    again = _again(name, program, parts)
    keep = ca.Function(f"{name}_solved", again.mx_in(), again.mx_in()[:4], {"never_inline": True})
    either = ca.Function.if_else(f"{name}_or_by_stages", keep, again)
    solve = ca.Function(f"{name}_by_{qpsol}", given, either.call([whole[2], *whole, *given]), {"never_inline": True})
    return Quadratic(prepare, solve, prices)


def sound(*columns: Any) -> Any:
    """Whether columns are of finite numbers, none of them beyond all measure."""
    return ca.norm_1(ca.vertcat(*columns)) < _LARGEST  # false of NaN, which norm_inf passes over in C


def _stages(name: str, made: Any, program: Program, hard: Array, options: Any) -> tuple[StageQp, Array]:
    """(StageQp, prices)."""
    stages, bounds = stage_program(made, program), program.bounds
    lower, upper = (np.concatenate([bounds[k + "x"], bounds[k + "g"]]) for k in ("lb", "ub"))
    prices = np.where(lower == upper, np.inf, np.where(hard, HARD, SOFT))
    equal = (lower == upper)[stages.limits]
    return stage_qp(name, stages, *_sparsities(program), prices[stages.limits], equal, options), prices


def _sparsities(program: Program) -> tuple[ca.Sparsity, ca.Sparsity]:
    return program.jac_fg.sparsity_out(3), program.hessian.sparsity_out(0)


def _inputs(prepared: int, size: int, program: Program) -> list[Any]:
    n = program.sizes[0]
    sizes = (("prepared", prepared), ("g", n), ("lower", size), ("upper", size), ("lam", size))
    return [ca.MX.sym(k, s) for k, s in sizes]


def _matrices(prepared: Any, program: Program) -> tuple[Any, Any]:
    """(J, H) from what is prepared for a solver of CasADi."""
    J, H = _sparsities(program)
    a, b = ca.vertsplit(prepared, [0, J.nnz(), J.nnz() + H.nnz()])
    return ca.MX(J, a), ca.MX(H, b)


def _whole(name: str, program: Program, qpsol: str, options: Any) -> ca.Function:
    """solve of a Quadratic by a solver of CasADi; none of its limits gives way."""
    n, m, _ = program.sizes
    J, H = _sparsities(program)
    given = _inputs(J.nnz() + H.nnz(), n + m, program)
    prepared, g, lower, upper, lam = given
    A, Q = _matrices(prepared, program)
    solver: Any = ca.conic(f"{name}_{qpsol}", qpsol, {"h": H, "a": J}, options)
    found = solver(
        h=Q, g=g, a=A, lba=lower[n:], uba=upper[n:], lbx=lower[:n], ubx=upper[:n], x0=0, lam_x0=lam[:n], lam_a0=lam[n:]
    )
    dx, new = found["x"], ca.vertcat(found["lam_x"], found["lam_a"])
    z = ca.vertcat(dx, ca.mtimes(A, dx))
    primal = ca.mmax(ca.vertcat(0, lower - z, z - upper))
    dual = ca.norm_inf(ca.mtimes(Q, dx) + g + ca.mtimes(A.T, new[n:]) + new[:n])
    length, largest = ca.norm_inf(dx), ca.norm_inf(new)
    solved = ca.logic_and(primal <= _SOLVED * (1 + length), dual <= _SOLVED * (1 + largest))
    unmet = complementarity(lower, upper, z, new)  # without it any feasible point would do, its multipliers as wanted
    solved = ca.logic_and(solved, unmet <= _SOLVED * (1 + length))
    solved = ca.logic_and(solved, sound(dx, new))
    return ca.Function(f"{name}_whole", given, [dx, new, solved, 0], {"never_inline": True})


def _again(name: str, program: Program, parts: StageQp) -> ca.Function:
    """(dx, lam, solved, beyond, *inputs of solve) -> the first four, by stages."""
    n, m, _ = program.sizes
    J, H = _sparsities(program)
    given = _inputs(J.nnz() + H.nnz(), n + m, program)
    prepared, g, lower, upper, lam = given
    found = [ca.MX.sym(f"f{k}", size) for k, size in enumerate((n, n + m, 1, 1))]
    own, _ = parts.prepare.call([*_matrices(prepared, program), g, lam])
    dx, new, _, beyond, *_ = parts.solve.call([own, g, lower, upper, lam])
    outputs = [dx, new, sound(dx, new), beyond]
    return ca.Function(f"{name}_again", [*found, *given], outputs, {"never_inline": True})
