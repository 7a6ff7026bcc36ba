"""Mass matrix by automatic differentiation: the Jacobian of inverse dynamics by the acceleration."""

import casadi as ca

from ..inverse_dynamics.taylor import taylor
from ..lie.along import time_derivatives
from ..registry import method


@method(
    "mass_matrix",
    "ad",
    kind="ad",
    source="AD: Jacobian of inverse dynamics by dv, then jtimes along the motion with cse",
    regroup=True,
)
def ad(model, order, q, V):
    """Derivatives 0..order of the mass matrix; see the quantity."""
    nv = model.robot.nv
    a = ca.SX.sym("a", nv)
    M = ca.jacobian(taylor(model, 0, q, [ca.SX.zeros(nv), a])[0], a)
    flow = [(q, model.configuration_rate(q, V[0])), *zip(V[:-1], V[1:], strict=True)] if order else []
    return [x.reshape((nv, nv)) for x in time_derivatives(ca.vec(ca.densify(M)), order, flow, cse=True)]
