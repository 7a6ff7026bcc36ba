"""The fastest motion where joints share nothing but its time: limits of q and its derivatives alone, joint by joint.

It is the optimum of the program of motion_problem.py, found by its structure; see joint_program.py.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import SolveError
from ..interrupts import check_deadline
from .joint_blocks import blocks
from .joint_program import Joints, roomy_time, solve, states
from .motion_problem import motion_bounds

NAME = "separate joints"  # of the solver, in what is told of a motion
_MOST = 5  # continuity, from which on rounding counts


def covers(task, settings):
    """Whether a Task without limits of torque is one of joints that share the time alone."""
    return task.rests and settings["mesh"] == "uniform" and task.limits.v_of_q is None and task.continuity <= _MOST


def least_time(task, settings, watch=None):
    """(T, derivatives (c + 2, N + 1, n) at the nodes) of the fastest motion within all limits but those of torque.

    settings: {"nodes": N, "smoothing": its weight}. The highest derivative is that of the piece behind a node. watch:
    called at every iteration. Raises SolveError where none is found.
    """
    N, c = settings["nodes"], task.continuity
    q = np.zeros((c + 2, N + 1, len(task.names)))
    q[0] = task.start[0]
    which = np.flatnonzero(task.moving & (task.distance != 0))
    joints = _joints(task, settings, which)
    T = np.full(len(which), roomy_time(joints).max())
    for within in (False, True):
        found = solve(joints, T, 1.0, "time", shared=True, within=within, watch=watch)
        if found.success.all():
            break
    else:
        raise SolveError("the joints found no common time", "not solved")
    q[:, :, which] = states(joints, found).transpose(1, 2, 0)
    return float(found.T[0]), q


@dataclass(frozen=True, eq=False)
class SeparateMotion:
    """What motion.solved reads of a problem and its solution."""

    task: object
    nodes: int
    kinematic: bool = True
    free_time: bool = True

    def unpack(self, values):
        """(h (N,), x (N + 1, c + 1, n), u (N, n)) of what least_time returns."""
        T, q = values
        return np.full(self.nodes, T / self.nodes), q[:-1].transpose(1, 0, 2), q[-1, :-1]


def watch_of(solver):
    """Called once an iteration: moves the bar, ends at the deadline."""
    count = [0]

    def watch():
        count[0] += 1
        if solver.bar is not None:
            solver.bar.update(1)
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
