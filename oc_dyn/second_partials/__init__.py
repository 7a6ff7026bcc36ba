"""Second partial derivatives of inverse and forward dynamics, on the tangent space, as tensors.

d/dq_k is the Lie derivative along a step e_k of q (+) e, and the order of the letters in a name is the order of
differentiation: d2tau_dqdq holds d/dq_k (dtau_i/dq_j), what the matrix of first partials gains as q follows coordinate
k. Steps along two coordinates of one spherical, planar or free joint do not commute: there it is not symmetric,

    d/dq_k (dtau_i/dq_j) - d/dq_j (dtau_i/dq_k) = sum_m c_kjm dtau_i/dq_m,    [S_k, S_j] = sum_m c_kjm S_m,

S the joint's screws. Everywhere else it is, and so is d2tau_dvdv.
"""

import casadi as ca

from ..friction import friction_torques
from ..partials.part_ports import sized, step, step_unit
from ..partials.solved import HYBRID, given_hybrid
from ..ports import configuration_port, motion_ports, nv, quotient_unit, torque_ports, wrench_ports
from ..registry import Port, get, quantity

_STORED = "(i, j, k) at row i + nv j, column k; first differentiated by the first letter"


_Q, _V = "rad, m", "rad/s, m/s"


def _tensors(robot, tensors):
    shape = (nv(robot) * nv(robot), nv(robot))
    return [
        Port(name, shape, quotient_unit(*unit), f"{meaning}; {_STORED}") for name, (unit, meaning) in tensors.items()
    ]


def _inverse_inputs(robot, order, options):
    return motion_ports(robot, 1) + _wrenches(robot, options)


def _forward_inputs(robot, order, options):
    ports = [configuration_port(robot), motion_ports(robot, 0)[1], torque_ports(robot, 0)[0]]
    return ports + _wrenches(robot, options)


def _wrenches(robot, options):
    return wrench_ports(robot, 0) if options["external_wrenches"] else []


def _inverse_outputs(robot, order, options):
    tensors = {
        "d2tau_dqdq": (("Nm, N", _Q, _Q), "second partial of tau by a step of q and another one"),
        "d2tau_dvdv": (("Nm, N", _V, _V), "second partial of tau by v twice"),
        "d2tau_dqdv": (("Nm, N", _Q, _V), "second partial of tau by a step of q, then by v"),
        "dM_dq": (("kg m2, kg m, kg", _Q), "second partial of tau by dv, then by a step of q: that of the mass matrix"),
    }
    return _tensors(robot, tensors)


def _forward_outputs(robot, order, options):
    dv, by_mass = "rad/s2, m/s2", "1/(kg m2), 1/(kg m), 1/kg"
    tensors = {
        "d2dv_dqdq": ((dv, _Q, _Q), "second partial of dv by a step of q and another one"),
        "d2dv_dvdv": ((dv, _V, _V), "second partial of dv by v twice"),
        "d2dv_dqdv": ((dv, _Q, _V), "second partial of dv by a step of q, then by v"),
        "dMinv_dq": (
            (by_mass, _Q),
            "second partial of dv by tau, then by a step of q: that of the inverse mass matrix",
        ),
    }
    return _tensors(robot, tensors)


def _inverse_call(function, model, order, ports, options):
    W = [ports["w_ext"]] if options["external_wrenches"] else None
    qq, vv, qv, dM = function(model, order, ports["q"], [ports["v"], ports["dv"]], W)[0]
    if options["friction"]:
        vv = vv + _friction(model.robot)(ports["v"])[2]
    return {"d2tau_dqdq": qq, "d2tau_dvdv": vv, "d2tau_dqdv": qv, "dM_dq": dM}


def _forward_call(function, model, order, ports, options):
    q, v, tau, nv = ports["q"], ports["v"], ports["tau"], model.robot.nv
    W = [ports["w_ext"]] if options["external_wrenches"] else None
    if not options["friction"]:
        qq, vv, qv, dMinv, _ = function(model, order, q, v, [tau], W)[0]
    else:  # the torques that are left depend on v, and the accelerations on them linearly
        torque, slope, bend = _friction(model.robot)(v)
        qq, vv, qv, dMinv, Minv = function(model, order, q, v, [tau - torque], W)[0]
        pages = ca.horzsplit(dMinv, 1)
        by_q = [ca.reshape(page, nv, nv) @ slope for page in pages]  # (i, k) of page j
        qv = qv - ca.vertcat(*by_q)
        vv = vv - ca.reshape(Minv @ ca.reshape(bend, nv, nv * nv), nv * nv, nv)
    return {"d2dv_dqdq": qq, "d2dv_dvdv": vv, "d2dv_dqdv": qv, "dMinv_dq": dMinv}


