"""Numbers that users pass, as numpy arrays."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from .errors import ShapeError
from .types import Array, ArrayLike

_PLAIN = {float, int}
HUGE = 1e30  # no length, mass or angle reaches it, and products of what is smaller do not overflow


def are_sane(value: ArrayLike) -> bool:
    """Whether all numbers of an array are finite and below HUGE."""
    return bool(np.all(np.abs(value) < HUGE))  # not so for NaN


def as_floats(where: str, value: Any) -> Array:
    """Numpy array of floats; ShapeError, which `where` begins, for anything else.

    Real numbers only, NaN among them: texts, truth values, None, dates and complex numbers are refused, though numpy
    turns them into floats, and so are masked arrays, sparse ones, symbols and ragged lists.
    """
    if type(value) is np.ndarray and value.dtype == float:
        return value
    try:
        plain = type(value) in (list, tuple) and set(map(type, value)) <= _PLAIN
        reason = None if plain else _no_number(value)
        array = None if reason else np.asarray(value, float)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last from casadi, which has its own ways
        reason, array = "expected numbers", None
    if array is None:
        raise ShapeError(f"{where}: got {shortened(value)}, {reason}") from None
    return array


def _no_number(value: Any) -> str | None:
    """What to do about something that numpy would make floats of without being asked; None if it may."""
    if isinstance(value, (float, int)) and not isinstance(value, bool):
        return None
    if isinstance(value, (list, tuple)):
        return next((reason for x in value if (reason := _no_number(x))), None)
    if isinstance(value, np.ma.MaskedArray):
        return "expected numbers without a mask; give array.filled(value) or array.compressed()"
    if isinstance(value, ca.SX):
        return None if value.is_constant() else "expected numbers"
    if not isinstance(value, (np.ndarray, np.generic, bool, str, bytes, complex, type(None))):
        return None  # casadi's matrices, and what else can turn into an array of floats
    array = np.asarray(value)
    if array.dtype.kind == "O" and array.ndim:
        return next((reason for x in array.flat if (reason := _no_number(x))), None)
    kind = array.dtype.kind
    return None if kind in "fiu" else "expected real numbers" if kind == "c" else "expected numbers"


def shortened(value: object) -> str:
    """What a message shows of a value."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 100 else text[:97] + "..."
