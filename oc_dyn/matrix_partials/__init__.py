"""Partial derivatives of the matrices of the equations of motion, by state and by inertial parameters.

The derivative of an (n, m) matrix by k numbers is an (n m, k) matrix: entry (i, j) of the matrix is row i + n j.
C is the Coriolis matrix that the option coriolis names: that of Christoffel symbols, as by default of coriolis_matrix,
or "garofalo". By q means by a step e of q (+) e on the tangent space.
"""

from ..ports import PARAMETER_UNITS, bodies, motion_ports, nv, quotient_unit
from ..registry import CORIOLIS, Port, quantity


def _inputs(robot, order, options):
    return motion_ports(robot, 0)


_UNITS = {"M": "kg m2, kg m, kg", "C": "kg m2/s, kg m/s, kg/s", "g": "Nm, N"}
_UNITS |= {"q": "rad, m", "v": "rad/s, m/s", "params": PARAMETER_UNITS["inertia"]}


def _outputs(matrices, by, columns):
    def outputs(robot, order, options):
        n = nv(robot)
        rows = {"M": n * n, "C": n * n, "g": n}
        stored = ", entry (i, j) at row i + nv j"
        note = {"M": stored, "C": f"{stored}; C: {CORIOLIS[_coriolis(options)][0]}", "g": ""}
        return [
            Port(
                f"d{x}_d{y}",
                (rows[x], columns(robot)),
                quotient_unit(_UNITS[x], _UNITS[y]),
                f"partial derivative of {x} by {by[y]}{note[x]}",
            )
            for x, y in matrices
        ]

    return outputs


def _call(names):
    def call(function, model, order, ports, options):
        return dict(zip(names, function(model, ports["q"], ports["v"], _coriolis(options)), strict=True))

    return call


def _coriolis(options):
    return options["coriolis"] or "christoffel"


_STATE = (("M", "q"), ("C", "q"), ("C", "v"), ("g", "q"))
_PARAMETERS = (("M", "params"), ("C", "params"), ("g", "params"))

quantity(
    name="matrix_partials",
    summary="partial derivatives of M, C and g by configuration (on the tangent space) and velocity",
    inputs=_inputs,
    outputs=_outputs(_STATE, {"q": "a step on the tangent space of q", "v": "v"}, nv),
    call=_call(("dM_dq", "dC_dq", "dC_dv", "dg_dq")),
    options=("coriolis",),
    max_order=0,
    default=("jacobian_sum", "ad"),
    sparse=True,
    equation="dM_dq = d vec(M(q (+) e)) / de at e = 0, likewise C and g; dC_dv = d vec(C) / dv",
)
quantity(
    name="matrix_parameter_partials",
    summary="partial derivatives of M, C and g by the inertial parameters, columns as robot.parameters",
    inputs=_inputs,
    outputs=_outputs(_PARAMETERS, {"params": "the inertial parameters"}, lambda robot: 10 * bodies(robot)),
    call=_call(("dM_dparams", "dC_dparams", "dg_dparams")),
    options=("coriolis",),
    max_order=0,
    default=("jacobian_sum",),
    sparse=True,
    equation="dM_dparams = d vec(M) / d params, likewise C and g, which are linear in them: g = dg_dparams params",
    notes=("Columns are those of robot.parameter_names; armature, which is in M, is not among them.",),
)

from . import by_ad, jacobian_sum  # noqa: E402  registers the methods
