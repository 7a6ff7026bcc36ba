"""Distances that can be written down: spheres and capsules, and any shape against a half-space."""

from __future__ import annotations

import casadi as ca

from ..errors import ShapeError
from ..lie.quick import dot, quick
from .contacts import Contact, general_second, plane_second, tangents
from .shapes import Capsule, HalfSpace, Sphere
from .support import curvature, farthest

TINY = 1e-12  # [m] of a distance of centres: nearer ones have no direction of their own
NEAR = 1e-6  # [m], and of sines: what second derivatives take for the least distance, and for parallel
PARALLEL = 1e-13  # sine of axes from which nearest points are where they cross: a smaller one is rounding
SLANTED = 1e-9  # sine of axes from which their product is a direction
_ROUND = (Sphere, Capsule)


def has_closed_form(a, b):
    """Whether there is one for this pair of shapes."""
    planes = isinstance(a, HalfSpace) + isinstance(b, HalfSpace)
    return planes == 1 or (isinstance(a, _ROUND) and isinstance(b, _ROUND))


def closed_form(a, b):
    """Contact of two Placed shapes, exact to rounding, and whether a and b changed places in it.

    Spheres and capsules: the nearest points of two segments, in the order of Ericson 2005, Real-Time Collision
    Detection, 5.1.9; d below 0 is minus the depth of penetration, as two segments that meet are parted by a step across
    both. Against a half-space: the support function of
    the other shape. d is differentiable but where nearest points are not unique, as for parallel capsules, and twice
    but where a nearest point comes to the end of its segment. There, derivatives are those of one side.
    """
    if not has_closed_form(a.shape, b.shape):
        raise ShapeError(f"distances: there is no closed form for {a.name!r}, a {a.kind}, and {b.name!r}, a {b.kind}")
    if isinstance(a.shape, HalfSpace):
        return _plane(b, a), True
    if isinstance(b.shape, HalfSpace):
        return _plane(a, b), False
    swapped = _half(a) > 0 and _half(b) == 0  # the one of more shape is b
    return _round(*((b, a) if swapped else (a, b))), swapped


def _half(p):
    """Half the length of the segment; 0 for a sphere."""
    return p.shape.length / 2 if isinstance(p.shape, Capsule) else 0.0


def _plane(a, b):
    """Equation:  d = N . x - o at the x of a farthest along n = -N."""
    n = quick(-(b.R @ ca.sparsify(ca.DM(b.shape.normal))))
    x = farthest(a, n)
    d = dot(n, b.c - x) - b.shape.offset
    return Contact(d, n, x, quick(x + d * n), x, plane_second(n, curvature(a, n)))


def _round(a, b):
    h, k = _half(a), _half(b)
    u, w, r = a.axis, b.axis, quick(b.c - a.c)
    across = quick(ca.cross(u, w)) if h else None
    s = t = None  # from the centres along the axes
    if h:
        s, t = _parameters(h, k, u, w, r, across)
    elif k:
        t = _clamped(-dot(w, r), k)
    xa = quick(a.c + s * u) if h else a.c
    xb = quick(b.c + t * w) if k else b.c
    n, rho = _direction(quick(xb - xa), w if k else None, across, TINY * max(1.0, h + k))
    radii = a.shape.radius + b.shape.radius
    pa, pb = quick(xa + a.shape.radius * n), quick(xb - b.shape.radius * n)
    if not k:
        return Contact(rho - radii, n, pa, pb, xa, general_second(n, _at_least(rho), None, None))
    return Contact(rho - radii, n, pa, pb, xa, lambda: _segments(n, rho, (u, s, h), (w, t, k)))


def _parameters(h, k, u, w, r, across):
    """(s, t) of the nearest points c_a + s u and c_b + t w, |s| <= h, |t| <= k; across = u x w.

    Products with u x w stay exact for small angles, where those of cosines cancel.
    """
    square = dot(across, across)
    crossed = square > PARALLEL * PARALLEL
    s = dot(quick(ca.cross(r, w)), across) / ca.if_else(crossed, square, 1)
    s = _clamped(ca.if_else(crossed, s, 0), h)
    b, d, e = dot(u, w), dot(u, r), dot(w, r)
    t = _clamped(b * s - e, k)
    return _clamped(b * t + d, h), t


def _clamped(x, h):
    return quick(ca.fmin(ca.fmax(x, -h), h))


def _direction(y, w, across, tiny):
    """(n, |y|); where y is shorter than `tiny` [m] it has no direction: n is across both axes, w alone where there is
    one or both are parallel, and any without axes; |y| is 0."""
    square = dot(y, y)
    short = square < tiny * tiny
    rho = quick(ca.if_else(short, 0, ca.sqrt(ca.if_else(short, 1, square))))
    other = ca.SX([0, 0, 1]) if w is None else tangents(w)[0]
    if across is not None:
        size = dot(across, across)
        other = ca.if_else(size > SLANTED * SLANTED, across / ca.sqrt(ca.fmax(size, SLANTED * SLANTED)), other)
    return quick(ca.if_else(short, other, y / ca.if_else(short, 1, rho))), rho


def _at_least(rho):
    return quick(ca.fmax(rho, NEAR))


def _segments(n, rho, first, second):
    """`left`, `right` of a Contact of two segments (axis, parameter, half length), about x_a; the first may be a point.

    The limit of general_second where the radius of curvature along a segment is infinite, and 0 at its ends: a, b are
    the tangential axes where the nearest points are within the segments, and 0 at ends,
    n' = E u + o - a* (a . o),   x_a' . a = -(a* . u) - rho/det (a . o)
    with E = (I - a a^T - b b^T) / rho, or 0 if neither is at an end; a* the dual of a. Of parallel segments many points
    are nearest: x_a stays the one it is, as at an end.
    """
    e = tangents(n)
    rho = _at_least(rho)
    (u, s, h), (w, t, k) = first, second
    inside = quick(ca.fabs(t) < k)
    b = [inside * dot(x, w) for x in e]
    E = [1 - b[0] * b[0], -b[0] * b[1], 1 - b[1] * b[1]]
    if not h:
        E = [x / rho for x in E]

        def round_right(v, o):
            return E[0] * v[0] + E[1] * v[1] + o[0], E[1] * v[0] + E[2] * v[1] + o[1]

        return (lambda v, o: v), round_right
    a = [dot(x, u) for x in e]
    across = a[0] * dot(e[1], w) - a[1] * dot(e[0], w)  # the sine between them
    crossed = quick(ca.fabs(across) > NEAR)
    here = quick((ca.fabs(s) < h) * ca.if_else(inside, crossed, 1))
    a = [here * x for x in a]
    both = here * inside
    across = ca.if_else(crossed, across, 1)
    scale = (1 - both) / rho
    E = [scale * (E[0] - a[0] * a[0]), scale * (E[1] - a[0] * a[1]), scale * (E[2] - a[1] * a[1])]
    dual = [ca.if_else(both, b[1] / across, a[0]), ca.if_else(both, -b[0] / across, a[1])]
    stretch = rho * ca.if_else(both, 1 / (across * across), 1)

    def left(v, o):
        return *v, a[0] * o[0] + a[1] * o[1]

    def right(v, o):
        along = a[0] * o[0] + a[1] * o[1]
        slide = -(dual[0] * v[0] + dual[1] * v[1]) - stretch * along
        return (
            E[0] * v[0] + E[1] * v[1] + o[0] - dual[0] * along,
            E[1] * v[0] + E[2] * v[1] + o[1] - dual[1] * along,
            slide,
        )

    return left, right
