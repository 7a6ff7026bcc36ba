"""Springs between a joint's motor and its link: linear, of any law, of variable stiffness, antagonistic pairs.

A spring has one deflection z = theta - q for each of its motors and pulls the link by the sum of its torques. Every
kind knows its torques and energy and, the other way, the deflections that a wanted joint torque needs, with all time
derivatives. The elastic torque alone is meant throughout; damping stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import casadi as ca
import numpy as np

from ..errors import ModelError
from ..lie.time_derivatives import time_derivatives
from . import inverse
from .spring_law import SpringLaw, beyond, check, range_of, times, value
from .variable_springs import AntagonisticSprings, VariableSpring


@dataclass(frozen=True)
class LinearSpring:
    """torque = stiffness (theta - q) + damping (theta' - q'); Nm/rad and Nm s/rad, or N/m and N s/m."""

    stiffness: float
    damping: float = 0.0

    motors: ClassVar[tuple[str, ...]] = ("",)  # suffixes of the motors' names
    variable: ClassVar[bool] = False  # whether the stiffness is a second flat output, port sigma
    adjusted: ClassVar[bool] = False  # whether sigma is a coordinate of the spring

    def __post_init__(self) -> None:
        check(self, "stiffness")

    def torques(self, z: Sequence[Any], sigma: Any) -> list[Any]:
        """[torque] at deflections z = [z]."""
        return [self.stiffness * z[0]]

    def energy(self, z: Sequence[Any], sigma: Any) -> Any:
        """Energy stored in the spring [J]."""
        return 0.5 * self.stiffness * z[0] ** 2

    def deflections(self, torque: Sequence[Any], sigma: Any) -> list[list[Any]]:
        """One jet of derivatives per motor, as many as the joint torque has: torque = [tau, tau', ...]."""
        return [[x / self.stiffness for x in torque]]

    def deflection(self, k: int, z: Any, torque: Sequence[Any], sigma: Any) -> list[Any]:
        """Derivative k of each deflection; z: one jet per motor of those below k (not needed here)."""
        return [torque[k] / self.stiffness]

    def refusal(self, torque: float, sigma: Sequence[float] = ()) -> Exception | None:
        """None: any torque has its deflection."""
        return None

    def scaled(self, factor: float) -> LinearSpring:
        """The same spring with its torque times a factor."""
        return LinearSpring(self.stiffness * factor, self.damping)


@dataclass(frozen=True)
class NoSpring:
    """A motor that no spring of its own joins to its link: springs across joints do. It may have a damper."""

    damping: float = 0.0

    motors: ClassVar[tuple[str, ...]] = ("",)
    variable: ClassVar[bool] = False
    adjusted: ClassVar[bool] = False

    def torques(self, z: Sequence[Any], sigma: Any) -> list[Any]:
        """[0]."""
        return [0 * z[0]]

    def energy(self, z: Sequence[Any], sigma: Any) -> Any:
        """0 J."""
        return 0 * z[0]

    def deflections(self, torque: Sequence[Any], sigma: Any) -> list[list[Any]]:
        """Refused: no torque has a deflection."""
        raise ModelError("NoSpring", ["the joint has springs across joints alone, its deflection follows from all"])

    def deflection(self, k: int, z: Any, torque: Sequence[Any], sigma: Any) -> list[Any]:
        """Refused, as deflections."""
        raise ModelError("NoSpring", ["the joint has springs across joints alone, its deflection follows from all"])

    def refusal(self, torque: float, sigma: Sequence[float] = ()) -> Exception | None:
        """None: what the springs across joints can do is known there."""
        return None

    def scaled(self, factor: float) -> NoSpring:
        """The same."""
        return self


@dataclass(frozen=True, eq=False)
class NonlinearSpring(SpringLaw):
    """torque = law(theta - q) + damping (theta' - q'); or by its inverse or its potential: from_inverse,
    from_potential.

    law: casadi.Function or callable of one scalar, smooth, with a positive slope. guess: the deflection [rad, m] from
    which the one for a wanted torque is sought. torque_range (lowest, highest) [Nm, N]: torques that the spring must be
    able to give, refused by ModelError if the law does not reach them; default what the law reaches, of which up to 1e5
    is sure to be found. Deflections give the torque to 1e-12 of it; torques that the spring cannot give have the
    deflection NaN. potential, inverse_law: of the same spring, for its energy and its deflections; without the factor.
    """

    law: Callable[..., Any]
    damping: float = 0.0
    guess: float = 0.0
    factor: float = 1.0
    torque_range: tuple[float, float] | None = None
    potential: Callable[..., Any] | None = None
    inverse_law: Callable[..., Any] | None = None
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    motors: ClassVar[tuple[str, ...]] = ("",)
    variable: ClassVar[bool] = False
    adjusted: ClassVar[bool] = False

    @classmethod
    def from_potential(cls, potential: Callable[..., Any], **more: Any) -> NonlinearSpring:
        """The spring whose energy at a deflection z is potential(z) [J], a casadi.Function or callable, convex; more:
        damping, guess, torque_range."""
        z = ca.SX.sym("z")
        energy = value(potential, z)
        if energy.shape != (1, 1):
            raise ModelError("NonlinearSpring", [f"potential: gives shape {energy.shape}, expected one number"])
        return cls(ca.Function("law", [z], [ca.gradient(energy, z)]), potential=potential, **more)

    @classmethod
    def from_inverse(cls, inverse_law: Callable[..., Any], **more: Any) -> NonlinearSpring:
        """The spring whose deflection at a torque t is inverse_law(t) [rad, m], a casadi.Function or callable, rising;
        more: damping, torque_range.

        The flat map calls inverse_law itself; torques at deflections are found by a checked iteration from no torque.
        """
        t, none = ca.SX.sym("t"), ca.SX.sym("sigma", 0)
        z = value(inverse_law, t)
        if z.shape != (1, 1) or not ca.Function("z", [t], [z])(0.0).is_regular():
            raise ModelError("NonlinearSpring", ["inverse_law: gives no finite number at the torque 0"])
        wanted, slope = _as_law(inverse_law)
        start = float(wanted(0.0, ca.DM(0, 1)))
        if not float(slope(0.0, ca.DM(0, 1))) > 0:
            raise ModelError("NonlinearSpring", ["inverse_law: does not rise at the torque 0"])
        ends, torques = inverse.reach(wanted, slope, 0.0)
        found, _ = inverse.of_one(wanted, slope, 0.0, ends, torques, ())
        inside = ca.logic_and(t >= ends[0], t <= ends[1])
        law = ca.Function("law", [t], [ca.if_else(inside, found.function(t, none), np.nan)])
        return cls(law, guess=start, inverse_law=ca.Function("inverse_law", [t], [z]), **more)

    def _law(self, z: Any, sigma: Any) -> list[Any]:
        return [self.factor * value(self.law, z[0])]

    def _energy(self, z: Any, sigma: Any, panels: int = 0) -> Any:
        if self.potential is not None:
            return self.factor * (value(self.potential, z) - value(self.potential, ca.DM(0)))
        return super()._energy(z, sigma, panels or self._panels())

    def _panels(self) -> int:
        """How many parts of the way the energy needs to be exact to rounding up to 10 rad and 100 kNm."""
        z, sigma = ca.SX.sym("z"), ca.SX.sym("sigma", 0)
        at = np.outer([-1.0, 1.0], np.geomspace(1e-2, 10.0, 13)).ravel()
        at = at[np.abs(inverse.values(self._made["torques"], at)[0]) < inverse.USUAL]
        before, most = None, 16 if self.inverse_law is None else 2
        panels = 1
        while panels <= most:
            energy = super()._energy(z, sigma, panels)
            now = inverse.values(ca.Function("energy", [z, sigma], [energy]), at)[0]
            if before is not None and np.abs(now - before).max(initial=0.0) <= 1e-13 * np.abs(now).max(initial=1e-9):
                return panels // 2
            before, panels = now, 2 * panels
        return most

    @property
    def reach(self) -> tuple[float, float]:
        """(lowest, highest) torque [Nm, N] that the law gives where it rises, inf without an end."""
        return self._made["inverse"].torques

    def _inverse(self) -> inverse.Inverse:
        wanted, slope = self._made["wanted"], self._made["slope"]
        torques, ends = self._ends(wanted, slope)
        sought = (max(torques[0], -inverse.USUAL), min(torques[1], inverse.USUAL))
        if self.torque_range is not None:
            sought = range_of(self, "torque_range", self.torque_range)
            if not torques[0] <= sought[0] < sought[1] <= torques[1]:
                self._refuse(
                    f"torque_range is {sought[0]:g} to {sought[1]:g}, but the law, where it rises, reaches "
                    f"{torques[0]:.6g} to {torques[1]:.6g}"
                )
        tau, none = ca.SX.sym("tau"), ca.SX.sym("sigma", 0)
        if self.inverse_law is None:
            inverted, _ = inverse.of_one(wanted, slope, float(self.guess), sought, ends, ())
        else:
            direct = ca.Function("inverse", [tau, none], [value(self.inverse_law, tau / self.factor)])
            inverted = inverse.Inverse(direct, 0, torques, ends)
        inside = ca.logic_and(tau > torques[0], tau < torques[1])  # the ends themselves are never quite reached
        z = ca.if_else(inside, inverted.function(tau, none), np.nan)
        function = inverted.function if np.isinf(torques).all() else ca.Function("inverse", [tau, none], [z])
        return replace(inverted, function=function, torques=torques)

    def _ends(self, wanted: ca.Function, slope: ca.Function) -> tuple[tuple[float, float], tuple[float, float]]:
        """((lowest, highest) torque, (lowest, highest) deflection) between which the spring is known."""
        if self.inverse_law is None:
            return inverse.reach(wanted, slope, float(self.guess))
        ends, torques = inverse.reach(*_as_law(self.inverse_law), 0.0)
        low, high = (self.factor * float(x) for x in np.clip(torques, -inverse.OFFSETS[-1], inverse.OFFSETS[-1]))
        return (low, high), ends

    def deflection(self, k: int, z: Any, torque: Sequence[Any], sigma: Any) -> list[Any]:
        """See SpringLaw.deflection; of a spring by its inverse law the derivative of that."""
        if self.inverse_law is None:
            return super().deflection(k, z, torque, sigma)
        key = ("inverse_law", k)
        if key not in self._made:
            t = [ca.SX.sym("t") for _ in range(k + 1)]
            rates = time_derivatives(value(self.inverse_law, t[0] / self.factor), k, list(pairwise(t)), cse=True)
            self._made[key] = ca.Function("deflection", t, [rates[k]])
        return [self._made[key](*torque[: k + 1])]

    def refusal(self, torque: float, sigma: Sequence[float] = ()) -> Exception | None:
        """The error that says why there is no deflection for a torque; None if there is one."""
        if self._made["inverse"].function(torque, ca.DM(0, 1)).is_regular():
            return None
        return beyond("NonlinearSpring", torque, "", self.reach)

    def scaled(self, factor: float) -> NonlinearSpring:
        """The same spring with its torque times a factor."""
        return replace(self, factor=self.factor * factor, torque_range=times(factor, self.torque_range))


def _as_law(inverse_law: Callable[..., Any]) -> tuple[ca.Function, ca.Function]:
    """(inverse law, its slope) as casadi.Functions (torque, no sigma), in the form of inverse.reach and of_one."""
    t, none = ca.SX.sym("t"), ca.SX.sym("sigma", 0)
    z = value(inverse_law, t)
    return ca.Function("z", [t, none], [z]), ca.Function("slope", [t, none], [ca.gradient(z, t)])


Spring: TypeAlias = LinearSpring | NoSpring | NonlinearSpring | VariableSpring | AntagonisticSprings
SPRINGS = (LinearSpring, NoSpring, NonlinearSpring, VariableSpring, AntagonisticSprings)
