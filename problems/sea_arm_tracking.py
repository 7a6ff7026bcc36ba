"""An arm of seven elastic joints with a load carries out a motion from rest to rest: laws of control compared.

Links: the Panda (FER) of od.robots, identified parameters, and a load of 3 kg at the flange. Joints: what is public is
little. A stiffness of 7000 Nm/rad and a damping of 1 Nm s/rad a joint stand in the vendor's public robot description
(franka_description, dynamics.yaml), without a word on their meaning; they are no data sheet. Motor inertias, gains,
noise and load are ours. Torque limits are the vendor's.
1. Ideal: exact model, law inside the integration.
2. Stiffness errors from 0.1 % to 10 %: feedback linearisation, whose last links weigh little against their springs,
   needs fast poles to bear even small ones; the flat feedforward with motor loops does not mind.
3. As in a laboratory: 1 kHz, noise, torque limits, damped springs that the model leaves out, stiffness 10 % off.
4. Springs of 1e5 Nm/rad by three integrators.
Run:    python problems/sea_arm_tracking.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
import time
from dataclasses import asdict, dataclass
from math import pi
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.model.robot import Joint, assemble
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    stiffness: float = 7000.0  # of every joint [Nm/rad]; public, see above
    damping: float = 1.0  # [Nm s/rad]; public, see above; in part 3 alone
    torque_limit: tuple = (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0)  # [Nm]; the vendor's
    motor_inertia: tuple = (0.5, 0.5, 0.4, 0.4, 0.2, 0.2, 0.15)  # as seen at the joints [kg m2]; ours, as all below
    load: float = 3.0  # [kg]
    load_com: tuple = (0.0, 0.0, 0.08)  # from the flange [m]
    load_inertia: tuple = (0.01, 0.01, 0.008)  # about its centre of mass [kg m2]
    start: tuple = (0.0, -pi / 4, 0.0, -3 * pi / 4, 0.0, pi / 2, pi / 4)  # the vendor's ready pose [rad]
    goal: tuple = (0.8, -0.2, -0.5, -1.6, 0.5, 2.1, 0.3)  # [rad]
    moving: float = 1.4  # [s]
    hold: float = 0.3  # [s]
    pole: float = 20.0  # [1/s], four a joint
    poles: tuple = (20.0, 60.0, 180.0)  # of part 2
    kp: float = 2000.0  # of the motor loops [Nm/rad]
    kd: float = 60.0  # [Nm s/rad]
    errors: tuple = (1e-3, 1e-2, 1e-1)  # of the stiffness, part 2
    sample_time: float = 1e-3  # [s]
    noise_angle: float = 5e-6  # [rad]
    noise_speed: float = 5e-4  # [rad/s]
    stiffness_error: float = 0.1  # of part 3
    stiff: float = 1e5  # of part 4 [Nm/rad]
    rtol: float = 1e-9


# -- model and laws -------------------------------------------------------------------------------------------


def arm_with_load(cfg):
    """The Panda with the load fixed to its flange."""
    panda = od.robots.panda()
    links, joints, _, _ = panda.description
    load = od.Inertia.from_com(cfg.load, cfg.load_com, np.diag(cfg.load_inertia))
    fixed = Joint("load_fixed", "fixed", "panda_link8", "load")
    return assemble("panda_with_load", {**links, "load": load}, (*joints, fixed), gravity=panda.gravity)


def build(cfg, stiffness=None, **options):
    """The elastic arm."""
    stiffness = cfg.stiffness if stiffness is None else stiffness
    return el.elastic_robot(arm_with_load(cfg), stiffness, motor_inertia=cfg.motor_inertia, **options)


def laws(cfg, arm):
    """{name: Controller}."""
    return {
        "flat feedforward, motor PD": el.feedforward_pd(arm, cfg.kp, cfg.kd),
        "feedback linearization": el.feedback_linearization(arm, cfg.pole),
        "gravity compensation, motor PD": el.gravity_pd(arm, cfg.kp, cfg.kd),
        "rigid computed torque, motor PD": el.computed_torque(arm, cfg.kp, cfg.kd),
    }


def motion(cfg, arm):
    """Reference from rest to rest, as often differentiable as continuous motor torques need."""
    path = el.rest_to_rest(cfg.start, cfg.goal, cfg.moving, continuity=arm.continuity("torque"), hold=cfg.hold)
    return el.reference(arm, path)


# -- the four parts -------------------------------------------------------------------------------------------


def ideal(cfg, arm, reference):
    """{law: Run}."""
    return {name: el.simulate(arm, law, reference, rtol=cfg.rtol) for name, law in laws(cfg, arm).items()}


def wrong_stiffness(cfg, arm, reference):
    """{law: largest errors [rad] at the stiffness errors; inf where the motion diverges}."""
    named = {f"feedback linearization, poles -{g:g}/s": el.feedback_linearization(arm, g) for g in cfg.poles}
    named["flat feedforward, motor PD"] = el.feedforward_pd(arm, cfg.kp, cfg.kd)
    out = {}
    for name, law in named.items():
        found = []
        for error in cfg.errors:
            try:
                found.append(el.simulate(arm, law, reference, rtol=1e-8, stiffness_error=error).largest_error)
            except od.SolveError:
                found.append(np.inf)
        out[name] = np.array(found)
    return out


def laboratory(cfg, arm, reference):
    """{law: Run} of the robot with damped springs under sampled laws that leave the damping out."""
    real = build(cfg, damping=cfg.damping)
    angle, speed = {"q": cfg.noise_angle, "theta": cfg.noise_angle}, {"v": cfg.noise_speed, "dtheta": cfg.noise_speed}
    conditions = {
        "sample_time": cfg.sample_time,
        "torque_limit": cfg.torque_limit,
        "noise": {**angle, **speed},
        "stiffness_error": cfg.stiffness_error,
        "start": "reference",
    }
    wanted = ("flat feedforward, motor PD", "gravity compensation, motor PD", "rigid computed torque, motor PD")
    named = laws(cfg, arm)
    return {name: el.simulate(real, named[name], reference, **conditions) for name in wanted}


def stiff_springs(cfg, duration):
    """{integrator: (Run, seconds)} with springs of 1e5 Nm/rad."""
    arm = build(cfg, cfg.stiff)
    reference, law = motion(cfg, arm), el.feedforward_pd(arm, cfg.kp, cfg.kd)
    out = {}
    for method in ("dop853", "cvodes", "idas"):
        before = time.perf_counter()
        run = el.simulate(arm, law, reference, rtol=cfg.rtol, method=method, duration=duration)
        out[method] = run, time.perf_counter() - before
    return out


# -- checks ---------------------------------------------------------------------------------------------------


def check(cfg, exact, wrong, real, stiff):
    """{what: (error, bound)}."""
    flat, linearized, *others = exact
    out = {
        f"ideal, {flat}: largest error [rad]": (exact[flat].largest_error, 1e-9),
        f"ideal, {linearized}: largest error [rad]": (exact[linearized].largest_error, 1e-9),
    }
    for name in others:
        out[f"ideal, {name}: 0.1 mrad over its largest error"] = 1e-4 / exact[name].largest_error, 1.0
    for name, run in exact.items():
        out[f"ideal, {name}: energy balance, relative"] = np.abs(run.energy_balance).max() / np.ptp(run.put_in), 1e-6
    slope = np.polyfit(np.log(cfg.errors), np.log(wrong[flat]), 1)[0]
    out[f"wrong stiffness, {flat}: exponent of the growth, less 1"] = abs(slope - 1), 0.05
    slow, *_, fast = (wrong[f"feedback linearization, poles -{g:g}/s"][0] for g in cfg.poles)
    out[f"wrong stiffness {cfg.errors[0]:.1%}, feedback linearization: fast poles over slow ones"] = fast / slow, 0.1
    out[f"wrong stiffness {cfg.errors[-1]:.0%}: {flat}, largest error [rad]"] = wrong[flat][-1], 2e-3
    for name in others:
        out[f"laboratory: {flat} over {name}"] = real[flat].largest_error / real[name].largest_error, 0.5
    for name, run in real.items():
        out[f"laboratory, {name}: share of the torque limit"] = np.abs(run.tau_m / cfg.torque_limit).max(), 1 + 1e-12
    for method, (run, _) in stiff.items():
        out[f"springs of {cfg.stiff:.0e} Nm/rad, {method}: largest error [rad]"] = run.largest_error, 1e-7
    return out


# -- figures and files ----------------------------------------------------------------------------------------


def plot_errors(cfg, wrong, path):
    """Largest error over the stiffness error."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axis = figure.subplots()
    for name, errors in wrong.items():
        axis.loglog(cfg.errors, errors, "o-", label=name)
    axis.set(title="Panda with a load", xlabel="relative error of the stiffness", ylabel="largest |q - q_ref| [rad]")
    axis.grid(alpha=0.3)
    axis.legend(fontsize="x-small")
    figure.savefig(path, dpi=90)


