"""Deflections for a wanted torque, from a spring's law and its slope alone, in a fixed number of steps.

Newton's method on a law that stiffens overshoots and then comes back by a fixed length per step, so both iterations
here work on a scale where such laws are nearly straight:

one motor    asinh((law(z) - c) / s) = asinh((torque - c) / s), c the torque at the start and s = scale * slope there.
             Exponential, hyperbolic and polynomial laws become straight or concave away from the start; towards a
             concave curve Newton's method goes monotonically from inside, towards a convex one from outside.
two motors   each Newton step dz becomes log(1 + x) / x dz, x = law'' dz / law': exact for exponential laws, and
             Newton's method where x is small; or Newton's method as it stands, whichever finds more.

How many steps are needed, and which scale needs the fewest, is determined when the spring is built, on torques of known
deflection all over its range, flat ends included. Laws that no scale serves are inverted by bisection, which cannot
fail for a law that rises. Deflections are as exact as rounding of the law lets them be. The result is inserted into the
law once more; if it does not give the torque, the deflection is NaN.
"""

from dataclasses import dataclass
from functools import partial, reduce

import casadi as ca
import numpy as np

TOLERANCE = 1e-12  # of the torque that the deflection found gives, relative
_NOISE = 1e-9  # rounding errors of laws up to which they are taken
USUAL = 1e5  # [Nm, N] torques up to this size are sought where no range is given
_EPS, _FAR = float(np.finfo(float).eps), 1e-3
_CONVERGED, MARGIN, MOST = 1e-11, 3, 30  # the steps after convergence serve AD, which doubles its order in each
_SCALES = (np.inf, 10.0, 1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)  # [rad, m] inf: Newton's method as it stands
_BISECTIONS = (20, 30, 40, 50, 60, 80)
HALVINGS = 80
OFFSETS = np.concatenate([[0.0], np.geomspace(1e-7, 1e6, 521)])  # [rad, m] from the start


@dataclass(frozen=True, eq=False)
class Inverse:
    """function: casadi.Function (target, sigma) -> deflections, not a number where there are none. steps: how many;
    torques, deflections: (lowest, highest) that the law reaches by rising; inf where it has no end."""

    function: ca.Function
    steps: int
    torques: tuple
    deflections: tuple


def reach(wanted, slope, start, sigma=0.0):
    """((lowest, highest) torque, (lowest, highest) deflection) over which a law is finite and rises."""
    ends = []
    for side in (-1.0, 1.0):
        z, free = start + side * OFFSETS, True
        for _ in range(9):  # ever closer to where it stops
            good = _rises(wanted, slope, z, side, sigma)
            last = len(z) - 1 if good.all() else max(int(np.argmin(good)) - 1, 0)
            if good.all():
                break
            free, z = False, np.linspace(z[last], z[last + 1], 65)
        ends.append((z[last] if not free else side * np.inf, values(wanted, z[last : last + 1], sigma)[0, 0]))
    torques = [side * np.inf if abs(tau) > 1e9 else tau for side, (_, tau) in zip((-1, 1), ends, strict=True)]
    return tuple(float(x) for x in torques), tuple(float(z) for z, _ in ends)


def _rises(wanted, slope, z, side, sigma):
    """For each of the points, one farther out than the other, whether the law still rises there."""
    tau, k = values(wanted, z, sigma)[0], values(slope, z, sigma)[0]
    with np.errstate(invalid="ignore"):
        return (
            np.isfinite(tau)
            & (k > 0)
            & (k < np.inf)
            & (np.abs(tau) < 1e15)
            & (side * np.diff(tau, prepend=tau[0]) >= 0)
        )


def values(f, z, sigma=0.0):
    """(rows of f, points) at deflections z (motors, points) or (points,), sigma (points,) or a number."""
    z = np.atleast_2d(np.asarray(z, float))
    s = np.broadcast_to(np.asarray(sigma, float), (f.size1_in(1), z.shape[1]))
    out = f.map(z.shape[1])(z, s).full()
    return out.reshape(len(out), z.shape[1], -1).transpose(0, 2, 1).reshape(-1, z.shape[1])


