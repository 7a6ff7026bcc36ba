"""A Panda moves from one configuration to another in the shortest time, jerk, torque and rate of torque limited.

    minimise    T
    subject to  q(0) = q0,  q(T) = q1,  q' = q'' = 0 at both ends,  q twice (or three times) differentiable,
                |q'| <= v,  |q''| <= a,  |q'''| <= j,  |Q| <= tau,  |Q'| <= share dtau,    Q = M q'' + C q' + g.

With velocity, acceleration and jerk alone the optimum is known in closed form: no plan may be faster, and more
nodes come closer. A smaller rate of torque takes longer, and so does a smoother motion.
Sources: limits of the maker; Berscheid and Kroeger 2021 (the closed form; here by the package ruckig 0.19.4).
Run:    python problems/panda_point_to_point.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import numpy as np

import oc_dyn as od


@dataclass(frozen=True)
class Config:
    start: tuple = (0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4)  # [rad]
    goal: tuple = (1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6)
    closed_form: float = 0.92896  # [s] with velocity, acceleration and jerk alone
    nodes: tuple = (25, 50, 100)
    ratios: tuple = (1.042, 1.019, 1.0085)  # to stay below; the gap halves with the intervals
    shares: tuple = (1.0, 0.3, 0.1, 0.05)  # of the limits of the rate of torque
    n: int = 50  # nodes for these
    over: float = 0.005  # of a limit, between nodes
    fps: int = 25


def plans(cfg, panda):
    """{(kind, nodes or share): Trajectory}."""
    if min(cfg.shares) <= 0:
        raise od.LimitError(f"shares: {min(cfg.shares):g} of the limits of dtau allows no motion")

    def plan(continuity, nodes, **options):
        fixed = {"continuity": continuity, "nodes": nodes, "progress": False}
        return od.plan_point_to_point(panda, cfg.start, cfg.goal, **fixed, **options)

    motions = {("kinematic", n): plan(2, n, ignore=("tau", "dtau")) for n in cfg.nodes}
    motions |= {("torque rate", share): plan(2, cfg.n, scale={"dtau": share}) for share in cfg.shares}
    motions["smoother", 3] = plan(3, cfg.n, scale={"dtau": cfg.shares[1]})
    return motions


def check(run, cfg, panda, motions):
    for n, ratio in zip(cfg.nodes, cfg.ratios, strict=True):
        share = motions["kinematic", n].duration / cfg.closed_form
        run.check(f"{n} nodes: time over the closed form", share, above=1, below=ratio + 1e-4)
    times = [motions["torque rate", share].duration for share in cfg.shares]
    run.check("time added by each smaller rate of torque, least [s]", np.diff(times).min(), above=-1e-6)
    run.check("time added by a smoother motion [s]", motions["smoother", 3].duration - times[1], above=0)
    for (kind, x), motion in motions.items():
        report = motion.check()
        run.check(f"{kind} {x}: largest share of a limit between nodes", report.worst, below=1 + cfg.over)
        run.check(f"{kind} {x}: largest jump", max(report.jumps.values()), below=1e-6)
        run.check(f"{kind} {x}: distance from start and goal", max(report.ends.values()), below=1e-9)
    energy, motion = od.function(panda, "potential_energy"), motions["torque rate", cfg.shares[-1]]
    at, weights = np.polynomial.legendre.leggauss(6)
    h = np.diff(motion.t)[:, None]
    fine = motion.sample((motion.t[:-1, None] + h * (at + 1) / 2).ravel())
    work = np.sum((h * weights / 2).ravel() * np.sum(fine.tau * fine.v, axis=1))
    gained = float(energy(cfg.goal)) - float(energy(cfg.start))
    run.check("work of the torques over the energy gained", work / gained, equals=1, within=1e-8)


def draw(run, cfg, motions):
    """Share of the limits, time over nodes, time over the rate of torque."""
    share = cfg.shares[2]
    titles = f"largest share of limits, torque rate {share:g}", "time over the closed form, less 1"
    with run.figure("times.png", *titles, "shortest time [s]; line: closed form") as (used, nodes, rates):
        motion = motions["torque rate", share]
        fine = motion.both_sides(motion.duration / 600)
        for name, share_of in fine.utilization().items():
            used.plot(fine.t, share_of, label=name)
        gaps = [motions["kinematic", n].duration / cfg.closed_form - 1 for n in cfg.nodes]
        nodes.loglog(cfg.nodes, gaps, "o-", label="found")
        nodes.loglog(cfg.nodes, gaps[0] * cfg.nodes[0] / np.array(cfg.nodes), "k:", label="1 / nodes")
        nodes.set(xlabel="nodes")
        rates.semilogx(cfg.shares, [motions["torque rate", x].duration for x in cfg.shares], "o-")
        rates.axhline(cfg.closed_form, color="black", linewidth=0.8)
        rates.set(xlabel="share of the limit of the torque rate")


def solve(run, cfg):
    panda = od.robots.panda()
    motions = plans(cfg, panda)
    for (kind, x), motion in motions.items():
        run.say(f"{kind:12} {x:6g}  {motion.duration:.5f} s  {motion.info['iterations']:3} iterations")
    run.facts["times"] = {f"{kind} {x:g}": motion.duration for (kind, x), motion in motions.items()}
    check(run, cfg, panda, motions)
    motion = motions["torque rate", cfg.shares[2]]
    motion.save(run.out / "motion.csv")
    motion.animate(run.out / "motion.gif", fps=cfg.fps, size=(360, 360))
    draw(run, cfg, motions)


few = {"nodes": (25, 50), "ratios": (1.042, 1.019), "shares": (1.0, 0.3, 0.1), "n": 25, "over": 0.02, "fps": 5}
main = od.script(solve, Config(), quick=few)

if __name__ == "__main__":
    sys.exit(main())
