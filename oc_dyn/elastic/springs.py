"""Springs between a joint's motor and its link: linear, of any law, of variable stiffness, antagonistic pairs.

A spring has one deflection z = theta - q for each of its motors and pulls the link by the sum of its torques. Every
kind knows its torques and energy and, the other way, the deflections that a wanted joint torque needs, with all time
derivatives. The elastic torque alone is meant throughout; damping stands beside it.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import casadi as ca
import numpy as np

from ..errors import ModelError
from ..lie.along import time_derivatives

NEWTON_STEPS = 25  # enough for laws that double their stiffness several times within the range used


@dataclass(frozen=True)
class LinearSpring:
    """torque = stiffness (theta - q) + damping (theta' - q'); Nm/rad and Nm s/rad, or N/m and N s/m."""

    stiffness: float
    damping: float = 0.0

    motors: ClassVar[tuple] = ("",)  # suffixes of the motors' names
    variable: ClassVar[bool] = False  # whether the stiffness is a second flat output, port sigma
    adjusted: ClassVar[bool] = False  # whether sigma is a coordinate of the spring

    def torques(self, z, sigma):
        """[torque] at deflections z = [z]."""
        return [self.stiffness * z[0]]

    def energy(self, z, sigma):
        """Energy stored in the spring [J]."""
        return 0.5 * self.stiffness * z[0] ** 2

    def deflections(self, torque, sigma):
        """One jet of derivatives a motor, as many as the joint torque has: torque = [tau, tau', ...]."""
        return [[x / self.stiffness for x in torque]]

    def deflection(self, k, z, torque, sigma):
        """Derivative k of each deflection; z: one jet a motor of those below k (not needed here)."""
        return [torque[k] / self.stiffness]

    def scaled(self, factor):
        """The same spring, so many times as stiff."""
        return LinearSpring(self.stiffness * factor, self.damping)


@dataclass(frozen=True, eq=False)
class _ByLaw:
    """What springs given by a law share. Fields that subclasses have: law(s), damping, guess, factor.

    _made: Functions of the law, by name, and its derivatives by their number; each spring has its own, as it is not
    handed on by dataclasses.replace, and laws are read once, when the spring is made.
    """

    def __post_init__(self):
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
        if not np.linalg.det(self._made["slope"](self._start(), np.ones(int(self.variable))).full()) != 0:
            self._refuse(
                f"the law has no slope at the deflections {self._start()} where the solution for a wanted torque "
                "starts; give another guess"
            )

    def _refuse(self, problem):
        raise ModelError(type(self).__name__, [problem])

    def _start(self):
        return np.broadcast_to(np.asarray(self.guess, float), len(self.motors)).copy()

    def _energy(self, z, sigma):
        """Integral of each torque over its deflection by Gauss-Legendre quadrature; exact to rounding if smooth."""
        points, weights = np.polynomial.legendre.leggauss(24)
        energy = 0
        for s, w in zip(0.5 * (points + 1), 0.5 * weights, strict=True):
            energy = energy + w * ca.dot(z, ca.vertcat(*self._law(ca.vertsplit(s * z), sigma)))
        return energy

    def torques(self, z, sigma):
        """[torque, ...] at deflections z = [z, ...], one a motor."""
        return ca.vertsplit(self._made["torques"](ca.vertcat(*z), self._coordinate(sigma)))

    def energy(self, z, sigma):
        """Energy stored in the spring [J]."""
        return self._made["energy"](ca.vertcat(*z), self._coordinate(sigma))

    def _coordinate(self, sigma):
        return sigma if self.adjusted else ca.DM(int(self.variable), 1)

    def deflections(self, torque, sigma):
        """One jet of derivatives a motor, as many as the joint torque has.

        torque: [tau, tau', ...]; sigma: [sigma, sigma', ...], as many, where the stiffness is variable. The deflection
        itself comes from NEWTON_STEPS steps of Newton's method from `guess`, its derivatives from linear equations.
        """
        z = ca.DM(self._start())
        target, given = self._target(0, torque, sigma), self._coordinate(sigma and sigma[0])
        for _ in range(NEWTON_STEPS):
            z = z - _solve(self._made["slope"](z, given), self._made["wanted"](z, given) - target)
        jets = [[x] for x in ca.vertsplit(z)]
        for k in range(1, len(torque)):
            for jet, x in zip(jets, self.deflection(k, jets, torque, sigma), strict=True):
                jet.append(x)
        return jets

    def deflection(self, k, z, torque, sigma):
        """Derivative k of each deflection; z: one jet a motor of those below k.

        The k-th derivative of wanted(z, sigma) = target is linear in that of z: slope z^(k) + rest = target^(k).
        """
        below = [ca.vertcat(*x) for x in zip(*(jet[:k] for jet in z), strict=True)]
        given = [self._coordinate(sigma and sigma[j]) for j in range(k + 1)]
        rest = self._derivative(k)(*below, ca.DM(len(self.motors), 1), *given)
        slope = self._made["slope"](below[0], given[0])
        return ca.vertsplit(_solve(slope, self._target(k, torque, sigma) - rest))

    def _target(self, k, torque, sigma):
        return torque[k] if len(self.motors) == 1 else ca.vertcat(torque[k], sigma[k])

    def _derivative(self, k):
        """casadi.Function (z, z', .., z^(k), sigma, .., sigma^(k)) -> derivative k of wanted(z, sigma)."""
        if k not in self._made:
            z = [ca.SX.sym("z", len(self.motors)) for _ in range(k + 1)]
            s = [ca.SX.sym("sigma", int(self.variable)) for _ in range(k + 1)]
            flow = [*zip(z[:-1], z[1:], strict=True), *zip(s[:-1], s[1:], strict=True)]
            rates = time_derivatives(self._made["wanted"](z[0], s[0]), k, flow, cse=True)
            self._made[k] = ca.Function("derivative", [*z, *s], [rates[k]])
        return self._made[k]


def _stiffness(torques, z):
    return ca.trace(ca.jacobian(torques, z))


def _solve(A, b):
    """Solution of A x = b of one or two equations."""
    if A.shape == (1, 1):
        return b / A
    return ca.vertcat(A[1, 1] * b[0] - A[0, 1] * b[1], A[0, 0] * b[1] - A[1, 0] * b[0]) / (
        A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    )


def _value(law, *arguments):
    found = law(*arguments)
    return ca.SX(found[0] if isinstance(found, (tuple, list)) else found)


@dataclass(frozen=True, eq=False)
class NonlinearSpring(_ByLaw):
    """torque = law(theta - q) + damping (theta' - q').

    law: casadi.Function or callable of one scalar, smooth, with a positive slope. guess: the deflection [rad, m] from
    which the one for a wanted torque is sought.
    """

    law: object
    damping: float = 0.0
    guess: float = 0.0
    factor: float = 1.0
    _made: dict = field(default_factory=dict, init=False, repr=False)

    motors: ClassVar[tuple] = ("",)
    variable: ClassVar[bool] = False
    adjusted: ClassVar[bool] = False

    def _law(self, z, sigma):
        return [self.factor * _value(self.law, z[0])]

    def scaled(self, factor):
        """The same spring, so many times as stiff."""
        return NonlinearSpring(self.law, self.damping, self.guess, self.factor * factor)


@dataclass(frozen=True, eq=False)
class VariableSpring(_ByLaw):
    """torque = law(theta - q, sigma) + damping (theta' - q'): stiffness set directly, by a coordinate sigma.

    law: casadi.Function or callable of two scalars, smooth, with a positive slope in the first; None is
    sigma (theta - q), sigma [Nm/rad] being the stiffness. guess: as of a NonlinearSpring.
    """

    law: object = None
    damping: float = 0.0
    guess: float = 0.0
    factor: float = 1.0
    _made: dict = field(default_factory=dict, init=False, repr=False)

    motors: ClassVar[tuple] = ("",)
    variable: ClassVar[bool] = True
    adjusted: ClassVar[bool] = True

    def _law(self, z, sigma):
        return [self.factor * (sigma * z[0] if self.law is None else _value(self.law, z[0], sigma))]

    def scaled(self, factor):
        """The same spring, so many times as stiff."""
        return VariableSpring(self.law, self.damping, self.guess, self.factor * factor)


@dataclass(frozen=True, eq=False)
class AntagonisticSprings(_ByLaw):
    """Two motors pull on one joint: torque = agonist(theta_1 - q) + antagonist(theta_2 - q) + damping of each.

    The stiffness agonist'(z_1) + antagonist'(z_2) at constant motor positions is the port sigma. agonist, antagonist:
    laws as of a NonlinearSpring, not linear, or else the stiffness could not be varied; the antagonist is by default
    the agonist seen in a mirror, -agonist(-z). guess (2,): deflections from which those for a wanted torque and
    stiffness are sought.
    """

    agonist: object
    antagonist: object = None
    damping: float = 0.0
    guess: tuple = (0.1, -0.1)
    factor: float = 1.0
    _made: dict = field(default_factory=dict, init=False, repr=False)

    motors: ClassVar[tuple] = (".agonist", ".antagonist")
    variable: ClassVar[bool] = True
    adjusted: ClassVar[bool] = False

    def _law(self, z, sigma):
        second = -_value(self.agonist, -z[1]) if self.antagonist is None else _value(self.antagonist, z[1])
        return [self.factor * _value(self.agonist, z[0]), self.factor * second]

    def stiffness_jet(self, z):
        """[stiffness, its rate] at the jets z, one a motor."""
        below = [ca.vertcat(*(jet[k] for jet in z)) for k in range(2)]
        zero = ca.DM(1, 1)
        return [self._made["wanted"](below[0], zero)[1], self._derivative(1)(*below, zero, zero)[1]]

    def scaled(self, factor):
        """The same springs, so many times as stiff."""
        return AntagonisticSprings(self.agonist, self.antagonist, self.damping, self.guess, self.factor * factor)


SPRINGS = (LinearSpring, NonlinearSpring, VariableSpring, AntagonisticSprings)
