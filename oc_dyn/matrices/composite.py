"""Mass matrix by composite bodies: each column is the wrench that moves all bodies beyond a joint, as one."""

import casadi as ca

from ..kinematics.step import cross
from ..kinematics.working_frames import hangs_on_parallel_axes, sparse, working_frames
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
    """Mass matrix (nv, nv) at q (nq,), in working axes. Cost O(n depth).

    Symbols: m, h, T mass, first moment and tensor of a composite body about its origin; n, f the wrench of a column.
    """
    S = {i: (x[0][:3, :], x[0][3:, :]) for i, x in model.subspaces(q, [], 0).items()}
    frames = working_frames(model, model.joint_q(q))
    in_body, in_working = {}, {}  # sums of what hangs on the body's axes, and on its working axes
    for i in model.bodies:
        own = [model.inertia[i].mass, sparse(model.inertia[i].moment), sparse(model.inertia[i].tensor)]
        zero = [0, ca.DM(3, 1), ca.DM(3, 3)]
        early = hangs_on_parallel_axes(model, frames, i)
        in_body[i], in_working[i] = (zero, _turned(frames[i], *own)) if early else (own, zero)
    entries = {}
    for i in model.tips_first:
        m, h, T = _added(_turned(frames[i], *in_body[i]), in_working[i])
        a, b = S[i]
        n, f = T @ a + cross(h, b), m * b - cross(h, a)
        entries[i, i] = a.T @ n + b.T @ f + model.armature[i] * ca.DM.eye(a.shape[1])
        frame, p = frames[i], model.parent[i]
        if p:
            side = in_working if frame.parallel else in_body
            side[p] = _added(side[p], frame.inertia(m, h, T))
        while p:
            n, f = frame.wrench(n, f)
            arrived, frame = frame.parallel, frames[p]
            if not arrived and (model.parent[p] or not frame.along_z):
                n, f = frame.turn.outward(n), frame.turn.outward(f)
            entries[p, i] = S[p][0].T @ n + S[p][1].T @ f  # a screw along z is the same on both sides of the turn
            p = model.parent[p]
    return _assemble(model, entries)


def _turned(frame, m, h, T):
    return [m, frame.turn.outward(h), frame.turn.symmetric(T)]


def _added(a, b):
    return [x + y for x, y in zip(a, b, strict=True)]


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
