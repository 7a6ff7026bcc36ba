"""Motion of all joints from the derivatives of J v = 0, order by order, with one factorised matrix."""

import casadi as ca

from ..lie import jets
from ..model.cache import cached
from ..registry import method
from ..subexpressions import merged
from .jets import LoopJets


@method(
    "loop_closure",
    "implicit",
    kind="analytic",
    source="this toolkit; order 0 and 1 as the implicit constraint embedding of Chignoli et al. 2023",
    graph="mx",
)
def implicit(robot, order, q, V):
    """([v, dv, ...], [G, dG, ...]) of the tree at q of the tree; see od.describe("loop_closure")."""
    found = motion(robot, order, order).call([q, *V])
    return found[:order], found[order:]


def motion(robot, velocities, matrices):
    """casadi.Function q of the tree, v, dv, ... of the robot, so many of them -> the same of the tree, and G, dG, ...
    d^matrices G, at most as many derivatives as there are velocities."""
    return cached(robot, ("loop motion", velocities, matrices), lambda: _motion(robot, velocities, matrices))


def _motion(robot, velocities, matrices):
    q, V = ca.SX.sym("q", robot.tree.nq), [ca.SX.sym(f"v{k}", robot.nv) for k in range(velocities)]
    grown = LoopJets(robot, q)
    for x in jets.from_derivatives(V):
        grown.push(x)
    grown.complete(matrices)
    G = jets.to_derivatives(grown.G[: matrices + 1])
    out = merged([*jets.to_derivatives(grown.v), *map(ca.densify, G)])
    return ca.Function("loop_motion", [q, *V], out)
