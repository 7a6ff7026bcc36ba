"""Kinematics: where frames are and how they move."""

from dataclasses import replace

from .. import robots
from ..errors import ShapeError
from ..lie.twist_conversion import checked_representation
from ..ports import configuration_port, derivative_name, derivative_unit, motion_ports, nv, partial_ports
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


def _partials(quantity, first):
    """Inputs, outputs and call of the partials of derivatives first.. of the twist."""

    def inputs(robot, order, options):
        _checked(quantity, robot, options)
        return motion_ports(robot, first + order)

    def outputs(robot, order, options):
        _checked(quantity, robot, options)
        by = [(p, nv(robot)) for p in motion_ports(robot, first + order)]
        seen = _SEEN[options["representation"]]
        out = []
        for k in range(first, first + order + 1):
            ports = partial_ports([(_twist_port(robot, derivative_name("V", k), k, seen), 6)], by[: k + 2])
            out += [replace(p, meaning=f"{p.meaning}; {seen}") for p in ports]
        return out

    def call(function, model, order, ports, options):
        V = [ports[derivative_name("v", k)] for k in range(first + order + 1)]
        rows = function(
            model, first + order, ports["q"], V, model.robot.frame(options["frame"]), options["representation"]
        )
        out = {}
        for k in range(first, first + order + 1):
            names = ["q", *(derivative_name("v", l) for l in range(k + 1))]
            out |= {f"d{derivative_name('V', k)}_d{x}": y for x, y in zip(names, rows[k], strict=True)}
        return out

    return {"inputs": inputs, "outputs": outputs, "call": call}


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
    notes=("Its partial derivatives are frame_velocity_partials, those of dV, ... frame_acceleration_partials.",),
)
quantity(
    name="frame_jacobian",
    summary="Jacobian of a frame and its time derivatives; representation body, spatial or hybrid",
    **_moving("frame_jacobian", "J", 0, _jacobian_port),
    **_MOVING,
    equation="V = J(q) v, V the twist of the frame",
)

_STEP = "q (+) e is robot.integrate(q, e): a step e on the tangent space has nv entries, body axes in free joints."
quantity(
    name="frame_velocity_partials",
    summary="partial derivatives of the twist of a frame, and of its time derivatives, by configuration and motion; "
    "representation body, spatial or hybrid",
    **_partials("frame_velocity_partials", 0),
    **_MOVING | {"default": ("recursive_spatial",)},
    sparse=True,
    equation="dV_dq = d V(q (+) e, v) / de at e = 0, V that of frame_twist; dV_dv = J, the Jacobian of the frame; "
    "likewise of dV, d2V, ... by what they depend on",
    notes=(_STEP,),
)
quantity(
    name="frame_acceleration_partials",
    summary="partial derivatives of the time derivative dV of the twist of a frame, and of further ones, by "
    "configuration and motion; representation body, spatial or hybrid",
    **_partials("frame_acceleration_partials", 1),
    **_MOVING | {"default": ("recursive_spatial",)},
    sparse=True,
    equation="ddV_dq = d dV(q (+) e, v, dv) / de at e = 0, dV that of frame_twist; ddV_dv; ddV_ddv = J, the Jacobian "
    "of the frame; at order r likewise of dV, ..., d{r + 1}V",
    notes=(_STEP, "dV is the componentwise time derivative: the hybrid one holds the acceleration of the origin."),
)

from . import by_ad, frame_partials, recursive_body, recursive_spatial  # noqa: E402  registers the methods
