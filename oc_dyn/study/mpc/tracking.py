"""The problem of the study: a Panda follows a target that jumps, within its torques and a limit of speed.

    minimise    sum over the nodes of |q - r|^2 + |v / 10|^2 + |tau / (10 tau_max)|^2,
                and 10 |q - r|^2 + |v|^2 at the end,
    subject to  v+ = v + h a,  q+ = q + h v+,  tau = inverse dynamics (q, v, a),  |tau| <= tau_max,  |v+| <= speed,
                q, v as measured at the start.

With torques as controls, as mim_solvers has it, it is the same program.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ... import robots
from ...control.mpc import mpc
from ...function import function
from ...optimal_control.problem import Problem
from ...planning.limits import Limits

HOME = np.array([0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4])  # [rad]
JUMP = np.array([0.2, 0.1, -0.1, 0.2, 0.1, -0.2, 0.3])  # of the target, there and back [rad]
SPEED = 2.1  # [rad/s]
FIRST = 1.343618865  # optimum of the first step at 20 nodes of 20 ms, from a separate program


@dataclass(frozen=True)
class Setting:
    """nodes of h [s]; a step of the controller every period [s], a divisor of h; the target jumps after `every` [s]."""

    nodes: int = 20
    h: float = 0.02
    period: float = 0.02
    every: float = 1.0
    steps: int = 200

    @property
    def stride(self):
        """Periods in an interval."""
        return round(self.h / self.period)

    @property
    def shift(self):
        """Intervals that pass from one step to the next."""
        return int(self.stride == 1)

    def targets(self):
        """(steps + stride nodes + 1, 7): the target at multiples of the period."""
        t = self.period * np.arange(self.steps + self.stride * self.nodes + 1)
        away = np.floor(t / self.every + 1e-9) % 2 == 0
        return HOME + JUMP * away[:, None]


def panda():
    """(robot, limits of torque (7,))."""
    robot = robots.panda("vendor")
    return robot, Limits.of(robot).tau


def controller(setting, **options):
    """PredictiveController of a setting."""
    robot, most = panda()
    h, ocp = setting.h, Problem(setting.nodes, setting.nodes * setting.h)
    q, v, a = ocp.state("q", 7, guess=HOME, scale=1), ocp.state("v", 7), ocp.control("a", 7)
    q_now, v_now, r = ocp.parameter("q_now", 7), ocp.parameter("v_now", 7), ocp.varying("r", 7)
    tau = function(robot, "inverse_dynamics", derivatives="analytic")(q, v, a)
    ocp.next(q, q + h * (v + h * a))
    ocp.next(v, v + h * a)
    ocp.limit(-1, tau / most, 1)
    ocp.limit(-SPEED, v + h * a, SPEED)  # not v: the present is as it is
    ocp.start({q: q_now, v: v_now})
    ocp.minimize(squares=np.sqrt(2 / h) * ca.vertcat(q - r, v / 10, tau / most / 10))
    ocp.minimize(terminal=10 * ca.sumsqr(q - r) + ca.sumsqr(v))
    given = {"output_bounds": {"tau": (-most, most)}, "shift": setting.shift, **options}
    return mpc(ocp, outputs={"tau": tau}, method="euler", **given)


def world(setting):
    """Functions: (x, tau) -> the state [q; v; t] after a period, tau held; x -> what is measured and wanted."""
    robot, _ = panda()
    x, tau, t = ca.SX.sym("x", 15), ca.SX.sym("tau", 7), ca.SX.sym("t")
    away = ca.fmod(ca.floor(t / setting.every + 1e-9), 2) == 0
    target = ca.Function("target", [t], [ca.DM(HOME) + ca.DM(JUMP) * away])
    dv = function(robot, "forward_dynamics")(x[:7], x[7:14], tau)
    rate = ca.Function("rate", [x, tau], [ca.vertcat(x[7:14], dv, 1)])
    plant = ca.Function("plant", [x, tau], [ca.simpleRK(rate, 4)(x, tau, setting.period)], ["x", "tau"], ["x_next"])
    horizon = ca.horzcat(*(target(x[14] + setting.h * k) for k in range(setting.nodes + 1)))
    names = ["q_now", "v_now", "r"]
    return plant, ca.Function("measured", [x], [x[:7], x[7:14], horizon], ["x"], names)


def start():
    """[q; v; t] at the beginning of a loop."""
    return np.concatenate([HOME, np.zeros(8)])


def closed_loop_cost(setting, x, u):
    """Sum over the steps of period / h of the stage cost, at states x (K, 14 or more) and torques u (K, 7)."""
    _, most = panda()
    r = setting.targets()[: len(x)]
    stage = ((x[:, :7] - r) ** 2).sum(1) + ((x[:, 7:14] / 10) ** 2).sum(1) + ((u / most / 10) ** 2).sum(1)
    return float(stage.sum() / setting.stride)


def task(setting, ways):
    """What peer_loop.py reads, of these ways."""
    robot, most = panda()
    bodies = [
        {"name": b.joint.name, "parent": b.parent, "axis": list(map(float, b.joint.axis)),
         "rotation": np.array(b.rotation).tolist(), "translation": np.array(b.translation).ravel().tolist(),
         "mass": float(b.inertia.mass), "com": np.array(b.inertia.com).ravel().tolist(),
         "tensor": np.array(b.inertia.tensor_com).tolist()}
        for b in robot.bodies
    ]  # fmt: skip
    return {
        "bodies": bodies, "nodes": setting.nodes, "h": setting.h, "period": setting.period, "shift": setting.shift,
        "stride": setting.stride, "steps": setting.steps, "torque": most.tolist(), "speed": SPEED,
        "home": HOME.tolist(), "x": start()[:14].tolist(), "targets": setting.targets().tolist(), "ways": ways,
    }  # fmt: skip
