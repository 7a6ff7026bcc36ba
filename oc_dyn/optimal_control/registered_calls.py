"""A Function as scalar instructions, its calls of Functions with registered derivatives set apart.

    w_k = arguments of call k (z, .., y_1 .. y_(k-1)),    y_k = f_k(w_k),    outputs (z, .., y)

What is between the calls is SX, and so are the derivatives that come with them: derivatives of the whole are put
together by the chain rule, without an instruction that structure makes zero.
"""

from dataclasses import dataclass

import casadi as ca

from ..derivatives import registered
from ..interrupts import check_building
from ..subexpressions import merged
from .packing import nodes_of

_MOST = 16  # Functions whose derivatives are kept, for the next stage that calls them
_made: dict[int, tuple] = {}


@dataclass(frozen=True, eq=False)
class Columns:
    """A Function of a column w that gives a column y, and its derivatives, as Functions that are written out: value
    w -> y, jacobian w -> (y, w), gradient (w, seed) -> (w,) of seed' y, curvature (w, seed) -> (w, w) Hessian of it."""

    value: ca.Function
    jacobian: ca.Function
    gradient: ca.Function
    curvature: ca.Function


@dataclass(frozen=True, eq=False)
class Call:
    """One call: its name, its Columns, its arguments w, SX, and the symbols y of its results."""

    name: str
    of: Columns
    w: ca.SX
    y: ca.SX

    def values(self, w):
        """Results at w."""
        return self.of.value.call([w], True, False)[0]

    def derivative(self, w):
        """(y, w) sparse Jacobian at w."""
        return ca.sparsify(self.of.jacobian.call([w], True, False)[0])

    def gradient(self, w, seed):
        """(w,) gradient of seed' y."""
        return self.of.gradient.call([w, seed], True, False)[0]

    def curvature(self, w, seed):
        """(w, w) Hessian of seed' y, sparse."""
        return ca.sparsify(self.of.curvature.call([w, seed], True, False)[0])


def _columns(f):
    """Columns of an SXFunction, by its registered derivatives or by AD; those of the last ones are kept."""
    key = f.__hash__()  # complete: of a Function that is kept, so that no other gets it
    if key not in _made:
        _made[key] = f, _made_columns(f)
        while len(_made) > _MOST:
            del _made[next(iter(_made))]
    return _made[key][1]


def _made_columns(f):
    sizes_in, sizes_out = [f.size_in(i) for i in range(f.n_in())], [f.size_out(i) for i in range(f.n_out())]
    w, seed = (ca.SX.sym(name, sum(n * m for n, m in sizes)) for name, sizes in (("w", sizes_in), ("seed", sizes_out)))
    given, seeds = _parts(w, sizes_in), _parts(seed, sizes_out)
    y = _column(_open(f).call(given, True, False))
    if known := registered(f):
        J, A, H = (_open(g) for g in (*known, known[1].jacobian()))
        given += [ca.SX(*size) for size in sizes_out]  # what the results are is not used
        n, empty = f.n_in(), [ca.SX(*size) for size in sizes_in]
        blocks = J.call(given, True, False)
        jacobian = ca.vertcat(*(ca.horzcat(*blocks[i : i + n]) for i in range(0, len(blocks), n)))
        gradient = _column(A.call([*given, *seeds], True, False))
        blocks, wide = H.call([*given, *seeds, *empty], True, False), n + 2 * f.n_out()
        curvature = ca.vertcat(*(ca.horzcat(*blocks[i * wide : i * wide + n]) for i in range(n)))
    else:
        jacobian, gradient = ca.jacobian(y, w), ca.gradient(ca.dot(seed, y), w)
        curvature = ca.jacobian(gradient, w, {"symmetric": True})
    return Columns(
        ca.Function("value", [w], [y]),
        ca.Function("jacobian", [w], [jacobian]),
        ca.Function("gradient", [w, seed], [ca.densify(gradient)]),
        ca.Function("curvature", [w, seed], [curvature]),
    )


def _parts(column, sizes):
    """A column as matrices of some sizes, one after the other."""
    ends = [0]
    for n, m in sizes:
        ends.append(ends[-1] + n * m)
    return [ca.reshape(x, *size) for x, size in zip(ca.vertsplit(column, ends), sizes, strict=True)]


@dataclass(frozen=True, eq=False)
class Unrolled:
    """inputs, outputs: SX, outputs of the inputs and of the results y of the calls."""

    inputs: list
    calls: list
    outputs: list

    def put_in(self, expressions, others=(), values=()):
        """Expressions of inputs, results and other symbols with what the results are, and `values` for the others."""
        given = [*self.inputs, *(c.y for c in self.calls), *others]
        ys = []
        for k, c in enumerate(self.calls):
            known = [*self.inputs, *(d.y for d in self.calls[:k])]
            ys.append(c.values(ca.Function("w", known, [c.w]).call([*self.inputs, *ys], True, False)[0]))
        return ca.Function("put", given, expressions).call([*self.inputs, *ys, *values], True, False)


