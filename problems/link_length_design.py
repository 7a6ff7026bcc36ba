"""Lengths, mounting height and counterweight of an arm, chosen so that a motion of its hand takes the least torque.

The hand goes from one place to another and back, over an obstacle, in the vertical plane; how it goes is given, so the
joints' motion depends on the design: q(t; p), v(t; p), v'(t; p). Kim's derivatives of inverse dynamics by p take all of
it in: that of the motion by inverse kinematics, and what the lengths and masses change in the arm itself. A longer link
is heavier (a rod of the same profile).
Design: p = (shoulder's height, upper arm's length, forearm's length [m], counterweight's mass [kg]), counted from the
arm as built. Objective: mean square of the torques over time. The hand must stay within 97 % of the reach.
Steps: small quadratic programs with the gradient by Kim's derivatives; their Hessian is that of Gauss and Newton at
first, then BFGS's. A step is halved until it is an improvement.
Source: Kim 2012, Tables 2 and 5, for the derivatives; the arm and its task are ours.
Run:    python problems/link_length_design.py [--quick] [--quiet] [--out DIR]
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
    upper: float = 0.40  # [m]
    forearm: float = 0.40
    profile: float = 4.0  # mass of a link by its length [kg/m]
    payload: float = 2.0  # [kg]
    weight_at: float = -0.15  # of the counterweight, on the upper arm's line [m]
    start: tuple = (0.50, 0.10)  # of the hand: x, z [m]
    goal: tuple = (0.20, 0.55)
    lift: float = 0.10  # over the straight line, midway [m]
    time: float = 0.5  # there; as much back [s]
    steps: int = 80  # samples of the motion, there and back
    lower: tuple = (-0.20, -0.20, -0.20, 0.0)  # of p
    upper_bound: tuple = (0.30, 0.20, 0.20, 12.0)
    reach: float = 0.97  # of the stretched arm that may be used
    iterations: int = 60
    tolerance: float = 1e-7  # of the last step [m, kg]
    penalty: float = 1e5  # of the square of the reach used beyond [N2 m2]
    agreement: float = 1e-9  # of Kim's derivatives and AD's
    differences: float = 1e-5  # of both and differences of arms built anew


DESIGN = ("shoulder height [m]", "upper arm [m]", "forearm [m]", "counterweight [kg]")


# -- model ----------------------------------------------------------------------------------------------------


def arm(cfg):
    """The arm as built: shoulder and elbow turn about the horizontal; the hand carries the payload."""
    b = od.RobotBuilder("arm")
    b.add_link("base")
    for name, length in (("upper", cfg.upper), ("forearm", cfg.forearm)):
        mass = cfg.profile * length
        inertia = np.diag([0, 1, 1]) * mass * length**2 / 12 + 1e-4 * np.eye(3)
        b.add_link(name, mass=mass, com=(length / 2, 0, 0), inertia=inertia)
    b.add_link("hand", mass=cfg.payload, inertia=1e-3 * np.eye(3))
    b.add_joint("shoulder", "revolute", parent="base", child="upper", axis=(0, -1, 0))
    b.add_joint("elbow", "revolute", parent="upper", child="forearm", axis=(0, -1, 0), xyz=(cfg.upper, 0, 0))
    b.add_joint("wrist", "fixed", parent="forearm", child="hand", xyz=(cfg.forearm, 0, 0))
    return b.build()


def parameters(cfg):
    """The design parameters, in the order of p."""
    return [
        od.design.link_length("shoulder", (0, 0, 1)),
        od.design.link_length("elbow", density=cfg.profile),
        od.design.link_length("wrist", density=cfg.profile),
        od.design.mass("upper", at=(cfg.weight_at, 0, 0)),
    ]


def hand(cfg, t):
    """Place (x, z) of the hand at time t."""
    s = ca.if_else(t < cfg.time, t, 2 * cfg.time - t) / cfg.time
    s = s**3 * (10 - 15 * s + 6 * s**2)  # at rest at both ends
    return (1 - s) * ca.DM(cfg.start) + s * ca.DM(cfg.goal) + ca.vertcat(0, 4 * cfg.lift * s * (1 - s))


def motion(cfg):
    """casadi.Function (t, p) -> q, v, dv (2,), their Jacobians by p (2, 4), and the square of the share of the reach
    that is used, with its gradient (1, 4)."""
    t, p = ca.SX.sym("t"), ca.SX.sym("p", 4)
    place = hand(cfg, t)
    x, z = place[0], place[1] - p[0]
    l1, l2 = cfg.upper + p[1], cfg.forearm + p[2]
    square = x**2 + z**2
    elbow = -ca.acos((square - l1**2 - l2**2) / (2 * l1 * l2))  # above the line from shoulder to hand
    shoulder = ca.atan2(z, x) - ca.atan2(l2 * ca.sin(elbow), l1 + l2 * ca.cos(elbow))
    q = ca.vertcat(shoulder, elbow)
    v = ca.jacobian(q, t)
    dv = ca.jacobian(v, t)
    share = square / (l1 + l2) ** 2
    by_p = [ca.jacobian(y, p) for y in (q, v, dv, share)]
    return ca.Function("motion", [t, p], ca.cse([q, v, dv, *by_p[:3], share, by_p[3]]))


# -- torques over the motion, and their derivatives -----------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """What a design p makes of the torques and of the reach at N times."""

    cfg: Config
    robot: object
    times: np.ndarray
    motion: object
    sensitivity: dict

    def torques(self, p, method="recursive_scalar"):
        """All torques (2N,), sample after sample, and their Jacobian by p (2N, 4)."""
        n = self.times.size
        q, v, dv, by_q, by_v, by_dv, *_ = self.motion.map(n)(self.times.reshape(1, -1), ca.repmat(p, 1, n))
        tau, by_p = self.sensitivity[method].map(n)(q, v, dv, ca.repmat(p, 1, n), by_q, by_v, by_dv)
        rows = [by_p[:, 4 * k : 4 * k + 4] for k in range(n)]
        return np.array(ca.vec(tau)).ravel(), np.array(ca.vertcat(*rows))

    def shares(self, p):
        """Squares (N,) of the share of the reach that is used, and their Jacobian by p (N, 4)."""
        n = self.times.size
        *_, share, by_p = self.motion.map(n)(self.times.reshape(1, -1), ca.repmat(p, 1, n))
        return np.array(share).ravel(), np.array(ca.reshape(by_p, 4, n)).T


def build(cfg):
    """The Problem of a Config."""
    robot = arm(cfg)
    functions = {
        m: od.sensitivity(robot, "inverse_dynamics", parameters(cfg), method=m) for m in ("recursive_scalar", "ad")
    }
    edges = np.linspace(0, 2 * cfg.time, cfg.steps + 1)
    return Problem(cfg, robot, (edges[1:] + edges[:-1]) / 2, motion(cfg), functions)


# -- sequential quadratic programming -------------------------------------------------------------------------


def solve(problem, say=lambda text: None):
    """(designs (steps + 1, 4), objectives, size of the last step, not taken): from the arm as built. The Hessian starts
    as that of Gauss and Newton, and takes in the change of the Lagrangian's gradient (BFGS, damped after Powell)."""
    cfg, p = problem.cfg, np.zeros(4)
    f, c, H = _quadratic_model(problem, p)
    g, G = problem.shares(p)
    designs, objectives = [p], [f]
    shapes = {"h": ca.Sparsity.dense(4, 4), "a": ca.Sparsity.dense(*G.shape)}
    solver = ca.conic("step", "daqp", shapes, {"error_on_fail": True})
    for k in range(cfg.iterations):
        lower, upper = np.array(cfg.lower) - p, np.array(cfg.upper_bound) - p
        found = solver(h=H, g=c, a=G, uba=cfg.reach**2 - g, lba=-np.inf, lbx=lower, ubx=upper)
        step, multipliers = (np.array(found[x]).ravel() for x in ("x", "lam_a"))
        if np.abs(step).max() < cfg.tolerance:
            break
        merit, size = _merit(problem, p), 1.0
        while _merit(problem, p + size * step) >= merit:
            size *= 0.5
            if size < 1e-9:
                raise od.SolveError(f"link_length_design: no step from p = {p.round(6).tolist()} is an improvement")
        p, before = p + size * step, c + G.T @ multipliers
        f, c, _ = _quadratic_model(problem, p)
        g, G = problem.shares(p)
        H = _updated(H, size * step, c + G.T @ multipliers - before)
        designs.append(p)
        objectives.append(f)
        say(f"step {k + 1:2}: {np.sqrt(f):8.4f} Nm   p = {np.array2string(p, precision=4)}")
    return np.array(designs), np.array(objectives), float(np.abs(step).max())


