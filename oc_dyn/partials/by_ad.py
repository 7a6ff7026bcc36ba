"""Derivatives by automatic differentiation of the functions of order 0 with the fewest instructions."""

from dataclasses import replace
from typing import Any

import casadi as ca

from ..forward_dynamics.taylor import taylor as forward_dynamics
from ..hybrid_dynamics.taylor import taylor as hybrid_dynamics
from ..inverse_dynamics.taylor import taylor as inverse_dynamics
from ..lie.jets import total
from ..model.robot import tangent_map
from ..registry import method
from ..subexpressions import merged, put_in
from ..working_axes.frames import upper_mirrored
from . import implicit, order_by_order, order_zero
from .along_motion import blocks
from .composite_adjoint import adjoint as composite_adjoint
from .recursive_scalar import inverse_adjoint as recursive_adjoint

_ONE_CALL = "AD: one Jacobian by all arguments together, of the method taylor"
_VIA_INVERSE = "AD of inverse dynamics, solved for the accelerations"
_TANGENT = ", and the chain rule to the tangent space"
_AD: dict[str, Any] = {"kind": "ad", "regroup": True}


@method("inverse_dynamics_partials", "ad", source=_ONE_CALL + _TANGENT, fluid=True, **_AD)
def inverse_partials(model, order, q, V, W=None):
    """Partials of derivatives 0..order of the torques; see od.describe("inverse_dynamics_partials").

    The strongest AD form found.
    """
    torques = merged(inverse_dynamics(model, order, q, V, W))
    return [_jacobians(model, tau, q, V[: r + 2]) for r, tau in enumerate(torques)]


@method("inverse_dynamics_partials", "ad_blocks", source="AD: one Jacobian an argument" + _TANGENT, fluid=True, **_AD)
def inverse_partials_by_blocks(model, order, q, V, W=None):
    """Partials of derivatives 0..order of the torques; see od.describe("inverse_dynamics_partials")."""
    torques = merged(inverse_dynamics(model, order, q, V, W))
    return [_jacobians(model, tau, q, V[: r + 2], together=False) for r, tau in enumerate(torques)]


@method("forward_dynamics_partials", "ad", source=_ONE_CALL + _TANGENT, **_AD)
def forward_method(given):
    """Partials of dv, d2v, ...; see od.describe("forward_dynamics_partials")."""
    if given.order:
        return [[*row[:2], *row[3 + k :]] for k, row in enumerate(solved_partials(given)[0])]
    return order_zero.forward_partials(given, forward)


def forward(model, q, v, tau, W, damping):
    """(ddv_dq, ddv_dv, ddv_dtau) at torques tau."""

    def jacobians(q, v, tau, *W):
        return _jacobians(model, merged(forward_dynamics(model, 0, q, v, [tau], W or None)[0]), q, [v, tau])

    by_q, by_v, by_tau = _at(jacobians, q, v, tau, *_listed(W))
    return by_q, by_v - by_tau @ damping, by_tau


@method(
    "forward_dynamics_partials",
    "ad_via_inverse",
    source="AD: one Jacobian of inverse dynamics, solved for the accelerations (Singh et al. 2023, eq. 45)",
    fluid=True,
    **_AD,
)
def forward_via_inverse_method(given):
    """Partials of dv, d2v, ..., order by order; see od.describe("forward_dynamics_partials")."""
    if given.order:
        return order_by_order.forward_partials(given, inverse_partials)
    return order_zero.forward_partials(given, forward_via_inverse)


def forward_via_inverse(model, q, v, tau, W, damping):
    """(ddv_dq, ddv_dv, ddv_dtau) at torques tau."""
    return implicit.forward_partials(model, q, v, tau, W, damping, _partials, implicit.bias, shared=False)


def _partials(model, q, v, dv, W):
    return _at(lambda q, v, dv, *W: inverse_partials(model, 0, q, [v, dv], W or None)[0], q, v, dv, *_listed(W))


