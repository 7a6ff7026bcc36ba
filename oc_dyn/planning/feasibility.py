"""The task of a plan, and what can be refused before solving."""

from dataclasses import dataclass
from typing import cast

import casadi as ca
import numpy as np

from ..errors import LimitError
from .arguments import LONGEST
from .followers import Followers, check_closed, followers_of
from .limits import Limits, velocity_bounds
from .obstacles import Obstacles
from .outside import outside
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
    around: Obstacles | None = None

    @property
    def followers(self) -> Followers | None:
        """Joints of a robot with loops that follow, where they have limits."""
        return followers_of(self.robot, cast(Limits, self.limits))

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
            held = held | (limits.larger(quantity) == 0)
        return ~held


def shortest_time(distance, v, dv, d2v):
    """(n,) time each joint needs at least from rest to rest under limits of velocity, acceleration and jerk.

    distance (n,). v, dv, d2v: (n,) limits, or pairs (lower, upper) of them. The seven phases of a motion of bounded
    jerk; infinite limits are allowed.
    """
    distance, times = np.asarray(distance, float), []
    pairs = [x if isinstance(x, tuple) else (-np.asarray(x, float), np.asarray(x, float)) for x in (v, dv, d2v)]
    for i, D in enumerate(distance):
        v, a, j = ((-low[i], high[i]) if D >= 0 else (high[i], -low[i]) for low, high in pairs)
        equal = all(against == along for against, along in (v, a, j))
        j = [min(x, 1e12 * max(1.0, abs(D))) for x in j]  # with infinite ones the phases shrink to nothing
        times.append(_seven_phases(abs(D), v[1], a[1], j[1]) if equal else _unequal_phases(abs(D), v, a, j))
    return np.array(times)


def rest_to_rest(limits, distance):
    """(n,) shortest_time under Limits."""
    return shortest_time(distance, *(limits.bounds(k) for k in ("v", "dv", "d2v")))


def time_alone(limits, distance, quantity):
    """(n,) time each joint needs from rest to rest under its limits of "v", "dv" or "d2v" alone."""
    out, never = [], (np.inf, np.inf)
    for D, low, high in zip(distance, *limits.bounds(quantity), strict=True):
        ends = (-low, high) if D >= 0 else (high, -low)
        out.append(_unequal_phases(abs(D), *(ends if k == quantity else never for k in ("v", "dv", "d2v"))))
    return np.array(out)


def torque_can_wait(task, settings, initial):
    """Whether to try without limits of torque: not where nothing else bounds the time, where a warm start has them, or
    where they are sure to bind."""
    limits = task.limits
    bounded = np.any([limits.bounded(k) for k in RATES], axis=0)
    known = initial is not None and initial.solver_state is not None and not initial.solver_state.kinematic
    free = settings["mesh"] == "fixed" or bool(np.all(bounded[task.moving]))
    return free and not known and not _rate_binds(task, settings)


def _rate_binds(task, settings):
    """Whether the joint that needs longest, leaving at rest as fast as it may, exceeds its limit of the torque rate.

    From rest the rate of torque is M(q) times the jerk, which gets as high as a change of acceleration in a piece lets
    it. Only a guess of whether the search without torques is worth its time: both ways end in the same motion.
    """
    limits = task.limits
    if not task.rests or settings["mesh"] == "fixed" or task.continuity > 2:
        return False
    joint = int(np.argmax(rest_to_rest(limits, task.distance)))
    dv, d2v = (limits.larger(k)[joint] for k in ("dv", "d2v"))
    jerk = min(d2v, dv * settings["nodes"] / max(settings["shortest"], 1e-6))
    d2v = np.zeros(len(task.names))
    d2v[joint] = jerk if np.isfinite(jerk) else 0.0
    rest = np.zeros(len(task.names))
    rates = [np.abs(np.array(task.dynamics(state[0], rest, rest, d2v)[1])).ravel() for state in (task.start, task.goal)]
    return bool(max(rate[joint] for rate in rates) > limits.smaller("dtau")[joint])


