"""Sensors of a sampled loop: encoders, differences of what they read through a low-pass, torque sensors."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..types import Array
from .closed_loop import ClosedLoop
from .sensor_effects import SensorEffects
from .torque_sensors import torque_sensors

_SPEEDS = {"q": "v", "theta": "dtheta"}
_STREAM = 1  # of random numbers, apart from those of simulate(noise=)


class Sensors:
    """What a law measures, sample by sample.

    An encoder of step d whose steps lie at z reads z + d floor((x - z) / d + 1/2), z anywhere within a step by `seed`.
    Speeds are w = a w + (1 - a) (reading - last reading) / h, a = exp(-2 pi f h), and begin with those of the robot;
    rates of measured torques likewise.
    function: casadi.Function (t, x, seen, memory, zeros, noise) -> (measured, tau, dtau, memory): x the state of the
    robot, seen the same with noise, zeros (encoders,) [rad], noise (elastic joints,) of the sensors' torques [Nm]. The
    memory holds readings, filtered speeds, torques and their filtered rates.
    """

    def __init__(self, loop: ClosedLoop, effects: SensorEffects, sample_time: float, seed: int = 0) -> None:
        self.loop, self.effects, self.sample_time = loop, effects, sample_time
        self.random = np.random.default_rng([seed, _STREAM])
        sizes = [loop.plant.parts[n].stop - loop.plant.parts[n].start for n in _SPEEDS]
        steps = np.repeat([effects.steps.get(n, 0.0) for n in _SPEEDS], sizes)
        self.zeros = steps * self.random.uniform(-0.5, 0.5, steps.size)
        self.steps = steps
        self.function = self._function()
        self._memory: Any = None

    @property
    def facts(self) -> dict[str, Any]:
        """Where the steps of the encoders lie, for the facts of a Run."""
        return {"encoder_zeros": self.zeros} if self.effects.steps else {}

    def read(self, t: float, x: Array, seen: Array) -> tuple[Any, Any, Any]:
        """(measured state, tau, dtau) of the next sample."""
        if not self.effects.of_sensors:
            none = np.zeros(self.effects.torque_noise.size)
            return (seen, *(self._exact(t, x) if self.loop.measures_torques else (none, none)))
        noise = self.noise(1)[:, 0]
        if self._memory is None:
            self._memory = self.first(t, x, seen, noise)
        *measured, self._memory = self.function(t, x, seen, self._memory, self.zeros, noise)
        return measured[0], measured[1], measured[2]

    def noise(self, samples: int) -> Array:
        """(elastic joints, samples) of noise of the next samples; none is drawn where there is none."""
        spread = self.effects.torque_noise
        if not np.any(spread):
            return np.zeros((spread.size, samples))
        return spread[:, None] * self.random.standard_normal((samples, spread.size)).T

    def first(self, t: float, x: Array, seen: Array, noise: Array) -> Array:
        """Memory from which the first differences are the robot's speeds and rates of torques."""
        zero, h = np.zeros(self.function.size1_in(3)), self.sample_time
        n, m = self.zeros.size, noise.size
        speeds = np.concatenate([np.asarray(seen)[self.loop.plant.parts[v]] for v in _SPEEDS.values()])
        _, tau, _, memory = (y.full().ravel() for y in self.function(t, x, seen, zero, self.zeros, noise))
        rates = self._exact(t, x)[1].full().ravel()
        return np.concatenate([memory[:n] - h * speeds, speeds, tau - h * rates, rates]) if m or n else zero

    def _exact(self, t: Any, x: Any) -> Any:
        return torque_sensors(self.loop.elastic)(x, self.loop.sigma(self.loop.reference_at(t)))

    def _function(self) -> ca.Function:
        loop, effects, h = self.loop, self.effects, self.sample_time
        n, m, parts = self.zeros.size, len(loop.elastic.joints), loop.plant.parts
        t, x, seen = ca.MX.sym("t"), ca.MX.sym("x", loop.plant.size), ca.MX.sym("seen", loop.plant.size)
        memory, zeros, noise = (ca.MX.sym(*a) for a in (("memory", 2 * (n + m)), ("zeros", n), ("noise", m)))
        last, speeds, last_tau, rates = ca.vertsplit(memory, np.cumsum([0, n, n, m, m]).tolist())
        share = effects.share(h)

        read = ca.vertcat(*(seen[parts[name]] for name in _SPEEDS))
        rows = np.flatnonzero(self.steps)
        if rows.size:
            steps = ca.DM(self.steps[rows])
            read[rows] = zeros[rows] + steps * ca.floor((read[rows] - zeros[rows]) / steps + 0.5)
        exact = ca.vertcat(*(seen[parts[name]] for name in _SPEEDS.values()))
        speeds = share * speeds + (1 - share) * (read - last) / h if effects.differenced else exact
        tau, dtau = self._exact(t, x) if loop.measures_torques else (ca.MX(m, 1), ca.MX(m, 1))
        tau = tau + ca.DM(effects.torque_bias) + noise
        if effects.torques_differenced:
            dtau = share * rates + (1 - share) * (tau - last_tau) / h
        measured = ca.MX(seen)
        ends = np.cumsum([0, *(parts[name].stop - parts[name].start for name in _SPEEDS)])
        for k, (position, speed) in enumerate(_SPEEDS.items()):
            measured[parts[position]] = read[ends[k] : ends[k + 1]]
            measured[parts[speed]] = speeds[ends[k] : ends[k + 1]]
        after = ca.vertcat(read, speeds, tau, dtau)
        outputs = [ca.densify(y) for y in (measured, tau, dtau, after)]
        names = ["t", "x", "seen", "memory", "zeros", "noise"], ["measured", "tau", "dtau", "after"]
        return ca.Function("sensors", [t, x, seen, memory, zeros, noise], outputs, *names)
