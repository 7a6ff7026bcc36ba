"""Damping and friction of motors and links as a user gives them, and those that the robot's file gives its joints."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ModelWarning
from ..friction import SMOOTHING, coulomb
from ..model.loops import LoopRobot
from ..model.parameters import of_joints
from ..model.robot import Robot
from ..numbers import shortened
from ..types import Array
from .read_motors import MotorReader

SIDES = ("links", "motors")
Friction = tuple[Array, Array, Array]  # damping, Coulomb friction, smoothing


def read_friction(
    robot: Robot, seen: Any, reader: MotorReader, motors: tuple[Any, Any, Any], links: tuple[Any, Any, Any],
    joint_friction: Any,
) -> tuple[Friction, Friction]:  # fmt: skip
    """(of the motors, of the links), with that of the robot's joints where it counts. motors, links: (damping,
    friction, smoothing) as given; seen: the joints with drives."""
    names = link_reader(robot.name, seen.velocity_names, seen, reader.problems)
    of_motors = _read(reader, ("motor_damping", "motor_friction", "friction_smoothing"), motors)
    on_links = _read(names, ("link_damping", "link_friction", "link_smoothing"), links)
    n = len(seen.velocity_names)
    rest = (np.zeros(n), np.zeros(n), np.full(n, SMOOTHING))
    own = [on_velocities(seen.velocity_names, names.names, x, y) for x, y in zip(on_links, rest, strict=True)]
    side = _side(joint_friction, reader.problems)
    tree = robot.tree if isinstance(robot, LoopRobot) else robot
    there = [j.name for j in tree.joints if j.damping or j.friction]
    if side is None and there:
        text = (
            f"elastic_robot {robot.name}: damping and friction of the joints {', '.join(there)} are ignored; give "
            'joint_friction="links" to count them between the links, "motors" to count them at the motors, or False '
            "if they are not meant"
        )
        warnings.warn(text, ModelWarning, stacklevel=3)
    if side == "motors":
        _add_to_motors(tree, reader, there, of_motors)
    if side == "links":
        _add_to_links(robot, seen, there, own, reader.problems)
    return of_motors, (own[0], own[1], own[2])


def link_reader(robot: str, names: Sequence[str], of: Any, problems: list[str]) -> MotorReader:
    """Reader of values by the velocities `names` of all joints but free ones, which nothing holds."""
    free = {n for n, owner in _owners(of) if owner.kind == "free"}
    return MotorReader(robot, [n for n in names if n not in free], problems, "velocity")


def on_velocities(names: Sequence[str], held: Sequence[str], values: Array, rest: Array) -> Array:
    """(velocities,) the values of those that are held, and the rest of others."""
    out = np.array(rest, float)
    for name, x in zip(held, values, strict=True):
        out[names.index(name)] = x
    return out


def _owners(seen: Any) -> list[tuple[str, Any]]:
    """[(name of the velocity, its joint)]."""
    return list(zip(seen.velocity_names, (j for j in seen.joints for _ in range(j.nv)), strict=True))


def _read(reader: MotorReader, names: tuple[str, str, str], values: tuple[Any, Any, Any]) -> Friction:
    damping, friction = (reader.vector(n, x, lowest=0.0) for n, x in zip(names[:2], values[:2], strict=True))
    return damping, friction, reader.vector(names[2], values[2], positive=True, default=SMOOTHING)


def _side(joint_friction: Any, problems: list[str]) -> str | bool | None:
    """Where the friction of the robot's joints counts: "links", "motors"; False or None: nowhere."""
    if joint_friction is None or (isinstance(joint_friction, str) and joint_friction in SIDES):
        return joint_friction
    if isinstance(joint_friction, (bool, np.bool_)):
        return "motors" if joint_friction else False
    problems.append(f'joint_friction is {shortened(joint_friction)}, expected "links", "motors", True, False or None')
    return False


def _add_to_motors(tree: Robot, reader: MotorReader, there: list[str], friction: Friction) -> None:
    for name in there:
        rows = [m for m, x in enumerate(reader.names) if x == name]
        if len(rows) != 1:
            reader.problems.append(
                f"joint_friction: joint {name!r} has no motor of its own to carry its friction; give motor_damping and "
                "motor_friction instead"
            )
            continue
        friction[0][rows[0]] += tree.joint(name).damping
        friction[1][rows[0]] += tree.joint(name).friction


def _add_to_links(robot: Robot, seen: Any, there: list[str], own: Any, problems: list[str]) -> None:
    if not isinstance(robot, LoopRobot):
        own[0][:] += np.ravel(of_joints(robot, "viscous"))
        for row, _, torque in coulomb(robot):
            own[1][row] += torque
        return
    rows = {name: k for k, (name, _) in enumerate(_owners(seen))}
    for name in there:
        if name not in rows:
            problems.append(
                f"joint_friction: joint {name!r} has no drive, and on the links' side friction counts at drives alone "
                "in a robot with loops; give joint_friction=False and link_damping, link_friction of the drives"
            )
            continue
        own[0][rows[name]] += robot.tree.joint(name).damping
        own[1][rows[name]] += robot.tree.joint(name).friction
