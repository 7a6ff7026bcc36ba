"""Lengths, mounting height and counterweight of an arm, chosen so that a motion of its hand takes the least torque.

The hand moves from one place to another and back, over an obstacle, in the vertical plane. Its motion is fixed, so that
of the joints depends on the design: q(t; p), v(t; p), v'(t; p). Kim's derivatives of inverse dynamics by p include
both: the change of the motion, by inverse kinematics, and the change of the arm itself by lengths and masses. A longer
link is heavier (a rod of the same profile).
Design: p = (shoulder's height, upper arm's length, forearm's length [m], counterweight's mass [kg]), counted from the
arm as built. Objective: mean square of the torques over time. The hand must stay within 97 % of the reach.
Steps: small quadratic programs with the gradient by Kim's derivatives; their Hessian is that of Gauss and Newton at
first, then updated by BFGS. A step is halved until it improves the objective.
Source: Kim 2012, Tables 2 and 5, for the derivatives; the arm and its task are ours.
Run:    python problems/link_length_design.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od

DESIGN = ("shoulder height [m]", "upper arm [m]", "forearm [m]", "counterweight [kg]")


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
    differences: float = 1e-5  # of both and differences of rebuilt arms


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


class Problem:
    """Torques and reach of a design p at N times."""

    def __init__(self, cfg):
        self.cfg, self.robot, self.n = cfg, arm(cfg), cfg.steps
        edges = np.linspace(0, 2 * cfg.time, cfg.steps + 1)
        self.times = (edges[1:] + edges[:-1]) / 2
        self.along = motion(cfg).map(self.n)
        methods = "recursive_scalar", "ad"
        self.sensitivity = {
            m: od.sensitivity(self.robot, "inverse_dynamics", parameters(cfg), method=m) for m in methods
        }

    def motion(self, p):
        """What `along` gives at all times, for a design p."""
        return self.along(self.times.reshape(1, -1), ca.repmat(p, 1, self.n))

    def torques(self, p, method="recursive_scalar"):
        """All torques (2N,), sample after sample, and their Jacobian by p (2N, 4)."""
        q, v, dv, by_q, by_v, by_dv, *_ = self.motion(p)
        tau, by_p = self.sensitivity[method].map(self.n)(q, v, dv, ca.repmat(p, 1, self.n), by_q, by_v, by_dv)
        return np.array(ca.vec(tau)).ravel(), np.vstack(np.split(np.array(by_p), self.n, axis=1))

    def shares(self, p):
        """Squares (N,) of the share of the reach that is used, and their Jacobian by p (N, 4)."""
        *_, share, by_p = self.motion(p)
        return np.array(share).ravel(), np.array(ca.reshape(by_p, 4, self.n)).T

    def quadratic_model(self, p):
        """Mean over time of the square of the torques [N2 m2], its gradient by Kim's derivatives, Gauss and Newton's
        Hessian."""
        tau, J = self.torques(p)
        return tau @ tau / self.n, 2 * J.T @ tau / self.n, 2 * J.T @ J / self.n + 1e-9 * np.eye(4)

    def merit(self, p):
        """Objective and a steep penalty on reach beyond the share allowed; infinite if the hand cannot get there."""
        share = self.shares(p)[0].max()
        if share >= 1.0:
            return np.inf
        return self.quadratic_model(p)[0] + self.cfg.penalty * max(0.0, share - self.cfg.reach**2)


def designs_of(problem, say):
    """(designs (steps + 1, 4), objectives, size of the last step, not taken): from the arm as built. The Hessian starts
    as that of Gauss and Newton, and takes in the change of the Lagrangian's gradient (BFGS, damped after Powell)."""
    cfg, p = problem.cfg, np.zeros(4)
    f, c, H = problem.quadratic_model(p)
    g, G = problem.shares(p)
    designs, objectives = [p], [f]
    shapes = {"h": ca.Sparsity.dense(4, 4), "a": ca.Sparsity.dense(*G.shape)}
    solver = ca.conic("step", "daqp", shapes, {"error_on_fail": True})
    for k in range(cfg.iterations):
        lower, upper = np.array(cfg.lower) - p, np.array(cfg.upper_bound) - p
        solution = solver(h=H, g=c, a=G, uba=cfg.reach**2 - g, lba=-np.inf, lbx=lower, ubx=upper)
        step, multipliers = (np.array(solution[x]).ravel() for x in ("x", "lam_a"))
        if np.abs(step).max() < cfg.tolerance:
            break
        merit, size = problem.merit(p), 1.0
        while problem.merit(p + size * step) >= merit:
            size *= 0.5
            if size < 1e-9:
                raise od.SolveError(f"link_length_design: no step from p = {p.round(6).tolist()} is an improvement")
        p, before = p + size * step, c + G.T @ multipliers
        f, c, _ = problem.quadratic_model(p)
        g, G = problem.shares(p)
        H = updated(H, size * step, c + G.T @ multipliers - before)
        designs.append(p)
        objectives.append(f)
        say(f"step {k + 1:2}: {np.sqrt(f):8.4f} Nm   p = {np.array2string(p, precision=4)}")
    return np.array(designs), np.array(objectives), float(np.abs(step).max())


def updated(H, s, y):
    """BFGS, damped so that it stays positive."""
    along = s @ H @ s
    theta = 1.0 if s @ y >= 0.2 * along else 0.8 * along / (along - s @ y)
    y = theta * y + (1 - theta) * H @ s
    return H - np.outer(H @ s, H @ s) / along + np.outer(y, y) / (s @ y)


