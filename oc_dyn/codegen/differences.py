"""Differences of inputs as inputs of their own, so that they can be formed before numbers are rounded.

Deflections and tracking errors are small differences of large positions: in single precision their digits are lost once
the positions are rounded. with_differences finds them in the instructions of a Function, also behind terms that are
added in between, as in (q_ref + z) - theta, and takes each as an input.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import casadi as ca

Value = tuple[dict[int, int], Any]  # {number of an input entry: how often it counts}, what is added to them


class _Entries:
    """Entries of the inputs of a Function, and the differences of two of them that were needed so far."""

    def __init__(self, inputs: list[Any]) -> None:
        self.starts = [sum(x.numel() for x in inputs[:k]) for k in range(len(inputs))]
        self.symbols = ca.vertsplit(ca.vertcat(*map(ca.vec, inputs))) if inputs else []
        self.found: dict[tuple[int, int], Any] = {}

    def whole(self, value: Value) -> Any:
        """A value as an expression: entries that are subtracted from each other meet first."""
        signs, out = value
        up, down = ([k for k, s in signs.items() for _ in range(sign * s)] for sign in (1, -1))
        both = min(len(up), len(down))
        for pair in zip(up[:both], down[:both], strict=True):
            out = out + self._difference(*pair)
        for a in up[both:]:
            out = self.symbols[a] + out
        for b in down[both:]:
            out = out - self.symbols[b]
        return out

    def _difference(self, a: int, b: int) -> Any:
        if (b, a) in self.found:
            return -self.found[b, a]
        return self.found.setdefault((a, b), ca.SX.sym(f"d{len(self.found)}"))


def with_differences(
    f: ca.Function, port: str = "differences", apart: Collection[str] = (),
) -> tuple[ca.Function, list[tuple[int, int]]]:  # fmt: skip
    """(Function with one more input, last, of the differences; pairs (a, b) of entries: difference k is a - b).

    f: a Function of SX, its inputs dense; entries are counted through all of its inputs. apart: inputs of which no
    differences are taken, as they are rounded already. Where f has no differences it comes back as it is, without
    pairs.
    """
    inputs = f.sx_in()
    entries = _Entries(inputs)
    work: list[Value] = [({}, ca.SX(0))] * f.sz_w()
    outputs = [[ca.SX(0)] * f.nnz_out(k) for k in range(f.n_out())]
    for k in range(f.n_instructions()):
        code, into, of = f.instruction_id(k), f.instruction_output(k), f.instruction_input(k)
        if code == ca.OP_CONST:
            work[into[0]] = {}, ca.SX(f.instruction_constant(k))
        elif code == ca.OP_INPUT:
            entry = entries.starts[of[0]] + of[1]
            plain = f.name_in(of[0]) in apart
            work[into[0]] = ({}, entries.symbols[entry]) if plain else ({entry: 1}, ca.SX(0))
        elif code == ca.OP_OUTPUT:
            outputs[into[0]][into[1]] = entries.whole(work[of[0]])
        elif code in (ca.OP_ADD, ca.OP_SUB):
            work[into[0]] = _sum(work[of[0]], work[of[1]], -1 if code == ca.OP_SUB else 1)
        else:
            work[into[0]] = {}, _applied(code, [entries.whole(work[i]) for i in of])
    if not entries.found:
        return f, []
    results = [ca.SX(f.sparsity_out(k), ca.vertcat(*x)) if x else ca.SX(*f.size_out(k)) for k, x in enumerate(outputs)]
    symbols = [*inputs, ca.vertcat(*entries.found.values())]
    made = ca.Function(f.name(), symbols, ca.cse(results), [*f.name_in(), port], f.name_out())
    return made, list(entries.found)


def _sum(x: Value, y: Value, sign: int) -> Value:
    """x + y, or x - y, entries of inputs apart."""
    signs = dict(x[0])
    rest = x[1] + y[1] if sign > 0 else x[1] - y[1]
    for entry, s in y[0].items():
        total = signs.get(entry, 0) + sign * s
        if total == 0:
            signs.pop(entry, None)
        else:
            signs[entry] = total
    return signs, rest


def _applied(code: int, values: list[Any]) -> Any:
    if len(values) == 1:
        return ca.SX.unary(code, values[0])
    return ca.SX.binary(code, values[0], values[1])
