"""Derivatives of the recursive dynamics by a scalar p that anything may depend on, after Kim.

Quantities of a body are in its frame, twists [angular; linear]. What does not change with p is None and costs nothing.
Numbers at the lines are those of Kim 2012: (36) to (52) for the dynamics, and their derivatives by (59) and (60), which
differentiate Ad and its transpose.
"""

from dataclasses import dataclass, field

import casadi as ca

from ..forward_dynamics.articulated_body import factor, solve
from ..lie.se3 import Ad_inv, ad


@dataclass(frozen=True)
class Mechanism:
    """A robot at one state, by body: Ad takes twists of the parent to the body; S screws, rate their derivative in time
    (None: zero), I inertia, applied wrench (None: none), armature, v velocity of the joint."""

    model: object
    Ad: dict
    S: dict
    rate: dict
    I: dict
    applied: dict | None
    v: dict


@dataclass(frozen=True)
class Change:
    """Derivatives by p, by body, of the quantities of a Mechanism and of accelerations and torques; h is that of the
    placement, T^-1 dT/dp; J that of the armature. What is missing does not change."""

    h: dict = field(default_factory=dict)
    S: dict = field(default_factory=dict)
    rate: dict = field(default_factory=dict)
    I: dict = field(default_factory=dict)
    applied: dict = field(default_factory=dict)
    v: dict = field(default_factory=dict)
    a: dict = field(default_factory=dict)
    tau: dict = field(default_factory=dict)
    J: dict = field(default_factory=dict)


def mechanism(model, q, v, W=None):
    """The Mechanism of a canonical robot at q (nq,), v (nv,), with applied wrenches W (6, bodies)."""
    motions = model.subspaces(q, [v], 1)
    q = model.joint_q(q)
    Ad = {i: Ad_inv(model.placement(i, q[i])) for i in model.bodies}
    S, rate = ({i: motions[i][k] for i in model.bodies} for k in range(2))
    I = {i: model.M[i] for i in model.bodies}
    return Mechanism(model, Ad, S, rate, I, None if W is None else model.wrenches(W), model.joint_v(v))


def inverse_dynamics(m, a, changes):
    """(tau, [dtau/dp for every Change]), by body, from accelerations a by body; Tables 2 and 5."""
    model, v = m.model, m.v
    V, A, F, tau = {0: ca.DM.zeros(6)}, {0: ca.vertcat(0, 0, 0, -model.gravity)}, {}, {}
    for i in model.bodies:
        p = model.parent[i]
        V[i] = m.Ad[i] @ V[p] + m.S[i] @ v[i]  # (36)
        A[i] = total(m.Ad[i] @ A[p], ad(V[i]) @ (m.S[i] @ v[i]), times(m.rate[i], v[i]), m.S[i] @ a[i])  # (40)
    for i in model.reversed_bodies:
        F[i] = total(m.I[i] @ A[i], -(ad(V[i]).T @ (m.I[i] @ V[i])), _negative(_of(m.applied, i)))
        F[i] = total(F[i], *(m.Ad[c].T @ F[c] for c in model.children[i]))  # (41)
        tau[i] = m.S[i].T @ F[i] + model.armature[i] * a[i]
    return tau, [_inverse_change(m, a, V, A, F, d) for d in changes]


def _inverse_change(m, a, V, A, F, d):
    model, dA, dF, dtau = m.model, {0: None}, {}, {}
    dV = _velocities(m, V, d)
    for i in model.bodies:
        p = model.parent[i]
        passed = times(m.Ad[i], dA[p]), _negative(times(_ad(_of(d.h, i)), m.Ad[i] @ A[p]))  # (59)
        joint = times(_of(d.S, i), a[i]), times(m.S[i], _of(d.a, i))
        dA[i] = total(*passed, *joint, _velocity_product(m, V, dV, d, i))  # of (40)
    for i in model.reversed_bodies:
        F_own = times(_of(d.I, i), A[i]), times(m.I[i], dA[i]), _gyroscopic(m, V, dV, d, i)
        F_out = (times(m.Ad[c].T, total(dF[c], _negative(times(_adT(_of(d.h, c)), F[c])))) for c in model.children[i])
        dF[i] = total(*F_own, *F_out)  # of (41) with (60)
        armature = _rotor_change(model, d, i, a[i], _of(d.a, i))
        dtau[i] = total(times(_T(_of(d.S, i)), F[i]), times(m.S[i].T, dF[i]), *armature)
    return dtau


