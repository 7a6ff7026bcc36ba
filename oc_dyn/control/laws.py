"""Laws for where a predictive controller cannot make its step: torques of what is measured; on_failure of od.mpc."""

from __future__ import annotations

import casadi as ca

from ..errors import ShapeError
from ..function import function
from ..model.robot import Robot
from ..numbers import as_floats, shortened


def gravity(robot: Robot, *, q: str = "q_now") -> ca.Function:
    """casadi.Function q (nq,) -> tau (nv,) [Nm, N]: joint torques that hold the robot still against gravity.

    q: name of its input, that of the parameter of the Problem which is the measured position. Friction is left out.
    Raises ShapeError for what is no Robot.
    """
    inverse = _inverse_dynamics("gravity", robot)
    x = ca.MX.sym("q", inverse.size1_in(0))
    still = ca.DM.zeros(inverse.size1_in(1))
    return ca.Function("gravity", [x], [inverse(x, still, still)], [q], ["tau"])


def brake(robot: Robot, *, time: float = 0.1, q: str = "q_now", v: str = "v_now") -> ca.Function:
    """casadi.Function q (nq,), v (nv,) -> tau (nv,) [Nm, N]: torques that let velocities decay within a time.

    tau = inverse dynamics at (q, v, -v / time): with torques to spare v falls by a factor e in each `time` [s]; with
    less the bounds of outputs cut them off. q, v: names of its inputs, those of the parameters of the Problem which are
    measured. Take a time of several periods of the controller. Raises ShapeError.
    """
    inverse = _inverse_dynamics("brake", robot)
    seconds = as_floats("brake: time", time)
    if seconds.size != 1 or not 0 < seconds.ravel()[0] < float("inf"):
        raise ShapeError(f"brake: time is {shortened(time)}, expected a positive number of seconds")
    x, y = ca.MX.sym("q", inverse.size1_in(0)), ca.MX.sym("v", inverse.size1_in(1))
    return ca.Function("brake", [x, y], [inverse(x, y, -y / float(seconds.ravel()[0]))], [q, v], ["tau"])


def _inverse_dynamics(what: str, robot: Robot) -> ca.Function:
    if not isinstance(robot, Robot):
        raise ShapeError(f"{what}: got {shortened(robot)}, expected an od.Robot")
    return function(robot, "inverse_dynamics")
