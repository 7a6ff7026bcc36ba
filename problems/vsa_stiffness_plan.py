"""A hammer on a joint of variable stiffness: when to be soft, when to be stiff, planned together with the motor.

    maximise    speed of the head at the end
    over        motion q(t) and stiffness sigma(t)
    subject to  |tau_m|, |theta'|, |theta - q| <= limits, sigma_min <= sigma <= sigma_max, |sigma'| <= limit, from rest

Motion and stiffness are flat outputs: the motor's angle and torque follow from q to q^(4), sigma to sigma'' (Palli,
Melchiorri and De Luca 2008). The same is planned for constant stiffnesses, and for the best constant one, chosen
together with the motion: the strongest rival, from which the search starts. Changing the stiffness of a bent spring
takes work, z^2 sigma' / 2, done by the drive of the stiffness; it is reported beside that of the motor. Motor torque
and stiffness, fed forward into a simulation of the elastic model, hit as planned.
The hammer is ours: 2 kg on 0.6 m with a head of 0.5 kg, a motor of 0.25 kg m2 that gives 35 Nm and turns 4 rad/s.
Run:    python problems/vsa_stiffness_plan.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass
from math import factorial

import casadi as ca
import numpy as np

import oc_dyn as od
from oc_dyn import elastic as el


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


def hammer(cfg):
    """Elastic robot of one joint whose stiffness sigma is prescribed."""
    total = cfg.mass + cfg.head
    com = (cfg.mass * cfg.length / 2 + cfg.head * cfg.length) / total
    shaft = cfg.mass * (cfg.length**2 / 12 + (com - cfg.length / 2) ** 2)
    across = shaft + cfg.head * (cfg.length - com) ** 2
    body = {"mass": total, "com": (com, 0, 0), "inertia": np.diag([1e-4, across, across])}
    b = od.RobotBuilder("hammer")
    b.add_link("base")
    b.add_body("shaft", "revolute", "base", joint="joint", axis=(0, -1, 0), **body)
    return el.elastic_robot(b.build(), el.VariableSpring(), motor_inertia=cfg.motor_inertia)


def refuse(cfg, robot):
    """LimitError if the hammer cannot be held at the start; if it can, there is a plan, though perhaps a slow one."""
    low, high = cfg.range
    if not low <= cfg.start <= high:
        raise od.LimitError(f"start: the joint is {cfg.start:g} rad, outside its range {low:g} to {high:g}")
    for name in ("torque", "speed", "deflection", "rate"):
        if not getattr(cfg, name) > 0:
            raise od.LimitError(f"the limit {name} is {getattr(cfg, name):g}, which allows no motion")
    for K in cfg.constant:
        if not 0 < cfg.soft <= K <= cfg.stiff:
            raise od.LimitError(f"constant stiffness {K:g} Nm/rad: outside its limits {cfg.soft:g} to {cfg.stiff:g}")
        held = od.function(robot, "elastic_flat_map")(cfg.start, 0, 0, 0, 0, K, 0, 0)
        bend, torque = abs(float(held[0]) - cfg.start), abs(float(held[3]))
        for what, need, limit in (("a deflection", bend, cfg.deflection), ("a motor torque", torque, cfg.torque)):
            if need > limit:
                reason = f"over its limit {limit:g}; start nearer to hanging, or stiffer"
                raise od.LimitError(f"start: with {K:g} Nm/rad holding still needs {what} of {need:.4g}, {reason}")


def plan(cfg, robot, stiffness, like=None, constant=False):
    """{"motion": Trajectory, "sigma": Trajectory of the stiffness, "samples": every millisecond, "speed": of the head
    at the end, "iterations", "solution"}. like: a plan to start from; None for the constant `stiffness` [Nm/rad].
    constant: the stiffness is optimised, but does not change over time."""
    limit = {"tau_m": cfg.torque, "dtheta": cfg.speed, "deflection": cfg.deflection}
    flat = od.function(robot, "elastic_flat_map")

    def solve(share, before):
        ocp = od.Problem(cfg.nodes, cfg.duration)
        back = [lambda s: cfg.start + 1.2 * (-0.6 * np.sin(np.pi * s) ** 2 + 1.6 * s**4), *[0.0] * 5]
        guess = like["motion"].derivatives[:6] if like else back
        q = ocp.chain("q", 1, 5, guess=guess, scale=[1.0, 5.0, 40.0, 400.0, 8e3, 2e5])
        sigma, smooth = stiffness_of(cfg, ocp, stiffness, like, constant), ca.sumsqr(q[5] / 2e5)
        if like and not constant:
            smooth = smooth + ca.sumsqr(sigma[3] / 2e6)
        for part in (0, 1 / 3, 2 / 3):  # of an interval
            Q, S = ocp.between(q, part), ocp.between(sigma, part)
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
        # what is left between nodes is measured below, and tightened
        initial = before and before["solution"]
        solution = ocp.solve(solver_options={"max_iter": 1500}, initial=initial, check="off")
        return sampled(cfg, robot, solution, q, sigma)

    def reached(planned):
        return {name: np.abs(planned["samples"][name]).max() / limit[name] for name in limit}

    settings = {"within": 1.005, "above": 1 / 1.0005, "excess": 1.0005, "rounds": cfg.rounds}
    return od.tighten(solve, reached, dict.fromkeys(limit, 1.0), **settings).result


def stiffness_of(cfg, ocp, stiffness, like, constant):
    """[sigma, dsigma, d2sigma, d3sigma] in the problem: given, chosen but constant, or varied."""
    if constant:
        sigma = ocp.state("sigma", scale=300.0, guess=stiffness)
        ocp.next(sigma, sigma)
        return [sigma, ca.MX(0), ca.MX(0), ca.MX(0)]
    if not like:
        return [ca.MX(stiffness), ca.MX(0), ca.MX(0), ca.MX(0)]
    settings = {"scale": [300.0, 2e3, 5e4, 2e6], "bounds": (cfg.rate, 1e5, 2e6)}
    sigma = ocp.chain("sigma", 1, 3, guess=[stiffness, 0.0, 0.0, 0.0], **settings)
    ocp.start({sigma[1]: 0, sigma[2]: 0})
    return sigma


def sampled(cfg, robot, solution, q, sigma):
    """What plan returns, of a Solution."""
    motion = solution.trajectory(q, robot.links, friction=False)
    pieces = np.stack([solution[x][: cfg.nodes] for x in sigma], axis=1)
    stiffness = od.Trajectory(solution.t, pieces, joints=("joint",), units=("Nm/rad",))
    t = motion.sample(1e-3).t
    jets = stiffness.sample(t).derivatives[:4]
    s = {**el.outputs_along(robot, motion, t, jets), "t": t, "sigma": jets[0], "dsigma": jets[1]}
    planned = {"motion": motion, "sigma": stiffness, "samples": s, "speed": float(cfg.length * s["v"][-1, 0])}
    return planned | {"iterations": solution.iterations, "solution": solution}


def simulate(robot, planned):
    """el.Run of the elastic model under the planned motor torque and stiffness."""
    breaks, pieces = planned["sigma"].t, planned["sigma"].pieces[:, :, 0].T

    def stiffness(t):
        inner = ca.DM(breaks[1:-1])
        at = t - ca.pw_const(t, inner, ca.DM(breaks[:-1]))
        return sum(ca.pw_const(t, inner, ca.DM(x)) * at**j / factorial(j) for j, x in enumerate(pieces))

    reference = el.reference(robot, planned["motion"], sigma=stiffness)
    return el.simulate(robot, el.feedforward(robot), reference, dt=2e-3)


def works(planned, simulated):
    """{whose work up to the end [J]}: the motor, the drive of the stiffness, and the energy of the hammer's motion."""
    s = planned["samples"]
    power = {"motor": s["tau_m"] * s["dtheta"], "drive of the stiffness": s["deflection"] ** 2 / 2 * s["dsigma"]}
    work = {name: float(np.trapezoid(x[:, 0], s["t"])) for name, x in power.items()}
    return work | {f"{name} at the end": float(x[-1] - x[0]) for name, x in simulated.energies.items()}