def hybrid_dynamics(m, a, tau, prescribed_bodies, changes):
    """(a, tau, [(da/dp, dtau/dp) for every Change]), by body; a and its changes are known for the
    `prescribed_bodies`, tau and its changes for the others. Forward dynamics prescribes none. Tables 3, 4 and 6, 7.

    Symbols: Kim's I^, B^, Psi, Pi, eta are MA, WA, Y, P, zeta. Deviation: the armature adds to the inverse of Y.
    """
    model, v, a, tau = m.model, m.v, dict(a), dict(tau)
    V, zeta, MA, WA, Y, P, beta, u = {0: ca.DM.zeros(6)}, {}, {}, {}, {}, {}, {}, {}
    for i in model.bodies:
        V[i] = m.Ad[i] @ V[model.parent[i]] + m.S[i] @ v[i]  # (36)
        zeta[i] = total(ad(V[i]) @ (m.S[i] @ v[i]), times(m.rate[i], v[i]))
    for i in model.reversed_bodies:
        S = m.S[i]
        MA[i] = total(m.I[i], *(m.Ad[c].T @ P[c] @ m.Ad[c] for c in model.children[i]))  # (51)
        WA[i] = total(-(ad(V[i]).T @ (m.I[i] @ V[i])), _negative(_of(m.applied, i)))
        WA[i] = total(WA[i], *(m.Ad[c].T @ beta[c] for c in model.children[i]))  # (52)
        if i in prescribed_bodies:
            P[i], beta[i] = MA[i], WA[i] + MA[i] @ (zeta[i] + S @ a[i])
        else:
            D = S.T @ MA[i] @ S + model.armature[i] * ca.DM.eye(S.shape[1])
            Y[i] = solve(factor(D), ca.DM.eye(S.shape[1]))
            u[i] = tau[i] - S.T @ (MA[i] @ zeta[i] + WA[i])
            P[i] = MA[i] - MA[i] @ S @ Y[i] @ S.T @ MA[i]
            beta[i] = WA[i] + MA[i] @ (zeta[i] + S @ Y[i] @ u[i])
    A, F = {0: ca.vertcat(0, 0, 0, -model.gravity)}, {}
    for i in model.bodies:
        carried = m.Ad[i] @ A[model.parent[i]]
        if i not in prescribed_bodies:
            a[i] = Y[i] @ (u[i] - m.S[i].T @ MA[i] @ carried)  # (44)
        A[i] = carried + m.S[i] @ a[i] + zeta[i]  # (40)
        F[i] = MA[i] @ A[i] + WA[i]  # (42)
        if i in prescribed_bodies:
            tau[i] = m.S[i].T @ F[i] + model.armature[i] * a[i]
    known = _Solved(V, zeta, MA, WA, Y, P, beta, u, A, F, a)
    return a, tau, [_hybrid_change(m, known, prescribed_bodies, d) for d in changes]


@dataclass(frozen=True)
class _Solved:
    V: dict
    zeta: dict
    MA: dict
    WA: dict
    Y: dict
    P: dict
    beta: dict
    u: dict
    A: dict
    F: dict
    a: dict


