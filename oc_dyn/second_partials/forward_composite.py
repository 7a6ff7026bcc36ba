"""Second partials of forward dynamics from those of inverse dynamics, between the factors of the mass matrix."""

import casadi as ca

from ..forward_dynamics.mass_solver import factor_reversed
from ..lie.so3 import skew
from ..partials.composite import bias
from ..partials.composite import composite as first_partials
from ..partials.implicit import mass_matrix
from ..registry import method
from .composite import CANNOT, composite
from .tensor import pairs, sparse_matrix


@method(
    "forward_dynamics_second_partials",
    "composite",
    kind="analytic",
    source="this toolkit; Singh et al. 2023, eqs. 44 to 49, between the factors of Featherstone 2005",
    cannot=CANNOT,
    regroup=True,
)
def forward_composite(model, order, q, v, T, W=None):
    """[(d2dv_dqdq, d2dv_dvdv, d2dv_dqdv, dMinv_dq, Minv)]; see od.describe("forward_dynamics_second_partials").

    Equation:  d2dv/du dw = -M^-1 (d2ID/du dw + dM/dw ddv/du + (dM/du ddv/dw)^R),   dM^-1/dq = -M^-1 dM/dq M^-1
    With M^-1 = E^T G, see inverse_factors, A_k = G dM/dq_k G^T and P_u = G dID/du it is
               d2dv/dq_j du_k = -E^T (G d2ID/dq_j du_k - A_j D^-1 P_u,k - (A_k D^-1 P_q,j where u is q))
               dM^-1/dq_k = -E^T A_k E
    What stands between E^T and E has entries on paths alone, as G has, where M^-1 has them everywhere on a robot with a
    free base. Where that is matters to its own fall only: all partials by its coordinates are those of gravity.
    """
    nv, applied = model.robot.nv, W and W[0]
    G, E = inverse_factors(mass_matrix(model, q))
    Minv = symmetric_product(E.T, G)
    dv = E.T @ (G @ (T[0] - bias(model, q, v, applied)))
    Q, D, _ = first_partials(model, q, v, dv, applied)
    qq, vv, qv, dM = composite(model, 0, q, [v, dv], W)[0]
    pages = [ca.sparsify(ca.reshape(page, nv, nv)) for page in ca.horzsplit(dM, 1)]  # dM/dq_k
    A = [symmetric_product(ca.sparsify(G @ page), G.T) for page in pages]
    by_q, by_v = ([ca.sparsify(page @ (E @ x)) for page in A] for x in (ca.sparsify(Q), ca.sparsify(D)))

    def column(tensor, j, k):
        return G @ tensor[nv * j : nv * (j + 1), k]

    falls = by_free_bases(model, q)
    of_base = {j for i in _free_bases(model) for j in _columns(model, i)}
    both_q = [pair for pair in pairs(model, "q", "q") if of_base.isdisjoint(pair)]
    inner_qq = {(j, k): column(qq, j, k) - by_q[k][:, j] - by_q[j][:, k] for j, k in both_q}
    inner_vv = {(j, k): column(vv, j, k) for j, k in pairs(model, "v", "v")}
    inner_qv = {(j, k): column(qv, j, k) - by_v[j][:, k] for j, k in pairs(model, "q", "v")}
    outer = [_outer(nv, E.T, *x) for x in ((inner_qq, falls), (inner_vv,), (inner_qv,))]
    by_page = [-symmetric_product(ca.sparsify(E.T @ page), E) for page in A]
    return [(*outer, ca.horzcat(*(ca.vec(x) for x in by_page)), Minv)]


def inverse_factors(M):
    """(G, E) with M^-1 = E^T G = G^T D^-1 G, of M = F D F^T: F, upper triangular with ones on its diagonal, and its
    inverse G have entries on paths alone, see factor_reversed."""
    D, LT, _ = factor_reversed(M) if M.shape[0] else (ca.SX(0, 1), ca.SX(0, 0), [])
    F, D = LT.T[::-1, ::-1], D[::-1]  # without the ones
    rows = []
    for i in reversed(range(M.shape[0])):
        unit = ca.SX(ca.DM.triplet([0], [i], [1], 1, M.shape[0]))
        above = (F[i, j] * rows[M.shape[0] - 1 - j] for j in F[i, :].sparsity().get_triplet()[1])
        rows.append(unit - sum(above, ca.SX(1, M.shape[0])))
    G = ca.vertcat(ca.SX(0, M.shape[0]), *reversed(rows))
    return G, ca.sparsify(ca.diag(1 / D)) @ G


def symmetric_product(A, B):
    """A B where it is symmetric; half of it is computed."""
    return ca.sparsify(ca.triu2symm(ca.triu(A @ B))) if A.shape[0] else A


def by_free_bases(model, q):
    """{(j, k): column (nv,)} of d2dv/dq_j dq_k for angles j, k of free bases; the others by their coordinates are zero.

    Equation:  dv = f(what is no pose of the base) + R^T g in its linear rows, d2(R^T g)/dq_j dq_k = e_j x (e_k x R^T g)
    """
    out = {}
    for i in _free_bases(model):
        R, _ = model.placement(i, model.joint_q(q)[i])
        columns, turn = _columns(model, i), [skew(e) for e in ca.horzsplit(ca.DM.eye(3))]
        for j in range(3):
            for k in range(3):
                fall = turn[j] @ (turn[k] @ (R.T @ model.gravity))
                below = model.robot.nv - columns[-1] - 1
                out[columns[j], columns[k]] = ca.vertcat(ca.SX(columns[3], 1), fall, ca.SX(below, 1))
    return out


def _free_bases(model):
    """Bodies on free joints at the ground; free joints have no armature."""
    return [i for i in model.children[0] if model.kind[i] == "free"]


def _columns(model, i):
    """Places of the velocities of joint i."""
    start, size = model.coordinates[i][2:]
    return range(start, start + size)


def _outer(nv, left, inner, solved=()):
    """-left times all columns {(j, k): column}, and columns that are solved, as a tensor; one that is not there is that
    at (k, j), if there is one, or zero."""
    columns = ca.horzsplit(ca.sparsify(-(left @ ca.sparsify(ca.horzcat(*inner.values())))), 1) if inner else ()
    solved = dict(solved) | dict(zip(inner, columns, strict=True))
    entries = {}
    for (j, k), x in solved.items():
        for a, b in [(j, k)] if (k, j) in solved else [(j, k), (k, j)]:
            entries |= {(i + nv * a, b): x[i] for i in range(nv) if x[i].nnz()}
    return sparse_matrix(nv * nv, nv, entries)
