"""Forward dynamics of any order by articulated inertias in {0}, which are the same for every order."""

import casadi as ca

from ..inverse_dynamics.recursive_spatial import wrench_on_screw
from ..registry import method
from .articulated_body import factor, solve
from .spatial_motion import SpatialMotion


@method(
    "forward_dynamics",
    "articulated_spatial",
    kind="analytic",
    source="Ali et al. 2026, Algorithm 3 and Lemma 2",
    cannot={"mimic": "its recursion needs joints that move independently"},
)
def articulated_spatial(model, order, q, v, T, W=None):
    """Derivatives 0..order of the joint accelerations from those of the torques T; see od.describe("forward_dynamics").
    Needs a positive S^T MA S at every joint.

    Equation:  W_i^(k) = MA_i V_i^(k+1) + WA_i^(k) with one MA_i for all k  (22)
    Symbols:   U = MA S, D = S^T U (+ armature), K = U D^-1, P = MA - K U^T, zeta and WA biases of order k, u
               what is left of the torque.
    Deviations: the base is a free joint like any other, its D the 6 x 6 system of (50); joints of several coordinates.
    Cost O(n order^2).
    """
    motion = SpatialMotion(model, q, v, W)
    S = {i: motion.S[i][0] for i in model.bodies}
    MA, U, D, K, P = articulated_inertias(motion)

    Wd = {i: [ca.DM.zeros(6)] for i in model.bodies}  # the wrench of the order at work counts as zero until found
    out = []
    for k in range(order + 1):
        tau = model.joint_v(T[k])
        zeta, WA = motion.next_bias()
        u = {}
        for i in model.reversed_bodies:
            u[i] = tau[i] - wrench_on_screw(motion.S[i], Wd[i], k) - S[i].T @ WA[i]  # (46), (53)
            p = model.parent[i]
            if p:
                WA[p] = WA[p] + WA[i] + P[i] @ zeta[i] + K[i] @ u[i]  # (49), (55)
        dv, Vd = {}, {0: ca.DM.zeros(6)}
        for i in model.bodies:
            a = Vd[model.parent[i]] + zeta[i]
            dv[i] = solve(D[i], u[i] - U[i].T @ a)  # (47), (54); of the base (50), (56)
            Vd[i] = a + S[i] @ dv[i]
            Wd[i][k] = MA[i] @ Vd[i] + WA[i]  # (22)
            Wd[i].append(ca.DM.zeros(6))
        out.append(motion.push(dv, Vd))
    return out


def articulated_inertias(motion, prescribed_bodies=()):
    """(MA, U, D, K, P) by body, the same for every order (Lemma 2). Prescribed joints pass the whole inertia on as P
    and have no U, D, K."""
    model = motion.model
    MA, U, D, K, P = {i: motion.M[i][0] for i in model.bodies}, {}, {}, {}, {}
    for i in model.reversed_bodies:
        p, S, P[i] = model.parent[i], motion.S[i][0], MA[i]
        if i not in prescribed_bodies:
            U[i] = MA[i] @ S
            D[i] = factor(S.T @ U[i] + model.rotor(i))
            if p:
                K[i] = solve(D[i], U[i].T).T
                P[i] = MA[i] - K[i] @ U[i].T
        if p:
            MA[p] = MA[p] + P[i]  # (49)
    return MA, U, D, K, P
