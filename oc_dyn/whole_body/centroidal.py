"""Momentum about the centre of mass: its matrix and its partial derivatives, by composite bodies.

All is seen from the point where the centre of mass c now is, in root axes. That point stays, c does not: what is about
c differs by -c x p, p the linear momentum, whose derivatives count though c is zero.
"""

from math import comb
from typing import Any

import casadi as ca

from ..inverse_dynamics.recursive_spatial import inertias
from ..kinematics.recursive_body import jacobian, padded
from ..kinematics.recursive_spatial import forward_kinematics
from ..kinematics.variations import variations
from ..lie import se3
from ..lie.jets import total
from ..lie.leibniz import product_derivative
from ..lie.se3 import force_cross
from ..lie.so3 import skew
from ..model.inertia import casadi_value
from ..registry import method

_FACTS: dict[str, Any] = {"kind": "analytic", "regroup": True}


@method(
    "centroidal_momentum_matrix",
    "composite",
    source="Orin, Goswami and Lee 2013: composite bodies seen from the centre of mass; time derivatives as in Ali et "
    "al. 2026, Algorithm 1 and eq. 61",
    **_FACTS,
)
def centroidal_momentum_matrix(model, order, q, V):
    """Derivatives 0..order of A (6, nv); see od.describe("centroidal_momentum_matrix"). Cost O(n order^2).

    Equation:  column j of A is MA_j S_j, MA_j the inertia of all bodies beyond joint j, about the centre of mass
    """
    S, _, _, M = _composites(model, order, q, padded(model, V))
    H = [jacobian(model, {i: product_derivative(M[i], S[i], k) for i in model.bodies}) for k in range(order + 1)]
    c = _com_path([product_derivative([x[3:, :] for x in H], V, k) for k in range(order)], model)
    return [_about_com(H, c, k) for k in range(order + 1)]


@method(
    "centroidal_momentum_matrix_partials",
    "composite",
    source="this toolkit: variations of spatial momenta; order 1 as in Singh et al. 2023, eqs. 12 and 13, without "
    "gravity",
    **_FACTS,
)
def centroidal_partials(model, order, q, V):
    """Partials of derivatives 0..order of h = A v, [(by q, v), (by q, v, dv), ...]; see
    od.describe("centroidal_momentum_matrix_partials"). Cost O(n order^3).

    Equation:  of the momentum Pi_j of all bodies beyond joint j, which its variation xi moves, xi x Pi_j + MA_j xi'
               varies, and MA_j xi / m of the centre of mass
    """
    S, twists, own, M = _composites(model, order, q, padded(model, V))
    own = {i: [product_derivative(own[i], twists[i], k) for k in range(order + 1)] for i in model.bodies}
    momenta = _summed(model, own)
    p = [total(momenta[i][k] for i in model.children[0])[3:] for k in range(order + 1)]
    c = _com_path(p[:order], model)
    found = {}
    for by in (None, *range(order + 1)):
        xi = variations(model, order, S, twists, by)
        of_h, of_c = [], []
        for k in range(order + 1):
            moved = {i: product_derivative([force_cross(x) for x in momenta[i]], xi[i], k) for i in model.bodies}
            driven = {i: product_derivative(M[i], xi[i][1:], k) for i in model.bodies}
            arms = {i: product_derivative(M[i], xi[i], k) / _mass(model) for i in model.bodies}
            of_h.append(jacobian(model, {i: moved[i] + driven[i] for i in model.bodies}))
            of_c.append(jacobian(model, arms)[3:, :])
        turned = [product_derivative([skew(x) for x in p], of_c, k) for k in range(order + 1)]
        found[by] = [_about_com(of_h, c, k) + ca.vertcat(x, ca.SX(*x.shape)) for k, x in enumerate(turned)]
    return [[ca.sparsify(found[by][k]) for by in (None, *range(k + 1))] for k in range(order + 1)]


def _composites(model, order, q, V):
    """Derivatives, about where the centre of mass now is, of the joint screws and twists, as far as V goes, and of the
    inertias of the bodies and of all bodies beyond a joint, 0..order."""
    C = _poses(model, q)
    _, S, twists = forward_kinematics(model, len(V) - 1, q, V, lambda *_: C)
    own = {i: inertias(model, i, C, twists, order) for i in model.bodies}
    return S, twists, own, _summed(model, own)


def _summed(model, own):
    """{body: sums over it and all bodies beyond} of lists of derivatives."""
    out = {}
    for i in model.reversed_bodies:
        out[i] = [total(x) for x in zip(own[i], *(out[c] for c in model.children[i]), strict=True)]
    return out


def _about_com(H, c, k):
    """Derivative k of what is about c, from those of momenta (6, n) about where it now is."""
    arm = total(comb(k, l) * (skew(c[l]) @ H[k - l][3:, :]) for l in range(1, k + 1)) if k else ca.DM(3, 1)
    return ca.vertcat(H[k][:3, :] - arm, H[k][3:, :])


def _com_path(p, model):
    """Derivatives of the centre of mass, seen from where it now is, from those of the linear momentum."""
    return [ca.DM(3, 1), *(x / _mass(model) for x in p)]


def _mass(model):
    return total(x.mass for x in model.inertia)


def _poses(model, q):
    """As body_poses, seen from the centre of mass in root axes; by way of the first body, as a robot kilometres from
    the root's origin would lose digits about that."""
    q = model.joint_q(q)
    start, ground = model.placement(1, q[1])[1], model.inertia[0]
    poses = {0: (ca.DM.eye(3), -start)}
    for i in model.bodies:
        R, p = model.placement(i, q[i])
        first = i == 1  # exactly, as a difference of the same
        poses[i] = (R, ca.DM(3, 1)) if first else se3.compose(poses[model.parent[i]], (R, p))
    moment = casadi_value(ground.moment) + ground.mass * poses[0][1]
    for i in model.bodies:
        R, p = poses[i]
        moment = moment + R @ casadi_value(model.inertia[i].moment) + model.inertia[i].mass * p
    return {i: (R, p - moment / _mass(model)) for i, (R, p) in poses.items()}
