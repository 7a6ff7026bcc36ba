"""Matrices with their first and second partials, all of a kind side by side: lines of an algorithm are differentiated
by a few products of matrices, however many coordinates there are.

A matrix (r, c) has columns vec(dX/dx_k) (r c, nv) for each letter x, and vec(d2X/dx_j dy_k) (r c, pairs) for pairs of
letters. Columns of coordinates that a matrix does not depend on are structurally zero, and cost nothing.
"""

from dataclasses import dataclass, field

import casadi as ca

from ..forward_dynamics.articulated_body import factor, solve
from ..lie.se3 import ad, force_cross

_UNITS = ca.horzsplit(ca.densify(ca.DM.eye(6)))
_BRACKET = ca.sparsify(ca.horzcat(*(ca.vec(ad(x)) for x in _UNITS)))  # vec(ad(X)) from X
_FORCE = ca.sparsify(ca.horzcat(*(ca.vec(-ad(x).T) for x in _UNITS)))  # vec(-ad(X)^T) from X


@dataclass(frozen=True)
class Differentiated:
    """value (r, c); first {letter: columns}; second {letters: columns}, the first letter's coordinate stepped first.

    pairs: {letters: [(j, k)]}, the columns of `second`; they are the same for all matrices that are combined. A letter
    that is missing is one that the matrix does not depend on.
    """

    pairs: dict
    value: object
    first: dict = field(default_factory=dict)
    second: dict = field(default_factory=dict)

    def map(self, linear):
        """A linear function of matrices: L X, as L (rows, r) for r rows of X with one column."""
        return self._each(lambda x: linear @ x, linear @ self.value)

    def __add__(self, other):
        first, second = (_sum(a, b) for a, b in ((self.first, other.first), (self.second, other.second)))
        return Differentiated(self.pairs, self.value + other.value, first, second)

    def __neg__(self):
        return self._each(lambda x: -x, -self.value)

    def __sub__(self, other):
        return self + -other

    def __matmul__(self, other):
        (r, _), c = self.value.shape, other.value.shape[1]
        by_left, by_right = _right(other.value, r), _left(self.value, c)
        return _bilinear(self, other, self.value @ other.value, by_left, by_right, lambda x: x)

    @property
    def T(self):
        """The transpose."""
        r, c = self.value.shape
        rows = [i + r * j for i in range(r) for j in range(c)]
        return self._each(lambda x: x[rows, :], self.value.T)

    def inverse(self):
        """The inverse of a symmetric matrix: G' = -G X' G."""
        n = self.value.shape[0]
        G = _inverse(n)(self.value)
        right, left = _right(G, n), _left(-G, n)
        first = {a: left(right(x)) for a, x in self.first.items()}
        once = Differentiated(self.pairs, G, first)
        again = {ab: right(x) for ab, x in self.second.items()}
        again = _sum(again, _crossed(self, once, n, n, lambda x: x))
        return Differentiated(self.pairs, G, first, {ab: left(x) for ab, x in again.items()})

    def _each(self, linear, value):
        first, second = ({a: linear(x) for a, x in part.items()} for part in (self.first, self.second))
        return Differentiated(self.pairs, value, first, second)


def bracket(V, U):
    """ad(V) U of twists (6, 1)."""
    matrix, other = ad(V.value), -ad(U.value)
    return _bilinear(V, U, matrix @ U.value, _times(other), _times(matrix), _times(_BRACKET))


def turned_force(V, W):
    """-ad(V)^T W of a twist and a wrench (6, 1)."""
    matrix, other = -ad(V.value).T, force_cross(W.value)
    return _bilinear(V, W, matrix @ W.value, _times(other), _times(matrix), _times(_FORCE))


def _times(matrix):
    matrix = ca.sparsify(matrix) if isinstance(matrix, ca.DM) else matrix
    return lambda columns: matrix @ columns


def _bilinear(A, B, value, by_left, by_right, matrix):
    """A product: by_left and by_right make columns of it from columns of A and of B; `matrix` from those of A columns
    of the matrices that B is multiplied by."""
    first = _sum({a: by_left(x) for a, x in A.first.items()}, {a: by_right(x) for a, x in B.first.items()})
    second = _sum({ab: by_left(x) for ab, x in A.second.items()}, {ab: by_right(x) for ab, x in B.second.items()})
    second = _sum(second, _crossed(A, B, value.shape[0], value.shape[1], matrix))
    return Differentiated(A.pairs, value, first, second)


def _crossed(A, B, r, c, matrix):
    """{letters: columns} of dA/dx_j dB/dy_k + dA/dy_k dB/dx_j, matrices of A being (r, .), of B (., c)."""
    stood = {a: _stood(matrix(x), r) for a, x in A.first.items()}
    products = {}
    for a, x in stood.items():
        n = x.shape[0] // r
        for b, y in B.first.items():
            if (a, b) in A.pairs or (b, a) in A.pairs:
                products[a, b] = ca.vec(x @ ca.reshape(y, x.shape[1], c * n))  # rows (i, j), columns (l, k)
    out = {}
    for (a, b), pairs in A.pairs.items():
        for letters, steps in (((a, b), pairs), ((b, a), [(k, j) for j, k in pairs])):
            if letters in products:
                n = stood[letters[0]].shape[0] // r
                places = [i + r * j + r * n * (m + c * k) for j, k in steps for m in range(c) for i in range(r)]
                part = ca.reshape(products[letters][places], r * c, len(steps))
                out[a, b] = out[a, b] + part if (a, b) in out else part
    return out


def _left(A, c):
    """Function: columns of X (., c) -> columns of A X."""
    return lambda x: ca.reshape(A @ ca.reshape(x, A.shape[1], c * x.shape[1]), A.shape[0] * c, x.shape[1])


def _right(B, r):
    """Function: columns of X (r, .) -> columns of X B."""

    def times(x):
        product, m = _stood(x, r) @ B, x.shape[1]
        return ca.vertcat(*(ca.reshape(product[:, k], r, m) for k in range(B.shape[1])))

    return times


def _stood(columns, r):
    """Matrices (r, k) below one another, (r m, k), from their columns (r k, m)."""
    return ca.horzcat(*(ca.vec(x) for x in ca.vertsplit(columns, r)))


def _sum(a, b):
    return a | {x: a[x] + d if x in a else d for x, d in b.items()}


def _inverse(n):
    """casadi.Function: a symmetric matrix (n, n) -> its inverse."""
    X = ca.SX.sym("X", n, n)
    return ca.Function("inverse", [X], [solve(factor(X), ca.SX(ca.DM.eye(n)))], {"cse": True})
