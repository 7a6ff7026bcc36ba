"""Matrices of the equations of motion tau = M(q) dv + C(q, v) v + g(q), and in a fluid its drag besides.

Many matrices C have the same C v; registry.CORIOLIS names those on offer, and every method says which it gives.
"""

from math import comb

from ..friction import friction_torques
from ..lie.jets import total
from ..ports import (
    IN_FLUID,
    WRENCH_ROWS,
    configuration_port,
    derivative_name,
    derivative_unit,
    motion_ports,
    nv,
    reference_ports,
    torque_ports,
    wrench_ports,
)
from ..registry import Port, quantity


def _at_configuration(robot, order, options):
    """q, and for the derivatives v .. d{order - 1}v."""
    return [configuration_port(robot)] + (motion_ports(robot, order - 1)[1:] if order else [])


def _at_state(robot, order, options):
    """q, v .. d{order}v."""
    return motion_ports(robot, order)


def _outputs(name, columns, unit, meaning):
    def outputs(robot, order, options):
        return [
            Port(
                derivative_name(name, k),
                (nv(robot), columns(robot)),
                derivative_unit(unit, k),
                f"time derivative {k} of {name}" if k else meaning,
            )
            for k in range(order + 1)
        ]

    return outputs


def _call(name):
    def call(function, model, order, ports, options):
        found = function(model, order, ports["q"], _velocities(ports))
        return {derivative_name(name, k): x for k, x in enumerate(found)}

    return call


def _vector(robot):
    return 1


def _coriolis_torques(order, ports, outputs):
    """Derivatives of C v: what Coriolis matrices must agree on."""
    C = [outputs[derivative_name("C", k)] for k in range(order + 1)]
    v = [ports[derivative_name("v", k)] for k in range(order + 1)]
    return {
        f"derivative {n} of C v": total(comb(n, k) * (C[n - k] @ v[k]) for k in range(n + 1)) for n in range(order + 1)
    }


def _coefficient_ports(robot, order, options):
    size, unit = (nv(robot), nv(robot)), "kg m2, kg m, kg"
    powers = range(1, order + 3)
    return [Port(f"P{k}", size, derivative_unit(unit, order + 2 - k), _meaning(k, order)) for k in powers]


def _meaning(k, order):
    first = f"time derivative {order} of C" if order else "C"
    note = {1: f": {first}, {_WHICH}", order + 2: ": the mass matrix"}.get(k, "")
    return f"coefficient of {derivative_name('v', k - 1)}{note}"


def _call_coefficients(function, model, order, ports, options):
    return {f"P{k}": x for k, x in enumerate(function(model, order, ports["q"], _velocities(ports)), 1)}


def _velocities(ports):
    """[v, dv, ...] of those that are there."""
    return [ports[derivative_name("v", k)] for k in range(len(ports) - 1)]


def _torque_derivative(order, ports, outputs):
    """M, and the part of the torques' derivative without the highest one of v."""
    v = [ports[derivative_name("v", k)] for k in range(order + 1)]
    return {
        "last": outputs[f"P{order + 2}"],
        "sum of the rest": total(outputs[f"P{k}"] @ v[k - 1] for k in range(1, order + 2)),
    }


def _reference_inputs(robot, order, options):
    ports = [*motion_ports(robot, order), *reference_ports(robot, order + 1)]
    return ports + (wrench_ports(robot, order) if options["external_wrenches"] else [])


def _call_reference(function, model, order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(order + 1)]
    Vr = [ports[derivative_name("vr", k)] for k in range(order + 2)]
    W = [ports[derivative_name("w_ext", k)] for k in range(order + 1)] if options["external_wrenches"] else None
    tau = function(model, order, ports["q"], V, Vr, W, options["coriolis"] or "christoffel")
    if options["friction"]:
        tau = [x + y for x, y in zip(tau, friction_torques(model.robot, V, model.viscous), strict=True)]
    return {derivative_name("tau", k): x for k, x in enumerate(tau)}


_M = _outputs("M", nv, "kg m2, kg m, kg", "mass matrix")
_WHICH = "of Christoffel symbols, unless method or option coriolis say otherwise"
_C = _outputs("C", nv, "kg m2/s, kg m/s, kg/s", f"Coriolis matrix {_WHICH}")
_G = _outputs("g", _vector, "Nm, N", f"torques against gravity; {WRENCH_ROWS}")
_ARMATURE = "The inertia of the drives (armature) is in M."
_COEFFICIENTS = (
    'which of the matrices C with the same C v: "christoffel" (default) or "garofalo", both admissible: '
    'dM/dt = C + C^T; or "kumar_mueller", not admissible. A method has the one that is named with it below'
)


def _all_outputs(robot, order, options):
    return [p for outputs in (_M, _C, _G) for p in outputs(robot, order, options)]


def _call_all(function, model, order, ports, options):
    found = zip("MCg", function(model, order, ports["q"], _velocities(ports)), strict=True)
    return {derivative_name(name, k): x for name, values in found for k, x in enumerate(values)}


def _all_that_is_unique(order, ports, outputs):
    names = [derivative_name(x, k) for x in "Mg" for k in range(order + 1)]
    return {n: outputs[n] for n in names} | _coriolis_torques(order, ports, outputs)


