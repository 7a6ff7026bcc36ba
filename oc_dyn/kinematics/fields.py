"""Velocities and accelerations of bodies as fields: pairs (angular, linear), those of a body at its origin.

A body with angular velocity w, whose origin moves with u, has velocity u + w x r at r.
"""

from dataclasses import dataclass

import casadi as ca


@dataclass
class Motion:
    """Fields of one body: w, u velocity; wd derivative of w in the body's axes; a acceleration of the origin less
    gravity, U acceleration matrix."""

    w: object
    u: object
    wd: object
    a: object
    U: object


def acceleration_matrix(w, wd):
    """U = skew(wd) + skew(w)^2: the point r has acceleration a + U r, a that of the origin."""
    x, y, z = w[0], w[1], w[2]
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return ca.vertcat(
        ca.horzcat(-(yy + zz), xy - wd[2], xz + wd[1]),
        ca.horzcat(xy + wd[2], -(xx + zz), yz - wd[0]),
        ca.horzcat(xz - wd[1], yz + wd[0], -(xx + yy)),
    )


def spread(K):
    """trace(K) 1 - K: with K = sum v r^T the moment sum r x (w x v) is spread(K) w."""
    xx, yy, zz = K[1, 1] + K[2, 2], K[0, 0] + K[2, 2], K[0, 0] + K[1, 1]
    return ca.vertcat(
        ca.horzcat(xx, -K[0, 1], -K[0, 2]), ca.horzcat(-K[1, 0], yy, -K[1, 2]), ca.horzcat(-K[2, 0], -K[2, 1], zz)
    )


def product(s, wrench):
    """Generalised force of wrenches (moments, forces) on the motions s."""
    return s[0].T @ wrench[0] + s[1].T @ wrench[1]


def plus(a, b):
    """Sum of two pairs."""
    return a[0] + b[0], a[1] + b[1]


def turned_by(s, wrench):
    """What a wrench (moment, force) gains as the points it acts on are moved by s."""
    n, f = (ca.repmat(x, 1, s[0].shape[1]) for x in wrench)
    return ca.cross(s[0], n, 1) + ca.cross(s[1], f, 1), ca.cross(s[0], f, 1)
