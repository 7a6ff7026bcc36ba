"""Derivatives of the recursive dynamics by a scalar p that anything may depend on, after Kim.

Quantities of a body are in its frame, twists [angular; linear]. What does not change with p is None and costs nothing.
"""

from dataclasses import dataclass, field

import casadi as ca

from ..forward_dynamics.articulated_body import factor, solve
from ..lie.se3 import Ad_inv, ad
from ..registry import method

_KIM = "Kim 2012, Tables {} applied to every unit direction"
_FACTS = {"kind": "analytic", "regroup": True}
_INDEPENDENT = {"mimic": "its recursion needs joints that move independently"}


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
    placement, T^-1 dT/dp. What is missing does not change."""

    h: dict = field(default_factory=dict)
    S: dict = field(default_factory=dict)
    rate: dict = field(default_factory=dict)
    I: dict = field(default_factory=dict)
    applied: dict = field(default_factory=dict)
    v: dict = field(default_factory=dict)
    a: dict = field(default_factory=dict)
    tau: dict = field(default_factory=dict)


def mechanism(model, q, v, W=None):
    """The Mechanism of a canonical robot at q (nq,), v (nv,), with applied wrenches W (6, bodies)."""
    motions = model.subspaces(q, [v], 1)
    q = model.joint_q(q)
    Ad = {i: Ad_inv(model.placement(i, q[i])) for i in model.bodies}
    S, rate = ({i: motions[i][k] for i in model.bodies} for k in range(2))
    I = {i: model.M[i] for i in model.bodies}
    return Mechanism(model, Ad, S, rate, I, None if W is None else model.wrenches(W), model.joint_v(v))


def inverse_dynamics(m, a, changes):
    """(tau, [dtau/dp for every Change]), by body, from accelerations a by body.  (Tables 2 and 5)"""
    model, v = m.model, m.v
    V, A, F, tau = {0: ca.DM.zeros(6)}, {0: ca.vertcat(0, 0, 0, -model.gravity)}, {}, {}
    for i in model.bodies:
        p = model.parent[i]
        V[i] = m.Ad[i] @ V[p] + m.S[i] @ v[i]
        A[i] = total(m.Ad[i] @ A[p], ad(V[i]) @ (m.S[i] @ v[i]), times(m.rate[i], v[i]), m.S[i] @ a[i])
    for i in model.reversed_bodies:
        F[i] = total(m.I[i] @ A[i], -(ad(V[i]).T @ (m.I[i] @ V[i])), _negative(_of(m.applied, i)))
        F[i] = total(F[i], *(m.Ad[c].T @ F[c] for c in model.children[i]))
        tau[i] = m.S[i].T @ F[i] + model.armature[i] * a[i]
    return tau, [_inverse_change(m, a, V, A, F, d) for d in changes]


def _inverse_change(m, a, V, A, F, d):
    model, dA, dF, dtau = m.model, {0: None}, {}, {}
    dV = _velocities(m, V, d)
    for i in model.bodies:
        p = model.parent[i]
        passed = times(m.Ad[i], dA[p]), _negative(times(_ad(_of(d.h, i)), m.Ad[i] @ A[p]))
        joint = times(_of(d.S, i), a[i]), times(m.S[i], _of(d.a, i))
        dA[i] = total(*passed, *joint, _velocity_product(m, V, dV, d, i))
    for i in model.reversed_bodies:
        F_own = times(_of(d.I, i), A[i]), times(m.I[i], dA[i]), _gyroscopic(m, V, dV, d, i)
        F_out = (times(m.Ad[c].T, total(dF[c], _negative(times(_adT(_of(d.h, c)), F[c])))) for c in model.children[i])
        dF[i] = total(*F_own, *F_out)
        armature = times(model.armature[i] or None, _of(d.a, i))
        dtau[i] = total(times(_T(_of(d.S, i)), F[i]), times(m.S[i].T, dF[i]), armature)
    return dtau


def hybrid_dynamics(m, a, tau, given, changes):
    """(a, tau, [(da/dp, dtau/dp) for every Change]), by body; a and its changes are known for the bodies `given`, tau
    and its changes for the others. Forward dynamics: nothing is given.  (Tables 3, 4 and 6, 7)

    Symbols: Kim's I^, B^, Psi, Pi, eta are MA, WA, Y, P, zeta. Deviation: the armature adds to the inverse of Y.
    """
    model, v, a, tau = m.model, m.v, dict(a), dict(tau)
    V, zeta, MA, WA, Y, P, beta, u = {0: ca.DM.zeros(6)}, {}, {}, {}, {}, {}, {}, {}
    for i in model.bodies:
        V[i] = m.Ad[i] @ V[model.parent[i]] + m.S[i] @ v[i]
        zeta[i] = total(ad(V[i]) @ (m.S[i] @ v[i]), times(m.rate[i], v[i]))
    for i in model.reversed_bodies:
        S = m.S[i]
        MA[i] = total(m.I[i], *(m.Ad[c].T @ P[c] @ m.Ad[c] for c in model.children[i]))
        WA[i] = total(-(ad(V[i]).T @ (m.I[i] @ V[i])), _negative(_of(m.applied, i)))
        WA[i] = total(WA[i], *(m.Ad[c].T @ beta[c] for c in model.children[i]))
        if i in given:
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
        if i not in given:
            a[i] = Y[i] @ (u[i] - m.S[i].T @ MA[i] @ carried)
        A[i] = carried + m.S[i] @ a[i] + zeta[i]
        F[i] = MA[i] @ A[i] + WA[i]
        if i in given:
            tau[i] = m.S[i].T @ F[i] + model.armature[i] * a[i]
    known = _Solved(V, zeta, MA, WA, Y, P, beta, u, A, F, a)
    return a, tau, [_hybrid_change(m, known, given, d) for d in changes]


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


def _hybrid_change(m, k, given, d):
    model, S = m.model, m.S
    dV = _velocities(m, k.V, d)
    dzeta = {i: _velocity_product(m, k.V, dV, d, i) for i in model.bodies}
    dMA, dWA, dP, dbeta, dY, du = {}, {}, {}, {}, {}, {}
    for i in model.reversed_bodies:
        dMA[i], dWA[i] = _of(d.I, i), _gyroscopic(m, k.V, dV, d, i)
        for c in model.children[i]:
            turned = times(k.P[c], _ad(_of(d.h, c)))
            inner = total(dP[c], _negative(turned), _negative(_T(turned)))
            dMA[i] = total(dMA[i], times(times(m.Ad[c].T, inner), m.Ad[c]))
            inner = total(dbeta[c], _negative(times(_adT(_of(d.h, c)), k.beta[c])))
            dWA[i] = total(dWA[i], times(m.Ad[c].T, inner))
        dS = _of(d.S, i)
        if i in given:
            moved = total(dzeta[i], times(dS, k.a[i]), times(S[i], _of(d.a, i)))
            dP[i] = dMA[i]
            dbeta[i] = total(dWA[i], times(dMA[i], k.zeta[i] + S[i] @ k.a[i]), times(k.MA[i], moved))
            continue
        U, Y = k.MA[i] @ S[i], k.Y[i]
        dU = total(times(dMA[i], S[i]), times(k.MA[i], dS))
        half = times(_T(dS), U)
        dD = total(times(S[i].T, times(dMA[i], S[i])), half, _T(half))
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
        dcarried = total(times(m.Ad[i], dA[p]), _negative(times(_ad(_of(d.h, i)), carried)))
        da[i] = _of(d.a, i)
        if i not in given:
            U = k.MA[i] @ S[i]
            dU = total(times(dMA[i], S[i]), times(k.MA[i], dS))
            left = total(du[i], _negative(times(_T(dU), carried)), _negative(times(U.T, dcarried)))
            da[i] = total(times(dY[i], k.u[i] - U.T @ carried), times(k.Y[i], left))
        dA[i] = total(dcarried, times(dS, k.a[i]), times(S[i], da[i]), dzeta[i])
        dF = total(times(dMA[i], k.A[i]), times(k.MA[i], dA[i]), dWA[i])
        dtau[i] = _of(d.tau, i)
        if i in given:
            armature = times(model.armature[i] or None, da[i])
            dtau[i] = total(times(_T(dS), k.F[i]), times(S[i].T, dF), armature)
    return da, dtau


def _velocities(m, V, d):
    """dV/dp, by body."""
    dV = {0: None}
    for i in m.model.bodies:
        p = m.model.parent[i]
        passed = times(m.Ad[i], dV[p]), _negative(times(_ad(_of(d.h, i)), m.Ad[i] @ V[p]))
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


# -- every unit direction: partials ----------------------------------------------------------------------------


def state_changes(model, q, v, by):
    """A Change for every unit direction of `by`: "q" (on the tangent space), "v", "a" or "tau"."""
    out = []
    for e in ca.horzsplit(ca.DM.eye(model.robot.nv)):
        parts = {i: x for i, x in model.joint_v(e).items() if x.nnz()}
        out.append(Change(**{by: parts}) if by in ("a", "tau") else _moved(model, q, v, by, parts))
    return out


def _moved(model, q, v, by, parts):
    """Change by steps {body: step of its joint's coordinates, or of its velocity}."""
    q, v = model.joint_q(q), model.joint_v(v)
    h, S, rate = {}, {}, {}
    for i, e in parts.items():
        if model.kind[i] != "transform":
            h[i] = model.S[i] @ ca.densify(e)
            continue
        screws, dS, d_rate = _screw_changes(model, i, by)(q[i], v[i], e)
        h[i], rate[i] = screws @ ca.densify(e), d_rate
        if by == "q":
            S[i] = dS
    if by == "q":
        return Change(h=h, S=S, rate=rate)
    return Change(v={i: ca.densify(e) for i, e in parts.items()}, rate=rate)


def _screw_changes(model, i, by):
    """Function (q, v, e) -> S, and changes of S and of its time derivative by a step e of q or of v."""
    n = model.coordinates[i][1]
    q, v, e = (ca.SX.sym(x, n) for x in "qve")
    S = model.subspace_function(i)(q)
    rate = ca.jtimes(ca.vec(S), q, v)
    dS = ca.jtimes(ca.vec(S), q, e)
    d_rate = ca.jtimes(rate, q if by == "q" else v, e)
    return ca.Function("S", [q, v, e], [S, dS.reshape(S.shape), d_rate.reshape(S.shape)])


def _columns(model, found):
    """Matrix (nv, columns) from {body: generalised force or None} for every column."""
    columns = []
    for parts in found:
        zero = {i: ca.SX(model.coordinates[i][3], 1) for i in model.bodies}
        columns.append(model.stack(zero | {i: x for i, x in parts.items() if x is not None}))
    return ca.sparsify(ca.horzcat(ca.SX(model.robot.nv, 0), *columns))


@method("inverse_dynamics_partials", "recursive_scalar", source=_KIM.format("2 and 5"), max_order=0, **_FACTS)
def inverse_partials(model, order, q, V, W=None):
    """Partials of the torques, [(dtau_dq, dtau_dv, dtau_ddv)]; see the quantity. Cost O(n^2)."""
    m = mechanism(model, q, V[0], None if W is None else W[0])
    changes = [state_changes(model, q, V[0], by) for by in ("q", "v", "a")]
    _, found = inverse_dynamics(m, model.joint_v(V[1]), sum(changes, []))
    nv = model.robot.nv
    return [tuple(_columns(model, found[k * nv : (k + 1) * nv]) for k in range(3))]


@method("inverse_dynamics_adjoint", "recursive_scalar", source=_KIM.format("2 and 5"), max_order=0, **_FACTS)
def inverse_adjoint_method(model, order, q, V, lams, W=None):
    """Gradients of lam' tau; see the quantity. Cost O(n^2)."""
    return inverse_adjoint(model, q, *V, *lams, W and W[0])


def inverse_adjoint(model, q, v, dv, lam, W=None):
    """(dtau_dq' lam, dtau_dv' lam, dtau_ddv' lam), from the partials."""
    (found,) = inverse_partials(model, 0, q, [v, dv], None if W is None else [W])
    return tuple(x.T @ lam for x in found)


@method("forward_dynamics_partials", "recursive_scalar", source=_KIM.format("3 and 6"), cannot=_INDEPENDENT, **_FACTS)
def forward_partials(model, q, v, tau, W, damping):
    """(ddv_dq, ddv_dv, ddv_dtau); see the quantity. Cost O(n^2)."""
    changes = [state_changes(model, q, v, by) for by in ("q", "v", "tau")]
    _, _, found = hybrid_dynamics(mechanism(model, q, v, W), {}, model.joint_v(tau), (), sum(changes, []))
    nv = model.robot.nv
    by_q, by_v, by_tau = (_columns(model, [da for da, _ in found[k * nv : (k + 1) * nv]]) for k in range(3))
    return by_q, by_v - by_tau @ damping, by_tau


@method("forward_dynamics_adjoint", "recursive_scalar", source=_KIM.format("3 and 6"), cannot=_INDEPENDENT, **_FACTS)
def forward_adjoint(model, q, v, tau, lam, W, terms):
    """(ddv_dq' lam, ddv_dv' lam, ddv_dtau' lam), from the partials; see the quantity. Cost O(n^2)."""
    return tuple(x.T @ lam for x in forward_partials(model, q, v, tau, W, terms.damping))


@method("hybrid_dynamics_partials", "recursive_scalar", source=_KIM.format("4 and 7"), cannot=_INDEPENDENT, **_FACTS)
def hybrid_partials(model, q, v, a, tau, prescribed, W):
    """Partials of what is not prescribed; see the quantity. Cost O(n^2)."""
    rows = {"tau_p": list(prescribed), "dv_f": [k for k in range(model.robot.nv) if k not in prescribed]}
    given = [i for i in model.bodies if model.coordinates[i][2] in prescribed]
    sides = {"q": state_changes(model, q, v, "q"), "v": state_changes(model, q, v, "v")}
    sides["dv_p"] = [state_changes(model, q, v, "a")[k] for k in rows["tau_p"]]
    sides["tau_f"] = [state_changes(model, q, v, "tau")[k] for k in rows["dv_f"]]
    m, out = mechanism(model, q, v, W), {}
    _, _, found = hybrid_dynamics(m, model.joint_v(a), model.joint_v(tau), given, sum(sides.values(), []))
    for by, changes in sides.items():
        now, found = found[: len(changes)], found[len(changes) :]
        for k, what in ((0, "dv_f"), (1, "tau_p")):
            out[what, by] = _columns(model, [x[k] for x in now])[rows[what], :]
    return out
