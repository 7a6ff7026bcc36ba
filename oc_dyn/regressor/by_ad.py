"""Regressors by automatic differentiation: Jacobians of torques by the inertial parameters."""

from itertools import pairwise

import casadi as ca

from ..inverse_dynamics.taylor import taylor
from ..matrices.composite import composite
from ..matrices.coriolis_choice import coriolis_matrix
from ..model.canonical import with_parameters
from ..subexpressions import merged
from ..time_methods import in_time

_PARAMETERS = " by the inertial parameters"


@in_time("joint_torque_regressor", source="AD: Jacobian of inverse_dynamics/taylor" + _PARAMETERS)
def joint_torque_regressor(way, model, order, q, V):
    """Derivatives 0..order of Y (nv, 10 bodies); see od.describe("joint_torque_regressor")."""
    params = ca.SX.sym("params", 10 * len(model.robot.bodies))
    torque = taylor(with_parameters(model, params), 0, q, V[:2])[0]
    return _along(way, model, order, q, [V], ca.jacobian(torque, params))


@in_time(
    "slotine_li_regressor",
    source="AD: Jacobian of M dvr + C vr + g" + _PARAMETERS,
    coriolis=("christoffel", "garofalo"),
)
def slotine_li_regressor(way, model, order, q, V, Vr, coriolis):
    """Derivatives 0..order of Ys (nv, 10 bodies); see od.describe("slotine_li_regressor"). M and C by composite bodies,
    Garofalo's C by spatial_admissible, g by inverse dynamics at rest."""
    params = ca.SX.sym("params", 10 * len(model.robot.bodies))
    heavy = with_parameters(model, params)
    rest = ca.DM.zeros(model.robot.nv)
    C = coriolis_matrix(heavy, q, V[0], coriolis)
    force = composite(heavy, q) @ Vr[1] + C @ Vr[0] + taylor(heavy, 0, q, [rest, rest])[0]
    return _along(way, model, order, q, [V, Vr], ca.jacobian(force, params))


def _along(way, model, order, q, curves, Y):
    flow = [(q, model.configuration_rate(q, curves[0][0]))]
    flow += [pair for curve in curves for pair in pairwise(curve)]
    derivatives = way(merged(Y.nz[:] if Y.nnz() else ca.SX(0, 1)), order, flow)
    return [ca.SX(Y.sparsity(), x) for x in derivatives]
