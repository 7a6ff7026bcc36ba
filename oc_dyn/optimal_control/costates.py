"""Solution.costates: what the best cost of the rest of the motion changes by with the states of the nodes.

With V_k(x) the least cost from node k on if it begins at x there, c_k = dV_k / dx. It is the adjoint variable of
Pontryagin's minimum principle: along the optimum the controls minimise H(x, u) = L(x, u) + c' f(x, u), c' = -dH/dx, and
at the end c = d phi / dx where the states are free, phi being the terminal cost. By the multipliers m of the rows
x_(k+1) - F_k(x_k, ...) = 0 of the program, whose Lagrangian is the cost plus m times them, c_(k+1) = -m_k: for all
methods, as what they add within intervals is a function of x_k and the controls (of the nodes, where these are shared,
it is the value at a next state moved apart from the interval before). What bounds and limits of states at a node change
is in the costates of that node: they jump there, and these are the values before the jump. At the first node they are
the derivative of the Lagrangian of what comes behind, without start conditions; one that is zero tells of a start
that is free.
Source: Bryson and Ho, Applied Optimal Control, 1975, sections 2.2 to 2.4; Betts, Practical Methods, 2010, section 4.3.
"""

import casadi as ca
import numpy as np

from ..errors import OrderError
from .stage_kinds import joined


def costates(solution):
    """(N + 1, n) costates of a Solution, in units of the cost over those of the states. Raises OrderError where states
    are coefficients, or move on a manifold, so that there is no such vector."""
    description, made = solution.description, solution.transcribed
    for some, what in (
        ([c.name for c in description.bernstein], "are coefficients of a bernstein chain"),
        ([points[0].name() for points in description.splines], "are control points of a b_spline chain"),
        ([body.q.name() for body in description.bodies], "lie on the manifold of a contact body"),
        ([v.name for v in made.states if v.manifold is not None], "lie on a manifold"),
    ):
        if some:
            raise OrderError(
                f"costates: those of {some[0]!r} {what}, for which none are told; write what they are of by rates, or "
                "as a taylor chain"
            )
    return np.vstack([_at_start(solution), of_dynamics(solution)])


def of_dynamics(solution):
    """(N, n): the costates at the ends of all intervals, of whatever the states are."""
    made = solution.transcribed
    rows = solution.multipliers[1][made.assembly.dynamics].reshape(made.total, made.nx)
    return -rows[:, : made.x_scale.size] / made.x_scale


def _at_start(solution):
    """(n,): the derivative by the first states of the Lagrangian of the first stage, but its start conditions."""
    made = solution.transcribed
    assembly, n = made.assembly, made.x_scale.size
    kind, own = assembly.groups[0].kind, assembly.stage_rows[0]
    lam_x, lam_g = (np.asarray(y, float) for y in solution.multipliers)
    z = solution.unknowns[: kind.nx + kind.nu]
    s = solution.parameters[made.n_p :][: made.n_s]
    given = z, solution.parameters[: made.n_p], s
    counted = joined(np.full(block.size, block.where != "start") for block in made.row_blocks[0]).astype(bool)
    of_rows = np.where(counted & (own >= 0), lam_g[own], 0.0)
    of_next = -lam_g[assembly.dynamics][: kind.n_next]
    lagrangian = kind.gradient(*given).full().ravel()
    lagrangian += (kind.jacobian(*given).T @ ca.DM(np.concatenate([of_next, of_rows]))).full().ravel()
    lower, upper = (bound[:n] for bound in solution.bounds)
    free = lower < upper  # where bounds are no start condition
    return (lagrangian[:n] + np.where(free, lam_x[:n], 0.0)) / made.x_scale
