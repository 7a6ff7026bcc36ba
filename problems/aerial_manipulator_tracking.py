"""A multirotor's base flies along a path planned with its arms, which swing passively or move as prescribed.

    minimise    integral of |wrench / weight|^2 + small |y'''''|^2 and velocities of passive arms
    subject to  y = (position, yaw) of the base from rest to rest, four times differentiable,
                M v' + C v + g = [wrench; tau],  v' of the base as y says, and at the arms
                    passive: tau = -d v, their motion follows,   or   prescribed: angles given, their torques follow;
                thrusts of the six propellers, from the wrench, between 0 and their limit.

That is hybrid dynamics: accelerations prescribed at some joints, torques at the others. The plan evaluates it once
an interval; the wrench is then found along the planned path on a fine grid. Fed to the forward dynamics of the whole
robot, without feedback, it has to give the path back; what energy it gains is what its power comes to.
Source: Ali, Gabellieri, Franchi 2026, section 7 (the robot, the use of hybrid dynamics); task and numbers are ours.
Run:    python problems/aerial_manipulator_tracking.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
from dataclasses import asdict, dataclass
from math import factorial
from pathlib import Path
from types import SimpleNamespace

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

import oc_dyn as od
from oc_dyn.planning import animate as gif
from oc_dyn.planning.trajectory import Samples
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    start: tuple = (0.0, 0.0, 1.5, 0.0)  # position [m], yaw [rad]
    goal: tuple = (2.0, 1.0, 2.0, 0.8)
    duration: float = 3.0  # [s]
    nodes: int = 60
    thrust: float = 14.0  # limit of a propeller [N]
    damping: float = 0.01  # d of passive arms [Nm s/rad]
    smooth: float = 1e-6  # weight of the fifth derivative
    swing: tuple = (0.4, -0.6, 0.8, -0.4, 0.7, -0.9)  # of prescribed arms, there and back [rad]
    frequency: float = 3.0  # of it [rad/s]
    fine: int = 40  # steps of the integrations in an interval
    fps: int = 12


ORDER = 5  # of the derivative of y that is constant on intervals: y is four times differentiable
ARMS = tuple(f"{arm}_joint{i}" for arm in ("left", "right") for i in (1, 2, 3))

# -- model ----------------------------------------------------------------------------------------------------


def base(y, dy, ddy):
    """(q (7,), v (6,), v' (6,)) of the base: quaternion and position, twist in its own axes and its derivative."""
    c, s = ca.cos(y[3]), ca.sin(y[3])
    R = ca.blockcat([[c, s, 0], [-s, c, 0], [0, 0, 1]])  # into the base's axes
    v, turning = R @ dy[:3], ca.vertcat(0, 0, dy[3])
    q = ca.vertcat(ca.cos(y[3] / 2), 0, 0, ca.sin(y[3] / 2), y[:3])
    return q, ca.vertcat(turning, v), ca.vertcat(0, 0, ddy[3], R @ ddy[:3] - ca.cross(turning, v))


def hybrid(cfg, robot):
    """{case: Function (y, y', y'', arms q, v, v') -> (wrench (6,), arm torques, arm v', q, v)}; v' of passive arms is
    not used."""
    y, arms = [ca.SX.sym("y", 4) for _ in range(3)], [ca.SX.sym("a", 6) for _ in range(3)]
    q, v, dv = base(*y)
    q, v, out = ca.vertcat(q, arms[0]), ca.vertcat(v, arms[1]), {}
    f, tau = od.function(robot, "hybrid_dynamics", prescribed=("root_joint",)), -cfg.damping * arms[1]
    f = f(q=q, v=v, dv_p=dv, tau_f=tau)
    out["passive"] = ca.Function("passive", [*y, *arms], [f["tau_p"], tau, f["dv_f"], q, v])
    f = od.function(robot, "hybrid_dynamics", prescribed=("root_joint", *ARMS))
    f = f(q=q, v=v, dv_p=ca.vertcat(dv, arms[2]), tau_f=ca.SX(0, 1))
    out["prescribed"] = ca.Function("prescribed", [*y, *arms], [f["tau_p"][:6], f["tau_p"][6:], arms[2], q, v])
    return out


def told(cfg, t):
    """(q, v, v') (6, K) of prescribed arms at times t (K,)."""
    w, swing = cfg.frequency, np.array(cfg.swing)[:, None]
    return swing * (1 - np.cos(w * t)) / 2, swing * w * np.sin(w * t) / 2, swing * w**2 * np.cos(w * t) / 2


# -- planning -------------------------------------------------------------------------------------------------


def plan(cfg, robot, f, case):
    """Pieces (N, 6, 4) of y: its derivatives at the start of each; iterations."""
    N, h = cfg.nodes, cfg.duration / cfg.nodes
    start, goal, weight = np.array(cfg.start), np.array(cfg.goal), 9.81 * robot.total_mass
    ocp = od.Problem(N, cfg.duration)
    smooth = [lambda z: start + (goal - start) * z**3 * (10 - 15 * z + 6 * z * z), *[0.0] * ORDER]
    y = ocp.chain("y", 4, ORDER, guess=smooth, scale=(1, 2, 5, 20, 100, 1000))
    middle = [sum(y[j + i] * (h / 2) ** i / factorial(i) for i in range(ORDER + 1 - j)) for j in range(3)]
    if case == "passive":
        q, v = ocp.state("q", 6), ocp.state("v", 6)
        wrench, _, dv, _, _ = f(*middle, q + h / 2 * v, v, 0)
        ocp.next(v, v + h * dv)
        ocp.next(q, q + h * v + h**2 / 2 * dv)
        ocp.start({q: 0, v: 0})
        ocp.limit(-1, q, 1)
        ocp.minimize(squares=0.1 * v)
        given = {}
    else:
        arms = [ocp.varying(name, 6) for name in ("q", "v", "a")]
        wrench, given = f(*middle, *arms)[0], {"p": told(cfg, (np.arange(N + 1) + 0.5) * h)}
        given = {name: x.T for name, x in zip(("q", "v", "a"), given["p"], strict=True)}
    thrust = ca.mtimes(ca.DM(np.linalg.inv(od.robots.propellers())), wrench)
    ocp.limit(0, thrust / cfg.thrust, 1)
    ocp.start({y[0]: start, **dict.fromkeys(y[1:ORDER], 0)})
    ocp.goal({y[0]: goal, **dict.fromkeys(y[1:ORDER], 0)})
    ocp.minimize(squares=ca.vertcat(wrench / weight * 2, np.sqrt(cfg.smooth) * y[ORDER] / 30))
    found = ocp.solve(method="euler", parameters=given)
    return np.stack([np.vstack([found[x], found[x][-1:]])[:N] for x in y], axis=1), found.iterations


# -- along the path, and back ---------------------------------------------------------------------------------


def along(cfg, pieces, t):
    """(y, y', y'') (4, K) at times t (K,)."""
    h = cfg.duration / len(pieces)
    k = np.clip((t / h + 1e-9).astype(int), 0, len(pieces) - 1)
    s = (t - k * h)[:, None]
    return [sum(pieces[k, d + i] * s**i / factorial(i) for i in range(ORDER + 1 - d)).T for d in range(3)]


def fine(cfg, f, pieces, case):
    """{t, q, v, tau} on a grid of half steps: arms by Runge-Kutta steps along the path, with the wrench it takes."""
    K = 2 * cfg.fine * cfg.nodes
    t = np.linspace(0, cfg.duration, K + 1)
    h, at, half = t[1], along(cfg, pieces, t), along(cfg, pieces, (t[1:] + t[:-1]) / 2)
    if case == "prescribed":
        arms = told(cfg, t)
    else:
        x, Y = ca.SX.sym("x", 12), [[ca.SX.sym("y", 4) for _ in range(3)] for _ in range(3)]

        def rate(y, z):
            return ca.vertcat(z[6:], f(*y, z[:6], z[6:], 0)[2])

        k1 = rate(Y[0], x)
        k2 = rate(Y[1], x + h / 2 * k1)
        k3 = rate(Y[1], x + h / 2 * k2)
        k4 = rate(Y[2], x + h * k3)
        step = ca.Function("step", [x, *Y[0], *Y[1], *Y[2]], [x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])
        columns = [*(z[:, :-1] for z in at), *half, *(z[:, 1:] for z in at)]
        states = np.hstack([np.zeros((12, 1)), np.array(step.mapaccum(K)(np.zeros(12), *columns))])
        arms = states[:6], states[6:], np.zeros((6, K + 1))
    wrench, torque, _, q, v = (np.array(z) for z in f.map(K + 1)(*at, *arms))
    return {"t": t, "q": q, "v": v, "tau": np.vstack([wrench, torque])}


def back(robot, run):
    """(q (13, K + 1), v): forward dynamics of the whole robot under the efforts of a run, every second of its times."""
    q, v, w = ca.SX.sym("q", 13), ca.SX.sym("v", 12), [ca.SX.sym("w", 12) for _ in range(3)]
    forward, h = od.function(robot, "forward_dynamics"), run["t"][2]

    def rate(x, tau):
        return ca.vertcat(robot.configuration_rate(x[:13], x[13:]), forward(x[:13], x[13:], tau))

    x = ca.vertcat(q, v)
    k1 = rate(x, w[0])
    k2 = rate(x + h / 2 * k1, w[1])
    k3 = rate(x + h / 2 * k2, w[1])
    step = ca.Function("back", [x, *w], [x + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + h * k3, w[2]))])
    start = np.concatenate([run["q"][:, 0], run["v"][:, 0]])
    tau = run["tau"]
    states = np.array(step.mapaccum(tau.shape[1] // 2)(start, tau[:, :-2:2], tau[:, 1:-1:2], tau[:, 2::2]))
    states = np.hstack([start[:, None], states])
    return states[:13], states[13:]


# -- checks ---------------------------------------------------------------------------------------------------


def check(cfg, robot, plans, runs):
    """{what: (error, bound)}."""
    out = {}
    energy = [od.function(robot, f"{kind}_energy") for kind in ("kinetic", "potential")]
    for case, run in runs.items():
        t, q, v, tau = run["t"], run["q"], run["v"], run["tau"]
        again, speed = back(robot, run)
        out[f"{case}: base path given back by forward dynamics [m, -]"] = np.abs(again[:7] - q[:7, ::2]).max(), 1e-6
        out[f"{case}: angles of the arms given back [rad]"] = np.abs(again[7:] - q[7:, ::2]).max(), 1e-5
        out[f"{case}: velocities given back"] = np.abs(speed - v[:, ::2]).max(), 1e-5
        E = np.array(energy[0].map(t.size)(q, v)).ravel() + np.array(energy[1].map(t.size)(q)).ravel()
        power = np.sum(tau * v, axis=0)
        inner = slice(4, -4)
        stencil = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
        rate = sum(c * (np.roll(E, -j) - np.roll(E, j)) for j, c in stencil.items()) / t[1]
        h = cfg.duration / cfg.nodes
        far = np.abs((t / h) - np.round(t / h)) * h > 5 * t[1]  # from nodes, where the wrench has a kink
        error = np.abs(rate - power)[inner][far[inner]].max() / np.abs(power).max()
        out[f"{case}: rate of the energy less the power, relative"] = error, 1e-6
        work = t[1] / 3 * (power[0] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum() + power[-1])
        out[f"{case}: energy gained less work, relative"] = abs(work - (E[-1] - E[0])) / abs(work), 1e-8
        thrust = np.linalg.solve(od.robots.propellers(), tau[:6])
        out[f"{case}: thrust, share of its limit"] = thrust.max() / cfg.thrust, 1.02
        out[f"{case}: negative thrust, share of the limit"] = -thrust.min() / cfg.thrust, 0.0
        pieces, hs = plans[case][0], h ** np.arange(ORDER + 1)
        for d in range(ORDER):
            ends = sum(pieces[:-1, d + i] * hs[i] / factorial(i) for i in range(ORDER + 1 - d))
            out[f"{case}: jump of derivative {d} of the path"] = np.abs(ends - pieces[1:, d]).max(), 1e-5
        last = sum(pieces[-1, i] * hs[i] / factorial(i) for i in range(ORDER + 1))
        out[f"{case}: goal missed by"] = np.abs(last - cfg.goal).max(), 1e-6
    swing = runs["passive"]
    out["passive: torques of the arms less damping [Nm]"] = (
        np.abs(swing["tau"] + cfg.damping * swing["v"])[6:].max(),
        1e-9,
    )
    out["passive: angles of the arms [rad], as far as they go"] = np.abs(swing["q"][7:]).max(), 1.5
    return {what: (float(e), b) for what, (e, b) in out.items()}


# -- figures and files ----------------------------------------------------------------------------------------


def plot(cfg, runs, path):
    """Path, angles of the arms, thrusts of both cases."""
    figure = Figure(figsize=(12, 6.5), layout="constrained")
    for row, (case, run) in zip(figure.subplots(2, 3, sharex=True), runs.items(), strict=True):
        row[0].plot(run["t"], run["q"][4:7].T, label=["x", "y", "z"])
        row[0].plot(run["t"], 2 * np.arctan2(run["q"][3], run["q"][0]), label="yaw")
        row[1].plot(run["t"], run["q"][7:].T)
        row[2].plot(run["t"], np.linalg.solve(od.robots.propellers(), run["tau"][:6]).T)
        row[2].axhline(cfg.thrust, color="black", linewidth=0.8)
        for axis, what in zip(row, ("base [m, rad]", "arms [rad]", "thrusts [N]"), strict=True):
            axis.set_title(f"{case} arms: {what}")
            axis.grid(alpha=0.3)
    figure.axes[0].legend(fontsize="small")
    for axis in figure.axes[3:]:
        axis.set_xlabel("time [s]")
    figure.savefig(path, dpi=80)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    out = Path("results/aerial_manipulator_tracking")
    parser.add_argument("--out", type=Path, default=out, help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer nodes and pictures")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(nodes=45, fine=24, fps=6) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    robot = od.robots.aerial_manipulator()
    functions, plans, runs = hybrid(cfg, robot), {}, {}
    for case, f in functions.items():
        plans[case] = plan(cfg, robot, f, case)
        runs[case] = fine(cfg, f, plans[case][0], case)
        say(f"{case:10} {plans[case][1]} iterations")
    checks = check(cfg, robot, plans, runs)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:62} {error:10.3e}  {'is' if error < bound else 'IS NOT'} below {bound:.3e}")

    run, keep = runs["passive"], slice(None, None, 2 * cfg.fine // 4)
    header = ["t [s]", "qw", "qx", "qy", "qz", "x [m]", "y [m]", "z [m]", *(f"{j} [rad]" for j in ARMS)]
    header += [f"wrench_{c}" for c in ("mx [Nm]", "my [Nm]", "mz [Nm]", "fx [N]", "fy [N]", "fz [N]")]
    table = np.vstack([run["t"], run["q"], run["tau"][:6]]).T[keep]
    np.savetxt(options.out / "passive.csv", table, fmt="%.9g", delimiter=",", header=",".join(header), comments="")
    plot(cfg, runs, options.out / "tracking.png")
    animate(cfg, robot, run, options.out / "passive.gif")
    command = ["python", "problems/aerial_manipulator_tracking.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "iterations": {case: n for case, (_, n) in plans.items()}}
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


def animate(cfg, robot, run, path):
    """GIF of the flight."""
    step = max(1, round(len(run["t"]) / (cfg.duration * cfg.fps)))
    frames = Samples(run["t"][::step], [run["q"].T[::step]], joints=(), units=(), robot=robot)
    gif.animate(SimpleNamespace(robot=robot, sample=lambda dt: frames), path, cfg.fps, (360, 360))


if __name__ == "__main__":
    sys.exit(main())
