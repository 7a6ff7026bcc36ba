"""Inverse dynamics of any order by the body-fixed recursion of Kumar and Mueller, for trees and joints of any size."""

from math import comb

import casadi as ca

from ..lie.jets import leibniz, total
from ..lie.se3 import Ad_inv, ad
from ..registry import method


@method(
    "inverse_dynamics",
    "recursive_body",
    kind="analytic",
    source="Kumar and Mueller 2021, section II-E",
    cannot={"transform": "its screws X are constant in the body"},
)
def recursive_body(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques; see od.describe("inverse_dynamics") for q, V, W.

    Equation:  D^k W_i = sum_c sum_r C(k,r) (D^r Ad_ci)^T D^(k-r) W_c + M_i D^(k+1) V_i
               - sum_r C(k,r) ad(D^r V_i)^T M_i D^(k-r) V_i,     D^k Q_i = X_i^T D^k W_i        (20)
    Symbols:   the paper's two kinds of B are B[i, j] (joint screws) and P[i, j] (partial sums of twists); its V_0'
               is the gravity twist G, carried from body to body with its derivatives.
    Deviations: trees instead of chains; X may have several columns; sums start at k = 1 where the listing
               prints r > 1, and the acceleration enters the dynamics as D^(k+1) V where it prints D^(k) V.
    Cost O(n depth order^2).
    """
    Ad, _, _, Vd = forward_kinematics(model, order + 1, q, V)
    return torques(model, order, Ad, Vd, V, W)


def torques(model, order, Ad, Vd, V, W):
    """The pass from the tips to the ground: derivatives 0..order of the joint torques, from those of Ad and of Vd."""
    v = [model.joint_v(x) for x in V]
    G = {0: [ca.vertcat(0, 0, 0, -model.gravity)] + [ca.DM.zeros(6)] * order}
    Wd = {}
    for i in model.bodies:
        G[i] = [leibniz(k, Ad[i], G[model.parent[i]]) for k in range(order + 1)]
    applied = None if W is None else [model.wrenches(x) for x in W]
    tau = [{} for _ in range(order + 1)]
    for k in range(order + 1):
        for i in model.reversed_bodies:
            M = model.M[i]
            Wd[i, k] = M @ (Vd[i][k + 1] + G[i][k])
            for r in range(k + 1):
                Wd[i, k] -= comb(k, r) * (ad(Vd[i][r]).T @ (M @ Vd[i][k - r]))
            if applied is not None:
                Wd[i, k] -= applied[k][i]
            for c in model.children[i]:
                for r in range(k + 1):
                    Wd[i, k] += comb(k, r) * (Ad[c][r].T @ Wd[c, k - r])  # (20)
            tau[k][i] = model.S[i].T @ Wd[i, k] + model.armature[i] * v[k + 1][i]
    return [model.stack(x) for x in tau]


def forward_kinematics(model, order, q, V):
    """Derivatives 0..order of the adjoints Ad[i] (to body i from its parent), joint screws B[i, j], partial twists
    P[i, j] and body twists Vd[i], as lists over the order. Bodies j run over the path to i; j = 0 is the ground."""
    q, v = model.joint_q(q), [model.joint_v(x) for x in V]
    Ad, B, P, Vd = {}, {}, {}, {}
    for i in model.bodies:
        X = model.S[i]
        Ad[i] = [Ad_inv(model.placement(i, q[i]))]
        B[i, i] = [X] + [ca.DM.zeros(*X.shape)] * order
        for j in model.support(i)[:-1]:
            B[i, j] = [Ad[i][0] @ B[model.parent[i], j][0]]  # (9)
        for k in range(1, order + 1):
            # every column of Ad turns against the joint: D Ad = -ad(X v) Ad
            Ad[i].append(-total(comb(k - 1, r) * (ad(X @ v[k - 1 - r][i]) @ Ad[i][r]) for r in range(k)))
    for i in model.bodies:
        path = model.support(i)
        for k in range(order + 1):
            for j in path[:-1]:
                if k > 0:
                    B[i, j].append(
                        -total(comb(k - 1, r) * (ad(P[i, j][k - 1 - r]) @ B[i, j][r]) for r in range(k))
                    )  # (17)
            twist = ca.DM.zeros(6)
            for j, above in zip(path[::-1], [*path[-2::-1], 0], strict=True):
                twist = twist + total(comb(k, r) * (B[i, j][r] @ v[k - r][j]) for r in range(k + 1))
                P.setdefault((i, above), []).append(twist)  # (18)
        Vd[i] = P[i, 0]  # (15)
    return Ad, B, P, Vd
