"""Distances of spheres and capsules beside boxes, exact, in the frame of the box.

Along the segment the slope of half the squared distance from the box is piecewise linear and rises, and its zero is
between two of the places at which it bends. Where segment and box meet, the depth is the least over the faces of the
box grown by the segment: across an axis of the box, or across one and the segment.
"""

from __future__ import annotations

import casadi as ca

from ..lie.quick import dot, quick
from .contacts import Contact, general_second
from .shapes import Box, half_length

SMALL = 1e-12  # of what is divided by
_STRAIGHT = 1e7  # [m] radius of curvature along an edge, a face or a segment
_MET, _ALONG = 1e-9, 1e-9  # [m] up to which shapes meet; component of n along an axis that it is across
_PARALLEL, _FAR = 1e-10, 1e9  # square of the sine of axes that have none across both, and a gap [m] that is taken off


def box_contact(a, b):
    """Contact of two Placed shapes, one of which is a box, the other a sphere or capsule.

    d is exact to rounding, overlaps included, and differentiable but where nearest points are not unique, as for a
    capsule along a face; twice but where one comes to an edge or an end. There, derivatives are those of one side.
    """
    home, segment = (a, b) if isinstance(a.shape, Box) else (b, a)
    c, u, half = local(a, b, home)
    box = half_edges(home.shape)
    n, shares = from_nearest(c, u, half, box)
    inside = [_STRAIGHT * (ca.fabs(x) < 1) for x in shares]
    point = ca.vertcat(*(h * x for h, x in zip(box, shares, strict=False)))  # of the box, from b's side
    r = segment.shape.radius
    d = product(n, c) - sum(h * ca.fabs(x) for h, x in zip(box, n, strict=True)) - r
    R = home.R if isinstance(home.R, ca.DM) else quick(home.R)
    n, point = quick(R @ ca.vertcat(*n)), quick(R @ point)
    of_box, of_segment = quick(R @ ca.diag(ca.vertcat(*inside[:3])) @ R.T), None
    along = ca.SX(3, 1)
    if half:
        w = segment.axis
        d = d - half * ca.fabs(dot(n, w))
        along, of_segment = quick((half * shares[3]) * w), quick(inside[3] * (w @ w.T))
    if home is b:
        x_a, x_b, r_a, r_b = quick(a.c + along), quick(b.c - point), of_segment, of_box
        points = quick(x_a + r * n), x_b
    else:
        x_a, x_b, r_a, r_b = quick(a.c + point), quick(b.c - along), of_box, of_segment
        points = x_a, quick(x_b - r * n)
    return Contact(d, n, *points, x_a, general_second(n, x_a, dot(n, x_b - x_a), r_a, r_b))


def half_edges(box):
    """(3,) [m]."""
    return box.x / 2, box.y / 2, box.z / 2


def local(a, b, home):
    """(c, u, half) in the frame of home, one of both Placed shapes: from the centre of a to that of b, and the axis and
    half length [m] of the other shape, three scalars each; u is None for a sphere."""
    segment = b if home is a else a
    R = home.R if isinstance(home.R, ca.DM) else quick(home.R)
    c, half = quick(ca.SX(R.T @ (b.c - a.c))), half_length(segment.shape)
    u = quick(ca.SX(R.T @ segment.axis)) if half else None
    return [c[k] for k in range(3)], None if u is None else [u[k] for k in range(3)], half


def from_nearest(c, u, half, box):
    """(n, places -1 to 1 along the edges of the box, and along the segment) of the nearest points; where segment and
    box meet, of the shallowest way out."""
    t = 0 if u is None else _place(c, u, half, box)
    y = _from_place(c, u, t)
    way = [x - ca.fmin(ca.fmax(x, -h), h) for x, h in zip(y, box, strict=True)]
    meet = product(way, way) <= _MET * _MET
    out, t_out = _way_out(c, u, half, box)
    n = unit([ca.if_else(meet, x, w) for x, w in zip(out, way, strict=True)])
    t = 0 if u is None else ca.if_else(meet, t_out, t)
    shares = []
    for x, h, m in zip(_from_place(c, u, t), box, n, strict=True):
        corner = meet * (ca.fabs(m) > _ALONG)
        shares.append(ca.if_else(corner, 1 - 2 * (m < 0), ca.fmin(ca.fmax(x * (1 / h), -1), 1)))
    return n, shares if u is None else [*shares, t * (1 / half)]


def _from_place(c, u, t):
    """From the point t on the segment to the middle of the box."""
    return c if u is None else [x - t * w for x, w in zip(c, u, strict=True)]


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
        inverse = 1 / (w + (1 - 2 * (w < 0)) * SMALL)
        for end in (x - h, x + h):
            t = ca.fmin(ca.fmax(end * inverse, -half), half)
            value = slope(t)
            rises, falls = (value >= 0) * (t < high), (value <= 0) * (t > low)
            low, at_low = ca.if_else(falls, t, low), ca.if_else(falls, value, at_low)
            high, at_high = ca.if_else(rises, t, high), ca.if_else(rises, value, at_high)
    rise = at_high - at_low
    share = ca.if_else(rise > SMALL * SMALL, -at_low / ca.fmax(rise, SMALL * SMALL), 0.5)
    return low + ca.fmin(ca.fmax(share, 0), 1) * (high - low)


def _way_out(c, u, half, box):
    """(axis, t) of the axes of the box, and those across one and the segment, along which both are parted soonest, and
    the place on the segment where they part."""
    best = None
    for k in range(3 if u is None else 6):
        axis = [float(i == k) for i in range(3)] if k < 3 else _across(k - 3, u)
        along = product(axis, c)
        sign = 1 - 2 * (along < 0)
        gap = ca.fabs(along) - product(box, [ca.fabs(x) for x in axis])
        axis, t = [sign * x for x in axis], 0
        if k < 3 and u is not None:
            gap, t = gap - half * ca.fabs(u[k]), half * (1 - 2 * (sign * u[k] < 0))
        elif k >= 3:
            square = product(axis, axis)
            gap = gap / ca.sqrt(ca.fmax(square, SMALL)) - _FAR * (square < _PARALLEL)
            t = _crossing(k - 3, c, u, half, box, axis)
        found = [gap, *axis, t]
        best = found if k == 0 else [ca.if_else(found[0] > best[0], x, y) for x, y in zip(found, best, strict=True)]
    return best[1:4], best[4]


def _across(k, u):
    """Axis k of the box x u."""
    return [[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]][k]


def _crossing(k, c, u, half, box, axis):
    """t where the segment passes the edge of the box along its axis k that is nearest along -axis, across both."""
    i, j = (k + 1) % 3, (k + 2) % 3  # e_k x axis = (-axis_j, axis_i) along i and j
    v = [c[x] - box[x] * (1 - 2 * (axis[x] < 0)) for x in (i, j)]
    over = u[j] * axis[i] - u[i] * axis[j]
    t = (v[1] * axis[i] - v[0] * axis[j]) / (over + (1 - 2 * (over < 0)) * SMALL)
    return ca.fmin(ca.fmax(t, -half), half)


def unit(x):
    """x / |x|, as scalars."""
    scale = 1 / ca.sqrt(product(x, x))
    return [scale * y for y in x]


def product(x, y):
    """x . y of lists of scalars."""
    total = x[0] * y[0]
    for a, b in zip(x[1:], y[1:], strict=True):
        total = total + a * b
    return total
