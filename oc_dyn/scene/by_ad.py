"""Derivatives of distances by automatic differentiation."""

from __future__ import annotations

import casadi as ca

from ..model.robot import tangent_map
from ..registry import method
from ..subexpressions import merged
from .distances import METHODS

_distances, _adjoint = METHODS["by_kind"]
_OF = "AD of by_kind, its Newton steps included"


@method("distances_partials", "ad", kind="ad", source=_OF + ", and the chain rule to the tangent space")
def partials(model, scene, q, poses, t):
    """(pairs, nv); see od.describe("distances_partials")."""
    J = ca.jacobian(_values(model, scene, q, poses, t), q) @ tangent_map(model.robot, q)
    return [J]


@method("distances_adjoint", "ad", kind="ad", source=_OF + ": gradient in reverse mode")
def adjoint(model, scene, q, poses, t, lam):
    """(nv,); see od.describe("distances_adjoint")."""
    return tangent_map(model.robot, q).T @ ca.gradient(ca.dot(lam, _values(model, scene, q, poses, t)), q)


@method("distances_lagrangian_hessian", "ad", kind="ad", source=_OF + ": gradient in reverse mode, then its Jacobian")
def lagrangian_hessian(model, scene, q, poses, t, lam):
    """(nv, nv); see od.describe("distances_lagrangian_hessian")."""
    e = ca.SX.sym("e", model.robot.nv)
    moved = model.robot.integrate(q, e)
    H = ca.hessian(ca.dot(lam, _values(model, scene, moved, poses, t)), e)[0]
    return ca.substitute([H], [e], [ca.DM.zeros(*e.shape)])[0]


@method("distances_lagrangian_hessian", "ad_of_adjoint", kind="ad", source="AD: Jacobian of the analytic adjoint")
def hessian_of_adjoint(model, scene, q, poses, t, lam):
    """(nv, nv); see od.describe("distances_lagrangian_hessian")."""
    one_after_other = ca.jacobian(merged(_adjoint(model, scene, q, poses, t, lam)), q) @ tangent_map(model.robot, q)
    return 0.5 * (one_after_other + one_after_other.T)


def _values(model, scene, q, poses, t):
    return merged(ca.vertcat(ca.SX(0, 1), *(d for d, _, _ in _distances(model, scene, q, poses, t))))
