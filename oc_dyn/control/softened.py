"""The program of a controller, and the same with limits that give way: what is measured cannot make it infeasible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np


@dataclass(frozen=True, eq=False)
class Program:
    """What sequential quadratic programming reads. fg: (x, p) -> f, g. jac_fg: (x, p) -> f, gradient, g, J.
    hessian: (x, p, lam_f, lam_g) -> H. bounds: {lbx, ubx, lbg, ubg}."""

    fg: ca.Function
    jac_fg: ca.Function
    hessian: ca.Function
    bounds: dict[str, Any]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of unknowns, rows, parameters."""
        return self.fg.numel_in(0), self.fg.numel_out(1), self.fg.numel_in(1)


@dataclass(frozen=True, eq=False)
class Softened:
    """program: with weight / 2 times the squares of what is beyond a limit that gives way in its objective, and without
    these limits. rows (m,), unknowns (n,): which give way. multipliers: (x, lam_x, g, lam_g) -> (lam_x, lam_g) of the
    limits, as the penalty has them."""

    program: Program
    rows: Any
    unknowns: Any
    multipliers: ca.Function


def program_of(made: Any, hessian: str, damping: float) -> Program:
    """Program of a transcribed Problem.

    damping: what is added to the diagonal of the Hessian, as a share of its largest entry. No optimum moves by it, and
    quadratic programs whose Hessian is almost singular end.
    """
    given = made.assembly.cache("sqpmethod", hessian)
    bounds = {k: np.array(v, float) for k, v in made.bounds.items()}
    H = given["nlp_hess_l"]
    inputs = H.mx_in()
    (own,) = H.call(inputs)
    most = ca.fmax(ca.mmax(ca.fabs(ca.diag(own))), 1e-12)
    damped = ca.Function("damped", inputs, [own + damping * most * ca.MX.eye(own.size1())])
    return Program(given["nlp_fg"], given["nlp_jac_fg"], damped, bounds)


def softened(made: Any, program: Program, weight: float) -> Softened | None:
    """The program with limits that give way, or None where there is none.

    These are all inequalities; dynamics and equations do not. So a quadratic program of it has one set of equations and
    no active set to find, and ends after a step.
    """
    assembly, bounds = made.assembly, program.bounds
    finite = {k: np.isfinite(v) for k, v in bounds.items()}
    rows = ~assembly.dynamics & (bounds["lbg"] < bounds["ubg"]) & (finite["lbg"] | finite["ubg"])
    unknowns = (bounds["lbx"] < bounds["ubx"]) & (finite["lbx"] | finite["ubx"])
    if not rows.any() and not unknowns.any():
        return None
    free = {
        **{k: np.where(rows, sign * np.inf, bounds[k]) for k, sign in (("lbg", -1), ("ubg", 1))},
        **{k: np.where(unknowns, sign * np.inf, bounds[k]) for k, sign in (("lbx", -1), ("ubx", 1))},
    }
    n, m, n_p = program.sizes
    x, p, lam_f, lam_g = (ca.MX.sym(k, size) for k, size in (("x", n), ("p", n_p), ("lam_f", 1), ("lam_g", m)))
    of_g, of_x = _picked(rows), _picked(unknowns)
    f, g = program.fg.call([x, p])
    fj, gradient, gj, J = program.jac_fg.call([x, p])

    def beyond(g_or_x: Any, which: str, mask: Any, places: ca.DM) -> Any:
        lower, upper = bounds[f"lb{which}"][mask], bounds[f"ub{which}"][mask]
        y = ca.mtimes(places, g_or_x)
        return ca.fmax(y - upper, 0) + ca.fmin(y - lower, 0)

    over, over_x = beyond(g, "g", rows, of_g), beyond(x, "x", unknowns, of_x)
    over_j = beyond(gj, "g", rows, of_g)
    Js = ca.mtimes(of_g, J)
    gradient = gradient + weight * (ca.mtimes(Js.T, over_j) + ca.mtimes(of_x.T, over_x))
    pushed = lam_g * ~rows + ca.mtimes(of_g.T, weight * over_j)
    (H,) = program.hessian.call([x, p, lam_f, pushed])
    active = ca.fabs(ca.sign(over_j))
    H = H + weight * (
        ca.mtimes(Js.T, ca.mtimes(ca.diag(active), Js)) + ca.diag(ca.mtimes(of_x.T, ca.fabs(ca.sign(over_x))))
    )
    relaxed = Program(
        ca.Function("soft_fg", [x, p], [f + weight / 2 * (ca.sumsqr(over) + ca.sumsqr(over_x)), g]),
        ca.Function(
            "soft_jac_fg", [x, p], [fj + weight / 2 * (ca.sumsqr(over_j) + ca.sumsqr(over_x)), gradient, gj, J]
        ),
        ca.Function("soft_hessian", [x, p, lam_f, lam_g], [H]),
        free,
    )
    lam_x, g_ = ca.MX.sym("lam_x", n), ca.MX.sym("g", m)
    whole = [lam_x * ~unknowns + weight * ca.mtimes(of_x.T, over_x)]
    whole += [lam_g * ~rows + weight * ca.mtimes(of_g.T, beyond(g_, "g", rows, of_g))]
    return Softened(relaxed, rows, unknowns, ca.Function("soft_multipliers", [x, lam_x, g_, lam_g], whole))


def _picked(mask: Any) -> ca.DM:
    """(k, size) matrix that picks the entries of a mask."""
    places = np.flatnonzero(mask)
    return ca.DM.triplet(list(range(places.size)), places.tolist(), ca.DM.ones(places.size), places.size, mask.size)
