"""A Panda is moved by model-predictive control at 50 Hz, by C code that needs no Python.

    every 20 ms:  minimise    sum over 20 steps of |q - r|^2 + |v / 10|^2 + |tau / (10 tau_max)|^2,
                              and 10 |q - r|^2 + |v|^2 at the end,
                  subject to  v+ = v + h a,  q+ = q + h v+,  tau = inverse dynamics (q, v, a),
                              |tau| <= tau_max,  |v+| <= 2.1 rad/s,  q and v as measured at the start;
                  apply       the first tau.

r is a target that jumps, and is known over the horizon. The optimum of the first step is known, and found by ipopt,
fatrop and sequential quadratic programming; the loop is closed in Python, and by the same written as C, which has to
give the same numbers; then the C program runs in real time, its arm carrying a payload that its model does not know.
Source of the inertias: the vendor's description of the arm (link 4 is not a rigid body's, which is of no matter here).
Run:    python problems/panda_nmpc.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
import tempfile
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

import oc_dyn as od
from oc_dyn.robots.panda import franka_arm, panda_limits
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------

MASSES = (2.7907, 2.5420, 2.2513, 2.2037, 2.2855, 1.353, 0.35973)  # [kg]
CENTRES = (  # of mass [m]
    *((0.00033, -0.02204, -0.04762), (0.00038, -0.09211, 0.01908), (0.05152, 0.01696, -0.02971)),
    *(
        (-0.05113, 0.05825, 0.01698),
        (-5e-5, 0.0373, -0.0928),
        (0.06572, -0.00371, 0.00153),
        (0.00089, -0.00044, 0.05491),
    ),
)
TENSORS = (  # about these [kg m^2]: xx, xy, xz, yy, yz, zz
    (0.01564782655, 5.31236e-6, -3.676721e-5, 0.01439883526, -0.00248480843, 0.00500443991),
    (0.01662427728, 3.086077e-5, 8.3594e-6, 0.00462501261, 0.0035589983, 0.01545124526),
    (0.00631741992, 0.00097309955, 0.00292525834, 0.00866285493, 0.00093469224, 0.00657804051),
    (0.00784585566, -0.00339591957, 0.00158704074, 0.00649543136, -0.00181477884, 0.01003079917),
    (0.02297014781, -9.49345e-6, -2.063156e-5, 0.02095060919, 0.00382345782, 0.00430606551),
    (0.00087964522, -0.00021487814, -0.00011911662, 0.00277796968, 1.274322e-5, 0.00286701969),
    (0.00019541063, 1.65231e-6, 1.48826e-6, 0.00019210361, -1.31132e-6, 0.00017936256),
)


@dataclass(frozen=True)
class Config:
    home: tuple = (0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4)  # [rad]
    jump: tuple = (0.2, 0.1, -0.1, 0.2, 0.1, -0.2, 0.3)  # of the target, there and back [rad]
    every: float = 1.0  # between jumps [s]
    nodes: int = 20
    h: float = 0.02  # [s]
    speed: float = 2.1  # [rad/s]
    known: float = 1.343618865  # optimum of the first step, from a separate program
    payload: float = 0.5  # that the model of the controller does not know [kg]
    duration: float = 4.0  # of the loop [s]
    flags: tuple = ("-O2",)
    of_period: float = 1.0  # that the median of a step may take
    fps: int = 25


# -- problem and plant ----------------------------------------------------------------------------------------


def arm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", od.ModelWarning)  # of link 4
        return franka_arm("panda", tuple(zip(MASSES, CENTRES, TENSORS, strict=True)), panda_limits())


def tracking(cfg, robot):
    """(Problem, tau)."""
    ocp = od.Problem(cfg.nodes, cfg.nodes * cfg.h)
    q = ocp.state("q", 7, guess=cfg.home, scale=1)
    v, a = ocp.state("v", 7), ocp.control("a", 7)
    q_now, v_now, r = ocp.parameter("q_now", 7), ocp.parameter("v_now", 7), ocp.varying("r", 7)
    tau, most = od.function(robot, "inverse_dynamics", derivatives="analytic")(q, v, a), robot.limit("effort")
    ocp.next(q, q + cfg.h * (v + cfg.h * a))
    ocp.next(v, v + cfg.h * a)
    ocp.limit(-1, tau / most, 1)
    ocp.limit(-cfg.speed, v + cfg.h * a, cfg.speed)  # not v: the present is as it is
    ocp.start({q: q_now, v: v_now})
    ocp.minimize(squares=np.sqrt(2 / cfg.h) * ca.vertcat(q - r, v / 10, tau / most / 10))
    ocp.minimize(terminal=10 * ca.sumsqr(q - r) + ca.sumsqr(v))
    return ocp, tau


def target(cfg, t):
    """Where the arm should be at times t, a casadi expression (1, k)."""
    away = ca.fmod(ca.floor(t / cfg.every + 1e-9), 2) == 0
    return ca.repmat(ca.DM(cfg.home), 1, t.shape[1]) + ca.mtimes(ca.DM(cfg.jump), away)


def plant(cfg, robot):
    """Function (q, v, t; tau) -> the same after h, tau held: four Runge-Kutta steps of forward dynamics."""
    x, tau = ca.SX.sym("x", 15), ca.SX.sym("tau", 7)
    dynamics = od.function(robot, "forward_dynamics")
    f = ca.Function("f", [x, tau], [ca.vertcat(x[7:14], dynamics(x[:7], x[7:14], tau), 1)])
    step = ca.simpleRK(f, 4)
    return ca.Function("plant", [x, tau], [step(x, tau, cfg.h)], ["x", "tau"], ["x_next"])


def measured(cfg):
    """Function x -> q_now, v_now, and r over the horizon."""
    x = ca.SX.sym("x", 15)
    r = target(cfg, x[14] + cfg.h * ca.DM(range(cfg.nodes + 1)).T)
    return ca.Function("measured", [x], [x[:7], x[7:14], r], ["x"], ["q_now", "v_now", "r"])


# -- solving and checks ---------------------------------------------------------------------------------------


def optima(cfg, ocp):
    """{solver: (optimum, iterations)} of the first step."""
    away = np.array(cfg.home) + cfg.jump
    given, out = {"q_now": cfg.home, "v_now": 0.0, "r": away}, {}
    for solver, hessian in (("ipopt", "exact"), ("fatrop", "exact"), ("sqpmethod", "gauss_newton")):
        found = ocp.solve(method="euler", solver=solver, hessian=hessian, parameters=given)
        out[solver] = found.objective, found.iterations
    return out


def loops(cfg, robot, ocp, tau, folder, say):
    """(Loop in Python, the same in C, Loop in real time with the payload)."""
    control, steps = od.mpc(ocp, outputs={"tau": tau}, method="euler"), round(cfg.duration / cfg.h)
    start, seen = np.array([*cfg.home, *np.zeros(8)]), measured(cfg)
    loaded = robot.with_payload("panda_link8", od.Inertia.from_com(cfg.payload, (0, 0, 0.05), np.diag([1e-3] * 3)))
    found = []
    for load, rate in ((robot, None), (loaded, 1 / cfg.h)):
        model = plant(cfg, load)
        if rate is None:
            found.append(control.closed_loop(model, start, steps, {}, seen))
        control.reset().codegen(folder, model, seen, x=start, steps=steps, rate=rate)
        control.build(folder, cfg.flags)
        found.append(control.run_in_c(folder))
    say(found[-1].deadlines(cfg.h))
    return found


def check(cfg, robot, first, found):
    """{what: (error, bound)}."""
    python, c, loaded = found
    out = {
        f"{solver}: optimum of the first step less the known one": (abs(f - cfg.known), 2e-8)
        for solver, (f, _) in first.items()
    }
    for what in ("x", "u", "objective"):
        out[f"{what}: C less Python"] = np.abs(getattr(python, what) - getattr(c, what)).max(), 1e-9
    for name, loop, over in (("as modelled", c, 1.03), ("with payload", loaded, 1.3)):
        out[f"{name}: torque, share of its limit"] = np.abs(loop.u / robot.limit("effort")).max(), 1 + 1e-6
        out[f"{name}: speed, share of its limit"] = np.abs(loop.x[:, 7:14]).max() / cfg.speed, over
        out[f"{name}: violation of scaled constraints"] = loop.violation.max(), 1e-6
    per = round(cfg.every / cfg.h)
    ends = [k for k in range(per - 1 - cfg.nodes, len(c.x), per)]  # just before the next jump comes into view
    for name, loop, bound in (("as modelled", c, 2e-2), ("with payload", loaded, 8e-2)):
        miss = max(np.abs(loop.x[k, :7] - np.array(target(cfg, ca.DM([[loop.x[k, 14]]]))).ravel()).max() for k in ends)
        out[f"{name}: distance from a target before the next [rad]"] = miss, bound
    out["real time: median time of a step, share of the period"] = np.median(loaded.seconds) / cfg.h, cfg.of_period
    return {what: (float(e), b) for what, (e, b) in out.items()}


# -- figures and files ----------------------------------------------------------------------------------------


def plot(cfg, robot, found, path):
    """Motion and target, torques, times of steps."""
    figure = Figure(figsize=(12, 4), layout="constrained")
    motion, torque, times = figure.subplots(1, 3)
    _, c, loaded = found
    t = c.x[:, 14]
    for i in (0, 3, 6):
        motion.plot(t, c.x[:, i] - cfg.home[i], f"C{i}", label=f"joint {i + 1}")
        motion.plot(t, loaded.x[:, i] - cfg.home[i], f"C{i}--", linewidth=0.9)
        motion.plot(t, np.array(target(cfg, ca.DM(t[None, :])))[i] - cfg.home[i], f"C{i}:", linewidth=0.9)
    torque.plot(t, loaded.u / robot.limit("effort"), linewidth=1)
    times.hist(1e3 * loaded.seconds, 40)
    times.axvline(1e3 * cfg.h, color="black")
    motion.set(title="angles from home [rad]; dashed: payload, dotted: target", xlabel="time [s]")
    torque.set(title="torques, share of limits, with payload", xlabel="time [s]")
    times.set(title="times of steps in C; line: deadline", xlabel="[ms]", ylabel="steps")
    motion.legend(fontsize="small")
    for axis in (motion, torque, times):
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=90)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/panda_nmpc"), help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="a short loop, less optimised C")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(duration=1.0, flags=("-O1",), of_period=5.0, fps=5) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    robot = arm()
    ocp, tau = tracking(cfg, robot)
    first = optima(cfg, ocp)
    for solver, (f, iterations) in first.items():
        say(f"{solver:10} optimum of the first step {f:.9f}  {iterations} iterations")
    with tempfile.TemporaryDirectory() as folder:
        found = loops(cfg, robot, ocp, tau, folder, say)
    checks = check(cfg, robot, first, found)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:62} {error:10.3e}  {'is' if error < bound else 'IS NOT'} below {bound:.3e}")

    loop = found[-1]
    names = [f"{x}{i} [{unit}]" for x, unit in (("q", "rad"), ("v", "rad/s")) for i in range(1, 8)]
    names += ["t [s]", *(f"tau{i} [Nm]" for i in range(1, 8)), "objective", "seconds"]
    table = np.column_stack([loop.x, loop.u, loop.objective, loop.seconds])
    np.savetxt(options.out / "loop.csv", table, fmt="%.9g", delimiter=",", header=",".join(names), comments="")
    plot(cfg, robot, found, options.out / "loop.png")
    pieces = np.stack([loop.x[:-1, :7], np.diff(loop.x[:, :7], axis=0) / cfg.h], axis=1)
    motion = od.Trajectory(loop.x[:, 14], pieces, joints=robot.coordinate_names, units=("rad",) * 7, robot=robot)
    motion.animate(options.out / "loop.gif", fps=cfg.fps, size=(360, 360))
    command = ["python", "problems/panda_nmpc.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "optima": {k: f for k, (f, _) in first.items()}}
    facts["deadlines"] = loop.deadlines(cfg.h).splitlines()
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
