"""The fastest motion where joints share nothing but its time: limits of q and its derivatives alone, joint by joint."""

import numpy as np

from ..errors import SolveError
from .joint_blocks import blocks
from .joint_program import Joints, roomy_time, solve, states
from .motion_problem import motion_bounds


def least_time(task, settings):
    """(T, derivatives (c + 2, N + 1, n) at the nodes): the motion from rest to rest."""
    N, c = settings["nodes"], task.continuity
    q = np.zeros((c + 2, N + 1, len(task.names)))
    q[0] = task.start[0]
    which = np.flatnonzero(task.moving & (task.distance != 0))
    joints = _joints(task, settings, which)
    T = np.full(len(which), roomy_time(joints).max())
    found = solve(joints, T, 1.0, "time", shared=True)
    if not found.success.all():
        raise SolveError("the joints found no common time", "not solved")
    q[:, :, which] = states(joints, found).transpose(1, 2, 0)
    return float(found.T[0]), q


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
