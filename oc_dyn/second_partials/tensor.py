"""Tensors of second partials: entry (i, j, k) is kept at row i + nv j, column k of a matrix (nv nv, nv)."""

from __future__ import annotations

from typing import Any

import casadi as ca

from ..errors import ShapeError
from ..lie.quick import quick
from ..numbers import as_floats
from ..types import Array, Numbers


def as_tensor(matrix: Numbers) -> Array:
    """numpy array (nv, nv, nv), axes (torque, first, second), of a matrix (nv nv, nv) of second partials.

    matrix: numbers, as a Function of second partials gives them. Raises ShapeError for any other shape.
    """
    array = as_floats("as_tensor", matrix)
    n = array.shape[-1] if array.ndim == 2 else 0
    if array.ndim != 2 or array.shape[0] != n * n:
        raise ShapeError(f"as_tensor: got shape {array.shape}, expected (nv nv, nv), a matrix of second partials")
    return array.reshape((n, n, n), order="F")


class Tensor:
    """A tensor that grows entry by entry; what is not put in is structurally zero.

    Its places are (body, column of its joint); mimic joints add to their master.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.entries: dict[tuple[int, int], Any] = {}

    def put(self, i: tuple[int, int], j: tuple[int, int], k: tuple[int, int], x: Any) -> None:
        """Add x to entry (i, j, k)."""
        model, scale, place = self.model, 1.0, []
        for body, column in (i, j, k):
            place.append(model.coordinates[body][2] + column)
            scale *= model.rule[body][0]
        x = quick(x)
        if x.is_zero():
            return
        x = scale * x if scale != 1.0 else x
        place = place[0] + model.robot.nv * place[1], place[2]
        self.entries[place] = self.entries[place] + x if place in self.entries else x

    def put_both(self, i: tuple[int, int], j: tuple[int, int], k: tuple[int, int], x: Any) -> None:
        """Add x to the entries (i, j, k) and (i, k, j)."""
        self.put(i, j, k, x)
        self.put(i, k, j, x)

    def matrix(self) -> ca.SX:
        """The tensor as sparse SX (nv nv, nv)."""
        nv = self.model.robot.nv
        return sparse_matrix(nv * nv, nv, self.entries)


def sparse_matrix(rows: int, columns: int, entries: dict[tuple[int, int], Any]) -> ca.SX:
    """Sparse SX (rows, columns) from {(row, column): scalar}."""
    places = sorted(entries, key=lambda place: place[::-1])
    pattern = ca.Sparsity.triplet(rows, columns, [r for r, _ in places], [c for _, c in places])
    return ca.SX(pattern, ca.vertcat(ca.SX(0, 1), *(entries[place] for place in places)))


def pattern(model: Any) -> ca.Sparsity:
    """Sparsity (nv nv, nv) of what a tree leaves: entry (i, j, k) only where the three are on one path to a tip."""
    nv, places = model.robot.nv, set()
    columns = {i: range(model.coordinates[i][2], sum(model.coordinates[i][2:])) for i in model.bodies}
    for i in model.bodies:
        path = model.support(i)
        for a in path:
            for b in path:
                for x, y, z in ((i, a, b), (a, i, b), (a, b, i)):
                    places |= {(r + nv * s, t) for r in columns[x] for s in columns[y] for t in columns[z]}
    rows, columns = zip(*places, strict=True) if places else ((), ())
    return ca.Sparsity.triplet(nv * nv, nv, rows, columns)


def swapped(tensor: Any) -> Any:
    """The tensor, SX, MX or DM, with its second and third axes exchanged."""
    nv = tensor.shape[1]
    places = [i + nv * k + nv * nv * j for k in range(nv) for j in range(nv) for i in range(nv)]
    return ca.reshape(ca.vec(tensor)[places], nv * nv, nv)  # zeros that the tree makes stay structural


def halved(model: Any, letter: str, tensor: ca.SX) -> ca.SX:
    """The tensor with the entries (i, k, j) of pairs(model, letter, letter) alone, which stand at (i, j, k), too, where
    both orders are the same: the others need not be computed, and by Jacobians these are the shorter ones."""
    nv, wanted, entries = tensor.shape[1], set(pairs(model, letter, letter)), {}
    for row, j, x in _nonzeros(tensor):
        k, i = divmod(row, nv)
        if (j, k) in wanted:
            entries[row, j] = x
            if (k, j) not in wanted:
                entries[i + nv * j, k] = x
    return sparse_matrix(nv * nv, nv, entries)


def mass_sums(dM: ca.SX) -> tuple[ca.SX, ca.SX]:
    """(dM/dq, d2tau/dvdv) where velocities are rates of coordinates, from entries (i, j, k), i <= j, of dM/dq alone.

    Equation:  d2tau_i/dv_j dv_k = dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i
    """
    nv = dM.shape[1]
    upper = {(row % nv, row // nv, k): x for row, k, x in _nonzeros(dM) if row % nv <= row // nv}
    both = upper | {(j, i, k): x for (i, j, k), x in upper.items()}
    sums: dict[tuple[int, int], Any] = {}
    for (i, j, k), x in both.items():
        for a, b, c, y in ((i, j, k, x), (i, k, j, x), (k, i, j, -x)):
            place = a + nv * b, c
            sums[place] = sums[place] + y if place in sums else y
    kept = {place: x for place, x in sums.items() if not ca.SX(x).is_zero()}
    matrix = {(i + nv * j, k): x for (i, j, k), x in both.items()}
    return sparse_matrix(nv * nv, nv, matrix), sparse_matrix(nv * nv, nv, kept)


def _nonzeros(matrix: ca.SX) -> Any:
    """(row, column, entry) of what is not structurally zero."""
    return zip(*matrix.sparsity().get_triplet(), matrix.nonzeros(), strict=True)


def pairs(model: Any, a: str, b: str) -> list[tuple[int, int]]:
    """Pairs (j, k) of coordinates to differentiate by, first by the letter a, "q" or "v", then by b; where both orders
    are the same only j >= k."""
    joint = [n for n, j in enumerate(model.robot.joints) for _ in range(j.nv)]
    commute = [a == b and (a == "v" or j != k) for j in joint for k in joint]
    nv = model.robot.nv
    return [(j, k) for j in range(nv) for k in range(nv) if j >= k or not commute[nv * j + k]]
