"""The whole robot from spatial twists: momenta of bodies seen from the root frame simply add."""

from math import comb

import casadi as ca

from ..inverse_dynamics.recursive_spatial import inertias
from ..kinematics.recursive_body import body_poses, jacobian, local_poses, padded
from ..kinematics.recursive_spatial import forward_kinematics
from ..lie.jets import total
from ..model.inertia import casadi_value
from ..registry import method

_SOURCE = "Ali et al. 2026, Algorithm 1 and eq. 61, inertias seen from the root frame"


@method("momentum", "recursive_spatial", kind="analytic", source=_SOURCE, regroup=True)
def momentum(model, order, q, V):
    """Derivatives 0..order of the momentum (6,) about the root's origin; see od.describe("momentum").

    Equation:  h^(k) = sum_i sum_l C(k,l) M_i^(k-l) V_i^(l)
    What regrouping moves to the parent has the same momentum there, whatever the joint does.
    """
    return _momentum(model, order, q, V, body_poses)


def _momentum(model, order, q, V, poses):
    C, _, twists = forward_kinematics(model, order, q, V, poses)
    out = [ca.DM(6, 1)] * (order + 1)
    for i in model.bodies:
        M = inertias(model, i, C, twists, order)
        own = [total(comb(k, l) * (M[k - l] @ twists[i][l]) for l in range(k + 1)) for k in range(order + 1)]
        out = [x + y for x, y in zip(out, own, strict=True)]
    return out


@method(
    "com",
    "recursive_spatial",
    kind="analytic",
    source=_SOURCE + "; momentum = mass times its velocity",
    regroup=True,
)
def com(model, order, q, V):
    """Derivatives 0..order of the centre of mass (3,); see od.describe("com")."""
    mass = total(x.mass for x in model.inertia)
    return [x / mass for x in _first_moments(model, order, q, V)]


@method("potential_energy", "recursive_spatial", kind="analytic", source=_SOURCE, regroup=True)
def potential_energy(model, order, q, V):
    """Derivatives 0..order of the potential energy; see od.describe("potential_energy")."""
    return [-ca.dot(model.gravity, x) for x in _first_moments(model, order, q, V)]


@method("com_jacobian", "recursive_spatial", kind="analytic", source=_SOURCE + ", composite bodies", regroup=True)
def com_jacobian(model, order, q, V):
    """Derivatives 0..order of the Jacobian of the centre of mass (3, nv); see od.describe("com_jacobian").

    Equation:  column j of mass J is the linear part of MA_j S_j, MA_j the inertia of all bodies beyond joint j
    """
    C, S, twists = forward_kinematics(model, order, q, padded(model, V))
    mass = total(x.mass for x in model.inertia)
    M, columns = {}, [{} for _ in range(order + 1)]
    for i in model.reversed_bodies:
        M[i] = inertias(model, i, C, twists, order)
        for c in model.children[i]:
            M[i] = [x + y for x, y in zip(M[i], M[c], strict=True)]
        for k in range(order + 1):
            columns[k][i] = total(comb(k, l) * (M[i][k - l][3:, :] @ S[i][l]) for l in range(k + 1)) / mass
    return [jacobian(model, {i: ca.vertcat(x, ca.DM(3, x.shape[1])) for i, x in c.items()})[:3, :] for c in columns]


def _first_moments(model, order, q, V):
    """Derivatives of mass times centre of mass: the first from poses, the others from the linear momentum. What
    regrouping moved to the ground counts."""
    poses, at, mass = local_poses(model, q), model.joint_q(q), {}
    for i in model.bodies:
        first = model.support(i)[0]
        mass[first] = mass.get(first, 0) + model.inertia[i].mass
    here = total(
        poses[i][0] @ casadi_value(model.inertia[i].moment) + model.inertia[i].mass * poses[i][1] for i in model.bodies
    )
    here = here + total(m * model.placement(i, at[i])[1] for i, m in mass.items())
    here = here + casadi_value(model.inertia[0].moment)
    return [here] + ([x[3:] for x in _momentum(model, order - 1, q, V, local_poses)] if order else [])
