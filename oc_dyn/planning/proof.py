"""The certificate of a motion, finer where it only just keeps what is asked."""

from __future__ import annotations

from typing import Any

from ..scene.scene import Scene
from .certificate import TOLERANCE, certify
from .clearance import Clearance

TOUCHING = 1e-6  # [m] that starts and goals may be nearer than wanted, as in Report.ok
_FINER = 1e-7  # [m]


def proven(motion: Any, scene: Scene, clearance: float = 0.0) -> Clearance:
    """As certify; again to a finer tolerance where what is met is within TOUCHING of what is asked."""
    found = certify(motion, scene, clearance)
    if clearance - 2 * TOLERANCE < found.certified < clearance and found.met > clearance - TOUCHING:
        return certify(motion, scene, clearance, _FINER)
    return found