@method("hybrid_dynamics_partials", "ad", source=_ONE_CALL + _TANGENT, **_AD)
def hybrid_method(given):
    """Partials of what is not prescribed; see od.describe("hybrid_dynamics_partials")."""
    return solved_partials(given) if given.order else order_zero.hybrid_partials(given, hybrid)


@method("hybrid_dynamics_partials", "ad_via_inverse", source=_VIA_INVERSE, **_AD)
def hybrid_via_inverse(given):
    """Partials of what is not prescribed, order by order; see od.describe("hybrid_dynamics_partials")."""
    return order_by_order.partials(given, inverse_partials)


def hybrid(model, q, v, a, tau, prescribed, W):
    """{(what, by what): matrix} of order 0."""
    p = list(prescribed)
    f = [k for k in range(model.robot.nv) if k not in prescribed]

    def jacobians(q, v, a, tau, *W):
        (dv,), (torque,) = hybrid_dynamics(model, 0, q, v, [a], [tau], prescribed, W or None)
        rows = [_jacobians(model, merged(x), q, [v, a, tau]) for x in (dv[f], torque[p])]
        return [y for x in rows for y in (x[0], x[1], x[2][:, p], x[3][:, f])]

    names = [(x, by) for x in ("dv_f", "tau_p") for by in ("q", "v", "dv_p", "tau_f")]
    return dict(zip(names, _at(jacobians, q, v, a, tau, *_listed(W)), strict=True))


def solved_partials(given):
    """Partials of (free accelerations, prescribed torques) of the orders 0.., by q, v, and those rows of dv, d2v, ...
    and tau, dtau, ... that are given, of the orders up to its own."""
    n = given.order + 1

    def jacobians(at, _):
        p, f = list(at.prescribed), at.free
        out = []
        for found, rows in zip(at.solved(), (f, p), strict=True):
            for k, x in enumerate(merged([ca.SX(y) for y in found])):
                by_q, by_v, *rest = _jacobians(at.model, x[rows], at.q, [at.v, *at.A, *at.T])
                out += [by_q, by_v, *(y[:, p] for y in rest[: k + 1]), *(y[:, f] for y in rest[n : n + k + 1])]
        return out

    values = iter(given.at(jacobians))
    return tuple([[next(values) for _ in range(2 * k + 4)] for k in range(n)] for _ in range(2))


@method("mass_matrix_inverse", "ad", source="AD: Jacobian of forward dynamics by the torques", **_AD)
def mass_inverse(model, q):
    """M^-1 (nv, nv); see od.describe("mass_matrix_inverse")."""
    tau, rest = ca.SX.sym("tau", model.robot.nv), ca.DM.zeros(model.robot.nv)
    return ca.jacobian(forward_dynamics(model, 0, q, rest, [tau])[0], tau)


@method(
    "inverse_dynamics_adjoint", "ad", source="AD: gradient in reverse mode, of the method taylor", fluid=True, **_AD
)
def inverse_adjoint_method(model, order, q, V, lams, W=None):
    """Gradients of lam' tau + lam_dtau' dtau + ...; see od.describe("inverse_dynamics_adjoint")."""
    return _gradients(model, _lagrangian(model, order, q, V, lams, W), q, V)


def inverse_adjoint(model, q, v, dv, lam, W=None):
    """(dtau_dq' lam, dtau_dv' lam, dtau_ddv' lam)."""
    return inverse_adjoint_method(model, 0, q, [v, dv], [lam], _listed(W) or None)


def _lagrangian(model, order, q, V, lams, W):
    torques = merged(inverse_dynamics(model, order, q, V, W))
    return total(ca.dot(lam, tau) for lam, tau in zip(lams, torques, strict=True))


@method("forward_dynamics_adjoint", "ad", source="AD: gradient in reverse mode, of the method taylor", **_AD)
def forward_adjoint_method(given, lams):
    """Gradients of lam' dv + lam_d2v' d2v + ...; see od.describe("forward_dynamics_adjoint")."""
    if given.order:
        by_q, by_v, *rest = hybrid_adjoint(given, lams, [ca.DM.zeros(0, 1) for _ in lams])
        return by_q, by_v, *rest[given.order + 1 :]
    return order_zero.forward_adjoint(given, lams, forward_adjoint)


