"""An arm with springs throws faster than its motors can turn, and faster than the same arm without springs.

    maximise    d' (velocity of the tip at the end)
    subject to  |tau_m| <= limit, |theta'| <= limit, |theta - q| <= limit, from rest, in a fixed time

Elastic: tau_m and theta follow from q and its first four derivatives by the flat map; q is in C^4.
Rigid: the same links, motors and limits, theta = q, so that no joint is faster than its motor, and no tip faster than
with the arm stretched and both motors at their limit; the rigid plan gets there, so no other can be faster.
A swing back winds up the springs, which give their energy to the links before the end. The planned motor torque,
fed forward into a simulation of the full elastic model, throws as planned. The arm is ours: two links of 0.4 m and
3 kg, K = (500, 300) Nm/rad, B = (0.3, 0.2) kg m2, motors of 60 and 30 Nm that turn 4 rad/s at the joints.
Source: Spong 1987 for the model; Haddadin et al. 2011 for the idea.
Run:    python problems/sea_throw.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
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


def links(cfg):
    """The rigid arm."""
    return od.robots.planar_arm(2, cfg.length, cfg.mass, name="thrower")


def limits(cfg):
    """{output of the flat map: its limit, one per joint}."""
    return {"tau_m": cfg.motor_torque, "dtheta": cfg.motor_speed, "deflection": (cfg.deflection,) * 2}


def refuse(cfg, elastic):
    """LimitError if the arm cannot stand still at the start; if it can, there is a throw, though perhaps a slow one."""
    low, high = cfg.range
    held = od.function(elastic, "elastic_flat_map")(cfg.start, 0, 0, 0, 0)
    asked = {"tau_m": held[3], "dtheta": held[1], "deflection": held[0] - ca.DM(cfg.start)}
    for i, q in enumerate(cfg.start):
        if not low <= q <= high:
            raise od.LimitError(f"start: joint{i + 1} is {q:g} rad, outside its range {low:g} to {high:g}")
        for name, limit in limits(cfg).items():
            if not 0 < limit[i] >= abs(float(asked[name][i])):
                need = f"{name} = {float(asked[name][i]):.4g} for holding still"
                raise od.LimitError(f"start: joint{i + 1} needs {need}, over its limit {limit[i]:g}")


def tip_speed(cfg, arm):
    """casadi.Function (q, v) -> velocity of the tip along the direction of the throw [m/s]."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    twist = od.function(arm, "frame_twist", frame="tip", representation="hybrid")(q=q, v=v)["V"]
    d = np.array(cfg.direction) / np.linalg.norm(cfg.direction)
    return ca.Function("speed", [q, v], [ca.dot(ca.DM(d), twist[3:])])


def swing(cfg, far):
    """Guess: back by `far`, then forward to the other side, a function of the share of the time."""
    start = np.array(cfg.start)
    return lambda s: start + far * np.array([-0.6 * np.sin(np.pi * s) ** 2 + 1.6 * s**4, 0.3 * s**4])


def throw(cfg, elastic, tip):
    """(Solution, Trajectory of the links, outputs of the flat map every millisecond with "t" and the "speed" of the
    tip) of the arm with springs; limits exceeded between nodes are tightened."""
    limit, scale = limits(cfg), [1.0, 5.0, 40.0, 400.0, 8e3, 2e5]

    def solve(share, before):
        ocp = od.Problem(cfg.nodes, cfg.duration)
        flat = el.flat_motion(ocp, elastic, continuity=4, guess=[swing(cfg, 1.0), *[0.0] * 5], scale=scale)
        q, v = flat.q[:2]
        for name, use in share.items():
            ocp.limit(-use, getattr(flat, name) / limit[name], use)
        ocp.limit(cfg.range[0], q, cfg.range[1])
        ocp.start({q: list(cfg.start), **{x: 0 for x in flat.q[1:5]}})
        ocp.minimize(terminal=-tip(q, v), integral=1e-4 * ca.sumsqr(flat.q[5] / scale[5]))
        # what is left between nodes is measured below, and tightened
        start = before and before[0]
        solution = ocp.solve(solver_options={"max_iter": 1000}, initial=start, check="off")
        motion = solution.trajectory(flat.q, elastic.links, friction=False)
        t = motion.sample(1e-3).t
        s = el.outputs_along(elastic, motion, t)
        return solution, motion, {**s, "t": t, "speed": tip(s["q"].T, s["v"].T).full().ravel()}

    def reached(plan):
        return {name: np.abs(plan[2][name] / limit[name]).max() for name in limit}

    settings = {"within": 1.005, "above": 1 / 1.0005, "excess": 1.0005, "rounds": cfg.rounds}
    return od.tighten(solve, reached, dict.fromkeys(limit, 1.0), **settings).result


