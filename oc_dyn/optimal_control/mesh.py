"""Lengths of the intervals of a Problem: durations and what they are scaled by, a free mesh, another mesh.

On a free mesh each interval has its length over the mean one as an unknown of its own. The mean is that of the nominal
duration, a number, so that nothing couples the intervals but what passes from one to the next. The more general form,
over what the share of an interval gives, is that of moving.py.
"""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from ..errors import OrderError, ShapeError
from ..numbers import as_floats, shortened
from ..validation import count, number, one_of
from .description import Duration, Phase
from .packing import SampledGuess

SHORTEST, LONGEST = 0.1, 4.0  # of the intervals of a free mesh, relative to the mean one
NEAREST = 1e-12  # breakpoints of a mesh, as a share of the duration of the phase


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


def shares_of(what, mesh, nodes):
    """Tuple of the shares of a phase's duration that its intervals take from its breakpoints (nodes + 1,), or None for
    equal ones."""
    at = as_floats(f"{what}: mesh", mesh).ravel()
    if at.size != nodes + 1:
        raise ShapeError(f"{what}: mesh has {at.size} breakpoints, expected nodes + 1 = {nodes + 1}")
    if not (np.isfinite(at).all() and abs(at[0]) < 1e-12 and abs(at[-1] - 1) < 1e-12):
        got = f"{at[0]:g} to {at[-1]:g}"
        raise ShapeError(f"{what}: mesh is from {got}, expected breakpoints from 0 to 1, as shares of the duration")
    shares = np.diff([0.0, *at[1:-1], 1.0])
    if shares.min() < NEAREST:
        k = int(np.argmin(shares))
        near = f"{at[k]:.17g} and {at[k + 1]:.17g} follow each other"
        raise ShapeError(f"{what}: breakpoints of a mesh increase, by {NEAREST:g} at least; {near}")
    return None if np.allclose(shares, 1 / nodes, rtol=1e-9, atol=0) else tuple(shares.tolist())


def check_equal(what, problem):
    """Raise OrderError where intervals of a mesh differ in length."""
    if any(phase.shares is not None for phase in problem._phases):
        raise OrderError(f"Problem: {what} is for intervals of equal length; use taylor, or take mesh='uniform'")


def check_unequal(what, problem):
    """Raise OrderError where intervals have to be equal, or are free."""
    equal = {"a b_spline chain": problem._splines, "a bernstein chain": problem._bernstein}
    equal["reusable=True"] = [d for d in problem._durations if d.nominal_step is not None]
    if needs := next((of for of, some in equal.items() if some), None):
        raise OrderError(f"{what}: {needs} is for intervals of equal length; take mesh='uniform', or do without it")
    if problem._relative_length is not None:
        raise OrderError(f"{what}: lengths of a free mesh are unknowns already; this is for meshes that are not free")


def add_phase(problem, nodes, duration, nominal, reusable, mesh=None):
    """Begin a phase of a Problem. mesh: None for intervals of equal length or free ones, or breakpoints."""
    nodes, number = count("Problem: nodes", nodes, 1, 10**6), len(problem._phases)
    free_mesh = problem._relative_length is not None
    shares = None if mesh is None else shares_of("Problem", mesh, nodes)
    if shares is not None and reusable:
        raise OrderError("Problem: reusable=True is for intervals of equal length; take mesh='uniform'")
    made, problem.numbers.durations[number] = duration_of(number, duration, nominal, free_mesh, reusable)
    problem._durations.append(made)
    problem._phases.append(Phase(nodes, number, shares=shares))
    problem._revision += 1


def checked(mesh, kinds):
    """A mesh: one of some words, or breakpoints, of which it gives None and the breakpoints."""
    if isinstance(mesh, str) or mesh is None:
        return one_of("mesh", mesh, kinds), None
    return None, mesh


def begin(problem, nodes, duration, nominal, reusable, mesh):
    """Begin the first phase, on a free mesh with a clock where the duration has bounds tighter than its intervals'."""
    add_phase(problem, nodes, duration, nominal, reusable, mesh)
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


def clock_of(description):
    """Number of the state that is the clock of a free mesh, or None."""
    for k, state in enumerate(description.states if description.relative_length is not None else ()):
        step = description.phases[0].steps.get(k)
        if state.name.startswith("clock") and step is not None and ca.depends_on(step, description.relative_length):
            return k
    return None


def has_clock(description):
    """Whether a state is the clock of a free mesh."""
    return clock_of(description) is not None


