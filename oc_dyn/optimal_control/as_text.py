"""Problem.describe(): a problem as mathematics, in plain text."""

import casadi as ca
import numpy as np

from .expression_text import expression_text, summary
from .manifolds import NAMED
from .mesh import LONGEST, SHORTEST
from .program_names import names_of_expressions

_LONG, _ROWS = 110, 12  # characters of an expression, rows of a vector that are shown one by one


def as_text(description, numbers):
    """The description as lines of text; see Problem.describe."""
    d, show = description, Shown(description)
    lines = ["minimize", *_indented(_costs(d, show) or ["0 (any motion that keeps what follows)"])]
    lines += ["over", *_indented(_unknowns(d, numbers))]
    told = {}
    for phase in d.phases:
        own = _of_phase(d, numbers, show, phase)
        same = told.setdefault(tuple(own), phase.number)
        lines += [_title(d, numbers, phase), *_indented(own if same == phase.number else [f"as in phase {same}"])]
    for where, title in (("start", "at the start"), ("goal", "at the goal")):
        if found := _ends(d, numbers, show, where):
            lines += [title, *_indented(found)]
    if definitions := show.definitions():
        lines += ["where", *_indented(definitions)]
    if d.parameters or d.varying:
        lines += ["given", *_indented(_parameters(d))]
    return "\n".join(lines)


class Shown:
    """Texts of the expressions of a description."""

    def __init__(self, description):
        self.description, self.named = description, names_of_expressions(description)

    def __call__(self, expression):
        """One line for an expression."""
        text = expression_text(expression, _LONG, self.named)
        return self.summary(expression) if text == summary(expression) else text

    def summary(self, expression):
        """f(x, u) of the symbols that an expression reads, but for those that no one has named."""
        unnamed = self.description.share, self.description.ahead
        read = [s.name() for s in ca.symvar(ca.MX(expression)) if not any(ca.is_equal(s, y) for y in unnamed)]
        return f"f({', '.join(read)})"

    def rows(self, name, expression):
        """[(name, text)] of an expression: one line, or one for every row where that would be too long."""
        whole = self(expression)
        expression = ca.vec(ca.MX(expression))
        if whole != self.summary(expression) or not 1 < expression.numel() <= _ROWS:
            return [(name, whole)]
        parts = [self(expression[i]) for i in range(expression.numel())]
        if all(part == self.summary(expression[i]) for i, part in enumerate(parts)):
            return [(name, whole)]
        return [(f"{name}[{i}]", part) for i, part in enumerate(parts)]

    def definitions(self):
        """Lines of what has a name and is no state or control."""
        out, own = [], {name for chain in _spline_names(self.description) for name in chain}
        for name, x in self.description.named.items():
            if x.is_symbolic() or name in own:
                continue
            others = {k: n for k, n in self.named.items() if n != name}
            out.append(f"{name} = {expression_text(x, _LONG, others)}")
        return out


def _spline_names(d):
    for points in d.splines:
        name = points[0].name().removesuffix("_0")
        yield [f"d{j}{name}" if j else name for j in range(len(points))]


def _indented(lines):
    return [f"    {line}" for line in lines]


def _numbers(values):
    """Text of bounds: one number where all are the same."""
    values = np.ravel(values)
    if np.all(values == values[0]):
        return f"{values[0]:.6g}"
    if values.size > _ROWS:
        return f"[{values[0]:.6g}, ..., {values[-1]:.6g}]"
    return f"[{', '.join(f'{v:.6g}' for v in values)}]"


def _between(lower, text, upper):
    """Text of a quantity and its bounds, "" without any."""
    lower, upper = np.ravel(lower), np.ravel(upper)
    if np.array_equal(lower, upper):
        return f"{text} = {_numbers(lower)}"
    left = f"{_numbers(lower)} <= " if np.isfinite(lower).any() else ""
    right = f" <= {_numbers(upper)}" if np.isfinite(upper).any() else ""
    return f"{left}{text}{right}" if left or right else ""


# -- costs, unknowns ------------------------------------------------------------------------------------------


