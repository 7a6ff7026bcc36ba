"""The unit normal of `smooth_support` for a sphere or capsule beside a box or cylinder, with a quarter of its work.

In the frame of the box the terms of its support function are those of single axes, so that D = K + gap I is diagonal,
but for the term of the capsule's segment, which has rank one: steps are those of Sherman and Morrison 1950. Beside a
box they begin from the nearest points of segment and box, exact but for the smoothing, so that nine are enough: along
the segment the slope of half the squared distance from the box is piecewise linear and rises, and its zero is between
two of the places at which it bends.
"""

from __future__ import annotations

import casadi as ca

from ..lie.quick import dot, quick
from .shapes import ROUND, Box, Cylinder, half_length

SMOOTHING = 1e-3  # last s, of unit vectors
STEPS, LAST, FROM_NEAREST = 16, 5, 9  # as smooth_support has them, and from the nearest points
LEAST = 1e-7  # [m] of the gap in steps
_SMALL = 1e-12  # of slopes, and of lengths [m]
_PARALLEL, _FAR = 1e-10, 1e9  # square of the sine of axes that have no direction across, and a gap [m] that is taken off
_START = (0.48, 0.6, 0.64)  # n where centres coincide


def in_frame_of(a, b):
    """The Placed shape of a pair whose frame steps are in, None where this is not for the pair."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one.shape, ROUND) and isinstance(other.shape, (Box, Cylinder)) and min(sizes(other.shape)) > 0:
            return other
    return None


def sizes(shape):
    """(3,) [m] half-edges of a box; radius twice and half length of a cylinder."""
    if isinstance(shape, Box):
        return shape.x / 2, shape.y / 2, shape.z / 2
    return shape.radius, shape.radius, shape.length / 2


def normal(a, b, home):
    """n (3,) of length 1 from a to b, for which the smoothed gap is largest. home: in_frame_of(a, b)."""
    segment = b if home is a else a
    R = home.R if isinstance(home.R, ca.DM) else quick(home.R)
    c, half = quick(ca.SX(R.T @ (b.c - a.c))), half_length(segment.shape)
    u = quick(ca.SX(R.T @ segment.axis)) if half else None
    flat = isinstance(home.shape, Box)
    terms = [_Axis(k, h) for k, h in enumerate(sizes(home.shape))]
    if not flat:
        terms = [_Disc(home.shape.radius), terms[2]]
    n = [c[k] for k in range(3)]
    u = None if u is None else [u[k] for k in range(3)]
    return quick(R @ ca.vertcat(*_steps(n, u, half, terms, sizes(home.shape) if flat else None)))


def _steps(c, u, half, terms, box):
    """n, three scalars; box: half-edges, where steps begin from the nearest points."""
    rod = None if u is None else _Rod(u, half)
    terms = [*terms, *([] if rod is None else [rod])]
    if box is None:
        n = _unit(c, _START)
    else:
        n, shares = _from_nearest(c, u, half, box)
        for x, share in zip(terms, shares, strict=True):
            x.dual = share
    count = STEPS if box is None else FROM_NEAREST
    for k in range(count):
        s = SMOOTHING if box is not None else SMOOTHING ** min(1.0, k / (STEPS - LAST))
        n = _unit(_step(c, n, s, terms, rod), None)
    return n


def _step(c, n, s, terms, rod):
    """n + z: D z = g - (its part along n), n . z = 0, and the multipliers of the terms with it."""
    g, renewals, solves = list(c), [], []
    for x in terms:
        x.look(n, s)
        x.pull(g)
    gap = ca.fmax(_dot(n, g), LEAST)
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
        below = 1 / (1 + _dot(rod.u, q_scaled))
        p, r = ([x - y * (below * _dot(rod.u, way)) for x, y in zip(way, q_scaled, strict=True)] for way in (p, r))
    share = _dot(n, p) / _dot(n, r)
    z = [x - share * y for x, y in zip(p, r, strict=True)]
    scale = 1 / ca.sqrt(ca.fmax(1, _dot(z, z)))
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
        super().look([_dot(self.u, n)], s)
        self.stiff = self.size * self.inverse * (1 - self.dual * self.unit)

    def pull(self, g):
        scale = self.size * self.unit
        for k in range(3):
            g[k] = g[k] - scale * self.u[k]

    def renew(self, z):
        super().renew([_dot(self.u, z)])


class _Disc:
    """r sqrt(n_0^2 + n_1^2 + s^2)."""

    def __init__(self, radius):
        self.size, self.dual = radius, None

    def look(self, n, s):
        self.n = n[:2]
        self.inverse = 1 / ca.sqrt(_dot(self.n, self.n) + s * s)
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
        along = _dot(self.unit, z[:2])
        new = [(x + y - p * along) * self.inverse for x, y, p in zip(self.n, z[:2], self.dual, strict=True)]
        scale = 1 / ca.sqrt(ca.fmax(1, _dot(new, new)))
        self.dual = [scale * x for x in new]


# -- nearest points of a segment and a box ----------------------------------------------------------------------------


def _from_nearest(c, u, half, box):
    """(n, multipliers of the axes and of the segment) of the nearest points; where segment and box meet n is the axis
    of the shallowest way out."""
    t = None if u is None else _place(c, u, half, box)
    y = c if u is None else [x - t * w for x, w in zip(c, u, strict=True)]  # from the point of the segment to the box
    near = [ca.fmin(ca.fmax(x, -h), h) for x, h in zip(y, box, strict=True)]
    way = [x - p for x, p in zip(y, near, strict=True)]
    square = _dot(way, way)
    meet = square <= _SMALL
    out = _way_out(c, u, half, box)
    n = [ca.if_else(meet, x, w) for x, w in zip(out, way, strict=True)]
    shares = [p * (1 / h) for p, h in zip(near, box, strict=True)]
    return _unit(n, None), shares if u is None else [*shares, t * (1 / half)]


def _place(c, u, half, box):
    """t: -half to half, of the point of the segment that is nearest to the box; c: from its middle to that of the box,
    y = c - t u. Its slope is the derivative of half the squared distance by t."""

    def slope(t):
        total = 0
        for x, w, h in zip(c, u, box, strict=True):
            y = x - t * w
            total = total - w * (y - ca.fmin(ca.fmax(y, -h), h))
        return total

    low, high = -half, half
    at_low, at_high = slope(low), slope(high)
    for x, w, h in zip(c, u, box, strict=True):
        inverse = 1 / (w + (1 - 2 * (w < 0)) * _SMALL)
        for end in (x - h, x + h):
            t = ca.fmin(ca.fmax(end * inverse, -half), half)
            value = slope(t)
            rises, falls = (value >= 0) * (t < high), (value <= 0) * (t > low)
            low, at_low = ca.if_else(falls, t, low), ca.if_else(falls, value, at_low)
            high, at_high = ca.if_else(rises, t, high), ca.if_else(rises, value, at_high)
    rise = at_high - at_low
    share = ca.if_else(rise > _SMALL * _SMALL, -at_low / ca.fmax(rise, _SMALL * _SMALL), 0.5)
    return low + ca.fmin(ca.fmax(share, 0), 1) * (high - low)


def _way_out(c, u, half, box):
    """Of the axes of the box, and those across them and the segment, that along which both are parted soonest."""
    best = None
    for axis in _directions(u):
        square = sum(x * x for x in axis)
        size = ca.sqrt(ca.fmax(square, _SMALL)) if u is not None else 1
        along = sum(x * y for x, y in zip(axis, c, strict=True))
        reach = sum(h * ca.fabs(x) for x, h in zip(axis, box, strict=True))
        reach = reach if u is None else reach + half * ca.fabs(sum(x * y for x, y in zip(axis, u, strict=True)))
        gap = (ca.fabs(along) - reach) / size - _FAR * (square < _PARALLEL)
        sign = 1 - 2 * (along < 0)
        axis = [sign * x for x in axis]
        if best is None:
            best = gap, axis
            continue
        better = gap > best[0]
        best = ca.if_else(better, gap, best[0]), [
            ca.if_else(better, x, y) for x, y in zip(axis, best[1], strict=True)
        ]
    return best[1]


def _directions(u):
    yield from ([1, 0, 0], [0, 1, 0], [0, 0, 1])
    if u is not None:
        yield from ([0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0])


def _unit(x, fallback):
    square = _dot(x, x)
    if fallback is None:
        scale = 1 / ca.sqrt(square)
        return [scale * y for y in x]
    far = square > 1e-16
    scale = 1 / ca.sqrt(ca.if_else(far, square, 1))
    return [ca.if_else(far, scale * y, z) for y, z in zip(x, fallback, strict=True)]


def _within(x):
    return ca.fmin(ca.fmax(x, -1), 1)


def _dot(x, y):
    total = x[0] * y[0]
    for a, b in zip(x[1:], y[1:], strict=True):
        total = total + a * b
    return total
