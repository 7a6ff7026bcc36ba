"""Sequential quadratic programming as a casadi.Function: bounded work, and it tells how it ended.

The steps are those of casadi's sqpmethod. Other than there a quadratic program that was not solved is noticed, by its
own residuals, and ends the iterations, rather than lead to where nothing comes back from.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from .softened import Program

RUNNING, CONVERGED, FAILED = 0, 1, 2
OPTIONS = {  # of sqpmethod, with its defaults
    "tol_pr": 1e-6, "tol_du": 1e-6, "min_step_size": 1e-10, "max_iter_ls": 3, "c1": 1e-4, "beta": 0.8, "min_iter": 0,
}  # fmt: skip
_SOLVED = 1e-5  # residuals of a quadratic program that counts as solved, relative to its multipliers and its step


def sqp(name: str, program: Program, iterations: int, qpsol: str, qpsol_options: Any, options: Any) -> ca.Function:
    """casadi.Function (x, lam_x, lam_g, p) -> (x, lam_x, lam_g, f, g, ended, violation, iterations).

    ended: RUNNING at the limit of iterations, CONVERGED, or FAILED where a quadratic program was not solved; then x and
    the multipliers are those before it. violation: largest of a bound.
    """
    n, m, n_p = program.sizes
    one = _iteration(name, program, qpsol, qpsol_options, {**OPTIONS, **options})
    x, lam_x, lam_g, p = (ca.MX.sym(k, size) for k, size in (("x", n), ("lam_x", n), ("lam_g", m), ("p", n_p)))
    state = [ca.MX.sym(f"s{k}", one.size1_in(k)) for k in range(6)]
    idle = ca.Function(f"{name}_idle", [*state, p], state)
    further = ca.Function.if_else(f"{name}_next", one, idle)
    now = [x, ca.vertcat(lam_x, lam_g), *(ca.MX.zeros(size) for size in (1, m, 1, 2))]
    for k in range(iterations):
        now = one.call([*now, p]) if k == 0 else further.call([now[5][0] == RUNNING, *now, p])
    lam, ended = now[1], now[5]
    over = violation(program.bounds, now[0], now[3])
    outputs = [now[0], lam[:n], lam[n:], now[2], now[3], ended[0], over, ended[1]]
    return ca.Function(name, [x, lam_x, lam_g, p], outputs)


def violation(bounds: Any, x: Any, g: Any) -> Any:
    """Largest violation of a bound, 0 where there is none."""
    over = ca.vertcat(bounds["lbg"] - g, g - bounds["ubg"], bounds["lbx"] - x, x - bounds["ubx"])
    kept = np.flatnonzero(np.isfinite(np.concatenate([bounds[k] for k in ("lbg", "ubg", "lbx", "ubx")])))
    return ca.mmax(ca.vertcat(0, over[kept.tolist()]))


def _iteration(name: str, program: Program, qpsol: str, qpsol_options: Any, options: Any) -> ca.Function:
    """Function (x, lam, f, g, sigma, [ended; count], p) -> the same after an iteration."""
    bounds, (n, m, n_p) = program.bounds, program.sizes
    x, lam, f_old, g_old, sigma, ended, p = (
        ca.MX.sym(f"s{k}", size) for k, size in enumerate((n, n + m, 1, m, 1, 2, n_p))
    )
    f, gradient, g, J = program.jac_fg.call([x, p])
    residual = gradient + ca.mtimes(J.T, lam[n:]) + lam[:n]
    settled = ca.logic_and(violation(bounds, x, g) < options["tol_pr"], ca.norm_inf(residual) < options["tol_du"])
    settled = ca.logic_and(settled, ended[1] >= options["min_iter"])
    step = _step(name, program, J.sparsity(), qpsol, qpsol_options, options)
    given = [x, lam, f, g, sigma, ended, p, gradient, J]
    symbols = [ca.MX.sym(f"i{k}", y.sparsity()) for k, y in enumerate(given)]
    stay = ca.Function(f"{name}_stay", symbols, [*symbols[:5], ca.vertcat(CONVERGED, symbols[5][1])])
    both = ca.Function.if_else(f"{name}_or_stay", stay, step)
    return ca.Function(f"{name}_iteration", [x, lam, f_old, g_old, sigma, ended, p], both.call([settled, *given]))


def _step(name: str, program: Program, sparsity: Any, qpsol: str, qpsol_options: Any, options: Any) -> ca.Function:
    """Function (x, lam, f, g, sigma, ended, p, gradient, J) -> (x, lam, f, g, sigma, ended): a quadratic program."""
    bounds, (n, m, n_p) = program.bounds, program.sizes
    given = [ca.MX.sym(f"s{k}", size) for k, size in enumerate((n, n + m, 1, m, 1, 2, n_p, n))]
    x, lam, f, g, sigma, ended, p, gradient = given
    J = ca.MX.sym("J", sparsity)
    of_lagrangian: Any = program.hessian
    (H,) = of_lagrangian.call([x, p, 1, lam[n:]])
    qp: Any = ca.conic(f"{name}_qp", qpsol, {"h": H.sparsity(), "a": sparsity}, qpsol_options)
    found = qp(
        h=H, g=gradient, a=J, lba=bounds["lbg"] - g, uba=bounds["ubg"] - g, lbx=bounds["lbx"] - x,
        ubx=bounds["ubx"] - x, x0=0, lam_x0=lam[:n], lam_a0=lam[n:],
    )  # fmt: skip
    dx, new = found["x"], ca.vertcat(found["lam_x"], found["lam_a"])
    primal = violation(bounds, x + dx, g + ca.mtimes(J, dx))
    dual = ca.norm_inf(ca.mtimes(H, dx) + gradient + ca.mtimes(J.T, new[n:]) + new[:n])
    length, largest = ca.norm_inf(dx), ca.norm_inf(new)
    solved = ca.logic_and(primal <= _SOLVED * (1 + length), dual <= _SOLVED * (1 + largest))
    sigma_next = ca.fmax(sigma, 1.01 * largest)
    infeasible = _sum_of_violations(bounds, x, g)
    merit, slope = f + sigma_next * infeasible, ca.dot(dx, gradient) - sigma_next * infeasible
    t, f_new, g_new = _search(name, program, options).call([x, dx, p, merit, slope, sigma_next])
    small = length <= options["min_step_size"]
    end = ca.if_else(solved, ca.if_else(small, CONVERGED, RUNNING), FAILED)
    after = [x + t * dx, lam + t * (new - lam), f_new, g_new, sigma_next]
    out = [ca.if_else(solved, a, b) for a, b in zip(after, (x, lam, f, g, sigma), strict=True)]
    return ca.Function(f"{name}_step", [*given, J], [*out, ca.vertcat(end, ended[1] + 1)])


def _sum_of_violations(bounds: Any, x: Any, g: Any) -> Any:
    z, lower, upper = ca.vertcat(x, g), *(np.concatenate([bounds[k + "x"], bounds[k + "g"]]) for k in ("lb", "ub"))
    low, up = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
    return ca.sum1(ca.fmax(0, lower[low] - z[low.tolist()])) + ca.sum1(ca.fmax(0, z[up.tolist()] - upper[up]))


def _search(name: str, program: Program, options: Any, k: int = 0) -> ca.Function:
    """Function (x, dx, p, merit, slope, sigma) -> (t, f, g): the first length that does, or the last that is tried."""
    n, _, n_p = program.sizes
    given = [ca.MX.sym(f"i{i}", size) for i, size in enumerate((n, n, n_p, 1, 1, 1))]
    x, dx, p, merit, slope, sigma = given
    t = options["beta"] ** k
    f, g = program.fg.call([x + t * dx, p])
    if k + 1 >= max(options["max_iter_ls"], 1):
        return ca.Function(f"{name}_search{k}", given, [ca.MX(t), f, g])
    candidate = f + sigma * _sum_of_violations(program.bounds, x + t * dx, g)
    enough = candidate <= merit + t * options["c1"] * slope
    symbols = [*(ca.MX.sym(f"j{i}", y.size1()) for i, y in enumerate(given)), ca.MX.sym("f"), ca.MX.sym("g", g.numel())]
    take = ca.Function(f"{name}_take{k}", symbols, [ca.MX(t), symbols[6], symbols[7]])
    shorter = _search(name, program, options, k + 1)
    less = ca.Function(f"{name}_less{k}", symbols, shorter.call(symbols[:6]))
    either = ca.Function.if_else(f"{name}_either{k}", take, less)
    return ca.Function(f"{name}_search{k}", given, either.call([enough, *given, f, g]))
