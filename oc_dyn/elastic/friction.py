"""Viscous damping and smoothed Coulomb friction of motors and links, with time derivatives along a motion."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import casadi as ca

from ..lie.time_derivatives import time_derivatives


def smooth_friction(damping: Any, coulomb: Any, smoothing: Any, speed: Sequence[Any]) -> list[Any]:
    """Derivatives 0.. of damping x + coulomb tanh(x / smoothing), one for each of speed = [x, x', ..], columns."""
    x = [ca.SX.sym("x", damping.size) for _ in speed]
    torque = ca.sparsify(ca.DM(damping) * x[0] + ca.DM(coulomb) * ca.tanh(x[0] / ca.DM(smoothing)))
    rates = time_derivatives(torque, len(speed) - 1, list(pairwise(x)), cse=True)
    return ca.Function("friction", x, rates).call(list(speed))


def links_rub(elastic: Any) -> bool:
    """Whether there is damping or friction on the links' side of any joint."""
    return bool(elastic.link_damping.any() or elastic.link_friction.any())


def link_friction(elastic: Any, speed: Sequence[Any]) -> list[Any]:
    """Derivatives 0.. of the torques (drives,) that friction takes from the links, for each of speed = [speeds of the
    drives (drives,), rates, ..]."""
    return smooth_friction(elastic.link_damping, elastic.link_friction, elastic.link_smoothing, speed)


def motor_friction(elastic: Any, speed: Sequence[Any]) -> list[Any]:
    """Derivatives 0.. of the friction torques (tau_m,), one for each of speed = [motor speeds (tau_m,), rates, ..]."""
    return smooth_friction(elastic.motor_damping, elastic.motor_friction, elastic.friction_smoothing, speed)
