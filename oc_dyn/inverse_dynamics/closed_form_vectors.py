"""Inverse dynamics of any order in closed form, its products read from the right, so that no matrix is formed."""

import casadi as ca

from ..lie.jets import leibniz
from ..registry import method
from ..working_axes.assembly import armatures
from .closed_form import stacked_wrenches
from .system_matrices import SystemMatrices


@method(
    "inverse_dynamics",
    "closed_form_vectors",
    kind="closed_form",
    source="Kumar and Mueller 2021, eqs. 21, 26 to 34, with (27) applied to vectors",
    regroup=True,
    fluid=True,
)
def closed_form_vectors(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques; see od.describe("inverse_dynamics") for q, V, W.

    Equation:  Q = X^T A^T (M (V' + G) - b^T M V - W),  V = A X v,  V' = A ((X v)' - a V),  G = U V_0',  G' = -A a G,
               which is (34) for n = 0 by (21), (22), (26), (28), (30), (32), and armatures; derivatives by (27), see
               products_of_A. In a fluid M of V' has added masses, M of G has not, and W has the drag.
    closed_form makes the matrices of (34) first, at O(n^3) in the bodies; here each A and each J acts on one vector.
    Deviations: as those of closed_form. Cost O(n order^3).
    """
    system = SystemMatrices(model, q, V)
    X = [system.X(k) for k in range(order + 2)]
    a = [system.a(k) for k in range(order + 1)]
    Xv = [leibniz(n, X, V) for n in range(order + 2)]
    ground = ca.vertcat(0, 0, 0, -model.gravity)  # V_0'
    twists = products_of_A(system, a, Xv)
    falling = products_of_A(system, a, [system.U() @ ground, *[ca.SX(6 * model.n, 1)] * order], of_ground=True)
    b = [system.brackets(x).T for x in twists[: order + 1]]  # (31), (46)
    momenta = [system.inertia @ x for x in twists[: order + 1]]
    wrenches = []
    for n in range(order + 1):
        wrenches.append(system.inertia @ twists[n + 1] + system.rigid @ falling[n] - leibniz(n, b, momenta))
        if model.fluid:
            wrenches[n] = wrenches[n] + system.drag_wrenches(twists[: n + 1])
    if W is not None:
        wrenches = [x - y for x, y in zip(wrenches, stacked_wrenches(model, W), strict=True)]
    passed = products_of_A_transposed(system, a, wrenches)
    XT, rotors = [x.T for x in X], armatures(model)
    return [leibniz(n, XT, passed) + rotors * V[n + 1] for n in range(order + 1)]


def products_of_A(system, a, x, of_ground=False):
    """Derivatives of y = A x from x = [X v, (X v)', ...] and a = [a, a', ...].

    of_ground: of y = U V_0' instead, given as [y, 0, 0, ...].
    Equation:  (A x)' = A (x' + a x - a A x), by (27), and again for what A acts on then: w_k, with derivative k of y =
               A w_k. As a X v = 0, and as U' = -A a U, the first step has no a x.
    """
    n = len(x)
    w, y = {(0, j): x[j] for j in range(n)}, []
    for m in range(n):
        for k in range(m):
            j = m - 1 - k
            acted = [(w[k, i] if k else 0) - y[k + i] for i in range(j + 1)]
            w[k + 1, j] = w[k, j + 1] + leibniz(j, a, acted)
        y.append(x[0] if of_ground and m == 0 else system.A_times(w[m, 0]))
    return y


def products_of_A_transposed(system, a, x):
    """Derivatives of A^T x from x = [x, x', ...] and a = [a, a', ...].

    Equation:  (A^T x)' = a^T A^T x + A^T (x' - a^T A^T x), the transpose of (27), and again for what A^T acts on then:
               w_k, with y_k = A^T w_k.
    """
    n, aT = len(x), [block.T for block in a]
    w, y = {(0, j): x[j] for j in range(n)}, {}
    for m in range(n):
        turned = {}
        for k in range(m):
            j = m - 1 - k
            turned[k] = leibniz(j, aT, [y[k, i] for i in range(j + 1)])
            w[k + 1, j] = w[k, j + 1] - turned[k]
        y[m, 0] = system.A_transposed_times(w[m, 0])
        for k in reversed(range(m)):
            y[k, m - k] = turned[k] + y[k + 1, m - 1 - k]
    return [y[0, m] for m in range(n)]
