"""Trajectory.scaled_in_time: the same way at another speed, q(t / k); its derivative of order d is divided by k^d.

Limits of derivatives give k at once, from the extremes of the polynomials. Torques are dynamics / k^2 + gravity (and
what friction adds), so that what gravity takes of a limit stays: k is found by bisection, on a coarse grid first, then
by what Trajectory.check sees. Torques of every slower motion keep their limits where those of one and gravity alone do;
with friction, and limits of the torque rate, of which inertia and gravity may take opposite parts, this need not be so:
the fastest of the times looked at is taken.
Source: uniform scaling of time, Hollerbach 1984, without its assumption that torque limits are symmetric about gravity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import LimitError, ModelError, ShapeError
from ..types import Array
from .extremes import of_polynomials
from .followers import check_motion, with_followers
from .limits import Limits
from .quantities import BOUNDED, BY_NAME, DYNAMIC, RATES
from .report import quantities, report

_WITHIN = 1 + 1e-8  # share of a limit that counts as kept
_OUTSIDE = 1e-3  # of a range, in rad or m, as of the largest position: what plans may leave
_CLOSE = 1e-9  # relative, of k
_SLOWEST = 1e6  # times slower than the limits of derivatives ask for
_SAMPLES = 400
_STEPS = 60  # of k from one that is fast to one that keeps the limits


def check_rest(motion: Any) -> None:
    """LimitError unless a motion starts and ends at rest."""
    v = motion.v
    tiny = 1e-9 * np.abs(v).max(initial=0.0)
    for where, row in (("start", v[0]), ("end", v[-1])):
        i = int(np.argmax(np.abs(row)))
        if abs(row[i]) > tiny and abs(row[i]) > 1e-12:
            raise LimitError(
                f"scaled_in_time: joint {motion.joints[i]!r} has the velocity {row[i]:.6g} at the {where}, which "
                "another duration would change; only motions from rest to rest can be scaled"
            )


def shortest_scale(motion: Any, limits: Limits | None) -> float:
    """The least k with which the motion keeps the limits."""
    if limits is None:
        raise ShapeError("scaled_in_time: the trajectory has no limits; give a duration, or limits")
    if limits.joints != motion.joints:
        raise ShapeError(f"scaled_in_time: limits are of joints {', '.join(limits.joints)}, not of those of the motion")
    _refuse_positions(motion, limits)
    dynamic = [k for k in DYNAMIC if limits.bounded(k).any()]
    if dynamic and motion.robot is None:
        text = f"scaled_in_time: limits of {', '.join(dynamic)} need the robot"
        raise ModelError("trajectory", [text + "; load the file with robot=..., or lift them by Limits.without"])
    least = max((_of_rate(motion, limits, k) for k in RATES), default=0.0)
    least = max(least, _of_followers(motion, limits))
    if not dynamic and limits.v_of_q is None:
        if least == 0:
            raise LimitError("scaled_in_time: no limit bounds the time; give one, or a duration")
        return least
    return _searched(motion, limits, least)


def _refuse_positions(motion: Any, limits: Limits) -> None:
    """LimitError for positions outside their limits, where every speed leaves them."""
    low, at_low, high, at_high = of_polynomials(motion.t, motion.pieces, 0)
    lower, upper = limits.q
    slack = _OUTSIDE * np.maximum(1.0, np.abs(motion.q).max(axis=0))
    for value, over, at in ((low, lower - low, at_low), (high, high - upper, at_high)):
        for i in np.flatnonzero(over > slack):
            raise LimitError(
                f"scaled_in_time: joint {motion.joints[i]!r} is at {value[i]:.6g} at {at[i]:.4g} s, outside its limits "
                f"{lower[i]:.6g} to {upper[i]:.6g}, however slow the motion; lift them by Limits.without"
            )


def _of_rate(motion: Any, limits: Limits, quantity: str) -> float:
    """The least k for the limits of one derivative."""
    order, (lower, upper) = BY_NAME[quantity].order, limits.bounds(quantity)
    if limits.bounded(quantity).any() and quantity in motion.impulses():
        time, hit = motion.impulses()[quantity]
        for i in np.flatnonzero(hit & limits.bounded(quantity)):
            raise LimitError(
                f"scaled_in_time: {quantity} of joint {motion.joints[i]!r} is infinite at {time[i]:.4g} s, however "
                "slow the motion; lift its limit by Limits.without"
            )
    low, at_low, high, at_high = of_polynomials(motion.t, motion.pieces, order)
    worst = 0.0
    for value, limit, at in ((-low, -lower, at_low), (high, upper, at_high)):
        for i in np.flatnonzero(value > 1e-9 * max(1.0, np.abs(motion.q).max())):
            if limit[i] == 0:
                raise LimitError(
                    f"scaled_in_time: joint {motion.joints[i]!r} has {quantity} on the side where its limit is 0, at "
                    f"{at[i]:.4g} s, however slow the motion"
                )
            worst = max(worst, (value[i] / limit[i]) ** (1 / order))
    return worst


def _of_followers(motion: Any, limits: Limits) -> float:
    """The least k for the limits of joints that follow, looked at as Trajectory.check does; LimitError for what no
    speed keeps."""
    check_motion("scaled_in_time", motion, 1e-3)
    least, plain = 0.0, report(motion, Limits(motion.joints), 1e-3, unlimited=False)
    for row in with_followers(plain, motion, 1e-3, limits).rows[len(plain.rows) :]:
        order = BY_NAME[row.quantity].order
        kept = order and np.isfinite(row.share) and row.limit != 0
        if not kept and row.share > 1 + _OUTSIDE:
            raise LimitError(
                f"scaled_in_time: {row.quantity} of joint {row.joint!r}, which follows, is {row.value:.6g} at "
                f"{row.time:.4g} s, its limit {row.limit:.6g}, however slow the motion; lift it by Limits.without"
            )
        least = max(least, (row.value / row.limit) ** (1 / order) if kept else 0.0)
    return least


def _searched(motion: Any, limits: Limits, least: float) -> float:
    """The least k of at least `least` for limits of torques and of velocities at positions."""
    kept = limits.without(*(k for k in ("q", *BOUNDED) if k not in DYNAMIC and not (k == "v" and limits.v_of_q)))
    grid = motion.both_sides(motion.duration / _SAMPLES)

    def coarse(k: float) -> bool:
        return _coarse_share(grid, kept, k) <= 1

    def fine(k: float) -> bool:
        return report(motion.stretched(k), kept, 1e-3 * max(k, 1e-3)).worst <= _WITHIN

    start = least or 1e-3 * min(1.0, _fastest(motion))
    if least and coarse(start) and fine(start):
        return start
    slow = start
    while not (coarse(slow) and fine(slow)):
        if slow > _SLOWEST * max(start, 1.0):
            _refuse(motion, kept, slow)
        slow *= 2
    tried = np.geomspace(start, slow, _STEPS)
    first = next(i for i, k in enumerate(tried) if i == _STEPS - 1 or (coarse(k) and fine(k)))
    if first == 0:
        raise LimitError("scaled_in_time: no limit bounds the time; give one, or a duration")
    return _bisected(fine, tried[first - 1], tried[first])


def _fastest(motion: Any) -> float:
    """A k, by the largest derivatives, at which a motion is fast."""
    sizes = [np.abs(x).max() ** (1 / d) for d, x in enumerate(motion.derivatives[1:4], 1)]
    return float(max(max(sizes), 1e-6))


def _bisected(fits: Any, low: float, high: float) -> float:
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return float(high)


def _coarse_share(grid: Any, limits: Limits, k: float) -> float:
    """Largest share on a grid of samples, k times slower."""
    worst = 0.0
    for *_, share in quantities(grid.slowed(k), limits):
        worst = max(worst, _finite(share))
    return worst


def _finite(share: Array) -> float:
    return float(np.nan_to_num(share, nan=0.0, posinf=np.inf).max(initial=0.0))


def _refuse(motion: Any, limits: Limits, k: float) -> None:
    """LimitError for a limit that the slowest motion exceeds."""
    row = max(report(motion.stretched(k), limits, 1e-3 * k).rows, key=lambda r: r.share)
    what = f"{row.quantity} = {row.value:.6g} of joint {row.joint!r} at {row.time / k:.4g} s of the motion"
    if row.quantity == "tau":
        raise LimitError(
            f"scaled_in_time: gravity and friction alone take {what}, over its limit {row.limit:.6g}, however slow"
        )
    raise LimitError(f"scaled_in_time: {what} is over its limit {row.limit:.6g}, however slow it is")
