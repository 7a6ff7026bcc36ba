"""A pole is swung up by pushing its cart: the smallest complete problem, with known optima.

    minimise    integral of u^2
    subject to  q' = v,  v' = the equations of motion,  |u| <= 20 N,  |x| <= 2 m,
                q = (0, 0), v = 0 at the start, q = (1 m, pi), v = 0 after 2 s

The dynamics are those of a robot of a prismatic and a revolute joint: nothing is derived by hand. Hermite-Simpson, at
25, 50 and 100 intervals, gives the known optima of this problem, by ipopt and by fatrop; the trapezoidal rule and
controls that are constant on intervals converge to them from above.
Source: Kelly 2017, "An Introduction to Trajectory Optimization", SIAM Review (the problem and its numbers).
Run:    python problems/cart_pole_swing_up.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od


@dataclass(frozen=True)
class Config:
    cart: float = 1.0  # [kg]
    pole: float = 0.3  # mass at the end of the pole [kg]
    length: float = 0.5  # [m]
    force: float = 20.0  # limit [N]
    track: float = 2.0  # limit of the cart's position [m]
    distance: float = 1.0  # of the goal [m]
    duration: float = 2.0  # [s]
    nodes: tuple = (25, 50, 100)
    known: tuple = (58.80543, 58.80764, 58.80767)  # optima by Hermite-Simpson [N^2 s]
    fps: int = 25


def cart_pole(cfg):
    """A cart on a rail and a point mass on a pole that hangs down at q = 0."""
    b = od.RobotBuilder("cart_pole")
    b.add_link("base")
    b.add_body("cart", "prismatic", "base", joint="rail", mass=cfg.cart, axis=(1, 0, 0))
    b.add_body("pole", "revolute", "cart", joint="hinge", mass=cfg.pole, com=(0, 0, -cfg.length), axis=(0, -1, 0))
    return b.build()


def swing_up(cfg, robot, nodes):
    ocp = od.Problem(nodes, cfg.duration)
    goal = np.array([cfg.distance, np.pi])
    q = ocp.state("q", 2, lower=[-cfg.track, -np.inf], upper=[cfg.track, np.inf], guess=lambda s: s * goal, scale=1)
    v = ocp.state("v", 2)
    u = ocp.control("u", lower=-cfg.force, upper=cfg.force, scale=1)
    ocp.rate(q, v)
    ocp.rate(v, od.function(robot, "forward_dynamics", derivatives="analytic")(q, v, ca.vertcat(u, 0)))
    ocp.start({q: 0, v: 0})
    ocp.goal({q: goal, v: 0})
    ocp.minimize(integral=u**2)
    return ocp, q, v, u


def solve(run, cfg):
    robot, costs = cart_pole(cfg), {}
    run.say(str(robot))
    methods = [("hermite_simpson", "ipopt"), ("hermite_simpson", "fatrop"), ("trapezoidal", "ipopt"), ("rk4", "ipopt")]
    for nodes in cfg.nodes:
        ocp, q, v, u = swing_up(cfg, robot, nodes)
        for method, solver in reversed(methods):  # the last one is drawn
            solution = ocp.solve(method=method, solver=solver)
            costs[method, solver, nodes] = solution.objective
            progress = f"{solution.iterations:3} iterations {solution.objective:.6f}"
            run.say(f"{method:16} {solver:7} {nodes:4} intervals {progress}")
    run.check("worst error of the last solution's own check", solution.check().worst, below=1e-3)
    t, q, v, u = solution.t, solution[q], solution[v], solution[u][:, 0]

    for nodes, known in zip(cfg.nodes, cfg.known, strict=True):
        for solver in ("ipopt", "fatrop"):
            cost = costs["hermite_simpson", solver, nodes]
            run.check(f"Hermite-Simpson, {nodes} intervals, {solver}: cost", cost, equals=known, within=6e-6)
    for method in ("trapezoidal", "rk4"):
        coarse, fine = (costs[method, "ipopt", n] - cfg.known[-1] for n in cfg.nodes[:2])
        run.check(f"{method}: gap of cost after halving the intervals, ratio", fine / coarse, below=0.3)
        run.check(f"{method}: cost less the optimum", fine, above=0)
    kinetic, potential = od.function(robot, "kinetic_energy"), od.function(robot, "potential_energy")
    first, last = (float(kinetic(q[k], v[k]) + potential(q[k])) for k in (0, -1))
    power = u * v[:, 0]
    work = np.sum(np.diff(t) * (power[1:] + power[:-1]) / 2)
    run.check("energy gained over work of the force", (last - first) / work, equals=1, within=3e-3)
    run.check("force: share of its limit", np.abs(u).max() / cfg.force, below=1 + 1e-9)
    run.check("position of the cart: share of its limit", np.abs(q[:, 0]).max() / cfg.track, below=1 + 1e-9)
    run.check("distance from the goal", np.abs([*q[-1] - [cfg.distance, np.pi], *v[-1]]).max(), below=1e-8)
    run.facts["costs"] = {", ".join(map(str, key)): cost for key, cost in costs.items()}

    names = ("x [m]", "angle [rad]"), ("dx [m/s]", "dangle [rad/s]")
    run.table("swing_up.csv", {"t [s]": t, names[0]: q, names[1]: v, "u [N]": u})
    titles = "cart [m], pole [rad]", "force [N]", "cost less the optimum"
    with run.figure("swing_up.png", *titles) as (motion, force, gap):
        motion.plot(t, q)
        force.plot(t, u)
        for method, solver in methods:
            gaps = [max(abs(costs[method, solver, n] - cfg.known[-1]), 1e-6) for n in cfg.nodes]
            gap.loglog(cfg.nodes, gaps, "o-", label=f"{method}, {solver}")
        gap.set_xlabel("intervals")
    od.animate(robot, t, q, run.out / "swing_up.gif", fps=cfg.fps, size=(360, 360))


main = od.script(solve, Config(), quick={"fps": 6})

if __name__ == "__main__":
    sys.exit(main())