def at_an_end(problem, solution):
    """Text: that half the intervals of a free mesh or more are as short, or as long, as they can be, where that may be
    what keeps its duration from becoming so; or ""."""
    T, lower, upper = problem.numbers.durations[0]
    of_nominal = problem._relative_length is not None and problem.description.of_nominal
    if not of_nominal or not lower * 1.001 < solution.duration < upper / 1.001:
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


def with_mesh(problem, nodes, duration, nominal, mesh):
    """See Problem.with_mesh."""
    description, numbers = problem.description, problem.numbers.copy()
    old, places = description.phases, description.places
    phases = tuple(
        phase.on(*_intervals(problem, phase, *given))
        for phase, given in zip(old, _of_phases(old, nodes, mesh), strict=True)
    )
    for phase in phases:
        for row in phase.node_rows:
            phase.node(row.fraction)  # raises where it is no node any more
    changed = {"phases": phases}
    new = replace(description, **changed).places
    numbers.guess = {name: _moved(x, places, new, old, phases) for name, x in numbers.guess.items()}
    if duration is None and nominal is not None:
        _, lower, upper = numbers.durations[0]
        duration = lower if lower == upper else (lower, upper)
    if duration is not None:
        if len(old) > 1:
            raise OrderError("with_mesh: durations of several phases stay as they are; give duration for one phase")
        changed |= _with_duration(problem, numbers, description, duration, nominal)
    other = object.__new__(type(problem))
    other._take(replace(description, **changed), numbers)
    return other


def _of_phases(phases, nodes, mesh):
    """[(number of intervals or None, mesh or None)] of the phases from what a caller gives of one or of all."""
    several = len(phases) > 1
    if not several:
        nodes = nodes[0] if isinstance(nodes, (list, tuple)) and len(nodes) == 1 else nodes
        mesh = mesh[0] if isinstance(mesh, (list, tuple)) and len(mesh) == 1 else mesh
        return [(nodes, mesh)]
    for what, given in (("nodes", nodes), ("mesh", mesh)):
        if given is not None and (not isinstance(given, (list, tuple, np.ndarray)) or len(given) != len(phases)):
            got = shortened(given)
            raise OrderError(f"with_mesh: {what} is {got}, the problem has {len(phases)} phases; give a list, one each")
    none = [None] * len(phases)
    return list(zip(none if nodes is None else nodes, none if mesh is None else mesh, strict=True))


def _intervals(problem, phase, nodes, mesh):
    """(number, shares) of the intervals of a phase. mesh: "uniform", breakpoints, or None for equal or free ones, as
    before where the number is None too."""
    if nodes is None and mesh is None:
        return phase.nodes, phase.shares
    _, at = checked("uniform" if mesh is None else mesh, ("uniform",))
    if nodes is None:
        nodes = phase.nodes if at is None else len(np.ravel(at)) - 1
    nodes = count("with_mesh: nodes", nodes, 1, 10**6)
    shares = None if at is None else shares_of("with_mesh", at, nodes)
    if shares is not None:
        check_unequal("with_mesh", problem)
    return nodes, shares


@dataclass(frozen=True, eq=False)
class MovedGuess:
    """A guess that is a function of the place, for a Problem whose nodes are at other places in time."""

    guess: object
    places: np.ndarray
    before: np.ndarray

    def __call__(self, place):
        """The guess of the problem before at the same time."""
        return self.guess(float(np.interp(place, self.places, self.before)))


def _moved(guess, places, new, old, phases):
    """A guess for other phases than the old ones, whose nodes were at the places, and are at new ones: tables, or lists
    of them, are interpolated, those of intervals as those of nodes, their last row being that of the end too."""
    if isinstance(guess, (list, tuple)) and any(callable(x) or np.ndim(x) == 2 for x in guess):
        return type(guess)(_moved(x, places, new, old, phases) for x in guess)
    ends, moved = (np.cumsum([0, *(p.nodes for p in some)]) / sum(p.nodes for p in some) for some in (old, phases))
    if isinstance(guess, SampledGuess):  # the time keeps its kind, which follows phases that are added
        return replace(guess, shares=np.interp(guess.shares, ends, moved))
    if callable(guess):
        return guess if np.array_equal(ends, moved) else MovedGuess(guess, moved, ends)
    table = None if guess is None else np.asarray(guess, float)
    if table is None or table.ndim != 2 or len(table) not in (len(places) - 1, len(places)):
        return guess
    at = np.interp(places, ends, moved)[: len(table)]
    return np.array([np.interp(new, at, column) for column in table.T]).T


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
