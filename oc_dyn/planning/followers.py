"""What a motion of a robot with loops asks of the joints that follow: their positions and velocities, sampled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..function import function
from ..model.loops import LoopRobot
from .report import Report, ReportRow


def with_followers(report: Report, motion: Any, dt: float) -> Report:
    """The Report with a row for each joint that follows and has limits, of q and of v, every dt [s]; of other robots as
    it is. Raises ModelError where loops open, or change their mode, on the way."""
    robot = motion.robot
    if not isinstance(robot, LoopRobot):
        return report
    samples = motion.sample(dt)
    found = function(robot, "loop_closure", order=1)(samples.q.T, samples.v.T)
    values = {"q": np.array(found[0]), "v": np.array(found[1])}
    rows = []
    for name in robot.dependent:
        j = robot.tree.joint(name)
        if j.nq != 1:
            continue
        for quantity, at, low, high in (("q", j.q_index, j.lower, j.upper), ("v", j.v_index, -j.velocity, j.velocity)):
            if np.isfinite([low, high]).any():
                rows.append(_row(quantity, name, values[quantity][at], low, high, samples.t))
    return replace(report, rows=(*report.rows, *rows))


def _row(quantity: str, name: str, x: Any, low: float, high: float, t: Any) -> ReportRow:
    """The sample with the largest share: of the half range where both ends are finite, else how far it is beyond."""
    if np.isfinite(low) and np.isfinite(high) and high > low:
        share = np.abs(x - 0.5 * (low + high)) / (0.5 * (high - low))
    else:
        share = np.where((x > high) | (x < low), np.inf, 0.0)
    k = int(np.argmax(share))
    return ReportRow(quantity, float(share[k]), name, float(t[k]), float(x[k]), float(high if x[k] > 0 else low))
