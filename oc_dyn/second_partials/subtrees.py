"""Motion of all bodies, screws of their joints, and sums over subtrees, in working axes (kinematics/working_frames).

Velocities and accelerations are fields (kinematics/fields). Those of a body are seen from the ground, in axes at the
body's origin.
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from ..inverse_dynamics.taylor import newton_euler
from ..kinematics import subtrees
from ..kinematics.fields import Motion, acceleration_matrix, spread
from ..kinematics.step import cross
from ..kinematics.working_frames import sparse, working_frames
from ..lie.so3 import skew


@dataclass
class Flow:
    """K, l: twice the integrals over the mass of y r^T and of y, for a velocity y of the points of a subtree."""

    K: object
    l: object

    def coriolis(self, w):
        """Wrench of twice the acceleration w x y: 2 B(I, y) of Singh et al., which needs the turn w only."""
        return self._spread @ w, ca.cross(w, self.l)

    def transposed(self, s):
        """Vector whose product with w is that of the motion s with coriolis(w)."""
        return self._spread.T @ s[0] + ca.cross(self.l, s[1])

    def momentum(self):
        """Twice the momentum of y: moment, force."""
        K = self.K
        return ca.vertcat(K[2, 1] - K[1, 2], K[0, 2] - K[2, 0], K[1, 0] - K[0, 1]), self.l

    def inertia_change(self, x):
        """Wrench of the acceleration field x over the change of the inertia as the subtree moves by y."""
        half = 0.5 * self.l
        return self._symmetric @ x[0] + ca.cross(half, x[1]), ca.cross(x[0], half)

    @cached_property  # fields are never assigned anew: sums make new objects
    def _spread(self):
        return spread(self.K)

    @cached_property
    def _symmetric(self):
        return 0.5 * (self._spread + self._spread.T)

    def moved(self, frame):
        """The same about the parent's origin, in the axes of it that `frame` hangs on."""
        l = frame.outward(self.l)
        return Flow(frame.R @ self.K @ frame.R.T + l @ frame.p.T, l)

    def turned(self, turn):
        """The same in the axes from which `turn` turns."""
        return Flow(turn.square(self.K), turn.outward(self.l))


@dataclass
class Sums(subtrees.Sums):
    """Sums over the bodies of a subtree, about one origin: m, h, P mass, first moment, second moments r r^T; K, l
    the Flow of the velocity; n, f moment and force."""

    m: object
    h: object
    P: object
    K: object
    l: object
    n: object
    f: object

    VECTORS, SYMMETRIC, SQUARE = "hlnf", "P", "K"

    @cached_property  # as above
    def _spread(self):
        return spread(self.P)

    @cached_property
    def velocity(self):
        return Flow(self.K, self.l)

    def flow(self, y):
        """The Flow of a velocity field y of the subtree as one body."""
        (w, u), (m, h, P) = y, (2 * self.m, 2 * self.h, 2 * self.P)  # doubled first, so that equal terms cancel
        return Flow(u @ h.T + skew(w) @ P, m * u + ca.cross(w, h))

    def inertia(self, a):
        """Wrench that gives the subtree, as one body, the acceleration field a."""
        return self._spread @ a[0] + ca.cross(self.h, a[1]), self.m * a[1] + ca.cross(a[0], self.h)

    def moved(self, frame):
        """The same about the parent's origin, in the axes of it that `frame` hangs on."""
        R, p = frame.R, frame.p
        h, l, f = (R @ x for x in (self.h, self.l, self.f))
        across = h @ p.T
        P = R @ self.P @ R.T + across + across.T + self.m * (p @ p.T)
        K, n = R @ self.K @ R.T + l @ p.T, R @ self.n + cross(p, f)
        return Sums(self.m, h + self.m * p, ca.triu2symm(ca.triu(P)), K, l, n, f)


