"""How uncertain an estimate is: covariance of its score, which noise of filters and encoders correlates over time."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from ...types import Array
from .filters import BANDWIDTH
from .rows import Halves

_CORRELATED = 0.5  # [s / (15 Hz)] up to which what equations leave is taken as correlated
_PARZEN = 0.539285  # integral of the squared Parzen window, by its reach


def long_run(halves: list[Halves], weights: list[Array], band: float) -> tuple[Array, float]:
    """(covariance of the score, degrees of freedom of its estimate): autocovariances by a Parzen window."""
    p = halves[0].even.J.shape[2]
    total, spans = np.zeros((p, p)), 0.0
    reach_s = _CORRELATED * BANDWIDTH / band
    for h, w in zip(halves, weights, strict=True):
        a, b = h.even.left, h.odd.left
        s = 0.5 * (np.einsum("e,etp,et->tp", w, h.odd.J, a) + np.einsum("e,etp,et->tp", w, h.even.J, b))
        reach = max(1, round(reach_s / h.even.step))
        total += s.T @ s
        for lag in range(1, min(reach, len(s))):
            y = lag / reach
            window = 1 - 6 * y**2 + 6 * y**3 if y <= 0.5 else 2 * (1 - y) ** 3
            C = s[lag:].T @ s[:-lag]
            total += window * (C + C.T)
        spans += len(s) / reach
    return total, max(spans / _PARZEN, 2.0)


def quantile(share: float, freedom: float) -> float:
    """Quantile of Student's distribution, by its expansion about the normal one (Abramowitz and Stegun 26.7.5)."""
    x = NormalDist().inv_cdf(share)
    first = (x**3 + x) / 4
    second = (5 * x**5 + 16 * x**3 + 3 * x) / 96
    third = (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384
    return x + first / freedom + second / freedom**2 + third / freedom**3
