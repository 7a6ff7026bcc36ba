"""Sequential quadratic programming as a casadi.Function: bounded work, and it tells how it ended.

The steps are those of casadi's sqpmethod. Other than there a quadratic program that was not solved is noticed, by its
own residuals, and ends the iterations, rather than lead to where nothing comes back from; and limits that have a price
may be exceeded: the merit function has that price, and the end of iterations does not wait for them.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from .program import Program, complementarity
from .quadratic import Quadratic

RUNNING, CONVERGED, FAILED = 0, 1, 2
OPTIONS = {  # of sqpmethod, with its defaults
    "tol_pr": 1e-6, "tol_du": 1e-6, "min_step_size": 1e-10, "max_iter_ls": 3, "c1": 1e-4, "beta": 0.8, "min_iter": 0,
}  # fmt: skip
_SATURATED = 0.999  # of its price: a multiplier of a limit that has given way


def sqp(name: str, program: Program, iterations: int, qp: Quadratic, options: Any) -> ca.Function:
    """casadi.Function (x, lam_x, lam_g, p) -> (x, lam_x, lam_g, f, g, ended, violation, iterations, beyond).

    ended: RUNNING at the limit of iterations, CONVERGED, or FAILED where a quadratic program was not solved; then x and
    the multipliers are those before it. violation: largest of a bound that does not give way. beyond: that of a limit
    that gave way in the last quadratic program.
    """
    n, m, n_p = program.sizes
    one = _Iteration(name, program, qp, {**OPTIONS, **options}).made()
    x, lam_x, lam_g, p = (ca.MX.sym(k, size) for k, size in (("x", n), ("lam_x", n), ("lam_g", m), ("p", n_p)))
    state = [ca.MX.sym(f"s{k}", one.size1_in(k)) for k in range(6)]
    idle = ca.Function(f"{name}_idle", [*state, p], state)
    further = ca.Function.if_else(f"{name}_next", one, idle)
    now = [x, ca.vertcat(lam_x, lam_g), *(ca.MX.zeros(size) for size in (1, m, 1, 4))]
    for k in range(iterations):
        now = one.call([*now, p]) if k == 0 else further.call([now[5][0] == RUNNING, *now, p])
    lam, ended = now[1], now[5]
    over = violation(program.bounds, now[0], now[3], np.isinf(qp.prices))
    outputs = [now[0], lam[:n], lam[n:], now[2], now[3], ended[0], over, ended[1], ended[2]]
    return ca.Function(name, [x, lam_x, lam_g, p], outputs)


def violations(bounds: Any, x: Any, g: Any) -> Any:
    """(n + m,) how far unknowns and rows are beyond a bound, 0 where they are not."""
    lower, upper = (np.concatenate([bounds[k + "x"], bounds[k + "g"]]) for k in ("lb", "ub"))
    z = ca.vertcat(x, g)
    over = [ca.if_else(y <= 0, 0, y) for y in (lower - z, z - upper)]  # of NaN it is NaN
    return sum(over)


def violation(bounds: Any, x: Any, g: Any, which: Any = None) -> Any:
    """Largest violation of a bound, of all or of some, 0 where there is none; infinite where a row is NaN."""
    over = violations(bounds, x, g)
    own = over if which is None else over[np.flatnonzero(which).tolist()]
    return ca.if_else(ca.norm_1(over) < ca.inf, ca.mmax(ca.vertcat(0, own)), ca.inf)


class _Iteration:
    """Builds Functions (x, lam, f, g, sigma, [ended; count; beyond; scale], p) -> the first six after an iteration."""

    def __init__(self, name: str, program: Program, qp: Quadratic, options: Any) -> None:
        self.name, self.program, self.qp, self.options = name, program, qp, options
        self.lower, self.upper = (
            np.concatenate([program.bounds[k + "x"], program.bounds[k + "g"]]) for k in ("lb", "ub")
        )

    def made(self) -> ca.Function:
        bounds, (n, m, n_p), options = self.program.bounds, self.program.sizes, self.options
        x, lam, f_old, g_old, sigma, ended, p = (
            ca.MX.sym(f"s{k}", size) for k, size in enumerate((n, n + m, 1, m, 1, 4, n_p))
        )
        f, gradient, g, J = self.program.jac_fg.call([x, p])
        residual = gradient + ca.mtimes(J.T, lam[n:]) + lam[:n]
        over = violations(bounds, x, g)
        if np.isfinite(self.qp.prices).any():
            gave = ca.fabs(lam) >= _SATURATED * ended[3] * ca.DM(self.qp.prices)
            over = ca.if_else(ca.logic_and(gave, ended[3] > 0), 0, over)
        settled = ca.logic_and(ca.mmax(over) < options["tol_pr"], ca.norm_inf(residual) < options["tol_du"])
        unmet = complementarity(self.lower, self.upper, ca.vertcat(x, g), lam)
        settled = ca.logic_and(settled, unmet < options["tol_du"])
        settled = ca.logic_and(settled, ended[1] >= options["min_iter"])
        step = self._step(J.sparsity())
        given = [x, lam, f, g, sigma, ended, p, gradient, J]
        symbols = [ca.MX.sym(f"i{k}", y.sparsity()) for k, y in enumerate(given)]
        stopped = [*symbols[:5], ca.vertcat(CONVERGED, symbols[5][1:])]
        stay = ca.Function(f"{self.name}_stay", symbols, stopped)
        both = ca.Function.if_else(f"{self.name}_or_stay", stay, step)
        inputs = [x, lam, f_old, g_old, sigma, ended, p]
        return ca.Function(f"{self.name}_iteration", inputs, both.call([settled, *given]))

    def _step(self, sparsity: Any) -> ca.Function:
        """Function (x, lam, f, g, sigma, ended, p, gradient, J) -> (x, lam, f, g, sigma, ended): one program."""
        (n, m, n_p), options = self.program.sizes, self.options
        given = [ca.MX.sym(f"s{k}", size) for k, size in enumerate((n, n + m, 1, m, 1, 4, n_p, n))]
        x, lam, f, g, sigma, ended, p, gradient = given
        J = ca.MX.sym("J", sparsity)
        of_lagrangian: Any = self.program.hessian
        (H,) = of_lagrangian.call([x, p, 1, lam[n:]])
        z = ca.vertcat(x, g)
        prepared, scale = self.qp.prepare.call([J, H, gradient, lam])
        dx, new, solved, beyond = self.qp.solve.call([prepared, gradient, self.lower - z, self.upper - z, lam])
        length, largest = ca.norm_inf(dx), ca.norm_inf(new)
        sigma_next = ca.fmax(sigma, 1.01 * largest)
        infeasible = self._penalty(x, g, sigma_next, scale)
        merit, slope = f + infeasible, ca.dot(dx, gradient) - infeasible
        t, f_new, g_new = self._search().call([x, dx, p, merit, slope, sigma_next, scale])
        small = length <= options["min_step_size"]
        end = ca.if_else(solved, ca.if_else(small, CONVERGED, RUNNING), FAILED)
        after = [x + t * dx, lam + t * (new - lam), f_new, g_new, sigma_next]
        out = [ca.if_else(solved, a, b) for a, b in zip(after, (x, lam, f, g, sigma), strict=True)]
        out.append(ca.vertcat(end, ended[1] + 1, beyond, scale))
        return ca.Function(f"{self.name}_step", [*given, J], out)

    def _penalty(self, x: Any, g: Any, sigma: Any, scale: Any) -> Any:
        """Violations, at the price of the merit function or, where it is lower, of a limit that gives way."""
        prices, over = self.qp.prices, violations(self.program.bounds, x, g)
        if np.isinf(prices).all():
            return sigma * ca.sum1(over)
        weights = ca.if_else(scale * ca.DM(prices) < sigma, scale * ca.DM(np.where(np.isinf(prices), 0, prices)), sigma)
        return ca.dot(weights, over)

    def _search(self, k: int = 0) -> ca.Function:
        """Function (x, dx, p, merit, slope, sigma, scale) -> (t, f, g): the first length that does, or the last that is
        tried."""
        (n, _, n_p), options, name = self.program.sizes, self.options, self.name
        given = [ca.MX.sym(f"i{i}", size) for i, size in enumerate((n, n, n_p, 1, 1, 1, 1))]
        x, dx, p, merit, slope, sigma, scale = given
        t = options["beta"] ** k
        f, g = self.program.fg.call([x + t * dx, p])
        if k + 1 >= max(options["max_iter_ls"], 1):
            return ca.Function(f"{name}_search{k}", given, [ca.MX(t), f, g])
        candidate = f + self._penalty(x + t * dx, g, sigma, scale)
        enough = candidate <= merit + t * options["c1"] * slope
        symbols = [*(ca.MX.sym(f"j{i}", y.size1()) for i, y in enumerate(given)), ca.MX.sym("f")]
        symbols.append(ca.MX.sym("g", g.numel()))
        take = ca.Function(f"{name}_take{k}", symbols, [ca.MX(t), *symbols[-2:]])
        less = ca.Function(f"{name}_less{k}", symbols, self._search(k + 1).call(symbols[:-2]))
        either = ca.Function.if_else(f"{name}_either{k}", take, less)
        return ca.Function(f"{name}_search{k}", given, either.call([enough, *given, f, g]))
