"""Paths in collision are refused: where on the path, and by which pair of shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import LimitError
from .obstacles import Obstacles, along, told_of
from .path_motion import PathMotion

_LOOKS = 401  # places of a path
_CLEARLY = 1e-3  # [m] that is refused at once; less is for the proof to tell
_ADVICE = "move the path, or leave the pair out of the scene"


def refuse_hit(around: Obstacles, on: Any) -> None:
    """Raise LimitError for a curve whose pairs are clearly too near; of what moves its start counts alone."""
    s = np.union1d(np.linspace(0, 1, _LOOKS), on.knots)
    missing = around.lacking(on.at(s, 1)[0])
    missing[1:, around.timed] = -np.inf
    k = int(np.argmax(missing.max(axis=0)))
    at = int(np.argmax(missing[:, k]))
    if missing[at, k] > _CLEARLY:
        d = float(around.wanted[k] - missing[at, k])
        raise LimitError(f"plan_along_path: at s = {s[at]:.4g} {around.pair(k, d)}; {_ADVICE}")


def refuse_near(around: Obstacles, motion: PathMotion) -> None:
    """Raise LimitError for a motion that is not proven to keep the clearance; else its info tells how far it does."""
    seen = along(around, motion)
    if seen.short.any():
        k = int(np.argmax(seen.missing))
        s = float(motion.shares(np.array([seen.time[k]]))[0, 0])
        d = float(around.wanted[k] - seen.missing[k])
        raise LimitError(f"plan_along_path: at s = {s:.4g} {around.pair(k, d)}; {_ADVICE}")
    motion.info |= told_of(seen)
