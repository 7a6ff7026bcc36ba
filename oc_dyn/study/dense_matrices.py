"""M, C, g and their time derivatives by products of dense matrices: what a program with loops computes, zeros included.

CasADi leaves zeros out, which a library of matrices does not: beside its counts these are those of the formulas of
Garofalo et al. 2013 as they stand, (6), (25) to (29), with Jacobians of 6 rows and as many columns as joints.
"""

import casadi as ca

from ..errors import ModelError
from ..lie.se3 import Ad_inv, ad
from ..model.canonical import canonical
from ..working_axes.assembly import in_columns

WAYS = ("dense (25a)", "dense (Remark 5)")  # dM as two sums of products; as C + C^T
_ONE_OPERAND = (ca.OP_NEG, ca.OP_SQ, ca.OP_TWICE)
_TWO_OPERANDS = (ca.OP_ADD, ca.OP_SUB, ca.OP_MUL, ca.OP_DIV)


def dense_matrices(robot, order, way, name="dense_matrices"):
    """casadi.Function (q, v) -> (M, C, g), of order 1 (q, v, dv) -> (M, C, g, dM, dC, dg), of dense products (MX).

    way: one of WAYS; of no matter at order 0. Raises ModelError for joints that are not of one degree of freedom.
    """
    if any(joint.nv != 1 for joint in robot.joints):
        raise ModelError(robot.name, ["dense_matrices takes joints of one degree of freedom on a fixed base"])
    model, n = canonical(robot), robot.nv
    q, v, dv = (ca.MX.sym(x, n) for x in ("q", "v", "dv"))
    bracket = _bracket()
    J, Jd, Jdd, V, Vd, G, Gd = ({0: ca.MX.zeros(6, k)} for k in (n, n, n, 1, 1, 1, 1))
    G[0] = _dense(ca.vertcat(0, 0, 0, -model.gravity))
    M, C, dM, dC = (ca.MX.zeros(n, n) for _ in range(4))
    g, dg = ca.MX.zeros(n), ca.MX.zeros(n)
    angles, speeds, accelerations = model.joint_q(q), model.joint_v(v), model.joint_v(dv)
    for i in model.bodies:
        p, inertia, screw = model.parent[i], _dense(model.M[i]), _dense(model.S[i])
        own = _dense(in_columns(model, i, model.S[i]))
        Ad, x = _carrier(model, i)(angles[i]), screw * speeds[i]
        turn = bracket(x)
        A, B = Ad @ J[p], Ad @ Jd[p]
        J[i], Jd[i] = A + own, B - turn @ A  # (27), (28)
        AV, G[i] = Ad @ V[p], Ad @ G[p]
        V[i] = AV + x  # (26)
        psi = _choice(inertia, bracket(V[i]))
        momenta, weight = inertia @ J[i], inertia @ G[i]
        wrenches = inertia @ Jd[i] + psi @ J[i]
        M, C, g = M + J[i].T @ momenta, C + J[i].T @ wrenches, g + J[i].T @ weight  # (6a), (6b), (6c)
        if not order:
            continue
        xd = screw * accelerations[i]
        Jdd[i] = Ad @ Jdd[p] - 2 * (turn @ B) + (turn @ turn - bracket(xd)) @ A  # (29)
        Vd[i] = Ad @ Vd[p] - turn @ AV + xd
        Gd[i] = Ad @ Gd[p] - turn @ G[i]
        rates = inertia @ Jdd[i] + psi @ Jd[i] + _choice(inertia, bracket(Vd[i])) @ J[i]
        dC = dC + Jd[i].T @ wrenches + J[i].T @ rates  # (25b)
        dg = dg + Jd[i].T @ weight + J[i].T @ (inertia @ Gd[i])  # (25c)
        if way == WAYS[0]:
            dM = dM + Jd[i].T @ momenta + J[i].T @ (inertia @ Jd[i])  # (25a)
    if way == WAYS[1]:
        dM = C + C.T
    if not order:
        return ca.Function(name, [q, v], [M, C, g], ["q", "v"], ["M", "C", "g"])
    return ca.Function(name, [q, v, dv], [M, C, g, dM, dC, dg], ["q", "v", "dv"], ["M", "C", "g", "dM", "dC", "dg"])


def operations(f):
    """Arithmetic operations of such a Function: 2 a b c of a product (a, b) (b, c), one for each entry else; those of
    sines and of adjoints, written out for each joint, are within it."""
    total = 0
    for k in range(f.n_instructions()):
        what, node = f.instruction_id(k), f.instruction_MX(k)
        if what == ca.OP_MTIMES:
            total += 2 * node.nnz() * node.dep(1).shape[1]
        elif what in _ONE_OPERAND or what in _TWO_OPERANDS:
            total += node.nnz()
        elif what == ca.OP_CALL:
            total += _straight(node.which_function())
    return total


def _dense(x):
    return ca.MX(ca.densify(ca.DM(x)))


def _straight(f):
    aside = ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST
    return sum(f.instruction_id(k) not in aside for k in range(f.n_instructions()))


def _choice(inertia, bracket):
    """Psi of (3), (6, 6)."""
    return inertia @ bracket - bracket.T @ inertia


def _bracket():
    V = ca.SX.sym("V", 6)
    return ca.Function("ad", [V], [ca.densify(ad(V))])


def _carrier(model, i):
    angle = ca.SX.sym("q")
    return ca.Function(f"Ad_{i}", [angle], [ca.densify(Ad_inv(model.placement(i, angle)))])
