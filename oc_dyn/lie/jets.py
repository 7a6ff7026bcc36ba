"""Taylor coefficients of curves: a jet is the list [x0, x1, ...] with x(t) = x0 + x1 t + x2 t^2 + ...

Taylor coefficients x_k = x^(k)/k! turn the Leibniz sums into plain convolutions without binomials; derivatives are
converted at the border only. Coefficients may be scalars, vectors or matrices of any casadi type.
"""

from math import comb, factorial

import casadi as ca

from .quick import quick
from .so3 import skew


def total(terms):
    """Sum of casadi values (an iterable of at least one), starting from the first."""
    terms = iter(terms)
    out = next(terms)
    for term in terms:
        out = out + term
    return out


def leibniz(k, A, x):
    """Derivative k of the product A x, from the derivatives of both: A = [A, A', ...], x = [x, x', ...]."""
    return total(comb(k, r) * (A[r] @ x[k - r]) for r in range(k + 1))


def from_derivatives(derivatives, first=0):
    """Jet from derivatives [x^(0), x^(1), ...]; `first` is the order of the first one as a derivative of a
    lower quantity: coefficients are x^(k)/(k + first)!."""
    return [x / factorial(k + first) if k + first > 1 else x for k, x in enumerate(derivatives)]


def to_derivatives(jet):
    """Derivatives [x^(0), x^(1), ...] of a jet."""
    return [x * factorial(k) if k > 1 else x for k, x in enumerate(jet)]


def derivative(jet):
    """Jet of the time derivative, one coefficient shorter."""
    return [(k + 1) * x if k else x for k, x in enumerate(jet[1:])]


def product_at(a, b, k, times=lambda x, y: x * y):
    """Coefficient k of the product of two jets."""
    return total(times(a[j], b[k - j]) for j in range(k + 1))


def square_at(a, k):
    """Coefficient k of the square of a scalar jet; equal products are taken once."""
    pairs = [2 * total(a[j] * a[k - j] for j in range((k + 1) // 2))] if k else []
    middle = [a[k // 2] ** 2] if k % 2 == 0 else []
    return total(pairs + middle)


class PlaneTurn:
    """Turn about z that starts at no turn; its rates are pushed one by one.

    Its cosine starts at 1 and its sine at 0, so it takes fewer products than the jets of sine and cosine of an angle.
    """

    def __init__(self):
        self.angle, self.c, self.s = [ca.DM(0)], [ca.DM(1)], [ca.DM(0)]

    def push(self, w, k):
        """Coefficient k of the angular velocity; makes coefficient k + 1 of the turn known."""
        self.angle.append(w[2] / (k + 1))
        up = [(j, j * self.angle[j]) for j in range(1, k + 2)]
        s = total(u * self.c[k + 1 - j] for j, u in up) / (k + 1)
        c = -total(u * self.s[k + 1 - j] for j, u in up) / (k + 1)
        self.s.append(s)
        self.c.append(c)

    def _turn_at(self, jet, k, sign):
        jet = [quick(x) for x in jet[: k + 1]]
        a, b = jet[k][0], jet[k][1]
        for j in range(1, k + 1):
            u, w = jet[k - j][0], jet[k - j][1]
            s = sign * self.s[j]
            if j > 1:
                a, b = a + self.c[j] * u, b + self.c[j] * w
            a, b = a - s * w, b + s * u
        return quick(ca.vertcat(a, b, jet[k][2]))

    def outward_at(self, jet, k):
        """Coefficient k of vectors given in the turning frame, seen from the resting one."""
        return self._turn_at(jet, k, 1)

    def inward_at(self, jet, k):
        """Coefficient k of vectors given in the resting frame, seen from the turning one."""
        return self._turn_at(jet, k, -1)


class MatrixTurn:
    """Rotation that starts at no turn, body angular velocities pushed one by one: R' = R skew(w)."""

    def __init__(self):
        self.R, self.W = [ca.DM.eye(3)], []

    def push(self, w, k):
        """Coefficient k of the body angular velocity; makes coefficient k + 1 of the turn known."""
        self.W.append(skew(w))
        self.R.append(total(self.R[k - j] @ self.W[j] for j in range(k + 1)) / (k + 1))

    def outward_at(self, jet, k):
        """Coefficient k of vectors given in the turning frame, seen from the resting one."""
        return total([jet[k]] + [self.R[j] @ jet[k - j] for j in range(1, k + 1)])

    def inward_at(self, jet, k):
        """Coefficient k of vectors given in the resting frame, seen from the turning one."""
        return total([jet[k]] + [self.R[j].T @ jet[k - j] for j in range(1, k + 1)])


class NoTurn:
    """The turn of a joint that does not turn."""

    def push(self, w, k):
        """Nothing to learn."""

    def outward_at(self, jet, k):
        """The vectors themselves."""
        return jet[k]

    inward_at = outward_at
