"""Gains of linear error dynamics from their poles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..numbers import HUGE, are_sane, as_floats, shortened
from ..ports import derivative_name
from ..types import Array, Numbers


def pole_gains(poles: Numbers, order: int, n: int, what: str = "poles") -> Array:
    """(n, order) gains k0 .. of s^order + .. + k1 s + k0 with these poles; see feedback_linearization. what: what a
    ShapeError calls them."""
    poles = finite_poles(what, poles)
    if poles.ndim == 0:
        if np.imag(poles) != 0:
            raise ShapeError(f"{what}: got {complex(poles)}, a complex pole without its conjugate; give all {order}")
        poles = np.full(order, -np.real(poles) if np.real(poles) > 0 else np.real(poles))
    if poles.shape == (order,):
        poles = np.broadcast_to(poles, (n, order))
    if poles.shape != (n, order):
        raise ShapeError(f"{what}: got shape {poles.shape}, expected a number, ({order},) or ({n}, {order})")
    gains = np.array([np.poly(row)[:0:-1] for row in poles]).reshape(n, order)
    if np.any(np.real(poles) >= 0):
        raise ShapeError(
            f"{what}: got {poles.tolist()}, expected negative real parts (one positive number g: all at -g)"
        )
    if np.abs(np.imag(gains)).max(initial=0) > 1e-9 * np.abs(gains).max(initial=1):
        raise ShapeError(f"{what}: {poles.tolist()}: complex poles must come in conjugate pairs")
    if not are_sane(gains):
        raise ShapeError(f"{what}: got {poles.tolist()}, expected poles whose gains are below {HUGE:g}")
    return np.real(gains)


def finite_poles(what: str, poles: Any) -> np.ndarray[Any, Any]:
    """Poles as an array of finite numbers, complex ones among them; ShapeError for anything else."""
    try:
        found = np.asarray(poles)
    except ValueError:  # rows of different lengths
        found = np.asarray(None)
    if found.dtype.kind == "O":
        found = as_floats(what, poles)
    if found.dtype.kind not in "fiuc" or not found.size:
        raise ShapeError(f"{what}: got {shortened(poles)}, expected numbers [1/s]")
    if not are_sane(found):
        raise ShapeError(f"{what}: got {shortened(found.tolist())}, expected finite numbers below {HUGE:g}")
    return found


def longest_sample(gains: Any) -> float:
    """Sample time [s] below which Euler steps keep stable what rows of gains (n, order) place: 2 / g of a real pole -g,
    the least of -2 Re p / |p|^2 of all; inf without rows."""
    poles = np.concatenate([np.zeros(0), *(np.roots([1.0, *row[::-1]]) for row in np.atleast_2d(gains))])
    return float(np.min(-2 * poles.real / np.abs(poles) ** 2, initial=np.inf))


def check_sample_time(who: str, sample_time: float, of: Any) -> None:
    """ShapeError for a sample time at which the observers in a law, or an observer, diverge by themselves."""
    if not sample_time < of.longest_sample:
        raise ShapeError(
            f"{who}: sample_time is {sample_time:g} s, expected below {of.longest_sample:.4g} s: the fastest pole of "
            f"the observers in {of.name} is too fast for steps of that length; give slower poles or shorter samples"
        )


def wanted_derivative(ref: dict[str, Any], jets: Sequence[Any], gains: dict[str, Any]) -> Any:
    """Highest derivative of q that the error equation asks for: the reference's and gains times errors of q, v, ..

    jets: [q, v, dv, ..] of the robot; gains: "gains" (v, order), and "integral_gains" (v, 1) where "integral" is given.
    """
    names = ["q", *(derivative_name("v", k) for k in range(len(jets)))]
    value = ref[names[len(jets)]]
    for k, x in enumerate(jets):
        value = value + gains["gains"][:, k] * (ref[names[k]] - x)
    return value if gains["integral"] is None else value + gains["integral_gains"] * gains["integral"]
