"""Kinematics: where frames are and how they move."""

from .. import robots
from ..errors import ShapeError
from ..lie.twist_conversion import checked_representation
from ..ports import configuration_port, derivative_name, derivative_unit, motion_ports, nv
from ..registry import Port, quantity

_SEEN = {
    "body": "[angular; linear], at the frame's origin and in its axes",
    "spatial": "[angular; linear], at the root's origin and in root axes",
    "hybrid": "[angular; linear], at the frame's origin and in root axes",
}


def _checked(quantity, robot, options):
    """The frame asked for; a representation, where the quantity has one, must be given as well."""
    if options["frame"] is None:
        raise ShapeError(f"{quantity}: give frame=..., one of {', '.join(robot.frames)}")
    if quantity != "frame_pose":
        checked_representation(quantity, options["representation"])
    return robot.frame(options["frame"])


def _velocities(robot, count):
    """q and `count` ports v, dv, ..."""
    return [configuration_port(robot)] + (motion_ports(robot, count - 1)[1:] if count else [])


def _pose_inputs(robot, order, options):
    _checked("frame_pose", robot, options)
    return _velocities(robot, order)


def _pose_outputs(robot, order, options):
    out = []
    for k in range(order + 1):
        what = f"time derivative {k} of the" if k else "the"
        out += [
            _pose_port("C", k, (4, 4), "1, m", f"{what} homogeneous matrix of the frame in the root frame"),
            _pose_port("R", k, (3, 3), "1", f"{what} rotation matrix of the frame in the root frame"),
            _pose_port("p", k, (3, 1), "m", f"{what} origin of the frame in the root frame"),
        ]
    return out


def _pose_port(name, k, shape, unit, meaning):
    return Port(derivative_name(name, k), shape, derivative_unit(unit, k), meaning)


def _pose_call(function, model, order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(order)]
    out = {}
    for k, C in enumerate(function(model, order, ports["q"], V, model.robot.frame(options["frame"]))):
        out[derivative_name("C", k)] = C
        out[derivative_name("R", k)] = C[:3, :3]
        out[derivative_name("p", k)] = C[:3, 3]
    return out


def example(robot):
    """(robot, options) for od.describe: the last frame, as seen in root axes at its origin."""
    robot = robot or robots.planar_2r()
    return robot, {"frame": list(robot.frames)[-1], "representation": "hybrid"}


_ERRORS = ("ShapeError: frame is not given", "UnknownName: a frame that the robot does not have")

quantity(
    name="frame_pose",
    summary="pose of a frame in the root frame and its time derivatives",
    inputs=_pose_inputs,
    outputs=_pose_outputs,
    call=_pose_call,
    options=("frame",),
    default=("recursive_body",),
    same_in_fluid=True,
    equation="x_root = R x_frame + p, C = [R p; 0 1]",
    errors=_ERRORS,
    example=example,
)


def _moving(quantity, letter, extra, port):
    """Inputs, outputs and call of a quantity that needs `extra` velocities more than its order, one `port` an order."""

    def inputs(robot, order, options):
        _checked(quantity, robot, options)
        return _velocities(robot, order + extra)

    def outputs(robot, order, options):
        _checked(quantity, robot, options)
        seen = _SEEN[options["representation"]]
        return [port(robot, derivative_name(letter, k), k, seen) for k in range(order + 1)]

    def call(function, model, order, ports, options):
        V = [ports[derivative_name("v", k)] for k in range(order + extra)]
        frame = model.robot.frame(options["frame"])
        found = function(model, order, ports["q"], V, frame, options["representation"])
        return {derivative_name(letter, k): x for k, x in enumerate(found)}

    return {"inputs": inputs, "outputs": outputs, "call": call}


def _twist_port(robot, name, k, seen):
    what = f"componentwise time derivative {k} of V" if k else "twist of the frame"
    return Port(name, (6, 1), derivative_unit("rad/s, m/s", k), f"{what}, {seen}")


def _jacobian_port(robot, name, k, seen):
    what = f"time derivative {k} of J" if k else "matrix J with twist of the frame = J v"
    return Port(name, (6, nv(robot)), derivative_unit("1, m", k), f"{what}, {seen}")


_MOVING = {
    "options": ("frame", "representation"),
    "default": ("recursive_body",),
    "same_in_fluid": True,
    "errors": (*_ERRORS, "ShapeError: representation is not given", "UnknownName: a representation that is not there"),
    "meanings": {
        "representation": "; ".join(f'"{name}": {seen}' for name, seen in _SEEN.items()) + "; it must be given"
    },
    "example": example,
}

quantity(
    name="frame_twist",
    summary="twist of a frame and its time derivatives; representation body, spatial or hybrid",
    **_moving("frame_twist", "V", 1, _twist_port),
    **_MOVING,
    equation="body: hat(V) = C^-1 dC/dt; spatial: hat(V) = dC/dt C^-1; hybrid: V = [R 0; 0 R] V_body; C = [R p; 0 1] "
    "the pose in the root frame",
)
quantity(
    name="frame_jacobian",
    summary="Jacobian of a frame and its time derivatives; representation body, spatial or hybrid",
    **_moving("frame_jacobian", "J", 0, _jacobian_port),
    **_MOVING,
    equation="V = J(q) v, V the twist of the frame",
)

from . import by_ad, recursive_body, recursive_spatial  # noqa: E402  registers the methods
