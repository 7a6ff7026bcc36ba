"""A double pendulum swings up: differential dynamic programming with and without the second order of the dynamics.

    minimise  sum_k h (1/2 u' R u + 1/2 e' Q e) + 1/2 e_N' F e_N,   e = x - goal,   x = (q, v),
    subject to  v_{k+1} = v_k + h dv(q_k, v_k, B u_k),   q_{k+1} = q_k + h v_{k+1}

Both solvers go backwards through the quadratic model of the cost to go and forwards along the motion it proposes. The
full one (DDP, Mayne 1966) takes the curvature of the dynamics, from forward_dynamics_second_partials, into the model;
iLQR omits it. Cases: torques at both joints; at the shoulder only; at the elbow only.
Source: Singh et al. 2023, section I, names DDP as the use of second partials; Tassa et al. 2012 for the line search.
Run:    python problems/double_pendulum_swing_up.py [--quick] [--quiet] [--out DIR] [--set NAME=VALUE]
"""

import sys
import time
from dataclasses import dataclass

import casadi as ca
import numpy as np

import oc_dyn as od

ACTUATED = {"both": (0, 1), "shoulder": (0,), "elbow": (1,)}


@dataclass(frozen=True)
class Config:
    duration: float = 3.0  # [s]
    h: float = 0.005  # step [s]
    start: tuple = (0.0, 0.0, 0.0, 0.0)  # hanging at rest [rad, rad/s]
    goal: tuple = (np.pi, 0.0, 0.0, 0.0)  # standing at rest
    cases: tuple = ("both", "shoulder", "elbow")
    effort: float = 0.02  # R [1/(Nm)^2 s]
    stage: tuple = (0.1, 0.1, 0.01, 0.01)  # diagonal of Q [1/rad^2 s, s/rad^2]
    final: tuple = (500.0, 500.0, 50.0, 50.0)  # diagonal of F [1/rad^2, s^2/rad^2]
    guess: float = 1.0  # amplitude of the first torques [Nm]
    tolerance: float = 1e-5  # of the largest dJ/du of a step, relative to R h 1 Nm
    iterations: int = 300  # at most
    step: float = 1e-5  # of the numerical derivatives that the analytic ones are checked with
    derivatives: float = 1e-7  # relative error of those
    faster: float = 0.1  # gradient of the last iteration of DDP, as a share of the one before
    standing: float = 0.1  # distance from the goal at the end [rad, rad/s]
    fine: int = 10  # steps of order 4 in one of h, to simulate the policy with
    tracking: float = 0.2  # distance from the goal at the simulated end [rad, rad/s]


class Pendulum:
    """Step of the motion, its first and second partials for all steps at once, rollouts under a policy."""

    def __init__(self, cfg, case):
        self.cfg, self.N = cfg, round(cfg.duration / cfg.h)
        robot = od.robots.double_pendulum()
        self.B = np.eye(robot.nv)[:, list(ACTUATED[case])]
        self.m = self.B.shape[1]
        self.dynamics = od.function(robot, "forward_dynamics")
        self.first = od.function(robot, "forward_dynamics_partials").map(self.N)
        self.second = od.function(robot, "forward_dynamics_second_partials").map(self.N)
        shapes = (("x", 4), ("xr", 4), ("ur", self.m), ("du", self.m), ("K", self.m, 4))
        x, xr, ur, du, K = arguments = [ca.SX.sym(*shape) for shape in shapes]
        u = ur + du + K @ (x - xr)
        self.rollout = ca.Function("policy", arguments, [self.step(x, u), u]).mapaccum(self.N)

    def step(self, x, u):
        """x_{k+1}, symbols or numbers."""
        q, v = x[:2], x[2:]
        v = v + self.cfg.h * self.dynamics(q=q, v=v, tau=self.B @ u)["dv"]
        return ca.vertcat(q + self.cfg.h * v, v)

    def run(self, X, U, dU, K):
        """(X, U), arrays (4, N + 1) and (m, N), of the motion from the start with U + dU + K (x - X)."""
        start = np.array(self.cfg.start)
        following, taken = self.rollout(start, X[:, :-1], U, dU, np.hstack(list(K)))
        return np.column_stack([start, np.array(following)]), np.array(taken)

    def derivatives(self, X, U, curvature):
        """A (N, 4, 4), B (N, 4, m) of the step, and, if asked for, second partials of dv by x (N, 2, 4, 4) and by u and
        x (N, 2, m, 4)."""
        h, N = self.cfg.h, self.N
        state = {"q": X[:2, :-1], "v": X[2:, :-1], "tau": self.B @ U}
        first = self.first(**state)
        pages = [np.array(first[name]).reshape(2, N, 2).swapaxes(0, 1) for name in ("ddv_dq", "ddv_dv", "ddv_dtau")]
        dv_x, dv_u = np.concatenate(pages[:2], axis=2), pages[2] @ self.B
        now = np.hstack([np.zeros((2, 2)), np.eye(2)]) + h * dv_x  # of v_{k+1}
        A = np.concatenate([np.hstack([np.eye(2), np.zeros((2, 2))]) + h * now, now], axis=1)
        Bu = np.concatenate([h * h * dv_u, h * dv_u], axis=1)
        if not curvature:
            return A, Bu, None, None
        second = self.second(**state)
        qq, vv, qv, Mq = (  # (N, 2, 2, 2), axes (output, first, second)
            np.stack([od.as_tensor(page) for page in np.split(np.array(second[name]), N, axis=1)])
            for name in ("d2dv_dqdq", "d2dv_dvdv", "d2dv_dqdv", "dMinv_dq")
        )
        xx = np.concatenate([np.concatenate([qq, qv], 3), np.concatenate([qv.swapaxes(2, 3), vv], 3)], 2)
        ux = np.concatenate([np.einsum("nijk,jm->nimk", Mq, self.B), np.zeros((N, 2, self.m, 2))], 3)
        return A, Bu, xx, ux


