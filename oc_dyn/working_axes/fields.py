"""Velocities and accelerations of bodies as fields: pairs (angular, linear), those of a body at its origin.

A body with angular velocity w, whose origin moves with u, has velocity u + w x r at r. Wrenches are pairs (moment,
force). The parts of a pair may have several columns.
"""

from dataclasses import dataclass

import casadi as ca

from ..lie.quick import dot, quick
from .rotations import cross, square_matrix


@dataclass(frozen=True)
class BodyMotion:
    """Fields of one body: w, u velocity; wd derivative of w in the body's axes; a acceleration of the origin less
    gravity, U acceleration matrix."""

    w: object
    u: object
    wd: object
    a: object
    U: object


def carried(frame, above, observed=True):
    """(w, u, wd, a) of the points of the parent at a body's origin, from the parent's BodyMotion; u is zero if the
    body's observer goes along with that point, so that it is not `observed`."""
    u = above.u + cross(above.w, frame.p) if observed else ca.SX(3, 1)
    return tuple(frame.inward(x) for x in (above.w, u, above.wd, above.a + above.U @ frame.p))


def moved(before, joint):
    """BodyMotion from `carried` and its joint's (w, u) and the parts of their rates that dv makes."""
    (c, u, wd, a), (jw, ju, aw, au) = before, joint
    w = c + jw
    wd = wd + cross(c, jw) + aw
    return BodyMotion(w, u + ju, wd, a + au + cross(c + w, ju), acceleration_matrix(w, wd))


def acceleration_matrix(w, wd):
    """U = skew(wd) + skew(w)^2: the point r has acceleration a + U r, a that of the origin."""
    x, y, z = w[0], w[1], w[2]
    return acceleration_matrix_of((x * x, y * y, z * z, x * y, x * z, y * z), wd)


def acceleration_matrix_of(products, wd):
    """The acceleration matrix from the products xx, yy, zz, xy, xz, yz of the components of w."""
    xx, yy, zz, xy, xz, yz = products
    return square_matrix(
        (-(yy + zz), xy - wd[2], xz + wd[1]),
        (xy + wd[2], -(xx + zz), yz - wd[0]),
        (xz - wd[1], yz + wd[0], -(xx + yy)),
    )


def newton_euler(m, h, P, a, U):
    """Force and, about the origin, moment that move a body: m a + U h, h x a + vee(U P - (U P)^T), P symmetric and
    equal factors collected."""
    P, a, U = quick(ca.SX(P) if isinstance(P, ca.DM) and isinstance(U, ca.SX) else P), quick(a), quick(U)
    moment = ca.vertcat(
        P[1, 1] * U[2, 1] - P[2, 2] * U[1, 2] + P[0, 1] * U[2, 0] - P[0, 2] * U[1, 0] + P[1, 2] * (U[2, 2] - U[1, 1]),
        P[2, 2] * U[0, 2] - P[0, 0] * U[2, 0] + P[1, 2] * U[0, 1] - P[0, 1] * U[2, 1] + P[0, 2] * (U[0, 0] - U[2, 2]),
        P[0, 0] * U[1, 0] - P[1, 1] * U[0, 1] + P[0, 2] * U[1, 2] - P[1, 2] * U[0, 2] + P[0, 1] * (U[1, 1] - U[0, 0]),
    )
    return m * a + U @ h, quick(ca.cross(h, a)) + quick(moment)


def spread(K):
    """trace(K) 1 - K: with K = sum v r^T the moment sum r x (w x v) is spread(K) w."""
    xx, yy, zz = K[1, 1] + K[2, 2], K[0, 0] + K[2, 2], K[0, 0] + K[1, 1]
    return square_matrix((xx, -K[0, 1], -K[0, 2]), (-K[1, 0], yy, -K[1, 2]), (-K[2, 0], -K[2, 1], zz))


def axial(K):
    """Twice the axial vector of a matrix: with K = sum y r^T it is sum r x y."""
    return quick(ca.vertcat(K[2, 1] - K[1, 2], K[0, 2] - K[2, 0], K[1, 0] - K[0, 1]))


def product(s, wrench):
    """Generalised force of wrenches on the motions s."""
    return dot(s[0], wrench[0]) + dot(s[1], wrench[1])


def plus(a, b):
    """Sum of two pairs."""
    return a[0] + b[0], a[1] + b[1]


def turned_by(s, wrench):
    """What a wrench gains as the points it acts on are moved by s."""
    n, f = (x if s[0].shape[1] == 1 else ca.repmat(x, 1, s[0].shape[1]) for x in wrench)
    return quick(ca.cross(s[0], n, 1)) + quick(ca.cross(s[1], f, 1)), quick(ca.cross(s[0], f, 1))
