"""Mass matrix by composite bodies: each column is the wrench that moves all bodies beyond a joint, as one."""

from dataclasses import dataclass

import casadi as ca

from ..kinematics.fields import product
from ..kinematics.step import cross
from ..kinematics.subtrees import Collected, Sums, constants
from ..kinematics.working_frames import working_frames
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
    """Mass matrix [M] (nv, nv); see od.describe("mass_matrix")."""
    return [composite(model, q)]


def composite(model, q):
    """Mass matrix (nv, nv) at q (nq,), in working axes. Cost O(n depth).

    Symbols: m, h, T mass, first moment and tensor of a composite body about its origin; n, f the wrench of a column.
    """
    S = {i: (x[0][:3, :], x[0][3:, :]) for i, x in model.subspaces(q, [], 0).items()}
    frames = working_frames(model, model.joint_q(q))

    def own(i, early):
        alone = _Inertia(*constants(model.inertia[i])[:3])
        return alone.turned(frames[i].turn) if early else alone

    inertias, entries = Collected(model, frames, _Inertia.zero(), own), {}
    for i in model.tips_first:
        n, f = inertias.sum(i).momentum(*S[i])
        entries[i, i] = product(S[i], (n, f)) + model.rotor(i)
        frame, p = frames[i], model.parent[i]
        while p:
            n, f = frame.wrench(n, f)
            arrived, frame = frame.parallel, frames[p]
            if not arrived and (model.parent[p] or not frame.along_z):
                n, f = frame.turn.outward(n), frame.turn.outward(f)
            entries[p, i] = product(S[p], (n, f))  # a screw along z is the same on both sides of the turn
            p = model.parent[p]
    return _assemble(model, entries)


@dataclass
class _Inertia(Sums):
    m: object
    h: object
    T: object

    VECTORS, SYMMETRIC = "h", "T"

    def moved(self, frame):
        """The same about the parent's origin, in the axes of it that `frame` hangs on."""
        return _Inertia(*frame.inertia(self.m, self.h, self.T))

    def momentum(self, a, b):
        """Moments and forces of columns of angular and linear velocities."""
        return self.T @ a + cross(self.h, b), self.m * b - cross(self.h, a)


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
