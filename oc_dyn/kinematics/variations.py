"""How the bodies move as q, v, dv, ... of a motion are varied: what partial derivatives of its time derivatives need.

All twists are seen from the root frame. As a motion of joint j is varied, all bodies beyond it move by the twist xi,
their variation; with the twist V of a body, what varies of V is xi' - ad(V) xi, at any time, so that all time
derivatives follow by Leibniz' rule.
"""

from math import comb

import casadi as ca

from ..lie.jets import total
from ..lie.se3 import ad


def variations(model, order, S, twists, by, bodies=None):
    """{body: derivatives 0..order + 1 of the variation (6, nv_i) by its joint}; S, twists: derivatives of the joint
    screws up to order + 1 and of the bodies' twists up to order, seen from the root frame. by: None for a step of q on
    the tangent space, k for derivative k of v. bodies: those wanted, default all.

    Equation:  xi' = ad(V_p) xi + S z, where z is what varies of v and V_p the twist of the parent: the variation of v
               stays zero as q steps. Of a joint of one velocity, or whose velocities are rates of q, xi = S e, e' = z.
    """
    out = {}
    for i in bodies or model.bodies:
        if model.kind[i] == "transform" or model.coordinates[i][3] == 1:
            out[i] = _of_rates(S[i], order, by)
        else:
            out[i] = _carried_by_parent(S[i], twists[model.parent[i]], order, by)
    return out


def _of_rates(S, order, by):
    if by is None:
        return S[: order + 2]
    none = ca.DM(*S[0].shape)
    return [comb(k, by + 1) * S[k - by - 1] if k > by else none for k in range(order + 2)]


def _carried_by_parent(S, V, order, by):
    xi = [S[0] if by is None else ca.DM(*S[0].shape)]
    for k in range(order + 1):
        rate = total(comb(k, l) * (ad(V[l]) @ xi[k - l]) for l in range(k + 1))
        xi.append(rate if by is None or k < by else rate + comb(k, by) * S[k - by])
    return xi
