"""The fastest motion where joints share nothing but its time: limits of q and its derivatives alone, joint by joint.

It is the optimum of the program of motion_problem.py, smoothing included, found by its structure; see joint_program.py.
With speeds at the ends, where that has several, the first time that all joints can take.
"""

from dataclasses import dataclass, replace
from math import factorial

import numpy as np

from ..errors import SolveError
from ..interrupts import check_deadline
from ..optimal_control.polynomials import shift
from .common_time import common_time
from .guess import smooth_motion
from .joint_blocks import blocks, scales
from .joint_program import Joints, power, roomy_time, solve
from .motion import failure
from .motion_problem import motion_bounds

NAME = "separate joints"  # of the solver, in what is told of a motion
_LATEST, _MANY = 300.0, 30.0  # times the least time, a time that is enough: so late the search looks
_NEAR, _BELOW = 1.5, 0.9  # times what v, dv and d2v ask for: where the search begins, its lower end
_MOST = {2: np.inf, 3: np.inf, 4: 100}  # continuity: pieces; with more rounding is too large for an optimum to show


def covers(task, settings):
    """Whether a Task without limits of torque is one of joints that share the time alone."""
    short = settings["nodes"] <= _MOST.get(task.continuity, 0)
    return settings["mesh"] == "uniform" and task.limits.v_of_q is None and short


def least_time(task, settings, watch=None):
    """(T, derivatives (c + 2, N + 1, n) at the nodes) of the fastest motion within all limits but those of torque.

    settings: {"nodes": N, "smoothing": its weight}. The highest derivative is that of the piece behind a node. watch:
    called at every iteration. Raises SolveError where none is found, of status "infeasible" where a joint has no time
    in which it could keep its limits.
    """
    which = np.flatnonzero(task.moving & np.any(_needs(task), axis=0))
    joints = _joints(task, settings, which)
    nominal = smooth_motion(task, settings, kinematic=True)[0]  # as the program has it: weighs smoothing against time
    found = (_from_rest if task.rests else _with_speeds)(task, settings, joints, which, nominal, watch)
    if found is None:
        raise SolveError("the joints found no common time", "not solved")
    return float(found.T[0]), _of_all(task, settings, joints, which, found)


def _needs(task):
    """[(n,)] of every joint, not zero where it has to move."""
    return np.array([task.distance, *task.start[1:], *task.goal[1:]])


def _of_all(task, settings, joints, which, found):
    q = np.zeros((task.continuity + 2, settings["nodes"] + 1, len(task.names)))
    q[0] = task.start[0]
    q[:, :, which] = _states(joints, found).transpose(1, 2, 0)
    return q


def _states(joints, found):
    """(J, r + 1, N + 1) q, v, ... at the nodes; the highest one is that of the piece behind."""
    B, J = joints.blocks, len(found.T)
    r, N = B.r, B.pieces
    S = scales(r, N)
    P = shift(r)[:r] * S[None] / S[:r, None]
    u = found.z[:, :, r:][:, B.real]
    x = np.zeros((J, N + 1, r + 1))
    x[:, 0, :r] = found.z[:, 0, :r]
    x[:, :-1, r] = u
    for k in range(N):
        x[:, k + 1, :r] = x[:, k] @ P.T
    x[:, -1, r] = x[:, -2, r]
    j = np.arange(r + 1)
    out = x * S * np.array([factorial(i) for i in j]) * joints.reach[:, None, None]
    out = out / (found.T[:, None, None] / N) ** j
    out[:, :, 0] += joints.start[:, :1]
    return out.transpose(0, 2, 1)


def _from_rest(task, settings, joints, which, nominal, watch):
    roomy, shortest, s = roomy_time(joints).max(), settings["shortest"], power(joints)
    near = min(roomy, _NEAR * shortest) if task.continuity < 4 and shortest > 0 else roomy
    for T, within in ((near, False), (roomy, True)):
        low = np.full((len(which), 1), max((_BELOW * shortest / T) ** s, 1e-9))
        given = {"shared": True, "span": (low, 0 * low + 100.0), "within": within, "watch": watch}
        found = solve(joints, np.full(len(which), T), T / nominal, "time", **given)
        if found.success.all():
            return found
    return None


def _with_speeds(task, settings, joints, which, nominal, watch):
    times, search = common_time(replace(joints, weight=np.full(len(which), 1e-9)), *_span(joints), watch)
    if times is None:
        never = np.flatnonzero((search.least > 1 + 1e-6) & ~search.unclear)
        if never.size and search.finished:
            raise _never(task, settings, joints, which, search, task.names[which[never[0]]])
        return None
    early, T = times
    s = power(joints)
    first = np.full(len(which), T * 1.0005)
    span = (np.full((len(which), 1), (early / first[0]) ** s), np.full((len(which), 1), 1.03**s))
    found = solve(joints, first, first[0] / nominal, "time", shared=True, span=span, watch=watch)
    if not found.success.all():
        found = solve(joints, first, watch=watch)
    return found if found.success.all() else None


