"""Second partials by automatic differentiation."""

import casadi as ca

from ..forward_dynamics.taylor import taylor as forward_dynamics
from ..inverse_dynamics.taylor import taylor as inverse_dynamics
from ..model.robot import tangent_map
from ..partials.composite import composite as first_partials
from ..partials.composite import forward as forward_first_partials
from ..registry import method
from ..subexpressions import merged
from .composite import CANNOT
from .tensor import halved, mass_sums, pattern, swapped


@method(
    "inverse_dynamics_second_partials",
    "ad",
    kind="ad",
    source="AD: Jacobians of the analytic first partials (composite)",
    cannot=CANNOT,
    regroup=True,
)
def ad(model, order, q, V, W=None):
    """[(d2tau_dqdq, d2tau_dvdv, d2tau_dqdv, dM_dq)]; see od.describe("inverse_dynamics_second_partials")."""
    by_q, by_v, M = merged(list(first_partials(model, q, *V, W and W[0])))
    step = tangent_map(model.robot, q)
    return [(_by(by_q, q) @ step, _by(by_v, V[0]), _by(by_q, V[0]), _by(M, q) @ step)]


@method(
    "inverse_dynamics_second_partials",
    "ad_symmetric",
    kind="ad",
    source="AD: Jacobians of the analytic first partials (composite), what is symmetric once",
    cannot=CANNOT,
    regroup=True,
)
def ad_symmetric(model, order, q, V, W=None):
    """[(d2tau_dqdq, d2tau_dvdv, d2tau_dqdv, dM_dq)]; see od.describe("inverse_dynamics_second_partials"). The strongest
    form found from three bodies on: of partials by two coordinates of different joints, or by two velocities, one order
    is computed; those by both are the partials by q of those by v, which are the shorter ones; and where velocities are
    rates of coordinates, those by two velocities are sums of dM/dq.

    Equation:  d2tau_i/dv_j dv_k = dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i
    """
    by_q, by_v, M = merged(list(first_partials(model, q, *V, W and W[0])))
    step = tangent_map(model.robot, q)
    dM = _by(M, q) @ step
    if all(joint.nq == joint.nv <= 1 for joint in model.robot.joints):
        dM, vv = mass_sums(dM)
    else:
        vv = halved(model, "v", _by(by_v, V[0]))
    return [(halved(model, "q", _by(by_q, q) @ step), vv, swapped(_by(by_v, q) @ step), dM)]


@method(
    "inverse_dynamics_second_partials",
    "ad_pure",
    kind="ad",
    source="AD of AD: the Hessian of every torque of the method taylor",
    regroup=True,
)
def ad_pure(model, order, q, V, W=None):
    """[(d2tau_dqdq, d2tau_dvdv, d2tau_dqdv, dM_dq)]; see od.describe("inverse_dynamics_second_partials"). The strongest
    form found: Hessians are symmetric, Jacobians of Jacobians do not know it."""
    tau = merged(inverse_dynamics(model, 0, q, V, W)[0])
    every = pattern(model)  # the tree knows more zeros than the graph of a Hessian shows
    return [tuple(ca.project(x, every.intersect(x.sparsity())) for x in _hessians(model, tau, q, V[0], V[1]))]


@method(
    "forward_dynamics_second_partials",
    "ad",
    kind="ad",
    source="AD: Jacobians of the analytic first partials (composite)",
    cannot=CANNOT,
    regroup=True,
)
def forward_ad(model, order, q, v, T, W=None):
    """[(d2dv_dqdq, d2dv_dvdv, d2dv_dqdv, dMinv_dq, Minv)]; see od.describe("forward_dynamics_second_partials")."""
    tau = ca.SX.sym("tau", model.robot.nv)
    none = ca.SX(model.robot.nv, model.robot.nv)
    by_q, by_v, Minv = merged(list(forward_first_partials(model, q, v, tau, W and W[0], none)))
    step = tangent_map(model.robot, q)
    outputs = [_by(by_q, q) @ step, _by(by_v, v), _by(by_q, v), _by(Minv, q) @ step, Minv]
    return [_at(q, v, tau, W, outputs, T[0])]


@method(
    "forward_dynamics_second_partials",
    "ad_symmetric",
    kind="ad",
    source="AD: Jacobians of the analytic first partials (composite), what is symmetric once",
    cannot=CANNOT,
    regroup=True,
)
def forward_ad_symmetric(model, order, q, v, T, W=None):
    """[(d2dv_dqdq, d2dv_dvdv, d2dv_dqdv, dMinv_dq, Minv)]; see od.describe("forward_dynamics_second_partials"). As the
    method of the same name of inverse dynamics."""
    tau = ca.SX.sym("tau", model.robot.nv)
    none = ca.SX(model.robot.nv, model.robot.nv)
    by_q, by_v, Minv = merged(list(forward_first_partials(model, q, v, tau, W and W[0], none)))
    step = tangent_map(model.robot, q)
    qq, vv = halved(model, "q", _by(by_q, q) @ step), halved(model, "v", _by(by_v, v))
    outputs = [qq, vv, swapped(_by(by_v, q) @ step), _by(Minv, q) @ step, Minv]
    return [_at(q, v, tau, W, outputs, T[0])]


@method(
    "forward_dynamics_second_partials",
    "ad_pure",
    kind="ad",
    source="AD of AD: the Hessian of every acceleration of the method taylor",
    regroup=True,
)
def forward_ad_pure(model, order, q, v, T, W=None):
    """[(d2dv_dqdq, d2dv_dvdv, d2dv_dqdv, dMinv_dq, Minv)]; see od.describe("forward_dynamics_second_partials")."""
    tau = ca.SX.sym("tau", model.robot.nv)
    dv = merged(forward_dynamics(model, 0, q, v, [tau], W)[0])
    outputs = [*_hessians(model, dv, q, v, tau), ca.jacobian(dv, tau)]
    return [_at(q, v, tau, W, outputs, T[0])]


def _at(q, v, tau, W, outputs, torques):
    """What was found for the symbol tau at these torques, which may depend on v."""
    arguments = [q, v, tau, *(W or [])]
    return tuple(ca.Function("second", arguments, outputs).call([q, v, torques, *(W or [])]))


def _by(matrix, x):
    return ca.jacobian(ca.vec(matrix), x)


def _hessians(model, y, q, v, a):
    """Second partials of y (nv,) by (q, q), (v, v), (q, v), (a, q).

    Equation:  L_k L_j y = s_j^T (d2y/dq2) s_k + (dy/dq) (ds_j/dq) s_k,  s_j what a step along j does to q
    """
    nq, nv = model.robot.nq, model.robot.nv
    step, x = tangent_map(model.robot, q), ca.vertcat(q, v, a)
    bend = ca.jacobian(ca.vec(step), q) @ step  # (nq nv, nv)
    tensors = [[], [], [], []]
    for i in range(nv):
        H, gradient = ca.hessian(y[i], x)
        Q, V, A = (slice(*x) for x in ((0, nq), (nq, nq + nv), (nq + nv, nq + 2 * nv)))
        bent = ca.vertcat(*(gradient[Q].T @ x for x in ca.vertsplit(bend, nq)))
        pages = step.T @ H[Q, Q] @ step + bent, H[V, V], step.T @ H[Q, V], H[A, Q] @ step
        for tensor, page in zip(tensors, pages, strict=True):
            tensor.append(page)
    order = [i * nv + j for j in range(nv) for i in range(nv)]  # from rows j of page i to rows i + nv j
    return [ca.vertcat(*tensor)[order, :] for tensor in tensors]
