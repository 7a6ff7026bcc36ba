"""Inverse dynamics of any order by the matrices of the equations of motion and their time derivatives."""

from math import comb

import casadi as ca

from ..lie.jets import total
from ..registry import method
from .system_matrices import SystemMatrices


@method(
    "inverse_dynamics",
    "closed_form",
    kind="closed_form",
    source="Kumar and Mueller 2021, section III, eqs. 21 to 47",
    regroup=True,
    fluid=True,
)
def closed_form(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques; see od.describe("inverse_dynamics") for q, V, W.

    Equation:  Q^(n) = sum_k C(n,k) (M^(n-k) v^(k+1) + C^(n-k) v^(k)) + Qgrav^(n) - sum_k C(n,k) (J^(n-k))^T W^(k)
    Deviations: applied wrenches, trees, joints of several velocities; see SystemMatrices. Cost O(n^3 order^3).
    """
    system = SystemMatrices(model, q, V)
    applied = None if W is None else stacked_wrenches(model, W)
    out = []
    for n in range(order + 1):
        Q = system.g(n) + total(
            comb(n, k) * (system.M(n - k) @ V[k + 1] + system.C(n - k) @ V[k]) for k in range(n + 1)
        )  # (34)
        if model.fluid:
            Q = Q + system.drag(n)
        if applied is not None:
            Q = Q - total(comb(n, k) * (system.J(n - k).T @ applied[k]) for k in range(n + 1))
        out.append(Q)
    return out


def stacked_wrenches(model, W):
    """Derivatives of the applied wrenches, those of all bodies in one column (6 bodies,), from w_ext and its."""
    by_body = [model.wrenches(x) for x in W]
    return [ca.vertcat(*(x[i] for i in model.bodies)) for x in by_body]
