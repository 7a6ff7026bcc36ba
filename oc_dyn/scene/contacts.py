"""What the distance of a pair of shapes is made of, and its derivatives by the joints between them.

Both shapes are rigid, and d = n . (x_b - x_a) - radii is the value of an optimum: over the points x_a, x_b, or over the
unit vector n from a to b. So a small motion of the shapes changes d as if x_a, x_b and n stayed (envelope theorem):
d' = n . (velocity of b - velocity of a) at any point of the line through x_a along n. How that changes follows from how
n and x_a move along, for which the optimality conditions are solved: two equations, in the plane across n.

With twists [w; v], velocities u = v + w x x_a at x_a, and the components (u1, u2), (o1, o2) of u and of w x n along the
tangents e1, e2 of the plane across n:

    n' = D^-1 (u + (gap + r_b) o) for a motion of b,     D = gap I + r_a + r_b,     gap = n . (x_b - x_a)
    d'' = (u_k - r_a o_k) . n'_l     for joints k before l on the way from a to b

where r_a, r_b (2, 2) are the radii of curvature of the shapes at x_a and x_b, 0 at a corner and infinite along an edge.

Source: Montana 1988, The Kinematics of Contact and Grasp, for how contact moves over curved bodies; the second order
is that of a minimum by the implicit function theorem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca

from ..lie.quick import dot, quick
from ..working_axes.assembly import assembled
from ..working_axes.rotations import cross

TINY = 1e-13  # [m^2] of the determinant of D


@dataclass(frozen=True, eq=False)
class Contact:
    """The nearest points of a pair. d (1,); n (3,) from a to b; point_a, point_b (3,) on the surfaces; x (3,) the point
    on the line through both about which `second` is written.

    second(lam, still) -> function (w, v) -> (left, right) of the twist of a joint that carries b, as many expressions
    each; lam times the second derivative by joints k before l is the sum of products left(k) right(l). still: how many
    of the joints it is asked for have v = 0.
    """

    d: object
    n: object
    point_a: object
    point_b: object
    x: object
    second: Callable[[object, int], Callable]


def tangents(n):
    """Unit vectors e1, e2 with e1 x e2 = n, smooth but where n_z changes sign.

    Source: Duff et al. 2017, Building an Orthonormal Basis, Revisited, JCGT 6(1).
    """
    x, y, z = n[0], n[1], n[2]
    sign = ca.if_else(z < 0, -1, 1)
    a = -1 / (sign + z)
    b = x * y * a
    e1 = ca.vertcat(1 + sign * x * x * a, sign * b, -sign * x)
    return quick(e1), quick(ca.vertcat(b, sign + y * y * a, -y))


def general_second(n, x, gap, r_a, r_b):
    """`second` of a Contact about x_a from matrices (3, 3) of the radii of curvature in root axes, of either shape
    None for a corner: 0; for shapes whose radii are finite."""

    def corners(lam, still):
        (e1, e2), inverse = tangents(n), lam / gap
        t1, t2 = quick(lam * e1), quick(lam * e2)
        at_x = velocity(x, (e1, e2), still)

        def both(w, v):
            u = at_x(w, v)
            return u, (inverse * u[0] + dot(t2, w), inverse * u[1] - dot(t1, w))

        return both

    def second(lam, still):
        e = tangents(n)
        ra, rb = (_across(e, r) for r in (r_a, r_b))
        (a, b), (_, c) = [[ra[i][j] + rb[i][j] + (gap if i == j else 0) for j in range(2)] for i in range(2)]
        det = a * c - b * b
        scale = lam / ca.if_else(ca.fabs(det) > TINY, det, TINY)  # where D is 0, as of corners that meet
        inverse = (c * scale, -b * scale, a * scale)
        beyond = [[rb[i][j] + (gap if i == j else 0) for j in range(2)] for i in range(2)]

        def left(u, o):
            return tuple(u[i] - (ra[i][0] * o[0] + ra[i][1] * o[1]) for i in range(2)) if r_a is not None else u

        def right(u, o):
            y = [u[i] + beyond[i][0] * o[0] + beyond[i][1] * o[1] for i in range(2)]
            return inverse[0] * y[0] + inverse[1] * y[1], inverse[1] * y[0] + inverse[2] * y[1]

        return across(n, x, left, right)

    return corners if r_a is None and r_b is None else second


def plane_second(n, x, r_a):
    """`second` of a Contact whose b is a half-space: n' = o, whatever a is."""

    def second(lam, still):
        ra = None if r_a is None else _across(tangents(n), r_a)

        def left(u, o):
            return u if ra is None else tuple(u[i] - (ra[i][0] * o[0] + ra[i][1] * o[1]) for i in range(2))

        return across(n, x, left, lambda u, o: tuple(lam * y for y in o))

    return second


