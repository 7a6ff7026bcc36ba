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

from collections.abc import Callable, Iterator
from typing import Any

import casadi as ca

from .coefficients import (
    Series,
    add,
    binary,
    divide,
    multiply,
    negative,
    over,
    product_at,
    square_at,
    subtract,
    times,
    total,
    unary,
    where,
)
from .kinks import larger, magnitude, remainder, selected, signed_as, smaller
from .transcendental import (
    arc_cosine,
    arc_sine,
    arc_tangent,
    arc_tangent_of_two,
    cosine,
    error_function,
    exponential,
    exponential_less_one,
    hyperbolic_cosine,
    hyperbolic_sine,
    hyperbolic_tangent,
    inverse_error_function,
    inverse_hyperbolic_cosine,
    inverse_hyperbolic_sine,
    inverse_hyperbolic_tangent,
    logarithm,
    logarithm_of_one_more,
    sine,
    tangent,
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
    """u^v: by products where v is an integer number, and by powers of the change of u as long as v does not change, so
    that u may be zero or negative."""
    fixed, moves, of_changing = _power_of_fixed(w, u, v[0]), None, None
    for k in _ORDERS:
        found = next(fixed)
        if v[k] is not None:
            now = binary(ca.OP_NE, v[k], type(v[k])(0))
            moves = now if moves is None else binary(ca.OP_OR, moves, now)
        if moves is None:
            yield found
            continue
        if of_changing is None:
            of_changing = _power_of_changing(w, u, v)
            for _ in range(1, k):
                next(of_changing)
        yield add(where(unary(ca.OP_NOT, moves), found), where(moves, next(of_changing)))


_LARGEST = 170  # exponent by products, and order


def _power_of_fixed(w: Series, u: Series, c: Any) -> Coefficients:
    exponent = _number(c)
    if exponent is None:
        return _power_by_changes(u, c)
    if exponent == 0.5:
        return root(w, u)
    if exponent == round(exponent) and abs(exponent) <= _LARGEST:
        return _integer_power(w, u, int(exponent))
    return (_power_at(w, u, c, exponent, k) for k in _ORDERS)


def _power_by_changes(u: Series, c: Any) -> Coefficients:
    """Sum over j of binomial(c, j) u_0^(c-j) (u - u_0)^j: exact where u_0 is zero and c an integer, as terms whose
    binomial is zero are left out."""
    changes: list[Series] = [Series([None])]  # (u - u_0)^j, j = 1, 2, ...
    factors: list[Any] = []
    chosen = type(c)(1)
    for k in _ORDERS:
        chosen = over(multiply(chosen, binary(ca.OP_SUB, c, type(c)(k - 1))), k)
        slope = binary(ca.OP_POW, u[0], binary(ca.OP_SUB, c, type(c)(k)))
        factors.append(where(binary(ca.OP_NE, chosen, type(c)(0)), multiply(chosen, slope)))
        changes[0].append(u[k])
        for j in range(1, len(changes)):
            changes[j].append(product_at(changes[0], changes[j - 1], k))
        changes.append(Series([None] * (k + 1)))
        yield total(None if x[k] is None else multiply(f, x[k]) for f, x in zip(factors, changes, strict=False))


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


def _power_at(w: Series, u: Series, c: Any, exponent: float, k: int) -> Any:
    """u w' = c u' w: k u_0 w_k = sum_j (c j - (k - j)) u_j w_(k-j); zero where u_0 = 0 and c > k."""
    terms = None
    for j in range(1, k + 1):
        if u[j] is not None and w[k - j] is not None:
            factor = binary(ca.OP_SUB, times(j, c), type(c)(k - j)) if k > j else times(j, c)
            terms = add(terms, multiply(multiply(factor, u[j]), w[k - j]))
    if terms is None:
        return None
    found = divide(over(terms, k), u[0])
    return where(binary(ca.OP_NE, u[0], type(c)(0)), found) if exponent > k else found


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
