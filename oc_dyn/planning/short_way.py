"""The short way round: joints that turn without end are at the same place after a turn."""

from __future__ import annotations

from math import pi

import numpy as np

from ..model.robot import Robot
from ..types import Array
from .limits import Limits


def turning_joints(robot: Robot) -> list[int]:
    """Indices of the coordinates after whose full turn all of the robot is at the same place: continuous joints, but
    those that others follow by part of a turn."""
    out = []
    for joint in robot.joints:
        if joint.kind != "continuous":
            continue
        rules = [(j.kind, j.mimic.multiplier) for j in robot.mimics if j.v_index == joint.v_index and j.mimic]
        if all(kind in ("revolute", "continuous") and float(m).is_integer() for kind, m in rules):
            out.append(joint.v_index)
    return out


def short_way(robot: Robot, limits: Limits, way: Array) -> tuple[Array, dict[str, int]]:
    """(way points (k, n) with full turns added, so that every step is the shortest within the limits; {joint: turns
    that were added to its last position}, of those that go another way round than they were told)."""
    way, (lower, upper) = np.array(way, float), limits.q
    told = {}
    for i in turning_joints(robot):
        before = way[:, i].copy()
        for k in range(1, len(way)):
            here, goal = way[k - 1, i], before[k]
            turns = np.round((here - goal) / (2 * pi)) + np.array([-1, 0, 1])
            there = goal + 2 * pi * turns
            inside = (there >= lower[i]) & (there <= upper[i])
            if inside.any():
                far = np.where(inside, np.abs(there - here), np.inf) - 1e-9 * (turns == 0)  # half a turn: as told
                best = int(np.argmin(far))
                way[k, i] = goal if turns[best] == 0 else there[best]
        if np.any(way[:, i] != before):
            told[robot.coordinate_names[i]] = int(np.round((way[-1, i] - before[-1]) / (2 * pi)))
    return way, told