def rigid_throw(cfg, arm, tip):
    """{"t", "q", "v", "tau", "speed"} of the arm without springs: the motors' inertia moves with the joints."""
    ocp = od.Problem(cfg.nodes, cfg.duration)
    q, v, dv, jerk = ocp.chain("q", 2, 3, guess=[swing(cfg, 0.8), 0.0, 0.0, 0.0], scale=[1.0, 5.0, 40.0, 2e3])
    tau = od.function(arm, "inverse_dynamics")(q, v, dv) + np.array(cfg.motor_inertia) * dv
    ocp.limit(-1, tau / cfg.motor_torque, 1)
    ocp.limit(-1, v / cfg.motor_speed, 1)
    ocp.limit(cfg.range[0], q, cfg.range[1])
    ocp.start({q: list(cfg.start), v: 0, dv: 0})
    ocp.minimize(terminal=-tip(q, v), integral=1e-4 * ca.sumsqr(jerk / 2e3))
    solution = ocp.solve(solver_options={"max_iter": 1000})
    parts = {"q": q, "v": v, "tau": tau}
    rows = {name: solution[x] for name, x in parts.items()}
    return {"t": solution.t, **rows, "speed": solution[tip(q, v)][:, 0]}


def last_swing(simulated):
    """Energies [J] from when the springs hold most of the last swing to when they hold least of it; gains of the links
    and motors, work put in, and what the springs and gravity give."""
    springs = simulated.energies["springs"]
    late = np.flatnonzero(simulated.t > 0.75 * simulated.t[-1])
    first = late[np.argmax(springs[late])]
    last = first + np.argmin(springs[first:])
    gain = {name: float(x[last] - x[first]) for name, x in simulated.energies.items()}
    return {
        "from [s]": float(simulated.t[first]),
        "to [s]": float(simulated.t[last]),
        "released by the springs": -gain["springs"],
        "released by gravity": -gain["gravity"],
        "work of the motors": float(simulated.put_in[last] - simulated.put_in[first]),
        "gained by the motors' inertia": gain["kinetic_motors"],
        "gained by the links": gain["kinetic_links"],
    }


def check(run, cfg, planned, simulated, final, rigid, bound):
    """bound: speed of the tip that no rigid arm exceeds."""
    speed, springs = planned["speed"][-1], simulated.energies["springs"]
    used = {name: np.abs(planned[name] / limit).max() for name, limit in limits(cfg).items()}
    run.check("speed of the tip: rigid arm over elastic one", rigid["speed"][-1] / speed, below=0.9)
    run.check("simulated speed of the tip over the planned one", final / speed, equals=1, within=1e-6)
    run.check("simulation: largest error of a joint [rad]", simulated.largest_error, below=1e-7)
    balance = np.abs(simulated.energy_balance).max() / np.ptp(simulated.put_in)
    run.check("simulation: energy balance, relative", balance, below=1e-8)
    run.check("motor torque: share of its limit, elastic", used["tau_m"], below=1.006)
    run.check("motor speed: share of its limit, elastic", used["dtheta"], below=1.006)
    run.check("deflection: share of its limit", used["deflection"], below=1.006)
    torque, turns = np.abs(rigid["tau"] / cfg.motor_torque).max(), np.abs(rigid["v"] / cfg.motor_speed).max()
    run.check("motor torque: share of its limit, rigid", torque, below=1 + 1e-6)
    run.check("joint speed: share of the motors' limit, rigid", turns, below=1 + 1e-6)
    run.check("speed of the tip: rigid arm over its motors' bound", rigid["speed"][-1] / bound, below=1 + 1e-6)
    run.check("speed of the tip: bound of every rigid arm over elastic arm", bound / final, below=0.9)
    slower = np.abs(planned["dtheta"][-1]).max() / np.abs(planned["v"][-1]).max()
    run.check("speed at the end: motors over links, elastic", slower, below=0.95)
    run.check("energy of the springs: at the end over the largest", springs[-1] / springs.max(), below=0.9)
    share = last_swing(simulated)["released by the springs"] / simulated.energies["kinetic_links"][-1]
    run.check("energy released by springs in the last swing over that of the links", share, above=0.05)


