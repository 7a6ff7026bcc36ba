"""Taylor series through the instructions of scalar functions (SX), one order after the other.

Griewank and Walther, Evaluating Derivatives, 2nd ed. 2008, section 13.2. A product takes k + 1 multiplications at order
k, so that orders 0..r together grow with r^2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import casadi as ca

from ..errors import OrderError
from .coefficients import Fixed, Series, add, binary, divide, multiply, negative, unary
from .elementary import RECURRENCES

NAMES = {getattr(ca, x): x for x in dir(ca) if x.startswith("OP_")}
OPTIONS = {"live_variables": True, "max_io": 0, "cse": False}


class _Step(NamedTuple):
    """An instruction that computes something: its result, and where its further coefficients come from."""

    op: int
    series: Series
    operands: list[Series]
    coefficients: Iterator[Any]


class Tape:
    """The instructions of an SX Function, with the coefficients that are known of all values; those of order 0 at once.

    outputs: lists of Series, of the entries that the Function sets. inputs: the same of what it reads; who owns them
    appends coefficient k to each before advance() is called for the k-th time.
    """

    def __init__(self, function: ca.Function, inputs: Sequence[Sequence[Series]]) -> None:
        self.k = 0
        self._steps: list[_Step] = []
        self._fixed: dict[float, Fixed] = {}
        self.outputs = self._read(function, inputs)

    def advance(self) -> None:
        """The next coefficient of all values."""
        self.k += 1
        for step in self._steps:
            step.series.append(next(step.coefficients))

    def linear(self, inputs: Sequence[Series]) -> Linear:
        """The instructions that depend on these inputs, of which they must be linear functions."""
        of, reached = [], {id(x) for x in inputs}
        for step in self._steps:
            if any(id(x) in reached for x in step.operands):
                of.append(step)
                reached.add(id(step.series))
        return Linear(inputs, of, reached)

    def _read(self, function: ca.Function, inputs: Sequence[Sequence[Series]]) -> list[list[Series]]:
        work: dict[int, Series] = {}
        zero: Series = self._number(0.0)
        outputs = [[zero] * function.nnz_out(i) for i in range(function.n_out())]
        calls: Any = None
        for k in range(function.n_instructions()):
            op, read, set_ = (
                function.instruction_id(k), function.instruction_input(k), function.instruction_output(k)
            )  # fmt: skip
            if op == ca.OP_CONST:
                work[set_[0]] = self._number(function.instruction_constant(k))
            elif op == ca.OP_INPUT:
                work[set_[0]] = inputs[read[0]][read[1]]
            elif op == ca.OP_OUTPUT:
                outputs[set_[0]][set_[1]] = work[read[0]]
            elif op == ca.OP_CALL:
                calls = function.instructions_sx() if calls is None else calls
                found = self._called(calls[k].which_function(), [work[j] for j in read])
                work.update((j, x) for j, x in zip(set_, found, strict=True) if j >= 0)
            else:
                work[set_[0]] = self._computed(function, op, [work[j] for j in read])
        return outputs

    def _number(self, value: float) -> Fixed:
        if value not in self._fixed:
            self._fixed[value] = Fixed(ca.SX(value))
        return self._fixed[value]

    def _called(self, function: ca.Function, entries: list[Series]) -> list[Series]:
        """The entries of the results of a call: the instructions of the Function, written out."""
        scalar, places, inputs = scalars(function), iter(entries), []
        for i in range(function.n_in()):
            inputs.append([next(places) for _ in range(function.nnz_in(i))])
        return [x for entries in self._read(scalar, inputs) for x in entries]

    def _computed(self, function: ca.Function, op: int, operands: list[Series]) -> Series:
        recurrence = RECURRENCES.get(op)
        if recurrence is None:
            raise OrderError(f"{function.name()}: there is no Taylor series of {NAMES.get(op, f'operation {op}')}")
        first = [x[0] for x in operands]
        series = Series([unary(op, *first) if len(first) == 1 else binary(op, *first)])
        self._steps.append(_Step(op, series, operands, recurrence(series, *operands)))
        return series


class Linear:
    """Instructions whose values are linear in some inputs; see Tape.linear."""

    def __init__(self, inputs: Sequence[Series], steps: list[_Step], reached: set[int]) -> None:
        self._inputs, self._reached = inputs, reached
        self._steps = steps
        for step in steps:
            if step.op not in _LINEAR or not self._linear(step):
                raise OrderError(f"what is to be solved for is not linear in its unknowns: {NAMES[step.op]}")

    def _linear(self, step: _Step) -> bool:
        of = [id(x) in self._reached for x in step.operands]
        return step.op in _SUMS or (sum(of) == 1 and not (step.op == ca.OP_DIV and of[1]))

    def correct(self, deltas: Sequence[Any]) -> None:
        """Add deltas to the last coefficients of the inputs, and what they make to those of all instructions."""
        changes: dict[int, Any] = {}
        for x, delta in zip(self._inputs, deltas, strict=True):
            x[-1], changes[id(x)] = add(x[-1], delta), delta
        for step in self._steps:
            delta = _LINEAR[step.op](*((x[0], changes.get(id(x))) for x in step.operands))
            step.series[-1], changes[id(step.series)] = add(step.series[-1], delta), delta


_SUMS = (ca.OP_ADD, ca.OP_SUB, ca.OP_NEG, ca.OP_TWICE, ca.OP_ASSIGN)
_LINEAR: dict[int, Callable[..., Any]] = {  # of pairs (coefficient 0, change of the last one): the change of the result
    ca.OP_ADD: lambda a, b: add(a[1], b[1]),
    ca.OP_SUB: lambda a, b: _less(a[1], b[1]),
    ca.OP_NEG: lambda a: negative(a[1]),
    ca.OP_TWICE: lambda a: None if a[1] is None else unary(ca.OP_TWICE, a[1]),
    ca.OP_ASSIGN: lambda a: a[1],
    ca.OP_MUL: lambda a, b: multiply(a[0], b[1]) if a[1] is None else multiply(a[1], b[0]),
    ca.OP_DIV: lambda a, b: divide(a[1], b[0]),
}


def _less(x: Any, y: Any) -> Any:
    return x if y is None else negative(y) if x is None else binary(ca.OP_SUB, x, y)


def scalars(function: ca.Function) -> ca.Function:
    """The same as an SX Function; OrderError names what cannot be one."""
    if function.is_a("SXFunction"):
        return function
    made = None
    try:
        made = freed(function).expand() if function.is_a("MXFunction") else function.expand()
    except RuntimeError as error:
        reason = f": {str(error).strip().splitlines()[-1]}"
    else:
        reason = ""
    if made is None or any(f.__hash__() == function.__hash__() for f in made.find_functions(0)):
        problem = f"there is no Taylor series of {function.name()} ({function.class_name()})"
        raise OrderError(f"{problem}, which CasADi cannot write in scalars{reason}")
    return made


def freed(function: ca.Function) -> ca.Function:
    """The same expressions without options, such as never_inline."""
    return function.slice(f"of_{function.name()}", list(range(function.n_in())), list(range(function.n_out())), {})
