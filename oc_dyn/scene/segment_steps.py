"""The unit normal of `smooth_support` for a sphere or capsule beside a box or cylinder, with a quarter of its work.

In the frame of the box the terms of its support function are those of single axes, so that D = K + gap I is diagonal,
but for the term of the capsule's segment, which has rank one: steps are those of Sherman and Morrison 1950. Beside a
box they begin from the nearest points of segment and box, exact but for the smoothing, so that nine are enough: along
the segment the slope of half the squared distance from the box is piecewise linear and rises, and its zero is between
two of the places at which it bends.
"""

from __future__ import annotations

import casadi as ca

from ..lie.quick import quick
from .beside_box import from_nearest, half_edges, local, product, unit
from .shapes import ROUND, Box, Cylinder

SMOOTHING = 1e-3  # last s, of unit vectors
STEPS, LAST, FROM_NEAREST = 16, 5, 9  # as smooth_support has them, and from the nearest points
LEAST = 1e-7  # [m] of the gap in steps
OFF, _START = 0.01, (0.48, 0.6, 0.64)  # of the sizes that steps begin off the way between the centres, and where to


def in_frame_of(a, b):
    """The Placed shape of a pair whose frame steps are in, None where this is not for the pair."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one.shape, ROUND) and isinstance(other.shape, (Box, Cylinder)) and min(sizes(other.shape)) > 0:
            return other
    return None


def sizes(shape):
    """(3,) [m] half-edges of a box; radius twice and half length of a cylinder."""
    return half_edges(shape) if isinstance(shape, Box) else (shape.radius, shape.radius, shape.length / 2)


def normal(a, b, home):
    """n (3,) of length 1 from a to b, for which the smoothed gap is largest. home: in_frame_of(a, b)."""
    c, u, half = local(a, b, home)
    flat = isinstance(home.shape, Box)
    terms = [_Axis(k, h) for k, h in enumerate(sizes(home.shape))]
    if not flat:
        terms = [_Disc(home.shape.radius), terms[2]]
    R = home.R if isinstance(home.R, ca.DM) else quick(home.R)
    return quick(R @ ca.vertcat(*_steps(c, u, half, terms, sizes(home.shape) if flat else None)))


def _steps(c, u, half, terms, box):
    """n, three scalars; box: half-edges, where steps begin from the nearest points."""
    rod = None if u is None else _Rod(u, half)
    terms = [*terms, *([] if rod is None else [rod])]
    if box is None:
        size = OFF * sum(x.size for x in terms)
        off = [x + size * y for x, y in zip(c, _START, strict=True)]
        scale = 1 / ca.sqrt(ca.fmax(product(off, off), LEAST * LEAST))
        n = [scale * x for x in off]
    else:
        n, shares = from_nearest(c, u, half, box)
        for x, share in zip(terms, shares, strict=True):
            x.dual = share
    count = STEPS if box is None else FROM_NEAREST
    for k in range(count):
        s = SMOOTHING if box is not None else SMOOTHING ** min(1.0, k / (STEPS - LAST))
        n = unit(_step(c, n, s, terms, rod))
    return n


def _step(c, n, s, terms, rod):
    """n + z: D z = g - (its part along n), n . z = 0, and the multipliers of the terms with it."""
    g = list(c)
    for x in terms:
        x.look(n, s)
        x.pull(g)
    gap = ca.fmax(product(n, g), LEAST)
    solves = [x.solver(gap) for x in terms if x is not rod]

    def solve(y):
        out = [None] * 3
        for f in solves:
            f(y, out)
        return out

    p, r = solve(g), solve(n)
    if rod is not None:
        q = solve(rod.u)
        q_scaled = [rod.stiff * x for x in q]
        below = 1 / (1 + product(rod.u, q_scaled))
        p, r = ([x - y * (below * product(rod.u, way)) for x, y in zip(way, q_scaled, strict=True)] for way in (p, r))
    share = product(n, p) / product(n, r)
    z = [x - share * y for x, y in zip(p, r, strict=True)]
    scale = 1 / ca.sqrt(ca.fmax(1, product(z, z)))
    z = [scale * x for x in z]
    for x in terms:
        x.renew(z)
    return [x + y for x, y in zip(n, z, strict=True)]


class _Axis:
    """h sqrt(n_k^2 + s^2)."""

    def __init__(self, k, size):
        self.k, self.size, self.dual = k, size, None

    def look(self, n, s):
        self.n = n[self.k]
        self.inverse = 1 / ca.sqrt(self.n * self.n + s * s)
        self.unit = self.n * self.inverse
        self.dual = self.unit if self.dual is None else self.dual

    def pull(self, g):
        g[self.k] = g[self.k] - self.size * self.unit

    def solver(self, gap):
        """Function (y, out) that puts the part of D^-1 y that this term has into out."""
        inverse = 1 / (self.size * self.inverse * (1 - self.dual * self.unit) + gap)

        def solve(y, out):
            out[self.k] = y[self.k] * inverse

        return solve

    def renew(self, z):
        z = z[self.k]
        self.dual = _within((self.n + z - self.dual * (self.unit * z)) * self.inverse)


class _Rod(_Axis):
    """h sqrt((u . n)^2 + s^2), u a unit vector."""

    def __init__(self, u, size):
        super().__init__(None, size)
        self.u = u

    def look(self, n, s):
        self.k = 0
        super().look([product(self.u, n)], s)
        self.stiff = self.size * self.inverse * (1 - self.dual * self.unit)

    def pull(self, g):
        scale = self.size * self.unit
        for k in range(3):
            g[k] = g[k] - scale * self.u[k]

    def renew(self, z):
        super().renew([product(self.u, z)])


class _Disc:
    """r sqrt(n_0^2 + n_1^2 + s^2)."""

    def __init__(self, radius):
        self.size, self.dual = radius, None

    def look(self, n, s):
        self.n = n[:2]
        self.inverse = 1 / ca.sqrt(product(self.n, self.n) + s * s)
        self.unit = [x * self.inverse for x in self.n]
        self.dual = self.unit if self.dual is None else self.dual

    def pull(self, g):
        for k in range(2):
            g[k] = g[k] - self.size * self.unit[k]

    def solver(self, gap):
        scale, (x, y), (p, q) = self.size * self.inverse, self.unit, self.dual
        a, c = scale * (1 - p * x) + gap, scale * (1 - q * y) + gap
        b = (-0.5 * scale) * (p * y + q * x)
        inverse = 1 / (a * c - b * b)

        def solve(w, out):
            out[0], out[1] = inverse * (c * w[0] - b * w[1]), inverse * (a * w[1] - b * w[0])

        return solve

    def renew(self, z):
        along = product(self.unit, z[:2])
        new = [(x + y - p * along) * self.inverse for x, y, p in zip(self.n, z[:2], self.dual, strict=True)]
        scale = 1 / ca.sqrt(ca.fmax(1, product(new, new)))
        self.dual = [scale * x for x in new]


def _within(x):
    return ca.fmin(ca.fmax(x, -1), 1)
