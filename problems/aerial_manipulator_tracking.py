"""A multirotor's base flies along a path planned with its arms, which swing passively or move as prescribed.

    minimise    integral of |wrench / weight|^2 + small |y'''''|^2 and velocities of the arms
    subject to  y = (position, yaw) of the base from rest to rest, four times differentiable,
                M v' + C v + g = [wrench; tau],  v' of the base prescribed by y, and at the arms
                    passive: tau = -d v, their motion follows,   or   prescribed: v' given, their torques follow;
                thrusts of the six propellers, from the wrench, between 0 and their limit.

Hybrid dynamics: accelerations prescribed at some joints, torques at the others. Forward dynamics of the
computed efforts, without feedback, must reproduce the path; the energy gained must equal the work of the efforts.
Source: Ali, Gabellieri, Franchi 2026, section 7 (the robot, the use of hybrid dynamics); task and numbers are ours.
Run:    python problems/aerial_manipulator_tracking.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od

WRENCH = tuple(f"wrench_{c}" for c in ("mx [Nm]", "my [Nm]", "mz [Nm]", "fx [N]", "fy [N]", "fz [N]"))
ARMS = tuple(f"{arm}_joint{i}" for arm in ("left", "right") for i in (1, 2, 3))
ANGLES = ("qw", "qx", "qy", "qz", "x [m]", "y [m]", "z [m]", *(f"{joint} [rad]" for joint in ARMS))


@dataclass(frozen=True)
class Config:
    start: tuple = (0.0, 0.0, 1.5, 0.0)  # position [m], yaw [rad]
    goal: tuple = (2.0, 1.0, 2.0, 0.8)
    duration: float = 3.0  # [s]
    nodes: int = 60
    thrust: float = 14.0  # limit of a propeller [N]
    damping: float = 0.01  # d of passive arms [Nm s/rad]
    smooth: float = 1e-6  # weight of the fifth derivative
    swing: tuple = (0.4, -0.6, 0.8, -0.4, 0.7, -0.9)  # of prescribed arms, there and back [rad]
    frequency: float = 3.0  # of it [rad/s]
    fine: int = 40  # steps of the integrations in an interval
    fps: int = 12


def hybrid(cfg, robot):
    """{case: Function (t, [y; y'; y''], [q; v] of the arms) -> efforts (12,), v' of the arms, thrusts, q, v}."""
    t, Y, x = ca.SX.sym("t"), ca.SX.sym("Y", 12), ca.SX.sym("x", 12)
    y, dy, ddy = ca.vertsplit(Y, 4)
    c, s = ca.cos(y[3]), ca.sin(y[3])
    base = ca.vertcat(0, 0, dy[3], c * dy[0] + s * dy[1], c * dy[1] - s * dy[0], dy[2])  # twist, in the base's axes
    q = ca.vertcat(ca.cos(y[3] / 2), 0, 0, ca.sin(y[3] / 2), y[:3], x[:6])
    v, dv = ca.vertcat(base, x[6:]), ca.jtimes(base, Y[:8], ca.vertcat(dy, ddy))
    swing = cfg.frequency**2 / 2 * ca.cos(cfg.frequency * t) * ca.DM(cfg.swing)
    prescribed, thrusts, out = ca.vertcat(dv, swing), ca.DM(np.linalg.inv(od.robots.propellers())), {}
    cases = ("passive", (), (dv, -cfg.damping * x[6:])), ("prescribed", ARMS, (prescribed, ca.SX(0, 1)))
    for case, arms, efforts in cases:
        _, _, dv, tau = od.function(robot, "hybrid_dynamics", prescribed=("root_joint", *arms))(q, v, *efforts)
        out[case] = ca.Function(case, [t, Y, x], [tau, dv[6:], thrusts @ tau[:6], q, v])
    return out


def plan(cfg, robot, f):
    """Trajectory of y."""
    h, start, way = cfg.duration / cfg.nodes, np.array(cfg.start), np.subtract(cfg.goal, cfg.start)
    ocp = od.Problem(cfg.nodes, cfg.duration)
    y = ocp.chain("y", 4, 5, guess=lambda s: start + way * s, scale=(1, 2, 5, 20, 100, 1000))
    q, v, t = ocp.state("q", 6, lower=-1, upper=1), ocp.state("v", 6), ocp.varying("t")
    tau, dv, thrust, *_ = f(t + h / 2, ca.vertcat(*ocp.between(y, 0.5)[:3]), ca.vertcat(q + h / 2 * v, v))
    ocp.next(v, v + h * dv)
    ocp.next(q, q + h * v + h**2 / 2 * dv)
    ocp.limit(0, thrust / cfg.thrust, 1)
    ocp.start({y[0]: start, **dict.fromkeys(y[1:5], 0), q: 0, v: 0})
    ocp.goal({y[0]: start + way, **dict.fromkeys(y[1:5], 0)})
    ocp.minimize(squares=ca.vertcat(tau[:6] / (9.81 * robot.total_mass) * 2, np.sqrt(cfg.smooth) * y[5] / 30, 0.1 * v))
    return ocp.solve(method="euler", parameters={t: h * np.arange(cfg.nodes + 1)}).trajectory(y)


def fly(run, cfg, robot, case, f, motion):
    """(t, q, tau, thrusts), rows are half steps: motion of the arms along the path, efforts it needs; checked."""
    t, x, w = np.linspace(0, cfg.duration, 4 * cfg.fine * cfg.nodes + 1), ca.SX.sym("x", 12), ca.SX.sym("w", 13)
    inputs = np.column_stack([t, *motion.sample(t).derivatives[:3]])
    rate = ca.Function("rate", [x, w], [ca.vertcat(x[6:], f(w[0], w[1:], x)[1])])
    arms, t, inputs = od.rollout(rate, np.zeros(12), inputs, t[2]), t[::2], inputs[::2]
    tau, _, thrust, q, v = (z.full().T for z in f(t[None, :], inputs[:, 1:].T, arms.T))
    balance = od.motion_report(robot, t, q, v, tau, kinks=motion.t).items()  # the wrench has kinks at nodes
    for (what, error), bound in zip(balance, (1e-6, 1e-5, 1e-6, 1e-8), strict=True):
        run.check(f"{case}: {what}", error, below=bound)
    run.check(f"{case}: thrust, share of its limit", thrust.max() / cfg.thrust, below=1.02)
    run.check(f"{case}: least thrust, share of the limit", thrust.min() / cfg.thrust, above=0)
    for d, jump in enumerate(motion.jumps().values()):
        run.check(f"{case}: jump of derivative {d} of the path", jump, below=1e-5)
    run.check(f"{case}: distance from the goal", np.abs(motion.q[-1] - cfg.goal).max(), below=1e-6)
    run.check(f"{case}: largest angle of the arms [rad]", np.abs(q[:, 7:]).max(), below=1.5)
    if case == "passive":
        what, error = "torques of the arms less those of damping [Nm]", (tau + cfg.damping * v)[:, 6:]
    else:
        prescribed = np.outer(1 - np.cos(cfg.frequency * t), cfg.swing) / 2
        what, error = "angles of the arms less those prescribed [rad]", q[:, 7:] - prescribed
    run.check(f"{case}: {what}", np.abs(error).max(), below=1e-9)
    return t, q, tau, thrust


def solve(run, cfg):
    robot, every = od.robots.aerial_manipulator(), cfg.fine // 2  # row is written
    cases, run.facts["iterations"] = hybrid(cfg, robot), {}
    hover = cases["passive"](0, [*cfg.start, *[0] * 8], 0)[2].full().max()
    if hover > cfg.thrust:
        raise od.LimitError(f"hovering takes {hover:.4g} N of a propeller, over its limit thrust = {cfg.thrust:g} N")
    od.Limits(ARMS, q=(-1, 1)).assert_within("swing", q=cfg.swing)  # the bounds of the plan
    titles = "base: x, y, z [m], yaw [rad]", "arms [rad]; dashed: prescribed", f"thrusts [N], limit {cfg.thrust:g}"
    with run.figure("tracking.png", *titles) as axes:
        for case, style in (("prescribed", "--"), ("passive", "-")):  # the last one is the one to write
            motion = plan(cfg, robot, cases[case])
            run.facts["iterations"][case] = motion.info["iterations"]
            t, q, tau, thrust = fly(run, cfg, robot, case, cases[case], motion)
            for axis, y in zip(axes, (np.c_[q[:, 4:7], 2 * np.arcsin(q[:, 3])], q[:, 7:], thrust), strict=True):
                axis.set_prop_cycle(None)
                axis.plot(t, y, style, linewidth=0.9)
    run.table("passive.csv", {"t [s]": t[::every], ANGLES: q[::every], WRENCH: tau[::every, :6]})
    od.animate(robot, t, q, run.out / "passive.gif", fps=cfg.fps, size=(360, 360))


main = od.script(solve, Config(), quick={"nodes": 45, "fine": 24, "fps": 6})

if __name__ == "__main__":
    sys.exit(main())
