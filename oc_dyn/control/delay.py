"""Compensation of a delay: the state that was measured, moved on by the model to when an output acts.

Between a measurement and the moment when the output that it leads to acts, earlier outputs do: those in flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..numbers import as_floats, shortened


@dataclass(frozen=True, eq=False)
class Delay:
    """shares: of an interval, for which each of the controls in flight acts, the oldest first. where: of every state
    the number of the parameter that measures it."""

    shares: tuple[float, ...]
    where: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of controls in flight."""
        return len(self.shares)

    def moved_on(self, made: Any, flight: Any, parts: list[Any], p: Any) -> list[Any]:
        """Parameters with the states that are measured moved on. flight: controls (nu, count), divided by their scales.
        p: parameter of the program."""
        of, out = made.groups[0].kind, list(parts)
        x = ca.vertcat(*(ca.vec(parts[k]) for k in self.where)) / made.x_scale
        ends = [0, made.n_p, made.n_p + 1, made.n_p + made.n_s, p.numel()]
        common, length, others, _ = ca.vertsplit(p, ends)
        for share, u in zip(self.shares, ca.vertsplit(flight, made.u_scale.size), strict=True):
            x = of.value.call([ca.vertcat(x, u), common, ca.vertcat(share * length, others)])[0]
        ends = np.cumsum([0, *(v.size for v in made.states)]).tolist()
        for k, y in zip(self.where, ca.vertsplit(made.x_scale * x, ends), strict=True):
            out[k] = y
        return out


def delay_of(made: Any, value: Any) -> Delay | None:
    """Delay of so many seconds, None for 0. Raises ShapeError where a state is not measured, and for what has no model
    for it."""
    seconds = as_floats("mpc: delay", value)
    if seconds.size != 1 or not 0 <= seconds.ravel()[0] < np.inf:
        raise ShapeError(f"mpc: delay is {shortened(value)}, expected a number of seconds from 0 on")
    time = float(seconds.ravel()[0])
    if time == 0:
        return None
    kind, phase = made.groups[0].kind, made.phases[0]
    if kind.nx != made.x_scale.size or kind.nu != made.u_scale.size or any(p.shares is not None for p in made.phases):
        raise ShapeError("mpc: delay is for methods that add no unknowns, such as rk4 and euler, on a uniform mesh")
    interval = made.nominal_durations[0] / phase.nodes
    count = int(np.ceil(time / interval - 1e-9))
    first = time / interval - (count - 1)
    if abs(first - 1) < 1e-9:
        first = 1.0
    elif phase.steps:
        raise ShapeError(
            f"mpc: delay is {time:g} s, expected a multiple of the interval, {interval:g} s: Problem.next says nothing "
            "of what is between nodes"
        )
    return Delay((first, *[1.0] * (count - 1)), tuple(_measured(made, v) for v in made.states))


def _measured(made: Any, state: Any) -> int:
    """Number of the parameter that a state has at the start."""
    description = made.description
    rows = [ca.vec(ca.MX(r.expression)) for r in description.start_rows]
    for k, (_, symbol) in enumerate(description.parameters):
        if symbol.numel() == state.size and any(ca.is_equal(r, state.symbol - ca.vec(symbol), 3) for r in rows):
            return k
    raise ShapeError(
        f"mpc: delay: state {state.name!r} is no parameter at the start; all are moved on, say start({{x: parameter}})"
    )
