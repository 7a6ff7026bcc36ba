"""Forward dynamics by the articulated-body recursion in body frames, joints of any size."""

import casadi as ca

from ..lie.se3 import Ad_inv, ad
from ..registry import method


@method(
    "forward_dynamics",
    "articulated_body",
    kind="analytic",
    source="Featherstone 1983; Kim 2012, Table 3",
    max_order=0,
    cannot={"mimic": "its recursion needs joints that move independently"},
)
def articulated_body(model, order, q, v, T, W=None):
    """Joint accelerations [dv] from torques T[0]; see od.describe("forward_dynamics"). Needs a positive S^T MA S at
    every joint.

    Equation:  F_i = MA_i V_i' + WA_i                                                                   (42)
    Symbols:   Kim's I^ is MA, B^ is WA, eta is zeta, Pi is P, beta is passed, Psi is the inverse of D; U = MA S.
    Deviations: the armature adds to D. Cost O(n).
    """
    motions = model.subspaces(q, [v], 1)
    q, v, tau = model.joint_q(q), model.joint_v(v), model.joint_v(T[0])
    applied = None if W is None else model.wrenches(W[0])

    V = {0: ca.DM.zeros(6)}
    Vd = {0: ca.vertcat(0, 0, 0, -model.gravity)}  # gravity as an acceleration of the ground
    Ad, MA, WA, zeta = {}, {}, {}, {}
    for i in model.bodies:  # ground to tips
        S, dS = motions[i]
        Ad[i] = Ad_inv(model.placement(i, q[i]))
        V[i] = Ad[i] @ V[model.parent[i]] + S @ v[i]  # (36)
        zeta[i] = ad(V[i]) @ (S @ v[i])  # (40), without the new accelerations
        if dS is not None:
            zeta[i] = zeta[i] + dS @ v[i]
        MA[i] = model.M[i]
        WA[i] = -(ad(V[i]).T @ (model.M[i] @ V[i]))
        if applied is not None:
            WA[i] = WA[i] - applied[i]
    U, D, u = {}, {}, {}
    for i in model.reversed_bodies:
        S, p = motions[i][0], model.parent[i]
        U[i] = MA[i] @ S
        D[i] = factor(S.T @ U[i] + model.rotor(i))
        u[i] = tau[i] - S.T @ WA[i]
        if p:
            P = MA[i] - U[i] @ solve(D[i], U[i].T)
            passed = WA[i] + P @ zeta[i] + U[i] @ solve(D[i], u[i])
            MA[p] = MA[p] + Ad[i].T @ P @ Ad[i]  # (48)
            WA[p] = WA[p] + Ad[i].T @ passed  # (49)
    dv = {}
    for i in model.bodies:
        Vd[i] = Ad[i] @ Vd[model.parent[i]] + zeta[i]
        dv[i] = solve(D[i], u[i] - U[i].T @ Vd[i])  # (44)
        Vd[i] = Vd[i] + motions[i][0] @ dv[i]  # (40)
    return [model.stack(dv)]


def factor(A):
    """Factors of a small symmetric positive definite matrix, for solve()."""
    return A if A.numel() == 1 else ca.ldl(ca.densify(A), False)


def solve(factors, b):
    """Solution of A x = b from factor(A)."""
    return ca.ldl_solve(ca.densify(b), *factors) if isinstance(factors, (tuple, list)) else b / factors
