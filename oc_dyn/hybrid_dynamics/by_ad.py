"""Hybrid dynamics of any order by automatic differentiation of inverse dynamics, solved order by order."""

from itertools import pairwise

import casadi as ca

from ..inverse_dynamics.by_ad import ad_jet_cse
from ..inverse_dynamics.taylor import taylor as inverse_dynamics
from ..matrices.composite import composite
from ..registry import method
from ..series.along import solved_series
from ..subexpressions import merged, put_in
from .known_rows import by_block


@method(
    "hybrid_dynamics",
    "ad_jet",
    kind="ad",
    source="AD of inverse dynamics along the jet with cse; the highest acceleration of each order solved for by blocks",
    regroup=True,
)
def ad_jet(model, order, q, v, A, T, prescribed, W=None):
    """Derivatives 0..order of all joint accelerations and torques, ([dv, ...], [tau, ...]); see
    od.describe("hybrid_dynamics") and hybrid_spatial for A, T. Derivative k of the torques is M dv^(k) and what lower
    orders make."""
    nv, bodies = model.robot.nv, len(model.robot.bodies)
    x, V = ca.SX.sym("q", model.robot.nq), [ca.SX.sym("v", nv) for _ in range(order + 2)]
    F = None if W is None else [ca.SX.sym("w", 6, bodies) for _ in range(order + 1)]
    tau = ad_jet_cse(model, order, x, V, F)
    complete = by_block(composite(model, q), prescribed)
    known, accelerations, torques = [v], [], []
    for k in range(order + 1):
        without = ca.substitute(tau[k], V[k + 1], ca.SX.zeros(nv))
        symbols = [x, *V[: k + 1], *(F or [])[: k + 1]]
        (h,) = put_in(symbols, [without], [q, *known, *(W or [])[: k + 1]])
        a, t = complete(h, A[k], T[k])
        known.append(a)
        accelerations.append(a)
        torques.append(t)
    return accelerations, torques


@method(
    "hybrid_dynamics",
    "ad_taylor",
    kind="ad",
    source="AD: Taylor series through the instructions of inverse dynamics of order 0 (Griewank and Walther 2008, "
    "chapter 13); accelerations as ad_jet",
    regroup=True,
)
def ad_taylor(model, order, q, v, A, T, prescribed, W=None):
    """As ad_jet, quadratic in the order; see od.describe("hybrid_dynamics") and forward_dynamics/ad_taylor."""
    a, torques = ca.SX.sym("a", model.robot.nv), []
    complete = by_block(composite(model, q), prescribed)
    tau = inverse_dynamics(model, 0, q, [v, a], None if W is None else W[:1])[0]
    flow = [(q, model.configuration_rate(q, v)), (v, a), *pairwise(W or [])]

    def solve(k, h):
        acceleration, torque = complete(h, A[k], T[k])
        torques.append(torque)
        return acceleration

    return solved_series(merged(tau), order, flow, a, solve), torques
