"""What a robot is made of as a variable: lengths, angles and masses that its dynamics can be differentiated by."""

from .parameters import (
    Parameter,
    changed,
    displacement,
    from_parameters,
    inertial_parameter,
    joint_axis,
    joint_rotation,
    link_length,
    mass,
    pitch,
)

__all__ = [
    "Parameter",
    "changed",
    "displacement",
    "from_parameters",
    "inertial_parameter",
    "joint_axis",
    "joint_rotation",
    "link_length",
    "mass",
    "pitch",
]
