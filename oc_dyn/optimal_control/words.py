"""Words of a Problem that states, controls, limits and costs of it stand for: variables, time.

A variable is a state that is stepped by itself in every phase, so that stages depend on their neighbours alone and
every method and solver takes it.
"""

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..numbers import as_floats, shortened
from .packing import SampledGuess


def repeat(problem, what, number, expression):
    """Say a rate or step of a state, or a cost, in the phases there are and in those to come."""
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
        problem.numbers.guess[known.name] = _clock(problem, float(guess.values[0, 0]))


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
    symbol = problem.state("time", scale=max(np.abs(guess.values).max(), 1e-3), guess=guess)
    repeat(problem, "rates", problem._number(symbol), ca.MX(1))
    problem.start({symbol: lower if lower == upper else (lower, upper)})
    return symbol


def _clock(problem, start):
    """Clock of the phases there are: nodes of a phase are spread evenly over its nominal duration."""
    nodes = np.cumsum([0, *(phase.nodes for phase in problem._phases)])
    times = np.cumsum([start, *(problem.numbers.durations[phase.number][0] for phase in problem._phases)])
    return Clock(nodes / nodes[-1], times[:, None])
