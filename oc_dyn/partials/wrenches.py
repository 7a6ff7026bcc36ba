"""Partial derivatives of the dynamics by the external wrenches, body by body."""

from math import comb
from typing import Any

import casadi as ca

from ..inverse_dynamics.taylor import taylor as inverse_dynamics
from ..lie.jets import total
from ..lie.se3 import Ad
from ..matrices.by_ad import along
from ..matrices.jacobian_sum import body_jacobians
from ..ports import (
    bodies,
    configuration_port,
    derivative_name,
    motion_ports,
    nv,
    partial_ports,
    torque_ports,
    wrench_ports,
)
from ..registry import get, method, quantity
from ..subexpressions import merged
from ..time_methods import in_time
from .by_ad import inverse_partials
from .composite import composite_method
from .implicit import mass_matrix, mass_solver
from .order_by_order import Given, rows_of_inverse


def _partials(of):
    """Ports of the partials of `of`, a list of ports, each by w_ext and its derivatives up to its own order."""

    def outputs(robot, order, options):
        by = [(p, 6 * bodies(robot)) for p in wrench_ports(robot, order)]
        found = of(robot, order)
        return [p for k, y in enumerate(found) for p in partial_ports([(y, nv(robot))], by[: k + 1])]

    return outputs


def _named(name, first, rows):
    """{port: value} of rows of the derivatives first.. of what is called name."""
    return {
        f"d{derivative_name(name, first + k)}_d{derivative_name('w_ext', l)}": x
        for k, row in enumerate(rows)
        for l, x in enumerate(row)
    }


def _inverse_inputs(robot, order, options):
    return [configuration_port(robot)] + (motion_ports(robot, order - 1)[1:] if order else [])


def _call_inverse(function, model, order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(order)]
    J = function(model, order, ports["q"], V)  # as dtau_dw_ext is all that there is
    rows = [[comb(k, l) * J[k - l] for l in range(k + 1)] for k in range(order + 1)]
    return _named("tau", 0, rows)


def _forward_inputs(robot, order, options):
    return get("forward_dynamics").inputs(robot, order, {**options, "external_wrenches": True})


def _call_forward(function, model, order, ports, options):
    T, W = ([ports[derivative_name(x, k)] for k in range(order + 1)] for x in ("tau", "w_ext"))
    none = [ca.DM.zeros(model.robot.nv)] * (order + 1)
    given = Given(model, order, ports["q"], ports["v"], none, T, (), W, bool(options["friction"]))
    return _named("v", 1, function(given))


_COLUMNS = "Columns are the entries of w_ext in casadi's order: [moment; force] of the first body, of the second, ..."
quantity(
    name="inverse_dynamics_wrench_partials",
    summary="partial derivatives of the joint torques, and of their time derivatives, by the external wrenches and "
    "theirs",
    inputs=_inverse_inputs,
    outputs=_partials(torque_ports),
    call=_call_inverse,
    default=("jacobian_sum",),
    sparse=True,
    equation="dtau_dw_ext = -[J_1^T, J_2^T, ...], J_b the body Jacobian of body b; ddtau_dw_ext is its time "
    "derivative, ddtau_ddw_ext = dtau_dw_ext; likewise of d2tau, ...",
    notes=(_COLUMNS,),
)
quantity(
    name="forward_dynamics_wrench_partials",
    summary="partial derivatives of the joint accelerations, and of their time derivatives, by the external wrenches "
    "and theirs",
    inputs=_forward_inputs,
    outputs=_partials(lambda robot, order: motion_ports(robot, order + 1)[2:]),
    call=_call_forward,
    solves=lambda robot, options: (),
    options=("friction",),
    default=("ad",),
    sparse=True,
    equation="ddv_dw_ext = M(q)^-1 [J_1^T, J_2^T, ...], J_b the body Jacobian of body b; of d2v, ... by what they "
    "depend on, at given tau, dtau, ...",
    notes=(_COLUMNS,),
)


@method(
    "inverse_dynamics_wrench_partials",
    "jacobian_sum",
    kind="closed_form",
    source="Kumar and Mueller 2021, eqs. 22 and 41: Jacobians of the bodies",
)
def inverse(model, order, q, V):
    """Derivatives 0..order of -[J_1^T, J_2^T, ...] (nv, 6 bodies); see od.describe("inverse_dynamics_wrench_partials").

    Cost O(n depth order^2).
    """
    J = body_jacobians(model, order, q, V)[0]
    seen = [(i, Ad(tuple(ca.DM(x) for x in model.to_body[i]))) for i in model.number[1:]]
    none = ca.SX(model.robot.nv, 0)
    return [ca.horzcat(none, *(-ca.sparsify((X @ J[i][k]).T) for i, X in seen)) for k in range(order + 1)]


@in_time(
    "inverse_dynamics_wrench_partials",
    source="AD: Jacobian of the method taylor at rest by w_ext",
    regroup=True,
)
def inverse_by_ad(way, model, order, q, V):
    """Derivatives 0..order of dtau_dw_ext (nv, 6 bodies); see od.describe("inverse_dynamics_wrench_partials")."""
    rest, w = ca.DM.zeros(model.robot.nv), ca.SX.sym("w", 6, len(model.robot.bodies))
    tau = inverse_dynamics(model, 0, q, [rest, rest], [w])[0]
    return [ca.sparsify(x) for x in along(model, order, q, V, ca.jacobian(merged(tau), ca.vec(w)), way)]


@method(
    "forward_dynamics_wrench_partials",
    "jacobian_sum",
    kind="analytic",
    source="this toolkit: Jacobians of the bodies, solved for the accelerations order by order; of transform joints "
    "with AD of inverse dynamics above order 0",
    regroup=True,
)
def forward(given):
    """Partials of dv, d2v, ..., [(by w_ext), (by w_ext, dw_ext), ...]; see
    od.describe("forward_dynamics_wrench_partials").

    Equation:  M v^(k+1)_w = sum_l of (J^T)^(k-l) w^(l)_w - sum_{1<=j<=k} ID_k,v^(j) v^(j)_w
    """
    model, order = given.model, given.order
    rows: Any = inverse_partials if "transform" in model.robot.features else composite_method
    V = [given.v, *given.solved()[0]] if order else [given.v]
    J = inverse(model, order, given.q, V[:order])
    R = rows_of_inverse(given, V, rows) if order else []
    solve = mass_solver(mass_matrix(model, given.q))
    found: list[list[Any]] = []  # by order: by w_ext, dw_ext, ...
    for k in range(order + 1):
        row = []
        for l in range(k + 1):
            side = comb(k, l) * J[k - l]
            row.append(-solve(total([side, *(R[k][1 + j] @ found[j - 1][l] for j in range(l + 1, k + 1))])))
        found.append(row)
    return found


@method(
    "forward_dynamics_wrench_partials",
    "ad",
    kind="ad",
    source="AD: Jacobian of the method taylor by w_ext, dw_ext, ...",
    regroup=True,
)
def forward_by_ad(given):
    """Partials of dv, d2v, ..., [(by w_ext), (by w_ext, dw_ext), ...]; see
    od.describe("forward_dynamics_wrench_partials").
    """

    def jacobians(other, _):
        accelerations = merged(other.solved()[0])
        return [ca.sparsify(ca.jacobian(a, ca.vec(w))) for k, a in enumerate(accelerations) for w in other.W[: k + 1]]

    found = iter(given.at(jacobians))
    return [[next(found) for _ in range(k + 1)] for k in range(given.order + 1)]
