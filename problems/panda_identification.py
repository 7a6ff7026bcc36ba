"""Inertial parameters of the Panda from a simulated measurement with noise, and torques predicted on another motion.

    tau = Y(q, v, dv) p = Y_b(q, v, dv) B p:    43 of 70 combinations B p of the parameters p show in the torques.

An exciting motion is found within the limits (the condition number of Y_b minimised by IPOPT), torques are measured
along it with noise of 1 % of each joint's rms, B p is estimated with its confidence intervals, and p is
found that explains the torques and that bodies can have (pseudo-inertias positive definite), from a start that is wrong
and that no body can have. A motion that was not used then shows what the prediction is worth.
Sources: Garofalo et al. 2013, eq. 16 (regressor); Gautier and Khalil 1990 (base parameters); Wensing, Kim and Slotine
2018, Rucker and Wensing 2022 (physical consistency).
Run:    python problems/panda_identification.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import oc_dyn as od
from oc_dyn.identification import condition, exciting_motion, identify, is_physical
from oc_dyn.regressor.base_parameters import base_parameters
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    period: float = 10.0  # of the exciting motion [s]
    harmonics: int = 5
    iterations: int = 40  # of IPOPT
    dt: float = 0.004  # between samples [s]
    noise: float = 0.01  # standard deviation of the torques' noise, of the rms of each joint's torque
    seed: int = 1
    held_out: tuple = (7.0, 4, 5)  # period, harmonics and seed of the other motion, a random one
    wrong: float = 0.4  # relative error of the parameters to start from; two bodies are unphysical besides
    prediction: float = 0.03  # bound: rms error on the held-out motion, of the rms of each joint's measured torque
    conditioned: float = 60.0  # bound: condition number
    rank: int = 43  # base parameters, known


JOINTS = range(1, 8)

# -- model and simulated measurement --------------------------------------------------------------------------


def build(cfg):
    """The Panda and casadi.Function (q, v, dv) -> tau."""
    panda = od.robots.panda()
    return panda, od.function(panda, "inverse_dynamics")


def measure(cfg, torques, motion, rng):
    """(t, q, v, dv, tau) along one period of a motion; tau (7, times) with noise."""
    t = np.arange(0.0, motion.period, cfg.dt)
    q, v, dv = motion.sample(t)
    tau = np.array(torques.map(t.size)(q, v, dv))
    return t, q, v, dv, tau + cfg.noise * _rms(tau)[:, None] * rng.normal(size=tau.shape)


def wrong_start(cfg, robot, rng):
    """(70,) parameters to start from that are far off, and not those of any body: a negative mass, negative tensors."""
    p = robot.parameters * (1 + cfg.wrong * rng.normal(size=robot.parameters.size))
    p[10] = -abs(p[10])
    p[44:50] = -abs(p[44:50])
    return p


def _rms(x):
    return np.sqrt(np.mean(np.square(x), axis=1))


# -- solution and checks --------------------------------------------------------------------------------------


def solve(cfg, robot, torques):
    """(exciting motion, held-out measurement, prediction of it, identification, start)."""
    rng = np.random.default_rng(cfg.seed)
    settings = {"period": cfg.period, "harmonics": cfg.harmonics, "iterations": cfg.iterations}
    motion = exciting_motion(robot, seed=cfg.seed, **settings)
    start = wrong_start(cfg, robot, rng)
    _, q, v, dv, tau = measure(cfg, torques, motion, rng)
    found = identify(robot, q, v, dv, tau, prior=start)
    period, harmonics, seed = cfg.held_out
    other = exciting_motion(robot, period=period, harmonics=harmonics, seed=seed, iterations=0)
    held_out = measure(cfg, torques, other, rng)
    return motion, held_out, found.predict(*held_out[1:4]), found, start


def check(cfg, robot, motion, held_out, predicted, found, start):
    """{what: (error, bound)}."""
    measured, t = held_out[4], motion.period * np.linspace(0, 1, 3000)
    q, v, _ = motion.sample(t)
    true = base_parameters(robot).values
    outside = np.mean(np.abs(found.values - true) > found.interval)
    over = max((robot.limit("lower") - q.min(axis=1)).max(), (q.max(axis=1) - robot.limit("upper")).max())
    out = {
        f"joint {i}: rms error of prediction": (e, cfg.prediction)
        for i, e in zip(JOINTS, _rms(predicted - measured) / _rms(measured), strict=True)
    }
    out["all joints: rms error of prediction"] = (
        float(np.linalg.norm(predicted - measured) / np.linalg.norm(measured)),
        cfg.prediction,
    )
    out["number of base parameters: difference from the known one"] = abs(found.base.rank - cfg.rank), 0.5
    out["condition number of the exciting motion"] = condition(robot, motion), cfg.conditioned
    out["exciting motion: range of positions left [rad]"] = over, 1e-9
    out["exciting motion: velocity, of its limit"] = (np.abs(v).max(axis=1) / robot.limit("velocity")).max(), 1.0
    out["95 % confidence intervals that miss"] = outside, 0.2
    out["start: physical (0 no)"] = float(is_physical(start)), 0.5
    out["found: unphysical (0 no)"] = float(not is_physical(found.parameters)), 0.5
    return out


# -- figures and table ----------------------------------------------------------------------------------------


def plot(held_out, predicted, out):
    """prediction.png: torques measured and predicted on the held-out motion, and their difference."""
    t, measured = held_out[0], held_out[4]
    figure = Figure(figsize=(11, 9), layout="constrained")
    panels = figure.subplots(4, 2, sharex=True).ravel()
    for i, axes in zip(JOINTS, panels, strict=False):
        axes.plot(t, measured[i - 1], color="0.6", linewidth=2.2, label="measured")
        axes.plot(t, predicted[i - 1], color="C0", linewidth=1.0, label="predicted")
        axes.set(ylabel=f"$\\tau_{i}$ [Nm]")
    panels[0].legend(fontsize="small")
    panels[7].plot(t, ((predicted - measured) / _rms(measured)[:, None]).T, linewidth=0.6)
    panels[7].set(ylabel="error / rms")
    for axes in panels:
        axes.grid(alpha=0.3)
        axes.margins(x=0)
    for axes in panels[6:]:
        axes.set_xlabel("$t$ [s]")
    figure.suptitle("Panda: torques on a motion that was not used to identify it")
    figure.savefig(out / "prediction.png", dpi=85)


def plot_motion(motion, out):
    """exciting_motion.png"""
    t = motion.period * np.linspace(0, 1, 600)
    figure = Figure(figsize=(7, 6), layout="constrained")
    for axes, x, label in zip(figure.subplots(3, sharex=True), motion.sample(t), ("q", "v", "dv"), strict=True):
        axes.plot(t, x.T, linewidth=1.2)
        axes.set(ylabel=label)
        axes.grid(alpha=0.3)
    figure.axes[-1].set_xlabel("$t$ [s]")
    figure.legend(figure.axes[0].lines, [f"joint {i}" for i in JOINTS], loc="outside lower center", ncols=7)
    figure.suptitle("Exciting motion of the Panda")
    figure.savefig(out / "exciting_motion.png", dpi=85)


def write(robot, found, path):
    """Table of the base parameters: true, estimated, half width of the 95 % interval."""
    lines = ["parameter,true,estimate,interval,physical"]
    base = found.base
    columns = base.names, base.values, found.values, found.interval, base.of(found.parameters)
    lines += [f"{name},{a:.8g},{b:.8g},{c:.3g},{d:.8g}" for name, a, b, c, d in zip(*columns, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/panda_identification"), help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer iterations")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(iterations=6) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    robot, torques = build(cfg)
    motion, held_out, predicted, found, start = solve(cfg, robot, torques)
    checks = check(cfg, robot, motion, held_out, predicted, found, start)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:58} {error:9.2e}  {'is' if error < bound else 'IS NOT'} below {bound:.1e}")

    write(robot, found, options.out / "parameters.csv")
    plot(held_out, predicted, options.out)
    plot_motion(motion, options.out)
    command = ["python", "problems/panda_identification.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "gap of the rank": found.base.gap, "physical fit": found.physical_fit}
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
