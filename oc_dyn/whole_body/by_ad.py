"""Energies, momentum and centre of mass by automatic differentiation along the motion."""

import casadi as ca

from ..kinematics.recursive_body import body_poses, body_twists
from ..lie import se3
from ..lie.jets import total
from ..matrices.by_ad import along, tangent_jacobian
from ..matrices.whole_mass import whole_mass
from ..model.inertia import casadi_value
from ..registry import method
from ..time_methods import JTIMES, in_time


@in_time(
    "kinetic_energy",
    source="AD: v' M v / 2 with composite bodies",
    regroup=True,
    fluid=True,
)
def kinetic_energy(way, model, order, q, V):
    """Derivatives 0..order of the kinetic energy; see od.describe("kinetic_energy")."""
    return along(model, order, q, V, 0.5 * ca.dot(V[0], whole_mass(model, q) @ V[0]), way)


@in_time("momentum", source="AD: sum of the bodies' momenta")
def momentum(way, model, order, q, V):
    """Derivatives 0..order of the momentum (6,) about the root's origin; see od.describe("momentum")."""
    poses, twists = body_poses(model, q), body_twists(model, 0, q, V[:1])
    here = total(se3.Ad_inv(poses[i]).T @ (model.M[i] @ twists[i][0]) for i in model.bodies)
    return along(model, order, q, V, here, way)


@in_time("potential_energy", source="AD: potential from poses", regroup=True)
def potential_energy(way, model, order, q, V):
    """Derivatives 0..order of the potential energy; see od.describe("potential_energy")."""
    return along(model, order, q, V, -ca.dot(model.gravity, _first_moment(model, q)), way)


@in_time("com", source="AD: centre of mass from poses")
def com(way, model, order, q, V):
    """Derivatives 0..order of the centre of mass (3,); see od.describe("com")."""
    return along(model, order, q, V, _com(model, q), way)


@in_time("com_jacobian", source="AD: centre of mass by a step on the tangent space")
def com_jacobian(way, model, order, q, V):
    """Derivatives 0..order of the Jacobian of the centre of mass (3, nv); see od.describe("com_jacobian")."""
    return along(model, order, q, V, tangent_jacobian(model, q, _com(model, q)), way)


@in_time(
    "centroidal_momentum_matrix",
    source="AD: Jacobian by v of the sum of the bodies' momenta about the centre of mass",
)
def centroidal_momentum_matrix(way, model, order, q, V):
    """Derivatives 0..order of A (6, nv); see od.describe("centroidal_momentum_matrix")."""
    v = ca.SX.sym("v", model.robot.nv)
    return along(model, order, q, V, ca.jacobian(_centroidal_momentum(model, q, v), v), way)


@method(
    "centroidal_momentum_matrix_partials",
    "ad",
    kind="ad",
    source="AD: the sum of the bodies' momenta about the centre of mass" + JTIMES + ", then Jacobians",
)
def centroidal_partials(model, order, q, V):
    """Partials of derivatives 0..order of h = A v, [(by q, v), (by q, v, dv), ...]; see
    od.describe("centroidal_momentum_matrix_partials").
    """
    momenta = along(model, order, q, V, _centroidal_momentum(model, q, V[0]))
    return [
        [ca.sparsify(tangent_jacobian(model, q, h)), *(ca.jacobian(h, x) for x in V[: k + 1])]
        for k, h in enumerate(momenta)
    ]


def _centroidal_momentum(model, q, v):
    poses, twists = body_poses(model, q), body_twists(model, 0, q, [v])
    com, h = _com(model, q), ca.SX(6, 1)
    for i in model.bodies:
        R, p = poses[i]
        momentum = model.M[i] @ twists[i][0]
        force = R @ momentum[3:]
        h = h + ca.vertcat(R @ momentum[:3] + ca.cross(p - com, force), force)
    return h


def _com(model, q):
    return _first_moment(model, q) / total(model.inertia[i].mass for i in model.bodies)


def _first_moment(model, q):
    poses = body_poses(model, q)
    moving = total(
        poses[i][0] @ casadi_value(model.inertia[i].moment) + model.inertia[i].mass * poses[i][1] for i in model.bodies
    )
    return moving + casadi_value(model.inertia[0].moment)  # what regrouping moved to the ground
