"""Forward dynamics of any order by the factorised mass matrix: M dv = tau - h, differentiated."""

from math import comb

import casadi as ca

from ..inverse_dynamics.closed_form import stacked_wrenches
from ..inverse_dynamics.system_matrices import SystemMatrices
from ..inverse_dynamics.taylor import taylor as inverse_dynamics
from ..lie.jets import total
from ..matrices.whole_mass import whole_mass
from ..registry import method
from .mass_solver import factor_reversed, solve_reversed


@method(
    "forward_dynamics",
    "closed_form",
    kind="closed_form",
    source="Kumar and Mueller 2021, eqs. 1 and 34 solved for the highest derivative",
    regroup=True,
    fluid=True,
)
def closed_form(model, order, q, v, T, W=None):
    """Derivatives 0..order of the joint accelerations; see od.describe("forward_dynamics").

    Equation:  M v^(n+1) = tau^(n) - sum_{k<n} C(n,k) M^(n-k) v^(k+1) - sum_k C(n,k) C^(n-k) v^(k) - g^(n)
               + sum_k C(n,k) (J^(n-k))^T W^(k)                                     (34)
    One factorisation serves all orders. Order 0 has its mass matrix and bias from the shortest recursions.
    Cost O(n depth^2) for order 0, else O(n^3 order^3).
    """
    factors = factor_reversed(whole_mass(model, q))
    bias = inverse_dynamics(model, 0, q, [v, ca.DM.zeros(v.shape[0])], W and W[:1])[0]
    V = [v, solve_reversed(factors, T[0] - bias)]
    system = SystemMatrices(model, q, V)  # reads V as it grows
    applied = None if W is None else stacked_wrenches(model, W)
    for n in range(1, order + 1):
        known = system.g(n) + total(comb(n, k) * (system.C(n - k) @ V[k]) for k in range(n + 1))
        known = known + total(comb(n, k) * (system.M(n - k) @ V[k + 1]) for k in range(n))
        if model.fluid:
            known = known + system.drag(n)
        if applied is not None:
            known = known - total(comb(n, k) * (system.J(n - k).T @ applied[k]) for k in range(n + 1))
        V.append(solve_reversed(factors, T[n] - known))
    return V[1:]