def check(run, cfg, varied, best, constant, simulated):
    """constant: plans of the listed constant stiffnesses, best: that of the best constant one."""
    s, speed, work = varied["samples"], varied["speed"], works(varied, simulated)
    gained = sum(x for name, x in work.items() if name.endswith("at the end"))
    table = max(x["speed"] for x in constant.values())
    run.check("best constant stiffness: speed over that with the plan", best["speed"] / speed, below=0.98)
    run.check("listed constant stiffnesses: largest speed over the best", table / best["speed"], below=1.001)
    ratio = (work["motor"] + work["drive of the stiffness"]) / gained
    run.check("work of motor and drive over the energy gained", ratio, equals=1, within=1e-3)
    run.check("speed of a motor without spring over the planned one", cfg.length * cfg.speed / speed, below=0.8)
    ratio = cfg.length * simulated.v[-1, 0] / speed
    run.check("simulated speed over the planned one", ratio, equals=1, within=1e-6)
    run.check("simulation: largest error of the joint [rad]", simulated.largest_error, below=1e-6)
    balance = np.abs(simulated.energy_balance).max() / np.ptp(simulated.put_in)
    run.check("simulation: energy balance, relative", balance, below=1e-6)
    run.check("motor torque: share of its limit", np.abs(s["tau_m"]).max() / cfg.torque, below=1.006)
    run.check("motor speed: share of its limit", np.abs(s["dtheta"]).max() / cfg.speed, below=1.006)
    run.check("deflection: share of its limit", np.abs(s["deflection"]).max() / cfg.deflection, below=1.006)
    run.check("largest stiffness [Nm/rad]", s["sigma"].max(), below=cfg.stiff + 1)
    run.check("least stiffness [Nm/rad]", s["sigma"].min(), above=cfg.soft - 1)
    rate = np.abs(np.gradient(s["sigma"][:, 0], s["t"])).max()
    run.check("stiffness rate: share of its limit", rate / cfg.rate, below=1.01)
    for name, x in {"best": best, **{f"{K:g} Nm/rad": x for K, x in constant.items()}}.items():
        share = np.abs(x["samples"]["dtheta"]).max() / cfg.speed
        run.check(f"constant {name}: motor speed, share of its limit", share, below=1.006)


