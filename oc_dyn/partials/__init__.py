"""Partial derivatives of the dynamics on the tangent space: by a step e of q (+) e, and by v, dv, tau.

Names: the derivative of the output y by the input x is dy_dx. So dtau_dq is that of tau by q, and ddtau_dq that of
dtau by q; dd2tau_dd3v is that of d2tau by d3v.

Second derivatives by q are those of e -> f(q (+) e) at e = 0, which are symmetric. Derivatives by one direction after
the other are not, where the directions of a joint do not commute; their symmetric part is what stands here.
"""

import casadi as ca

from ..hybrid_dynamics import example, prescribed_rows
from ..ports import (
    configuration_port,
    derivative_name,
    motion_ports,
    nv,
    quotient_unit,
    torque_ports,
    wrench_ports,
)
from ..registry import Port, get, quantity
from .friction_terms import friction_curvature, friction_partials, friction_terms


def _partial_ports(of, by):
    """Ports of the partials of `of` by `by`, both lists of (Port, rows of its derivative)."""
    return [
        Port(
            f"d{y.name}_d{x.name}",
            (rows, columns),
            quotient_unit(y.unit, _step_unit(x)),
            f"partial derivative of {y.name} by {_step(x)}",
            y.rows,
        )
        for y, rows in of
        for x, columns in by
    ]


def _step(port):
    return "a step on the tangent space of q" if port.name == "q" else port.name


def _step_unit(port):
    return "rad, m" if port.name == "q" else port.unit


def _sized(robot, ports):
    return [(p, nv(robot) if p.name == "q" else p.shape[0]) for p in ports]


def _without_wrenches(ports):
    return [p for p in ports if not p.name.endswith("w_ext")]


def _wrench(ports):
    return ports.get("w_ext")


# -- inverse dynamics ------------------------------------------------------------------------------------------


def _inverse_inputs(robot, order, options):
    return get("inverse_dynamics").inputs(robot, order, options)


def _inverse_outputs(robot, order, options):
    motion = _sized(robot, motion_ports(robot, order + 1))
    torques = _sized(robot, torque_ports(robot, order))
    return [p for r, tau in enumerate(torques) for p in _partial_ports([tau], motion[: r + 3])]


def _call_inverse(function, model, order, ports, options):
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


# -- forward and hybrid dynamics -------------------------------------------------------------------------------


def _forward_inputs(robot, order, options):
    return get("forward_dynamics").inputs(robot, 0, options)


def _forward_outputs(robot, order, options):
    of = motion_ports(robot, 1)[2:]
    return _partial_ports(_sized(robot, of), _sized(robot, _without_wrenches(_forward_inputs(robot, 0, options))))


def _call_forward(function, model, order, ports, options):
    q, v, tau = ports["q"], ports["v"], ports["tau"]
    terms = friction_terms(model.robot, v, options["friction"])
    found = function(model, q, v, tau - terms.torque, _wrench(ports), terms.damping)
    return dict(zip(("ddv_dq", "ddv_dv", "ddv_dtau"), found, strict=True))


def _hybrid_inputs(robot, order, options):
    return get("hybrid_dynamics").inputs(robot, 0, options)


def _hybrid_outputs(robot, order, options):
    of = [p for p in get("hybrid_dynamics").outputs(robot, 0, options) if p.name in ("tau_p", "dv_f")]
    return _partial_ports(_sized(robot, of), _sized(robot, _without_wrenches(_hybrid_inputs(robot, 0, options))))


def _call_hybrid(function, model, order, ports, options):
    rows = prescribed_rows(model.robot, options)
    n = model.robot.nv
    a, tau = ca.SX(n, 1), ca.SX(n, 1)
    others = [k for k in range(n) if k not in rows]
    a[list(rows)], tau[others] = ports["dv_p"], ports["tau_f"]
    found = function(model, ports["q"], ports["v"], a, tau, rows, _wrench(ports))
    return {f"d{y}_d{x}": value for (y, x), value in found.items()}


def _inverse_matrix_outputs(robot, order, options):
    unit = "1/(kg m2), 1/(kg m), 1/kg"
    return [Port("Minv", (nv(robot), nv(robot)), unit, "inverse of the mass matrix", robot.velocity_names)]


def _inverse_matrix_call(function, model, order, ports, options):
    return {"Minv": function(model, ports["q"])}


# -- adjoints and Lagrangian Hessians --------------------------------------------------------------------------


