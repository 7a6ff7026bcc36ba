"""The fastest motion of an arm with elastic joints, by hand in casadi.Opti on the toolkit's flat map.

    minimise    T + w mean(|q^(5)|^2),  a small w against chatter
    subject to  q(0) = q0,  q(T) = q1,  q' = ... = q^(4) = 0 at both ends,  q^(5) constant on each of N intervals,
                |tau_m| <= torque,  |theta'| <= speed,  |theta - q| <= deflection  at points of every interval

(theta, theta', theta'', tau_m) is the flat map of (q, ..., q^(4)). plan_elastic finds the same optimum.
Run:    python problems/opti_flat_sea_motion.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass
from math import factorial

import casadi as ca
import numpy as np

import oc_dyn as od


@dataclass(frozen=True)
class Config:
    ends: tuple = ((-0.6, 0.3), (0.7, -0.9))  # [rad]
    elastic: tuple = ((500.0, 300.0), (0.3, 0.2))  # stiffness [Nm/rad], inertia of motors [kg m2]
    limits: tuple = ((60.0, 30.0), (4.0, 4.0), (0.2, 0.2))  # of motors [Nm], [rad/s], of springs [rad]
    nodes: int = 40
    points: int = 8  # of an interval
    scale: tuple = (1.0, 4.0, 15.0, 130.0, 1100.0, 2.8e4)  # of q, ..., q^(5)
    smoothing: float = 1e-9  # w [s] times the last scale squared, as of plan_elastic


def fastest(cfg, flat_map):
    """(T, [q, ..., q^(5)] (6, 2, N) at the starts of intervals, iterations)."""
    N, opti, ends = cfg.nodes, ca.Opti(), np.array(cfg.ends)
    T, x = opti.variable(), [scale * opti.variable(2, N + (k < 5)) for k, scale in enumerate(cfg.scale)]
    for part in np.linspace(0, 1, cfg.points + 1):
        t = part * T / N  # behind the start of every interval
        here = [sum((t**i / factorial(i) * y[:, :N] for i, y in enumerate(x[k:])), ca.MX(0)) for k in range(6)]
        theta, dtheta, _, tau = flat_map.map(N)(*here[:5])
        for y, limit in zip((tau, dtheta, theta - here[0]) if part < 1 else (), cfg.limits, strict=False):
            opti.subject_to(opti.bounded(-1, ca.vec(y / ca.repmat(ca.DM(limit), 1, N)), 1))
    for k in range(5):  # here is the end of intervals now
        fixed = [x[k][:, 0] == ends[0] * (k == 0), x[k][:, -1] == ends[1] * (k == 0)]
        opti.subject_to([ca.vec(x[k][:, 1:] - here[k]) == 0, *fixed])
    opti.subject_to(opti.bounded(0.1, T, 20))
    for y, guess in ((T, 2.0), (x[0], np.linspace(*ends, N + 1).T)):
        opti.set_initial(y, guess)
    opti.minimize(T + cfg.smoothing * ca.sumsqr(x[5] / cfg.scale[5]) / N)
    options = {"print_time": False, "detect_simple_bounds": True}
    opti.solver("ipopt", options, {"print_level": 0, "sb": "yes", "mu_strategy": "adaptive"})
    found = opti.solve()
    return found.value(T), np.array([found.value(y)[:, :N] for y in x]), found.stats()["iter_count"]


def solve(run, cfg):
    arm = od.elastic.elastic_robot(od.robots.planar_arm(2), cfg.elastic[0], motor_inertia=cfg.elastic[1])
    limits = dict(zip(("motor_torque", "motor_speed", "deflection"), cfg.limits, strict=True))
    plan = od.elastic.plan_elastic(arm, *cfg.ends, nodes=cfg.nodes, interior=cfg.points - 1, **limits)
    T, x, iterations = fastest(cfg, od.function(arm, "elastic_flat_map"))
    run.facts |= {"opti [s]": T, "plan_elastic [s]": plan.duration, "iterations": iterations}
    run.check("time over that of plan_elastic", T / plan.duration, equals=1, within=2e-3)
    t, named = np.linspace(0, T, cfg.nodes + 1), {"joints": arm.links.coordinate_names, "units": ["rad"] * 2}
    motion = od.Trajectory(t, x.transpose(2, 0, 1), **named, robot=arm.links)
    own = od.elastic.ElasticPlan(arm, motion, plan.limits, T, {})
    for name, share in own.shares().items():
        run.check(f"{name}: largest share of its limit", share, below=1.004)
    for row in own.check().defects:
        run.check(f"{row.quantity}: miss of the full model under the motor torques", row.share, below=1e-6)
    run.check("largest jump", max(own.check().jumps.values()), below=1e-5)
    for what, miss in (("distance from", motion.q[[0, -1]] - cfg.ends), ("speed at", motion.v[[0, -1]])):
        run.check(f"{what} the ends", np.abs(miss).max(), below=1e-8)
    own.save(run.out / "motion.csv")
    motion.plot(run.out / "motion.png")


main = od.script(solve, Config(), quick={"nodes": 20})

if __name__ == "__main__":
    sys.exit(main())
