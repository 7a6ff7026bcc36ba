"""Inverse dynamics and its rate by the equations of motion in spatial twists, as Ali et al. close their recursions."""

from ..registry import method
from .spatial_system import SpatialSystem


@method(
    "inverse_dynamics",
    "closed_form_spatial",
    kind="closed_form",
    source="Ali et al. 2026, Proposition 1, eqs. 10 to 19 and 31",
    max_order=1,
)
def closed_form_spatial(model, order, q, V, W=None):
    """Derivatives 0..order of the joint torques; see od.describe("inverse_dynamics") for q, V, W.

    Equation:  tau  = M v' + K v + g - S^T C W                                                   (10), (31)
               tau' = M v'' + (M' + K) v' + K' v + g' - (S'^T C W + S^T C W')                    (14)
    Symbols:   K, the matrix of (12), is SpatialSystem.bias_matrix; it is not the admissible one of (21).
    Deviations: see SpatialSystem. Cost O(n^3).
    """
    system = SpatialSystem(model, q, V, order + 1)
    M, K = system.mass(), system.bias_matrix()
    tau = [M @ V[1] + K @ V[0] + system.gravity()]  # (10)
    if order:
        tau.append(
            M @ V[2] + (system.mass_rate() + K) @ V[1] + system.bias_matrix_rate() @ V[0] + system.gravity_rate()
        )  # (14)
    if W is not None:
        pushed = system.stacked_wrenches(W)
        terms = [system.applied(pushed), system.applied_rate(pushed)] if order else [system.applied(pushed)]
        tau = [x - y for x, y in zip(tau, terms, strict=True)]
    return tau
