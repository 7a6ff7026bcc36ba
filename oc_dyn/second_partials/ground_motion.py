"""Motion of all bodies as seen from the ground, screws of their joints, and their integrals, in working axes."""

from dataclasses import dataclass

import casadi as ca

from ..working_axes.fields import BodyMotion, carried, moved, newton_euler
from ..working_axes.frames import sparse
from ..working_axes.rotations import cross
from ..working_axes.screws import joint_screws
from ..working_axes.sums import Flow, MassIntegrals, constants, rigid_flow
from ..working_axes.tree import WorkingTree


@dataclass
class GroundIntegrals(MassIntegrals):
    """K, l of twice the velocity."""

    m: object
    h: object
    P: object
    K: object
    l: object
    n: object
    f: object

    def inertia(self, a):
        """As for all MassIntegrals, of one column and with the sign that saves instructions where it is added up."""
        return self.tensor @ a[0] + cross(self.h, a[1]), self.m * a[1] + cross(a[0], self.h)

    def rigid_flow(self, y):
        """The Flow of twice a velocity field y of the subtree as one body."""
        return Flow(*rigid_flow(y, 2 * self.m, 2 * self.h, 2 * self.P))  # doubled first, so that equal terms cancel


class GroundTree(WorkingTree):
    """Motion and screws of all bodies at q, v, dv (nv,), with applied wrenches W (6, bodies) if given."""

    def __init__(self, model, q, v, dv, W=None):
        zero = ca.SX(3, 1)
        super().__init__(model, q, BodyMotion(zero, zero, zero, sparse(-model.gravity), ca.SX(3, 3)), W)
        v, dv = model.joint_v(v), model.joint_v(dv)
        self.screws = {}
        for i in model.bodies:
            self._move(i, v[i], dv[i])
        self.collect(GroundIntegrals, self._own)

    def _move(self, i, v, dv):
        frame, above = self.frames[i], self.above(i)
        s = self.model.S[i][:3, :], self.model.S[i][3:, :]
        joint = [part @ x for x in (v, dv) for part in s]
        before = carried(frame, above)
        self.move(i, lambda *x: moved(x, joint), before)
        twisted = tuple(frame.inward(above.U @ frame.outward(x)) for x in s)
        self.screws[i] = joint_screws(before, self.working[i], s, twisted, single=s[0].shape[1] == 1)

    def _own(self, i, motion, turn):
        m, h, _, P = constants(self.model.inertia[i])
        return body_integrals(m, turn.outward(h), turn.symmetric(P), motion, self.applied(i, turn))


def body_integrals(m, h, P, motion, wrench):
    """GroundIntegrals of one body with a wrench (moment, force) applied to it."""
    K, l = rigid_flow((motion.w, motion.u), 2 * m, 2 * h, 2 * P)
    f, n = newton_euler(m, h, P, motion.a, motion.U)
    return GroundIntegrals(m, h, P, K, l, n - wrench[0], f - wrench[1])
