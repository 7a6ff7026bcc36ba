"""Taylor coefficients of curves: a jet is the list [x0, x1, ...] with x(t) = x0 + x1 t + x2 t^2 + ...

Taylor coefficients x_k = x^(k)/k! turn the Leibniz sums into plain convolutions without binomials; derivatives are
converted at the border only. Coefficients may be scalars, vectors or matrices of any casadi type.
"""

from math import factorial

import casadi as ca

from .so3 import skew


def total(terms):
    """Sum of casadi values (an iterable of at least one), starting from the first."""
    terms = iter(terms)
    out = next(terms)
    for term in terms:
        out = out + term
    return out


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


def product(a, b, times=lambda x, y: x * y, order=None):
    """Jet of a product, up to `order` (default: all that is known of both)."""
    n = min(len(a), len(b)) if order is None else order + 1
    out = []
    for k in range(n):
        js = range(max(0, k - len(b) + 1), min(k, len(a) - 1) + 1)
        out.append(total(times(a[j], b[k - j]) for j in js))
    return out


def square(a, order=None):
    """Jet of the square of a scalar jet; equal products are taken once."""
    n = len(a) if order is None else order + 1
    out = []
    for k in range(n):
        pairs = [2 * total(a[j] * a[k - j] for j in range((k + 1) // 2))] if k else []
        middle = [a[k // 2] ** 2] if k % 2 == 0 else []
        out.append(total(pairs + middle))
    return out


def add(*jets):
    """Jet of a sum; jets that are None count as zero."""
    jets = [j for j in jets if j is not None]
    out = list(jets[0])
    for jet in jets[1:]:
        out = [x + y for x, y in zip(out, jet, strict=False)]
    return out


def sin_cos(jet):
    """Jets of the sine and cosine of a scalar jet: s' = x' c, c' = -x' s."""
    s, c = [ca.sin(jet[0])], [ca.cos(jet[0])]
    for k in range(1, len(jet)):
        up = [j * jet[j] for j in range(1, k + 1)]
        s, c = (
            [*s, total(u * c[k - j] for j, u in enumerate(up, 1)) / k],
            [*c, -total(u * s[k - j] for j, u in enumerate(up, 1)) / k],
        )
    return s, c


class PlaneRotation:
    """Turn about z by an angle with jet `angle`; it moves jets of vectors as rotation by the first coefficient,
    which is constant, after rotation by the rest, whose cosine starts at 1 and sine at 0."""

    def __init__(self, angle):
        self.s0, self.c0 = ca.sin(angle[0]), ca.cos(angle[0])
        self.s, self.c = sin_cos([ca.DM(0), *angle[1:]])

    def _turn(self, jet, sign):
        s0 = sign * self.s0
        turned = [(self.c0 * x[0] - s0 * x[1], s0 * x[0] + self.c0 * x[1]) for x in jet]
        out = []
        for k, x in enumerate(jet):
            a, b = turned[k]
            for j in range(1, k + 1):
                u, w = turned[k - j]
                s, c = sign * self.s[j], self.c[j]
                if j > 1:
                    a, b = a + c * u, b + c * w
                a, b = a - s * w, b + s * u
            out.append(ca.vertcat(a, b, x[2]))
        return out

    def outward(self, jet):
        """Vectors given in the turned frame, seen from the resting one."""
        return self._turn(jet, 1)

    def inward(self, jet):
        """Vectors given in the resting frame, seen from the turned one."""
        return self._turn(jet, -1)


class MatrixRotation:
    """Rotation by a matrix with jet `R`."""

    def __init__(self, R):
        self.R = R

    def outward(self, jet):
        return product(self.R, jet, lambda A, x: A @ x, len(jet) - 1)

    def inward(self, jet):
        return product(self.R, jet, lambda A, x: A.T @ x, len(jet) - 1)


def rotation_from_body_rate(R0, w):
    """Jet of the rotation matrix that starts at R0 and turns with body angular velocity jet `w`: R' = R skew(w)."""
    W = [skew(x) for x in w]
    R = [R0]
    for k in range(len(w)):
        R.append(total(R[k - j] @ W[j] for j in range(k + 1)) / (k + 1))
    return R
