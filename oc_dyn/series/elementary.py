"""Taylor coefficients of every operation of scalar CasADi expressions, from those of its operands.

A recurrence is a generator (w, *operands) of the coefficients 1, 2, ... of its result w, whose coefficient 0 is
CasADi's own; whoever runs it appends them to w, and coefficient k to all operands before it asks for that of w.

Sources: Griewank and Walther, Evaluating Derivatives, 2nd ed. 2008, section 13.2 (tables 13.1 and 13.2), and the same
argument for what they leave out: w' = f'(u) u', with a recurrence for f'(u).

Steps and kinks: derivatives are those of the branch in which the value lies, as CasADi's AD takes them: zero of floor,
sign and comparisons, the mean of both at a tie of fmin and fmax, zero of fabs at zero. Where a derivative does not
exist (of sqrt and log at zero, of pow from the order of a broken exponent on, of asin at one), coefficients are not
finite; where the expression does not change whatever the numbers are, they are zero even there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import casadi as ca

from .coefficients import (
    Series,
    add,
    along_at,
    binary,
    divide,
    multiply,
    negative,
    over,
    product_at,
    square_at,
    subtract,
    times,
    unary,
    where,
)

Coefficients = Iterator[Any]
_ORDERS = range(1, 10**9)


# -- arithmetic -----------------------------------------------------------------------------------------------------


def same(w: Series, u: Series, *_: Series) -> Coefficients:
    """The operand itself."""
    return (u[k] for k in _ORDERS)


def constant(w: Series, *_: Series) -> Coefficients:
    """What does not change but by steps."""
    return (None for _ in _ORDERS)


def sum_(w: Series, u: Series, v: Series) -> Coefficients:
    """u + v."""
    return (add(u[k], v[k]) for k in _ORDERS)


def difference(w: Series, u: Series, v: Series) -> Coefficients:
    """u - v."""
    return (subtract(u[k], v[k]) for k in _ORDERS)


def opposite(w: Series, u: Series) -> Coefficients:
    """-u."""
    return (negative(u[k]) for k in _ORDERS)


def twice(w: Series, u: Series) -> Coefficients:
    """2 u."""
    return (None if u[k] is None else unary(ca.OP_TWICE, u[k]) for k in _ORDERS)


def product(w: Series, u: Series, v: Series) -> Coefficients:
    """u v."""
    return square(w, u) if u is v else (product_at(u, v, k) for k in _ORDERS)


def square(w: Series, u: Series) -> Coefficients:
    """u^2."""
    return (square_at(u, k) for k in _ORDERS)


def quotient(w: Series, u: Series, v: Series) -> Coefficients:
    """u / v: w v = u."""
    return (divide(subtract(u[k], product_at(v, w, k, 1)), v[0]) for k in _ORDERS)


def inverse(w: Series, u: Series) -> Coefficients:
    """1 / u."""
    return (negative(multiply(product_at(u, w, k, 1), w[0])) for k in _ORDERS)


def root(w: Series, u: Series) -> Coefficients:
    """sqrt(u): w^2 = u."""
    double = None
    for k in _ORDERS:
        rest = subtract(u[k], square_at(w, k, 1))
        double = times(2, w[0]) if double is None and rest is not None else double
        yield divide(rest, double)


def hypotenuse(w: Series, u: Series, v: Series) -> Coefficients:
    """sqrt(u^2 + v^2)."""
    double = None
    for k in _ORDERS:
        rest = subtract(add(square_at(u, k), square_at(v, k)), square_at(w, k, 1))
        double = times(2, w[0]) if double is None and rest is not None else double
        yield divide(rest, double)


def power(w: Series, u: Series, v: Series) -> Coefficients:
    """u^v: by products where v is an integer number, so that u may be zero or negative."""
    exponent, of_changing = _number(v[0]), None
    fixed = _power_of_fixed(w, u, v[0], exponent)
    for k in _ORDERS:
        if of_changing is None and v[k] is not None:
            of_changing = _power_of_changing(w, u, v)
            for _ in range(1, k):
                next(of_changing)
        yield next(fixed if of_changing is None else of_changing)


_LARGEST = 64  # exponent by products


def _power_of_fixed(w: Series, u: Series, c: Any, exponent: float | None) -> Coefficients:
    if exponent == 0.5:
        return root(w, u)
    if exponent is not None and exponent == round(exponent) and abs(exponent) <= _LARGEST:
        return _integer_power(w, u, int(exponent))
    return (_power_at(w, u, c, exponent, k) for k in _ORDERS)


def _number(x: Any) -> float | None:
    """The number that an expression is, None if it is none."""
    if not (isinstance(x, (ca.SX, ca.MX)) and x.is_constant() and x.is_scalar()):
        return None
    return float(x if isinstance(x, ca.SX) else x.to_DM())


def _integer_power(w: Series, u: Series, n: int) -> Coefficients:
    if n == 0:
        yield from constant(w)
    steps: list[tuple[Series, Coefficients]] = []  # u, u^2, u^4, ..., and products of those that count

    def followed(first: Any, recurrence: Callable[..., Coefficients], *of: Series) -> Series:
        made = Series([first])
        steps.append((made, recurrence(made, *of)))
        return made

    whole, factor, rest = None, u, abs(n)
    while True:
        if rest % 2:
            whole = factor if whole is None else followed(multiply(whole[0], factor[0]), product, whole, factor)
        rest //= 2
        if not rest:
            break
        factor = followed(unary(ca.OP_SQ, factor[0]), square, factor)
    assert whole is not None
    last = inverse(w, whole) if n < 0 else same(w, whole)
    for _ in _ORDERS:
        for made, recurrence in steps:
            made.append(next(recurrence))
        yield next(last)


def _power_at(w: Series, u: Series, c: Any, exponent: float | None, k: int) -> Any:
    """u w' = c u' w: k u_0 w_k = sum_j (c j - (k - j)) u_j w_(k-j); zero where u_0 = 0 and c > k."""
    terms = None
    for j in range(1, k + 1):
        if u[j] is not None and w[k - j] is not None:
            factor = binary(ca.OP_SUB, times(j, c), type(c)(k - j)) if k > j else times(j, c)
            terms = add(terms, multiply(multiply(factor, u[j]), w[k - j]))
    if terms is None:
        return None
    found, number = divide(over(terms, k), u[0]), type(c)
    if exponent is not None:
        return where(binary(ca.OP_NE, u[0], number(0)), found) if exponent > k else found
    exists = binary(ca.OP_OR, binary(ca.OP_NE, u[0], number(0)), binary(ca.OP_LE, c, number(k)))
    return where(exists, found)


def _power_of_changing(w: Series, u: Series, v: Series) -> Coefficients:
    """exp(v log u)."""
    log = Series([unary(ca.OP_LOG, u[0])])
    exponent = Series([multiply(v[0], log[0])])
    steps = [(log, logarithm(log, u)), (exponent, product(exponent, v, log))]
    last = exponential(w, exponent)
    for _ in _ORDERS:
        for made, recurrence in steps:
            made.append(next(recurrence))
        yield next(last)


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


# -- kinks and steps ------------------------------------------------------------------------------------------------


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


# -- all of them ----------------------------------------------------------------------------------------------------

RECURRENCES: dict[int, Callable[..., Coefficients]] = {
    ca.OP_ASSIGN: same,
    ca.OP_LIFT: same,
    ca.OP_PRINTME: same,
    ca.OP_ADD: sum_,
    ca.OP_SUB: difference,
    ca.OP_NEG: opposite,
    ca.OP_TWICE: twice,
    ca.OP_MUL: product,
    ca.OP_SQ: square,
    ca.OP_DIV: quotient,
    ca.OP_INV: inverse,
    ca.OP_SQRT: root,
    ca.OP_HYPOT: hypotenuse,
    ca.OP_POW: power,
    ca.OP_CONSTPOW: power,
    ca.OP_EXP: exponential,
    ca.OP_EXPM1: exponential_less_one,
    ca.OP_LOG: logarithm,
    ca.OP_LOG1P: logarithm_of_one_more,
    ca.OP_SIN: sine,
    ca.OP_COS: cosine,
    ca.OP_TAN: tangent,
    ca.OP_ASIN: arc_sine,
    ca.OP_ACOS: arc_cosine,
    ca.OP_ATAN: arc_tangent,
    ca.OP_ATAN2: arc_tangent_of_two,
    ca.OP_SINH: hyperbolic_sine,
    ca.OP_COSH: hyperbolic_cosine,
    ca.OP_TANH: hyperbolic_tangent,
    ca.OP_ASINH: inverse_hyperbolic_sine,
    ca.OP_ACOSH: inverse_hyperbolic_cosine,
    ca.OP_ATANH: inverse_hyperbolic_tangent,
    ca.OP_ERF: error_function,
    ca.OP_ERFINV: inverse_error_function,
    ca.OP_FABS: magnitude,
    ca.OP_COPYSIGN: signed_as,
    ca.OP_IF_ELSE_ZERO: selected,
    ca.OP_FMIN: smaller,
    ca.OP_FMAX: larger,
    ca.OP_FMOD: remainder,
    ca.OP_REMAINDER: remainder,
    **dict.fromkeys((ca.OP_FLOOR, ca.OP_CEIL, ca.OP_SIGN, ca.OP_NOT, ca.OP_AND, ca.OP_OR), constant),
    **dict.fromkeys((ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE), constant),
}