def write(run, path):
    """Time, reference, link and motor angles, spring and motor torques of one run."""
    parts = {"q_ref": ("rad", run.q_ref), "q": ("rad", run.q), "theta": ("rad", run.theta)}
    parts |= {"tau": ("Nm", run.tau), "tau_m": ("Nm", run.tau_m)}
    header = ["t [s]", *(f"{name}{i + 1} [{unit}]" for name, (unit, x) in parts.items() for i in range(x.shape[1]))]
    rows = np.column_stack([run.t, *(x for _, x in parts.values())])
    np.savetxt(path, rows, fmt="%.9g", delimiter=",", header=",".join(header), comments="")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/sea_arm_tracking"), help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer stiffness errors, a short run of the stiff springs")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(errors=(1e-3, 1e-2), poles=(20.0, 180.0), moving=1.0, hold=0.1) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    arm = build(cfg)
    reference = motion(cfg, arm)
    say(str(arm))
    exact = ideal(cfg, arm, reference)
    wrong = wrong_stiffness(cfg, arm, reference)
    real = laboratory(cfg, arm, reference)
    stiff = stiff_springs(cfg, 0.1 if options.quick else 0.5)
    for part, runs in (("ideal", exact), ("laboratory", real)):
        for name, run in runs.items():
            say(f"{part:10}  {name:32} largest error {run.largest_error:.2e} rad")
    for name, errors in wrong.items():
        sizes, found = (", ".join(x) for x in ([f"{x:.1%}" for x in cfg.errors], [f"{x:.1e}" for x in errors]))
        say(f"stiffness errors {sizes}: {name:36} {found} rad")
    for method, (run, seconds) in stiff.items():
        say(f"springs of {cfg.stiff:.0e} Nm/rad  {method:8} largest error {run.largest_error:.1e} rad, {seconds:.1f} s")
    checks = check(cfg, exact, wrong, real, stiff)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:85} {error:8.1e}  {'is' if error < bound else 'IS NOT'} below {bound:.1e}")

    write(next(iter(real.values())), options.out / "laboratory.csv")
    el.plot_runs(exact, options.out / "ideal.png", title="ideal: flat feedforward and motor PD in detail")
    el.plot_runs(
        real, options.out / "laboratory.png", title="as in a laboratory: flat feedforward and motor PD in detail"
    )
    plot_errors(cfg, wrong, options.out / "stiffness_errors.png")
    fps = 6 if options.quick else 12
    el.animate_run(arm, next(iter(real.values())), options.out / "laboratory.gif", fps=fps, slow=2.0, exaggerate=30)
    command = ["python", "problems/sea_arm_tracking.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {
        "config": asdict(cfg),
        "stiffness_errors": wrong,
        "seconds_of_stiff_springs": {m: s for m, (_, s) in stiff.items()},
    }
    facts["largest_errors"] = {
        f"{p}, {n}": r.largest_error for p, x in (("ideal", exact), ("laboratory", real)) for n, r in x.items()
    }
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