def _multipliers(robot, of, order=0):
    """Ports lam, lam_dtau, lam_d2tau, ... of `of` and its derivatives."""
    ports = torque_ports(robot, order) if of == "tau" else motion_ports(robot, order + 1)[2:]
    return [
        Port(
            "lam" if k == 0 else f"lam_{p.name}",
            (nv(robot), 1),
            quotient_unit("1", p.unit),
            f"multipliers of {p.name}, such that the sum of products is a number",
            p.rows,
        )
        for k, p in enumerate(ports)
    ]


def _multiplied(inputs, of):
    def with_multipliers(robot, order, options):
        given = inputs(robot, order, options)
        free = _without_wrenches(given)
        return [*free, *_multipliers(robot, of, order), *given[len(free) :]]

    return with_multipliers


def _adjoint_outputs(inputs, of):
    def outputs(robot, order, options):
        terms = f"lam' {of}" + "".join(f" + lam_{y}' {y}" for y in (derivative_name(of, k + 1) for k in range(order)))
        return [
            Port(
                f"adj_{x.name}",
                (nv(robot), 1),
                quotient_unit("1", _step_unit(x)),
                f"gradient of {terms} by {_step(x)}",
                robot.velocity_names,
            )
            for x in _without_wrenches(inputs(robot, order, options))
        ]

    return outputs


def _hessian_outputs(inputs):
    def outputs(robot, order, options):
        by = [x.name for x in _without_wrenches(inputs(robot, order, options))]
        n = len(by) * nv(robot)
        meaning = (
            f"second derivatives of the products with the multipliers by a step on the tangent space of q, by "
            f"{', '.join(by[1:])}, in this order: full and symmetric"
        )
        return [
            Port(
                "H",
                (n, n),
                "1/(units of row and column)",
                meaning,
                tuple(f"{x} {y}" for x in by for y in robot.velocity_names),
            )
        ]

    return outputs


def _lagrangian_arguments(order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(order + 2)]
    lams = [ports["lam"], *(ports[f"lam_{derivative_name('tau', k)}"] for k in range(1, order + 1))]
    W = [ports[derivative_name("w_ext", k)] for k in range(order + 1)] if options["external_wrenches"] else None
    return V, lams, W


def _call_inverse_adjoint(function, model, order, ports, options):
    V, lams, W = _lagrangian_arguments(order, ports, options)
    found = list(function(model, order, ports["q"], V, lams, W))
    if options["friction"]:
        for rows, lam in zip(friction_partials(model.robot, V[: order + 1]), lams, strict=True):
            found[1:-1] = [x + J.T @ lam for x, J in zip(found[1:-1], rows, strict=True)]
    names = ["q", *(derivative_name("v", k) for k in range(order + 2))]
    return {f"adj_{x}": y for x, y in zip(names, found, strict=True)}


def _call_forward_adjoint(function, model, order, ports, options):
    q, v, tau, lam = (ports[x] for x in ("q", "v", "tau", "lam"))
    terms = friction_terms(model.robot, v, options["friction"])
    found = function(model, q, v, tau - terms.torque, lam, _wrench(ports), terms)
    return dict(zip(("adj_q", "adj_v", "adj_tau"), found, strict=True))


def _call_inverse_hessian(function, model, order, ports, options):
    V, lams, W = _lagrangian_arguments(order, ports, options)
    H = dict(function(model, order, ports["q"], V, lams, W))
    if options["friction"]:
        for (i, j), x in friction_curvature(model.robot, V[: order + 1], lams).items():
            H[i + 1, j + 1] = H.get((i + 1, j + 1), 0) + x
    return {"H": _symmetric(H, order + 3, model.robot.nv)}


def _call_forward_hessian(function, model, order, ports, options):
    q, v, tau, lam = (ports[x] for x in ("q", "v", "tau", "lam"))
    terms = friction_terms(model.robot, v, options["friction"])
    H = function(model, q, v, tau - terms.torque, lam, _wrench(ports), terms)
    H = {(0, 0): H["q", "q"], (0, 1): H["q", "v"], (1, 1): H["v", "v"], (0, 2): H["q", "tau"]}
    return {"H": _symmetric(H, 3, model.robot.nv)}


def _symmetric(H, count, nv):
    """Matrix of count x count blocks from those on and above the diagonal."""
    zero = ca.SX(nv, nv)
    full = {**{(j, i): x.T for (i, j), x in H.items()}, **H}
    return ca.blockcat([[full.get((i, j), zero) for j in range(count)] for i in range(count)])