def _costs(d, show):
    numbers = {}  # of the phases of each cost
    for phase in d.phases:
        found = [f"integral{{}} of {show(x)}" for x in phase.integrals]
        found += [f"integral{{}} of 1/2 sumsqr({show(x)})" for x in phase.squares]
        found += [f"integral{{}} of {show(x)}, by a rule with {n} interior points" for x, n in phase.sums]
        found += [f"mean over the intervals{{}} of {show(x)}" for x in phase.means]
        for line in found:
            numbers.setdefault(line, []).append(str(phase.number))
    lines = []
    for line, phases in numbers.items():
        over = "" if len(d.phases) == 1 else f" over phase{'s' * (len(phases) > 1)} {', '.join(phases)}"
        over = " over all phases" if len(phases) == len(d.phases) > 1 else over
        lines.append(line.replace("{}", over, 1))
    lines += [f"{show(x)} at the end" for x in d.terminal]
    return [line if k == 0 else f"+ {line}" for k, line in enumerate(lines)]


def _held(d):
    """Numbers of the states that keep their value in every phase."""
    return set.intersection(*(set(phase.held(d.states)) for phase in d.phases))


def _unknowns(d, numbers):
    lines, held = [], _held(d)
    own = {s.name() for chain in d.bernstein for s in chain.coefficients} | {p.name() for s in d.splines for p in s}
    for k, v in enumerate(d.states):
        if v.name not in own:
            what = "variable" if k in held else "state"
            lines.append(_sized(what, v) + _bounds_of(v) + _on_manifold(v))
    lines += [_sized("control", v) + _bounds_of(v) for v in d.controls if v.name not in own]
    for chain in d.bernstein:
        limits = [_between(numbers.bounds[n][0], n, numbers.bounds[n][1]) for n in chain.names if n in numbers.bounds]
        text = f"chain {', '.join(chain.names)} ({chain.size}), a polynomial of degree {chain.order} on each interval"
        lines.append(", ".join([text, *filter(None, limits)]))
    for names, points in zip(_spline_names(d), d.splines, strict=True):
        lines.append(f"chain {', '.join(names)} ({points[0].numel()}), a b-spline of degree {len(points) - 1}")
    for number, duration in enumerate(d.durations):
        if duration.free:
            reused = duration.nominal_step is not None
            name = ca.MX(duration.value).name() if not reused else expression_text(duration.value)
            _, lower, upper = numbers.durations[number]
            lines.append(f"duration {name} of phase {number}, {lower:.6g} <= {name} <= {upper:.6g} s")
    if d.relative_length is not None:
        lines.append(f"lengths of the intervals, {SHORTEST:g} to {LONGEST:g} times those of the nominal duration")
    return lines


def _on_manifold(v):
    if v.manifold is None:
        return ""
    names = {kind: name.replace("_", " ") for name, kind in NAMED.items()}
    return f", {' and '.join(names.get(kind, f'{kind} ({nq})') for kind, nq, _ in v.manifold.parts)}"


def _sized(what, v):
    return f"{what} {v.name}" + (f" ({v.size})" if v.size > 1 else "")


def _bounds_of(v):
    text = _between(v.lower, v.name, v.upper)
    return f", {text}" if text else ""


def _parameters(d):
    out = [f"{x.name}" + (f" ({x.symbol.numel()})" if x.symbol.numel() > 1 else "") for x in d.parameters]
    return out + [f"{x.name} ({x.symbol.numel()}) at every node" for x in d.varying]


# -- phases ---------------------------------------------------------------------------------------------------


def _title(d, numbers, phase):
    nominal, lower, upper = numbers.durations[phase.number]
    length = f"{lower:.6g} s" if lower == upper else f"{lower:.6g} to {upper:.6g} s (nominal {nominal:.6g} s)"
    which = f"in phase {phase.number}, " if len(d.phases) > 1 else "on "
    unequal = "" if phase.shares is None else " of unequal lengths"
    return f"subject to, {which}{phase.nodes} intervals{unequal} in {length}"


