"""An arm of two elastic joints follows a motion: laws of control compared, ideal and as in a laboratory.

1. Ideal: the law inside the integration, exact model. Feedback linearisation and flat feedforward with motor loops
   follow to rounding; gravity compensation with motor loops and the law of a rigid robot do not.
2. As in a laboratory: the law runs once a millisecond, measures with noise, its torques saturate, and stiffness
   and masses differ from the model's; the motion is from rest to rest, four times continuously differentiable.
3. The complete model, with the inertial coupling S12 between the links and the second motor: the feedforward of this
   model reads q up to its sixth derivative and is exact, that of the reduced model is not.
4. Stiffness to infinity: the motor torque tends to that of a rigid robot with the motors' inertia, like 1 / K.
5. Damped springs: the algebraic map is refused; with their equation integrated, the feedforward is exact again.
The arm is ours: two links of 0.4 m and 3 kg in the vertical plane, K = (500, 300) Nm/rad, B = (0.3, 0.2) kg m2.
Run:    python problems/sea_2r_tracking.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od
from oc_dyn import elastic as el


@dataclass(frozen=True)
class Config:
    length: float = 0.4  # of each link [m]
    mass: float = 3.0  # of each link [kg], a slender rod
    stiffness: tuple = (500.0, 300.0)  # [Nm/rad]
    motor_inertia: tuple = (0.3, 0.2)  # [kg m2]
    coupling: float = 0.02  # S12 of the complete model [kg m2]
    damping: tuple = (2.0, 1.0)  # of the damped springs [Nm s/rad]
    start: tuple = (-0.6, 0.3)  # [rad]
    amplitude: tuple = (0.5, 0.6)  # of the smooth motion, q = start + a (1 - cos w t) [rad]
    frequency: tuple = (2.0, 2.6)  # [rad/s]
    duration: float = 3.0  # [s]
    goal: tuple = (0.7, -0.9)  # of the motion from rest to rest [rad]
    moving: float = 1.2  # its time [s]
    hold: float = 0.8  # rest after it [s]
    pole: float = 20.0  # [1/s], four per joint
    kp: float = 200.0  # of the motor loops [Nm/rad]
    kd: float = 20.0  # [Nm s/rad]
    sample_time: float = 1e-3  # of the laws in the laboratory [s]
    torque_limit: tuple = (28.0, 12.0)  # [Nm]
    noise_angle: float = 2e-5  # standard deviation [rad]
    noise_speed: float = 2e-3  # [rad/s]
    stiffness_error: float = 0.05  # of the real robot, relative to the model
    mass_error: float = -0.03
    seed: int = 1
    rtol: float = 1e-10
    factors: tuple = (1e1, 1e2, 1e3, 1e4)  # of the stiffness, on its way to infinity
    fps: int = 15


def build(cfg, factor=1.0, **options):
    """The elastic arm with its stiffness times a factor."""
    K = factor * np.array(cfg.stiffness)
    links = od.robots.planar_arm(2, cfg.length, cfg.mass)
    return el.elastic_robot(links, K, motor_inertia=cfg.motor_inertia, **options)


def smooth(cfg, arm):
    """Reference of the smooth motion."""

    def q(t):
        return np.array(cfg.start) + np.array(cfg.amplitude) * (1 - ca.cos(np.array(cfg.frequency) * t))

    return el.reference(arm, q, duration=cfg.duration)


def laws(cfg, arm):
    """{name: Controller}."""
    return {
        "feedback linearization": el.feedback_linearization(arm, cfg.pole),
        "flat feedforward, motor PD": el.feedforward_pd(arm, cfg.kp, cfg.kd),
        "gravity compensation, motor PD": el.gravity_pd(arm, cfg.kp, cfg.kd),
        "rigid computed torque, motor PD": el.computed_torque(arm, cfg.kp, cfg.kd),
    }


def laboratory(cfg, arm):
    """{law: el.Run}, sampled, with noise, torque limits and errors of the model."""
    motion = el.rest_to_rest(cfg.start, cfg.goal, cfg.moving, continuity=arm.continuity("torque"), hold=cfg.hold)
    reference = el.reference(arm, motion)
    noise = {"q": cfg.noise_angle, "theta": cfg.noise_angle, "v": cfg.noise_speed, "dtheta": cfg.noise_speed}
    conditions = {"sample_time": cfg.sample_time, "torque_limit": cfg.torque_limit, "noise": noise, "seed": cfg.seed}
    conditions |= {"stiffness_error": cfg.stiffness_error, "mass_error": cfg.mass_error, "start": "reference"}
    return {name: el.simulate(arm, law, reference, **conditions) for name, law in laws(cfg, arm).items()}


def complete(cfg, arm):
    """el.Runs of the complete robot: (feedforward of the complete model, of the reduced one)."""
    whole = build(cfg, coupling=[[0.0, cfg.coupling], [0.0, 0.0]])
    reference = smooth(cfg, whole)
    both = (el.feedforward_pd(model, cfg.kp, cfg.kd) for model in (whole, arm))
    return tuple(el.simulate(whole, law, reference, rtol=cfg.rtol) for law in both)


def to_infinity(cfg):
    """Largest difference over the smooth motion of motor torque and that of a rigid robot [Nm], by factor."""
    reference = smooth(cfg, build(cfg))
    at = reference.at(np.linspace(0, cfg.duration, 301))
    f = od.function(build(cfg).links, "inverse_dynamics")
    rigid = f(*(at[n] for n in f.name_in())).full() + np.diag(cfg.motor_inertia) @ at["dv"]
    out = []
    for factor in cfg.factors:
        flat = od.function(build(cfg, factor), "elastic_flat_map")
        result = flat(**{n: at[n] for n in flat.name_in()})["tau_m"].full()
        out.append(np.abs(result - rigid).max())
    return np.array(out)


def damped(cfg):
    """(whether the algebraic map is refused, el.Run with the dampers integrated, with the dampers ignored)."""
    arm = build(cfg, damping=dict(zip(("joint1", "joint2"), cfg.damping, strict=True)))
    try:
        el.feedforward_pd(arm, cfg.kp, cfg.kd)
        refused = False
    except od.OrderError:
        refused = True
    reference = smooth(cfg, arm)
    with_it = el.feedforward_pd(arm, cfg.kp, cfg.kd, integrate_damping=True)
    without = el.feedforward_pd(arm.undamped(), cfg.kp, cfg.kd)
    return refused, *(el.simulate(arm, law, reference, rtol=cfg.rtol) for law in (with_it, without))


def check(run, cfg, exact, real, whole, gaps):
    linearized, flat, *others = exact
    run.check(f"ideal, {linearized}: largest error [rad]", exact[linearized].largest_error, below=1e-12)
    run.check(f"ideal, {flat}: largest error [rad]", exact[flat].largest_error, below=1e-11)
    for name in others:
        run.check(f"ideal, {name}: largest error [rad]", exact[name].largest_error, above=1e-3)
    for name, result in exact.items():
        balance = np.abs(result.energy_balance).max() / np.ptp(result.put_in)
        run.check(f"ideal, {name}: energy balance, relative", balance, below=1e-9)
    best = min(real[n].largest_error for n in (linearized, flat))
    for name in others:
        what = f"laboratory: error of the better flat law over that of {name}"
        run.check(what, best / real[name].largest_error, below=0.5)
    for name, result in real.items():
        share = np.abs(result.tau_m / cfg.torque_limit).max()
        run.check(f"laboratory, {name}: share of the torque limit", share, below=1 + 1e-12)
    run.check("complete model, its own feedforward: largest error [rad]", whole[0].largest_error, below=1e-10)
    what = "complete model, reduced feedforward: largest error [rad]"
    run.check(what, whole[1].largest_error, equals=6.1e-4, within=6.1e-5)
    slope = np.polyfit(np.log(cfg.factors), np.log(gaps), 1)[0]
    run.check("gap of motor torque and rigid one over K: exponent", slope, equals=-1, within=0.02)
    refused, with_damping, without = damped(cfg)
    run.check("damped springs: the algebraic map is refused", holds=refused)
    run.check("damped springs, integrated: largest error [rad]", with_damping.largest_error, below=1e-11)
    run.check("damped springs, damping ignored: largest error [rad]", without.largest_error, above=1e-4)


def write(run, runs):
    """Time, reference, link and motor angles and motor torques of every law."""
    first = next(iter(runs.values()))
    columns = {"t [s]": first.t}
    for name, result in runs.items():
        quantities = ("q", result.q, "rad"), ("theta", result.theta, "rad"), ("tau_m", result.tau_m, "Nm")
        for what, values, unit in quantities:
            columns[tuple(f"{name.replace(',', ';')}: {what}{i} [{unit}]" for i in (1, 2))] = values
    run.table("laboratory.csv", {**columns, ("q_ref1 [rad]", "q_ref2 [rad]"): first.q_ref})


def solve(run, cfg):
    arm = build(cfg)
    run.say(str(arm))
    reference = smooth(cfg, arm)
    exact = {name: el.simulate(arm, law, reference, rtol=cfg.rtol) for name, law in laws(cfg, arm).items()}
    real, whole, gaps = laboratory(cfg, arm), complete(cfg, arm), to_infinity(cfg)
    errors = run.facts["largest_errors"] = {}
    for part, runs in (("ideal", exact), ("laboratory", real)):
        for name, result in runs.items():
            errors[f"{part}, {name}"] = result.largest_error
            run.say(f"{part:10}  {name:32} largest error {result.largest_error:.2e} rad")
    check(run, cfg, exact, real, whole, gaps)

    write(run, real)
    detail = "feedback linearization in detail"
    el.plot_runs(exact, run.out / "ideal.png", title=f"ideal: {detail}")
    el.plot_runs(real, run.out / "laboratory.png", title=f"sampled, noisy, wrong model: {detail}")
    titles = "on the complete model: |q - q_ref| [rad]", "towards the rigid robot"
    with run.figure("limits.png", *titles, size=(10, 4)) as (over_time, over_stiffness):
        names = "feedforward of the complete model (q to q^(6))", "of the reduced model"
        for result, name in zip(whole, names, strict=True):
            over_time.semilogy(result.t, np.maximum(np.abs(result.error).max(axis=1), 1e-17), label=name)
        over_stiffness.loglog(cfg.factors, gaps, "o-", label="largest |tau_m - rigid| [Nm]")
        line = gaps[0] * cfg.factors[0] / np.array(cfg.factors)
        over_stiffness.loglog(cfg.factors, line, "k--", linewidth=0.7, label="1 / K")
        over_stiffness.set(xlabel="stiffness over that of the arm")
    el.animate_run(arm, real["flat feedforward, motor PD"], run.out / "laboratory.gif", fps=cfg.fps, slow=1.5)


main = od.script(solve, Config(), quick={"sample_time": 2e-3, "fps": 8})

if __name__ == "__main__":
    sys.exit(main())