@method("hybrid_dynamics_adjoint", "ad", source="AD: gradient in reverse mode, of the method taylor", **_AD)
def hybrid_adjoint(given, by_a, by_t):
    """Gradients of the sum of products; see od.describe("hybrid_dynamics_adjoint")."""

    def gradients(at, lams):
        return _solved_gradients(at, at.q, _solved_lagrangian(at, lams))

    return given.at(gradients, [*by_a, *by_t])


def _solved_lagrangian(at, lams):
    """Sum of products of the multipliers, those of accelerations first, with free accelerations, prescribed torques."""
    accelerations, torques = at.solved()
    found = [*(x[at.free] for x in accelerations), *(x[list(at.prescribed)] for x in torques)]
    return total(ca.dot(lam, ca.SX(x)) for lam, x in zip(lams, merged(found), strict=True))


def _solved_gradients(at, q, y):
    """Gradients of y by a step of q, by v, and what is given of accelerations and torques."""
    by_q, by_v, *rest = _gradients(at.model, y, q, [at.v, *at.A, *at.T])
    n, p = at.order + 1, list(at.prescribed)
    return [by_q, by_v, *(x[p] for x in rest[:n]), *(x[at.free] for x in rest[n:])]


def forward_adjoint(model, q, v, tau, lam, W, terms):
    """(ddv_dq' lam, ddv_dv' lam, ddv_dtau' lam) at torques tau."""

    def gradients(q, v, tau, lam, *W):
        power = ca.dot(lam, merged(forward_dynamics(model, 0, q, v, [tau], W or None)[0]))
        return _gradients(model, power, q, [v, tau])

    by_q, by_v, by_tau = _at(gradients, q, v, tau, lam, *_listed(W))
    return by_q, by_v - terms.damping.T @ by_tau, by_tau


@method("forward_dynamics_adjoint", "ad_via_inverse", source=_VIA_INVERSE, fluid=True, **_AD)
def forward_adjoint_via_inverse_method(given, lams):
    """Gradients of lam' dv + lam_d2v' d2v + ..., order by order; see od.describe("forward_dynamics_adjoint")."""
    if given.order:
        return order_by_order.forward_adjoint(given, lams, inverse_adjoint_method)
    return order_zero.forward_adjoint(given, lams, forward_adjoint_via_inverse)


@method("hybrid_dynamics_adjoint", "ad_via_inverse", source=_VIA_INVERSE, **_AD)
def hybrid_adjoint_via_inverse(given, by_a, by_t):
    """Gradients of the sum of products, order by order; see od.describe("hybrid_dynamics_adjoint")."""
    return order_by_order.adjoint_of_solved(given, by_a, by_t, inverse_adjoint_method)


def forward_adjoint_via_inverse(model, q, v, tau, lam, W, terms):
    """(ddv_dq' lam, ddv_dv' lam, ddv_dtau' lam) at torques tau."""

    def adjoint(model, q, v, dv, lam, W):
        return _at(lambda *x: inverse_adjoint(model, *x), q, v, dv, lam, *_listed(W))

    return implicit.forward_adjoint(model, q, v, tau, lam, W, terms, adjoint, implicit.bias)


_HESSIAN = "AD: gradient in reverse mode, of the method taylor, then its symmetric Jacobian"


@method("inverse_dynamics_lagrangian_hessian", "ad", source=_HESSIAN, fluid=True, **_AD)
def inverse_hessian_method(model, order, q, V, lams, W=None):
    """Second derivatives of lam' tau + lam_dtau' dtau + ... by blocks; see
    od.describe("inverse_dynamics_lagrangian_hessian").
    """
    step = ca.SX.sym("e", model.robot.nv)
    moved = model.robot.integrate(q, step)
    H = _hessian(_lagrangian(model, order, moved, V, lams, W), step, V)
    number = {"q": 0, **{k: k + 1 for k in range(len(V))}}
    return {(number[a], number[b]): x for (a, b), x in H.items() if number[a] <= number[b]}


