"""A Panda moves from one configuration to another in the shortest time, jerk, torque and rate of torque limited.

    minimise    T
    subject to  q(0) = q0,  q(T) = q1,  q' = q'' = 0 at both ends,  q twice (or three times) differentiable,
                |q'| <= v,  |q''| <= a,  |q'''| <= j,  |Q| <= tau,  |Q'| <= share dtau,    Q = M q'' + C q' + g.

With velocity, acceleration and jerk alone the optimum is known in closed form: no plan may be faster; more nodes come
closer. The less the torques may change, the longer it takes. A smoother motion takes longer, too.
Sources: limits of the maker; Berscheid and Kroeger 2021 (the closed form; here by the package ruckig 0.19.4).
Run:    python problems/panda_point_to_point.py [--quick] [--quiet] [--out DIR]
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
    start: tuple = (0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4)  # [rad]
    goal: tuple = (1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6)
    closed_form: float = 0.92896  # [s] with velocity, acceleration and jerk alone
    nodes: tuple = (25, 50, 100)
    ratios: tuple = (1.042, 1.019, 1.0085)  # to stay below; the gap halves with the intervals
    shares: tuple = (1.0, 0.3, 0.1, 0.05)  # of the limits of the rate of torque
    n: int = 50  # nodes for these
    over: float = 0.005  # of a limit, between nodes
    fps: int = 25


# -- problem --------------------------------------------------------------------------------------------------


def solve(cfg, panda):
    """{(kind, nodes or share): Trajectory}."""
    found = {}

    def plan(**options):
        return od.plan_point_to_point(panda, cfg.start, cfg.goal, progress=False, **options)

    for n in cfg.nodes:
        found["kinematic", n] = plan(continuity=2, nodes=n, ignore=("tau", "dtau"))
    for share in cfg.shares:
        found["torque rate", share] = plan(continuity=2, nodes=cfg.n, scale={"dtau": share})
    found["smoother", 3] = plan(continuity=3, nodes=cfg.n, scale={"dtau": cfg.shares[1]})
    return found


# -- checks ---------------------------------------------------------------------------------------------------


def check(cfg, panda, found):
    """{what: (error, bound)}."""
    out = {}
    for n, ratio in zip(cfg.nodes, cfg.ratios, strict=True):
        share = found["kinematic", n].duration / cfg.closed_form
        out[f"{n} nodes: time over the closed form"] = share, ratio + 1e-4
        out[f"{n} nodes: closed form over time"] = 1 / share, 1.0
    times = [found["torque rate", share].duration for share in cfg.shares]
    out["largest gain of time by a smaller rate of torque [s]"] = -np.diff(times).min(), 1e-6
    out["gain of time by a smoother motion [s]"] = times[1] - found["smoother", 3].duration, 0.0
    for (kind, x), motion in found.items():
        report = motion.check()
        out[f"{kind} {x}: largest share of a limit between nodes"] = report.worst, 1 + cfg.over
        out[f"{kind} {x}: largest jump"] = max(report.jumps.values()), 1e-6
        out[f"{kind} {x}: start and goal missed by"] = max(report.ends.values()), 1e-9
    energy, motion = od.function(panda, "potential_energy"), found["torque rate", cfg.shares[-1]]
    at, weights = np.polynomial.legendre.leggauss(6)
    h = np.diff(motion.t)[:, None]
    fine = motion.sample((motion.t[:-1, None] + h * (at + 1) / 2).ravel())
    work = np.sum((h * weights / 2).ravel() * np.sum(fine.tau * fine.v, axis=1))
    gained = float(energy(cfg.goal)) - float(energy(cfg.start))
    out["work of the torques less the energy gained, relative"] = abs(work / gained - 1), 1e-8
    return {what: (float(e), b) for what, (e, b) in out.items()}


# -- figures and table ----------------------------------------------------------------------------------------


def plot(cfg, found, path):
    """Share of the limits, time over nodes, time over the rate of torque."""
    figure = Figure(figsize=(12, 4), layout="constrained")
    used, nodes, rates = figure.subplots(1, 3)
    motion = found["torque rate", cfg.shares[2]]
    fine = motion.both_sides(motion.duration / 600)
    for name in ("v", "dv", "d2v", "tau", "dtau"):
        used.plot(fine.t, np.abs(getattr(fine, name) / getattr(motion.limits, name)).max(axis=1), label=name)
    gaps = [found["kinematic", n].duration / cfg.closed_form - 1 for n in cfg.nodes]
    nodes.loglog(cfg.nodes, gaps, "o-", label="found")
    nodes.loglog(cfg.nodes, gaps[0] * cfg.nodes[0] / np.array(cfg.nodes), "k:", label="1 / nodes")
    rates.semilogx(cfg.shares, [found["torque rate", x].duration for x in cfg.shares], "o-")
    rates.axhline(cfg.closed_form, color="black", linewidth=0.8)
    used.set(title=f"largest share of limits, torque rate {cfg.shares[2]:g}", xlabel="time [s]")
    nodes.set(title="time over the closed form, less 1", xlabel="nodes")
    rates.set(title="shortest time [s]; line: closed form", xlabel="share of the limit of the torque rate")
    used.legend(fontsize="small")
    nodes.legend(fontsize="small")
    for axis in (used, nodes, rates):
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=90)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/panda_point_to_point"), help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer nodes, limits and pictures")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    few = {"nodes": (25, 50), "ratios": (1.042, 1.019), "shares": (1.0, 0.3, 0.1), "n": 25, "over": 0.02, "fps": 5}
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

    motion = found["torque rate", cfg.shares[2]]
    motion.save(options.out / "motion.csv")
    motion.animate(options.out / "motion.gif", fps=cfg.fps, size=(360, 360))
    plot(cfg, found, options.out / "times.png")
    command = ["python", "problems/panda_point_to_point.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "times": {f"{kind} {x:g}": m.duration for (kind, x), m in found.items()}}
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
