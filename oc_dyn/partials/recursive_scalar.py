"""Partials of the dynamics by the derivatives of Kim, scalar_changes, by every unit direction."""

from typing import Any

import casadi as ca

from ..registry import method
from . import implicit, order_zero
from .scalar_changes import Change, hybrid_dynamics, inverse_dynamics, mechanism

_KIM = "Kim 2012, Tables {} applied to every unit direction"
_FACTS: dict[str, Any] = {"kind": "analytic", "regroup": True}
_INDEPENDENT = {"mimic": "its recursion needs joints that move independently"}


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
            h[i] = model.S[i] @ ca.densify(e)  # (62)
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


def _columns(model, derivatives):
    """Matrix (nv, columns) from {body: generalised force or None} for every column."""
    columns = []
    for parts in derivatives:
        zero = {i: ca.SX(model.coordinates[i][3], 1) for i in model.bodies}
        columns.append(model.stack(zero | {i: x for i, x in parts.items() if x is not None}))
    return ca.sparsify(ca.horzcat(ca.SX(model.robot.nv, 0), *columns))


@method("inverse_dynamics_partials", "recursive_scalar", source=_KIM.format("2 and 5"), max_order=0, **_FACTS)
def inverse_partials(model, order, q, V, W=None):
    """Partials of the torques, [(dtau_dq, dtau_dv, dtau_ddv)]; see od.describe("inverse_dynamics_partials").

    Cost O(n^2).
    """
    m = mechanism(model, q, V[0], None if W is None else W[0])
    changes = [state_changes(model, q, V[0], by) for by in ("q", "v", "a")]
    _, derivatives = inverse_dynamics(m, model.joint_v(V[1]), [x for change in changes for x in change])
    nv = model.robot.nv
    return [tuple(_columns(model, derivatives[k * nv : (k + 1) * nv]) for k in range(3))]


@method("inverse_dynamics_adjoint", "recursive_scalar", source=_KIM.format("2 and 5"), max_order=0, **_FACTS)
def inverse_adjoint_method(model, order, q, V, lams, W=None):
    """Gradients of lam' tau; see od.describe("inverse_dynamics_adjoint"). Cost O(n^2)."""
    return inverse_adjoint(model, q, *V, *lams, W and W[0])


def inverse_adjoint(model, q, v, dv, lam, W=None):
    """(dtau_dq' lam, dtau_dv' lam, dtau_ddv' lam), from the partials."""
    return tuple(x.T @ lam for x in _of_inverse(model, q, v, dv, W))


_OF_FORWARD: dict[str, Any] = {"source": _KIM.format("3 and 6"), "cannot": _INDEPENDENT, "max_order": 0, **_FACTS}


@method("forward_dynamics_partials", "recursive_scalar", **_OF_FORWARD)
def forward_method(given):
    """(ddv_dq, ddv_dv, ddv_dtau); see od.describe("forward_dynamics_partials"). Cost O(n^2)."""
    return order_zero.forward_partials(given, forward_partials)


def forward_partials(model, q, v, tau, W, damping):
    """(ddv_dq, ddv_dv, ddv_dtau) at torques tau."""
    changes = [state_changes(model, q, v, by) for by in ("q", "v", "tau")]
    flat = [x for change in changes for x in change]
    _, _, derivatives = hybrid_dynamics(mechanism(model, q, v, W), {}, model.joint_v(tau), (), flat)
    nv = model.robot.nv
    by_q, by_v, by_tau = (_columns(model, [da for da, _ in derivatives[k * nv : (k + 1) * nv]]) for k in range(3))
    return by_q, by_v - by_tau @ damping, by_tau


_SOLVED = "; those of inverse dynamics, solved for the accelerations (Singh et al. 2023, eq. 45)"
_VIA_INVERSE: dict[str, Any] = {"source": _KIM.format("2 and 5") + _SOLVED, "max_order": 0, **_FACTS}


