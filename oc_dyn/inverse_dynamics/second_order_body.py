"""Inverse dynamics up to the second derivative by a body-fixed recursion with explicit jerk and jounce."""

import casadi as ca

from ..lie.se3 import Ad_inv, ad
from ..registry import method


@method(
    "inverse_dynamics",
    "second_order_body",
    kind="analytic",
    source="after Mueller 2017, recursive second-order inverse dynamics with body-fixed twists",
    max_order=2,
    cannot={"transform": "it is written for constant joint screws"},
    regroup=True,
)
def second_order_body(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques; see od.describe("inverse_dynamics") for q, V, W.

    Equation:  with x = X v the joint's twist, a = ad(x), and the same for its derivatives x', x'', x''',
               V    = Ad V_p    + x
               V'   = Ad V_p'   - a V + x'
               V''  = Ad V_p''  - a (2 V' + a V - x') - a' V + x''
               V''' = Ad V_p''' - a (3 V'' + a Y + 2 a' V - 2 x'') - a' Y - a'' V + x''',   Y = 3 V' + a V - x'
               and for the wrenches that a body c passes to its parent
               Ad^T W,  Ad^T (W' - a^T W),  Ad^T (W'' - a^T (2 W' - a^T W) - a'^T W)
    They follow from Ad' = -a Ad and a x = 0. For joints of one velocity a x' = 0 too, and the terms with x', x''
    inside the brackets vanish. G is the gravity twist -[0; g] seen from the body: G' = -ad(V) G. Cost O(n).
    """
    x = [_joint_twists(model, part) for part in V]
    applied = None if W is None else [model.wrenches(part) for part in W]
    zero = ca.DM.zeros(6)
    T = {0: [zero] * (order + 2)}  # twists and their derivatives
    G = {0: ca.vertcat(0, 0, 0, -model.gravity)}
    joint_q, Ad, a, wrench = model.joint_q(q), {}, {}, {}
    for i in model.bodies:  # ground to tips
        p = model.parent[i]
        Ad[i] = Ad_inv(model.placement(i, joint_q[i]))
        a[i] = [ad(part[i]) for part in x]
        T[i] = _twists(Ad[i], T[p], [part[i] for part in x], a[i])
        G[i] = Ad[i] @ G[p]
        wrench[i] = _body_wrenches(order, model.M[i], T[i], G[i])
        if applied is not None:
            wrench[i] = [w - applied[k][i] for k, w in enumerate(wrench[i])]
    tau = [{} for _ in range(order + 1)]
    v = [model.joint_v(part) for part in V]
    for i in model.reversed_bodies:
        for k in range(order + 1):
            tau[k][i] = model.S[i].T @ wrench[i][k] + model.armature[i] * v[k + 1][i]
        p = model.parent[i]
        if p:
            passed = _passed(order, Ad[i], wrench[i], a[i])
            wrench[p] = [w + more for w, more in zip(wrench[p], passed, strict=True)]
    return [model.stack(t) for t in tau]


def _joint_twists(model, part):
    return {i: model.S[i] @ v for i, v in model.joint_v(part).items()}


def _twists(Ad, parent, x, a):
    """Twist of a body and its derivatives, as many as its parent's."""
    V = Ad @ parent[0] + x[0]
    aV = a[0] @ V
    V1 = Ad @ parent[1] - aV + x[1]
    out = [V, V1]
    if len(x) > 2:
        a1V = a[1] @ V
        V2 = Ad @ parent[2] - a[0] @ (2 * V1 + aV - x[1]) - a1V + x[2]
        out.append(V2)
    if len(x) > 3:
        Y = 3 * V1 + aV - x[1]
        out.append(Ad @ parent[3] - a[0] @ (3 * V2 + a[0] @ Y + 2 * a1V - 2 * x[2]) - a[1] @ Y - a[2] @ V + x[3])
    return out


def _body_wrenches(order, M, T, G):
    """Wrench that moves a body against gravity, and its derivatives."""
    b, P = ad(T[0]), M @ T[0]
    out = [M @ (T[1] + G) - b.T @ P]
    if order > 0:
        b1, P1, G1 = ad(T[1]), M @ T[1], -(b @ G)
        out.append(M @ (T[2] + G1) - b1.T @ P - b.T @ P1)
    if order > 1:
        P2, G2 = M @ T[2], -(b1 @ G) - b @ G1
        out.append(M @ (T[3] + G2) - ad(T[2]).T @ P - 2 * (b1.T @ P1) - b.T @ P2)
    return out


def _passed(order, Ad, W, a):
    """What a body's wrench and its derivatives are for its parent."""
    out = [W[0]]
    if order > 0:
        aW = a[0].T @ W[0]
        out.append(W[1] - aW)
    if order > 1:
        out.append(W[2] - a[0].T @ (2 * W[1] - aW) - a[1].T @ W[0])
    return [Ad.T @ w for w in out]
