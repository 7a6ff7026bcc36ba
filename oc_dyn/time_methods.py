"""Methods by automatic differentiation in time: an expression of order 0, and two ways along the motion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

from .lie.time_derivatives import time_derivatives
from .registry import method
from .series.along import time_series

F = TypeVar("F", bound=Callable[..., Any])

JTIMES = ", then jtimes along the motion with cse"
SERIES = ", then Taylor series along the motion (Griewank and Walther 2008, chapter 13)"


def by_jtimes(expression: Any, order: int, flow: Any) -> list[Any]:
    """[e, de, ..., d^order e]: one jtimes per order."""
    return time_derivatives(expression, order, flow, cse=True, cse_follows=True)


def in_time(quantity: str, name: str = "ad", *, source: str, **facts: Any) -> Callable[[F], F]:
    """Decorator that registers two methods, `name` by jtimes and `ad_taylor` by Taylor series.

    Of a function (way, model, order, ...), which takes derivatives as way(expression, order, flow) -> [e, de, ...],
    flow: pairs (symbol, its time derivative). source, facts: of both; source says where the expression is from.
    """

    def register(function: F) -> F:
        for called, way, how in ((name, by_jtimes, JTIMES), ("ad_taylor", time_series, SERIES)):
            own = wraps(function)(partial(function, way))
            method(quantity, called, kind="ad", source=source + how, **facts)(own)
        return function

    return register