@method("forward_dynamics_partials", "recursive_scalar_via_inverse", **_VIA_INVERSE)
def forward_via_inverse_method(given):
    """(ddv_dq, ddv_dv, ddv_dtau); see od.describe("forward_dynamics_partials").

    The recursion for inverse dynamics with the solve that ad_via_inverse has: a comparison of the derivatives alone.
    Cost O(n^3).
    """
    return order_zero.forward_partials(given, forward_via_inverse)


def forward_via_inverse(model, q, v, tau, W, damping):
    """(ddv_dq, ddv_dv, ddv_dtau) at torques tau."""
    return implicit.forward_partials(model, q, v, tau, W, damping, _of_inverse, implicit.bias, shared=False)


def _of_inverse(model, q, v, dv, W):
    return inverse_partials(model, 0, q, [v, dv], None if W is None else [W])[0]


@method("forward_dynamics_adjoint", "recursive_scalar", **_OF_FORWARD)
def adjoint_method(given, lams):
    """(ddv_dq' lam, ddv_dv' lam, ddv_dtau' lam), from the partials; see od.describe("forward_dynamics_adjoint").

    Cost O(n^2).
    """
    return order_zero.forward_adjoint(given, lams, forward_adjoint)


def forward_adjoint(model, q, v, tau, lam, W, terms):
    """(ddv_dq' lam, ddv_dv' lam, ddv_dtau' lam) at torques tau."""
    return tuple(x.T @ lam for x in forward_partials(model, q, v, tau, W, terms.damping))


_OF_HYBRID = {**_OF_FORWARD, "source": _KIM.format("4 and 7")}


@method("hybrid_dynamics_partials", "recursive_scalar", **_OF_HYBRID)
def hybrid_method(given):
    """Partials of what is not prescribed; see od.describe("hybrid_dynamics_partials"). Cost O(n^2)."""
    return order_zero.hybrid_partials(given, hybrid_partials)


@method("hybrid_dynamics_partials", "recursive_scalar_via_inverse", **_VIA_INVERSE)
def hybrid_via_inverse_method(given):
    """Partials of what is not prescribed; see od.describe("hybrid_dynamics_partials"). Cost O(n^3)."""
    return order_zero.hybrid_partials(given, hybrid_via_inverse)


def hybrid_via_inverse(model, q, v, a, tau, prescribed, W):
    """{(what, by what): matrix}."""
    return implicit.hybrid_partials(model, q, v, a, tau, prescribed, W, _of_inverse, implicit.bias)


@method("hybrid_dynamics_adjoint", "recursive_scalar", **_OF_HYBRID)
def hybrid_adjoint_method(given, by_a, by_t):
    """Gradients of lam_tau_p' tau_p + lam_dv_f' dv_f, from the partials; see od.describe("hybrid_dynamics_adjoint").

    Cost O(n^2).
    """
    (of_a,), (of_t,) = hybrid_method(given)
    return tuple(x.T @ by_a[0] + y.T @ by_t[0] for x, y in zip(of_a, of_t, strict=True))


def hybrid_partials(model, q, v, a, tau, prescribed, W):
    """{(what, by what): matrix}."""
    rows = {"tau_p": list(prescribed), "dv_f": [k for k in range(model.robot.nv) if k not in prescribed]}
    prescribed_bodies = [i for i in model.bodies if model.coordinates[i][2] in prescribed]
    sides = {"q": state_changes(model, q, v, "q"), "v": state_changes(model, q, v, "v")}
    sides["dv_p"] = [state_changes(model, q, v, "a")[k] for k in rows["tau_p"]]
    sides["tau_f"] = [state_changes(model, q, v, "tau")[k] for k in rows["dv_f"]]
    m, out = mechanism(model, q, v, W), {}
    a, tau, changes = model.joint_v(a), model.joint_v(tau), [x for side in sides.values() for x in side]
    _, _, derivatives = hybrid_dynamics(m, a, tau, prescribed_bodies, changes)
    for by, changes in sides.items():
        now, derivatives = derivatives[: len(changes)], derivatives[len(changes) :]
        for k, what in ((0, "dv_f"), (1, "tau_p")):
            out[what, by] = _columns(model, [x[k] for x in now])[rows[what], :]
    return out
