"""Gains of joints taken one by one: from poles, from a quadratic cost, or from a bandwidth and a damping ratio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import validation
from ...errors import ModelError, ShapeError, SolveError
from ...function import function
from ...numbers import are_sane
from ...types import Array, Numbers
from ..control import pole_gains
from ..model import ElasticRobot
from .conditions import check_robot, softest

_WEIGHTS = ("q", "v", "theta", "dtheta", "tau_m")


def joint_gains(
    elastic: ElasticRobot,
    at: Numbers,
    *,
    poles: Numbers | None = None,
    lqr: Mapping[str, float] | None = None,
    bandwidth: Numbers | None = None,
    damping_ratio: float = 0.7,
    inertia_ratio: float = 1.0,
) -> dict[str, Array]:
    """{kp, kd, inertia, torque_rate: (theta,)} of full_state_feedback, joint by joint: link inertia m = M_ii(at), what
    couples the joints, gravity's stiffness and dampers left out.

    at (q,): links' positions. One of these is given:
    poles [1/s]: of m q'' = tau, B theta'' + tau = tau_m: a positive number g for four at -g, four (complex in pairs)
        for all joints, or (joints, 4). Four gains place four poles. ModelError where they need a motor inertia that is
        not positive: four equal ones must be within 0.42 and 2.4 times sqrt(K / m).
    lqr: {"q", "v", "theta", "dtheta": weights of their squares, at least 0; "tau_m": above 0, default 1}: the gains
        that make the integral of that cost least.
    bandwidth [rad/s]: a number or one per joint: kp = (m + inertia) w^2 and kd = 2 damping_ratio (m + inertia) w, as
        if the spring was rigid (w well below that of the spring), with inertia = B / inertia_ratio; torque_rate is 0.
    For laws with kp and kd alone take these two of a bandwidth. Raises ShapeError, ModelError.
    """
    name = "joint_gains"
    check_robot(name, elastic, rigid=False, damped=True, variable=False)
    at = validation.finite_numbers(f"{name}: at", at, elastic.nq)
    given = [n for n, x in (("poles", poles), ("lqr", lqr), ("bandwidth", bandwidth)) if x is not None]
    if len(given) != 1:
        raise ShapeError(f"{name}: got {', '.join(given) or 'none'} of poles, lqr and bandwidth, expected one")
    m = np.diag(function(elastic.links, "mass_matrix")(at).full())[[j.v for j in elastic.joints]]
    B, K = np.diag(elastic.motor_inertia), softest(elastic)
    if poles is not None:
        return _placed(elastic, np.array(pole_gains(poles, 4, len(K), "joint_gains: poles")), m, K)
    if lqr is not None:
        return _regulated(elastic, _weights(name, lqr), m, B, K)
    w = validation.numbers(f"{name}: bandwidth", bandwidth, len(K))
    ratio = validation.number(f"{name}: damping_ratio", damping_ratio, above=0)
    inertia = B / validation.number(f"{name}: inertia_ratio", inertia_ratio, above=0)
    if not (are_sane(w) and np.all(w > 0)):
        raise ShapeError(f"{name}: bandwidth is {w.tolist()}, expected positive numbers")
    whole = m + inertia
    return {"kp": whole * w**2, "kd": 2 * ratio * whole * w, "inertia": inertia, "torque_rate": np.zeros(len(K))}


def _placed(elastic: ElasticRobot, a: Array, m: Array, K: Array) -> dict[str, Array]:
    """From s^4 + a3 s^3 + .. + a0 = [(Bs s^2 + kd s + kp)(m s^2 + K) + (K + Ds s) m s^2] / (Bs m)."""
    room = m * a[:, 2] - K - m**2 * a[:, 0] / K
    for j, r, k, x in zip(elastic.joints, room, K, m, strict=True):
        if not r > 0:
            raise ModelError(
                elastic.name,
                [
                    f"joint_gains: joint {j.name}: no motor inertia gives these poles, which are too fast or too slow "
                    f"for links that swing at {np.sqrt(k / x):.4g} rad/s on its spring: four equal ones must be within "
                    "0.42 and 2.4 times that"
                ],
            )
    inertia = K * m / room
    kp, kd = inertia * m * a[:, 0] / K, inertia * m * a[:, 1] / K
    return {"kp": kp, "kd": kd, "inertia": inertia, "torque_rate": inertia * a[:, 3] - kd}


def _regulated(elastic: ElasticRobot, weights: Any, m: Array, B: Array, K: Array) -> dict[str, Array]:
    """From the state's gains k: q = theta - tau / K, so those of theta are k_q + k_theta, of tau -k_q / K."""
    out = {n: np.zeros(len(K)) for n in ("kp", "kd", "inertia", "torque_rate")}
    for i, j in enumerate(elastic.joints):
        A = np.array([[0, 1, 0, 0], [-K[i] / m[i], 0, K[i] / m[i], 0], [0, 0, 0, 1], [K[i] / B[i], 0, -K[i] / B[i], 0]])
        k_q, k_v, k_theta, k_dtheta = regulator(
            A, np.array([[0], [0], [0], [1 / B[i]]]), np.diag(weights[:4]), weights[4]
        )[0]
        share = 1 - k_q / K[i]  # B / Bs
        if not share > 0:
            raise ModelError(
                elastic.name, [f"joint_gains: joint {j.name}: this cost asks for a negative motor inertia"]
            )
        out["kp"][i], out["kd"][i] = (k_q + k_theta) / share, (k_v + k_dtheta) / share
        out["inertia"][i], out["torque_rate"][i] = B[i] / share, -k_v / share
    return out


def regulator(A: Array, B: Array, Q: Array, R: float) -> Array:
    """(1, n) gains k of u = -k x that make the integral of x' Q x + R u^2 along x' = A x + B u least, from the stable
    eigenvectors of the Hamiltonian matrix (Potter 1966)."""
    n = len(A)
    values, vectors = np.linalg.eig(np.block([[A, -B @ B.T / R], [-Q, -A.T]]))
    stable = vectors[:, values.real < 0]
    if stable.shape[1] != n or np.linalg.cond(stable[:n]) > 1e12:
        raise SolveError("joint_gains: no gains minimise this cost: give q or theta a weight", "unsolved")
    P = np.real(stable[n:] @ np.linalg.inv(stable[:n]))
    return B.T @ P / R


def _weights(name: str, lqr: Any) -> Array:
    given = validation.options_of(f"{name}: lqr", lqr)
    for n in given:
        validation.one_of("weight of lqr", n, _WEIGHTS)
    out = np.array([validation.number(f"{name}: lqr, {n}", given.get(n, float(n == "tau_m"))) for n in _WEIGHTS])
    if np.any(out < 0) or not out[-1] > 0 or not np.any(out[:-1]):
        raise ShapeError(f"{name}: lqr is {given}, expected weights of at least 0, one of the state and tau_m above 0")
    return out
