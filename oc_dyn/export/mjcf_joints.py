"""Joints as MuJoCo has them: hinges, slides, balls, free joints; others as several of these in one body."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.robot import Joint, Mimic

_X, _Y, _Z = np.eye(3)
# (suffix of the name, type, direction in the joint's own frame, None for its axis as written), from the parent on
FIRST: dict[str, tuple[tuple[str, str, Any], ...]] = {
    "revolute": (("", "hinge", None),),
    "continuous": (("", "hinge", None),),
    "prismatic": (("", "slide", None),),
    "helical": (("", "hinge", None), (".slide", "slide", None)),
    "spherical": (("", "ball", None),),
    "free": (("", "free", None),),
    "planar": ((".x", "slide", _X), (".y", "slide", _Y), (".angle", "hinge", _Z)),
    "cylindrical": ((".angle", "hinge", None), (".distance", "slide", None)),
    "universal": ((".1", "hinge", None), (".2", "hinge", _X)),
}


def axes_of(joint: Joint) -> tuple[tuple[str, str, Any], ...]:
    """The simple joints of a joint."""
    return FIRST[joint.kind]


def equality_of(joint: Joint) -> list[tuple[str, str, float, float]]:
    """[(joint, the one that it follows, offset, multiplier)] of a joint that follows another one, or is helical."""
    rule, out = joint.mimic, []
    if rule is not None:
        out.append((joint.name, rule.joint, rule.offset, rule.multiplier))
    if joint.kind == "helical":
        rule = rule or Mimic(joint.name)
        out.append((f"{joint.name}.slide", rule.joint, joint.pitch * rule.offset, joint.pitch * rule.multiplier))
    return out