@dataclass
class Screws:
    """Fields of a joint's screws as columns: s themselves; psi what velocity the parent would gain, psi2 what
    acceleration, if it were turned back by s; rate: psi and the time derivative of s together, None where it is twice
    psi, as it is for a joint of one coordinate. Psi', Psi'', Psi' + S' of Singh et al., eq. 15."""

    s: tuple
    psi: tuple
    psi2: tuple
    spin: tuple | None

    @property
    def rate(self):
        return self.spin or (2 * self.psi[0], 2 * self.psi[1])

    @property
    def size(self):
        return self.s[0].shape[1]

    def each(self, function):
        """The same with function(angular, linear) -> (angular, linear) done to every field."""
        return Screws(*(x and function(*x) for x in (self.s, self.psi, self.psi2, self.spin)))

    def column(self, t):
        """The fields of one coordinate."""
        return self.each(lambda w, u: (w[:, t], u[:, t]))


class Subtrees:
    """Motion and screws of all bodies at q, v, dv (nv,), with applied wrenches W (6, bodies) if given; then sum(i),
    tips first, once for every body."""

    def __init__(self, model, q, v, dv, W=None):
        self.model = model
        joint_q, v, dv = model.joint_q(q), model.joint_v(v), model.joint_v(dv)
        self.frames = working_frames(model, joint_q)
        self.applied = None if W is None else model.wrenches(W)
        zero = ca.SX(3, 1)
        ground = Motion(zero, zero, zero, sparse(-model.gravity), ca.SX(3, 3))
        self.working, self.body, self.screws = {0: ground}, {0: ground}, {}
        for i in model.bodies:
            self._move(i, v[i], dv[i])
        self.sum = subtrees.Collected(model, self.frames, Sums.zero(), self._own).sum

    def _move(self, i, v, dv):
        model, frame, p = self.model, self.frames[i], self.model.parent[i]
        above = self.working[p] if frame.parallel else self.body[p]
        s = model.S[i][:3, :], model.S[i][3:, :]
        joint = [x @ y for y in (v, dv) for x in s]
        before = carried(frame, above)
        now = self.working[i] = self.body[i] = moved(before, joint)
        if frame.angle is not None:
            self.body[i] = moved(tuple(frame.turn.inward(x) for x in before), joint)
        twisted = tuple(frame.inward(above.U @ frame.outward(x)) for x in s)
        self.screws[i] = screws(before, now, s, twisted, single=s[0].shape[1] == 1)

    def _own(self, i, early):
        """Sums of one body, in its working axes if `early`, else in its own."""
        m, h, _, P = subtrees.constants(self.model.inertia[i])
        wrench = (0, 0) if self.applied is None else ca.vertsplit(self.applied[i], 3)
        if early:
            turn = self.frames[i].turn
            h, P = turn.outward(h), turn.symmetric(P)
            wrench = wrench if self.applied is None else [turn.outward(x) for x in wrench]
        return body_sums(m, h, P, self.working[i] if early else self.body[i], wrench)


def carried(frame, above):
    """(w, u, wd, a) of the points of the parent at a body's origin, from the parent's Motion."""
    u, a = above.u + cross(above.w, frame.p), above.a + above.U @ frame.p
    return tuple(frame.inward(x) for x in (above.w, u, above.wd, a))


def moved(before, joint):
    """Motion of a body from `carried` and its joint's (w, u) and the parts of their rates that dv makes."""
    (c, u, wd, a), (jw, ju, aw, au) = before, joint
    w = c + jw
    wd = wd + cross(c, jw) + aw
    return Motion(w, u + ju, wd, a + au + cross(c + w, ju), acceleration_matrix(w, wd))


def screws(before, now, s, twisted, single):
    """Screws of a joint from `carried` and the Motion of its body; twisted: the acceleration matrix of the parent
    times s."""
    c, u, _, a = before
    psi = cross(c, s[0]), cross(c, s[1]) + cross(u, s[0])
    psi2 = twisted[0], twisted[1] + cross(a, s[0]) + 2 * cross(u, psi[0])
    rate = psi[0] + cross(now.w, s[0]), psi[1] + cross(now.w, s[1]) + cross(now.u, s[0])
    return Screws(s, psi, psi2, None if single else rate)


def body_sums(m, h, P, motion, wrench):
    """Sums of one body with a wrench (moment, force) applied to it."""
    own = Sums(m, h, P, None, None, None, None)
    velocity = own.flow((motion.w, motion.u))
    f, n = newton_euler(m, h, P, motion.a, motion.U)
    return Sums(m, h, P, velocity.K, velocity.l, n - wrench[0], f - wrench[1])
