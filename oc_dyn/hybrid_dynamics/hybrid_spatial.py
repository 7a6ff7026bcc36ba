"""Hybrid dynamics of any order by articulated inertias in {0}: prescribed joints pass theirs on unprojected."""

import casadi as ca

from ..forward_dynamics.articulated_body import solve
from ..forward_dynamics.articulated_spatial import articulated_inertias
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
    """Derivatives 0..order of all joint accelerations and torques, ([dv, ...], [tau, ...]); see
    od.describe("hybrid_dynamics").

    A, T: lists of (nv,): accelerations, right in the rows `prescribed`, and torques, right in the others, with their
    derivatives. Equation, symbols and deviations as in forward_dynamics/articulated_spatial: numbers at the lines are
    those of its proof, Lemma 2 and appendix C, for joints that are not prescribed. Cost O(n order^2).
    """
    motion = SpatialMotion(model, q, v, W)
    prescribed_bodies = {i for i in model.bodies if model.coordinates[i][2] in prescribed}
    S = {i: motion.S[i][0] for i in model.bodies}
    MA, U, D, K, P = articulated_inertias(motion, prescribed_bodies)

    Wd = {i: [ca.DM.zeros(6)] for i in model.bodies}  # the wrench of the order at work counts as zero until found
    accelerations, torques = [], []
    for k in range(order + 1):
        a, tau = model.joint_v(A[k]), model.joint_v(T[k])
        zeta, WA = motion.next_bias()
        known = {i: wrench_on_screw(motion.S[i], Wd[i], k) for i in model.bodies}  # torque of lower orders
        u = {}
        for i in model.reversed_bodies:
            p = model.parent[i]
            if i in prescribed_bodies:
                zeta[i] = zeta[i] + S[i] @ a[i]
            else:
                u[i] = tau[i] - known[i] - S[i].T @ WA[i]  # (46), (53)
            if p:
                WA[p] = WA[p] + WA[i] + P[i] @ zeta[i]
                if i not in prescribed_bodies:
                    WA[p] = WA[p] + K[i] @ u[i]  # (49), (55)
        Vd = {0: ca.DM.zeros(6)}
        for i in model.bodies:
            Vd[i] = Vd[model.parent[i]] + zeta[i]
            if i not in prescribed_bodies:
                a[i] = solve(D[i], u[i] - U[i].T @ Vd[i])  # (47), (54)
                Vd[i] = Vd[i] + S[i] @ a[i]
            Wd[i][k] = MA[i] @ Vd[i] + WA[i]  # (22)
            if i in prescribed_bodies:
                tau[i] = known[i] + S[i].T @ Wd[i][k] + model.armature[i] * a[i]
            Wd[i].append(ca.DM.zeros(6))
        accelerations.append(motion.push(a, Vd))
        torques.append(model.stack(tau))
    return accelerations, torques
