"""Inertial parameters of the Panda from a simulated measurement with noise, and torques predicted on another motion.

    tau = Y(q, v, dv) p = Y_b(q, v, dv) B p:    43 combinations B p of the 70 parameters p affect the torques.

An exciting motion within the limits is computed (IPOPT minimises the condition number of Y_b), torques are measured
along it with noise of 1 % of each joint's rms, and B p is estimated with its confidence intervals. From a wrong,
unphysical start, a physically consistent p (pseudo-inertias positive definite) is estimated that explains the torques.
The prediction is judged on a motion that was not used for the estimate.
Sources: Garofalo et al. 2013, eq. 16 (regressor); Gautier and Khalil 1990 (base parameters); Wensing, Kim and Slotine
2018, Rucker and Wensing 2022 (physical consistency).
Run:    python problems/panda_identification.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import numpy as np

import oc_dyn as od
from oc_dyn import identification as idn

JOINTS = range(1, 8)


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


def rms(x):
    return np.sqrt(np.mean(np.square(x), axis=1))


def measure(cfg, torques, motion, rng):
    """(t, q, v, dv, tau) along one period of a motion; tau (7, times) with noise."""
    t = np.arange(0.0, motion.period, cfg.dt)
    q, v, dv = motion.sample(t)
    tau = np.array(torques.map(t.size)(q, v, dv))
    return t, q, v, dv, tau + cfg.noise * rms(tau)[:, None] * rng.normal(size=tau.shape)


def wrong_start(cfg, robot, rng):
    """(70,) parameters to start from, far off and unphysical: a negative mass, negative tensors."""
    p = robot.parameters * (1 + cfg.wrong * rng.normal(size=robot.parameters.size))
    p[10] = -abs(p[10])
    p[44:50] = -abs(p[44:50])
    return p


def check(run, cfg, robot, motion, measured, predicted, estimate, start):
    q, v, _ = motion.sample(motion.period * np.linspace(0, 1, 3000))
    true = od.base_parameters(robot).values
    over = max((robot.limit("lower") - q.min(axis=1)).max(), (q.max(axis=1) - robot.limit("upper")).max())
    for i, error in zip(JOINTS, rms(predicted - measured) / rms(measured), strict=True):
        run.check(f"joint {i}: rms error of prediction", error, below=cfg.prediction)
    error = np.linalg.norm(predicted - measured) / np.linalg.norm(measured)
    run.check("all joints: rms error of prediction", error, below=cfg.prediction)
    run.check("number of base parameters", estimate.base.rank, equals=cfg.rank)
    run.check("condition number of the exciting motion", idn.condition(robot, motion), below=cfg.conditioned)
    run.check("exciting motion: excess over the limits of position [rad]", over, below=1e-9)
    share = (np.abs(v).max(axis=1) / robot.limit("velocity")).max()
    run.check("exciting motion: velocity, share of its limit", share, below=1)
    missed = np.mean(np.abs(estimate.values - true) > estimate.interval)
    run.check("95 % confidence intervals that miss, fraction", missed, below=0.2)
    run.check("start: the parameters are not physical", holds=not idn.is_physical(start))
    run.check("estimate: the parameters are physical", holds=idn.is_physical(estimate.parameters))


def solve(run, cfg):
    robot, rng = od.robots.panda(), np.random.default_rng(cfg.seed)
    torques = od.function(robot, "inverse_dynamics")
    settings = {"period": cfg.period, "harmonics": cfg.harmonics, "iterations": cfg.iterations}
    motion = idn.exciting_motion(robot, seed=cfg.seed, **settings)
    start = wrong_start(cfg, robot, rng)
    _, *measured = measure(cfg, torques, motion, rng)
    estimate = idn.identify(robot, *measured, prior=start)
    period, harmonics, seed = cfg.held_out
    other = idn.exciting_motion(robot, period=period, harmonics=harmonics, seed=seed, iterations=0)
    t, *states, measured = measure(cfg, torques, other, rng)
    predicted = estimate.predict(*states)
    check(run, cfg, robot, motion, measured, predicted, estimate, start)
    run.facts |= {"gap of the rank": estimate.base.gap, "physical fit": estimate.physical_fit}

    base = estimate.base
    columns = {"parameter": base.names, "true": base.values, "estimate": estimate.values, "interval": estimate.interval}
    run.table("parameters.csv", {**columns, "physical": base.of(estimate.parameters)})
    titles = "torques of joints 1 to 4 [Nm]", "of joints 5 to 7 [Nm]; thick: measured", "error / rms"
    with run.figure("prediction.png", *titles, size=(15, 5)) as (large, small, errors):
        for i, x, y in zip(JOINTS, measured, predicted, strict=True):
            axis = large if i < 5 else small
            axis.plot(t, x, color="0.75", linewidth=3)
            axis.plot(t, y, color=f"C{i}", linewidth=1, label=f"joint {i}, predicted")
        errors.plot(t, ((predicted - measured) / rms(measured)[:, None]).T, linewidth=0.6)
    t = motion.period * np.linspace(0, 1, 600)
    with run.figure("exciting_motion.png", "q [rad]", "v [rad/s]", "dv [rad/s2]") as axes:
        for axis, x in zip(axes, motion.sample(t), strict=True):
            axis.plot(t, x.T, label=[f"joint {i}" for i in JOINTS] if axis is axes[0] else None)


main = od.script(solve, Config(), quick={"iterations": 6})

if __name__ == "__main__":
    sys.exit(main())
