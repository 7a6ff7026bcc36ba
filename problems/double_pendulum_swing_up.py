"""A double pendulum swings up: differential dynamic programming with and without the second order of the dynamics.

    minimise  sum_k h (1/2 u' R u + 1/2 e' Q e) + 1/2 e_N' F e_N,   e = x - goal,   x = (q, v),
    subject to  v_{k+1} = v_k + h dv(q_k, v_k, B u_k),   q_{k+1} = q_k + h v_{k+1}

Both solvers go backwards through the quadratic model of the cost to go and forwards along the motion it proposes. The
full one (DDP, Mayne 1966) takes the curvature of the dynamics, from forward_dynamics_second_partials, into the model;
iLQR leaves it out. Cases: torques at both joints; at the shoulder only; at the elbow only.
Source: Singh et al. 2023, section I, names DDP as what second partials are for; Tassa et al. 2012 for the line search.
Run:    python problems/double_pendulum_swing_up.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

import oc_dyn as od
from oc_dyn.second_partials.tensor import as_tensor
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------


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


ACTUATED = {"both": (0, 1), "shoulder": (0,), "elbow": (1,)}


# -- model and Functions --------------------------------------------------------------------------------------


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
        self.rollout = self._policy().mapaccum(self.N)

    def step(self, x, u):
        """x_{k+1}, symbols or numbers."""
        q, v = x[:2], x[2:]
        v = v + self.cfg.h * self.dynamics(q=q, v=v, tau=self.B @ u)["dv"]
        return ca.vertcat(q + self.cfg.h * v, v)

    def _policy(self):
        """casadi.Function (x, reference x and u, step of u, gains) -> (next x, u)."""
        x, xr, ur, du, K = (
            ca.SX.sym(*s) for s in (("x", 4), ("xr", 4), ("ur", self.m), ("du", self.m), ("K", self.m, 4))
        )
        u = ur + du + K @ (x - xr)
        return ca.Function("policy", [x, xr, ur, du, K], [self.step(x, u), u])

    def run(self, X, U, dU, K):
        """(X, U), arrays (4, N + 1) and (m, N), of the motion from the start with U + dU + K (x - X)."""
        start = np.array(self.cfg.start)
        following, taken = self.rollout(start, X[:, :-1], U, dU, np.hstack(list(K)))
        return np.column_stack([start, np.array(following)]), np.array(taken)

    def derivatives(self, X, U, curvature):
        """A (N, 4, 4), B (N, 4, m) of the step, and, if asked for, second partials of dv by x (N, 2, 4, 4) and by u and
        x (N, 2, m, 4)."""
        h, N = self.cfg.h, self.N
        q, v, tau = X[:2, :-1], X[2:, :-1], self.B @ U
        dv_q, dv_v, Minv = (_pages(x, N) for x in self._call(self.first, q, v, tau, ("ddv_dq", "ddv_dv", "ddv_dtau")))
        dv_x, dv_u = np.concatenate([dv_q, dv_v], axis=2), Minv @ self.B
        now = np.hstack([np.zeros((2, 2)), np.eye(2)]) + h * dv_x  # of v_{k+1}
        A = np.concatenate([np.hstack([np.eye(2), np.zeros((2, 2))]) + h * now, now], axis=1)
        Bu = np.concatenate([h * h * dv_u, h * dv_u], axis=1)
        if not curvature:
            return A, Bu, None, None
        names = ("d2dv_dqdq", "d2dv_dvdv", "d2dv_dqdv", "dMinv_dq")
        qq, vv, qv, Mq = (_tensors(x, N) for x in self._call(self.second, q, v, tau, names))
        xx = np.concatenate([np.concatenate([qq, qv], 3), np.concatenate([qv.swapaxes(2, 3), vv], 3)], 2)
        ux = np.concatenate([np.einsum("nijk,jm->nimk", Mq, self.B), np.zeros((N, 2, self.m, 2))], 3)
        return A, Bu, xx, ux

    @staticmethod
    def _call(function, q, v, tau, names):
        out = function(q=q, v=v, tau=tau)
        return [np.array(out[name]) for name in names]


def _pages(matrices, N):
    """(2, 2 N) side by side as (N, 2, 2)."""
    return matrices.reshape(2, N, 2).transpose(1, 0, 2)


def _tensors(matrices, N):
    """(4, 2 N) as (N, 2, 2, 2), axes (output, first, second)."""
    return np.stack([as_tensor(matrices[:, 2 * k : 2 * k + 2]) for k in range(N)])


# -- objective ------------------------------------------------------------------------------------------------


def cost(cfg, X, U):
    e = X - np.array(cfg.goal)[:, None]
    stages = cfg.effort * np.sum(U**2) + np.sum(np.array(cfg.stage)[:, None] * e[:, :-1] ** 2)
    return 0.5 * cfg.h * stages + 0.5 * float(np.array(cfg.final) @ e[:, -1] ** 2)


# -- solver ---------------------------------------------------------------------------------------------------


def backward(cfg, X, U, A, B, xx, ux, mu):
    """(step of U, gains, expected change (linear, quadratic), largest gradient); None where the model is not convex."""
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
        self.factor = max(2.0, 2 * self.factor)
        self.mu = max(1e-6, self.factor * self.mu)

    def shrink(self):
        self.factor = min(0.5, 0.5 * self.factor)
        self.mu = self.factor * self.mu if self.factor * self.mu >= 1e-6 else 0.0


def solve(cfg, pendulum, curvature):
    """Motion, policy and the history of one solver."""
    begun = time.perf_counter()
    U = cfg.guess * np.outer(np.ones(pendulum.m), np.sin(np.pi * cfg.h * np.arange(pendulum.N)))
    X, U = pendulum.run(np.zeros((4, pendulum.N + 1)), U, np.zeros_like(U), np.zeros((pendulum.N, pendulum.m, 4)))
    J, regular, history, derivative_time, K = cost(cfg, X, U), Regularisation(), [], 0.0, None
    scale = cfg.h * cfg.effort
    model = None
    while len(history) < cfg.iterations:
        if model is None:
            start = time.perf_counter()
            model = pendulum.derivatives(X, U, curvature)
            derivative_time += time.perf_counter() - start
        while (found := backward(cfg, X, U, *model, regular.mu)) is None:
            regular.grow()
        dU, K, change, gradient = found
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


# -- checks ---------------------------------------------------------------------------------------------------


def check(cfg, pendulums, solutions):
    """{what: (error, bound)}."""
    out = {}
    for case, pendulum in pendulums.items():
        ilqr, ddp = solutions[case, "iLQR"], solutions[case, "DDP"]
        first, second = derivative_errors(cfg, pendulum, ddp)
        gradients = [row["gradient"] for row in ddp["history"]]
        out[f"{case}: derivatives of the step"] = first, cfg.derivatives
        out[f"{case}: second partials"] = second, cfg.derivatives
        out[f"{case}: gradient that DDP ends with"] = gradients[-1], cfg.tolerance
        out[f"{case}: its last gradient over the one before"] = gradients[-1] / gradients[-2], cfg.faster
        out[f"{case}: iterations of DDP over those of iLQR"] = len(gradients) / len(ilqr["history"]), 1.0
        out[f"{case}: cost of DDP over that of iLQR"] = ddp["cost"] / ilqr["cost"], 1.05
        out[f"{case}: not standing at the end"] = np.abs(ddp["X"][:, -1] - cfg.goal).max(), cfg.standing
        out[f"{case}: not standing, simulated"] = np.abs(simulate(cfg, pendulum, ddp) - cfg.goal).max(), cfg.tracking
    return out


def derivative_errors(cfg, pendulum, solution):
    """Largest errors of the step's derivatives and of the second partials along the motion, relative."""
    X, U, h = solution["X"], solution["U"], cfg.step
    step = ca.Function("step", (z := [ca.SX.sym("x", 4), ca.SX.sym("u", pendulum.m)]), [pendulum.step(*z)])
    A, B, xx, ux = pendulum.derivatives(X, U, curvature=True)
    sides = [[pendulum.derivatives(X + s * h * e, U, curvature=False) for s in (1, -1)] for e in np.eye(4)[:, :, None]]
    ends = [[np.array(step(X[:, :-1] + s * h * e, U)) for s in (1, -1)] for e in np.eye(4)[:, :, None]]
    first = np.stack([(a - b).T / (2 * h) for a, b in ends], axis=2)  # (N, 4, 4)
    by_x = np.stack([(a[0] - b[0])[:, 2:] / (2 * h * cfg.h) for a, b in sides], axis=3)  # of dv by x
    by_u = np.stack([(a[1] - b[1])[:, 2:] / (2 * h * cfg.h) for a, b in sides], axis=3)
    pairs = ((xx, by_x), (ux, by_u))
    second = max(np.abs(a - b).max() / np.abs(a).max() for a, b in pairs)
    return np.abs(A - first).max() / np.abs(A).max(), second


