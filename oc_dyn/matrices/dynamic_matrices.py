"""Mass matrix, Coriolis matrix and gravity in one: kinematics shared, and dM = C + C^T taken from an admissible C."""

from itertools import pairwise

import casadi as ca

from ..registry import method
from ..subexpressions import merged
from ..time_methods import in_time
from .composite_coriolis import composite_matrices
from .jacobian_sum import body_jacobians, coriolis_from, gravity_from, mass_matrix_from

_RATE = "; dM/dt = C + C^T"


@method(
    "dynamic_matrices",
    "jacobian_sum",
    kind="closed_form",
    source="Garofalo et al. 2013, eqs. 6, 25 and 26 to 29" + _RATE + " (remark 5)",
    coriolis=("garofalo",),
    fluid=True,
)
def jacobian_sum(model, order, q, V):
    """([M, ...], [C, ...], [g, ...]), derivatives 0..order; see od.describe("dynamic_matrices")."""
    J, twists, G = body_jacobians(model, order + 1, q, V)
    C = coriolis_from(model, order, J, twists)
    M = [mass_matrix_from(model, J, 0), *(x + x.T for x in C[:order])]
    return M, C, [gravity_from(model, J, G, n) for n in range(order + 1)]


@in_time(
    "dynamic_matrices",
    "composite",
    source="AD: composite bodies" + _RATE,
    regroup=True,
    coriolis=("christoffel",),
    fluid=True,
)
def composite_bodies(way, model, order, q, V):
    """([M, ...], [C, ...], [g, ...]), derivatives 0..order; see od.describe("dynamic_matrices")."""
    flow = [(q, model.configuration_rate(q, V[0])), *pairwise(V)]
    nv = model.robot.nv
    M, C, g = composite_matrices(model, q, V[0])
    derivatives = way(merged(ca.vertcat(ca.vec(ca.densify(C)), g)), order, flow)
    C = [x[: nv * nv].reshape((nv, nv)) for x in derivatives]
    return [M, *(x + x.T for x in C[:order])], C, [x[nv * nv :] for x in derivatives]
