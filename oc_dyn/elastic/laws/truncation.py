"""What a law loses by iterating the links' position q_bar a few times only: slopes and stiffness at rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from ...errors import ModelError
from ...types import Array
from ..model import ElasticRobot
from .conditions import gravity_of, ranges
from .static_link import deflections_under

TOLERANCE = 1e-3  # share of the wanted stiffness by which that shown at rest may be off
_SAMPLES, _MOST = 200, 1000

Loads = Callable[[Any, Any], Any]  # (q, q_ref) -> torques (v,)
Step = Callable[[Any, Any, Any], Any]  # (q, theta, q_ref) -> the next q


def check_iterations(
    name: str, elastic: ElasticRobot, iterations: int, loads: Loads, step: Step, motors: Any = 0.0
) -> None:
    """ModelError where so many iterations miss the stiffness at rest by more than TOLERANCE in any of 200
    configurations of the ranges; loads and step those of the law, motors (theta,) the stiffness of its motor loops."""
    errors = _Rest(elastic, loads, step, np.broadcast_to(np.asarray(motors, float), len(elastic.theta_names)))
    worst = errors.worst(iterations)
    if worst <= TOLERANCE:
        return
    enough = next((n for n in range(iterations + 1, _MOST) if errors.worst(n) <= TOLERANCE), None)
    hint = "no number does" if enough is None else f"{enough} do"
    raise ModelError(
        elastic.name,
        [
            f"{name}: iterations={iterations} leave the stiffness at rest {100 * worst:.2g} % off in the worst of "
            f"{_SAMPLES} configurations of the ranges, expected at most {100 * TOLERANCE:g} %: {hint} (or check=False)"
        ],
    )


class _Rest:
    """Derivatives at rest in configurations of the ranges.

    From q_ref, where the iteration stands still, its slope is D_n = A D_(n-1) + B, D_0 = 0, A and B those of one step;
    that of q_bar is D = (1 - A)^-1 B. Motors at rest carry K (theta - q) = l(q_bar(theta)) - kp (theta - theta_ref), so
    that (K + kp - l' D) d theta = K dq, and links show the stiffness g' + K - K (K + kp - l' D)^-1 K: without kp this
    is g' - l' where D is exact.
    """

    def __init__(self, elastic: ElasticRobot, loads: Loads, step: Step, motors: Array) -> None:
        self.motors = np.diag(motors)
        n = elastic.nv
        q, ref, theta = (ca.SX.sym(x, k) for x, k in (("q", n), ("ref", n), ("theta", len(elastic.theta_names))))
        load = loads(q, ref)
        z = ca.SX.sym("z", theta.numel())
        torques = ca.vertcat(*(j.spring.torques([z[i]], ca.DM(0, 1))[0] for i, j in enumerate(elastic.joints)))
        rest = ca.vertcat(*(ref[j.q] for j in elastic.joints)) + deflections_under(elastic, loads(ref, ref))
        following = step(q, theta, ref)
        found = [ca.jacobian(x, y) for x, y in ((following, q), (following, theta), (load, q))]
        found += [ca.jacobian(gravity_of(elastic, q), q), rest]
        slopes = ca.Function("slopes", [q, theta, ref], found)
        stiffness = ca.Function("stiffness", [z], [ca.diag(ca.jacobian(torques, z))])
        rng, (low, high) = np.random.default_rng(0), ranges(elastic)
        rows = [j.v for j in elastic.joints]
        self.parts = []
        for x in rng.uniform(low, high, (_SAMPLES, n)):
            at = slopes(x, np.zeros(theta.numel()), x)[-1].full().ravel()
            A, B, slope, g = (y.full() for y in slopes(x, at, x)[:4])
            K = stiffness(at - x[rows]).full().ravel()
            if all(np.all(np.isfinite(y)) for y in (A, B, slope, g, K)):
                self.parts.append((A, B, slope[rows], g, K, rows))

    def worst(self, iterations: int) -> float:
        """Largest error of the shown stiffness, of the size of that which exact positions would show."""
        out = 0.0
        for A, B, slope, g, K, rows in self.parts:
            D, exact = np.zeros_like(B), np.linalg.solve(np.eye(len(A)) - A, B)
            for _ in range(iterations):
                D = A @ D + B
            shown, wanted = (self._shown(slope, g[np.ix_(rows, rows)], np.diag(K), x) for x in (D, exact))
            error = np.linalg.norm(shown - wanted, 2) / max(np.linalg.norm(wanted, 2), 1e-300)
            out = max(out, float(error)) if np.isfinite(error) else np.inf
        return out

    def _shown(self, slope: Array, g: Array, K: Array, D: Array) -> Array:
        """(theta, theta) stiffness of the links at rest."""
        return np.asarray(g + K - K @ np.linalg.solve(K + self.motors - slope @ D, K), float)