def cost(cfg, X, U):
    e = X - np.array(cfg.goal)[:, None]
    stages = cfg.effort * np.sum(U**2) + np.sum(np.array(cfg.stage)[:, None] * e[:, :-1] ** 2)
    return 0.5 * cfg.h * stages + 0.5 * float(np.array(cfg.final) @ e[:, -1] ** 2)


def backward(cfg, X, U, A, B, xx, ux, mu):
    """(step of U, gains, expected change (linear, quadratic), largest gradient); None if the model is not convex."""
    Q, R, F, goal = np.diag(cfg.stage), cfg.effort * np.eye(U.shape[0]), np.diag(cfg.final), np.array(cfg.goal)
    N, h = U.shape[1], cfg.h
    Vx, Vxx = F @ (X[:, -1] - goal), F
    dU, K = np.zeros_like(U), np.zeros((N, U.shape[0], 4))
    change, gradient = np.zeros(2), 0.0
    for k in range(N - 1, -1, -1):
        Qx, Qu = h * Q @ (X[:, k] - goal) + A[k].T @ Vx, h * R @ U[:, k] + B[k].T @ Vx
        Qxx, Qux, Quu = h * Q + A[k].T @ Vxx @ A[k], B[k].T @ Vxx @ A[k], h * R + B[k].T @ Vxx @ B[k]
        if xx is not None:  # the curvature of the dynamics, linear in u
            force = h * (h * Vx[:2] + Vx[2:])  # what the cost to go says about dv
            Qxx, Qux = Qxx + np.tensordot(force, xx[k], 1), Qux + np.tensordot(force, ux[k], 1)
        held = mu * B[k].T  # as if steps of the state cost mu
        try:
            L = np.linalg.cholesky(Quu + held @ B[k])
        except np.linalg.LinAlgError:
            return None
        solved = np.linalg.solve(L.T, np.linalg.solve(L, np.column_stack([Qu, Qux + held @ A[k]])))
        du, Kk = -solved[:, 0], -solved[:, 1:]
        dU[:, k], K[k] = du, Kk
        change += Qu @ du, 0.5 * du @ Quu @ du
        gradient = max(gradient, np.abs(Qu).max())
        Vx = Qx + Kk.T @ (Quu @ du + Qu) + Qux.T @ du
        Vxx = Qxx + Kk.T @ Quu @ Kk + Kk.T @ Qux + Qux.T @ Kk
        Vxx = 0.5 * (Vxx + Vxx.T)
    return dU, K, change, gradient


class Regularisation:
    """mu and how it grows and shrinks; Tassa et al. 2012, section II-F."""

    def __init__(self):
        self.mu, self.factor = 0.0, 1.0

    def grow(self):
        """More, after a step that failed; faster each time."""
        self.factor = max(2.0, 2 * self.factor)
        self.mu = max(1e-6, self.factor * self.mu)

    def shrink(self):
        """Less, after a step that did well; faster each time."""
        self.factor = min(0.5, 0.5 * self.factor)
        self.mu = self.factor * self.mu if self.factor * self.mu >= 1e-6 else 0.0


