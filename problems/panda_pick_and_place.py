"""A Panda fetches a load and puts it down behind an obstacle in the shortest time.

    minimise    sum of the durations
    subject to  phases: reach, grip (at rest over the load), carry (with the load), q twice differentiable throughout,
                |q'| <= v,  |q''| <= a,  |q'''| <= share of j,  |Q| <= tau (without, then with the load),
                tool at the load, pointing down, while it grips; at the place, pointing down, at the end,
                |speed of the tool| <= 1.7 m/s;  spheres about hand and load, wrist and elbow stay clear of a ball,
                from home, at rest, to rest.

Source: limits of the maker; task and numbers are ours.
Run:    python problems/panda_pick_and_place.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
from dataclasses import asdict, dataclass
from math import factorial
from pathlib import Path

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

import oc_dyn as od
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    home: tuple = (0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4)  # [rad]
    pick: tuple = (0.45, -0.35, 0.25)  # of the flange [m]
    place: tuple = (0.45, 0.35, 0.25)
    load: float = 1.5  # [kg], 0.08 m ahead of the flange
    ball: tuple = (0.55, 0.0, 0.25, 0.15)  # centre, radius [m]
    spheres: tuple = (("panda_link8", 0.10), ("panda_link6", 0.08), ("panda_link4", 0.08))  # frame, radius [m]
    speed: float = 1.7  # of the tool [m/s]
    jerk: float = 0.1  # share of the limit
    grip: float = 0.1  # [s]
    nodes: tuple = (16, 1, 24)
    over: float = 0.02  # of a limit, between nodes
    fps: int = 20


PHASES = ("reach", "grip", "carry")

# -- model ----------------------------------------------------------------------------------------------------


def model(cfg):
    """(Panda, the same with the load, {name: Function})."""
    free = od.robots.panda()
    load = od.Inertia.from_com(cfg.load, (0, 0, 0.08), np.diag([2e-3, 2e-3, 2e-3]))
    robots = {"free": free, "loaded": free.with_payload("panda_link8", load)}
    f = {name: od.function(r, "inverse_dynamics", derivatives="analytic") for name, r in robots.items()}
    q, v = ca.SX.sym("q", 7), ca.SX.sym("v", 7)
    pose = od.function(free, "frame_pose", frame="panda_link8")(q=q)
    f["down"] = ca.Function("down", [q], [ca.vertcat(pose["p"], pose["R"][:2, 2])])  # 0 in the last two: straight down
    f["velocity"] = ca.Function("velocity", [q, v], [ca.jtimes(pose["p"], q, v)])
    centres = [od.function(free, "frame_pose", frame=frame)(q=q)["p"] for frame, _ in cfg.spheres]
    gaps = [
        ca.sumsqr(p - ca.DM(cfg.ball[:3])) / (r + cfg.ball[3]) ** 2
        for p, (_, r) in zip(centres, cfg.spheres, strict=True)
    ]
    f["clear"] = ca.Function("clear", [q], [ca.vertcat(*gaps)])  # above 1 where spheres are apart
    return robots, f


def reaching(f, position, q):
    """Configuration near q with the tool at a position, pointing down: Newton steps on the pseudoinverse."""
    jacobian = f["down"].jacobian()
    for _ in range(50):
        miss = np.array(f["down"](q)).ravel() - [*position, 0, 0]
        q = q - np.clip(np.linalg.pinv(np.array(jacobian(q, 0))) @ miss, -0.2, 0.2)
    return q


# -- problem --------------------------------------------------------------------------------------------------


def solve(cfg, robots, f):
    """(Solution, pieces (N, 4, 7): q and its derivatives at the start of each interval)."""
    limits, total = od.Limits.of(robots["free"]).scaled(d2v=cfg.jerk), sum(cfg.nodes)
    home = np.array(cfg.home)
    ends = [home, reaching(f, cfg.pick, home), reaching(f, cfg.place, home)]
    knots = np.array([0, cfg.nodes[0], cfg.nodes[0] + 1, total]) / total

    def way(s):
        return np.array([np.interp(s, knots, column) for column in np.array([ends[0], ends[1], ends[1], ends[2]]).T])

    ocp = od.Problem(cfg.nodes[0], (0.2, 4.0))
    q = ocp.state("q", 7, lower=limits.q[0], upper=limits.q[1], guess=way, scale=1)
    v = ocp.state("v", 7, lower=-limits.v, upper=limits.v)
    dv = ocp.state("dv", 7, lower=-limits.dv, upper=limits.dv)
    jerk = ocp.control("jerk", 7, lower=-limits.d2v, upper=limits.d2v)
    x = [q, v, dv, jerk]
    for number, phase in enumerate(PHASES):
        if number:
            ocp.phase(cfg.nodes[number], cfg.grip if phase == "grip" else (0.2, 4.0))
        for j in range(3):
            ocp.next(x[j], sum(x[k] * ocp.step ** (k - j) / factorial(k - j) for k in range(j, 4)))
        if phase == "grip":
            ocp.limit(0, f["down"](q) - ca.DM([*cfg.pick, 0, 0]), 0)
            ocp.limit(0, ca.vertcat(v, dv, jerk), 0)
            continue
        ocp.limit(-1, f["loaded" if phase == "carry" else "free"](q, v, dv) / limits.tau, 1)
        for h in (0, ocp.step / 2):  # nodes, and half-way to the next
            at, speed = (sum(x[k] * h ** (k - j) / factorial(k - j) for k in range(j, 4)) for j in (0, 1))
            ocp.limit(-1, speed / limits.v, 1)
            ocp.limit(-np.inf, ca.sumsqr(f["velocity"](at, speed)) / cfg.speed**2, 1)
            ocp.limit(1, f["clear"](at), np.inf)
        ocp.minimize(terminal=ocp.duration)
        ocp.minimize(integral=1e-4 * ca.sumsqr(jerk / limits.d2v))
    ocp.start({q: home, v: 0, dv: 0})
    ocp.goal({v: 0, dv: 0, f["down"](q): [*cfg.place, 0, 0]})
    found = ocp.solve(method="euler")
    return found, np.stack([found[y][:total] for y in x], axis=1)


# -- checks ---------------------------------------------------------------------------------------------------


def check(cfg, robots, f, found, motion):
    """{what: (error, bound)}."""
    out, edges = {}, np.cumsum([0, *found.durations])
    report = motion.check()
    for row in report.rows:
        if row.quantity in ("q", "v", "dv", "d2v"):
            out[f"{row.quantity}: share of its limit, between nodes"] = row.share, 1 + cfg.over
    out["largest jump of q, q', q''"] = max(report.jumps.values()), 1e-6
    for phase, a, b in zip(PHASES, edges[:-1], edges[1:], strict=True):
        fine = motion.sample(np.linspace(a, b, 400))
        q, v, dv = fine.q.T, fine.v.T, fine.dv.T
        if phase == "grip":
            out["grip: motion [rad/s]"] = np.abs(v).max(), 1e-6
            out["grip: pose of the tool [m, -]"] = (
                np.abs(np.array(f["down"](q)) - [[x] for x in (*cfg.pick, 0, 0)]).max(),
                1e-6,
            )
            continue
        robot = "loaded" if phase == "carry" else "free"
        tau = np.array(f[robot].map(400)(q, v, dv)) / motion.limits.tau[:, None]
        out[f"{phase}: torque, share of its limit, between nodes"] = np.abs(tau).max(), 1 + cfg.over
        speed = np.linalg.norm(np.array(f["velocity"].map(400)(q, v)), axis=0)
        out[f"{phase}: speed of the tool, share of its limit"] = speed.max() / cfg.speed, 1 + cfg.over
        apart = np.sqrt(np.array(f["clear"].map(400)(q)).min())
        out[f"{phase}: sum of radii over the distance of spheres"] = 1 / apart, 1 + cfg.over
    last = np.array(f["down"](motion.q[-1])).ravel()
    out["pose of the tool at the end [m, -]"] = np.abs(last - [*cfg.place, 0, 0]).max(), 1e-6
    out["tool points up at the end"] = (
        float(od.function(robots["free"], "frame_pose", frame="panda_link8")(q=motion.q[-1])["R"][2, 2]),
        0.0,
    )
    # what the load adds to the torques at rest: J' times its weight
    held = motion.sample([edges[1]]).q[0]
    loaded, free = (np.array(f[k](held, np.zeros(7), np.zeros(7))).ravel() for k in ("loaded", "free"))
    pose, q = od.function(robots["free"], "frame_pose", frame="panda_link8"), ca.SX.sym("q", 7)
    height = ca.Function("height", [q], [ca.gradient((pose(q=q)["p"] + 0.08 * pose(q=q)["R"][:, 2])[2], q)])
    out["torques by the load, less those of its weight [Nm]"] = (
        np.abs(loaded - free - cfg.load * 9.81 * np.array(height(held)).ravel()).max(),
        1e-9,
    )
    return {what: (float(e), b) for what, (e, b) in out.items()}


# -- figures and files ----------------------------------------------------------------------------------------


def plot(cfg, f, found, motion, path):
    """Path of the tool from above and the side, shares of the limits."""
    figure = Figure(figsize=(12, 4), layout="constrained")
    above, side, used = figure.subplots(1, 3)
    fine = motion.sample(motion.duration / 400)
    p = np.array(f["down"].map(len(fine))(fine.q.T))[:3]
    angle = np.linspace(0, 2 * np.pi, 100)
    for axis, i, title in ((above, 0, "x over y [m]"), (side, 2, "z over y [m]")):
        axis.plot(p[1], p[i])
        axis.plot(cfg.ball[1] + cfg.ball[3] * np.cos(angle), cfg.ball[i] + cfg.ball[3] * np.sin(angle), "k")
        axis.plot([cfg.pick[1], cfg.place[1]], [cfg.pick[i], cfg.place[i]], "o")
        axis.set(title=f"tool: {title}; circle: ball", aspect="equal")
    for name in ("v", "dv", "d2v"):
        used.plot(fine.t, np.abs(getattr(fine, name) / getattr(motion.limits, name)).max(axis=1), label=name)
    used.plot(
        fine.t,
        np.linalg.norm(np.array(f["velocity"].map(len(fine))(fine.q.T, fine.v.T)), axis=0) / cfg.speed,
        label="tool",
    )
    for t in np.cumsum(found.durations)[:-1]:
        used.axvline(t, color="black", linewidth=0.6)
    used.set(title="largest share of limits", xlabel="time [s]")
    used.legend(fontsize="small")
    for axis in (above, side, used):
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=85)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/panda_pick_and_place"), help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer nodes and pictures")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(nodes=(10, 1, 14), over=0.06, fps=5) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    robots, f = model(cfg)
    found, pieces = solve(cfg, robots, f)
    limits = od.Limits.of(robots["free"]).scaled(d2v=cfg.jerk)
    names, units = robots["free"].coordinate_names, ("rad",) * 7
    motion = od.Trajectory(found.t, pieces, joints=names, units=units, robot=robots["free"], limits=limits)
    say(f"{found.iterations} iterations, durations {', '.join(f'{T:.4f}' for T in found.durations)} s")
    checks = check(cfg, robots, f, found, motion)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:62} {error:10.3e}  {'is' if error < bound else 'IS NOT'} below {bound:.3e}")

    motion.save(options.out / "motion.csv")
    plot(cfg, f, found, motion, options.out / "motion.png")
    motion.animate(options.out / "motion.gif", fps=cfg.fps, size=(360, 360))
    command = ["python", "problems/panda_pick_and_place.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "durations": found.durations, "iterations": found.iterations}
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
