"""The fastest motion of a Panda under limits of the torque rate, by hand in casadi.Opti on the toolkit's Functions.

    minimise    T
    subject to  q(0) = q0,  q(T) = q1,  q' = q'' = 0 at both ends,  q''' = j constant on each of N equal intervals,
                |q'| <= v,  |q''| <= a,  |j| <= j_max,  |Q| <= tau,  |Q'| <= share dtau,    (Q, Q') = od.function(...)

Torques are bounded at nodes, their rate on both sides. plan_point_to_point finds the same optimum; see its problem.
Run:    python problems/opti_panda_torque_rate.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass
from math import factorial

import casadi as ca
import numpy as np

import oc_dyn as od


@dataclass(frozen=True)
class Config:
    ends: tuple = ((0, -0.785398, 0, -2.356194, 0, 1.570796, 0.785398), (1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6))
    share: float = 0.1  # of the limits of the torque rate
    nodes: int = 50


def fastest(cfg, limits, dynamics):
    """(T, [q (7, N + 1), q', q'', j (7, N)], iterations)."""
    N, opti = cfg.nodes, ca.Opti()
    T = opti.variable()
    h, x = T / N, [scale * opti.variable(7, N + (k < 3)) for k, scale in enumerate((1, 1, 10, 1000))]
    first, last = [y[:, :N] for y in x], [y[:, 1:] for y in x[:3]]
    for k in range(3):
        start, goal = np.array(cfg.ends) * (k == 0)
        after = sum((h**i / factorial(i) * y for i, y in enumerate(first[k:])), ca.MX(0))  # an exact step
        opti.subject_to([ca.vec(last[k] - after) == 0, x[k][:, 0] == start, x[k][:, -1] == goal])
    (tau, dtau), (end, rate) = dynamics.map(N)(*first), dynamics.map(N)(*last, first[3])
    middle = first[1] + h / 2 * first[2]  # a Bernstein coefficient, so that q' is bounded everywhere
    bounded = {"v": (x[1], middle), "dv": (x[2],), "d2v": (x[3],), "tau": (tau, end[:, -1]), "dtau": (dtau, rate)}
    for name, several in bounded.items():
        y = ca.horzcat(*several)
        opti.subject_to(opti.bounded(-1, ca.vec(y / ca.repmat(getattr(limits, name), 1, y.shape[1])), 1))
    opti.subject_to(opti.bounded(np.tile(limits.q[0], N + 1), ca.vec(x[0]), np.tile(limits.q[1], N + 1)))
    opti.subject_to(opti.bounded(0.1, T, 20))
    for y, guess in ((T, 2.0), (x[0], np.linspace(*cfg.ends, N + 1).T)):
        opti.set_initial(y, guess)
    opti.minimize(T + 1e-5 * ca.sumsqr(x[3] / ca.repmat(limits.d2v, 1, N)) / N)  # for joints that have time to spare
    quiet = {"print_level": 0, "sb": "yes", "mu_strategy": "adaptive"}
    opti.solver("ipopt", {"print_time": False, "detect_simple_bounds": True}, quiet)
    found = opti.solve()
    return found.value(T), [found.value(y) for y in x], found.stats()["iter_count"]


def solve(run, cfg):
    panda = od.robots.panda()
    limits = od.Limits.of(panda).scaled(dtau=cfg.share)
    plan = od.plan_point_to_point(panda, *cfg.ends, limits=limits, continuity=2, nodes=cfg.nodes, refinements=0)
    T, x, iterations = fastest(cfg, limits, od.function(panda, "inverse_dynamics", order=1))
    pieces = np.array([y[:, : cfg.nodes] for y in x]).transpose(2, 0, 1)
    named = {"joints": panda.coordinate_names, "units": ["rad"] * 7, "robot": panda, "limits": limits}
    motion = od.Trajectory(np.linspace(0, T, cfg.nodes + 1), pieces, **named)
    run.facts |= {"opti [s]": T, "plan_point_to_point [s]": plan.duration, "iterations": iterations}
    run.check("time over that of plan_point_to_point", T / plan.duration, equals=1, within=1e-3)
    run.check("time over the least without limits of torque", T / 0.92896, above=1)
    for name, share in motion.utilization().items():
        run.check(f"{name}: largest share of its limit at nodes", share.max(), below=1 + 1e-6)
    run.check("largest share of a limit between nodes", motion.check().worst, below=1.002)
    run.check("largest jump", max(motion.check().jumps.values()), below=1e-6)
    for what, miss in (("distance from", motion.q[[0, -1]] - cfg.ends), ("speed at", motion.v[[0, -1]])):
        run.check(f"{what} the ends", np.abs(miss).max(), below=1e-7)
    motion.save(run.out / "motion.csv")
    motion.plot(run.out / "motion.png")


main = od.script(solve, Config(), quick={"nodes": 20})

if __name__ == "__main__":
    sys.exit(main())
