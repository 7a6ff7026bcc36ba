"""C text of a Function at several points at once: the instructions of an SX Function on vectors of lanes.

gcc and clang turn arithmetic on vectors into that of the processor. Long Functions are written in parts, as in split;
what one part computes and a later one reads is kept in places that are used again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from math import copysign, factorial, inf, isnan

import casadi as ca

from .source import c_source, prepared
from .split import LIMIT, Tape
from .templates import filled

WORDS = {  # what instructions are called in lanes.c.in
    getattr(ca, f"OP_{name}"): name
    for name in (
        "ASSIGN ADD SUB MUL DIV NEG EXP LOG POW SQRT SQ TWICE SIN COS TAN ASIN ACOS ATAN LT LE EQ NE NOT AND OR FLOOR "
        "CEIL FMOD FABS SIGN COPYSIGN ERF FMIN FMAX INV SINH COSH TANH ASINH ACOSH ATANH ATAN2 ERFINV LIFT LOG1P EXPM1 "
        "HYPOT REMAINDER"
    ).split()
}
WORDS |= {ca.OP_CONSTPOW: "POW", ca.OP_IF_ELSE_ZERO: "IF"}
LONGEST = 50_000  # instructions of what is expanded from matrices
_KEPT = {ca.OP_ASSERTION, ca.OP_MONITOR, ca.OP_PRINTME, ca.OP_DUMP, ca.OP_SOLVE}  # effects that it would drop; pivoting


def batch_source(function: ca.Function) -> str:
    """C text that exports oc_dyn_points and oc_dyn_lanes, see points.c.in: of vectors where the Function is one of
    scalar instructions, else around CasADi's C, a point after the other."""
    straight = _straight(function)
    text = None if straight is None else lanes_source(straight)
    return scalar_source(function) if text is None else text


def scalar_source(function: ca.Function) -> str:
    """The same around CasADi's C."""
    written = prepared(function, "oc_dyn_one")
    words = {"inputs": _lines(function, "in"), "outputs": _lines(function, "out")}
    words |= {x: max(1, getattr(written, f"sz_{x}")()) for x in ("arg", "res", "iw", "w")}
    work = sum(int(words[x]) for x in ("arg", "res", "iw", "w"))  # pointers and integers take no more than a double
    begin, end = "const int mem = oc_dyn_one_checkout();", "if (mem >= 0) oc_dyn_one_release(mem);"
    head = "#undef OC_DYN_LANES\n#define OC_DYN_LANES 1\n"
    more = head + _lanes() + filled("one_point.c", **words) + points_source(function, work, begin, end)
    return c_source([written], "oc_dyn", more=more)


def _lines(function: ca.Function, which: str) -> str:
    """C lines that set the pointers to the ports, one after the other."""
    count, sizes = (function.n_in(), function.nnz_in) if which == "in" else (function.n_out(), function.nnz_out)
    starts = _starts(sizes(i) for i in range(count))
    to, of = ("arg", "x") if which == "in" else ("res", "y")
    return "".join(f"  {to}[{i}] = {of} + {starts[i]};\n" for i in range(count))


def _straight(function: ca.Function) -> ca.Function | None:
    """The Function as one of scalar instructions, where that loses nothing and is not too long."""
    if function.is_a("SXFunction"):
        return function
    if _length(function) > LONGEST:
        return None
    try:
        with _as_written():
            made = ca.Function.expand(function)
    except RuntimeError:  # what CasADi has no scalar instructions for, as solvers
        return None
    same = all(function.sparsity_in(i) == made.sparsity_in(i) for i in range(function.n_in()))
    same = same and all(function.sparsity_out(i) == made.sparsity_out(i) for i in range(function.n_out()))
    return made if same else None


@contextmanager
def _as_written() -> Iterator[None]:
    """CasADi keeps scalar instructions as they come: 0*x is not 0 where x is NaN, nor pow(x, 3) always x*x*x."""
    before = ca.GlobalOptions.getSimplificationOnTheFly()
    ca.GlobalOptions.setSimplificationOnTheFly(False)
    try:
        yield
    finally:
        ca.GlobalOptions.setSimplificationOnTheFly(before)


def _length(function: ca.Function) -> float:
    """About as many scalar instructions as a Function has when it is expanded; inf for what is not to be."""
    if function.is_a("SXFunction"):
        return function.n_instructions()
    if not function.is_a("MXFunction"):
        return inf
    total = 0.0
    for k in range(function.n_instructions()):
        op = function.instruction_id(k)
        if op in (ca.OP_INPUT, ca.OP_OUTPUT):
            continue
        node = function.instruction_MX(k)
        if op == ca.OP_CALL:
            total += _length(node.which_function())
        elif op in _KEPT:
            return inf
        elif op in (ca.OP_DETERMINANT, ca.OP_INVERSE):  # by minors
            total += node.numel() * factorial(min(20, node.dep(0).shape[0]))
        else:
            total += node.nnz() * (node.dep(1).shape[1] if op == ca.OP_MTIMES else 1)
        if total > LONGEST:
            return inf
    return total


def lanes_source(function: ca.Function, limit: int = LIMIT) -> str | None:
    """C text that exports oc_dyn_points and oc_dyn_lanes, see points.c.in; None for what is not an SX Function of the
    instructions in WORDS. limit: instructions a part."""
    if not function.is_a("SXFunction") or function.has_free():
        return None
    tape = Tape(function)
    known = {*WORDS, ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT}
    if tape.calls or not known.issuperset(tape.op):
        return None
    parts, work = _parts(function, tape, limit)
    calls = "".join(f"  oc_dyn_part{k}(x, y, w);\n" for k in range(len(parts)))
    head = "static int oc_dyn_kernel(const vec* x, vec* y, vec* w, int mem) {\n"
    kernel = f"{head}{calls}  return 0;\n}}\n"
    return "".join([_lanes(), *parts, kernel, points_source(function, work)])


