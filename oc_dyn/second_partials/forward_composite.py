"""Second partials of forward dynamics from those of inverse dynamics, between the factors of the mass matrix."""

import casadi as ca

from ..forward_dynamics.mass_solver import factor_reversed
from ..lie.so3 import skew
from ..partials.composite import bias
from ..partials.composite import composite as first_partials
from ..partials.implicit import mass_matrix
from ..registry import method
from ..working_axes.frames import upper_mirrored
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
    scaled = (E @ ca.sparsify(x) for x in (Q, D))  # D^-1 P
    by_q, by_v = ([ca.sparsify(page @ x) for page in A] for x in scaled)

    def column(tensor, j, k):
        return G @ tensor[nv * j : nv * (j + 1), k]

    bases = _free_bases(model)
    of_bases = {j for columns in bases.values() for j in columns}
    both_q = [pair for pair in pairs(model, "q", "q") if of_bases.isdisjoint(pair)]
    inner_qq = {(j, k): column(qq, j, k) - by_q[k][:, j] - by_q[j][:, k] for j, k in both_q}
    inner_vv = {(j, k): column(vv, j, k) for j, k in pairs(model, "v", "v")}
    inner_qv = {(j, k): column(qv, j, k) - by_v[j][:, k] for j, k in pairs(model, "q", "v")}
    outer = [_outer(nv, E.T, *x) for x in ((inner_qq, _falls(model, q, bases)), (inner_vv,), (inner_qv,))]
    by_page = [-symmetric_product(ca.sparsify(E.T @ page), E) for page in A]
    return [(*outer, ca.horzcat(*(ca.vec(x) for x in by_page)), Minv)]


def inverse_factors(M):
    """(G, E) with M^-1 = E^T G = G^T D^-1 G, of M = F D F^T: F, upper triangular with ones on its diagonal, and its
    inverse G have entries on paths alone, see factor_reversed."""
    n = M.shape[0]
    if not n:
        return M, M
    D, LT, _ = factor_reversed(M)
    F, rows = LT.T[::-1, ::-1], {}  # without the ones
    for i in reversed(range(n)):
        above = (F[i, j] * rows[j] for j in F[i, :].sparsity().get_triplet()[1])
        rows[i] = ca.DM.triplet([0], [i], [1], 1, n) - sum(above, ca.SX(1, n))
    G = ca.vertcat(*(rows[i] for i in range(n)))
    return G, ca.sparsify(ca.diag(1 / D[::-1])) @ G


def symmetric_product(A, B):
    """A B where it is symmetric; half of it is computed."""
    return ca.sparsify(upper_mirrored(A @ B)) if A.shape[0] else A


def _falls(model, q, bases):
    """{(j, k): column (nv,)} of d2dv/dq_j dq_k for angles j, k of free bases; the others by their coordinates are zero.

    Equation:  dv = f(what is no pose of the base) + R^T g in its linear rows, d2(R^T g)/dq_j dq_k = e_j x (e_k x R^T g)
    """
    out, turns = {}, [skew(e) for e in ca.horzsplit(ca.DM.eye(3))]
    for i, columns in bases.items():
        R, _ = model.placement(i, model.joint_q(q)[i])
        for j, of_j in zip(columns, turns, strict=False):
            for k, of_k in zip(columns, turns, strict=False):
                out[j, k] = ca.SX(model.robot.nv, 1)
                out[j, k][columns[3:]] = of_j @ (of_k @ (R.T @ model.gravity))
    return out


def _free_bases(model):
    """{body on a free joint at the ground: places of its velocities}; free joints have no armature."""
    first = {i: model.coordinates[i][2] for i in model.children[0] if model.kind[i] == "free"}
    return {i: list(range(start, start + 6)) for i, start in first.items()}


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
