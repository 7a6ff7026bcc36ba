"""Predictive control of an arm with two elastic joints at 1 kHz: motor and link states, torques and springs limited.

    every 1 ms:  minimise    over 20 intervals of 10 ms the weighted squares of errors of q, v, theta, theta', and of
                             tau_m less that of the reference,
                 subject to  M(q) v' + n(q, v) = K (theta - q),  B theta'' + K (theta - q) = tau_m,  by rk4,
                             |tau_m| <= limit (hard),  |K (theta - q)| <= share of it,  q, v, theta, theta' as measured.

1. The reference of the flat map, exact model: the controller's torques are those of the flat map.
2. As in a laboratory, on a robot of other stiffness and mass, measured with noise; beside laws for elastic joints.
   The torques that it commanded, given to the simulation of the elastic robot, lead to the same states.
3. The goal jumps: torques and springs come to their limits and stay within; in C, in real time.
The arm is that of sea_2r_tracking.py.
Run:    python problems/sea_nmpc.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
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
    torque_limit: tuple = (40.0, 15.0)  # of the motors [Nm]
    spring_limit: tuple = (38.0, 12.0)  # of the springs' torques [Nm]
    start: tuple = (-0.6, 0.3)  # [rad]
    goal: tuple = (0.7, -0.9)  # of the motion from rest to rest [rad]
    moving: float = 1.2  # its time [s]
    hold: float = 0.6  # rest after it [s]
    jump: tuple = (-0.1, -0.1)  # where the goal jumps to [rad]
    still: float = 0.1  # before it jumps [s]
    jumping: float = 1.0  # that is looked at [s]
    reached: float = 0.98  # share of the springs' limits, at least
    settled: float = 5e-3  # from the goal in the end [rad]
    nodes: int = 20
    h: float = 0.01  # [s]
    period: float = 1e-3  # [s]
    iterations: int = 1  # of a step
    weights: tuple = (3e3, 1e3, 1.0, 1.0)  # of q, theta, v, theta'
    effort: float = 3e-3  # of torques less those wanted [1/Nm2]
    noise: tuple = (2e-5, 2e-3)  # standard deviation of angles [rad], of speeds [rad/s]
    stiffness_error: float = 0.05  # of the real robot, relative to the model
    mass_error: float = -0.03
    pole: float = 20.0  # of feedback linearisation [1/s]
    kp: float = 200.0  # of the motor loops [Nm/rad]
    kd: float = 20.0  # [Nm s/rad]
    seed: int = 1
    flags: tuple = ("-O2",)
    of_period: float = 1.0  # that the median of a step may take


def build(cfg):
    """The elastic arm."""
    links = od.robots.planar_arm(2, cfg.length, cfg.mass)
    return el.elastic_robot(links, np.array(cfg.stiffness), motor_inertia=cfg.motor_inertia)


def tracking(cfg, arm):
    """PredictiveController: parameters x_now (8,), wanted (10,) of every node, [q; v; theta; theta'; tau_m]."""
    ocp, rates = od.Problem(cfg.nodes, cfg.nodes * cfg.h), el.plant(arm).rates
    most = np.array(cfg.torque_limit)
    q, v = ocp.state("q", 2, guess=cfg.start, scale=1), ocp.state("v", 2, scale=5)
    theta, dtheta = ocp.state("theta", 2, guess=cfg.start, scale=1), ocp.state("dtheta", 2, scale=5)
    tau = ocp.control("tau_m", 2, lower=-most, upper=most, scale=10)
    x, wanted = ca.vertcat(q, v, theta, dtheta), ocp.varying("wanted", 10)
    x_now = ocp.parameter("x_now", 8)
    dx = rates(x, tau, ca.DM(0, 1))
    for k, state in enumerate((q, v, theta, dtheta)):
        ocp.rate(state, dx[2 * k : 2 * k + 2])
    spring = ca.DM(cfg.stiffness) * (theta - q) / ca.DM(cfg.spring_limit)
    ocp.limit(-1, spring, 1, soft=(10, 10))
    ocp.start({state: x_now[2 * k : 2 * k + 2] for k, state in enumerate((q, v, theta, dtheta))})
    of_q, of_theta, of_v, of_dtheta = cfg.weights
    weights = np.sqrt(np.repeat([of_q, of_v, of_theta, of_dtheta], 2))
    error = weights * (x - wanted[:8])
    ocp.minimize(squares=ca.vertcat(error, np.sqrt(cfg.effort) * (tau - wanted[8:])))
    ocp.minimize(terminal=0.05 * ca.sumsqr(error))
    return od.mpc(ocp, outputs={"tau_m": tau}, iterations=cfg.iterations, shift=0)


def resting(arm, q):
    """[q; v; theta; theta'; tau_m] at rest."""
    flat = od.function(arm, "elastic_flat_map")
    out = flat(**{name: q if name == "q" else np.zeros(2) for name in flat.name_in()})
    return np.concatenate([q, [0, 0], out["theta"].full().ravel(), [0, 0], out["tau_m"].full().ravel()])


def along(arm, reference):
    """Function t -> [q; v; theta; theta'; tau_m] of a reference, at rest after its end."""
    t, flat = ca.MX.sym("t"), od.function(arm, "elastic_flat_map")
    ref = dict(zip(reference.function.name_out(), reference.function(ca.fmin(t, reference.duration)), strict=True))
    out = flat(**{name: ref[name] for name in flat.name_in()})
    return ca.Function("along", [t], [ca.vertcat(ref["q"], ref["v"], out["theta"], out["dtheta"], out["tau_m"])])


def world(cfg, real, wanted, noise=None, foreseen=True):
    """Functions: ([q; v; theta; theta'; t], tau_m) -> the state a period later, tau_m held; state -> what is measured.

    wanted: Function t -> (10,); not foreseen, it is taken to stay as it is. noise (8, steps): of what is measured.
    """
    x, tau = ca.MX.sym("x", 9), ca.MX.sym("tau", 2)
    y, u = ca.SX.sym("y", 8), ca.SX.sym("u", 2)
    rate = ca.Function("rate", [y, u], [el.plant(real).rates(y, u, ca.DM(0, 1))])
    after = ca.simpleRK(rate, 4)(x[:8], tau, cfg.period)
    plant = ca.Function("plant", [x, tau], [ca.vertcat(after, x[8] + cfg.period)], ["x", "tau_m"], ["x_next"])
    # what varies is held over an interval, over which rk4 integrates the cost: its middle counts
    ahead = [wanted(x[8] + cfg.h * min(k + 0.5, cfg.nodes) * foreseen) for k in range(cfg.nodes + 1)]
    seen = x[:8]
    if noise is not None:
        seen += ca.MX(ca.DM(noise))[:, ca.floor(x[8] / cfg.period + 0.5)]
    return plant, ca.Function("measured", [x], [seen, ca.horzcat(*ahead)], ["x"], ["x_now", "wanted"])


def replayed(cfg, arm, reference, loop):
    """el.Run of the real robot under the torques of a loop."""
    t = ca.MX.sym("t")
    table = ca.MX(ca.DM(np.vstack([loop.u, loop.u[-1:]]).T))
    outputs = {**dict(zip(reference.function.name_out(), reference.function.call([t]), strict=True))}
    outputs["u"] = table[:, ca.floor(t / cfg.period + 0.5)]
    f = ca.Function("replayed", [t], list(outputs.values()), ["t"], list(outputs))
    given = el.Reference(f, reference.duration, reference.breaks, reference.continuity)
    u = ca.SX.sym("u", 2)
    law = el.Controller("replayed", arm, ca.Function("law", [u], [u], ["u_ref"], ["tau_m"]))
    return el.simulate(arm, law, given, start=loop.x[0, :8], **conditions(cfg), dt=cfg.period, substeps=2)


def conditions(cfg):
    """What is other than the model, for el.simulate."""
    errors = {"stiffness_error": cfg.stiffness_error, "mass_error": cfg.mass_error}
    return {"sample_time": cfg.period, "torque_limit": cfg.torque_limit, **errors}


def settled(control, measured, x, steps=10):
    """The controller after steps at a state, whose torques nothing takes: the first ones begin from a guess."""
    now, wanted = measured(x)
    for _ in range(steps):
        control.step({"x_now": now.full().ravel(), "wanted": wanted.full().T})
    return control


def check_laboratory(run, cfg, arm, control, reference, wanted, start):
    """The loop of the controller."""
    steps = round(reference.duration / cfg.period)
    spread = np.repeat([cfg.noise[0], cfg.noise[1], *cfg.noise], 2)[:, None]
    noise = spread * np.random.default_rng(cfg.seed).standard_normal((8, steps + 1))
    real = arm.with_errors(cfg.stiffness_error, cfg.mass_error, 0.0)
    plant, measured = world(cfg, real, wanted, noise)
    loop = settled(control.reset(), measured, start).closed_loop(plant, start, steps, {}, measured)
    simulated = replayed(cfg, arm, reference, loop).states[:steps]
    run.check("laboratory: states less those of the simulation", np.abs(simulated - loop.x[:, :8]).max(), below=1e-7)
    of = dict(zip(("q", "theta", "v", "dtheta"), (*cfg.noise[:1] * 2, *cfg.noise[1:] * 2), strict=True))
    laws = {
        "feedback linearization": el.feedback_linearization(arm, cfg.pole),
        "flat feedforward, motor PD": el.feedforward_pd(arm, cfg.kp, cfg.kd),
        "gravity compensation, motor PD": el.gravity_pd(arm, cfg.kp, cfg.kd),
    }
    given = {**conditions(cfg), "noise": of, "seed": cfg.seed, "start": "reference"}
    errors = {name: el.simulate(arm, law, reference, **given).largest_error for name, law in laws.items()}
    at = reference.at(cfg.period * np.arange(steps))["q"].T
    errors["predictive"] = np.abs(loop.x[:, :2] - at).max()
    run.facts["laboratory: largest error [rad]"] = errors
    for name, error in errors.items():
        run.say(f"laboratory  {name:32} largest error {error:.2e} rad")
    worst = errors["gravity compensation, motor PD"]
    run.check("laboratory: error over that of gravity compensation", errors["predictive"] / worst, below=0.5)
    share = np.abs(loop.u / cfg.torque_limit).max()
    run.check("laboratory: torque, share of its limit", share, below=1 + 1e-9)
    return loop


def check_jump(run, cfg, name, loop, goal):
    torque, spring = np.abs(loop.u / cfg.torque_limit), springs(cfg, loop.x)
    run.check(f"{name}: torque, share of its limit", torque.max(), above=0.999, below=1 + 1e-9)
    run.check(f"{name}: torque of a spring, share of its limit", spring.max(), above=cfg.reached, below=1.05)
    run.check(
        f"{name}: distance from the goal in the end [rad]", np.abs(loop.x[-1, :2] - goal).max(), below=cfg.settled
    )


def springs(cfg, x):
    """Torques of the springs, shares of their limits."""
    return np.abs(np.array(cfg.stiffness) * (x[:, 4:6] - x[:, :2]) / cfg.spring_limit)


def solve(run, cfg):
    arm = build(cfg)
    control = tracking(cfg, arm)
    motion = el.rest_to_rest(cfg.start, cfg.goal, cfg.moving, continuity=arm.continuity("torque"), hold=cfg.hold)
    reference = el.reference(arm, motion)
    wanted = along(arm, reference)
    start = np.append(wanted(0).full().ravel()[:8], 0.0)
    plant, measured = world(cfg, arm, wanted)
    steps = round(reference.duration / cfg.period)
    exact = settled(control, measured, start).closed_loop(plant, start, steps, {}, measured)
    run.check("exact model: steps that are not solved", int(np.sum(exact.status != 0)), equals=0)
    at, held = (wanted.map(len(exact.x))(exact.x[None, :, 8] + s * cfg.period).full().T for s in (0, 0.5))
    run.check("exact model: error [rad]", np.abs(exact.x[:, :2] - at[:, :2]).max(), below=1e-3)
    run.check("exact model: torque less the flat map's [Nm]", np.abs(exact.u - held[:, 8:]).max(), below=0.2)
    loop = check_laboratory(run, cfg, arm, control, reference, wanted, start)

    goal = np.add(cfg.goal, cfg.jump)
    t, before = ca.MX.sym("t"), resting(arm, np.array(cfg.goal))
    jumps = ca.Function("jumps", [t], [ca.if_else(t < cfg.still - 1e-9, before, resting(arm, goal))])
    plant, measured = world(cfg, arm, jumps, foreseen=False)
    at = np.append(before[:8], 0.0)
    rest = at, round(cfg.jumping / cfg.period), {}, measured
    python = settled(control.reset(), measured, at).closed_loop(plant, *rest)
    c = settled(control.reset(), measured, at).closed_loop_in_c(plant, *rest, rate=1 / cfg.period, flags=cfg.flags)
    for what in ("x", "u"):
        run.check(f"{what}: C less Python", np.abs(getattr(python, what) - getattr(c, what)).max(), below=1e-7)
    check_jump(run, cfg, "jump", c, goal)
    used = np.median(c.seconds) / cfg.period
    run.check("real time: median time of a step, share of the period", used, below=cfg.of_period)
    run.say(c.deadlines(cfg.period))
    run.facts["deadlines"] = c.deadlines(cfg.period).splitlines()

    titles = "laboratory: q [rad]; --: wanted", "jump: q [rad], --: goal", "jump: shares of limits; --: springs"
    at = wanted.map(len(loop.x))(loop.x[None, :, 8]).full().T
    with run.figure("loops.png", *titles) as (motion, there_, shares):
        motion.plot(loop.x[:, 8], loop.x[:, :2], label=["joint 1", "joint 2"])
        motion.plot(loop.x[:, 8], at[:, :2], "k--", linewidth=0.8)
        there_.plot(c.x[:, 8], c.x[:, :2], label=["joint 1", "joint 2"])
        there_.hlines(goal, 0, cfg.jumping, "black", "dashed", linewidth=0.8)
        shares.plot(c.x[:, 8], c.u / cfg.torque_limit, label=["motor 1", "motor 2"])
        shares.plot(c.x[:, 8], springs(cfg, c.x), "--")
    names = ("q", "v", "theta", "dtheta")
    columns = tuple(f"{k}{i} [{'rad/s' if k in ('v', 'dtheta') else 'rad'}]" for k in names for i in (1, 2))
    torques = ("tau_m1 [Nm]", "tau_m2 [Nm]")
    table = {"t [s]": c.x[:, 8], columns: c.x[:, :8], torques: c.u, "seconds": c.seconds, "status": c.status}
    run.table("jump.csv", table)
    columns = tuple(f"{k}{i}_wanted [rad]" for k in ("q", "theta") for i in (1, 2))
    table = {"t [s]": loop.x[:, 8], ("q1 [rad]", "q2 [rad]"): loop.x[:, :2], columns: at[:, [0, 1, 4, 5]]}
    run.table("laboratory.csv", {**table, torques: loop.u})


quick = {"moving": 0.7, "hold": 0.0, "goal": (-0.2, 0.0), "jumping": 0.4, "reached": 0.5, "settled": 0.05}
main = od.script(solve, Config(), quick={**quick, "flags": ("-O0",), "of_period": 20.0})

if __name__ == "__main__":
    sys.exit(main())
