"""od.taylor_mode: time derivatives of any casadi.Function, by truncated Taylor series."""

from __future__ import annotations

from itertools import pairwise
from math import factorial
from typing import Any

import casadi as ca

from .errors import OrderError, ShapeError
from .numbers import shortened
from .ports import derivative_name
from .series.along import time_series
from .series.graph import Graphs
from .series.tape import freed
from .subexpressions import merged
from .validation import count

_HIGHEST = 1000  # order of derivatives in the names of ports that are looked for
_LARGEST = 170  # order whose factorial is a floating-point number


def taylor_mode(function: ca.Function, order: int, name: str | None = None) -> ca.Function:
    """The outputs of a casadi.Function and their total time derivatives up to an order, from those of its inputs.

    Inputs are functions of time: of an input x there are the ports x, dx, d2x, ... up to its derivative `order`; of an
    output y come out y, dy, d2y, ... Derivatives are plain, not Taylor coefficients. Ports are in the order of those of
    `function`, each with its derivatives behind it.
    A port named as the derivative of another one, of the same shape, is that: of inputs v and dv there are the ports
    v, dv, d2v, ..., up to the derivative that the highest needs; and an output dx of an input x is its rate, so that
    dx, d2x, ... are no inputs: what comes out are the derivatives of the solution of that differential equation.
    Taylor series go through the instructions one by one (Griewank and Walther 2008, chapter 13), which takes a number
    of instructions that grows with the square of the order. SX Functions give SX Functions, calls in them written out;
    MX Functions give MX Functions, in which calls stay calls, of Taylor series of what is called.
    Derivatives of an input have the sparsity of the port where there is one, else that of the derivative below; what is
    zero in the sparsity of an input stays zero, whatever a denser port of its derivative holds there.
    At steps and kinks (floor, sign, fabs, fmin, if_else) derivatives are those of the branch the value is in; where
    none exists (sqrt, log at zero), they are not finite. A power whose exponent is an input takes a number of
    instructions that grows with the third power of the order; where the exponent does not change, all derivatives that
    exist are there, at zero and below it, too.
    name: of the Function made, default taylor<order>_<its name>. Quaternions of od.function's q need their own dq:
    method="ad_taylor" of od.function gives the derivatives along velocities instead.
    Raises ShapeError for what is no Function, for an order below 0 and names of outputs that clash, OrderError for an
    order above 170, whose factorial is larger than any floating-point number, and naming the operation or the Function
    that has no Taylor series: solvers, tables, external code.
    """
    if not isinstance(function, ca.Function):
        raise ShapeError(f"taylor_mode: got {shortened(function)}, expected a casadi.Function")
    order = count("taylor_mode: order", order)
    if order > _LARGEST:
        raise OrderError(f"taylor_mode: order is {order}, expected {_LARGEST} at most: factorials overflow beyond it")
    name = f"taylor{order}_{function.name()}" if name is None else name
    ports = _Ports(function, order)
    if function.is_a("MXFunction") or not (function.is_a("SXFunction") or ports.rates):
        return _by_graph(function, order, name, ports)
    return _by_tape(function, order, name, ports)


class _Ports:
    """inputs, outputs: names of ports. curves: {input that is no derivative of another: orders it has as ports}.
    source: of each input of the Function, (curve, order). patterns: {(curve, order): sparsity}. rates: {curve: output}
    of outputs that are the next one."""

    def __init__(self, function: ca.Function, order: int) -> None:
        given = {n: function.sparsity_in(i) for i, n in enumerate(function.name_in())}
        results = {n: function.sparsity_out(i) for i, n in enumerate(function.name_out())}
        self.source = {n: _curve(n, given) for n in given}
        tops: dict[str, int] = {}
        for curve, k in self.source.values():
            tops[curve] = max(tops.get(curve, 0), k)
        self.rates: dict[str, str] = {}
        self.outputs: list[str] = []
        for n, pattern in results.items():
            curve, k = _curve(n, {**given, n: pattern})
            if curve in tops and k == tops[curve] + 1:
                self.rates[curve] = n
            self.outputs += [derivative_name(curve, k + j) for j in range(order + 1)]
        self.orders = {c: range(top + 1) if c in self.rates else range(top + order + 1) for c, top in tops.items()}
        self.inputs = [derivative_name(c, k) for c, orders in self.orders.items() for k in orders]
        own = {port: given[n] for n, port in self.source.items()}
        self.patterns: dict[tuple[str, int], ca.Sparsity] = {}
        for c, orders in self.orders.items():
            for k in orders:
                self.patterns[c, k] = own[c, k] if (c, k) in own else self.patterns[c, k - 1]
        self._refuse_clashes(function.name(), given, order)

    def _refuse_clashes(self, what: str, given: Any, order: int) -> None:
        twice = sorted(x for x in {*self.outputs} if self.outputs.count(x) > 1)
        both = sorted({*self.inputs} & {*self.outputs})
        if twice or both:
            clash = ", ".join(twice or both)
            hint = "leave outputs out with Function.slice, or give ports other names"
            kind = "two outputs" if twice else "an input and an output"
            raise ShapeError(f"taylor_mode of {what}, order {order}: {clash} would be derivatives of {kind}; {hint}")


