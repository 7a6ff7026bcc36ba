"""Common subexpressions of SX, merged: what casadi.cse does, in a third of its time.

casadi.cse writes every node as a text to compare it. Here nodes are numbered by (operation, numbers of operands), and
only those are made again that depend on a merged one, many at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

_OPTIONS = {"live_variables": False, "cse": False, "max_io": 0, "allow_free": True}  # a place for every result
_COMMUTE = {ca.OP_ADD, ca.OP_MUL}
_FEW = 400  # instructions up to which CasADi is as quick
_get, _binary, _unary = ca.SX.get_nz, ca.SX.binary, ca.SX.unary


@dataclass(frozen=True, eq=False)
class _Numbered:
    """Nodes by number. nodes, kinds: SX column of all, and operations, as many as there are instructions. first: the
    instruction of a number, left, right: numbers of its operands. level: 0 where it stays as it is, else one more than
    those of the new nodes that it depends on. outputs: numbers by port and entry."""

    nodes: ca.SX
    kinds: list[int]
    first: list[int]
    left: list[int]
    right: list[int]
    level: list[int]
    outputs: list[list[int]]
    some: bool  # whether there is anything to merge


def merged(expressions: Sequence[Any]) -> list[Any]:
    """The same expressions, in which equal ones are one node; MX as casadi.cse has them."""
    found = list(expressions)
    if not all(isinstance(x, ca.SX) for x in found):
        return ca.cse(found)
    before = None
    while True:
        f = ca.Function("f", [], found, _OPTIONS)
        count = f.n_instructions()
        if count <= _FEW:
            return ca.cse(found)
        if count == before:  # as many as there are different nodes
            return found
        numbered = _numbered(f)
        if numbered is None:
            return ca.cse(found)
        if not numbered.some:
            return found
        found = _rebuilt(numbered, found)
        before = len(numbered.first) + sum(map(len, numbered.outputs))


def _numbered(f: ca.Function) -> _Numbered | None:
    """Nodes of an SXFunction by number; None where it calls another, or has not a place for each result in turn."""
    n = f.n_instructions()
    kinds = list(map(f.instruction_id, range(n)))
    if ca.OP_CALL in kinds or f.sz_w() != n - kinds.count(ca.OP_OUTPUT):
        return None
    outputs = [[-1] * f.nnz_out(i) for i in range(f.n_out())]
    known: dict[Any, int] = {}
    places: list[int] = []  # number of what is in a place
    moved: list[int] = []  # 0: what is in a place stays there; else one more than its level
    first: list[int] = []
    left: list[int] = []
    right: list[int] = []
    level: list[int] = []
    size = len(kinds)
    for k, read in enumerate(map(f.instruction_input, range(n))):  # without lists of tuples, which take time to collect
        kind, a, b, new = kinds[k], 0, 0, 0
        key: Any
        if kind == ca.OP_OUTPUT:
            port, entry = f.instruction_output(k)
            outputs[port][entry] = places[read[0]]
            continue
        if kind == ca.OP_CONST:
            key = f.instruction_constant(k).hex()
        elif kind == ca.OP_PARAMETER:
            key = -1 - k
        else:
            a = places[read[0]]
            new = moved[read[0]]
            if len(read) == 2:
                b = places[read[1]]
                new = max(new, moved[read[1]])
            low, high = (b, a) if b < a and kind in _COMMUTE else (a, b)
            key = (low * size + high) * 256 + kind
        number = known.setdefault(key, len(first))
        places.append(number)
        if number == len(first):
            first.append(k)
            left.append(a)
            right.append(b if len(read) == 2 else -1)
            level.append(new)
            moved.append(new and new + 1)
        else:
            moved.append(level[number] + 1)
    return _Numbered(f.instructions_sx(), kinds, first, left, right, level, outputs, len(first) < len(places))


def _rebuilt(x: _Numbered, expressions: Sequence[ca.SX]) -> list[Any]:
    """The expressions with one node for each number: new ones of a level and an operation are made at once."""
    start, at = len(x.kinds), list(x.first)
    groups: dict[int, list[int]] = {}
    for i, level in enumerate(x.level):
        if level:
            groups.setdefault(level * 256 + x.kinds[x.first[i]], []).append(i)
    pool = ca.vertcat(x.nodes, ca.SX.zeros(sum(map(len, groups.values()))))
    for place in sorted(groups):
        numbers, kind = groups[place], place % 256
        made = _get(pool, False, [at[x.left[i]] for i in numbers])
        if x.right[numbers[0]] < 0:
            made = _unary(kind, made)
        else:
            made = _binary(kind, made, _get(pool, False, [at[x.right[i]] for i in numbers]))
        pool.set_nz(made, False, ca.Slice(start, start + len(numbers)))
        for k, i in enumerate(numbers):
            at[i] = start + k
        start += len(numbers)
    return [
        ca.SX(e.sparsity(), _get(pool, False, [at[i] for i in numbers]))
        if numbers
        else ca.SX(e.sparsity(), ca.SX(0, 1))
        for e, numbers in zip(expressions, x.outputs, strict=True)
    ]
