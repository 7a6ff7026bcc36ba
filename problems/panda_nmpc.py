"""Model-predictive control moves a Panda at 50 Hz and at 1 kHz, in C code that needs no Python.

    every 20 ms:  minimise    sum over 20 steps of |q - r|^2 + |v / 10|^2 + |tau / (10 tau_max)|^2,
                              and 10 |q - r|^2 + |v|^2 at the end,
                  subject to  v+ = v + h a,  q+ = q + h v+,  tau = inverse dynamics (q, v, a),
                              |tau| <= tau_max,  |v+| <= 2.1 rad/s,  q, v as measured at the start; the first tau acts.

r is a target that jumps and is known over the horizon. The optimum of the first step is known, and three solvers must
find it. The loop is closed in Python and in generated C, which must give the same numbers; then the C program runs in
real time while the arm carries a payload that its model does not know. At 1 kHz every step is one iteration on the
same program, whose intervals stay 20 ms long, and its first torque acts for 1 ms. Inertias: the vendor's.
Run:    python problems/panda_nmpc.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od


@dataclass(frozen=True)
class Config:
    home: tuple = (0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4)  # [rad]
    jump: tuple = (0.2, 0.1, -0.1, 0.2, 0.1, -0.2, 0.3)  # of the target, there and back [rad]
    every: float = 1.0  # between jumps [s]
    nodes: int = 20
    h: float = 0.02  # [s]
    speed: float = 2.1  # [rad/s]
    effort: float = 1.0  # share of the limits of torque that may be used
    known: float = 1.343618865  # optimum of the first step, from a separate program
    payload: float = 0.5  # that the model of the controller does not know [kg]
    duration: float = 4.0  # of the loop [s]
    fast: float = 1e-3  # period of the faster loop [s]
    fast_duration: float = 2.0  # of it [s]
    flags: tuple = ("-O2",)
    of_period: float = 1.0  # that the median of a step may take
    fps: int = 25


def tracking(cfg, robot, most):
    """(Problem, tau)."""
    ocp = od.Problem(cfg.nodes, cfg.nodes * cfg.h)
    q, v, a = ocp.state("q", 7, guess=cfg.home, scale=1), ocp.state("v", 7), ocp.control("a", 7)
    q_now, v_now, r = ocp.parameter("q_now", 7), ocp.parameter("v_now", 7), ocp.varying("r", 7)
    tau = od.function(robot, "inverse_dynamics", derivatives="analytic")(q, v, a)
    ocp.next(q, q + cfg.h * (v + cfg.h * a))
    ocp.next(v, v + cfg.h * a)
    ocp.limit(-1, tau / most, 1)
    ocp.limit(-cfg.speed, v + cfg.h * a, cfg.speed)  # not v: the present is as it is
    ocp.start({q: q_now, v: v_now})
    ocp.minimize(squares=np.sqrt(2 / cfg.h) * ca.vertcat(q - r, v / 10, tau / most / 10))
    ocp.minimize(terminal=10 * ca.sumsqr(q - r) + ca.sumsqr(v))
    return ocp, tau


def world(cfg, robot, period):
    """Functions: t -> target; ([q; v; t], tau) -> the state after a period, tau held; state -> what is measured."""
    x, tau, t = ca.SX.sym("x", 15), ca.SX.sym("tau", 7), ca.SX.sym("t")
    away = ca.fmod(ca.floor(t / cfg.every + 1e-9), 2) == 0
    target = ca.Function("target", [t], [ca.DM(cfg.home) + ca.DM(cfg.jump) * away])
    dv = od.function(robot, "forward_dynamics")(x[:7], x[7:14], tau)
    after = ca.simpleRK(ca.Function("rate", [x, tau], [ca.vertcat(x[7:14], dv, 1)]), 4)(x, tau, period)
    horizon = ca.horzcat(*(target(x[14] + cfg.h * k) for k in range(cfg.nodes + 1)))
    measured = ca.Function("measured", [x], [x[:7], x[7:14], horizon], ["x"], ["q_now", "v_now", "r"])
    return target, ca.Function("plant", [x, tau], [after], ["x", "tau"], ["x_next"]), measured


def at_1_khz(run, cfg, robot, limits, ocp, tau, start):
    """Checks of the loop with one iteration a step; ClosedLoop."""
    bounds, steps = {"tau": (-limits.tau, limits.tau)}, round(cfg.fast_duration / cfg.fast)
    options = {"iterations": 1, "shift": 0, "name": "fast", "output_bounds": bounds}
    control = od.mpc(ocp, outputs={"tau": tau}, method="euler", **options)
    target, plant, measured = world(cfg, robot, cfg.fast)
    few = control.closed_loop(plant, start, steps // 10, {}, measured)
    loop = control.reset().closed_loop_in_c(plant, start, steps, {}, measured, rate=1 / cfg.fast, flags=cfg.flags)
    for what in ("x", "u"):
        difference = np.abs(getattr(loop, what)[: len(few.x)] - getattr(few, what)).max()
        run.check(f"1 kHz, {what}: C less Python", difference, below=1e-9)
    run.check("1 kHz: torque, share of its limit", np.abs(loop.u / limits.tau).max(), below=1 + 1e-9)
    run.check("1 kHz: speed, share of its limit", np.abs(loop.x[:, 7:14]).max() / cfg.speed, below=1.03)
    # the first steps begin from the guess, and one iteration does not solve them
    run.check("1 kHz: violation of scaled constraints", loop.violation[10:].max(), below=1e-3)
    run.check("1 kHz: steps that are not solved", int(np.sum(loop.status[10:] != 0)), equals=0)
    before = slice(round((cfg.every - cfg.nodes * cfg.h) / cfg.fast) - 1, None, round(cfg.every / cfg.fast))
    wanted = target(loop.x[None, :, 14]).full().T
    off = np.abs(loop.x[:, :7] - wanted)[before].max()
    run.check("1 kHz: distance from a target before the next one [rad]", off, below=2e-2)
    used = np.median(loop.seconds) / cfg.fast
    run.check("1 kHz, real time: median time of a step, share of the period", used, below=cfg.of_period)
    run.say(loop.deadlines(cfg.fast))
    run.facts["deadlines at 1 kHz"] = loop.deadlines(cfg.fast).splitlines()
    return loop


def solve(run, cfg):
    robot, payload = od.robots.panda("vendor"), od.Inertia.from_com(cfg.payload, (0, 0, 0.05), np.diag([1e-3] * 3))
    heavier, limits = robot.with_payload("panda_link8", payload), od.Limits.of(robot).scaled(tau=cfg.effort)
    start, away = [*cfg.home, *[0] * 8], np.add(cfg.home, cfg.jump)
    for arm, what in ((robot, "the arm"), (heavier, "the arm with its payload")):
        for q in (cfg.home, away):
            limits.assert_within(f"{what}, at rest", q=q, tau=od.function(arm, "inverse_dynamics")(q, 0, 0))
    ocp, tau = tracking(cfg, robot, limits.tau)
    run.facts["optima"], inputs = {}, {"q_now": cfg.home, "v_now": 0.0, "r": away}
    for solver, hessian in (("ipopt", "exact"), ("fatrop", "exact"), ("sqpmethod", "gauss_newton")):
        solution = ocp.solve(method="euler", solver=solver, hessian=hessian, parameters=inputs)
        run.facts["optima"][solver] = solution.objective
        run.check(f"{solver}: optimum of the first step", solution.objective, equals=cfg.known, within=2e-8)
    bounds = {"tau": (-limits.tau, limits.tau)}
    control = od.mpc(ocp, outputs={"tau": tau}, method="euler", output_bounds=bounds)
    target, plant, measured = world(cfg, robot, cfg.h)
    rest = start, round(cfg.duration / cfg.h), {}, measured
    python = control.closed_loop(plant, *rest)
    c = control.reset().closed_loop_in_c(plant, *rest, flags=cfg.flags)
    loaded = control.reset().closed_loop_in_c(world(cfg, heavier, cfg.h)[1], *rest, rate=1 / cfg.h, flags=cfg.flags)
    for what in ("x", "u", "objective"):
        run.check(f"{what}: C less Python", np.abs(getattr(python, what) - getattr(c, what)).max(), below=1e-9)
    before = slice(round(cfg.every / cfg.h) - 1 - cfg.nodes, None, round(cfg.every / cfg.h))  # a jump comes into view
    wanted = target(c.x[None, :, 14]).full().T
    # the model does not know the payload: its prediction keeps the limit of speed, which the arm exceeds, by 1.20
    for name, loop, over, near in (("as modelled", c, 1.03, 2e-2), ("with payload", loaded, 1.3, 8e-2)):
        run.check(f"{name}: torque, share of its limit", np.abs(loop.u / limits.tau).max(), below=1 + 1e-6)
        run.check(f"{name}: speed, share of its limit", np.abs(loop.x[:, 7:14]).max() / cfg.speed, below=over)
        run.check(f"{name}: violation of scaled constraints", loop.violation.max(), below=1e-6)
        off = np.abs(loop.x[:, :7] - wanted)[before].max()
        run.check(f"{name}: distance from a target before the next one [rad]", off, below=near)
    used = np.median(loaded.seconds) / cfg.h
    run.check("real time: median time of a step, share of the period", used, below=cfg.of_period)
    run.say(loaded.deadlines(cfg.h))
    run.facts["deadlines"] = loaded.deadlines(cfg.h).splitlines()
    fast = at_1_khz(run, cfg, robot, limits, ocp, tau, start)

    t, x, efforts = loaded.x[:, 14], loaded.x, tuple(f"tau{i} [Nm]" for i in range(1, 8))
    states = (*(f"q{i} [rad]" for i in range(1, 8)), *(f"v{i} [rad/s]" for i in range(1, 8)), "t [s]")
    run.table("loop.csv", {states: x, efforts: loaded.u, "objective": loaded.objective, "seconds": loaded.seconds})
    few = slice(None, None, 10)
    columns = {states: fast.x[few], efforts: fast.u[few], "objective": fast.objective[few]}
    run.table("fast.csv", {**columns, "seconds": fast.seconds[few]})
    titles = "from home [rad]; --: payload, ..: target", "torques, share of limits", "times of steps; line: deadline"
    with run.figure("loop.png", *titles) as (motion, torque, times):
        for i in (0, 3, 6):
            for y, style in ((wanted, ":"), (x, "--"), (c.x, "-")):
                motion.plot(t, y[:, i] - cfg.home[i], f"C{i}{style}", label=f"joint {i + 1}" if style == "-" else None)
        torque.plot(t, loaded.u / limits.tau, linewidth=1)
        times.hist(1e3 * loaded.seconds, 40)
        times.axvline(1e3 * cfg.h, color="black")
        times.set(xlabel="[ms]", ylabel="steps")
    od.animate(robot, t, x[:, :7], run.out / "loop.gif", fps=cfg.fps, size=(360, 360))


# quick runs are for tests, with C that is not optimised and on machines under load: a step may take five periods
main = od.script(
    solve, Config(), quick={"duration": 1.0, "fast_duration": 0.7, "flags": ("-O0",), "of_period": 5.0, "fps": 5}
)

if __name__ == "__main__":
    sys.exit(main())
