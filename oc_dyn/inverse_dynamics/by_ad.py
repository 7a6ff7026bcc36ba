"""Inverse dynamics of any order by automatic differentiation of the order-0 method with the fewest instructions."""

from itertools import pairwise
from math import factorial

import casadi as ca

from ..lie.time_derivatives import time_derivatives
from ..registry import method
from ..series.along import time_series
from ..subexpressions import merged, put_in
from .taylor import taylor

_SOURCE = "AD: one jtimes per order along the jet (q, v, dv, ...)"


@method("inverse_dynamics", "ad_jet", kind="ad", source=_SOURCE, regroup=True, cse=False, fluid=True)
def ad_jet(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques by repeated jtimes; grows exponentially with the order.

    Arguments and results: od.describe("inverse_dynamics").
    """
    return _along_jet(model, order, q, V, W, cse=False)


@method(
    "inverse_dynamics", "ad_jet_cse", kind="ad", source=_SOURCE + ", cse after each order", regroup=True, fluid=True
)
def ad_jet_cse(model, order, q, V, W=None):
    """As ad_jet, with common subexpressions removed after each order: the strongest form with jtimes.

    Arguments and results: od.describe("inverse_dynamics").
    """
    return _along_jet(model, order, q, V, W, cse=True)


@method(
    "inverse_dynamics",
    "ad_taylor",
    kind="ad",
    source="AD: Taylor series through the instructions of order 0 (Griewank and Walther 2008, chapter 13)",
    regroup=True,
    fluid=True,
)
def ad_taylor(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques by Taylor series, quadratic in the order: the strongest AD form found.

    Arguments and results: od.describe("inverse_dynamics").
    """
    return time_series(*_torque_and_flow(model, order, q, V, W))


def _along_jet(model, order, q, V, W, cse):
    return time_derivatives(*_torque_and_flow(model, order, q, V, W), cse)


def _torque_and_flow(model, order, q, V, W):
    tau = taylor(model, 0, q, V[:2], None if W is None else W[:1])
    flow = [(q, model.configuration_rate(q, V[0])), *pairwise(V)]
    if W is not None:
        flow += pairwise(W)
    return merged(tau[0]), order, flow


@method(
    "inverse_dynamics",
    "ad_time",
    kind="ad",
    source="AD: d/dt of tau(t) along q(t), a polynomial in time, as in Ali et al. 2026, section 7",
    regroup=True,
    cse=False,
    fluid=True,
)
def ad_time(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques by repeated differentiation in time; grows exponentially.

    Arguments and results: od.describe("inverse_dynamics").
    """
    t = ca.SX.sym("t")
    symbols = [ca.SX.sym("q", *q.shape), *(ca.SX.sym("v", *x.shape) for x in V)]
    q_, V_ = symbols[0], symbols[1:]
    flow = [(q_, model.configuration_rate(q_, V_[0])), *pairwise(V_)]
    motion = _polynomial(time_derivatives(q_, order, flow, cse=False), t)
    rates = [_polynomial(V_[k:], t) for k in range(2)]
    W_ = None if W is None else [ca.SX.sym("W", *x.shape) for x in W]
    torques = [taylor(model, 0, motion, rates, None if W is None else [_polynomial(W_, t)])[0]]
    for _ in range(order):
        torques.append(ca.jacobian(torques[-1], t))
    inputs = [*symbols, *(W_ or [])]
    return put_in([*inputs, t], torques, [q, *V, *(W or []), ca.DM(0)])


def _polynomial(derivatives, t):
    """Value at time t of the polynomial with these derivatives at time zero."""
    return sum((x * t**k / factorial(k) for k, x in enumerate(derivatives[1:], 1)), derivatives[0])
