"""Inverse dynamics of any order by the body-fixed recursion, twists from parent to body instead of along all paths."""

from math import comb

import casadi as ca

from ..lie.jets import leibniz, total
from ..lie.se3 import Ad_inv, ad
from ..registry import method
from .recursive_body import torques


@method(
    "inverse_dynamics",
    "recursive_body_leibniz",
    kind="analytic",
    source="Kumar and Mueller 2021, eq. 4 differentiated by Leibniz' rule, and eq. 20",
    cannot={"transform": "its screws X are constant in the body"},
    regroup=True,
)
def recursive_body_leibniz(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques; see od.describe("inverse_dynamics") for q, V, W.

    Equation:  D^k V_i = sum_r C(k,r) D^r Ad_i D^(k-r) V_p + X_i D^k v_i,   derivative k of (4)
    The listing of the paper, recursive_body, sums over the joints j of the path to each body, with screws B[i, j] of
    every one of them: cost O(n depth order^2). Here a body reads its parent alone: cost O(n order^2). Dynamics as
    there, on base parameters, as the methods that it is compared with.
    """
    qs, v = model.joint_q(q), [model.joint_v(x) for x in V]
    Ad, Vd = {}, {0: [ca.DM(6, 1)] * (order + 2)}
    for i in model.bodies:
        X, p = model.S[i], model.parent[i]
        Ad[i] = [Ad_inv(model.placement(i, qs[i]))]
        for k in range(1, order + 2):
            turning = (comb(k - 1, r) * (ad(X @ v[k - 1 - r][i]) @ Ad[i][r]) for r in range(k))
            Ad[i].append(-total(turning))
        Vd[i] = [leibniz(k, Ad[i], Vd[p]) + X @ v[k][i] for k in range(order + 2)]
    return torques(model, order, Ad, Vd, V, W)
