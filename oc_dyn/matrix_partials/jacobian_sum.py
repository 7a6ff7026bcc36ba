"""Partial derivatives of the dynamic matrices from the Jacobians of the bodies and their derivatives."""

import casadi as ca

from ..lie.jets import total
from ..lie.se3 import Ad_inv, ad
from ..matrices.coriolis_choice import turning
from ..matrices.jacobian_sum import body_jacobians
from ..registry import method
from ..regressor.columns import author_frames, momentum_matrix, to_author, wrench_columns
from ..working_axes.assembly import in_columns

_SOURCE = "Garofalo et al. 2013, "


@method(
    "matrix_partials",
    "jacobian_sum",
    kind="closed_form",
    source=_SOURCE + "Propositions 4 and 5, eqs. 18 to 24 and 30 to 33",
    coriolis=("christoffel", "garofalo"),
)
def matrix_partials(model, q, v, coriolis):
    """(dM_dq, dC_dq, dC_dv, dg_dq); see od.describe("matrix_partials").

    Equation:  with T of coriolis_choice, which for "garofalo" is T(V) = M_k ad(V) - ad(V)^T M_k,
               H = M_k J' + T(V) J of body k and, for a step along velocity h, X = dJ/dh, X' = dJ'/dh:
               dM = X^T M_k J + J^T M_k X                                                          (24a)
               dC_dq = X^T H + J^T (M_k X' + T(X v) J + T(V) X)                                    (24b)
               dC_dv = J^T (T(J^h) J + M_k X)                                                      (24c), (30)
               dg = (X^T M_k - J^T M_k ad(J^h)) G                                                  (24d)
    Deviations: T of Christoffel symbols besides the paper's; steps on the tangent space, so that all joints with
               constant screws are served alike; transform joints add the derivatives of theirs. Velocities that do
               not move body k are left out.
    """
    nv = model.robot.nv
    J, twists, G = body_jacobians(model, 1, q, [v])
    sums = {name: [[] for _ in range(nv)] for name in ("M", "Cq", "Cv", "g")}
    joint_q, joint_v = model.joint_q(q), model.joint_v(v)
    X = {0: {}}
    for i in model.bodies:
        p, M, T = model.parent[i], model.M[i], turning(model, i, coriolis)
        Ad = Ad_inv(model.placement(i, joint_q[i]))
        S, bent = _screws(model, i, joint_q[i], joint_v[i])
        steps = _along_steps(X[p], Ad, in_columns(model, i, S), ad(S @ joint_v[i]), J[p], _moving(model, i))
        for h, (dS, dS1) in bent.items():
            bracket = ad(dS @ joint_v[i]) @ (Ad @ J[p][0])
            dJ, dJ1 = steps[h]
            steps[h] = dJ + in_columns(model, i, dS), dJ1 - bracket + in_columns(model, i, dS1)
        X[i] = steps
        MJ, turned = M @ J[i][0], T(twists[i][0])
        H = M @ J[i][1] + turned @ J[i][0]
        weight = M @ G[i][0]
        for h, (dJ, dJ1) in X[i].items():
            step = J[i][0][:, h]
            half = dJ.T @ MJ
            inner = M @ dJ1 + T(dJ @ v) @ J[i][0] + turned @ dJ
            sums["M"][h].append(half + half.T)  # (24a)
            sums["Cq"][h].append(dJ.T @ H + J[i][0].T @ inner)  # (24b)
            sums["Cv"][h].append(J[i][0].T @ (T(step) @ J[i][0] + M @ dJ))  # (24c), (30)
            sums["g"][h].append(dJ.T @ weight - J[i][0].T @ (M @ (ad(step) @ G[i][0])))  # (24d)
    return [_columns(sums["M"]), _columns(sums["Cq"]), _columns(sums["Cv"]), _columns(sums["g"])]


def _moving(model, i):
    """Numbers of the robot's velocities that move body i."""
    out = set()
    for j in model.support(i):
        _, _, first, size = model.coordinates[j]
        out |= set(range(first, first + size))
    return sorted(out)


def _screws(model, i, q, v):
    """Screws S (6, nv_i) of joint i, and {h: (dS/dh, dS'/dh)} for those of a transform joint, which change with q."""
    if model.kind[i] != "transform":
        return model.S[i], {}
    f, n = model.subspace_function(i), v.shape[0]
    x, y = ca.SX.sym("x", n), ca.SX.sym("y", n)
    S = f(x)
    slopes = [ca.jtimes(ca.vec(S), x, ca.DM.eye(n)[:, k]).reshape((6, n)) for k in range(n)]
    rates = [ca.jtimes(ca.vec(slope), x, y).reshape((6, n)) for slope in slopes]
    values = ca.Function("screws", [x, y], [S, *slopes, *rates]).call([q, v])
    first, scale = model.coordinates[i][2], model.rule[i][0]  # the joint's coordinates move by so much with the robot's
    return values[0], {first + k: (scale * values[1 + k], scale * values[1 + n + k]) for k in range(n)}


def _along_steps(above, Ad, own, x, J, columns):
    """{h: (dJ/dh, dJ'/dh)} of a body from those of its parent, and the Jacobian J = [J, J'] of that one.

    Equation:  dJ/dh = Ad dJ_p/dh - ad(Xi^h) Ad J_p                                               (31)
               dJ'/dh = Ad dJ_p'/dh - ad(Xi^h) Ad J_p' - ad(Xi v) dJ/dh                           (32)
    """
    carried = [Ad @ y for y in J]
    out = {}
    for h in columns:
        xi = ad(own[:, h])
        dJ, dJ1 = -(xi @ carried[0]), -(xi @ carried[1])
        if h in above:
            dJ, dJ1 = dJ + Ad @ above[h][0], dJ1 + Ad @ above[h][1]
        out[h] = dJ, dJ1 - x @ dJ  # (31), (32)
    return out


def _columns(parts):
    return ca.horzcat(*(ca.vec(total(x)) for x in parts))


@method(
    "matrix_parameter_partials",
    "jacobian_sum",
    kind="closed_form",
    source=_SOURCE + "Proposition 2, eq. 13",
    coriolis=("christoffel", "garofalo"),
)
def matrix_parameter_partials(model, q, v, coriolis):
    """(dM_dparams, dC_dparams, dg_dparams); see od.describe("matrix_parameter_partials").

    Equation:  of column j of M, and of C, and of g, for body k:
               J^T A(J^j),  J^T (A(ad(V) J^j + J'^j) - ad(V)^T A(J^j)),  J^T A(G)                 (13)
               for "garofalo"; of Christoffel symbols as in regressor/columns
    """
    nv = model.robot.nv
    J, twists, G = body_jacobians(model, 1, q, [v])
    out = [], [], []
    for _, i, pose in author_frames(model):
        seen = to_author(pose)
        J0, J1, g, V = seen @ J[i][0], seen @ J[i][1], seen @ G[i][0], seen @ twists[i][0]
        by_mass, by_turning = [], []
        for j in range(nv):
            by_mass.append(J0.T @ momentum_matrix(J0[:, j]))
            by_turning.append(J0.T @ wrench_columns([V], [J0[:, j]], [J1[:, j]], 0, coriolis))
        out[0].append(ca.vertcat(*by_mass))  # (13a)
        out[1].append(ca.vertcat(*by_turning))  # (13b)
        out[2].append(J0.T @ momentum_matrix(g))  # (13c)
    return [ca.horzcat(*x) for x in out]
