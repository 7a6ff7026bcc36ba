"""Forward dynamics of any order by Taylor coefficients: the passes of inverse dynamics, order by order, with one
factorised mass matrix for all of them.

At order k every jet is known but for the joint acceleration, which enters linearly: the passes give the torque that
would be needed without it, the mass matrix turns what is missing into the acceleration, and a linear pass puts it
into the jets.
"""

from ..inverse_dynamics.taylor import Passes
from ..lie import jets
from ..registry import method
from .mass_solver import mass_solver


@method(
    "forward_dynamics",
    "taylor",
    kind="analytic",
    source="this toolkit; mass matrix by composite bodies or articulated inertias, whichever is smaller",
    regroup=True,
)
def taylor(model, order, q, v, T, W=None):
    """Derivatives 0..order of the joint accelerations; see od.describe("forward_dynamics").

    Cost O(n order^2) on long chains.
    """
    passes = Passes(model, q, v, None if W is None else jets.from_derivatives(W))
    solve = mass_solver(model, q)
    accelerations = []
    for k, tau in enumerate(jets.from_derivatives(T)):
        dv = solve(tau - passes.torque())  # coefficient k of the acceleration is k + 1 times that of v
        accelerations.append(dv)
        if k < order:
            passes.correct(dv / (k + 1) if k else dv)
    return jets.to_derivatives(accelerations)
