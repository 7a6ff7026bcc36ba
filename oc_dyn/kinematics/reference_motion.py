"""Motion of the bodies and of a reference motion in body frames, and what goes from bodies to their parents."""

from math import comb

import casadi as ca

from ..lie import se3
from ..lie.jets import total
from ..lie.leibniz import carry


def reference_motion(model, order, q, V, Vr):
    """Screws, adjoints, their rates, and by body the derivatives of twist, reference twist and gravity twist."""
    top = order + 1
    S, joint_q = model.subspaces(q, V, top), model.joint_q(q)
    v, vr = [model.joint_v(x) for x in V], [model.joint_v(x) for x in Vr]
    zero = ca.DM(6, 1)
    Ad, rates = {}, {}
    twist, reference = {0: [zero] * top}, {0: [zero] * (top + 1)}
    G = {0: [ca.vertcat(0, 0, 0, -model.gravity)] + [None] * order}

    def own(i, rate, count):
        return [
            total(comb(k, l) * (S[i][k - l] @ rate[l][i]) for l in range(k + 1) if S[i][k - l] is not None)
            for k in range(count)
        ]

    for i in model.bodies:
        p = model.parent[i]
        Ad[i] = se3.Ad_inv(model.placement(i, joint_q[i]))
        x = own(i, v, top)
        rates[i] = [-se3.ad(y) for y in x]
        twist[i] = [a + b for a, b in zip(carry(Ad[i], rates[i], twist[p]), x, strict=True)]
        above = carry(Ad[i], rates[i], reference[p])
        reference[i] = [a + b for a, b in zip(above, own(i, vr, top + 1), strict=True)]
        G[i] = carry(Ad[i], rates[i], G[p])
    return S, Ad, rates, twist, reference, G


def to_parent(Ad, rates, W):
    """Derivatives of Ad^T W from those of W; each pass takes (d/dt + rate^T) of the list before."""
    out, row = [Ad.T @ W[0]], W
    while len(row) > 1:
        row = [
            row[k + 1] + total(comb(k, l) * (rates[l].T @ row[k - l]) for l in range(k + 1))
            for k in range(len(row) - 1)
        ]
        out.append(Ad.T @ row[0])
    return out
