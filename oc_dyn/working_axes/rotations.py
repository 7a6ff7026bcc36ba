"""Rotations about the z axis, of vectors and matrices, with few products."""

import casadi as ca

from ..lie.quick import dense_entries, filled, quick


class PlaneRotation:
    """Rotation of turned axes against resting ones, about their z axis, by cosine and sine; the identity without an
    angle."""

    def __init__(self, angle=None):
        self.c, self.s = (None, None) if angle is None else (quick(ca.cos(angle)), quick(ca.sin(angle)))
        self.identity = angle is None

    def outward(self, X):
        """Columns given in the turned axes, in the resting ones."""
        if self.identity:
            return X
        a, b, z = _rows(X)
        return _column(self.c * a - self.s * b, self.s * a + self.c * b, z)

    def inward(self, X):
        """Columns given in the resting axes, in the turned ones."""
        if self.identity:
            return X
        a, b, z = _rows(X)
        return _column(self.c * a + self.s * b, self.c * b - self.s * a, z)

    def symmetric(self, T):
        """A symmetric matrix (3, 3) given in the turned axes, in the resting ones; by double angles."""
        if self.identity:
            return T
        c, s = self.c, self.s
        u = s * (T[0, 0] - T[1, 1]) + 2 * c * T[0, 1]
        xz, yz = c * T[0, 2] - s * T[1, 2], s * T[0, 2] + c * T[1, 2]
        xx, yy, xy = T[0, 0] - s * u, T[1, 1] + s * u, c * u - T[0, 1]
        return square_matrix((xx, xy, xz), (xy, yy, yz), (xz, yz, T[2, 2]))

    def square(self, H):
        """Any matrix (3, 3) given in the turned axes, in the resting ones."""
        if self.identity:
            return H
        c, s = self.c, self.s
        d, e = H[0, 0] - H[1, 1], H[0, 1] + H[1, 0]
        u = s * d + c * e
        xx, yy, xy, yx = H[0, 0] - s * u, H[1, 1] + s * u, c * u - H[1, 0], c * u - H[0, 1]
        xz, yz = c * H[0, 2] - s * H[1, 2], s * H[0, 2] + c * H[1, 2]
        zx, zy = c * H[2, 0] - s * H[2, 1], s * H[2, 0] + c * H[2, 1]
        return square_matrix((xx, xy, xz), (yx, yy, yz), (zx, zy, H[2, 2]))


def _rows(X):
    entries = dense_entries(X, 3) if X.shape[1] == 1 else None
    return entries or (X[0, :], X[1, :], X[2, :])


def _column(*rows):
    made = filled(3, 1, rows)
    return quick(ca.vertcat(*rows)) if made is None else made


def square_matrix(*rows):
    """(3, 3) matrix of its rows."""
    made = filled(3, 3, [x for column in zip(*rows, strict=True) for x in column])
    return quick(ca.vertcat(*(ca.horzcat(*row) for row in rows))) if made is None else made


def cross(a, B):
    """Cross product of a vector with every column of B; zeros that are structural stay so."""
    if isinstance(a, ca.DM) or (isinstance(a, ca.SX) and a.is_constant()):
        return quick(ca.sparsify(ca.skew(ca.DM(a))) @ B)  # the signs go into the constants
    return quick(ca.cross(a, B) if B.shape[1] == 1 else ca.cross(ca.repmat(a, 1, B.shape[1]), B, 1))


def crossed(A, b):
    """Cross product of every column of A with a vector."""
    return quick(ca.cross(A, b) if A.shape[1] == 1 else ca.cross(A, ca.repmat(b, 1, A.shape[1]), 1))
