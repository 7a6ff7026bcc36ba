"""A quadruped jumps forward: legs push, it flies, and it lands softly and comes to rest.

    minimise    integral of |tau / tau_max|^2 + small |v'|^2
    subject to  q+ = q (+) (h v + h^2/2 v'),  v+ = v + h v'     steps on the manifold of configurations,
                inverse dynamics (q, v, v') - sum J_i' f_i = [0; tau]      no wrench acts on the base itself,
                |tau| <= tau_max,  joints within their limits,
                on the ground: f_i in a pyramid within the friction cone, feet at rest;  in flight: f_i = 0, feet above;
                standing at the start; at the end standing as before, further on.

Accelerations and contact forces are the unknowns of every interval (inverse-dynamics transcription). Feet come down
with no velocity, so that nothing jumps. Push, flight and landing have durations of their own.
Robot: of the size and build of HyQ (Semini et al. 2011), three joints a leg; masses, limits and jump are ours.
Run:    python problems/quadruped_jump.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
from dataclasses import asdict, dataclass
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
    jump: float = 0.4  # forward [m]
    friction: float = 0.7
    nodes: tuple = (18, 14, 1, 18)  # of push, flight, touch-down, landing
    durations: tuple = ((0.2, 0.6), (0.15, 0.5), 0.02, (0.2, 0.6))  # [s]
    hip: float = 0.75  # standing angle of the hip about y [rad]; the knee bends back by twice as much
    margin: float = 0.06  # of joint limits at nodes, for what is between [rad]
    slip: float = 5e-3  # of feet between nodes [m]
    clearance: float = 0.05  # of the feet in the middle of the flight [m]
    fps: int = 20


LEGS = {"lf": (1, 1), "rf": (1, -1), "lh": (-1, 1), "rh": (-1, -1)}  # front or hind, left or right
THIGH, SHANK = 0.35, 0.33  # [m]

# -- model ----------------------------------------------------------------------------------------------------


def quadruped():
    """Trunk of 50 kg on a free joint; legs of hip about x, hip about y, knee about y; frames <leg>_foot."""
    b = od.RobotBuilder("quadruped")
    b.add_link("trunk", mass=50.0, com=(0.0, 0.0, 0.04), inertia=np.diag([1.5, 8.0, 9.0]))
    for leg, (x, y) in LEGS.items():
        limits = {"velocity": 14.0, "effort": 150.0}
        link = {"mass": 3.0, "com": (0, 0, -0.04), "inertia": np.diag([0.006, 0.006, 0.006])}
        b.add_body(
            f"{leg}_hip", "revolute", "trunk", joint=f"{leg}_haa", axis=(1, 0, 0), xyz=(0.37 * x, 0.2 * y, 0),
            lower=-1.0, upper=1.0, **limits, **link,
        )  # fmt: skip
        link = {"mass": 3.5, "com": (0, 0, -0.15), "inertia": np.diag([0.04, 0.04, 0.005])}
        low, high = sorted((-0.8 * x, 1.6 * x))
        b.add_body(
            f"{leg}_thigh", "revolute", f"{leg}_hip", joint=f"{leg}_hfe", axis=(0, -1, 0), xyz=(0, 0, -0.08), lower=low,
            upper=high, **limits, **link,
        )  # fmt: skip
        link = {"mass": 0.9, "com": (0, 0, -0.13), "inertia": np.diag([0.012, 0.012, 0.001])}
        low, high = sorted((-2.5 * x, -0.3 * x))
        b.add_body(
            f"{leg}_shank", "revolute", f"{leg}_thigh", joint=f"{leg}_kfe", axis=(0, -1, 0), xyz=(0, 0, -THIGH),
            lower=low, upper=high, **limits, **link,
        )  # fmt: skip
        b.add_frame(f"{leg}_foot", f"{leg}_shank", xyz=(0, 0, -SHANK))
    return b.build(floating_base=True)


def functions(robot):
    """feet: q -> (3, 4) in the root frame; speeds: (q, v) -> (3, 4); efforts: (q, v, v', forces (3, 4) in root axes) ->
    inverse dynamics less the forces of the ground."""
    q, v, dv, F = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv), ca.SX.sym("dv", robot.nv), ca.SX.sym("F", 3, 4)
    wrenches, feet, speeds = [ca.SX.zeros(6) for _ in robot.bodies], [], []
    for k, leg in enumerate(LEGS):
        pose = od.function(robot, "frame_pose", frame=f"{leg}_foot")(q=q)
        feet.append(pose["p"])
        twist = od.function(robot, "frame_twist", frame=f"{leg}_foot", representation="hybrid")
        speeds.append(twist.call([q, v])[0][3:])
        force = pose["R"].T @ F[:, k]
        body = next(i for i, b in enumerate(robot.bodies) if b.name == f"{leg}_shank")
        wrenches[body] = ca.vertcat(ca.cross(ca.DM([0, 0, -SHANK]), force), force)
    inverse = od.function(robot, "inverse_dynamics", external_wrenches=True)
    tau = inverse(q=q, v=v, dv=dv, w_ext=ca.horzcat(*wrenches))["tau"]
    return {
        "feet": ca.Function("feet", [q], [ca.horzcat(*feet)]),
        "speeds": ca.Function("speeds", [q, v], [ca.horzcat(*speeds)]),
        "efforts": ca.Function("efforts", [q, v, dv, F], [tau]),
        "step": robot.integrate_function(),
    }


def standing(cfg, robot, f, x):
    """Configuration (nq,) with the feet on the ground and the trunk above x."""
    q = np.array(robot.neutral())
    for j in robot.joints[1:]:
        front = LEGS[j.name[:2]][0]
        q[j.q_index] = {"haa": 0.0, "hfe": front * cfg.hip, "kfe": -2 * front * cfg.hip}[j.name[3:]]
    q[4] = x
    q[6] -= np.array(f["feet"](q))[2].mean()
    return q


# -- problem --------------------------------------------------------------------------------------------------


def jump(cfg, robot, f):
    """(Solution, {name: symbol})."""
    at, to = standing(cfg, robot, f, 0.0), standing(cfg, robot, f, cfg.jump)
    there = np.array(f["feet"](to))
    lower, upper, most = robot.limit("lower")[7:], robot.limit("upper")[7:], robot.limit("effort")[6:]
    weight = 9.81 * robot.total_mass
    share = np.cumsum(cfg.nodes) / sum(cfg.nodes)

    def way(z):
        air = np.clip((z - share[0]) / (share[1] - share[0]), 0, 1)
        q = at + (to - at) * air
        q[6] += 0.15 * 4 * air * (1 - air)
        return q

    ocp = od.Problem(cfg.nodes[0], cfg.durations[0])
    q = ocp.state("q", robot.nq, guess=way, scale=1)
    v = ocp.state("v", robot.nv, scale=5)
    dv = ocp.control("dv", robot.nv, scale=50)
    height = ocp.varying("height")  # that feet keep
    F = ocp.control("F", 12, guess=np.tile([0, 0, weight / 4], 4), scale=weight / 4)
    for number, phase in enumerate(("push", "flight", "touch-down", "landing")):
        if number:
            ocp.phase(cfg.nodes[number], cfg.durations[number])
        h = ocp.step
        after = f["step"](q, h * v + h**2 / 2 * dv), v + h * dv
        ocp.next(q, after[0])
        ocp.next(v, after[1])
        forces = ca.reshape(F, 3, 4)
        efforts = f["efforts"](q, v, dv, forces)
        ocp.limit(0, efforts[:6] / 10, 0)
        ocp.limit(-1, efforts[6:] / most, 1)
        ocp.limit(lower + cfg.margin, q[7:], upper - cfg.margin)
        feet = f["feet"](q)
        if phase == "flight":
            ocp.limit(0, F / weight, 0)
            ocp.limit(-1e-6, feet[2, :] - height, np.inf)
        else:
            side = cfg.friction / np.sqrt(2) * forces[2, :]  # the pyramid within the cone
            for sign in (1, -1):
                ocp.limit(0, ca.vec(side + sign * forces[0, :]) / weight, np.inf)
                ocp.limit(0, ca.vec(side + sign * forces[1, :]) / weight, np.inf)
            ocp.limit(0, ca.vec(forces[2, :]) / weight, 4)
            ocp.limit(0, f["speeds"](*after), 0)  # of the feet at the next node
        if phase == "touch-down":
            ocp.limit(0, feet - there, 0)
            ocp.limit(0, f["speeds"](q, v), 0)
        ocp.minimize(squares=ca.vertcat(efforts[6:] / most, 0.01 * dv))
    ocp.start({q: at, v: 0})
    ocp.goal({q[1:7]: to[1:7], v[:6]: 0})  # of the trunk; the feet are at rest
    options = {"tol": 1e-10}
    found = ocp.solve(method="euler", parameters={"height": heights(cfg)}, solver_options=options)
    return found, {"q": q, "v": v, "dv": dv, "F": F}


def heights(cfg):
    """(N + 1,) clearance of the feet at nodes: an arc in the flight."""
    out, flight = np.zeros(sum(cfg.nodes) + 1), np.arange(cfg.nodes[1]) / cfg.nodes[1]
    out[cfg.nodes[0] : cfg.nodes[0] + cfg.nodes[1]] = 4 * cfg.clearance * flight * (1 - flight)
    return out


# -- checks ---------------------------------------------------------------------------------------------------


def between(robot, f, x, h, count=8):
    """(N * count, nq) configurations within the intervals of a motion, each a step from its node."""
    q, v, dv = (x[k][: len(h)] for k in ("q", "v", "dv"))
    s = (np.linspace(0, 1, count, endpoint=False)[None, :] * h[:, None]).ravel()[:, None]
    q, v, dv = (np.repeat(y, count, axis=0) for y in (q, v, dv))
    return np.array(f["step"].map(len(s))(q.T, (s * v + s**2 / 2 * dv).T)).T


def check(cfg, robot, f, found, x):
    """{what: (error, bound)}."""
    N, h, out = len(x["dv"]), np.diff(found.t), {}
    q, v, dv, F = x["q"][:N].T, x["v"][:N].T, x["dv"].T, x["F"].T
    forces = F.reshape(4, 3, N).transpose(1, 0, 2)  # axes, feet, intervals
    efforts = np.array(f["efforts"].map(N)(q, v, dv, forces.transpose(0, 2, 1).reshape(3, -1)))
    out["residual of the dynamics at nodes [N, Nm]"] = np.abs(efforts[:6]).max(), 1e-8
    moved = np.array(f["step"].map(N)(q, v * h + dv * h**2 / 2)), v + dv * h
    out["residual of the steps"] = (
        max(np.abs(moved[0] - x["q"][1:].T).max(), np.abs(moved[1] - x["v"][1:].T).max()),
        1e-8,
    )
    out["torque, share of its limit"] = np.abs(efforts[6:] / robot.limit("effort")[6:, None]).max(), 1 + 1e-6
    flying = slice(cfg.nodes[0], cfg.nodes[0] + cfg.nodes[1])
    out["force of the ground in flight [N]"] = np.abs(F[:, flying]).max(), 1e-6
    # forces are constant on intervals: the cone holds everywhere if it holds at nodes
    out["force beyond the friction cone [N]"] = (np.hypot(*forces[:2]) - cfg.friction * forces[2]).max(), 1e-5
    out["pull of the ground [N]"] = -forces[2].min(), 1e-5
    inner = between(robot, f, x, h)
    lower, upper = robot.limit("lower")[7:], robot.limit("upper")[7:]
    out["joint beyond its limits between nodes [rad]"] = (
        max((lower - inner[:, 7:]).max(), (inner[:, 7:] - upper).max()),
        0.0,
    )
    feet = np.array(f["feet"].map(len(inner))(inner.T)).reshape(3, -1, 4)  # column-major: axes, then feet of each
    stance, there = (np.array(f["feet"](standing(cfg, robot, f, d))) for d in (0.0, cfg.jump))
    count = len(inner) // N
    push, landing = feet[:, : cfg.nodes[0] * count], feet[:, flying.stop * count :]
    out["feet slip while pushing, between nodes [m]"] = np.abs(push - stance[:, None]).max(), cfg.slip
    out["feet slip while landing, between nodes [m]"] = np.abs(landing - there[:, None]).max(), cfg.slip
    out["feet below the ground in flight, between nodes [m]"] = (
        -feet[2, flying.start * count : flying.stop * count].min(),
        1e-3,
    )
    # momentum about the root's origin: its rate is the moment and force of weight and ground
    momentum = od.function(robot, "momentum", order=1)
    rate = np.array(momentum.map(N)(q, v, dv)[1])
    centre = np.array(od.function(robot, "com").map(N)(q))
    weight = robot.total_mass * np.array([0, 0, -9.81])
    at = np.array(f["feet"].map(N)(q)).reshape(3, N, 4)
    moment = sum(np.cross(at[:, :, k], forces[:, k], axis=0) for k in range(4)) + np.cross(
        centre, weight[:, None], axis=0
    )
    wrench = np.vstack([moment, forces.sum(axis=1) + weight[:, None]])
    out["rate of momentum less the sum of wrenches, relative"] = (
        np.abs(rate - wrench).max() / np.abs(wrench).max(),
        1e-9,
    )
    norm = np.linalg.norm(x["q"][:, :4], axis=1)
    out["norm of the quaternions less 1"] = np.abs(norm - 1).max(), 1e-8
    out["goal of the trunk missed by"] = np.abs(x["q"][-1] - standing(cfg, robot, f, cfg.jump))[:7].max(), 1e-6
    out["speed at the end"] = np.abs(x["v"][-1]).max(), 1e-6
    return {what: (float(e), b) for what, (e, b) in out.items()}


# -- figures and files ----------------------------------------------------------------------------------------


def plot(cfg, robot, f, found, x, path):
    """Trunk, forces, torques over time."""
    figure = Figure(figsize=(12, 4), layout="constrained")
    trunk, ground, torque = figure.subplots(1, 3)
    trunk.plot(found.t, x["q"][:, [4, 6]], label=["forward", "height"])
    trunk.plot(found.t, 2 * np.arcsin(x["q"][:, 2]), label="pitch")
    steps = {"where": "post"}
    for k, leg in enumerate(LEGS):
        ground.step(found.t[:-1], x["F"][:, 3 * k + 2], **steps, label=leg)
    tau = np.array(
        [
            f["efforts"](q, v, a, F.reshape(4, 3).T)[6:]
            for q, v, a, F in zip(x["q"], x["v"], x["dv"], x["F"], strict=False)
        ]
    )
    torque.step(found.t[:-1], tau.reshape(len(tau), -1) / robot.limit("effort")[6:], **steps, linewidth=0.8)
    for axis, title in zip(
        (trunk, ground, torque), ("trunk [m, rad]", "vertical forces [N]", "torques, share of limits"), strict=True
    ):
        axis.set(title=title, xlabel="time [s]")
        axis.grid(alpha=0.3)
        for t in np.cumsum(found.durations)[:2]:
            axis.axvline(t, color="black", linewidth=0.6)
    trunk.legend(fontsize="small")
    ground.legend(fontsize="small")
    figure.savefig(path, dpi=85)


def animate(cfg, robot, f, found, x, path):
    """GIF of the jump."""
    h, count = np.diff(found.t), 8
    times = (found.t[:-1, None] + h[:, None] * np.linspace(0, 1, count, endpoint=False)).ravel()
    inner, wanted = between(robot, f, x, h, count), np.arange(0, found.t[-1], 1 / cfg.fps)
    nearest = np.searchsorted(times, wanted, side="right") - 1
    frames = Samples(times[nearest], [inner[nearest]], joints=(), units=(), robot=robot)
    gif.animate(SimpleNamespace(robot=robot, sample=lambda dt: frames), path, cfg.fps, (360, 360))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/quadruped_jump"), help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer nodes and pictures")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(nodes=(10, 8, 1, 10), slip=2e-2, fps=6) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    robot = quadruped()
    f = functions(robot)
    found, names = jump(cfg, robot, f)
    x = {name: found[symbol] for name, symbol in names.items()}
    say(f"{found.iterations} iterations, durations {', '.join(f'{T:.3f}' for T in found.durations)} s")
    checks = check(cfg, robot, f, found, x)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:62} {error:10.3e}  {'is' if error < bound else 'IS NOT'} below {bound:.3e}")

    F = np.vstack([x["F"], np.zeros(12)])
    header = [
        "t [s]",
        "qw",
        "qx",
        "qy",
        "qz",
        "x [m]",
        "y [m]",
        "z [m]",
        *(f"{j.name} [rad]" for j in robot.joints[1:]),
    ]
    header += [f"{leg}_{c} [N]" for leg in LEGS for c in "xyz"]
    table = np.column_stack([found.t, x["q"], F])
    np.savetxt(options.out / "jump.csv", table, fmt="%.9g", delimiter=",", header=",".join(header), comments="")
    plot(cfg, robot, f, found, x, options.out / "jump.png")
    animate(cfg, robot, f, found, x, options.out / "jump.gif")
    command = ["python", "problems/quadruped_jump.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "durations": found.durations, "iterations": found.iterations}
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
