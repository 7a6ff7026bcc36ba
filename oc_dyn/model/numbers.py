"""Numbers that users give, as numpy arrays."""

import numpy as np

from ..errors import ShapeError

HUGE = 1e30  # no length, mass or angle reaches it, and products of what is smaller do not overflow


def are_sane(value):
    """Whether all numbers of an array are finite and below HUGE."""
    return bool(np.all(np.abs(value) < HUGE))  # not so for NaN


def as_floats(where, value):
    """Numpy array of floats; ShapeError, which `where` begins, for anything else: texts, symbols, ragged lists."""
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last from casadi, which has its own ways
        raise ShapeError(f"{where}: got {shortened(value)}, expected numbers") from None


def shortened(value):
    """What a message shows of a value."""
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."
