"""What a robot is made of as a variable: lengths, masses and drives that its dynamics can be differentiated by."""

from .parameters import (
    Parameter,
    armature,
    changed,
    damping,
    displacement,
    from_parameters,
    gear_ratio,
    inertial_parameter,
    joint_axis,
    joint_rotation,
    link_length,
    mass,
    pitch,
    stiffness,
)

__all__ = [
    "Parameter",
    "armature",
    "changed",
    "damping",
    "displacement",
    "from_parameters",
    "gear_ratio",
    "inertial_parameter",
    "joint_axis",
    "joint_rotation",
    "link_length",
    "mass",
    "pitch",
    "stiffness",
]
