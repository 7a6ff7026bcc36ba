"""Time derivatives of expressions by Taylor series: the twin of lie.time_derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import casadi as ca

from .coefficients import Fixed, Series, over, times
from .tape import OPTIONS, Tape

Flow = Sequence[tuple[Any, Any]]


def time_series(expression: Any, order: int, flow: Flow) -> list[Any]:
    """[e, de, ..., d^order e] of an SX, as lie.time_derivatives gives them; quadratic in the order.

    flow: pairs (symbol, its time derivative), which may be any expression of all symbols: then coefficient k of the
    rates makes coefficient k + 1 of the symbols known, and so on. Symbols without a rate do not change.
    """
    curves, expression = _Curves(flow), ca.SX(expression)
    tape, entries = _recorded(curves, expression, [])
    for k in range(1, order + 1):
        curves.extend(k)
        tape.advance()
    return _derivatives(expression.sparsity(), entries, order)


def solved_series(expression: Any, order: int, flow: Flow, unknown: Any, solve: Callable[[int, Any], Any]) -> list[Any]:
    """[x, dx, ..., d^order x] of the symbol `unknown`, of which the expression is a linear function.

    solve(k, e) -> d^k x, from e, the k-th derivative of the expression where d^k x is zero, and lower ones are as
    found. flow: as for time_series; rates may be `unknown`.
    """
    curves, expression = _Curves(flow, ca.vec(unknown)), ca.SX(ca.densify(expression))
    unknowns = [Series([ca.SX(0)]) for _ in range(unknown.numel())]
    curves.known = unknowns
    tape, entries = _recorded(curves, expression, ca.vec(unknown).nonzeros(), unknowns)
    linear, found = tape.linear(unknowns), []
    for k in range(order + 1):
        if k:
            curves.extend(k)
            for x in unknowns:
                x.append(None)
            tape.advance()
        e = _column([times(factorial(k), x[k]) for x in entries])
        found.append(solve(k, ca.reshape(e, *expression.shape)))
        if k < order:
            linear.correct([over(x, factorial(k)) for x in _dense_entries(found[k])])
    return found


class _Curves:
    """Series of the symbols of a flow. A rate that is a symbol is no computation: x_k = (d^k x) / k! then."""

    def __init__(self, flow: Flow, unknown: Any = None) -> None:
        self.symbols: list[Any] = [x for s, _ in flow for x in _dense_entries(s)]
        self.rates: list[Any] = [x for _, r in flow for x in _dense_entries(r)]
        self.place = {x.element_hash(): k for k, x in enumerate(self.symbols)}
        self.series = [Series([x]) for x in self.symbols]
        solved = {} if unknown is None else {x.element_hash(): k for k, x in enumerate(unknown.nonzeros())}
        self.solved = [solved.get(x.element_hash()) for x in self.rates]
        self.known: list[Series] = []  # of `unknown`
        self.computed = [x for x, k in zip(self.rates, self.solved, strict=True) if k is None and not x.is_symbolic()]
        self.results: list[Series] = []  # of `computed`
        order = iter(range(len(self.computed)))
        self.number = [
            None if k is not None or x.is_symbolic() else next(order)
            for x, k in zip(self.rates, self.solved, strict=True)
        ]

    def extend(self, k: int) -> None:
        """Append coefficient k to the series."""
        for j, x in enumerate(self.series):
            x.append(self._coefficient(j, k))

    def _coefficient(self, j: int, k: int) -> Any:
        below = k - 1  # derivatives left to take, while rates are followed from symbol to symbol
        while True:
            solved, number, rate = self.solved[j], self.number[j], self.rates[j]
            if solved is not None:
                return over(self.known[solved][below], factorial(k) // factorial(below))
            if number is not None:
                return over(self.results[number][below], factorial(k) // factorial(below))
            if below == 0:
                return over(rate, factorial(k))
            j, below = self.place.get(rate.element_hash(), -1), below - 1
            if j < 0:
                return None


def _recorded(
    curves: _Curves, expression: Any, unknown: list[Any], unknowns: Sequence[Series] = ()
) -> tuple[Tape, list[Series]]:
    """The tape of an expression and of the rates that are computed, and the series of the entries of the former."""
    own = {*curves.place, *(x.element_hash() for x in unknown)}
    everything = ca.vertcat(*expression.nonzeros(), *curves.computed)
    free = [x for x in ca.symvar(everything) if x.element_hash() not in own]
    arguments = ca.vertcat(*curves.symbols, *unknown, *free)
    function = ca.Function("f", [arguments], [everything], OPTIONS)
    parameters = [Fixed(x) for x in free]
    tape = Tape(function, [[*curves.series, *unknowns, *parameters]])
    results = tape.outputs[0]
    curves.results = results[expression.nnz() :]
    return tape, results[: expression.nnz()]


def _derivatives(sparsity: ca.Sparsity, entries: Sequence[Series], order: int) -> list[Any]:
    columns = ([times(factorial(k), x[k]) for x in entries] for k in range(order + 1))
    return [ca.SX(sparsity, _column(x)) for x in columns]


def _column(entries: Sequence[Any]) -> Any:
    return ca.vertcat(*(ca.SX(0) if x is None else x for x in entries)) if entries else ca.SX(0, 1)


def _dense_entries(x: Any) -> list[Any]:
    return ca.vec(ca.densify(ca.SX(x))).nonzeros()
