"""The screws of a joint, and how the motion of the robot moves them."""

from dataclasses import dataclass

from .fields import plus
from .rotations import cross


@dataclass(frozen=True)
class JointScrews:
    """Fields of a joint's screws as columns: s themselves; psi what velocity the parent would gain, psi2 what
    acceleration, if it were turned back by s; spin psi and the time derivative of s together, None where it is twice
    psi, as it is for a joint of one coordinate.

    Symbols:   psi, psi2, rate are Psi', Psi'' and Psi' + S' of Singh et al. 2023, eqs. 13 and 15.
    """

    s: tuple
    psi: tuple
    psi2: tuple
    spin: tuple | None

    @property
    def rate(self):
        """What acceleration the subtree gains by a velocity along s, beside that by velocities beyond."""
        return self.spin or (2 * self.psi[0], 2 * self.psi[1])

    @property
    def size(self):
        """How many coordinates the joint has."""
        return self.s[0].shape[1]

    def each(self, function):
        """The same with function(angular, linear) -> (angular, linear) done to every field."""
        return JointScrews(*(x and function(*x) for x in (self.s, self.psi, self.psi2, self.spin)))

    def inward(self, turn):
        """The same in turned axes."""
        return self.each(lambda w, u: (turn.inward(w), turn.inward(u)))

    def column(self, t):
        """The fields of one coordinate."""
        return self.each(lambda w, u: (w[:, t], u[:, t]))


def joint_screws(before, now, s, twisted, single):
    """Screws of a joint from fields.carried and the BodyMotion of its body; twisted: the acceleration matrix of the
    parent times s. single: whether the joint has one coordinate."""
    c, u, _, a = before
    psi = bracket((c, u), s)
    psi2 = twisted[0], twisted[1] + cross(a, s[0]) + 2 * cross(u, psi[0])
    return JointScrews(s, psi, psi2, None if single else plus(psi, bracket((now.w, now.u), s)))


def bracket(v, s):
    """Lie bracket of the field v with the fields s."""
    return cross(v[0], s[0]), cross(v[0], s[1]) + cross(v[1], s[0])
