"""Quantities: partials, adjoints and Lagrangian Hessians of forward and hybrid dynamics, of any order."""

import casadi as ca

from ..hybrid_dynamics import example, prescribed_rows, spread
from ..ports import derivative_name, motion_ports, partial_ports
from ..registry import get, quantity
from .order_by_order import Given
from .part_ports import (
    OPTIONS,
    STEP,
    SYMMETRIC,
    adjoint_outputs,
    hessian_outputs,
    multiplied,
    numbered,
    sized,
    without_wrenches,
)


def _wrenches(order, ports, options):
    return [ports[derivative_name("w_ext", k)] for k in range(order + 1)] if options["external_wrenches"] else None


# -- forward dynamics ------------------------------------------------------------------------------------------


def _forward_inputs(robot, order, options):
    return get("forward_dynamics").inputs(robot, order, options)


def forward_products(robot, order, options):
    """[(name of the multipliers, port of an acceleration)]."""
    return numbered(motion_ports(robot, order + 1)[2:])


def _forward_outputs(robot, order, options):
    by = sized(robot, without_wrenches(_forward_inputs(robot, order, options)))
    of = sized(robot, motion_ports(robot, order + 1)[2:])
    return [p for k, a in enumerate(of) for p in partial_ports([a], by[: k + 3])]


def given_forward(model, order, ports, options):
    """The Given of values of the ports of forward dynamics."""
    T = [ports[derivative_name("tau", k)] for k in range(order + 1)]
    none = [ca.DM.zeros(model.robot.nv)] * (order + 1)
    W = _wrenches(order, ports, options)
    return Given(model, order, ports["q"], ports["v"], none, T, (), W, bool(options["friction"]))


def _arguments(order):
    return ["q", "v", *(derivative_name("tau", k) for k in range(order + 1))]


def _call_forward(function, model, order, ports, options):
    rows = function(given_forward(model, order, ports, options))
    names = _arguments(order)
    named = {derivative_name("v", k + 1): zip(names, row, strict=False) for k, row in enumerate(rows)}
    return {f"d{a}_d{x}": y for a, row in named.items() for x, y in row}


def forward_lams(order, ports):
    """Multipliers of the accelerations."""
    return [ports["lam"], *(ports[f"lam_{derivative_name('v', k + 1)}"] for k in range(1, order + 1))]


def _call_forward_adjoint(function, model, order, ports, options):
    found = function(given_forward(model, order, ports, options), forward_lams(order, ports))
    return {f"adj_{x}": y for x, y in zip(_arguments(order), found, strict=True)}


def _call_forward_hessian(function, model, order, ports, options):
    return {"H": function(given_forward(model, order, ports, options), forward_lams(order, ports))}


# -- hybrid dynamics -------------------------------------------------------------------------------------------


def _hybrid_inputs(robot, order, options):
    return get("hybrid_dynamics").inputs(robot, order, options)


def _found(robot, order, options):
    """Ports tau_p, dtau_p, ..., dv_f, d2v_f, ..."""
    return get("hybrid_dynamics").outputs(robot, order, options)[: 2 * (order + 1)]


def _hybrid_arguments(order, k):
    """What the outputs of order k depend on."""
    return [
        "q",
        "v",
        *(derivative_name("v", j + 1) + "_p" for j in range(k + 1)),
        *(derivative_name("tau", j) + "_f" for j in range(k + 1)),
    ]


def _hybrid_outputs(robot, order, options):
    by = dict((p.name, (p, rows)) for p, rows in sized(robot, _hybrid_inputs(robot, order, options)))
    of, n = sized(robot, _found(robot, order, options)), order + 1
    return [
        p for k in range(n) for p in partial_ports([of[k], of[n + k]], [by[x] for x in _hybrid_arguments(order, k)])
    ]


def given_hybrid(model, order, ports, options):
    """The Given of values of the ports of hybrid dynamics."""
    rows, nv = prescribed_rows(model.robot, options), model.robot.nv
    others = [k for k in range(nv) if k not in rows]
    A = [spread(ports[derivative_name("v", k + 1) + "_p"], rows, nv) for k in range(order + 1)]
    T = [spread(ports[derivative_name("tau", k) + "_f"], others, nv) for k in range(order + 1)]
    return Given(model, order, ports["q"], ports["v"], A, T, rows, _wrenches(order, ports, options),
                 bool(options["friction"]))  # fmt: skip


def _call_hybrid(function, model, order, ports, options):
    given = given_hybrid(model, order, ports, options)
    accelerations, torques = function(given)
    out = {}
    for k in range(order + 1):
        names = _hybrid_arguments(order, k)
        a, tau = derivative_name("v", k + 1) + "_f", derivative_name("tau", k) + "_p"
        out |= {f"d{tau}_d{x}": y for x, y in zip(names, torques[k], strict=True)}
        out |= {f"d{a}_d{x}": y for x, y in zip(names, accelerations[k], strict=True)}
    return out