_INVERSE = inverse_adjoint_method, inverse_partials, inverse_hessian_method


def inverse_hessian(model, q, v, dv, lam, W=None):
    """Second derivatives of lam' tau, blocks (qq, q v, vv, q dv)."""
    H = inverse_hessian_method(model, 0, q, [v, dv], [lam], _listed(W) or None)
    return H[0, 0], H[0, 1], H[1, 1], H[0, 2]


@method("forward_dynamics_lagrangian_hessian", "ad", source=_HESSIAN, max_order=0, **_AD)
def forward_hessian_method(given, lams):
    """Second derivatives of lam' dv; see od.describe("forward_dynamics_lagrangian_hessian")."""
    return order_zero.forward_hessian(given, lams, forward_hessian)


@method("forward_dynamics_lagrangian_hessian", "ad_jet", source=_HESSIAN + ", of all orders together", **_AD)
def forward_hessian_of_jet(given, lams):
    """Second derivatives of lam' dv + lam_d2v' d2v + ...; see od.describe("forward_dynamics_lagrangian_hessian")."""
    return hybrid_hessian(given, lams, [ca.DM.zeros(0, 1) for _ in lams])


@method("hybrid_dynamics_lagrangian_hessian", "ad", source=_HESSIAN, **_AD)
def hybrid_hessian(given, by_a, by_t):
    """Second derivatives of the sum of products; see od.describe("hybrid_dynamics_lagrangian_hessian")."""

    def hessian(at, lams):
        step, y = _at_step(at, lams)
        x = ca.vertcat(step, *at.parts()[1:])
        return ca.substitute([ca.hessian(y, x)[0]], [step], [ca.DM.zeros(*step.shape)])

    return given.at(hessian, [*by_a, *by_t])[0]


def _at_step(at, lams):
    """(e, sum of products at q (+) e)."""
    step = ca.SX.sym("e", at.model.robot.nv)
    return step, _solved_lagrangian(replace(at, q=at.model.robot.integrate(at.q, step)), lams)


def solved_gradient_at_step(at, lams):
    """(e, gradient of the sum of products at q (+) e by e, v and what is given) of a Given of symbols."""
    step, y = _at_step(at, lams)
    return step, ca.gradient(y, ca.vertcat(step, *at.parts()[1:]))


def inverse_gradient_at_step(model, order, q, V, lams, W):
    """(e, gradient of lam' tau + lam_dtau' dtau + ... at q (+) e by e, v, dv, ...)."""
    step = ca.SX.sym("e", model.robot.nv)
    y = _lagrangian(model, order, model.robot.integrate(q, step), V, lams, W)
    return step, ca.gradient(y, ca.vertcat(step, *V))


@method("hybrid_dynamics_lagrangian_hessian", "ad_via_inverse", source=_VIA_INVERSE, **_AD)
def hybrid_hessian_via_inverse(given, by_a, by_t):
    """Second derivatives of the sum of products; see od.describe("hybrid_dynamics_lagrangian_hessian")."""
    return order_by_order.hessian_of_solved(given, by_a, by_t, *_INVERSE)


def forward_hessian(model, q, v, tau, lam, W, terms):
    """Second derivatives of lam' dv by blocks."""
    step = ca.SX.sym("e", model.robot.nv)

    def blocks(q, v, tau, lam, *W):
        moved = model.robot.integrate(q, step)
        power = ca.dot(lam, merged(forward_dynamics(model, 0, moved, v, [tau], W or None)[0]))
        H = _hessian(power, step, [v, tau])
        (mu,) = ca.substitute([ca.gradient(power, tau)], [step], [ca.DM.zeros(*step.shape)])
        return H["q", "q"], H["q", 0], H[0, 0], H["q", 1], mu

    QQ, QV, VV, QT, mu = _at(blocks, q, v, tau, lam, *_listed(W))
    friction = -terms.curvature(mu)
    return {("q", "q"): QQ, ("q", "v"): QV - QT @ terms.damping, ("v", "v"): VV + friction, ("q", "tau"): QT}


