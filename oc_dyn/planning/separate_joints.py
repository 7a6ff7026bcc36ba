"""The fastest motion where joints share nothing but its time: limits of q and its derivatives alone, joint by joint.

It is the optimum of the program of motion_problem.py, found by its structure; see joint_program.py.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..errors import SolveError
from ..interrupts import check_deadline
from .common_time import common_time
from .joint_blocks import blocks
from .joint_program import Joints, power, roomy_time, solve, states
from .motion import failure
from .motion_problem import motion_bounds

NAME = "separate joints"  # of the solver, in what is told of a motion
_NOMINAL = 0.7  # share of the time that the roughness is weighed against that the least time is
_MOST = 4  # continuity, above which rounding leaves no optimum


def covers(task, settings):
    """Whether a Task without limits of torque is one of joints that share the time alone."""
    return settings["mesh"] == "uniform" and task.limits.v_of_q is None and task.continuity <= _MOST


def least_time(task, settings, watch=None):
    """(T, derivatives (c + 2, N + 1, n) at the nodes) of the fastest motion within all limits but those of torque.

    settings: {"nodes": N, "smoothing": its weight}. The highest derivative is that of the piece behind a node. watch:
    called at every iteration. Raises SolveError where none is found, of status "infeasible" where a joint has no time
    in which it could keep its limits.
    """
    which = np.flatnonzero(task.moving & np.any(_needs(task), axis=0))
    joints = _joints(task, settings, which)
    found = (_from_rest if task.rests else _with_speeds)(task, settings, joints, which, watch)
    if found is None:
        raise SolveError("the joints found no common time", "not solved")
    return float(found.T[0]), _of_all(task, settings, joints, which, found)


def _needs(task):
    """[(n,)] of every joint, not zero where it has to move."""
    return np.array([task.distance, *task.start[1:], *task.goal[1:]])


def _of_all(task, settings, joints, which, found):
    q = np.zeros((task.continuity + 2, settings["nodes"] + 1, len(task.names)))
    q[0] = task.start[0]
    q[:, :, which] = states(joints, found).transpose(1, 2, 0)
    return q


def _from_rest(task, settings, joints, which, watch):
    T = np.full(len(which), roomy_time(joints).max())
    for within in (False, True):
        found = solve(joints, T, 1.0, "time", shared=True, within=within, watch=watch)
        if found.success.all():
            return found
    return None


def _with_speeds(task, settings, joints, which, watch):
    times, search = common_time(replace(joints, weight=np.full(len(which), 1e-9)), _shortest(joints), watch)
    if times is None:
        never = np.flatnonzero(search.least > 1 + 1e-6)
        if never.size and search.finished:
            raise _never(task, settings, joints, which, search, task.names[which[never[0]]])
        return None
    early, T = times
    s = power(joints)
    first = np.full(len(which), T * 1.0005)
    span = (np.full((len(which), 1), (early / first[0]) ** s), np.full((len(which), 1), 1.03**s))
    found = solve(joints, first, _NOMINAL, "time", shared=True, span=span, watch=watch)
    if not found.success.all():
        found = solve(joints, first, watch=watch)
    return found if found.success.all() else None


def _shortest(joints):
    """A time below which no joint gets there: at the limit of the velocity, or of the acceleration."""
    times = [1e-6]
    for start, goal, low, high in zip(joints.start, joints.goal, joints.lower, joints.upper, strict=True):
        changes = np.array([goal[j] - start[j] for j in range(2)])
        bound = np.where(changes > 0, high[1:3], -low[1:3])
        with np.errstate(divide="ignore", invalid="ignore"):
            times += [x for x in np.abs(changes) / bound if np.isfinite(x)]
    size = max(times) if max(times) > 1e-6 else 0.0
    return max(size, 1e-3 * float(roomy_time(joints).max()))


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