def _of_phase(d, numbers, show, phase):
    lines, held = [], set(phase.held(d.states))
    told = _chains_and_bodies(d, phase)
    lines += told[1]
    for k, v in enumerate(d.states):
        if k in phase.rates:
            lines += [f"{name} = {text}" for name, text in _rated(show, v, phase.rates[k])]
        elif k in phase.steps and k not in held and k not in told[0]:
            lines += [f"next {name} = {text}" for name, text in show.rows(v.name, phase.steps[k])]
    for row in phase.rows:
        lines += _limit(show, row, numbers)
    seen = set()
    for w in phase.within:
        if w.fixed is None and w.label[0] not in seen:
            seen.add(w.label[0])
            shares = [f"{x.share:g}" + (" (last interval)" if x.last else "") for x in phase.within
                      if x.label[0] == w.label[0]]  # fmt: skip
            lines += [f"{line} at {', '.join(shares)} of each interval" for line in _limit(show, w.constraint, numbers)]
    for row in phase.node_rows:
        lines += [f"{line} at {row.fraction:.6g} of the intervals" for line in _limit(show, row, numbers, named=False)]
    for k, x in phase.join.items():
        lines.append(f"{d.states[k].name} becomes {show(x)} at the end of the phase")
    return lines


def _rated(show, v, rate):
    shown = show.rows(v.name, rate)
    if v.manifold is not None:
        return [(f"velocity of {name}", text) for name, text in shown]
    return [(f"({name})'" if "[" in name else f"{name}'", text) for name, text in shown]


def _chains_and_bodies(d, phase):
    """(numbers of the states that chains and bodies step, lines on them)."""
    places, lines, found = {id(v.symbol): k for k, v in enumerate(d.states)}, [], set()
    for chain in d.chains:
        own = [places[id(x)] for x in chain[:-1]]
        if all(k in phase.steps for k in own):
            found |= set(own)
            names = [x.name() for x in chain]
            lines.append(f"{', '.join(names)}: each the rate of the one before, {names[-1]} constant on each interval")
    for points in d.splines:
        found |= {places[id(x)] for x in points[:-1]}
    for chain in d.bernstein:
        found |= {places[id(x)] for x in chain.coefficients[:-1]}
    for body in d.bodies:
        found |= {places[id(x)] for x in (body.q, body.v)}
        forces = f", pushed by {body.f.numel() // 3} forces at {', '.join(body.frames)}" if body.frames else ""
        text = f"{body.q.name()}, {body.v.name()}: configuration and velocity of {body.robot.name}, stepped on the "
        lines.append(f"{text}manifold by {body.dv.name()}{forces}")
    return found, lines


def _limit(show, row, numbers, named=True):
    """Lines of a limit: one, or one for every row where some rows have no bound on a side that others have."""
    lower, upper = row.bounds_of(numbers.bounds)
    name = f"   ({row.name})" if named and row.name else ""
    x = ca.vec(row.expression)
    if difference := _compared(show, x, lower, upper):
        return [difference + name]
    mixed = any(np.isfinite(b).any() and not np.isfinite(b).all() for b in (lower, upper))
    if not mixed or x.numel() > _ROWS:
        return [text + name for text in [_between(lower, show(x), upper)] if text]
    out = []
    for i in range(x.numel()):
        text = _compared(show, x[i], lower[[i]], upper[[i]]) or _between(lower[i], show(x[i]), upper[i])
        out += [text + name] if text else []
    return out


def _compared(show, x, lower, upper):
    """Text "a <= b" of a difference a - b that is bounded by zero on one side, or "a = b"; "" for others."""
    if x.is_symbolic() or x.is_output() or x.op() != ca.OP_SUB:
        return ""
    signs = [np.unique(side) for side in (lower, upper)]
    if any(s.size > 1 for s in signs):
        return ""
    sides = {(0.0, 0.0): "=", (0.0, np.inf): ">=", (-np.inf, 0.0): "<="}
    sign = sides.get((float(signs[0][0]), float(signs[1][0])))
    return f"{show(x.dep(0))} {sign} {show(x.dep(1))}" if sign else ""


def _ends(d, numbers, show, where):
    """Lines of what holds at the start or goal."""
    values = getattr(numbers, where)
    names = [v.name for v in d.states] + [n for chain in d.bernstein for n in chain.names]
    lines = [f"{name} = {_numbers(values[name])}" for name in names if name in values]
    for row in d.start_rows if where == "start" else d.goal_rows:
        if row.name.removeprefix(f"{where} of ") in values:  # of a state on a manifold, which is told already
            continue
        lines += _limit(show, row, numbers, named=False)
    return lines
