"""Bounds of the outputs of a Function of scalars from bounds of its inputs, operation by operation: rough, never too
narrow. Source: Moore, Kearfott, Cloud, Introduction to Interval Analysis, 2009, chapter 5."""

import math

import casadi as ca
import numpy as np

ALL = (-math.inf, math.inf)
_INCREASING = {  # operation: (function, where it is defined)
    ca.OP_EXP: (math.exp, ALL), ca.OP_LOG: (math.log, (0.0, math.inf)), ca.OP_SQRT: (math.sqrt, (0.0, math.inf)),
    ca.OP_ATAN: (math.atan, ALL), ca.OP_SINH: (math.sinh, ALL), ca.OP_TANH: (math.tanh, ALL),
    ca.OP_ASIN: (math.asin, (-1.0, 1.0)), ca.OP_ASINH: (math.asinh, ALL), ca.OP_FLOOR: (math.floor, ALL),
    ca.OP_CEIL: (math.ceil, ALL), ca.OP_ERF: (math.erf, ALL),
}  # fmt: skip
_TRUTHS = (ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR)


def bounds_of(f, boxes):
    """[(lower, upper) (n,)] of the outputs of an SX Function from [(lower, upper)] of its inputs."""
    work, out = {}, [(np.zeros(f.nnz_out(i)), np.zeros(f.nnz_out(i))) for i in range(f.n_out())]
    for k in range(f.n_instructions()):
        op, target, given = f.instruction_id(k), f.instruction_output(k), f.instruction_input(k)
        if op == ca.OP_INPUT:
            lower, upper = boxes[given[0]]
            work[target[0]] = float(lower[given[1]]), float(upper[given[1]])
        elif op == ca.OP_OUTPUT:
            for side, value in zip(out[target[0]], work[given[0]], strict=True):
                side[target[1]] = value
        elif op == ca.OP_CONST:
            value = float(f.instruction_constant(k))
            work[target[0]] = ALL if math.isnan(value) else (value, value)
        elif target:
            same = len(given) == 2 and given[0] == given[1]
            parts = [work[i] for i in given]
            found = ALL  # of calls of Functions and of operations that are not known
            if len(target) == 1 and 0 < len(parts) < 3 and op != ca.OP_CALL:
                found = _square(*parts[0]) if same and op == ca.OP_MUL else _applied(op, *parts)
            for i in (i for i in target if i >= 0):
                work[i] = ALL if any(map(math.isnan, found)) else found
    return out


def _applied(op, a, b=(0.0, 0.0)):
    """Bounds of an operation."""
    if op in _INCREASING:
        return _increasing(*_INCREASING[op], *a)
    if op in _TRUTHS:
        return 0.0, 1.0
    if op in _PLAIN:
        return _PLAIN[op](a, b)
    if op in (ca.OP_POW, ca.OP_CONSTPOW):
        return _power(a, b)
    if op in (ca.OP_SIN, ca.OP_COS):
        return _wave(a, 0.0 if op == ca.OP_COS else math.pi / 2)
    return ALL


def _increasing(function, defined, lower, upper):
    lower, upper = max(lower, defined[0]), min(upper, defined[1])
    if lower > upper:
        return ALL
    try:
        low = -math.inf if function is math.log and lower == 0 else function(lower)
    except (ValueError, OverflowError):
        low = -math.inf
    try:
        return low, function(upper)
    except (ValueError, OverflowError):
        return low, math.inf


def _times(x, y):
    return 0.0 if x == 0 or y == 0 else x * y  # what is not bounded is a finite number all the same


def _product(a, b):
    ends = [_times(x, y) for x in a for y in b]
    return min(ends), max(ends)


def _inverse(a):
    if a[0] <= 0 <= a[1]:
        return ALL
    return 1 / a[1], 1 / a[0]


def _square(lower, upper):
    ends = lower * lower, upper * upper
    return (0.0 if lower <= 0 <= upper else min(ends)), max(ends)


def _power(a, b):
    if b[0] != b[1]:
        return ALL
    p = b[0]
    if p == int(p) and 0 <= p <= 64:
        ends = [_raised(x, int(p)) for x in a]
        if int(p) % 2:
            return ends[0], ends[1]
        return (0.0 if a[0] <= 0 <= a[1] and p else min(ends)), max(ends)
    if a[0] > 0 and p > 0:
        return _raised(a[0], p), _raised(a[1], p)
    return ALL


def _raised(x, p):
    try:
        return x**p
    except OverflowError:
        return math.copysign(math.inf, x) if int(p) % 2 else math.inf


def _wave(a, shift):
    """Bounds of the cosine of a less a shift."""
    lower, upper = a[0] - shift, a[1] - shift
    if not upper - lower < 2 * math.pi:
        return -1.0, 1.0
    ends = math.cos(lower), math.cos(upper)
    top = math.ceil(lower / (2 * math.pi)) * 2 * math.pi <= upper
    bottom = math.ceil((lower - math.pi) / (2 * math.pi)) * 2 * math.pi + math.pi <= upper
    return -1.0 if bottom else min(ends), 1.0 if top else max(ends)


def _difference(a, b):
    return a[0] - b[1], a[1] - b[0]


_PLAIN = {
    ca.OP_ASSIGN: lambda a, b: a,
    ca.OP_ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    ca.OP_SUB: _difference,
    ca.OP_MUL: _product,
    ca.OP_DIV: lambda a, b: _product(a, _inverse(b)) if not b[0] <= 0 <= b[1] else ALL,
    ca.OP_INV: lambda a, b: _inverse(a),
    ca.OP_NEG: lambda a, b: (-a[1], -a[0]),
    ca.OP_TWICE: lambda a, b: (2 * a[0], 2 * a[1]),
    ca.OP_SQ: lambda a, b: _square(*a),
    ca.OP_FABS: lambda a, b: (0.0 if a[0] <= 0 <= a[1] else min(map(abs, a)), max(map(abs, a))),
    ca.OP_FMIN: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    ca.OP_FMAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    ca.OP_IF_ELSE_ZERO: lambda a, b: (min(0.0, b[0]), max(0.0, b[1])),
    ca.OP_COSH: lambda a, b: (1.0, math.inf),
}
