"""Expressions of a transcribed Problem as Functions of many columns, for solution_check."""

from dataclasses import dataclass, replace
from math import factorial

import casadi as ca
import numpy as np

from .bernstein import shifted
from .expression_text import expression_text, summary
from .manifolds import formula
from .polynomials import at, later, uniform_b_spline
from .program_names import names_of_expressions

_TERMS = 200  # of a sum that are told apart
_LONGEST = 22  # expression that limits without a name are called by


def evaluated(made, expressions, name="f"):
    """Function (x, u, constants) -> the expressions one below the other; constants: free durations, parameters of the
    problem, those of a stage."""
    sizes = [len(made.times), made.n_p, made.n_s, int(made.free_mesh)]
    x, u, c = ca.MX.sym("x", made.x_scale.size), ca.MX.sym("u", made.u_scale.size), ca.MX.sym("c", sum(sizes))
    T, p, s, relative = ca.vertsplit(c, np.cumsum([0, *sizes]).tolist())
    constants = [*(ca.vertsplit(T) if made.times else []), *made.split(p, made.p), *made.split(s, made.own)]
    constants += [relative] if made.free_mesh else []
    values = made.at(expressions, x, u, constants)
    return expanded(ca.Function(name, [x, u, c], [ca.densify(ca.vertcat(ca.MX(0, 1), *map(ca.vec, values)))]))


def expanded(f):
    """f written out in scalars, which is evaluated faster, or as it is where it calls what has no such form."""
    try:
        return f.expand()
    except RuntimeError:  # it calls something that has no SX form
        return f


def columns(f, *values):
    """f at every column, as an array (rows, columns)."""
    count = values[0].shape[1]
    if not f.size1_out(0) or not count:
        return np.zeros((f.size1_out(0), count))
    return (f.map(count) if count > 1 else f)(*values).full()


def largest_term(f, values, row):
    """Largest size, at any column, of the terms that a row of f is the sum of: what a difference is small against. 0
    where f is no Function of scalars."""
    if not f.is_a("SXFunction"):
        return 0.0
    inputs = f.sx_in()
    terms, left = [], [(f(*inputs)[row], 1.0)]
    while left:
        x, factor = left.pop()
        parts = [x.dep(k) for k in range(x.n_dep())]
        if parts and x.op() in (ca.OP_ADD, ca.OP_SUB, ca.OP_NEG) and len(left) + len(terms) < _TERMS:
            left += [(part, factor) for part in parts]
        elif len(parts) == 2 and x.op() == ca.OP_MUL and parts[0].is_constant():
            left.append((parts[1], factor * float(parts[0])))
        else:
            terms.append(factor * x)
    sizes = np.abs(columns(ca.Function("terms", inputs, [ca.densify(ca.vertcat(*terms))]), *values))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def buffered(f, count, constants):
    """Function (x, u) -> f at so many columns, which is called often: arrays are copied into buffers, not converted."""
    f = f.map(count) if count > 1 else f
    buffer, run = f.buffer()
    x, u, c, out = (np.zeros(shape, order="F") for shape in (*(f.size_in(i) for i in range(3)), f.size_out(0)))
    c[...] = constants
    for i, values in enumerate((x, u, c)):
        if values.size:
            buffer.set_arg(i, memoryview(values.T))
    buffer.set_res(0, memoryview(out.T))

    def evaluated(states, controls, keep=(buffer, c)):
        x[...], u[...] = states, controls
        run()
        return out.copy()

    return evaluated


@dataclass(frozen=True, eq=False)
class PhaseFunctions:
    """Functions of a phase, and which rows of the states they are for."""

    rated: list  # rows of the states that have rates
    rates: ca.Function  # those rates, and the rate of the cost
    mapped: list  # rows of the states that have a next value
    maps: ca.Function
    joined: list  # rows of the states that a join changes
    joins: ca.Function
    known: list  # [(states, controls, share, lengths) -> None] that set states of chains and bodies within an interval
    free: set  # rows of the states that have a next value and are known within intervals
    dense: tuple  # limits (one row each) that have to hold everywhere, with their Function
    nodal: tuple  # the same of those that can be evaluated at nodes alone, or have to hold there alone
    rest: tuple  # of what holds at nodes alone, but can be told between them: equations of methods of low order, and
    # limits with parameters that vary from node to node


def phase_functions(made, phase, bounds):
    """A PhaseFunctions of a phase of a Transcription, whose limits have the bounds {name: (lower, upper)} now."""
    rows = dict(zip(range(len(made.states)), made.state_rows, strict=True))
    rated, mapped, joined = (
        [i for k in ks for i in rows[k]] for ks in (made.rated(phase), list(phase.steps), list(phase.join))
    )
    known = [(made.states[k], phase.rates[k]) for k in made.rated(phase)]
    rates = [w if v.manifold is None else formula(v.manifold, "rate")(v.symbol, w) for v, w in known]
    cost = sum((ca.sumsqr(r) / 2 for r in phase.squares), sum(phase.integrals, ca.MX(0)))
    cost = sum((rate for rate, _ in phase.sums), cost)
    cost = sum((mean / made.mean_duration(phase) for mean in phase.means), cost)
    known, free = _between(made, phase)
    unknown = [made.states[k].symbol for k in phase.steps if not set(rows[k]) <= free]
    unknown = ca.vertcat(ca.MX(0, 1), *unknown)
    held = phase.held(made.states)
    stepped = ca.vertcat(ca.MX(0, 1), *(made.states[k].symbol for k in phase.steps if k not in held))
    varying = ca.vertcat(ca.MX(0, 1), *made.own[1:])
    low, groups = low_order(made.method), {"dense": [], "nodal": [], "rest": []}
    of = f" of phase {phase.number}" if len(made.phases) > 1 else ""
    limits = [(row.name or f"{k}{of}", row) for k, row in enumerate(phase.rows)]
    limits += {w.label[0]: w.constraint for w in phase.within if w.fixed is None}.items()
    limits += [(row.name, row) for row in made.chain_limits(bounds)]
    limits = _scalars(made, limits, bounds, of)
    for r in limits:
        # what is said of a later time in the interval belongs to nodes
        alone = r.of_nodes or ca.depends_on(r.expression, ca.vertcat(unknown, made.description.ahead))
        equation = r.lower[0] == r.upper[0] and (low or ca.depends_on(r.expression, stepped))
        by_node = bool(equation) or ca.depends_on(r.expression, varying)
        groups["nodal" if alone or by_node else "dense"].append(r)
        if by_node and not alone:
            groups["rest"].append(r)
    return PhaseFunctions(
        rated,
        evaluated(made, [*rates, cost], "rates"),
        mapped,
        evaluated(made, list(phase.steps.values()), "maps"),
        joined,
        evaluated(made, list(phase.join.values()), "joins"),
        known,
        free,
        **{name: (rows, evaluated(made, [r.expression for r in rows], "limits")) for name, rows in groups.items()},
    )