def velocity(x, directions, still):
    """Function (w, v) -> components along directions of the velocity of the point x: by their moments where enough of
    the twists, `still`, have v = 0."""
    if still > 2:
        moments = [cross(x, e) for e in directions]
        return lambda w, v: tuple(dot(w, m) + dot(e, v) for m, e in zip(moments, directions, strict=True))

    def by_point(w, v):
        u = v - cross(x, w) if w.nnz() else v
        return tuple(dot(e, u) for e in directions)

    return by_point


def across(n, x, left, right):
    """What `second` gives, from functions of the components (u1, u2), (o1, o2) along tangents(n)."""
    e1, e2 = tangents(n)
    at_x = velocity(x, (e1, e2), 0)

    def both(w, v):
        u, o = at_x(w, v), (dot(e2, w), -dot(e1, w))
        return left(u, o), right(u, o)

    return both


def _across(e, r):
    if r is None:
        return [[0, 0], [0, 0]]
    f = [quick(r @ x) for x in e]
    b = dot(e[0], f[1])
    return [[dot(e[0], f[0]), b], [b, dot(e[1], f[1])]]


# -- derivatives by q ---------------------------------------------------------------------------------------------


def gradient(contact, joints, way):
    """[(body, (1, nv_i))]: derivative of d by each joint on the way from a to b."""
    moment = cross(contact.x, contact.n)
    out = []
    for i, sign in way:
        row = quick(moment.T @ joints[i].w + contact.n.T @ joints[i].v)
        out.append((i, row if sign > 0 else -row))
    return out


def rows(model, found):
    """(1, nv) row of [(body, (1, nv_i))]; mimic joints add to their master."""
    entries = [None] * model.robot.nv
    for i, row in found:
        _, _, first, size = model.coordinates[i]
        scale = model.rule[i][0]
        for k in range(size):
            x = row[k] if scale == 1.0 else scale * row[k]
            entries[first + k] = x if entries[first + k] is None else entries[first + k] + x
    return ca.horzcat(*(ca.SX(1, 1) if x is None else x for x in entries))


def summed_gradient(model, contacts, joints, lam):
    """(nv,) gradient of lam' d: the forces lam n between the shapes, as wrenches, summed over subtrees. contacts:
    [(Contact, bodies (a, b))]."""
    wrenches = {i: None for i in (0, *model.bodies)}
    for k, (x, (a, b)) in enumerate(contacts):
        if a == b:
            continue
        force = quick(lam[k] * x.n)
        moment = cross(x.x, force)
        for i, sign in ((a, -1), (b, 1)):
            old = wrenches[i] or (ca.SX(3, 1), ca.SX(3, 1))
            wrenches[i] = tuple(p + sign * f for p, f in zip(old, (moment, force), strict=True))
    found = []
    for i in model.reversed_bodies:
        if wrenches[i] is None:
            continue
        moment, force = wrenches[i]
        found.append((i, quick(moment.T @ joints[i].w + force.T @ joints[i].v)))
        above = model.parent[i]
        old = wrenches[above]
        wrenches[above] = (moment, force) if old is None else (old[0] + moment, old[1] + force)
    return rows(model, found).T


def add_hessian(blocks, contact, joints, way, lam):
    """Add lam d'' to blocks {(body, body): (nv_i, nv_j)}, those of two bodies for the lower number first."""
    columns = {i: [(quick(joints[i].w[:, k]), quick(joints[i].v[:, k])) for k in range(joints[i].size)] for i, _ in way}
    both = contact.second(lam, sum(not v.nnz() for x in columns.values() for _, v in x))
    before = []  # (body, sign, left expressions of each column) of the joints passed
    for i, sign in way:
        found = [both(*x) for x in columns[i]]
        before.append((i, sign, [left for left, _ in found]))
        for j, other, lefts in before:
            block = [[_summed(x, y) for _, y in found] for x in lefts]
            block = quick(ca.vertcat(*(ca.horzcat(*row) for row in block)))
            _add(blocks, j, i, block if sign == other else -block)


def _summed(x, y):
    total = None
    for a, b in zip(x, y, strict=True):
        total = a * b if total is None else total + a * b
    return total


def _add(blocks, j, i, block):
    if i == j:
        block = 0.5 * (block + block.T) if block.shape[0] > 1 else block
    elif j > i:
        i, j, block = j, i, block.T
    blocks[j, i] = blocks[j, i] + block if (j, i) in blocks else block


def hessian(model, blocks):
    """(nv, nv), full and symmetric."""
    return ca.densify(ca.SX(assembled(model, blocks, mirrored=True)))
