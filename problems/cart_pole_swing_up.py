"""A pole is swung up by pushing its cart: the smallest problem that has everything, with known optima.

    minimise    integral of u^2
    subject to  q' = v,  v' = the equations of motion,  |u| <= 20 N,  |x| <= 2 m,
                q = (0, 0), v = 0 at the start, q = (1 m, pi), v = 0 after 2 s

The dynamics are those of a robot of a prismatic and a revolute joint: nothing is derived by hand. Hermite-Simpson, at
25, 50 and 100 intervals, gives the optima that are known for this problem, by ipopt and by fatrop; the trapezoidal
rule, and controls that are constant on intervals, come to the same from above.
Source: Kelly 2017, "An Introduction to Trajectory Optimization", SIAM Review (the problem and its numbers).
Run:    python problems/cart_pole_swing_up.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

import oc_dyn as od
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------


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


# -- model and problem ----------------------------------------------------------------------------------------


def cart_pole(cfg):
    """The robot: a cart on a rail and a point mass on a pole that hangs down at q = 0."""
    b = od.RobotBuilder("cart_pole")
    b.add_link("base")
    b.add_body("cart", "prismatic", "base", joint="rail", mass=cfg.cart, axis=(1.0, 0.0, 0.0))
    b.add_body(
        "pole", "revolute", "cart", joint="hinge", mass=cfg.pole, com=(0.0, 0.0, -cfg.length), axis=(0.0, -1.0, 0.0)
    )
    return b.build()


def swing_up(cfg, robot, nodes):
    """(Problem, q, v, u)."""
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


def solved(cfg, robot, nodes, method="hermite_simpson", solver="ipopt"):
    """{t, q, v, u, cost, iterations}."""
    ocp, q, v, u = swing_up(cfg, robot, nodes)
    found = ocp.solve(method=method, solver=solver)
    result = {"t": found.t, "q": found[q], "v": found[v], "u": found[u]}
    return result | {"cost": found.objective, "iterations": found.iterations}


# -- checks ---------------------------------------------------------------------------------------------------


def check(cfg, robot, results):
    """{what: (error, bound)}."""
    out = {}
    for nodes, known in zip(cfg.nodes, cfg.known, strict=True):
        for solver in ("ipopt", "fatrop"):
            cost = results["hermite_simpson", solver, nodes]["cost"]
            out[f"Hermite-Simpson, {nodes} intervals, {solver}: cost less the known one"] = abs(cost - known), 6e-6
    fine = results["hermite_simpson", "ipopt", cfg.nodes[-1]]
    best = cfg.known[-1]
    for method in ("trapezoidal", "rk4"):
        coarse, finer = (results[method, "ipopt", n]["cost"] - best for n in cfg.nodes[:2])
        out[f"{method}: what halving the intervals leaves of the gap"] = finer / coarse, 0.3
        out[f"{method}: cost below the optimum"] = -finer, 0.0
    energy = od.function(robot, "kinetic_energy"), od.function(robot, "potential_energy")
    q, v, u = fine["q"], fine["v"], fine["u"][:, 0]
    total = [float(energy[0](q[k], v[k])) + float(energy[1](q[k])) for k in (0, -1)]
    h = np.diff(fine["t"])
    work = np.sum(h / 2 * (u[1:] * v[1:, 0] + u[:-1] * v[:-1, 0]))
    out["energy gained less work of the force (trapezoidal rule), relative"] = (
        abs(total[1] - total[0] - work) / abs(work),
        3e-3,
    )
    out["force: share of its limit"] = np.abs(u).max() / cfg.force, 1 + 1e-9
    out["position of the cart: share of its limit"] = np.abs(q[:, 0]).max() / cfg.track, 1 + 1e-9
    miss = np.abs([*q[-1] - [cfg.distance, np.pi], *v[-1]]).max()
    out["goal: missed by"] = miss, 1e-8
    return {what: (float(e), b) for what, (e, b) in out.items()}


# -- figures and files ----------------------------------------------------------------------------------------


def plot(cfg, results, path):
    """Motion and force of the finest solution; cost over the number of intervals."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    motion, force, cost = figure.subplots(1, 3)
    fine = results["hermite_simpson", "ipopt", cfg.nodes[-1]]
    motion.plot(fine["t"], fine["q"][:, 0], label="cart [m]")
    motion.plot(fine["t"], fine["q"][:, 1], label="pole [rad]")
    force.plot(fine["t"], fine["u"])
    for method in ("hermite_simpson", "trapezoidal", "rk4"):
        found = [(n, results[method, "ipopt", n]["cost"]) for n in cfg.nodes if (method, "ipopt", n) in results]
        gaps = np.abs(np.array([c for _, c in found]) - cfg.known[-1])
        cost.loglog([n for n, _ in found], np.maximum(gaps, 1e-6), "o-", label=method)
    motion.set(title="motion", xlabel="time [s]")
    force.set(title="force", xlabel="time [s]", ylabel="[N]")
    cost.set(title="cost less the known optimum [N2 s]", xlabel="intervals")
    motion.legend(fontsize="small")
    cost.legend(fontsize="small")
    for axis in (motion, force, cost):
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=90)


def animate(cfg, robot, fine, path):
    """GIF of the swing-up."""
    pieces = np.stack([fine["q"][:-1], np.diff(fine["q"], axis=0) / np.diff(fine["t"])[:, None]], axis=1)
    names, units = robot.coordinate_names, ("m", "rad")
    od.Trajectory(fine["t"], pieces, joints=names, units=units, robot=robot).animate(path, fps=cfg.fps, size=(360, 360))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/cart_pole_swing_up"), help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="few pictures a second")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(fps=6) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    robot = cart_pole(cfg)
    say(str(robot))
    results = {}
    ways = [("hermite_simpson", s, n) for s in ("ipopt", "fatrop") for n in cfg.nodes]
    for method, solver, nodes in [*ways, *((m, "ipopt", n) for m in ("trapezoidal", "rk4") for n in cfg.nodes)]:
        found = results[method, solver, nodes] = solved(cfg, robot, nodes, method, solver)
        say(f"{method:16} {solver:7} {nodes:4} intervals  {found['iterations']:3} iterations  cost {found['cost']:.6f}")
    checks = check(cfg, robot, results)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:70} {error:9.2e}  {'is' if error < bound else 'IS NOT'} below {bound:.2e}")

    fine = results["hermite_simpson", "ipopt", cfg.nodes[-1]]
    table = np.column_stack([fine["t"], fine["q"], fine["v"], fine["u"]])
    header = "t [s],x [m],angle [rad],dx [m/s],dangle [rad/s],u [N]"
    np.savetxt(options.out / "swing_up.csv", table, fmt="%.9g", delimiter=",", header=header, comments="")
    plot(cfg, results, options.out / "swing_up.png")
    animate(cfg, robot, fine, options.out / "swing_up.gif")
    command = ["python", "problems/cart_pole_swing_up.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg)}
    facts["costs"] = {f"{m}, {s}, {n}": r["cost"] for (m, s, n), r in results.items()}
    facts |= {"passed": passed, "checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
