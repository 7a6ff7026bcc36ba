"""Elastic robots on floating bases: contacts, where they are flat, stance, flight, and errors where they are not."""

from .contacts import contact_flat_map, contact_forces
from .errors_along import MotionError, motion_error
from .flatness import Flatness, flatness
from .phases import ContactRun, Phase, simulate_contacts
from .stance import stance_rates

__all__ = [
    "ContactRun",
    "Flatness",
    "MotionError",
    "Phase",
    "contact_flat_map",
    "contact_forces",
    "flatness",
    "motion_error",
    "simulate_contacts",
    "stance_rates",
]
