"""Time derivatives of partials, and derivatives of lam' tau + lam_dtau' dtau + ..., by jtimes along the motion.

The partials of the torques give those of their time derivatives.
With multipliers that move too, mu(t) with mu^(r-k) = lam_k k! (r-k)! / r! now, that sum is the r-th time derivative of
F = mu' tau, so that derivatives of F by q, v, dv are all that an algorithm has to give.
"""

from itertools import pairwise
from math import comb, factorial

import casadi as ca

from ..lie.jets import total
from ..lie.time_derivatives import time_derivatives
from ..subexpressions import merged
from ..working_axes.assembly import velocity_brackets


def along_motion(model, order, q, V, W, partials, flow=None):
    """Partials of the derivatives 0..order of the torques by q, v, .., [(by q, v, dv), (by q, v, dv, d2v), ...], from
    those of the torques, by jtimes along the motion V = [v, dv, ...] with cse.

    Equation:  a step e of q with the step z of v goes with e' = z - [v, e], so that for the row (P, P_0, P_1, ...) of
    one order the next one has P' - P ad(v), P + P_0', P_0 + P_1', ...
    partials may have any number of rows; flow: [(symbol, its rate)] of what else they depend on, default that of W.
    """
    nv, height = model.robot.nv, partials[0].shape[0]
    if flow is None:
        flow = [] if W is None else list(pairwise(W))
    flow = [(q, model.configuration_rate(q, V[0])), *pairwise(V), *flow]
    stacked = merged(ca.vertcat(*(ca.vec(ca.densify(x)) for x in partials)))
    derivatives = time_derivatives(stacked, order, flow, cse=True, cse_follows=True)
    split = [[ca.sparsify(x.reshape((height, nv))) for x in ca.vertsplit(d, height * nv)] for d in derivatives]
    row = [list(x) for x in zip(*split, strict=True)]  # matrix by matrix: its time derivatives
    ad = [velocity_brackets(model, v) for v in V]
    rows = [row]
    for r in range(order):
        first, *rest = row
        bracketed = [total(comb(k, l) * (first[l] @ ad[k - l]) for l in range(k + 1)) for k in range(order - r)]
        row = [
            [x - y for x, y in zip(first[1:], bracketed, strict=True)],
            *([x + y for x, y in zip(a, b[1:], strict=False)] for a, b in zip([first, *rest[:-1]], rest, strict=True)),
            rest[-1],
        ]
        rows.append(row)
    return [tuple(x[0] for x in row) for row in rows]


def gradients_along_motion(model, order, q, V, lams, W, adjoint):
    """[by q, v, ..., V[-1]] of the sum, from adjoint(model, q, v, dv, lam, W) -> (by q, by v, by dv)."""

    def gradients(q, V, M, W, flow):
        rows = [x.T for x in adjoint(model, q, V[0], V[1], M[0], W and W[0])]
        return [x.T for x in along_motion(model, order, q, V, W, rows, flow)[-1]]

    return _with_moving_multipliers(order, q, V, lams, W, gradients)


def hessians_along_motion(model, order, q, V, lams, W, hessian):
    """{(i, j): (nv, nv)}, i <= j, second derivatives of the sum by the arguments i, j of q, v, dv, ..., from
    hessian(model, q, v, dv, lam, W) -> (qq, q v, vv, q dv); where v is the rate of q.

    Equation:  with D the derivative along the motion, (D^r F)_ij = sum of r! / (k! l! (r-k-l)!) D^(r-k-l) F_(i-k)(j-l).
    """
    nv, places = model.robot.nv, _places(order)

    def hessians(q, V, M, W, flow):
        F = blocks(hessian(model, q, V[0], V[1], M[0], W and W[0]))
        stacked = merged(ca.vertcat(*(ca.vec(ca.densify(x)) for x in F.values())))
        motion = [(q, model.configuration_rate(q, V[0])), *pairwise(V), *flow]
        D = []
        for derived in time_derivatives(stacked, order, motion, cse=True, cse_follows=True):
            upper = [ca.sparsify(x.reshape((nv, nv))) for x in ca.vertsplit(derived, nv * nv)]
            upper = dict(zip(F, upper, strict=True))
            D.append({**{(j, i): x.T for (i, j), x in upper.items()}, **upper})
        return [total(w * D[d][of] for w, d, of in terms) for terms in places.values()]

    return dict(zip(places, _with_moving_multipliers(order, q, V, lams, W, hessians), strict=True))


def _places(order):
    """{(i, j): [(factor, derivative along the motion, (i, j) of the second derivative of F)]} where there are any."""
    known = {(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0)}
    out = {}
    for j in range(order + 3):
        for i in range(j + 1):
            for k in range(min(i, order) + 1):
                for l in range(min(j, order - k) + 1):
                    if (i - k, j - l) in known:
                        factor = factorial(order) // (factorial(k) * factorial(l) * factorial(order - k - l))
                        out.setdefault((i, j), []).append((factor, order - k - l, (i - k, j - l)))
    return out


def blocks(of_torque):
    """{(i, j): block} of (qq, q v, vv, q dv), arguments numbered q, v, dv."""
    return dict(zip(((0, 0), (0, 1), (1, 1), (0, 2)), of_torque, strict=True))


def _with_moving_multipliers(order, q, V, lams, W, derivatives):
    """derivatives(q, V, mu and its derivatives, W, flow of mu and W) on symbols, at the multipliers given."""
    if order == 0:
        return derivatives(q, V, lams, W, [])
    mu = [ca.SX.sym("mu", *lam.shape) for lam in lams]
    flow = [*pairwise(mu)]
    flow += [] if W is None else list(pairwise(W))
    out = derivatives(q, V, mu, W, flow)
    values = [ca.SX(lams[order - k]) / comb(order, k) for k in range(order + 1)]
    return ca.substitute([ca.SX(x) for x in out], mu, values)
