"""Forward dynamics by the factorised mass matrix: M dv = tau - h."""

import casadi as ca

from ..inverse_dynamics.taylor import taylor as inverse_dynamics
from ..matrices.composite import composite
from ..registry import method


@method(
    "forward_dynamics",
    "closed_form",
    kind="closed_form",
    source="M dv = tau - h(q, v) with the factorised mass matrix; Kumar and Mueller 2021, eq. 1",
    max_order=0,
    regroup=True,
)
def closed_form(model, order, q, v, T, W=None):
    """Joint accelerations [dv] from torques T[0]; see the quantity. Cost O(n depth^2)."""
    bias = inverse_dynamics(model, 0, q, [v, ca.DM.zeros(v.shape[0])], W)[0]
    return [solve_tips_first(factor_tips_first(composite(model, q)), T[0] - bias)]


def factor_tips_first(M):
    """Factors of a mass matrix for solve_tips_first. From the tips to the base the factors of a branching robot
    have no entries where the mass matrix has none (Featherstone 2005)."""
    return ca.ldl(ca.sparsify(M[::-1, ::-1]), False)


def solve_tips_first(factors, b):
    """Solution of M x = b from factor_tips_first(M); b may have several columns."""
    return ca.ldl_solve(ca.densify(b[::-1, :]), *factors)[::-1, :]
