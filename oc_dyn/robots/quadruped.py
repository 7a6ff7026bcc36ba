"""A quadruped of the size and build of HyQ."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.builder import RobotBuilder
from ..model.collision import capsule_between
from ..model.robot import Robot

# capsules in frames of the links: ends of the segment [m], radius [m]. HyQ's publication gives its size, 1 m long and
# 0.5 m wide with its legs, and lengths of its links, but no hulls; radii are ours. The lowest point of the straight leg
# is the frame of the foot.
_TRUNK = ((-0.37, 0.0, 0.04), (0.37, 0.0, 0.04), 0.12)
_LEG = {
    "hip": ((0.0, 0.0, -0.08), (0.0, 0.0, 0.0), 0.05),
    "thigh": ((0.0, 0.0, 0.0), (0.0, 0.0, -0.35), 0.05),
    "shank": ((0.0, 0.0, 0.0), (0.0, 0.0, -0.3), 0.03),
}
_LEGS = {"LF": (1, 1), "RF": (1, -1), "LH": (-1, 1), "RH": (-1, -1)}  # signs of x and y of the hip


def quadruped() -> Robot:
    """A trunk on a free joint and four legs of three joints; q = 0 has the legs straight down.

    Legs LF, RF, LH, RH (left and right, front and hind); joints <leg>_haa about x, <leg>_hfe and <leg>_kfe about -y;
    frames <leg>_foot. x ahead, z up. Trunk 50 kg; hip 3 kg, thigh 3.5 kg and 0.35 m, shank 0.9 kg and 0.33 m. Limits:
    14 rad/s, 150 Nm. Source: build and size of HyQ (Semini et al. 2011); masses, inertias, limits and
    capsules are ours.
    """
    b = RobotBuilder("quadruped")
    b.add_link("trunk", mass=50.0, com=(0.0, 0.0, 0.04), inertia=np.diag([1.5, 8.0, 9.0]))
    b.add_collision("trunk", **capsule_between(*_TRUNK))
    limits = {"velocity": 14.0, "effort": 150.0}
    for leg, (x, y) in _LEGS.items():
        hip: dict[str, Any] = {"xyz": (0.37 * x, 0.2 * y, 0.0), "axis": (1, 0, 0), "lower": -1.0, "upper": 1.0}
        hip |= {"mass": 3.0, "com": (0, 0, -0.04), "inertia": np.diag([0.006, 0.006, 0.006])}
        b.add_body(f"{leg}_hip", "revolute", "trunk", joint=f"{leg}_haa", **hip, **limits)
        low, high = sorted((-0.8 * x, 1.6 * x))
        thigh: dict[str, Any] = {"xyz": (0, 0, -0.08), "axis": (0, -1, 0), "lower": low, "upper": high}
        thigh |= {"mass": 3.5, "com": (0, 0, -0.15), "inertia": np.diag([0.04, 0.04, 0.005])}
        b.add_body(f"{leg}_thigh", "revolute", f"{leg}_hip", joint=f"{leg}_hfe", **thigh, **limits)
        low, high = sorted((-2.5 * x, -0.3 * x))  # knees bend forward in the hind legs, backward in the front legs
        shank: dict[str, Any] = {"xyz": (0, 0, -0.35), "axis": (0, -1, 0), "lower": low, "upper": high}
        shank |= {"mass": 0.9, "com": (0, 0, -0.13), "inertia": np.diag([0.012, 0.012, 0.001])}
        b.add_body(f"{leg}_shank", "revolute", f"{leg}_thigh", joint=f"{leg}_kfe", **shank, **limits)
        for part, ends in _LEG.items():
            b.add_collision(f"{leg}_{part}", **capsule_between(*ends))
        b.add_frame(f"{leg}_foot", f"{leg}_shank", xyz=(0, 0, -0.33))
    return b.build(floating_base=True)