def _scalars(made, limits, bounds, of):
    """Every element of limits [(name, Constraint)] as one of its own. Those of limits without a name, which have
    numbers instead, are called by their expressions, as "v[0]", where that is short and no other is called so."""
    named = names_of_expressions(made.description)
    out = [(one, name) for name, row in limits for one in row.with_bounds(bounds).scalars(name)]
    taken = {one.name for one, _ in out}
    for k, (one, name) in enumerate(out):
        text = expression_text(one.expression, _LONGEST, named) if name.removesuffix(of).isdigit() else ""
        if text and text != summary(one.expression) and text + of not in taken:
            taken.add(text + of)
            out[k] = replace(one, name=text + of), name
    return [one for one, _ in out]


def slopes_of(functions):
    """Function (x, u, constants) -> derivative of the rates, and of the cost's rate, by the states that have rates."""
    f = functions.rates
    x, u, c = f.mx_in()
    J = ca.jacobian(f(x, u, c), x)[:, functions.rated]
    return ca.Function("slopes", [x, u, c], [ca.densify(J)])


def low_order(method):
    """Whether states between nodes are off by an error that coarse meshes are known for."""
    return getattr(method, "order", np.inf) <= 2


def _between(made, phase):
    """([function (x, u, share, h) that writes into x what chains and contact bodies are within an interval], rows)."""
    places = dict(zip(map(id, made.symbols), [*made.state_rows, *made.control_rows], strict=False))
    numbers = {id(v.symbol): k for k, v in enumerate(made.states)}
    known, rows = [], {i for k in phase.held(made.states) for i in made.state_rows[k]}

    def stepped(symbols):
        return all(numbers.get(id(y)) in phase.steps for y in symbols)

    for chain in made.description.chains:
        if stepped(chain[:-1]):
            *own, last = (places[id(y)] for y in chain)
            rows |= {i for part in own for i in part}
            known.append(lambda x, u, s, h, own=own, last=last: _set_chain(x, u, own, last, s * h[0]))
    for chain, scale in zip(made.description.bernstein, (c.scale for c in made.chain_numbers), strict=True):
        *own, last = (places[id(y)] for y in chain.coefficients)
        rows |= {i for part in own for i in part}
        known.append(lambda x, u, s, h, own=own, last=last, k=scale: _set_bernstein(x, u, own, last, k, s * h[1]))
    for points in made.description.splines:
        if stepped(points[:-1]):
            *own, last = (places[id(y)] for y in points)
            rows |= {i for part in own for i in part}
            known.append(lambda x, u, s, h, own=own, last=last: _set_spline(x, u, own, last, s))
    for body in made.description.bodies:
        if stepped([body.q, body.v]):
            q, v, dv = (places[id(y)] for y in (body.q, body.v, body.dv))
            rows |= {*q, *v}
            known.append(lambda x, u, s, h, at=(q, v, dv), robot=body.robot: _set_body(x, u, robot, *at, s * h[0]))
    return known, rows


def _set(x, places, values):
    for i, y in zip(places, values, strict=False):
        x[i] = y


def _set_chain(x, u, own, last, t):
    _set(x, own, later([*(x[i] for i in own), u[last]], t))


def _set_bernstein(x, u, own, last, scale, s):
    """Unknowns of the same polynomials a time s mean lengths later; the last is a control and stays."""
    _set(x, own, shifted(scale, np.stack([*(x[i] for i in own), u[last]]), s))


def _set_spline(x, u, own, last, share):
    """Control points of the same polynomial with the interval's start moved by a share of it; the last is a control."""
    degree = len(own)
    W = uniform_b_spline(degree)
    points = np.stack([*(x[i] for i in own), u[last]])

    def moves(share):
        powers = np.array([at(degree, d, share) / factorial(d) for d in range(degree + 1)])  # Taylor shift by share
        return np.linalg.solve(W, powers @ W)

    if np.ndim(share):
        moved = np.einsum("kij,jnk->ink", np.array([moves(s) for s in share]), points)
    else:
        moved = np.tensordot(moves(share), points, axes=1)
    _set(x, own, moved[:-1])
    u[last] = moved[-1]


def _set_body(x, u, robot, q, v, dv, t):
    step = t * x[v] + t**2 / 2 * u[dv]
    x[q], x[v] = robot.integrate_function().map(x.shape[1])(x[q], step).full(), x[v] + t * u[dv]
