"""Words of a Problem that states, controls, limits and costs of it stand for: variables, time,
integrals, maxima, periodic motions, soft limits, values at nodes.

A variable is a state that is stepped by itself in every phase, so that stages depend on their neighbours alone and
every method and solver takes it.
"""

from dataclasses import replace

import casadi as ca
import numpy as np

from ..errors import OrderError, ShapeError
from ..numbers import as_floats, shortened
from ..validation import expression as expression_of
from ..validation import number, numbers
from . import manifolds, names
from .description import Constraint
from .packing import SampledGuess


def repeat(problem, what, number, expression):
    """Say a rate or step of a state, a cost or a limit in the phases there are and in those to come."""
    entry = what, number, expression
    problem._repeated.append(entry)
    problem._phases = [_said(phase, *entry) for phase in problem._phases]
    problem._revision += 1


def go_on(problem):
    """Say what is repeated in the phase that has just begun."""
    for entry in problem._repeated:
        problem._phases[-1] = _said(problem._phases[-1], *entry)
    known = _time_state(problem)
    if known is not None and isinstance(guess := problem.numbers.guess[known.name], Clock):
        guess = problem.numbers.guess[known.name] = _clock(problem, float(guess.values[0, 0]))
        problem._states[problem._number(known.symbol)] = replace(known, scale=_typical(guess))


def _said(phase, what, number, expression):
    if what in ("rates", "steps"):
        return phase.with_state(what, number, expression)
    return phase.with_more(what, expression)


# -- variables ----------------------------------------------------------------------------------------------


def variable(problem, name, size, lower, upper, scale, guess):
    """See Problem.variable."""
    table = as_floats(f"guess of {name}", guess)
    if table.ndim > 1:
        raise ShapeError(f"variable {name!r}: guess has shape {table.shape}, expected one value for the whole motion")
    symbol = problem.state(name, size, lower=lower, upper=upper, scale=scale, guess=table)
    repeat(problem, "steps", problem._number(symbol), symbol)
    return symbol


# -- time ---------------------------------------------------------------------------------------------------


class Clock(SampledGuess):
    """Guess of the time that follows the nominal durations of the phases; one that a caller gives takes its place."""


def begin_time(problem, start_time):
    """Take the start_time of a new Problem; a free one needs the state at once."""
    given = as_floats("Problem: start_time", start_time).ravel()
    if given.size not in (1, 2) or not np.isfinite(given).all() or given[0] > given[-1]:
        raise ShapeError(f"Problem: start_time is {shortened(start_time)}, expected a number [s], or (lower, upper)")
    problem._start_time = float(given[0])
    if given.size == 2:
        _make_time(problem, *given.tolist())


def time(problem):
    """See Problem.time."""
    known = _time_state(problem)
    return _make_time(problem, problem._start_time, problem._start_time) if known is None else known.symbol


def _time_state(problem):
    found = [number for what, number, _ in problem._repeated if what == "rates"]
    return problem._states[found[0]] if found else None


def _make_time(problem, lower, upper):
    guess = _clock(problem, (lower + upper) / 2)
    symbol = problem.state("time", scale=_typical(guess), guess=guess)
    repeat(problem, "rates", problem._number(symbol), ca.MX(1))
    problem.start({symbol: lower if lower == upper else (lower, upper)})
    return symbol


def _typical(clock):
    return np.abs(clock.values).max(axis=0)


def _clock(problem, start):
    """Clock of the phases there are, in which the place of guesses is spread evenly over the nominal duration."""
    nodes = np.cumsum([0, *(phase.nodes for phase in problem._phases)])
    times = np.cumsum([start, *(problem.numbers.durations[phase.number][0] for phase in problem._phases)])
    return Clock(nodes / nodes[-1], times[:, None])


# -- integrals, maxima --------------------------------------------------------------------------------------


def integral(problem, expression, lower, upper, name, scale, guess):
    """See Problem.integral."""
    rate = expression_of("integral", expression)
    name = _free_name(problem, "integral") if name is None else name
    lower, upper = (side if given is None else given for given, side in ((lower, -np.inf), (upper, np.inf)))
    what = f"integral {name!r}"
    ends = [np.zeros(1) if isinstance(b, ca.MX) else numbers(what, b, rate.numel()) for b in (lower, upper)]
    target = sum(np.where(np.isfinite(b), b, 0.0) for b in ends) / max(1, sum(np.isfinite(b).all() for b in ends))
    symbol = problem.state(name, rate.numel(), scale=scale, guess=0.0)
    problem.guess({symbol: (lambda share: share * np.broadcast_to(target, rate.numel())) if guess is None else guess})
    repeat(problem, "steps", problem._number(symbol), symbol)
    problem.rate(symbol, rate)
    problem.start({symbol: 0.0})
    end, lower, upper = moved(what, symbol, lower, upper)
    problem._goal_rows.append(Constraint(end, *problem._bounds(what, lower, upper, end.numel())))
    problem._revision += 1
    return symbol