def simulate(cfg, pendulum, solution):
    """Where the policy, held for h, takes the pendulum in fine steps of the integrator of Runge and Kutta."""
    x, u = ca.SX.sym("x", 4), ca.SX.sym("u", pendulum.m)
    dt = cfg.h / cfg.fine

    def rate(y):
        return ca.vertcat(y[2:], pendulum.dynamics(q=y[:2], v=y[2:], tau=pendulum.B @ u)["dv"])

    k1 = rate(x)
    k2 = rate(x + 0.5 * dt * k1)
    k3 = rate(x + 0.5 * dt * k2)
    k4 = rate(x + dt * k3)
    step = ca.Function("step", [x, u], [x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])
    X, U, K, y = solution["X"], solution["U"], solution["K"], np.array(cfg.start)
    for k in range(pendulum.N):
        held = U[:, k] + K[k] @ (y - X[:, k])
        for _ in range(cfg.fine):
            y = np.array(step(y, held)).ravel()
    return y


# -- figures and tables ---------------------------------------------------------------------------------------


def plot(cfg, solutions, out):
    """swing_up.png: angles and torques of DDP; convergence.png: gradients over the iterations of both solvers."""
    figure = Figure(figsize=(4 * len(cfg.cases), 6), layout="constrained")
    for (top, bottom), case in zip(figure.subplots(2, len(cfg.cases), squeeze=False).T, cfg.cases, strict=True):
        solution = solutions[case, "DDP"]
        t = cfg.h * np.arange(solution["U"].shape[1] + 1)
        top.plot(t, solution["X"][:2].T, label=["shoulder", "elbow"])
        bottom.step(t[:-1], solution["U"].T, where="post", label=[("shoulder", "elbow")[i] for i in ACTUATED[case]])
        top.set(title=f"torques: {case}", ylabel="$q$ [rad]")
        bottom.set(xlabel="$t$ [s]", ylabel=r"$\tau$ [Nm]")
        for axes in (top, bottom):
            axes.grid(alpha=0.3)
            axes.legend(fontsize="small")
    figure.suptitle("Swing-up of a double pendulum by DDP")
    figure.savefig(out / "swing_up.png", dpi=85)

    figure = Figure(figsize=(4 * len(cfg.cases), 4), layout="constrained")
    for axes, case in zip(figure.subplots(1, len(cfg.cases), squeeze=False)[0], cfg.cases, strict=True):
        for name in ("iLQR", "DDP"):
            solution = solutions[case, name]
            label = f"{name}: cost {solution['cost']:.4g}"
            axes.semilogy([row["gradient"] for row in solution["history"]], linewidth=1.3, label=label)
        axes.axhline(cfg.tolerance, color="k", linestyle=":", linewidth=1)
        axes.set(title=f"torques: {case}", xlabel="iteration", ylabel="largest gradient")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    figure.savefig(out / "convergence.png", dpi=85)


