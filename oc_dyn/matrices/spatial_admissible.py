"""Coriolis matrix from spatial twists: all screws seen from the root frame, where inertias of bodies simply add."""

from math import comb

import casadi as ca

from ..inverse_dynamics.recursive_spatial import next_inertia, spatial_inertia
from ..kinematics.recursive_spatial import forward_kinematics
from ..lie import se3
from ..lie.jets import total
from ..registry import method
from ..working_axes.assembly import assembled


@method(
    "coriolis_matrix",
    "spatial_admissible",
    kind="analytic",
    source="Ali et al. 2026, Lemma 1",
    coriolis=("garofalo",),
)
def spatial_admissible(model, order, q, V):
    """Derivatives 0..order of the Coriolis matrix; see od.describe("coriolis_matrix"). Admissible, for fixed and
    floating bases.

    Equation:  C = sum_i J_i^T (M_i J_i' - ad(V_i)^T M_i J_i)                    (21)
    Symbols:   columns j of J_i are S_j for the joints on the path to i, so that the sums over the bodies beyond a
               joint come first: MA_j = sum M_i, N_j = sum ad(V_i)^T M_i; C_jk = S_j^T (MA_l S_k' - N_l S_k) where l
               is the farther one of j and k, if they share a path.
    Deviations: the composite sums; velocities of a free base are body-fixed, which changes S alone; transform joints.
    Cost O(n depth order^2).
    """
    v = [*V, ca.DM.zeros(model.robot.nv)]  # the top derivative does not enter the screws
    C, S, twists = forward_kinematics(model, order + 1, q, v)
    M, N = {}, {}
    for i in model.reversed_bodies:
        brackets = [se3.ad(x) for x in twists[i][: order + 1]]
        M[i] = [spatial_inertia(model.inertia[i], C[i])]
        for _ in range(order):
            M[i].append(next_inertia(M[i], twists[i]))
        N[i] = [total(comb(k, l) * (brackets[l].T @ M[i][k - l]) for l in range(k + 1)) for k in range(order + 1)]
        for c in model.children[i]:
            M[i] = [x + y for x, y in zip(M[i], M[c], strict=True)]
            N[i] = [x + y for x, y in zip(N[i], N[c], strict=True)]

    def wrenches(i, j):
        """Derivatives of the wrenches that the bodies beyond joint i need for the motion of joint j."""
        return [
            total(comb(k, l) * (M[i][k - l] @ S[j][l + 1] - N[i][k - l] @ S[j][l]) for l in range(k + 1))
            for k in range(order + 1)
        ]

    blocks = {}
    for i in model.bodies:
        own = wrenches(i, i)
        for j in model.support(i):
            blocks[j, i] = _projected(S[j], own)
            if j != i:
                blocks[i, j] = _projected(S[i], wrenches(i, j))
    return [assembled(model, {pair: x[n] for pair, x in blocks.items()}) for n in range(order + 1)]


def _projected(S, W):
    """Derivatives of S^T W."""
    return [total(comb(n, k) * (S[n - k].T @ W[k]) for k in range(n + 1)) for n in range(len(W))]
