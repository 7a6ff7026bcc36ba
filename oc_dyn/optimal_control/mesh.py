"""Lengths of the intervals of a Problem: durations and what they are scaled by, a free mesh, another mesh.

On a free mesh each interval has its length over the mean one as an unknown of its own. The mean is that of the nominal
duration, a number, so that nothing couples the intervals but what passes from one to the next.
"""

from dataclasses import replace

import casadi as ca
import numpy as np

from ..errors import OrderError, ShapeError
from ..numbers import as_floats, shortened
from ..validation import count, number
from .description import Duration, Phase

SHORTEST, LONGEST = 0.1, 4.0  # of the intervals of a free mesh, relative to the mean one


def duration_of(phase, duration, nominal, free_mesh, reusable):
    """(Duration of a phase, its numbers (nominal, lower, upper))."""
    nominal, lower, upper, free = numbers_of(duration, nominal)
    free, given = free and not free_mesh, (nominal, lower, upper)
    if not reusable:
        value = ca.MX.sym(f"T{phase}") if free else nominal
        return Duration(value, (lower, upper), free, nominal), given
    symbols = ca.MX.sym(f"T{phase}_nominal"), ca.MX.sym(f"T{phase}_step")
    relative = ca.MX.sym(f"T{phase}_relative") if free else 1.0
    return Duration(symbols[0] * relative, (lower, upper), free, *symbols, relative), given


def numbers_of(duration, nominal):
    """(nominal, lower, upper, whether it is free) from what a caller gives."""
    given = as_floats("Problem: duration", duration)
    free, bounds = given.ndim > 0, tuple(given.ravel().tolist()) * (1 if given.ndim else 2)
    if len(bounds) != 2 or not 0 < bounds[0] <= bounds[1] < np.inf:
        got = shortened(duration)
        raise ShapeError(f"Problem: duration is {got}, expected a positive number or (lower, upper)")
    if nominal is None:
        nominal = float(np.sqrt(np.prod(bounds))) if free else bounds[0]
    nominal = float(number("Problem: nominal", nominal))
    if not 0 < nominal < np.inf or (not free and nominal != bounds[0]):
        raise ShapeError(f"Problem: nominal is {nominal:g}, expected a positive number, for a free duration")
    return nominal, *bounds, free


def add_phase(problem, nodes, duration, nominal, reusable):
    """Begin a phase of a Problem."""
    nodes, number = count("Problem: nodes", nodes, 1, 10**6), len(problem._phases)
    free_mesh = problem._relative_length is not None
    made, problem.numbers.durations[number] = duration_of(number, duration, nominal, free_mesh, reusable)
    problem._durations.append(made)
    problem._phases.append(Phase(nodes, number))
    problem._revision += 1


def begin(problem, nodes, duration, nominal, reusable):
    """Begin the first phase, on a free mesh with a clock where the duration has bounds tighter than its intervals'."""
    add_phase(problem, nodes, duration, nominal, reusable)
    if problem._relative_length is None:
        return
    T, lower, upper = problem.numbers.durations[0]
    low, high = lower / T, upper / T
    if low <= SHORTEST * (1 + 1e-9) and high >= LONGEST * (1 - 1e-9):
        return
    clock = problem.state("clock", scale=1.0, guess=lambda share: [share])
    problem.next(clock, clock + problem._share * problem._relative_length)
    problem.start({clock: 0.0})
    problem.goal({clock: 1.0 if low == high == 1 else (low, high)})


def with_mesh(problem, nodes, duration, nominal):
    """See Problem.with_mesh."""
    description = problem.description
    if len(description.phases) > 1:
        raise OrderError("with_mesh: the problem has several phases; it is for one")
    numbers, changed = problem.numbers.copy(), {"phases": (replace(description.phases[0], nodes=nodes),)}
    if duration is not None:
        changed |= _with_duration(problem, numbers, description, duration, nominal)
    other = object.__new__(type(problem))
    other._take(replace(description, **changed), numbers)
    return other


def _with_duration(problem, numbers, description, duration, nominal):
    """{what of the description changes}."""
    old = description.durations[0]
    nominal, lower, upper, is_free = numbers_of(duration, nominal)
    before = problem.numbers.durations[0]
    was_free = before[1] < before[2]
    if is_free != (was_free if problem._relative_length is not None else old.free):
        raise ShapeError("with_mesh: a free duration stays free, (lower, upper), and a fixed one fixed")
    clock = problem._relative_length is not None and any(v.name == "clock" for v in description.states)
    ratios = (np.array(x[1:]) / x[0] for x in ((nominal, lower, upper), before))
    if clock and not np.allclose(*ratios, rtol=1e-9):
        raise ShapeError("with_mesh: on a free mesh bounds of the duration stay in proportion; make a new Problem")
    numbers.durations[0] = (nominal, lower, upper)
    if old.nominal_step is not None:
        return {"durations": (old._replace(bounds=(lower, upper)),)}
    if not is_free and nominal != before[0]:
        raise ShapeError("with_mesh: another fixed duration is for problems made with reusable=True")
    value = old.value if old.free else nominal
    if not old.free and nominal != before[0]:
        raise ShapeError("with_mesh: another nominal duration of a free mesh is for problems made with reusable=True")
    return {"durations": (old._replace(value=value, bounds=(lower, upper), nominal=nominal),), "stages": {}}


