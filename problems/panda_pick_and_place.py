"""A Panda fetches a load and puts it down behind an obstacle in the shortest time.

    minimise    sum of the durations + calm * integral of (q'' / a)^2 and of (q''' / share of j)^2
    subject to  phases: reach from home, grip at rest, carry the load to rest; q twice differentiable throughout,
                |q'| <= v,  |q''| <= a,  |q'''| <= share of j,  |Q| <= tau, |Q'| <= dtau (without, then with the load),
                tool at the load, pointing down, while it grips; at the place, pointing down, at the end,
                |speed of the tool| <= 1.7 m/s;  spheres around hand and load, wrist and elbow stay clear of a ball.

Limits are the maker's; task and numbers are ours. They hold between nodes, too: the problem keeps a little inside of
them. The second term costs little time and keeps accelerations from going to and fro.
Run:    python problems/panda_pick_and_place.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od

TOOL, DOWN, PHASES = "panda_link8", np.diag([1.0, -1.0, -1.0]), ("reach", "grip", "carry")


@dataclass(frozen=True)
class Config:
    home: tuple = (0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4)  # [rad]
    pick: tuple = (0.45, -0.35, 0.25)  # of the flange [m]
    place: tuple = (0.45, 0.35, 0.25)
    load: float = 1.5  # [kg], 0.08 m ahead of the flange
    ball: tuple = (0.55, 0.0, 0.25, 0.15)  # centre, radius [m]
    spheres: tuple = ((TOOL, 0.10), ("panda_link6", 0.08), ("panda_link4", 0.08))  # frame, radius [m]
    speed: float = 1.7  # of the tool [m/s]
    jerk: float = 0.1  # share of the limit
    grip: float = 0.1  # [s]
    nodes: tuple = (20, 1, 30)
    inside: float = 0.99  # share of the limits that is used at the points where they are kept
    calm: float = 1e-2
    over: float = 0.0  # of a limit, anywhere
    fps: int = 20


def model(cfg):
    """{phase: robot}, {name: Function}."""
    free, q, v = od.robots.panda(), ca.SX.sym("q", 7), ca.SX.sym("v", 7)
    loaded = free.with_payload(TOOL, od.Inertia.from_com(cfg.load, (0, 0, 0.08), np.diag([2e-3, 2e-3, 2e-3])))
    robots = {"reach": free, "grip": free, "carry": loaded}
    f = {k: od.function(robot, "inverse_dynamics", order=1, derivatives="analytic") for k, robot in robots.items()}
    p = {frame: od.function(free, "frame_pose", frame=frame)(q=q)["p"] for frame, _ in cfg.spheres}
    axis = od.function(free, "frame_pose", frame=TOOL)(q=q)["R"][:, 2]
    f["tool"] = ca.Function("tool", [q], [ca.vertcat(p[TOOL], axis)])
    f["speed"] = ca.Function("speed", [q, v], [ca.sumsqr(ca.jtimes(p[TOOL], q, v)) / cfg.speed**2])
    gaps = (ca.sumsqr(p[frame] - ca.DM(cfg.ball[:3])) / (r + cfg.ball[3]) ** 2 for frame, r in cfg.spheres)
    f["clear"] = ca.Function("clear", [q], [ca.vertcat(*gaps)])  # above 1 where spheres are apart
    return robots, f


def fetch(cfg, robots, f, limits):
    """(Solution, symbols of q and its derivatives)."""
    pick = od.inverse_kinematics(robots["reach"], TOOL, p=cfg.pick, R=DOWN, q_start=cfg.home)
    place = od.inverse_kinematics(robots["carry"], TOOL, p=cfg.place, R=DOWN, q_start=pick)
    for name, q in (("home", cfg.home), ("pick", pick), ("place", place)):
        limits.assert_within(f"{name}, at rest with the load", q=q, tau=f["carry"](q, 0, 0, 0)[0])
        if f["clear"](q).full().min() < 1:
            raise od.LimitError(f"{name}: a sphere of the arm is inside the ball of {cfg.ball[3]:g} m")
    ends, knots = np.array([cfg.home, pick, pick, place]), np.cumsum([0, *cfg.nodes])
    ocp = od.Problem(cfg.nodes[0], (0.2, 4.0))
    way = [lambda s: np.array([np.interp(s * knots[-1], knots, column) for column in ends.T]), 0.0, 0.0, 0.0]
    inner = limits.scaled(**dict.fromkeys(("v", "dv", "d2v", "tau", "dtau"), cfg.inside))
    x = q, v, dv, jerk = ocp.chain("q", 7, 3, bounds=(inner.v, inner.dv, inner.d2v), guess=way)
    for phase, nodes in zip(PHASES, cfg.nodes, strict=True):
        if phase != "reach":
            ocp.phase(nodes, cfg.grip if phase == "grip" else (0.2, 4.0))
        ocp.limit(limits.q[0], q, limits.q[1])
        if phase == "grip":
            ocp.limit(0, ca.vertcat(f["tool"](q)[:5] - ca.DM([*cfg.pick, 0, 0]), v, dv, jerk), 0)
            continue
        tau, dtau = f[phase](*x)
        shares = ca.vertcat(tau / inner.tau, dtau / inner.dtau, v / inner.v)
        ocp.limit(-1, shares, 1, at=(0, 0.5, 1))  # the rate jumps at nodes
        ocp.limit(-np.inf, f["speed"](q, v), cfg.inside**2, at=(0, 0.5))
        ocp.limit(cfg.inside**-2, f["clear"](q), np.inf, at=(0, 0.5))
        effort = ca.sumsqr(dv / limits.dv) + ca.sumsqr(jerk / limits.d2v)
        ocp.minimize(terminal=ocp.duration, integral=cfg.calm * effort)
    ocp.start({q: list(cfg.home), v: 0, dv: 0})
    ocp.goal({v: 0, dv: 0, f["tool"](q)[:5]: [*cfg.place, 0, 0]})
    return ocp.solve(method="euler", check="off"), x


def solve(run, cfg):
    (robots, f), below = model(cfg), 1 + cfg.over
    limits = od.Limits.of(robots["reach"]).scaled(d2v=cfg.jerk)
    solution, x = fetch(cfg, robots, f, limits)
    motion, edges = solution.trajectory(x, robots["reach"], limits), np.cumsum([0, *solution.durations])
    run.facts |= {"durations": solution.durations, "iterations": solution.iterations}
    run.say("{iterations} iterations, durations {durations} s".format(**run.facts))
    found = solution.check().worst  # against the limits that are kept at points
    run.check("worst error of the solution's own check", found, below=1 / cfg.inside - 1 + cfg.over)
    report = motion.check()
    run.check("q, v, dv, d2v: share of a limit between nodes", max(r.share for r in report.rows[:4]), below=below)
    run.check("largest jump of q, q', q''", max(report.jumps.values()), below=1e-6)
    for phase, a, b in (("reach", *edges[:2]), ("carry", *edges[2:])):
        fine = motion.sample(np.linspace(a, b, 2000))
        tau, dtau = (x.full().T for x in f[phase](fine.q.T, fine.v.T, fine.dv.T, fine.d2v.T))
        speed, clear = f["speed"](fine.q.T, fine.v.T).full().max(), f["clear"](fine.q.T).full().min()
        run.check(f"{phase}: torque, share of its limit, between nodes", np.abs(tau / limits.tau).max(), below=below)
        run.check(f"{phase}: torque rate, share of its limit", np.abs(dtau / limits.dtau).max(), below=below)
        varies = np.abs(np.diff(fine.dv, axis=0)).sum(axis=0)
        run.facts[f"{phase}: total variation of the accelerations [rad/s^2]"] = varies
        run.say(f"{phase}: total variation of the accelerations {varies.sum():.4g} rad/s^2")
        varies = (varies / np.abs(fine.dv).max(axis=0)).max()
        run.check(f"{phase}: total variation of an acceleration over its largest value", varies, below=8)
        run.check(f"{phase}: speed of the tool, share of its limit", np.sqrt(speed), below=below)
        run.check(f"{phase}: sum of radii over the distance of spheres", 1 / np.sqrt(clear), below=below)
    speed = np.abs(motion.sample(np.linspace(*edges[1:3], 20)).v).max()
    run.check("grip: speed of the joints [rad/s]", speed, below=1e-6)
    for name, p, t in (("pick", cfg.pick, edges[1]), ("place", cfg.place, edges[3])):
        off = np.abs(f["tool"](motion.sample([t]).q[0]).full().ravel() - [*p, 0, 0, -1]).max()
        run.check(f"{name}: error of position and direction of the tool [m, -]", off, below=1e-6)
    motion.save(run.out / "motion.csv")
    motion.plot(run.out / "motion.png")
    motion.animate(run.out / "motion.gif", fps=cfg.fps, size=(360, 360))
    p, turn, r = f["tool"](motion.sample(0.005).q.T).full(), np.linspace(0, 2 * np.pi, 100), cfg.ball[3]
    with run.figure("tool.png", "tool from above: y over x [m]", "from the side: z over y [m]", xlabel="") as axes:
        for axis, i, j in ((axes[0], 0, 1), (axes[1], 1, 2)):
            axis.plot(p[i], p[j], "C0", cfg.ball[i] + r * np.cos(turn), cfg.ball[j] + r * np.sin(turn), "k")
            axis.set_aspect("equal")


main = od.script(solve, Config(), quick={"nodes": (10, 1, 14), "over": 0.06, "fps": 5})

if __name__ == "__main__":
    sys.exit(main())
