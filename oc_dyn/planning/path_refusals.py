"""What plan_along_path refuses before it solves anything: numbers that cannot be, paths that no motion can follow."""

import numpy as np

from ..errors import LimitError, OrderError, ShapeError
from ..numbers import as_floats, shortened
from .arguments import MOST_NODES, check_smooth, vector
from .feasibility import exceeded_side, refuse_senseless
from .followers import check_closing
from .outside import outside
from .path_task import PathTask
from .quantities import BOUNDED, BY_NAME, DYNAMIC, RATES
from .report import share_of_rate

_TINY = 1e-9
_SLOPE = 1e-9  # share of the largest q' from which on a joint moves


def check_numbers(continuity, nodes, limits):
    """OrderError for a continuity or a number of nodes that cannot be, or does not go with the limits."""
    if isinstance(continuity, bool) or not isinstance(continuity, (int, np.integer)) or not 2 <= continuity <= 5:
        raise OrderError(f"plan_along_path: continuity is {continuity!r}, expected an integer from 2 to 5")
    if isinstance(nodes, bool) or not isinstance(nodes, (int, np.integer)) or nodes < 2 * continuity + 2:
        least = 2 * continuity + 2
        raise OrderError(f"plan_along_path: nodes is {shortened(nodes)}, expected an integer of at least {least}")
    if nodes > MOST_NODES:
        raise OrderError(f"plan_along_path: nodes is {shortened(nodes)}, it goes up to {MOST_NODES}")
    check_smooth("plan_along_path", continuity, limits)


def refuse(task):
    """Raise LimitError for a path that no motion can follow."""
    limits, on = task.wide, task.on
    s = np.unique(np.concatenate([np.linspace(0, 1, 2001), on.knots]))
    check_closing("path", task.robot, s, on.at(s, 1)[0], "s = {:.4g}")
    q, slope, bend = task.at_all(s, 3)
    refuse_senseless(limits, [q.min(axis=0), q.max(axis=0)], limits.joints)
    _refuse_outside(task.robot, limits, on, s, q)
    _refuse_zero(limits, slope)
    still = np.abs(slope).max(axis=1) < 1e-6 * np.abs(slope).max()
    still &= np.abs(bend).max(axis=1) < 1e-3 * np.abs(bend).max()  # else the path turns back there
    still &= ~np.isin(s, getattr(on, "stops", ()))
    if still.any():
        where = s[int(np.argmax(still))]
        raise LimitError(f"path: q does not change with s at s = {where:.4g}; give it another parameter there")
    moving = np.abs(slope).max(axis=0) > 0
    if not any(limits.bounded(k)[moving].any() for k in BOUNDED):
        raise LimitError(
            "no limit bounds the speed along the path, so no shortest time exists; give a limit of v or dv"
        )
    _refuse_held(task, s, q[:, : len(task.limits.joints)])
    if task.limits.v_of_q is not None:
        speed = task.speed(s)
        if np.any(speed <= 0):
            k = int(np.argmin(speed))
            raise LimitError(f"path: the limits of velocity at the position at s = {s[k]:.4g} allow no motion along it")


def replace_speeds(task, start, end):
    """The task with ds/dt at its ends, from numbers or velocities of the joints; refuses what the limits do not let."""
    speeds = []
    for where, given, s in (("speed_start", start, 0.0), ("speed_end", end, 1.0)):
        speed = _speed_along(task, where, given, s)
        most = task.speed(np.array([s]))[0]
        if speed > most * (1 + _TINY):
            v = task.on.at(np.array([s]), 2, before=s == 1)[1, 0] * speed
            task.limits.without("v_of_q").assert_within(f"plan_along_path: {where}", v=v)
            raise LimitError(f"plan_along_path: {where} is {speed:.6g} 1/s, over what the velocities allow, {most:.6g}")
        speeds.append(min(speed, most))
    return PathTask(task.robot, task.limits, task.on, task.continuity, task.friction, tuple(speeds))


