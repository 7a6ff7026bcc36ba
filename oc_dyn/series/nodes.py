"""Operations of matrix expressions (MX), made anew of other operands: those that are linear in all of them, and those
that are written out in scalars."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import casadi as ca


def _taken(node: Any, x: Any) -> Any:
    """Entries of x."""
    return ca.MX(node.sparsity(), x.nz[_places(node)])


def _set(node: Any, y: Any, x: Any) -> Any:
    """y, some of whose entries are those of x."""
    found = ca.MX(y)
    found.nz[_places(node)] = _entries(x)
    return found


def _added(node: Any, y: Any, x: Any) -> Any:
    """y, to some of whose entries those of x are added, to one perhaps several times."""
    places = _places(node)
    pattern = ca.Sparsity.triplet(y.nnz(), len(places), places, list(range(len(places))))
    return ca.MX(y.sparsity(), _entries(y) + ca.mtimes(ca.DM(pattern, 1), _entries(x)))


def _entries(x: Any) -> Any:
    """A column of them."""
    return x.nz[list(range(x.nnz()))]


def _places(node: Any) -> list[int]:
    """The numbers of the entries that a node reads or sets."""
    info = node.info()
    if "nz" in info:
        return list(info["nz"])
    if "slice" in info:
        return _range(info["slice"])
    inner, outer = _range(info["inner"]), _range(info["outer"])
    return [i + j for j in outer for i in inner]


def _range(info: dict[str, int]) -> list[int]:
    return list(range(info["start"], info["stop"], info["step"]))


def _part(node: Any, x: Any) -> Any:
    """One of the parts of x."""
    source = node.dep(0)
    sizes = [source.get_output(i).shape for i in range(source.n_out())]
    rows, columns = ([0, *accumulate(size[k] for size in sizes)] for k in range(2))
    op, i = source.op(), node.which_output()
    if op == ca.OP_VERTSPLIT:
        return ca.vertsplit(x, rows)[i]
    return ca.horzsplit(x, columns)[i] if op == ca.OP_HORZSPLIT else ca.diagsplit(x, rows, columns)[i]


LINEAR: dict[int, Callable[..., Any]] = {  # (node, *operands) -> the same operation of these operands
    ca.OP_HORZCAT: lambda node, *x: ca.horzcat(*x),
    ca.OP_VERTCAT: lambda node, *x: ca.vertcat(*x),
    ca.OP_DIAGCAT: lambda node, *x: ca.diagcat(*x),
    **dict.fromkeys((ca.OP_VERTSPLIT, ca.OP_HORZSPLIT, ca.OP_DIAGSPLIT), _part),
    ca.OP_RESHAPE: lambda node, x: ca.reshape(x, node.sparsity()),
    ca.OP_TRANSPOSE: lambda node, x: x.T,
    ca.OP_PROJECT: lambda node, x: ca.project(x, node.sparsity()),
    ca.OP_SPARSITY_CAST: lambda node, x: ca.sparsity_cast(x, node.sparsity()),
    ca.OP_HORZREPMAT: lambda node, x: ca.repmat(x, 1, node.size2() // x.size2()),
    ca.OP_HORZREPSUM: lambda node, x: ca.repsum(x, 1, x.size2() // node.size2()),
    ca.OP_GETNONZEROS: _taken,
    ca.OP_SETNONZEROS: _set,
    ca.OP_ADDNONZEROS: _added,
}


def _log_of_sum(x: Any) -> Any:
    """logsumexp, as CasADi computes it."""
    top = ca.mmax(x)
    return top + ca.log(ca.sum1(ca.exp(x - top)))


SCALAR: dict[int, Callable[..., Any]] = {  # of SX
    ca.OP_BILIN: ca.bilin,
    ca.OP_RANK1: ca.rank1,
    ca.OP_KRON: ca.kron,
    ca.OP_DETERMINANT: ca.det,
    ca.OP_INVERSE: ca.inv,
    ca.OP_NORM1: ca.norm_1,
    ca.OP_NORM2: ca.norm_2,
    ca.OP_NORMF: ca.norm_fro,
    ca.OP_NORMINF: ca.norm_inf,
    ca.OP_MMIN: ca.mmin,
    ca.OP_MMAX: ca.mmax,
    ca.OP_LOGSUMEXP: _log_of_sum,
}
