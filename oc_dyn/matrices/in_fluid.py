"""M, the Coriolis matrix of Christoffel symbols, and g, where a fluid adds to inertias: no sums over points then."""

import casadi as ca

from ..lie.se3 import ad
from ..lie.so3 import skew
from .jacobian_sum import body_jacobians, coriolis_from, gravity_from, mass_matrix_from


def matrices_in_fluid(model, q, v):
    """(M, C, g) at q (nq,), v (nv,), of bodies with any symmetric 6 x 6 inertias. Cost O(n nv^2)."""
    J, twists, G = body_jacobians(model, 1, q, [v])
    C = coriolis_from(model, 0, J, twists, levi_civita)[0]
    return mass_matrix_from(model, J, 0), C, gravity_from(model, J, G, 0)


def levi_civita(M, V):
    """T(V) (6, 6), skew, with T(V) V = -ad(V)^T M V: what C = sum_i J_i^T (M_i J_i' + T_i J_i) needs for Christoffel
    symbols.

    Equation:  2 T(V) x = M ad(V) x - ad(V)^T M x - ad(x)^T M V      Koszul's formula for left-invariant fields
    """
    momentum = M @ V
    n, f = skew(momentum[:3]), skew(momentum[3:])
    return 0.5 * (M @ ad(V) - ad(V).T @ M - ca.vertcat(ca.horzcat(n, f), ca.horzcat(f, ca.DM(3, 3))))
