"""Taylor series through matrix expressions (MX), with calls of Functions kept as calls: of their Taylor series.

Nodes that work entry by entry take the recurrences of scalars; linear ones are applied to every coefficient; products
and solutions of linear systems have their own sums. Any other node is written out in scalars, if CasADi can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import casadi as ca

from ..errors import OrderError
from ..subexpressions import merged
from .coefficients import Fixed, Series, add, binary, subtract, total, unary
from .elementary import RECURRENCES
from .nodes import LINEAR, SCALAR
from .tape import NAMES, Tape, freed, scalars

_LEAVES = (ca.OP_CONST, ca.OP_PARAMETER)
_MAPS = {"Map": "serial", "ThreadMap": "thread", "OmpMap": "openmp"}


class Graphs:
    """Taylor series of Functions up to one order, each made once."""

    def __init__(self, order: int) -> None:
        self.order = order
        self._made: dict[int, tuple[ca.Function, ca.Function]] = {}  # by the address; the Function itself lives on, too

    def of(self, function: ca.Function) -> ca.Function:
        """Function of coefficients 0..order of each input, one input after the other -> the same of its outputs."""
        key = function.__hash__()
        if key not in self._made:
            self._made[key] = function, self._series_of(function)
        return self._made[key][1]

    def _series_of(self, function: ca.Function) -> ca.Function:
        kind = function.class_name()
        name = f"series{self.order}_{function.name()}"
        if kind in _MAPS:
            info = function.info()
            return self.of(info["f"]).map(info["n"], _MAPS[kind])
        if kind == "Switch":
            return self._switch(name, function.info())
        if kind == "MXFunction":
            return self._matrices(name, function)
        return self._scalars(name, scalars(function))

    def _scalars(self, name: str, function: ca.Function) -> ca.Function:
        symbols = _symbols(ca.SX, function, self.order)
        inputs = [[Series(x) for x in zip(*(s.nonzeros() for s in of), strict=True)] for of in symbols]
        tape = Tape(function, inputs)
        for _ in range(self.order):
            tape.advance()
        outputs = [
            ca.SX(function.sparsity_out(i), ca.vertcat(*(0 if x[k] is None else x[k] for x in entries), ca.SX(0, 1)))
            for i, entries in enumerate(tape.outputs)
            for k in range(self.order + 1)
        ]
        return ca.Function(name, [x for of in symbols for x in of], merged(outputs))

    def _matrices(self, name: str, function: ca.Function) -> ca.Function:
        symbols = _symbols(ca.MX, function, self.order)
        results = freed(function).call([of[0] for of in symbols], True, False)
        results = [ca.MX(x) for x in results]  # numbers of a Function without inputs
        known = {of[0].__hash__(): Series(of) for of in symbols}
        for node in _sorted(results, known):
            known[node.__hash__()] = self._node(function.name(), node, known)
        found = [(y, known[y.__hash__()][k]) for y in results for k in range(self.order + 1)]
        outputs = [ca.MX(*y.shape) if x is None else x for y, x in found]
        return ca.Function(name, [x for of in symbols for x in of], ca.cse(outputs))

    def _switch(self, name: str, info: dict[str, Any]) -> ca.Function:
        """One of several Functions: of their series, by the first input alone."""
        if info["project_in"] or info["project_out"]:
            raise OrderError(f"{name}: there is no Taylor series of a choice of Functions of several sparsities")
        chosen = ca.Function.conditional("chosen", [self.of(f) for f in info["f"]], self.of(info["f_def"]))
        index = [ca.MX.sym("index") for _ in range(self.order + 1)]
        rest = chosen.mx_in()[1:]
        return ca.Function(name, [*index, *rest], chosen.call([index[0], *rest]))

    def _node(self, where: str, node: Any, known: dict[int, Series]) -> Series:
        if _source(node).op() in _LEAVES:
            return Fixed(node)
        of = _operands(node)
        operands = [known[x.__hash__()] for x in of]
        unchanged = all(x[0].__hash__() == y.__hash__() for x, y in zip(operands, of, strict=True))
        if unchanged and all(x[k] is None for x in operands for k in range(1, self.order + 1)):
            return Fixed(node)
        return Series(self._coefficients(where, node, operands))

    def _coefficients(self, where: str, node: Any, operands: list[Series]) -> list[Any]:
        source, orders = _source(node), range(self.order + 1)
        op = source.op()
        if op in (ca.OP_CALL, ca.OP_MAP):
            return self._called(node, source.which_function(), operands)
        if op == ca.OP_MONITOR:
            return [operands[0][k] for k in orders]
        if op in RECURRENCES:
            first = [x[0] for x in operands]
            w = Series([_fit(unary(op, *first) if len(first) == 1 else binary(op, *first), node)])
            steps = RECURRENCES[op](w, *operands)
            for _ in orders[1:]:
                w.append(_fit(next(steps), node))
            return w
        if op in LINEAR:
            return [_of_all(node, [x[k] for x in operands]) for k in orders]
        if op == ca.OP_MTIMES:
            c, a, b = operands
            return [add(c[k], _sum_of_products(ca.mtimes, a, b, k)) for k in orders]
        if op == ca.OP_DOT:
            return [_sum_of_products(ca.dot, operands[0], operands[1], k) for k in orders]
        if op == ca.OP_SOLVE:
            return self._solved(operands[0], operands[1], source.info()["tr"])
        return self._written_out(where, node, operands)

    def _solved(self, b: Series, A: Series, transposed: bool) -> list[Any]:
        """Of w with A w = b: A_0 w_k = b_k - sum_(j>0) A_j w_(k-j)."""
        orders, w = range(self.order + 1), Series()
        A = Series(None if A[k] is None else A[k].T if transposed else A[k] for k in orders)
        for k in orders:
            rest = subtract(b[k], _sum_of_products(ca.mtimes, A, w, k, 1))
            w.append(None if rest is None else ca.solve(A[0], rest))
        return w

    def _called(self, node: Any, function: ca.Function, operands: list[Series]) -> list[Any]:
        series, orders = self.of(function), range(self.order + 1)
        coefficients = [x[k] for x in operands for k in orders]
        values = [ca.DM.zeros(series.sparsity_in(i)) if x is None else x for i, x in enumerate(coefficients)]
        start = node.which_output() * len(orders) if node is not None and node.is_output() else 0
        return [ca.MX(x) for x in series.call(values)[start : start + len(orders)]]

    def _written_out(self, where: str, node: Any, operands: list[Series]) -> list[Any]:
        """By the scalar instructions of the node alone."""
        op = _source(node).op()
        if op not in SCALAR:
            problem = f"{where}: there is no Taylor series of {NAMES.get(op, f'operation {op}')}"
            raise OrderError(f"{problem}; write it in other operations, or in SX")
        symbols = [ca.SX.sym("x", x.sparsity()) for x in _operands(node)]
        return self._called(None, ca.Function("node", symbols, [SCALAR[op](*symbols)]), operands)


def _symbols(matrix: Any, function: ca.Function, order: int) -> list[list[Any]]:
    orders = range(order + 1)
    return [[matrix.sym(f"x{k}", function.sparsity_in(i)) for k in orders] for i in range(function.n_in())]


def _source(node: Any) -> Any:
    """What has the operands: one of several results is a node of its own."""
    return node.dep(0) if node.is_output() else node


def _operands(node: Any) -> list[Any]:
    source = _source(node)
    return [source.dep(i) for i in range(source.n_dep())]


def _sorted(results: Sequence[Any], known: dict[int, Any]) -> Iterator[Any]:
    """Nodes that the results need and that are not known, operands first."""
    seen, stack = set(known), [(x, False) for x in reversed(results)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node.__hash__() not in seen:
            seen.add(node.__hash__())
            stack.append((node, True))
            stack += [(x, False) for x in _operands(node)]


def _of_all(node: Any, values: Sequence[Any]) -> Any:
    """A linear operation of coefficients of its operands."""
    if all(x is None for x in values):
        return None
    source = _source(node)
    given = [
        ca.MX(x.sparsity(), 0) if v is None else _project(v, x) for x, v in zip(_operands(node), values, strict=True)
    ]
    return LINEAR[source.op()](node, *given)


def _sum_of_products(times: Any, a: Series, b: Series, k: int, first: int = 0) -> Any:
    pairs = ((a[j], b[k - j]) for j in range(first, k + 1))
    return total(None if x is None or y is None else times(x, y) for x, y in pairs)


def _fit(x: Any, like: Any) -> Any:
    """x in the shape of `like`, where it is a scalar for all entries."""
    return x if x is None or x.shape == like.shape else ca.repmat(x, *like.shape)


def _project(x: Any, like: Any) -> Any:
    """x in the sparsity of `like`."""
    return x if x.sparsity() == like.sparsity() else ca.project(x, like.sparsity())
