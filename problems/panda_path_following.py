"""A Panda follows a path of its joints as fast as its limits allow, and slower the less its torques may jerk.

    minimise    T
    subject to  q(t) = path(s(t)),  s from 0 to 1, s' >= 0, s and q at rest at both ends, twice differentiable in time,
                |q'| <= v,  |q''| <= a,  |q'''| <= j,  |Q| <= tau,  |Q'| <= share dtau,    Q = M q'' + C q' + g.

With velocity and acceleration alone the time comes to that of the second-order problem, which is known from a method of
another kind; with the limits of the maker, jerk, torque and rate of torque join; then the last is cut to shares of it.
Sources: limits of the maker; Pham and Pham 2018 (the method behind the known time, as in the package toppra).
Run:    python problems/panda_path_following.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import oc_dyn as od
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------


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


# -- problem --------------------------------------------------------------------------------------------------


def solve(cfg, panda):
    """{("second order", nodes) or ("torque rate", share): PathMotion}."""
    found = {}
    for n in cfg.nodes:
        no_more = ("q", "d2v", "tau", "dtau")
        found["second order", n] = od.plan_along_path(panda, cfg.way, at=cfg.at, nodes=n, ignore=no_more)
    for share in cfg.shares:
        limits = {"dtau": share}
        found["torque rate", share] = od.plan_along_path(panda, cfg.way, at=cfg.at, nodes=cfg.n, scale=limits)
    return found


# -- checks ---------------------------------------------------------------------------------------------------


def check(cfg, panda, found):
    """{what: (error, bound)}."""
    out = {}
    for n, ratio in zip(cfg.nodes, cfg.ratios, strict=True):
        out[f"{n} nodes: time over that of the second order"] = (
            found["second order", n].duration / cfg.second_order,
            ratio,
        )
        out[f"{n} nodes: the other way round"] = cfg.second_order / found["second order", n].duration, 1.0
    times = [found["torque rate", share].duration for share in cfg.shares]
    out["largest gain of time by a smaller rate of torque [s]"] = -np.diff(times).min(), 0.0
    for (kind, x), motion in found.items():
        report = motion.check()
        out[f"{kind} {x}: largest share of a limit between nodes"] = report.worst, 1 + cfg.over
        out[f"{kind} {x}: largest jump of q, q', q''"] = max(report.jumps.values()), 1e-5
    energy = od.function(panda, "potential_energy")
    motion = found["torque rate", cfg.shares[-1]]
    fine = motion.sample(motion.duration / 4000)
    power = np.sum(fine.tau * fine.v, axis=1)
    work = fine.t[1] / 3 * (power[0] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum() + power[-1])
    gained = float(energy(fine.q[-1])) - float(energy(fine.q[0]))
    out["work of the torques less the energy gained, relative"] = abs(work / gained - 1), 1e-6
    s = motion.shares(fine.t)[0][:, None]
    a, b, c = (np.array(x) for x in cfg.way)
    exact = a * (1 - s) * (1 - 2 * s) + b * 4 * s * (1 - s) + c * s * (2 * s - 1)
    out["distance from the path [rad]"] = np.abs(fine.q - exact).max(), 1e-12
    return {what: (float(e), b) for what, (e, b) in out.items()}


# -- figures and table ----------------------------------------------------------------------------------------


def plot(cfg, found, path):
    """Phase plane, what each limit is used, time over the torque rate."""
    figure = Figure(figsize=(12, 4), layout="constrained")
    phase, used, times = figure.subplots(1, 3)
    for key in [("second order", cfg.nodes[-1]), *(("torque rate", x) for x in cfg.shares[::2])]:
        motion = found[key]
        s = motion.shares(np.linspace(0, motion.duration, 600))
        phase.plot(s[0], s[1], label=f"{key[0]} {key[1]:g}" if key[0] == "torque rate" else "second order")
    motion = found["torque rate", cfg.shares[-3]]
    fine, limits = motion.both_sides(motion.duration / 600), motion.limits
    for name in ("v", "dv", "d2v", "tau", "dtau"):
        used.plot(fine.t, np.abs(getattr(fine, name) / getattr(limits, name)).max(axis=1), label=name)
    times.semilogx(cfg.shares, [found["torque rate", x].duration for x in cfg.shares], "o-")
    times.axhline(cfg.second_order, color="black", linewidth=0.8)
    phase.set(title="phase plane", xlabel="$s$", ylabel="$s'$ [1/s]")
    used.set(title=f"share of limits, torque rate {cfg.shares[-3]:g}", xlabel="time [s]")
    times.set(title="shortest time [s]; line: second order", xlabel="share of the limit of the torque rate")
    phase.legend(fontsize="small")
    used.legend(fontsize="small")
    for axis in (phase, used, times):
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=90)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/panda_path_following"), help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer nodes, limits and pictures")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    few = {"nodes": (50, 100), "ratios": (1.0197, 1.0094), "shares": (1.0, 0.3, 0.1, 0.05), "n": 50, "fps": 5}
    cfg = Config(**few) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    panda = od.robots.panda()
    found = solve(cfg, panda)
    for (kind, x), motion in found.items():
        say(f"{kind:12} {x:6g}  {motion.duration:.5f} s  {motion.info['iterations']:3} iterations")
    checks = check(cfg, panda, found)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:62} {error:10.3e}  {'is' if error < bound else 'IS NOT'} below {bound:.3e}")

    slow = found["torque rate", cfg.shares[-1]]
    slow.save(options.out / "motion.csv", dt=0.01)
    slow.animate(options.out / "motion.gif", fps=cfg.fps, size=(360, 360))
    plot(cfg, found, options.out / "path.png")
    command = ["python", "problems/panda_path_following.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "times": {f"{kind} {x:g}": m.duration for (kind, x), m in found.items()}}
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
