"""Design parameters of drives: rotors, gears, damping, and springs between the links of a joint."""

from __future__ import annotations

import numpy as np

from ..errors import ModelError, ShapeError
from ..model.robot import Joint, Robot
from ..numbers import as_floats
from .changes import Changes, described

_WITHOUT = ("fixed", "planar", "free")  # joints that no drive moves
_SPRUNG = ("revolute", "continuous", "prismatic", "helical")


def of_armature(robot: Robot, joint: str) -> Changes:
    """Changes by the inertia of a rotor."""
    return Changes(armatures={(_driven(robot, joint).name, 1): 1.0})


def of_gear(robot: Robot, joint: str, rotor_inertia: float, ratio: float) -> Changes:
    """Changes by a ratio: the armature gains rotor_inertia ((ratio + p)^2 - ratio^2)."""
    j, own = _driven(robot, joint), rotor_inertia * ratio**2
    if own > j.armature * (1 + 1e-9) + 1e-15:
        problem = f"joint {joint}: a rotor of {rotor_inertia:g} behind a gear of {ratio:g} is an armature of {own:g}, "
        raise ModelError(robot.name, [problem + f"above that of the joint, {j.armature:g}; build it with both"])
    return Changes(armatures={(joint, 1): 2.0 * rotor_inertia * ratio, (joint, 2): rotor_inertia})


def of_damping(robot: Robot, joint: str) -> Changes:
    """Changes by viscous damping."""
    return Changes(dampings={_driven(robot, joint).name: 1.0})


def of_spring(robot: Robot, joint: str, reference: float) -> Changes:
    """Changes by the stiffness of a spring."""
    kind = described(robot, joint).kind
    if kind not in _SPRUNG:
        raise ModelError(robot.name, [f"joint {joint} is {kind}: springs are at joints of one coordinate"])
    return Changes(springs={(joint, reference): 1.0})


def driven(joint: Joint, armature: float, damping: float, robot: str) -> None:
    """Raise ModelError where a joint's armature or damping would be negative."""
    for what, x in (("armature", armature), ("damping", damping)):
        if not np.isfinite(x) or x < 0:
            raise ModelError(robot, [f"joint {joint.name}: its {what} would be {x:g}, expected at least 0"])


def checked(name: str, x: float, least: float = -np.inf) -> float:
    """A finite number of at least `least`; ShapeError for anything else."""
    value = as_floats(name, x).reshape(-1)
    if value.size != 1 or not np.isfinite(value[0]) or value[0] < least:
        bound = "" if least == -np.inf else f" of at least {least:g}"
        raise ShapeError(f"{name}: got {x!r}, expected a finite number{bound}")
    return float(value[0])


def _driven(robot: Robot, name: str) -> Joint:
    j = described(robot, name)
    if j.kind in _WITHOUT:
        raise ModelError(robot.name, [f"joint {name} is {j.kind}: it has no drive"])
    return j
