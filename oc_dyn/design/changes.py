"""What a design parameter changes of a robot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ModelError, UnknownName
from ..model.robot import Joint, Robot


@dataclass(frozen=True)
class Changes:
    """What a parameter changes, from p = 0 to p.

    moves {joint: twist (6,)}: the joint and all that it carries is displaced by exp(p twist), in the joint's frame.
    tilts {joint: (3,)}: its axis turns by p times this rotation vector, given in the joint's frame, but nothing that
    rests. pitches {joint: rate}. inertias {(link, k): (10,)}: the link's parameters gain p^k times these. armatures
    {(joint, k): gain}: likewise. dampings {joint: rate}. springs {(joint, reference): rate}: a spring of this stiffness
    between the links of the joint, at rest where its coordinate is the reference.
    """

    moves: dict[str, Any] = field(default_factory=dict)
    tilts: dict[str, Any] = field(default_factory=dict)
    pitches: dict[str, Any] = field(default_factory=dict)
    inertias: dict[tuple[str, int], Any] = field(default_factory=dict)

    armatures: dict[tuple[str, int], float] = field(default_factory=dict)
    dampings: dict[str, float] = field(default_factory=dict)
    springs: dict[tuple[str, float], float] = field(default_factory=dict)

    def add(self, other: Changes, factor: float) -> None:
        """Add `other`, whose parameter is `factor` times this one's."""
        for name in ("moves", "tilts", "pitches", "dampings", "springs"):
            for key, x in getattr(other, name).items():
                getattr(self, name)[key] = getattr(self, name).get(key, 0.0) + factor * np.asarray(x, float)
        gains: Any = ((self.inertias, other.inertias), (self.armatures, other.armatures))
        for own, others in gains:
            for place, x in others.items():
                own[place] = own.get(place, 0.0) + factor ** place[1] * np.asarray(x, float)


def described(robot: Robot, name: str) -> Joint:
    """The joint of this name as described, fixed ones too."""
    known = {j.name: j for j in robot.description[1]}
    if name not in known:
        raise UnknownName(f"joint of {robot.name}", name, known)
    if known[name].kind != "fixed" and all(b.joint.name != name for b in robot.bodies):
        raise ModelError(robot.name, [f"joint {name} is locked: a design parameter of it needs the free robot"])
    return known[name]
