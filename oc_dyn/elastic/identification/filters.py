"""Filters of whole records, by their frequency responses: derivatives of sampled positions, and one low-pass for both
sides of the equations.

Positions pass a low-pass that is flat, to 4e-11, up to two thirds of its edge and passes nothing above four thirds of
it; derivatives are those of its output, so that nothing is lost where the motion is. Both sides of the equations then
pass the same Gaussian low-pass, which needs not be flat: the equations hold for its outputs as they do for its inputs.
"""

from __future__ import annotations

from functools import lru_cache
from math import erf, sqrt
from typing import Any

import numpy as np

from ...types import Array

BANDWIDTH = 15.0  # [Hz] of the low-pass of equations, where nothing else is asked for
EDGE = 0.2  # of the positions' low-pass, in units of the sampling rate; below 1/4, as halves of samples are used
_STEEP = 19.5  # edge over the standard deviation of the low-pass's roll-off: flat up to 2/3 of the edge
_NARROWEST = 0.005  # standard deviation of any roll-off: it decides on how much is lost at the ends
_TAIL = 7.5  # standard deviations after which a filter in time has ended: 6e-13
REACH = 1 / 60  # largest bandwidth of the equations' low-pass, in units of the sampling rate


def positions_margin() -> int:
    """Samples lost at each end of a record by derivatives() and speeds(): an even number."""
    return 2 * int(np.ceil(_TAIL / (4 * np.pi * _NARROWEST)))


def derivatives(x: Array, dt: float, half: int | None = None) -> list[Array]:
    """[x, x', x''] of low-passed rows x (n, N) at every second sample, from the even (half=0) or the odd ones (half=1)
    of all N alone, or from all; without positions_margin() samples at each end."""
    count, cut = x.shape[1], positions_margin()
    X, length = _spectrum(x, half)
    X = X * _flat(length, EDGE)
    f = np.fft.rfftfreq(length, dt)
    out = []
    for _ in range(3):
        out.append(np.fft.irfft(X, length)[:, cut : count - cut : 2])
        X = X * (2j * np.pi * f)
    return out


def speeds(x: Array, dt: float, edges: Array, half: int | None = None) -> Array:
    """x' as of derivatives(), each row by a low-pass of its own edge (n,), in units of the sampling rate, at most
    EDGE."""
    count, cut = x.shape[1], positions_margin()
    X, length = _spectrum(x, half)
    X = X * (2j * np.pi * np.fft.rfftfreq(length, dt))
    X = X * np.array([_flat(length, float(edge)) for edge in edges]).reshape(len(x), -1)
    return np.fft.irfft(X, length)[:, cut : count - cut : 2]


def _spectrum(x: Array, half: int | None) -> tuple[Any, int]:
    length = _length(x.shape[1] + positions_margin())
    if half is not None:
        x = 2.0 * x
        x[:, 1 - half :: 2] = 0.0
    return np.fft.rfft(x, length), length


@lru_cache(maxsize=64)
def _flat(length: int, edge: float) -> Array:
    """Response of a positions' low-pass at the frequencies of a record of this length."""
    s = max(edge / _STEEP, _NARROWEST) * sqrt(2)
    return np.array([0.5 * (erf((y + edge) / s) - erf((y - edge) / s)) for y in np.fft.rfftfreq(length)])


def low_passed(x: Array, dt: float, bandwidth: float, every: int, held: bool = False) -> Array:
    """Gaussian low-pass exp(-(f / bandwidth)^2 / 2) of rows x (n, N), sampled at dt, at every so many samples, without
    low_pass_margin() samples at each end. held: x is held from each sample to the next."""
    count, cut = x.shape[1], low_pass_margin(dt, bandwidth)
    length = _length(count + cut)
    f = np.fft.rfftfreq(length, dt)
    response = np.exp(-0.5 * (f / bandwidth) ** 2) + 0j
    if held:
        response *= np.sinc(f * dt) * np.exp(-1j * np.pi * f * dt)
    return np.fft.irfft(np.fft.rfft(x, length) * response, length)[:, cut : count - cut : every]


def low_pass_margin(dt: float, bandwidth: float) -> int:
    """Samples lost at each end of a record by low_passed()."""
    return int(np.ceil(_TAIL / (2 * np.pi * bandwidth * dt)))


def _length(least: int) -> int:
    """The smallest product of 2, 3 and 5 that is as long: its Fourier transform is fast."""
    best = 1 << (least - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            best = min(best, three << max(0, (-(-least // three) - 1).bit_length()))
            three *= 3
        five *= 5
    return best
