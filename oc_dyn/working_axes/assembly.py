"""Matrices over the robot's velocities from blocks for bodies and pairs of bodies."""

import casadi as ca

from ..lie.se3 import ad as bracket
from ..model.joints import GROUPS

NOT_COMMUTING = GROUPS  # kinds of joints whose velocities have brackets


def assembled(model, blocks, mirrored=False):
    """Sparse matrix (nv, nv) from {(body of the rows, body of the columns): block}; mimic joints add to their master.

    mirrored: blocks are the upper half of a symmetric matrix, those of one body full; their lower halves are not read.
    """
    entries = {}
    for (j, i), block in blocks.items():
        _, _, first_row, rows = model.coordinates[j]
        _, _, first_column, columns = model.coordinates[i]
        scale = model.rule[j][0] * model.rule[i][0]
        for a in range(rows):
            for b in range(a if mirrored and i == j else 0, columns):
                x = scale * block[a, b] if scale != 1.0 else block[a, b]
                row, column = first_row + a, first_column + b
                _add(entries, row, column, x)
                if mirrored and (row != column or i != j):
                    _add(entries, column, row, x)
    nv = model.robot.nv
    lines = [ca.horzcat(*(entries.get((r, c), ca.DM(1, 1)) for c in range(nv))) for r in range(nv)]
    return ca.sparsify(ca.vertcat(*lines)) if nv else ca.DM(0, 0)


def _add(entries, row, column, x):
    entries[row, column] = entries[row, column] + x if (row, column) in entries else x


def in_columns(model, i, S):
    """(6, nv) matrix with the screws S (6, nv_i), or None, of joint i in the columns of the robot's velocities."""
    _, _, first, size = model.coordinates[i]
    after = model.robot.nv - first - size
    return ca.horzcat(ca.DM(6, first), ca.DM(6, size) if S is None else model.rule[i][0] * S, ca.DM(6, after))


def armatures(model):
    """(nv,) rotor inertias, as the robot's velocities feel them."""
    total = [0.0] * model.robot.nv
    for i in model.bodies:
        _, _, first, size = model.coordinates[i]
        for a in range(size):
            total[first + a] += model.rule[i][0] ** 2 * model.rotor(i)[a, a]
    return ca.vertcat(ca.DM(0, 1), *total)


def velocity_brackets(model, v):
    """ad(v) (nv, nv) with ad(v) e = [v, e]: zero but for joints whose velocities are not rates of coordinates."""
    v, blocks = model.joint_v(v), {}
    for i in model.bodies:
        S, (_, _, first, size) = model.S[i], model.coordinates[i]
        turns = model.kind[i] in NOT_COMMUTING
        blocks[first] = ca.sparsify(S.T @ bracket(S @ v[i]) @ S) if turns else ca.DM(size, size)
    return ca.diagcat(ca.DM(0, 0), *(blocks[first] for first in sorted(blocks)))
