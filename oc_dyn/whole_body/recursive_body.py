"""Kinetic energy from body-fixed twists, in which inertias are constant."""

from math import comb

import casadi as ca

from ..kinematics.recursive_body import body_twists
from ..lie.jets import total
from ..registry import method


@method(
    "kinetic_energy",
    "recursive_body",
    kind="analytic",
    source="sum over bodies of V' M V / 2, differentiated",
    regroup=True,
    fluid=True,
)
def kinetic_energy(model, order, q, V):
    """Derivatives 0..order of the kinetic energy; see od.describe("kinetic_energy").

    Equation:  T^(k) = 1/2 sum_i sum_l C(k,l) (V_i^(l))^T M_i V_i^(k-l), and armature v_i^2 / 2
    """
    twists, v = body_twists(model, order, q, V), [model.joint_v(x) for x in V]
    out = [ca.SX(0)] * (order + 1)
    for i in model.bodies:
        momenta = [model.inertia_in_fluid(i) @ x for x in twists[i]]
        for k in range(order + 1):
            moved = _half_square(twists[i], momenta, k)
            spun = model.armature[i] * _half_square([x[i] for x in v], [x[i] for x in v], k)
            out[k] = out[k] + moved + spun
    return out


def _half_square(a, b, k):
    """Derivative k of a . b / 2 where b is a symmetric matrix times a: equal products are taken once."""
    pairs = [comb(k, l) * ca.dot(a[l], b[k - l]) for l in range((k + 1) // 2)]
    middle = [0.5 * comb(k, k // 2) * ca.dot(a[k // 2], b[k // 2])] if k % 2 == 0 else []
    return total(pairs + middle)
