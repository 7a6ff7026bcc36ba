"""Derivatives of forward and hybrid dynamics from those of inverse dynamics, whose equation both solve."""

import casadi as ca

from ..forward_dynamics.mass_solver import factor_reversed, solve_reversed
from ..forward_dynamics.mass_solver import mass_solver as vector_solver
from ..inverse_dynamics.taylor import taylor as inverse_dynamics
from ..matrices.whole_mass import whole_mass


def forward_partials(model, q, v, tau, W, damping, partials, bias, shared=True):
    """(ddv_dq, ddv_dv, ddv_dtau) at torques tau. partials(model, q, v, dv, W), bias(model, q, v, W): of inverse
    dynamics; damping (nv, nv) adds to dtau_dv. shared: whether what makes the mass matrix is a part of the partials.

    Equation:  ddv/du = -M^-1 dID/du at dv = M^-1 (tau - bias)     Singh et al. 2023, eq. 45
    """
    nv = model.robot.nv
    solve = mass_solver(mass_matrix(model, q) if shared else partials(model, q, v, ca.DM.zeros(nv), W)[2])
    Q, D, _ = partials(model, q, v, solve(tau - bias(model, q, v, W)), W)
    result = -solve(ca.horzcat(Q, D + damping))
    return result[:, :nv], result[:, nv:], inverse(solve, nv)


def hybrid_partials(model, q, v, a, tau, prescribed, W, partials, bias):
    """{(what, by what): matrix} for what = "tau_p", "dv_f" by "q", "v", "dv_p", "tau_f"; arguments as for hybrid
    dynamics: a (nv,) right in the rows `prescribed`, tau (nv,) in the others.

    Equation:  M_ff ddv_f = dtau_f - dID_f - M_fp ddv_p,   dtau_p = dID_p + M_pf ddv_f + M_pp ddv_p
    """
    nv, p = model.robot.nv, list(prescribed)
    f = [k for k in range(nv) if k not in prescribed]
    M = mass_matrix(model, q)
    known = selected(nv, p) @ a[p] if p else ca.DM.zeros(nv)
    solve = mass_solver(M[f, f])
    if f:
        known = known + selected(nv, f) @ solve(tau[f] - (bias(model, q, v, W) + M[:, p] @ known[p])[f])
    Q, D, _ = partials(model, q, v, known, W)
    sides = {"q": Q, "v": D, "dv_p": M[:, p]}
    out = {}
    for by, x in sides.items():
        out["dv_f", by] = -solve(x[f, :])
        out["tau_p", by] = x[p, :] + M[p, f] @ out["dv_f", by]
    out["dv_f", "tau_f"] = inverse(solve, len(f))
    out["tau_p", "tau_f"] = -out["dv_f", "dv_p"].T
    return out


def forward_adjoint(model, q, v, tau, lam, W, terms, adjoint, bias):
    """(ddv_dq' lam, ddv_dv' lam, ddv_dtau' lam) from those of inverse dynamics; `terms`: see FrictionTerms.

    Equation:  ddv_du' lam = -dID_du' (M^-1 lam)
    """
    solve = vector_solver(model, q)  # two vectors: long chains take articulated inertias
    dv, mu = solve(tau - bias(model, q, v, W)), solve(lam)
    by_q, by_v, _ = adjoint(model, q, v, dv, mu, W)
    return -by_q, -(by_v + terms.damping.T @ mu), mu


def forward_hessian(model, q, v, tau, lam, W, terms, partials, hessian, bias):
    """Second derivatives of lam' dv, {("q", "q"): block, ("q", "v"), ("v", "v"), ("q", "tau")}; the others are zero.

    Equation:  with mu = M^-1 lam and H the Hessian of mu' ID, of which the block of dv is zero,
               -(H + H_a dv_u + (H_a dv_u)'),  H_a dv_u = -(M^-1 H_a')' (dID_u, dID_v, -1)
    """
    solve = mass_solver(mass_matrix(model, q))
    solved = solve(ca.horzcat(tau - bias(model, q, v, W), lam))
    dv, mu = solved[:, 0], solved[:, 1]
    Q, D, _ = partials(model, q, v, dv, W)
    QQ, QV, VV, QA = hessian(model, q, v, dv, mu, W)
    X = solve(QA.T).T
    XQ = X @ Q
    QQ = ca.triu2symm(ca.triu(XQ + XQ.T - QQ))
    return {
        ("q", "q"): QQ,
        ("q", "v"): X @ (D + terms.damping) - QV,
        ("v", "v"): -VV - terms.curvature(mu),
        ("q", "tau"): -X,
    }


def bias(model, q, v, W):
    """Torques (nv,) of a motion without acceleration."""
    return inverse_dynamics(model, 0, q, [v, ca.DM.zeros(*v.shape)], None if W is None else [W])[0]


def mass_matrix(model, q):
    """M (nv, nv), sparse where the robot branches."""
    return ca.sparsify(whole_mass(model, q))


def mass_solver(M):
    """Function b -> x with M x = b, b of any number of columns; M is sparse where the robot branches."""
    if not M.shape[0]:
        return lambda b: ca.SX(*b.shape)
    factors = factor_reversed(M)
    return lambda b: solve_reversed(factors, ca.SX(b))


def inverse(solve, n):
    """Inverse of the symmetric matrix that solve() belongs to; half of it is computed."""
    return ca.triu2symm(ca.triu(solve(ca.SX.eye(n)))) if n else ca.SX(0, 0)


def selected(n, rows):
    """(n, len(rows)) matrix that puts a vector into these rows."""
    return ca.SX(ca.DM.eye(n)[:, rows])
