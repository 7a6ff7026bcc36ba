"""Which rate, limit or cost is no finite number at some unknowns, at which node, and through which operation."""

from types import SimpleNamespace

import casadi as ca
import numpy as np

from .check_functions import columns, evaluated
from .expression_text import expression_text
from .program_names import ProgramNames, names_of_expressions
from .solution_check import constants_of
from .solver import no_number
from .worst_rows import function_of


def first_not_finite(solution, unknowns):
    """Text: the first value or derivative that is not finite, or "" for none."""
    if found := _of_expressions(solution, unknowns):
        return found
    return _of_program(solution, unknowns)


def refused(made, given):
    """SolverResult of a solver that is not asked, as fatrop does not come back from a guess where a row, the cost or a
    derivative is no finite number; None where all are. given: what solve() is given."""
    at = given["x0"], given["p"]
    parts = (function_of(made, what)(*at).nonzeros() for what in ("rows", "cost", "gradient", "jacobian"))
    if all(np.isfinite(part).all() for part in parts):
        return None
    return no_number(made.assembly, given["x0"])


def _of_expressions(solution, unknowns):
    """Rates, steps, limits and costs evaluated at nodes by themselves: they tell more than rows made of them."""
    made = solution.transcribed
    x, u, durations = made.values(unknowns)
    times, lengths = made.times_of(durations), made.relative_lengths(unknowns)
    constants = constants_of(SimpleNamespace(
        transcribed=made, times=times, parameters=solution.parameters, relative_lengths=lengths
    ))  # fmt: skip
    for derivatives in (False, True):
        first = 0
        for phase in made.phases:
            here = slice(first, first + phase.nodes)
            first += phase.nodes
            if found := _of_phase(made, phase, (x[here].T, u[here].T, constants[:, here]), derivatives):
                return found
    return ""


def _of_phase(made, phase, given, derivatives):
    """The same of a phase, of values or of derivatives by states and controls."""
    of = f" of phase {phase.number}" if len(made.phases) > 1 else ""
    for what, expression in _named_of(made, phase):
        if not derivatives:
            found = _first_bad(made, expression, given)
            if found:
                row, k, size, value = found
                inner = _operation(made, expression, [y[:, k] for y in given])
                return f"{what}{f'[{row}]' if size > 1 else ''} is {value:g} at node {k}{of}{inner}"
            continue
        for v in (*made.states, *made.controls):
            slope = ca.jacobian(ca.vec(ca.MX(expression)), v.symbol)
            if slope.nnz() and (found := _first_bad(made, slope, given)):
                row, k, _, value = found
                i = row // ca.MX(expression).numel()
                there = columns(evaluated(made, [v.symbol]), *given)[i, k]
                name = f"{v.name}[{i}]" if v.size > 1 else v.name
                return f"the derivative of {what} by {name} is {value:g} at node {k}{of}, where {name} = {there:.6g}"
    return ""


def _first_bad(made, expression, given):
    """(row, number of the column, rows, value) of the first that is no finite number, or None."""
    values = columns(evaluated(made, [expression], "value"), *given)
    if np.isfinite(values).all():
        return None
    row, k = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
    return row, k, len(values), values[row, k]


def _named_of(made, phase):
    """[(what it is called, expression)] of a phase."""
    named = names_of_expressions(made.description)
    out = [(f"the rate of {made.states[k].name}", x) for k, x in phase.rates.items()]
    out += [(f"the next value of {made.states[k].name}", x) for k, x in phase.steps.items()]
    limits = [*phase.rows, *(w.constraint for w in phase.within if w.fixed is None)]
    out += [(f"the limit {r.name or expression_text(r.expression, named=named)}", r.expression) for r in limits]
    costs = [*phase.integrals, *phase.squares, *(rate for rate, _ in phase.sums), *phase.means]
    return out + [(f"the cost {expression_text(x, named=named)}", x) for x in costs]


def _operation(made, expression, given):
    """Text: the first operation of an expression whose result is no finite number though its arguments are."""
    symbols = [*made.symbols, made.description.ahead]
    f = ca.Function("f", symbols, [ca.vec(ca.MX(expression))])
    if f.n_instructions() > 3000 or made.outputs:
        return ""
    nodes = [f.instruction_MX(k) for k in range(f.n_instructions())
             if f.instruction_id(k) not in (ca.OP_OUTPUT, ca.OP_INPUT)]  # fmt: skip
    sizes = [s.numel() for s in symbols]
    values = np.split(np.concatenate([*given, [0.0]]), np.cumsum(sizes)[:-1])
    outputs = [[x.get_output(i) for i in range(x.n_out())] for x in nodes]
    arguments = [[x.dep(i) for i in range(x.n_dep()) if not x.dep(i).is_constant()] for x in nodes]
    results, known = (_values_of(symbols, some, values) for some in (outputs, arguments))
    for some, result, read, number in zip(outputs, results, arguments, known, strict=True):
        bad = [i for i, y in enumerate(result) if not np.isfinite(y).all()]
        if bad:
            told = [f"{expression_text(a, 40)} = {_number(v)}" for a, v in zip(read, number, strict=True)]
            return f": {expression_text(some[bad[0]])}" + (f" with {', '.join(told[:3])}" if told else "")
    return ""


def _values_of(symbols, lists, values):
    """Values of lists of expressions."""
    flat = iter(ca.Function("v", symbols, [x for some in lists for x in some]).call(list(map(ca.DM, values))))
    return [[np.ravel(next(flat).full()) for _ in some] for some in lists]


def _number(value):
    if value.size == 1:
        return f"{value[0]:.6g}"
    return f"[{', '.join(f'{v:.4g}' for v in value[:6])}{', ...' if value.size > 6 else ''}]"


def _of_program(solution, unknowns):
    """Rows and cost of the program, and their derivatives."""
    made = solution.transcribed
    names, given = ProgramNames(made), (unknowns, solution.parameters)
    rows = function_of(made, "rows")(*given).full().ravel()
    if not np.isfinite(rows).all():
        return f"{_called(names, *names.row(int(np.argmin(np.isfinite(rows)))))} is no finite number"
    gradient = function_of(made, "gradient")(*given).full().ravel()
    if not np.isfinite(function_of(made, "cost")(*given).full()).all():
        return "the cost is no finite number"
    if not np.isfinite(gradient).all():
        label, stage = names.unknown(int(np.argmin(np.isfinite(gradient))))
        return f"the derivative of the cost by {label.name} at node {_node(names, stage)} is no finite number"
    J = function_of(made, "jacobian")(*given)
    bad = np.flatnonzero(~np.isfinite(np.array(J.nonzeros())))
    if bad.size:
        row, column = (int(np.array(k)[bad[0]]) for k in J.sparsity().get_triplet())
        label, stage = names.unknown(column)
        by = f"{label.name} at node {_node(names, stage)}, which is {_value(unknowns, column, label):.6g} there,"
        return f"the derivative of {_called(names, *names.row(row))} by {by} is no finite number"
    return ""


def _value(unknowns, number, label):
    return unknowns[number] * label.scale + label.offset


def _node(names, stage):
    number, node = names.phase_and_node(stage)
    return f"{node} of phase {number}" if len(names.made.phases) > 1 else str(node)


def _called(names, label, stage):
    if label.what in ("dynamics", "step", "join"):
        return f"the {label.what} of {label.name} from node {_node(names, stage)} on"
    return f"the {label.what} {label.name} at node {_node(names, stage)}"