def keep_below(problem, expression):
    """minimize(maximum=expression)."""
    name = _free_name(problem, "maximum")
    largest = variable(problem, name, 1, -np.inf, np.inf, None, 0.0)
    problem.limit(-np.inf, expression_of("minimize maximum", expression) - largest, 0.0, name=name)
    problem.minimize(terminal=largest)


def _free_name(problem, name):
    """The name, with a number behind it where something has it."""
    known, number, free = names.taken(problem), 1, name
    while free in known:
        number += 1
        free = f"{name}_{number}"
    return free


def moved(what, x, lower, upper):
    """(expression, lower, upper) with bounds that are numbers: those that are expressions are moved into it."""
    are = [isinstance(b, ca.MX) for b in (lower, upper)]
    if not any(are):
        return x, lower, upper
    n, sides = x.numel(), []
    for b, is_mx, end in zip((lower, upper), are, ("lower", "upper"), strict=True):
        sides.append(expression_of(what, b) if is_mx else numbers(f"{what}: {end} bound", b, n))
        if is_mx and sides[-1].numel() not in (1, n):
            raise ShapeError(f"{what}: {end} bound has {sides[-1].numel()} values, expected {n}")
    if all(are) and ca.is_equal(*sides, 3):  # they are one: an equation
        return x - sides[0], 0.0, 0.0
    parts = []
    for b, is_mx, sign in zip(sides, are, (1, -1), strict=True):
        if is_mx or np.isfinite(b).any():
            row, finite = (x - b, np.zeros(n)) if is_mx else (x, b)
            parts.append((row, finite, np.full(n, np.inf)) if sign > 0 else (row, np.full(n, -np.inf), finite))
    rows, lower, upper = zip(*parts, strict=True)
    return ca.vertcat(*rows), np.concatenate(lower), np.concatenate(upper)


def bounded(problem, into, name, size, lower, upper, scale, guess):
    """Symbol of a state or control with a bound that is an expression: a limit in every phase."""
    fixed, given = [], []
    for b, none in ((lower, -np.inf), (upper, np.inf)):
        fixed.append(none if isinstance(b, ca.MX) else b)
        given.append(b if isinstance(b, ca.MX) else none)
    symbol = problem._variable(into, name, size, *fixed, scale, guess)
    x, *ends = moved(name, symbol, *given)
    row = Constraint(x, *problem._bounds(name, *ends, x.numel()), f"bounds of {name}")
    repeat(problem, "rows", name, row)
    return symbol


def pair(what, x, value):
    """(expression, lower, upper) of an expression and what is said of it, (lower, upper)."""
    if len(value) != 2:
        raise ShapeError(f"{what}: got {shortened(value)}, expected a list or array, or a pair (lower, upper)")
    symbolic = any(isinstance(b, ca.MX) for b in value)
    if not symbolic and x.numel() == 2 and np.ndim(value[0]) == np.ndim(value[1]) == 0 and value[0] != value[1]:
        raise ShapeError(
            f"{what}: {shortened(value)} for two rows may be their values or (lower, upper); give a list [a, b] of "
            "values, or a pair of lists of bounds"
        )
    return moved(what, x, *value)


# -- soft limits, values at nodes ---------------------------------------------------------------------------


def softened(problem, row, soft):
    """(Constraint that may be broken, slack); see Problem.limit."""
    if not isinstance(soft, (tuple, list)) or len(soft) != 2:
        raise ShapeError(f"limit: soft is {shortened(soft)}, expected the weights (linear, quadratic)")
    linear, quadratic = (number("limit: soft", weight) for weight in soft)
    if min(linear, quadratic) < 0 or linear == quadratic == 0:
        raise ShapeError(f"limit: soft is {shortened(soft)}, expected weights of at least 0, and one above it")
    below, above = (np.flatnonzero(np.isfinite(b)) for b in (row.lower, row.upper))
    size, name = below.size + above.size, f"{row.name}_slack" if row.name else _free_name(problem, "slack")
    if not size:
        raise ShapeError("limit: soft is for a limit with a finite bound")
    if any(of == name for _, of, _ in problem._repeated):
        slack = _known_slack(problem, name, size, linear, quadratic)
    else:
        # without a linear cost none is below zero anyhow, and a bound where the slope of the cost is zero stops solvers
        slack = problem.control(name, size, lower=0.0 if linear else -np.inf)
        for what, cost in _costs(slack, linear, quadratic):
            repeat(problem, what, name, cost)
    rows = ca.vec(row.expression[[*below.tolist(), *above.tolist()]])  # of one row it gives a line
    sides = np.repeat([1.0, -1.0], [below.size, above.size])
    lower = np.concatenate([row.lower[below], np.full(above.size, -np.inf)])
    upper = np.concatenate([np.full(below.size, np.inf), row.upper[above]])
    return replace(row, expression=rows + sides * slack, lower=lower, upper=upper, of_nodes=True), slack


def _costs(slack, linear, quadratic):
    """[(what of a phase it is, cost)], in every phase: where there is no limit it keeps the slack at zero."""
    costs = [("integrals", linear * ca.sum1(slack)), ("squares", np.sqrt(2 * quadratic) * slack)]
    return [cost for cost, weight in zip(costs, (linear, quadratic), strict=True) if weight]


