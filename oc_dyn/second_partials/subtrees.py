"""Motion of all bodies, screws of their joints, and sums over subtrees, in working axes (kinematics/working_frames).

Velocities and accelerations are fields, pairs (angular, linear): a body with angular velocity w, whose origin moves
with u, has velocity u + w x r at r. Those of a body are seen from the ground, in axes at the body's origin.
"""

from dataclasses import dataclass, fields
from functools import cached_property

import casadi as ca
import numpy as np

from ..inverse_dynamics.taylor import newton_euler
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

    @cached_property
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
class Sums:
    """Sums over the bodies of a subtree, about one origin: m, h, P mass, first moment, second moments r r^T; K, l
    the Flow of the velocity; n, f moment and force."""

    m: object
    h: object
    P: object
    K: object
    l: object
    n: object
    f: object

    @staticmethod
    def zero():
        vector, matrix = ca.SX(3, 1), ca.SX(3, 3)
        return Sums(0, vector, matrix, matrix, vector, vector, vector)

    def __add__(self, other):
        return Sums(*(getattr(self, x.name) + getattr(other, x.name) for x in fields(self)))

    @cached_property
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

    def turned(self, turn):
        """The same in the axes from which `turn` turns."""
        h, l, n, f = (turn.outward(x) for x in (self.h, self.l, self.n, self.f))
        return Sums(self.m, h, turn.symmetric(self.P), turn.square(self.K), l, n, f)


@dataclass
class Motion:
    """Fields of one body: w, u velocity; wd derivative of w in the body's axes; a acceleration of the origin less
    gravity, U acceleration matrix (see inverse_dynamics/taylor)."""

    w: object
    u: object
    wd: object
    a: object
    U: object


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
        self.in_body, self.in_working = {}, {}  # sums of a body and the children that hang on its axes
        for i in model.bodies:
            self._move(i, v[i], dv[i])

    def _move(self, i, v, dv):
        model, frame, p = self.model, self.frames[i], self.model.parent[i]
        above = self.working[p] if frame.parallel else self.body[p]
        s = model.S[i][:3, :], model.S[i][3:, :]
        joint = [x @ y for y in (v, dv) for x in s]
        before = carried(frame, above)
        now = self.working[i] = self.body[i] = moved(before, joint)
        turned = frame.angle is not None
        if turned:
            self.body[i] = moved(tuple(frame.turn.inward(x) for x in before), joint)
        twisted = tuple(frame.inward(above.U @ frame.outward(x)) for x in s)
        self.screws[i] = screws(before, now, s, twisted, single=s[0].shape[1] == 1)

        # a body that only parallel axes hang on is turned into the working axes at once: its constants are sparse
        early = turned and all(self.frames[k].parallel for k in model.children[i])
        own = self._own(i, early)
        self.in_working[i], self.in_body[i] = (own, Sums.zero()) if early else (Sums.zero(), own)

    def _own(self, i, early):
        """Sums of one body, in its working axes if `early`, else in its own."""
        m, h, P = constants(self.model, i)
        wrench = (0, 0) if self.applied is None else ca.vertsplit(self.applied[i], 3)
        if early:
            turn = self.frames[i].turn
            h, P = turn.outward(h), turn.symmetric(P)
            wrench = wrench if self.applied is None else [turn.outward(x) for x in wrench]
        return body_sums(m, h, P, self.working[i] if early else self.body[i], wrench)

    def sum(self, i):
        """Sums of the subtree of body i in its working axes; hands them on to the parent."""
        frame, p = self.frames[i], self.model.parent[i]
        sums = self.in_body[i].turned(frame.turn) + self.in_working[i]
        if p:
            side = self.in_working if frame.parallel else self.in_body
            side[p] = side[p] + sums.moved(frame)
        return sums


def constants(model, i):
    """Mass, first moment and second moments of body i, in its axes."""
    inertia = model.inertia[i]
    P = 0.5 * np.trace(inertia.tensor) * np.eye(3) - inertia.tensor
    return inertia.mass, sparse(inertia.moment), sparse(P)


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


def spread(K):
    """trace(K) 1 - K."""
    xx, yy, zz = K[1, 1] + K[2, 2], K[0, 0] + K[2, 2], K[0, 0] + K[1, 1]
    return ca.vertcat(
        ca.horzcat(xx, -K[0, 1], -K[0, 2]), ca.horzcat(-K[1, 0], yy, -K[1, 2]), ca.horzcat(-K[2, 0], -K[2, 1], zz)
    )


def plus(a, b):
    """Sum of two pairs."""
    return a[0] + b[0], a[1] + b[1]


def turned_by(s, wrench):
    """What a wrench (moment, force) gains as the points it acts on are moved by s."""
    n, f = wrench
    return ca.cross(s[0], n) + ca.cross(s[1], f), ca.cross(s[0], f)


def acceleration_matrix(w, wd):
    x, y, z = w[0], w[1], w[2]
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return ca.vertcat(
        ca.horzcat(-(yy + zz), xy - wd[2], xz + wd[1]),
        ca.horzcat(xy + wd[2], -(xx + zz), yz - wd[0]),
        ca.horzcat(xz - wd[1], yz + wd[0], -(xx + yy)),
    )
