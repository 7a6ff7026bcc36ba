"""Partial derivatives of the dynamic matrices by automatic differentiation."""

from typing import Any

import casadi as ca

from ..inverse_dynamics.taylor import taylor
from ..matrices.by_ad import tangent_jacobian
from ..matrices.composite import composite
from ..matrices.coriolis_choice import coriolis_matrix
from ..model.canonical import with_parameters
from ..registry import method
from ..subexpressions import merged

_OF = "AD: Jacobians of composite bodies (M), composite_coriolis or spatial_admissible (C) and taylor at rest (g)"
_FACTS: dict[str, Any] = {"kind": "ad", "source": _OF, "coriolis": ("christoffel", "garofalo")}


@method("matrix_partials", "ad", **_FACTS)
def matrix_partials(model, q, v, coriolis):
    """(dM_dq, dC_dq, dC_dv, dg_dq); see od.describe("matrix_partials")."""
    M, C, g = (_column(x) for x in _matrices(model, q, v, coriolis))
    by_q = (tangent_jacobian(model, q, x) for x in (M, C, g))
    M_q, C_q, g_q = (ca.sparsify(x) for x in by_q)
    return [M_q, C_q, ca.jacobian(C, v), g_q]


@method("matrix_parameter_partials", "ad", **_FACTS)
def matrix_parameter_partials(model, q, v, coriolis):
    """(dM_dparams, dC_dparams, dg_dparams); see od.describe("matrix_parameter_partials")."""
    params = ca.SX.sym("params", 10 * len(model.robot.bodies))
    return [ca.jacobian(_column(x), params) for x in _matrices(with_parameters(model, params), q, v, coriolis)]


def _matrices(model, q, v, coriolis):
    rest = ca.DM.zeros(model.robot.nv)
    return composite(model, q), coriolis_matrix(model, q, v, coriolis), taylor(model, 0, q, [rest, rest])[0]


def _column(x):
    return merged(ca.vec(ca.densify(x)))
