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
    nominal, lower, upper, free = numbers_of(duration, nominal, free_mesh)
    free, given = free and not free_mesh, (nominal, lower, upper)
    if not reusable:
        value = ca.MX.sym(f"T{phase}") if free else nominal
        return Duration(value, (lower, upper), free, nominal), given
    symbols = ca.MX.sym(f"T{phase}_nominal"), ca.MX.sym(f"T{phase}_step")
    relative = ca.MX.sym(f"T{phase}_relative") if free else 1.0
    return Duration(symbols[0] * relative, (lower, upper), free, *symbols, relative), given


def numbers_of(duration, nominal, free_mesh):
    """(nominal, lower, upper, whether it is free) from what a caller gives. On a free mesh the nominal duration is such
    that intervals can add up to both bounds, if there is one."""
    given = as_floats("Problem: duration", duration)
    free, bounds = given.ndim > 0, tuple(given.ravel().tolist()) * (1 if given.ndim else 2)
    if len(bounds) != 2 or not 0 < bounds[0] <= bounds[1] < np.inf:
        got = shortened(duration)
        raise ShapeError(f"Problem: duration is {got}, expected a positive number or (lower, upper)")
    if nominal is None:
        nominal = float(np.sqrt(np.prod(bounds))) if free else bounds[0]
        if free_mesh and bounds[1] / LONGEST <= bounds[0] / SHORTEST:
            nominal = min(max(nominal, bounds[1] / LONGEST), bounds[0] / SHORTEST)
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
    if not _needs_clock(T, lower, upper):
        return
    clock = problem.state("clock", scale=1.0, guess=lambda share: [share])
    problem.next(clock, clock + problem._share * problem._relative_length)
    problem.start({clock: 0.0})
    problem.goal({clock: 1.0 if low == high == 1 else (low, high)})


def _needs_clock(T, lower, upper):
    """Whether bounds of a duration on a free mesh are tighter than those of its intervals."""
    return lower / T > SHORTEST * (1 + 1e-9) or upper / T < LONGEST * (1 - 1e-9)


def has_clock(description):
    """Whether the first state is the clock of a free mesh."""
    if description.relative_length is None or not description.states or description.states[0].name != "clock":
        return False
    step = description.phases[0].steps.get(0)
    return step is not None and ca.depends_on(step, description.relative_length)


def states_for(description, nominal, solution):
    """States (N + 1, n) of a Solution for a Problem that may differ from its own by the clock of a free mesh."""
    x, own, theirs = solution.x, has_clock(description), has_clock(solution.description)
    if own == theirs:
        return x
    if theirs:
        return x[:, 1:]
    return np.hstack([(solution.t - solution.t[0])[:, None] / nominal, x])


def at_an_end(problem, solution):
    """Text: that half the intervals of a free mesh or more are as short, or as long, as they can be, where that may be
    what keeps its duration from becoming so; or ""."""
    T, lower, upper = problem.numbers.durations[0]
    if problem._relative_length is None or not lower * 1.001 < solution.duration < upper / 1.001:
        return ""
    N = len(solution.relative_lengths)
    for end, what in ((SHORTEST, "short"), (LONGEST, "long")):
        number = int(np.sum(np.abs(solution.relative_lengths / end - 1) < 1e-3))
        if 2 * number >= N:
            return (
                f"{number} of {N} intervals are as {what} as a free mesh has them, {end:g} times those of the nominal "
                f"duration {T:.4g} s; give nominal={solution.duration:.2g}, which the motion takes"
            )
    return ""


def out_of_reach(problem):
    """Text: which durations that are allowed the intervals of a free mesh cannot add up to, or "" for none."""
    if problem._relative_length is None:
        return ""
    T, lower, upper = problem.numbers.durations[0]
    missed = []
    if lower < SHORTEST * T * (1 - 1e-9):
        missed.append(f"{lower:.4g} to {SHORTEST * T:.4g} s")
    if upper > LONGEST * T * (1 + 1e-9):
        missed.append(f"{LONGEST * T:.4g} to {upper:.4g} s")
    if not missed:
        return ""
    return (
        f"intervals of a free mesh are {SHORTEST:g} to {LONGEST:g} times as long as those of the nominal duration "
        f"{T:.4g} s, so that durations of {' and '.join(missed)} are out of reach, which are allowed: give nominal= "
        "near the duration that is expected"
    )


def check_duration(problem):
    """Raise OrderError where the duration of a free mesh is an unknown: no symbol stands for it."""
    if problem._relative_length is None:
        return
    _, lower, upper = problem.numbers.durations[0]
    if lower < upper:
        raise OrderError(
            "duration: on a free mesh it is the sum of all intervals, and no symbol stands for it; minimize it by "
            "minimize(integral=1), and limit it or make use of it at the end by ocp.time, as in goal({ocp.time: ...}) "
            "and minimize(terminal=ocp.time)"
        )


def with_mesh(problem, nodes, duration, nominal):
    """See Problem.with_mesh."""
    description = problem.description
    if len(description.phases) > 1:
        raise OrderError("with_mesh: the problem has several phases; it is for one")
    numbers, changed = problem.numbers.copy(), {"phases": (replace(description.phases[0], nodes=nodes),)}
    numbers.guess = {name: _on_nodes(x, description.phases[0].nodes, nodes) for name, x in numbers.guess.items()}
    if duration is None and nominal is not None:
        _, lower, upper = numbers.durations[0]
        duration = lower if lower == upper else (lower, upper)
    if duration is not None:
        changed |= _with_duration(problem, numbers, description, duration, nominal)
    other = object.__new__(type(problem))
    other._take(replace(description, **changed), numbers)
    return other


def _on_nodes(guess, before, nodes):
    """A guess of a Problem on so many intervals before for another number: tables, or lists of them, are interpolated,
    those of intervals as those of nodes, their last row being that of the end too."""
    if isinstance(guess, (list, tuple)) and any(callable(x) or np.ndim(x) == 2 for x in guess):
        return type(guess)(_on_nodes(x, before, nodes) for x in guess)
    if callable(guess) or guess is None or np.ndim(guess) != 2 or len(guess) not in (before, before + 1):
        return guess
    table, at = np.asarray(guess, float), np.arange(len(guess)) / before
    return np.array([np.interp(np.linspace(0, 1, nodes + 1), at, column) for column in table.T]).T


def _with_duration(problem, numbers, description, duration, nominal):
    """{what of the description changes}."""
    old = description.durations[0]
    nominal, lower, upper, is_free = numbers_of(duration, nominal, problem._relative_length is not None)
    before = problem.numbers.durations[0]
    was_free = before[1] < before[2]
    if is_free != (was_free if problem._relative_length is not None else old.free):
        raise ShapeError("with_mesh: a free duration stays free, (lower, upper), and a fixed one fixed")
    ratios = (np.array(x[1:]) / x[0] for x in ((nominal, lower, upper), before))
    if has_clock(description):
        kept = np.allclose(*ratios, rtol=1e-9)
    else:
        kept = problem._relative_length is None or not _needs_clock(nominal, lower, upper)
    if not kept:
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


