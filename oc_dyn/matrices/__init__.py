"""Matrices of the equations of motion tau = M(q) dv + C(q, v) v + g(q).

Many matrices C have the same C v; registry.CORIOLIS names those on offer, and every method says which it gives.
"""

from math import comb

from ..lie.jets import total
from ..ports import configuration_port, derivative_name, motion_ports
from ..registry import Port, quantity


def _at_configuration(robot, order, options):
    """q, and for the derivatives v .. d{order - 1}v."""
    return [configuration_port(robot)] + (motion_ports(robot, order - 1)[1:] if order else [])


def _at_state(robot, order, options):
    """q, v .. d{order}v."""
    return motion_ports(robot, order)


def _outputs(name, columns, unit, meaning):
    def outputs(robot, order, options):
        return [
            Port(
                derivative_name(name, k),
                (robot.nv, columns(robot)),
                unit,
                f"time derivative {k} of {name}" if k else meaning,
            )
            for k in range(order + 1)
        ]

    return outputs


def _call(name):
    def call(function, model, order, ports, options):
        found = function(model, order, ports["q"], _velocities(ports))
        return {derivative_name(name, k): x for k, x in enumerate(found)}

    return call


def _square(robot):
    return robot.nv


def _vector(robot):
    return 1


def _coriolis_torques(order, ports, outputs):
    """Derivatives of C v: what Coriolis matrices must agree on."""
    C = [outputs[derivative_name("C", k)] for k in range(order + 1)]
    v = [ports[derivative_name("v", k)] for k in range(order + 1)]
    return {
        f"derivative {n} of C v": total(comb(n, k) * (C[n - k] @ v[k]) for k in range(n + 1)) for n in range(order + 1)
    }


def _coefficient_ports(robot, order, options):
    return [Port(f"P{k}", (robot.nv, robot.nv), _unit(order + 2 - k), _meaning(k, order)) for k in range(1, order + 3)]


def _unit(power):
    over = {0: "", 1: "/s"}.get(power, f"/s{power}")
    return f"kg m2{over}, kg m{over}, kg{over}"


def _meaning(k, order):
    what = "v" if k == 1 else f"time derivative {k - 1} of v"
    note = {1: f": the derivative of C, {_WHICH}", order + 2: ": the mass matrix"}.get(k, "")
    return f"coefficient of the {what}{note}"


def _call_coefficients(function, model, order, ports, options):
    return {f"P{k}": x for k, x in enumerate(function(model, order, ports["q"], _velocities(ports)), 1)}


def _velocities(ports):
    """[v, dv, ...] of those that are there."""
    return [ports[derivative_name("v", k)] for k in range(len(ports) - 1)]


def _torque_derivative(order, ports, outputs):
    """M, and the part of the torques' derivative without the highest one of v."""
    v = [ports[derivative_name("v", k)] for k in range(order + 1)]
    return {
        "last": outputs[f"P{order + 2}"],
        "sum of the rest": total(outputs[f"P{k}"] @ v[k - 1] for k in range(1, order + 2)),
    }


_M = _outputs("M", _square, "kg m2, kg m, kg", "mass matrix")
_WHICH = "of Christoffel symbols, unless method or option coriolis say otherwise"
_C = _outputs("C", _square, "kg m2/s, kg m/s, kg/s", f"Coriolis matrix {_WHICH}")
_G = _outputs("g", _vector, "Nm, N", "torques against gravity; wrench [moment; force] of a free joint")


def _all_outputs(robot, order, options):
    return [p for outputs in (_M, _C, _G) for p in outputs(robot, order, options)]


def _call_all(function, model, order, ports, options):
    found = zip("MCg", function(model, order, ports["q"], _velocities(ports)), strict=True)
    return {derivative_name(name, k): x for name, values in found for k, x in enumerate(values)}


def _all_that_is_unique(order, ports, outputs):
    names = [derivative_name(x, k) for x in "Mg" for k in range(order + 1)]
    return {n: outputs[n] for n in names} | _coriolis_torques(order, ports, outputs)


quantity(
    name="mass_matrix",
    summary="joint-space mass matrix, full and symmetric, and its time derivatives along a motion",
    inputs=_at_configuration,
    outputs=_M,
    call=_call("M"),
    options=("parameters",),
    default=("composite", "ad_composite"),
)
quantity(
    name="coriolis_matrix",
    summary="a matrix C(q, v) with C v the Coriolis and centrifugal torques, and its time derivatives; of Christoffel "
    "symbols unless method or option coriolis say otherwise, and admissible, dM/dt = C + C^T, but for kumar_mueller",
    inputs=_at_state,
    outputs=_C,
    call=_call("C"),
    options=("coriolis",),
    compare=_coriolis_torques,
    default=("composite", "ad_composite"),
)
quantity(
    name="gravity",
    summary="joint torques that hold the robot against gravity, and their time derivatives along a motion",
    inputs=_at_configuration,
    outputs=_G,
    call=_call("g"),
    options=("parameters",),
    default=("ad",),
)
quantity(
    name="bias",
    summary="joint torques C v + g of a motion without acceleration, gravity included, and their time derivatives",
    inputs=_at_state,
    outputs=_outputs("h", _vector, "Nm, N", "bias torques C v + g; wrench [moment; force] of a free joint"),
    call=_call("h"),
    options=("parameters",),
    default=("ad",),
)
quantity(
    name="eom_coefficients",
    summary="matrices P_k of the derivative of the torques: tau^(n) - g^(n) = P_1 v + P_2 dv + ... + P_{n+2} d{n+1}v",
    inputs=_at_state,
    outputs=_coefficient_ports,
    call=_call_coefficients,
    options=("coriolis",),
    compare=_torque_derivative,
    default=("ad",),
)

quantity(
    name="dynamic_matrices",
    summary="mass matrix, admissible Coriolis matrix and gravity torques in one Function, and their time derivatives",
    inputs=_at_state,
    outputs=_all_outputs,
    call=_call_all,
    options=("coriolis",),
    compare=_all_that_is_unique,
    default=("composite",),
)

from . import (  # noqa: E402, F401  registers the methods
    by_ad,
    closed_form,
    composite,
    composite_coriolis,
    dynamic_matrices,
    jacobian_sum,
    spatial_admissible,
)
