"""Matrices of the equations of motion."""

from ..ports import configuration_port, derivative_name, motion_ports
from ..registry import Port, quantity


def _inputs(robot, order, options):
    return [configuration_port(robot)] + (motion_ports(robot, order - 1)[1:] if order else [])


def _outputs(robot, order, options):
    unit = "kg m2, kg m, kg"
    return [
        Port(derivative_name("M", k), (robot.nv, robot.nv), unit, f"time derivative {k} of M" if k else "mass matrix")
        for k in range(order + 1)
    ]


def _call(function, model, order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(order)]
    return {derivative_name("M", k): x for k, x in enumerate(function(model, order, ports["q"], V))}


quantity(
    name="mass_matrix",
    summary="joint-space mass matrix, full and symmetric, and its time derivatives along a motion",
    inputs=_inputs,
    outputs=_outputs,
    call=_call,
    default=("composite", "jacobian_sum"),
)

from . import by_ad, composite, jacobian_sum  # noqa: E402, F401  registers the methods
