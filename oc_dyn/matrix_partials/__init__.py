"""Partial derivatives of the matrices of the equations of motion, by state and by inertial parameters.

The derivative of an (n, m) matrix by k numbers is an (n m, k) matrix: entry (i, j) of the matrix is row i + n j.
C is the Coriolis matrix that the option coriolis names: that of Christoffel symbols, as by default of coriolis_matrix,
or "garofalo". By q means by a step e of q (+) e on the tangent space.
"""

from ..ports import motion_ports
from ..registry import CORIOLIS, Port, quantity


def _inputs(robot, order, options):
    return motion_ports(robot, 0)


def _outputs(matrices, by, columns):
    def outputs(robot, order, options):
        nv = robot.nv
        rows = {"M": nv * nv, "C": nv * nv, "g": nv}
        note = {"C": f"; C: {CORIOLIS[_coriolis(options)][0]}"}
        return [
            Port(f"d{x}_d{y}", (rows[x], columns(robot)), "", f"partial derivative of {x} by {by[y]}{note.get(x, '')}")
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
    outputs=_outputs(_STATE, {"q": "a step on the tangent space of q", "v": "v"}, lambda robot: robot.nv),
    call=_call(("dM_dq", "dC_dq", "dC_dv", "dg_dq")),
    options=("coriolis",),
    max_order=0,
    default=("jacobian_sum", "ad"),
    sparse=True,
)
quantity(
    name="matrix_parameter_partials",
    summary="partial derivatives of M, C and g by the inertial parameters, columns as robot.parameters",
    inputs=_inputs,
    outputs=_outputs(_PARAMETERS, {"params": "the inertial parameters"}, lambda robot: 10 * len(robot.bodies)),
    call=_call(("dM_dparams", "dC_dparams", "dg_dparams")),
    options=("coriolis",),
    max_order=0,
    default=("jacobian_sum",),
    sparse=True,
)

from . import by_ad, jacobian_sum  # noqa: E402, F401  registers the methods
