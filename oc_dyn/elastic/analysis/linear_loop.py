"""Robot and law about a position of rest, as linear systems."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ... import validation
from ...errors import ModelError, SolveError
from ...types import Array, Numbers
from ..closed_loop import ClosedLoop
from ..control import Controller
from ..model import ElasticRobot
from ..reference import Reference, reference

_STEPS = 30  # of Newton's method to the position of rest
_REST = 1e-9  # of the rates' size at which it is taken as found


@dataclass(frozen=True, eq=False)
class LinearLoop:
    """x' = A x + B u + E w, u = Lx x + Lm m, m' = Rx x + Rm m about a position of rest: x of the plant, m of the law's
    memory, w (v,) torques on the links from outside; velocity: rows of v in x."""

    A: Array
    B: Array
    E: Array
    Lx: Array
    Lm: Array
    Rx: Array
    Rm: Array
    velocity: slice
    rest: Array

    def closed(self) -> Array:
        """Matrix of the closed loop [x; m]."""
        return np.block([[self.A + self.B @ self.Lx, self.B @ self.Lm], [self.Rx, self.Rm]])


def linear_loop(
    elastic: ElasticRobot, controller: Controller, at: Numbers, sigma: Numbers | None, sample_time: float | None = None,
) -> LinearLoop:  # fmt: skip
    """LinearLoop at the rest to which the law brings the robot for a reference that stays at `at`.

    sample_time [s]: for laws that give the memory of the next sample: m' is the rate that leads there when held.
    Raises SolveError if there is no such rest nearby, ShapeError for numbers that do not fit, ModelError for such a law
    without sample_time.
    """
    at = validation.finite_numbers("at", at, elastic.nq)
    more = {}
    if "memory_next" in controller.function.name_out():
        if sample_time is None:
            raise ModelError(controller.name, ["it is a law of samples alone; see margins for its poles"])
        more["sample_time"] = sample_time
    loop = ClosedLoop(elastic, controller, _still(controller.elastic, at, sigma), None, **more)
    size, memory = loop.plant.size, loop.memory
    x, m = ca.MX.sym("x", size), ca.MX.sym("m", memory)
    u = ca.MX.sym("u", loop.plant.controls)
    given = loop.sigma(loop.reference_at(ca.DM(0)))
    law = loop.law()
    out = law(0, x, m)
    split = [0, loop.plant.controls, loop.plant.controls + memory]
    commands, rates = ca.vertsplit(out, split)
    whole, plant = ca.vertcat(x, m), loop.plant.rates(x, u, given)
    law_slope = ca.Function("law_slope", [whole], [out, ca.jacobian(out, whole)])
    slope = ca.Function("slope", [x, u], [plant, ca.jacobian(plant, x), ca.jacobian(plant, u)])
    moving = ca.vertcat(loop.plant.rates(x, commands, given), rates)
    rest = _rest(ca.Function("moving", [whole], [moving, ca.jacobian(moving, whole)]), loop.first_state(None)[:-2])
    value, L = (y.full() for y in law_slope(rest))
    _, A, B = (y.full() for y in slope(rest[:size], value[: loop.plant.controls]))
    n = loop.plant.controls
    E = _outside(loop, rest[:size], value[:n], given)
    if not all(np.all(np.isfinite(y)) for y in (A, B, L, E)):
        raise SolveError(f"{controller.name} of {elastic.name}: its linearisation at {at.tolist()} is not a number")
    return LinearLoop(A, B, E, L[:n, :size], L[:n, size:], L[n:, :size], L[n:, size:], loop.plant.parts["v"], rest)


def _still(elastic: ElasticRobot, at: Array, sigma: Numbers | None) -> Reference:
    """Reference that rests."""
    return reference(elastic, lambda t: ca.DM(at), duration=1.0, sigma=sigma)


def _rest(moving: ca.Function, start: Array) -> Array:
    """State at which nothing moves, by Newton's method with least squares; see linear_loop."""
    x = start
    for _ in range(_STEPS):
        value, slope = (y.full() for y in moving(x))
        if not (np.all(np.isfinite(value)) and np.all(np.isfinite(slope))):
            break
        size = np.abs(slope) @ np.maximum(np.abs(x), 1e-3)
        if np.all(np.abs(value.ravel()) <= _REST * np.maximum(size, 1e-6)):
            return x
        x = x - np.linalg.lstsq(slope, value.ravel(), rcond=None)[0]
    raise SolveError(
        f"the law does not hold the robot at rest near {start.tolist()}: no state without motion was found"
    )


def _outside(loop: ClosedLoop, x: Array, u: Array, given: ca.DM) -> Array:
    """(size, v) effect of torques on the links on the rates of the state."""
    p = loop.plant
    a = ca.MX.sym("a", p.residual.size1_in(1))
    whole = ca.Function("mass", [a], [ca.jacobian(p.residual(x, a, u, given), a)])(0).full()
    effect = np.linalg.inv(whole)[:, : loop.elastic.nv]
    names = [n for n in ("v", "dtheta", "dsigma") if n in p.parts]
    E, row = np.zeros((p.size, loop.elastic.nv)), 0
    for n in names:
        rows = p.parts[n]
        count = rows.stop - rows.start
        E[rows] = effect[row : row + count]
        row += count
    return E