def of_one(wanted, slope, start, torques, deflections, sigmas):
    """Inverse of a law of one motor; sigmas: values of sigma to be sure of, () where there is none.

    torques: (lowest, highest) to be sure of.
    Returns (Inverse, None), or (Inverse, text) where it cannot be sure.
    """
    z, s = _samples(wanted, slope, start, torques, deflections, sigmas)
    target = values(wanted, z, s)[0]
    best = None if z.size else (0.0, MOST, _step(wanted, slope, start, np.inf, deflections))
    for scale in _SCALES if z.size else ():
        step = _step(wanted, slope, start, scale, deflections)
        shares = progress(step, wanted, start, z[None], target[None], s, slope)
        steps = len(shares) - 1 + MARGIN
        cost = steps * step.n_instructions()
        if shares[-1] == 1 and (best is None or cost < best[0]):
            best = cost, steps, step
    if best is None:
        for count in _BISECTIONS:
            make = partial(_bisected, wanted, slope, start, deflections, count)
            share = _found(make(np.inf), wanted, slope, start, z, target, s)
            if share == 1 or (count == _BISECTIONS[-1] and not len(sigmas)):
                return Inverse(_certain(make, wanted, slope, start, z, target, s), count, torques, deflections), None
    problem = None
    if best is None:
        step, problem = _step(wanted, slope, start, 0.1, deflections), "no number of steps finds all its deflections"
        best = np.inf, MOST, step
    make = partial(repeated, wanted, slope, start, *best[1:])
    return Inverse(_certain(make, wanted, slope, start, z, target, s), best[1], torques, deflections), problem


def _certain(make, wanted, slope, start, z, target, s):
    """make(tolerance) with the tolerance that rounding errors of the law allow at the samples."""
    found = values(make(np.inf), target, s)[0]
    with np.errstate(invalid="ignore", over="ignore"):
        miss = np.abs(values(wanted, found, s)[0] - target) / _size(wanted, slope, start, target, s)
    worst = 4 * float(miss[np.isfinite(miss)].max(initial=0.0))
    return make(float(np.clip(worst, TOLERANCE, _NOISE)))


def _size(wanted, slope, start, target, sigma):
    """What errors of torques are compared with."""
    at = np.full(len(target), float(start))
    return np.abs(target) + np.abs(values(wanted, at, sigma)[0]) + 1e-3 * np.abs(values(slope, at, sigma)[0])


def _found(f, wanted, slope, start, truth, target, sigma):
    """Share of the deflections `truth` that are found as exactly as the law's rounding errors allow."""
    if not truth.size:
        return 1.0
    allowed = _allowed(wanted, slope, start, truth, target, sigma)
    with np.errstate(invalid="ignore"):
        return float((np.abs(values(f, target, sigma)[0] - truth) <= allowed).mean())


def _allowed(wanted, slope, start, truth, target, sigma):
    """Errors of the deflections that rounding makes."""
    with np.errstate(all="ignore"):
        sizes = np.abs(target) + np.abs(values(wanted, np.full(truth.size, float(start)), sigma)[0])
        return 1e-12 * (1e-3 + np.abs(truth)) + 64 * _EPS * sizes / values(slope, truth, sigma)[0]


