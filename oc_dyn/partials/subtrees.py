"""What a motion makes of a robot, and sums over its subtrees: what the derivatives of a torque are put together from.

Velocities and accelerations are fields (kinematics/fields). They and the sums are kept in working axes
(kinematics/working_frames) at the body's origin.
Torques do not change if all velocities gain a constant, so every joint has its own observer, for whom it does not
travel: velocities are those against the point of the parent that is where the body's origin is.
"""

from dataclasses import dataclass, fields

import casadi as ca

from ..inverse_dynamics.taylor import newton_euler
from ..kinematics import fields as of_bodies
from ..kinematics import subtrees
from ..kinematics.fields import acceleration_matrix
from ..kinematics.step import cross
from ..kinematics.working_frames import sparse, working_frames
from ..lie.so3 import skew


@dataclass
class Sums(subtrees.Sums):
    """Sums over the bodies of a subtree, about one origin; integrals over their mass.

    m, h, T: mass, first moment, tensor. l, K: twice the integrals of v and v r^T, v the velocity. n, f: moment and
    force. L, J, k: integrals of y, y r^T, r x y, y the virtual velocity; g: what `coriolis_transposed` makes of y,
    body by body.
    """

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

    VECTORS, SYMMETRIC, SQUARE = "hlnfLkg", "T", "KJ"

    def moved(self, frame, drift):
        """The same about the parent's origin, in the axes of it that `frame` hangs on; twice the velocities gain
        `drift`."""
        R, p = frame.R, frame.p
        h, l, f, L, g = (R @ x for x in (self.h, self.l, self.f, self.L, self.g))
        P, H = skew(p), skew(h)
        T = R @ self.T @ R.T - P @ H - H @ P - self.m * (P @ P)
        h = h + self.m * p
        K, J = R @ self.K @ R.T + l @ p.T + drift @ h.T, R @ self.J @ R.T + L @ p.T
        n, k = R @ self.n + cross(p, f), R @ self.k + cross(p, L)
        l, g = l + self.m * drift, g + cross(drift, L)
        return Sums(self.m, h, ca.triu2symm(ca.triu(T)), l, K, n, f, L, J, k, g)

    def inertia(self, a):
        """Wrench that gives the subtree, as one body, the acceleration field a = (angular, linear)."""
        return self.T @ a[0] + cross(self.h, a[1]), self.m * a[1] - cross(self.h, a[0])

    def coriolis(self, w):
        """Wrench, over the mass, of twice the acceleration w x v."""
        return _moment(self.K, w), -cross(self.l, w)

    def coriolis_transposed(self, s):
        """Vector whose product with w is that of the motion s = (angular, linear) with coriolis(w)."""
        return _moment(self.K.T, s[0]) + cross(self.l, s[1])

    def virtual_coriolis(self, w):
        """Moment, over the mass, of twice w x y."""
        return 2 * _moment(self.J, w)

    def virtual_momentum(self):
        """Wrench, over the mass, of y; (k, L) in fewer instructions where J is wanted."""
        J = self.J
        return ca.vertcat(J[2, 1] - J[1, 2], J[0, 2] - J[2, 0], J[1, 0] - J[0, 1]), self.L


def _moment(K, w):
    return ca.trace(K) * w - K @ w


@dataclass
class Motion(of_bodies.Motion):
    """Fields of one body, and x, y its virtual velocity, angular and linear."""

    x: object
    y: object


@dataclass
class Screws:
    """Fields that belong to a joint, pairs (angular, linear) of columns: s its screws; psi what velocity the parent
    would gain, psi2 what acceleration, if it were turned back by s; zeta: what virtual velocity; rate: what
    acceleration the subtree gains by a velocity along s, beside that by velocities beyond.

    Symbols:  psi, psi2, rate are Psi', Psi'' and Psi' + S' of Singh et al. 2023, eqs. 13 and 15.
    """

    s: tuple
    psi: tuple
    psi2: tuple
    rate: tuple
    zeta: tuple

    def inward(self, turn):
        """The same in the turned axes."""
        return Screws(*([turn.inward(x) for x in getattr(self, f.name)] for f in fields(self)))


