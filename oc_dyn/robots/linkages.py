"""Mechanisms with loops, of stated numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.builder import RobotBuilder
from ..model.loops import LoopRobot
from ..types import Array


def four_bar() -> LoopRobot:
    """A four-bar linkage in the vertical x-z plane, a crank-rocker: crank 0.3 m, coupler 0.8 m, rocker 0.6 m, ground
    0.7 m, 1 kg/m.

    Joints crank, coupler and rocker turn about y; q is the angle of the crank, which turns all round. Frame "tip" is a
    point of the coupler beside its middle.
    """
    b = RobotBuilder("four_bar")
    b.add_link("base")
    b.add_body("crank_link", "continuous", "base", joint="crank", axis=(0, 1, 0), **_rod(0.3))
    b.add_body(
        "coupler_link", "continuous", "crank_link", joint="coupler", xyz=(0.3, 0, 0), axis=(0, 1, 0), **_rod(0.8)
    )
    b.add_body("rocker_link", "continuous", "base", joint="rocker", xyz=(0.7, 0, 0), axis=(0, 1, 0), **_rod(0.6))
    b.add_frame("tip", "coupler_link", xyz=(0.4, 0, 0.2))
    ends: dict[str, Any] = {"xyz_a": (0.8, 0, 0), "xyz_b": (0.6, 0, 0), "axis": (0, 1, 0)}
    b.close_loop("joint", "coupler_link", "rocker_link", "revolute", **ends, independent=("crank",))
    return _closed(b, {"crank": -1.0, "coupler": 0.5, "rocker": -1.2})


def slider_crank() -> LoopRobot:
    """A slider-crank in the vertical x-z plane: crank 0.2 m, rod 0.6 m, a slider of 0.5 kg along x; q is the angle of
    the crank."""
    b = RobotBuilder("slider_crank")
    b.add_link("base")
    b.add_body("crank_link", "continuous", "base", joint="crank", axis=(0, 1, 0), **_rod(0.2))
    b.add_body("rod_link", "continuous", "crank_link", joint="rod", xyz=(0.2, 0, 0), axis=(0, 1, 0), **_rod(0.6))
    b.add_body("slider_link", "prismatic", "base", joint="slider", axis=(1, 0, 0), mass=0.5)
    b.close_loop("pin", "rod_link", "slider_link", xyz_a=(0.6, 0, 0), axis=(0, 1, 0), independent=("crank",))
    return _closed(b, {"crank": -0.8, "rod": 1.1, "slider": 0.7})


def six_bar() -> LoopRobot:
    """Watt's six-bar linkage in the vertical x-z plane: a four-bar whose rocker drives a second one; q is the angle of
    the crank."""
    b = RobotBuilder("six_bar")
    b.add_link("base")
    turn: dict[str, Any] = {"axis": (0, 1, 0)}
    b.add_body("crank_link", "continuous", "base", joint="crank", **turn, **_rod(0.3))
    b.add_body("coupler_link", "continuous", "crank_link", joint="coupler", xyz=(0.3, 0, 0), **turn, **_rod(0.8))
    b.add_body("rocker_link", "continuous", "base", joint="rocker", xyz=(0.7, 0, 0), **turn, **_rod(0.6))
    b.add_body("arm_link", "continuous", "rocker_link", joint="arm", xyz=(0.3, 0, -0.2), **turn, **_rod(0.7))
    b.add_body("lever_link", "continuous", "base", joint="lever", xyz=(1.4, 0, 0), **turn, **_rod(0.5))
    b.close_loop(
        "first", "coupler_link", "rocker_link", xyz_a=(0.8, 0, 0), xyz_b=(0.6, 0, 0), **turn, independent=("crank",)
    )
    b.close_loop("second", "arm_link", "lever_link", xyz_a=(0.7, 0, 0), xyz_b=(0.5, 0, 0), **turn)
    return _closed(b, {"crank": -1.0, "coupler": 0.5, "rocker": -1.2, "arm": 1.0, "lever": -1.5})


def planar_3rrr() -> LoopRobot:
    """A planar parallel robot of three arms of two rods each, a platform that moves in the horizontal plane; q is its
    pose: position x, y and angle. Joints drive1 .. drive3 have the motors."""
    b = RobotBuilder("planar_3rrr")
    b.add_link("base")
    b.add_body("shift", "prismatic", "base", joint="x", axis=(1, 0, 0))
    b.add_body("slide", "prismatic", "shift", joint="y", axis=(0, 1, 0))
    disc = np.diag([0.01, 0.01, 0.02])
    b.add_body("platform", "revolute", "slide", joint="angle", axis=(0, 0, 1), mass=1.0, inertia=disc)
    start: dict[str, Any] = {}
    for k in range(3):
        angle, n = 2 * np.pi / 3 * k, k + 1
        foot = 0.6 * np.array([np.cos(angle), np.sin(angle), 0.0])
        b.add_body(f"upper{n}", "revolute", "base", joint=f"drive{n}", xyz=foot, axis=(0, 0, 1), **_rod(0.35))
        b.add_body(
            f"lower{n}", "revolute", f"upper{n}", joint=f"elbow{n}", xyz=(0.35, 0, 0), axis=(0, 0, 1), **_rod(0.35)
        )
        corner = 0.15 * np.array([np.cos(angle), np.sin(angle), 0.0])
        b.close_loop(
            f"pin{n}", f"lower{n}", "platform", xyz_a=(0.35, 0, 0), xyz_b=corner, independent=("x", "y", "angle")
        )
        start |= {f"drive{n}": angle + np.pi - 0.8, f"elbow{n}": 1.6}
    return _closed(b, start)


def differential_ankle() -> LoopRobot:
    """An ankle that two rods move: a universal joint between shank and foot, and two legs beside it, each a universal
    joint on the shank, a drive and a ball on the foot (2-SPU + 1U). q are pitch and roll of the foot; joints rod1 and
    rod2 have the drives."""
    b = RobotBuilder("differential_ankle")
    b.add_link("shank")
    b.add_body("cross", "revolute", "shank", joint="pitch", xyz=(0, 0, -0.4), axis=(0, 1, 0))
    sole: dict[str, Any] = {"mass": 1.2, "com": (0.04, 0.0, -0.05), "inertia": np.diag([2e-3, 4e-3, 4e-3])}
    b.add_body("foot", "revolute", "cross", joint="roll", axis=(1, 0, 0), **sole)
    for n, side in ((1, 1), (2, -1)):
        top, ball = np.array([-0.03, 0.05 * side, -0.08]), np.array([-0.06, 0.05 * side, -0.01])
        along = ball + np.array([0, 0, -0.4]) - top
        length = float(np.linalg.norm(along))
        z = along / length
        x = np.cross([0.0, 1.0, 0.0], z)
        x /= np.linalg.norm(x)
        R = np.column_stack([x, np.cross(z, x), z])
        b.add_body(f"yoke{n}", "revolute", "shank", joint=f"tilt{n}", xyz=top, rotation=R, axis=(1, 0, 0))
        tube: dict[str, Any] = {"mass": 0.25, "com": (0, 0, 0.08), "inertia": np.diag([6e-4, 6e-4, 5e-5])}
        b.add_body(f"tube{n}", "revolute", f"yoke{n}", joint=f"swing{n}", axis=(0, 1, 0), **tube)
        piston: dict[str, Any] = {"mass": 0.1, "com": (0, 0, -0.06), "inertia": np.diag([3e-4, 3e-4, 1e-5])}
        b.add_body(f"piston{n}", "prismatic", f"tube{n}", joint=f"rod{n}", xyz=(0, 0, length), **piston)
        b.close_loop(f"ball{n}", f"piston{n}", "foot", "position", xyz_b=ball, independent=("pitch", "roll"))
    return _closed(b, {})


def knee_linkage_leg(floating_base: bool = False) -> LoopRobot:
    """A leg whose knee a four-bar linkage turns: hip about y, a crank on the thigh, a rod from it to the shank.

    q are hip and crank (behind those of a floating trunk); the motors sit at both. Frame "foot" is the end of the
    shank.
    """
    b = RobotBuilder("knee_linkage_leg")
    b.add_link("trunk", mass=4.0, com=(0.0, 0.0, 0.1), inertia=np.diag([0.05, 0.06, 0.04]))
    turn: dict[str, Any] = {"axis": (0, 1, 0)}
    thigh: dict[str, Any] = {"mass": 0.8, "com": (0, 0, -0.12), "inertia": np.diag([6e-3, 6e-3, 1e-3])}
    b.add_body("thigh", "revolute", "trunk", joint="hip", **turn, **thigh)
    shank: dict[str, Any] = {"mass": 0.3, "com": (0, 0, -0.13), "inertia": np.diag([2e-3, 2e-3, 1e-4])}
    b.add_body("shank", "revolute", "thigh", joint="knee", xyz=(0, 0, -0.3), **turn, **shank)
    crank: dict[str, Any] = {"mass": 0.1, "com": (0.02, 0, 0), "inertia": np.diag([2e-5, 4e-5, 4e-5])}
    b.add_body("crank_link", "revolute", "thigh", joint="crank", xyz=(0, 0, -0.03), armature=2e-3, **turn, **crank)
    rod: dict[str, Any] = {"mass": 0.08, "com": (0, 0, -0.13), "inertia": np.diag([5e-4, 5e-4, 1e-5])}
    b.add_body("rod_link", "revolute", "crank_link", joint="rod", xyz=(0.045, 0, 0), **turn, **rod)
    b.add_frame("foot", "shank", xyz=(0, 0, -0.3))
    b.close_loop(
        "pin", "rod_link", "shank", xyz_a=(0, 0, -0.27), xyz_b=(0.04, 0, 0.01), **turn, independent=("hip", "crank")
    )
    return _closed(b, {"hip": 0.5, "knee": -0.9, "crank": -0.9, "rod": 0.9}, floating_base)


def gough_stewart(angles: bool = False) -> LoopRobot:
    """A Gough-Stewart platform: six legs of a universal joint on the ground, a drive and a ball on the platform.

    The base's joints lie on a circle of 0.5 m, the platform's on one of 0.3 m, 0.6 m above; platform 5 kg, legs 1.3 kg.
    q is the pose of the platform, a free joint; joints leg1 .. leg6 are the drives, from their lengths at home.
    angles: its place by joints x, y, z and its turn by joints yaw, pitch, roll instead, whose rates are the velocities,
    as laws of elastic drives and planners need them; singular at a pitch of a quarter turn.
    """
    b = RobotBuilder("gough_stewart")
    b.add_link("base")
    disc = np.diag([0.1, 0.12, 0.2])
    plate: dict[str, Any] = {"mass": 5.0, "com": (0, 0, 0.02), "inertia": disc}
    if angles:
        _placed(b, plate)
    else:
        b.add_body("platform", "free", "base", joint="platform_joint", **plate)
    for k in range(6):
        foot, ball = _circle(0.5, k, 0.2), _circle(0.3, k, np.pi / 3 - 0.2)
        along = ball + np.array([0, 0, 0.6]) - foot
        length = float(np.linalg.norm(along))
        z = along / length
        x = np.cross([0.0, 1.0, 0.0], z)
        x /= np.linalg.norm(x)
        R, n = np.column_stack([x, np.cross(z, x), z]), k + 1
        b.add_body(f"yoke{n}", "revolute", "base", joint=f"tilt{n}", xyz=foot, rotation=R, axis=(1, 0, 0))
        tube: dict[str, Any] = {"mass": 0.8, "com": (0, 0, 0.2), "inertia": np.diag([1e-2, 1e-2, 1e-3])}
        b.add_body(f"tube{n}", "revolute", f"yoke{n}", joint=f"swing{n}", axis=(0, 1, 0), **tube)
        piston: dict[str, Any] = {"mass": 0.5, "com": (0, 0, -0.2), "inertia": np.diag([1e-2, 1e-2, 5e-4])}
        b.add_body(f"piston{n}", "prismatic", f"tube{n}", joint=f"leg{n}", xyz=(0, 0, length), **piston)
        own = ("x", "y", "z", "yaw", "pitch", "roll") if angles else ()
        b.close_loop(f"ball{n}", f"piston{n}", "platform", "position", xyz_b=ball, independent=own)
    return _closed(b, {"z": 0.6} if angles else {"platform_joint": [1, 0, 0, 0, 0, 0, 0.6]})


def _placed(b: RobotBuilder, plate: dict[str, Any]) -> None:
    """Link platform on joints x, y, z, yaw, pitch and roll from the base."""
    steps = [("x", "prismatic", (1, 0, 0)), ("y", "prismatic", (0, 1, 0)), ("z", "prismatic", (0, 0, 1))]
    steps += [("yaw", "revolute", (0, 0, 1)), ("pitch", "revolute", (0, 1, 0)), ("roll", "revolute", (1, 0, 0))]
    parent = "base"
    for name, kind, axis in steps:
        own = plate if name == "roll" else {}
        b.add_body("platform" if own else f"{name}_slide", kind, parent, joint=name, axis=axis, **own)
        parent = f"{name}_slide"


def _circle(radius: float, k: int, spread: float) -> Array:
    """The k-th of three pairs of points on a circle, each `spread` beside the middle of its pair."""
    angle = 2 * np.pi / 3 * ((k + 1) // 2 if k % 2 else k // 2) + (-spread if k % 2 else spread)
    return np.array([radius * np.cos(angle), radius * np.sin(angle), 0.0])


def _rod(length: float) -> dict[str, Any]:
    """Inertia of a slender rod along x from its frame, 1 kg/m."""
    about = length**3 / 12
    return {"mass": length, "com": (length / 2, 0.0, 0.0), "inertia": np.diag([1e-3 * length, about, about])}


def _closed(builder: RobotBuilder, start: dict[str, Any], floating_base: bool = False) -> LoopRobot:
    robot = builder.build(floating_base=floating_base, start=start)
    assert isinstance(robot, LoopRobot)
    return robot
