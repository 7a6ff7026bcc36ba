"""A Solution between its nodes as polynomials by powers of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from ..errors import ModelError
from ..optimal_control.resampling import SolutionSamples
from ..types import Array

HIGHEST = 12  # degree
PARTS = (
    1,
    8,
    16,
    32,
    64,
)  # of an interval, tried one after the other: motions that were integrated are cubics on parts
NOTHING = 1e-11  # of the largest value in a phase: what rounding leaves of a coefficient that is zero


def polynomial_pieces(where: str, solution: Any, names: Sequence[str]) -> tuple[Array, dict[str, Array]]:
    """(breakpoints (M + 1,), {name: (M, orders, n)}) of named values of a Solution, from their values at Chebyshev
    points of every interval; ModelError naming what is no polynomial there."""
    for parts in PARTS:
        points, values = _values(solution, names, parts)
        fits = {name: _fitted(points, x) for name, x in values.items()}
        wrong = [name for name, fit in fits.items() if fit is None]
        if not wrong:
            break
    else:
        problem = f"{', '.join(wrong)}: no polynomials between nodes up to degree {HIGHEST}; name others by names="
        raise ModelError(where, [problem])
    h = np.repeat(np.diff(solution.t) / parts, parts)
    shares = np.arange(parts) / parts
    t = np.append((solution.t[:-1, None] + np.diff(solution.t)[:, None] * shares).ravel(), solution.t[-1])
    return t, {name: _by_time(fit, h) for name, fit in fits.items() if fit is not None}


def _values(solution: Any, names: Sequence[str], parts: int) -> tuple[Array, dict[str, Array]]:
    """(points (K,) in [-1, 1], {name: values (intervals of all parts, K, n)})."""
    points = np.cos(np.pi * np.arange(HIGHEST + 4) / (HIGHEST + 3))[::-1]
    shares = ((np.arange(parts)[:, None] + (points + 1) / 2) / parts).ravel()
    samples = SolutionSamples.of_intervals(solution, np.clip(shares, 0.0, 1.0))
    return points, {name: samples[name].reshape(-1, len(points), samples[name].shape[1]) for name in names}


def _fitted(points: Array, values: Array) -> Array | None:
    """Chebyshev coefficients (degree + 1, M, n); None where the degree would be too high."""
    M, K, n = values.shape
    coefficients = np.linalg.solve(chebyshev.chebvander(points, K - 1), values.transpose(1, 0, 2).reshape(K, M * n))
    sizes = np.abs(coefficients).reshape(K, M, n).max(axis=1)  # of every row
    largest = np.maximum(np.abs(values).max(axis=(0, 1)), 1e-300)
    above = np.flatnonzero((sizes > NOTHING * largest).any(axis=1))
    degree = int(above[-1]) if above.size else 0
    if degree > HIGHEST:
        return None
    fit = np.linalg.lstsq(chebyshev.chebvander(points, degree), values.transpose(1, 0, 2).reshape(K, M * n), rcond=None)
    return fit[0].reshape(degree + 1, M, n)


def _by_time(fit: Array, h: Array) -> Array:
    """(M, orders, n): derivatives by time at the starts of the pieces, which are h (M,) long."""
    out = np.empty((fit.shape[1], fit.shape[0], fit.shape[2]))
    for k in range(fit.shape[0]):
        there = chebyshev.chebval(-1.0, chebyshev.chebder(fit, k)) if k else chebyshev.chebval(-1.0, fit)
        out[:, k] = there * (2 / h[:, None]) ** k
    return out
