"""Stiffness planned together with the motion: its bounds, and how it begins and ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, ShapeError
from ..numbers import as_floats
from ..optimal_control.problem import Problem
from ..planning.arguments import vector
from ..planning.report import ReportRow
from ..planning.trajectory import Trajectory
from ..types import Array, Numbers
from .model import ElasticRobot

ORDER = 3  # of the chain: motor torques need sigma twice continuously differentiable


@dataclass(frozen=True, eq=False)
class PlannedStiffness:
    """Bounds of the stiffnesses of the joints that vary theirs, which plan_elastic chooses over time.

    lower, upper: numbers, or one per joint of sigma_names, in the unit of sigma. rate: largest |sigma'|, None for none.
    start, goal: values there, None for free. In a motion from rest to rest sigma rests at its ends.
    """

    lower: Numbers
    upper: Numbers
    rate: Numbers | None = None
    start: Numbers | None = None
    goal: Numbers | None = None


@dataclass(frozen=True, eq=False)
class StiffnessBounds:
    """A PlannedStiffness of a robot: all (sigma,), None where there is none."""

    names: tuple[str, ...]
    lower: Array
    upper: Array
    rate: Array | None
    start: Array | None
    goal: Array | None

    @property
    def typical(self) -> Array:
        """Where the search begins."""
        return np.sqrt(self.lower * self.upper) if self.start is None else self.start

    @property
    def key(self) -> tuple[Any, ...]:
        """What a Problem is built from."""
        values = (self.lower, self.upper, self.rate, self.start, self.goal)
        return tuple(None if x is None else x.tobytes() for x in values)

    def rows(self, sigma: Trajectory, dt: float) -> list[ReportRow]:
        """ReportRows of the bounds along a Trajectory of the stiffnesses: shares of the half range about its middle."""
        samples = sigma.sample(dt)
        middle, half = (self.upper + self.lower) / 2, (self.upper - self.lower) / 2
        parts = [("sigma", samples.q, (samples.q - middle) / half, middle, half)]
        if self.rate is not None:
            parts.append(("dsigma", samples.v, samples.v / self.rate, 0 * middle, self.rate))
        found = []
        for name, values, share, centre, reach in parts:
            k, i = np.unravel_index(np.argmax(np.abs(share)), share.shape)
            limit = float(centre[i] + np.copysign(reach[i], share[k, i]))
            found.append(
                ReportRow(name, float(abs(share[k, i])), self.names[i], float(samples.t[k]), float(values[k, i]), limit)
            )
        return found


def stiffness_bounds(elastic: ElasticRobot, given: PlannedStiffness) -> StiffnessBounds:
    """StiffnessBounds of a PlannedStiffness; ShapeError for what does not fit."""
    names = elastic.sigma_names
    if not names:
        raise ShapeError(f"planning {elastic.name}: no joint varies its stiffness; give sigma=None")
    if elastic.coupling:
        raise ModelError(elastic.name, ["stiffness is planned for the reduced model; give sigma=[...] to hold it"])

    def each(what: str, value: Any) -> Array | None:
        if value is None:
            return None
        value = as_floats(f"PlannedStiffness: {what}", value).ravel()
        return vector(f"PlannedStiffness: {what}", np.repeat(value, len(names)) if value.size == 1 else value, names)

    found = {what: each(what, getattr(given, what)) for what in ("lower", "upper", "rate", "start", "goal")}
    lower, upper, rate = found["lower"], found["upper"], found["rate"]
    if lower is None or upper is None or not np.all((lower > 0) & (lower < upper)):
        raise ShapeError(
            f"PlannedStiffness: lower and upper are {given.lower!r} and {given.upper!r}, expected 0 < lower < upper"
        )
    if rate is not None and not np.all(rate > 0):
        raise ShapeError(f"PlannedStiffness: rate is {given.rate!r}, expected positive numbers")
    for what in ("start", "goal"):
        value = found[what]
        if value is not None and not np.all((value >= lower) & (value <= upper)):
            raise ShapeError(f"PlannedStiffness: {what} is {value.tolist()}, outside lower and upper")
    return StiffnessBounds(names, lower, upper, rate, found["start"], found["goal"])


def stiffness_chain(problem: Problem, bounds: StiffnessBounds, rests: tuple[bool, bool]) -> list[ca.MX]:
    """[sigma, dsigma, d2sigma, d3sigma] in a Problem, bounded everywhere; rests: at the start, at the goal."""
    guess = [bounds.typical, *[np.zeros(len(bounds.names))] * ORDER]
    sigma = problem.chain(
        "sigma", len(bounds.names), ORDER, lower=bounds.lower, upper=bounds.upper, bounds=[bounds.rate],
        scale=bounds.upper - bounds.lower, guess=guess, basis="bernstein",
    )  # fmt: skip
    for say, value, rest in ((problem.start, bounds.start, rests[0]), (problem.goal, bounds.goal, rests[1])):
        zero = np.zeros(len(bounds.names))
        still: dict[Any, Any] = {x: zero if value is not None else (zero, zero) for x in sigma[1:ORDER]}
        say(({} if value is None else {sigma[0]: value}) | (still if rest else {}))
    return sigma


def stiffness_along(solution: Any, sigma: list[ca.MX], bounds: StiffnessBounds) -> Trajectory:
    """Trajectory of the stiffnesses of a Solution."""
    pieces = solution.trajectory(sigma)
    return Trajectory(pieces.t, pieces.pieces, joints=bounds.names, units=("Nm/rad",) * len(bounds.names))