def swing_up(cfg, pendulum, curvature):
    """Motion, policy and the history of one solver."""
    begun, derivative_time, model = time.perf_counter(), 0.0, None
    U = cfg.guess * np.outer(np.ones(pendulum.m), np.sin(np.pi * cfg.h * np.arange(pendulum.N)))
    X, U = pendulum.run(np.zeros((4, pendulum.N + 1)), U, np.zeros_like(U), np.zeros((pendulum.N, pendulum.m, 4)))
    J, regular, history, K, scale = cost(cfg, X, U), Regularisation(), [], None, cfg.h * cfg.effort
    while len(history) < cfg.iterations:
        if model is None:
            start = time.perf_counter()
            model = pendulum.derivatives(X, U, curvature)
            derivative_time += time.perf_counter() - start
        while (policy := backward(cfg, X, U, *model, regular.mu)) is None:
            regular.grow()
        dU, K, change, gradient = policy
        history.append({"cost": J, "gradient": gradient / scale, "regularisation": regular.mu})
        if gradient < cfg.tolerance * scale:
            break
        for alpha in 0.5 ** np.arange(12):
            X1, U1 = pendulum.run(X, U, alpha * dU, K)
            J1 = cost(cfg, X1, U1) if np.abs(X1).max() < 1e6 else np.inf
            expected = alpha * change[0] + alpha**2 * change[1]
            if J - J1 > -0.1 * expected or (abs(expected) < 1e-12 * J and J1 <= J * (1 + 1e-13)):
                X, U, J, model = X1, U1, J1, None
                regular.shrink()
                break
        else:
            regular.grow()
            if regular.mu > 1e10:
                break
    seconds = time.perf_counter() - begun
    return {"X": X, "U": U, "K": K, "cost": J, "history": history, "seconds": seconds, "derivatives": derivative_time}


def check(run, cfg, case, pendulum, ilqr, ddp):
    first, second = derivative_errors(cfg, pendulum, ddp)
    gradients = [row["gradient"] for row in ddp["history"]]
    run.check(f"{case}: derivatives of the step", first, below=cfg.derivatives)
    run.check(f"{case}: second partials", second, below=cfg.derivatives)
    run.check(f"{case}: last gradient of DDP", gradients[-1], below=cfg.tolerance)
    run.check(f"{case}: its last gradient over the previous one", gradients[-1] / gradients[-2], below=cfg.faster)
    run.check(f"{case}: iterations of DDP over those of iLQR", len(gradients) / len(ilqr["history"]), below=1)
    run.check(f"{case}: cost of DDP over that of iLQR", ddp["cost"] / ilqr["cost"], below=1.05)
    off = np.abs(ddp["X"][:, -1] - cfg.goal).max()
    run.check(f"{case}: distance from standing at the end", off, below=cfg.standing)
    off = np.abs(simulated(cfg, pendulum, ddp) - cfg.goal).max()
    run.check(f"{case}: distance from standing, simulated", off, below=cfg.tracking)


def derivative_errors(cfg, pendulum, solution):
    """Largest errors of the step's derivatives and of the second partials along the motion, relative."""
    X, U, h = solution["X"], solution["U"], cfg.step
    step = ca.Function("step", (z := [ca.SX.sym("x", 4), ca.SX.sym("u", pendulum.m)]), [pendulum.step(*z)])
    A, _, xx, ux = pendulum.derivatives(X, U, curvature=True)
    sides = [[pendulum.derivatives(X + s * h * e, U, curvature=False) for s in (1, -1)] for e in np.eye(4)[:, :, None]]
    ends = [[np.array(step(X[:, :-1] + s * h * e, U)) for s in (1, -1)] for e in np.eye(4)[:, :, None]]
    first = np.stack([(a - b).T / (2 * h) for a, b in ends], axis=2)  # (N, 4, 4)
    by_x = np.stack([(a[0] - b[0])[:, 2:] / (2 * h * cfg.h) for a, b in sides], axis=3)  # of dv by x
    by_u = np.stack([(a[1] - b[1])[:, 2:] / (2 * h * cfg.h) for a, b in sides], axis=3)
    second = max(np.abs(a - b).max() / np.abs(a).max() for a, b in ((xx, by_x), (ux, by_u)))
    return np.abs(A - first).max() / np.abs(A).max(), second


