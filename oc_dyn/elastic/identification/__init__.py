"""Identification of elastic robots: stiffness, motor inertia, friction and transmission from recordings.

identify_elastic: parameters with confidence intervals from Recordings; Recording: what sensors gave; recording: that of
a simulated Run, as sensors would give it; exciting_motion: a motion that tells the parameters apart.
"""

from .estimate import identify_elastic
from .excitation import exciting_motion
from .recording import Recording, recording
from .result import ElasticIdentification, Prediction

__all__ = [
    "ElasticIdentification",
    "Prediction",
    "Recording",
    "exciting_motion",
    "identify_elastic",
    "recording",
]
