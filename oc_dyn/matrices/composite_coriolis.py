"""Coriolis matrix by composite bodies: all bodies beyond a joint act as one, whose shape changes with time."""

import casadi as ca

from ..kinematics.step import Step, cross
from ..lie.so3 import skew
from ..model.inertia import casadi_value
from ..registry import method
from .system_matrices import assemble


@method(
    "coriolis_matrix",
    "composite",
    kind="analytic",
    source="this toolkit; the same matrix as by Echeandia and Wensing 2021, from the Jacobians of points",
    max_order=0,
    regroup=True,
)
def composite(model, order, q, V):
    """Coriolis matrix [C] (nv, nv) of Christoffel symbols; see the quantity. Admissible."""
    return [composite_coriolis(model, q, V[0])]


def composite_coriolis(model, q, v):
    """Coriolis matrix (nv, nv) at q (nq,), v (nv,). Cost O(n depth).

    Equation:  C = sum over points of mass m of m J^T J', J the Jacobian of the point. With the Jacobians J_i, J_k of
               a body's twist, C_ik = J_i^T (M J_k' + N J_k) summed over composite bodies, and
               N = [[skew(P w) - G + tr(G) 1, H W], [-(W H + D), m W]],  W = skew(w), H = skew(h), D = skew(d)
    Symbols:   seen from a body, at points r that move at r' in it: m mass, h first moment, T tensor, P = sum m r r^T,
               d = h', G = sum m r' r^T; w its angular velocity. F = N S is the wrench for the column of a joint,
               A = M S and B = N^T S make its row: C_ik = A^T J_k' + B^T J_k.
    """
    S = model.subspaces(q, [v], 1)
    q, v = model.joint_q(q), model.joint_v(v)
    step, w, twist = {}, {0: ca.DM.zeros(3)}, {}
    for i in model.bodies:  # ground to tips
        step[i] = Step(model, i, q[i])
        twist[i] = S[i][0] @ v[i]
        w[i] = step[i].inward(w[model.parent[i]]) + twist[i][:3]
    m = {i: model.inertia[i].mass for i in model.bodies}
    h = {i: casadi_value(model.inertia[i].moment) for i in model.bodies}
    T = {i: casadi_value(model.inertia[i].tensor) for i in model.bodies}
    d = {i: ca.DM.zeros(3) for i in model.bodies}
    G = {i: ca.DM.zeros(3, 3) for i in model.bodies}
    blocks = {}
    for i in model.tips_first:
        turn, rate = S[i]
        F, A, B = _wrenches(turn[:3, :], turn[3:, :], m[i], h[i], T[i], d[i], G[i], w[i])
        if rate is not None:
            F = _sum(F, _momentum(rate[:3, :], rate[3:, :], m[i], h[i], T[i]))
        blocks[i, i] = turn.T @ ca.vertcat(*F)
        j = i
        while model.parent[j]:
            F, A, B = step[j].wrench(*F), step[j].wrench(*A), step[j].wrench(*_turned(twist[j], A, B))
            j = model.parent[j]
            above, rate = S[j]
            blocks[j, i] = above.T @ ca.vertcat(*F)
            blocks[i, j] = ca.vertcat(*B).T @ above
            if rate is not None:
                blocks[i, j] = blocks[i, j] + ca.vertcat(*A).T @ rate
        p = model.parent[i]
        if p:
            P = 0.5 * ca.trace(T[i]) * ca.DM.eye(3) - T[i]
            along = twist[i][3:]
            moving = d[i] + ca.cross(twist[i][:3], h[i]) + m[i] * along  # sum m u, u the velocity of a point in p
            spread = G[i] + cross(twist[i][:3], P) + along @ h[i].T  # sum m u r^T
            mass, moment, tensor = step[i].inertia(m[i], h[i], T[i])
            moving = step[i].outward(moving)
            m[p], h[p], T[p] = m[p] + mass, h[p] + moment, T[p] + tensor
            d[p], G[p] = d[p] + moving, G[p] + step[i].square(spread) + moving @ step[i].p.T
    return assemble(model, blocks)


def _momentum(Sw, Sv, m, h, T):
    """Moments and forces M S."""
    return T @ Sw + cross(h, Sv), m * Sv - cross(h, Sw)


def _wrenches(Sw, Sv, m, h, T, d, G, w):
    """(moments, forces) of F = N S, A = M S and B = N^T S."""
    W, H = skew(w), skew(h)
    Pw = 0.5 * ca.trace(T) * w - T @ w
    spread = ca.trace(G) * ca.DM.eye(3) - G
    HW = H @ W
    F = (skew(Pw) + spread) @ Sw + HW @ Sv, m * (W @ Sv) - (HW.T + skew(d)) @ Sw
    B = (spread.T - skew(Pw)) @ Sw - (HW - skew(d)) @ Sv, HW.T @ Sw - m * (W @ Sv)
    return F, _momentum(Sw, Sv, m, h, T), B


def _turned(twist, A, B):
    """B - ad(twist)^T A: what B becomes beside A on the way to the parent."""
    (An, Af), (Bn, Bf) = A, B
    return Bn + cross(twist[:3], An) + cross(twist[3:], Af), Bf + cross(twist[:3], Af)


def _sum(A, B):
    return tuple(a + b for a, b in zip(A, B, strict=True))
