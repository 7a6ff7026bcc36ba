"""Poles of robot and law about a position of rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Numbers
from ..control import Controller
from ..model import ElasticRobot
from .linear_loop import linear_loop


def closed_loop_poles(
    elastic: ElasticRobot, controller: Controller, at: Numbers, *, sigma: Numbers | None = None,
) -> np.ndarray[Any, Any]:  # fmt: skip
    """(states,) complex poles [1/s] of robot and law about the rest at the reference `at` (q,), slowest first.

    elastic: the real robot, from which the law's model may differ. sigma: stiffness of the reference, where it varies.
    Derivatives are exact (AD); friction counts with its slope at rest. Raises SolveError where nothing rests nearby,
    ShapeError, ModelError.
    """
    poles = np.linalg.eigvals(linear_loop(elastic, controller, at, sigma).closed()).astype(complex)
    return poles[np.lexsort((poles.imag, -poles.real))]
