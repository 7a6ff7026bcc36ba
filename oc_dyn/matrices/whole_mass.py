"""Mass matrix of a robot, what a fluid adds included."""

from ..inverse_dynamics.system_matrices import SystemMatrices
from .composite import composite


def whole_mass(model, q):
    """Mass matrix (nv, nv) at q (nq,): by composite bodies, or where a fluid acts by system matrices."""
    return SystemMatrices(model, q, []).M() if model.fluid else composite(model, q)
