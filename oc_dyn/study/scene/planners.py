"""What is measured of a task: a row of duration, times and clearance by ours, and by OMPL with toppra."""

import time
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import pairwise

import numpy as np

from ...errors import LimitError, SolveError
from ...function import function
from ...planning import sampled_start
from ...planning.limits import Limits
from ...planning.point_to_point import plan_point_to_point

_ROUNDING = 1e-6  # [m]
_LIMIT = 120.0  # seconds a plan may take
_SAMPLES = 1000  # of motions of the peers, at which they are looked at
_SEEK = 10_000  # lines and configurations that OMPL looks at for a way, at most
_STEP = 8  # points of a way that are left out between those that the spline goes through


def ours(task, nodes, sampled=True):
    """Row of od.plan_point_to_point: the clearance is certified. sampled: whether searches begin from OMPL's ways;
    without, it is planned once."""
    around = task.around

    def work():
        return plan_point_to_point(
            around.robot, task.start, task.goal, nodes=nodes, scene=around.scene, clearance=around.clearance,
            check="off", progress=False, time_limit=_LIMIT,
        )  # fmt: skip

    with _sampling(sampled):
        try:
            motion, first = _timed(work)
            again = _timed(work)[1] if sampled else np.nan
        except (SolveError, LimitError) as error:
            return _failed(str(error))
    proof = motion.clearance(around.scene, around.clearance)
    return _row(motion.duration, first, again, proof.certified, around.clearance)


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
    met = float((around.distances(q) - around.scene.margins).min())
    return _row(motion.duration, first, again, met, around.clearance)


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
}
_NEEDS = {"ompl, toppra": ("ompl", "toppra")}


def installed(name):
    """Whether what a planner needs is there."""
    return all(find_spec(x) for x in _NEEDS.get(name, ()))


def versions():
    """{package: version, None where it is not installed} of what ours is measured beside."""
    found = {}
    for name in ("ompl", "toppra"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


@contextmanager
def _sampling(on):
    """With OMPL, or as where it is not installed."""
    kept = sampled_start.installed
    if not on:
        sampled_start.installed = lambda: False
    try:
        yield
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
