"""Where the solver starts: a smooth motion, slow enough for the limits, or one that is known."""

from math import factorial

import numpy as np

from ..errors import LimitError
from ..optimal_control.polynomials import derivatives_at, hermite
from .quantities import ORDERS
from .report import quantities
from .samples import Samples


def smooth_motion(task, settings, kinematic, slower=1.0):
    """(T, derivatives (c + 2, N + 1, n) at the nodes): a polynomial between the ends, just slow enough for the limits.

    Of a row of durations the first that keeps all limits is taken, else the one that exceeds them least.
    """
    T = task.duration or settings["shortest"]
    times = [T] if task.duration else T * 1.15 ** np.arange(30) if T > 0 else np.geomspace(0.02, 200.0, 60)
    best = (np.inf, None)
    for T in times:
        polynomial = hermite(*_smooth_ends(task), T)
        worst = _worst_share(task, _evaluated(polynomial, np.linspace(0, T, 41), ORDERS), kinematic)
        if worst < best[0] * 0.999:
            best = (worst, T)
        if worst <= 1:
            break
    if best[1] is None:
        raise LimitError("no motion from start to goal keeps the limits in a time that numbers can hold; widen them")
    T = best[1] * (1.0 if task.duration else slower)
    polynomial = hermite(*_smooth_ends(task), T)
    return T, _evaluated(polynomial, np.linspace(0, T, settings["nodes"] + 1), task.continuity + 2)


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


def _worst_share(task, derivatives, kinematic):
    """Largest share of a limit that a motion (ORDERS, K, n) reaches; without torque if kinematic."""
    t, robot = np.zeros(derivatives.shape[1]), None if kinematic else task.robot
    samples = Samples(t, list(derivatives), joints=task.names, units=(), robot=robot, friction=task.friction)
    return max(float(np.max(share)) for *_, share in quantities(samples, task.limits))


def resampled(motion, task, settings):
    """(T, derivatives at the nodes) of a Trajectory, stretched to the duration where that is given."""
    T = task.duration or motion.duration
    samples = motion.sample(motion.t[0] + np.linspace(0, 1, settings["nodes"] + 1) * motion.duration)
    out = np.zeros((task.continuity + 2, *samples.q.shape))
    known = samples.derivatives[: len(out)]
    out[: len(known)] = known
    return T, out * (motion.duration / T) ** np.arange(len(out))[:, None, None]