def _known_slack(problem, name, size, linear, quadratic):
    """The slack of a limit of this name in an earlier phase, which has to be like this one."""
    slack = next(v.symbol for v in problem._controls if v.name == name)
    before = {what: cost for what, of, cost in problem._repeated if of == name}
    now = dict(_costs(slack, linear, quadratic))
    if slack.numel() != size or not all(k in now and ca.is_equal(x, now[k], 9) for k, x in before.items()):
        text = "has other bounds or weights in an earlier phase; give this one another name"
        raise ShapeError(f"limit: the soft limit {name.removesuffix('_slack')!r} {text}")
    return slack


def at(problem, values, fraction, time):
    """See Problem.at."""
    if not isinstance(values, dict):
        raise ShapeError(f"at: got {shortened(values)}, expected {{state or expression: value}}")
    if (fraction is None) == (time is None):
        raise ShapeError("at: expected a fraction of the intervals or a time, one of them")
    phase = problem._phases[-1]
    fraction = _fraction_of(problem, number("at: time", time)) if fraction is None else number("at: fraction", fraction)
    fraction = float(phase.breakpoints[phase.node(fraction)])
    rows = []
    for x, value in values.items():
        known = manifolds.state_of(problem, x)
        if known is not None and not isinstance(value, tuple):
            rows.append(replace(manifolds.equation(known, value, "value"), fraction=fraction))
            continue
        x, *ends = pair("at", expression_of("at", x), value if isinstance(value, tuple) else (value, value))
        name = f"value at {fraction:.6g}" + (f" of phase {phase.number}" if phase.number else "")
        rows.append(Constraint(x, *problem._bounds("at", *ends, x.numel()), name, fraction=fraction))
    problem._add("node_rows", *rows)


def _fraction_of(problem, time):
    """The share of the phase now described that has passed at a time [s]."""
    durations, state = list(problem.numbers.durations.values()), _time_state(problem)
    if any(lower < upper for _, lower, upper in durations):
        raise OrderError("at: a duration is free, so that no node has a time of its own; give fraction=")
    if state is not None and state.name not in problem.numbers.start:
        raise OrderError("at: the start_time is free, so that no node has a time of its own; give fraction=")
    first = problem._start_time if state is None else problem.numbers.start[state.name][0]
    *before, length = (T for T, *_ in durations)
    return (time - first - sum(before)) / length


# -- periodic motions ---------------------------------------------------------------------------------------


def periodic(problem, *states):
    """See Problem.periodic."""
    pairs = [pair for given in states for pair in (given.items() if isinstance(given, dict) else [(given, 0.0)])]
    for state, shift in pairs:
        x, shift = expression_of("periodic", state), expression_of("periodic: shift", shift)
        known = next((v for v in problem._states if v.symbol is state), None)
        if known is not None and known.manifold is not None:
            _periodic_on_manifold(problem, known, shift)
            continue
        body = next((b for b in problem._bodies if b.q is state), None)
        first = _value_at_start(problem, x, known)
        distance = x - first if body is None else body.robot.difference_function()(first, x)
        n = distance.numel()
        if shift.numel() not in (1, n):
            raise ShapeError(f"periodic: the shift has {shift.numel()} values, expected {n}")
        problem._start_rows.append(Constraint(x - first, *np.zeros((2, x.numel()))))
        problem._goal_rows.append(Constraint(distance - shift, *np.zeros((2, n))))
    problem._revision += 1


def _periodic_on_manifold(problem, state, shift):
    """The state ends where a step `shift` leads from its start, quaternions with either sign."""
    first = manifolds.state_of(problem, _value_at_start(problem, state.symbol, state))
    if shift.numel() not in (1, state.rate_size):
        raise ShapeError(f"periodic: the shift has {shift.numel()} values, expected {state.rate_size}")
    shift = shift if shift.numel() > 1 else ca.repmat(shift, state.rate_size, 1)
    problem._start_rows.append(manifolds.equation(first, state.symbol, "periodic: start"))
    end = manifolds.formula(state.manifold, "integrate")(first.symbol, shift)
    problem._goal_rows.append(manifolds.equation(state, end, "periodic: end"))


def _value_at_start(problem, x, state):
    """A variable for the value of x at the start, which passes it on to the end."""
    if state is None:
        return variable(problem, _free_name(problem, "first"), x.numel(), -np.inf, np.inf, None, 0.0)
    guess = problem.numbers.guess[state.name]
    guess = np.ravel(guess(0.0)) if callable(guess) else guess if guess.ndim < 2 else guess[0]
    name = _free_name(problem, f"{state.name}_first")
    if state.manifold is None:
        return variable(problem, name, state.size, -np.inf, np.inf, state.scale, guess)
    symbol = manifolds.state(problem, name, 1, -np.inf, np.inf, state.scale, guess, state.manifold)
    repeat(problem, "steps", problem._number(symbol), symbol)
    return symbol
