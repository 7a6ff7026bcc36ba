"""Matrices of the equations of motion, and their rates, in spatial twists, as Ali et al. close their recursions."""

from typing import Any

from ..inverse_dynamics.spatial_system import SpatialSystem
from ..registry import method

_FACTS: dict[str, Any] = {"kind": "closed_form", "max_order": 1}
_SOURCE = "Ali et al. 2026, "


@method("mass_matrix", "closed_form_spatial", source=_SOURCE + "Proposition 1, eqs. 11 and 15", **_FACTS)
def mass_matrix(model, order, q, V):
    """Derivatives 0..order of the mass matrix; see od.describe("mass_matrix")."""
    system = SpatialSystem(model, q, V, order)
    return [system.mass(), system.mass_rate()] if order else [system.mass()]


@method("coriolis_matrix", "closed_form_spatial", source=_SOURCE + "Lemma 1, eq. 21", coriolis=("garofalo",), **_FACTS)
def coriolis_matrix(model, order, q, V):
    """Derivatives 0..order of the Coriolis matrix; see od.describe("coriolis_matrix"). Admissible."""
    system = SpatialSystem(model, q, V, order + 1)
    return [system.coriolis(), system.coriolis_rate()] if order else [system.coriolis()]


@method("gravity", "closed_form_spatial", source=_SOURCE + "Proposition 1, eqs. 13 and 18", **_FACTS)
def gravity(model, order, q, V):
    """Derivatives 0..order of the gravity torques; see od.describe("gravity")."""
    system = SpatialSystem(model, q, V, order)
    return [system.gravity(), system.gravity_rate()] if order else [system.gravity()]


@method("bias", "closed_form_spatial", source=_SOURCE + "Proposition 1, eqs. 12, 13 and 16 to 18", **_FACTS)
def bias(model, order, q, V):
    """Derivatives 0..order of the bias torques; see od.describe("bias").

    Equation:  h = K v + g,  h' = K v' + K' v + g'   with the matrix K of (12)
    """
    system = SpatialSystem(model, q, V, order + 1)
    K = system.bias_matrix()
    h = [K @ V[0] + system.gravity()]
    return [*h, K @ V[1] + system.bias_matrix_rate() @ V[0] + system.gravity_rate()] if order else h
