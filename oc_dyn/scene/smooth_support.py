"""Distances of any two convex shapes, smooth and never above the true ones, by smoothed support functions.

For a unit vector n from a to b, the gap between the planes across n that touch a and b is a lower bound of their
distance, and the largest one is the distance; below 0, the least overlap of all n is the depth of penetration. So

    d = max over unit n of  n . (c_b - c_a) - h_a(n) - h_b(-n),      h(n) = max n . (x - c) over a shape

Support functions of most shapes are sums of norms, which are made smooth from above: |y| becomes sqrt(|y|^2 + s^2),
so that d cannot grow. Newton steps look for n while s falls from the size of the shape to its last value, and carry the
multipliers y / |y| of the norms along: plain ones would need many more.

Source: Gilbert and Foo 1990, Computing the Distance between General Convex Objects, for d; Andersen, Christiansen,
Conn, Overton 2000, An Efficient Primal-Dual Interior-Point Method for Minimizing a Sum of Euclidean Norms.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import casadi as ca

from ..lie.quick import dot, quick
from ..working_axes.frames import upper_mirrored
from .closed_forms import closed_form
from .contacts import Contact, general_second
from .placed import Placed
from .segment_steps import in_frame_of, normal
from .shapes import Box, Capsule, Cylinder, Ellipsoid, HalfSpace, Polytope, Sphere, ball

SMOOTHING = 1e-3  # last s, in sizes of the shapes
ROUNDEST = 1e-2  # of ellipsoids: least by largest semi-axis from which they are as good as smooth themselves
EXACT = 1e-7  # their last s
STEPS = 16
LAST = 5  # of them with the last s
LEAST = 1e-7  # [m] of gap and curvature together
_ROOT = 4
_KEPT = 0.1
_SHARE = 0.9  # of the least curvature across n that a negative gap may take away
_START = (0.48, 0.6, 0.64)  # n where centres coincide
_OFF = (
    1e-2  # share of the sizes by which the start is off that of centres: on an axis of symmetry steps would stay on it
)


@dataclass(frozen=True, eq=False)
class Norm:
    """|M n| as a term of a support function; size [m]: the largest it may be for unit n; last: its last s by size."""

    size: float
    M: object
    last: float = SMOOTHING

    def at(self, n, s, dual=None):
        """(value, gradient (3,), Hessian (3, 3), function that gives the multipliers after a step of n), smoothed by s
        [m]; with the multipliers `dual` those of a step that changes them, too."""
        y = quick(self.M @ n)
        size = ca.sqrt(ca.sumsqr(y) + s * s)
        unit = quick(y / size)
        L = unit if dual is None else dual
        inner = ca.SX.eye(y.shape[0]) - 0.5 * (L @ unit.T + unit @ L.T)

        def renewed(z):
            dy = self.M @ z
            new = (y + dy - L * ca.dot(unit, dy)) / size
            return quick(new / ca.sqrt(ca.fmax(1, ca.sumsqr(new))))

        return size, quick(self.M.T @ unit), quick(self.M.T @ inner @ self.M / size), renewed


@dataclass(frozen=True, eq=False)
class Corners:
    """max of V n over the rows of V (k, 3) as a term of a support function; size, last: as of Norm.

    Smoothed, it is the largest sum of p_i (V n)_i + t log p_i over p_i > 0 of sum 1, p = t / (root - V n), s = k t,
    plus a constant by which it is not below the maximum: `shift`, which is also how far above it is at most.
    """

    size: float
    V: object
    last: float = SMOOTHING / 10

    def shift(self, s):
        """How far [m] above the maximum it is at most where s [m] smooths it."""
        count = self.V.shape[0]
        return s / count * (count - 1 + count * log(2 * self.size * count / s + count))

    def at(self, n, s, dual=None):
        """As Norm.at."""
        count = self.V.shape[0]
        t = s / count
        y = quick(self.V @ n)
        top = y[0]
        for k in range(1, count):
            top = ca.fmax(top, y[k])
        below, over = top - y, t  # the root is between top + t and top + s; Newton steps on the inverse of the sum
        for _ in range(_ROOT):
            shares = t / (over + below)
            total = ca.sum1(shares)
            over = over + total * (total - 1) * t / ca.sumsqr(shares)
        slack = over + below
        shares = quick(t / slack)
        L = shares if dual is None else dual
        weights = quick(L / slack)
        total = ca.sum1(weights)
        V = quick(self.V - ca.repmat((self.V.T @ weights / total).T, count, 1))

        def renewed(z):
            return quick(ca.fmax(shares + weights * (V @ z), _KEPT * L))

        h = top + over - s + t * ca.sum1(ca.log(shares)) + self.shift(s)
        return h, quick(self.V.T @ shares), quick(V.T @ (ca.repmat(weights, 1, 3) * V)), renewed


def smooth_support(a, b):
    """Contact of two Placed shapes, and whether they changed places in it.

    d is not above the distance, and below it by bound(a.shape) + bound(b.shape) at most. It is twice differentiable but
    where shapes overlap so far that another way out becomes the shortest: n is then that of a local optimum.
    Half-spaces have their closed forms.
    """
    if isinstance(a.shape, HalfSpace) or isinstance(b.shape, HalfSpace):
        return closed_form(a, b)
    first, second = _terms(a, 1), _terms(b, -1)
    home = in_frame_of(a, b)
    c, terms = quick(second[0] - first[0]), [*first[1], *second[1]]
    n = maximiser(c, terms) if home is None else normal(a, b, home)
    return _contact(a, b, first, second, n), False


def maximiser(c, terms, steps=STEPS):
    """n (3,) of length 1 for which n . c - (sum of the terms at n) is largest, at their last s."""
    off = quick(c + _OFF * sum((x.size for x in terms), LEAST) * ca.DM(_START))
    n = quick(off / ca.sqrt(ca.fmax(ca.sumsqr(off), LEAST**2)))
    duals = [None] * len(terms)
    for k in range(steps if terms else 0):
        share = k / (steps - LAST)
        g, K, renewals = c, ca.SX(3, 3), []
        for x, dual in zip(terms, duals, strict=True):
            s = x.size * (max(x.last, SMOOTHING / 10) ** share if share < 1 else x.last)
            _, point, H, renewed = x.at(n, s, dual)
            g, K = g - point, K + H
            renewals.append(renewed)
        z = _step(upper_mirrored(K), quick(g), n)
        duals = [renewed(z) for renewed in renewals]
        n = n + z
        n = quick(n / ca.sqrt(ca.sumsqr(n)))
    return n


def _step(K, g, n):
    """Newton step across n: D z = g - (its part along n), n . z = 0, D = K + gap I across n, no longer than 1.

    Where shapes overlap, gap = n . g is negative and takes no more from the least curvature across n than leaves D
    positive definite. What D is along n does not count; it is made large there, so that D can be inverted.
    """
    gap = dot(n, g)
    trace = K[0, 0] + K[1, 1] + K[2, 2]
    K = quick(upper_mirrored(K + (trace + ca.fabs(gap) + LEAST) * (n @ n.T)))
    trace = K[0, 0] + K[1, 1] + K[2, 2]
    A = adjugate(K)
    across, det = trace - dot(n, quick(K @ n)), dot(n, quick(A @ n))
    least = 0.5 * (across - ca.sqrt(ca.fmax(across * across - 4 * det, 0)))
    gap = ca.fmax(gap, LEAST - _SHARE * ca.fmax(least, 0))
    A = upper_mirrored(A + gap * ((trace + gap) * ca.SX.eye(3) - K))  # the adjugate of K + gap I
    p, r = quick(A @ g), quick(A @ n)
    det = (K[0, 0] + gap) * A[0, 0] + K[0, 1] * A[1, 0] + K[0, 2] * A[2, 0]
    z = (p - dot(n, p) / dot(n, r) * r) / det
    return quick(z / ca.sqrt(ca.fmax(1, ca.sumsqr(z))))


def adjugate(K):
    """Adjugate of a symmetric matrix (3, 3): its determinant times its inverse."""
    a, b, c, d, e, f = K[0, 0], K[0, 1], K[0, 2], K[1, 1], K[1, 2], K[2, 2]
    A, B, C = d * f - e * e, c * e - b * f, b * e - c * d
    E, F, G = a * f - c * c, b * c - a * e, a * d - b * b
    return quick(ca.vertcat(ca.horzcat(A, B, C), ca.horzcat(B, E, F), ca.horzcat(C, F, G)))


def bound(shape):
    """[m] by which smoothing makes distances of a shape smaller than they are at most, in the direction where most."""
    origin = ca.DM.zeros(3)
    _, terms = _terms(Placed("", shape, ca.DM.eye(3), origin), 1)
    return float(sum(x.shift(x.last * x.size) if isinstance(x, Corners) else x.last * x.size for x in terms))


def _contact(a, b, first, second, n):
    h, points, radii = [], [], []
    for _, terms in (first, second):
        values = [x.at(n, x.last * x.size) for x in terms]
        h.append(sum((v[0] for v in values), ca.SX(1, 1)))
        points.append(quick(sum((v[1] for v in values), ca.SX(3, 1))))
        radii.append(quick(sum((v[2] for v in values), ca.SX(3, 3))))
    d = dot(n, second[0] - first[0]) - h[0] - h[1] - ball(a.shape) - ball(b.shape)
    xa, xb = quick(first[0] + points[0]), quick(second[0] - points[1])
    pa, pb = quick(xa + ball(a.shape) * n), quick(xb - ball(b.shape) * n)
    return Contact(d, n, pa, pb, xa, general_second(n, xa, dot(n, xb - xa), *radii))


def _terms(p, sign):
    """(centre, terms) of the support function h(sign n) about the centre, without the ball."""
    s, R = p.shape, p.R
    if isinstance(s, Polytope):
        points = s.points
        middle = (points.max(axis=0) + points.min(axis=0)) / 2
        size = float(((points - middle) ** 2).sum(axis=1).max() ** 0.5)
        V = quick(sign * (ca.DM(points - middle) @ R.T))
        return quick(p.c + R @ ca.DM(middle)), [Corners(size, V)] if size else []
    axes = {
        Sphere: lambda: [],
        Capsule: lambda: [{2: s.length / 2}],
        Box: lambda: [{0: s.x / 2}, {1: s.y / 2}, {2: s.z / 2}],
        Cylinder: lambda: [{0: s.radius, 1: s.radius}, {2: s.length / 2}],
        Ellipsoid: lambda: [{0: s.a, 1: s.b, 2: s.c}],
    }[type(s)]()
    smooth = isinstance(s, Ellipsoid) and min(s.a, s.b, s.c) >= ROUNDEST * max(s.a, s.b, s.c)
    terms = []
    for scales in axes:
        size = max(scales.values())
        if size:
            M = quick(ca.vertcat(*(x * R[:, k].T for k, x in scales.items() if x)))
            terms.append(Norm(size, M, EXACT if smooth else SMOOTHING))
    return p.c, terms
