"""What bounds, ends and parameters rule out by themselves, told before a solver runs.

Bounds of expressions are those of interval arithmetic, never too narrow, so that nothing feasible is refused. What is
looked at: rows of all nodes, of the first and the last one, where ends are fixed; bounds that parameters turn around;
states whose rate, by the bounds of what it reads, is too small for their way in the longest duration.
"""

import casadi as ca
import numpy as np

from ..numbers import as_floats
from .expression_text import expression_text
from .intervals import bounds_of
from .mesh import LONGEST, SHORTEST
from .program_names import names_of_expressions
from .reach import out_of_reach

TOLERANCE = 1e-6  # of a bound: what solvers let pass
MOST = 2000  # operations of an expression that is looked at


def first_contradiction(made, parameters):
    """Text: what of a Transcribed cannot hold whatever the unknowns are, or "" where nothing is seen. parameters:
    {symbol or name: value}."""
    boxes = Boxes(made, parameters)
    for phase in made.phases:
        if told := boxes.tightened(phase):
            return told
    return boxes.broken_row() or out_of_reach(boxes, made.method)


class Boxes:
    """Bounds of the symbols of a problem in its phases, at its start and at its goal: {id: (lower, upper)}."""

    def __init__(self, made, parameters):
        self.made, self.description, self.numbers = made, made.description, made.numbers
        self.functions = made.checks.setdefault("intervals", {})  # complete: of the expressions of its description
        description = self.description
        self.symbols = self._symbols()
        self.common = self._constants(parameters)
        self.phases = {phase.number: {**self.common, **self._variables()} for phase in description.phases}
        self.start, self.goal = self._end("start", 0), self._end("goal", -1)

    def _symbols(self):
        d = self.description
        found = [v.symbol for v in (*d.states, *d.controls)] + [x.symbol for x in d.durations if x.free]
        found += [x.symbol for x in (*d.parameters, *d.varying)] + list(d.hidden) + [d.share, d.ahead]
        found += [d.relative_length] if d.relative_length is not None else []
        return found + [s for chain in d.bernstein for s in chain.outputs]

    def _constants(self, parameters):
        """Bounds of what is no unknown of a node."""
        d, free = self.description, {}
        for s in self.symbols:
            free[id(s)] = np.full(s.numel(), -np.inf), np.full(s.numel(), np.inf)
        for given in (*d.parameters, *d.varying):
            named = ((k.name() if isinstance(k, ca.MX) else k, x) for k, x in parameters.items())
            value = next((x for name, x in named if name == given.name), None)
            if value is not None:
                free[id(given.symbol)] = _range(value, given.symbol.numel())
        for number, duration in enumerate(d.durations):
            if duration.free and duration.nominal_step is None:
                _, lower, upper = self.numbers.durations[number]
                free[id(duration.symbol)] = np.array([lower]), np.array([upper])
        free[id(d.share)], free[id(d.ahead)] = (np.zeros(1), np.ones(1)), (np.zeros(1), np.zeros(1))
        if d.relative_length is not None:
            free[id(d.relative_length)] = np.array([SHORTEST]), np.array([LONGEST])
        return free

    def _variables(self):
        d = self.description
        plain = [v for v in (*d.states, *d.controls) if v.manifold is None]
        # of quaternions both signs mean the same
        found = {id(v.symbol): (v.lower.copy(), v.upper.copy()) for v in plain}
        for chain in d.bernstein:
            for s in chain.outputs:
                if s.name() in self.numbers.bounds and chain.names.index(s.name()) == 0:
                    found[id(s)] = tuple(np.array(b, float) for b in self.numbers.bounds[s.name()])
        return found

    def _end(self, where, phase):
        """Bounds at the start or goal, where values are fixed."""
        d, values, plain = self.description, getattr(self.numbers, where), self._variables()
        box = dict(self.phases[d.phases[phase].number])
        for v in d.states:
            if v.name in values and id(v.symbol) in plain:
                box[id(v.symbol)] = np.array(values[v.name], float), np.array(values[v.name], float)
        for s in (s for chain in d.bernstein for s in chain.outputs):
            if s.name() in values:
                box[id(s)] = np.array(values[s.name()], float), np.array(values[s.name()], float)
        return box

    def at_nodes(self, phase):
        """Bounds at all nodes of a phase, its last one included, where rows are those of the next phase."""
        box = dict(self.phases[phase.number])
        if len(self.description.phases) > 1:
            states = {id(v.symbol) for v in self.description.states}
            box |= {key: x for key, x in self._variables().items() if key in states}
        return box

    # -- expressions ------------------------------------------------------------------------------------------

    def of(self, key, expression, box):
        """(lower, upper) of an expression, None where it is too long or calls what is no Function of scalars. key: what
        tells it apart."""
        f = self.kept(key, lambda: self.function(expression))
        return None if f is None else bounds_of(f, [box[id(s)] for s in self.symbols])[0]

    def kept(self, key, make):
        """What make() gives, made once for the transcription."""
        if key not in self.functions:
            self.functions[key] = make()
        return self.functions[key]

    def function(self, expression):
        """SX Function of the symbols, or None."""
        f = ca.Function("f", self.symbols, [ca.densify(ca.vec(ca.MX(expression)))], {"allow_free": True})
        if f.has_free() or sum(g.n_instructions() for g in f.find_functions()) + f.n_instructions() > MOST:
            return None
        try:
            f = f.expand()
        except RuntimeError:
            return None
        return f if f.n_instructions() <= 4 * MOST else None

    # -- rows -------------------------------------------------------------------------------------------------

    def rows(self, phase):
        """[(row, lower, upper)] of what holds at all nodes of a phase."""
        rows = self.made.parts_of[phase.number].rows
        return [(r, *r.bounds_of(self.numbers.bounds)) for r in rows]

    def _free_of_controls(self, phase):
        """Those of them that hold at the last node too."""
        return [x for x in self.rows(phase) if not self._controlled(x[0])]

    def tightened(self, phase):
        """Text where bounds of one variable contradict each other; else bounds of variables are those of rows too."""
        for row, lower, upper in self.rows(phase):
            boxes = [self.phases[phase.number], *([self.start] if phase.number == 0 else [])]
            where = f"at all nodes of phase {phase.number}" if len(self.phases) > 1 else "at all nodes"
            for box in boxes:
                if told := self._tighten(row, lower, upper, box, where):
                    return told
        if phase is self.description.phases[-1]:
            goals = [(r, r.lower, r.upper) for r in self.description.goal_rows]
            for row, lower, upper in [*self._free_of_controls(phase), *goals]:
                if told := self._tighten(row, lower, upper, self.goal, "at the goal"):
                    return told
        for row in self.description.start_rows if phase.number == 0 else ():
            if told := self._tighten(row, row.lower, row.upper, self.start, "at the start"):
                return told
        return ""

    def _controlled(self, row):
        d = self.description
        controls = [v.symbol for v in d.controls] + [c.outputs[-1] for c in d.bernstein]
        if not controls:
            return False
        return self.kept(("controlled", id(row)), lambda: ca.depends_on(ca.MX(row.expression), ca.veccat(*controls)))

    def _tighten(self, row, lower, upper, box, where):
        """Make the box that of a row that reads one number of a state or control alone, times a number."""
        form = self.kept(("form", id(row)), lambda: self._form(ca.vec(row.expression)))
        if form is None:
            return ""
        v, slopes, f = form
        low, high = bounds_of(f, [box[id(s)] for s in self.symbols])[0]
        own = [np.array(side, float) for side in box[id(v.symbol)]]
        for i, j, k in zip(*slopes.sparsity().get_triplet(), slopes.nonzeros(), strict=True):
            if np.count_nonzero(np.array(slopes.sparsity().row()) == i) != 1 or k == 0:
                continue
            ends = (lower[i] - high[i]) / k, (upper[i] - low[i]) / k
            own[0][j], own[1][j] = max(own[0][j], min(ends)), min(own[1][j], max(ends))
            if own[0][j] > own[1][j] + _tolerance(own[0][j], own[1][j]):
                name = f"{v.name}[{j}]" if v.size > 1 else v.name
                by = f" by {row.name}" if row.name and not row.name.startswith("bounds of") else ""
                return f"{name} has to be at least {own[0][j]:.6g} and at most {own[1][j]:.6g} {where}{by}"
        box[id(v.symbol)] = tuple(own)
        return ""

    def _form(self, x):
        """(variable, slopes, Function of the rest) of rows that are slopes times one state or control, plus a rest that
        reads no other; None for others."""
        d = self.description
        variables = [v for v in (*d.states, *d.controls) if ca.depends_on(x, v.symbol)]
        if len(variables) != 1 or x.numel() > 1000:
            return None
        v = variables[0]
        J = ca.jacobian(x, v.symbol)
        f = None if ca.symvar(J) else self.function(ca.substitute(x, v.symbol, ca.MX.zeros(v.size)))
        return None if f is None else (v, ca.evalf(J), f)

    def broken_row(self):
        """Text of a row that no values within bounds keep, or ""."""
        d, checks = self.description, []
        for phase in d.phases:
            of = f" of phase {phase.number}" if len(d.phases) > 1 else ""
            box = self.phases[phase.number]
            checks += [(row, lo, hi, box, f"at all nodes{of}") for row, lo, hi in self.rows(phase)]
            checks += [(r, r.lower, r.upper, box, of.strip()) for r in phase.node_rows]
        checks += [(row, lo, hi, self.start, "at the start") for row, lo, hi in self.rows(d.phases[0])]
        checks += [(r, r.lower, r.upper, self.start, "of the start") for r in d.start_rows]
        checks += [(row, lo, hi, self.goal, "at the goal") for row, lo, hi in self._free_of_controls(d.phases[-1])]
        checks += [(r, r.lower, r.upper, self.goal, "of the goal") for r in d.goal_rows]
        for row, lower, upper, box, where in checks:
            found = self.of(("row", id(row)), row.expression, box)
            if found is None:
                continue
            for i in range(lower.size):
                if told := _outside(found[0][i], found[1][i], lower[i], upper[i]):
                    return f"{self._called(row, i, where)} {told}"
        return ""

    def _called(self, row, i, where):
        size, name = row.lower.size, row.name
        if not name or name.startswith("["):
            name = expression_text(ca.vec(row.expression)[i], named=names_of_expressions(self.description))
        elif size > 1:
            name = f"{name}[{i}]"
        return f"the limit {name} {where}" if where.startswith("at") else f"the row {name} {where}".rstrip()


def _range(value, size):
    """(lower, upper) of a parameter: over all nodes, where it varies along them."""
    table = as_floats("parameter", value)
    table = table.reshape(-1, size) if table.size % size == 0 and table.size else np.full((1, size), table.ravel()[:1])
    if table.shape[0] == 1 and size > 1 and table.size == 1:
        table = np.full((1, size), table.item())
    return table.min(axis=0), table.max(axis=0)


def _tolerance(*values):
    return TOLERANCE * max([1.0, *(abs(x) for x in values if np.isfinite(x))])


def _outside(low, high, lower, upper):
    """Text where what lies between low and high cannot lie between the bounds; "" where it can."""
    if not (low > upper + _tolerance(low, upper) or high < lower - _tolerance(high, lower)):
        return ""
    value = f"is {low:.6g}" if low == high else f"lies between {low:.6g} and {high:.6g}"
    expected = f"be {lower:.6g}" if lower == upper else f"lie between {lower:.6g} and {upper:.6g}"
    return f"{value} whatever is chosen, and has to {expected}"
