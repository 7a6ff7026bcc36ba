"""The task of a plan, and what can be refused before solving."""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..errors import LimitError
from .arguments import LONGEST
from .limits import velocity_bounds
from .quantities import BOUNDED, DYNAMIC, RATES

_TINY = 1e-9  # share of a limit that rounding may take
_NEAREST, _FARTHEST = 1e-13, 1e9  # [rad or m] shortest way relative to the position, largest position


@dataclass(frozen=True, eq=False)
class Task:
    """What is asked. start and goal (k, n): q, v, dv, ... that are fixed there; the orders behind are free."""

    robot: object
    limits: object
    dynamics: ca.Function  # q, v, dv, d2v -> tau, dtau
    start: np.ndarray
    goal: np.ndarray
    continuity: int
    duration: float | None
    friction: bool = False  # whether that of the robot counts; not asked for where it has none

    @property
    def names(self):
        """Names of the joints."""
        return self.limits.joints

    @property
    def distance(self):
        """(n,) how far each joint is from its goal."""
        return self.goal[0] - self.start[0]

    @property
    def rests(self):
        """Whether the motion starts and ends at rest."""
        return not (np.any(self.start[1:]) or np.any(self.goal[1:]))

    @property
    def moving(self):
        """(n,) joints that may move; the others are held by a limit of zero."""
        limits = self.limits
        held = limits.q[0] == limits.q[1]
        for quantity in RATES:
            held = held | (getattr(limits, quantity) == 0)
        return ~held


def shortest_time(distance, v, dv, d2v):
    """(n,) time each joint needs at least from rest to rest under limits of velocity, acceleration and jerk.

    The seven phases of a motion of bounded jerk; infinite limits are allowed.
    """
    return np.array([_seven_phases(*x) for x in zip(np.abs(distance), v, dv, d2v, strict=True)])


def _seven_phases(D, v, a, j):
    if D == 0:
        return 0.0
    if min(v, a, j) == 0:
        return np.inf
    j = min(j, 1e12 * max(1.0, D))  # with an infinite jerk or acceleration the phases shrink to nothing
    a = min(a, np.sqrt(j * v) if np.isfinite(v) else np.inf, (j * j * D / 2) ** (1 / 3))
    ramp = a / j  # phase of constant jerk
    peak = a * (-ramp + np.sqrt(ramp * ramp + 4 * D / a)) / 2  # velocity reached without cruising
    if peak <= v:
        return 2 * (ramp + peak / a)
    return D / v + v / a + ramp


def refuse(task):
    """Raise LimitError, naming joint, value and limit, for a task no motion can do."""
    refuse_senseless(task.limits, [task.start[0], task.goal[0]], task.names)
    for where, state in (("start", task.start), ("goal", task.goal)):
        _refuse_state(task, where, state)
        _refuse_torque(task, where, state)
    _refuse_held(task)
    _refuse_duration(task)


def refuse_senseless(limits, way, names):
    """Raise LimitError where numbers leave nothing to plan with: a way of no length, or one that takes for ever.

    way: positions (n,), one after the other.
    """
    way = np.array(way)
    if np.abs(way).max() > _FARTHEST:
        k, i = np.unravel_index(np.argmax(np.abs(way)), way.shape)
        text = f"joint {names[i]!r} is to be at {way[k, i]:g}; positions up to {_FARTHEST:g} can be planned"
        raise LimitError(text)
    distance = np.abs(np.diff(way, axis=0)).max(axis=0)
    if 0 < distance.max() < _NEAREST * max(1.0, np.abs(way).max()):
        raise LimitError(
            f"start and goal differ by {distance.max():g} rad or m, which is no more than rounding; "
            "give the same position, or one that is farther away"
        )
    for order, quantity in enumerate(RATES, 1):
        limit = getattr(limits, quantity)
        for i in np.flatnonzero((distance > 0) & (limit > 0) & np.isfinite(limit)):
            with np.errstate(over="ignore"):
                needed = (distance[i] / limit[i]) ** (1 / order)
            if needed > LONGEST:
                raise LimitError(
                    f"joint {names[i]!r} moves by {distance[i]:.6g}, which takes {needed:.3g} s or more with its limit "
                    f"{quantity} of {limit[i]:.6g}; motions take up to {LONGEST:g} s"
                )


