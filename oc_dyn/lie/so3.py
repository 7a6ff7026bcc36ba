"""Rotations: SO(3) and unit quaternions (w, x, y, z), for numpy, DM, SX and MX alike.

A small rotation needs no branch in user code: series take over below an angle of 0.1, where the closed forms
start to cancel and the first term left out is below the rounding of double precision.
"""

import casadi as ca
import numpy as np

_SMALL = 1e-2  # square of the angle below which series are used
_BERNOULLI = (  # |B_2k| / (2k)!, k = 1, 2, ..., of the series of (1 - a/2 cot(a/2)) / a^2 in a^2
    1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600,
    3617 / 10670622842880000, 43867 / 5109094217170944000, 174611 / 802857662698291200000,
    77683 / 14101100039391805440000, 236364091 / 1693824136731743669452800000,
)  # fmt: skip


def skew(w):
    """Matrix of the cross product: skew(w) x = w x x. (3,) -> (3, 3)."""
    return ca.skew(w)


def rot_x(angle):
    """Rotation by `angle` [rad] about x. -> (3, 3)."""
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(1, 0, 0), ca.horzcat(0, c, -s), ca.horzcat(0, s, c))


def rot_y(angle):
    """Rotation by `angle` [rad] about y. -> (3, 3)."""
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, 0, s), ca.horzcat(0, 1, 0), ca.horzcat(-s, 0, c))


def rot_z(angle):
    """Rotation by `angle` [rad] about z. -> (3, 3)."""
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))


def rpy(roll, pitch, yaw):
    """Rotation about fixed x, y, z axes in this order (URDF). -> (3, 3)."""
    return rot_z(yaw) @ rot_y(pitch) @ rot_x(roll)


def _safe_angle(w):
    square = ca.dot(w, w)
    small = square < _SMALL
    angle = ca.sqrt(ca.if_else(small, 1, square))  # the untaken branch stays differentiable
    return square, small, angle


def _series(x, *coefficients):
    total = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = c + x * total
    return total


def sinc_terms(w):
    """sin(a)/a, (1 - cos a)/a^2, (a - sin a)/a^3 of the angle a = |w|, safe at zero."""
    square, small, a = _safe_angle(w)
    first = ca.if_else(small, _series(square, 1, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880), ca.sin(a) / a)
    second = ca.if_else(
        small, _series(square, 1 / 2, -1 / 24, 1 / 720, -1 / 40320, 1 / 3628800), 2 * ca.sin(a / 2) ** 2 / a**2
    )
    third = ca.if_else(
        small, _series(square, 1 / 6, -1 / 120, 1 / 5040, -1 / 362880, 1 / 39916800), (a - ca.sin(a)) / a**3
    )
    return first, second, third


def exp_so3(w):
    """Rotation matrix of the rotation vector `w` [rad]. (3,) -> (3, 3). Rodrigues."""
    first, second, _ = sinc_terms(w)
    W = skew(w)
    return ca.DM.eye(3) + first * W + second * (W @ W)


def quat_to_rot(Q):
    """Rotation matrix of the quaternion (w, x, y, z) of any length but zero: that of Q / |Q|. (4,) -> (3, 3).

    A rotation at every Q, so formulas that use its inverse, its transpose or its derivatives agree there, too. Terms
    are arranged for few instructions: two more than for unit length, five where only the last row is read.
    """
    w, x, y, z = Q[0], Q[1], Q[2], Q[3]
    xx, yy, zz = x * x, y * y, z * z
    along, across = w * w + zz, xx + yy
    inverse = 1 / (along + across)
    twice = 2 * inverse
    X, Y, Z = twice * x, twice * y, twice * z
    return ca.vertcat(
        ca.horzcat(1 - twice * (yy + zz), X * y - w * Z, X * z + w * Y),
        ca.horzcat(X * y + w * Z, 1 - twice * (xx + zz), Y * z - w * X),
        ca.horzcat(X * z - w * Y, Y * z + w * X, inverse * (along - across)),
    )


def quat_to_rpy(Q):
    """Angles for rpy() that make the rotation of a quaternion (w, x, y, z), pitch within a quarter turn. (4,) -> (3,).

    The yaw comes from the roll found, which keeps their product right where the pitch is near a quarter turn and each
    alone is not told. The length of the quaternion does not matter.
    """
    w, x, y, z = Q[0], Q[1], Q[2], Q[3]
    ww, xx, yy, zz = w * w, x * x, y * y, z * z
    up, level = 2 * (y * z + w * x), ww - xx - yy + zz  # entries of the rotation matrix, times the square of the length
    roll = ca.atan2(up, level)
    pitch = ca.atan2(2 * (w * y - x * z), ca.sqrt(up * up + level * level))
    s, c = ca.sin(roll), ca.cos(roll)
    sine = s * 2 * (x * z + w * y) - c * 2 * (x * y - w * z)
    cosine = c * (ww - xx + yy - zz) - s * 2 * (y * z - w * x)
    return ca.vertcat(roll, pitch, ca.atan2(sine, cosine))


