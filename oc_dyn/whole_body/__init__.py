"""Quantities of the robot as a whole: energies, momentum, centre of mass; all moving bodies, nothing of the ground."""

from ..errors import ModelError
from ..ports import configuration_port, derivative_name, derivative_unit, motion_ports, nv
from ..registry import Port, quantity


def _at_configuration(robot, order, options):
    return [configuration_port(robot)] + (motion_ports(robot, order - 1)[1:] if order else [])


def _at_state(robot, order, options):
    return motion_ports(robot, order)


def _with_mass(robot, order, options):
    if robot.total_mass <= 0.0:
        raise ModelError(robot.name, ["its moving bodies have no mass, so no centre of mass; give its links inertias"])
    return _at_configuration(robot, order, options)


def _outputs(name, shape, unit, meaning):
    def outputs(robot, order, options):
        return [
            Port(
                derivative_name(name, k),
                shape(robot),
                derivative_unit(unit, k),
                f"time derivative {k} of {name}" if k else meaning,
            )
            for k in range(order + 1)
        ]

    return outputs


def _call(name):
    def call(function, model, order, ports, options):
        V = [ports[derivative_name("v", k)] for k in range(len(ports) - 1)]
        return {derivative_name(name, k): x for k, x in enumerate(function(model, order, ports["q"], V))}

    return call


_MASSLESS = ("ModelError: the moving bodies have no mass",)

quantity(
    name="kinetic_energy",
    summary="kinetic energy v' M v / 2, rotors (armature) included, and its time derivatives",
    inputs=_at_state,
    outputs=_outputs("T", lambda robot: (1, 1), "J", "kinetic energy of bodies and rotors"),
    call=_call("T"),
    default=("recursive_body",),
    equation="T = v^T M(q) v / 2",
)
quantity(
    name="potential_energy",
    summary="potential energy under gravity, zero with the centre of mass at the height of the root frame's origin, "
    "and its time derivatives",
    inputs=_at_configuration,
    outputs=_outputs("U", lambda robot: (1, 1), "J", "-mass gravity . com, com seen from the root frame's origin"),
    call=_call("U"),
    options=("gravity",),
    default=("ad",),
    same_in_fluid=True,
    equation="U = -m gamma^T c(q), m the mass of all moving bodies, c their centre, gamma = robot.gravity [m/s2]",
)
quantity(
    name="momentum",
    summary="momentum of all moving bodies about the root frame's origin, in root axes, and its time derivatives; "
    "rotors (armature) not included",
    inputs=_at_state,
    outputs=_outputs("h", lambda robot: (6, 1), "kg m2/s, kg m/s", "[angular; linear] momentum, root origin and axes"),
    call=_call("h"),
    default=("recursive_spatial",),
    equation="h = sum_b Ad(C_b)^-T M_b V_b, C_b the pose, V_b the body twist and M_b the 6 x 6 inertia of body b",
)
quantity(
    name="com",
    summary="centre of mass of all moving bodies in the root frame and its time derivatives",
    inputs=_with_mass,
    outputs=_outputs("c", lambda robot: (3, 1), "m", "centre of mass in the root frame"),
    call=_call("c"),
    default=("recursive_spatial",),
    same_in_fluid=True,
    equation="c = sum_b m_b c_b / sum_b m_b",
    errors=_MASSLESS,
)
quantity(
    name="com_jacobian",
    summary="Jacobian J of the centre of mass, dc = J v, in root axes, and its time derivatives",
    inputs=_with_mass,
    outputs=_outputs("J", lambda robot: (3, nv(robot)), "m, 1", "matrix J with dc/dt = J v, in root axes"),
    call=_call("J"),
    default=("recursive_spatial",),
    same_in_fluid=True,
    equation="dc/dt = J(q) v",
    errors=_MASSLESS,
)

from . import by_ad, jacobian_sum, recursive_body, recursive_spatial  # noqa: E402  registers the methods
