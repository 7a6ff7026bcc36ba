"""A leg that bounces on its foot, with springs beside its drives: what they save of the motors' energy per cycle.

    minimise    integral of sum max(0, R i^2 + tau_m theta') over a cycle, and over the springs' stiffness and rest
    subject to  periodic motion, hip low at its start and high at half of it
                |tau_m|, |theta'|, |voltage| <= limits, foot: pressed down, within the friction cone, centre of pressure
                under the foot, trunk upright within a range

Ankle, knee and hip have series-elastic drives, with damped motors. A parallel spring lies beside the knee's drive; a
biarticular one spans two joints and is stretched by r_1 q_1 + r_2 q_2, as the calf's muscle spans knee and ankle and
that of the thigh hip and knee. Motions are planned four times: without springs, with one beside the knee, with one
across ankle and knee and one across knee and hip; stiffness and rest length are chosen together with the motion.
Flat: with the springs' potential U(q) the series springs carry tau = inverse dynamics + dU/dq, and theta = q + tau / K.
The planned motor torques drive an independent simulation of links, motors and springs, by forward dynamics.
What is left with a spring that suits is mostly the motors' own damping; springs have none here, nor has the ground.
The leg is ours, of a size between a child's and an adult's, with the motors of a legged robot.
Run:    python problems/leg_springs.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od
from oc_dyn import elastic as el

JOINTS = ("ankle", "knee", "hip")


@dataclass(frozen=True)
class Config:
    lengths: tuple = (0.40, 0.40)  # of shank and thigh [m]
    masses: tuple = (2.5, 5.0, 25.0)  # of shank, thigh and half of the trunk [kg]
    trunk: float = 0.2  # of its centre of mass above the hip [m]
    stiffness: tuple = (800.0, 800.0, 800.0)  # of the series springs [Nm/rad]
    motor_inertia: tuple = (0.3, 0.3, 0.3)  # at the joints [kg m2]
    motor_damping: float = 1.0  # [Nm s/rad]
    torque_constant: float = 5.0  # at the joints [Nm/A]
    resistance: float = 0.5  # [ohm]
    voltage: float = 60.0  # [V]
    torque: tuple = (120.0, 160.0, 120.0)  # [Nm]
    speed: float = 10.0  # [rad/s]
    heel: float = -0.06  # of the foot from the ankle [m]
    toes: float = 0.16  # [m]
    spare: float = 0.012  # of the foot at both ends, for what is between points of the plan [m]
    friction: float = 0.6
    low: float = 0.60  # height of the hip at the start of a cycle [m]
    high: float = 0.76  # and at half of it [m]
    lean: tuple = (-0.1, 0.5)  # of the trunk [rad]
    cycle: float = 0.8  # [s]
    most: float = 1500.0  # stiffness of a spring that is chosen, at a lever of 1 [Nm/rad]
    nodes: int = 24
    steps: int = 8000  # of the simulation


# levers of the spring at ankle, knee and hip
SPRINGS = {
    "none": (0.0, 0.0, 0.0),
    "parallel, knee": (0.0, 1.0, 0.0),
    "biarticular, ankle and knee": (1.0, 0.6, 0.0),
    "biarticular, knee and hip": (0.0, 0.6, 1.0),
}


def leg(cfg):
    """The links, from the foot up: joints turn about y, zero where the leg is straight."""
    b = od.RobotBuilder("leg")
    b.add_link("foot")
    below, at = "foot", 0.0
    for name, joint, length, mass in zip(
        ("shank", "thigh", "trunk"), JOINTS, (*cfg.lengths, 2 * cfg.trunk), cfg.masses, strict=True
    ):
        inertia = mass * length**2 / 12
        body = {"mass": mass, "com": (0, 0, length / 2), "inertia": np.diag([inertia, inertia, 0.1 * inertia])}
        b.add_body(name, "revolute", below, joint=joint, axis=(0, 1, 0), xyz=(0, 0, at), **body)
        below, at = name, length
    return b.build()


def elastic_leg(cfg):
    more = {"motor_inertia": list(cfg.motor_inertia), "motor_damping": cfg.motor_damping}
    return el.elastic_robot(leg(cfg), list(cfg.stiffness), **more)


def ground(links):
    """casadi.Function (q, v, dv) -> what the foot feels: (force forward, force up [N], moment about the ankle [Nm])."""
    q, v, dv = (ca.SX.sym(n, 3) for n in ("q", "v", "dv"))
    total, moment = 0.0, ca.SX.zeros(3)
    for body in links.bodies:
        pose = od.function(links, "frame_pose", frame=body.name)(q=q)
        moment += body.inertia.mass * pose["p"] + pose["R"] @ ca.DM(body.inertia.moment)
        total += body.inertia.mass
    momentum = ca.jtimes(moment, q, v)
    force = ca.jtimes(momentum, ca.vertcat(q, v), ca.vertcat(v, dv)) - total * ca.DM(links.gravity)
    ankle = od.function(links, "inverse_dynamics")(q, v, dv)[0]
    return ca.Function("ground", [q, v, dv], [ca.vertcat(force[0], force[2], ankle)])


def hip_height(cfg, q):
    return cfg.lengths[0] * ca.cos(q[0]) + cfg.lengths[1] * ca.cos(q[0] + q[1])


def crouched(cfg, height):
    """Configuration with the hip above the foot and the trunk upright."""
    bend = np.arccos(height / sum(cfg.lengths))
    return np.array([bend, -2 * bend, bend])


def added(cfg, spring, q, v, dv):
    """(theta, dtheta, tau_m) that a spring of potential k (r q - rest)^2 / 2 beside the drives adds to the flat map,
    columns (3, K): series springs carry its torque besides, and their motors move with it. spring: (r, k, rest)."""
    levers, stiffness, rest = spring
    r, soft, B = ca.DM(levers), ca.diag(1 / ca.DM(cfg.stiffness)), ca.diag(ca.DM(cfg.motor_inertia))
    torque, rate, second = (stiffness * r @ x for x in (r.T @ q - rest, r.T @ v, r.T @ dv))
    return soft @ torque, soft @ rate, torque + B @ soft @ second + cfg.motor_damping * soft @ rate


def plan(cfg, robot, levers):
    """{"motion", "stiffness", "rest", "energy", "samples", ..} of the best cycle with a spring of these levers."""
    ocp, T = od.Problem(cfg.nodes, cfg.cycle), cfg.cycle
    low, high = crouched(cfg, cfg.low), crouched(cfg, cfg.high)
    w, middle, half = 2 * np.pi / T, (low + high) / 2, (low - high) / 2
    guess = [lambda s, k=k: half * w**k * np.cos(2 * np.pi * s + k * np.pi / 2) + (k == 0) * middle for k in range(6)]
    scale = [float(np.abs(half).max() * w**k) for k in range(6)]
    flat = el.flat_motion(ocp, robot, guess=guess, scale=scale)
    stiffness = rest = 0.0
    if any(levers):
        at_low, at_high = (float(np.dot(levers, x)) for x in (low, high))
        stiffness = cfg.most / 10 * ocp.variable("stiffness", lower=0, upper=10, guess=1.0)
        rest = ocp.variable("rest", lower=-4, upper=4, guess=at_high if abs(at_high) < abs(at_low) else at_low)
    motors = el.MotorElectrics(cfg.torque_constant, cfg.resistance, voltage=cfg.voltage, side="joint")
    feel, points = ground(robot.links), (0, 1 / 3, 2 / 3)
    drawn = ocp.control("drawn", 3 * len(points), scale=1.0, lower=0.0, guess=0.3)
    for k, share in enumerate(points):
        here = flat.between(share)
        _, faster, more = added(cfg, (levers, stiffness, rest), *here.q[:3])
        dtheta, tau_m = here.dtheta + faster, here.tau_m + more
        volts = motors.outputs(robot, tau_m, dtheta)["voltage"]
        for value, limit in ((tau_m, cfg.torque), (dtheta, cfg.speed), (volts, cfg.voltage)):
            ocp.limit(-1, value / np.array(limit), 1)
        power = motors.power(robot, tau_m, dtheta)
        ocp.limit(0, drawn[3 * k : 3 * k + 3] - power / 100, np.inf)
        forward, up, ankle = ca.vertsplit(feel(*here.q[:3]))
        weight = 9.81 * sum(cfg.masses)
        ocp.limit(0.1, up / weight, np.inf)
        ocp.limit(-np.inf, ca.vertcat(forward, -forward) / weight - cfg.friction * up / weight, 0)
        heel, toes = cfg.heel + cfg.spare, cfg.toes - cfg.spare
        ocp.limit(0, (-ankle - heel * up) / weight, np.inf)  # the centre of pressure is where -ankle / up is
        ocp.limit(-np.inf, (-ankle - toes * up) / weight, 0)
        ocp.limit(cfg.lean[0], ca.sum1(here.q[0]), cfg.lean[1])
    ocp.periodic(*flat.q[:-1])
    ocp.at({hip_height(cfg, flat.q[0]): cfg.low}, fraction=0.0)
    ocp.at({hip_height(cfg, flat.q[0]): cfg.high}, fraction=0.5)
    ocp.limit(-2.4, flat.q[0][1], -0.05)
    ocp.minimize(integral=ca.sum1(drawn) / len(points), mean=1e-6 * ca.sumsqr(flat.q[-1] / scale[-1]))
    found = ocp.solve(method="euler", solver_options={"max_iter": 2000}, check="off")
    chosen = [float(np.ravel(found[x])[0]) for x in ("stiffness", "rest")] if any(levers) else [0.0, 0.0]
    spring = (levers, chosen[0] * cfg.most / 10, chosen[1])
    made = {"motion": found.trajectory(flat.q, robot.links, friction=False), "spring": spring}
    return made | {"iterations": found.iterations} | energies(cfg, robot, motors, made)


def outputs(cfg, robot, planned, t):
    """{"t", "q", "v", "dv", "theta", "dtheta", "tau_m": (K, 3)} of a plan at times t (K,)."""
    s = el.outputs_along(robot, planned["motion"], t)
    more = added(cfg, planned["spring"], *(s[n].T for n in ("q", "v", "dv")))
    pairs = zip(("theta", "dtheta", "tau_m"), more, strict=True)
    return {n: {"t": t, **s}[n] for n in ("t", "q", "v", "dv")} | {n: s[n] + np.array(x).T for n, x in pairs}


def energies(cfg, robot, motors, planned):
    """{"samples": outputs every millisecond, with the power; "energy" drawn, "loss", "work", "returned" [J]}."""
    s = outputs(cfg, robot, planned, planned["motion"].sample(1e-3).t)
    power, mechanical = np.array(motors.power(robot, s["tau_m"].T, s["dtheta"].T)).T, s["tau_m"] * s["dtheta"]
    parts = {
        "energy": np.maximum(power, 0),
        "loss": power - mechanical,
        "work": np.maximum(mechanical, 0),
        "returned": np.maximum(-power, 0),
    }
    totals = {n: float(np.trapezoid(x.sum(axis=1), s["t"])) for n, x in parts.items()}
    return {"samples": s | {"power": power}, **totals}


def simulate(cfg, robot, planned):
    """Largest difference [rad] between planned and simulated joints over a cycle: forward dynamics of the links between
    springs, motors under the planned torques."""
    forward, s = od.function(robot.links, "forward_dynamics"), planned["samples"]
    levers, stiffness, rest = planned["spring"]
    K, B, r = ca.DM(cfg.stiffness), ca.DM(cfg.motor_inertia), ca.DM(levers)
    x, u = ca.MX.sym("x", 12), [ca.MX.sym("u", 3) for _ in range(3)]

    def rates(x, u):
        q, v, theta, dtheta = ca.vertsplit(x, 3)
        series, beside = K * (theta - q), stiffness * r * (r.T @ q - rest)
        return ca.vertcat(v, forward(q, v, series - beside), dtheta, (u - cfg.motor_damping * dtheta - series) / B)

    h = cfg.cycle / cfg.steps
    a = rates(x, u[0])
    b = rates(x + h / 2 * a, u[1])
    c = rates(x + h / 2 * b, u[1])
    d = rates(x + h * c, u[2])
    step = ca.Function("step", [x, *u], [x + h / 6 * (a + 2 * b + 2 * c + d)])  # Runge and Kutta
    t = np.linspace(0, cfg.cycle, 2 * cfg.steps + 1)
    tau = outputs(cfg, robot, planned, t)["tau_m"].T
    start = np.concatenate([s[n][0] for n in ("q", "v", "theta", "dtheta")])
    run = step.mapaccum(cfg.steps)(start, tau[:, :-1:2], tau[:, 1::2], tau[:, 2::2]).full()
    return float(np.abs(run[:3].T - planned["motion"].sample(t[2::2]).q).max())


def check(run, cfg, robot, plans, misses):
    bare, feel = plans["none"], ground(robot.links)
    for name, p in plans.items():
        s = p["samples"]
        run.check(f"{name}: simulated joints, largest difference [rad]", misses[name], below=1e-4)
        for what, limit in (("tau_m", cfg.torque), ("dtheta", cfg.speed)):
            run.check(f"{name}: {what}, share of its limit", np.abs(s[what] / limit).max(), below=1.01)
        height = np.array(hip_height(cfg, s["q"].T)).ravel()
        run.check(f"{name}: lowest hip [m]", height.min(), equals=cfg.low, within=0.02)
        forward, up, ankle = feel(*(s[n].T for n in ("q", "v", "dv"))).full()
        run.check(f"{name}: least force that presses the foot down [N]", up.min(), above=10.0)
        run.check(f"{name}: forward force over the one down", np.abs(forward / up).max(), below=1.01 * cfg.friction)
        run.check(f"{name}: centre of pressure behind the toes [m]", cfg.toes - (-ankle / up).max(), above=0.0)
        run.check(f"{name}: centre of pressure before the heel [m]", (-ankle / up).min() - cfg.heel, above=0.0)
        same = max(
            np.abs(s[n][0] - s[n][-1]).max() / np.abs(s[n]).max() for n in ("q", "v", "theta", "dtheta", "tau_m")
        )
        run.check(f"{name}: what differs between start and end of a cycle, relative", same, below=1e-6)
        balance = p["energy"] - p["returned"] - p["loss"] - cfg.motor_damping * damped(s)
        run.check(f"{name}: energy that a cycle keeps, over that drawn", abs(balance) / p["energy"], below=1e-3)
        if name != "none":
            run.check(f"{name}: energy per cycle over that without springs", p["energy"] / bare["energy"], below=1.0)


def damped(s):
    """Integral of the motors' squared speeds."""
    return float(np.trapezoid((s["dtheta"] ** 2).sum(axis=1), s["t"]))


