"""Torques of a reference motion, M dvr + C vr + g: by sums of bodies, with the matrices, and in body frames."""

from itertools import pairwise
from math import comb

import casadi as ca

from ..inverse_dynamics.taylor import taylor as inverse_dynamics
from ..kinematics.reference_motion import reference_motion, to_parent
from ..lie.jets import total
from ..lie.leibniz import product_derivative
from ..registry import method
from ..subexpressions import merged
from ..time_methods import in_time
from ..working_axes.assembly import armatures
from .composite import composite
from .coriolis_choice import coriolis_matrix, turning
from .jacobian_sum import body_jacobians

_BOTH = ("christoffel", "garofalo")


@method(
    "slotine_li_torque",
    "recursive_body",
    kind="analytic",
    source="after Yuan and Yuan 1995 and Niemeyer and Slotine 1991: Newton-Euler in body frames with reference twists",
    coriolis=_BOTH,
)
def recursive_body(model, order, q, V, Vr, W, coriolis):
    """Derivatives 0..order of M dvr + C vr + g (nv,); see od.describe("slotine_li_torque"). Cost O(n order^2).

    Equation:  W_i = M_i (Vr_i' + G_i) + T(V_i) Vr_i - w_i + sum_c Ad_c^T W_c,  Vr_i = Ad_i Vr_p + S_i vr_i,
               T of matrices/coriolis_choice, tau_i = S_i^T W_i
    """
    S, Ad, rates, twist, reference, G = reference_motion(model, order, q, V, Vr)
    applied = _applied(model, W)
    rotors = [model.joint_v(x) for x in Vr[1:]]
    wrench, force = {i: [ca.DM(6, 1)] * (order + 1) for i in (0, *model.bodies)}, {}
    for i in model.reversed_bodies:
        own = _wrench(model, i, order, twist[i], reference[i], G[i], coriolis)
        W_i = [x + y - z for x, y, z in zip(own, wrench[i], applied(i, order), strict=True)]
        force[i] = [
            total(comb(n, k) * (S[i][n - k].T @ W_i[k]) for k in range(n + 1) if S[i][n - k] is not None)
            + model.rotor(i) @ rotors[n][i]
            for n in range(order + 1)
        ]
        p = model.parent[i]
        if p:
            wrench[p] = [x + y for x, y in zip(wrench[p], to_parent(Ad[i], rates[i], W_i), strict=True)]
    return [model.stack({i: x[k] for i, x in force.items()}) for k in range(order + 1)]


@method(
    "slotine_li_torque",
    "jacobian_sum",
    kind="closed_form",
    source="Garofalo et al. 2013, eq. 6, each matrix times its vector",
    coriolis=_BOTH,
)
def jacobian_sum(model, order, q, V, Vr, W, coriolis):
    """Derivatives 0..order of M dvr + C vr + g (nv,); see od.describe("slotine_li_torque").

    Equation:  tau = sum_i J_i^T (M_i (J_i dvr + J_i' vr + G_i) + T(V_i) J_i vr - w_i)
    """
    J, twists, G = body_jacobians(model, order + 1, q, V)
    applied, rotors = _applied(model, W), armatures(model)
    out = [rotors * x for x in Vr[1:]]
    for i in model.bodies:
        reference = [product_derivative(J[i], Vr, k) for k in range(order + 2)]
        own = _wrench(model, i, order, twists[i], reference, G[i], coriolis)
        pushed = [x - y for x, y in zip(own, applied(i, order), strict=True)]
        rows = [x.T for x in J[i]]
        out = [x + product_derivative(rows, pushed, k) for k, x in enumerate(out)]
    return out


@in_time("slotine_li_torque", source="AD: matrices by composite bodies and g, times their vectors", coriolis=_BOTH)
def ad(way, model, order, q, V, Vr, W, coriolis):
    """Derivatives 0..order of M dvr + C vr + g (nv,); see od.describe("slotine_li_torque")."""
    rest = ca.DM.zeros(model.robot.nv)
    C = coriolis_matrix(model, q, V[0], coriolis)
    held = inverse_dynamics(model, 0, q, [rest, rest], None if W is None else W[:1])[0]
    tau = composite(model, q) @ Vr[1] + C @ Vr[0] + held
    flow = [(q, model.configuration_rate(q, V[0])), *pairwise(V), *pairwise(Vr), *pairwise(W or [])]
    return way(merged(tau), order, flow)


def _wrench(model, i, order, V, Vr, G, coriolis):
    """Derivatives 0..order of M (Vr' + G) + T(V) Vr of body i."""
    M, T = model.M[i], turning(model, i, coriolis)
    T = [T(x) for x in V[: order + 1]]
    return [M @ (Vr[k + 1] + G[k]) + product_derivative(T, Vr, k) for k in range(order + 1)]


def _applied(model, W):
    """Function (i, order) -> derivatives 0..order of the wrench applied to body i, in its frame."""
    if W is None:
        return lambda i, order: [ca.DM(6, 1)] * (order + 1)
    found = [model.wrenches(x) for x in W]
    return lambda i, order: [x[i] for x in found]
