"""Deflections of a pair of springs for a wanted torque and stiffness; see inverse.py."""

import casadi as ca
import numpy as np

from .inverse import HALVINGS, MARGIN, MOST, OFFSETS, Inverse, progress, repeated, solve, values


def of_two(wanted, slope, torques, start, sizes):
    """Inverse of a pair of laws: (torque, stiffness) -> two deflections; sizes: (torque, stiffness) to go up to."""
    pull = _pull(torques, start)
    sides = np.concatenate([-np.geomspace(10.0, 1e-3, 17), [0.0], np.geomspace(1e-3, 10.0, 17)])
    z = np.array(np.meshgrid(start[0] + sides, start[1] + sides)).reshape(2, -1)
    target, k = values(wanted, z, 0.0), values(slope, z, 0.0)
    with np.errstate(all="ignore"):
        turn = k[0] * k[3] - k[1] * k[2]
    at_start = np.linalg.det(slope(start, 1.0).full())
    with np.errstate(invalid="ignore"):
        good = (
            np.isfinite(target).all(axis=0) & np.isfinite(turn) & (turn * np.sign(at_start) > 1e-9 * np.abs(at_start))
        )
        good &= (k[0] > 0) & (k[1] > 0) & (np.abs(target[0]) <= sizes[0]) & (target[1] <= sizes[1])
        good &= (values(pull, z, 0.0) >= 0).all(axis=0)
    z, target = z[:, good], target[:, good]
    best = None
    for bent in (True, False):
        step = _step_of_two(wanted, slope, bent)
        if not good.any():
            best = 0.0, MOST, step
            break
        shares = progress(step, wanted, start, z, target, 0.0)
        share = min(max(shares), 0.999)  # the last thousandth lies at the edge of what is possible
        if best is None or share > best[0]:
            best = share, next(k for k, x in enumerate(shares) if x >= share) + MARGIN, step
    _, count, step = best
    f = repeated(wanted, slope, start, count, step, pull=(pull, torques))
    return Inverse(f, count, (-np.inf, np.inf), (-np.inf, np.inf))


def _pull(torques, start):
    """casadi.Function (z, sigma) -> (2,) how much each spring of a pair pulls, and a little that is granted.

    The first pulls towards positive torques, the second towards negative ones, or the other way if so at the start.
    """
    at_start = torques(start, 1.0).full().ravel()
    signs = (-1.0, 1.0) if at_start[0] < 0 < at_start[1] else (1.0, -1.0)
    z, sigma = ca.SX.sym("z", 2), ca.SX.sym("sigma", torques.size1_in(1))
    tau = torques(z, sigma)
    granted = 1e-8 * (np.abs(at_start).max() + ca.fabs(ca.sum1(tau)))
    return ca.Function("pull", [z, sigma], [ca.DM(signs) * tau + granted])


def stiffnesses(torques, slope, start, torque):
    """(least, largest) stiffness of a pair at a torque, as far as its laws rise and its springs pull; None where there
    is no such torque."""
    z = np.concatenate([start[0] - OFFSETS[:0:-2], start[0] + OFFSETS[::2]])
    pull = _pull(torques, start)
    sums = _sums(torques, slope, pull, start, torque, z)
    if np.isnan(sums).all():
        z = np.sort(np.concatenate([z, np.linspace(start[0] - 10, start[0] + 10, 4001)]))  # a short stretch
        sums = _sums(torques, slope, pull, start, torque, z)
    if np.isnan(sums).all():
        return None
    ends = []
    for find in (np.nanargmin, np.nanargmax):
        points, here = z, sums
        for _ in range(12):  # ever closer to where it is least, often where a spring is slack or a law ends
            k = find(here)
            best = float(here[k])
            points = np.append(np.linspace(points[max(k - 1, 0)], points[min(k + 1, len(points) - 1)], 65), points[k])
            points.sort()
            here = _sums(torques, slope, pull, start, torque, points)
        k = find(here)
        ends.append(float(here[k]) if np.isfinite(here[k]) else best)
    return tuple(ends)


def _sums(torques, slope, pull, start, torque, z):
    """Stiffness of a pair at deflections z of its first spring, the second bearing the rest of the torque."""
    low, high = start[1] - np.full(z.size, OFFSETS[-1]), start[1] + np.full(z.size, OFFSETS[-1])
    for _ in range(HALVINGS):
        other = (low + high) / 2
        with np.errstate(invalid="ignore"):
            total = values(torques, np.array([z, other]), 1.0).sum(axis=0)
            below = np.where(np.isfinite(total), total < torque, other < start[1])
        low, high = np.where(below, other, low), np.where(below, high, other)
    both = np.array([z, (low + high) / 2])
    with np.errstate(invalid="ignore"):
        total, k = values(torques, both, 1.0).sum(axis=0), values(slope, both, 1.0)
        good = np.abs(total - torque) <= 1e-9 * (1 + abs(torque))
        good &= (k[0] > 0) & (k[1] > 0) & np.isfinite(k).all(axis=0) & (values(pull, both, 1.0) >= 0).all(axis=0)
        return np.where(good, k[0] + k[1], np.nan)


def _step_of_two(wanted, slope, bent):
    z, target, sigma = ca.SX.sym("z", 2), ca.SX.sym("target", 2), ca.SX.sym("sigma", wanted.size1_in(1))
    A = slope(z, sigma)
    straight = solve(A, target - wanted(z, sigma))
    if not bent:
        return ca.Function("step", [z, target, sigma], [z + straight])
    x = ca.fmax(A[1, :].T * straight / A[0, :].T, -0.9)  # share by which each spring's stiffness would change
    x = ca.vertcat(*(ca.if_else(ca.fabs(y) < 1e-6, 1e-6, y) for y in ca.vertsplit(x)))
    return ca.Function("step", [z, target, sigma], [z + straight * ca.log1p(x) / x])
