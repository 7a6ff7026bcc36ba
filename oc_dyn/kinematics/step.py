"""One step from a body to its parent, in canonical frames: vectors and symmetric matrices turned with few products."""

import casadi as ca

from ..lie import so3


class Turn:
    """Turn of a body about its z axis, against the axes its joint turns in, by cosine and sine; no turn without an
    angle. `outward` takes what is given in the body's axes to those the joint turns in."""

    def __init__(self, angle=None):
        self.c, self.s = (None, None) if angle is None else (ca.cos(angle), ca.sin(angle))

    def outward(self, X):
        """Columns given in the turned axes."""
        if self.c is None:
            return X
        a, b = X[0, :], X[1, :]
        return ca.vertcat(self.c * a - self.s * b, self.s * a + self.c * b, X[2, :])

    def inward(self, X):
        """Columns given in the resting axes, in the turned ones."""
        if self.c is None:
            return X
        a, b = X[0, :], X[1, :]
        return ca.vertcat(self.c * a + self.s * b, self.c * b - self.s * a, X[2, :])

    def symmetric(self, T):
        """A symmetric matrix (3, 3) given in the turned axes; by double angles."""
        if self.c is None:
            return T
        c, s = self.c, self.s
        u = s * (T[0, 0] - T[1, 1]) + 2 * c * T[0, 1]
        xz, yz = c * T[0, 2] - s * T[1, 2], s * T[0, 2] + c * T[1, 2]
        xx, yy, xy = T[0, 0] - s * u, T[1, 1] + s * u, c * u - T[0, 1]
        return ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, T[2, 2]))

    def square(self, H):
        """Any matrix (3, 3) given in the turned axes."""
        if self.c is None:
            return H
        c, s = self.c, self.s
        d, e = H[0, 0] - H[1, 1], H[0, 1] + H[1, 0]
        u = s * d + c * e
        xx, yy, xy, yx = H[0, 0] - s * u, H[1, 1] + s * u, c * u - H[1, 0], c * u - H[0, 1]
        xz, yz = c * H[0, 2] - s * H[1, 2], s * H[0, 2] + c * H[1, 2]
        zx, zy = c * H[2, 0] - s * H[2, 1], s * H[2, 0] + c * H[2, 1]
        return ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(yx, yy, yz), ca.horzcat(zx, zy, H[2, 2]))


class Step:
    """Placement of body i in its parent at joint coordinates q: the turn about z and the constant rest; other joints
    by their rotation matrix. `p` is the body's origin in the parent's frame."""

    def __init__(self, model, i, q):
        R, self.p = model.placement(i, q)
        rotary = model.kind[i] in ("revolute", "continuous", "helical", "planar")
        self.turn = Turn(q[0] if rotary else None)
        self.R = ca.DM(model.R[i]) if rotary or model.kind[i] == "prismatic" else R

    def outward(self, X):
        """Columns given in the body's axes, in the parent's."""
        return self.R @ self.turn.outward(X)

    def inward(self, X):
        """Columns given in the parent's axes, in the body's."""
        return self.turn.inward(self.R.T @ X)

    def symmetric(self, T):
        """A symmetric matrix (3, 3) of the body's axes, in the parent's."""
        return self.R @ self.turn.symmetric(T) @ self.R.T

    def square(self, H):
        """Any matrix (3, 3) of the body's axes, in the parent's."""
        return self.R @ self.turn.square(H) @ self.R.T

    def wrench(self, n, f):
        """Columns of moments and forces of the body, about the parent's origin in its axes."""
        f = self.outward(f)
        return self.outward(n) + cross(self.p, f), f

    def twist(self, w, a):
        """Columns of angular and linear parts of motions of the parent, of the body's origin in its axes."""
        # one column as the passes of taylor write it, so that CasADi sees what they share with a solver
        carried = a + ca.cross(w, self.p) if w.shape[1] == 1 else a - cross(self.p, w)
        return self.inward(w), self.inward(carried)

    def inertia(self, m, h, T):
        """Mass, first moment and tensor of the body, about the parent's origin in its axes."""
        h = self.outward(h)
        P, H = so3.skew(self.p), so3.skew(h)
        return m, h + m * self.p, self.symmetric(T) - P @ H - H @ P - m * (P @ P)

    def articulated(self, A, H, B):
        """Blocks of an articulated inertia [[A, H], [H', B]], about the parent's origin in its axes."""
        A, H, B = self.symmetric(A), self.square(H), self.symmetric(B)
        P = so3.skew(self.p)
        moved = H + P @ B
        return _mirrored(A - H @ P + P @ moved.T), moved, B


def cross(a, B):
    """Cross product of a vector with every column of B; zeros that are structural stay so."""
    if isinstance(a, ca.DM) or (isinstance(a, ca.SX) and a.is_constant()):
        return ca.sparsify(ca.skew(ca.DM(a))) @ B  # the signs go into the constants
    return ca.cross(a, B) if B.shape[1] == 1 else ca.cross(ca.repmat(a, 1, B.shape[1]), B, 1)


def _mirrored(A):
    """A symmetric matrix from its upper half, so that the lower half costs nothing."""
    return ca.triu2symm(ca.triu(A))
