"""Forward dynamics: joint accelerations, and their time derivatives, that joint torques cause."""

from ..friction import friction_torques, with_friction
from ..ports import IN_FLUID, configuration_port, derivative_name, motion_ports, torque_ports, wrench_ports
from ..registry import quantity


def _inputs(robot, order, options):
    ports = [configuration_port(robot), motion_ports(robot, 0)[1], *torque_ports(robot, order)]
    return ports + (wrench_ports(robot, order) if options["external_wrenches"] else [])


def _outputs(robot, order, options):
    return motion_ports(robot, order + 1)[2:]


def _call(function, model, order, ports, options):
    T = [ports[derivative_name("tau", k)] for k in range(order + 1)]
    W = [ports[derivative_name("w_ext", k)] for k in range(order + 1)] if options["external_wrenches"] else None

    def run(T):
        return function(model, order, ports["q"], ports["v"], T, W), T

    if options["friction"] and order:
        accelerations, _ = with_friction(model, ports["v"], T, run)
    else:
        less = friction_torques(model.robot, [ports["v"]], model.viscous) if options["friction"] else []
        accelerations, _ = run([x - y for x, y in zip(T, less, strict=True)] if less else T)
    return {derivative_name("v", k + 1): x for k, x in enumerate(accelerations)}


quantity(
    name="forward_dynamics",
    summary="joint accelerations and their time derivatives from torques",
    inputs=_inputs,
    outputs=_outputs,
    call=_call,
    solves=lambda robot, options: (),
    options=("external_wrenches", "friction", "representation", "parameters", "gravity"),
    base_ports=True,
    default=("taylor",),
    equation="dv = M(q)^-1 (tau - C(q, v) v - g(q) - friction(v) + sum_b J_b(q)^T w_b), J_b the body Jacobian of body "
    "b and w_b its wrench, column b of w_ext",
    notes=(IN_FLUID,),
)

from . import articulated_body, articulated_spatial, by_ad, closed_form, taylor  # noqa: E402  registers the methods
