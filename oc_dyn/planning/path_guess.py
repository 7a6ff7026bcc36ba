"""A law of time s(t) for plan_along_path to start from, slow enough for all limits, and the nodes that it gives.

Laws are functions t -> (c + 2, K): s and its derivatives at K times.
"""

import numpy as np

from ..errors import OrderError
from ..optimal_control.polynomials import hermite
from .path_turns import snapped
from .quantities import ORDERS


def _polynomial(continuity):
    ends = np.zeros((min(continuity, 2) + 1, 1))
    return hermite(ends, np.vstack([np.ones((1, 1)), ends[1:]]), 1.0)[:, 0]


def slow_enough(task):
    """(T, law) of a smooth law s(t), just slow enough for the limits."""
    if any(task.speeds):
        return _with_speeds(task)
    c = task.continuity
    p = np.polynomial.Polynomial(_polynomial(c))
    z = np.linspace(0, 1, 101)
    unit = np.array([p.deriv(k)(z) if k else p(z) for k in range(ORDERS)])
    s = np.clip(unit[0], 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        T = np.nanmax(np.where(unit[1] > 0, unit[1] / task.speed(s), 0.0))
    T = max(T, 1e-2)
    for _ in range(120):
        law = unit / T ** np.arange(ORDERS)[:, None]
        if _worst(task, s, law) <= 1:
            break
        T *= 1.12

    def at(t):
        x = np.asarray(t) / T
        return np.array([(p.deriv(k)(x) if k else p(x)) / T**k for k in range(c + 2)])

    return T, at


def _with_speeds(task):
    """The same where the ends have speeds a and b: s' goes over from a to b smoothly, and what is missing of the way
    is passed in a bump between them."""
    z, (a, b), best = np.linspace(0, 1, 101), task.speeds, (np.inf, None)
    for T in np.geomspace(0.05, 4.0, 60) / (a + b):
        law = _between_speeds(T, a, b)
        values = law(z * T)
        if values[1].min() < 0:
            break
        s = np.clip(values[0], 0, 1)
        worst = max(_worst(task, s, values), (values[1] / task.speed(s)).max())
        if worst < best[0] * 0.999:
            best = (worst, T)
        if worst <= 1:
            break
    T = best[1] or 2.0 / (a + b)
    law = _between_speeds(T, a, b)
    return T, lambda t: law(t)[: task.continuity + 2]


def _between_speeds(T, a, b):
    """t -> (ORDERS or more, K) of the law."""
    step, bump = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6]), np.polynomial.Polynomial([0, 0, 30, -60, 30])
    speed = a + (b - a) * step + (1 / T - (a + b) / 2) * bump
    s = (T * speed).integ()
    return lambda t: np.array([s.deriv(k)(np.asarray(t) / T) / T**k if k else s(np.asarray(t) / T) for k in range(8)])


def _worst(task, s, law):
    shares = [0.0]
    for k in task.bounded:
        shares.append(task.shares(k, task.values(k, s, law, task.factors(k, s))).max())
    return max(shares)


def nodes_of(on, law, T, N, turning=()):
    """(times, places, places between) of N + 1 nodes at nearly equal times, among them the knots of the path and places
    at which joints turn round, as far as there are nodes for them."""
    t = np.linspace(0, T, 40 * N + 1)
    s = np.maximum.accumulate(np.clip(law(t)[0], 0, 1))
    rising = np.concatenate([[True], np.diff(s) > 0])
    knots = np.interp(on.knots, s[rising], t[rising])
    edges = np.concatenate([[0.0], knots, [T]])
    if N < 2 * (len(edges) - 1):
        raise OrderError(
            f"plan_along_path: {N} nodes for {len(edges) - 1} pieces of the path; give at least twice that"
        )
    share = np.diff(edges) / T * N
    counts = np.maximum(2, np.floor(share).astype(int))
    while counts.sum() != N:  # the largest remainders get what is left
        k = np.argmax(share - counts) if counts.sum() < N else np.argmin(np.where(counts > 2, share - counts, np.inf))
        counts[k] += 1 if counts.sum() < N else -1
    stretches = zip(edges[:-1], edges[1:], counts, strict=True)
    times = np.concatenate([*(np.linspace(a, b, n, endpoint=False) for a, b, n in stretches), [T]])
    places = np.clip(law(times)[0], 0, 1)
    at_knots = np.cumsum(counts)[:-1]
    places[at_knots], places[0], places[-1] = on.knots, 0.0, 1.0
    if len(turning):
        moved = snapped(places, turning, on.knots)
        times = np.where(moved == places, times, np.interp(moved, s[rising], t[rising]))
        places = moved
    middles = np.clip(law((times[1:] + times[:-1]) / 2)[0], places[:-1], places[1:])
    return times, places, middles
