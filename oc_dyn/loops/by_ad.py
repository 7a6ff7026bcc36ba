"""Motion of all joints by automatic differentiation of the loops' residual: the twin of implicit."""

import casadi as ca

from ..lie.leibniz import product_derivative
from ..model.assembly import closing_blocks, solved_rows
from ..model.closure import residual
from ..subexpressions import merged
from ..time_methods import in_time


@in_time("loop_closure", source="AD of G = [1; -J_d^-1 J_i]", graph="mx", cse=False)
def ad(way, robot, order, q, V):
    """([v, dv, ...], [G, dG, ...]) of the tree at q of the tree; see od.describe("loop_closure")."""
    tree = robot.tree
    x, Y = ca.SX.sym("q", tree.nq), [ca.SX.sym(f"v{k}", robot.nv) for k in range(order + 1)]
    own, other, kept = robot.rows("v", robot.independent), robot.rows("v", robot.dependent), solved_rows(robot)
    _, J, _ = residual(robot)(x)
    G = ca.SX(tree.nv, robot.nv)
    G[own, :] = ca.SX.eye(robot.nv)
    A, B = J[kept, other], J[kept, own]
    if not all(b.square for b in closing_blocks(robot)):
        A, B = A.T @ A, A.T @ B
    G[other, :] = -ca.solve(A, B)
    flow = [(x, tree.configuration_rate(x, G @ Y[0]))] + [(Y[k], Y[k + 1]) for k in range(order)]
    rates = way(merged(ca.densify(ca.vec(G))), order, flow)
    rates = [ca.reshape(r, tree.nv, robot.nv) for r in rates]
    v = [product_derivative(rates, Y, k) for k in range(order)]
    f = ca.Function("loop_motion_ad", [x, *Y[:order]], [*v, *rates])
    found = f(q, *V)
    found = list(found) if isinstance(found, (tuple, list)) else [found]
    return found[:order], found[order:]
