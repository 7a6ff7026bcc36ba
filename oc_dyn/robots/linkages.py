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


def gough_stewart() -> LoopRobot:
    """A Gough-Stewart platform: six legs of a universal joint on the ground, a drive and a ball on the platform.

    The base's joints lie on a circle of 0.5 m, the platform's on one of 0.3 m, 0.6 m above; platform 5 kg, legs 1.3 kg.
    q is the pose of the platform, a free joint; joints leg1 .. leg6 are the drives, from their lengths at home.
    """
    b = RobotBuilder("gough_stewart")
    b.add_link("base")
    disc = np.diag([0.1, 0.12, 0.2])
    b.add_body("platform", "free", "base", joint="platform_joint", mass=5.0, com=(0, 0, 0.02), inertia=disc)
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
        b.close_loop(f"ball{n}", f"piston{n}", "platform", "position", xyz_b=ball)
    return _closed(b, {"platform_joint": [1, 0, 0, 0, 0, 0, 0.6]})


def _circle(radius: float, k: int, spread: float) -> Array:
    """The k-th of three pairs of points on a circle, each `spread` beside the middle of its pair."""
    angle = 2 * np.pi / 3 * ((k + 1) // 2 if k % 2 else k // 2) + (-spread if k % 2 else spread)
    return np.array([radius * np.cos(angle), radius * np.sin(angle), 0.0])


def _rod(length: float) -> dict[str, Any]:
    """Inertia of a slender rod along x from its frame, 1 kg/m."""
    about = length**3 / 12
    return {"mass": length, "com": (length / 2, 0.0, 0.0), "inertia": np.diag([1e-3 * length, about, about])}


def _closed(builder: RobotBuilder, start: dict[str, Any]) -> LoopRobot:
    robot = builder.build(start=start)
    assert isinstance(robot, LoopRobot)
    return robot
