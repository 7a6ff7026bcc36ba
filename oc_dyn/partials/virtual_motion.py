"""Motion of a robot and its virtual motion, and their integrals: what derivatives of a torque are put together from.

Torques do not change if all velocities gain a constant, so every joint has its own observer, for whom it does not
travel: velocities are those against the point of the parent that is where the body's origin is.
"""

from dataclasses import dataclass, replace

import casadi as ca

from ..lie.so3 import skew
from ..working_axes.fields import BodyMotion, carried, moved, newton_euler
from ..working_axes.frames import sparse
from ..working_axes.rotations import cross
from ..working_axes.screws import bracket, joint_screws
from ..working_axes.sums import Flow, MassIntegrals, constants, second_moments
from ..working_axes.tree import WorkingTree


@dataclass(frozen=True)
class VirtualMotion(BodyMotion):
    """Fields of one body, and x, y its virtual velocity, angular and linear."""

    x: object
    y: object


@dataclass
class VirtualIntegrals(MassIntegrals):
    """All integrals about the motion and the virtual motion; K, l of twice the velocity."""

    m: object
    h: object
    T: object
    l: object
    K: object
    n: object
    f: object
    L: object
    J: object
    k: object
    g: object

    @property
    def virtual_flow(self):
        """The Flow of the virtual velocity y."""
        return Flow(self.J, self.L)


class VirtualTree(WorkingTree):
    """Motion of all bodies at q, v, dv (nv,), with applied wrenches W and virtual velocities lam (nv,) if given, and
    screws of their joints; zeta[i]: what virtual velocity the parent would gain if it were turned back by screws[i]."""

    integrals: type[MassIntegrals] = VirtualIntegrals

    def __init__(self, model, q, v, dv, W=None, lam=None):
        zero = ca.SX(3, 1)
        ground = VirtualMotion(zero, zero, zero, sparse(-model.gravity), ca.SX(3, 3), zero, zero)
        super().__init__(model, q, ground, W)
        v, dv = model.joint_v(v), model.joint_v(dv)
        lam = {i: ca.DM(*v[i].shape) for i in model.bodies} if lam is None else model.joint_v(lam)
        self.screws, self.zeta = {}, {}
        for i in model.bodies:
            self._move(i, v[i], dv[i], lam[i])
        self.collect(self.integrals, self._own)

    def _move(self, i, v, dv, lam):
        frame, above = self.frames[i], self.above(i)
        s = self.model.S[i][:3, :], self.model.S[i][3:, :]
        joint = [part @ x for x in (v, dv) for part in s]
        x, y = frame.inward(above.x), frame.inward(above.y + cross(above.x, frame.p))
        before = carried(frame, above, observed=False)

        def motion(c, u, wd, a, x, y):
            now = moved((c, u, wd, a), joint)
            return VirtualMotion(now.w, now.u, now.wd, now.a, now.U, x + s[0] @ lam, y + s[1] @ lam)

        self.move(i, motion, (*before, x, y))
        self.frames[i] = replace(frame, drift=2 * (above.u + cross(above.w, frame.p)))
        twisted = tuple(frame.inward(above.U @ frame.outward(z)) for z in s)
        self.screws[i] = joint_screws(before, self.working[i], s, twisted, single=s[0].shape[1] == 1)
        self.zeta[i] = bracket((x, y), s)

    def _own(self, i, motion, turn):
        inertia = self.model.inertia[i]
        m, h, T, P = constants(inertia)
        doubled = (2 * m, 2 * h, 2 * P), (motion.w, motion.u)  # constants, where they still are
        if not turn.identity:
            h, T = turn.outward(h), turn.symmetric(T)
            P = second_moments(inertia, T)
            doubled = (m, h, P), (2 * motion.w, 2 * motion.u)
        return _integrals(m, h, T, P, motion, doubled, self.applied(i, turn))

    def screws_at(self, j, working):
        """Screws of joint j and its zeta, in the working axes of body j or in its body axes."""
        if working:
            return self.screws[j], self.zeta[j]
        turn = self.frames[j].turn
        return self.screws[j].inward(turn), tuple(turn.inward(x) for x in self.zeta[j])


def _integrals(m, h, T, P, motion, doubled, wrench):
    """Those of one body. `doubled`: inertia (m, h, P) and velocity (w, u), one of them twice what it is."""
    w, x, y = motion.w, motion.x, motion.y
    f, n = newton_euler(m, h, P, motion.a, motion.U)
    (m2, h2, P2), (w2, u2) = doubled
    K, l = u2 @ h2.T + skew(w2) @ P2, m2 * u2 + cross(w2, h2)
    J, L = y @ h.T + skew(x) @ P, m * y + cross(x, h)
    # as coriolis_transposed((x, y)), by (a x r) x (b x r) = r r^T (a x b)
    g = 2 * (P @ cross(w, x) + cross(motion.u, L)) + cross(cross(w2, h2), y)
    return VirtualIntegrals(m, h, T, l, K, n - wrench[0], f - wrench[1], L, J, T @ x + cross(h, y), g)
