"""Recurrences of operations with kinks and steps; see elementary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import casadi as ca

from .coefficients import (
    Series,
    add,
    binary,
    divide,
    multiply,
    subtract,
    times,
    unary,
    where,
)

Coefficients = Iterator[Any]
_ORDERS = range(1, 10**9)


def magnitude(w: Series, u: Series) -> Coefficients:
    """|u|."""
    return _scaled(u, lambda: unary(ca.OP_SIGN, u[0]))


def signed_as(w: Series, u: Series, v: Series) -> Coefficients:
    """copysign(u, v)."""
    one = type(u[0])(1)
    return _scaled(u, lambda: multiply(binary(ca.OP_COPYSIGN, one, v[0]), unary(ca.OP_SIGN, u[0])))


def _scaled(u: Series, factor: Callable[[], Any]) -> Coefficients:
    made = None
    for k in _ORDERS:
        made = factor() if made is None and u[k] is not None else made
        yield multiply(made, u[k])


def selected(w: Series, condition: Series, u: Series) -> Coefficients:
    """if_else_zero(condition, u)."""
    return (where(condition[0], u[k]) for k in _ORDERS)


def smaller(w: Series, u: Series, v: Series) -> Coefficients:
    """fmin(u, v)."""
    return _one_of(u, v, u, v)


def larger(w: Series, u: Series, v: Series) -> Coefficients:
    """fmax(u, v)."""
    return _one_of(u, v, v, u)


def _one_of(u: Series, v: Series, low: Series, high: Series) -> Coefficients:
    """Of u where low < high, of v where low > high, the mean of both where they are equal."""
    less = binary(ca.OP_LT, low[0], high[0])
    more = binary(ca.OP_LT, high[0], low[0])
    equal = binary(ca.OP_EQ, low[0], high[0])
    for k in _ORDERS:
        mean = where(equal, times(0.5, add(u[k], v[k])))
        yield add(add(where(less, u[k]), where(more, v[k])), mean)


def remainder(w: Series, u: Series, v: Series) -> Coefficients:
    """fmod(u, v) and remainder(u, v): u - n v with an integer n."""
    turns = None
    for k in _ORDERS:
        if turns is None and v[k] is not None:
            turns = divide(binary(ca.OP_SUB, u[0], w[0]), v[0])
        yield subtract(u[k], multiply(turns, v[k]))