def _seven_phases(D, v, a, j):
    if D == 0:
        return 0.0
    if min(v, a, j) == 0:
        return np.inf
    a = min(a, np.sqrt(j * v) if np.isfinite(v) else np.inf, (j * j * D / 2) ** (1 / 3))
    ramp = a / j  # phase of constant jerk
    peak = a * (-ramp + np.sqrt(ramp * ramp + 4 * D / a)) / 2  # velocity reached without cruising
    if peak <= v:
        return 2 * (ramp + peak / a)
    return D / v + v / a + ramp


def _unequal_phases(D, v, a, j):
    """Shortest time for a way D where limits differ, or are infinite: v, a, j: their sizes (against the way, along)."""
    if D == 0:
        return 0.0
    if v[1] == 0 or min(*a, *j) == 0:
        return np.inf

    def change(V, a, up, down):
        """(time, way) from rest to the velocity V, the acceleration rising to a or less by `up`, falling by `down`."""
        p, m = 1 / up, 1 / down
        A = min(a, np.sqrt(2 * V / (p + m))) if p + m else a
        if not np.isfinite(A):
            return 0.0, 0.0
        first, last = A * p, A * m
        hold = max(V / A - (first + last) / 2, 0.0)
        x, v = A * first**2 / 6, A * first / 2
        x, v = x + v * hold + A * hold**2 / 2, v + A * hold
        return first + hold + last, x + v * last + A * last**2 / 3

    def both(V):  # slowing down is speeding up, seen backwards
        return np.add(change(V, a[1], j[1], j[0]), change(V, a[0], j[1], j[0]))

    low, high = 0.0, v[1]
    if not np.isfinite(high):
        high = 1.0
        while both(high)[1] < D and high < 1e150:
            high *= 2
    if both(high)[1] <= D:
        time, way = both(high)
        return time + (D - way) / high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if both(middle)[1] < D else (low, middle)
    return both(high)[0]


def refuse(task):
    """Raise LimitError, naming joint, value and limit, for a task no motion can do."""
    refuse_senseless(task.limits, [task.start[0], task.goal[0]], task.names)
    for where, state in (("start", task.start), ("goal", task.goal)):
        _refuse_state(task, where, state)
        check_closed(f"plan_point_to_point: q_{where}", task.robot, state[0])
        _refuse_torque(task, where, state)
        if task.followers is not None:
            task.followers.refuse(f"q_{where}", state)
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
        limit = limits.larger(quantity)
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
                f"q_{where}: joint {name!r} is {q:.6g}, {outside(task.robot, limits, i, q)}; "
                "choose a position inside, change the limit, or leave it out by ignore=('q',)"
            )
        for quantity, x in zip(RATES, state[1:], strict=False):
            limit = _exceeded(limits.bounds(quantity), x, i)
            if limit is not None:
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
        for i, limit in enumerate(task.limits.larger(quantity)):
            if limit == 0:
                raise LimitError(
                    f"limit {quantity} of joint {task.names[i]!r} is 0; give a positive one "
                    f"or leave it out by ignore=({quantity!r},)"
                )
    for quantity, value in known.items():
        for i, name in enumerate(task.names):
            limit = _exceeded(task.limits.bounds(quantity), value, i)
            if limit is not None:
                what = "holding still" if not np.any(state[1:]) else "the motion asked for"
                raise LimitError(
                    f"q_{where}: joint {name!r} needs {quantity} = {value[i]:.6g} for {what}, "
                    f"over its limit {limit:.6g}"
                )


def _exceeded(bounds, value, i):
    """The limit, of (lower, upper), that entry i of a value is beyond; None if it is within both."""
    lower, upper = bounds[0][i], bounds[1][i]
    if lower * (1 + _TINY) <= value[i] <= upper * (1 + _TINY):
        return None
    return exceeded_side(lower, upper, value[i])


