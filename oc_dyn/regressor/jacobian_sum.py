"""Regressors from the Jacobians of the bodies."""

from math import comb

import casadi as ca

from ..lie.jets import total
from ..matrices.jacobian_sum import body_jacobians
from ..registry import method
from .columns import author_frames, to_author, torque_columns, wrench_columns

_SOURCE = "Garofalo et al. 2013, eqs. 15 and 16"


@method("joint_torque_regressor", "jacobian_sum", kind="closed_form", source=_SOURCE + ", with vr = v")
def joint_torque_regressor(model, order, q, V):
    """Derivatives 0..order of Y (nv, 10 bodies); see od.describe("joint_torque_regressor").

    ad(V) V = 0, so one product falls away.
    """
    return _regressors(model, order, q, V, V, None)


@method(
    "slotine_li_regressor",
    "jacobian_sum",
    kind="closed_form",
    source=_SOURCE,
    coriolis=("christoffel", "garofalo"),
)
def slotine_li_regressor(model, order, q, V, Vr, coriolis):
    """Derivatives 0..order of Ys (nv, 10 bodies); see od.describe("slotine_li_regressor").

    Equation:  Ys_k = J_k^T (A(alpha_k) - ad(V_k)^T A(J_k vr)),
               alpha_k = J_k dvr + J_k' vr + ad(V_k) J_k vr + G_k                         (15), (16)
               for "garofalo"; of Christoffel symbols as in columns.py
    """
    return _regressors(model, order, q, V, Vr, coriolis)


def _regressors(model, order, q, V, Vr, coriolis):
    J, twists, G = body_jacobians(model, order + 1, q, V)
    blocks = [[] for _ in range(order + 1)]
    for _, i, pose in author_frames(model):
        X = to_author(pose)
        Ja, Ga = [X @ x for x in J[i]], [X @ x for x in G[i]]
        seen = [X @ x for x in twists[i]]
        reference = [total(comb(k, l) * (Ja[k - l] @ Vr[l]) for l in range(k + 1)) for k in range(order + 2)]
        rate = [reference[k + 1] + Ga[k] for k in range(order + 1)]  # alpha without its bracket
        if coriolis is None:
            W = [torque_columns(seen, rate, k) for k in range(order + 1)]
        else:
            W = [wrench_columns(seen, reference, rate, k, coriolis) for k in range(order + 1)]
        for n in range(order + 1):
            blocks[n].append(total(comb(n, k) * (Ja[n - k].T @ W[k]) for k in range(n + 1)))  # (16)
    return [ca.horzcat(*x) for x in blocks]
