"""Mass matrix and its time derivatives as the sum over bodies of J^T M J."""

from math import comb

import casadi as ca

from ..inverse_dynamics.recursive_body import forward_kinematics
from ..lie.jets import total
from ..registry import method


@method(
    "mass_matrix",
    "jacobian_sum",
    kind="closed_form",
    source="Garofalo et al. 2013, section II; derivatives of the body Jacobians by Kumar and Mueller 2021, eq. 17",
)
def jacobian_sum(model, order, q, V):
    """Derivatives 0..order of the mass matrix; see the quantity.

    Equation:  M^(k) = sum_i sum_l C(k,l) (J_i^(l))^T M_i J_i^(k-l)
    """
    nv = model.robot.nv
    v = [*V, ca.DM.zeros(nv)]  # the top derivative does not enter the screws
    _, B, _, _ = forward_kinematics(model, order, q, v)
    out = []
    for k in range(order + 1):
        M = ca.diag(_armatures(model)) if k == 0 else ca.DM.zeros(nv, nv)
        for i in model.bodies:
            J = [_jacobian(model, B, i, order=level) for level in range(k + 1)]
            M = M + total(comb(k, l) * (J[l].T @ (model.M[i] @ J[k - l])) for l in range(k + 1))
        out.append(M)
    return out


def _jacobian(model, B, i, order):
    """Derivative of the Jacobian (6, nv) of body i, in its frame, from its joint screws."""
    columns = [ca.DM.zeros(6)] * model.robot.nv
    for j in model.support(i):
        _, _, first, size = model.coordinates[j]
        for a in range(size):
            k = first + a
            columns[k] = columns[k] + model.rule[j][0] * B[i, j][order][:, a]
    return ca.horzcat(*columns)


def _armatures(model):
    total = [0.0] * model.robot.nv
    for i in model.bodies:
        _, _, first, size = model.coordinates[i]
        for a in range(size):
            total[first + a] += model.rule[i][0] ** 2 * model.armature[i]
    return ca.DM(total)
