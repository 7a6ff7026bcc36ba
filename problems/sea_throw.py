"""An arm with springs throws faster than its motors can turn, and than the same arm without springs.

    maximise    d' (velocity of the tip at the end)
    subject to  |tau_m| <= limit, |theta'| <= limit, |theta - q| <= limit, from rest, in the time given

Elastic: tau_m and theta are the flat map's, of q and its derivatives to the fourth; q is in C^4.
Rigid: the same links, motors and limits, theta = q, so that no joint is faster than its motor, and no tip faster than
with the arm stretched and both motors at their limit; the rigid plan gets there, so no other can be faster.
The springs are wound up by a swing back, and give their energy to the links before the end. The planned motor torque,
fed forward into a simulation of the full elastic model, throws as planned. The arm is ours: two links of 0.4 m and
3 kg, K = (500, 300) Nm/rad, B = (0.3, 0.2) kg m2, motors of 60 and 30 Nm that turn 4 rad/s at the joints.
Source: Spong 1987 for the model; Haddadin et al. 2011 for the idea.
Run:    python problems/sea_throw.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
from dataclasses import asdict, dataclass
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
    length: float = 0.4  # of each link [m]
    mass: float = 3.0  # of each link [kg], a slender rod
    stiffness: tuple = (500.0, 300.0)  # [Nm/rad]
    motor_inertia: tuple = (0.3, 0.2)  # [kg m2]
    motor_torque: tuple = (60.0, 30.0)  # [Nm]
    motor_speed: tuple = (4.0, 4.0)  # [rad/s]
    deflection: float = 0.25  # largest of the springs [rad]
    range: tuple = (-2.2, 2.2)  # of the joints [rad]
    start: tuple = (-1.2, 0.6)  # [rad]
    direction: tuple = (1.0, 0.0, 1.0)  # of the throw
    duration: float = 0.9  # [s]
    nodes: int = 45
    rounds: int = 6
    fps: int = 20


# -- model ----------------------------------------------------------------------------------------------------


def links(cfg):
    """The rigid arm, in the vertical plane."""
    b = od.RobotBuilder("thrower")
    b.add_link("base")
    across = cfg.mass * cfg.length**2 / 12
    for i in range(2):
        b.add_body(
            f"link{i + 1}",
            "revolute",
            f"link{i}" if i else "base",
            joint=f"joint{i + 1}",
            mass=cfg.mass,
            com=(cfg.length / 2, 0.0, 0.0),
            inertia=np.diag([1e-4, across, across]),
            axis=(0.0, -1.0, 0.0),
            xyz=(cfg.length if i else 0.0, 0.0, 0.0),
        )
    b.add_frame("tip", "link2", xyz=(cfg.length, 0.0, 0.0))
    return b.build()


def tip_speed(cfg, arm, q, v):
    """Velocity of the tip along the direction of the throw [m/s]."""
    twist = od.function(arm, "frame_twist", frame="tip", representation="hybrid")(q=q, v=v)["V"]
    d = np.array(cfg.direction) / np.linalg.norm(cfg.direction)
    return ca.dot(ca.DM(d), twist[3:])


def swing(cfg, far):
    """Guess: back by `far`, then forward to the other side, as a share of the time."""
    start = np.array(cfg.start)
    return lambda s: start + far * np.array([-0.6 * np.sin(np.pi * s) ** 2 + 1.6 * s**4, 0.3 * s**4])


# -- the two throws -------------------------------------------------------------------------------------------


def throw(cfg, elastic):
    """(Solution, Trajectory of the links) of the arm with springs; limits exceeded between nodes are tightened."""
    share, start = {"tau_m": 1.0, "dtheta": 1.0, "deflection": 1.0}, None
    limit = {"tau_m": cfg.motor_torque, "dtheta": cfg.motor_speed, "deflection": cfg.deflection}
    for _ in range(cfg.rounds):
        ocp = od.Problem(cfg.nodes, cfg.duration)
        scale = [1.0, 5.0, 40.0, 400.0, 8e3, 2e5]
        flat = el.flat_motion(ocp, elastic, continuity=4, guess=[swing(cfg, 1.0), *[0.0] * 5], scale=scale)
        q, v = flat.q[:2]
        for name, use in share.items():
            ocp.limit(-use, getattr(flat, name) / limit[name], use)
        ocp.limit(cfg.range[0], q, cfg.range[1])
        ocp.start({q: cfg.start, **{x: 0 for x in flat.q[1:5]}})
        smooth = 1e-4 * ca.sumsqr(flat.q[5] / scale[5])
        ocp.minimize(terminal=-tip_speed(cfg, elastic.links, q, v), integral=smooth)
        found = start = ocp.solve(solver_options={"max_iter": 1000}, initial=start)
        pieces = np.stack([found[x][: cfg.nodes] for x in flat.q], axis=1)
        names, units = elastic.links.coordinate_names, ("rad",) * 2
        motion = od.Trajectory(found.t, pieces, joints=names, units=units, robot=elastic.links)
        s = el.outputs_along(elastic, motion, motion.sample(1e-3).t)
        reached = {name: np.abs(s[name] / limit[name]).max() for name in share}
        if max(reached.values()) < 1.005:
            break
        share = {name: use / max(1.0, 1.0005 * reached[name]) for name, use in share.items()}
    return found, motion


def rigid_throw(cfg, arm):
    """(Solution, its speed of the tip) of the arm without springs: the motors' inertia moves with the joints."""
    ocp = od.Problem(cfg.nodes, cfg.duration)
    q, v, dv, jerk = ocp.chain("q", 2, 3, guess=[swing(cfg, 0.8), 0.0, 0.0, 0.0], scale=[1.0, 5.0, 40.0, 2e3])
    tau = od.function(arm, "inverse_dynamics")(q, v, dv) + np.array(cfg.motor_inertia) * dv
    ocp.limit(-1, tau / cfg.motor_torque, 1)
    ocp.limit(-1, v / cfg.motor_speed, 1)
    ocp.limit(cfg.range[0], q, cfg.range[1])
    ocp.start({q: cfg.start, v: 0, dv: 0})
    speed = tip_speed(cfg, arm, q, v)
    ocp.minimize(terminal=-speed, integral=1e-4 * ca.sumsqr(jerk / 2e3))
    found = ocp.solve(solver_options={"max_iter": 1000})
    return {"t": found.t, "q": found[q], "v": found[v], "tau": found[tau], "speed": found[speed][:, 0]}