@method(
    "inverse_dynamics_lagrangian_hessian",
    "ad_of_adjoint",
    source="AD: Jacobian of the analytic adjoint, by sums over subtrees or, for transform joints, by Kim's recursion",
    max_order=0,
    **_AD,
)
def hessian_of_adjoint(model, order, q, V, lams, W=None):
    """Second derivatives of lam' tau by blocks; see od.describe("inverse_dynamics_lagrangian_hessian")."""
    analytic = recursive_adjoint if "transform" in model.robot.features else composite_adjoint
    by_q, by_v, _ = analytic(model, q, *V, *lams, W and W[0])
    one_after_other, QV, QA = _jacobians(model, merged(by_q), q, V)
    return blocks((upper_mirrored(0.5 * (one_after_other + one_after_other.T)), QV, ca.jacobian(by_v, V[0]), QA))


@method("forward_dynamics_lagrangian_hessian", "ad_via_inverse", source=_VIA_INVERSE, fluid=True, **_AD)
def forward_hessian_via_inverse_method(given, lams):
    """Second derivatives of lam' dv + lam_d2v' d2v + ...; see od.describe("forward_dynamics_lagrangian_hessian")."""
    if given.order:
        return order_by_order.forward_hessian(given, lams, *_INVERSE)
    return order_zero.forward_hessian(given, lams, forward_hessian_via_inverse)


def forward_hessian_via_inverse(model, q, v, tau, lam, W, terms):
    """Second derivatives of lam' dv by blocks."""

    def hessian(model, q, v, dv, lam, W):
        return _at(lambda *x: inverse_hessian(model, *x), q, v, dv, lam, *_listed(W))

    return implicit.forward_hessian(model, q, v, tau, lam, W, terms, _partials, hessian, implicit.bias)


def _jacobians(model, y, q, rest, together=True):
    """Jacobians of y by a step on the tangent space of q, and by each of the symbols `rest`."""
    T = tangent_map(model.robot, q)
    if together:
        J = ca.jacobian(y, ca.vertcat(q, *rest))
        ends = [0]
        for x in (q, *rest):
            ends.append(ends[-1] + x.shape[0])
        by_q, *others = ca.horzsplit(J, ends)
    else:
        by_q, *others = (ca.jacobian(y, x) for x in (q, *rest))
    return tuple(ca.sparsify(x) for x in (by_q @ T, *others))


def _gradients(model, y, q, rest):
    """Gradients of a scalar y by a step on the tangent space of q, and by each of the symbols `rest`."""
    g = ca.gradient(y, ca.vertcat(q, *rest))
    nq, nv = q.shape[0], model.robot.nv
    return tangent_map(model.robot, q).T @ g[:nq], *ca.vertsplit(g[nq:], nv)


def _hessian(y, step, rest):
    """Blocks of the Hessian of y by (step, *rest) at step zero: {("q", "q"): ..., ("q", 0): ..., (0, 0): ...}."""
    H = ca.hessian(y, ca.vertcat(step, *rest))[0]
    (H,) = ca.substitute([H], [step], [ca.DM.zeros(*step.shape)])
    n, names = step.shape[0], ("q", *range(len(rest)))
    parts = {x: slice(k * n, (k + 1) * n) for k, x in enumerate(names)}
    return {(a, b): ca.sparsify(H[parts[a], parts[b]]) for a in names for b in names}


def _listed(W):
    return [] if W is None else [W]


def _at(function, *values):
    """function of fresh symbols, evaluated at values that may be expressions."""
    symbols = [ca.SX.sym("x", *x.shape) for x in values]
    return put_in(symbols, list(function(*symbols)), [ca.SX(x) for x in values])
