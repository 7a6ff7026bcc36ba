"""Mass matrix by composite bodies: each column is the wrench that moves all bodies beyond a joint, as one."""

import casadi as ca

from ..kinematics.step import Step, cross
from ..model.inertia import casadi_value
from ..registry import method


@method(
    "mass_matrix",
    "composite",
    kind="analytic",
    source="Walker and Orin 1982, composite rigid bodies, with base parameters",
    max_order=0,
    regroup=True,
)
def composite_method(model, order, q, V):
    """Mass matrix [M] (nv, nv); see the quantity."""
    return [composite(model, q)]


def composite(model, q):
    """Mass matrix (nv, nv) at q (nq,). Cost O(n depth).

    Symbols: m, h, T mass, first moment and tensor of a composite body about its origin; n, f the wrench of a column.
    """
    motions = model.subspaces(q, [], 0)
    q = model.joint_q(q)
    m = {i: model.inertia[i].mass for i in model.bodies}
    h = {i: casadi_value(model.inertia[i].moment) for i in model.bodies}
    T = {i: casadi_value(model.inertia[i].tensor) for i in model.bodies}
    entries = {}
    step = {i: Step(model, i, q[i]) for i in model.bodies}
    for i in model.tips_first:
        S = motions[i][0]
        n = T[i] @ S[:3, :] + cross(h[i], S[3:, :])
        f = m[i] * S[3:, :] - cross(h[i], S[:3, :])
        j = i
        block = S.T @ ca.vertcat(n, f) + model.armature[i] * ca.DM.eye(S.shape[1])
        entries[i, i] = block
        while model.parent[j]:
            n, f = step[j].wrench(n, f)
            j = model.parent[j]
            entries[j, i] = motions[j][0].T @ ca.vertcat(n, f)
        p = model.parent[i]
        if p:
            mass, moment, tensor = step[i].inertia(m[i], h[i], T[i])
            m[p], h[p], T[p] = m[p] + mass, h[p] + moment, T[p] + tensor
    return _assemble(model, entries)


def _assemble(model, entries):
    """Matrix from blocks {(ancestor, body): S_ancestor^T wrench of body}; mimic joints add to their master."""
    nv = model.robot.nv
    M = [[ca.DM(0)] * nv for _ in range(nv)]
    for (j, i), block in entries.items():
        _, _, first_row, rows = model.coordinates[j]
        _, _, first_column, columns = model.coordinates[i]
        scale = model.rule[j][0] * model.rule[i][0]
        for a in range(rows):
            for b in range(a if i == j else 0, columns):  # a block on the diagonal is symmetric: one half of it
                x = scale * block[a, b] if scale != 1.0 else block[a, b]
                row, column = first_row + a, first_column + b
                M[row][column] = M[row][column] + x
                if row != column or i != j:
                    M[column][row] = M[column][row] + x
    return ca.vertcat(*(ca.horzcat(*row) for row in M)) if nv else ca.DM.zeros(0, 0)
