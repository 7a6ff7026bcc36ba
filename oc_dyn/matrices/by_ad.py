"""Matrices of the equations of motion by automatic differentiation."""

from itertools import pairwise

import casadi as ca

from ..inverse_dynamics.taylor import taylor
from ..kinematics.recursive_body import body_poses
from ..lie.se3 import ad as bracket
from ..model.inertia import casadi_value
from ..model.robot import tangent_map
from ..registry import method
from ..subexpressions import merged
from ..time_methods import JTIMES, by_jtimes, in_time
from ..working_axes.assembly import NOT_COMMUTING, velocity_brackets
from .closed_form import coefficients
from .composite import composite
from .composite_coriolis import composite_coriolis
from .whole_mass import whole_mass


@method(
    "mass_matrix", "ad", kind="ad", source="AD: Jacobian of inverse dynamics by dv" + JTIMES, regroup=True, fluid=True
)
def mass_matrix(model, order, q, V):
    """Derivatives 0..order of the mass matrix; see od.describe("mass_matrix")."""
    nv = model.robot.nv
    a = ca.SX.sym("a", nv)
    M = ca.jacobian(taylor(model, 0, q, [ca.SX.zeros(nv), a])[0], a)
    return along(model, order, q, V, M)


@in_time("mass_matrix", "ad_composite", source="AD: composite rigid bodies", regroup=True)
def mass_matrix_from_composite(way, model, order, q, V):
    """Derivatives 0..order of the mass matrix; see od.describe("mass_matrix")."""
    return along(model, order, q, V, composite(model, q), way)


@method(
    "coriolis_matrix",
    "ad",
    kind="ad",
    source="AD: Christoffel symbols of the mass matrix, with the structure constants of the joints (Koszul's formula)"
    + JTIMES,
    regroup=True,
    coriolis=("christoffel",),
    fluid=True,
)
def coriolis_matrix(model, order, q, V):
    """Derivatives 0..order of the Coriolis matrix; see od.describe("coriolis_matrix"). Admissible.

    Equation:  C = 1/2 (M' + D - D^T + M B - (M B)^T + N),  D = d(M v)/dq on the tangent space,
               B e_k = [v, e_k],  N_jk = (M v) . [e_j, e_k]
    B and N are zero where velocities are rates of coordinates: then these are the Christoffel symbols.
    """
    return along(model, order, q, V, _christoffel(model, q, V[0]))


@in_time(
    "coriolis_matrix",
    "ad_composite",
    source="AD: composite bodies",
    regroup=True,
    coriolis=("christoffel",),
    fluid=True,
)
def coriolis_matrix_from_composite(way, model, order, q, V):
    """Derivatives 0..order of the Coriolis matrix; see od.describe("coriolis_matrix"). Admissible."""
    return along(model, order, q, V, composite_coriolis(model, q, V[0]), way)


@in_time("gravity", source="AD: gradient of the potential on the tangent space", regroup=True)
def gravity(way, model, order, q, V):
    """Derivatives 0..order of the gravity torques; see od.describe("gravity")."""
    return along(model, order, q, V, _gradient(model, q, _potential(model, q)), way)


@in_time("bias", source="inverse dynamics without acceleration", regroup=True, fluid=True)
def bias(way, model, order, q, V):
    """Derivatives 0..order of the bias torques; see od.describe("bias")."""
    return along(model, order, q, V, taylor(model, 0, q, [V[0], ca.SX.zeros(model.robot.nv)])[0], way)


@in_time("eom_coefficients", source="AD: composite bodies", regroup=True, coriolis=("christoffel",))
def eom_coefficients(way, model, order, q, V):
    """[P_1, ..., P_{order + 2}]; see od.describe("eom_coefficients").

    With the Coriolis matrix of Christoffel symbols.
    """
    M = along(model, order, q, V, composite(model, q), way)
    C = along(model, order, q, V, composite_coriolis(model, q, V[0]), way)
    return coefficients(order, M.__getitem__, C.__getitem__)


def along(model, order, q, V, x, way=by_jtimes):
    """Time derivatives 0..order of x, which depends on q and perhaps on v; V has what they need. way: of in_time."""
    flow = [(q, model.configuration_rate(q, V[0])), *pairwise(V)] if V else []
    derivatives = way(merged(ca.vec(ca.densify(x))), order, flow)
    return [d.reshape(x.shape) for d in derivatives]


def _christoffel(model, q, v):
    M = whole_mass(model, q)
    momentum = M @ v
    D = tangent_jacobian(model, q, momentum)
    rate = ca.jtimes(ca.vec(ca.densify(M)), q, model.configuration_rate(q, v)).reshape(M.shape)
    twice = rate + D - D.T
    if any(model.kind[i] in NOT_COMMUTING for i in model.bodies):
        MB = M @ velocity_brackets(model, v)
        twice = twice + MB - MB.T + _momentum_brackets(model, momentum)
    return 0.5 * twice


def tangent_jacobian(model, q, x):
    """Jacobian of x by a step on the tangent space of q."""
    return ca.jacobian(x, q) @ tangent_map(model.robot, q)


def _gradient(model, q, potential):
    return tangent_map(model.robot, q).T @ ca.gradient(potential, q)


def _potential(model, q):
    poses = body_poses(model, q)
    energy = ca.SX(0)
    for i in model.bodies:
        R, p = poses[i]
        energy = energy - ca.dot(model.gravity, R @ casadi_value(model.inertia[i].moment) + model.inertia[i].mass * p)
    return energy


def _momentum_brackets(model, momentum):
    """N (nv, nv) with entries momentum . [e_j, e_k]."""
    blocks = {}
    for i in model.bodies:
        S, (_, _, first, size) = model.S[i], model.coordinates[i]
        block = ca.DM(size, size)
        if model.kind[i] in NOT_COMMUTING:
            part = momentum[first : first + size]
            block = ca.vertcat(*(part.T @ S.T @ bracket(S[:, j]) @ S for j in range(size)))
        blocks[first] = block
    return ca.diagcat(*(blocks[first] for first in sorted(blocks)))
