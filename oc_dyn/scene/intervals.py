"""Bounds of casadi Functions of one number over intervals, by interval arithmetic on their instructions.

Every instruction of an SX Function maps intervals to an interval that holds all results (Moore 1966), for many
intervals at once. Results hold up to rounding. Of instructions without such a map, those with kinks and jumps among
them, and of Functions that are no SX inside, samples have to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

from ..types import Array

Interval: TypeAlias = tuple[Array, Array]  # lower and upper ends (K,)

_SAMPLES, _FACTOR = 17, 2.0  # of an interval; what the largest sample is multiplied by


class CurveBounds:
    """A Function t (1, 1) -> x with its first two derivatives. proven: whether bounds come from interval arithmetic,
    not from samples."""

    def __init__(self, f: ca.Function) -> None:
        f = _expanded(f)
        kind: Any = ca.SX if f.is_a("SXFunction") else ca.MX
        t = kind.sym("t")
        x = ca.densify(ca.vec(f(t)))
        dx = ca.densify(ca.jacobian(x, t))
        ddx = ca.densify(ca.jacobian(dx, t))
        self._values = ca.Function("values", [t], [x, dx])
        self._second = ca.Function("second", [t], [ddx])
        try:
            everything = ca.Function("all", [t], [x, dx, ddx])
            enclosure(everything, np.zeros(1), np.ones(1))
            self.proven = True
        except NotImplementedError:
            self.proven = False

    def at(self, t: Array) -> tuple[Array, Array]:
        """Values and first derivatives (K, m) at times (K,)."""
        x, dx = self._values(t[None, :])
        return x.full().T, dx.full().T

    def largest(self, t: Array, h: Array) -> Array:
        """(K, m) bounds of the sizes of the second derivatives on [t - h, t + h]; infinite where there are none."""
        if self.proven:
            low, high = enclosure(self._second, t - h, t + h)
            size = np.maximum(np.abs(low), np.abs(high)).T
        else:
            share = np.linspace(-1.0, 1.0, _SAMPLES)
            times = (t[:, None] + h[:, None] * share).ravel()
            found = self._second(times[None, :]).full().T.reshape(len(t), _SAMPLES, -1)
            size = _FACTOR * np.abs(found).max(axis=1)
        return np.where(np.isfinite(size), size, np.inf)


def _expanded(f: ca.Function) -> ca.Function:
    """As an SX Function where that can be."""
    try:
        return f.expand()
    except RuntimeError:
        return f


def enclosure(f: ca.Function, low: Array, high: Array) -> Interval:
    """Intervals (m, K) that hold the outputs, one after the other, of an SX Function of one number on [low, high].

    Raises NotImplementedError for other Functions, and for instructions that no interval is known of.
    """
    if not f.is_a("SXFunction"):
        raise NotImplementedError("no SX Function")
    K = len(low)
    work: list[Any] = [None] * f.sz_w()
    sizes = [f.nnz_out(k) for k in range(f.n_out())]
    if any(f.nnz_out(k) != f.numel_out(k) for k in range(f.n_out())):
        raise NotImplementedError("sparse outputs")
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    out = np.zeros((2, start[-1], K))
    with np.errstate(all="ignore"):
        for k in range(f.n_instructions()):
            op, a, b = f.instruction_id(k), f.instruction_input(k), f.instruction_output(k)
            if op == ca.OP_OUTPUT:
                out[:, start[b[0]] + b[1]] = work[a[0]]
            elif op == ca.OP_INPUT:
                work[b[0]] = (low, high)
            elif op == ca.OP_CONST:
                work[b[0]] = (np.full(K, f.instruction_constant(k)),) * 2
            elif op in _OPERATIONS:
                same = len(a) == 2 and a[0] == a[1]
                work[b[0]] = _known(
                    _SAME[op](work[a[0]]) if same and op in _SAME else _OPERATIONS[op](*(work[i] for i in a))
                )
            else:
                raise NotImplementedError(f"operation {op}")
    return out[0], out[1]


def _known(x: Interval) -> Interval:
    """With ends that are no numbers, as of roots of what may be negative, made infinite."""
    return np.where(np.isnan(x[0]), -np.inf, x[0]), np.where(np.isnan(x[1]), np.inf, x[1])


def _hull(*values: Array) -> Interval:
    """From the smallest to the largest; all numbers where one is none, as infinity times zero."""
    unknown = np.any(np.isnan(values), axis=0)
    low, high = np.min(values, axis=0), np.max(values, axis=0)
    return np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)


def _times(x: Interval, y: Interval) -> Interval:
    return _hull(x[0] * y[0], x[0] * y[1], x[1] * y[0], x[1] * y[1])


def _inverse(x: Interval) -> Interval:
    through = (x[0] <= 0) & (x[1] >= 0)
    return np.where(through, -np.inf, 1 / x[1]), np.where(through, np.inf, 1 / x[0])


def _square(x: Interval) -> Interval:
    low, high = _hull(x[0] ** 2, x[1] ** 2)
    return np.where((x[0] <= 0) & (x[1] >= 0), 0.0, low), high


def _rising(f: Callable[[Array], Array]) -> Callable[[Interval], Interval]:
    return lambda x: (f(x[0]), f(x[1]))


def _cosine(x: Interval) -> Interval:
    low, high = _hull(np.cos(x[0]), np.cos(x[1]))
    turn = 2 * np.pi
    top = np.ceil(x[0] / turn) * turn <= x[1]
    bottom = np.ceil((x[0] - np.pi) / turn) * turn + np.pi <= x[1]
    return np.where(bottom, -1.0, low), np.where(top, 1.0, high)


def _sine(x: Interval) -> Interval:
    return _cosine((x[0] - np.pi / 2, x[1] - np.pi / 2))


def _tangent(x: Interval) -> Interval:
    pole = np.floor(x[0] / np.pi + 0.5) != np.floor(x[1] / np.pi + 0.5)
    return np.where(pole, -np.inf, np.tan(x[0])), np.where(pole, np.inf, np.tan(x[1]))


def _even(f: Callable[[Array], Array]) -> Callable[[Interval], Interval]:
    """Of an even function that rises from 0 on."""

    def of(x: Interval) -> Interval:
        low, high = _hull(f(x[0]), f(x[1]))
        return np.where((x[0] <= 0) & (x[1] >= 0), f(np.zeros_like(x[0])), low), high

    return of


def _power(x: Interval, y: Interval) -> Interval:
    """Of exponents that are one number; of bases that may be below zero, whole ones alone."""
    p = y[0][0] if len(y[0]) else 1.0
    if np.any(y[0] != p) or np.any(y[1] != p):
        raise NotImplementedError("powers that vary")
    if p < 0:
        return _inverse(_power(x, (-y[0], -y[1])))
    if p == np.round(p) and p % 2 == 0:
        return _even(lambda z: z**p)(x)
    return x[0] ** p, x[1] ** p  # nan below zero where the exponent is no whole number


_OPERATIONS: dict[int, Callable[..., Interval]] = {
    ca.OP_ASSIGN: lambda x: x,
    ca.OP_ADD: lambda x, y: (x[0] + y[0], x[1] + y[1]),
    ca.OP_SUB: lambda x, y: (x[0] - y[1], x[1] - y[0]),
    ca.OP_MUL: _times,
    ca.OP_DIV: lambda x, y: _times(x, _inverse(y)),
    ca.OP_NEG: lambda x: (-x[1], -x[0]),
    ca.OP_TWICE: lambda x: (2 * x[0], 2 * x[1]),
    ca.OP_INV: _inverse,
    ca.OP_SQ: _square,
    ca.OP_SQRT: _rising(np.sqrt),
    ca.OP_EXP: _rising(np.exp),
    ca.OP_LOG: _rising(np.log),
    ca.OP_LOG1P: _rising(np.log1p),
    ca.OP_EXPM1: _rising(np.expm1),
    ca.OP_SIN: _sine,
    ca.OP_COS: _cosine,
    ca.OP_TAN: _tangent,
    ca.OP_ATAN: _rising(np.arctan),
    ca.OP_ASIN: _rising(np.arcsin),
    ca.OP_ACOS: lambda x: (np.arccos(x[1]), np.arccos(x[0])),
    ca.OP_SINH: _rising(np.sinh),
    ca.OP_COSH: _even(np.cosh),
    ca.OP_TANH: _rising(np.tanh),
    ca.OP_ASINH: _rising(np.arcsinh),
    ca.OP_POW: _power,
    ca.OP_CONSTPOW: _power,
}
_SAME: dict[int, Callable[[Interval], Interval]] = {  # both arguments are the same number
    ca.OP_MUL: _square,
    ca.OP_SUB: lambda x: (np.zeros_like(x[0]), np.zeros_like(x[0])),
}