def _hybrid_change(m, k, prescribed_bodies, d):
    model, S = m.model, m.S
    dV = _velocities(m, k.V, d)
    dzeta = {i: _velocity_product(m, k.V, dV, d, i) for i in model.bodies}
    dMA, dWA, dP, dbeta, dY, du = {}, {}, {}, {}, {}, {}
    for i in model.reversed_bodies:
        dMA[i], dWA[i] = _of(d.I, i), _gyroscopic(m, k.V, dV, d, i)
        for c in model.children[i]:
            turned = times(k.P[c], _ad(_of(d.h, c)))
            inner = total(dP[c], _negative(turned), _negative(_T(turned)))
            dMA[i] = total(dMA[i], times(times(m.Ad[c].T, inner), m.Ad[c]))  # of (51) with (59), (60)
            inner = total(dbeta[c], _negative(times(_adT(_of(d.h, c)), k.beta[c])))
            dWA[i] = total(dWA[i], times(m.Ad[c].T, inner))  # of (52) with (60)
        dS = _of(d.S, i)
        if i in prescribed_bodies:
            moved = total(dzeta[i], times(dS, k.a[i]), times(S[i], _of(d.a, i)))
            dP[i] = dMA[i]
            dbeta[i] = total(dWA[i], times(dMA[i], k.zeta[i] + S[i] @ k.a[i]), times(k.MA[i], moved))
            continue
        U, Y = k.MA[i] @ S[i], k.Y[i]
        dU = total(times(dMA[i], S[i]), times(k.MA[i], dS))
        half = times(_T(dS), U)
        rotor = None if _of(d.J, i) is None else d.J[i] * ca.DM.eye(S[i].shape[1])
        dD = total(times(S[i].T, times(dMA[i], S[i])), half, _T(half), rotor)
        dY[i] = _negative(times(times(Y, dD), Y))
        outer = times(dU, Y @ U.T)
        lost = total(times(times(U, dY[i]), U.T), outer, _T(outer))
        dP[i] = total(dMA[i], _negative(lost))
        bias = k.MA[i] @ k.zeta[i] + k.WA[i]
        dbias = total(times(dMA[i], k.zeta[i]), times(k.MA[i], dzeta[i]), dWA[i])
        du[i] = total(_of(d.tau, i), _negative(times(_T(dS), bias)), _negative(times(S[i].T, dbias)))
        joint = total(times(Y, du[i]), times(dY[i], k.u[i]))
        dbeta[i] = total(dbias, times(dU, Y @ k.u[i]), times(U, joint))
    dA, da, dtau = {0: None}, {}, {}
    for i in model.bodies:
        p, dS = model.parent[i], _of(d.S, i)
        carried = m.Ad[i] @ k.A[p]
        dcarried = total(times(m.Ad[i], dA[p]), _negative(times(_ad(_of(d.h, i)), carried)))  # (59)
        da[i] = _of(d.a, i)
        if i not in prescribed_bodies:
            U = k.MA[i] @ S[i]
            dU = total(times(dMA[i], S[i]), times(k.MA[i], dS))
            left = total(du[i], _negative(times(_T(dU), carried)), _negative(times(U.T, dcarried)))
            da[i] = total(times(dY[i], k.u[i] - U.T @ carried), times(k.Y[i], left))  # of (44)
        dA[i] = total(dcarried, times(dS, k.a[i]), times(S[i], da[i]), dzeta[i])  # of (40)
        dF = total(times(dMA[i], k.A[i]), times(k.MA[i], dA[i]), dWA[i])  # of (42)
        dtau[i] = _of(d.tau, i)
        if i in prescribed_bodies:
            armature = _rotor_change(model, d, i, k.a[i], da[i])
            dtau[i] = total(times(_T(dS), k.F[i]), times(S[i].T, dF), *armature)
    return da, dtau


def _rotor_change(model, d, i, a, da):
    """Changes of the armature's torque by its acceleration a and by itself."""
    own = model.armature[i]
    none = isinstance(own, float) and own == 0.0
    return None if none or da is None else own * da, None if _of(d.J, i) is None else d.J[i] * a


def _velocities(m, V, d):
    """dV/dp, by body."""
    dV = {0: None}
    for i in m.model.bodies:
        p = m.model.parent[i]
        passed = times(m.Ad[i], dV[p]), _negative(times(_ad(_of(d.h, i)), m.Ad[i] @ V[p]))  # (59)
        dV[i] = total(*passed, times(_of(d.S, i), m.v[i]), times(m.S[i], _of(d.v, i)))
    return dV


def _velocity_product(m, V, dV, d, i):
    """Change of ad(V) S v + S' v."""
    joint = total(times(_of(d.S, i), m.v[i]), times(m.S[i], _of(d.v, i)))
    turned = times(_ad(dV[i]), m.S[i] @ m.v[i]), times(ad(V[i]), joint)
    return total(*turned, times(_of(d.rate, i), m.v[i]), times(m.rate[i], _of(d.v, i)))


def _gyroscopic(m, V, dV, d, i):
    """Change of -ad(V)^T I V - F_applied."""
    momentum = total(times(_of(d.I, i), V[i]), times(m.I[i], dV[i]))
    parts = times(_adT(dV[i]), m.I[i] @ V[i]), times(ad(V[i]).T, momentum), _of(d.applied, i)
    return _negative(total(*parts))


def _of(values, i):
    return None if values is None else values.get(i)


def total(*terms):
    """Sum of the terms that are not None; None if there are none."""
    terms = [x for x in terms if x is not None]
    return sum(terms[1:], terms[0]) if terms else None


def times(A, B):
    """A B; None if one of them is."""
    return None if A is None or B is None else A @ B if not isinstance(A, float) else A * B


def _negative(x):
    return None if x is None else -x


def _T(x):
    return None if x is None else x.T


def _ad(V):
    return None if V is None else ad(V)


def _adT(V):
    return None if V is None else ad(V).T
