"""How a closed loop is integrated, checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import validation
from ..errors import ShapeError
from .reference import Reference

METHODS = ("dop853", "cvodes", "idas")
SAMPLED = ("dop853", "collocation", "cvodes")
_METHOD = "method of this kind of simulation"
_USUAL_STEPS, _MOST_STEPS = 200_000, 1_000_000  # of the default method (half a minute), of a chosen one
_MOST_ROWS = 10_000_000


@dataclass(frozen=True)
class Settings:
    """How a closed loop is integrated; times [s] are those of the rows, most_steps bounds those of dop853."""

    times: np.ndarray
    duration: float
    dt: float
    method: str
    rtol: float
    atol: float
    sample_time: float | None
    substeps: int
    seed: int
    most_steps: int


def settings_of(
    reference: Reference, duration: float | None, dt: float, method: str | None, rtol: float, atol: float | None,
    sample_time: float | None, substeps: int, seed: int,
) -> Settings:  # fmt: skip
    """Settings from the arguments of simulate."""
    duration = validation.number("simulate: duration", reference.duration if duration is None else duration, above=0)
    if reference.breaks and duration > reference.duration * (1 + 1e-9):
        raise ShapeError(
            f"simulate: duration {duration:g} s, expected up to {reference.duration:g}, that of the reference"
        )
    dt = interval("dt", dt, duration)
    rtol = validation.number("simulate: rtol", rtol, above=0)
    times = np.append(np.arange(0.0, duration * (1 - 1e-9), dt), duration)
    if times.size > 2 and times[-1] - times[-2] < 1e-6 * dt:  # a whole number of intervals, but for rounding
        times = np.delete(times, -2)
    return Settings(
        times=times,
        duration=duration,
        dt=dt,
        method=validation.one_of(_METHOD, method or "dop853", METHODS if sample_time is None else SAMPLED),
        rtol=rtol,
        atol=rtol / 100 if atol is None else validation.number("simulate: atol", atol, above=0),
        sample_time=None if sample_time is None else interval("sample_time", sample_time, duration),
        substeps=validation.count("simulate: substeps", substeps, 1),
        seed=validation.count("simulate: seed", seed, 0, 2**63 - 1),
        most_steps=_USUAL_STEPS if method is None else _MOST_STEPS,
    )


def interval(name: str, value: float, duration: float) -> float:
    """Time [s] between rows, not so short that they would fill the memory."""
    value = validation.number(f"simulate: {name}", value, above=0)
    if duration / value > _MOST_ROWS:
        raise ShapeError(f"simulate: {name} is {value:g} s, expected at least {duration / _MOST_ROWS:g} s")
    return value
