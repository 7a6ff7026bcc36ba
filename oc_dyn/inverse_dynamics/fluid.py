"""Wrenches of a still fluid on bodies that move through it, and their time derivatives."""

from math import comb

import casadi as ca

from ..kinematics.recursive_body import body_twists
from ..lie.jets import total
from ..lie.se3 import ad


def fluid_wrenches(model, order, q, V):
    """[{body: wrench (6,) on it, in its canonical frame}, the same of the derivative, ...], orders 0..order.

    Equation:  W = -(M_A V' - ad(V)^T M_A V) - D V - d |V| V  in the frame of the link, V its twist     Fossen 2011,
               eqs. 6.42 to 6.57 for the added inertia, 6.64 to 6.66 for the drag, with angular parts first
    """
    twists = body_twists(model, order + 1, q, V[: order + 2])
    out = [{} for _ in range(order + 1)]
    for i in model.bodies:
        for k in range(order + 1):
            out[k][i] = -total([ca.SX(6, 1), *(_needed(x, twists[i], k) for x in model.fluid[i])])
    return out


def _needed(link, twists, k):
    """Derivative k of the wrench that moves one link through the fluid, seen from its body."""
    carry, added, _, _ = link
    x = [carry @ V for V in twists[: k + 2]]
    momentum = [added @ y for y in x]
    turned = total(comb(k, r) * (ad(x[r]).T @ momentum[k - r]) for r in range(k + 1))
    return carry.T @ (momentum[k + 1] - turned) + drag(link, twists, k)


def drag(link, twists, k):
    """Derivative k of D V + d |V| V of one link, seen from its body: V^(0), ..., V^(k) are twists of that."""
    carry, _, linear, quadratic = link
    x = [carry @ V for V in twists[: k + 1]]
    squares = total(comb(k, r) * (x[r] * x[k - r]) for r in range(k + 1))
    return carry.T @ (linear @ x[k] + quadratic * ca.sign(x[0]) * squares)
