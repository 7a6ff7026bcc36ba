"""What a law meets in a laboratory: delay, encoders of finite steps, speeds from their differences, torque sensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, pi
from typing import Any

import numpy as np

from .. import validation
from ..errors import ModelError, ShapeError
from ..types import Array, Numbers
from .model import ElasticRobot

_MOST_BITS, _MOST_DELAY = 60, 1_000_000
_ENCODERS = ("q", "theta")


@dataclass(frozen=True, eq=False)
class SensorEffects:
    """Effects of sampling and of sensors, checked; see simulate.

    delay [samples]; steps {"q", "theta": step of the encoders [rad]}, {} for exact ones; velocity_filter [Hz] or None;
    torque_noise, torque_bias (elastic joints,) [Nm]. names: the arguments that have an effect.
    """

    delay: int
    steps: dict[str, float]
    velocity_filter: float | None
    torque_noise: Array
    torque_bias: Array
    names: tuple[str, ...]

    @property
    def differenced(self) -> bool:
        """Whether speeds are differences of positions."""
        return bool(self.steps) or self.velocity_filter is not None

    @property
    def of_sensors(self) -> bool:
        """Whether anything is measured otherwise than it is."""
        return any(name != "delay" for name in self.names)

    @property
    def torques_differenced(self) -> bool:
        """Whether the rates of measured torques are differences."""
        return self.differenced or bool(np.any(self.torque_noise))

    def share(self, sample_time: float) -> float:
        """Share of its last output in that of the low-pass, a sample later."""
        return 0.0 if self.velocity_filter is None else float(np.exp(-2 * pi * self.velocity_filter * sample_time))


def sensor_effects(
    where: str, elastic: ElasticRobot, delay: int = 0, encoder_bits: int | Mapping[str, int] | None = None,
    velocity_filter: float | None = None, torque_noise: Numbers = 0.0, torque_bias: Numbers = 0.0,
) -> SensorEffects:  # fmt: skip
    """SensorEffects on the real robot; arguments and errors as of simulate. where: what messages begin with."""
    joints = len(elastic.joints)
    noise, bias = (
        validation.numbers(f"{where}: {name}", x, joints)
        for name, x in (("torque_noise", torque_noise), ("torque_bias", torque_bias))
    )
    for name, x in (("torque_noise", noise), ("torque_bias", bias)):
        if not np.all(np.isfinite(x)) or (name == "torque_noise" and np.any(x < 0)):
            more = " of at least 0" if name == "torque_noise" else ""
            raise ShapeError(f"{where}: {name} is {x.tolist()}, expected finite numbers{more}")
    delay = validation.count(f"{where}: delay (whole samples)", delay, 0, _MOST_DELAY)
    steps = _steps(where, encoder_bits)
    given = {
        "delay": delay,
        "encoder_bits": steps,
        "velocity_filter": velocity_filter is not None,
        "torque_noise": np.any(noise),
        "torque_bias": np.any(bias),
    }
    out = SensorEffects(
        delay=delay,
        steps=steps,
        velocity_filter=_filter(where, velocity_filter),
        torque_noise=noise,
        torque_bias=bias,
        names=tuple(name for name, x in given.items() if x),
    )
    _refuse(where, elastic, out)
    return out


def _steps(where: str, bits: Any) -> dict[str, float]:
    """{"q", "theta": step [rad]}."""
    if bits is None:
        return {}
    if not isinstance(bits, Mapping):
        bits = dict.fromkeys(_ENCODERS, bits)
    for name in bits:
        validation.one_of("part of the state with encoders", name, _ENCODERS)
    return {
        name: 2 * pi / 2 ** validation.count(f"{where}: encoder_bits of {name}", x, 1, _MOST_BITS)
        for name, x in bits.items()
    }


def _filter(where: str, hz: Any) -> float | None:
    if hz is None or (isinstance(hz, float) and hz == inf):
        return hz
    return validation.number(f"{where}: velocity_filter", hz, above=0)


def _refuse(where: str, elastic: ElasticRobot, effects: SensorEffects) -> None:
    """ModelError for robots whose coordinates encoders do not read, or whose speeds are no differences."""
    if effects.differenced and elastic.nq != elastic.nv:
        problem = f"{where}: speeds from differences are for robots with joints of one coordinate alone"
        raise ModelError(elastic.name, [f"{problem}; give noise= instead of encoder_bits and velocity_filter"])
    linear = [] if elastic.drives else [j.name for j in elastic.links.joints if j.kind == "prismatic"]
    if effects.steps and linear:
        problem = f"{where}: encoder_bits are of angles, and {', '.join(linear)} move along lines; give noise= of q"
        raise ModelError(elastic.name, [problem])
