"""First partials of inverse dynamics by sums over subtrees, in working axes.

What a joint does to the torques below and above it depends on its subtree as a whole: on its inertia, momentum,
force, and one matrix, the integral of v r^T. From these come a few wrenches a joint; carried towards the root they
meet the screws of the joints above. Every pair of a joint and one above it costs about 70 instructions, however many
bodies hang on them.
"""

from typing import Any

import casadi as ca

from ..registry import method
from ..working_axes.assembly import assembled
from ..working_axes.fields import plus, product, turned_by
from ..working_axes.tree import Carried
from . import order_by_order, order_zero
from .along_motion import along_motion
from .implicit import forward_partials, hybrid_partials
from .virtual_motion import VirtualTree

CANNOT = {"transform": "its screw changes with its coordinates"}


@method(
    "inverse_dynamics_partials",
    "composite",
    kind="analytic",
    source="this toolkit: Singh et al. 2023, eqs. 12 and 13, in working axes with base parameters; time derivatives "
    "by jtimes along the motion with cse",
    cannot=CANNOT,
    regroup=True,
)
def composite_method(model, order, q, V, W=None):
    """Partials of derivatives 0..order of the torques; see od.describe("inverse_dynamics_partials").

    Cost of order 0: O(n depth).
    """
    return along_motion(model, order, q, V, W, composite(model, q, V[0], V[1], W and W[0]))


def composite(model, q, v, dv, W=None):
    """(dtau_dq, dtau_dv, dtau_ddv), sparse (nv, nv), at q, v, dv and applied wrenches W (6, bodies).

    Symbols: joint i below joint j. along_q, along_v, along_a: wrench on the subtree of i by a step of q_i, v_i, dv_i,
    along_q less the part by which it turns with the subtree; G: what the torque at i feels of a turn of the whole
    subtree, through its velocity.
    """
    trees = VirtualTree(model, q, v, dv, W)
    Q, D, M = {}, {}, {}
    for i in model.reversed_bodies:
        sums, at = trees.sum(i), trees.screws[i]
        along_a = sums.inertia(at.s)
        along_v = plus(sums.flow.coriolis(at.s[0]), sums.inertia(at.rate))
        along_q = plus(sums.flow.coriolis(at.psi[0]), sums.inertia(at.psi2))
        G = sums.flow.coriolis_transposed(at.s)
        M[i, i] = product(at.s, along_a) + model.rotor(i)
        D[i, i] = product(at.s, along_v)
        Q[i, i] = product(at.s, along_q)
        along_q = plus(along_q, turned_by(at.s, (sums.n, sums.f)))
        for j, carried, working in trees.climb(i, Carried([along_a, along_v, along_q], [G])):
            above, along_a, G = trees.screws_at(j, working)[0], carried.wrenches[0], carried.vectors[0]
            M[j, i], D[j, i], Q[j, i] = (product(above.s, x) for x in carried.wrenches)
            D[i, j] = G.T @ above.s[0] + product(along_a, above.rate)
            Q[i, j] = G.T @ above.psi[0] + product(along_a, above.psi2)
    return assembled(model, Q), assembled(model, D), assembled(model, M, mirrored=True)


def bias(model, q, v, W=None):
    """Torques (nv,) of a motion without acceleration, from the sums that the partials use."""
    trees, tau = VirtualTree(model, q, v, ca.DM.zeros(model.robot.nv), W), {}
    for i in model.reversed_bodies:
        sums = trees.sum(i)
        tau[i] = product(trees.screws[i].s, (sums.n, sums.f))
    return model.stack(tau)


_SOLVED: dict[str, Any] = {"kind": "analytic", "cannot": CANNOT, "regroup": True}


@method("forward_dynamics_partials", "composite", source="this toolkit; Singh et al. 2023, eq. 45", **_SOLVED)
def forward_method(given):
    """Partials of dv, d2v, ..., order by order; see od.describe("forward_dynamics_partials")."""
    if given.order:
        return order_by_order.forward_partials(given, composite_method)
    return order_zero.forward_partials(given, forward)


def forward(model, q, v, tau, W, damping):
    """(ddv_dq, ddv_dv, ddv_dtau) at torques tau."""
    return forward_partials(model, q, v, tau, W, damping, composite, bias)


@method("hybrid_dynamics_partials", "composite", source="this toolkit; blocks as in Kim 2012, section 2", **_SOLVED)
def hybrid_method(given):
    """Partials of what is not prescribed, order by order; see od.describe("hybrid_dynamics_partials")."""
    if given.order:
        return order_by_order.partials(given, composite_method)
    return order_zero.hybrid_partials(given, hybrid)


def hybrid(model, q, v, a, tau, prescribed, W):
    """{(what, by what): matrix} of order 0."""
    return hybrid_partials(model, q, v, a, tau, prescribed, W, composite, bias)