def refuse_one_way(task):
    """Raise LimitError where limits that are 0 on one side leave no motion along the path: of velocities, where the
    path goes to that side; of higher derivatives, which take both signs from rest to rest."""
    limits, on = task.wide, task.on
    s = np.unique(np.concatenate([np.linspace(0, 1, 2001), on.knots]))
    slope = task.at_all(s, 2)[1]
    size, reason = np.abs(slope).max(), "do not allow its way along the path"
    against = {"v": [(slope < -_SLOPE * size).any(axis=0), (slope > _SLOPE * size).any(axis=0)]}
    if not any(task.speeds):
        moves = np.abs(slope).max(axis=0) > _SLOPE * size
        orders = {k: BY_NAME[k].order for k in RATES}
        against |= {k: [moves, moves] for k in RATES if 1 < orders[k] <= task.continuity + 1}
    for quantity, sides in against.items():
        lower, upper = limits.bounds(quantity)
        for i in np.flatnonzero((sides[0] & (lower == 0)) | (sides[1] & (upper == 0))):
            raise LimitError(
                f"path: limits {quantity} of joint {limits.joints[i]!r} are {lower[i] + 0.0:.6g} to {upper[i]:.6g}, "
                f"which {reason if quantity == 'v' else 'do not allow a motion from rest to rest'}"
            )


def _speed_along(task, where, given, s):
    """ds/dt at place s from a number, or velocities (n,) along the path."""
    value, where = as_floats(f"plan_along_path: {where}", given), f"plan_along_path: {where}"
    if not np.isfinite(value).all():
        raise ShapeError(f"{where} is {shortened(given)}, expected finite numbers")
    if value.ndim == 0:
        speed = float(value)
    else:
        v, slope = vector(where, value, task.limits.joints), task.on.at(np.array([s]), 2, before=s == 1)[1, 0]
        speed = float(v @ slope / (slope @ slope))
        off = v - speed * slope
        if np.abs(off).max() > 1e-6 * max(np.abs(v).max(), 1e-9):
            i = int(np.argmax(np.abs(off)))
            raise LimitError(
                f"{where}: joint {task.limits.joints[i]!r} has {v[i]:.6g}, which is not along the path: there it moves "
                f"with {speed * slope[i]:.6g} where the others do as asked"
            )
    if speed < 0:
        raise LimitError(f"{where} is {speed:.6g} 1/s, against the path; give 0 or more")
    return speed


def _refuse_outside(robot, limits, on, s, q):
    lower, upper = limits.q
    slack = 1e-9 * np.maximum(1.0, np.abs(q))
    beyond = (q < lower - slack) | (q > upper + slack)
    if beyond.any():
        over = np.maximum(lower - q, q - upper)
        k, i = np.unravel_index(np.argmax(np.where(beyond, over, -np.inf)), q.shape)
        raise LimitError(
            f"path: joint {limits.joints[i]!r} is {q[k, i]:.6g} at s = {s[k]:.4g}{_way_point(on, s[k])}, "
            f"{outside(robot, limits, i, q[k, i])}; move it, change the limit, or leave it out by ignore=('q',)"
        )


def _refuse_zero(limits, slope):
    for quantity in BOUNDED:
        for i in np.flatnonzero(limits.larger(quantity) == 0):
            if quantity in DYNAMIC or np.any(slope[:, i]):
                raise LimitError(
                    f"path: joint {limits.joints[i]!r} has the limit 0 of {quantity}, which allows no motion; give a "
                    f"positive one, or leave it out by ignore=({quantity!r},)"
                )


def _refuse_held(task, s, q):
    """Torques for standing still."""
    limits = task.limits
    if limits.bounded("tau").any():
        zero = np.zeros_like(q)
        tau = np.array(task.dynamics(q.T, zero.T, zero.T, zero.T)[0]).T
        lower, upper = limits.bounds("tau")
        share = share_of_rate(tau, *(np.broadcast_to(x, tau.shape) for x in (lower, upper)))
        k, i = np.unravel_index(np.argmax(share), tau.shape)
        if share[k, i] > 1 + _TINY:
            limit = exceeded_side(lower[i], upper[i], tau[k, i])
            raise LimitError(
                f"path: joint {limits.joints[i]!r} needs tau = {tau[k, i]:.6g} for holding still at s = {s[k]:.4g}, "
                f"over its limit {limit:.6g}"
            )


def _way_point(on, s):
    """Words on the way point at s, or on those before and behind it."""
    at = getattr(on, "points_at", None)
    if at is None:
        return ""
    k = int(np.argmin(np.abs(at - s)))
    if abs(at[k] - s) < 1e-3:
        return f", way point {k}"
    k = int(np.searchsorted(at, s))
    return f", between way points {k - 1} and {k}"
