"""A Panda follows a path of its joints as fast as its limits allow; the smaller the rate of torque, the slower.

    minimise    T
    subject to  q(t) = path(s(t)),  s from 0 to 1, s' >= 0, s and q at rest at both ends, twice differentiable in time,
                |q'| <= v,  |q''| <= a,  |q'''| <= j,  |Q| <= tau,  |Q'| <= share dtau,    Q = M q'' + C q' + g.

With limits of velocity and acceleration alone the time approaches that of the second-order problem, which is known from
another kind of method. Then all limits of the maker hold, those of jerk, torque and rate of torque too, the last one at
several shares of its value.
Sources: limits of the maker; Pham and Pham 2018 (the method behind the known time, as in the package toppra).
Run:    python problems/panda_path_following.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import numpy as np

import oc_dyn as od


@dataclass(frozen=True)
class Config:
    way: tuple = (  # [rad]
        (0.0, -0.785398163397, 0.0, -2.356194490192, 0.0, 1.570796326795, 0.785398163397),
        (1.05, -0.492699081699, -0.1, -2.078097245096, 0.65, 2.185398163397, 0.492699081699),
        (1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6),
    )
    at: tuple = (0.0, 0.5, 1.0)  # s of these; the path through three is a parabola
    nodes: tuple = (50, 100, 200)
    second_order: float = 1.20714  # [s] with velocity and acceleration alone: toppra 0.6.10, 401 grid points
    ratios: tuple = (1.0197, 1.0094, 1.0044)  # to stay below, one for each of nodes
    shares: tuple = (1.0, 0.6, 0.3, 0.2, 0.1, 0.05, 0.02)  # of the limits of the rate of torque
    n: int = 100  # nodes for these
    over: float = 0.0015  # of a limit, between nodes
    fps: int = 25


def plans(cfg, panda):
    """{("second order", nodes) or ("torque rate", share): PathMotion}."""
    if min(cfg.shares) <= 0:
        raise od.LimitError(f"shares: {min(cfg.shares):g} of the limits of dtau allows no motion")
    motions, rated = {}, {}
    for share in cfg.shares:  # first, as these have limits of position that may refuse the path
        limits = {"dtau": share}
        rated["torque rate", share] = od.plan_along_path(panda, cfg.way, at=cfg.at, nodes=cfg.n, scale=limits)
    for n in cfg.nodes:
        no_more = ("q", "d2v", "tau", "dtau")
        motions["second order", n] = od.plan_along_path(panda, cfg.way, at=cfg.at, nodes=n, ignore=no_more)
    return motions | rated


def check(run, cfg, panda, motions):
    for n, ratio in zip(cfg.nodes, cfg.ratios, strict=True):
        over = motions["second order", n].duration / cfg.second_order
        run.check(f"{n} nodes: time over that of the second order", over, above=1, below=ratio)
    times = [motions["torque rate", share].duration for share in cfg.shares]
    run.check("time added by each smaller rate of torque, least [s]", np.diff(times).min(), above=0)
    for (kind, x), motion in motions.items():
        report = motion.check()
        run.check(f"{kind} {x}: largest share of a limit between nodes", report.worst, below=1 + cfg.over)
        run.check(f"{kind} {x}: largest jump of q, q', q''", max(report.jumps.values()), below=1e-5)
    energy, motion = od.function(panda, "potential_energy"), motions["torque rate", cfg.shares[-1]]
    fine = motion.sample(motion.duration / 4000)
    power = np.sum(fine.tau * fine.v, axis=1)
    work = fine.t[1] / 3 * (power[0] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum() + power[-1])
    gained = float(energy(fine.q[-1])) - float(energy(fine.q[0]))
    run.check("work of the torques over the energy gained", work / gained, equals=1, within=1e-6)
    s, (a, b, c) = motion.shares(fine.t)[0][:, None], np.array(cfg.way)
    exact = a * (1 - s) * (1 - 2 * s) + b * 4 * s * (1 - s) + c * s * (2 * s - 1)
    run.check("distance from the path [rad]", np.abs(fine.q - exact).max(), below=1e-12)


def draw(run, cfg, motions):
    """Phase plane, used shares of the limits, time over the torque rate."""
    share = cfg.shares[-3]
    titles = "phase plane", f"share of limits, torque rate {share:g}", "shortest time [s]; line: second order"
    with run.figure("path.png", *titles) as (phase, used, times):
        for kind, x in [("second order", cfg.nodes[-1]), *(("torque rate", x) for x in cfg.shares[::2])]:
            motion = motions[kind, x]
            s, speed, *_ = motion.shares(np.linspace(0, motion.duration, 600))
            phase.plot(s, speed, label=f"{kind} {x:g}" if kind == "torque rate" else kind)
        phase.set(xlabel="$s$", ylabel="$s'$ [1/s]")
        motion = motions["torque rate", share]
        fine = motion.both_sides(motion.duration / 600)
        for name, share_of in fine.utilization().items():
            used.plot(fine.t, share_of, label=name)
        times.semilogx(cfg.shares, [motions["torque rate", x].duration for x in cfg.shares], "o-")
        times.axhline(cfg.second_order, color="black", linewidth=0.8)
        times.set(xlabel="share of the limit of the torque rate")


def solve(run, cfg):
    panda = od.robots.panda()
    motions = plans(cfg, panda)
    for (kind, x), motion in motions.items():
        run.say(f"{kind:12} {x:6g}  {motion.duration:.5f} s  {motion.info['iterations']:3} iterations")
    run.facts["times"] = {f"{kind} {x:g}": motion.duration for (kind, x), motion in motions.items()}
    check(run, cfg, panda, motions)
    slow = motions["torque rate", cfg.shares[-1]]
    slow.save(run.out / "motion.csv", dt=0.01)
    slow.animate(run.out / "motion.gif", fps=cfg.fps, size=(360, 360))
    draw(run, cfg, motions)


few = {"nodes": (50, 100), "ratios": (1.0197, 1.0094), "shares": (1.0, 0.3, 0.1, 0.05), "n": 50, "fps": 5}
main = od.script(solve, Config(), quick=few)

if __name__ == "__main__":
    sys.exit(main())