def _refuse_state(task, where, state):
    limits = task.limits
    for i, name in enumerate(task.names):
        q, lower, upper = state[0][i], limits.q[0][i], limits.q[1][i]
        slack = _TINY * max(1.0, abs(q))
        if not lower - slack <= q <= upper + slack:
            raise LimitError(
                f"q_{where}: joint {name!r} is {q:.6g}, outside its limits {lower:.6g} to {upper:.6g}; "
                "choose a position inside, change the limit, or leave it out by ignore=('q',)"
            )
        for quantity, x in zip(RATES, state[1:], strict=False):
            limit = getattr(limits, quantity)[i]
            if abs(x[i]) > limit * (1 + _TINY):
                raise LimitError(f"{quantity}_{where}: joint {name!r} has {x[i]:.6g}, over its limit {limit:.6g}")
    if limits.v_of_q is not None:
        lower, upper = (np.array(x).ravel() for x in velocity_bounds(limits)(state[0]))
        for i, name in enumerate(task.names):
            v = state[1][i]
            slack = _TINY * max(1.0, abs(v))
            if not lower[i] - slack <= v <= upper[i] + slack:
                raise LimitError(
                    f"v_{where}: joint {name!r} has {v:.6g}, outside {lower[i]:.6g} to {upper[i]:.6g}, "
                    f"its limits at position {state[0][i]:.6g}"
                )


def _refuse_torque(task, where, state):
    tau, dtau = (np.array(x).ravel() for x in task.dynamics(*_padded(state)))
    known = {"tau": tau, "dtau": dtau} if len(state) > 3 else {"tau": tau}
    for quantity in DYNAMIC:
        for i, limit in enumerate(getattr(task.limits, quantity)):
            if limit == 0:
                raise LimitError(
                    f"limit {quantity} of joint {task.names[i]!r} is 0; give a positive one "
                    f"or leave it out by ignore=({quantity!r},)"
                )
    for quantity, value in known.items():
        limit = getattr(task.limits, quantity)
        for i, name in enumerate(task.names):
            if abs(value[i]) > limit[i] * (1 + _TINY):
                what = "holding still" if not np.any(state[1:]) else "the motion asked for"
                raise LimitError(
                    f"q_{where}: joint {name!r} needs {quantity} = {value[i]:.6g} for {what}, "
                    f"over its limit {limit[i]:.6g}"
                )


def _padded(state):
    """q, v, dv, d2v of a state, zero where it has fewer."""
    return [state[d] if d < len(state) else np.zeros_like(state[0]) for d in range(4)]


def _refuse_held(task):
    for i, name in enumerate(task.names):
        needed = [task.distance[i], *(x[i] for x in task.start[1:]), *(x[i] for x in task.goal[1:])]
        if task.moving[i] or not np.any(needed):
            continue
        zero = [k for k in RATES if getattr(task.limits, k)[i] == 0]
        raise LimitError(
            f"joint {name!r} has to move by {task.distance[i]:.6g}, "
            f"but its limit {zero[0] if zero else 'q'} allows no motion"
        )


def _refuse_duration(task):
    limits, D, T = task.limits, np.abs(task.distance), task.duration
    if T is None:
        free = [n for i, n in enumerate(task.names) if D[i] > 0 and not _bounded(limits, i)]
        if free:
            raise LimitError(
                f"no limit bounds the speed of joint {free[0]!r}, so no shortest time exists; give a limit "
                "(Limits.of(robot).updated({...})), or a duration with objective='effort'"
            )
        return
    bounds = {"v": (limits.v, lambda x, m: x / m)}
    if task.rests:
        bounds["dv"] = (limits.dv, lambda x, m: np.sqrt(4 * x / m))
        bounds["d2v"] = (limits.d2v, lambda x, m: np.cbrt(32 * x / m))
    worst = (T, None)
    for quantity, (limit, time) in bounds.items():
        for i, name in enumerate(task.names):
            need = time(D[i], limit[i]) if D[i] > 0 else 0.0
            if need > worst[0] * (1 + _TINY):
                worst = (need, f"its limit {quantity} of {limit[i]:.6g} alone", name, task.distance[i])
    if worst[1] is None and task.rests:
        need = shortest_time(D, limits.v, limits.dv, limits.d2v)
        i = int(np.argmax(need))
        if need[i] > T * (1 + _TINY):
            worst = (need[i], "its limits v, dv and d2v together", task.names[i], task.distance[i])
    if worst[1] is not None:
        need, reason, name, distance = worst
        raise LimitError(
            f"duration {T:.6g} s is too short: joint {name!r} moves by {distance:.6g}, "
            f"and {reason} asks for {need:.6g} s"
        )


def _bounded(limits, i):
    return any(np.isfinite(getattr(limits, k)[i]) for k in BOUNDED)
