"""Coriolis matrix, with M and g on the way, by composite bodies: all points beyond a joint, by an observer who does not
turn.

The motion of a joint and its rate are fields over the points of all bodies beyond it. Momenta and forces of a field go
from body to body as wrenches do, both alike: nothing turns with the bodies. M and C do not change if all velocities
gain a constant, so every body has its own observer, who goes along with its origin.
"""

from dataclasses import dataclass, replace

import casadi as ca

from ..lie.so3 import skew
from ..registry import method
from ..working_axes.assembly import assembled
from ..working_axes.fields import plus, product
from ..working_axes.frames import sparse
from ..working_axes.rotations import cross
from ..working_axes.sums import MassIntegrals, constants
from ..working_axes.tree import Carried, WorkingTree
from .in_fluid import matrices_in_fluid


@method(
    "coriolis_matrix",
    "composite",
    kind="analytic",
    source="this toolkit; the same matrix as by Echeandia and Wensing 2021, from the Jacobians of points",
    max_order=0,
    regroup=True,
    coriolis=("christoffel",),
    fluid=True,
)
def composite(model, order, q, V):
    """Coriolis matrix [C] (nv, nv) of Christoffel symbols; see od.describe("coriolis_matrix"). Admissible."""
    return [composite_coriolis(model, q, V[0])]


def composite_coriolis(model, q, v):
    """Coriolis matrix (nv, nv) at q (nq,), v (nv,)."""
    return composite_matrices(model, q, v)[1]


def composite_matrices(model, q, v):
    """(M, C, g) at q (nq,), v (nv,). Cost O(n depth); where a fluid acts, by Jacobians, see in_fluid.

    Equation:  C = sum over points of mass m of m J^T J', J the Jacobian of the point. With y = u + w x r the field of a
               joint's screw (w, u), and sums over the points beyond joint i,
               A = sum m (r x y, y),  F = sum m (r x y', y'),  b = sum m r' x y,  and for a joint j on the path
               M_ji = S_j^T A,  C_ji = S_j^T F,  C_ij = A^T S_j' + b^T w_j,  g_i = -(force of A)^T gravity
    """
    if model.fluid:
        return matrices_in_fluid(model, q, v)
    trees = _Observers(model, q, v)
    M, C, g = {}, {}, {}
    for i in model.reversed_bodies:
        S, dS = trees.screws(i)
        A, F, b = trees.sum(i).wrenches(S, dS)
        M[i, i], C[i, i] = product(S, A) + model.rotor(i), product(S, F)
        g[i] = -(A[1].T @ trees.working[i].gravity)
        for p, carried, working in trees.climb(i, Carried([A, F], [b])):
            (A, F), (b,) = carried.wrenches, carried.vectors
            S, dS = trees.screws(p, working)
            M[p, i], C[p, i] = product(S, A), product(S, F)
            C[i, p] = product(A, dS) + b.T @ S[0]
    return assembled(model, M, mirrored=True), assembled(model, C), model.stack(g)


@dataclass(frozen=True)
class _ObserverMotion:
    """Angular velocity of a body, and gravity, in some axes."""

    w: object
    gravity: object


@dataclass
class _ObserverIntegrals(MassIntegrals):
    m: object
    h: object
    P: object
    K: object
    l: object

    def wrenches(self, S, dS):
        """(A, F, b) of the screws S and their rates."""
        bent = self.inertia(dS)
        F = plus(bent, self.flow.coriolis(S[0]))
        return self.inertia(S), F, self.flow.coriolis_transposed(S)


class _Observers(WorkingTree):
    """Motion of all bodies at q, v; the observer of each goes along with its origin."""

    def __init__(self, model, q, v):
        super().__init__(model, q, _ObserverMotion(ca.DM(3, 1), sparse(model.gravity)))
        self.S = model.subspaces(q, [v], 1)
        for i, x in model.joint_v(v).items():
            frame, above, twist = self.frames[i], self.above(i), self.S[i][0] @ x
            self.frames[i] = replace(frame, drift=cross(above.w, frame.p) + frame.outward(twist[3:]))
            w, gravity = frame.inward(above.w), frame.inward(above.gravity)
            self.move(i, lambda w, gravity, own=twist[:3]: _ObserverMotion(w + own, gravity), (w, gravity))
        self.collect(_ObserverIntegrals, self._own)

    def _own(self, i, motion, turn):
        m, h, _, P = constants(self.model.inertia[i])
        h, P = turn.outward(h), turn.symmetric(P)
        return _ObserverIntegrals(m, h, P, skew(motion.w) @ P, cross(motion.w, h))

    def screws(self, i, working=True):
        """Screws of joint i and their rates, pairs (angular, linear) of columns, in its working or body axes."""
        w = (self.working if working else self.body)[i].w
        S, bent = ((x[:3, :], x[3:, :]) if x is not None else None for x in self.S[i])
        rate = cross(w, S[0]), cross(w, S[1])
        return S, rate if bent is None else plus(rate, bent)
