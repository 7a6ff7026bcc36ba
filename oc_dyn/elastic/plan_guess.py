"""A smooth motion of the links near the limits, for plan_elastic to start from."""

from math import factorial

import numpy as np

from ..optimal_control.polynomials import derivatives_at, hermite
from ..planning.guess import timed
from ..planning.limits import velocity_bounds
from .plan_outputs import OUTPUTS


def smooth(task, slower=1.0):
    """(T, guesses (nodes + 1, n) of q, dq, ..., scales of them): a polynomial near the limits, or a motion along
    task.way, or the Trajectory task.known, or what is begun."""
    if task.known is not None:
        return _resampled(task, slower)
    if task.begun is not None:
        T, found = task.begun
        return T, list(found), _sizes(found)
    if task.kind != "rest":
        return _without_goal(task)
    start, goal = np.zeros((2, task.continuity + 1, len(task.ends[0])))
    start[0], goal[0] = task.ends
    s, count = np.linspace(0, 1, 41), task.continuity + 2
    along = None if task.way is None else timed(task.way, task.continuity, task.around)

    def derivatives(T, at):
        if along is not None:
            return along(T, at * T, count)
        polynomial = hermite(start, goal, T)
        d = polynomial * np.array([factorial(j) for j in range(len(polynomial))])[:, None]
        return derivatives_at(np.repeat(d[None], len(at), axis=0), at * T, count)

    best = (np.inf, task.duration)
    for T in [task.duration] if task.duration else 0.05 * 1.2 ** np.arange(40):
        worst = _largest_share(task, derivatives(T, s))
        if worst < 0.999 * best[0]:
            best = (worst, T)
        if worst <= 1:
            break
    T = best[1] * slower if task.duration is None else best[1]
    return T, list(derivatives(T, np.linspace(0, 1, task.nodes + 1))), _sizes(derivatives(T, s))


def _without_goal(task):
    """A motion through points (k, n) task.way at equal times, of a shape that its ends allow: from rest as powers of
    the time that rest there, or as a Fourier sum. By default a swing back and forth."""
    T, count, shape = task.duration, task.continuity + 2, _periodic if task.kind == "periodic" else _from_rest
    way = _swing(task) if task.way is None else np.asarray(task.way, float)
    derivatives = shape(task, way, T, count)
    worst = _largest_share(task, derivatives(np.linspace(0, T, 41)))
    if task.way is None and worst > 1:  # what moves less is nearer to the limits; half of it may be gravity's
        way = way[0] + (way - way[0]) / min(2 * worst, 20.0)
        derivatives = shape(task, way, T, count)
    found = derivatives(np.linspace(0, T, task.nodes + 1))
    return T, list(found), _sizes(found)


def _swing(task):
    s = np.linspace(0, 1, 9)[:, None]
    far = np.ones(task.elastic.nq) if task.speed is None else _towards(task)
    back = np.sin(np.pi * s) ** 2
    return task.ends[0] + 0.7 * far * (1.6 * s**4 - 0.6 * back if task.kind == "free" else back)


def _towards(task):
    """(n,) direction of velocities that the speed grows with, the largest of them 1."""
    q = task.ends[0]
    slope = np.array([float(task.speed(q, e)) for e in np.eye(q.size)])
    return slope / max(np.abs(slope).max(), 1e-9) if np.any(slope) else np.ones(q.size)


def _from_rest(task, way, T, count):
    first, s = task.continuity + 1, np.linspace(0, 1, len(way))[1:]
    powers = first + np.arange(min(len(s), 6))
    coefficients = np.linalg.lstsq(s[:, None] ** powers, way[1:] - way[0], rcond=None)[0]
    pieces = np.zeros((1, powers[-1] + 1, way.shape[1]))
    pieces[0, 0] = way[0]
    for p, c in zip(powers, coefficients, strict=True):
        pieces[0, p] = c * factorial(int(p)) / T ** int(p)
    return lambda t: derivatives_at(np.repeat(pieces, len(t), axis=0), t, count)


def _periodic(task, way, T, count):
    """Fourier sum of few harmonics through points, the last of which is the first one again."""
    points = way[:-1] if np.allclose(way[0], way[-1]) else way
    t, w = np.arange(len(points)) * T / len(points), 2 * np.pi / T
    most = max(1, min(3, (len(points) - 1) // 2))

    def basis(t, order):
        rows = [np.full(len(t), float(order == 0))]
        for k in range(1, most + 1):
            rows += [(k * w) ** order * f(k * w * t + order * np.pi / 2) for f in (np.cos, np.sin)]
        return np.array(rows).T

    c = np.linalg.lstsq(basis(t, 0), points, rcond=None)[0]
    return lambda t: np.array([basis(t, order) @ c for order in range(count)])


def _resampled(task, slower):
    known, count = task.known, task.continuity + 2
    T = known.duration if task.duration else known.duration * slower
    at = known.sample(np.linspace(known.t[0], known.t[-1], task.nodes + 1)).derivatives[:count]
    found = [x * (known.duration / T) ** k for k, x in enumerate(at)]
    found += [np.zeros_like(found[0])] * (count - len(found))
    return T, found, _sizes(found)


def _sizes(derivatives):
    return [np.maximum(np.abs(x).max(axis=0), 1e-2 * np.abs(x).max() + 1e-6) for x in derivatives]


def _largest_share(task, derivatives):
    """Of all limits of motors, springs and links, at derivatives of q (order, K, n)."""
    outputs = task.outputs(derivatives)
    asked = [np.abs(outputs[OUTPUTS[k]] / x).max(initial=0) for k, x in task.given.items()]
    worst = max((x if np.isfinite(x) else np.inf for x in asked), default=0.0)
    worst = worst if np.isfinite(outputs["theta"]).all() else np.inf
    for order, (lower, upper) in task.of_links.values():
        x = derivatives[order]
        worst = max(worst, np.max(np.where(x >= 0, x / np.maximum(upper, 1e-9), x / np.minimum(lower, -1e-9))))
    if task.limits.v_of_q is not None:
        low, high = (np.array(x).T for x in velocity_bounds(task.limits)(derivatives[0].T))
        v = derivatives[1]
        worst = max(worst, np.max(np.where(v >= 0, v / np.maximum(high, 1e-9), v / np.minimum(low, -1e-9))))
    return worst