def write(cfg, solutions, out):
    """swing_up.csv: the motions of DDP; convergence.csv: the iterations of both solvers."""
    columns, header = [], []
    for case in cfg.cases:
        solution = solutions[case, "DDP"]
        columns += [*solution["X"][:, :-1], *solution["U"]]
        names = ["q1 [rad]", "q2 [rad]", "v1 [rad/s]", "v2 [rad/s]", *(f"tau{i + 1} [Nm]" for i in ACTUATED[case])]
        header += [f"{case}: {name}" for name in names]
    t = cfg.h * np.arange(len(columns[0]))
    table = np.vstack([t, *columns]).T
    np.savetxt(out / "swing_up.csv", table, fmt="%.9g", delimiter=",", header=",".join(["t [s]", *header]), comments="")
    lines = ["case,solver,iteration,cost,gradient,regularisation"]
    for (case, name), solution in solutions.items():
        for k, row in enumerate(solution["history"]):
            lines.append(f"{case},{name},{k},{row['cost']:.15g},{row['gradient']:.6g},{row['regularisation']:.6g}")
    (out / "convergence.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path("results/double_pendulum_swing_up"), help="folder (%(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="two cases, longer steps, fewer iterations")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    options = parser.parse_args(argv)
    say = (lambda text: None) if options.quiet else print
    quick = {"duration": 2.0, "h": 0.02, "cases": ("both", "shoulder"), "iterations": 60}
    cfg = Config(**quick) if options.quick else Config()
    options.out.mkdir(parents=True, exist_ok=True)

    pendulums = {case: Pendulum(cfg, case) for case in cfg.cases}
    solutions, facts = {}, []
    for case, pendulum in pendulums.items():
        for name in ("iLQR", "DDP"):
            found = solutions[case, name] = solve(cfg, pendulum, curvature=name == "DDP")
            row = {"case": case, "solver": name, "iterations": len(found["history"]), "cost": found["cost"]}
            row |= {"gradient": found["history"][-1]["gradient"], "seconds": found["seconds"]}
            row["share_of_derivatives"] = found["derivatives"] / found["seconds"]
            facts.append(row)
            say(
                f"{case:9} {name:5} {row['iterations']:4} iterations  cost {row['cost']:9.6f}  gradient "
                f"{row['gradient']:.1e}  {row['seconds']:6.2f} s, {100 * row['share_of_derivatives']:.0f} % derivatives"
            )
    checks = check(cfg, pendulums, solutions)
    passed = all(error < bound for error, bound in checks.values())
    for what, (error, bound) in checks.items():
        say(f"{what:48} {error:8.1e}  {'is' if error < bound else 'IS NOT'} below {bound:.1e}")

    write(cfg, solutions, options.out)
    plot(cfg, solutions, options.out)
    command = ["python", "problems/double_pendulum_swing_up.py", *(sys.argv[1:] if argv is None else argv)]
    facts = {"config": asdict(cfg), "solvers": facts, "passed": passed}
    facts["checks"] = {what: {"error": e, "bound": b} for what, (e, b) in checks.items()}
    write_json(options.out / "manifest.json", manifest(command, **facts))
    say(f"written to {options.out}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
