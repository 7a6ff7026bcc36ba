"""Jacobian of the centre of mass, and the centroidal momentum matrix, from the Jacobians of the bodies."""

from math import comb

import casadi as ca

from ..kinematics.recursive_body import body_poses
from ..lie.jets import total
from ..lie.leibniz import product_derivative
from ..lie.so3 import skew
from ..matrices.jacobian_sum import body_jacobians
from ..model.inertia import casadi_value
from ..registry import method


@method("com_jacobian", "jacobian_sum", kind="closed_form", source="Garofalo et al. 2013, eq. 7")
def com_jacobian(model, order, q, V):
    """Derivatives 0..order of the Jacobian of the centre of mass (3, nv); see od.describe("com_jacobian").

    Equation:  mass J = sum_i P_i^T M_i J_i, P_i the columns for linear accelerations of the adjoint to body i   (7)
    Only the rotation of P_i^T enters: rows of the linear momentum of the body, turned to root axes.
    """
    poses = body_poses(model, q)
    J, twists, _ = body_jacobians(model, order, q, V)
    mass = total(model.inertia[i].mass for i in model.bodies)
    out = [ca.DM(3, model.robot.nv)] * (order + 1)
    for i in model.bodies:
        linear = [model.M[i][3:, :] @ x for x in J[i]]
        turned = _turned(poses[i][0], [skew(x[:3]) for x in twists[i]], linear)
        out = [x + y for x, y in zip(out, turned, strict=True)]
    return [x / mass for x in out]  # (7)


@method(
    "centroidal_momentum_matrix",
    "jacobian_sum",
    kind="closed_form",
    source="Orin, Goswami and Lee 2013: momenta of the links about the centre of mass; time derivatives by Leibniz' "
    "rule",
)
def centroidal_momentum_matrix(model, order, q, V):
    """Derivatives 0..order of A (6, nv); see od.describe("centroidal_momentum_matrix").

    Equation:  A = sum_i [R_i (M_i J_i)_angular + (p_i - c) x R_i (M_i J_i)_linear; R_i (M_i J_i)_linear]
    """
    poses = body_poses(model, q)
    J, twists, _ = body_jacobians(model, order, q, V)
    mass = total(model.inertia[i].mass for i in model.bodies)
    arms, c = {}, [ca.DM(3, 1)] * (order + 1)
    for i in model.bodies:
        R, p = poses[i]
        W, path = [skew(x[:3]) for x in twists[i]], [x[3:] for x in twists[i]]
        arms[i] = [p, *(_turned(R, W, path) if order else [])]
        first = casadi_value(model.inertia[i].moment)
        turned = _turned(R, W, [first] + [ca.DM(3, 1)] * order)
        m = model.inertia[i].mass
        c = [x + (m * y + z) / mass for x, y, z in zip(c, arms[i], turned, strict=True)]
    out = [ca.DM(6, model.robot.nv)] * (order + 1)
    for i in model.bodies:
        W, momenta = [skew(x[:3]) for x in twists[i]], [model.M[i] @ x for x in J[i]]
        own = _turned(poses[i][0], W, [x[:3, :] for x in momenta])
        linear = _turned(poses[i][0], W, [x[3:, :] for x in momenta])
        lever = [skew(x - y) for x, y in zip(arms[i], c, strict=True)]
        angular = [x + product_derivative(lever, linear, k) for k, x in enumerate(own)]
        out = [x + ca.vertcat(y, z) for x, y, z in zip(out, angular, linear, strict=True)]
    return out


def _turned(R, W, X):
    """Derivatives of R X for R' = R W[0], from those of W and X."""
    out, row = [R @ X[0]], X
    while len(row) > 1:
        row = [row[k + 1] + total(comb(k, l) * (W[l] @ row[k - l]) for l in range(k + 1)) for k in range(len(row) - 1)]
        out.append(R @ row[0])
    return out