def _quadratic_model(problem, p):
    """Mean over time of the square of the torques [N2 m2], its gradient by Kim's derivatives, Gauss and Newton's
    Hessian."""
    (tau, J), n = problem.torques(p), problem.times.size
    return tau @ tau / n, 2 * J.T @ tau / n, 2 * J.T @ J / n + 1e-9 * np.eye(4)


def _updated(H, s, y):
    """BFGS, damped so that it stays positive."""
    along = s @ H @ s
    theta = 1.0 if s @ y >= 0.2 * along else 0.8 * along / (along - s @ y)
    y = theta * y + (1 - theta) * H @ s
    return H - np.outer(H @ s, H @ s) / along + np.outer(y, y) / (s @ y)


def _merit(problem, p):
    """Objective and, steeply, what the hand is beyond the reach that may be used; infinite where it cannot be."""
    share = problem.shares(p)[0].max()
    if share >= 1.0:
        return np.inf
    return _quadratic_model(problem, p)[0] + problem.cfg.penalty * max(0.0, share - problem.cfg.reach**2)


# -- checks ---------------------------------------------------------------------------------------------------


def rebuilt(problem, p):
    """The arm built anew with design p."""
    return od.design.changed(problem.robot, dict(zip(parameters(problem.cfg), p, strict=True)))


