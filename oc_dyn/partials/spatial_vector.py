"""First partials in the ground frame by spatial vectors; joints of any size whose screws are constant in their body."""

from typing import Any

import casadi as ca

from ..inverse_dynamics.recursive_spatial import spatial_inertia
from ..kinematics.recursive_body import local_poses
from ..lie.se3 import Ad, Ad_inv, ad, force_cross
from ..registry import method
from ..working_axes.assembly import assembled
from . import order_zero
from .implicit import bias, forward_partials, hybrid_partials

_SINGH = "Singh et al. 2023 (IDSVA), eqs. 12 to 15"
_CANNOT = {"transform": "its screw changes with its coordinates"}
_FACTS: dict[str, Any] = {"kind": "analytic", "cannot": _CANNOT, "regroup": True}


@method("inverse_dynamics_partials", "spatial_vector", source=_SINGH, max_order=0, **_FACTS)
def spatial_vector(model, order, q, V, W=None):
    """Partials of the torques, [(dtau_dq, dtau_dv, dtau_ddv)]; see od.describe("inverse_dynamics_partials").

    Cost O(n depth).
    """
    return [idsva(model, q, V[0], V[1], W and W[0])]


def idsva(model, q, v, dv, W=None):
    """(dtau_dq, dtau_dv, dtau_ddv), sparse (nv, nv), at q, v, dv and applied wrenches W (6, bodies).

    Symbols: all in {0}; Psi, Psi2 are the paper's Psi' and Psi''; I, B, f composite inertia, Coriolis matrix and force.
    Deviations: applied wrenches and armature added; the sums of a pair are taken at the lower joint.
    """
    C, v, dv = local_poses(model, q), model.joint_v(v), model.joint_v(dv)
    applied = None if W is None else model.wrenches(W)
    V, A = {0: ca.DM.zeros(6)}, {0: ca.vertcat(0, 0, 0, -model.gravity)}
    S, S_rate, Psi, Psi2, I, B, f = {}, {}, {}, {}, {}, {}, {}
    for i in model.bodies:
        p = model.parent[i]
        S[i] = Ad(C[i]) @ model.S[i]
        Psi[i] = ad(V[p]) @ S[i]  # (15)
        Psi2[i] = ad(A[p]) @ S[i] + ad(V[p]) @ Psi[i]
        V[i] = V[p] + S[i] @ v[i]
        S_rate[i] = ad(V[i]) @ S[i]
        A[i] = A[p] + S_rate[i] @ v[i] + S[i] @ dv[i]
        I[i] = spatial_inertia(model.inertia[i], C[i])
        momentum = I[i] @ V[i]
        B[i] = 0.5 * (-ad(V[i]).T @ I[i] - I[i] @ ad(V[i]) + force_cross(momentum))  # (14)
        f[i] = I[i] @ A[i] - ad(V[i]).T @ momentum
        if applied is not None:
            f[i] = f[i] - Ad_inv(C[i]).T @ applied[i]
    Q, D, M = {}, {}, {}
    for i in model.reversed_bodies:
        p = model.parent[i]
        by_a = I[i] @ S[i]
        by_q = 2 * (B[i] @ Psi[i]) + I[i] @ Psi2[i]
        by_v = 2 * (B[i] @ S[i]) + I[i] @ (Psi[i] + S_rate[i])
        turned = by_q + force_cross(f[i]) @ S[i]
        G = 2 * (B[i].T @ S[i])
        for j in model.support(i):
            M[j, i] = S[j].T @ by_a
            D[j, i] = S[j].T @ by_v  # (13b)
            Q[j, i] = S[j].T @ (turned if j != i else by_q)  # (12b), (12a)
            if j != i:
                D[i, j] = G.T @ S[j] + by_a.T @ (Psi[j] + S_rate[j])  # (13a)
                Q[i, j] = G.T @ Psi[j] + by_a.T @ Psi2[j]  # (12a)
        M[i, i] = M[i, i] + model.rotor(i)
        if p:
            I[p], B[p], f[p] = I[p] + I[i], B[p] + B[i], f[p] + f[i]
    return assembled(model, Q), assembled(model, D), assembled(model, M, mirrored=True)


@method(
    "forward_dynamics_partials", "spatial_vector", source="Singh et al. 2023 (FDSVA), eq. 45", max_order=0, **_FACTS
)
def forward_method(given):
    """(ddv_dq, ddv_dv, ddv_dtau); see od.describe("forward_dynamics_partials")."""
    return order_zero.forward_partials(given, forward)


def forward(model, q, v, tau, W, damping):
    """(ddv_dq, ddv_dv, ddv_dtau) at torques tau."""
    return forward_partials(model, q, v, tau, W, damping, idsva, bias, shared=False)


@method(
    "hybrid_dynamics_partials",
    "spatial_vector",
    source=_SINGH + "; blocks as in Kim 2012, section 2",
    max_order=0,
    **_FACTS,
)
def hybrid_method(given):
    """Partials of what is not prescribed; see od.describe("hybrid_dynamics_partials")."""
    return order_zero.hybrid_partials(given, hybrid)


def hybrid(model, q, v, a, tau, prescribed, W):
    """{(what, by what): matrix}."""
    return hybrid_partials(model, q, v, a, tau, prescribed, W, idsva, bias)
