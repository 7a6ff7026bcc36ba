"""Long straight-line Functions as a chain of short ones, so that a C compiler needs time in proportion to their length.

Compilers take more than linear time for one C function of 10^5 assignments, and lose at allocating registers in it. The
parts are consecutive runs of instructions; what one computes and a later one reads goes through vectors in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import casadi as ca
import numpy as np

from ..errors import ModelError, ShapeError
from ..model.robot_function import RobotFunction

LIMIT = 1000  # instructions a part: compiled fastest, and no slower than one piece
MARK = "_ocdyn"  # what the names of parts end in, with their number: nobody else's do
_SLACK = 0.3  # a part may be shorter by this share, where fewer values have to be handed on


def split(function: ca.Function, limit: int = LIMIT) -> ca.Function:
    """An equal Function that calls parts of at most `limit` instructions each, one after the other.

    function: an SX Function, as od.function makes them; others, and those that are short enough, come back as they are.
    limit: instructions a part, at least 10.
    The result is an MX Function with the same name, ports and sparsities; a RobotFunction stays one. It gives the same
    numbers, and is meant for generated code: for CasADi's virtual machine, and for AD, the original is no worse.
    Raises ModelError if it is no Function, ShapeError for a limit that is none, or free symbols.
    """
    if not isinstance(function, ca.Function):
        raise ModelError("split", [f"got {type(function).__name__}, expected a casadi.Function"])
    if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 10:
        raise ShapeError(f"split: limit is {limit!r}, expected a number of instructions of at least 10")
    if not function.is_a("SXFunction") or function.n_instructions() <= limit:
        return function
    if function.has_free():
        raise ShapeError(f"split: {function.name()} has free symbols ({', '.join(map(str, function.get_free()))})")
    tape = Tape(function)
    if tape.calls:  # calls within SX are parts already
        return function
    made = _chain(function, tape, tape.cuts(limit))
    if isinstance(function, RobotFunction):
        return function.with_base(made)
    return made


class Tape:
    """The instructions of an SX Function in terms of values, each of which is computed once.

    op[k], operands[k]: of the k-th value. reads[k]: of an instruction, the values it reads. Values that are inputs or
    constants cost nothing to have everywhere; `last` is for the others: the last instruction that reads them.
    """

    def __init__(self, f: ca.Function) -> None:
        n = f.n_instructions()
        self.inputs: dict[int, tuple[int, int]] = {}
        self.constants: dict[int, float] = {}
        self.outputs: dict[int, tuple[int, int]] = {}
        self.op = [f.instruction_id(k) for k in range(n)]
        self.reads: list[tuple[int, ...]] = [()] * n
        self.calls = ca.OP_CALL in self.op
        self.last = np.zeros(n, int)
        if self.calls:
            return
        holder: dict[int, int] = {}  # work place: value that is in it, called as the instruction that made it
        for k, op in enumerate(self.op):
            if op == ca.OP_INPUT:
                self.inputs[k] = _pair(f.instruction_input(k))
            elif op == ca.OP_CONST:
                self.constants[k] = f.instruction_constant(k)
            else:
                self.reads[k] = read = tuple(holder[place] for place in f.instruction_input(k))
                for value in read:
                    self.last[value] = k
                if op == ca.OP_OUTPUT:
                    self.outputs[k] = _pair(f.instruction_output(k))
                    continue
            holder[f.instruction_output(k)[0]] = k

    def cuts(self, limit: int) -> list[int]:
        """First instructions of the parts, and the end: where a part hands on little, among the places where it may."""
        n, cuts = len(self.op), [0]
        while cuts[-1] < n:
            cuts.append(self._next_cut(cuts[-1], limit))
        return cuts

    def _next_cut(self, start: int, limit: int) -> int:
        own, kept = 0, 0  # instructions, and values made here and read after k
        seen: set[int] = set()  # values from elsewhere
        places: list[int] = []
        for k in range(start, len(self.op)):
            for value in set(self.reads[k]):
                if self._is_free(value) or value < start:
                    seen.add(value)
                elif self.last[value] == k:
                    kept -= 1
            own += bool(self.reads[k])
            kept += bool(self.reads[k]) and self.op[k] != ca.OP_OUTPUT
            if own + len(seen) + kept > limit and places:
                first = int((1 - _SLACK) * len(places))
                return start + 1 + first + int(np.argmin(places[first:]))
            places.append(kept)
        return len(self.op)

    def _is_free(self, value: int) -> bool:
        return value in self.inputs or value in self.constants


def _pair(numbers: Sequence[int]) -> tuple[int, int]:
    first, second = numbers
    return first, second


def _chain(f: ca.Function, tape: Tape, cuts: list[int]) -> ca.Function:
    """The MX Function that calls the parts between the cuts."""
    ports = [ca.MX.sym(name, f.sparsity_in(i)) for i, name in enumerate(f.name_in())]
    symbols = [_scalars(ca.SX.sym(f"x{i}", f.sparsity_in(i))) for i in range(f.n_in())]
    values = [*ports]  # what parts may read: the inputs, then what each part hands on; `symbols`: the same within parts
    place = dict(tape.inputs)  # value: (index in these lists, position)
    entries: list[list[tuple[list[int], ca.MX]]] = [
        [] for _ in range(f.n_out())
    ]  # of each output: (positions, vector) by part
    for number, (start, end) in enumerate(pairwise(cuts)):
        sources, kept, results, written = _part(tape, start, end, place, symbols)
        inputs = [symbols[i][0] for i in sources]
        part = ca.Function(f"{f.name()}{MARK}{number}", inputs, results)
        vectors = list(part.call([values[i] for i in sources], False, True))
        if kept:
            place.update({k: (len(values), position) for position, k in enumerate(kept)})
            values.append(vectors.pop(0))
            symbols.append(_scalars(ca.SX.sym("x", len(kept))))
        for vector, (j, positions) in zip(vectors, written.items(), strict=True):
            entries[j].append((positions, vector))
    outputs = [_gathered(f.sparsity_out(j), parts) for j, parts in enumerate(entries)]
    return ca.Function(f.name(), ports, outputs, f.name_in(), f.name_out())


def _scalars(symbol: ca.SX) -> tuple[ca.SX, list[ca.SX]]:
    """(a symbol, its nonzeros one by one)."""
    return symbol, ca.vertsplit(ca.SX(ca.Sparsity.dense(symbol.nnz()), symbol.nz[:])) if symbol.nnz() else []


def _part(
    tape: Tape, start: int, end: int, place: dict[int, tuple[int, int]], symbols: list[tuple[ca.SX, list[ca.SX]]]
) -> tuple[list[int], list[int], list[ca.SX], dict[int, list[int]]]:
    """Instructions start..end as (lists they read of, values they hand on, results, {output: positions written}).

    The results are what is handed on, if there is any, and the entries of each output.
    """
    known, sources = {}, {}

    def value(k: int) -> ca.SX:
        if k not in known:
            if k in tape.constants:
                known[k] = ca.SX(tape.constants[k])
            else:
                i, position = place[k]
                sources[i] = True
                known[k] = symbols[i][1][position]
        return known[k]

    written: dict[int, tuple[list[int], list[ca.SX]]] = {}
    kept: list[int] = []
    for k in range(start, end):
        op, reads = tape.op[k], tape.reads[k]
        if op == ca.OP_OUTPUT:
            j, position = tape.outputs[k]
            positions, values = written.setdefault(j, ([], []))
            positions.append(position)
            values.append(value(reads[0]))
        elif reads:
            known[k] = (ca.SX.unary if len(reads) == 1 else ca.SX.binary)(op, *map(value, reads))
            if tape.last[k] >= end:
                kept.append(k)
    results = [ca.vertcat(*(known[k] for k in kept))] if kept else []
    results += [ca.vertcat(*values) for _, values in written.values()]
    return list(sources), kept, results, {j: positions for j, (positions, _) in written.items()}


def _gathered(sparsity: ca.Sparsity, parts: list[tuple[list[int], ca.MX]]) -> ca.MX:
    """An output from the vectors of its nonzeros that the parts wrote."""
    if not parts:
        return ca.MX(*sparsity.shape)
    positions = np.concatenate([p for p, _ in parts])
    vector = ca.vertcat(*(v for _, v in parts))
    if np.any(np.diff(positions) != 1):
        vector = vector[np.argsort(positions).tolist()]
    return ca.sparsity_cast(vector, sparsity)