def speeds(cfg, arm, q, v):
    """(K,) of the tip along the direction, for rows of q, v."""
    a, b = ca.MX.sym("q", 2), ca.MX.sym("v", 2)
    f = ca.Function("speed", [a, b], [tip_speed(cfg, arm, a, b)])
    return np.array(f.map(len(q))(q.T, v.T)).ravel()


# -- checks ---------------------------------------------------------------------------------------------------


def fastest_rigid(cfg):
    """Speed of the tip [m/s] that no rigid arm exceeds: stretched, both joints as fast as their motors."""
    return cfg.motor_speed[0] * 2 * cfg.length + cfg.motor_speed[1] * cfg.length


def last_swing(run):
    """Energies [J] from when the springs hold most of the last swing to when they hold least of it; gains of the links
    and motors, work put in, and what the springs and gravity give."""
    springs = run.energies["springs"]
    late = np.flatnonzero(run.t > 0.75 * run.t[-1])
    first = late[np.argmax(springs[late])]
    last = first + np.argmin(springs[first:])
    gain = {name: float(x[last] - x[first]) for name, x in run.energies.items()}
    return {
        "from [s]": float(run.t[first]),
        "to [s]": float(run.t[last]),
        "released by the springs": -gain["springs"],
        "released by gravity": -gain["gravity"],
        "work of the motors": float(run.put_in[last] - run.put_in[first]),
        "gained by the motors' inertia": gain["kinetic_motors"],
        "gained by the links": gain["kinetic_links"],
    }


def check(cfg, elastic, motion, run, rigid):
    """{what: (error, bound)}."""
    t = motion.sample(1e-3).t
    planned = el.outputs_along(elastic, motion, t)
    speed = speeds(cfg, elastic.links, planned["q"], planned["v"])
    simulated = speeds(cfg, elastic.links, run.q[-1:], run.v[-1:])[0]
    bound, springs = fastest_rigid(cfg), run.energies["springs"]
    links, released = run.energies["kinetic_links"], last_swing(run)["released by the springs"]
    out = {
        "speed of the rigid arm's tip over that of the elastic one's": (rigid["speed"][-1] / speed[-1], 0.9),
        "simulated speed of the tip, relative to the planned one": (abs(simulated / speed[-1] - 1), 1e-6),
        "simulation: largest error of a joint [rad]": (run.largest_error, 1e-7),
        "simulation: energy balance, relative": (np.abs(run.energy_balance).max() / np.ptp(run.put_in), 1e-8),
        "motor torque: share of its limit, elastic": (np.abs(planned["tau_m"] / cfg.motor_torque).max(), 1.006),
        "motor speed: share of its limit, elastic": (np.abs(planned["dtheta"] / cfg.motor_speed).max(), 1.006),
        "deflection: share of its limit": (np.abs(planned["deflection"]).max() / cfg.deflection, 1.006),
        "motor torque: share of its limit, rigid": (np.abs(rigid["tau"] / cfg.motor_torque).max(), 1 + 1e-6),
        "joint speed: share of the motors' limit, rigid": (np.abs(rigid["v"] / cfg.motor_speed).max(), 1 + 1e-6),
        "rigid tip over the speed that its motors bound": (rigid["speed"][-1] / bound, 1 + 1e-6),
        "that bound of every rigid arm over the elastic one's speed": (bound / simulated, 0.9),
        "motors' speed over the links' at the end, elastic": (
            np.abs(planned["dtheta"][-1]).max() / np.abs(planned["v"][-1]).max(),
            0.95,
        ),
        "springs' energy at the end over its largest": (springs[-1] / springs.max(), 0.9),
        "springs' release in the last swing over the links' energy: at least 5 %": (0.05 * links[-1] / released, 1.0),
    }
    return {what: (float(e), b) for what, (e, b) in out.items()}


