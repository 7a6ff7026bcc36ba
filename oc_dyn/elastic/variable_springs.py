"""Springs of variable stiffness: by a coordinate of the spring, or by an antagonistic pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from ..errors import LimitError, ShapeError, SolveError
from . import inverse, inverse_of_pairs
from .spring_law import ALL, SpringLaw, beyond, range_of, times, told_apart, value


@dataclass(frozen=True, eq=False)
class VariableSpring(SpringLaw):
    """torque = law(theta - q, sigma) + damping (theta' - q'): stiffness set directly, by a coordinate sigma.

    law: casadi.Function or callable of two scalars, smooth, with a positive slope in the first; None is
    sigma (theta - q), sigma [Nm/rad] being the stiffness. guess: as of a NonlinearSpring. torque_range, sigma_range
    (lowest, highest): torques that the spring must be able to give at every such sigma, as of a NonlinearSpring.
    """

    law: Callable[..., Any] | None = None
    damping: float = 0.0
    guess: float = 0.0
    factor: float = 1.0
    torque_range: tuple[float, float] | None = None
    sigma_range: tuple[float, float] | None = None
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    motors: ClassVar[tuple[str, ...]] = ("",)
    variable: ClassVar[bool] = True
    adjusted: ClassVar[bool] = True

    def _law(self, z: Any, sigma: Any) -> list[Any]:
        return [self.factor * (sigma * z[0] if self.law is None else value(self.law, z[0], sigma))]

    def _inverse(self) -> inverse.Inverse:
        if self.law is None:
            tau, sigma = ca.SX.sym("tau"), ca.SX.sym("sigma")
            z = ca.if_else(sigma > 0, tau / (self.factor * sigma), np.nan)
            return inverse.Inverse(ca.Function("inverse", [tau, sigma], [z]), 1, ALL, ALL)
        wanted, slope, start = self._made["wanted"], self._made["slope"], float(self.guess)
        if self.sigma_range is None:
            sigmas = np.geomspace(1e-2, 1e5, 15)
            at_start = inverse.values(slope, np.full(15, start), sigmas)[0]
            sigmas = sigmas[np.isfinite(at_start) & (at_start > 0)]
            if not sigmas.size:
                self._refuse(f"the law does not rise at the deflection {start:g} at any sigma from 0.01 to 1e5")
        else:
            sigmas = np.linspace(*range_of(self, "sigma_range", self.sigma_range), 15)
        sought = (-inverse.USUAL, inverse.USUAL)
        if self.torque_range is not None:
            sought = range_of(self, "torque_range", self.torque_range)
        for sigma in sigmas if self.torque_range and self.sigma_range else ():
            (low, high), _ = inverse.reach(wanted, slope, start, sigma)
            if not low <= sought[0] < sought[1] <= high:
                self._refuse(
                    f"torque_range is {sought[0]:g} to {sought[1]:g}, but at sigma = {sigma:.6g} the law, where it "
                    f"rises, reaches {low:.6g} to {high:.6g}"
                )
        inverted, problem = inverse.of_one(wanted, slope, start, sought, ALL, sigmas)
        if problem and self.torque_range and self.sigma_range:
            self._refuse(f"{problem} over torque_range and sigma_range; give another guess or smaller ranges")
        return inverted

    def refusal(self, torque: float, sigma: Sequence[float]) -> Exception | None:
        """The error that says why there is no deflection for a torque at [sigma]; None if there is one."""
        if self._made["inverse"].function(torque, sigma[0]).is_regular():
            return None
        span = inverse.reach(self._made["wanted"], self._made["slope"], float(self.guess), sigma[0])[0]
        return beyond("VariableSpring", torque, f" at sigma = {sigma[0]:.6g}", span)

    def scaled(self, factor: float) -> VariableSpring:
        """The same spring with its torque times a factor."""
        span = times(factor, self.torque_range)
        return VariableSpring(self.law, self.damping, self.guess, self.factor * factor, span, self.sigma_range)


@dataclass(frozen=True, eq=False)
class AntagonisticSprings(SpringLaw):
    """Two motors pull on one joint: torque = agonist(theta_1 - q) + antagonist(theta_2 - q) + damping of each.

    The stiffness agonist'(z_1) + antagonist'(z_2) at constant motor positions is the port sigma. agonist, antagonist:
    laws as of a NonlinearSpring, not linear, or else the stiffness could not be varied; the antagonist is by default
    the agonist seen in a mirror, -agonist(-z). guess (2,): deflections from which those for a wanted torque and
    stiffness are sought. torque_range, sigma_range (lowest, highest): every torque and stiffness in them must be
    possible together, refused by ModelError if not. Each spring only pulls, as a tendon does: the agonist's torque is
    positive, the antagonist's negative, or the other way where they are so at the guess. So a pair of springs that
    stiffen cannot be softer than when one carries the whole torque and the other is slack: beyond that the deflections
    are not a number.
    """

    agonist: Callable[..., Any]
    antagonist: Callable[..., Any] | None = None
    damping: float = 0.0
    guess: tuple[float, float] = (0.1, -0.1)
    factor: float = 1.0
    torque_range: tuple[float, float] | None = None
    sigma_range: tuple[float, float] | None = None
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    motors: ClassVar[tuple[str, ...]] = (".agonist", ".antagonist")
    variable: ClassVar[bool] = True
    adjusted: ClassVar[bool] = False

    def _law(self, z: Any, sigma: Any) -> list[Any]:
        second = -value(self.agonist, -z[1]) if self.antagonist is None else value(self.antagonist, z[1])
        return [self.factor * value(self.agonist, z[0]), self.factor * second]

    def stiffness_jet(self, z: Sequence[Any]) -> list[Any]:
        """[stiffness, its rate] at the jets z, one per motor."""
        below = [ca.vertcat(*(jet[k] for jet in z)) for k in range(2)]
        zero = ca.DM(1, 1)
        return [self._made["wanted"](below[0], zero)[1], self._derivative(1)(*below, zero, zero)[1]]

    def _inverse(self) -> inverse.Inverse:
        torques, sigmas = ALL, ALL
        if self.torque_range is not None:
            torques = range_of(self, "torque_range", self.torque_range)
        if self.sigma_range is not None:
            sigmas = range_of(self, "sigma_range", self.sigma_range)
        sizes = [max(map(abs, x)) if x is not ALL else inverse.USUAL for x in (torques, sigmas)]
        wanted, slope, both = (self._made[x] for x in ("wanted", "slope", "torques"))
        inverted = inverse_of_pairs.of_two(wanted, slope, both, self._start(), sizes)
        if self.torque_range and self.sigma_range:
            T, s = (x.ravel() for x in np.meshgrid(np.linspace(*torques, 9), np.linspace(*sigmas, 9)))
            z = inverted.function.map(T.size)(np.array([T, s]), np.zeros((1, T.size))).full()
            bad = ~np.isfinite(z).all(axis=0)
            if bad.any():
                self._made["inverse"] = inverted
                self._refuse(str(self.refusal(float(T[bad][0]), [float(s[bad][0])])))
        return inverted

    def refusal(self, torque: float, sigma: Sequence[float]) -> Exception | None:
        """The error that says why a torque and [a stiffness] cannot be had together; None if they can."""
        if self._made["inverse"].function([torque, sigma[0]], 1.0).is_regular():
            return None
        if not np.isfinite([torque, sigma[0]]).all():
            return ShapeError(f"AntagonisticSprings: torque {torque}, stiffness {sigma[0]}, expected finite numbers")
        span = inverse_of_pairs.stiffnesses(self._made["torques"], self._made["slope"], self._start(), torque)
        wanted, *ends = told_apart(sigma[0], *(span or ()))
        text = f"AntagonisticSprings: no deflections give the torque {torque:.6g} with the stiffness {wanted}"
        if span is None:
            return LimitError(f"{text}; the springs cannot give that torque by pulling")
        if not span[0] <= sigma[0] <= span[1]:
            bound = f"at least {ends[0]}" if sigma[0] < span[0] else f"at most {ends[1]}"
            return LimitError(f"{text}; with that torque the stiffness of the pair, both pulling, is {bound}")
        return SolveError(f"{text}, or were not found; give another guess, or torque_range and sigma_range", "unsolved")

    def scaled(self, factor: float) -> AntagonisticSprings:
        """The same springs with their torques times a factor."""
        torques, sigmas = times(factor, self.torque_range), times(factor, self.sigma_range)
        return AntagonisticSprings(
            self.agonist, self.antagonist, self.damping, self.guess, self.factor * factor, torques, sigmas
        )
