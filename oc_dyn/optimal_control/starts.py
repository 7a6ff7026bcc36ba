"""Several starts of one Problem: its own guess, and random ones about it that are smooth in time, the best one kept."""

import casadi as ca
import numpy as np

from ..errors import SolveError
from . import bernstein
from .manifolds import many, unit_rows
from .solution import Solution
from .transcription import guessed

WAVES = 3  # half waves over the motion in what a random guess adds


def best_of(problem, starts, seed, executor, how):
    """The best Solution of so many starts, with local_optima; see Problem.solve. how: arguments of Problem._found."""
    from ..executors import completed, told  # multiprocessing when it is first needed

    named = {k.name() if isinstance(k, ca.MX) else k: x for k, x in (how["parameters"] or {}).items()}
    transcribed = problem._program(how["method"], how["compiled"], how["hessian"])
    points = []
    for number in range(starts):
        given = {**how, "parameters": named, "initial": None if number else how["initial"]}
        rng = np.random.default_rng([seed, number])
        points.append((problem, random_guess(problem, transcribed, rng) if number else {}, given))
    found, errors = {}, {}
    for number, result, error in completed(_found, points, executor, lambda number: f"start {number}"):
        if error is not None and not isinstance(error, SolveError):
            raise error
        errors[number], found[number] = error, result
    if all(errors.values()):
        raise errors[0]
    made = {k: Solution(problem, transcribed, *of) for k, of in sorted(found.items()) if errors[k] is None}
    best = min(made.values(), key=lambda s: (not s.success, np.nan_to_num(s.objective, nan=np.inf)))
    best.local_optima = [
        (s.objective, s.status, s.iterations) if (s := made.get(k)) else (np.nan, told(errors[k]), 0)
        for k in range(starts)
    ]
    return best


def _found(problem, guesses, how):
    """(SolverResult, what the solver was given) from guesses of some states, controls and chains."""
    kept = problem.numbers.guess
    problem.numbers.guess = {**kept, **guesses}
    try:
        _, found, given = problem._found(**how)
        return found, given
    finally:
        problem.numbers.guess = kept


def random_guess(problem, transcribed, rng):
    """{name: values} (N + 1, size) of all states, controls and chains: the guess and some half waves, half the way
    between bounds high or as high as the scale, within bounds, and at fixed ends zero. Variables change as a whole,
    quaternions of contact bodies and the time stay, states on manifolds turn."""
    description, N = problem.description, transcribed.total
    own = {s.name() for chain in description.bernstein for s in chain.coefficients}
    groups = {p.name(): points[0].name() for points in description.splines for p in points}
    places, out, waves = transcribed.places, {}, {}
    held = set.intersection(*(set(phase.held(description.states)) for phase in description.phases))
    for k, v in enumerate((*description.states, *description.controls)):
        if v.name in own or k == description.time:
            continue
        ends = [v.name in getattr(problem.numbers, where) for where in ("start", "goal")]
        group = groups.get(v.name, v.name)
        if group not in waves:  # control points of a spline move together
            rows = v.rate_size
            waves[group] = _constant(rng, N, rows) if k in held else _wave(rng, places, rows, *ends)
        wave = waves[group]
        for body in description.bodies:
            for i in body.quaternions if body.q is v.symbol else ():
                wave[:, i : i + 4] = 0.0
        high = (v.upper - v.lower) / 2
        guess, reach = guessed([v], problem.numbers.guess, places), np.where(np.isfinite(high), high, v.scale)
        table = np.array([guess(place) for place in places])
        if v.manifold is None:
            table = table + reach * wave
        else:
            table = many(v.manifold, "integrate", unit_rows([v], table), v.manifold.tangent_scale(reach) * wave)
        out[v.name] = np.clip(table, v.lower, v.upper)
        if k in held:
            out[v.name] = out[v.name][0]
    for chain in transcribed.chain_numbers:
        out[chain.chain.name] = _chain_guess(problem, chain, N, _wave(rng, places, chain.chain.size, True, True))
    return out


def _constant(rng, N, size):
    return np.tile(rng.uniform(-1, 1, size), (N + 1, 1))


def _wave(rng, shares, size, start_fixed, goal_fixed):
    """(N + 1, size) sum of half waves, and of straight lines to ends that are free."""
    heights = rng.uniform(-1, 1, (WAVES, size)) / np.arange(1, WAVES + 1)[:, None]
    ends = rng.uniform(-1, 1, (2, size)) * np.array([[not start_fixed], [not goal_fixed]])
    half_waves = np.sin(np.pi * np.outer(shares, np.arange(1, WAVES + 1)))
    return half_waves @ heights + np.outer(1 - shares, ends[0]) + np.outer(shares, ends[1])


def _chain_guess(problem, chain, N, wave):
    """[q, dq, ...] of a bernstein chain."""
    of, numbers = chain.chain, problem.numbers
    q = bernstein.guess_table(of, numbers.guess[of.name], numbers, N, chain.T)[0]
    lower, upper = numbers.bounds.get(of.name, (np.full(of.size, -np.inf), np.full(of.size, np.inf)))
    high = (upper - lower) / 2
    reach = np.ptp(q, axis=0)
    table = [np.clip(q + np.where(np.isfinite(high), high, np.where(reach > 0, reach, 1.0)) * wave, lower, upper)]
    while len(table) <= of.order:
        table.append(np.gradient(table[-1], chain.T / N, axis=0) if N else 0 * table[-1])
    return table
