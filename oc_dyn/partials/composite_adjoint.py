"""Adjoint and Lagrangian Hessian of inverse dynamics by sums over subtrees, in working axes.

lam' tau is the power of the torques on a virtual velocity lam. It is linear in the virtual velocities of the bodies and
in their forces, so its derivatives need, beside the sums that the partials need, those of the virtual momentum.
"""

from typing import Any

from ..model.joints import GROUPS
from ..registry import method
from ..working_axes.assembly import assembled
from ..working_axes.fields import plus, product, turned_by
from ..working_axes.rotations import cross
from ..working_axes.tree import Carried
from . import order_by_order, order_zero
from .along_motion import blocks, gradients_along_motion, hessians_along_motion
from .composite import CANNOT, bias, composite, composite_method
from .implicit import forward_adjoint, forward_hessian
from .virtual_motion import VirtualTree

_FACTS: dict[str, Any] = {
    "kind": "analytic",
    "source": "this toolkit: contraction of Singh et al. 2023, sections II and IV, by sums over subtrees",
    "cannot": CANNOT,
    "regroup": True,
}


_ALONG = {**_FACTS, "source": _FACTS["source"] + "; time derivatives by jtimes along the motion with cse"}


@method("inverse_dynamics_adjoint", "composite", max_order=0, **_FACTS)
def adjoint_method(model, order, q, V, lams, W=None):
    """Gradients of lam' tau; see od.describe("inverse_dynamics_adjoint"). Cost O(n)."""
    return adjoint(model, q, *V, *lams, W and W[0])


@method("inverse_dynamics_adjoint", "composite_along_motion", **_ALONG)
def adjoint_along_motion(model, order, q, V, lams, W=None):
    """Gradients of lam' tau + lam_dtau' dtau + ...; see od.describe("inverse_dynamics_adjoint").

    AD of `taylor` takes as many instructions.
    """
    return gradients_along_motion(model, order, q, V, lams, W, adjoint)


def adjoint(model, q, v, dv, lam, W=None):
    """(dtau_dq' lam, dtau_dv' lam, dtau_ddv' lam) at q, v, dv and applied wrenches W (6, bodies)."""
    return gradients(VirtualTree(model, q, v, dv, W, lam), lam)


def gradients(trees, lam):
    """The same from a VirtualTree whose sums have not been asked for."""
    model = trees.model
    by_q, by_v, by_a, lam = {}, {}, {}, model.joint_v(lam)
    for i in model.reversed_bodies:
        sums, at = trees.sum(i), trees.screws[i]
        momentum = sums.k, sums.L
        by_a[i] = product(at.s, momentum) + model.armature[i] * lam[i]
        by_v[i] = product(at.rate, momentum) + at.s[0].T @ sums.g
        by_q[i] = product(at.psi2, momentum) + at.psi[0].T @ sums.g + product(trees.zeta[i], (sums.n, sums.f))
    return tuple(model.stack(x) for x in (by_q, by_v, by_a))


@method("inverse_dynamics_lagrangian_hessian", "composite", max_order=0, **_FACTS)
def hessian_method(model, order, q, V, lams, W=None):
    """Second derivatives of lam' tau by blocks; see od.describe("inverse_dynamics_lagrangian_hessian").

    Cost O(n depth).
    """
    return blocks(lagrangian_hessian(model, q, *V, *lams, W and W[0]))


_TURNS = "its velocities are not rates of coordinates"
_RATES = {**CANNOT, **dict.fromkeys(GROUPS, _TURNS)}


@method("inverse_dynamics_lagrangian_hessian", "composite_along_motion", **{**_ALONG, "cannot": _RATES})
def hessian_along_motion(model, order, q, V, lams, W=None):
    """Second derivatives of lam' tau + lam_dtau' dtau + ... by blocks; see
    od.describe("inverse_dynamics_lagrangian_hessian").
    """
    return hessians_along_motion(model, order, q, V, lams, W, lagrangian_hessian)


