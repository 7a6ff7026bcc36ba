"""An arm of seven elastic joints with a load carries out a motion from rest to rest: laws of control compared.

Links: the Panda (FER) of od.robots, identified parameters, and a load of 3 kg at the flange. Joints: little is
public. The vendor's robot description (franka_description, dynamics.yaml) has a stiffness of 7000 Nm/rad and a damping
of 1 Nm s/rad per joint, without stating what they mean; they are no data sheet. Motor inertias, gains, noise and load
are ours. Torque limits are the vendor's.
1. Ideal: exact model, law inside the integration.
2. Stiffness errors from 0.1 % to 10 %: feedback linearisation, whose last links weigh little against their springs,
   needs fast poles to tolerate even small ones; the flat feedforward with motor loops is hardly affected.
3. As in a laboratory: 1 kHz, noise, torque limits, damped springs that the model ignores, stiffness 10 % off.
4. Springs of 1e5 Nm/rad by three integrators.
Run:    python problems/sea_arm_tracking.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from math import pi

import numpy as np

import oc_dyn as od
from oc_dyn import elastic as el


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
    pole: float = 20.0  # [1/s], four per joint
    poles: tuple = (20.0, 60.0, 180.0)  # of part 2
    kp: float = 2000.0  # of the motor loops [Nm/rad]
    kd: float = 60.0  # [Nm s/rad]
    errors: tuple = (1e-3, 1e-2, 1e-1)  # of the stiffness, part 2
    sample_time: float = 1e-3  # [s]
    noise_angle: float = 5e-6  # [rad]
    noise_speed: float = 5e-4  # [rad/s]
    stiffness_error: float = 0.1  # of part 3
    stiff: float = 1e5  # of part 4 [Nm/rad]
    stiff_duration: float = 0.5  # of the motion followed there [s]
    rtol: float = 1e-9
    fps: int = 12


def build(cfg, stiffness, **options):
    """The elastic arm: the Panda with the load at its flange."""
    load = od.Inertia.from_com(cfg.load, cfg.load_com, np.diag(cfg.load_inertia))
    links = od.robots.panda().with_payload("panda_link8", load, name="load")
    return el.elastic_robot(links, stiffness, motor_inertia=cfg.motor_inertia, **options)


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


def wrong_stiffness(cfg, arm, reference):
    """{law: largest errors [rad] at the stiffness errors; inf where the motion diverges}."""
    named = {f"feedback linearization, poles -{g:g}/s": el.feedback_linearization(arm, g) for g in cfg.poles}
    named["flat feedforward, motor PD"] = el.feedforward_pd(arm, cfg.kp, cfg.kd)
    out = {name: np.full(len(cfg.errors), np.inf) for name in named}
    for name, law in named.items():
        for k, error in enumerate(cfg.errors):
            with suppress(od.SolveError):
                out[name][k] = el.simulate(arm, law, reference, rtol=1e-8, stiffness_error=error).largest_error
    return out


def laboratory(cfg, arm, reference):
    """{law: el.Run} of the robot with damped springs under sampled laws that ignore the damping."""
    real = build(cfg, cfg.stiffness, damping=cfg.damping)
    noise = {"q": cfg.noise_angle, "theta": cfg.noise_angle, "v": cfg.noise_speed, "dtheta": cfg.noise_speed}
    conditions = {"sample_time": cfg.sample_time, "torque_limit": cfg.torque_limit, "noise": noise}
    conditions |= {"stiffness_error": cfg.stiffness_error, "start": "reference"}
    named = {name: law for name, law in laws(cfg, arm).items() if name != "feedback linearization"}
    return {name: el.simulate(real, law, reference, **conditions) for name, law in named.items()}


def stiff_springs(cfg):
    """{integrator: (el.Run, seconds)} with stiff springs."""
    arm = build(cfg, cfg.stiff)
    reference, law, out = motion(cfg, arm), el.feedforward_pd(arm, cfg.kp, cfg.kd), {}
    for method in ("dop853", "cvodes", "idas"):
        before, options = time.perf_counter(), {"rtol": cfg.rtol, "duration": cfg.stiff_duration}
        result = el.simulate(arm, law, reference, method=method, **options)
        out[method] = result, time.perf_counter() - before
    return out


def check(run, cfg, exact, wrong, real, stiff):
    flat, linearized, *others = exact
    for name in (flat, linearized):
        run.check(f"ideal, {name}: largest error [rad]", exact[name].largest_error, below=1e-9)
    for name in others:
        run.check(f"ideal, {name}: largest error [rad]", exact[name].largest_error, above=1e-4)
    for name, result in exact.items():
        balance = np.abs(result.energy_balance).max() / np.ptp(result.put_in)
        run.check(f"ideal, {name}: energy balance, relative", balance, below=1e-6)
    slope = np.polyfit(np.log(cfg.errors), np.log(wrong[flat]), 1)[0]
    run.check(f"wrong stiffness, {flat}: exponent of the growth", slope, equals=1, within=0.05)
    slow, *_, fast = (wrong[f"feedback linearization, poles -{g:g}/s"][0] for g in cfg.poles)
    what = f"wrong stiffness {cfg.errors[0]:.1%}, feedback linearization: fast poles over slow ones"
    run.check(what, fast / slow, below=0.1)
    what = f"wrong stiffness {cfg.errors[-1]:.0%}: {flat}, largest error [rad]"
    run.check(what, wrong[flat][-1], below=2e-3)
    for name in others:
        share = real[flat].largest_error / real[name].largest_error
        run.check(f"laboratory: largest error, {flat} over {name}", share, below=0.5)
    for name, result in real.items():
        share = np.abs(result.tau_m / cfg.torque_limit).max()
        run.check(f"laboratory, {name}: share of the torque limit", share, below=1 + 1e-12)
    for method, (result, _) in stiff.items():
        what = f"springs of {cfg.stiff:.0e} Nm/rad, {method}: largest error [rad]"
        run.check(what, result.largest_error, below=1e-7)


def solve(run, cfg):
    arm = build(cfg, cfg.stiffness)
    reference = motion(cfg, arm)
    run.say(str(arm))
    exact = {name: el.simulate(arm, law, reference, rtol=cfg.rtol) for name, law in laws(cfg, arm).items()}
    wrong, real = wrong_stiffness(cfg, arm, reference), laboratory(cfg, arm, reference)
    stiff, errors = stiff_springs(cfg), {}
    for part, runs in (("ideal", exact), ("laboratory", real)):
        for name, result in runs.items():
            errors[f"{part}, {name}"] = result.largest_error
            run.say(f"{part:10}  {name:32} largest error {result.largest_error:.2e} rad")
    for name, result in wrong.items():
        sizes = ", ".join(f"{x:.1%}" for x in cfg.errors)
        run.say(f"stiffness errors {sizes}: {name:36} {', '.join(f'{x:.1e}' for x in result)} rad")
    for method, (result, seconds) in stiff.items():
        springs = f"springs of {cfg.stiff:.0e} Nm/rad  {method:8}"
        run.say(f"{springs} largest error {result.largest_error:.1e} rad, {seconds:.1f} s")
    check(run, cfg, exact, wrong, real, stiff)
    run.facts |= {"largest_errors": errors, "stiffness_errors": wrong}
    run.facts["seconds_of_stiff_springs"] = {method: seconds for method, (_, seconds) in stiff.items()}

    first, columns = next(iter(real.values())), {}
    units = {"q_ref": "rad", "q": "rad", "theta": "rad", "tau": "Nm", "tau_m": "Nm"}
    for name, unit in units.items():
        columns[tuple(f"{name}{i} [{unit}]" for i in range(1, 8))] = getattr(first, name)
    run.table("laboratory.csv", {"t [s]": first.t, **columns})
    detail = "flat feedforward and motor PD in detail"
    el.plot_runs(exact, run.out / "ideal.png", title=f"ideal: {detail}")
    el.plot_runs(real, run.out / "laboratory.png", title=f"as in a laboratory: {detail}")
    title, xlabel = "Panda with a load: largest |q - q_ref| [rad]", "relative error of the stiffness"
    with run.figure("stiffness_errors.png", title, size=(6, 4), xlabel=xlabel) as axis:
        for name, result in wrong.items():
            axis.loglog(cfg.errors, result, "o-", label=name)
    el.animate_run(arm, first, run.out / "laboratory.gif", fps=cfg.fps, slow=2.0, exaggerate=30)


few = {"errors": (1e-3, 1e-2), "poles": (20.0, 180.0), "moving": 1.0, "hold": 0.1, "stiff_duration": 0.1, "fps": 6}
main = od.script(solve, Config(), quick=few)

if __name__ == "__main__":
    sys.exit(main())
