"""Gains of linear error dynamics from their poles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ports import derivative_name
from ..types import Array, Numbers


def pole_gains(poles: Numbers, order: int, n: int) -> Array:
    """(n, order) gains k0 .. of s^order + .. + k1 s + k0 with these poles; see feedback_linearization."""
    poles = np.asarray(poles)
    if poles.ndim == 0:
        poles = np.full(order, -abs(poles) if poles > 0 else poles)
    if poles.shape == (order,):
        poles = np.broadcast_to(poles, (n, order))
    if poles.shape != (n, order):
        raise ShapeError(f"poles: got shape {poles.shape}, expected a number, ({order},) or ({n}, {order})")
    gains = np.array([np.poly(row)[:0:-1] for row in poles]).reshape(n, order)
    if np.any(np.real(poles) >= 0):
        raise ShapeError(
            f"poles: got {poles.tolist()}, expected negative real parts (one positive number g: all at -g)"
        )
    if np.abs(np.imag(gains)).max(initial=0) > 1e-9 * np.abs(gains).max(initial=1):
        raise ShapeError(f"poles: {poles.tolist()}: complex poles must come in conjugate pairs")
    return np.real(gains)


def wanted_derivative(ref: dict[str, Any], jets: Sequence[Any], gains: dict[str, Any]) -> Any:
    """Highest derivative of q that the error equation asks for: the reference's and gains times errors of q, v, ..

    jets: [q, v, dv, ..] of the robot; gains: "gains" (v, order), and "integral_gains" (v, 1) where "integral" is given.
    """
    names = ["q", *(derivative_name("v", k) for k in range(len(jets)))]
    value = ref[names[len(jets)]]
    for k, x in enumerate(jets):
        value = value + gains["gains"][:, k] * (ref[names[k]] - x)
    return value if gains["integral"] is None else value + gains["integral_gains"] * gains["integral"]
