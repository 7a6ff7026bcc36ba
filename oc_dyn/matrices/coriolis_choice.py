"""What the Coriolis matrices on offer differ in.

With J_i the Jacobian of the body-fixed twist V_i of body i, the admissible ones are
C = sum_i J_i^T (M_i J_i' + T_i J_i) where T_i = T(V_i) is linear in V_i, skew, and T(V) V = -ad(V)^T M V. They differ
in T, and so in C x but not in C v.
"""

import casadi as ca

from ..lie.se3 import ad
from ..lie.so3 import skew
from ..working_axes.sums import constants
from .composite_coriolis import composite_coriolis
from .spatial_admissible import spatial_admissible


def turning(model, i, coriolis):
    """Function V (6,) -> T(V) (6, 6) of body i.

    christoffel: a body's points add up m J^T J' each (Echeandia and Wensing 2021); with mass m, first moment h, second
    moments P and angular velocity w it is [[skew(P w), skew(h) skew(w)], [-skew(w) skew(h), m skew(w)]].
    garofalo: M ad(V) - ad(V)^T M, Garofalo et al. 2013, eq. 6b.
    """
    M = model.M[i]
    if coriolis == "garofalo":
        return lambda V: M @ ad(V) - ad(V).T @ M
    m, h, _, P = constants(model.inertia[i])

    def points(V):
        w, H = skew(V[:3]), skew(h)
        return ca.vertcat(ca.horzcat(skew(P @ V[:3]), H @ w), ca.horzcat(-(w @ H), m * w))

    return points


def coriolis_matrix(model, q, v, coriolis):
    """The Coriolis matrix (nv, nv) of that name; see registry.CORIOLIS."""
    if coriolis == "garofalo":
        return spatial_admissible(model, 0, q, [v])[0]
    return composite_coriolis(model, q, v)
