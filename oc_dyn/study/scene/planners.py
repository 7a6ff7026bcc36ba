"""What is measured of a task: a row of duration, times and clearance by ours, by OMPL with toppra, and by RoboPlan."""

import time
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import LimitError, SolveError
from ...function import function
from ...planning import sampled_start
from ...planning.limits import Limits
from ...planning.point_to_point import plan_point_to_point
from .by_roboplan import NAMES

_ROUNDING = 1e-6  # [m]
_LIMIT = 600.0  # seconds a plan may take: iterations end it before, whatever else the machine does
_SAMPLES = 1000  # of motions of the peers, at which they are looked at
_SEEK = 10_000  # lines and configurations that OMPL looks at for a way, at most
_STEP = 8  # points of a way that are left out between those that the spline goes through


def ours(task, nodes, sampled=True):
    """Row of od.plan_point_to_point: the clearance is certified. sampled: whether searches begin from OMPL's ways;
    without, it is planned once, and not at all where no way was needed before, as the plan is the same then."""
    around = task.around
    known = _PLANNED.get((task.number, nodes))
    if not sampled and known is not None and not known["ways"]:
        return {**known["row"], "again [s]": np.nan}

    def work():
        return plan_point_to_point(
            around.robot, task.start, task.goal, nodes=nodes, scene=around.scene, clearance=around.clearance,
            check="off", progress=False, time_limit=_LIMIT,
        )  # fmt: skip

    with _sampling(sampled) as sought:
        try:
            motion, first = _timed(work)
            again = _timed(work)[1] if sampled else np.nan
        except (SolveError, LimitError) as error:
            return _failed(str(error))
    proof = motion.clearance(around.scene, around.clearance)
    row = _row(motion.duration, first, again, proof.certified, around.clearance)
    if sampled:
        _PLANNED.clear()
        _PLANNED[task.number, nodes] = {"row": row, "ways": bool(sought)}
    return row


# {(number of the task, nodes): its row, whether ways were sought}, of the last task
_PLANNED: dict[tuple[int, int], Any] = {}


def by_roboplan(task, nodes):
    """Row of RoboPlan's RRT-Connect, its corners cut, timed by its toppra under v and dv; nodes is not needed."""
    from .by_roboplan import motion

    found, first = _timed(lambda: motion(task.around, task.start, task.goal))
    if found is None:
        return _failed("no way")
    again = _timed(lambda: motion(task.around, task.start, task.goal))[1]
    times, q = found
    return _row(times[-1], first, again, _met(task.around, q), task.around.clearance)


def _met(around, q):
    """[m] the smallest clearance at configurations q (K, n)."""
    return float((around.distances(q) - around.scene.margins).min())


def peers(task, nodes):
    """Row of OMPL's RRT-Connect, its corners cut, timed by toppra; nodes is not needed."""
    around = task.around
    limits = Limits.of(around.robot)

    def work():
        way = next(iter(sampled_start.ways(around, task.start, task.goal, limits.q, 1, _SEEK)), None)
        return None if way is None else timed_by_toppra(around.robot, limits, way)

    motion, first = _timed(work)
    if motion is None:
        return _failed("no way, or no times of it")
    again = _timed(work)[1]
    q = motion(np.linspace(0, motion.duration, _SAMPLES))
    return _row(motion.duration, first, again, _met(around, q), around.clearance)


def timed_by_toppra(robot, limits, way):
    """toppra's trajectory on a spline through a way (k, n), in least time under v, dv and tau; None where it fails."""
    import toppra
    from toppra import algorithm, constraint

    toppra.setup_logging("ERROR")
    f, both = function(robot, "inverse_dynamics"), {k: np.column_stack(limits.bounds(k)) for k in ("v", "dv", "tau")}
    rows = [constraint.JointVelocityConstraint(both["v"]), constraint.JointAccelerationConstraint(both["dv"])]
    torque = constraint.JointTorqueConstraint(lambda *x: np.array(f(*x)).ravel(), both["tau"], np.zeros(robot.nv))
    points = dense(way)
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    path = toppra.SplineInterpolator(along / along[-1], points)
    made = algorithm.TOPPRA(
        [*rows, torque], path, gridpoints=np.linspace(0, 1, 201), parametrizer="ParametrizeConstAccel"
    )
    return made.compute_trajectory(0, 0)


def dense(way):
    """Points (K, n) along a way, near enough for a spline through them to stay by it."""
    parts = []
    for a, b in pairwise(way):
        line = sampled_start.line(a, b)
        parts.append(line[:-1:_STEP] if len(line) > 2 * _STEP else line[:1])
    return np.concatenate([*parts, way[-1:]])


PLANNERS = {
    "plan_point_to_point": ours,
    "plan_point_to_point, no sampled start": lambda task, nodes: ours(task, nodes, sampled=False),
    "ompl, toppra": peers,
    "roboplan": by_roboplan,
}
_NEEDS = {"ompl, toppra": ("ompl", "toppra"), "roboplan": ("roboplan.core", "roboplan.rrt", "roboplan.toppra")}


def installed(name):
    """Whether what a planner needs is there."""
    try:
        return all(find_spec(x) for x in _NEEDS.get(name, ()))
    except ModuleNotFoundError:  # of the package that one of them is in
        return False


def versions():
    """{package: version, None where it is not installed} of what ours is measured beside."""
    found = {}
    for name in ("ompl", "toppra", *NAMES):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


@contextmanager
def _sampling(on):
    """With OMPL, or as where it is not installed; gives a list, in which something is where ways were sought."""
    kept, sought = sampled_start.installed, []
    sampled_start.installed = lambda: (sought.append(True), on and kept())[1]
    try:
        yield sought
    finally:
        sampled_start.installed = kept


def _timed(work):
    begun = time.process_time()
    return work(), time.process_time() - begun


def _row(duration, first, again, clearance, asked):
    solved = bool(clearance >= asked - _ROUNDING)
    why = "" if solved else "it does not keep the clearance"
    times = {"first [s]": first, "again [s]": again}
    return {
        "solved": solved,
        "duration [s]": float(duration),
        **times,
        "clearance [m]": float(clearance),
        "why not": why,
    }


def _failed(why):
    missing = dict.fromkeys(("duration [s]", "first [s]", "again [s]", "clearance [m]"), np.nan)
    return {"solved": False, **missing, "why not": why[:200]}