def _curve(name: str, patterns: dict[str, ca.Sparsity]) -> tuple[str, int]:
    """(input, k) of which the port is the k-th derivative, by name and shape."""
    for base, pattern in patterns.items():
        if base != name and name.endswith(base) and pattern.shape == patterns[name].shape:
            middle = name.removesuffix(base)
            digits = middle[1:]
            if middle == "d" or (middle[:1] == "d" and digits.isdecimal() and 1 < int(digits) < _HIGHEST):
                below, k = _curve(base, {n: x for n, x in patterns.items() if n != name})
                return below, k + int(digits or 1)
    return name, 0


def _by_tape(function: ca.Function, order: int, name: str, ports: _Ports) -> ca.Function:
    symbols: dict[str, list[Any]] = {
        c: [ca.SX.sym(derivative_name(c, k), ports.patterns[c, k]) for k in orders]
        for c, orders in ports.orders.items()
    }
    values = [symbols[curve][k] for curve, k in ports.source.values()]
    results = dict(zip(function.name_out(), freed(function).call(values, True, False), strict=True))
    flow = [pair for x in symbols.values() for pair in pairwise(x)]
    flow += [(symbols[c][-1], results[n]) for c, n in ports.rates.items()]
    flow = [(_column(x), _column(ca.project(ca.SX(rate), x.sparsity()))) for x, rate in flow]
    entries = ca.vertcat(*(y for x in results.values() for y in x.nonzeros()), ca.SX(0, 1))
    derivatives = time_series(entries, order, flow)
    outputs, place = [], 0
    for x in results.values():
        outputs += [ca.SX(x.sparsity(), d[place : place + x.nnz()]) for d in derivatives]
        place += x.nnz()
    inputs = [s for x in symbols.values() for s in x]
    return ca.Function(name, inputs, merged(outputs), ports.inputs, ports.outputs)


def _by_graph(function: ca.Function, order: int, name: str, ports: _Ports) -> ca.Function:
    if ports.rates:
        rate, n = next(iter(ports.rates.items()))
        hint = f"an SX Function can have that: {function.name()}.expand(), or rename the output"
        raise ShapeError(f"taylor_mode of {function.name()}: its output {n} is the rate of its input {rate}; {hint}")
    symbols: dict[str, Any] = {}
    values: list[Any] = []
    for n in function.name_in():
        curve, k = ports.source[n]
        for j in range(k, k + order + 1):
            port = derivative_name(curve, j)
            symbols.setdefault(port, ca.MX.sym(port, ports.patterns[curve, j]))
            values.append(_scaled(symbols[port], 1 / factorial(j - k)))
    series = Graphs(order).of(function)
    found = [ca.MX(x) for x in series.call(values, series.is_a("MXFunction"), False)]  # numbers without inputs
    outputs = [_scaled(x, factorial(i % (order + 1))) for i, x in enumerate(found)]
    inputs = [symbols.setdefault(n, ca.MX.sym(n)) for n in ports.inputs]
    return ca.Function(name, inputs, outputs, ports.inputs, ports.outputs)


def _column(x: Any) -> Any:
    """The entries of an SX that its sparsity has."""
    return ca.vertcat(*x.nonzeros(), ca.SX(0, 1))


def _scaled(x: Any, number: float) -> Any:
    return x if number == 1 else x * float(number)
