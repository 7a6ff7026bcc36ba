"""An arm of two elastic joints follows a motion: laws of control compared, ideal and as in a laboratory.

1. Ideal: the law inside the integration, exact model. Feedback linearisation and flat feedforward with motor loops
   follow to rounding; gravity compensation with motor loops and the law of a rigid robot do not.
2. As in a laboratory: the law runs once a millisecond, measures with noise, its torques are cut off, and stiffness
   and masses differ from the model's; the motion is from rest to rest, four times continuously differentiable.
3. The complete model, with the inertial coupling S12 between the links and the second motor: the feedforward that knows
   it reads q up to its sixth derivative and is exact, that of the reduced model misses.
4. Stiffness to infinity: the motor torque tends to that of a rigid robot with the motors' inertia, like 1 / K.
5. Damped springs: the algebraic map is refused; with their equation integrated along, the feedforward is exact again.
The arm is ours: two links of 0.4 m and 3 kg in the vertical plane, K = (500, 300) Nm/rad, B = (0.3, 0.2) kg m2.
Run:    python problems/sea_2r_tracking.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------


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
    pole: float = 20.0  # [1/s], four a joint
    kp: float = 200.0  # of the motor loops [Nm/rad]
    kd: float = 20.0  # [Nm s/rad]
    sample_time: float = 1e-3  # of the laws in the laboratory [s]
    torque_limit: tuple = (28.0, 12.0)  # [Nm]
    noise_angle: float = 2e-5  # standard deviation [rad]
    noise_speed: float = 2e-3  # [rad/s]
    stiffness_error: float = 0.05  # of the robot that is there, relative to the model
    mass_error: float = -0.03
    seed: int = 1
    rtol: float = 1e-10
    factors: tuple = (1e1, 1e2, 1e3, 1e4)  # of the stiffness, on its way to infinity


# -- model and laws -------------------------------------------------------------------------------------------


def links(cfg):
    """The rigid arm."""
    b = od.RobotBuilder("arm_2r")
    b.add_link("base")
    across = cfg.mass * cfg.length**2 / 12
    for i in range(2):
        b.add_body(
            f"link{i + 1}",
            "revolute",
            f"link{i}" if i else "base",
            joint=f"joint{i + 1}",
            mass=cfg.mass,
            com=(cfg.length / 2, 0.0, 0.0),
            inertia=np.diag([1e-4, across, across]),
            axis=(0.0, -1.0, 0.0),
            xyz=(cfg.length if i else 0.0, 0.0, 0.0),
        )
    b.add_frame("tip", "link2", xyz=(cfg.length, 0.0, 0.0))
    return b.build()


def build(cfg, factor=1.0, **options):
    """The elastic arm, so many times as stiff."""
    K = factor * np.array(cfg.stiffness)
    return el.elastic_robot(links(cfg), K, motor_inertia=cfg.motor_inertia, **options)


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


# -- the five parts -------------------------------------------------------------------------------------------


def ideal(cfg, arm):
    """{law: Run}, exact model, continuous in time."""
    reference = smooth(cfg, arm)
    return {name: el.simulate(arm, law, reference, rtol=cfg.rtol) for name, law in laws(cfg, arm).items()}


def laboratory(cfg, arm):
    """{law: Run}, sampled, with noise, torque limits and errors of the model."""
    motion = el.rest_to_rest(cfg.start, cfg.goal, cfg.moving, continuity=arm.continuity("torque"), hold=cfg.hold)
    reference = el.reference(arm, motion)
    angle, speed = {"q": cfg.noise_angle, "theta": cfg.noise_angle}, {"v": cfg.noise_speed, "dtheta": cfg.noise_speed}
    conditions = {
        "sample_time": cfg.sample_time,
        "torque_limit": cfg.torque_limit,
        "noise": {**angle, **speed},
        "seed": cfg.seed,
        "stiffness_error": cfg.stiffness_error,
        "mass_error": cfg.mass_error,
        "start": "reference",
    }
    return {name: el.simulate(arm, law, reference, **conditions) for name, law in laws(cfg, arm).items()}


def complete(cfg, arm):
    """(Run with the complete model's feedforward, Run with the reduced one's), on the complete robot."""
    S = [[0.0, cfg.coupling], [0.0, 0.0]]
    whole = build(cfg, coupling=S)
    reference = smooth(cfg, whole)
    return tuple(
        el.simulate(whole, el.feedforward_pd(model, cfg.kp, cfg.kd), reference, rtol=cfg.rtol) for model in (whole, arm)
    )


def to_infinity(cfg):
    """Largest difference over the smooth motion of motor torque and that of a rigid robot [Nm], by factor."""
    reference = smooth(cfg, build(cfg))
    at = reference.at(np.linspace(0, cfg.duration, 301))
    f = od.function(links(cfg), "inverse_dynamics")
    rigid = f(*(at[n] for n in f.name_in())).full() + np.diag(cfg.motor_inertia) @ at["dv"]
    out = []
    for factor in cfg.factors:
        flat = od.function(build(cfg, factor), "elastic_flat_map")
        found = flat(**{n: at[n] for n in flat.name_in()})["tau_m"].full()
        out.append(np.abs(found - rigid).max())
    return np.array(out)


def damped(cfg):
    """(whether the algebraic map is refused, Run with the dampers' equation integrated, Run with them left out)."""
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


# -- checks ---------------------------------------------------------------------------------------------------


def check(cfg, exact, real, whole, gaps, refused, with_damping, without):
    """{what: (error, bound)}."""
    names = list(exact)
    out = {
        f"ideal, {names[0]}: largest error [rad]": (exact[names[0]].largest_error, 1e-12),
        f"ideal, {names[1]}: largest error [rad]": (exact[names[1]].largest_error, 1e-11),
    }
    for name in names[2:]:
        out[f"ideal, {name}: 1 mrad over its largest error"] = 1e-3 / exact[name].largest_error, 1.0
    for name, run in exact.items():
        out[f"ideal, {name}: energy balance, relative"] = np.abs(run.energy_balance).max() / np.ptp(run.put_in), 1e-9
    best = min(real[n].largest_error for n in names[:2])
    for name in names[2:]:
        out[f"laboratory: error of the better flat law over that of {name}"] = best / real[name].largest_error, 0.5
    for name, run in real.items():
        out[f"laboratory, {name}: share of the torque limit"] = np.abs(run.tau_m / cfg.torque_limit).max(), 1 + 1e-12
    out["complete model, its own feedforward: largest error [rad]"] = whole[0].largest_error, 1e-10
    out["complete model, reduced feedforward: against 6.1e-4 rad, relative"] = (
        abs(whole[1].largest_error / 6.1e-4 - 1),
        0.1,
    )
    slope = np.polyfit(np.log(cfg.factors), np.log(gaps), 1)[0]
    out["motor torque to the rigid one with K: slope, plus 1"] = abs(slope + 1), 0.02
    out["damped springs: 0 if the algebraic map is refused"] = float(not refused), 0.5
    out["damped springs, integrated: largest error [rad]"] = with_damping.largest_error, 1e-11
    out["damped springs, left out: 0.1 mrad over the largest error"] = 1e-4 / without.largest_error, 1.0
    return out


# -- figures and files ----------------------------------------------------------------------------------------


def plot_limits(cfg, exact, whole, gaps, path):
    """Complete and reduced feedforward over time; motor torque less the rigid one over the stiffness."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    over_time, over_stiffness = figure.subplots(1, 2)
    for run, label in zip(
        whole, ("feedforward of the complete model (q to q^(6))", "of the reduced model"), strict=True
    ):
        over_time.semilogy(run.t, np.maximum(np.abs(run.error).max(axis=1), 1e-17), label=label)
    over_time.set(title="on the complete model", xlabel="time [s]", ylabel="|q - q_ref| [rad]")
    over_stiffness.loglog(cfg.factors, gaps, "o-", label="largest |tau_m - rigid| [Nm]")
    over_stiffness.loglog(
        cfg.factors, gaps[0] * cfg.factors[0] / np.array(cfg.factors), "k--", linewidth=0.7, label="1 / K"
    )
    over_stiffness.set(title="towards the rigid robot", xlabel="stiffness over that of the arm")
    for axis in (over_time, over_stiffness):
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    figure.savefig(path, dpi=90)


def write(runs, path):
    """Time, reference, link and motor angles and motor torques of every law."""
    header, columns = ["t [s]"], []
    for name, run in runs.items():
        columns = columns or [run.t]
        for what, values, unit in (("q", run.q, "rad"), ("theta", run.theta, "rad"), ("tau_m", run.tau_m, "Nm")):
            header += [f"{name.replace(',', ';')}: {what}{i + 1} [{unit}]" for i in range(values.shape[1])]
            columns += list(values.T)
    first = next(iter(runs.values()))
    header += [f"q_ref{i + 1} [rad]" for i in range(first.q_ref.shape[1])]
    rows = np.column_stack([*columns, first.q_ref])
    np.savetxt(path, rows, fmt="%.9g", delimiter=",", header=",".join(header), comments="")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/sea_2r_tracking"), help="folder (%(default)s)")
    parser.add_argument(
        "--quick", action="store_true", help="a slower law in the laboratory, half the pictures a second"
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(sample_time=2e-3) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    arm = build(cfg)
    say(str(arm))
    exact, real, whole = ideal(cfg, arm), laboratory(cfg, arm), complete(cfg, arm)
    for part, runs in (("ideal", exact), ("laboratory", real)):
        for name, run in runs.items():
            say(f"{part:10}  {name:32} largest error {run.largest_error:.2e} rad")
    gaps = to_infinity(cfg)
    checks = check(cfg, exact, real, whole, gaps, *damped(cfg))
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:85} {error:8.1e}  {'is' if error < bound else 'IS NOT'} below {bound:.1e}")

    write(real, options.out / "laboratory.csv")
    el.plot_runs(exact, options.out / "ideal.png", title="ideal: feedback linearization in detail")
    el.plot_runs(
        real, options.out / "laboratory.png", title="sampled, noisy, wrong model: feedback linearization in detail"
    )
    plot_limits(cfg, exact, whole, gaps, options.out / "limits.png")
    fps = 8 if options.quick else 15
    el.animate_run(arm, real["flat feedforward, motor PD"], options.out / "laboratory.gif", fps=fps, slow=1.5)
    command = ["python", "problems/sea_2r_tracking.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg)}
    facts["largest_errors"] = {
        f"{p}, {n}": r.largest_error for p, x in (("ideal", exact), ("laboratory", real)) for n, r in x.items()
    }
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