class Subtrees:
    """Motion of all bodies at q, v, dv (nv,), with applied wrenches W and virtual velocities lam (nv,) if given;
    then sum(i), tips first, once for every body."""

    def __init__(self, model, q, v, dv, W=None, lam=None):
        self.model = model
        joint_q, v, dv = model.joint_q(q), model.joint_v(v), model.joint_v(dv)
        lam = {i: ca.DM(*v[i].shape) for i in model.bodies} if lam is None else model.joint_v(lam)
        self.frames = working_frames(model, joint_q)
        self.applied = None if W is None else model.wrenches(W)
        zero = ca.SX(3, 1)
        ground = Motion(zero, zero, zero, sparse(-model.gravity), ca.SX(3, 3), zero, zero)
        self.working, self.body = {0: ground}, {0: ground}  # the motion, in the axes of both
        self.screws, self.drift = {}, {}  # drift: twice the velocity of the origin for the parent's observer
        for i in model.bodies:
            self._move(i, v[i], dv[i], lam[i])
        self._collected = subtrees.Collected(model, self.frames, Sums.zero(), self._own)

    def _move(self, i, v, dv, lam):
        frame, p = self.frames[i], self.model.parent[i]
        above = self.working[p] if frame.parallel else self.body[p]
        s = self.model.S[i][:3, :], self.model.S[i][3:, :]
        jw, ju = s[0] @ v, s[1] @ v
        c, wd, x = (frame.inward(z) for z in (above.w, above.wd, above.x))
        a, y = frame.inward(above.a + above.U @ frame.p), frame.inward(above.y + cross(above.x, frame.p))

        def moved(c, wd, a, x, y):
            w = c + jw
            wd = wd + cross(c, jw) + s[0] @ dv
            a = a + s[1] @ dv + cross(c + w, ju)
            return Motion(w, ju, wd, a, acceleration_matrix(w, wd), x + s[0] @ lam, y + s[1] @ lam)

        self.working[i] = self.body[i] = moved(c, wd, a, x, y)
        if frame.angle is not None:
            self.body[i] = moved(*(frame.turn.inward(z) for z in (c, wd, a, x, y)))
        self.drift[i] = 2 * (above.u + cross(above.w, frame.p))

        psi = cross(c, s[0]), cross(c, s[1])
        turning, sliding = (frame.inward(above.U @ frame.outward(z)) for z in s)
        rate = tuple(2 * z for z in psi)
        if s[0].shape[1] > 1:  # the screws of one joint move each other
            rate = rate[0] + cross(jw, s[0]), rate[1] + cross(jw, s[1]) + cross(ju, s[0])
        zeta = cross(x, s[0]), cross(x, s[1]) + cross(y, s[0])
        self.screws[i] = Screws(s, psi, (turning, sliding + cross(a, s[0])), rate, zeta)

    def _own(self, i, early):
        """Sums of one body, in its working axes if `early`, else in its own."""
        inertia, motion, turn = self.model.inertia[i], self.working[i] if early else self.body[i], self.frames[i].turn
        m, h, T, P = subtrees.constants(inertia)
        wrench = (0, 0) if self.applied is None else ca.vertsplit(self.applied[i], 3)
        doubled = (2 * m, 2 * h, 2 * P), (motion.w, motion.u)  # constants, where they still are
        if early:
            h, T = turn.outward(h), turn.symmetric(T)
            P = subtrees.second_moments(inertia, T)
            wrench = wrench if self.applied is None else [turn.outward(x) for x in wrench]
            doubled = (m, h, P), (2 * motion.w, 2 * motion.u)
        return _body_sums(m, h, T, P, motion, doubled, wrench)

    def sum(self, i):
        """Sums of the subtree of body i in its working axes; hands them on to the parent."""
        return self._collected.sum(i, self.drift[i])

    def climb(self, i, wrenches, turns):
        """From body i to the root: wrenches, pairs of columns (moment, force), and vectors `turns` carried from body to
        body. The first of both belong together: products with an acceleration and a velocity of the subtree.
        Yields for every body j above i: (j, its Screws, wrenches, turns), all in the same axes of j."""
        frame, drift, j = self.frames[i], self.drift[i], self.model.parent[i]
        while j:
            wrenches = [frame.wrench(*x) for x in wrenches]
            turns = [frame.outward(x) for x in turns]
            turns[0] = turns[0] + cross(drift, wrenches[0][1])
            arrived, frame, drift = frame.parallel, self.frames[j], self.drift[j]
            screws = self.screws[j]
            if not arrived and self.model.parent[j]:
                wrenches = [tuple(frame.turn.outward(x) for x in pair) for pair in wrenches]
                turns = [frame.turn.outward(x) for x in turns]
            elif not arrived:  # the last one: turning the joint's few fields is less
                screws = screws.inward(frame.turn)
            yield j, screws, wrenches, turns
            j = self.model.parent[j]


def _body_sums(m, h, T, P, motion, doubled, wrench):
    """`doubled`: inertia (m, h, P) and velocity (w, u), one of them twice what it is."""
    w, x, y = motion.w, motion.x, motion.y
    f, n = newton_euler(m, h, P, motion.a, motion.U)
    (m2, h2, P2), (w2, u2) = doubled
    l, K = m2 * u2 + cross(w2, h2), u2 @ h2.T + skew(w2) @ P2
    L, J, k = m * y + cross(x, h), y @ h.T + skew(x) @ P, T @ x + cross(h, y)
    # as coriolis_transposed((x, y)), by (a x r) x (b x r) = r r^T (a x b)
    g = 2 * (P @ cross(w, x) + cross(motion.u, L)) + cross(cross(w2, h2), y)
    return Sums(m, h, T, l, K, n - wrench[0], f - wrench[1], L, J, k, g)
