"""Accelerations of links and motors from the full state and the motor torques: what a simulation integrates.

    [ M(q)   S ] [ q''     ]   [ tau + tau_rigid - friction(q') - n(q, q') - c(q, q', theta') ]
    [ S^T    B ] [ theta'' ] = [ tau_m - tau - friction(theta') - S'^T q'                     ]

tau: springs and their dampers; S, c and S' are there in the complete model alone.
"""

import casadi as ca

from ..errors import OrderError
from ..function import function
from ..model.loops import LoopRobot
from ..ports import configuration_port, motion_ports, wrench_ports
from ..registry import method, quantity
from .drives import accelerations, at_drives, generalised
from .motor_side import (
    at_motors,
    deflections,
    elastic_torques,
    joint_torques,
    motor_friction,
    sigma_forces,
    spring_damping,
)
from .ports import admit, column_ports, example
from .potentials import link_load

QUANTITY = "elastic_forward_dynamics"


def _inputs(elastic, order, options):
    ports = [configuration_port(elastic.links), motion_ports(elastic.links, 0)[1], *column_ports(elastic, "theta", 1)]
    ports += column_ports(elastic, "sigma", 0) if elastic.adjusted else []
    ports += column_ports(elastic, "tau_m", 0)
    ports += column_ports(elastic, "tau_sigma", 0) if elastic.stiffness_driven else []
    return ports + (wrench_ports(elastic.links, 0) if options["external_wrenches"] else [])


def _outputs(elastic, order, options):
    ports = [motion_ports(elastic.links, 1)[2], *column_ports(elastic, "theta", 2, first=2)]
    return ports + (column_ports(elastic, "sigma", 2, first=2) if elastic.stiffness_driven else [])


def _call(function, elastic, order, ports, options):
    q, v, theta, dtheta, tau_m = (ports[name] for name in ("q", "v", "theta", "dtheta", "tau_m"))
    sigma = [ports["sigma"]] if elastic.adjusted else []
    link, motor = forces(elastic, q, v, theta, dtheta, sigma, tau_m)
    if options["external_wrenches"]:
        link = link + _pushed(elastic, q, ports["w_ext"])
    dv, d2theta = function(elastic, q, v, dtheta, link, motor)
    out = {"dv": dv, "d2theta": d2theta}
    if elastic.stiffness_driven:
        force = sigma_forces(elastic, 0, deflections(elastic, [q], [theta]), sigma)[0]
        out["d2sigma"] = (ports["tau_sigma"] - force) / ca.DM(elastic.stiffness_inertia)
    return out


quantity(
    name=QUANTITY,
    summary="accelerations of an elastic robot's links and motors from its full state and the motor torques",
    inputs=_inputs,
    outputs=_outputs,
    call=_call,
    options=("external_wrenches",),
    max_order=0,
    default=("taylor", "motors_eliminated"),
    of="elastic robot",
    admit=admit(QUANTITY),
    equation="[M S; S^T B] [dv; theta''] = [phi + tau_rigid - friction(v) - U'(q) - n - c; tau_m - phi - "
    "friction(theta') - S'^T v], phi the springs' and their dampers' torques, n = C v + g; S, c and S' in the "
    "complete model alone; U: energy of parallel springs",
    notes=("sigma: where the stiffness is a coordinate of variable springs; tau_sigma, d2sigma: where it has drives.",),
    example=example,
)


def _pushed(elastic, q, w_ext):
    """(nv,) generalised forces of wrenches on the bodies."""
    if isinstance(elastic.links, LoopRobot):
        raise OrderError(f"elastic robot {elastic.name}: external_wrenches are not for robots with loops")
    still = ca.DM(elastic.nv, 1)
    weightless = function(elastic.links, "inverse_dynamics", external_wrenches=True, gravity=True)
    return -weightless(q, still, still, w_ext, ca.DM.zeros(3))


