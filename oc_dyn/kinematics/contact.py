"""od.contact_wrenches, od.contact_points: forces on points of a robot as the dynamics take them, and those points."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from ..errors import ShapeError
from ..function import function
from ..model.cache import cached
from ..model.loops import LoopRobot
from ..model.quaternions import quaternions
from ..model.robot import Frame, Robot, check_robot
from ..model.robot_function import RobotFunction
from ..numbers import shortened


def contact_wrenches(robot: Robot, frames: Sequence[str]) -> RobotFunction:
    """RobotFunction (q (nq,), f (3, k)) -> w_ext (6, bodies), of forces at the origins of k frames [N, in root axes].

        w_ext = od.contact_wrenches(robot, ["LF_foot", "RF_foot"])(q, f)
        tau = od.function(robot, "inverse_dynamics", external_wrenches=True)(q=q, v=v, dv=dv, w_ext=w_ext)["tau"]

    w_ext is what external_wrenches=True takes: [moment; force] on bodies, about and in their frames [Nm, N]; to inverse
    dynamics it adds -sum_i J_i' f_i. Forces on what does not move count nothing. Raises UnknownName for a frame.
    """
    seen = _seen("contact_wrenches", robot, frames)
    # complete, as in contact_points: frames belong to the robot, and names find them
    return cached(robot, ("contact_wrenches", tuple(frames)), lambda: _made(robot, seen))


def contact_points(robot: Robot, frames: Sequence[str]) -> RobotFunction:
    """RobotFunction (q (nq,), v (nv,)) -> p (3, k), dp (3, k): origins of k frames [m], their velocities, in root axes.

        p, dp = od.contact_points(robot, ["LF_foot", "RF_foot"])(q, v)

    The points at which contact_wrenches lets forces act. Raises UnknownName for a frame.
    """
    _seen("contact_points", robot, frames)
    return cached(robot, ("contact_points", tuple(frames)), lambda: _points(robot, frames))


def _seen(what: str, robot: Robot, frames: Sequence[str]) -> list[Frame]:
    check_robot(what, robot)
    if not isinstance(frames, (list, tuple)):
        raise ShapeError(f"{what}: got {shortened(frames)}, expected a list of names of frames")
    return [robot.frame(name) for name in frames]


def _points(robot: Robot, frames: Sequence[str]) -> RobotFunction:
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    p = [function(robot, "frame_pose", frame=name)(q=q)["p"] for name in frames]
    dp = [function(robot, "frame_twist", frame=name, representation="hybrid")(q=q, v=v)["V"][3:] for name in frames]
    out = [ca.densify(ca.horzcat(ca.SX(3, 0), *columns)) for columns in (p, dp)]
    return _checking(robot, ca.Function("contact_points", [q, v], out, ["q", "v"], ["p", "dp"]))


def _made(robot: Robot, frames: list[Frame]) -> RobotFunction:
    q, f = ca.SX.sym("q", robot.nq), ca.SX.sym("f", 3, len(frames))
    number = {body.index: k for k, body in enumerate(robot.bodies)}
    out = [ca.SX.zeros(6) for _ in robot.bodies]
    for column, frame in enumerate(frames):
        if frame.body in number:
            k = number[frame.body]
            R = function(robot, "frame_pose", frame=robot.bodies[k].name)(q=q)["R"]
            force = R.T @ f[:, column]
            out[k] += ca.vertcat(ca.cross(ca.DM(frame.translation), force), force)
    w_ext = ca.densify(ca.horzcat(ca.SX(6, 0), *out))
    return _checking(robot, ca.Function("contact_wrenches", [q, f], [w_ext], ["q", "f"], ["w_ext"]))


def _checking(robot: Robot, base: ca.Function) -> RobotFunction:
    names = {"q": robot.coordinate_names, "v": robot.velocity_names}
    made = RobotFunction(base, names, rotations=quaternions(robot))
    if isinstance(robot, LoopRobot):  # q is looked at as that of any quantity
        made.closing_by(function(robot, "potential_energy").closes)
    return made
