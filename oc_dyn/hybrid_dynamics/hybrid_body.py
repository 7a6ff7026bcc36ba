"""Hybrid dynamics by articulated inertias in body frames."""

import casadi as ca

from ..forward_dynamics.articulated_body import factor, solve
from ..lie.se3 import Ad_inv, ad
from ..registry import method


@method(
    "hybrid_dynamics",
    "hybrid_body",
    kind="analytic",
    source="Kim 2012, Table 4",
    max_order=0,
    cannot={"mimic": "its recursion needs joints that move independently"},
)
def hybrid_body(model, order, q, v, A, T, prescribed, W=None):
    """All joint accelerations and torques, ([dv], [tau]); see od.describe("hybrid_dynamics") and hybrid_spatial for A,
    T.

    Symbols: Kim's I^ is MA, B^ is WA, Pi is P, beta is passed, eta is zeta, Psi is the inverse of D.
    Deviations: the armature adds to D and to prescribed joints' torques. Cost O(n).
    """
    X = model.subspaces(q, [v], 1)
    q, v, a, tau = model.joint_q(q), model.joint_v(v), model.joint_v(A[0]), model.joint_v(T[0])
    prescribed_bodies = {i for i in model.bodies if model.coordinates[i][2] in prescribed}
    applied = None if W is None else model.wrenches(W[0])
    V, Ad, S, zeta, MA, WA = {0: ca.DM.zeros(6)}, {}, {}, {}, {}, {}
    for i in model.bodies:
        S[i], rate = X[i]
        Ad[i] = Ad_inv(model.placement(i, q[i]))
        V[i] = Ad[i] @ V[model.parent[i]] + S[i] @ v[i]  # (36)
        zeta[i] = ad(V[i]) @ (S[i] @ v[i]) + (0 if rate is None else rate @ v[i])  # (40)
        MA[i] = model.M[i]
        WA[i] = -(ad(V[i]).T @ (model.M[i] @ V[i]))  # (52), own part
        if applied is not None:
            WA[i] = WA[i] - applied[i]
    U, D, u = {}, {}, {}
    for i in model.reversed_bodies:
        p = model.parent[i]
        if i in prescribed_bodies:
            P = MA[i]
            passed = WA[i] + MA[i] @ (zeta[i] + S[i] @ a[i])
        else:
            U[i] = MA[i] @ S[i]
            D[i] = factor(S[i].T @ U[i] + model.rotor(i))
            u[i] = tau[i] - S[i].T @ WA[i]
            P = MA[i] - U[i] @ solve(D[i], U[i].T)
            passed = WA[i] + P @ zeta[i] + U[i] @ solve(D[i], u[i])
        if p:
            MA[p] = MA[p] + Ad[i].T @ P @ Ad[i]  # (51)
            WA[p] = WA[p] + Ad[i].T @ passed  # (52)
    Vd = {0: ca.vertcat(0, 0, 0, -model.gravity)}
    for i in model.bodies:
        Vd[i] = Ad[i] @ Vd[model.parent[i]] + zeta[i]
        if i not in prescribed_bodies:
            a[i] = solve(D[i], u[i] - U[i].T @ Vd[i])  # (44)
        Vd[i] = Vd[i] + S[i] @ a[i]  # (40)
        if i in prescribed_bodies:
            tau[i] = S[i].T @ (MA[i] @ Vd[i] + WA[i]) + model.armature[i] * a[i]  # (42)
    return [model.stack(a)], [model.stack(tau)]
