"""Bounds of gravity's torques and of their derivatives by the position, over all positions that a tree can take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import ModelError
from ...model.loops import LoopRobot
from ...model.robot import Body, Robot
from ...types import Array

_TURNS = ("revolute", "continuous", "helical")


@dataclass(frozen=True)
class _Lever:
    """Of the subtree of a joint: the mass it moves [kg], a bound of its first moment about the joint's axis [kg m], how
    much of gravity can act across the axis [m/s^2], whether the joint turns, and its row."""

    mass: float
    moment: float
    gravity: float
    turns: bool
    row: int


def gravity_gradient_bound(robot: Robot) -> float:
    """Bound of the largest singular value of dg/dq [Nm/rad] over all positions of a tree.

    dg_i/dq_j is gravity across axis i times the first moment of what joint j moves about its axis. That moment is
    bounded by the triangle inequality from joint to joint, prismatic ones at the end of their range, so that no turning
    joint needs one; the spectral norm of the matrix of these bounds is not below that of dg/dq. It is reached by planar
    arms that hang stretched. Raises ModelError for robots with loops or mimic joints, joints of other kinds than
    revolute, prismatic and helical, and prismatic joints without range.
    """
    return float(np.linalg.norm(gravity_gradient_bounds(robot), 2))


def gravity_gradient_bounds(robot: Robot) -> Array:
    """(v, v) bounds of the entries of |dg/dq|; see gravity_gradient_bound."""
    levers, above = _levers(robot)
    out = np.zeros((robot.nv, robot.nv))
    for body, lever in levers.items():
        for i in above[body]:  # the joint itself and those it hangs on
            upper = levers[i]
            if upper.turns:
                out[upper.row, lever.row] = out[lever.row, upper.row] = upper.gravity * lever.moment
    return out


def gravity_torque_bounds(robot: Robot) -> Array:
    """(v,) bounds of gravity's torque on each joint [Nm, N]; see gravity_gradient_bound."""
    out = np.zeros(robot.nv)
    for lever in _levers(robot)[0].values():
        out[lever.row] = lever.gravity * (lever.moment if lever.turns else lever.mass)
    return out


def _levers(robot: Robot) -> tuple[dict[int, _Lever], dict[int, list[int]]]:
    """{body: lever of its joint}, {body: itself and the bodies it hangs on}."""
    _check(robot)
    # of each subtree: mass, the part of its moment that is fixed in its body, a bound of the rest
    mass: dict[int, float] = {}
    fixed: dict[int, Array] = {}
    reach: dict[int, float] = {}
    for b in reversed(robot.bodies):
        children = [c for c in robot.bodies if c.parent == b.index]
        mass[b.index] = b.inertia.mass + sum(mass[c.index] for c in children)
        own = b.inertia.moment + sum((mass[c.index] * c.translation for c in children), np.zeros(3))
        fixed[b.index] = own
        rest = [np.linalg.norm(fixed[c.index]) + reach[c.index] + mass[c.index] * _travel(robot, c) for c in children]
        reach[b.index] = float(sum(rest))
    levers: dict[int, _Lever] = {}
    above: dict[int, list[int]] = {0: []}
    turned: dict[int, Array | None] = {0: np.eye(3)}
    for b in robot.bodies:
        above[b.index] = [*above[b.parent], b.index]
        resting = turned[b.parent]
        axis, turns = b.joint.axis / np.linalg.norm(b.joint.axis), b.joint.kind in _TURNS
        across = np.linalg.norm(robot.gravity)
        if resting is not None:  # no joint before this one turns: its axis stays where it is
            seen = (resting @ b.rotation).T @ robot.gravity
            across = np.linalg.norm(np.cross(axis, seen)) if turns else abs(axis @ seen)
        moment = np.linalg.norm(np.cross(axis, fixed[b.index])) + reach[b.index] if turns else mass[b.index]
        moment += abs(b.joint.pitch) * mass[b.index] if b.joint.kind == "helical" else 0.0
        if b.joint.kind == "helical":  # gravity along the axis acts, too
            across = float(np.linalg.norm(robot.gravity))
        levers[b.index] = _Lever(mass[b.index], float(moment), float(across), turns, b.joint.v_index)
        turned[b.index] = None if turns or resting is None else resting @ b.rotation
    return levers, above


def _travel(robot: Robot, body: Body) -> float:
    """Largest distance [m] that a joint moves the origin of its body."""
    joint = body.joint
    if joint.kind in ("revolute", "continuous"):
        return 0.0
    far = float(max(abs(joint.lower), abs(joint.upper))) * (abs(joint.pitch) if joint.kind == "helical" else 1.0)
    if not np.isfinite(far):
        raise ModelError(robot.name, [f"joint {joint.name!r} has no range, so that gravity's gradient has no bound"])
    return far


def _check(robot: Robot) -> None:
    problems = []
    if isinstance(robot, LoopRobot):
        problems.append("bounds of gravity are for trees, not for robots with loops")
    if robot.mimics:
        problems.append(f"bounds of gravity are for robots without mimic joints, here {robot.mimics[0].name!r}")
    odd = [j.name for j in robot.joints if j.kind not in (*_TURNS, "prismatic")]
    if odd:
        problems.append(f"bounds of gravity are for revolute, prismatic and helical joints; {odd[0]!r} is another")
    if problems:
        raise ModelError(robot.name, problems)