def draw(run, cfg, varied, best, constant, simulated):
    """Stiffness, speeds, torque and deflection over time; speed of the hit over constant stiffnesses."""
    s, titles = varied["samples"], ("stiffness [Nm/rad]", "speeds [rad/s]", "load", "speed of the head [m/s]")
    with run.figure("plan.png", *titles, columns=2, size=(11, 7.5)) as (stiffness, speeds, load, rivals):
        stiffness.plot(s["t"], s["sigma"])
        stiffness.set_ylim(0, 1.05 * cfg.stiff)
        speeds.plot(s["t"], s["v"], label="hammer")
        speeds.plot(s["t"], s["dtheta"], "--", label="motor")
        for limit in (-cfg.speed, cfg.speed):
            speeds.axhline(limit, color="k", linewidth=0.6)
        load.plot(s["t"], s["tau_m"] / cfg.torque, label="motor torque over its limit")
        load.plot(s["t"], s["deflection"] / cfg.deflection, label="deflection over its limit")
        energies = simulated.energies
        springs = energies["springs"] / energies["kinetic_links"].max()
        load.plot(simulated.t, springs, label="energy of the spring, of the hit's")
        rivals.plot(list(constant), [x["speed"] for x in constant.values()], "o-", label="constant")
        rivals.plot(best["samples"]["sigma"][0], best["speed"], "C3*", label="best constant")
        rivals.axhline(varied["speed"], color="C1", label="planned stiffness")
        rivals.axhline(cfg.length * cfg.speed, color="k", linestyle=":", label="motor without spring")
        rivals.set_xlabel("stiffness [Nm/rad]")


def solve(run, cfg):
    robot = hammer(cfg)
    run.say(str(robot))
    refuse(cfg, robot)
    constant = {K: plan(cfg, robot, K) for K in cfg.constant}
    for K, x in constant.items():
        run.say(f"constant stiffness {K:5g} Nm/rad: {x['speed']:.3f} m/s")
    start = max(constant, key=lambda K: constant[K]["speed"])
    best = plan(cfg, robot, start, like=constant[start], constant=True)
    stiffness = float(best["samples"]["sigma"][0, 0])
    run.say(f"best constant, {stiffness:5.4g} Nm/rad:     {best['speed']:.3f} m/s")
    varied = plan(cfg, robot, stiffness, like=best)
    run.say(f"planned stiffness:              {varied['speed']:.3f} m/s")
    simulated = simulate(robot, varied)
    for what, value in works(varied, simulated).items():
        run.say(f"  energy, {what.replace('_', ' ')}: {value:.3g} J")
    check(run, cfg, varied, best, constant, simulated)
    run.facts |= {"iterations": varied["iterations"], "best_constant_stiffness": stiffness}
    run.facts["works"] = works(varied, simulated)
    speeds = run.facts["speed_of_the_head"] = {"planned stiffness": varied["speed"], "best constant": best["speed"]}
    speeds |= {f"{K:g}": x["speed"] for K, x in constant.items()}

    units = {"q": "rad", "v": "rad/s", "theta": "rad", "dtheta": "rad/s", "tau_m": "Nm", "sigma": "Nm/rad"}
    columns = {f"{name} [{unit}]": varied["samples"][name] for name, unit in units.items()}
    run.table("plan.csv", {"t [s]": varied["samples"]["t"], **columns})
    draw(run, cfg, varied, best, constant, simulated)


main = od.script(solve, Config(), quick={"constant": (100.0, 200.0)})

if __name__ == "__main__":
    sys.exit(main())
