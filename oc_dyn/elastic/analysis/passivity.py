"""Passivity of robot and law at the port (torque on the links from outside, velocity of the links), over frequency."""

from __future__ import annotations

import numpy as np

from ... import validation
from ...errors import ShapeError, SolveError
from ...numbers import are_sane, as_floats
from ...types import Array, Numbers
from ..control import Controller
from ..model import ElasticRobot
from .linear_loop import linear_loop


def passivity_index(
    elastic: ElasticRobot, controller: Controller, at: Numbers, frequencies: Numbers, *, delay: float = 0.0,
    sigma: Numbers | None = None,
) -> Array:  # fmt: skip
    """(frequencies,) smallest eigenvalue of (Y + Y*) / 2 [rad/s per Nm], Y(i w) the links' velocities from torques on
    them, about the rest at the reference `at`; see closed_loop_poles.

    frequencies [rad/s]: above 0. delay [s]: of the law's torques after what is measured, such as 1.5 sample times for a
    sampled law that needs one to compute (its hold is half of one).
    The loop is passive to first order if it is stable and no number is below 0; -x at a frequency says that a damper of
    1 / x Nm s/rad on the links may be needed there: touching something stiff may make it swing.
    Raises SolveError, ShapeError, ModelError.
    """
    w = as_floats("passivity_index: frequencies", frequencies).ravel()
    if not w.size or not are_sane(w) or np.any(w <= 0):
        raise ShapeError("passivity_index: expected frequencies above 0 rad/s, all finite")
    delay = validation.number("passivity_index: delay", delay)
    if delay < 0:
        raise ShapeError(f"passivity_index: delay is {delay:g} s, expected at least 0")
    loop = linear_loop(elastic, controller, at, sigma)
    n, m = len(loop.A), len(loop.Rm)
    E, out = np.vstack([loop.E, np.zeros((m, loop.E.shape[1]))]), np.zeros(w.size)
    still = np.block([[loop.A, np.zeros((n, m))], [loop.Rx, loop.Rm]])
    fed = np.vstack([loop.B @ np.hstack([loop.Lx, loop.Lm]), np.zeros((m, n + m))])
    for k, x in enumerate(w):
        matrix = 1j * x * np.eye(n + m) - still - fed * np.exp(-1j * x * delay)
        try:
            Y = np.linalg.solve(matrix, E)[loop.velocity]
        except np.linalg.LinAlgError:
            raise SolveError(f"passivity_index: the loop swings by itself at {x:g} rad/s") from None
        out[k] = np.linalg.eigvalsh(0.5 * (Y + Y.conj().T))[0]
    return out
