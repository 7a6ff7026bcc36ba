"""Inverse dynamics of any order by automatic differentiation of the order-0 method with the fewest instructions."""

import casadi as ca

from ..lie.along import time_derivatives
from ..registry import method
from .taylor import taylor

_SOURCE = "AD: one jtimes per order along the jet (q, v, dv, ...)"


@method("inverse_dynamics", "ad_jet", kind="ad", source=_SOURCE, regroup=True, cse=False)
def ad_jet(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques by repeated jtimes; grows exponentially with the order."""
    return _along_jet(model, order, q, V, W, cse=False)


@method("inverse_dynamics", "ad_jet_cse", kind="ad", source=_SOURCE + ", cse after each order", regroup=True)
def ad_jet_cse(model, order, q, V, W=None):
    """As ad_jet, with common subexpressions removed after each order: the strongest AD form found."""
    return _along_jet(model, order, q, V, W, cse=True)


def _along_jet(model, order, q, V, W, cse):
    tau = taylor(model, 0, q, V[:2], None if W is None else W[:1])
    flow = [(q, model.configuration_rate(q, V[0])), *zip(V[:-1], V[1:], strict=True)]
    if W is not None:
        flow += zip(W[:-1], W[1:], strict=True)
    return time_derivatives(ca.cse(tau[0]), order, flow, cse)
