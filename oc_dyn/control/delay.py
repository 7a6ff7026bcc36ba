"""Compensation of a delay: the state that was measured, moved on by the model to when an output acts.

Between a measurement and the moment when the output that it leads to acts, earlier outputs do: those in flight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..numbers import as_floats, shortened


@dataclass(frozen=True, eq=False)
class Delay:
    """shares: of an interval, for which each of the controls in flight acts, the oldest first. where: of every state
    the number of the parameter that measures it. sent: of every entry of the controls its number among the outputs."""

    shares: tuple[float, ...]
    where: tuple[int, ...]
    sent: tuple[int, ...]

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


def delay_of(made: Any, value: Any, shift: int, outputs: Mapping[str, Any]) -> Delay | None:
    """Delay of so many seconds, None for 0. Raises ShapeError where a state is not measured, where a control is no
    output or steps are not an interval apart, and for what has no model for it."""
    seconds = as_floats("mpc: delay", value)
    if seconds.size != 1 or not 0 <= seconds.ravel()[0] < np.inf:
        raise ShapeError(f"mpc: delay is {shortened(value)}, expected a number of seconds from 0 on")
    time = float(seconds.ravel()[0])
    if time == 0:
        return None
    kind, phase = made.groups[0].kind, made.phases[0]
    if kind.nx != made.x_scale.size or kind.nu != made.u_scale.size or any(p.shares is not None for p in made.phases):
        raise ShapeError("mpc: delay is for methods that add no unknowns, such as rk4 and euler, on a uniform mesh")
    if shift != 1:
        raise ShapeError(
            f"mpc: delay is for steps that are an interval apart, shift=1: each control in flight acts for one; got "
            f"shift={shift}"
        )
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
    return Delay((first, *[1.0] * (count - 1)), tuple(_measured(made, v) for v in made.states), _sent(made, outputs))


def _sent(made: Any, outputs: Mapping[str, Any]) -> tuple[int, ...]:
    """Numbers among the outputs of all controls."""
    starts = np.cumsum([0, *(ca.MX(e).numel() for e in outputs.values())]).tolist()
    out: list[int] = []
    for v in made.controls:
        at = [a for a, e in zip(starts, outputs.values(), strict=False) if is_control(v, e)]
        if not at:
            raise ShapeError(
                f"mpc: delay: control {v.name!r} is no output; the state is moved on under the controls that were "
                f"sent, as clipped or given by on_failure; add it to outputs"
            )
        out += range(at[0], at[0] + v.size)
    return tuple(out)


def is_control(control: Any, expression: Any) -> bool:
    """Whether an output is a control of the problem."""
    return bool(ca.is_equal(ca.vec(control.symbol), ca.MX(expression), 2))


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