_TERMS = ("external_wrenches", "friction", "gravity")
_OPTIONS = {"options": _TERMS, "sparse": True}
_STEP = "q (+) e is robot.integrate(q, e): a step e on the tangent space has nv entries, body axes in free joints."
_SEEN_STEP = "With representation, e is a step in it, too: along a motion dtau = dtau_dq v + dtau_dv dv + dtau_ddv d2v."
_SYMMETRIC = "By e twice it is the symmetric part of steps one after the other, which do not commute in every joint."

quantity(
    name="inverse_dynamics_partials",
    summary="partial derivatives of the joint torques, and of their time derivatives, by configuration and motion",
    inputs=_inverse_inputs,
    outputs=_inverse_outputs,
    call=_call_inverse,
    default=("composite", "ad"),
    options=(*_TERMS, "representation"),
    base_ports=True,
    sparse=True,
    equation="dtau_dq = d tau(q (+) e, v, dv) / de at e = 0; dtau_dv, dtau_ddv; likewise of dtau, d2tau, ... by what "
    "they depend on",
    notes=(_STEP, _SEEN_STEP),
)
quantity(
    name="forward_dynamics_partials",
    summary="partial derivatives of the joint accelerations by configuration, velocities and torques",
    inputs=_forward_inputs,
    outputs=_forward_outputs,
    call=_call_forward,
    solves=lambda robot, options: (),
    max_order=0,
    default=("composite", "ad_via_inverse"),
    **_OPTIONS,
    equation="ddv_dq = d dv(q (+) e, v, tau) / de at e = 0 = -M^-1 dtau_dq; ddv_dv = -M^-1 dtau_dv; ddv_dtau = M^-1",
    notes=(_STEP,),
)
quantity(
    name="hybrid_dynamics_partials",
    summary="partial derivatives of the torques of prescribed joints and of the accelerations of the others",
    inputs=_hybrid_inputs,
    outputs=_hybrid_outputs,
    call=_call_hybrid,
    solves=prescribed_rows,
    options=("prescribed", "external_wrenches", "gravity"),
    max_order=0,
    default=("composite", "ad"),
    sparse=True,
    equation="partial derivatives of (tau_p, dv_f) by q (+) e, v, dv_p, tau_f, as hybrid_dynamics has them",
    notes=(_STEP,),
    errors=("UnknownName: a prescribed joint that is not there, or has no coordinate of its own",),
    example=example,
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
    inputs=_multiplied(_inverse_inputs, "tau"),
    outputs=_adjoint_outputs(_inverse_inputs, "tau"),
    call=_call_inverse_adjoint,
    default=("composite", "ad"),
    **_OPTIONS,
    equation="adj_x = d (lam^T tau + lam_dtau^T dtau + ...) / dx = dtau_dx^T lam + ddtau_dx^T lam_dtau + ...",
    notes=(_STEP,),
)
quantity(
    name="forward_dynamics_adjoint",
    summary="gradient of lam' dv by configuration, velocities and torques",
    inputs=_multiplied(_forward_inputs, "dv"),
    outputs=_adjoint_outputs(_forward_inputs, "dv"),
    call=_call_forward_adjoint,
    solves=lambda robot, options: (),
    max_order=0,
    default=("composite", "ad"),
    **_OPTIONS,
    equation="adj_x = d (lam^T dv) / dx = ddv_dx^T lam",
    notes=(_STEP,),
)
quantity(
    name="inverse_dynamics_lagrangian_hessian",
    summary="second derivatives of lam' tau + lam_dtau' dtau + ...: what an optimiser needs of the torques",
    inputs=_multiplied(_inverse_inputs, "tau"),
    outputs=_hessian_outputs(_inverse_inputs),
    call=_call_inverse_hessian,
    default=("composite", "composite_along_motion", "ad"),
    **_OPTIONS,
    equation="H = d2 (lam^T tau + lam_dtau^T dtau + ...) / dx2, x = (e, v, dv, ...) at q (+) e, e = 0",
    notes=(_STEP, _SYMMETRIC),
)
quantity(
    name="forward_dynamics_lagrangian_hessian",
    summary="second derivatives of lam' dv by configuration, velocities and torques",
    inputs=_multiplied(_forward_inputs, "dv"),
    outputs=_hessian_outputs(_forward_inputs),
    call=_call_forward_hessian,
    solves=lambda robot, options: (),
    max_order=0,
    default=("composite", "ad"),
    **_OPTIONS,
    equation="H = d2 (lam^T dv) / dx2, x = (e, v, tau) at q (+) e, e = 0",
    notes=(_STEP, _SYMMETRIC),
)

from . import (  # noqa: E402  registers the methods
    by_ad,
    composite,
    composite_adjoint,
    in_representation,
    mass_inverse,
    recursive_scalar,
    spatial_vector,
)
