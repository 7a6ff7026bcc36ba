"""Matrices of the equations of motion as sums over the bodies, with the Jacobians of their body-fixed twists."""

from math import comb

import casadi as ca

from ..lie.jets import total
from ..lie.leibniz import carry
from ..lie.se3 import Ad_inv, ad
from ..registry import method
from ..working_axes.assembly import armatures, in_columns
from .closed_form import coefficients

_SOURCE = "Garofalo et al. 2013, sections II, V and VI"


@method("mass_matrix", "jacobian_sum", kind="closed_form", source=_SOURCE + ", eq. 6a", fluid=True)
def mass_matrix(model, order, q, V):
    """Derivatives 0..order of the mass matrix; see od.describe("mass_matrix").

    Equation:  M^(k) = sum_i sum_l C(k,l) (J_i^(l))^T M_i J_i^(k-l)
    """
    J, _, _ = body_jacobians(model, order, q, V)
    return [mass_matrix_from(model, J, k) for k in range(order + 1)]


@method(
    "coriolis_matrix",
    "jacobian_sum",
    kind="closed_form",
    source=_SOURCE + ", eq. 6b",
    coriolis=("garofalo",),
    fluid=True,
)
def coriolis_matrix(model, order, q, V):
    """Derivatives 0..order of the Coriolis matrix; see od.describe("coriolis_matrix"). Admissible.

    Equation:  C = sum_i J_i^T ((M_i ad(V_i) - ad(V_i)^T M_i) J_i + M_i J_i')
    """
    J, twists, _ = body_jacobians(model, order + 1, q, V)
    return coriolis_from(model, order, J, twists)


@method("gravity", "jacobian_sum", kind="closed_form", source=_SOURCE + ", eq. 6c", regroup=True)
def gravity(model, order, q, V):
    """Derivatives 0..order of the gravity torques; see od.describe("gravity").

    Equation:  g = sum_i J_i^T M_i G_i;  G_i, the ground's acceleration against gravity, is seen from body i
    """
    J, _, G = body_jacobians(model, order, q, V)
    return [gravity_from(model, J, G, n) for n in range(order + 1)]


@method("bias", "jacobian_sum", kind="closed_form", source=_SOURCE + ", eqs. 4, 6", regroup=True)
def bias(model, order, q, V):
    """Derivatives 0..order of the bias torques; see od.describe("bias").

    Equation:  h = sum_i J_i^T (M_i (J_i' v + G_i) - ad(V_i)^T M_i V_i)                          (2), (4)
    """
    J, twists, G = body_jacobians(model, order + 1, q, V)

    def wrench(i, k):
        M = model.M[i]
        inertial = M @ (G[i][k] + total(comb(k, l) * (J[i][k - l + 1] @ V[l]) for l in range(k + 1)))
        return inertial - total(comb(k, l) * (ad(twists[i][l]).T @ (M @ twists[i][k - l])) for l in range(k + 1))

    return [_projected(model, J, n, wrench) for n in range(order + 1)]


@method(
    "eom_coefficients",
    "jacobian_sum",
    kind="closed_form",
    source=_SOURCE + "; Kumar and Mueller 2021, eq. 38",
    coriolis=("garofalo",),
)
def eom_coefficients(model, order, q, V):
    """[P_1, ..., P_{order + 2}]; see od.describe("eom_coefficients").

    With the admissible Coriolis matrix of this file.
    """
    J, twists, _ = body_jacobians(model, order + 1, q, V)
    C = coriolis_from(model, order, J, twists)
    return coefficients(order, lambda n: mass_matrix_from(model, J, n), lambda n: C[n])


def body_jacobians(model, order, q, V):
    """Derivatives of the Jacobians J[i] (6, nv), of the twists (up to order - 1) and of G[i], what the ground's
    acceleration against gravity is for body i; all in the body's frame. V has at least `order` entries.

    Equation:  J_i = Ad J_p + Xi_i, Ad' = -ad(Xi_i v) Ad                         (26), (27)
    """
    v = [model.joint_v(x) for x in V[:order]]
    S = model.subspaces(q, V, order)
    joint_q = model.joint_q(q)
    J = {0: [ca.DM(6, model.robot.nv)] * (order + 1)}
    twists = {0: [ca.DM(6, 1)] * order}
    G = {0: [ca.vertcat(0, 0, 0, -model.gravity)] + [None] * order}
    for i in model.bodies:
        p = model.parent[i]
        Ad = Ad_inv(model.placement(i, joint_q[i]))
        x = [
            total(comb(k, l) * (S[i][k - l] @ v[l][i]) for l in range(k + 1) if S[i][k - l] is not None)
            for k in range(order)
        ]
        rates = [-ad(twist) for twist in x]
        carried = carry(Ad, rates, J[p])  # (28), (29)
        J[i] = [above + in_columns(model, i, own) for above, own in zip(carried, S[i], strict=True)]  # (27)
        above = carry(Ad, rates, twists[p]) if order else []
        twists[i] = [twist + own for twist, own in zip(above, x, strict=True)]  # (26)
        G[i] = carry(Ad, rates, G[p])  # gamma of (4)
    return J, twists, G


def mass_matrix_from(model, J, k):
    """Derivative k of the mass matrix from the Jacobians of the bodies."""
    M = ca.diag(armatures(model)) if k == 0 else ca.DM(model.robot.nv, model.robot.nv)
    for i in model.bodies:
        inertia = model.inertia_in_fluid(i)
        M = M + total(comb(k, l) * (J[i][l].T @ (inertia @ J[i][k - l])) for l in range(k + 1))  # (6a), (25a)
    return M


def gravity_from(model, J, G, n):
    """Derivative n of the gravity torques from what body_jacobians gives."""
    return _projected(model, J, n, lambda i, k: model.M[i] @ G[i][k])  # (6c), (25c)


def garofalo(M, V):
    """Psi of (3), (6, 6), linear in the twist V (6,)."""
    return M @ ad(V) - ad(V).T @ M


def coriolis_from(model, order, J, twists, choice=garofalo):
    """Derivatives 0..order of the Coriolis matrix from what body_jacobians gives for one order more."""

    def wrenches(i, k):
        M = model.inertia_in_fluid(i)
        turning = [choice(M, V) for V in twists[i][: k + 1]]
        return M @ J[i][k + 1] + total(comb(k, l) * (turning[l] @ J[i][k - l]) for l in range(k + 1))

    return [_projected(model, J, n, wrenches) for n in range(order + 1)]  # (6b), (25b)


def _projected(model, J, n, wrench):
    """Derivative n of sum_i J_i^T W_i from a function (i, k) of the derivatives of W_i."""
    return total(total(comb(n, k) * (J[i][n - k].T @ wrench(i, k)) for k in range(n + 1)) for i in model.bodies)
