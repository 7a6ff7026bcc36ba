"""Distances that can be written down: spheres and capsules, also beside a box, and any shape against a half-space."""

from __future__ import annotations

import casadi as ca

from ..errors import ShapeError
from ..lie.quick import dot, quick
from ..working_axes.rotations import cross
from .beside_box import box_contact
from .contacts import Contact, across, general_second, plane_second, tangents, velocity
from .shapes import ROUND, Box, HalfSpace, half_length
from .support import curvature, farthest

TINY = 1e-12  # [m] of a distance of centres: nearer ones have no direction of their own
LEAST = 1e-15  # [m] of it as a value, so that it can be differentiated
NEAR = 1e-6  # [m], and of sines: what second derivatives take for the least distance, and for parallel
PARALLEL = 1e-13  # sine of axes from which nearest points are where they cross: a smaller one is rounding


def has_closed_form(a, b):
    """Whether there is one for this pair of shapes."""
    planes = isinstance(a, HalfSpace) + isinstance(b, HalfSpace)
    rounds, boxes = isinstance(a, ROUND) + isinstance(b, ROUND), _solid(a) + _solid(b)
    return planes == 1 or rounds == 2 or rounds == boxes == 1


def _solid(shape):
    """Whether it is a box with three edges."""
    return isinstance(shape, Box) and min(shape.x, shape.y, shape.z) > 0


def closed_form(a, b):
    """Contact of two Placed shapes, exact to rounding, and whether a and b changed places in it.

    Spheres and capsules: the nearest points of two segments, in the order of Ericson 2005, Real-Time Collision
    Detection, 5.1.9; d below 0 is minus the depth of penetration, as two segments that meet are parted by a step across
    both. Beside a box: `box_contact`. Against a half-space: the support function of
    the other shape. d is differentiable but where nearest points are not unique, as for parallel capsules, and twice
    but where a nearest point comes to the end of its segment. There, derivatives are those of one side.
    """
    if not has_closed_form(a.shape, b.shape):
        raise ShapeError(f"distances: there is no closed form for {a.name!r}, a {a.kind}, and {b.name!r}, a {b.kind}")
    if isinstance(a.shape, HalfSpace):
        return _plane(b, a), True
    if isinstance(b.shape, HalfSpace):
        return _plane(a, b), False
    if isinstance(a.shape, Box) or isinstance(b.shape, Box):
        return box_contact(a, b), False
    swapped = half_length(a.shape) > 0 and half_length(b.shape) == 0  # the one of more shape is b
    return _round(*((b, a) if swapped else (a, b))), swapped


def _plane(a, b):
    """Equation:  d = N . x - o at the x of a farthest along n = -N."""
    n = quick(-(b.R @ ca.sparsify(ca.DM(b.shape.normal))))
    x = farthest(a, n)
    d = dot(n, b.c - x) - b.shape.offset
    return Contact(d, n, x, quick(x + d * n), x, plane_second(n, x, curvature(a, n)))


def _round(a, b):
    h, k = half_length(a.shape), half_length(b.shape)
    u, w, r = a.axis, b.axis, quick(b.c - a.c)
    s = t = cosine = square = normal = None  # from the centres along the axes
    if h:
        cosine, normal = dot(u, w), quick(cross(u, w))
        exact = dot(normal, normal)
        square = quick(ca.fmax(exact, NEAR * NEAR))
        s, t = _parameters(h, k, (cosine, exact, dot(cross(r, w), normal)), dot(u, r), dot(w, r))
    elif k:
        t = _clamped(-dot(w, r), k)
    xa = quick(a.c + s * u) if h else a.c
    xb = quick(b.c + t * w) if k else b.c
    n, rho, length = _direction(quick(xb - xa), w if k else None, normal, square, TINY * max(1.0, h + k))
    radii = a.shape.radius + b.shape.radius
    pa, pb = quick(xa + a.shape.radius * n), quick(xb - b.shape.radius * n)
    if not k:
        return Contact(rho - radii, n, pa, pb, xa, general_second(n, xa, _at_least(length), None, None))
    if not h:
        return Contact(rho - radii, n, pa, pb, xa, _point_and_segment(n, xa, length, (w, t, k)))
    return Contact(rho - radii, n, pa, pb, xa, _segments(n, xa, (rho, length), (cosine, square), (u, s, h), (w, t, k)))


