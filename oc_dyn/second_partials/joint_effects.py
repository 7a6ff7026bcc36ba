"""What a small motion of one joint does to the forces on its subtree, and what these do to the joints above."""

from dataclasses import dataclass

import casadi as ca

from ..lie.so3 import skew
from ..working_axes.fields import plus, turned_by
from ..working_axes.sums import Flow


@dataclass
class Effect:
    """What motion along one coordinate of a joint does to its subtree.

    s: Flow of the motion itself. change: how it changes that of the subtree's velocity. along_q, along_v: wrench
    (moment, force) by a step of the coordinate, by its velocity. G: what the joint feels of a turn w of its subtree,
    through its velocity.
    """

    s: Flow
    change: Flow
    along_q: tuple
    along_v: tuple
    G: object

    def moved(self, frame):
        """The same about the parent's origin, in the axes of it that `frame` hangs on."""
        along_q, along_v = frame.wrench(*self.along_q), frame.wrench(*self.along_v)
        return Effect(self.s.moved(frame), self.change.moved(frame), along_q, along_v, frame.outward(self.G))

    def turned(self, turn):
        """The same in the axes from which `turn` turns."""
        along_q, along_v = ([turn.outward(x) for x in y] for y in (self.along_q, self.along_v))
        return Effect(self.s.turned(turn), self.change.turned(turn), along_q, along_v, turn.outward(self.G))


def effect(sums, screw):
    """The Effect of one coordinate on its subtree from the GroundIntegrals over it and the coordinate's JointScrews.

    Source: Singh et al. 2023, eq. 12 and 13, K10 and K12.
    """
    velocity, psi, W = sums.flow, sums.rigid_flow(screw.psi), skew(screw.s[0])
    change = Flow(
        W @ velocity.K - velocity.K @ W + velocity.l @ screw.s[1].T + psi.K,
        ca.cross(screw.s[0], velocity.l) + psi.l,
    )
    held = plus(velocity.coriolis(screw.psi[0]), sums.inertia(screw.psi2))
    along_q = plus(held, turned_by(screw.s, (sums.n, sums.f)))
    carried = psi.momentum() if screw.spin is None else sums.inertia(screw.rate)
    along_v = plus(velocity.coriolis(screw.s[0]), carried)
    return Effect(sums.rigid_flow(screw.s), change, along_q, along_v, velocity.coriolis_transposed(screw.s))
