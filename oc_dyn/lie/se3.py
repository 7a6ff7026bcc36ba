"""Poses, twists [angular; linear] and wrenches [moment; force]: SE(3), for numpy, DM, SX and MX alike.

A pose is the pair (R, p): rotation and origin of a frame, seen from another one.
"""

import casadi as ca

from .so3 import _cotangent_terms, exp_so3, sinc_terms, skew


def compose(A, B):
    """Pose of c in a from poses of b in a and c in b."""
    return A[0] @ B[0], A[0] @ B[1] + A[1]


def inverse(C):
    """Pose of a in b from the pose of b in a."""
    return C[0].T, -(C[0].T @ C[1])


def homogeneous(C):
    """4x4 matrix of a pose."""
    return ca.vertcat(ca.horzcat(C[0], C[1]), ca.DM([[0, 0, 0, 1]]))


def Ad(C):
    """Adjoint of a pose: takes twists from the inner to the outer frame. -> (6, 6)."""
    R, p = C
    return ca.vertcat(ca.horzcat(R, ca.DM.zeros(3, 3)), ca.horzcat(skew(p) @ R, R))


def Ad_inv(C):
    """Inverse adjoint of a pose: takes twists from the outer to the inner frame. -> (6, 6)."""
    R, p = C
    return ca.vertcat(ca.horzcat(R.T, ca.DM.zeros(3, 3)), ca.horzcat(-(R.T @ skew(p)), R.T))


def ad(V):
    """Matrix of the Lie bracket of twists: ad(V) U = [V, U]. (6,) -> (6, 6)."""
    w, v = skew(V[:3]), skew(V[3:])
    return ca.vertcat(ca.horzcat(w, ca.DM.zeros(3, 3)), ca.horzcat(v, w))


def force_cross(W):
    """Matrix of the cross product of motions with a wrench: force_cross(W) V = -ad(V)^T W. (6,) -> (6, 6)."""
    n, f = skew(W[:3]), skew(W[3:])
    return -ca.vertcat(ca.horzcat(n, f), ca.horzcat(f, ca.DM(3, 3)))


def exp_se3(xi):
    """Pose reached by the unit-time constant body twist `xi` (6,), safe at zero."""
    w, v = xi[:3], xi[3:]
    _, second, third = sinc_terms(w)
    W = skew(w)
    left = ca.DM.eye(3) + second * W + third * (W @ W)
    return exp_so3(w), left @ v


def left_jacobian_inverse(w):
    """Inverse of the matrix I + (1-cos a)/a^2 W + (a - sin a)/a^3 W^2, safe at zero. (3,) -> (3, 3)."""
    first, second, _ = sinc_terms(w)
    square = ca.dot(w, w)
    small = square < 1e-2
    # (1 - first / (2 second)) / a^2, by its series where that cancels
    series = 1 / 12 + square * (1 / 720 + square * (1 / 30240 + square * (1 / 1209600 + square / 47900160)))
    factor = ca.if_else(small, series, (1 - first / (2 * second)) / ca.if_else(small, 1, square))
    W = skew(w)
    return ca.DM.eye(3) - 0.5 * W + factor * (W @ W)


def exponential_rate(xi, V):
    """Time derivative of the twist xi, whose angle is below 2 pi, where the pose exp_se3(xi) moves with body twist V:
    the inverse right Jacobian of SE(3) times V, smooth at zero. (6,), (6,) -> (6,).

    Source: that of so3.exponential_rate in dual vectors, angular part plus epsilon times linear part, epsilon^2 = 0.
    """
    x, y, w, v = xi[:3], xi[3:], V[:3], V[3:]
    c, slope = _cotangent_terms(ca.dot(x, x))
    turned, moved = ca.cross(x, w), ca.cross(x, v) + ca.cross(y, w)
    twice = ca.cross(x, turned)
    linear = v + moved / 2 + c * (ca.cross(y, turned) + ca.cross(x, moved)) + 2 * slope * ca.dot(x, y) * twice
    return ca.vertcat(w + turned / 2 + c * twice, linear)
