"""Laws of friction, hysteresis and backlash for the plant alone: laws of control and flat maps do not know them.

Each law has a torque against the speed x' of what it sits on, memory h with its rate, and the energy stored in it; what
it takes is torque x' - d(stored)/dt. Sources: Armstrong-Helouvry, Dupont and Canudas de Wit 1994 (Stribeck curve,
load); Canudas de Wit, Olsson, Astrom and Lischinsky 1995 (LuGre); Dahl 1968 and Al-Bender, Lampaert and Swevers 2005
(Maxwell slip); Bouc 1967 and Wen 1976 (hysteresis).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import casadi as ca
import numpy as np

from .. import validation
from ..errors import ModelError
from ..friction import SMOOTHING
from ..numbers import as_floats

_SOFT_LOAD = 1e-3  # [Nm, N] below which the load's absolute value is rounded off


@dataclass(frozen=True)
class Stribeck:
    """level tanh(x' / smoothing) + damping x', level = coulomb + (static - coulomb) exp(-(x' / speed)^2) + load |tau|.

    coulomb, static [Nm, N]: friction at speed and at standstill; speed [rad/s, m/s]: of Stribeck's fall; damping
    [Nm s/rad]; load: friction per torque tau of springs, for elastic joints: at a motor what they take from it, at a
    link what they give it, with their play, without dampers and hysteresis; smoothing [rad/s, m/s].
    """

    coulomb: float
    static: float | None = None
    speed: float = 0.1
    damping: float = 0.0
    load: float = 0.0
    smoothing: float = SMOOTHING

    on: ClassVar[tuple[str, ...]] = ("motors", "links")

    def __post_init__(self) -> None:
        object.__setattr__(self, "static", self.coulomb if self.static is None else self.static)
        _check(self, ("speed", "smoothing"), ("coulomb", "static", "damping", "load"))

    @property
    def memory(self) -> int:
        """Entries of the memory."""
        return 0

    def torque(self, speed: Any, memory: Any, load: Any) -> tuple[Any, Any, Any]:
        """(torque, rate of the memory, stored energy)."""
        level = _level(self, speed, load) * ca.tanh(speed / self.smoothing)
        return level + self.damping * speed, ca.SX(0, 1), ca.SX(0)


@dataclass(frozen=True)
class LuGre:
    """Bristles h that bend and slip: stiffness h + bristle_damping h' + damping x',
    h' = x' - stiffness |x'| h / level(x'), level as of Stribeck.

    stiffness [Nm/rad, N/m] of bristles, bristle_damping [Nm s/rad]; the others as of Stribeck.
    """

    stiffness: float
    bristle_damping: float
    coulomb: float
    static: float | None = None
    speed: float = 0.1
    damping: float = 0.0
    load: float = 0.0

    on: ClassVar[tuple[str, ...]] = ("motors", "links")

    def __post_init__(self) -> None:
        object.__setattr__(self, "static", self.coulomb if self.static is None else self.static)
        _check(self, ("stiffness", "coulomb", "static", "speed"), ("bristle_damping", "damping", "load"))

    @property
    def memory(self) -> int:
        """Entries of the memory."""
        return 1

    def torque(self, speed: Any, memory: Any, load: Any) -> tuple[Any, Any, Any]:
        """(torque, rate of the memory, stored energy)."""
        rate = speed - self.stiffness * ca.fabs(speed) * memory / _level(self, speed, load)
        torque = self.stiffness * memory + self.bristle_damping * rate + self.damping * speed
        return torque, rate, self.stiffness * memory**2 / 2


@dataclass(frozen=True)
class MaxwellSlip:
    """Springs that slip at their limits, side by side: sum of k h, h' = x' - |x'| |k h / limit|^(sharpness - 1) k h /
    limit: hysteresis that remembers turns. One element of sharpness 1 is Dahl's friction.

    elements: ((k [Nm/rad, N/m], limit [Nm, N]), ...), positive; sharpness: of the passage from sticking to slipping.
    """

    elements: Sequence[tuple[float, float]]
    sharpness: float = 2.0

    on: ClassVar[tuple[str, ...]] = ("motors", "links", "springs")

    def __post_init__(self) -> None:
        elements = np.asarray(as_floats("MaxwellSlip: elements", self.elements))
        if elements.ndim != 2 or elements.shape[1] != 2 or not (np.isfinite(elements).all() and (elements > 0).all()):
            raise ModelError("MaxwellSlip", [f"elements are {self.elements!r}, expected positive (stiffness, limit)"])
        _check(self, ("sharpness",), ())
        if self.sharpness < 1:
            raise ModelError("MaxwellSlip", [f"sharpness is {self.sharpness:g}, expected at least 1"])
        object.__setattr__(self, "elements", tuple((float(k), float(f)) for k, f in elements))

    @property
    def memory(self) -> int:
        """Entries of the memory."""
        return len(self.elements)

    def torque(self, speed: Any, memory: Any, load: Any) -> tuple[Any, Any, Any]:
        """(torque, rate of the memory, stored energy)."""
        k, limit = (ca.DM(x) for x in zip(*self.elements, strict=True))
        share = k * memory / limit
        rate = speed - ca.fabs(speed) * ca.fabs(share) ** (self.sharpness - 1) * share
        return ca.dot(k, memory), rate, ca.dot(k, memory**2) / 2


@dataclass(frozen=True)
class BoucWen:
    """Hysteresis of a transmission beside its spring: stiffness h, h' = x' - beta |x'| |h|^(n-1) h - gamma x' |h|^n.

    stiffness [Nm/rad, N/m]; beta >= |gamma|, or it would give energy; n at least 1: sharpness of the loop. Slips at
    h = (beta + gamma)^(-1/n).
    """

    stiffness: float
    beta: float
    gamma: float = 0.0
    n: float = 1.0

    on: ClassVar[tuple[str, ...]] = ("motors", "links", "springs")

    def __post_init__(self) -> None:
        gamma = validation.number("BoucWen: gamma", self.gamma)
        _check(self, ("stiffness", "beta", "n"), ())
        if abs(gamma) > self.beta or self.n < 1:
            raise ModelError("BoucWen", [f"beta {self.beta:g}, gamma {gamma:g}, n {self.n:g}: beta >= |gamma|, n >= 1"])

    @property
    def memory(self) -> int:
        """Entries of the memory."""
        return 1

    def torque(self, speed: Any, memory: Any, load: Any) -> tuple[Any, Any, Any]:
        """(torque, rate of the memory, stored energy)."""
        size = ca.fabs(memory)
        rate = speed - self.beta * ca.fabs(speed) * size ** (self.n - 1) * memory - self.gamma * speed * size**self.n
        return self.stiffness * memory, rate, self.stiffness * memory**2 / 2


@dataclass(frozen=True)
class Backlash:
    """Play in a spring: deflections within +- gap / 2 carry no torque, beyond it those that are left.

    gap [rad, m]; softness [rad, m]: over which the play's ends are rounded off, by default a fiftieth of the gap. The
    energy is that of the spring at what is left, so that play takes nothing; a damper goes on across it.
    """

    gap: float
    softness: float | None = None

    on: ClassVar[tuple[str, ...]] = ("springs",)

    def __post_init__(self) -> None:
        _check(self, ("gap",), ())
        object.__setattr__(self, "softness", self.gap / 50 if self.softness is None else self.softness)
        _check(self, ("softness",), ())

    @property
    def memory(self) -> int:
        """Entries of the memory."""
        return 0

    def left(self, z: Any) -> Any:
        """Deflection that is left of z."""
        s: Any = self.softness
        return s * (_softplus((z - self.gap / 2) / s) - _softplus(-(z + self.gap / 2) / s))


FrictionLaw: TypeAlias = Stribeck | LuGre | MaxwellSlip | BoucWen | Backlash
LAWS = (Stribeck, LuGre, MaxwellSlip, BoucWen, Backlash)


def _softplus(x: Any) -> Any:
    """log(1 + exp(x)), exact on both sides."""
    return ca.fmax(x, 0) + ca.log1p(ca.exp(-ca.fabs(x)))


def _level(law: Any, speed: Any, load: Any) -> Any:
    """Friction that a speed and a load slip at."""
    fall = (law.static - law.coulomb) * ca.exp(-((speed / law.speed) ** 2))
    return law.coulomb + fall + (law.load * ca.sqrt(load**2 + _SOFT_LOAD**2) if law.load else 0)


def _check(law: Any, positive: Sequence[str], others: Sequence[str]) -> None:
    """Convert a law's numbers to floats; ModelError where they are none, or too small."""
    for name in (*positive, *others):
        value = validation.number(f"{type(law).__name__}: {name}", getattr(law, name))
        if value < 0 or (value == 0 and name in positive):
            wanted = "above 0" if name in positive else "of at least 0"
            raise ModelError(type(law).__name__, [f"{name} is {value:g}, expected a number {wanted}"])
        object.__setattr__(law, name, value)
