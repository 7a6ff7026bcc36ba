"""Springs between a joint's motor and its link: linear, of any law, of variable stiffness, antagonistic pairs.

A spring has one deflection z = theta - q for each of its motors and pulls the link by the sum of its torques. Every
kind knows its torques and energy and, the other way, the deflections that a wanted joint torque needs, with all time
derivatives. The elastic torque alone is meant throughout; damping stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, NoReturn, TypeAlias, cast

import casadi as ca
import numpy as np

from .. import validation
from ..errors import LimitError, ModelError, ShapeError, SolveError
from ..lie.time_derivatives import time_derivatives
from ..numbers import are_sane, as_floats, shortened
from ..types import Array
from . import inverse


@dataclass(frozen=True)
class LinearSpring:
    """torque = stiffness (theta - q) + damping (theta' - q'); Nm/rad and Nm s/rad, or N/m and N s/m."""

    stiffness: float
    damping: float = 0.0

    motors: ClassVar[tuple[str, ...]] = ("",)  # suffixes of the motors' names
    variable: ClassVar[bool] = False  # whether the stiffness is a second flat output, port sigma
    adjusted: ClassVar[bool] = False  # whether sigma is a coordinate of the spring

    def __post_init__(self) -> None:
        _check(self, "stiffness")

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


class _ByLaw:
    """What springs given by a law share. Fields that subclasses have: law(s), damping, guess, factor, torque_range.

    _made: Functions of the law, by name, and its derivatives by their number. dataclasses.replace does not copy it, so
    each spring has its own; laws are called once, when the spring is built.
    """

    motors: ClassVar[tuple[str, ...]]
    variable: ClassVar[bool]
    adjusted: ClassVar[bool]
    damping: float
    guess: Any
    factor: float
    _made: dict[Any, Any]

    def _law(self, z: Any, sigma: Any) -> list[Any]:
        raise NotImplementedError

    def _inverse(self) -> inverse.Inverse:
        raise NotImplementedError

    def __post_init__(self) -> None:
        _check(self, "factor", self._start())
        z, sigma = ca.SX.sym("z", len(self.motors)), ca.SX.sym("sigma", int(self.variable))
        torques = self._law(ca.vertsplit(z), sigma)
        for x in torques:
            if x.shape != (1, 1) or not ca.Function("law", [z, sigma], [x])(0.1, 1.0).is_regular():
                self._refuse("the law gives no finite number at a deflection of 0.1 and sigma = 1")
        torques = ca.vertcat(*torques)
        wanted = torques if len(self.motors) == 1 else ca.vertcat(ca.sum1(torques), _stiffness(torques, z))
        self._made.update(
            torques=ca.Function("torques", [z, sigma], [torques]),
            energy=ca.Function("energy", [z, sigma], [self._energy(z, sigma)]),
            wanted=ca.Function("wanted", [z, sigma], [wanted]),
            slope=ca.Function("slope", [z, sigma], [ca.jacobian(wanted, z)]),
        )
        slope = np.linalg.det(self._made["slope"](self._start(), np.ones(int(self.variable))).full())
        if slope < 0 and not self.variable:
            self._refuse(f"the law falls at the deflection {self.guess:g}: it must rise, as a spring pulls back")
        if slope == 0:
            self._refuse(
                f"the law has no slope at the deflections {self._start()} where the solution for a wanted torque "
                "starts; give another guess"
            )
        self._made["inverse"] = self._inverse()

    def _refuse(self, problem: str) -> NoReturn:
        raise ModelError(type(self).__name__, [problem])

    def _start(self) -> Array:
        try:
            return validation.numbers("guess", self.guess, len(self.motors))
        except ShapeError as error:
            self._refuse(str(error))

    def _energy(self, z: Any, sigma: Any) -> Any:
        """Integral of each torque over its deflection by Gauss-Legendre quadrature; exact to rounding if smooth."""
        points, weights = np.polynomial.legendre.leggauss(24)
        energy = 0
        for s, w in zip(0.5 * (points + 1), 0.5 * weights, strict=True):
            energy = energy + w * ca.dot(z, ca.vertcat(*self._law(ca.vertsplit(s * z), sigma)))
        return energy

    def torques(self, z: Sequence[Any], sigma: Any) -> list[Any]:
        """[torque, ...] at deflections z = [z, ...], one per motor."""
        return ca.vertsplit(self._made["torques"](ca.vertcat(*z), self._coordinate(sigma)))

    def energy(self, z: Sequence[Any], sigma: Any) -> Any:
        """Energy stored in the spring [J]."""
        return self._made["energy"](ca.vertcat(*z), self._coordinate(sigma))

    def _coordinate(self, sigma: Any) -> Any:
        return sigma if self.adjusted else ca.DM(int(self.variable), 1)

    def refusal(self, torque: float, sigma: Sequence[float]) -> Exception | None:
        """The error that says why there is no deflection for a torque; None if there is one."""
        raise NotImplementedError

    def deflections(self, torque: Sequence[Any], sigma: Any) -> list[list[Any]]:
        """One jet of derivatives per motor, as many as the joint torque has.

        torque: [tau, tau', ...]; sigma: [sigma, sigma', ...], as many, where the stiffness is variable. The deflection
        itself comes from iterations from `guess` (see inverse.py), its derivatives from linear equations. Where the
        law does not give the torque, numbers raise LimitError and expressions become NaN.
        """
        z = self._made["inverse"].function(self._target(0, torque, sigma), self._coordinate(sigma and sigma[0]))
        if isinstance(z, ca.DM) and not z.is_regular():
            raise cast(Exception, self.refusal(float(torque[0]), [float(x) for x in sigma[:1]]))
        jets = [[x] for x in ca.vertsplit(z)]
        for k in range(1, len(torque)):
            for jet, x in zip(jets, self.deflection(k, jets, torque, sigma), strict=True):
                jet.append(x)
        return jets

    def deflection(self, k: int, z: Any, torque: Sequence[Any], sigma: Any) -> list[Any]:
        """Derivative k of each deflection; z: one jet per motor of those below k.

        The k-th derivative of wanted(z, sigma) = target is linear in that of z: slope z^(k) + rest = target^(k).
        """
        below = [ca.vertcat(*x) for x in zip(*(jet[:k] for jet in z), strict=True)]
        coordinates = [self._coordinate(sigma and sigma[j]) for j in range(k + 1)]
        rest = self._derivative(k)(*below, ca.DM(len(self.motors), 1), *coordinates)
        slope = self._made["slope"](below[0], coordinates[0])
        return ca.vertsplit(inverse.solve(slope, self._target(k, torque, sigma) - rest))

    def _target(self, k: int, torque: Any, sigma: Any) -> Any:
        return torque[k] if len(self.motors) == 1 else ca.vertcat(torque[k], sigma[k])

    def _derivative(self, k: int) -> ca.Function:
        """casadi.Function (z, z', .., z^(k), sigma, .., sigma^(k)) -> derivative k of wanted(z, sigma)."""
        if k not in self._made:
            z = [ca.SX.sym("z", len(self.motors)) for _ in range(k + 1)]
            s = [ca.SX.sym("sigma", int(self.variable)) for _ in range(k + 1)]
            flow = [*pairwise(z), *pairwise(s)]
            rates = time_derivatives(self._made["wanted"](z[0], s[0]), k, flow, cse=True)
            self._made[k] = ca.Function("derivative", [*z, *s], [rates[k]])
        return self._made[k]


def _check(spring: Any, positive: str, guess: Any = ()) -> None:
    """Convert a spring's numbers to floats; ModelError lists those that are none."""
    problems = [] if are_sane(guess) else [f"guess is {list(guess)}, expected finite numbers"]
    for name, expected in ((positive, "above 0"), ("damping", "of at least 0")):
        value = getattr(spring, name)
        try:
            number = validation.number(name, value)
        except ShapeError:
            number = -1.0
        if number > 0 or (number == 0 and name == "damping"):
            object.__setattr__(spring, name, number)
            continue
        rigid = "; for a rigid joint give inf instead of a spring" if name == "stiffness" else ""
        problems.append(f"{name} is {shortened(value)}, expected a finite number {expected}{rigid}")
    if problems:
        raise ModelError(type(spring).__name__, problems)


def _stiffness(torques: Any, z: Any) -> Any:
    return ca.trace(ca.jacobian(torques, z))


def _value(law: Callable[..., Any], *arguments: Any) -> ca.SX:
    result = law(*arguments)
    return ca.SX(result[0] if isinstance(result, (tuple, list)) else result)


@dataclass(frozen=True, eq=False)
class NonlinearSpring(_ByLaw):
    """torque = law(theta - q) + damping (theta' - q').

    law: casadi.Function or callable of one scalar, smooth, with a positive slope. guess: the deflection [rad, m] from
    which the one for a wanted torque is sought. torque_range (lowest, highest) [Nm, N]: torques that the spring must be
    able to give, refused by ModelError if the law does not reach them or they cannot be found; default what the
    law reaches, of which up to 1e5 is sure to be found, except where the law hardly rises: where its slope is less than
    a millionth of torque / deflection. Torques that it cannot give have the deflection NaN.
    """

    law: Callable[..., Any]
    damping: float = 0.0
    guess: float = 0.0
    factor: float = 1.0
    torque_range: tuple[float, float] | None = None
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    motors: ClassVar[tuple[str, ...]] = ("",)
    variable: ClassVar[bool] = False
    adjusted: ClassVar[bool] = False

    def _law(self, z: Any, sigma: Any) -> list[Any]:
        return [self.factor * _value(self.law, z[0])]

    @property
    def reach(self) -> tuple[float, float]:
        """(lowest, highest) torque [Nm, N] that the law gives where it rises, inf without an end."""
        return self._made["inverse"].torques

    def _inverse(self) -> inverse.Inverse:
        wanted, slope = self._made["wanted"], self._made["slope"]
        torques, ends = inverse.reach(wanted, slope, float(self.guess))
        sought = (max(torques[0], -inverse.USUAL), min(torques[1], inverse.USUAL))
        if self.torque_range is not None:
            sought = _range(self, "torque_range", self.torque_range)
            if not torques[0] <= sought[0] < sought[1] <= torques[1]:
                self._refuse(
                    f"torque_range is {sought[0]:g} to {sought[1]:g}, but the law, where it rises, reaches "
                    f"{torques[0]:.6g} to {torques[1]:.6g}"
                )
        inverted, _ = inverse.of_one(wanted, slope, float(self.guess), sought, ends, ())
        tau, none = ca.SX.sym("tau"), ca.SX.sym("sigma", 0)
        inside = ca.logic_and(tau > torques[0], tau < torques[1])  # the ends themselves are never quite reached
        z = ca.if_else(inside, inverted.function(tau, none), np.nan)
        function = inverted.function if np.isinf(torques).all() else ca.Function("inverse", [tau, none], [z])
        return replace(inverted, function=function, torques=torques)

    def refusal(self, torque: float, sigma: Sequence[float] = ()) -> Exception | None:
        """The error that says why there is no deflection for a torque; None if there is one."""
        if self._made["inverse"].function(torque, ca.DM(0, 1)).is_regular():
            return None
        return _beyond("NonlinearSpring", torque, "", self.reach)

    def scaled(self, factor: float) -> NonlinearSpring:
        """The same spring with its torque times a factor."""
        span = _times(factor, self.torque_range)
        return NonlinearSpring(self.law, self.damping, self.guess, self.factor * factor, span)


@dataclass(frozen=True, eq=False)
class VariableSpring(_ByLaw):
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
        return [self.factor * (sigma * z[0] if self.law is None else _value(self.law, z[0], sigma))]

    def _inverse(self) -> inverse.Inverse:
        if self.law is None:
            tau, sigma = ca.SX.sym("tau"), ca.SX.sym("sigma")
            z = ca.if_else(sigma > 0, tau / (self.factor * sigma), np.nan)
            return inverse.Inverse(ca.Function("inverse", [tau, sigma], [z]), 1, _ALL, _ALL)
        wanted, slope, start = self._made["wanted"], self._made["slope"], float(self.guess)
        if self.sigma_range is None:
            sigmas = np.geomspace(1e-2, 1e5, 15)
            at_start = inverse.values(slope, np.full(15, start), sigmas)[0]
            sigmas = sigmas[np.isfinite(at_start) & (at_start > 0)]
            if not sigmas.size:
                self._refuse(f"the law does not rise at the deflection {start:g} at any sigma from 0.01 to 1e5")
        else:
            sigmas = np.linspace(*_range(self, "sigma_range", self.sigma_range), 15)
        sought = (-inverse.USUAL, inverse.USUAL)
        if self.torque_range is not None:
            sought = _range(self, "torque_range", self.torque_range)
        for sigma in sigmas if self.torque_range and self.sigma_range else ():
            (low, high), _ = inverse.reach(wanted, slope, start, sigma)
            if not low <= sought[0] < sought[1] <= high:
                self._refuse(
                    f"torque_range is {sought[0]:g} to {sought[1]:g}, but at sigma = {sigma:.6g} the law, where it "
                    f"rises, reaches {low:.6g} to {high:.6g}"
                )
        inverted, problem = inverse.of_one(wanted, slope, start, sought, _ALL, sigmas)
        if problem and self.torque_range and self.sigma_range:
            self._refuse(f"{problem} over torque_range and sigma_range; give another guess or smaller ranges")
        return inverted

    def refusal(self, torque: float, sigma: Sequence[float]) -> Exception | None:
        """The error that says why there is no deflection for a torque at [sigma]; None if there is one."""
        if self._made["inverse"].function(torque, sigma[0]).is_regular():
            return None
        span = inverse.reach(self._made["wanted"], self._made["slope"], float(self.guess), sigma[0])[0]
        return _beyond("VariableSpring", torque, f" at sigma = {sigma[0]:.6g}", span)

    def scaled(self, factor: float) -> VariableSpring:
        """The same spring with its torque times a factor."""
        span = _times(factor, self.torque_range)
        return VariableSpring(self.law, self.damping, self.guess, self.factor * factor, span, self.sigma_range)


@dataclass(frozen=True, eq=False)
class AntagonisticSprings(_ByLaw):
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
        second = -_value(self.agonist, -z[1]) if self.antagonist is None else _value(self.antagonist, z[1])
        return [self.factor * _value(self.agonist, z[0]), self.factor * second]

    def stiffness_jet(self, z: Sequence[Any]) -> list[Any]:
        """[stiffness, its rate] at the jets z, one per motor."""
        below = [ca.vertcat(*(jet[k] for jet in z)) for k in range(2)]
        zero = ca.DM(1, 1)
        return [self._made["wanted"](below[0], zero)[1], self._derivative(1)(*below, zero, zero)[1]]

    def _inverse(self) -> inverse.Inverse:
        torques, sigmas = _ALL, _ALL
        if self.torque_range is not None:
            torques = _range(self, "torque_range", self.torque_range)
        if self.sigma_range is not None:
            sigmas = _range(self, "sigma_range", self.sigma_range)
        sizes = [max(map(abs, x)) if x is not _ALL else inverse.USUAL for x in (torques, sigmas)]
        wanted, slope, both = (self._made[x] for x in ("wanted", "slope", "torques"))
        inverted = inverse.of_two(wanted, slope, both, self._start(), sizes)
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
        span = inverse.stiffnesses(self._made["torques"], self._made["slope"], self._start(), torque)
        wanted, *ends = _told_apart(sigma[0], *(span or ()))
        text = f"AntagonisticSprings: no deflections give the torque {torque:.6g} with the stiffness {wanted}"
        if span is None:
            return LimitError(f"{text}; the springs cannot give that torque by pulling")
        if not span[0] <= sigma[0] <= span[1]:
            bound = f"at least {ends[0]}" if sigma[0] < span[0] else f"at most {ends[1]}"
            return LimitError(f"{text}; with that torque the stiffness of the pair, both pulling, is {bound}")
        return SolveError(f"{text}, or were not found; give another guess, or torque_range and sigma_range", "unsolved")

    def scaled(self, factor: float) -> AntagonisticSprings:
        """The same springs with their torques times a factor."""
        torques, sigmas = _times(factor, self.torque_range), _times(factor, self.sigma_range)
        return AntagonisticSprings(
            self.agonist, self.antagonist, self.damping, self.guess, self.factor * factor, torques, sigmas
        )


Spring: TypeAlias = LinearSpring | NonlinearSpring | VariableSpring | AntagonisticSprings
_ALL = (-np.inf, np.inf)


def _times(factor: float, span: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if span is None else (factor * span[0], factor * span[1])


def _beyond(spring: str, torque: float, where: str, span: tuple[float, float]) -> Exception:
    """The error for a torque without a deflection, span being what the law gives."""
    if not np.isfinite(torque):
        return ShapeError(f"{spring}: the torque{where} is {torque}, expected a finite number")
    miss = max(span[0] - torque, torque - span[1])
    torque, low, high = _told_apart(torque, *span)
    text = f"{spring}: no deflection gives the torque {torque}{where}; the law, where it rises, gives {low} to {high}"
    if miss >= 0:
        return LimitError(text + (f", short of it by {miss:.3g}" if miss else ", never quite"))
    return SolveError(f"{text}, but the deflection was not found; give torque_range to be sure", "unsolved")


def _told_apart(value: float, *ends: float) -> tuple[str, ...]:
    """Texts of the numbers, with as many digits as it takes to see the value beside the ends."""
    for digits in (6, 9, 12, 17):
        text, *others = (f"{x:.{digits}g}" for x in (value, *ends))
        if all(text != y or value == x for x, y in zip(ends, others, strict=True)):
            break
    return text, *others


def _range(spring: Any, name: str, ends: Any) -> tuple[float, float]:
    """(lowest, highest) of a range that was given."""
    try:
        low, high = (float(x) for x in as_floats(name, ends))
    except (TypeError, ValueError):
        low = high = np.nan
    if not -np.inf < low < high < np.inf:
        raise ModelError(type(spring).__name__, [f"{name} is {ends!r}, expected (lowest, highest), finite numbers"])
    return low, high


SPRINGS = (LinearSpring, NonlinearSpring, VariableSpring, AntagonisticSprings)
