"""Motions along a path by od.plan_along_path and by toppra: how long they take to plan, and which limits they keep.

The path is a cubic spline through three configurations of the Panda. toppra (reachability analysis, Pham and Pham 2018)
keeps limits of velocity, acceleration and torque at grid points of the path; accelerations and torques jump. Both are
looked at between their points: shares of limits are the largest along the whole motion, over 1 where one is exceeded;
jerks and torque rates are infinite where what they are the rates of jumps.
"""

import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from .. import robots
from ..files import write_csv
from ..function import function
from ..planning.limits import Limits
from ..planning.path import plan_along_path
from ..planning.report import share_of_rate
from ..planning.samples import Samples
from ..runs.manifest import manifest, write_json
from ..text import in_columns
from . import apart

WAY = np.array([
    [0.0, -0.785398, 0.0, -2.356194, 0.0, 1.570796, 0.785398],
    [0.8, -0.1, -0.4, -1.8, 0.5, 2.0, 0.1],
    [1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6],
])  # fmt: skip
AT = (0.0, 0.5, 1.0)
NODES, QUICK_NODES, REPEATS = 100, 24, 3
FINE = 4001  # points at which motions are looked at
MISSING = "toppra is not installed, its rows are left out: pip install toppra"
CAPTIONS = {
    "plans.csv": "Duration, processor time to plan at first and again, largest shares of the limits along the motion."
}
SHOWN = ("v", "dv", "d2v", "tau", "dtau")
FIELDS = ("planner", "duration [s]", "first [s]", "again [s]", *SHOWN)


def run(out, quick=False, progress=None):
    """Plan and look at the motions; returns the report as a text.

    out: folder for plans.csv and manifest.json. quick: few nodes.
    """
    out, nodes = Path(out), QUICK_NODES if quick else NODES
    robot = robots.panda()
    limits = Limits.of(robot)
    rows = [_ours(robot, limits, nodes, "plan_along_path", ())]
    rows.append(_ours(robot, limits, nodes, "plan_along_path, no jerk, no torque rate", ("d2v", "dtau")))
    missing = False
    try:
        import toppra
    except ImportError:
        missing = True
    else:
        toppra.setup_logging("ERROR")
        rows += [_theirs(robot, limits, nodes, torques) for torques in (True, False)]
    cells = [FIELDS, *([_cell(row[k]) for k in FIELDS] for row in rows)]
    out.mkdir(parents=True, exist_ok=True)
    write_csv(out / "plans.csv", cells)
    command = apart.typed("path_peers", out, quick)
    write_json(out / "manifest.json", manifest(command, nodes=nodes, plans=rows, toppra=_version()))
    text = "Largest shares of the limits along the motion; over 1 exceeded, inf where what it is the rate of jumps:"
    return "\n".join([text, in_columns(cells), *([MISSING] if missing else [])])


def _cell(x):
    return x if isinstance(x, str) else f"{x:.4g}"


def _version():
    with suppress(ImportError):
        from importlib.metadata import version

        return version("toppra")
    return None


def _timed(work):
    """(result, processor seconds at first, least ones of the next runs)."""
    seconds, result = [], None
    for _ in range(1 + REPEATS):
        begun = time.process_time()
        result = work()
        seconds.append(time.process_time() - begun)
    return result, seconds[0], min(seconds[1:])


def _ours(robot, limits, nodes, name, ignored):
    motion, *seconds = _timed(
        lambda: plan_along_path(robot, WAY, at=AT, nodes=nodes, limits=limits, ignore=ignored, check="off")
    )
    times = np.linspace(0, motion.duration, FINE)
    return _row(name, motion.duration, seconds, robot, limits, times, motion.sample(times).derivatives, False)


def _theirs(robot, limits, nodes, torques):
    """toppra, its accelerations constant between grid points."""
    import toppra
    from toppra import algorithm, constraint

    f = function(robot, "inverse_dynamics")
    both = {k: np.column_stack(limits.bounds(k)) for k in ("v", "dv", "tau")}
    rows = [constraint.JointVelocityConstraint(both["v"]), constraint.JointAccelerationConstraint(both["dv"])]
    if torques:
        zero = np.zeros(robot.nv)
        rows.append(constraint.JointTorqueConstraint(lambda *x: np.array(f(*x)).ravel(), both["tau"], zero))
    path, grid = toppra.SplineInterpolator(AT, WAY), np.linspace(0, 1, nodes + 1)

    def work():
        made = algorithm.TOPPRA(rows, path, gridpoints=grid, parametrizer="ParametrizeConstAccel")
        return made.compute_trajectory(0, 0)

    motion, *seconds = _timed(work)
    times = np.linspace(0, motion.duration, FINE)
    q = [motion(times), motion(times, 1), motion(times, 2)]
    name = "toppra" if torques else "toppra, no torque"
    return _row(name, motion.duration, seconds, robot, limits, times, [*q, 0 * q[0], 0 * q[0]], True)


def _row(name, duration, seconds, robot, limits, times, derivatives, jumps):
    """A row of the table. jumps: whether accelerations do."""
    samples = Samples(times, list(derivatives), joints=limits.joints, units=(), robot=robot)
    row = {"planner": name, "duration [s]": float(duration), "first [s]": seconds[0], "again [s]": seconds[1]}
    for k in SHOWN:
        if jumps and k in ("d2v", "dtau"):
            row[k] = np.inf
        elif limits.bounded(k).any():
            row[k] = float(share_of_rate(getattr(samples, k), *limits.bounds(k)).max())
        else:
            row[k] = np.nan
    return row