quantity(
    name="mass_matrix",
    summary="joint-space mass matrix, full and symmetric, and its time derivatives along a motion",
    inputs=_at_configuration,
    outputs=_M,
    call=_call("M"),
    options=("parameters", "representation"),
    base_ports=True,
    default=("composite", "ad_taylor"),
    equation="v^T M(q) v / 2 is the kinetic energy; M = sum_b J_b^T M_b J_b + diag(armature), J_b the body Jacobian "
    "and M_b the 6 x 6 inertia of body b",
    notes=(_ARMATURE, IN_FLUID),
)
quantity(
    name="coriolis_matrix",
    summary="a matrix C(q, v) with C v the Coriolis and centrifugal torques, and its time derivatives; of Christoffel "
    "symbols unless method or option coriolis say otherwise, and admissible, dM/dt = C + C^T, but for kumar_mueller",
    inputs=_at_state,
    outputs=_C,
    call=_call("C"),
    options=("coriolis", "representation"),
    base_ports=True,
    compare=_coriolis_torques,
    default=("composite", "ad_taylor"),
    equation="C(q, v) v = h(q, v) - g(q) - drag(q, v), the bias torques without gravity and without the drag of a "
    "fluid, where there is one",
    notes=("Many C have the same C v: methods agree on that.", IN_FLUID),
    meanings={"coriolis": _COEFFICIENTS},
)
quantity(
    name="gravity",
    summary="joint torques that hold the robot against gravity, and their time derivatives along a motion",
    inputs=_at_configuration,
    outputs=_G,
    call=_call("g"),
    options=("parameters", "representation", "gravity"),
    base_ports=True,
    default=("ad_taylor",),
    same_in_fluid=True,
    equation="g(q) is the gradient of the potential energy by q, on the tangent space",
)
quantity(
    name="bias",
    summary="joint torques C v + g of a motion without acceleration, gravity and the drag of a fluid included, and "
    "their time derivatives",
    inputs=_at_state,
    outputs=_outputs("h", _vector, "Nm, N", f"bias torques C v + g, and drag; {WRENCH_ROWS}"),
    call=_call("h"),
    options=("parameters", "representation", "gravity"),
    base_ports=True,
    default=("ad_taylor",),
    equation="h(q, v) = C(q, v) v + g(q) + drag(q, v), inverse dynamics with dv = 0; drag is that of a fluid, where "
    "there is one",
    notes=(IN_FLUID,),
)
quantity(
    name="eom_coefficients",
    summary="matrices P_k of the derivative of the torques: tau^(n) - g^(n) = P_1 v + P_2 dv + ... + P_{n+2} d{n+1}v",
    inputs=_at_state,
    outputs=_coefficient_ports,
    call=_call_coefficients,
    options=("coriolis",),
    compare=_torque_derivative,
    default=("ad_taylor",),
    equation="tau^(n) - g^(n) = P_1 v + P_2 dv + ... + P_{n+2} d{n+1}v, n the order; at order 0 P_1 = C, P_2 = M",
    notes=("Besides P_{n+2}, the mass matrix, the P_k are not unique: methods agree on the sum of the others.",),
    meanings={"coriolis": _COEFFICIENTS},
)

quantity(
    name="dynamic_matrices",
    summary="mass matrix, admissible Coriolis matrix and gravity torques in one Function, and their time derivatives",
    inputs=_at_state,
    outputs=_all_outputs,
    call=_call_all,
    options=("coriolis", "representation", "gravity"),
    base_ports=True,
    compare=_all_that_is_unique,
    default=("ad_taylor",),
    equation="tau = M(q) dv + C(q, v) v + g(q) + drag(q, v), dM/dt = C + C^T; drag is that of a fluid, where there is "
    "one, and does not come out",
    notes=(_ARMATURE, IN_FLUID),
)

quantity(
    name="slotine_li_torque",
    summary="joint torques M dvr + C vr + g of a reference velocity vr, by which passivity-based laws track, without "
    "matrices, and their time derivatives; C is admissible, dM/dt = C + C^T: that of Christoffel symbols, or that of "
    "the option coriolis",
    inputs=_reference_inputs,
    outputs=lambda robot, order, options: torque_ports(robot, order),
    call=_call_reference,
    options=("external_wrenches", "friction", "parameters", "coriolis", "gravity"),
    default=("newton_euler", "recursive_body"),
    equation="tau = M(q) dvr + C(q, v) vr + g(q) + friction(v) - sum_b J_b(q)^T w_b, J_b the body Jacobian of body b "
    "and w_b its wrench, column b of w_ext",
    notes=(
        _ARMATURE,
        "With vr = v and dvr = dv it is inverse_dynamics. Friction is that of the velocities v, as the joints take it.",
        "With tau - K s on the joints, s = v - vr, s^T M s / 2 changes at the rate -s^T K s, as dM/dt - 2 C is skew.",
    ),
)

from . import (  # noqa: E402  registers the methods
    by_ad,
    closed_form,
    closed_form_spatial,
    composite,
    composite_coriolis,
    dynamic_matrices,
    jacobian_sum,
    other_velocities,
    reference_newton_euler,
    slotine_li,
    spatial_admissible,
)