def _friction(robot):
    """casadi.Function v -> (friction torques, their Jacobian, second partials)."""
    v = ca.SX.sym("v", robot.nv)
    torque = friction_torques(robot, [v])[0]
    slope = ca.jacobian(torque, v)
    return ca.Function("friction", [v], [torque, slope, ca.jacobian(ca.vec(ca.densify(slope)), v)])


def _hybrid_inputs(robot, order, options):
    return get("hybrid_dynamics").inputs(robot, 0, options)


def _hybrid_outputs(robot, order, options):
    inputs = {p.name: (p, rows) for p, rows in sized(robot, _hybrid_inputs(robot, order, options))}
    found = [p for p in get("hybrid_dynamics").outputs(robot, 0, options) if p.name in ("tau_p", "dv_f")]
    return [
        Port(
            f"d2{y.name}_d{a}d{b}",
            (y.shape[0] * inputs[a][1], nv(robot)),
            quotient_unit(y.unit, *(step_unit(inputs[x][0]) for x in (a, b))),
            f"second partial of {y.name} by {step(inputs[a][0])}, then by {step(inputs[b][0])}; (i, j, k) at row i + "
            f"j times the rows of {y.name}, column k",
        )
        for y in found
        for a, b in HYBRID_PAIRS
    ]


def _hybrid_call(function, model, order, ports, options):
    found = function(given_hybrid(model, 0, ports, options))
    return {f"d2{y}_d{a}d{b}": x for y, of in zip(("dv_f", "tau_p"), found, strict=True) for (a, b), x in of.items()}


HYBRID_PAIRS = (("q", "q"), ("v", "v"), ("q", "v"), ("dv_p", "q"), ("tau_f", "q"))
_COMMUTE = "By q twice it is symmetric but within a spherical, planar or free joint, whose directions do not commute."

quantity(
    name="inverse_dynamics_second_partials",
    summary="second partial derivatives of the joint torques by q, v and dv",
    inputs=_inverse_inputs,
    outputs=_inverse_outputs,
    call=_inverse_call,
    options=("external_wrenches", "friction"),
    max_order=0,
    default=("composite", "ad_pure"),
    sparse=True,
    equation="d2tau_dqdv[i, j, k] = d2 tau_i / (dq_j dv_k), ...; by q: by steps e of q (+) e, one after the other",
    notes=(_COMMUTE,),
)
quantity(
    name="forward_dynamics_second_partials",
    summary="second partial derivatives of the joint accelerations by q, v and tau",
    inputs=_forward_inputs,
    outputs=_forward_outputs,
    call=_forward_call,
    solves=lambda robot, options: (),
    options=("external_wrenches", "friction"),
    max_order=0,
    default=("composite", "ad"),
    sparse=True,
    equation="d2dv_dqdv[i, j, k] = d2 dv_i / (dq_j dv_k), ...; by q: by steps e of q (+) e, one after the other",
    notes=(_COMMUTE,),
)

quantity(
    name="hybrid_dynamics_second_partials",
    summary="second partial derivatives of the torques of prescribed joints and of the accelerations of the others",
    inputs=_hybrid_inputs,
    outputs=_hybrid_outputs,
    call=_hybrid_call,
    default=("composite", "ad_via_inverse"),
    max_order=0,
    **HYBRID,
    equation="d2dv_f_dqdv[i, j, k] = d2 dv_f_i / (dq_j dv_k), ...; by q: by steps e of q (+) e, one after the other",
    notes=(_COMMUTE,),
)

from . import (  # noqa: E402  registers the methods
    by_ad,
    chain_rule,
    compact,
    composite,
    forward_chain_rule,
    forward_composite,
    forward_spatial_vector,
    hybrid,
    numeric,
    spatial_vector,
)
