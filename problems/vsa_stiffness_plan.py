"""A hammer on a joint of variable stiffness: when to be soft, when to be stiff, planned together with the motor.

    maximise    speed of the head at the end
    over        motion q(t) and stiffness sigma(t)
    subject to  |tau_m|, |theta'|, |theta - q| <= limits, sigma_min <= sigma <= sigma_max, |sigma'| <= limit, from rest

Motion and stiffness are flat outputs: the motor's angle and torque follow from q to q^(4), sigma to sigma'' (Palli,
Melchiorri and De Luca 2008). The same is planned for constant stiffnesses, and for the best constant one, chosen
together with the motion: it is the rival, and where the search begins. Changing the stiffness of a bent spring takes
work, z^2 sigma' / 2, which the drive of the stiffness has to do; it is told beside that of the motor. Motor torque and
stiffness, fed forward into a simulation of the elastic model, hit as planned.
The hammer is ours: 2 kg on 0.6 m with a head of 0.5 kg, a motor of 0.25 kg m2 that gives 35 Nm and turns 4 rad/s.
Run:    python problems/vsa_stiffness_plan.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
from dataclasses import asdict, dataclass
from math import factorial
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
    length: float = 0.6  # [m]
    mass: float = 2.0  # of the shaft, a slender rod [kg]
    head: float = 0.5  # mass at its end [kg]
    motor_inertia: float = 0.25  # [kg m2]
    torque: float = 35.0  # limit of the motor [Nm]
    speed: float = 4.0  # limit of the motor [rad/s]
    deflection: float = 0.3  # limit of the spring [rad]
    soft: float = 60.0  # least stiffness [Nm/rad]
    stiff: float = 600.0  # largest stiffness [Nm/rad]
    rate: float = 4000.0  # limit of the stiffness' rate [Nm/rad/s]
    start: float = -np.pi / 2  # hanging [rad]
    range: tuple = (-3.2, 1.6)  # of the joint [rad]
    duration: float = 0.8  # [s]
    nodes: int = 40
    rounds: int = 8
    constant: tuple = (60.0, 100.0, 150.0, 200.0, 300.0, 400.0, 600.0)  # the rivals' stiffness [Nm/rad]


# -- model ----------------------------------------------------------------------------------------------------


def hammer(cfg):
    """Elastic robot of one joint whose stiffness sigma is prescribed."""
    b = od.RobotBuilder("hammer")
    b.add_link("base")
    total = cfg.mass + cfg.head
    com = (cfg.mass * cfg.length / 2 + cfg.head * cfg.length) / total
    about_com = (
        cfg.mass * cfg.length**2 / 12 + cfg.mass * (com - cfg.length / 2) ** 2 + cfg.head * (cfg.length - com) ** 2
    )
    inertia = np.diag([1e-4, about_com, about_com])
    b.add_body(
        "shaft", "revolute", "base", joint="joint", mass=total, com=(com, 0, 0), inertia=inertia, axis=(0.0, -1.0, 0.0)
    )
    return el.elastic_robot(b.build(), el.VariableSpring(), motor_inertia=cfg.motor_inertia)


# -- planning -------------------------------------------------------------------------------------------------


def plan(cfg, robot, stiffness, like=None, constant=False):
    """Motion and stiffness; like: None for the constant stiffness given [Nm/rad], or the plan of that to start from.
    constant: the stiffness is chosen, but stays what it is."""
    limit = {"tau_m": cfg.torque, "dtheta": cfg.speed, "deflection": cfg.deflection}
    share, initial = dict.fromkeys(limit, 1.0), None
    flat = od.function(robot, "elastic_flat_map")
    for _ in range(cfg.rounds):
        ocp = od.Problem(cfg.nodes, cfg.duration)
        back = [lambda s: cfg.start + 1.2 * (-0.6 * np.sin(np.pi * s) ** 2 + 1.6 * s**4), *[0.0] * 5]
        guess = [like["motion"].derivatives[k] for k in range(6)] if like else back
        q = ocp.chain("q", 1, 5, guess=guess, scale=[1.0, 5.0, 40.0, 400.0, 8e3, 2e5])
        sigma = [ca.MX(stiffness), ca.MX(0), ca.MX(0)]
        smooth = ca.sumsqr(q[5] / 2e5)
        if constant:
            sigma[0] = ocp.state("sigma", scale=300.0, guess=stiffness)
            ocp.next(sigma[0], sigma[0])
        elif like:
            bounds = (cfg.rate, 1e5, 2e6)
            sigma = ocp.chain(
                "sigma", 1, 3, scale=[300.0, 2e3, 5e4, 2e6], bounds=bounds, guess=[stiffness, 0.0, 0.0, 0.0]
            )
            ocp.start({sigma[1]: 0, sigma[2]: 0})
            smooth = smooth + ca.sumsqr(sigma[3] / 2e6)
        for part in (0.0, 1 / 3, 2 / 3):  # of an interval
            Q, S = between(q, part * ocp.step), between(sigma, part * ocp.step)
            theta, dtheta, _, tau_m = flat(*Q[:5], *S[:3])
            for name, value in (("tau_m", tau_m), ("dtheta", dtheta), ("deflection", theta - Q[0])):
                ocp.limit(-share[name], value / limit[name], share[name])
            if like:
                ocp.limit(cfg.soft / 300, S[0] / 300, cfg.stiff / 300)
            if like and not constant:
                ocp.limit(-1, S[1] / cfg.rate, 1)
        ocp.limit(cfg.range[0], q[0], cfg.range[1])
        ocp.start({q[0]: cfg.start, **{x: 0 for x in q[1:5]}})
        ocp.minimize(terminal=-cfg.length * q[1], integral=1e-4 * smooth)
        found = ocp.solve(solver_options={"max_iter": 1500}, initial=initial)
        pieces = np.stack([found[x][: cfg.nodes] for x in q], axis=1)
        motion = od.Trajectory(found.t, pieces, joints=("joint",), units=("rad",), robot=robot.links)
        table = (
            [found[x][: cfg.nodes, 0] for x in (sigma[:1] if constant else sigma)]
            if like
            else [[stiffness] * cfg.nodes]
        )
        made = {"motion": motion, "sigma": np.array(table), "iterations": found.iterations}
        s = made["samples"] = sampled(robot, made)
        reached = {name: np.abs(s[name]).max() / limit[name] for name in share}
        if max(reached.values()) < 1.005:
            break
        share = {name: use / max(1.0, 1.0005 * reached[name]) for name, use in share.items()}
        initial = found
    return made


def between(x, t):
    """[x, x', ...] a time t later, from those whose last one is constant."""
    orders = range(len(x))
    return [sum(x[j] * t ** (j - d) / factorial(j - d) for j in orders if j >= d) for d in orders]


def stiffness_at(made, t, order=0):
    """Derivative of the stiffness at numbers or symbols t, from its pieces."""
    breaks, table = made["motion"].t, made["sigma"]
    if isinstance(t, (ca.SX, ca.MX)):
        inner = ca.DM(breaks[1:-1])
        at = t - ca.pw_const(t, inner, ca.DM(breaks[:-1]))
        coefficients = [ca.pw_const(t, inner, ca.DM(row)) for row in table]
    else:
        piece = np.clip(np.searchsorted(breaks, t, side="right") - 1, 0, len(breaks) - 2)
        at, coefficients = t - breaks[piece], [row[piece] for row in table]
    out, factor = 0 * at, 1.0
    for j in range(order, len(table)):
        out = out + coefficients[j] * at ** (j - order) / factor
        factor *= j - order + 1
    return out


def sampled(robot, made):
    """Outputs of the flat map every millisecond, the stiffness with them."""
    t = made["motion"].sample(1e-3).t
    sigma = [np.reshape(stiffness_at(made, t, k), (-1, 1)) for k in range(3)]
    return {"t": t, "sigma": sigma[0], **el.outputs_along(robot, made["motion"], t, [*sigma, 0 * sigma[0]])}


def simulated(cfg, robot, made):
    """Run of the elastic model under the planned motor torque and stiffness."""
    reference = el.reference(robot, made["motion"], sigma=lambda t: stiffness_at(made, t))
    return el.simulate(robot, el.feedforward(robot), reference, dt=2e-3)


# -- checks, figures, files ------------------------------------------------------------------------------------


def works(made, run):
    """{whose work up to the end [J]}: the motor, the drive of the stiffness, and the energy of the hammer's motion."""
    s = made["samples"]
    power = s["deflection"][:, 0] ** 2 / 2 * stiffness_at(made, s["t"], 1)
    drive = float(np.trapezoid(power, s["t"]))
    found = {"motor": float(np.trapezoid((s["tau_m"] * s["dtheta"])[:, 0], s["t"])), "drive of the stiffness": drive}
    gains = {f"{name} at the end": float(x[-1] - x[0]) for name, x in run.energies.items()}
    return {**found, **gains}


def check(cfg, varied, best, constant, run):
    """{what: (error, bound)}; constant: plans of given constant stiffnesses, best: that of the best one."""
    s, speed = varied["samples"], cfg.length * varied["samples"]["v"][-1, 0]
    rival = cfg.length * best["samples"]["v"][-1, 0]
    table = max(cfg.length * x["samples"]["v"][-1, 0] for x in constant.values())
    work = works(varied, run)
    gained = sum(x for name, x in work.items() if name.endswith("at the end"))
    out = {
        "best constant stiffness: speed over that with the planned one": (rival / speed, 0.98),
        "given constant stiffnesses: largest speed over that of the best": (table / rival, 1.001),
        "work of motor and drive less energy gained, relative": (
            abs(work["motor"] + work["drive of the stiffness"] - gained) / gained,
            1e-3,
        ),
        "speed of a motor without spring over the planned one": (cfg.length * cfg.speed / speed, 0.8),
        "simulated speed, relative to the planned one": (abs(cfg.length * run.v[-1, 0] / speed - 1), 1e-6),
        "simulation: largest error of the joint [rad]": (run.largest_error, 1e-6),
        "simulation: energy balance, relative": (np.abs(run.energy_balance).max() / np.ptp(run.put_in), 1e-6),
        "motor torque: share of its limit": (np.abs(s["tau_m"]).max() / cfg.torque, 1.006),
        "motor speed: share of its limit": (np.abs(s["dtheta"]).max() / cfg.speed, 1.006),
        "deflection: share of its limit": (np.abs(s["deflection"]).max() / cfg.deflection, 1.006),
        "stiffness below its largest [Nm/rad]": (s["sigma"].max() - cfg.stiff, 1.0),
        "stiffness above its least [Nm/rad]": (cfg.soft - s["sigma"].min(), 1.0),
        "stiffness rate: share of its limit": (np.abs(np.gradient(s["sigma"][:, 0], s["t"])).max() / cfg.rate, 1.01),
    }
    for K, x in {"best": best, **{f"{K:g} Nm/rad": x for K, x in constant.items()}}.items():
        out[f"constant {K}: motor speed, share of its limit"] = (
            np.abs(x["samples"]["dtheta"]).max() / cfg.speed,
            1.006,
        )
    return {what: (float(e), b) for what, (e, b) in out.items()}


def plot(cfg, varied, best, constant, run, path):
    """Stiffness, speeds, torque and deflection over time; speed of the hit over constant stiffnesses."""
    figure = Figure(figsize=(11, 7), layout="constrained")
    (stiffness, speeds), (load, rivals) = figure.subplots(2, 2)
    s = varied["samples"]
    stiffness.plot(s["t"], s["sigma"])
    stiffness.set(title="stiffness", ylabel="[Nm/rad]", ylim=(0, 1.05 * cfg.stiff))
    speeds.plot(s["t"], s["v"], label="hammer")
    speeds.plot(s["t"], s["dtheta"], "--", label="motor")
    speeds.axhline(cfg.speed, color="k", linewidth=0.6)
    speeds.axhline(-cfg.speed, color="k", linewidth=0.6)
    speeds.set(title="speeds; lines: limit of the motor", ylabel="[rad/s]")
    load.plot(s["t"], s["tau_m"] / cfg.torque, label="motor torque over its limit")
    load.plot(s["t"], s["deflection"] / cfg.deflection, label="deflection over its limit")
    load.plot(
        run.t, run.energies["springs"] / run.energies["kinetic_links"].max(), label="energy of the spring, of the hit's"
    )
    load.set(title="load", xlabel="time [s]")
    rivals.plot(
        list(constant), [cfg.length * x["samples"]["v"][-1, 0] for x in constant.values()], "o-", label="constant"
    )
    rivals.plot(best["sigma"][0, 0], cfg.length * best["samples"]["v"][-1, 0], "C3*", label="best constant")
    rivals.axhline(cfg.length * s["v"][-1, 0], color="C1", label="planned stiffness")
    rivals.axhline(cfg.length * cfg.speed, color="k", linestyle=":", label="motor without spring")
    rivals.set(title="speed of the head", xlabel="stiffness [Nm/rad]", ylabel="[m/s]")
    for axis in (speeds, load, rivals):
        axis.legend(fontsize="x-small")
    for axis in (stiffness, speeds, load, rivals):
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=90)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/vsa_stiffness_plan"), help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer nodes and constant stiffnesses")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(constant=(100.0, 200.0)) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    robot = hammer(cfg)
    say(str(robot))
    constant = {K: plan(cfg, robot, K) for K in cfg.constant}
    for K, x in constant.items():
        say(f"constant stiffness {K:5g} Nm/rad: {cfg.length * x['samples']['v'][-1, 0]:.3f} m/s")
    start = max(constant, key=lambda K: constant[K]["samples"]["v"][-1, 0])
    best = plan(cfg, robot, start, like=constant[start], constant=True)
    stiffness = float(best["sigma"][0, 0])
    say(f"best constant, {stiffness:5.4g} Nm/rad:     {cfg.length * best['samples']['v'][-1, 0]:.3f} m/s")
    varied = plan(cfg, robot, stiffness, like=best)
    say(f"planned stiffness:              {cfg.length * varied['samples']['v'][-1, 0]:.3f} m/s")
    run = simulated(cfg, robot, varied)
    for what, value in works(varied, run).items():
        say(f"  energy, {what.replace('_', ' ')}: {value:.3g} J")
    checks = check(cfg, varied, best, constant, run)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:65} {error:9.3g}  {'is' if error < bound else 'IS NOT'} below {bound:.3g}")

    s = varied["samples"]
    columns = np.hstack([s["t"][:, None], s["q"], s["v"], s["theta"], s["dtheta"], s["tau_m"], s["sigma"]])
    header = "t [s],q [rad],v [rad/s],theta [rad],dtheta [rad/s],tau_m [Nm],sigma [Nm/rad]"
    np.savetxt(options.out / "plan.csv", columns, fmt="%.9g", delimiter=",", header=header, comments="")
    plot(cfg, varied, best, constant, run, options.out / "plan.png")
    command = ["python", "problems/vsa_stiffness_plan.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "iterations": varied["iterations"]}
    facts["speed_of_the_head"] = {"planned stiffness": float(cfg.length * s["v"][-1, 0])}
    facts["best_constant_stiffness"] = stiffness
    facts["works"] = works(varied, run)
    facts["speed_of_the_head"] |= {"best constant": float(cfg.length * best["samples"]["v"][-1, 0])}
    facts["speed_of_the_head"] |= {f"{K:g}": float(cfg.length * x["samples"]["v"][-1, 0]) for K, x in constant.items()}
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
