"""Regressors: matrices that give the joint torques from the inertial parameters, which enter them linearly.

Columns: 10 for each moving body, in the order of robot.parameters and robot.parameter_names. They belong to links and
all that is fixed to them. Armature and friction are not among them: Y @ robot.parameters is what inverse dynamics says
of the robot without either, and armature * dv adds to it. The option columns=("inertia", "armature", "viscous") of
joint_torque_regressor, or some of these, appends one column a velocity for each of the last two: robot.parameter_rows
and robot.parameter_values of the same parts name and multiply them.
"""

import casadi as ca

from ..model.parameters import checked_parts
from ..ports import (
    derivative_name,
    derivative_unit,
    motion_ports,
    nv,
    parameter_unit,
    parameters,
    quotient_unit,
    reference_ports,
)
from ..registry import Port, quantity


def _regressor_ports(name):
    def outputs(robot, order, options):
        parts = _parts(options)
        shape = (nv(robot), parameters(robot, parts))
        meaning = f"torques of unit parameters; columns are robot.parameter_rows({parts})"
        return [
            Port(
                derivative_name(name, k),
                shape,
                quotient_unit(derivative_unit("Nm, N", k), parameter_unit(parts)),
                f"time derivative {k} of {name}" if k else meaning,
            )
            for k in range(order + 1)
        ]

    return outputs


def _parts(options):
    return checked_parts("regressor: columns", options.get("columns") or "symbolic")


def _torque_inputs(robot, order, options):
    return motion_ports(robot, order + 1)


def _call_torque(function, model, order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(order + 2)]
    parts = _parts(options)
    inertia = function(model, order, ports["q"], V) if "inertia" in parts else [None] * (order + 1)
    of = [{"inertia": x, "armature": ca.diag(V[k + 1]), "viscous": ca.diag(V[k])} for k, x in enumerate(inertia)]
    return {derivative_name("Y", k): ca.horzcat(*(x[part] for part in parts)) for k, x in enumerate(of)}


def _reference_inputs(robot, order, options):
    return [*motion_ports(robot, order), *reference_ports(robot, order + 1)]


def _call_reference(function, model, order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(order + 1)]
    Vr = [ports[derivative_name("vr", k)] for k in range(order + 2)]
    found = function(model, order, ports["q"], V, Vr, options["coriolis"] or "christoffel")
    return {derivative_name("Ys", k): x for k, x in enumerate(found)}


quantity(
    name="joint_torque_regressor",
    summary="matrix Y(q, v, dv) with joint torques Y @ robot.parameters, its time derivatives; on request columns for "
    "armature and viscous friction",
    inputs=_torque_inputs,
    outputs=_regressor_ports("Y"),
    call=_call_torque,
    options=("columns",),
    default=("recursive",),
    sparse=True,
    equation="tau = Y(q, v, dv) params, tau that of inverse_dynamics without armature and friction; columns of "
    "armature are diag(dv), of viscous diag(v)",
)
quantity(
    name="slotine_li_regressor",
    summary="matrix Ys with M dvr + C vr + g = Ys @ robot.parameters for a reference velocity vr, and its time "
    "derivatives; C is that of Christoffel symbols, as by default of coriolis_matrix, or that of the option coriolis, "
    "both admissible; armature not included",
    inputs=_reference_inputs,
    outputs=_regressor_ports("Ys"),
    call=_call_reference,
    options=("coriolis",),
    default=("recursive",),
    sparse=True,
    equation="M(q) dvr + C(q, v) vr + g(q) = Ys(q, v, vr, dvr) params, M without armature",
)

from . import by_ad, jacobian_sum, recursive  # noqa: E402  registers the methods
