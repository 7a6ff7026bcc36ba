"""Stiffness, motor inertia and friction of an arm of two elastic joints, from recordings as a laboratory gives them.

    rho (B theta'' + d theta' + f tanh(theta' / s) + phi(z) ) = tau_m,    M(q) q'' + n(q, q') = phi(z),    z = theta - q

1. Recordings of a minute in all, 1 kHz, encoders of 17 bits on both sides of the springs, motor torques measured with
   noise of 0.5 % of full scale: a planned motion (D-optimal), a chirp, steps, and links moved by hand, motors off.
   The laws know the robot badly. The spring of joint 2 stiffens: phi = c1 z + c2 z^3.
2. One seed: estimates with intervals; the same with unknown links, friction of springs and gear ratios besides.
3. A hundred seeds of noise and of the encoders' zeros: errors, and how often the 95 % intervals hold: all together, and
   of each parameter as often as chance allows, if each holds with 95 %.
4. Which recordings tell what: each alone, or the names of what it does not tell.
5. Torques and spring deflections on a held-out motion: with the estimate, and with the values to start from.
The arm is ours: two links of 0.4 m and 3 kg in the vertical plane, the hand moves joint angles as prescribed.
Run:    python problems/sea_identification.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass, replace
from math import comb

import casadi as ca
import numpy as np

import oc_dyn as od
from oc_dyn import elastic as el


@dataclass(frozen=True)
class Config:
    length: float = 0.4  # of each link [m]
    mass: float = 3.0  # of each link [kg], a slender rod
    stiffness: tuple = (500.0, 250.0)  # [Nm/rad], of joint 2 at rest
    cubic: float = 3e4  # of joint 2 [Nm/rad3]
    motor_inertia: tuple = (0.3, 0.2)  # [kg m2]
    motor_damping: tuple = (1.0, 0.5)  # [Nm s/rad]
    motor_friction: tuple = (1.5, 0.8)  # [Nm]
    guess: float = 0.3  # relative error of what the laws know
    full_scale: tuple = (60.0, 25.0)  # of the motor torques, which they keep [Nm]
    torque_noise: float = 0.005  # standard deviation, of full scale
    bits: int = 17  # of the encoders
    dt: float = 1e-3  # [s]
    planned: float = 30.0  # [s]
    harmonics: int = 40  # of the planned motion: up to 1.33 Hz
    iterations: int = 15  # of IPOPT
    chirp: float = 12.0  # [s]
    steps: float = 8.0  # [s]
    by_hand: float = 12.0  # [s]
    held_out: float = 8.0  # [s]
    kp: float = 200.0  # of the motor loops [Nm/rad]
    kd: float = 20.0  # [Nm s/rad]
    jitter: tuple = (2e-5, 5e-3)  # what the loops measure angles and speeds with [rad, rad/s]
    seeds: int = 100
    error: float = 0.01  # bound: relative error of every parameter, every seed
    hits: tuple = (0.90, 0.99)  # bounds: share of seeds inside the intervals, mean of all parameters
    bias: float = 0.7  # bound: mean error of all seeds, by the deviation of one; 95 % intervals then hold with 89 %
    prediction: float = 0.02  # bound: error of predicted torques on the held-out motion, relative


def hardening(cfg):
    """Law of the spring of joint 2."""
    return lambda z: cfg.stiffness[1] * z + cfg.cubic * z**3


def build(cfg):
    """The arm as it is."""
    springs = [cfg.stiffness[0], el.NonlinearSpring(hardening(cfg))]
    motors = {"motor_inertia": cfg.motor_inertia, "motor_damping": cfg.motor_damping}
    links = od.robots.planar_arm(2, cfg.length, cfg.mass)
    return el.elastic_robot(links, springs, **motors, motor_friction=cfg.motor_friction)


def known(cfg):
    """The arm as the laws know it."""
    f = np.array([1 - cfg.guess, 1 + cfg.guess])
    motors = {"motor_inertia": f * cfg.motor_inertia, "motor_damping": f * cfg.motor_damping}
    links = od.robots.planar_arm(2, cfg.length, cfg.mass)
    return el.elastic_robot(links, f * cfg.stiffness, **motors, motor_friction=f * cfg.motor_friction)


def chirp(cfg):
    """t -> q: from 0.2 to 3 Hz, the second joint behind the first."""

    def q(t):
        phase = 2 * np.pi * (0.2 * t + 1.4 * t**2 / cfg.chirp)
        return ca.vertcat(-1.2 + 0.12 * ca.sin(phase), 0.4 + 0.16 * ca.sin(0.9 * phase + 1))

    return q


def quick_steps(cfg):
    """t -> q: steps of 0.15 s, one joint after the other."""

    def q(t):
        up = [ca.tanh((t - 0.5 - k) / 0.08) for k in range(int(cfg.steps) - 1)]
        signs = [(-1) ** (k // 2) for k in range(len(up))]
        first, second = (sum((s * x for s, x in list(zip(signs, up, strict=True))[i::2]), ca.SX(0)) for i in (0, 1))
        return ca.vertcat(-1.3 + 0.25 * first, 0.3 + 0.3 * second)

    return q


def other(t):
    """The held-out motion."""
    return ca.vertcat(
        -1.0 + 0.5 * ca.sin(1.9 * t) + 0.05 * ca.sin(9.7 * t), 0.5 * ca.cos(2.7 * t) + 0.08 * ca.sin(11.3 * t)
    )


def simulated(cfg, arm, q, duration, seed):
    """el.Run: the arm follows q by a sampled law that knows it badly."""
    law = el.feedforward_pd(known(cfg), cfg.kp, cfg.kd)
    noise = {"theta": cfg.jitter[0], "dtheta": cfg.jitter[1]}
    settings = {"sample_time": cfg.dt, "dt": cfg.dt, "torque_limit": cfg.full_scale, "noise": noise, "seed": seed}
    return el.simulate(arm, law, el.reference(arm, q, duration=duration), start="reference", **settings)


def pushed(cfg, seed):
    """(q, theta), each (2, times): links moved by hand, motors off, by RK4 of the motors' equation in halves of dt."""
    rng, count = np.random.default_rng(seed), round(cfg.by_hand / cfg.dt)
    w, phase = rng.uniform(2, 9, (2, 5)), rng.uniform(0, 2 * np.pi, (2, 5))
    t, x, h = ca.SX.sym("t"), ca.SX.sym("x", 4), 0.5 * cfg.dt
    smoothing = build(cfg).friction_smoothing

    def angles(t):
        return ca.sum2(1.2 / w * ca.sin(w * t + phase))

    def rates(t, x):
        z = x[:2] - angles(t)
        spring = ca.vertcat(cfg.stiffness[0] * z[0], hardening(cfg)(z[1]))
        speed = x[2:]
        sliding = cfg.motor_friction * ca.tanh(speed / smoothing)
        return ca.vertcat(speed, (-spring - cfg.motor_damping * speed - sliding) / cfg.motor_inertia)

    y = x
    for k in range(2):
        s = t + k * h
        k1 = rates(s, y)
        k2 = rates(s + h / 2, y + h / 2 * k1)
        k3 = rates(s + h / 2, y + h / 2 * k2)
        k4 = rates(s + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    step = ca.Function("step", [x, t], [y])
    times = cfg.dt * np.arange(count)
    q = ca.Function("angles", [t], [angles(t)]).map(count + 1)(cfg.dt * np.arange(count + 1)).full()
    start = np.append(q[:, 0], np.zeros(2))
    return q, np.column_stack([start, step.mapaccum(count)(start, times).full()])[:2]


def measured(cfg, runs, hand, seed):
    """{name: el.Recording} of the runs and of the motion by hand, with the noise of a seed."""
    noise = cfg.torque_noise * np.array(cfg.full_scale)
    settings = {"encoder_bits": cfg.bits, "torque_noise": noise}
    out = {name: el.recording(run, **settings, seed=1000 * seed + k) for k, (name, run) in enumerate(runs.items())}
    rng, step = np.random.default_rng(1000 * seed + 999), 2 * np.pi / 2**cfg.bits
    q, theta = (step * np.round(x / step + rng.uniform(-0.5, 0.5, (2, 1))) for x in hand)
    return {**out, "by hand": el.Recording(cfg.dt, q, theta, tau_m=0.0, by_hand=True)}


def true_values(cfg, names):
    """Values by the names of an estimate."""
    table = {"stiffness joint2 (1)": cfg.stiffness[1], "stiffness joint2 (2)": cfg.cubic}
    table["stiffness joint1"] = cfg.stiffness[0]
    for quantity in ("motor_inertia", "motor_damping", "motor_friction"):
        for k, value in enumerate(getattr(cfg, quantity)):
            table[f"{quantity} joint{k + 1}"] = value
    return np.array([table[name] for name in names])


def springs():
    """What is sought of the springs."""
    return {"joint2": [lambda z: z, lambda z: z**3]}


def monte_carlo(cfg, model, runs, hand):
    """(names, values (seeds, parameters), half widths of the intervals)."""
    values, intervals = [], []
    for seed in range(cfg.seeds):
        found = el.identify_elastic(model, list(measured(cfg, runs, hand, seed).values()), springs=springs())
        values.append(found.values)
        intervals.append(found.interval)
    return found.names, np.array(values), np.array(intervals)


def told_by_each(model, recordings):
    """{name of a recording: condition number, or inf and what it does not tell}."""
    out = {}
    for name, x in recordings.items():
        try:
            out[name] = el.identify_elastic(model, x, springs=springs()).condition, ""
        except od.SolveError as error:
            out[name] = np.inf, str(error)
    return out


def chance(seeds, parameters, share=0.95, sure=0.95):
    """Least share of `seeds` that every one of so many parameters reaches with probability `sure` at least, dependent
    or not, if each is inside with the probability `share` (binomial, Bonferroni)."""
    below = 0.0
    for k in range(seeds + 1):
        below += comb(seeds, k) * share**k * (1 - share) ** (seeds - k)
        if below > (1 - sure) / parameters:
            return k / seeds
    return 1.0


def check(run, cfg, sampled, found, whole, predictions, deflections, each):
    names, values, intervals = sampled
    true = true_values(cfg, names)
    relative = np.abs(values / true - 1)
    for name, errors in zip(names, relative.T, strict=True):
        run.check(f"{name}: largest relative error of all seeds", errors.max(), below=cfg.error)
    inside = np.abs(values - true) <= intervals
    low, high = cfg.hits
    if cfg.seeds >= 20:
        run.check("95 % intervals that hold, all parameters", inside.mean(), above=low, below=high)
        worst, best = inside.mean(axis=0).min(), inside.mean(axis=0).max()
        least = chance(cfg.seeds, len(names))
        run.check("95 % intervals that hold, worst parameter; bound by chance", worst, above=least - 0.5 / cfg.seeds)
        run.facts["95 % intervals that hold, best parameter"] = float(best)
        bias = np.abs(values.mean(axis=0) - true) / values.std(axis=0)
        run.check("largest mean error of a parameter, by its deviation", bias.max(), below=cfg.bias)
    stiffness = whole.value("stiffness joint1") / cfg.stiffness[0]
    run.check("unknown links: relative error of stiffness, joint 1", abs(stiffness - 1), below=cfg.error)
    ratios = [whole.value(f"transmission joint{k}") for k in (1, 2)]
    run.check("gear ratios: largest relative error", np.abs(np.array(ratios) - 1).max(), below=1e-3)
    for name, error in zip(predictions["estimate"].names, predictions["estimate"].error, strict=True):
        run.check(f"held out, {name}: error of the torque, relative", error, below=cfg.prediction)
    gain = predictions["start"].error.max() / predictions["estimate"].error.max()
    run.check("held out: error with the values to start from over that with the estimate", gain, above=10)
    run.check("held out, simulated with the estimate: largest error of q [rad]", deflections, below=1e-3)
    run.check("by hand alone: named as not telling the scale", holds="stiffness" in each["by hand"][1])
    run.check("the planned motion alone tells everything", each["planned"][0], below=1e3)


def solve(run, cfg):
    arm, model = build(cfg), known(cfg)
    motion = el.exciting_motion(
        model, period=cfg.planned, harmonics=cfg.harmonics, torque_limit=0.8 * np.array(cfg.full_scale),
        iterations=cfg.iterations, samples=6 * cfg.harmonics,
    )  # fmt: skip
    motions = {"planned": (motion, cfg.planned), "chirp": (chirp(cfg), cfg.chirp)}
    motions["steps"] = quick_steps(cfg), cfg.steps
    runs = {name: simulated(cfg, arm, *x, seed=k) for k, (name, x) in enumerate(motions.items())}
    hand = pushed(cfg, seed=3)
    recordings = measured(cfg, runs, hand, 0)
    found = el.identify_elastic(model, list(recordings.values()), springs=springs())
    more = {"links": "identified", "spring_damping": True, "transmission": "gear"}
    whole = el.identify_elastic(model, list(recordings.values()), springs=springs(), **more)

    last = simulated(cfg, arm, other, cfg.held_out, seed=9)
    held_out = el.recording(last, encoder_bits=cfg.bits, seed=9)
    start = replace(found, x=found.equations.unknowns.start)
    predictions = {"estimate": found.predict(held_out), "start": start.predict(held_out)}
    # the law is the same, the arm the identified one: what is left is what the estimate lacks
    again = simulated(cfg, found.robot(), other, cfg.held_out, seed=9)
    missed = np.abs(again.q - last.q).max()

    sampled = monte_carlo(cfg, model, runs, hand)
    each = told_by_each(model, recordings)
    check(run, cfg, sampled, found, whole, predictions, missed, each)
    run.facts["what each recording alone does not tell"] = {name: text for name, (_, text) in each.items()}
    report(run, cfg, runs, hand, found, sampled, predictions)


def report(run, cfg, runs, hand, found, sampled, predictions):
    names, values, intervals = sampled
    true = true_values(cfg, names)
    inside = np.abs(values - true) <= intervals
    run.table("parameters.csv", {
        "parameter": names, "true": true, "estimate": found.values, "interval": found.interval,
        "mean of seeds": values.mean(axis=0), "deviation of seeds": values.std(axis=0),
        "largest relative error": np.abs(values / true - 1).max(axis=0), "intervals that hold": inside.mean(axis=0),
    })  # fmt: skip
    titles = "planned: deflections [rad]", "held out: motor torques [Nm]; thick: measured", "errors over half widths"
    with run.figure("identification.png", *titles, size=(15, 5)) as (left, middle, right):
        left.plot(runs["planned"].t, runs["planned"].deflection, linewidth=0.7, label=["joint 1", "joint 2"])
        p = predictions["estimate"]
        for k in range(2):
            middle.plot(p.t, p.measured[k], color="0.75", linewidth=3)
            middle.plot(p.t, p.predicted[k], color=f"C{k}", linewidth=1, label=p.names[k])
        right.plot(((values - true) / intervals).T, ".", color="0.5", markersize=3)
        right.axhline(1, color="k", linewidth=0.5)
        right.axhline(-1, color="k", linewidth=0.5)
        right.set_xticks(range(len(names)), names, rotation=90, fontsize=6)


main = od.script(
    solve, Config(), quick={"planned": 8.0, "harmonics": 8, "iterations": 3, "chirp": 4.0, "steps": 4.0, "by_hand": 4.0,
                            "held_out": 4.0, "seeds": 2, "error": 0.05, "jitter": (2e-5, 2e-3)},
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
