"""casadi.cse of long scalar expressions, quicker: the same nodes, and so the same instruction counts and values.
CasADi writes every node as a text and looks that up. Here nodes are numbered from the listing of a Function, and those
that change are made again many at a time: all of one level (longest way from what stays as it is) and operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

SHORT = 8000  # instructions below which CasADi is no slower
_LINES = 6_000  # of a listing read at a time: what they need stays in the processor's cache
_WIDE = 6  # instructions that CasADi does while one level and operation begins
_ROUNDS = 5  # when equal operands become one, as in x - x, expressions may get simpler, and others equal
_OPTIONS = {"live_variables": False, "max_io": 0, "cse": False}
_LEAVES = (ca.OP_CONST, ca.OP_INPUT)
_POWERS = (ca.OP_POW, ca.OP_CONSTPOW)  # are written alike
_OF_ONE = {ca.OP_MUL: ca.OP_SQ, ca.OP_ADD: ca.OP_TWICE}  # what CasADi makes of two equal operands

_NEWLINE, _HASH, _AT, _BRACKET, _ZERO = (ord(x) for x in "\n#@[0")
_NONE = (1 << 24) - 1  # no operand, in a key


def merged(expressions: Any) -> Any:
    """casadi.cse: an expression (SX, MX or DM), or a list of them, with equal subexpressions computed once."""
    if not isinstance(expressions, (list, tuple)):
        return merged([expressions])[0]
    given = list(expressions)
    return _merged(given) if all(isinstance(x, ca.SX) for x in given) else ca.cse(given)


def _merged(given: list[ca.SX]) -> list[ca.SX]:
    tape = ca.Function("f", [], given, {**_OPTIONS, "allow_free": True})
    if tape.n_instructions() < SHORT:
        return ca.cse(given)
    found, symbols = given, ca.vertcat(*tape.free_sx())
    tape = first = ca.Function("f", [symbols], given, _OPTIONS)
    for _ in range(_ROUNDS):
        listing = _listed(tape)
        if listing is None:
            return ca.cse(given)
        if _all_differ(listing):
            break
        values = _numbered(listing)
        groups = _groups(listing, values)
        if _WIDE * len(groups.cuts) > len(listing.op):
            return ca.cse(given)
        entries = _made(tape, symbols, listing, values, groups)
        ends = np.cumsum([0, *(x.nnz() for x in found)]).tolist()
        found = [ca.SX(x.sparsity(), entries.nz[a:b]) for x, (a, b) in zip(found, pairwise(ends), strict=True)]
        tape = ca.Function("f", [symbols], found, _OPTIONS)
        if tape.n_instructions() == values.left and not values.simpler:
            break
    return found if _agree(first, tape) else ca.cse(given)


def _agree(f: ca.Function, g: ca.Function) -> bool:
    """Whether two Functions of a column have the same values at a point: what is read from a listing is not trusted."""
    x = np.random.default_rng(0).uniform(0.1, 1, f.numel_in(0))
    pairs = zip(f.call([x]), g.call([x]), strict=True)
    return all(np.allclose(a.nonzeros(), b.nonzeros(), rtol=1e-6, atol=1e-9, equal_nan=True) for a, b in pairs)


# -- reading ------------------------------------------------------------------------------------------------------


class _Listing(NamedTuple):
    """Of each instruction: its operation, and the instructions whose values it reads, -1 for none. outputs: the
    instructions that set the entries of the outputs, in their order."""

    op: Any
    first: Any
    second: Any
    outputs: Any


def _listed(tape: ca.Function) -> _Listing | None:
    """The instructions of an SX Function; None where its listing is not as expected."""
    n, text = tape.n_instructions(), tape.str(True)
    data = np.frombuffer(text.partition("\nAlgorithm:\n")[2].rstrip("\n").encode() + b"\n", np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    if len(ends) != n or n >= _NONE:
        return None
    starts = np.concatenate([[0], ends[:-1] + 1])
    pieces = [_lines(data, starts[k : k + _LINES], ends[k : k + _LINES]) for k in range(0, n, _LINES)]
    forms, counts, numbers = (np.concatenate(x) for x in zip(*pieces, strict=True))
    return _understood(tape, forms, counts, numbers)


def _lines(data: Any, starts: Any, ends: Any) -> tuple[Any, Any, Any]:
    """Of each line: a hash of its text but for the digits; how many numbers stand behind @ or [; the first three."""
    begin = starts[0]
    data, starts, ends = data[begin : ends[-1] + 1], starts - begin, ends - begin
    digit = (data - np.uint8(_ZERO)) < 10
    first, last = digit.copy(), digit.copy()
    first[1:] &= ~digit[:-1]
    last[:-1] &= ~digit[1:]
    left, right = np.flatnonzero(first), np.flatnonzero(last) + 1
    before = data[left - 1]
    known = (before == _AT) | (before == _BRACKET)
    left, right = left[known], right[known]
    values = np.zeros(len(left), np.int64)
    for k in range(int((right - left).max(initial=0))):
        at = np.minimum(left + k, right - 1)
        values = np.where(left + k < right, 10 * values + data[at] - _ZERO, values)
    reach = np.searchsorted(left, np.concatenate([starts, [len(data)]]))
    counts = np.diff(reach)
    numbers = np.full((len(starts), 3), -1)
    for k in range(3):
        has = counts > k
        numbers[has, k] = values[reach[:-1][has] + k]
    text = np.where(first, np.uint8(_HASH), data)[~digit | first]
    ends = np.flatnonzero(text == _NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    place = np.arange(len(text)) - np.repeat(starts, ends - starts + 1)
    characters, places = _weights()
    hashes = np.add.reduceat(characters[text] * places[np.minimum(place, len(places) - 1)], starts)
    return hashes, counts, numbers


@cache  # when it is first needed: importing numpy.random takes a while
def _weights() -> tuple[Any, Any]:
    """What hashes of lines weigh characters with, and their places."""
    random = np.random.default_rng(0)
    places = random.integers(1, 2**63, 64, dtype=np.uint64) | np.uint64(1)
    return random.integers(1, 2**63, 256, dtype=np.uint64), places


def _understood(tape: ca.Function, forms: Any, counts: Any, numbers: Any) -> _Listing | None:
    """What lines mean, by what CasADi says of the first and the last one of each form; None if that does not agree."""
    n = len(forms)
    _, firsts, form = np.unique(forms, return_index=True, return_inverse=True)
    lasts = n - 1 - np.unique(forms[::-1], return_index=True)[1]
    kinds = []
    for some in zip(firsts.tolist(), lasts.tolist(), strict=True):
        op = tape.instruction_id(some[0])
        for k in some:
            expected = [*tape.instruction_output(k), *tape.instruction_input(k)]
            if numbers[k, : counts[k]].tolist() != expected or (tape.instruction_id(k) != op and op not in _POWERS):
                return None
        kinds.append(op)
    op = np.array(kinds)[form]
    powers = np.flatnonzero(np.isin(op, _POWERS))
    op[powers] = [tape.instruction_id(k) for k in powers.tolist()]
    is_output, is_leaf = op == ca.OP_OUTPUT, np.isin(op, _LEAVES)
    maker = np.full(n, -1)  # by place: the instruction whose value it holds
    maker[numbers[~is_output, 0]] = np.flatnonzero(~is_output)
    first = np.where(is_leaf, -1, numbers[np.arange(n), np.where(is_output, 2, 1)])
    second = np.where(is_leaf | is_output, -1, numbers[:, 2])
    first, second = (np.where(x < 0, -1, maker[x]) for x in (first, second))
    outputs = np.flatnonzero(is_output)
    order = np.lexsort((numbers[outputs, 1], numbers[outputs, 0]))
    return _Listing(op, first, second, outputs[order])


# -- numbering ----------------------------------------------------------------------------------------------------


class _Values(NamedTuple):
    """Of each instruction: the first one that gives the same value, and the level of what is to be made again, 0 for
    what stays. left: how many instructions are left. simpler: whether there is something like x - x."""

    same: Any
    level: Any
    left: int
    simpler: bool


def _all_differ(listing: _Listing) -> bool:
    """Whether no two instructions have the same operation and operands, so that there is nothing to do."""
    op, first, second = (x[_inner(listing)] for x in listing[:3])
    keys = np.sort(op << 48 | first << 24 | second & _NONE)  # np.unique takes many times as long
    return bool(np.diff(keys).all())


def _inner(listing: _Listing) -> Any:
    """The instructions that compute something."""
    return np.flatnonzero((listing.first >= 0) & (listing.op != ca.OP_OUTPUT))


def _numbered(listing: _Listing) -> _Values:
    n, inner = len(listing.op), _inner(listing)
    same, level = list(range(n)), [0] * n
    known: dict[int, int] = {}
    pairs: dict[int, tuple[int, int, int]] = {}  # of sums and products, and in the other order
    turned: dict[int, tuple[int, int, int]] = {}
    simpler = False
    for k, op, first, second in zip(*(x.tolist() for x in (inner, *(x[inner] for x in listing[:3]))), strict=True):
        a = same[first]
        height, changed = level[a], a != first
        if second >= 0:
            b = same[second]
            changed = changed or b != second
            if level[b] > height:
                height = level[b]
            if a in pairs and b in pairs and pairs[a] == turned[b]:
                b, changed = a, True  # x y and y x: CasADi takes them for one when it makes, say, their product again
            if a == b:
                simpler = simpler or op not in _OF_ONE
                op, second = (_OF_ONE[op], -1) if op in _OF_ONE else (op, second)
        key = op << 48 | a << 24 | (_NONE if second < 0 else b)
        found = known.setdefault(key, k)
        if found == k and op in _OF_ONE:
            pairs[k], turned[k] = (op, a, b), (op, b, a)
        if found != k:
            same[k] = found
        elif height or changed:
            level[k] = height + 1
    return _Values(np.array(same), np.array(level), n - len(inner) + len(known), simpler)


class _Groups(NamedTuple):
    """changed: instructions to be made again, in their order; cuts: where among them groups begin, and the end."""

    changed: Any
    cuts: list[int]


def _groups(listing: _Listing, values: _Values) -> _Groups:
    changed = np.flatnonzero(values.level)
    level, op = values.level[changed], listing.op[changed]
    order = np.lexsort((op, level))
    changed, level, op = changed[order], level[order], op[order]
    if not len(changed):  # equal ones are outputs alone
        return _Groups(changed, [])
    cuts = np.flatnonzero((np.diff(level) != 0) | (np.diff(op) != 0)) + 1
    return _Groups(changed, [0, *cuts.tolist(), len(changed)])


# -- making -------------------------------------------------------------------------------------------------------


def _made(tape: ca.Function, symbols: ca.SX, listing: _Listing, values: _Values, groups: _Groups) -> ca.SX:
    """The entries of the outputs in one column; tape: of `symbols`."""
    n, changed = len(listing.op), groups.changed
    place = np.arange(n)
    place[changed] = n + np.arange(len(changed))
    place = place[values.same]
    nodes = ca.vertcat(tape.instructions_sx(), ca.SX.zeros(len(changed)))
    inputs = np.flatnonzero(listing.op == ca.OP_INPUT).tolist()  # CasADi has NaN there
    nodes.nz[inputs] = symbols.nz[[tape.instruction_input(k)[1] for k in inputs]]
    first, second = place[listing.first[changed]], place[listing.second[changed]]
    for start, end in pairwise(groups.cuts):
        op, binary = int(listing.op[changed[start]]), listing.second[changed[start]] >= 0
        x = _entries(nodes, first[start:end])
        x = ca.SX.binary(op, x, _entries(nodes, second[start:end])) if binary else ca.SX.unary(op, x)
        nodes.set_nz(x, False, ca.Slice(n + start, n + end))
    return _entries(nodes, place[listing.first[listing.outputs]])


def _entries(x: ca.SX, numbers: Any) -> ca.SX:
    """Entries of a column. A list takes CasADi 10 us, a number 3."""
    return x.get_nz(False, int(numbers[0]) if len(numbers) == 1 else numbers.tolist())


def put_in(symbols: Sequence[Any], expressions: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """SX expressions with values for the symbols, lists of matrices; other symbols in them, those of a model, stay."""
    own = {x.element_hash() for s in symbols for x in ca.symvar(ca.vec(s))}
    free = [x for x in ca.symvar(ca.veccat(*expressions)) if x.element_hash() not in own]
    return list(ca.Function("f", [*symbols, *free], list(expressions)).call([*values, *free]))