def _lanes() -> str:
    return filled("lanes.c", erfinv=filled("erfinv.c"))


def points_source(function: ca.Function, work: int, begin: str = "const int mem = 0;", end: str = "") -> str:
    """The loop over the points around oc_dyn_kernel, which needs so many places for its work."""
    ports = [function.sparsity_in(i) for i in range(function.n_in())]
    results = [function.sparsity_out(i) for i in range(function.n_out())]
    patterns = {"given": ports, "found": results}
    text = "".join(
        f"static const int oc_dyn_{which}{i}[] = {{{_pattern(s)}}};\n"
        for which, sparsities in patterns.items()
        for i, s in enumerate(sparsities)
    )
    words = {
        which: "".join(f"oc_dyn_{which}{i}, " for i in range(len(sparsities))) for which, sparsities in patterns.items()
    }
    sizes = {"inputs": sum(s.nnz() for s in ports), "outputs": sum(s.nnz() for s in results)}
    return text + filled("points.c", work=work, begin=begin, end=end, **sizes, **words)


def _pattern(sparsity: ca.Sparsity) -> str:
    """The numbers of a pattern, see points.c.in."""
    numbers = [*sparsity.shape, int(sparsity.is_dense())]
    if not sparsity.is_dense():
        runs: list[list[int]] = []
        for row, column in zip(*sparsity.get_triplet(), strict=True):
            if runs and runs[-1][1] == column and runs[-1][0] + runs[-1][2] == row:
                runs[-1][2] += 1
            else:
                runs.append([row, column, 1])
        numbers += [sparsity.nnz(), len(runs), *(x for run in runs for x in run)]
    return ", ".join(map(str, numbers))


def _parts(function: ca.Function, tape: Tape, limit: int) -> tuple[list[str], int]:
    """(C functions, one a part; number of places for values that later parts read)."""
    starts_in = _starts(function.nnz_in(i) for i in range(function.n_in()))
    starts_out = _starts(function.nnz_out(i) for i in range(function.n_out()))
    operand = {k: f"x[{starts_in[i] + j}]" for k, (i, j) in tape.inputs.items()}
    operand |= {k: f"V({_number(c)})" for k, c in tape.constants.items()}
    written = {k: f"y[{starts_out[i] + j}]" for k, (i, j) in tape.outputs.items()}
    places = _Places()
    parts = []
    for number, (start, end) in enumerate(pairwise(tape.cuts(limit))):
        local: dict[int, str] = {}
        lines: list[str] = []

        def read(k: int, start: int = start, local: dict[int, str] = local, lines: list[str] = lines) -> str:
            if k in operand:
                return operand[k]
            if k < start and k not in local:
                local[k] = f"a{k}"
                lines.append(f"const vec a{k} = w[{places.of[k]}];")
            return f"a{k}"

        partner = _sines(tape, start, end)
        for k in range(start, end):
            op, reads = tape.op[k], tape.reads[k]
            if op == ca.OP_OUTPUT:
                lines.append(f"{written[k]} = {read(reads[0])};")
            elif k in partner:
                if partner[k] > k:
                    s, c = (k, partner[k]) if op == ca.OP_SIN else (partner[k], k)
                    lines.append(f"vec a{s}, a{c}; SINCOS({read(reads[0])}, &a{s}, &a{c});")
            elif reads:
                values = ", ".join(map(read, reads))
                lines.append(f"const vec a{k} = {WORDS[op]}({values});")
        kept = [k for k in range(start, end) if tape.reads[k] and tape.last[k] >= end]
        lines += [f"w[{places.take(k)}] = a{k};" for k in kept]
        places.release(k for k in local if tape.last[k] < end)
        body = "".join(f"  {line}\n" for line in lines)
        head = f"APART void oc_dyn_part{number}(const vec* RESTRICT x, vec* RESTRICT y, vec* RESTRICT w) {{"
        parts.append(f"{head}\n{body}}}\n")
    return parts, places.most


def _starts(sizes: Iterable[int]) -> list[int]:
    out = [0]
    for size in sizes:
        out.append(out[-1] + size)
    return out


def _sines(tape: Tape, start: int, end: int) -> dict[int, int]:
    """{sine: cosine, and back} of the same value, both in a part: one call gives both."""
    first: dict[tuple[int, int], int] = {}
    out = {}
    for k in range(start, end):
        if tape.op[k] in (ca.OP_SIN, ca.OP_COS):
            other = first.get((ca.OP_SIN + ca.OP_COS - tape.op[k], tape.reads[k][0]))
            if other is not None and other not in out:
                out[k], out[other] = other, k
            first[tape.op[k], tape.reads[k][0]] = k
    return out


def _number(x: float) -> str:
    if isnan(x):
        return "NAN"
    if abs(x) == inf:
        return "INFINITY" if x > 0 else "-INFINITY"
    return f"({x!r})" if copysign(1, x) < 0 else repr(x)


class _Places:
    """Where values wait for later parts: of[value], with places that are free again used first."""

    def __init__(self) -> None:
        self.of: dict[int, int] = {}
        self.free: list[int] = []
        self.most = 0

    def take(self, value: int) -> int:
        if self.free:
            place = self.free.pop()
        else:
            place, self.most = self.most, self.most + 1
        self.of[value] = place
        return place

    def release(self, values: Iterable[int]) -> None:
        self.free += [self.of[k] for k in values]
