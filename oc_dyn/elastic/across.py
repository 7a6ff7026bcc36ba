"""Motors' positions of springs across several joints: the torques of all elastic joints solved for theta together.

    phi_e(theta_e - x_e) - dU(x, theta)/dx_e = tau_e        for every elastic joint e

by Newton's method with a shortened step where the whole one does not come closer; how many steps it takes is found when
it is built, on positions of known torque. What is found is inserted once more, and is not a number where it does not
give the torques. Time derivatives of theta follow from linear equations with the same matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from ..lie.time_derivatives import time_derivatives
from ..types import Array

TOLERANCE = 1e-11  # of the torques, relative to the largest
_SHARES = (1.0, 0.5, 0.2, 0.04)  # of a step
_MOST, _MARGIN = 25, 2


def motor_jets(elastic: Any, torque: Sequence[Any], position: Sequence[Any]) -> list[Any]:
    """[theta, theta', ..] (theta,) from jets of one length: torques (drives,) and positions of the drives."""
    solve, rows = _solver(elastic), [j.v for j in elastic.joints]
    wanted = [ca.vertcat(*(x[r] for r in rows)) for x in torque]
    jets = [solve["position"](position[0], wanted[0])]
    zero = ca.DM(len(rows), 1)
    for k in range(1, len(wanted)):
        rest = _rate(elastic, k)(*position[: k + 1], *jets, zero)
        jets.append(solve["linear"](position[0], jets[0], wanted[k] - rest))
    return jets


def _given(elastic: Any, x: Any, theta: Any) -> Any:
    """(elastic joints,) torques on the links at positions of the drives and theta."""
    own = [j.spring.torques([theta[j.theta[0]] - x[j.q]], ca.DM(0, 1))[0] for j in elastic.joints]
    across = elastic.across.slopes([x], [theta])[0][0]
    return ca.vertcat(*own) - ca.vertcat(*(across[j.v] for j in elastic.joints))


def _positions(elastic: Any) -> int:
    return len(elastic.drives) or elastic.nq


def _rate(elastic: Any, k: int) -> ca.Function:
    """casadi.Function (x, .., x^(k), theta, .., theta^(k)) -> derivative k of the torques."""
    key = ("across", k)
    if key not in elastic._made:
        X = [ca.SX.sym("x", elastic.across.drives if i else _positions(elastic)) for i in range(k + 1)]
        T = [ca.SX.sym("theta", len(elastic.joints)) for _ in range(k + 1)]
        flow = [*_position_flow(elastic, X), *pairwise(T)]
        rates = time_derivatives(_given(elastic, X[0], T[0]), k, flow, cse=True)
        elastic._made[key] = ca.Function("torques", [*X, *T], [rates[k]])
    return elastic._made[key]


def _position_flow(elastic: Any, X: Sequence[Any]) -> list[tuple[Any, Any]]:
    """[(coordinates, their rate)]; only those of joints of one coordinate count, others stand still."""
    first = ca.SX(X[0].numel(), 1)
    for q, v in zip(elastic.across.q, elastic.across.v, strict=True):
        first[q] = X[1][v] if len(X) > 1 else 0
    return [(X[0], first), *pairwise(X[1:])]


def _solver(elastic: Any) -> dict[str, ca.Function]:
    """position (x, torques) -> theta; linear (x, theta, rates of torques less what is known) -> rate of theta."""
    if "across" not in elastic._made:
        n = len(elastic.joints)
        x, theta, b = ca.SX.sym("x", _positions(elastic)), ca.SX.sym("theta", n), ca.SX.sym("b", n)
        torques = _given(elastic, x, theta)
        J = ca.jacobian(torques, theta)
        value = ca.Function("value", [x, theta], [torques])
        linear = ca.Function("linear", [x, theta, b], [ca.solve(ca.densify(J), b)])
        step = _step(value, linear, constant=not ca.symvar(ca.SX(J)))
        steps = _count(elastic, value, step) if ca.symvar(ca.SX(J)) else 1
        elastic._made["across"] = {"position": _iterated(elastic, value, step, steps), "linear": linear}
    return elastic._made["across"]


def _step(value: ca.Function, linear: ca.Function, constant: bool) -> ca.Function:
    """casadi.Function (theta, x, torques) -> theta after a step, shortened where that comes closer."""
    theta, x, tau = (ca.SX.sym("s", value.size1_in(1)) for _ in range(3))
    x = ca.SX.sym("x", value.size1_in(0))
    d = linear(x, theta, tau - value(x, theta))
    best = theta + d
    if not constant:
        miss = ca.sumsqr(value(x, best) - tau)
        for share in _SHARES[1:]:
            other = theta + share * d
            there = ca.sumsqr(value(x, other) - tau)
            closer = ca.logic_or(there < miss, ca.logic_not(miss < np.inf))  # not a number is not close
            best, miss = ca.if_else(closer, other, best), ca.if_else(closer, there, miss)
    return ca.Function("step", [theta, x, tau], [best])


def _start(elastic: Any, x: Any) -> Any:
    return ca.vertcat(*(x[j.q] for j in elastic.joints))


def _count(elastic: Any, value: ca.Function, step: ca.Function) -> int:
    """How many steps find motor positions up to a radian away from the links."""
    rng = np.random.default_rng(0)
    n, count = len(elastic.joints), 200
    x = rng.uniform(-1.0, 1.0, (_positions(elastic), count))
    q = x[[j.q for j in elastic.joints]]
    truth = q + rng.normal(size=(n, count)) * 10 ** rng.uniform(-3, -0.3, count)
    tau = value.map(count)(x, truth).full()
    fit = np.isfinite(tau).all(axis=0) & (np.abs(tau).max(axis=0) < 1e5)
    x, truth, tau, theta = x[:, fit], truth[:, fit], tau[:, fit], q[:, fit]
    f, shares = step.map(max(int(fit.sum()), 1)), []
    for _ in range(_MOST if fit.any() else 0):
        theta = f(theta, x, tau).full()
        with np.errstate(invalid="ignore"):
            shares.append(float((np.abs(theta - truth) <= 1e-9 * (1 + np.abs(truth))).all(axis=0).mean()))
        if shares[-1] == 1:
            break
    most: Array = np.array(shares or [0.0])
    return int(np.argmax(most >= most.max() - 0.005)) + 1 + _MARGIN if most.max() > 0 else _MOST


def _iterated(elastic: Any, value: ca.Function, step: ca.Function, steps: int) -> ca.Function:
    x, tau = ca.SX.sym("x", value.size1_in(0)), ca.SX.sym("tau", value.size1_in(1))
    theta = _start(elastic, x)
    for _ in range(steps):
        theta = step(theta, x, tau)
    miss = ca.norm_inf(value(x, theta) - tau)
    rest = ca.norm_inf(value(x, _start(elastic, x)))  # torques that compensate each other
    good = miss <= TOLERANCE * (1 + ca.norm_inf(tau) + rest)
    return ca.Function("motors", [x, tau], [ca.if_else(good, theta, np.nan)])
