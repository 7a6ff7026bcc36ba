"""Checks of what users pass: each function returns it in the form used inside, or raises and says what it expected."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import casadi as ca
import numpy as np

from .errors import LimitError, ShapeError, UnknownName
from .numbers import HUGE, are_sane, as_floats, shortened
from .types import Array

_REFUSED = (NotImplementedError, RuntimeError, TypeError, ValueError, OverflowError)  # by casadi, in its many ways


def count(what: str, value: Any, least: int = 0, most: int | None = 2**31 - 1) -> int:
    """An int of at least so much, and at most; most=None for no bound."""
    fits = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not fits or value < least or (most is not None and value > most):
        range_ = f"of at least {least}" if most in (None, 2**31 - 1) else f"from {least} to {most}"
        raise ShapeError(f"{what} is {shortened(value)}, expected an integer {range_}")
    return int(value)


def flag(what: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ShapeError(f"{what} is {shortened(value)}, expected True or False")
    return bool(value)


def switch(text: str) -> bool | None:
    """What a variable of the environment says: True, False, or None for what is no such word."""
    word = text.strip().lower()
    return True if word in ("on", "1", "true", "yes") else False if word in ("off", "0", "false", "no") else None


def one_of(what: str, value: Any, known: Collection[str]) -> str:
    """One of the names known."""
    if not isinstance(value, str) or value not in known:
        raise UnknownName(what, shortened(value) if not isinstance(value, str) else value, known)
    return value


def name_of(what: str, value: Any) -> str:
    """A name: text that is not empty."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise ShapeError(f"{what}: its name is {shortened(value)}, expected text")
    return value


def names_of(what: str, value: Any) -> tuple[str, ...]:
    """Names, from one or several."""
    several = (value,) if isinstance(value, str) else value
    if not isinstance(several, (list, tuple)) or not all(isinstance(n, str) for n in several):
        raise ShapeError(f"{what} is {shortened(value)}, expected a name or several")
    return tuple(several)


def options_of(what: str, value: Any) -> dict[str, Any]:
    """A dict of {name: value}, {} for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise ShapeError(f"{what}: got {shortened(value)}, expected {{name: value}}")
    return dict(value)


def number(what: str, value: Any, above: float | None = None) -> float:
    """A finite float, greater than `above` if that is given."""
    value = as_floats(what, value)
    if value.size != 1 or not np.isfinite(value).all() or (above is not None and not value.ravel()[0] > above):
        more = "" if above is None else f" above {above:g}"
        raise ShapeError(f"{what} is {shortened(value.tolist())}, expected a finite number{more}")
    return float(value.ravel()[0])


def numbers(what: str, value: Any, size: int) -> Array:
    """(size,) floats, from as many or one."""
    value = as_floats(what, value).ravel()
    if value.size not in (1, size):
        raise ShapeError(f"{what}: got {value.size} values, expected {size}")
    return np.array(np.broadcast_to(value, size))


def finite_numbers(what: str, value: Any, size: int) -> Array:
    """As numbers, all finite and below HUGE."""
    found = numbers(what, value, size)
    if not are_sane(found):
        raise ShapeError(f"{what}: got {shortened(found.tolist())}, expected finite numbers below {HUGE:g}")
    return found


def check_within(where: str, name: str, values: Array, lower: Array, upper: Array, relative: bool = False) -> None:
    """Raise LimitError for values (n,) outside their bounds by more than 1e-9, or that times their size above 1."""
    for i, (x, low, high) in enumerate(zip(values, lower, upper, strict=True)):
        slack = 1e-9 * (max(1.0, abs(x)) if relative else 1.0)
        if not low - slack <= x <= high + slack:
            raise LimitError(f"{where}: {name}[{i}] is {x:g}, outside its bounds {low:g} to {high:g}")


def expression(what: str, value: Any) -> ca.MX:
    """A column of casadi.MX."""
    try:
        return ca.vec(ca.MX(value))
    except _REFUSED:
        raise ShapeError(f"{what}: got {shortened(value)}, expected an expression of the symbols or numbers") from None
