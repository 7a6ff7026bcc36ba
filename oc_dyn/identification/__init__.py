"""Identification of inertial parameters from measured motions and torques.

exciting_motion: a periodic motion within the limits that tells the base parameters apart well.
identify: base parameters with confidence intervals, and full parameters that a body can have, from samples.
"""

from .estimate import Identification, identify
from .excitation import PeriodicMotion, condition, exciting_motion
from .physical import is_physical, nearest_physical, pseudo_inertia

__all__ = [
    "Identification",
    "PeriodicMotion",
    "condition",
    "exciting_motion",
    "identify",
    "is_physical",
    "nearest_physical",
    "pseudo_inertia",
]
