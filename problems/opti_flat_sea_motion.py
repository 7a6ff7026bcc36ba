"""The fastest motion of an arm with elastic joints, by hand in casadi.Opti on the toolkit's flat map.

    minimise    T + w mean(|q^(5)|^2),  a small w against chatter
    subject to  q(0) = q0,  q(T) = q1,  q' = ... = q^(4) = 0 at both ends,  q^(5) constant on each of N intervals,
                (theta, theta', theta'', tau_m) = flat map of (q, ..., q^(4)),
                |tau_m| <= torque,  |theta'| <= speed,  |theta - q| <= deflection  at points of every interval.

q is four times continuously differentiable, so the motor torque is continuous. plan_elastic finds the same optimum.
Run:    python problems/opti_flat_sea_motion.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass
from math import factorial

import casadi as ca
import numpy as np

import oc_dyn as od
from oc_dyn import elastic as el


@dataclass(frozen=True)
class Config:
    ends: tuple = ((-0.6, 0.3), (0.7, -0.9))  # [rad]
    stiffness: tuple = (500.0, 300.0)  # [Nm/rad], of an arm of two links of 0.4 m and 3 kg
    motor_inertia: tuple = (0.3, 0.2)  # [kg m2]
    limits: tuple = ((60.0, 30.0), (4.0, 4.0), (0.2, 0.2))  # of motors [Nm], [rad/s], of springs [rad]
    nodes: int = 40
    points: int = 8  # of an interval
    scale: tuple = (1.0, 4.0, 15.0, 130.0, 1100.0, 2.8e4)  # of q, ..., q^(5)
    smoothing: float = 1e-9  # w [s] times the last scale squared, as of plan_elastic


def fastest(cfg, flat_map):
    """(T, [q, ..., q^(5)] (6, 2, N) at the starts of intervals, iterations)."""
    N, opti, ends = cfg.nodes, ca.Opti(), np.array(cfg.ends)
    T = opti.variable()
    x = [scale * opti.variable(2, N + (k < 5)) for k, scale in enumerate(cfg.scale)]

    for part in np.linspace(0, 1, cfg.points + 1):
        t = part * T / N  # behind the start of every interval
        here = [sum((t**i / factorial(i) * y[:, :N] for i, y in enumerate(x[k:])), ca.MX(0)) for k in range(6)]
        theta, dtheta, _, tau = flat_map.map(N)(*here[:5])
        for y, limit in zip((tau, dtheta, theta - here[0]) if part < 1 else (), cfg.limits, strict=False):
            opti.subject_to(opti.bounded(-1, ca.vec(y / ca.repmat(ca.DM(limit), 1, N)), 1))
    for k in range(5):  # here is the end of intervals now
        fixed = [x[k][:, node] == end * (k == 0) for node, end in zip((0, -1), ends, strict=True)]
        opti.subject_to([ca.vec(x[k][:, 1:] - here[k]) == 0, *fixed])
    opti.subject_to(opti.bounded(0.1, T, 20))
    opti.set_initial(T, 2.0)
    opti.set_initial(x[0], np.linspace(*ends, N + 1).T)
    opti.minimize(T + cfg.smoothing * ca.sumsqr(x[5] / cfg.scale[5]) / N)
    quiet = {"print_level": 0, "sb": "yes", "mu_strategy": "adaptive"}
    opti.solver("ipopt", {"print_time": False, "detect_simple_bounds": True}, quiet)
    found = opti.solve()
    return found.value(T), np.array([found.value(y)[:, :N] for y in x]), found.stats()["iter_count"]


def solve(run, cfg):
    arm = el.elastic_robot(od.robots.planar_arm(2), cfg.stiffness, motor_inertia=cfg.motor_inertia)
    limits = dict(zip(("motor_torque", "motor_speed", "deflection"), cfg.limits, strict=True))
    plan = el.plan_elastic(arm, *cfg.ends, nodes=cfg.nodes, interior=cfg.points - 1, **limits)
    T, x, iterations = fastest(cfg, od.function(arm, "elastic_flat_map"))
    run.facts |= {"opti [s]": T, "plan_elastic [s]": plan.duration, "iterations": iterations}
    run.check("time over that of plan_elastic", T / plan.duration, equals=1, within=2e-3)
    named = {"joints": arm.links.coordinate_names, "units": ["rad"] * 2, "robot": arm.links}
    motion = od.Trajectory(np.linspace(0, T, cfg.nodes + 1), x.transpose(2, 0, 1), **named)
    own = el.ElasticPlan(arm, motion, plan.limits, T, {})
    for name, share in own.shares().items():
        run.check(f"{name}: largest share of its limit", share, below=1.004)
    report = own.check()
    for row in report.defects:
        run.check(f"{row.quantity}: miss of the full model under the motor torques", row.share, below=1e-6)
    run.check("largest jump", max(report.jumps.values()), below=1e-5)
    run.check("distance from the ends", np.abs(motion.q[[0, -1]] - cfg.ends).max(), below=1e-8)
    run.check("speed at the ends", np.abs(motion.v[[0, -1]]).max(), below=1e-8)
    own.save(run.out / "motion.csv")
    motion.plot(run.out / "motion.png")


main = od.script(solve, Config(), quick={"nodes": 20})

if __name__ == "__main__":
    sys.exit(main())
