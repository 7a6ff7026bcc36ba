"""Model-predictive control moves a Panda among balls that move, whose places come in as parameters.

    every 50 ms:  minimise    sum over 15 steps of |q - r|^2 + |v / 5|^2 + |a / (4 a_max)|^2, and 4 |q - r|^2 + |v|^2 at
                              the end,
                  subject to  v+ = v + h a,  q+ = q + h v+,  |a| <= share of a_max,  |v+| <= share of v_max,
                              distance of every link from every ball >= clearance, at a high price (soft),
                              q, v as measured at the start.

r is a target that jumps to and fro. Balls go round; what tracks them tells where they are and how fast, and the
controller takes them to go straight on. The loop is closed in Python and in generated C, which must give the same
numbers, then by a controller that takes the balls to stand, and by one that knows of none. Distances are looked at
between steps by numbers, a way of their own.
Run:    python problems/moving_obstacle_mpc.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od


@dataclass(frozen=True)
class Config:
    home: tuple = (0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4)  # [rad]
    swing: float = 0.8  # of joint 1, to both sides of home [rad]
    every: float = 2.0  # between jumps of the target [s]
    links: tuple = ("panda_link4", "panda_link5", "panda_link6", "panda_link7")  # that keep off
    # of each ball: radius, middle of its circle, its axes there (halves) [m], turns per second
    balls: tuple = (
        (0.08, (0.36, 0.1, 0.5), (0.0, 0.0, -0.3), (0.05, 0.0, 0.0), 0.23),
        (0.1, (0.45, -0.15, 0.55), (0.0, -0.3, 0.0), (0.15, 0.0, 0.0), 0.17),
    )
    nodes: int = 15
    h: float = 0.05  # [s]
    speed: float = 0.8  # share of the limits
    force: float = 0.5  # share of the limits of acceleration
    clearance: float = 0.03  # [m]
    price: float = 300.0  # of what is missing of the clearance
    least: float = 0.01  # that is kept between steps, with balls that do not go straight on [m]
    iterations: int = 8  # of a step, at most
    changes: int = 1000  # of the active set in a quadratic program: many pairs are near
    duration: float = 8.0  # of the loop [s]
    flags: tuple = ("-O2",)
    between: int = 5  # places that are looked at from step to step
    fps: int = 20


def shapes(cfg, robot):
    """The links that keep off, and the balls, whose poses come in."""
    scene = od.Scene.of(robot)
    scene = scene.without(*(x.name for x in scene.items if x.link not in cfg.links))
    for k, (radius, *_) in enumerate(cfg.balls):
        scene = scene.add(f"ball {k + 1}", od.shapes.Sphere(radius), od.scene.PORT)
    links = [x.name for x in scene.items if x.link is not None]
    return scene.leave_out(*((a, b) for i, a in enumerate(links) for b in links[:i]))


def tracking(cfg, robot, limits, scene):
    """(Problem, a)."""
    ocp, m = od.Problem(cfg.nodes, cfg.nodes * cfg.h), len(cfg.balls)
    most = cfg.force * limits.dv
    q, v = ocp.state("q", 7, guess=cfg.home, scale=1), ocp.state("v", 7)
    a = ocp.control("a", 7, lower=-most, upper=most)
    q_now, v_now, r = ocp.parameter("q_now", 7), ocp.parameter("v_now", 7), ocp.varying("r", 7)
    where = ocp.varying("where", 3 * m)
    ocp.next(q, q + cfg.h * (v + cfg.h * a))
    ocp.next(v, v + cfg.h * a)
    ocp.limit(-cfg.speed, (v + cfg.h * a) / limits.v, cfg.speed)  # not v: the present is as it is
    if scene is not None:
        poses = {name: moved(where[3 * k : 3 * k + 3]) for k, name in enumerate(scene.moving)}
        ocp.avoid(scene, q, cfg.clearance, robot=robot, poses=poses, soft=(cfg.price, cfg.price))
    ocp.start({q: q_now, v: v_now})
    ocp.minimize(squares=np.sqrt(2 / cfg.h) * ca.vertcat(q - r, v / 5, a / limits.dv / 4))
    ocp.minimize(terminal=4 * ca.sumsqr(q - r) + ca.sumsqr(v))
    return ocp, a


def moved(p):
    """Homogeneous matrix of a place."""
    return ca.vertcat(ca.horzcat(ca.MX(ca.DM.eye(3)), p), ca.MX(ca.DM([[0, 0, 0, 1]])))


def world(cfg):
    """Functions: t -> places of the balls and their speeds; t -> target; the plant; {how it is foreseen: measured}."""
    x, a, t = ca.SX.sym("x", 15), ca.SX.sym("a", 7), ca.SX.sym("t")
    places = [
        ca.DM(middle) + ca.DM(one) * ca.cos(2 * np.pi * rate * t) + ca.DM(other) * ca.sin(2 * np.pi * rate * t)
        for _, middle, one, other, rate in cfg.balls
    ]
    p = ca.vertcat(*places)
    balls = ca.Function("balls", [t], [p, ca.jacobian(p, t)])
    side = 1 - 2 * ca.fmod(ca.floor(t / cfg.every + 1e-9), 2)
    target = ca.Function("target", [t], [ca.DM(cfg.home) + ca.vertcat(cfg.swing * side, ca.DM.zeros(6))])
    v = x[7:14] + cfg.h * a
    plant = ca.Function("plant", [x, a], [ca.vertcat(x[:7] + cfg.h * v, v, x[14] + cfg.h)], ["x", "a"], ["x_next"])
    steps, (p, rate) = range(cfg.nodes + 1), balls(x[14])
    horizon, measured = ca.horzcat(*(target(x[14]) for _ in steps)), {}
    for how, straight in (("straight on", 1.0), ("standing", 0.0)):
        seen = ca.horzcat(*(p + straight * cfg.h * k * rate for k in steps))
        names = ["q_now", "v_now", "r", "where"]
        measured[how] = ca.Function("measured", [x], [x[:7], x[7:14], horizon, seen], ["x"], names)
    return balls, target, plant, measured


def apart(cfg, robot, scene, balls, loop):
    """(times (K,), distances (K, pairs) [m]) along the loop and between its steps, by numbers."""
    fine = np.linspace(0, len(loop.x) - 1, cfg.between * (len(loop.x) - 1) + 1)
    x = np.array([np.interp(fine, np.arange(len(loop.x)), column) for column in loop.x.T]).T
    poses = np.tile(np.eye(4), (len(x), 1, len(scene.moving)))
    poses[:, :3, 3::4] = balls.map(len(x))(x[:, 14])[0].full().T.reshape(len(x), -1, 3).swapaxes(1, 2)
    return x[:, 14], od.scene.exact_distances(robot, scene, x[:, :7], poses=poses)


def check_loop(run, cfg, limits, name, loop):
    run.check(f"{name}: acceleration, share of its limit", np.abs(loop.u / limits.dv).max(), below=cfg.force + 1e-6)
    if name != "standing":  # where a ball comes nearer than was foreseen, limits give way
        speed = np.abs(loop.x[:, 7:14] / limits.v).max()
        run.check(f"{name}: speed, share of its limit", speed, below=cfg.speed + 1e-6)
        run.check(f"{name}: violation of scaled constraints", loop.violation.max(), below=1e-5)


def solve(run, cfg):
    robot = od.robots.panda()
    limits, scene, (balls, target, plant, measured) = od.Limits.of(robot), shapes(cfg, robot), world(cfg)
    start, steps = [*cfg.home, *[0] * 8], round(cfg.duration / cfg.h)
    ocp, a = tracking(cfg, robot, limits, scene)
    options = {"qpsol_options": {"max_iter": cfg.changes}}
    control = od.mpc(ocp, outputs={"a": a}, method="euler", iterations=cfg.iterations, solver_options=options)
    python = control.closed_loop(plant, start, steps, {}, measured["straight on"])
    c = control.reset().closed_loop_in_c(plant, start, steps, {}, measured["straight on"], flags=cfg.flags)
    for what in ("x", "u"):
        run.check(f"{what}: C less Python", np.abs(getattr(python, what) - getattr(c, what)).max(), below=1e-6)
    loops = {"straight on": python}
    loops["standing"] = control.reset().closed_loop(plant, start, steps, {}, measured["standing"])
    blind, a = tracking(cfg, robot, limits, None)
    x = ca.SX.sym("x", 15)
    seen = measured["standing"](x)
    unseen = ca.Function("measured", [x], seen, ["x"], ["q_now", "v_now", "r", "where"])
    loops["no balls known"] = od.mpc(blind, outputs={"a": a}, method="euler").closed_loop(
        plant, start, steps, {}, unseen
    )
    least = {}
    for name, loop in loops.items():
        check_loop(run, cfg, limits, name, loop)
        t, d = apart(cfg, robot, scene, balls, loop)
        least[name] = d.min(axis=1)
        run.facts[f"{name}: least distance [m]"] = d.min()
        run.say(f"balls {name}: least distance {1e3 * d.min():.1f} mm")
    run.check("least distance [m]", least["straight on"].min(), above=cfg.least)
    run.check(
        "least distance with no balls known [m]: there is something to avoid", least["no balls known"].min(), below=0
    )
    gain = least["straight on"].min() - least["standing"].min()
    run.check("least distance, more than with balls taken to stand [m]", gain, above=0.0)
    before = slice(round(cfg.every / cfg.h) - 1, None, round(cfg.every / cfg.h))
    wanted = target.map(steps)(python.x[None, :, 14]).full().T
    off = np.abs(loops["no balls known"].x[:, :7] - wanted)[before].max()
    run.check("no balls known: distance from a target before the next one [rad]", off, below=0.05)
    off = np.abs(python.x[:, :7] - wanted)[before].max()
    run.facts["distance from a target before the next one [rad]"] = off
    run.facts["median step in C, share of the period"] = np.median(c.seconds) / cfg.h
    run.facts["deadlines"] = c.deadlines(cfg.h).splitlines()
    run.say(c.deadlines(cfg.h))

    columns = (*(f"q{i} [rad]" for i in range(1, 8)), *(f"v{i} [rad/s]" for i in range(1, 8)), "t [s]")
    efforts = tuple(f"a{i} [rad/s2]" for i in range(1, 8))
    run.table("loop.csv", {columns: python.x, efforts: python.u, "seconds": c.seconds})
    with run.figure("loop.png", "joint 1 [rad]; ..: target", "distance of links from balls [m]") as (motion, gap):
        motion.plot(python.x[:, 14], wanted[:, 0], "k:")
        for name, loop in loops.items():
            motion.plot(loop.x[:, 14], loop.x[:, 0], label=name)
            gap.plot(t, least[name], label=name)
        gap.axhline(cfg.clearance, color="black", linewidth=0.8)
    places = balls.map(steps)(python.x[None, :, 14])[0].full()
    poses = np.tile(np.eye(4), (steps, 1, len(cfg.balls)))
    for k in range(len(cfg.balls)):
        poses[:, :3, 4 * k + 3] = places[3 * k : 3 * k + 3].T
    picture = {"fps": cfg.fps, "size": (360, 360), "scene": scene, "poses": poses}
    od.animate(robot, python.x[:, 14], python.x[:, :7], run.out / "loop.gif", **picture)


main = od.script(solve, Config(), quick={"duration": 3.0, "flags": ("-O0",), "fps": 5})

if __name__ == "__main__":
    sys.exit(main())