def _parameters(h, k, between, d, e):
    """(s, t) of the nearest points c_a + s u and c_b + t w, |s| <= h, |t| <= k; d = u.r, e = w.r; between: u.w, and
    square and product, |u x w|^2 and (r x w).(u x w), which stay exact at small angles, where those of cosines cancel.
    """
    b, square, product = between
    crossed = square > PARALLEL * PARALLEL
    s = _clamped(crossed * product / ca.fmax(square, PARALLEL * PARALLEL), h)
    t = _clamped(b * s - e, k)
    return _clamped(b * t + d, h), t


def _clamped(x, h):
    return quick(ca.fmin(ca.fmax(x, -h), h))


def _direction(y, w, normal, square, tiny):
    """(n, |y|, length by which n was divided); where y is too short to have a direction, n is across the axes, of which
    there may be none, and its length that of this. w: axis of the second, if there is one; normal: cross product of
    both, if there are two; square: of the sine between them, NEAR at least. tiny [m]: what is too short.
    """
    size = dot(y, y)
    rho = quick(ca.sqrt(ca.fmax(size, LEAST * LEAST)))
    if w is None:
        across, size_across = ca.SX(ca.DM([0, 0, 1])), 1
    else:
        upright = quick(w[2] * w[2] > 0.8)
        beside = quick(1 - upright)
        across = quick(ca.vertcat(-(beside * w[1]), beside * w[0] - upright * w[2], upright * w[1]))
        if normal is not None:
            across = quick(normal + quick(square <= NEAR * NEAR) * across)
        size_across = ca.norm_2(across)
    short = quick(size < tiny * tiny)
    length = quick(rho + short * size_across)
    return quick((y + short * quick(across)) / length), rho, length


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


def _segments(n, x, lengths, between, first, other):
    """`second` of a Contact of two segments (axis, parameter, half length) about x on the first; lengths: rho, also
    kept from 0; between: cosine of their axes, and square of the sine.

    Tangents e2, along a segment whose nearest point is not at its end, if there is one, and e1 = n x e2. Then

        n' = e1 (u1/rho + o1) + e2 (o2 + u2/rho)   both at ends
        n' = e1 (u1/rho + o1) + e2 o2              the second within
        n' = e1 (u1/rho + o1),                     x' . e2 = -(u2 + rho o2)                       the first within
        n' = e1 (o1 + c/s o2),                     x' . e2 = c/s u1 - u2 - rho/s^2 o2             both within

    with cosine c and sine s of the axes; x' is the motion of the nearest point along its segment, and
    d'' = u_k . n'_l + (e2 . o_k) (x'_l . e2).
    """
    (a, s, h), (b, t, k) = first, other
    (rho, length), (cosine, square) = lengths, between

    def second(lam, still):
        inside = quick(ca.fabs(t) < k)
        here = quick((ca.fabs(s) < h) * (1 - inside * (square <= NEAR * NEAR)))  # parallel: as if at its end
        both = here * inside
        there = inside - both
        ends = 1 - here - there
        e2 = quick(here * a + there * b + _tangent(n, ends))
        e1 = cross(n, e2)
        curved = lam * ca.fmin(1 / length, 1 / NEAR)
        both_curved, lam_here, inverse = both * curved, lam * here, 1 / square
        slope = both * lam * cosine * dot(e1, b) * inverse  # of o2 in n' . e1
        bent = curved - both_curved  # of u1 in n' . e1
        slid = ends * curved - lam_here  # of u2 and o2 in the second product
        turned = lam - lam_here * (1 + rho * (1 + both * (inverse - 1)))
        turning = quick(slope * e1 - lam * e2)
        at_x = velocity(x, (e1, e2), still)

        def parts(w, v):
            (u1, u2), o2 = at_x(w, v), dot(w, e1)
            return (u1, u2 + here * (o2 - u2)), (bent * u1 + dot(w, turning), slope * u1 + slid * u2 + turned * o2)

        return parts

    return second


def _tangent(n, scale):
    """scale times a unit vector across n, the first of `tangents`."""
    x, y, z = n[0], n[1], n[2]
    sign = 1 - 2 * (z < 0)
    along = scale * sign * x
    a = along / (sign + z)
    return ca.vertcat(scale - a * x, -(a * y), -along)