def hand_error(problem, p):
    """How far the hand of an arm built anew with design p is from where it should be, at worst [m]."""
    n = problem.times.size
    q, *_ = problem.motion.map(n)(problem.times.reshape(1, -1), ca.repmat(p, 1, n))
    places = np.array(od.function(rebuilt(problem, p), "frame_pose", frame="hand").map(n)(q)[2])
    wanted = np.array([np.array(hand(problem.cfg, t)).ravel() for t in problem.times]).T
    return float(np.abs(places[[0, 2]] - wanted).max())


def rebuilt_torques(problem, p):
    """The same torques by default inverse dynamics of an arm built anew with design p."""
    n, robot = problem.times.size, rebuilt(problem, p)
    q, v, dv, *_ = problem.motion.map(n)(problem.times.reshape(1, -1), ca.repmat(p, 1, n))
    return np.array(ca.vec(od.function(robot, "inverse_dynamics").map(n)(q, v, dv))).ravel()


def check(problem, designs, objectives, last):
    """{what: (error, bound)}."""
    cfg, out, h = problem.cfg, {}, 1e-5
    for when, p in (("at the start", designs[0]), ("at the end", designs[-1])):
        tau, J = problem.torques(p)
        scale = np.abs(J).max()
        error = np.abs(problem.torques(p, "ad")[1] - J).max() / scale
        out[f"derivatives by Kim's table and by AD, {when}"] = error, cfg.agreement
        e = h * np.eye(4)
        slopes = np.array([rebuilt_torques(problem, p + x) - rebuilt_torques(problem, p - x) for x in e]).T / (2 * h)
        error = np.abs(slopes - J).max() / scale
        out[f"derivatives and differences of arms built anew, {when}"] = error, cfg.differences
        error = np.abs(rebuilt_torques(problem, p) - tau).max() / np.abs(tau).max()
        out[f"torques and those of an arm built anew, {when}"] = error, 1e-10
        out[f"hand of an arm built anew off its way [m], {when}"] = hand_error(problem, p), 1e-12
    p = designs[-1]
    out["reach used beyond what may be"] = max(0.0, np.sqrt(problem.shares(p)[0].max()) - cfg.reach), 1e-6
    excess = np.maximum(np.array(cfg.lower) - p, p - np.array(cfg.upper_bound)).max()
    out["design beyond its bounds"] = max(0.0, excess), 1e-9
    out["objective: end over start"] = objectives[-1] / objectives[0], 0.8
    out["last step [m, kg]"] = last, cfg.tolerance
    return out


