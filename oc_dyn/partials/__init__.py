"""Partial derivatives of the dynamics on the tangent space: by a step e of q (+) e, and by v, dv, tau.

Names: the derivative of the output y by the input x is dy_dx. So dtau_dq is that of tau by q, and ddtau_dq that of
dtau by q; dd2tau_dd3v is that of d2tau by d3v.

Second derivatives by q are those of e -> f(q (+) e) at e = 0, which are symmetric. Derivatives by one direction after
the other are not, where the directions of a joint do not commute; their symmetric part is what stands here.
"""

from ..ports import configuration_port, derivative_name, motion_ports, nv, partial_ports, torque_ports
from ..registry import Port, get, quantity
from .friction_terms import friction_curvature, friction_partials
from .part_ports import (
    OPTIONS,
    SEEN_STEP,
    STEP,
    SYMMETRIC,
    adjoint_outputs,
    hessian_outputs,
    multiplied,
    numbered,
    sized,
    symmetric,
)


def _inputs(robot, order, options):
    return get("inverse_dynamics").inputs(robot, order, options)


def _products(robot, order, options):
    return numbered(torque_ports(robot, order))


def _outputs(robot, order, options):
    motion = sized(robot, motion_ports(robot, order + 1))
    torques = sized(robot, torque_ports(robot, order))
    return [p for r, tau in enumerate(torques) for p in partial_ports([tau], motion[: r + 3])]


def _call(function, model, order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(order + 2)]
    W = [ports[derivative_name("w_ext", k)] for k in range(order + 1)] if options["external_wrenches"] else None
    rows = [list(row) for row in function(model, order, ports["q"], V, W)]
    if options["friction"]:
        for row, extra in zip(rows, friction_partials(model.robot, V[: order + 1]), strict=True):
            row[1:] = [x + y for x, y in zip(row[1:], [*extra, 0, 0], strict=False)]
    out = {}
    for r, row in enumerate(rows):
        names = ["q", *(derivative_name("v", k) for k in range(r + 2))]
        out |= {f"d{derivative_name('tau', r)}_d{x}": y for x, y in zip(names, row, strict=True)}
    return out


def _inverse_matrix_outputs(robot, order, options):
    unit = "1/(kg m2), 1/(kg m), 1/kg"
    return [Port("Minv", (nv(robot), nv(robot)), unit, "inverse of the mass matrix", robot.velocity_names)]


def _inverse_matrix_call(function, model, order, ports, options):
    return {"Minv": function(model, ports["q"])}


def _lagrangian_arguments(order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(order + 2)]
    lams = [ports["lam"], *(ports[f"lam_{derivative_name('tau', k)}"] for k in range(1, order + 1))]
    W = [ports[derivative_name("w_ext", k)] for k in range(order + 1)] if options["external_wrenches"] else None
    return V, lams, W


def _call_adjoint(function, model, order, ports, options):
    V, lams, W = _lagrangian_arguments(order, ports, options)
    found = list(function(model, order, ports["q"], V, lams, W))
    if options["friction"]:
        for rows, lam in zip(friction_partials(model.robot, V[: order + 1]), lams, strict=True):
            found[1:-1] = [x + J.T @ lam for x, J in zip(found[1:-1], rows, strict=True)]
    names = ["q", *(derivative_name("v", k) for k in range(order + 2))]
    return {f"adj_{x}": y for x, y in zip(names, found, strict=True)}


def _call_hessian(function, model, order, ports, options):
    V, lams, W = _lagrangian_arguments(order, ports, options)
    H = dict(function(model, order, ports["q"], V, lams, W))
    if options["friction"]:
        for (i, j), x in friction_curvature(model.robot, V[: order + 1], lams).items():
            H[i + 1, j + 1] = H.get((i + 1, j + 1), 0) + x
    return {"H": symmetric(H, order + 3, model.robot.nv)}


quantity(
    name="inverse_dynamics_partials",
    summary="partial derivatives of the joint torques, and of their time derivatives, by configuration and motion",
    inputs=_inputs,
    outputs=_outputs,
    call=_call,
    default=("composite", "ad"),
    options=(*OPTIONS["options"], "representation"),
    base_ports=True,
    sparse=True,
    equation="dtau_dq = d tau(q (+) e, v, dv) / de at e = 0; dtau_dv, dtau_ddv; likewise of dtau, d2tau, ... by what "
    "they depend on",
    notes=(STEP, SEEN_STEP),
)
quantity(
    name="mass_matrix_inverse",
    summary="inverse of the joint-space mass matrix, full and symmetric",
    inputs=lambda robot, order, options: [configuration_port(robot)],
    outputs=_inverse_matrix_outputs,
    call=_inverse_matrix_call,
    solves=lambda robot, options: (),
    max_order=0,
    default=("cholesky", "articulated"),
    options=("representation",),
    base_ports=True,
    sparse=True,
    equation="Minv = M(q)^-1",
)
quantity(
    name="inverse_dynamics_adjoint",
    summary="gradient of lam' tau + lam_dtau' dtau + ... by configuration and motion",
    inputs=multiplied(_inputs, _products),
    outputs=adjoint_outputs(_inputs, _products),
    call=_call_adjoint,
    default=("composite", "ad"),
    **OPTIONS,
    equation="adj_x = d (lam^T tau + lam_dtau^T dtau + ...) / dx = dtau_dx^T lam + ddtau_dx^T lam_dtau + ...",
    notes=(STEP,),
)
quantity(
    name="inverse_dynamics_lagrangian_hessian",
    summary="second derivatives of lam' tau + lam_dtau' dtau + ...: what an optimiser needs of the torques",
    inputs=multiplied(_inputs, _products),
    outputs=hessian_outputs(_inputs),
    call=_call_hessian,
    default=("composite", "composite_along_motion", "ad"),
    **OPTIONS,
    equation="H = d2 (lam^T tau + lam_dtau^T dtau + ...) / dx2, x = (e, v, dv, ...) at q (+) e, e = 0",
    notes=(STEP, SYMMETRIC),
)

from . import solved  # noqa: E402  registers forward and hybrid dynamics

# isort: split
from . import (  # noqa: E402  registers the methods
    by_ad,
    composite,
    composite_adjoint,
    in_representation,
    mass_inverse,
    products,
    recursive_scalar,
    spatial_vector,
    wrenches,
)