def forces(elastic, q, v, theta, dtheta, sigma, tau_m):
    """(link torques (drives,), motor torques (theta,)) that springs, dampers, friction of motors and motors exert."""
    position = at_drives(elastic, [q, v])
    on_links, on_motors = (x[0] for x in elastic_torques(elastic, [position[0]], [theta], sigma))
    damping = spring_damping(elastic, position[1], dtheta)
    driving = tau_m - motor_friction(elastic, [at_motors(elastic, position[1], dtheta)])[0]
    link = on_links + joint_torques(elastic, damping, [driving[m] for m in elastic.rigid_motors])
    return link, ca.vertcat(*(driving[m] for m in elastic.elastic_motors)) - on_motors - damping


def loaded_forces(elastic, q, v, theta, dtheta, sigma, tau_m):
    """forces(), and in those on the links friction and parallel springs: all that acts besides gravity and motion."""
    link, motor = forces(elastic, q, v, theta, dtheta, sigma, tau_m)
    return link - link_load(elastic, at_drives(elastic, [q, v]))[0], motor


def _on_links(name):
    """Links by a method of forward dynamics, motors by B: the reduced model."""

    def by(elastic, q, v, dtheta, link, motor):
        dv = accelerations(elastic, method=name)(q, v, link)
        return dv, ca.inv(ca.DM(elastic.motor_inertia)) @ motor

    by.__doc__ = f"Accelerations of the reduced model, those of the links by forward_dynamics/{name}.\n\n"
    by.__doc__ += f'Arguments and results: od.describe("{QUANTITY}").'
    source = f"Spong 1987, on forward_dynamics/{name}"
    cannot = {"coupling": "links and motors have to be solved for together"}
    method(QUANTITY, name, kind="analytic", source=source, cannot=cannot)(by)


for _name in ("taylor", "articulated_body"):
    _on_links(_name)


@method(
    QUANTITY, "motors_eliminated", kind="closed_form", source="Schur complement of the whole mass matrix by the motors'"
)
def motors_eliminated(elastic, q, v, dtheta, link, motor):
    """Accelerations from (M - S B^-1 S^T) q'' = link side - S B^-1 motor side, n x n by its factors.

    Arguments and results: od.describe("elastic_forward_dynamics").
    """
    M, link, motor, S = _matrices(elastic, q, v, dtheta, link, motor)
    B_inverse = ca.inv(ca.DM(elastic.motor_inertia))
    dv = _solve(M - S @ B_inverse @ S.T, link - S @ (B_inverse @ motor))
    return dv, B_inverse @ (motor - S.T @ dv)


@method(
    QUANTITY, "whole_matrix", kind="closed_form", source="De Luca and Book 2008, section 13.1.1: the whole mass matrix"
)
def whole_matrix(elastic, q, v, dtheta, link, motor):
    """Accelerations from the mass matrix of links and motors together; see od.describe("elastic_forward_dynamics")."""
    M, link, motor, S = _matrices(elastic, q, v, dtheta, link, motor)
    whole = ca.vertcat(ca.horzcat(M, S), ca.horzcat(S.T, ca.DM(elastic.motor_inertia)))
    found = _solve(whole, ca.vertcat(link, motor))
    return found[: elastic.nv], found[elastic.nv :]


def _matrices(elastic, q, v, dtheta, link, motor):
    M = function(elastic.links, "mass_matrix")(q)
    bias = function(elastic.links, "inverse_dynamics")(q, v, ca.DM(elastic.nv, 1))
    link = generalised(elastic, q, link - link_load(elastic, at_drives(elastic, [q, v]))[0]) - bias
    if not elastic.coupling:
        return M, link, motor, ca.DM(elastic.nv, len(elastic.elastic_motors))
    still = ca.DM(len(elastic.elastic_motors), 1)
    link = link - elastic.coupling.forces(q, v, dtheta, still)
    link = link - elastic.coupling.rigid_forces(q, v, ca.DM(elastic.nv, 1))
    M = M + elastic.coupling.rigid_mass(q)
    rate = ca.jtimes(elastic.coupling.momentum(q, v), q, v)
    return M, link, motor - rate, elastic.coupling.matrix(q)


def _solve(A, b):
    """Solution of A x = b, A symmetric and positive definite."""
    return ca.ldl_solve(ca.densify(b), *ca.ldl(ca.triu2symm(ca.triu(ca.sparsify(A))), False))
