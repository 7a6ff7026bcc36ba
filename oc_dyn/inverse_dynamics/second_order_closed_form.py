"""Inverse dynamics up to the second derivative by matrices, written out without sums over orders."""

import casadi as ca

from ..registry import method
from .closed_form import stacked_wrenches
from .system_matrices import SystemMatrices


@method(
    "inverse_dynamics",
    "second_order_closed_form",
    kind="closed_form",
    source="Kumar and Mueller 2021, eqs. 35, 36; 24 to 33 differentiated by hand",
    max_order=2,
    cannot={"transform": "it is written for constant joint screws"},
    regroup=True,
)
def second_order_closed_form(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques; see od.describe("inverse_dynamics") for q, V, W.

    Equation:  Q'  = M v'' + (M' + C) v' + C' v + Qgrav'                              (35)
               Q'' = M v''' + (2 M' + C) v'' + (M'' + 2 C') v' + C'' v + Qgrav''      (36)
    Symbols:   a number after a name is the order of the derivative. D is the inertia of all bodies, E = a (J - X) and
               B = a J, so that J' = -A E and the block matrix (30) times J is F = -D A B - b^T D J.
    Deviations: the derivatives of A (27) are never formed, only what they do to the few columns they act on:
               A' Y = -A a (A Y - Y). Applied wrenches, trees and joints of several velocities as in closed_form.
    Cost O(n^3).
    """
    v, v1, v2, v3 = _padded(V, 4, model.robot.nv)
    system = SystemMatrices(model, q, [v, v1, v2])
    A, X, D = system.A(), system.X(), system.inertia
    a, a1, a2 = system.a(0), system.a(1), system.a(2)  # (25), (40)
    J = A @ X  # (22)

    def A1(Y):
        return -(A @ (a @ (A @ Y - Y)))  # (27)

    def A2(Y):
        beyond = A @ Y - Y
        return -A1(a @ beyond) - A @ (a1 @ beyond + a @ A1(Y))

    E = a @ (J - X)
    J1 = -(A @ E)  # (24)
    J2 = -A1(E) - A @ (a1 @ (J - X) + a @ J1)
    T, T1, T2 = J @ v, J @ v1 + J1 @ v, J @ v2 + 2 * (J1 @ v1) + J2 @ v  # twists, (21), (42)
    b, b1, b2 = (system.brackets(x).T @ D for x in (T, T1, T2))  # (31), (46), with D

    DJ1 = D @ J1
    half, half2 = J.T @ DJ1, J.T @ (D @ J2)
    M = system.M()  # (28)
    M1 = half + half.T
    M2 = half2 + half2.T + 2 * (J1.T @ DJ1)

    B, B1, B2 = a @ J, a1 @ J + a @ J1, a2 @ J + 2 * (a1 @ J1) + a @ J2
    F = -(D @ (A @ B)) - b @ J  # (30)
    F1 = -(D @ (A1(B) + A @ B1)) - b1 @ J - b @ J1
    F2 = -(D @ (A2(B) + 2 * A1(B1) + A @ B2)) - b2 @ J - 2 * (b1 @ J1) - b @ J2
    C = J.T @ F
    C1 = J1.T @ F + J.T @ F1
    C2 = J2.T @ F + 2 * (J1.T @ F1) + J.T @ F2

    G = system.U() @ ca.vertcat(0, 0, 0, -model.gravity)  # (33)
    G1 = -(A @ (a @ G))
    G2 = -A1(a @ G) - A @ (a1 @ G + a @ G1)
    w, w1, w2 = D @ G, D @ G1, D @ G2
    if W is not None:
        applied = _padded(stacked_wrenches(model, W), 3, 6 * model.n)
        w, w1, w2 = (x - y for x, y in zip((w, w1, w2), applied, strict=True))
    g, g1, g2 = J.T @ w, J1.T @ w + J.T @ w1, J2.T @ w + 2 * (J1.T @ w1) + J.T @ w2  # (32)

    Q = M @ v1 + C @ v + g  # (1)
    Q1 = M @ v2 + (M1 + C) @ v1 + C1 @ v + g1  # (35)
    Q2 = M @ v3 + (2 * M1 + C) @ v2 + (M2 + 2 * C1) @ v1 + C2 @ v + g2  # (36)
    return [Q, Q1, Q2][: order + 1]


def _padded(derivatives, count, rows):
    """The derivatives given and zeros for those that only higher orders have."""
    return [*derivatives, *[ca.DM(rows, 1)] * count][:count]
