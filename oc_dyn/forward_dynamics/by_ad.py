"""Forward dynamics of any order by automatic differentiation, of forward or of inverse dynamics of order 0."""

from itertools import pairwise

import casadi as ca

from ..inverse_dynamics.taylor import taylor as inverse_dynamics
from ..lie.time_derivatives import time_derivatives
from ..registry import method
from ..series.along import solved_series
from ..subexpressions import merged, put_in
from .mass_solver import mass_solver
from .taylor import taylor

_SOURCE = "AD: one jtimes per order along the jet (q, v, tau, ...), lower accelerations put in afterwards"


@method(
    "forward_dynamics",
    "ad_jet",
    kind="ad",
    source=_SOURCE,
    regroup=True,
    cse=False,
)
def ad_jet(model, order, q, v, T, W=None):
    """Derivatives 0..order of the joint accelerations by repeated jtimes; grows exponentially with the order.

    Arguments and results: od.describe("forward_dynamics").
    """
    return _along_jet(model, order, q, v, T, W, cse=False)


@method(
    "forward_dynamics",
    "ad_jet_cse",
    kind="ad",
    source=_SOURCE + ", cse after each order",
    regroup=True,
)
def ad_jet_cse(model, order, q, v, T, W=None):
    """As ad_jet, with common subexpressions removed after each order; see od.describe("forward_dynamics")."""
    return _along_jet(model, order, q, v, T, W, cse=True)


def _along_jet(model, order, q, v, T, W, cse):
    q_, v_ = ca.SX.sym("q", *q.shape), ca.SX.sym("v", *v.shape)
    T_, A_ = ([ca.SX.sym(name, *v.shape) for _ in T] for name in ("T", "A"))
    W_ = None if W is None else [ca.SX.sym("W", *W[0].shape) for _ in W]
    first = taylor(model, 0, q_, v_, T_[:1], None if W is None else W_[:1])[0]
    flow = [(q_, model.configuration_rate(q_, v_)), (v_, A_[0])]
    flow += [*pairwise(A_), *pairwise(T_)]
    flow += [] if W is None else list(pairwise(W_))
    rates = time_derivatives(merged(first), order, flow, cse)
    inputs = [q_, v_, *T_, *(W_ or [])]
    values = [q, v, *T, *(W or [])]
    accelerations = []
    for k, rate in enumerate(rates):
        accelerations += put_in([*inputs, *A_[:k]], [rate], [*values, *accelerations])
    return accelerations


@method(
    "forward_dynamics",
    "ad_via_inverse",
    kind="ad",
    source="AD: jets of inverse dynamics with cse after each order, one factorised mass matrix",
    regroup=True,
    fluid=True,
)
def ad_via_inverse(model, order, q, v, T, W=None):
    """Derivatives 0..order of the joint accelerations from M d^k a = tau^(k) - b_k.

    b_k is what inverse dynamics of order k gives without the acceleration's k-th derivative.
    Arguments and results: od.describe("forward_dynamics").
    """
    q_, v_ = ca.SX.sym("q", *q.shape), ca.SX.sym("v", *v.shape)
    A_ = [ca.SX.sym("A", *v.shape) for _ in range(order + 1)]
    W_ = None if W is None else [ca.SX.sym("W", *W[0].shape) for _ in W]
    first = inverse_dynamics(model, 0, q_, [v_, A_[0]], None if W is None else W_[:1])[0]
    flow = [(q_, model.configuration_rate(q_, v_)), (v_, A_[0]), *pairwise(A_)]
    flow += [] if W is None else list(pairwise(W_))
    torques = time_derivatives(merged(first), order, flow, cse=True)
    solve = mass_solver(model, q)
    accelerations = []
    for k, tau in enumerate(torques):
        here = [q, v, *accelerations, ca.DM.zeros(*v.shape), *(W or [])]
        (bias,) = put_in([q_, v_, *A_[: k + 1], *(W_ or [])], [tau], here)
        accelerations.append(solve(T[k] - bias))
    return accelerations


@method(
    "forward_dynamics",
    "ad_taylor",
    kind="ad",
    source="AD: Taylor series through the instructions of inverse dynamics of order 0 (Griewank and Walther 2008, "
    "chapter 13), one factorised mass matrix",
    regroup=True,
    fluid=True,
)
def ad_taylor(model, order, q, v, T, W=None):
    """Derivatives 0..order of the joint accelerations, quadratic in the order: the strongest AD form found.

    At each order the torque is known but for M d^k a, which a linear pass puts into the series when a is solved for.
    Arguments and results: od.describe("forward_dynamics").
    """
    a, solve = ca.SX.sym("a", *v.shape), mass_solver(model, q)
    tau = inverse_dynamics(model, 0, q, [v, a], None if W is None else W[:1])[0]
    flow = [(q, model.configuration_rate(q, v)), (v, a), *pairwise(W or [])]
    return solved_series(merged(tau), order, flow, a, lambda k, bias: solve(T[k] - bias))
