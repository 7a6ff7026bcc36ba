"""Recurrences of exponential, logarithm, circular, hyperbolic, error functions and their inverses; see elementary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import casadi as ca

from .coefficients import (
    Series,
    add,
    along_at,
    binary,
    divide,
    negative,
    square_at,
    subtract,
    times,
    unary,
)

Coefficients = Iterator[Any]
_ORDERS = range(1, 10**9)


# -- exponential and logarithm --------------------------------------------------------------------------------------


def exponential(w: Series, u: Series) -> Coefficients:
    """exp(u): w' = w u'."""
    return (along_at(u, w, k) for k in _ORDERS)


def exponential_less_one(w: Series, u: Series) -> Coefficients:
    """exp(u) - 1: w' = exp(u) u'."""
    own = Series([unary(ca.OP_EXP, u[0])])
    for k in _ORDERS:
        own.append(along_at(u, own, k))
        yield own[k]


def logarithm(w: Series, u: Series) -> Coefficients:
    """log(u): u w' = u'."""
    return (_quotient_at(w, u, u[k], k) for k in _ORDERS)


def logarithm_of_one_more(w: Series, u: Series) -> Coefficients:
    """log(1 + u)."""
    whole = Series([binary(ca.OP_ADD, type(u[0])(1), u[0])])
    for k in _ORDERS:
        whole.append(u[k])
        yield _quotient_at(w, whole, u[k], k)


def _quotient_at(w: Series, z: Series, x: Any, k: int) -> Any:
    """Coefficient k of w with z w' = x' : (x_k - sum_(j<k) j w_j z_(k-j) / k) / z_0."""
    return divide(subtract(x, along_at(w, z, k, 1)), z[0])


# -- circular and hyperbolic functions ------------------------------------------------------------------------------


class _Pair:
    """Two series with a' = b u' and b' = sign a u', which one instruction makes and others read."""

    def __init__(self, u: Series, a: int, b: int, sign: int) -> None:
        self.u, self.sign = u, sign
        self.a, self.b = Series([unary(a, u[0])]), Series([unary(b, u[0])])

    def upto(self, k: int) -> _Pair:
        for n in range(len(self.a), k + 1):
            a, b = along_at(self.u, self.b, n), along_at(self.u, self.a, n)
            self.a.append(a)
            self.b.append(b if self.sign > 0 else negative(b))
        return self


def _circular(u: Series) -> _Pair:
    return u.shared.setdefault("circular", _Pair(u, ca.OP_SIN, ca.OP_COS, -1))


def _hyperbolic(u: Series) -> _Pair:
    return u.shared.setdefault("hyperbolic", _Pair(u, ca.OP_SINH, ca.OP_COSH, 1))


def sine(w: Series, u: Series) -> Coefficients:
    """sin(u)."""
    return (_circular(u).upto(k).a[k] for k in _ORDERS)


def cosine(w: Series, u: Series) -> Coefficients:
    """cos(u)."""
    return (_circular(u).upto(k).b[k] for k in _ORDERS)


def hyperbolic_sine(w: Series, u: Series) -> Coefficients:
    """sinh(u)."""
    return (_hyperbolic(u).upto(k).a[k] for k in _ORDERS)


def hyperbolic_cosine(w: Series, u: Series) -> Coefficients:
    """cosh(u)."""
    return (_hyperbolic(u).upto(k).b[k] for k in _ORDERS)


def tangent(w: Series, u: Series) -> Coefficients:
    """tan(u): w' = (1 + w^2) u'."""
    return _of_own_square(w, u, 1)


def hyperbolic_tangent(w: Series, u: Series) -> Coefficients:
    """tanh(u): w' = (1 - w^2) u'."""
    return _of_own_square(w, u, -1)


def _of_own_square(w: Series, u: Series, sign: int) -> Coefficients:
    one = type(w[0])(1)
    z = Series([binary(ca.OP_ADD if sign > 0 else ca.OP_SUB, one, unary(ca.OP_SQ, w[0]))])
    for k in _ORDERS:
        found = along_at(u, z, k)
        yield found
        squared = square_at(w, k)  # with w_k, which is there by now
        z.append(squared if sign > 0 else negative(squared))


def arc_sine(w: Series, u: Series) -> Coefficients:
    """asin(u): z w' = u', z = cos(w), z' = -u w'."""
    one = type(u[0])(1)
    inside = binary(ca.OP_MUL, binary(ca.OP_SUB, one, u[0]), binary(ca.OP_ADD, one, u[0]))  # 1 - u^2 near one, too
    return _by_its_slope(w, u, unary(ca.OP_SQRT, inside), 1, -1)


def arc_cosine(w: Series, u: Series) -> Coefficients:
    """acos(u): z w' = -u', z = sin(w), z' = u w'."""
    one = type(u[0])(1)
    inside = binary(ca.OP_MUL, binary(ca.OP_SUB, one, u[0]), binary(ca.OP_ADD, one, u[0]))
    return _by_its_slope(w, u, unary(ca.OP_SQRT, inside), -1, 1)


def inverse_hyperbolic_sine(w: Series, u: Series) -> Coefficients:
    """asinh(u): z w' = u', z = cosh(w), z' = u w'."""
    inside = binary(ca.OP_ADD, unary(ca.OP_SQ, u[0]), type(u[0])(1))
    return _by_its_slope(w, u, unary(ca.OP_SQRT, inside), 1, 1)


def inverse_hyperbolic_cosine(w: Series, u: Series) -> Coefficients:
    """acosh(u): z w' = u', z = sinh(w), z' = u w'."""
    one = type(u[0])(1)
    inside = binary(ca.OP_MUL, binary(ca.OP_SUB, u[0], one), binary(ca.OP_ADD, u[0], one))
    return _by_its_slope(w, u, unary(ca.OP_SQRT, inside), 1, 1)


def _by_its_slope(w: Series, u: Series, first: Any, sign: int, z_sign: int) -> Coefficients:
    z = Series([first])
    for k in _ORDERS:
        yield _quotient_at(w, z, u[k] if sign > 0 else negative(u[k]), k)
        slope = along_at(w, u, k)
        z.append(slope if z_sign > 0 else negative(slope))


def arc_tangent(w: Series, u: Series) -> Coefficients:
    """atan(u): (1 + u^2) w' = u'."""
    z = Series([binary(ca.OP_ADD, type(u[0])(1), unary(ca.OP_SQ, u[0]))])
    for k in _ORDERS:
        yield _quotient_at(w, z, u[k], k)
        z.append(square_at(u, k))


def inverse_hyperbolic_tangent(w: Series, u: Series) -> Coefficients:
    """atanh(u): (1 - u^2) w' = u'."""
    one = type(u[0])(1)
    z = Series([binary(ca.OP_MUL, binary(ca.OP_SUB, one, u[0]), binary(ca.OP_ADD, one, u[0]))])
    for k in _ORDERS:
        yield _quotient_at(w, z, u[k], k)
        z.append(negative(square_at(u, k)))


def arc_tangent_of_two(w: Series, y: Series, x: Series) -> Coefficients:
    """atan2(y, x): (x^2 + y^2) w' = x y' - y x'."""
    z = Series([binary(ca.OP_ADD, unary(ca.OP_SQ, x[0]), unary(ca.OP_SQ, y[0]))])
    for k in _ORDERS:
        turned = subtract(along_at(y, x, k), along_at(x, y, k))
        yield _quotient_at(w, z, turned, k)
        z.append(add(square_at(x, k), square_at(y, k)))


# -- error function -------------------------------------------------------------------------------------------------


def error_function(w: Series, u: Series) -> Coefficients:
    """erf(u): w' = 2/sqrt(pi) exp(-u^2) u'."""
    bell = Series([times(2 / math.sqrt(math.pi), unary(ca.OP_EXP, unary(ca.OP_NEG, unary(ca.OP_SQ, u[0]))))])
    below = Series([unary(ca.OP_NEG, unary(ca.OP_SQ, u[0]))])
    for k in _ORDERS:
        yield along_at(u, bell, k)
        below.append(negative(square_at(u, k)))
        bell.append(along_at(below, bell, k))


def inverse_error_function(w: Series, u: Series) -> Coefficients:
    """erfinv(u): w' = sqrt(pi)/2 exp(w^2) u'."""
    squared = Series([unary(ca.OP_SQ, w[0])])
    slope = Series([times(math.sqrt(math.pi) / 2, unary(ca.OP_EXP, squared[0]))])
    for k in _ORDERS:
        yield along_at(u, slope, k)
        squared.append(square_at(w, k))
        slope.append(along_at(squared, slope, k))
