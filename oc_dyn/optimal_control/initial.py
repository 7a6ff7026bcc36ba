"""Where a solver starts from a Solution of another mesh, method or structure of phases.

What the new problem has by the same name and size is sampled on the polynomials of the solution: phase by phase where
there are as many, else by the share of the whole time. The rest takes its guesses. Controls that are constant on
intervals take the mean over theirs.

Interior-point methods push a start away from its bounds and make up multipliers, so that one at an optimum would take
as many iterations as any other. So ipopt starts with a small barrier, close to the bounds; from the same problem by the
same method, on any mesh, with multipliers, too, see initial_multipliers.py. The options are those that took the fewest
iterations on the problems of tests/optimal_control/test_initial.py and a dozen others.
"""

from __future__ import annotations

import warnings

import numpy as np

from ..errors import CheckWarning, ShapeError
from .bernstein import guess_table
from .initial_multipliers import alike, multipliers
from .manifolds import unit_rows
from .mesh import LONGEST, SHORTEST, clock_of, has_clock
from .polynomials import bernstein_values
from .resampling import SolutionSamples

MIDPOINTS = (np.arange(8) + 0.5) / 8  # of an interval, where what is constant on it is averaged
WITH_MULTIPLIERS = {  # of ipopt
    "warm_start_init_point": "yes",
    **{f"warm_start_{what}": 1e-8 for what in ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac")},
    "warm_start_mult_bound_push": 1e-8,
    "mu_strategy": "adaptive",
    "mu_init": 1e-4,
}
WITHOUT = {
    **{what: 1e-8 for what in ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac")},
    "bound_mult_init_method": "mu-based",
    "mu_strategy": "monotone",
    "mu_init": 1e-6,
}


def begin(made, initial, given, solver, asked):
    """({x0, multipliers}, options of the solver) from a Solution. given: parameters and bounds of the program. asked:
    options of the caller's own; where some of them are about the start, they are left alone."""
    out = {"x0": made.guess(initial)}
    if not np.isfinite(initial.unknowns).all():
        return out, {}
    finite = all(np.isfinite(x).all() for x in initial.multipliers)
    carried = finite and (initial.transcribed is made or alike(made, initial))
    if carried and initial.transcribed is made:
        out |= dict(zip(("lam_x0", "lam_g0"), initial.multipliers, strict=True))
    elif carried:
        out |= dict(zip(("lam_x0", "lam_g0"), multipliers(made, initial, {**given, **out}), strict=True))
    near = initial.success or initial.rounds  # else it may be far from any optimum, which a small barrier hides
    options = (WITH_MULTIPLIERS if carried else WITHOUT) if near and solver == "ipopt" else {}
    return out, {} if any(str(key).removeprefix("ipopt.") in options for key in asked) else options


class Start:
    """Times of a Solution that the nodes of a Transcribed stand for, and what the unknowns are there."""

    def __init__(self, made, initial):
        self.made, self.initial = made, initial
        self.phase_of = np.repeat(np.arange(len(made.phases)), [phase.nodes for phase in made.phases])
        self.alike = len(made.phases) == len(initial.durations)
        self.durations = self._durations()
        self.lengths = self._lengths()  # over the mean ones, of a free mesh
        self.fractions = self._fractions()  # of its phase that have passed at the start of every interval, and its end
        self.known, self.unknown = self._named()

    def _durations(self):
        """Durations of the phases."""
        made, initial = self.made, self.initial
        limits = [made.duration_numbers(k) for k in range(len(made.durations))]
        if self.alike:
            both = zip(initial.durations, limits, strict=True)
            return np.array([np.clip(T, low, high) for T, (_, low, high) in both])
        free = np.array([low < high for _, low, high in limits])
        nominal = np.array([T for T, _, _ in limits])
        left = max(initial.duration - nominal[~free].sum(), 1e-3 * initial.duration)
        scale = left / nominal[free].sum() if free.any() else 1.0
        return np.array([np.clip(T * scale, low, high) if low < high else T for T, low, high in limits])

    def _lengths(self):
        """(N,) lengths of the intervals over the mean one on a free mesh, all else alike ones."""
        made, initial = self.made, self.initial
        N, T = made.total, made.duration_numbers(0)[0]
        if not (made.free_mesh and made.description.of_nominal):
            return np.ones(N)
        nodes = np.interp(np.linspace(0, 1, N + 1), np.linspace(0, 1, len(initial.t)), initial.t)
        return np.clip(np.diff(nodes) * N / T, SHORTEST, LONGEST)

    def _fractions(self):
        """(2, N): shares of its phase that have passed at the start and the end of each interval."""
        shares = self.made.shares[:-1] * self.lengths
        out = np.zeros((2, len(shares)))
        for number in range(len(self.made.phases)):
            here = self.phase_of == number
            passed = np.concatenate([[0.0], np.cumsum(shares[here])])
            out[:, here] = passed[:-1] / passed[-1], np.append(passed[1:-1] / passed[-1], 1.0)
        return out

    def times(self, share):
        """(N,) times of the solution that stand for a share of every interval behind its start."""
        start, end = self.fractions
        passed = np.where(share == 1, end, start + share * (end - start))
        T, t0 = np.array(self.initial.durations, float), self.initial.t[0]
        if self.alike:
            return t0 + np.concatenate([[0.0], np.cumsum(T)])[self.phase_of] + passed * T[self.phase_of]
        own = np.concatenate([[0.0], np.cumsum(self.durations)])
        passed = (own[self.phase_of] + passed * self.durations[self.phase_of]) / own[-1]
        return t0 + passed * (self.initial.t[-1] - t0)

    def samples(self, share):
        """SolutionSamples at a share of every interval behind its start."""
        t = np.clip(self.times(share), self.initial.t[0], self.initial.t[-1])
        return SolutionSamples(self.initial, t, "before" if share == 1 else "after")

    def _named(self):
        """({name: expression of the solution} of what both have, names of what only the problem has)."""
        made, named = self.made, self.initial.named
        own = {s.name() for chain in made.description.bernstein for s in chain.coefficients}
        own |= {made.states[clock_of(made.description)].name} if has_clock(made.description) else set()
        variables = [v for v in (*made.states, *made.controls) if v.name not in own]
        known = {v.name: named[v.name] for v in variables if v.name in named and named[v.name].numel() == v.size}
        chains = [c.name for c in made.description.bernstein]
        splines = {p.name(): points[0].name().removesuffix("_0") for points in made.description.splines for p in points}
        unknown = [v.name for v in variables if v.name not in known and splines.get(v.name) not in named]
        return known, unknown + [c for c in chains if c not in named]

    def tables(self, what, share):
        """(N, n) scaled values of the states or controls at a share of every interval; NaN where nothing is known."""
        variables = self.made.states if what == "x" else self.made.controls
        samples, blank = self.samples(share), np.full((self.made.total, 1), np.nan)
        parts = [
            samples[self.known[v.name]] if v.name in self.known else np.tile(blank, (1, v.size)) for v in variables
        ]
        table = np.hstack([np.zeros((self.made.total, 0)), *parts])
        if what == "u":
            return table / self.made.u_scale
        return unit_rows(self.made.states, table) / self.made.x_scale


def unknowns(made, initial):
    """Unknowns of a Transcribed from a Solution."""
    if not np.isfinite(initial.unknowns).all():
        told = "Problem.solve: initial has numbers that are not finite, so that all starts from its guess"
        warnings.warn(told, CheckWarning, stacklevel=6)
        return made.guess(None)
    start = Start(made, initial)
    variables = [v.name for v in (*made.states, *made.controls)]
    if not start.known and set(start.unknown) & set(variables) == set(variables):
        raise ShapeError(
            f"initial: the solution has nothing of this problem's {', '.join(variables)}; give one of a problem with "
            "the same names"
        )
    if start.unknown:
        warnings.warn(
            f"Problem.solve: initial has no {', '.join(start.unknown)} of this problem, which start from their guesses",
            CheckWarning,
            stacklevel=6,
        )
    return filled(start, made.guess(None))


def filled(start, z):
    """The unknowns z with what is known in place."""
    made, n, k, nu = start.made, start.made.x_scale.size, len(start.made.times), start.made.u_scale.size
    stages = np.split(z.copy(), made.assembly.first[1:-1])

    def put(number, first, values):
        own = stages[number][first : first + len(values)]
        own[:] = np.where(np.isfinite(values), values, own)

    x, last = start.tables("x", 0.0), start.tables("x", 1.0)[-1]
    controls = _controls(start)
    free = start.durations[made.times] / made.T_scale if made.times else np.zeros(0)
    for number, values in enumerate([*x, last]):
        put(number, 0, values)
        put(number, n, free)
    for number, values in enumerate(controls[0][: len(stages) - (not made.nodal)]):
        put(number, n + k, values)
    first = 0
    for stretch in made.stretches:
        at, skip = {}, n + k + nu
        degree = 0
        for e in stretch.extras:
            if e.like == "u" and made.control_degree:
                degree += 1
                values = controls[degree]
            else:
                if (e.like, e.share) not in at:
                    at[e.like, e.share] = start.tables(e.like, e.share)
                values = at[e.like, e.share]
                if e.like == "x":  # those of a state on a manifold are steps from the start of the interval
                    local, physical = made._local(made.phases[stretch.phase]), (y * made.x_scale for y in (x, values))
                    values = local.steps(*(y[:, e.rows] for y in physical)) / e.scale
            for i in range(stretch.count):
                put(first + i, skip, values[first + i])
            skip += e.scale.size
        if made.free_mesh:
            for i in range(stretch.count):
                stages[first + i][-1] = start.lengths[first + i]
        first += stretch.count
    _put_chains(start, stages)
    return np.concatenate(stages)


def _controls(start):
    """[(N or N + 1, nu)] scaled controls of the intervals or nodes, and their further Bernstein coefficients."""
    made = start.made
    degree = made.control_degree
    if made.nodal:
        return [np.vstack([start.tables("u", 0.0), start.tables("u", 1.0)[-1:]])]
    if not degree:
        return [sum(start.tables("u", share) for share in MIDPOINTS) / len(MIDPOINTS)]
    at = np.arange(degree + 1) / degree
    values = np.array([start.tables("u", share) for share in at])
    return list(np.tensordot(np.linalg.inv(bernstein_values(degree, at).T), values, axes=1))


def _put_chains(start, stages):
    """Put what the solution has of chains whose unknowns are coefficients or control points, and the clock."""
    made, initial, N = start.made, start.initial, start.made.total
    n, k = made.x_scale.size, len(made.times)
    places = dict(zip(map(id, made.symbols), [*made.state_rows, *made.control_rows], strict=False))
    states = {v.symbol.name() for v in made.states}
    first, last = start.samples(0.0), start.samples(1.0)

    def nodes(name):
        return np.vstack([first[name], last[name][-1:]])

    def put(symbol, table):
        state = symbol.name() in states
        for number in range(min(len(table), len(stages) - (not state))):
            rows = np.array(places[id(symbol)]) + (0 if state else n + k)
            scale = (made.x_scale if state else made.u_scale)[places[id(symbol)]]
            stages[number][rows] = table[number] / scale

    for c in made.chain_numbers:
        derivatives = guess_table(c.chain, made.numbers.guess[c.chain.name], made.numbers, N, c.T)
        for d, name in enumerate(c.chain.names[:-1]):
            if name in initial.named:
                derivatives[d] = nodes(name)
        x, u = c.unknowns(derivatives, initial.duration, c.T / N if made.free_mesh else None)
        for j, symbol in enumerate(c.chain.coefficients):
            put(symbol, x[:, j] if j < c.chain.order else u)
    if has_clock(made.description):
        symbol = made.states[clock_of(made.description)].symbol
        put(symbol, np.concatenate([[0.0], np.cumsum(made.shares[:-1] * start.lengths)])[:, None])
    for points in made.description.splines:
        _put_spline(start, points, put)


def _put_spline(start, points, put):
    """Control points of a spline: values at the means of their knots, beyond the ends by derivatives there."""
    initial, N, degree = start.initial, start.made.total, len(points) - 1
    name = points[0].name().removesuffix("_0")
    if name not in initial.named or (len(initial.t) == N + 1 and points[0].name() in start.known):
        return
    h = initial.duration / N
    for j, symbol in enumerate(points):
        t = initial.t[0] + h * (np.arange(N + (j < degree)) + j - (degree - 1) / 2)
        inside = np.clip(t, initial.t[0], initial.t[-1])
        samples = SolutionSamples(initial, inside, "before")
        speed = f"d1{name}"
        beyond = samples[speed] * (t - inside)[:, None] if speed in initial.named else 0.0
        put(symbol, samples[name] + beyond)
