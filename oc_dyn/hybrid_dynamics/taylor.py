"""Hybrid dynamics of any order by Taylor coefficients: at every order what is unknown enters linearly, and the same
factors find it."""

from ..forward_dynamics.taylor import taylor as forward_dynamics
from ..inverse_dynamics.taylor import Passes
from ..inverse_dynamics.taylor import taylor as inverse_dynamics
from ..lie import jets
from ..registry import method
from .known_rows import known_rows


@method(
    "hybrid_dynamics",
    "taylor",
    kind="analytic",
    source="this toolkit; Kim 2012, section 2 and Table 4, at every order",
    regroup=True,
)
def taylor(model, order, q, v, A, T, prescribed, W=None):
    """Derivatives 0..order of all joint accelerations and torques, ([dv, ...], [tau, ...]); see
    od.describe("hybrid_dynamics") and hybrid_spatial for A, T. Cost O(n order^2) on long chains."""
    if not prescribed:
        return forward_dynamics(model, order, q, v, T, W), T
    if len(prescribed) == model.robot.nv:
        return A, inverse_dynamics(model, order, q, [v, *A], W)
    passes = Passes(model, q, v, None if W is None else jets.from_derivatives(W))
    complete = known_rows(model, q, prescribed)
    accelerations, torques = [], []
    for k, (a, tau) in enumerate(zip(jets.from_derivatives(A), jets.from_derivatives(T), strict=True)):
        a, tau = complete(passes.torque(), a, tau)  # coefficient k of the acceleration: k + 1 times that of v
        accelerations.append(a)
        torques.append(tau)
        if k < order:
            passes.correct(a / (k + 1) if k else a)
    return jets.to_derivatives(accelerations), jets.to_derivatives(torques)
