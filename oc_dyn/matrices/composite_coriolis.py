"""Coriolis matrix, with M and g on the way, by composite bodies: all points beyond a joint, by an observer who does not
turn.

The motion of a joint and its rate are fields over the points of all bodies beyond it. Momenta and forces of a field go
from body to body as wrenches do, both alike: nothing turns with the bodies. M and C do not change if all velocities
gain a constant, so every body has its own observer, who goes along with its origin.
"""

from dataclasses import dataclass

import casadi as ca

from ..kinematics import subtrees
from ..kinematics.fields import plus, product, spread
from ..kinematics.step import cross
from ..kinematics.working_frames import sparse, working_frames
from ..lie.so3 import skew
from ..registry import method
from .system_matrices import assemble


@method(
    "coriolis_matrix",
    "composite",
    kind="analytic",
    source="this toolkit; the same matrix as by Echeandia and Wensing 2021, from the Jacobians of points",
    max_order=0,
    regroup=True,
    coriolis=("christoffel",),
)
def composite(model, order, q, V):
    """Coriolis matrix [C] (nv, nv) of Christoffel symbols; see od.describe("coriolis_matrix"). Admissible."""
    return [composite_coriolis(model, q, V[0])]


def composite_coriolis(model, q, v):
    """Coriolis matrix (nv, nv) at q (nq,), v (nv,)."""
    return composite_matrices(model, q, v)[1]


def composite_matrices(model, q, v):
    """(M, C, g) at q (nq,), v (nv,). Cost O(n depth).

    Equation:  C = sum over points of mass m of m J^T J', J the Jacobian of the point. With y = u + w x r the field of a
               joint's screw (w, u), and sums over the points beyond joint i,
               A = sum m (r x y, y),  F = sum m (r x y', y'),  b = sum m r' x y,  and for a joint j on the path
               M_ji = S_j^T A,  C_ji = S_j^T F,  C_ij = A^T S_j' + b^T w_j,  g_i = -(force of A)^T gravity
    """
    bodies = _Bodies(model, q, v)
    M, C, g = {}, {}, {}
    for i in model.tips_first:
        S, dS = bodies.screws(i, bodies.working[i])
        A, F, b = bodies.sum(i).wrenches(S, dS)
        M[i, i], C[i, i] = product(S, A) + model.rotor(i), product(S, F)
        g[i] = -(A[1].T @ bodies.working[i].gravity)
        frame, drift, p = bodies.frames[i], bodies.drift[i], model.parent[i]
        while p:
            A, F, b = frame.wrench(*A), frame.wrench(*F), frame.outward(b)
            b = b + cross(drift, A[1])
            arrived, frame, drift = frame.parallel, bodies.frames[p], bodies.drift[p]
            if not arrived and model.parent[p]:
                A, F = (tuple(frame.turn.outward(x) for x in pair) for pair in (A, F))
                b, arrived = frame.turn.outward(b), True
            S, dS = bodies.screws(p, bodies.working[p] if arrived else bodies.body[p])
            M[p, i], C[p, i] = product(S, A), product(S, F)
            M[i, p], C[i, p] = M[p, i].T, product(A, dS) + b.T @ S[0]
            p = model.parent[p]
    return assemble(model, M), assemble(model, C), model.stack(g)


@dataclass
class _Motion:
    """Angular velocity of a body, and gravity, in some axes."""

    w: object
    gravity: object


@dataclass
class _Sums(subtrees.Sums):
    """Sums over the points r of a subtree about one origin: m, h = m r, P = m r r^T; of its velocities l = m r',
    K = m r' r^T."""

    m: object
    h: object
    P: object
    l: object
    K: object

    VECTORS, SYMMETRIC, SQUARE = "hl", "P", "K"

    def moved(self, frame, drift):
        """The same about the parent's origin, in the axes of it that `frame` hangs on, by its observer, for whom the
        body's own one moves with `drift`."""
        R, p = frame.R, frame.p
        h, l = R @ self.h, R @ self.l
        across = h @ p.T
        P = R @ self.P @ R.T + across + across.T + self.m * (p @ p.T)
        h, K = h + self.m * p, R @ self.K @ R.T + l @ p.T
        return _Sums(self.m, h, ca.triu2symm(ca.triu(P)), l + self.m * drift, K + drift @ h.T)

    def wrenches(self, S, dS):
        """(A, F, b) of the screws S and their rates."""
        n, f = self._momentum(dS)
        F = n + spread(self.K) @ S[0], f - cross(self.l, S[0])
        return self._momentum(S), F, spread(self.K).T @ S[0] + cross(self.l, S[1])

    def _momentum(self, S):
        return spread(self.P) @ S[0] + cross(self.h, S[1]), self.m * S[1] - cross(self.h, S[0])


class _Bodies:
    """Motion of all bodies at q, v; then sum(i), tips first, once for every body."""

    def __init__(self, model, q, v):
        self.model, self.S = model, model.subspaces(q, [v], 1)
        self.frames = working_frames(model, model.joint_q(q))
        ground = _Motion(ca.DM(3, 1), sparse(model.gravity))
        self.working, self.body = {0: ground}, {0: ground}  # the motion, in the axes of both
        self.drift = {}  # velocity of a body's origin for the observer of its parent, in the axes it hangs on
        for i, x in model.joint_v(v).items():
            self._move(i, self.S[i][0] @ x)
        self._collected = subtrees.Collected(model, self.frames, _Sums.zero(), self._own)

    def _move(self, i, twist):
        frame, p = self.frames[i], self.model.parent[i]
        above = self.working[p] if frame.parallel else self.body[p]
        self.drift[i] = cross(above.w, frame.p) + frame.outward(twist[3:])
        w, gravity = frame.inward(above.w), frame.inward(above.gravity)
        self.working[i] = self.body[i] = _Motion(w + twist[:3], gravity)
        if frame.angle is not None:
            self.body[i] = _Motion(frame.turn.inward(w) + twist[:3], frame.turn.inward(gravity))

    def _own(self, i, early):
        """Sums of one body, in its working axes if `early`, else in its own."""
        w = (self.working[i] if early else self.body[i]).w
        m, h, _, P = subtrees.constants(self.model.inertia[i])
        if early:
            h, P = self.frames[i].turn.outward(h), self.frames[i].turn.symmetric(P)
        return _Sums(m, h, P, cross(w, h), skew(w) @ P)

    def screws(self, i, motion):
        """Screws of joint i and their rates, pairs (angular, linear) of columns, in the axes of `motion`."""
        S, bent = ((x[:3, :], x[3:, :]) if x is not None else None for x in self.S[i])
        rate = cross(motion.w, S[0]), cross(motion.w, S[1])
        return S, rate if bent is None else plus(rate, bent)

    def sum(self, i):
        """Sums of the subtree of body i in its working axes; hands them on to the parent."""
        return self._collected.sum(i, self.drift[i])