def quat_mul(P, Q):
    """Product of two quaternions (w, x, y, z): rotation P after Q. -> (4,)."""
    a, b, c, d = P[0], P[1], P[2], P[3]
    w, x, y, z = Q[0], Q[1], Q[2], Q[3]
    return ca.vertcat(
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )


def quat_conj(Q):
    """Inverse of a unit quaternion (w, x, y, z)."""
    return ca.vertcat(Q[0], -Q[1], -Q[2], -Q[3])


def quat_exp(w):
    """Unit quaternion of the rotation vector `w` [rad]. (3,) -> (4,)."""
    first, second, _ = sinc_terms(0.5 * w)
    half = 0.5 * first
    real = 1 - ca.dot(0.5 * w, 0.5 * w) * second  # cos(a/2)
    return ca.vertcat(real, half * w)


def quat_log(Q):
    """Rotation vector [rad], at most pi long, of a quaternion (w, x, y, z) of any length but zero. (4,) -> (3,)."""
    sign = ca.if_else(Q[0] < 0, -1, 1)  # Q and -Q are the same rotation: take the shorter way
    w, v = sign * Q[0], sign * Q[1:4]
    square = ca.dot(v, v)
    small = square < 1e-16 * (w * w)  # atan2 and the root are accurate to there; whatever the length of Q is
    n = ca.sqrt(ca.if_else(small, 1, square))
    factor = ca.if_else(small, 2 / w, 2 * ca.atan2(n, w) / n)
    return factor * v


def _cotangent_terms(square):
    """(c, dc / d(square)) of c = (1 - a/2 cot(a/2)) / a^2, the angle a up to 2 pi given by its square. The series reach
    to an angle of 1: nothing cancels in derivatives either, of which a Hessian takes two more."""
    small = square < 1
    s = ca.if_else(small, 1, square)  # the untaken branch stays differentiable
    a = ca.sqrt(s) / 2
    cot, sine = ca.cos(a) / ca.sin(a), ca.sin(a)
    whole = a * cot
    slope = (cot / a - 1 / sine**2) / 8  # of `whole` by the square
    slopes = [k * x for k, x in enumerate(_BERNOULLI)][1:]
    return (
        ca.if_else(small, _series(square, *_BERNOULLI), (1 - whole) / s),
        ca.if_else(small, _series(square, *slopes), (whole - 1 - s * slope) / s**2),
    )


def exponential_rate(x, w):
    """Time derivative of the rotation vector x [rad], shorter than 2 pi, where the rotation quat_exp(x) turns with body
    angular velocity w [rad/s]: the inverse right Jacobian of SO(3) times w, smooth at zero. (3,), (3,) -> (3,).

    Source: Iserles, Munthe-Kaas, Norsett, Zanna 2000, section 2.4, for a product with the exponential on the right.
    """
    c, _ = _cotangent_terms(ca.dot(x, x))
    turned = ca.cross(x, w)
    return w + turned / 2 + c * ca.cross(x, turned)


def quat_rate(Q, w):
    """Time derivative of a quaternion (w, x, y, z) turning with body angular velocity `w` [rad/s]. -> (4,)."""
    return 0.5 * quat_mul(Q, ca.vertcat(0, w))


def axis_frame(axis, tolerance=1e-12):
    """(3, 3) rotation whose z column is the unit vector along `axis`, with as many exact zeros as the axis allows;
    what is below `tolerance` counts as one."""
    z = np.asarray(axis, float) / np.linalg.norm(axis)
    z[np.abs(z) < tolerance] = 0.0
    z = z / np.linalg.norm(z)
    if np.array_equal(z, [0.0, 0.0, 1.0]):
        return np.eye(3)
    if np.array_equal(z, [0.0, 0.0, -1.0]):
        return np.diag([1.0, -1.0, -1.0])
    # x in the plane of the two axes the joint axis is not closest to
    x = np.zeros(3)
    i = int(np.argmin(np.abs(z)))
    x[i] = 1.0
    x = x - z * z[i]
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
