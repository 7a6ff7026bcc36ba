"""Quantities of the robot as a whole: energies, momentum, centre of mass; all moving bodies, nothing of the ground."""

from ..errors import ModelError
from ..ports import configuration_port, derivative_name, derivative_unit, motion_ports, nv, partial_ports
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


def _centroidal_port(k):
    """Port of the momentum about the centre of mass, or of its k-th derivative."""
    unit = derivative_unit("kg m2/s, kg m/s", k)
    return Port(derivative_name("h", k), (6, 1), unit, "momentum about the centre of mass")


def _motion_with_mass(robot, order, options):
    _with_mass(robot, order, options)
    return motion_ports(robot, order)


def _centroidal_partial_ports(robot, order, options):
    by = [(p, nv(robot)) for p in motion_ports(robot, order)]
    return [p for k in range(order + 1) for p in partial_ports([(_centroidal_port(k), 6)], by[: k + 2])]


def _call_centroidal_partials(function, model, order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(order + 1)]
    out = {}
    for k, row in enumerate(function(model, order, ports["q"], V)):
        names = ["q", *(derivative_name("v", l) for l in range(k + 1))]
        out |= {f"d{derivative_name('h', k)}_d{x}": y for x, y in zip(names, row, strict=True)}
    return out


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
    default=("ad_taylor",),
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

_CENTROIDAL = "h = [angular; linear] momentum of all moving bodies about their centre of mass, in root axes"
quantity(
    name="centroidal_momentum_matrix",
    summary="matrix A with the momentum about the centre of mass h = A v, in root axes, and its time derivatives; "
    "rotors (armature) not included",
    inputs=_with_mass,
    outputs=_outputs(
        "A",
        lambda robot: (6, nv(robot)),
        "kg m2, kg m, kg",
        "matrix with [angular; linear] momentum about the centre of mass, in root axes, h = A v",
    ),
    call=_call("A"),
    default=("composite",),
    equation="h = A(q) v, dh/dt = A dv + dA v, where h = sum_b Ad(C_b)^-T M_b V_b, C_b the pose of body b in axes of "
    "the root at the centre of mass c, V_b its twist and M_b its 6 x 6 inertia",
    errors=_MASSLESS,
)
quantity(
    name="centroidal_momentum_matrix_partials",
    summary="partial derivatives of the momentum about the centre of mass h = A v, and of its time derivatives, by "
    "configuration and motion",
    inputs=_motion_with_mass,
    outputs=_centroidal_partial_ports,
    call=_call_centroidal_partials,
    default=("composite",),
    sparse=True,
    equation="dh_dq = d h(q (+) e, v) / de at e = 0, dh_dv = A; likewise of dh = A dv + dA v, ... by what "
    "they depend on",
    notes=(
        _CENTROIDAL + ".",
        "q (+) e is robot.integrate(q, e): a step e on the tangent space has nv entries, body axes in free joints.",
    ),
    errors=_MASSLESS,
)

from . import by_ad, centroidal, jacobian_sum, recursive_body, recursive_spatial  # noqa: E402  registers the methods