def simulated(cfg, pendulum, solution):
    """Final state under the policy, held for h, by fine steps of a Runge-Kutta integrator."""
    x, u = ca.SX.sym("x", 4), ca.SX.sym("u", pendulum.m)
    rate = ca.vertcat(x[2:], pendulum.dynamics(q=x[:2], v=x[2:], tau=pendulum.B @ u)["dv"])
    step, y = ca.simpleRK(ca.Function("rate", [x, u], [rate]), cfg.fine), np.array(cfg.start)
    for reference, torque, K in zip(solution["X"].T, solution["U"].T, solution["K"], strict=False):
        y = np.array(step(y, torque + K @ (y - reference), cfg.h)).ravel()
    return y


def write(run, cfg, solutions):
    """swing_up.csv: the motions of DDP; convergence.csv: the iterations of both solvers."""
    columns = {}
    for case in cfg.cases:
        X, U = solutions[case, "DDP"]["X"][:, :-1], solutions[case, "DDP"]["U"]
        names = ["q1 [rad]", "q2 [rad]", "v1 [rad/s]", "v2 [rad/s]", *(f"tau{i + 1} [Nm]" for i in ACTUATED[case])]
        columns[tuple(f"{case}: {name}" for name in names)] = np.vstack([X, U]).T
    run.table("swing_up.csv", {"t [s]": cfg.h * np.arange(X.shape[1]), **columns})
    rows = [(*key, k, row) for key, solution in solutions.items() for k, row in enumerate(solution["history"])]
    columns = {name: [row[k] for row in rows] for k, name in enumerate(("case", "solver", "iteration"))}
    columns |= {name: [row[3][name] for row in rows] for name in ("cost", "gradient", "regularisation")}
    run.table("convergence.csv", columns)


def draw(run, cfg, solutions):
    with run.figure("swing_up.png", "q [rad]", "torques [Nm]", size=(12, 5)) as (angles, torques):
        for color, case in enumerate(cfg.cases):
            X, U = solutions[case, "DDP"]["X"], solutions[case, "DDP"]["U"]
            t = cfg.h * np.arange(X.shape[1])
            for i, (joint, style) in enumerate((("shoulder", "-"), ("elbow", "--"))):
                angles.plot(t, X[i], style, color=f"C{color}", label=f"{joint}; torques: {case}")
            for i, u in zip(ACTUATED[case], U, strict=True):
                style, joint = ("-", "shoulder") if i == 0 else ("--", "elbow")
                torques.step(t[:-1], u, style, where="post", color=f"C{color}", label=f"{joint}; torques: {case}")
    titles = [f"largest gradient, torques: {case}" for case in cfg.cases]
    with run.figure("convergence.png", *titles, xlabel="iteration") as axes:
        for axis, case in zip(axes, cfg.cases, strict=True):
            for name in ("iLQR", "DDP"):
                solution = solutions[case, name]
                label = f"{name}: cost {solution['cost']:.4g}"
                axis.semilogy([row["gradient"] for row in solution["history"]], linewidth=1.3, label=label)
            axis.axhline(cfg.tolerance, color="k", linestyle=":", linewidth=1)


def solve(run, cfg):
    pendulums = {case: Pendulum(cfg, case) for case in cfg.cases}
    solutions, rows = {}, []
    for case, pendulum in pendulums.items():
        for name in ("iLQR", "DDP"):
            solution = solutions[case, name] = swing_up(cfg, pendulum, curvature=name == "DDP")
            row = {"case": case, "solver": name, "iterations": len(solution["history"]), "cost": solution["cost"]}
            row |= {"gradient": solution["history"][-1]["gradient"], "seconds": solution["seconds"]}
            row["share_of_derivatives"] = solution["derivatives"] / solution["seconds"]
            rows.append(row)
            run.say(
                f"{case:9} {name:5} {row['iterations']:4} iterations  cost {row['cost']:9.6f}  gradient "
                f"{row['gradient']:.1e}  {row['seconds']:6.2f} s, {100 * row['share_of_derivatives']:.0f} % derivatives"
            )
    for case, pendulum in pendulums.items():
        check(run, cfg, case, pendulum, solutions[case, "iLQR"], solutions[case, "DDP"])
    run.facts["solvers"] = rows
    write(run, cfg, solutions)
    draw(run, cfg, solutions)


few = {"duration": 2.0, "h": 0.02, "cases": ("both", "shoulder"), "iterations": 60}
main = od.script(solve, Config(), quick=few)

if __name__ == "__main__":
    sys.exit(main())
