"""Second partials of forward dynamics from those of inverse dynamics, on sparse matrices, nothing computed twice."""

from functools import partial

import casadi as ca

from ..partials.composite import bias
from ..partials.composite import composite as first_partials
from ..partials.implicit import inverse, mass_matrix, mass_solver
from ..registry import method
from .composite import CANNOT, composite
from .tensor import pairs, sparse_matrix


@method(
    "forward_dynamics_second_partials",
    "composite",
    kind="analytic",
    source="this toolkit; Singh et al. 2023, eqs. 44 to 49, on sparse matrices",
    cannot=CANNOT,
    regroup=True,
)
def forward_composite(model, order, q, v, T, W=None):
    """[(d2dv_dqdq, d2dv_dvdv, d2dv_dqdv, dMinv_dq, Minv)]; see od.describe("forward_dynamics_second_partials").

    Equation:  d2dv/du dw = -M^-1 (d2ID/du dw + dM/dw ddv/du + (dM/du ddv/dw)^R),   dM^-1/dq = -M^-1 dM/dq M^-1
    """
    nv, applied = model.robot.nv, W and W[0]
    M = mass_matrix(model, q)
    solve = mass_solver(M)
    Minv = inverse(solve, nv)
    dv = solve(T[0] - bias(model, q, v, applied))
    Q, D, _ = first_partials(model, q, v, dv, applied)
    dv_q, dv_v = -solve(Q), -solve(D)
    qq, vv, qv, dM = composite(model, 0, q, [v, dv], W)[0]
    pages = [ca.reshape(page, nv, nv) for page in ca.horzsplit(dM, 1)]  # of dM/dq_k
    by_q, by_v = ([page @ x for page in pages] for x in (dv_q, dv_v))

    def column(tensor, j, k):
        return tensor[nv * j : nv * (j + 1), k]

    inner_qq = {(j, k): column(qq, j, k) + by_q[k][:, j] + by_q[j][:, k] for j, k in pairs(model, "q", "q")}
    inner_vv = {(j, k): column(vv, j, k) for j, k in pairs(model, "v", "v")}
    inner_qv = {(j, k): column(qv, j, k) + by_v[j][:, k] for j, k in pairs(model, "q", "v")}
    sparse = ca.sparsify(Minv)  # where the fixed base carries several limbs
    # the factors have the entries of M, those of a tree fewer than the inverse
    apply = solve if ca.sparsify(M).nnz() < sparse.nnz() else partial(ca.mtimes, sparse)
    outer = [_outer(model, apply, x) for x in (inner_qq, inner_vv, inner_qv)]
    inner_M = [ca.sparsify(-ca.triu2symm(ca.triu(apply(page @ sparse)))) for page in pages]
    return [(*outer, ca.horzcat(*(ca.vec(x) for x in inner_M)), Minv)]


def _outer(model, apply, inner):
    """-M^-1 times all columns {(j, k): column}, as a tensor; a column that is not there is that at (k, j). apply: M^-1
    times a matrix."""
    nv = model.robot.nv
    columns = ca.horzsplit(ca.sparsify(-apply(ca.horzcat(*inner.values()))), 1) if inner else ()
    solved = dict(zip(inner, columns, strict=True))
    entries = {}
    for j in range(nv):
        for k in range(nv):
            x = solved.get((j, k), solved.get((k, j)))
            entries |= {(i + nv * j, k): x[i] for i in range(nv) if x[i].nnz()}
    return sparse_matrix(nv * nv, nv, entries)