# -- figures and table ----------------------------------------------------------------------------------------


def write(problem, designs, objectives, path):
    """Table of the steps: design and root mean square torque."""
    cfg = problem.cfg
    base = np.array([0, cfg.upper, cfg.forearm, 0])
    table = np.column_stack([np.arange(len(designs)), designs + base, np.sqrt(objectives)])
    header = ",".join(["step", *DESIGN, "rms torque [Nm]"])
    np.savetxt(path, table, fmt="%.8g", delimiter=",", header=header, comments="")


def plot(problem, designs, objectives, path):
    """design.png: both arms along the motion, torques before and after, objective over the steps."""
    cfg, n = problem.cfg, problem.times.size
    figure = Figure(figsize=(11, 7), layout="constrained")
    grid = figure.subplots(2, 2)
    for axes, p, title in ((grid[0, 0], designs[0], "as built"), (grid[0, 1], designs[-1], "as designed")):
        q = np.array(problem.motion.map(n)(problem.times.reshape(1, -1), ca.repmat(p, 1, n))[0])
        for k in range(0, n // 2 + 1, max(1, n // 12)):
            angles = np.array([q[0, k], q[0, k] + q[1, k]])
            lengths = np.array([cfg.upper + p[1], cfg.forearm + p[2]])
            xs = np.r_[0, np.cumsum(lengths * np.cos(angles))]
            zs = p[0] + np.r_[0, np.cumsum(lengths * np.sin(angles))]
            axes.plot(xs, zs, "o-", color="tab:blue", alpha=0.35, linewidth=1.5, markersize=3)
        axes.plot(*[[a, b] for a, b in zip(cfg.start, cfg.goal, strict=True)], "k^", markersize=6)
        axes.set(title=title, xlabel="x [m]", ylabel="z [m]", aspect="equal", xlim=(-0.4, 0.8), ylim=(-0.3, 0.8))
        axes.grid(alpha=0.3)
    for p, style, label in ((designs[0], "--", "as built"), (designs[-1], "-", "as designed")):
        tau = problem.torques(p)[0].reshape(n, 2)
        for k, joint in enumerate(("shoulder", "elbow")):
            grid[1, 0].plot(problem.times, tau[:, k], style, color=f"C{k}", label=f"{joint}, {label}")
    grid[1, 0].set(xlabel="t [s]", ylabel="torque [Nm]")
    grid[1, 0].legend(fontsize="small")
    grid[1, 1].plot(np.sqrt(objectives), "o-")
    grid[1, 1].set(xlabel="step", ylabel="root mean square torque [Nm]", ylim=(0, None))
    for axes in grid[1]:
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=80)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/link_length_design"), help="folder (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    cfg = Config(steps=30) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    problem = build(cfg)
    designs, objectives, last = solve(problem, say)
    checks = check(problem, designs, objectives, last)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:62} {error:8.1e}  {'is' if error < bound else 'IS NOT'} below {bound:.1e}")
    found = designs[-1] + np.array([0, cfg.upper, cfg.forearm, 0])
    say("design: " + ", ".join(f"{name} {x:.4f}" for name, x in zip(DESIGN, found, strict=True)))
    say(f"root mean square torque {np.sqrt(objectives[0]):.3f} -> {np.sqrt(objectives[-1]):.3f} Nm")

    write(problem, designs, objectives, options.out / "steps.csv")
    plot(problem, designs, objectives, options.out / "design.png")
    command = ["python", "problems/link_length_design.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "design": dict(zip(DESIGN, found, strict=True)), "passed": passed}
    facts |= {"rms_torque": [float(np.sqrt(x)) for x in (objectives[0], objectives[-1])], "steps": len(designs) - 1}
    facts["instructions"] = {m: f.n_instructions() for m, f in problem.sensitivity.items()}
    facts |= {"checks": {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
