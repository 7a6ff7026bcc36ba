"""Matrices over the robot's velocities from blocks for pairs of bodies."""

from math import comb

import casadi as ca

from ..lie.jets import total
from ..lie.se3 import ad as bracket
from ..lie.time_derivatives import time_derivatives


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
    lines = [ca.horzcat(ca.SX(1, 0), *(entries.get((r, c), ca.SX(1, 1)) for c in range(nv))) for r in range(nv)]
    return ca.sparsify(ca.vertcat(ca.SX(0, nv), *lines))


def _add(entries, row, column, x):
    entries[row, column] = entries[row, column] + x if (row, column) in entries else x


def along_motion(model, order, q, V, W, partials, flow=None):
    """Partials of the derivatives 0..order of the torques by q, v, .., [(by q, v, dv), (by q, v, dv, d2v), ...], from
    those of the torques, by jtimes along the motion V = [v, dv, ...] with cse.

    Equation:  a step e of q with the step z of v goes with e' = z - [v, e], so that for the row (P, P_0, P_1, ...) of
    one order the next one has P' - P ad(v), P + P_0', P_0 + P_1', ...
    partials may have any number of rows; flow: [(symbol, its rate)] of what else they depend on, default that of W.
    """
    nv, height = model.robot.nv, partials[0].shape[0]
    if flow is None:
        flow = [] if W is None else list(zip(W[:-1], W[1:], strict=True))
    flow = [(q, model.configuration_rate(q, V[0])), *zip(V[:-1], V[1:], strict=True), *flow]
    stacked = ca.cse(ca.vertcat(*(ca.vec(ca.densify(x)) for x in partials)))
    found = time_derivatives(stacked, order, flow, cse=True)
    split = [[ca.sparsify(x.reshape((height, nv))) for x in ca.vertsplit(d, height * nv)] for d in found]
    row = [list(x) for x in zip(*split, strict=True)]  # matrix by matrix: its time derivatives
    ad = [velocity_brackets(model, v) for v in V]
    rows = [row]
    for r in range(order):
        first, *rest = row
        bracketed = [total(comb(k, l) * (first[l] @ ad[k - l]) for l in range(k + 1)) for k in range(order - r)]
        row = [
            [x - y for x, y in zip(first[1:], bracketed, strict=True)],
            *([x + y for x, y in zip(a, b[1:], strict=False)] for a, b in zip([first, *rest[:-1]], rest, strict=True)),
            rest[-1],
        ]
        rows.append(row)
    return [tuple(x[0] for x in row) for row in rows]


def velocity_brackets(model, v):
    """ad(v) (nv, nv) with ad(v) e = [v, e]: zero but for joints whose velocities are not rates of coordinates."""
    v, blocks = model.joint_v(v), {}
    for i in model.bodies:
        S, (_, _, first, size) = model.S[i], model.coordinates[i]
        turns = model.kind[i] in ("spherical", "planar", "free")
        blocks[first] = ca.sparsify(S.T @ bracket(S @ v[i]) @ S) if turns else ca.SX(size, size)
    return ca.diagcat(ca.SX(0, 0), *(blocks[first] for first in sorted(blocks)))


def symmetrised(A):
    """Symmetric part of a matrix, computed once for both halves."""
    return ca.triu2symm(ca.triu(0.5 * (A + A.T)))