def _samples(wanted, slope, start, torques, deflections, sigmas):
    """(z, sigma) whose torques lie in the range, each determined by its torque in spite of rounding."""
    parts, every = [], 6 if len(sigmas) else 2
    for s in sigmas if len(sigmas) else [0.0]:
        z = start + np.concatenate([-OFFSETS[:0:-every], OFFSETS[::every]])
        close = [end - (end - start) * 10.0 ** -np.linspace(0.1, 12, 48) for end in deflections if np.isfinite(end)]
        z = np.sort(np.concatenate([z, *close, _evenly(wanted, z, torques, s, 402 // every)]))
        z = z[(z >= deflections[0]) & (z <= deflections[1])]
        tau, k = values(wanted, z, s)[0], values(slope, z, s)[0]
        with np.errstate(invalid="ignore"):
            good = np.isfinite(tau) & (k > 0) & (tau >= torques[0]) & (tau <= torques[1])
            good &= _allowed(wanted, slope, start, z, tau, s) < 1e-3 * (1 + np.abs(z))
            parts.append((z[good], np.full(good.sum(), s)))
    return (np.concatenate(x) for x in zip(*parts, strict=True))


def _evenly(wanted, z, torques, sigma, count):
    """Deflections whose torques are about evenly spread over the range."""
    tau = values(wanted, z, sigma)[0]
    inside = np.isfinite(tau) & (tau >= torques[0]) & (tau <= torques[1])
    if inside.sum() < 2 or np.any(np.diff(tau[inside]) < 0):
        return np.zeros(0)
    return np.interp(np.linspace(tau[inside][0], tau[inside][-1], count), tau[inside], z[inside])


def _step(wanted, slope, start, scale, bounds):
    """casadi.Function (z, target, sigma) -> z after a step."""
    z, target, sigma = ca.SX.sym("z"), ca.SX.sym("target"), ca.SX.sym("sigma", wanted.size1_in(1))
    value, k = wanted(z, sigma), slope(z, sigma)
    if np.isinf(scale):
        new = z + (target - value) / k
    else:
        centre, s = wanted(start, sigma), scale * slope(start, sigma)
        y = (value - centre) / s
        new = z + (ca.asinh((target - centre) / s) - ca.asinh(y)) * s * ca.sqrt(1 + y**2) / k
    if np.isfinite(bounds[0]):
        new = ca.fmax(new, bounds[0])
    if np.isfinite(bounds[1]):
        new = ca.fmin(new, bounds[1])
    return ca.Function("step", [z, target, sigma], [new])


def progress(step, wanted, start, truth, target, sigma, slope=None):
    """[share of the deflections `truth` that are found after so many steps], up to the first at which all are; with
    slope, as exactly as the rounding errors of the law allow."""
    n = truth.shape[1]
    z = np.tile(np.reshape(start, (-1, 1)), n)
    sigma = np.broadcast_to(np.asarray(sigma, float), (step.size1_in(2), n))
    f, g = step.map(n), wanted.map(n)
    allowed = None if slope is None else _allowed(wanted, slope, start, truth[0], target[0], sigma)
    size = np.abs(target) + 1e-6 * np.abs(target).max(axis=1, keepdims=True)
    shares = []
    for _ in range(MOST + 1):
        with np.errstate(invalid="ignore"):
            solved = (np.abs(g(z, sigma).full() - target) <= _CONVERGED * size).all(axis=0)
            solved &= (np.abs(z - truth) <= 1e-3 * (1 + np.abs(truth))).all(axis=0)  # and no other solution
            solved = solved if allowed is None else np.abs(z[0] - truth[0]) <= allowed
        shares.append(float(solved.mean()))
        if shares[-1] == 1:
            break
        z = f(z, target, sigma).full()
    return shares


def repeated(wanted, slope, start, steps, step, tolerance=TOLERANCE, pull=None):
    """casadi.Function (target, sigma) -> deflections after so many steps, checked; pull: of pairs, (how much each
    spring pulls, its torques)."""
    target, sigma = ca.SX.sym("target", wanted.size1_out(0)), ca.SX.sym("sigma", wanted.size1_in(1))
    z = ca.SX(ca.DM(np.atleast_1d(start).astype(float)))
    for _ in range(steps):
        z = step(z, target, sigma)
    z = _checked(wanted, slope, start, z, target, sigma, tolerance, pull)
    return ca.Function("inverse", [target, sigma], [z])


def _bisected(wanted, slope, start, bounds, count, tolerance):
    """By halving an interval so many times, and three steps of Newton's method from there."""
    target, sigma = ca.SX.sym("target"), ca.SX.sym("sigma", wanted.size1_in(1))
    low, high = (x if np.isfinite(x) else np.sign(x) * OFFSETS[-1] for x in bounds)
    low, high = ca.SX(float(low)), ca.SX(float(high))
    for _ in range(count):
        z = (low + high) / 2
        below = wanted(z, sigma) < target
        low, high = ca.if_else(below, z, low), ca.if_else(below, high, z)
    newton = _step(wanted, slope, start, np.inf, bounds)
    z = (low + high) / 2
    for _ in range(3):
        new = newton(z, target, sigma)
        z = ca.if_else(ca.fabs(new - z) < _FAR * (1 + ca.fabs(z)), new, z)  # where the law is flat it may leap
    return ca.Function("inverse", [target, sigma], [_checked(wanted, slope, start, z, target, sigma, tolerance)])


def _checked(wanted, slope, start, z, target, sigma, tolerance, pull=None):
    """z where it gives the target, the laws rise there and the springs of a pair pull, else not a number."""
    value, at_start = wanted(z, sigma), wanted(start, sigma)
    size = ca.fabs(target) + ca.fabs(at_start) + 1e-3 * ca.fabs(slope(start, sigma)[0, 0])
    A = slope(z, sigma)
    if pull is not None:
        size = size + ca.sum1(ca.fabs(pull[1](z, sigma)))  # they act against each other
    conditions = [*ca.vertsplit(ca.fabs(value - target) <= tolerance * size), *ca.horzsplit(A[0, :] > 0)]
    if A.shape == (2, 2):  # of several solutions the one on the side of the start
        conditions.append(ca.det(A) * float(np.sign(np.linalg.det(slope(start, 1.0).full()))) > 0)
        conditions += ca.vertsplit(pull[0](z, sigma) >= 0)
    good = reduce(ca.logic_and, conditions)
    return ca.vertcat(*(ca.if_else(good, x, np.nan) for x in ca.vertsplit(z)))


def solve(A, b):
    """Solution of A x = b of one or two equations."""
    if A.shape == (1, 1):
        return b / A
    return ca.vertcat(A[1, 1] * b[0] - A[0, 1] * b[1], A[0, 0] * b[1] - A[1, 0] * b[0]) / (
        A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    )
