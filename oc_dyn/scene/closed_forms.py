"""Distances that can be written down: spheres and capsules, and any shape against a half-space."""

from __future__ import annotations

import casadi as ca

from ..errors import ShapeError
from ..lie.quick import dot, quick
from ..working_axes.rotations import cross
from .contacts import Contact, across, general_second, plane_second, tangents
from .shapes import Capsule, HalfSpace, Sphere
from .support import curvature, farthest

TINY = 1e-12  # [m] of a distance of centres: nearer ones have no direction of their own
NEAR = 1e-6  # [m], and of sines: what second derivatives take for the least distance, and for parallel
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
    return Contact(d, n, x, quick(x + d * n), x, plane_second(n, x, curvature(a, n)))


def _round(a, b):
    h, k = _half(a), _half(b)
    u, w, r = a.axis, b.axis, quick(b.c - a.c)
    s = t = cosine = None  # from the centres along the axes
    if h:
        cosine = dot(u, w)
        s, t = _parameters(h, k, cosine, dot(u, r), dot(w, r))
    elif k:
        t = _clamped(-dot(w, r), k)
    xa = quick(a.c + s * u) if h else a.c
    xb = quick(b.c + t * w) if k else b.c
    n, rho = _direction(quick(xb - xa), u, w)
    radii = a.shape.radius + b.shape.radius
    pa, pb = quick(xa + a.shape.radius * n), quick(xb - b.shape.radius * n)
    if not k:
        return Contact(rho - radii, n, pa, pb, xa, general_second(n, xa, _at_least(rho), None, None))
    if not h:
        return Contact(rho - radii, n, pa, pb, xa, _point_and_segment(n, xa, rho, (w, t, k)))
    return Contact(rho - radii, n, pa, pb, xa, _segments(n, xa, rho, cosine, (u, s, h), (w, t, k)))


def _parameters(h, k, b, d, e):
    """(s, t) of the nearest points c_a + s u and c_b + t w, |s| <= h, |t| <= k; b = u.w, d = u.r, e = w.r."""
    det = ca.fmax(1 - b * b, NEAR * NEAR)
    s = _clamped((d - b * e) / det, h)
    t = _clamped(b * s - e, k)
    return _clamped(b * t + d, h), t


def _clamped(x, h):
    return quick(ca.fmin(ca.fmax(x, -h), h))


def _direction(y, u, w):
    """(n, |y|); where y is too short to have a direction, n is across both axes, or any, and |y| is 0."""
    square = dot(y, y)
    short = square < TINY * TINY
    rho = quick(ca.if_else(short, 0, ca.sqrt(ca.if_else(short, 1, square))))
    across = ca.cross(u, w)
    size = ca.sumsqr(across)
    other = ca.if_else(size > NEAR * NEAR, across / ca.sqrt(ca.fmax(size, NEAR * NEAR)), ca.SX([0, 0, 1]))
    return quick(ca.if_else(short, other, y / ca.if_else(short, 1, rho))), rho


def _at_least(rho):
    return quick(ca.fmax(rho, NEAR))


def _point_and_segment(n, x, rho, segment):
    """`second` of a Contact about the point x: n' = E u + o, E = (I - b b^T) / rho; b is the axis of the segment where
    the nearest point is within it, and 0 at its ends."""
    w, t, k = segment

    def second(lam, still):
        inside, scale = quick(ca.fabs(t) < k), lam / _at_least(rho)
        b = [inside * dot(e, w) for e in tangents(n)]
        E = [scale * (1 - b[0] * b[0]), -scale * (b[0] * b[1]), scale * (1 - b[1] * b[1])]

        def right(u, o):
            return E[0] * u[0] + E[1] * u[1] + lam * o[0], E[1] * u[0] + E[2] * u[1] + lam * o[1]

        return across(n, x, lambda u, o: u, right)

    return second


def _segments(n, x, rho, cosine, first, second_one):
    """`second` of a Contact of two segments (axis, parameter, half length) about x on the first.

    Tangents e2, along a segment whose nearest point is not at its end, if there is one, and e1 = n x e2. Then

        n' = e1 (u1/rho + o1) + e2 (o2 + u2/rho)   both at ends
        n' = e1 (u1/rho + o1) + e2 o2              the second within
        n' = e1 (u1/rho + o1),                     x' . e2 = -(u2 + rho o2)                       the first within
        n' = e1 (o1 + c/s o2),                     x' . e2 = c/s u1 - u2 - rho/s^2 o2     both within

    with cosine c and sine s of the axes; x' is the motion of the nearest point along its segment, and
    d'' = u_k . n'_l + (e2 . o_k) (x'_l . e2).
    """
    (a, s, h), (b, t, k) = first, second_one

    def second(lam, still):
        here, inside = quick(ca.fabs(s) < h), quick(ca.fabs(t) < k)
        both = here * inside
        there = inside - both
        ends = 1 - here - there
        other = quick(ca.vertcat(ends, 0, ends * (n[0] * n[0] > 0.8)))  # not along n
        f2 = quick(here * a + there * b + other)
        f1 = cross(n, f2)
        f2 = cross(f1, n)
        lam = lam / ca.fmax(dot(f1, f1), NEAR * NEAR)
        sine = dot(f1, b)
        sine = ca.if_else(ca.fabs(sine) > NEAR, sine, ca.if_else(sine < 0, -NEAR, NEAR))
        inverse = 1 / ca.if_else(both, sine, 1)
        slope = both * cosine * inverse
        near = _at_least(rho)
        curved = lam / near
        c1, c2 = lam * slope, (1 - both) * curved  # of o2 and u1 in n' . e1
        c3, c4 = ends * curved - lam * here, lam * (1 - here) - lam * here * near * inverse * inverse
        turning = quick(c1 * f1 - lam * f2)
        m1, m2 = (cross(x, f1), cross(x, f2)) if still > 2 else (None, None)

        def parts(w, v):
            if m1 is None:
                u = v - cross(x, w) if w.nnz() else v
                u1, u2 = dot(f1, u), dot(f2, u)
            else:
                u1, u2 = dot(w, m1) + dot(f1, v), dot(w, m2) + dot(f2, v)
            o2 = dot(w, f1)
            return (u1, u2 + here * (o2 - u2)), (c2 * u1 + dot(w, turning), c1 * u1 + c3 * u2 + c4 * o2)

        return parts

    return second