def draw(run, cfg, plans):
    titles = "height of the hip [m]", "torque of the knee's motor [Nm]", "power drawn [W]", "energy per cycle [J]"
    with run.figure("leg.png", *titles, columns=2, size=(11, 7.5)) as (height, torque, power, energy):
        for k, (name, p) in enumerate(plans.items()):
            s = p["samples"]
            height.plot(s["t"], np.array(hip_height(cfg, s["q"].T)).ravel(), label=name)
            torque.plot(s["t"], s["tau_m"][:, 1])
            power.plot(s["t"], np.maximum(s["power"], 0).sum(axis=1))
            energy.bar(k, p["loss"], color=f"C{k}", alpha=0.5)
            energy.bar(k, p["energy"] - p["loss"], bottom=p["loss"], color=f"C{k}")
        energy.set_xticks(range(len(plans)), [name.replace(", ", "\n").replace(" and ", "\n") for name in plans])
        energy.set_xlabel("")


def solve(run, cfg):
    robot = elastic_leg(cfg)
    run.say(str(robot))
    plans, misses = {}, {}
    for name, levers in SPRINGS.items():
        p = plans[name] = plan(cfg, robot, levers)
        misses[name] = simulate(cfg, robot, p)
        _, stiffness, rest = p["spring"]
        text = f"{name:28}: {p['energy']:6.2f} J per cycle, {p['loss']:6.2f} J of it lost in windings"
        run.say(text + (f"; {stiffness:.0f} Nm/rad, rest at {rest:.3f} rad" if any(levers) else ""))
    check(run, cfg, robot, plans, misses)
    kept = ("energy", "loss", "work", "returned", "iterations")
    run.facts["plans"] = {
        name: {n: p[n] for n in kept} | dict(zip(("stiffness", "rest"), p["spring"][1:], strict=True))
        for name, p in plans.items()
    }
    units = {"q": "rad", "v": "rad/s", "theta": "rad", "dtheta": "rad/s", "tau_m": "Nm", "power": "W"}
    columns = {}
    for name, p in plans.items():
        columns |= {tuple(f"{name}: {n} {j} [{u}]" for j in JOINTS): p["samples"][n][::5] for n, u in units.items()}
    run.table("cycles.csv", {"t [s]": plans["none"]["samples"]["t"][::5], **columns})
    draw(run, cfg, plans)


main = od.script(solve, Config(), quick={"nodes": 16, "steps": 2000})

if __name__ == "__main__":
    sys.exit(main())
