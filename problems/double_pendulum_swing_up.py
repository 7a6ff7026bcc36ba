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
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    duration: float = 3.0  # [s]
    h: float = 0.01  # step [s]
    start: tuple = (0.0, 0.0, 0.0, 0.0)  # hanging at rest [rad, rad/s]
    goal: tuple = (np.pi, 0.0, 0.0, 0.0)  # standing at rest
    cases: tuple = ("both", "shoulder", "elbow")
    effort: float = 0.02  # R [1/(Nm)^2 s]
    stage: tuple = (0.1, 0.1, 0.01, 0.01)  # diagonal of Q [1/rad^2 s, s/rad^2]
    final: tuple = (500.0, 500.0, 50.0, 50.0)  # diagonal of F [1/rad^2, s^2/rad^2]
    guess: float = 1.0  # amplitude of the first torques [Nm]
    tolerance: float = 1e-6  # of the largest dJ/du, per step and relative to R h (1 Nm)
    iterations: int = 500
    # checks
    derivative_step: float = 1e-5
    derivatives: float = 1e-7
    standing: float = 0.05  # [rad, rad/s] at the end
    agreement: float = 1e-8  # of the costs both solvers reach, if they reach the same
    fine: int = 10  # smaller steps, of the integrator of order 4 that simulates the policy
    tracking: float = 0.1  # [rad, rad/s] of the simulated end from the goal


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
        x, xr, ur, du, K = (ca.SX.sym(*s) for s in (("x", 4), ("xr", 4), ("ur", self.m), ("du", self.m), ("K", self.m, 4)))
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
    return np.stack([od.second_partials.tensor.as_tensor(matrices[:, 2 * k : 2 * k + 2]) for k in range(N)])


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
