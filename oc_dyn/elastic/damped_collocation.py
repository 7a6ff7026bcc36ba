"""Deflections of damped springs as unknowns of a Problem, by collocation within its intervals.

z = theta - q and its derivatives each are a polynomial on every interval, through the value at its start, a state, and
unknowns at Radau's points, where their equations hold (see damped_flat.py). With D = 0 these are the equations of the
undamped spring, so that springs with little damping, whose equations are stiff, ask for no shorter intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from ..optimal_control.polynomials import lagrange
from ..optimal_control.problem import Problem
from ..types import Array

DEGREE = 3
STATE, INSIDE = "damped_deflection", "damped_deflections"


class CollocatedDeflections:
    """Symbols of z, z', .. (count) of the damped springs (size,) in a Problem: numbers about 1, times `unit` (count
    size,) [rad, rad/s, ..]."""

    def __init__(self, problem: Problem, size: int, count: int, unit: Any) -> None:
        self.points = np.array([0.0, *ca.collocation_points(DEGREE, "radau")])
        self.problem, self.unit, self.size = problem, unit, size
        self.state = problem.state(STATE, size * count, scale=1.0)
        inside = problem.control(INSIDE, size * count * (DEGREE + 1), scale=1.0)
        self._values = ca.vertsplit(inside, size * count)
        problem.next(self.state, self._values[-1])
        problem.limit(0, self._values[0] - self.state, 0, name="start of the deflections")

    def jets(self, share: float) -> list[ca.MX]:
        """[z, z', ..] a share of the interval after its start."""
        return self._split(lagrange(self.points, share))

    def rates(self, share: float) -> list[ca.MX]:
        """Time derivatives of the polynomials of [z, z', ..]."""
        return [x / self.problem.step for x in self._split(_slopes(self.points, share))]

    def _split(self, weights: Array) -> list[ca.MX]:
        total = self.unit * sum(float(w) * x for w, x in zip(weights, self._values, strict=True))
        return ca.vertsplit(total, self.size)

    @property
    def shares(self) -> list[float]:
        """Where the equations of the springs hold."""
        return [float(c) for c in self.points[1:]]


def guess_of(z: Callable[[Array], Array], nodes: int) -> dict[str, Array]:
    """{name: guess} of the unknowns; z: function of shares of the time (K,) -> (K, count size) z, z', ..
    over their unit."""
    points = np.array([0.0, *ca.collocation_points(DEGREE, "radau")])
    at = (np.arange(nodes)[:, None] + points) / nodes
    inside = z(at.ravel()).reshape(nodes, -1)
    return {STATE: z(np.linspace(0, 1, nodes + 1)), INSIDE: np.vstack([inside, inside[-1:]])}


def _slopes(points: Array, share: float) -> Array:
    """Weights of values at points in the derivative at a share of the polynomial through them."""
    powers = np.arange(len(points))
    return np.linalg.solve(np.vander(points, increasing=True).T, powers * share ** np.maximum(powers - 1.0, 0.0))
