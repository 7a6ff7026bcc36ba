"""The Panda (FER) of Franka Emika: seven revolute joints on a fixed base, without hand."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ModelWarning
from ..model.builder import RobotBuilder
from ..model.collision import capsule_between
from ..model.robot import Robot
from ..types import Array
from ..validation import one_of

_RIGHT = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # a quarter turn about x, exactly
_LEFT = _RIGHT.T

# resting pose of each joint in the link before it: rotation, xyz [m]
GEOMETRY = (
    (np.eye(3), (0.0, 0.0, 0.333)),
    (_LEFT, (0.0, 0.0, 0.0)),
    (_RIGHT, (0.0, -0.316, 0.0)),
    (_RIGHT, (0.0825, 0.0, 0.0)),
    (_LEFT, (-0.0825, 0.384, 0.0)),
    (_RIGHT, (0.0, 0.0, 0.0)),
    (_RIGHT, (0.088, 0.0, 0.0)),
)
FLANGE = (0.0, 0.0, 0.107)  # in the last link [m]

# capsules in frames of the links: ends of the segment [m], radius [m]. Each is the one of about the least volume around
# the vendor's hulls of a link (franka_description, meshes/collision), of the Panda and of the FR3 together, with ends
# rounded to mm and the radius rounded up: all of a link is in its capsule, the flange without what is mounted on it.
CAPSULES = (
    ((-0.056, 0.0, 0.018), (0.0, 0.0, 0.052), 0.107),
    ((0.0, 0.0, -0.14), (0.0, -0.054, 0.0), 0.078),
    ((0.0, 0.0, 0.054), (0.0, -0.142, 0.0), 0.078),
    ((0.0, 0.0, -0.083), (0.084, 0.042, 0.0), 0.071),
    ((0.0, 0.0, 0.043), (-0.082, 0.084, 0.0), 0.071),
    ((0.0, 0.012, -0.244), (0.0, 0.065, 0.002), 0.069),
    ((0.023, 0.007, 0.002), (0.087, 0.008, 0.0), 0.077),
    ((-0.005, -0.005, 0.072), (0.032, 0.032, 0.082), 0.051),
)

# mass [kg], centre of mass [m], tensor about it [kg m^2]: xx, xy, xz, yy, yz, zz; all in the link's frame
_IDENTIFIED = (
    (4.970684, (3.875e-3, 2.081e-3, -0.1750), (0.70337, -1.39e-4, 6.772e-3, 0.70661, 1.9169e-2, 9.117e-3)),
    (0.646926, (-3.141e-3, -2.872e-2, 3.495e-3), (7.962e-3, -3.925e-3, 1.0254e-2, 2.811e-2, 7.04e-4, 2.5995e-2)),
    (3.228604, (2.7518e-2, 3.9252e-2, -6.6502e-2), (3.7242e-2, -4.761e-3, -1.1396e-2, 3.6155e-2, -1.2805e-2, 1.083e-2)),
    (3.587895, (-5.317e-2, 0.104419, 2.7454e-2), (2.5853e-2, 7.796e-3, -1.332e-3, 1.9552e-2, 8.641e-3, 2.8323e-2)),
    (1.225946, (-1.1953e-2, 4.1065e-2, -3.8437e-2), (3.5549e-2, -2.117e-3, -4.037e-3, 2.9474e-2, 2.29e-4, 8.627e-3)),
    (1.666555, (6.0149e-2, -1.4117e-2, -1.0517e-2), (1.964e-3, 1.09e-4, -1.158e-3, 4.354e-3, 3.41e-4, 5.433e-3)),
    (0.735522, (1.0517e-2, -4.252e-3, 6.1597e-2), (1.2516e-2, -4.28e-4, -1.196e-3, 1.0027e-2, -7.41e-4, 4.815e-3)),
)

# the same, of the vendor's description
# fmt: off
_VENDOR = (
    (2.7907, (0.00033, -0.02204, -0.04762),
     (0.01564782655, 5.31236e-06, -3.676721e-05, 0.01439883526, -0.00248480843, 0.00500443991)),
    (2.542, (0.00038, -0.09211, 0.01908),
     (0.01662427728, 3.086077e-05, 8.3594e-06, 0.00462501261, 0.0035589983, 0.01545124526)),
    (2.2513, (0.05152, 0.01696, -0.02971),
     (0.00631741992, 0.00097309955, 0.00292525834, 0.00866285493, 0.00093469224, 0.00657804051)),
    (2.2037, (-0.05113, 0.05825, 0.01698),
     (0.00784585566, -0.00339591957, 0.00158704074, 0.00649543136, -0.00181477884, 0.01003079917)),
    (2.2855, (-5e-05, 0.0373, -0.0928),
     (0.02297014781, -9.49345e-06, -2.063156e-05, 0.02095060919, 0.00382345782, 0.00430606551)),
    (1.353, (0.06572, -0.00371, 0.00153),
     (0.00087964522, -0.00021487814, -0.00011911662, 0.00277796968, 1.274322e-05, 0.00286701969)),
    (0.35973, (0.00089, -0.00044, 0.05491),
     (0.00019541063, 1.65231e-06, 1.48826e-06, 0.00019210361, -1.31132e-06, 0.00017936256)),
)
# fmt: on

_LIMITS = {
    "lower": (-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973),
    "upper": (2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973),
    "velocity": (2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61),
    "acceleration": (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0),
    "jerk": (7500.0, 3750.0, 5000.0, 6250.0, 7500.0, 10000.0, 10000.0),
    "effort": (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0),
    "effort_rate": (1000.0,) * 7,
}


def panda(inertias: str = "identified") -> Robot:
    """The Panda arm; q = 0 is the vendor's zero.

    Joints panda_joint1 .. 7; links panda_link0 (base) .. panda_link7; frame panda_link8 is the flange, 0.107 m along z
    of panda_link7. Every link has a capsule around it. No friction, no rotor inertia: what the identification found of
    the latter is in the links.
    inertias: "identified", or "vendor": those of the vendor's description, of lighter links; its link 4 has
    moments of inertia that no rigid body has, of which there is no ModelWarning.
    Source: geometry and limits, the vendor's published robot specification of the Panda (FER); masses, centres of mass
    and tensors, Gaz, Cognetti, Oliva, Robuffo Giordano, De Luca: Dynamic Identification of the Franka Emika Panda Robot
    With Retrieval of Feasible Parameters Using Penalty-Based Optimization, IEEE RA-L 4(4), 2019; those of the vendor,
    its franka_description. Tensors are about the centre of mass.
    """
    one_of("inertias of the Panda", inertias, ("identified", "vendor"))
    if inertias == "identified":
        return franka_arm("panda", _IDENTIFIED, _LIMITS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return franka_arm("panda", _VENDOR, _LIMITS)


def panda_limits() -> dict[str, Array]:
    """Limits of the Panda, {kind: (7,)}: lower, upper [rad], velocity, acceleration, jerk, effort [Nm], effort_rate."""
    return {kind: np.array(values) for kind, values in _LIMITS.items()}


def franka_arm(name: str, inertias: Sequence[Any], limits: Mapping[str, Sequence[float]]) -> Robot:
    """A robot of this geometry: inertias of the seven links (mass, com, six numbers), limits {kind: seven numbers}."""
    b = RobotBuilder(name)
    b.add_link(f"{name}_link0")
    for i, ((R, xyz), (mass, com, tensor)) in enumerate(zip(GEOMETRY, inertias, strict=True), start=1):
        b.add_body(
            f"{name}_link{i}",
            "revolute",
            f"{name}_link{i - 1}",
            joint=f"{name}_joint{i}",
            mass=mass,
            com=com,
            inertia=tensor,
            rotation=R,
            xyz=xyz,
            **{kind: values[i - 1] for kind, values in limits.items()},
        )
    for i, ends in enumerate(CAPSULES):
        b.add_collision(f"{name}_link{i}", **capsule_between(*ends))
    b.let_touch(f"{name}_link5", f"{name}_link7")  # as the vendor's hulls do, within its limits of joint6
    b.add_frame(f"{name}_link8", f"{name}_link7", xyz=FLANGE)
    return b.build()
