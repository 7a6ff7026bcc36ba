"""Margins of gain and delay of a sampled law, from the exact discretisation of the linearised robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import numpy as np

from ... import validation
from ...errors import ShapeError
from ...types import Array, Numbers
from ..control import Controller
from ..model import ElasticRobot
from .linear_loop import LinearLoop, linear_loop

_MOST_GAIN, _LEAST_GAIN = 1e3, 1e-3  # factors of the torques up to which a loop is looked at
_DELAYS = np.concatenate([np.arange(0.5, 5.1, 0.5), np.arange(6.0, 21.0), np.arange(25.0, 101.0, 5.0)])  # samples
_LOOKS = 80  # gains looked at each way, before bisection


@dataclass(frozen=True, eq=False)
class Margins:
    """Of a sampled loop: poles (states,) in the z plane, slowest first; radius, the largest of their moduli, below 1
    where the loop is stable. gain: (lowest, highest) factor of all torques, about those at rest, up to which it stays
    stable, 0 or inf where none below 1000 and above 1 / 1000 was found. delay [s]: that it bears besides the one given,
    inf above 100 samples. nan where the loop is not stable to begin with."""

    poles: np.ndarray[Any, Any]
    gain: tuple[float, float]
    delay: float
    sample_time: float

    @property
    def radius(self) -> float:
        """Largest modulus of the poles."""
        return float(np.abs(self.poles).max())

    @property
    def stable(self) -> bool:
        """Whether all poles are inside the unit circle."""
        return self.radius < 1

    def __str__(self) -> str:
        samples = self.delay / self.sample_time
        return (
            f"radius {self.radius:.6g}, gain {self.gain[0]:.3g} to {self.gain[1]:.3g}, delay {self.delay:.4g} s "
            f"({samples:.3g} samples)"
        )


def margins(
    elastic: ElasticRobot, controller: Controller, at: Numbers, *, sample_time: float = 1e-3, delay: float = 0,
    sigma: Numbers | None = None,
) -> Margins:  # fmt: skip
    """Margins of a law that runs once a sample_time [s], its torques held and applied `delay` samples late.

    at (q,): reference at rest, about which robot and law are linearised; see closed_loop_poles. delay: a number of
    samples, parts of one included. The robot is discretised exactly for held torques; the law's memory moves by a step
    of Euler per sample, as in simulate and in C. All motors' torques are scaled and delayed together.
    Raises SolveError, ShapeError, ModelError.
    """
    h = validation.number("margins: sample_time", sample_time, above=0)
    late = validation.number("margins: delay", delay)
    if late < 0:
        raise ShapeError(f"margins: delay is {delay!r}, expected samples of at least 0")
    loop = linear_loop(elastic, controller, at, sigma, h)
    poles = np.linalg.eigvals(sampled(loop, h, late)).astype(complex)
    poles = poles[np.argsort(-np.abs(poles))]
    if not np.abs(poles).max() < 1:
        return Margins(poles, (nan, nan), nan, h)
    high = _first(lambda k: _radius(sampled(loop, h, late, k)), np.geomspace(1, _MOST_GAIN, _LOOKS)[1:], 1.0)
    low = _first(lambda k: _radius(sampled(loop, h, late, k)), np.geomspace(1, _LEAST_GAIN, _LOOKS)[1:], 1.0)
    bears = _first(lambda d: _radius(sampled(loop, h, late + d)), _DELAYS, 0.0)
    return Margins(poles, (0.0 if low is None else low, inf if high is None else high),
                   inf if bears is None else bears * h, h)  # fmt: skip


def sampled(loop: LinearLoop, h: float, delay: float = 0.0, gain: float = 1.0) -> Array:
    """Matrix of a sample of [x; memory; torques that are under way, the latest first]."""
    n, m, u = len(loop.A), len(loop.Rm), loop.B.shape[1]
    whole = int(np.floor(delay))
    part = delay - whole
    kept = whole + (1 if part > 0 else 0)
    Phi, late = _held(loop, h, h * (1 - part))
    early = _held(loop, h, h)[1] - late  # of the torque before, in the first part of the sample
    L = gain * np.hstack([loop.Lx, loop.Lm])
    out = np.zeros((n + m + kept * u, n + m + kept * u))
    out[:n, :n], out[n : n + m, : n + m] = Phi, np.hstack([h * loop.Rx, np.eye(m) + h * loop.Rm])

    def acts(age: int, effect: Array) -> None:
        if age == 0:
            out[:n, : n + m] += effect @ L
        else:
            at = n + m + (age - 1) * u
            out[:n, at : at + u] += effect

    acts(whole, late)
    if part > 0:
        acts(whole + 1, early)
    if kept:
        out[n + m : n + m + u, : n + m] = L
        out[n + m + u :, n + m : n + m + (kept - 1) * u] = np.eye((kept - 1) * u)
    return out


def _held(loop: LinearLoop, h: float, time: float) -> tuple[Array, Array]:
    """(exp(A h), effect (n, u) after h of a torque that is held over the last `time` of it)."""
    n, u = loop.B.shape
    both = np.zeros((n + u, n + u))
    both[:n, :n], both[:n, n:] = loop.A, loop.B
    return exponential(loop.A * h), exponential(both * time)[:n, n:]


def exponential(A: Array) -> Array:
    """Matrix exponential by a Taylor series of order 18 of A / 2^s, norm below 1/2, squared s times."""
    size = float(np.linalg.norm(A, 1))
    s = max(0, int(np.ceil(np.log2(max(size, 1e-300)))) + 1)
    B = A / 2.0**s
    out = term = np.eye(len(A))
    for k in range(1, 19):
        term = term @ B / k
        out = out + term
    for _ in range(s):
        out = out @ out
    return out


def _radius(matrix: Array) -> float:
    return float(np.abs(np.linalg.eigvals(matrix)).max())


def _first(radius: Callable[[float], float], values: Array, stable: float) -> float | None:
    """The first of rising or falling values at which a radius reaches 1, by bisection from the one before; None if it
    does at none. `stable`: the value before the first."""
    for value in values:
        if radius(value) >= 1:
            a, b = stable, float(value)
            for _ in range(30):
                middle = 0.5 * (a + b)
                a, b = (middle, b) if radius(middle) < 1 else (a, middle)
            return a
        stable = float(value)
    return None