def rebuilt(problem, p):
    """Of an arm rebuilt with design p: the torques (2N,) by default inverse dynamics, and how far its hand is from
    where it should be, at worst [m]."""
    robot = od.design.changed(problem.robot, dict(zip(parameters(problem.cfg), p, strict=True)))
    q, v, dv, *_ = problem.motion(p)
    tau = od.function(robot, "inverse_dynamics").map(problem.n)(q, v, dv)
    places = np.array(od.function(robot, "frame_pose", frame="hand").map(problem.n)(q)[2])
    wanted = np.array([np.array(hand(problem.cfg, t)).ravel() for t in problem.times]).T
    return np.array(ca.vec(tau)).ravel(), np.abs(places[[0, 2]] - wanted).max()


def check(run, problem, designs, objectives, last):
    cfg, h = problem.cfg, 1e-5
    for when, p in (("at the start", designs[0]), ("at the end", designs[-1])):
        tau, J = problem.torques(p)
        scale = np.abs(J).max()
        error = np.abs(problem.torques(p, "ad")[1] - J).max() / scale
        run.check(f"derivatives by Kim's table and by AD, {when}", error, below=cfg.agreement)
        slopes = [(rebuilt(problem, p + x)[0] - rebuilt(problem, p - x)[0]) / (2 * h) for x in h * np.eye(4)]
        error = np.abs(np.array(slopes).T - J).max() / scale
        run.check(f"derivatives and differences of rebuilt arms, {when}", error, below=cfg.differences)
        torques, off = rebuilt(problem, p)
        error = np.abs(torques - tau).max() / np.abs(tau).max()
        run.check(f"torques and those of a rebuilt arm, {when}", error, below=1e-10)
        run.check(f"hand of a rebuilt arm, distance from the path [m], {when}", off, below=1e-12)
    p = designs[-1]
    run.check("share of the reach used", np.sqrt(problem.shares(p)[0].max()), below=cfg.reach + 1e-6)
    run.check("design less its lower bounds, least", (p - np.array(cfg.lower)).min(), above=-1e-9)
    run.check("upper bounds less the design, least", (np.array(cfg.upper_bound) - p).min(), above=-1e-9)
    run.check("objective: end over start", objectives[-1] / objectives[0], below=0.8)
    run.check("last step [m, kg]", last, below=cfg.tolerance)


def draw(run, problem, designs, objectives):
    """Both arms along the motion, torques before and after, objective over the steps."""
    cfg, n = problem.cfg, problem.n
    titles = "as built: x, z [m]", "as designed: x, z [m]", "torques [Nm]", "root mean square torque [Nm]"
    with run.figure("design.png", *titles, columns=2, size=(10, 8)) as (before, after, torques, steps):
        for axes, p in ((before, designs[0]), (after, designs[-1])):
            q = np.array(problem.motion(p)[0])[:, : n // 2 + 1 : max(1, n // 12)]
            lengths, angles = np.array([cfg.upper + p[1], cfg.forearm + p[2]])[:, None], np.cumsum(q, axis=0)
            zero = np.zeros((1, q.shape[1]))
            xs = np.vstack([zero, np.cumsum(lengths * np.cos(angles), axis=0)])
            zs = p[0] + np.vstack([zero, np.cumsum(lengths * np.sin(angles), axis=0)])
            axes.plot(xs, zs, "o-", color="tab:blue", alpha=0.35, linewidth=1.5, markersize=3)
            axes.plot(*zip(cfg.start, cfg.goal, strict=True), "k^", markersize=6)
            axes.set(xlabel="", aspect="equal", xlim=(-0.4, 0.8), ylim=(-0.3, 0.8))
        for p, style, label in ((designs[0], "--", "as built"), (designs[-1], "-", "as designed")):
            for k, tau in enumerate(problem.torques(p)[0].reshape(n, 2).T):
                joint = ("shoulder", "elbow")[k]
                torques.plot(problem.times, tau, style, color=f"C{k}", label=f"{joint}, {label}")
        steps.plot(np.sqrt(objectives), "o-")
        steps.set(xlabel="step", ylim=(0, None))


def solve(run, cfg):
    problem = Problem(cfg)
    if problem.shares(np.zeros(4))[0].max() >= 1:
        raise od.LimitError("the path of the hand leaves the reach of the arm as built; move start or goal")
    designs, objectives, last = designs_of(problem, run.say)
    check(run, problem, designs, objectives, last)
    lengths, torque = designs + np.array([0, cfg.upper, cfg.forearm, 0]), np.sqrt(objectives)
    run.say("design: " + ", ".join(f"{name} {x:.4f}" for name, x in zip(DESIGN, lengths[-1], strict=True)))
    run.say(f"root mean square torque {torque[0]:.3f} -> {torque[-1]:.3f} Nm")
    run.facts |= {"design": dict(zip(DESIGN, lengths[-1], strict=True)), "steps": len(designs) - 1}
    run.facts["rms_torque"] = [float(torque[0]), float(torque[-1])]
    run.facts["instructions"] = {m: f.n_instructions() for m, f in problem.sensitivity.items()}
    run.table("steps.csv", {"step": np.arange(len(designs)), DESIGN: lengths, "rms torque [Nm]": torque})
    draw(run, problem, designs, objectives)


main = od.script(solve, Config(), quick={"steps": 30})

if __name__ == "__main__":
    sys.exit(main())
