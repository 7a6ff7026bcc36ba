"""Hybrid dynamics of any order by articulated inertias in {0}: prescribed joints pass theirs on unprojected."""

import casadi as ca

from ..forward_dynamics.articulated_body import factor, solve
from ..forward_dynamics.spatial_motion import SpatialMotion
from ..inverse_dynamics.recursive_spatial import wrench_on_screw
from ..registry import method


@method(
    "hybrid_dynamics",
    "hybrid_spatial",
    kind="analytic",
    source="Ali et al. 2026, Algorithm 4",
    cannot={"mimic": "its recursion needs joints that move independently"},
)
def hybrid_spatial(model, order, q, v, A, T, prescribed, W=None):
    """Derivatives 0..order of all joint accelerations and torques, ([dv, ...], [tau, ...]); see the quantity.

    A, T: lists of (nv,): accelerations, right in the rows `prescribed`, and torques, right in the others, with their
    derivatives. Symbols and deviations as in forward_dynamics/articulated_spatial. Cost O(n order^2).
    """
    motion = SpatialMotion(model, q, v, W)
    given = {i for i in model.bodies if model.coordinates[i][2] in prescribed}
    S = {i: motion.S[i][0] for i in model.bodies}
    MA, U, D, K, P = {i: motion.M[i][0] for i in model.bodies}, {}, {}, {}, {}
    for i in model.reversed_bodies:
        p = model.parent[i]
        P[i] = MA[i]
        if i not in given:
            U[i] = MA[i] @ S[i]
            D[i] = factor(S[i].T @ U[i] + model.rotor(i))
            if p:
                K[i] = solve(D[i], U[i].T).T
                P[i] = MA[i] - K[i] @ U[i].T
        if p:
            MA[p] = MA[p] + P[i]

    Wd = {i: [ca.DM.zeros(6)] for i in model.bodies}  # the wrench of the order at work counts as zero until found
    accelerations, torques = [], []
    for k in range(order + 1):
        a, tau = model.joint_v(A[k]), model.joint_v(T[k])
        zeta, WA = motion.next_bias()
        known = {i: wrench_on_screw(motion.S[i], Wd[i], k) for i in model.bodies}  # torque of lower orders
        u = {}
        for i in model.reversed_bodies:
            p = model.parent[i]
            if i in given:
                zeta[i] = zeta[i] + S[i] @ a[i]
            else:
                u[i] = tau[i] - known[i] - S[i].T @ WA[i]
            if p:
                WA[p] = WA[p] + WA[i] + P[i] @ zeta[i]
                if i not in given:
                    WA[p] = WA[p] + K[i] @ u[i]
        Vd = {0: ca.DM.zeros(6)}
        for i in model.bodies:
            Vd[i] = Vd[model.parent[i]] + zeta[i]
            if i not in given:
                a[i] = solve(D[i], u[i] - U[i].T @ Vd[i])
                Vd[i] = Vd[i] + S[i] @ a[i]
            Wd[i][k] = MA[i] @ Vd[i] + WA[i]
            if i in given:
                tau[i] = known[i] + S[i].T @ Wd[i][k] + model.armature[i] * a[i]
            Wd[i].append(ca.DM.zeros(6))
        accelerations.append(motion.push(a, Vd))
        torques.append(model.stack(tau))
    return accelerations, torques
