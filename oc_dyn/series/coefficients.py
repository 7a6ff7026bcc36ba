"""Taylor coefficients of one value along a curve, casadi expressions x_k of x(t) = x_0 + x_1 t + x_2 t^2 + ...

None is a coefficient that is zero whatever the numbers are; nothing is computed with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import casadi as ca


class Series(list[Any]):
    """[x_0, x_1, ...], which grows; `shared` holds what several operations on it have in common, by name."""

    def __init__(self, coefficients: Iterable[Any] = ()) -> None:
        super().__init__(coefficients)
        self.shared: dict[str, Any] = {}
        self._rates: list[Any] = [None]

    def rate(self, k: int) -> Any:
        """k x_k, k >= 1: coefficient k - 1 of the time derivative."""
        while len(self._rates) <= k:
            self._rates.append(times(len(self._rates), self[len(self._rates)]))
        return self._rates[k]


class Fixed(Series):
    """Of a value that does not change."""

    def __init__(self, value: Any) -> None:
        super().__init__([value])

    def __getitem__(self, k: Any) -> Any:
        return None if k else super().__getitem__(0)


def binary(operation: int, x: Any, y: Any) -> Any:
    """casadi's operation of two values of one kind."""
    return type(x).binary(operation, x, y)


def unary(operation: int, x: Any) -> Any:
    """casadi's operation of a value."""
    return type(x).unary(operation, x)


def add(x: Any, y: Any) -> Any:
    """x + y."""
    return y if x is None else x if y is None else binary(ca.OP_ADD, x, y)


def subtract(x: Any, y: Any) -> Any:
    """x - y."""
    return x if y is None else negative(y) if x is None else binary(ca.OP_SUB, x, y)


def negative(x: Any) -> Any:
    """-x."""
    return None if x is None else unary(ca.OP_NEG, x)


def multiply(x: Any, y: Any) -> Any:
    """x y, entry by entry."""
    return None if x is None or y is None else binary(ca.OP_MUL, x, y)


def divide(x: Any, y: Any) -> Any:
    """x / y, y not None."""
    return None if x is None else binary(ca.OP_DIV, x, y)


def times(number: float, x: Any) -> Any:
    """number x."""
    return x if x is None or number == 1 else binary(ca.OP_MUL, type(x)(number), x)


def over(x: Any, number: float) -> Any:
    """x / number."""
    return x if x is None or number == 1 else negative(x) if number == -1 else binary(ca.OP_DIV, x, type(x)(number))


def where(condition: Any, x: Any) -> Any:
    """x where the condition holds, 0 elsewhere, whatever x is there: infinite or not a number."""
    return None if x is None else binary(ca.OP_IF_ELSE_ZERO, condition, x)


def total(terms: Iterable[Any]) -> Any:
    """Their sum."""
    out = None
    for x in terms:
        out = add(out, x)
    return out


def product_at(u: list[Any], v: list[Any], k: int, first: int = 0) -> Any:
    """Coefficient k of u v; first: without the terms of u_j, j < first."""
    return total(multiply(u[j], v[k - j]) for j in range(first, k + 1))


def square_at(u: list[Any], k: int, first: int = 0) -> Any:
    """Coefficient k of u^2; equal products are taken once. first: 1 for what it is without 2 u_0 u_k."""
    pairs = total(multiply(u[j], u[k - j]) for j in range(first, (k + 1) // 2))
    middle = u[k // 2] if k % 2 == 0 and k // 2 >= first else None
    return add(times(2, pairs), None if middle is None else unary(ca.OP_SQ, middle))


def along_at(u: Series, v: list[Any], k: int, least: int = 0) -> Any:
    """Coefficient k of a w with w' = v u': sum_j j u_j v_(k-j) / k; least: without the terms of v_i, i < least."""
    return over(total(multiply(u.rate(j), v[k - j]) for j in range(1, k + 1 - least)), k)
