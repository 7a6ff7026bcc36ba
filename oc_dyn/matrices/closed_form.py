"""Matrices of the equations of motion from the system matrices of Kumar and Mueller 2021."""

from math import comb

from ..inverse_dynamics.system_matrices import SystemMatrices
from ..lie.jets import total
from ..registry import method

_SOURCE = "Kumar and Mueller 2021, section III"


@method("mass_matrix", "closed_form", kind="closed_form", source=_SOURCE + ", eqs. 28, 43", regroup=True, fluid=True)
def mass_matrix(model, order, q, V):
    """Derivatives 0..order of the mass matrix; see od.describe("mass_matrix").

    Equation:  M^(n) = sum_k C(n,k) (J^(n-k))^T M J^(k)                          (43)
    """
    system = SystemMatrices(model, q, V)
    return [system.M(n) for n in range(order + 1)]


@method(
    "coriolis_matrix",
    "closed_form",
    kind="closed_form",
    source=_SOURCE + ", eqs. 30, 44, 45",
    coriolis=("kumar_mueller",),
    fluid=True,
)
def coriolis_matrix(model, order, q, V):
    """Derivatives 0..order of a Coriolis matrix; see od.describe("coriolis_matrix").

    Equation:  C = J^T (-M A a - b^T M) J                                        (28), (30)
    Not admissible: C + C^T is M' - sum_i J_i^T (ad(V_i)^T M_i + M_i ad(V_i)) J_i, so M' - 2 C is not skew.
    """
    system = SystemMatrices(model, q, V)
    return [system.C(n) for n in range(order + 1)]


@method("gravity", "closed_form", kind="closed_form", source=_SOURCE + ", eqs. 32, 47", regroup=True)
def gravity(model, order, q, V):
    """Derivatives 0..order of the gravity torques; see od.describe("gravity").

    Equation:  g^(n) = sum_k C(n,k) (J^(n-k))^T M U^(k) V_0'                     (47)
    """
    system = SystemMatrices(model, q, V)
    return [system.g(n) for n in range(order + 1)]


@method("bias", "closed_form", kind="closed_form", source=_SOURCE + ", eqs. 34, 44 to 47", regroup=True, fluid=True)
def bias(model, order, q, V):
    """Derivatives 0..order of the bias torques; see od.describe("bias").

    Equation:  h^(n) = sum_k C(n,k) C^(n-k) v^(k) + g^(n)                        (34)
    """
    system = SystemMatrices(model, q, V)
    h = [total(comb(n, k) * (system.C(n - k) @ V[k]) for k in range(n + 1)) + system.g(n) for n in range(order + 1)]
    return [x + system.drag(n) for n, x in enumerate(h)] if model.fluid else h


@method(
    "eom_coefficients",
    "closed_form",
    kind="closed_form",
    source=_SOURCE + ", eqs. 37, 38",
    coriolis=("kumar_mueller",),
)
def eom_coefficients(model, order, q, V):
    """[P_1, ..., P_{order + 2}]; see od.describe("eom_coefficients").

    With the Coriolis matrix (30), which is not admissible.
    """
    system = SystemMatrices(model, q, V)
    return coefficients(order, system.M, system.C)


def coefficients(n, M, C):
    """[P_1, ..., P_{n+2}] from functions M, C of the order of the derivative.

    Equation:  P_k = C(n,k-2) M^(n-k+2) + C(n,k-1) C^(n-k+1)                     (38); its ends are C^(n) and M
    """
    between = [comb(n, k - 2) * M(n - k + 2) + comb(n, k - 1) * C(n - k + 1) for k in range(2, n + 2)]
    return [C(n), *between, M(0)]