def _span(joints):
    """(a time below which no joint gets there, one by which all do that ever can, many times over).

    No joint is further than its Taylor polynomial at an end, with a limit as its last coefficient, lets it be.
    """
    least, stop, calm = 0.0, 0.0, np.zeros((2, len(joints.start), joints.blocks.r))
    for j, (start, goal, low, high) in enumerate(
        zip(joints.start, joints.goal, joints.lower, joints.upper, strict=True)
    ):
        back = (-1.0) ** np.arange(len(low))  # the goal is a start, seen backwards
        lows, highs = np.where(back > 0, low, -high), np.where(back > 0, high, -low)
        sides = [(start, goal, low, high), (goal * back[: len(goal)], start * back[: len(start)], lows, highs)]
        for here, there, *bounds in sides:
            least = max(least, *(_soonest(here[m:], there[m] - here[m], *(x[m:] for x in bounds)) for m in (0, 1)))
        own = max(_stopping(x, low, high) for x in (start, goal))
        stop = max(stop, own)
        calm[1, j, 0] = np.abs(goal[0] - start[0]) + own * max(abs(start[1]), abs(goal[1]))
    roomy = float(roomy_time(replace(joints, start=calm[0], goal=calm[1], blocks=_at_rest(joints.blocks))).max())
    least = max(0.999 * least, 1e-3 * (roomy + stop))
    return least, max(_LATEST * least, _MANY * (roomy + stop))


def _at_rest(made):
    """Blocks of motions from rest to rest."""
    return blocks(made.r, made.pieces, (made.r, made.r))


def _soonest(state, change, low, high):
    """The least time in which x, of which state (k,) is fixed, can change by so much: for each derivative's limit."""
    times, side = [0.0], high if change > 0 else low
    for k in range(1, min(len(state), len(side) - 1) + 1) if change else ():
        if np.isfinite(side[k]):
            terms = np.array([-change, *state[1:k], side[k]]) / [factorial(i) for i in range(k + 1)]
            roots = np.roots(terms[::-1])
            real = roots.real[(np.abs(roots.imag) < 1e-9 * np.abs(roots)) & (roots.real > 0)]
            times.append(real.min() if len(real) else 0.0)
    return max(times)


def _stopping(state, low, high):
    """A time that is enough for derivatives of a state to get to zero and back."""
    times = [0.0]
    for i in range(1, len(state)):
        for k in range(i + 1, len(low)):
            bound = min(-low[k], high[k])
            if state[i] and 0 < bound < np.inf:
                times.append((factorial(k) * abs(state[i]) / bound) ** (1 / (k - i)))
    return max(times)


def _never(task, settings, joints, which, search, name):
    """SolveError for a joint that can keep its limits in no time, with the motion that exceeds them least."""
    text = f"joint {name!r} has no time in which it gets from start to goal within its limits"
    found = search.nearest[1]
    if found is None:
        return SolveError(text, "infeasible")
    values = np.append(found.T[0], _of_all(task, settings, joints, which, found))
    told = failure(SeparateMotion(task, settings["nodes"]), values, "infeasible", [search.count])
    return SolveError(f"{text}; {told}", "infeasible", told.violations, told.trajectory)


@dataclass(frozen=True, eq=False)
class SeparateMotion:
    """What motion.solved reads of a problem and its solution."""

    task: object
    nodes: int
    kinematic: bool = True
    free_time: bool = True

    def unpack(self, values):
        """(h (N,), x (N + 1, c + 1, n), u (N, n)) of T and all of q, in a row."""
        T, q = values[0], values[1:].reshape(-1, self.nodes + 1, len(self.task.names))
        return np.full(self.nodes, T / self.nodes), q[:-1].transpose(1, 0, 2), q[-1, :-1]


def watch_of(solver):
    """Called once an iteration: moves the bar, ends at the deadline."""
    count = [0]

    def watch():
        count[0] += 1
        if solver.bar is not None:
            solver.bar.update()
        check_deadline("plan_point_to_point")

    return watch, count


def _joints(task, settings, which):
    """Joints of a Task, of those numbers."""
    N, c, moving = settings["nodes"], task.continuity, task.moving
    free = np.full(int(moving.sum()), np.inf)
    bounds = [*motion_bounds(task), *[(-free, free)] * c][: c + 2]  # not all derivatives have names
    lower, upper = (np.array(x).T for x in zip(*bounds, strict=True))
    inner = np.searchsorted(np.flatnonzero(moving), which)
    size = np.abs(task.distance)
    reach = np.maximum(size, 0.2 * size[moving].max() or 0.1)[which]
    ends = [np.array(x)[:, which].T for x in (task.start, task.goal)]
    weight = np.full(len(which), settings["smoothing"] / moving.sum())
    known = (len(task.start), len(task.goal))
    return Joints(blocks(c + 1, N, known), *ends, lower[inner], upper[inner], reach, weight)
