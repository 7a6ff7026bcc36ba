"""Inverse dynamics: joint torques, and their time derivatives, that a motion needs."""

from ..friction import friction_torques
from ..ports import IN_FLUID, derivative_name, motion_ports, torque_ports, wrench_ports
from ..registry import quantity


def _inputs(robot, order, options):
    ports = motion_ports(robot, order + 1)
    return ports + (wrench_ports(robot, order) if options["external_wrenches"] else [])


def _outputs(robot, order, options):
    return torque_ports(robot, order)


def _call(function, model, order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(order + 2)]
    W = [ports[derivative_name("w_ext", k)] for k in range(order + 1)] if options["external_wrenches"] else None
    tau = function(model, order, ports["q"], V, W)
    if options["friction"]:
        tau = [x + y for x, y in zip(tau, friction_torques(model.robot, V[: order + 1], model.viscous), strict=True)]
    return {derivative_name("tau", k): x for k, x in enumerate(tau)}


quantity(
    name="inverse_dynamics",
    summary="joint torques and their time derivatives from a motion",
    inputs=_inputs,
    outputs=_outputs,
    call=_call,
    options=("external_wrenches", "friction", "representation", "parameters", "gravity"),
    base_ports=True,
    default=("taylor",),
    equation="tau = M(q) dv + C(q, v) v + g(q) + friction(v) - sum_b J_b(q)^T w_b, J_b the body Jacobian of body b "
    "and w_b its wrench, column b of w_ext",
    notes=(IN_FLUID,),
)

from . import (  # noqa: E402  registers the methods
    by_ad,
    closed_form,
    closed_form_spatial,
    closed_form_vectors,
    recursive_body,
    recursive_body_leibniz,
    recursive_spatial,
    second_order_body,
    second_order_closed_form,
    taylor,
)
