"""A humanoid of simple bodies, for scaling studies: the number and kind of its joints are those of real ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..model.builder import RobotBuilder
from ..model.collision import capsule_between
from ..model.robot import Robot

_X, _Y, _Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
_LEG = ((_Z, 0.0), (_X, 0.0), (_Y, 0.0), (_Y, -0.4), (_Y, -0.4), (_X, 0.0))  # axis, z from the link above [m]
_ARM = ((_Y, 0.0), (_X, 0.0), (_Z, 0.0), (_Y, -0.3), (_Z, -0.3), (_X, 0.0))

# capsules in frames of the links: ends of the segment [m], radius [m], name; as made up as the bodies, thin enough that
# arms hang beside the legs
_TRUNK = {
    "pelvis": (((0.0, -0.05, 0.05), (0.0, 0.05, 0.05), 0.08, "pelvis"),),
    "chest": (((0.0, 0.0, 0.08), (0.0, 0.0, 0.32), 0.13, "chest"), ((0.0, 0.0, 0.5), (0.0, 0.0, 0.52), 0.1, "head")),
}
_LIMBS = {  # number of the link in its limb
    "leg": {
        3: ((0.0, 0.0, 0.0), (0.0, 0.0, -0.4), 0.055, "thigh"),
        4: ((0.0, 0.0, 0.0), (0.0, 0.0, -0.4), 0.045, "shank"),
        6: ((-0.05, 0.0, -0.04), (0.13, 0.0, -0.04), 0.04, "foot"),
    },
    "arm": {
        3: ((0.0, 0.0, 0.0), (0.0, 0.0, -0.3), 0.05, "upper_arm"),
        4: ((0.0, 0.0, 0.0), (0.0, 0.0, -0.3), 0.035, "forearm"),
        6: ((0.0, 0.0, -0.03), (0.0, 0.0, -0.12), 0.035, "hand"),
    },
}


def humanoid(floating_base: bool = False) -> Robot:
    """Humanoid with 25 hinges: one at the waist, six in each leg and arm; 76.5 kg without the pelvis that stands still.

    floating_base=True lets the pelvis move. Hips, shoulders, ankles and wrists have axes that meet, as real ones do.
    Bodies are made up, generic enough that nothing cancels: limbs of 1.5 kg a link, a chest of 40.5 kg.
    """
    b = RobotBuilder("humanoid")
    b.add_link("pelvis", mass=10.0, com=(0.01, 0.0, 0.05), inertia=np.diag([0.1, 0.09, 0.08]))
    chest: dict[str, Any] = {"mass": 40.5, "com": (0.01, 0.0, 0.15), "inertia": np.diag([0.9, 0.8, 0.4])}
    b.add_body("chest", "revolute", "pelvis", axis=_Z, xyz=(0, 0, 0.2), **chest)
    for link, capsules in _TRUNK.items():
        for start, end, radius, part in capsules:
            b.add_collision(link, name=part, **capsule_between(start, end, radius))
    for side, sign in (("left", 1), ("right", -1)):
        _limb(b, f"{side}_leg", "pelvis", (0, 0.1 * sign, 0), _LEG)
        _limb(b, f"{side}_arm", "chest", (0, 0.2 * sign, 0.3), _ARM)
        for limb, links in _LIMBS.items():
            for k, (start, end, radius, part) in links.items():
                capsule = capsule_between(start, end, radius)
                b.add_collision(f"{side}_{limb}{k}", name=f"{side}_{part}", **capsule)
    return b.build(floating_base=floating_base)


def _limb(b: RobotBuilder, name: str, parent: str, start: Sequence[float], joints: Sequence[tuple[Any, float]]) -> None:
    link: dict[str, Any] = {"mass": 1.5, "com": (0.01, 0.02, -0.1), "inertia": np.diag([0.02, 0.021, 0.01])}
    for k, (axis, z) in enumerate(joints, 1):
        b.add_body(f"{name}{k}", "revolute", parent, axis=axis, xyz=start if k == 1 else (0, 0, z), **link)
        parent = f"{name}{k}"
