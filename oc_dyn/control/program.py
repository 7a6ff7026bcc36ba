"""The nonlinear program of a controller, as Functions."""

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


def complementarity(lower: Any, upper: Any, z: Any, lam: Any) -> Any:
    """Largest of multipliers times the distance of z from the bounds that they are of, at most 1, over the multipliers.

    It is large where a multiplier has the wrong sign, or its bound is not active.
    """
    above = ca.fmax(lam, 0) * ca.fmin(upper - z, 1)
    below = ca.fmax(-lam, 0) * ca.fmin(z - lower, 1)
    return ca.mmax(ca.vertcat(0, above, below)) / (1 + ca.norm_inf(lam))