def draw(run, cfg, s, simulated, rigid):
    titles = "speed of the tip along the throw [m/s]", "speeds with springs [rad/s]"
    more = "motor torques, as shares of their limits", "energies, simulated [J]"
    with run.figure("throw.png", *titles, *more, columns=2, size=(11, 8)) as (tip, joints, torques, energies):
        tip.plot(s["t"], s["speed"], label="with springs")
        tip.plot(rigid["t"], rigid["speed"], label="without")
        for i, limit in enumerate(cfg.motor_torque):
            joints.plot(s["t"], s["v"][:, i], color=f"C{i}", label=f"link {i + 1}")
            joints.plot(s["t"], s["dtheta"][:, i], "--", color=f"C{i}", label=f"motor {i + 1}")
            torques.plot(s["t"], s["tau_m"][:, i] / limit, color=f"C{i}", label=f"motor {i + 1}, elastic")
            t, tau = rigid["t"][: len(rigid["tau"])], rigid["tau"][:, i] / limit
            torques.step(t, tau, ":", where="post", color=f"C{i}", label=f"motor {i + 1}, rigid")
        for limit in (-1, 1):
            joints.axhline(limit * cfg.motor_speed[0], color="k", linewidth=0.6)
            torques.axhline(limit, color="k", linewidth=0.6)
        for name, values in simulated.energies.items():
            energies.plot(simulated.t, values - values[0], label=name.replace("_", " "))
        energies.plot(simulated.t, simulated.put_in, "k--", linewidth=0.8, label="work of the motors")


def solve(run, cfg):
    arm = links(cfg)
    elastic = el.elastic_robot(arm, list(cfg.stiffness), motor_inertia=list(cfg.motor_inertia))
    run.say(str(elastic))
    refuse(cfg, elastic)
    tip = tip_speed(cfg, arm)
    solution, motion, planned = throw(cfg, elastic, tip)
    rigid = rigid_throw(cfg, arm, tip)
    bound = cfg.length * (2 * cfg.motor_speed[0] + cfg.motor_speed[1])  # stretched, both joints as fast as motors
    simulated = el.simulate(elastic, el.feedforward(elastic), el.reference(elastic, motion), dt=2e-3)
    final = float(tip(simulated.q[-1], simulated.v[-1]))
    run.say(f"speed of the tip: {final:.3f} m/s with springs, {rigid['speed'][-1]:.3f} m/s without")
    for what, value in last_swing(simulated).items():
        run.say(f"  last swing, {what}: {value:.3g}" + ("" if "[s]" in what else " J"))
    check(run, cfg, planned, simulated, final, rigid, bound)
    speeds = {"elastic": final, "rigid": float(rigid["speed"][-1]), "bound of every rigid arm": bound}
    run.facts |= {"iterations": solution.iterations, "speed_of_the_tip": speeds, "last_swing": last_swing(simulated)}

    units = {"q": "rad", "v": "rad/s", "theta": "rad", "dtheta": "rad/s", "tau_m": "Nm"}
    columns = {tuple(f"{what}{i} [{unit}]" for i in (1, 2)): planned[what] for what, unit in units.items()}
    run.table("throw.csv", {"t [s]": planned["t"], **columns})
    draw(run, cfg, planned, simulated, rigid)
    el.animate_run(elastic, simulated, run.out / "throw.gif", fps=cfg.fps, slow=4.0)


main = od.script(solve, Config(), quick={"nodes": 30, "fps": 6})

if __name__ == "__main__":
    sys.exit(main())