# -- figures and files ----------------------------------------------------------------------------------------


def plot(cfg, elastic, motion, run, rigid, path):
    """Speed of the tip of both arms; joints and motors; torques; energies."""
    t = motion.sample(1e-3).t
    s = el.outputs_along(elastic, motion, t)
    figure = Figure(figsize=(11, 7), layout="constrained")
    (tip, joints), (torques, energies) = figure.subplots(2, 2)
    tip.plot(t, speeds(cfg, elastic.links, s["q"], s["v"]), label="with springs")
    tip.plot(rigid["t"], rigid["speed"], label="without")
    tip.set(title="speed of the tip along the throw", ylabel="[m/s]")
    for i in range(2):
        joints.plot(t, s["v"][:, i], color=f"C{i}", label=f"link {i + 1}")
        joints.plot(t, s["dtheta"][:, i], "--", color=f"C{i}", label=f"motor {i + 1}")
        torques.plot(t, s["tau_m"][:, i] / cfg.motor_torque[i], color=f"C{i}", label=f"motor {i + 1}, elastic")
        torques.step(
            rigid["t"][: len(rigid["tau"])],
            rigid["tau"][:, i] / cfg.motor_torque[i],
            ":",
            where="post",
            color=f"C{i}",
            label=f"motor {i + 1}, rigid",
        )
    for limit in (-1, 1):
        joints.axhline(limit * cfg.motor_speed[0], color="k", linewidth=0.6)
        torques.axhline(limit, color="k", linewidth=0.6)
    joints.set(title="speeds with springs; lines: limit of the motors", ylabel="[rad/s]")
    torques.set(title="motor torques, as shares of their limits", xlabel="time [s]")
    for name, values in run.energies.items():
        energies.plot(run.t, values - values[0], label=name.replace("_", " "))
    energies.plot(run.t, run.put_in, "k--", linewidth=0.8, label="work of the motors")
    energies.set(title="energies, simulated", xlabel="time [s]", ylabel="[J]")
    for axis in (tip, joints, torques, energies):
        axis.grid(alpha=0.3)
        axis.legend(fontsize="x-small")
    figure.savefig(path, dpi=90)


def write(elastic, motion, path):
    """Samples of the planned motion as CSV, every millisecond."""
    t = motion.sample(1e-3).t
    s = el.outputs_along(elastic, motion, t)
    header, columns = ["t [s]"], [t[:, None]]
    for what, unit in (("q", "rad"), ("v", "rad/s"), ("theta", "rad"), ("dtheta", "rad/s"), ("tau_m", "Nm")):
        header += [f"{what}{i + 1} [{unit}]" for i in range(2)]
        columns.append(s[what])
    np.savetxt(path, np.hstack(columns), fmt="%.9g", delimiter=",", header=",".join(header), comments="")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/sea_throw"), help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer nodes, fewer pictures a second")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(nodes=30, fps=6) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    arm = links(cfg)
    elastic = el.elastic_robot(arm, list(cfg.stiffness), motor_inertia=list(cfg.motor_inertia))
    say(str(elastic))
    found, motion = throw(cfg, elastic)
    rigid = rigid_throw(cfg, arm)
    run = el.simulate(elastic, el.feedforward(elastic), el.reference(elastic, motion), dt=2e-3)
    final = speeds(cfg, arm, run.q[-1:], run.v[-1:])[0]
    say(f"speed of the tip: {final:.3f} m/s with springs, {rigid['speed'][-1]:.3f} m/s without")
    for what, value in last_swing(run).items():
        say(f"  last swing, {what}: {value:.3g}" + ("" if "[s]" in what else " J"))
    checks = check(cfg, elastic, motion, run, rigid)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:72} {error:9.3g}  {'is' if error < bound else 'IS NOT'} below {bound:.3g}")

    write(elastic, motion, options.out / "throw.csv")
    plot(cfg, elastic, motion, run, rigid, options.out / "throw.png")
    el.animate_run(elastic, run, options.out / "throw.gif", fps=cfg.fps, slow=4.0)
    command = ["python", "problems/sea_throw.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "iterations": found.iterations}
    facts["speed_of_the_tip"] = {"elastic": float(final), "rigid": float(rigid["speed"][-1])}
    facts["speed_of_the_tip"]["bound of every rigid arm"] = fastest_rigid(cfg)
    facts["last_swing"] = last_swing(run)
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