def exceeded_side(lower, upper, value):
    """The limit that a value is beyond, the upper one where both are alike."""
    return lower if value < 0 and lower != -upper else upper


def _padded(state):
    """q, v, dv, d2v of a state, zero where it has fewer."""
    return [state[d] if d < len(state) else np.zeros_like(state[0]) for d in range(4)]


def _refuse_held(task):
    for i, name in enumerate(task.names):
        needed = [task.distance[i], *(x[i] for x in task.start[1:]), *(x[i] for x in task.goal[1:])]
        if task.moving[i] or not np.any(needed):
            continue
        zero = [k for k in RATES if task.limits.larger(k)[i] == 0]
        raise LimitError(
            f"joint {name!r} has to move by {task.distance[i]:.6g}, "
            f"but its limit {zero[0] if zero else 'q'} allows no motion"
        )


def _refuse_duration(task):
    limits, D, T = task.limits, np.abs(task.distance), task.duration
    _refuse_one_way(task)
    if T is None:
        free = [n for i, n in enumerate(task.names) if D[i] > 0 and not _bounded(limits, i, task.distance[i])]
        if task.followers is not None and any(k in RATES for k, _ in task.followers.rows):
            free = []
        if free:
            raise LimitError(
                f"no limit bounds the speed of joint {free[0]!r}, so no shortest time exists; give a limit "
                "(Limits.of(robot).updated({...})), or a duration with objective='effort'"
            )
        return
    worst = (T, None)
    for quantity in ("v", "dv", "d2v") if task.rests else ("v",):
        needs = time_alone(limits, task.distance, quantity)
        for i, name in enumerate(task.names):
            if needs[i] > worst[0] * (1 + _TINY):
                limit = _side_of(limits, quantity, i, task.distance[i])
                worst = (needs[i], f"its limit {quantity} of {limit:.6g} alone", name, task.distance[i])
    if worst[1] is None and task.rests:
        need = rest_to_rest(limits, task.distance)
        i = int(np.argmax(need))
        if need[i] > T * (1 + _TINY):
            worst = (need[i], "its limits v, dv and d2v together", task.names[i], task.distance[i])
    if worst[1] is not None:
        need, reason, name, distance = worst
        raise LimitError(
            f"duration {T:.6g} s is too short: joint {name!r} moves by {distance:.6g}, "
            f"and {reason} asks for {need:.6g} s"
        )


def _refuse_one_way(task):
    """Ways that limits of zero on one side leave no motion for: LimitError that names the limit."""
    if not task.rests:
        return
    limits, D = task.limits, task.distance
    (low, high), never = limits.bounds("v"), {}
    never["v"] = (D != 0) & (np.where(D >= 0, high, low) == 0)
    never |= {k: (limits.smaller(k) == 0) & (D != 0) for k in RATES[1 : 3 if task.continuity == 2 else None]}
    for quantity, joints in never.items():
        for i in np.flatnonzero(joints & task.moving):
            lower, upper = (x[i] for x in task.limits.bounds(quantity))
            raise LimitError(
                f"joint {task.names[i]!r} has to move by {task.distance[i]:.6g} from rest to rest, which its limits "
                f"{quantity} of {lower:.6g} to {upper:.6g} do not allow"
            )


def _side_of(limits, quantity, i, distance):
    """Limit of joint i in words: of the velocity that on the side of the way, of others the larger."""
    lower, upper = (x[i] for x in limits.bounds(quantity))
    return (upper if distance > 0 else -lower) if quantity == "v" else max(-lower, upper)


def _bounded(limits, i, distance):
    """Whether anything bounds the speed of joint i on its way."""
    lower, upper = limits.bounds("v")
    if np.isfinite(upper[i] if distance > 0 else lower[i]):
        return True
    return any(limits.bounded(k)[i] for k in BOUNDED if k != "v")