def unrolled(f):
    """Unrolled of an MX or SX Function; None where it, or something that it calls, has no scalar form, or derivatives
    of its own that are not known here."""
    if f.is_a("SXFunction"):
        inputs = f.sx_in()
        return Unrolled(inputs, [], f.call(inputs, True, False)) if _plain(f) else None
    symbols = f.mx_in()
    expressions = _inlined(symbols, f.call(symbols, True, False))
    if expressions is None:
        return None
    expressions = merged(expressions)  # calls with the same arguments become one
    nodes = [x for x in _calls(symbols, expressions) if registered(x.which_function())]
    results, shapes = {}, []
    for node in nodes:
        g, column = node.which_function(), ca.MX.sym("y", sum(_sizes_out(node.which_function())))
        shapes.append(column)
        at = 0
        for i, size in enumerate(_sizes_out(g)):
            value = ca.reshape(column[at : at + size], *g.size_out(i))
            results[node.__hash__(), i] = ca.project(value, g.sparsity_out(i))  # what reads it counts its entries
            at += size
    taken = [x for x in nodes_of(expressions) if x.is_output() and (x.dep(0).__hash__(), x.which_output()) in results]
    arguments = [ca.veccat(*(ca.densify(node.dep(i)) for i in range(node.n_dep()))) for node in nodes]
    put = [results[x.dep(0).__hash__(), x.which_output()] for x in taken]
    rest = ca.graph_substitute([*arguments, *expressions], taken, put)
    try:
        flat = ca.Function("rest", [*symbols, *shapes], rest).expand()
    except RuntimeError:  # it calls something that has no SX form
        return None
    if flat.find_functions():  # one that must not be written out
        return None
    given = flat.sx_in()
    found = flat.call(given, True, False)
    ys = given[len(symbols) :]
    calls = []
    for node, w, y in zip(nodes, found, ys, strict=False):
        check_building()
        g = node.which_function()
        calls.append(Call(g.name(), _columns(g), w, y))
    return Unrolled(given[: len(symbols)], calls, found[len(calls) :])


def _open(f):
    """An SXFunction whose calls can be written out, from one that must never be."""
    nodes, inputs, registers = ca.vertsplit(f.instructions_sx()), f.sx_in(), {}
    outputs = [[None] * f.nnz_out(i) for i in range(f.n_out())]
    for k, node in enumerate(nodes):
        to, kind = f.instruction_output(k), f.instruction_id(k)
        if kind == ca.OP_OUTPUT:
            outputs[to[0]][to[1]] = registers[f.instruction_input(k)[0]]
        elif kind == ca.OP_INPUT:  # their nodes are NaN, which shows where one is a result by itself
            i, entry = f.instruction_input(k)
            registers[to[0]] = inputs[i].nz[entry]
        else:
            registers[to[0]] = node
    values = [ca.SX(f.sparsity_out(i), ca.vertcat(ca.SX(0, 1), *x)) for i, x in enumerate(outputs)]
    return ca.Function(f.name(), inputs, values, f.name_in(), f.name_out())


def _sizes_out(g):
    return [g.numel_out(i) for i in range(g.n_out())]


def _column(values):
    return ca.veccat(*(ca.densify(x) for x in values))


def _plain(f):
    """Whether derivatives of a Function are those of its instructions, or registered ones."""
    if not (all(f.is_diff_in()) and all(f.is_diff_out())):
        return False
    own = f.cache().get(f"jac_{f.name()}")
    if own is None or registered(f):
        return True
    if not (f.is_a("SXFunction") or f.is_a("MXFunction")):
        return False
    inputs = f.sx_in() if f.is_a("SXFunction") else f.mx_in()
    twin = ca.Function(f.name(), inputs, f.call(inputs), f.name_in(), f.name_out())
    return twin.jacobian().serialize() == own.serialize()  # CasADi's own, which it keeps as it keeps a custom one


def _inlined(symbols, expressions):
    """The expressions with calls written out that hide calls of Functions with registered derivatives; None where that
    cannot be."""
    while True:
        f = ca.Function("calls", symbols, expressions)
        if not all(_plain(g) for g in f.find_functions()):
            return None
        hiding = [g for g in f.find_functions(0) if not registered(g) and any(map(registered, g.find_functions()))]
        if not hiding:
            return expressions
        if not all(g.is_a("MXFunction") for g in hiding):
            return None
        put = {}
        for node in _calls(symbols, expressions):
            g = node.which_function()
            if any(g.__hash__() == h.__hash__() for h in hiding):
                written = g.call([node.dep(i) for i in range(node.n_dep())], True, False)
                put |= {(node.__hash__(), i): x for i, x in enumerate(written)}
        taken = [x for x in nodes_of(expressions) if x.is_output() and (x.dep(0).__hash__(), x.which_output()) in put]
        expressions = ca.graph_substitute(
            expressions, taken, [put[x.dep(0).__hash__(), x.which_output()] for x in taken]
        )


def _calls(symbols, expressions):
    """Nodes that call Functions, in order."""
    f = ca.Function("calls", symbols, expressions)
    return [f.instruction_MX(k) for k in range(f.n_instructions()) if f.instruction_id(k) == ca.OP_CALL]
