"""What a motor's windings and supply allow: current, voltage and a torque-speed curve, as limits of plans.

A motor in steady state, its inductance neglected: torque k_t i, voltage R i + k_e speed; in SI units k_e = k_t. At full
voltage the torque falls with the speed along a straight line, from k_t U / R at rest to nothing at U / k_e.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from .. import validation
from ..errors import ModelError, ShapeError
from ..numbers import as_floats, shortened
from ..types import Array, Numbers
from .model import ElasticRobot

SIDES = ("rotor", "joint")


@dataclass(frozen=True, eq=False)
class MotorElectrics:
    """Electrical data of the motors of an elastic robot: numbers, or one per motor (row of tau_m).

    torque_constant: k_t [Nm/A]. resistance: of the windings [ohm]. voltage: largest that the supply gives [V]. current:
    largest [A]. back_emf: k_e [V s/rad], by default the torque constant. torque_speed: points (speed [rad/s], largest
    torque [Nm]) of a motor's curve, from rest on, falling and bulging outwards: polygons that straight lines join; or
    one such list per motor. The last speed is the largest. Braking, torque against the motion, is bounded by the torque
    at rest.
    side: where all of this is stated: "rotor", before the gear, as in data sheets, which the robot's `gear` turns into
    joint-side torques and speeds; "joint", behind it. Limits that are None are none.
    Raises ShapeError, naming what is wrong, for numbers that are not positive and curves that do not fit.
    """

    torque_constant: Numbers
    resistance: Numbers = 0.0
    voltage: Numbers | None = None
    current: Numbers | None = None
    back_emf: Numbers | None = None
    torque_speed: Sequence[Any] | None = None
    side: str = "rotor"

    def __post_init__(self) -> None:
        validation.one_of("side of MotorElectrics", self.side, SIDES)
        for name in ("torque_constant", "resistance", "voltage", "current", "back_emf"):
            given = getattr(self, name)
            if given is None:
                continue
            value = as_floats(f"MotorElectrics: {name}", given).ravel()
            zero = name == "resistance"
            if not value.size or not np.all(np.isfinite(value) & ((value >= 0) if zero else (value > 0))):
                least = "of at least 0" if zero else "above 0"
                raise ShapeError(f"MotorElectrics: {name} is {shortened(value.tolist())}, expected numbers {least}")
        if self.torque_speed is not None:
            object.__setattr__(self, "torque_speed", _curves(self.torque_speed))

    def limits(self, elastic: ElasticRobot) -> dict[str, Array]:
        """{"current" [A], "voltage" [V], "torque_speed" (shares, one a segment and motor): limit of each motor}."""
        found = {n: self._each(n, elastic) for n in ("current", "voltage") if getattr(self, n) is not None}
        if self.torque_speed is not None:
            found["torque_speed"] = np.ones(sum(len(rows) for rows in self._segments(elastic)))
        return found

    def names(self, elastic: ElasticRobot, output: str) -> tuple[str, ...]:
        """Motors that the rows of an output belong to."""
        if output != "torque_speed":
            return elastic.motor_names
        rows = zip(elastic.motor_names, self._segments(elastic), strict=True)
        return tuple(name for name, segments in rows for _ in segments)

    def outputs(self, elastic: ElasticRobot, tau_m: Any, speed: Any) -> dict[str, Any]:
        """{"current" (tau_m,) [A], "voltage" [V], "torque_speed": shares of the curve}, expressions or numbers (tau_m,
        K) of joint-side motor torques and speeds."""
        torque, turning = self.at_side(elastic, tau_m, speed)
        each = {n: ca.DM(self._each(n, elastic)) for n in ("torque_constant", "resistance", "back_emf")}
        columns = torque.shape[1]
        k_t, R, k_e = (ca.repmat(x, 1, columns) for x in each.values())
        current = torque / k_t
        out = {"current": current, "voltage": R * current + k_e * turning}
        if self.torque_speed is not None:
            lines = [
                a * torque[m, :] + b * turning[m, :]
                for m, segments in enumerate(self._segments(elastic)) for a, b in segments
            ]  # fmt: skip
            out["torque_speed"] = ca.vertcat(*lines)
        return out

    def power(self, elastic: ElasticRobot, tau_m: Any, speed: Any) -> Any:
        """(tau_m, K) electrical power [W] of the motors: what windings lose and what the rotors do."""
        out = self.outputs(elastic, tau_m, speed)
        return out["current"] * out["voltage"]

    def losses(self, elastic: ElasticRobot, tau_m: Any) -> Any:
        """(tau_m, K) losses in the windings [W]."""
        torque, _ = self.at_side(elastic, tau_m, tau_m)
        k_t, R = (ca.repmat(ca.DM(self._each(n, elastic)), 1, torque.shape[1])
                  for n in ("torque_constant", "resistance"))  # fmt: skip
        return R * (torque / k_t) ** 2

    def at_side(self, elastic: ElasticRobot, tau_m: Any, speed: Any) -> tuple[Any, Any]:
        """(torques, speeds) where the data are stated, from joint-side ones."""
        tau_m, speed = (x if isinstance(x, (ca.SX, ca.MX)) else ca.DM(x) for x in (tau_m, speed))
        return (tau_m, speed) if self.side == "joint" else at_rotors(elastic, tau_m, speed)

    def check(self, elastic: ElasticRobot) -> None:
        """ShapeError for data that are not of this robot's motors; ModelError where a voltage or the losses would need
        a resistance that is not given."""
        for name in ("torque_constant", "resistance", "voltage", "current", "back_emf"):
            self._each(name, elastic)
        if self.torque_speed is not None:
            self._segments(elastic)
        if self.voltage is not None and not np.all(self._each("resistance", elastic) > 0):
            raise ModelError(elastic.name, ["a limit of the voltage needs the windings' resistance, above 0"])

    def _each(self, name: str, elastic: ElasticRobot) -> Array:
        """(tau_m,) values of a field."""
        given = getattr(self, name)
        if given is None:
            given = self.torque_constant if name == "back_emf" else np.inf
        value, n = as_floats(name, given).ravel(), len(elastic.motor_names)
        if value.size not in (1, n):
            motors = ", ".join(elastic.motor_names)
            raise ShapeError(f"MotorElectrics: {name} has {value.size} values, expected 1 or {n}: {motors}")
        return np.array(np.broadcast_to(value, n))

    def _segments(self, elastic: ElasticRobot) -> list[list[tuple[float, float]]]:
        """For each motor [(a, b)] of a torque + b speed within -1 and 1: lines of its curve, its largest torque and
        speed."""
        curves, n = list(self.torque_speed or ()), len(elastic.motor_names)
        if len(curves) not in (1, n):
            raise ShapeError(f"MotorElectrics: torque_speed has {len(curves)} curves, expected 1 or {n}")
        return [_lines(curve) for curve in (curves if len(curves) == n else curves * n)]


def at_rotors(elastic: ElasticRobot, tau_m: Any, speed: Any) -> tuple[Any, Any]:
    """(torques, speeds) of the rotors, expressions or casadi.DM (tau_m, K), from joint-side ones."""
    return ca.DM(np.linalg.inv(elastic.gear.T)) @ tau_m, ca.DM(elastic.gear) @ speed


def _curves(given: Any) -> list[Array]:
    """[(points, 2)] one or several curves, checked."""
    what = "MotorElectrics: torque_speed"
    if isinstance(given, (str, Mapping)) or not len(given):
        raise ShapeError(f"{what} is {shortened(given)}, expected points (speed, torque)")
    curves = [given] if np.ndim(given[0]) == 1 else list(given)
    found = []
    for k, curve in enumerate(curves):
        points = as_floats(f"{what}[{k}]", curve)
        if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2 or not np.isfinite(points).all():
            raise ShapeError(f"{what}: got an array {points.shape}, expected finite points (at least 2, 2)")
        speed, torque = points.T
        if speed[0] != 0 or not np.all(np.diff(speed) > 0):
            raise ShapeError(f"{what}: speeds are {speed.tolist()}, expected them from 0 on, increasing")
        if torque[0] <= 0 or torque[-1] < 0 or np.any(np.diff(torque) > 0):
            raise ShapeError(f"{what}: torques are {torque.tolist()}, expected them positive, not increasing")
        slopes = np.diff(torque) / np.diff(speed)
        if np.any(np.diff(slopes) > 1e-9 * (np.abs(slopes).max() + 1e-300)):
            at = speed[1 + int(np.argmax(np.diff(slopes)))]
            raise ShapeError(f"{what}: the curve bends inwards at speed {at:g}; give its hull, or fewer points")
        found.append(points)
    return found


def _lines(points: Array) -> list[tuple[float, float]]:
    speed, torque = points.T
    found = [(1 / torque[0], 0.0), (0.0, 1 / speed[-1])]
    for (w0, t0), (w1, t1) in pairwise(points):
        if t1 < t0:  # t + (t0 - t1) / (w1 - w0) w = t0 + ... w0
            fall = (t0 - t1) / (w1 - w0)
            found.append((1 / (t0 + fall * w0), fall / (t0 + fall * w0)))
    return found
