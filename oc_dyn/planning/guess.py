"""Where the solver starts: a smooth motion, slow enough for the limits, or one that is known."""

from math import factorial

import numpy as np

from ..errors import LimitError
from ..optimal_control.polynomials import derivatives_at, hermite
from .curves import spline
from .followers import check_samples
from .moving_obstacles import passage, smooth_law
from .path_motion import bell
from .quantities import ORDERS
from .report import quantities
from .samples import Samples

_DEGREE = 7  # of the curve along a way
_CORNERS = (0.1, 0.05, 0.025)  # of a way that corners are rounded over
_GRAZES = 2e-3  # [m] that a guess may be too near
_EVEN, _SPREAD = 1.9, 0.05  # largest speed of smooth motions by their mean; share of their time to change speed in


def smooth_motion(task, settings, kinematic, slower=1.0):
    """(T, derivatives (c + 2, N + 1, n) at the nodes): a polynomial between the ends, just slow enough for the limits.

    Of a row of durations the first that keeps all limits is taken, else the one that exceeds them least.
    """
    T = task.duration or settings["shortest"]
    times = [T] if task.duration else T * 1.15 ** np.arange(30) if T > 0 else np.geomspace(0.02, 200.0, 60)
    best = (np.inf, None)
    for T in times:
        polynomial = hermite(*_smooth_ends(task), T)
        t = np.linspace(0, T, 41)
        worst = _worst_share(task, t, _evaluated(polynomial, t, ORDERS), kinematic)
        if worst < best[0] * 0.999:
            best = (worst, T)
        if worst <= 1:
            break
    if best[1] is None:
        raise LimitError("no motion from start to goal keeps the limits in a time that numbers can hold; widen them")
    T = best[1] * (1.0 if task.duration else slower)
    polynomial = hermite(*_smooth_ends(task), T)
    return T, _evaluated(polynomial, np.linspace(0, T, settings["nodes"] + 1), task.continuity + 2)


def along_way(task, settings, way, kinematic):
    """(T, derivatives (c + 2, N + 1, n) at the nodes) of a motion from rest to rest along a way of configurations (k,
    n), its corners rounded, just slow enough for the limits, as smooth_motion."""
    motion, N = timed(way, task.continuity, task.around), settings["nodes"]
    T = task.duration or max(settings["shortest"], 1e-3)
    times = [T] if task.duration else T * 1.15 ** np.arange(40)
    best = (np.inf, T)
    for T in times:
        t = np.linspace(0, T, 81)
        worst = _worst_share(task, t, motion(T, t, ORDERS), kinematic)
        if worst < best[0] * 0.999:
            best = (worst, T)
        if worst <= 1:
            break
    return best[1], motion(best[1], np.linspace(0, best[1], N + 1), task.continuity + 2)


def along_passage(task, settings, way, around, shortest):
    """(T, derivatives as of along_way) of a motion along a way that passes what moves in time, the limits left to the
    search; None where no passage is found. shortest [s]: of a motion along the way."""
    curve = curve_along(way, task.around)
    found = passage(around, lambda s: curve.at(s, 1)[0], shortest / _EVEN)
    if found is None:
        return None
    over = _SPREAD * shortest
    T = task.duration or found[0][-1] + 2 * over
    law = smooth_law(*found, over)
    return T, composed(curve, law(np.linspace(0, T, settings["nodes"] + 1), task.continuity + 2))


def timed(way, continuity, around):
    """Function (T, t (K,), count) -> (count, K, n) derivatives at times t of a motion from rest to rest along a way (k,
    n), its corners rounded as far as Obstacles let them, in a duration T."""
    ends = np.zeros((2, continuity + 1, 1))
    ends[1, 0] = 1.0
    curve = curve_along(way, around)
    return lambda T, t, count: composed(curve, _evaluated(hermite(*ends, T), t, count)[:, :, 0])


def curve_along(way, around):
    """Spline along a way (k, n), its corners rounded as far as Obstacles let them; None for none."""
    for share in _CORNERS:
        curve = spline(*_rounded(way, share), _DEGREE)
        if around is None or around.missing(curve.at(np.linspace(0, 1, 101), 1)[0]).max() < _GRAZES:
            break
    return curve


def composed(curve, s):
    """(count, K, n): derivatives by time of q(s(t)) from those of s (count, K)."""
    on = curve.at(np.clip(s[0], 0, 1), len(s))
    table = bell(len(s) - 1, s[1:])
    out = [on[0]]
    for m in range(1, len(s)):
        out.append(sum(on[j] * np.asarray(table[m][j - 1])[..., None] for j in range(1, m + 1)))
    return np.array(out)


def _rounded(way, share):
    """(points, their places from 0 to 1) at equal steps along a way, each the mean of those about it: corners are cut
    over so much of the way, and the ends stay."""
    steps = np.linalg.norm(np.diff(way, axis=0), axis=1)
    length = np.concatenate([[0.0], np.cumsum(steps)]) / steps.sum()
    fine = np.linspace(0, 1, 401)
    dense = np.column_stack([np.interp(fine, length, x) for x in way.T])
    mirrored = np.concatenate([2 * dense[0] - dense[40:0:-1], dense, 2 * dense[-1] - dense[-2:-42:-1]])
    weights = np.exp(-0.5 * (np.arange(-40, 41) / (140 * share)) ** 2)
    weights /= weights.sum()
    mean = np.column_stack([np.convolve(x, weights, "valid") for x in mirrored.T])
    mean[0], mean[-1] = dense[0], dense[-1]
    return mean[::20], fine[::20]


def _smooth_ends(task):
    """Derivatives 0..c at the ends; those that are free count as zero."""
    shape = (task.continuity + 1, len(task.names))
    ends = np.zeros((2, *shape))
    for end, state in zip(ends, (task.start, task.goal), strict=True):
        end[: len(state)] = state
    return ends


def _evaluated(polynomial, t, count):
    """(count, K, n) derivatives of a polynomial by powers of t (k, n)."""
    derivatives = polynomial * np.array([factorial(j) for j in range(len(polynomial))])[:, None]
    return derivatives_at(np.repeat(derivatives[None], len(t), axis=0), t, count)


def _worst_share(task, t, derivatives, kinematic):
    """Largest share of a limit that a motion (ORDERS, K, n) at times t (K,) reaches; without torque if kinematic."""
    robot = None if kinematic else task.robot
    check_samples("plan_point_to_point", robot, t, derivatives[0])
    samples = Samples(t, list(derivatives), joints=task.names, units=(), robot=robot, friction=task.friction)
    worst = max(float(np.max(share)) for *_, share in quantities(samples, task.limits))
    if kinematic or task.followers is None:
        return worst
    rates = [r for r, (k, _) in enumerate(task.followers.rows) if k != "q"]  # positions are the same however slow
    share = task.followers.shares(task.followers.at(derivatives))[:, rates]
    return max(worst, float(np.nan_to_num(share, nan=np.inf).max(initial=0.0)))


def resampled(motion, task, settings):
    """(T, derivatives at the nodes) of a Trajectory, stretched to the duration where that is given."""
    T = task.duration or motion.duration
    samples = motion.sample(motion.t[0] + np.linspace(0, 1, settings["nodes"] + 1) * motion.duration)
    out = np.zeros((task.continuity + 2, *samples.q.shape))
    known = samples.derivatives[: len(out)]
    out[: len(known)] = known
    return T, out * (motion.duration / T) ** np.arange(len(out))[:, None, None]