def _products(robot, order, options):
    return [(f"lam_{p.name}", p) for p in _found(robot, order, options)]


def _hybrid_lams(order, ports):
    """Multipliers of (accelerations, torques)."""
    by_a = [ports[f"lam_{derivative_name('v', k + 1)}_f"] for k in range(order + 1)]
    return by_a, [ports[f"lam_{derivative_name('tau', k)}_p"] for k in range(order + 1)]


def _call_hybrid_adjoint(function, model, order, ports, options):
    found = function(given_hybrid(model, order, ports, options), *_hybrid_lams(order, ports))
    return {f"adj_{x}": y for x, y in zip(_hybrid_arguments(order, order), found, strict=True)}


def _call_hybrid_hessian(function, model, order, ports, options):
    return {"H": function(given_hybrid(model, order, ports, options), *_hybrid_lams(order, ports))}


HYBRID = {
    "solves": prescribed_rows,
    "options": ("prescribed", "external_wrenches", "friction", "gravity"),
    "sparse": True,
    "errors": ("UnknownName: a prescribed joint that is not there, or has no coordinate of its own",),
    "example": example,
}
_FORWARD = {"solves": lambda robot, options: (), **OPTIONS}

quantity(
    name="forward_dynamics_partials",
    summary="partial derivatives of the joint accelerations, and of their time derivatives, by configuration, "
    "velocities and torques",
    inputs=_forward_inputs,
    outputs=_forward_outputs,
    call=_call_forward,
    default=("composite", "ad_via_inverse"),
    **_FORWARD,
    equation="ddv_dq = d dv(q (+) e, v, tau) / de at e = 0 = -M^-1 dtau_dq; ddv_dv = -M^-1 dtau_dv; ddv_dtau = M^-1; "
    "likewise of d2v, ...: M dd2v_dx = -ddtau_dx - ddtau_ddv ddv_dx, x = q or v",
    notes=(STEP,),
)
quantity(
    name="hybrid_dynamics_partials",
    summary="partial derivatives of the torques of prescribed joints and of the accelerations of the others",
    inputs=_hybrid_inputs,
    outputs=_hybrid_outputs,
    call=_call_hybrid,
    default=("composite", "ad"),
    **HYBRID,
    equation="partial derivatives of (tau_p, dv_f) by q (+) e, v, dv_p, tau_f, as hybrid_dynamics has them; likewise "
    "of their time derivatives by what they depend on",
    notes=(STEP,),
)
quantity(
    name="forward_dynamics_adjoint",
    summary="gradient of lam' dv + lam_d2v' d2v + ... by configuration, velocities and torques",
    inputs=multiplied(_forward_inputs, forward_products),
    outputs=adjoint_outputs(_forward_inputs, forward_products),
    call=_call_forward_adjoint,
    default=("composite", "ad"),
    **_FORWARD,
    equation="adj_x = d (lam^T dv + lam_d2v^T d2v + ...) / dx = ddv_dx^T lam + dd2v_dx^T lam_d2v + ...",
    notes=(STEP,),
)
quantity(
    name="hybrid_dynamics_adjoint",
    summary="gradient of products of multipliers with what hybrid dynamics finds",
    inputs=multiplied(_hybrid_inputs, _products),
    outputs=adjoint_outputs(_hybrid_inputs, _products),
    call=_call_hybrid_adjoint,
    default=("composite", "ad"),
    **HYBRID,
    equation="adj_x = d (lam_tau_p^T tau_p + lam_dv_f^T dv_f + ...) / dx",
    notes=(STEP,),
)
quantity(
    name="forward_dynamics_lagrangian_hessian",
    summary="second derivatives of lam' dv + lam_d2v' d2v + ... by configuration, velocities and torques",
    inputs=multiplied(_forward_inputs, forward_products),
    outputs=hessian_outputs(_forward_inputs),
    call=_call_forward_hessian,
    default=("composite", "composite_along_motion", "ad", "ad_via_inverse"),
    **_FORWARD,
    equation="H = d2 (lam^T dv + lam_d2v^T d2v + ...) / dx2, x = (e, v, tau, dtau, ...) at q (+) e, e = 0",
    notes=(STEP, SYMMETRIC),
)
quantity(
    name="hybrid_dynamics_lagrangian_hessian",
    summary="second derivatives of products of multipliers with what hybrid dynamics finds",
    inputs=multiplied(_hybrid_inputs, _products),
    outputs=hessian_outputs(_hybrid_inputs),
    call=_call_hybrid_hessian,
    default=("composite", "composite_along_motion", "ad_via_inverse"),
    **HYBRID,
    equation="H = d2 (lam_tau_p^T tau_p + lam_dv_f^T dv_f + ...) / dx2, x = (e, v, dv_p, ..., tau_f, ...) at q (+) e, "
    "e = 0",
    notes=(STEP, SYMMETRIC),
)
