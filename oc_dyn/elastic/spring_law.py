"""What springs given by a law share: torques, energy, deflections for a wanted torque, and the words of refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NoReturn, cast

import casadi as ca
import numpy as np

from .. import validation
from ..errors import LimitError, ModelError, ShapeError, SolveError
from ..lie.time_derivatives import time_derivatives
from ..numbers import are_sane, as_floats, shortened
from ..types import Array
from . import inverse
from .callables import FAILURES, failure

ALL = (-np.inf, np.inf)


class SpringLaw:
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
        check(self, "factor", self._start())
        z, sigma = ca.SX.sym("z", len(self.motors)), ca.SX.sym("sigma", int(self.variable))
        torques = self._law(ca.vertsplit(z), sigma)
        for x in torques:
            if x.shape != (1, 1) or not ca.Function("law", [z, sigma], [x])(self._start(), 1.0).is_regular():
                self._refuse(f"the law gives no finite number at the deflection {self.guess} and sigma = 1")
        torques = ca.vertcat(*torques)
        wanted = torques if len(self.motors) == 1 else ca.vertcat(ca.sum1(torques), stiffness_of(torques, z))
        self._made.update(
            torques=ca.Function("torques", [z, sigma], [torques]),
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

    def _energy(self, z: Any, sigma: Any, panels: int = 1) -> Any:
        """Integral of each torque over its deflection by Gauss-Legendre quadrature; exact to rounding if smooth.

        panels: parts of the way, each half as long as the next, for laws that bend close to no deflection.
        """
        points, weights = np.polynomial.legendre.leggauss(24)
        edges = np.append(0.0, 0.5 ** np.arange(panels - 1, -1, -1))
        energy = 0
        for low, high in pairwise(edges):
            for x, w in zip(points, weights, strict=True):
                s = (low + high + (high - low) * x) / 2
                torques = ca.vertcat(*self._law(ca.vertsplit(s * z), sigma))
                energy = energy + w * (high - low) / 2 * ca.dot(z, torques)
        return energy

    def torques(self, z: Sequence[Any], sigma: Any) -> list[Any]:
        """[torque, ...] at deflections z = [z, ...], one per motor."""
        return ca.vertsplit(self._made["torques"](ca.vertcat(*z), self._coordinate(sigma)))

    def energy(self, z: Sequence[Any], sigma: Any) -> Any:
        """Energy stored in the spring [J]."""
        if "energy" not in self._made:  # few ask for it
            x, s = ca.SX.sym("z", len(self.motors)), ca.SX.sym("sigma", int(self.variable))
            self._made["energy"] = ca.Function("energy", [x, s], [self._energy(x, s)])
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


def check(spring: Any, positive: str, guess: Any = ()) -> None:
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


def stiffness_of(torques: Any, z: Any) -> Any:
    """Sum of the slopes of all torques, each by its own deflection."""
    return ca.trace(ca.jacobian(torques, z))


def value(law: Callable[..., Any], *arguments: Any) -> ca.SX:
    """What a law gives, a casadi.Function or a callable, as an expression; ModelError where it fails."""
    given = f"{len(arguments)} scalar" + "s" * (len(arguments) > 1)
    if not callable(law):
        raise ModelError("spring", [f"its law is {shortened(law)}, expected a casadi.Function or callable of {given}"])
    try:
        result = law(*arguments)
        return ca.SX(result[0] if isinstance(result, (tuple, list)) else result)
    except FAILURES as error:
        text = f"its law fails on {given} of casadi: {failure(error)}"
        raise ModelError("spring", [text]) from error


def times(factor: float, span: tuple[float, float] | None) -> tuple[float, float] | None:
    """A range times a factor."""
    return None if span is None else (factor * span[0], factor * span[1])


def beyond(spring: str, torque: float, where: str, span: tuple[float, float]) -> Exception:
    """The error for a torque without a deflection, span being what the law gives."""
    if not np.isfinite(torque):
        return ShapeError(f"{spring}: the torque{where} is {torque}, expected a finite number")
    miss = max(span[0] - torque, torque - span[1])
    torque, low, high = told_apart(torque, *span)
    text = f"{spring}: no deflection gives the torque {torque}{where}; the law, where it rises, gives {low} to {high}"
    if miss >= 0:
        return LimitError(text + (f", short of it by {miss:.3g}" if miss else ", never quite"))
    return SolveError(f"{text}, but the deflection was not found; give torque_range to be sure", "unsolved")


def told_apart(value: float, *ends: float) -> tuple[str, ...]:
    """Texts of the numbers, with as many digits as it takes to see the value beside the ends."""
    for digits in (6, 9, 12, 17):
        text, *others = (f"{x:.{digits}g}" for x in (value, *ends))
        if all(text != y or value == x for x, y in zip(ends, others, strict=True)):
            break
    return text, *others


def range_of(spring: Any, name: str, ends: Any) -> tuple[float, float]:
    """(lowest, highest) of a range that was given."""
    try:
        low, high = (float(x) for x in as_floats(name, ends))
    except (TypeError, ValueError):
        low = high = np.nan
    if not -np.inf < low < high < np.inf:
        raise ModelError(type(spring).__name__, [f"{name} is {ends!r}, expected (lowest, highest), finite numbers"])
    return low, high
