"""Kinematics: where frames are and how they move."""

from ..errors import ShapeError
from ..ports import configuration_port, derivative_name, motion_ports
from ..registry import Port, quantity


def _inputs(robot, order, options):
    if options["frame"] is None:
        raise ShapeError(f"frame_pose: give frame=..., one of {', '.join(robot.frames)}")
    robot.frame(options["frame"])
    return [configuration_port(robot)] + (motion_ports(robot, order - 1)[1:] if order else [])


def _outputs(robot, order, options):
    out = []
    for k in range(order + 1):
        what = f"time derivative {k} of the" if k else "the"
        out += [
            Port(derivative_name("C", k), (4, 4), "1, m", f"{what} homogeneous matrix of the frame in the root frame"),
            Port(derivative_name("R", k), (3, 3), "1", f"{what} rotation matrix of the frame in the root frame"),
            Port(derivative_name("p", k), (3, 1), "m", f"{what} origin of the frame in the root frame"),
        ]
    return out


def _call(function, model, order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(order)]
    out = {}
    for k, C in enumerate(function(model, order, ports["q"], V, model.robot.frame(options["frame"]))):
        out[derivative_name("C", k)] = C
        out[derivative_name("R", k)] = C[:3, :3]
        out[derivative_name("p", k)] = C[:3, 3]
    return out


quantity(
    name="frame_pose",
    summary="pose of a frame in the root frame and its time derivatives",
    inputs=_inputs,
    outputs=_outputs,
    call=_call,
    options=("frame",),
    default=("recursive_body",),
)

from . import recursive_body, recursive_spatial  # noqa: E402, F401  registers the methods
