"""What od.view is given, as rows: names, times, configurations, shares of limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...model.loops import LoopRobot
from ...model.quaternions import check_quaternions, quaternions
from ...model.robot import Robot
from ...numbers import are_sane, as_floats
from ...types import Array

_FINER = 8  # points between rows at which shares of limits are looked at
_MOST = 20_000  # rows of a motion in a page
_STEPS = 20  # from home to the start of a motion of a robot with loops


@dataclass(frozen=True)
class Rows:
    """name. t (K,) [s], from 0 on. q (K, nq). shares: {quantity: (2, L) times [s] and shares of limits then}."""

    name: str
    t: Array
    q: Array
    shares: dict[str, Array]


def named(robot: Robot, trajectory: Any) -> dict[str, Any]:
    """{name: motion}."""
    if isinstance(trajectory, Mapping):
        if not trajectory or not all(isinstance(name, str) for name in trajectory):
            raise ShapeError("view: trajectory is a mapping without motions, or with names that are no texts")
        return dict(trajectory)
    return {robot.name: at_home(robot) if trajectory is None else trajectory}


def at_home(robot: Robot) -> Array:
    """(nq,) where a robot with loops is assembled; else zeros, or the middle of limits that zero is outside of."""
    q = np.asarray(robot.neutral(), float).copy()
    if isinstance(robot, LoopRobot):
        return q
    for joint in robot.joints:
        if joint.nq == joint.nv == 1:
            low, high = joint.lower, joint.upper
            q[joint.q_index] = 0.0 if low <= 0 <= high else (low + high) / 2
    return q


def rows(robot: Robot, name: str, motion: Any, fps: float) -> Rows:
    """Rows of a motion, 1 / fps [s] apart or more."""
    what, fine = f"view: {name}", None
    motion = getattr(motion, "motion", motion)  # of elastic plans
    if hasattr(motion, "sample") and hasattr(motion, "utilization"):
        fine = motion.sample(1 / (_FINER * fps))
        every = np.unique(np.r_[np.arange(0, len(fine.t), _FINER), len(fine.t) - 1])
        t, q = fine.t[every], fine.q[every]
    elif hasattr(motion, "unknowns"):
        raise ShapeError(f"{what}: a Solution has many expressions; give (found.t, found[q]) with q those of the robot")
    elif hasattr(motion, "t") and hasattr(motion, "q"):
        t, q = motion.t, motion.q
    elif isinstance(motion, tuple) and len(motion) == 2 and np.ndim(motion[1]) == 2:
        t, q = motion
    else:
        t, q = [0.0], np.atleast_2d(as_floats(what, motion))
    t, q = as_floats(f"{what}: t", t).ravel(), as_floats(f"{what}: q", q)
    if q.shape != (t.size, robot.nq) or not t.size or not are_sane(t) or not are_sane(q) or np.any(np.diff(t) < 0):
        raise ShapeError(
            f"{what}: got q of shape {q.shape} for {t.size} times, expected finite numbers ({t.size}, {robot.nq}) for "
            f"{robot.name}, at times that do not fall"
        )
    check_quaternions(what, quaternions(robot), q.T)
    chosen = _chosen(t, fps)
    shares = {} if fine is None else _shares(fine, every[chosen])
    return Rows(name, t[chosen] - t[0], q[chosen], shares)


def _shares(fine: Any, rows: Any) -> dict[str, Array]:
    """Shares of Samples at those that are rows (K,), and where they are largest between: what is drawn at a time is
    what is true then, and no peak is lost."""
    out = {}
    for quantity, x in fine.utilization().items():
        peaks = [a + int(np.argmax(part)) for a, part in zip(rows, np.split(x, rows[1:]), strict=True)]
        kept = np.unique([*rows, *peaks])
        out[quantity] = np.array([fine.t[kept] - fine.t[0], x[kept]])
    return out


def _chosen(t: Array, fps: float) -> Array:
    """Numbers of rows that are at least 1 / fps apart, the last one among them; _MOST at most."""
    least = max(1 / fps, (t[-1] - t[0]) / _MOST) * (1 - 1e-6)
    kept = [0]
    for k in range(1, t.size):
        if t[k] - t[kept[-1]] >= least:
            kept.append(k)
    return np.array(kept if kept[-1] == t.size - 1 else [*kept, t.size - 1])


def all_coordinates(robot: LoopRobot, q: Array) -> Array:
    """(K, nq of the tree) with the loops closed as they are when they are followed from home; q (K, nq)."""
    way = np.linspace(robot.neutral(), q[0], _STEPS + 1)[:-1]
    guess = np.tile(robot.home[:, None], (1, _STEPS + len(q)))
    guess[robot.rows("q", robot.independent)] = np.vstack([way, q]).T
    return robot.close(guess)[:, _STEPS:].T
