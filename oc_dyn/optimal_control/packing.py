"""A Description without its symbols, which cannot be sent to another process: one Function stands for all of its
expressions. There symbols are made anew, of the same names, and the Function is written out in them."""

from dataclasses import dataclass, fields, is_dataclass
from types import MappingProxyType

import casadi as ca
import numpy as np

from ..derivatives import registered, with_registered
from ..errors import UnknownName

_SYMBOL, _EXPRESSION, _MAPPING = "symbol", "expression", "mapping"


@dataclass(frozen=True, eq=False)
class SampledGuess:
    """A guess that was a function of the share of the time, which may be of no module: its values, straight lines
    between."""

    shares: np.ndarray
    values: np.ndarray

    def __call__(self, share):
        """The guess at a share of the time, from 0 to 1."""
        return np.array([np.interp(share, self.shares, column) for column in self.values.T])


def packed_numbers(numbers, description):
    """Numbers whose guesses can be sent. Functions are sampled where the methods of integrators.py ask for them, so
    that these get the same values."""
    places = description.places
    inner = np.array([0.5, *ca.collocation_points(3, "legendre"), *ca.collocation_points(3, "radau")])
    shares = np.unique(np.concatenate([places, np.ravel(places[:-1, None] + np.diff(places)[:, None] * inner)]))

    def plain(guess):
        if isinstance(guess, (list, tuple)):
            return [plain(x) for x in guess]
        if not callable(guess) or isinstance(guess, SampledGuess):
            return guess
        return SampledGuess(shares, np.array([np.ravel(guess(share)) for share in shares], float))

    kept = {f.name: dict(getattr(numbers, f.name)) for f in fields(numbers)}
    return type(numbers)(**{**kept, "guess": {name: plain(x) for name, x in numbers.guess.items()}})


def packed(description):
    """{"names", "sizes": of the symbols; "value": the description with ("symbol" or "expression", number) in place of
    its expressions; "function": Function of all symbols, giving all expressions; "calls": see _without_registered}."""
    symbols, expressions = {}, []

    def plain(x):
        if isinstance(x, ca.MX):
            if x.is_symbolic():
                return _SYMBOL, symbols.setdefault(x.__hash__(), (len(symbols), x))[0]
            expressions.append(x)
            return _EXPRESSION, len(expressions) - 1
        if is_dataclass(x) and type(x).__module__ == type(description).__module__:
            return type(x), {f.name: plain(getattr(x, f.name)) for f in fields(x) if f.repr}
        if isinstance(x, (tuple, list)):
            return type(x), [plain(y) for y in x]
        if isinstance(x, (dict, MappingProxyType)):
            return _MAPPING, {k: plain(y) for k, y in x.items()}
        return None, x

    value = plain(description)
    symbols = [x for _, x in symbols.values()]
    for x in expressions:
        foreign = [s for s in ca.symvar(x) if not any(ca.is_equal(s, y) for y in symbols)]
        if foreign:
            raise UnknownName("symbol of the problem", foreign[0].name(), [s.name() for s in symbols])
    calls, results, expressions = _without_registered(symbols, expressions)
    return {
        "names": [s.name() for s in symbols],
        "sizes": [s.shape for s in symbols],
        "value": value,
        "calls": calls,
        "function": ca.Function("problem", [*symbols, *results], expressions),
    }


def _without_registered(symbols, expressions):
    """([(Function, its registered derivatives, or the number of the call that has them)] of the calls in order,
    symbols of their results, [arguments of all calls, expressions]): calls of Functions with registered derivatives,
    which CasADi does not write, are taken out and their results put in as symbols."""
    f = ca.Function("calls", symbols, expressions)
    if not any(registered(g) for g in f.find_functions(0)):
        return [], [], expressions
    nodes = [f.instruction_MX(k) for k in range(f.n_instructions()) if f.instruction_id(k) == ca.OP_CALL]
    nodes = [x for x in nodes if registered(x.which_function())]
    first, calls, results = {}, [], {}
    for k, node in enumerate(nodes):
        g = node.which_function()
        known = first.setdefault(g.__hash__(), k)
        calls.append((g, registered(g) if known == k else known))
        for i in range(g.n_out()):
            results[node.__hash__(), i] = ca.MX.sym(f"result_{k}_{i}", g.sparsity_out(i))
    outputs = [x for x in nodes_of(expressions) if x.is_output() and (x.dep(0).__hash__(), x.which_output()) in results]
    arguments = [node.dep(i) for node in nodes for i in range(node.n_dep())]
    put = [results[x.dep(0).__hash__(), x.which_output()] for x in outputs]
    return calls, list(results.values()), ca.graph_substitute([*arguments, *expressions], outputs, put)


def nodes_of(expressions):
    """All nodes of a graph."""
    found, left = {}, list(expressions)
    while left:
        x = left.pop()
        if x.__hash__() not in found:
            found[x.__hash__()] = x  # kept, so that no other gets its hash
            left += [x.dep(i) for i in range(x.n_dep())]
    return found.values()


def _with_registered(symbols, calls, function):
    """The expressions, calls and their registered derivatives put back."""
    known, made = [], []
    for g, of in calls:
        made.append(with_registered(g, *of) if isinstance(of, tuple) else made[of])
        known += [ca.MX.sym("result", g.sparsity_out(i)) for i in range(g.n_out())]
    parts = function.call([*symbols, *known], True, False)
    values = []
    for g in made:
        own, parts = parts[: g.n_in()], parts[g.n_in() :]
        values += g.call(ca.substitute(own, known[: len(values)], values))
    return ca.substitute(parts, known, values) if calls else parts


def unpacked(given):
    """Description of what packed() gives, with symbols of its own."""
    symbols = [ca.MX.sym(name, *size) for name, size in zip(given["names"], given["sizes"], strict=True)]
    expressions = _with_registered(symbols, given["calls"], given["function"])

    def restored(x):
        kind, value = x
        if kind is None:
            return value
        if kind in (_SYMBOL, _EXPRESSION):
            return (symbols if kind == _SYMBOL else expressions)[value]
        if kind == _MAPPING:
            return MappingProxyType({k: restored(y) for k, y in value.items()})
        if isinstance(value, dict):
            return kind(**{k: restored(y) for k, y in value.items()})
        made = [restored(y) for y in value]
        return kind(made) if kind in (tuple, list) else kind(*made)  # a NamedTuple

    return restored(given["value"])
