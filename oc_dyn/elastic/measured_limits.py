"""What measurements of a robot can be: bounds that tell a wild sample, which must not move a law's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import casadi as ca
import numpy as np

from .. import validation
from ..errors import ShapeError
from ..numbers import HUGE, as_floats, shortened
from ..types import Array
from .controller import Controller
from .model import ElasticRobot

SPEED = 100.0  # [rad/s, m/s] that no joint passes, where the robot says nothing
GRAIN = 0.01  # [rad, m] by which a position may step besides: steps of encoders, noise
WIDER_RANGE, WIDER_SPEED, WIDER_TORQUE = 0.5, 3.0, 5.0  # share of the range at each end; factors
_SPEED_OF = {"q": "v", "theta": "dtheta", "sigma": "dsigma", "tau": "dtau"}
_GRAINED = ("q", "theta")
NAMES = ("q", "v", "theta", "dtheta", "sigma", "dsigma", "tau", "dtau", "deflection")


@dataclass(frozen=True, eq=False)
class MeasuredLimits:
    """Bounds of what a law measures, port after port; see generate_controller.

    ports: (name, size); low, high (n,); step (n,): largest change in a sample, grain (n,): beside it; pairs (k, 2):
    rows of theta and q of a joint; deflection (k,): their largest difference. HUGE where there is no bound.
    """

    ports: tuple[tuple[str, int], ...]
    low: Array
    high: Array
    step: Array
    grain: Array
    pairs: Array
    deflection: Array

    def fits(self, x: Array, last: Array | None = None, samples: int = 1) -> bool:
        """Whether a sample (n,) can be, so many samples after the last one that could."""
        moved = 0.0 if last is None else np.abs(x - last)
        apart = np.abs(x[self.pairs[:, 0]] - x[self.pairs[:, 1]])
        inside = np.all((self.low <= x) & (x <= self.high)) and np.all(moved <= samples * self.step + self.grain)
        return bool(inside and np.all(apart <= self.deflection))

    def tamed(self, rows: Sequence[Array]) -> list[Array]:
        """Samples (n,) near those given that fit one after the other."""
        out: list[Array] = []
        for x in rows:
            y = np.clip(x, self.low, self.high)
            if out:
                y = out[0] + np.clip(y - out[0], -0.4 * self.step, 0.4 * self.step)
            theta, q = self.pairs.T
            y[theta] = y[q] + np.clip(y[theta] - y[q], -0.5 * self.deflection, 0.5 * self.deflection)
            out.append(y if not out or self.fits(y, out[-1]) else out[0])
        return out


class Watch:
    """Looks at one sample after the other, as the law in C does; refused: how many did not fit."""

    def __init__(self, limits: MeasuredLimits) -> None:
        self.limits, self.refused = limits, 0
        self._last: Array | None = None
        self._samples = 0  # since the last that fitted

    def accepts(self, x: Array) -> bool:
        """Whether the next sample (n,) fits."""
        self._samples += 1
        if not self.limits.fits(x, self._last, self._samples):
            self.refused += 1
            return False
        self._last, self._samples = np.array(x), 0
        return True


def measured_limits(
    who: str, controller: Controller, given: Any, sample_time: float, torque_limit: Any = None,
) -> MeasuredLimits | None:  # fmt: skip
    """MeasuredLimits of a law, from the argument measured_limits of generate_controller and simulate."""
    if given is None:
        return None
    if not isinstance(given, Mapping) and not (isinstance(given, str) and given == "robot"):
        raise ShapeError(f'{who}: measured_limits is {shortened(given)}, expected "robot", None or {{port: bound}}')
    own = _checked(who, controller.elastic, given) if isinstance(given, Mapping) else {}
    f, elastic = controller.function, controller.elastic
    ports = tuple((n, f.size1_in(n)) for n in f.name_in() if not n.endswith("_ref") and n != "memory")
    bounds = _of_robot(elastic, torque_limit) | {n: (-x, x) for n, x in own.items()}
    none = {n: np.full(size, inf) for n, size in _sizes(elastic).items()}
    top = {n: bounds.get(n, (-x, x))[1] for n, x in none.items()}
    rows = [bounds.get(n, (-none[n], none[n])) for n, _ in ports]
    step = [sample_time * top[_SPEED_OF[n]] if n in _SPEED_OF else none[n] for n, _ in ports]
    grain = [np.full(size, GRAIN if n in _GRAINED else 0.0) for n, size in ports]
    starts = dict(zip((n for n, _ in ports), np.cumsum([0, *(size for _, size in ports)]), strict=False))
    joined = elastic.joints if {"q", "theta"} <= set(starts) and not elastic.drives else ()
    pairs = [(starts["theta"] + m, starts["q"] + j.q) for j in joined for m in j.theta]
    motors = [m for j in joined for m in j.theta]

    def column(parts: Sequence[Array]) -> Array:
        return np.clip(np.concatenate([np.zeros(0), *parts]), -HUGE, HUGE)

    return MeasuredLimits(
        ports, column([x for x, _ in rows]), column([x for _, x in rows]), np.minimum(column(step), 1e-5 * HUGE),
        column(grain), np.array(pairs, int).reshape(-1, 2), column([top["deflection"][motors]]),
    )  # fmt: skip


def _sizes(elastic: ElasticRobot) -> dict[str, int]:
    motors, joints, sigma = len(elastic.elastic_motors), len(elastic.joints), len(elastic.sigma_names)
    return dict(zip(NAMES, (elastic.nq, elastic.nv, motors, motors, sigma, sigma, joints, joints, motors), strict=True))


def _checked(who: str, elastic: ElasticRobot, given: Mapping[Any, Any]) -> dict[str, Array]:
    """{port: largest absolute value} as given; inf for None."""
    sizes, out = _sizes(elastic), {}
    for n, x in given.items():
        validation.one_of(f"{who}: port of measured_limits", n, NAMES)
        out[n] = np.full(sizes[n], inf) if x is None else validation.numbers(f"{who}: limit of {n}", x, sizes[n])
        if not np.all(out[n] > 0):
            raise ShapeError(f"{who}: limit of {n} is {out[n].tolist()}, expected numbers above 0")
    return out


def _of_robot(elastic: ElasticRobot, torque_limit: Any) -> dict[str, tuple[Array, Array]]:
    """{port: (low, high)} of what the robot says of itself, widened."""
    links = elastic.links
    low, high, speed, effort = (_limit(links, k) for k in ("lower", "upper", "velocity", "effort"))
    room = WIDER_RANGE * (high - low)
    v = np.where(np.isfinite(speed) & (speed > 0), WIDER_SPEED * speed, SPEED)
    rows = [j.v for j in elastic.joints for _ in j.theta]
    dtheta = np.full(len(rows), SPEED) if elastic.drives else np.maximum(v[rows], 0)
    out = {"q": (low - room, high + room), "v": (-v, v), "dtheta": (-dtheta, dtheta)}
    if elastic.drives:
        return out  # limits of the joints are not those of the drives
    motors = np.where(effort > 0, effort, inf)[rows]
    if torque_limit is not None:
        motors = np.minimum(motors, ca.DM(torque_limit).full().ravel()[list(elastic.elastic_motors)])
    if any(len(j.theta) > 1 for j in elastic.joints):
        return out
    tau = WIDER_TORQUE * motors
    stiffness = np.array([getattr(j.spring, "stiffness", 0.0) for j in elastic.joints], float)
    deflection = np.full(tau.size, inf)
    np.divide(tau, stiffness, out=deflection, where=stiffness > 0)
    return {**out, "tau": (-tau, tau), "deflection": (-deflection, deflection)}


def _limit(links: Any, kind: str) -> Array:
    return np.array(links.limit(kind), float)


def safe_torques(who: str, controller: Controller, torque: Any, limit: Any) -> Array:
    """(motors,) from a number or one per motor, within the limit."""
    torque, names = as_floats(f"{who}: safe_torque", torque).ravel(), controller.elastic.motor_names
    if torque.size not in (1, len(names)) or not np.all(np.isfinite(torque)):
        expected = f"expected a finite number or {len(names)}: {', '.join(names)}"
        raise ShapeError(f"{who}: safe_torque is {torque.tolist()}, {expected}")
    safe = np.broadcast_to(torque, len(names))
    if limit is not None and np.any(np.abs(safe) > limit.full().ravel()):
        k = int(np.argmax(np.abs(safe) - limit.full().ravel()))
        problem = f"{safe[k]:g} Nm of motor {names[k]!r} is over its limit {float(limit[k]):g} Nm"
        raise ShapeError(f"{who}: safe_torque: {problem}")
    return safe