def lagrangian_hessian(model, q, v, dv, lam, W=None):
    """Second derivatives of lam' tau, blocks (qq, q v, vv, q dv).

    Symbols: joint i below joint j. along_q, along_v, along_a: derivative, by a virtual velocity of the whole subtree of
    i, of that by q_i, v_i, dv_i; pushed: by an acceleration, of that by q_i; turn_q, turn_v: by an angular velocity.
    """
    trees = VirtualTree(model, q, v, dv, W, lam)
    QQ, QV, VV, QA = {}, {}, {}, {}
    for i in model.reversed_bodies:
        sums, at, zeta = trees.sum(i), trees.screws[i], trees.zeta[i]
        s, flow, virtual = at.s, sums.flow, sums.virtual_flow
        momentum = virtual.momentum()  # (k, L) in fewer instructions, as J is wanted
        along_a = sums.inertia(s)
        along_v = plus(flow.coriolis(s[0]), sums.inertia(at.rate))
        along_q = plus(flow.coriolis(at.psi[0]), sums.inertia(at.psi2))
        along_q = plus(along_q, turned_by(s, (sums.n, sums.f)))
        moved = turned_by(s, momentum)
        pushed = plus(sums.inertia(zeta), moved)
        own_v = moved[0] - 2 * virtual.coriolis(s[0])[0]
        turn_v = moved[0] + own_v
        turn_q = 2 * (turned_by(at.psi, momentum)[0] - virtual.coriolis(at.psi[0])[0])
        turn_q = turn_q + flow.coriolis_transposed(zeta) - cross(sums.g, s[0])

        QA[i, i] = product(zeta, along_a)
        VV[i, i] = product(s, (own_v, cross(sums.L, s[0])))
        QV[i, i] = at.psi[0].T @ turn_v + product(zeta, along_v)
        twice = at.psi[0].T @ turn_q + product(at.psi2, pushed) + product(zeta, along_q)
        QQ[i, i] = 0.5 * (twice + twice.T) if twice.numel() > 1 else twice
        start = Carried([pushed, along_a, along_v, along_q], [turn_q, turn_v])
        for j, carried, working in trees.climb(i, start):
            pushed, along_a, along_v, along_q = carried.wrenches
            turn_q, turn_v = carried.vectors
            above, zeta = trees.screws_at(j, working)
            QA[j, i] = product(zeta, along_a)
            QA[i, j] = product(pushed, above.s)
            VV[j, i] = above.s[0].T @ turn_v
            QV[j, i] = above.psi[0].T @ turn_v + product(zeta, along_v)
            QV[i, j] = turn_q.T @ above.s[0] + product(pushed, above.rate)
            QQ[j, i] = above.psi[0].T @ turn_q + product(above.psi2, pushed) + product(zeta, along_q)
    QQ, VV = (assembled(model, x, mirrored=True) for x in (QQ, VV))
    return QQ, assembled(model, QV), VV, assembled(model, QA)


@method("forward_dynamics_adjoint", "composite", max_order=0, **_FACTS)
def forward_adjoint_method(given, lams):
    """(ddv_dq' lam, ddv_dv' lam, ddv_dtau' lam); see od.describe("forward_dynamics_adjoint")."""
    return order_zero.forward_adjoint(given, lams, of_forward_dynamics)


def of_forward_dynamics(model, q, v, tau, lam, W, terms):
    """(ddv_dq' lam, ddv_dv' lam, ddv_dtau' lam) at torques tau."""
    return forward_adjoint(model, q, v, tau, lam, W, terms, adjoint, bias)


@method("forward_dynamics_lagrangian_hessian", "composite", max_order=0, **_FACTS)
def forward_hessian_method(given, lams):
    """Second derivatives of lam' dv; see od.describe("forward_dynamics_lagrangian_hessian")."""
    return order_zero.forward_hessian(given, lams, hessian_of_forward_dynamics)


def hessian_of_forward_dynamics(model, q, v, tau, lam, W, terms):
    """Second derivatives of lam' dv by blocks."""
    return forward_hessian(model, q, v, tau, lam, W, terms, composite, lagrangian_hessian, bias)


_SOLVED = {**_ALONG, "source": _ALONG["source"] + ", solved for the accelerations order by order"}
_SOLVED_RATES = {**_SOLVED, "cannot": _RATES}


@method("forward_dynamics_adjoint", "composite_along_motion", **_SOLVED)
def forward_adjoint_along_motion(given, lams):
    """Gradients of lam' dv + lam_d2v' d2v + ...; see od.describe("forward_dynamics_adjoint")."""
    return order_by_order.forward_adjoint(given, lams, adjoint_along_motion)


@method("forward_dynamics_lagrangian_hessian", "composite_along_motion", **_SOLVED_RATES)
def forward_hessian_along_motion(given, lams):
    """Second derivatives of lam' dv + lam_d2v' d2v + ...; see od.describe("forward_dynamics_lagrangian_hessian")."""
    return order_by_order.forward_hessian(given, lams, adjoint_along_motion, composite_method, hessian_along_motion)


@method("hybrid_dynamics_adjoint", "composite", max_order=0, **_FACTS)
def hybrid_adjoint(given, by_a, by_t):
    """Gradients of lam_tau_p' tau_p + lam_dv_f' dv_f; see od.describe("hybrid_dynamics_adjoint")."""
    return order_by_order.adjoint_of_solved(given, by_a, by_t, adjoint_method)


@method("hybrid_dynamics_adjoint", "composite_along_motion", **_SOLVED)
def hybrid_adjoint_along_motion(given, by_a, by_t):
    """Gradients of the sum of products; see od.describe("hybrid_dynamics_adjoint")."""
    return order_by_order.adjoint_of_solved(given, by_a, by_t, adjoint_along_motion)


@method("hybrid_dynamics_lagrangian_hessian", "composite", max_order=0, **_FACTS)
def hybrid_hessian(given, by_a, by_t):
    """Second derivatives of the sum of products; see od.describe("hybrid_dynamics_lagrangian_hessian")."""
    return order_by_order.hessian_of_solved(given, by_a, by_t, adjoint_method, composite_method, hessian_method)


@method("hybrid_dynamics_lagrangian_hessian", "composite_along_motion", **_SOLVED_RATES)
def hybrid_hessian_along_motion(given, by_a, by_t):
    """Second derivatives of the sum of products; see od.describe("hybrid_dynamics_lagrangian_hessian")."""
    return order_by_order.hessian_of_solved(
        given, by_a, by_t, adjoint_along_motion, composite_method, hessian_along_motion
    )
