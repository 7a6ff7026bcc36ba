"""The quantities of a scene: distances of its pairs of shapes, and their derivatives."""

from __future__ import annotations

import casadi as ca

from .. import robots
from ..errors import ShapeError
from ..ports import Size, configuration_port, nv, quotient_unit
from ..registry import Port, quantity
from .scene import Scene
from .shapes import HalfSpace, Sphere


def _inputs(robot, order, options):
    scene = options["scene"]
    for item in scene.items:
        if item.link is not None:
            robot.frame(item.link)
    shapes = {x.name: x.shape for x in scene.items}
    for a, b in scene.pairs:
        if isinstance(shapes[a], HalfSpace) and isinstance(shapes[b], HalfSpace):
            raise ShapeError(
                f"distances: {a!r} and {b!r} are both half-spaces, which have no distance; "
                f"leave the pair out: scene.leave_out(({a!r}, {b!r}))"
            )
    ports = [configuration_port(robot)]
    if scene.moving:
        meaning = f"homogeneous matrices in the root frame, side by side, of {', '.join(scene.moving)}"
        ports.append(Port("poses", (4, Size(4, "4") * Size(len(scene.moving), "moving")), "1, m", meaning))
    if scene.timed:
        ports.append(Port("t", (1, 1), "s", "time at which shapes are where their Functions of the time say"))
    return ports


def _names(scene):
    return tuple(f"{a} - {b}" for a, b in scene.pairs)


def _pairs(options):
    return Size(len(options["scene"].pairs), "pairs")


def _outputs(robot, order, options):
    meaning = "distance of each pair; below 0 minus the depth of penetration, see Notes"
    ports = [Port("d", (_pairs(options), 1), "m", meaning, _names(options["scene"]))]
    if options["witnesses"]:
        said = "nearest point on shape {} of each pair, in the root frame"
        ports += [Port(f"p_{x}", (3, _pairs(options)), "m", said.format(x)) for x in "ab"]
    return ports


def _partial_outputs(robot, order, options):
    meaning = "partial derivative of d by a step on the tangent space of q"
    return [
        Port("dd_dq", (_pairs(options), nv(robot)), quotient_unit("m", "rad, m"), meaning, _names(options["scene"]))
    ]


def _multiplied(robot, order, options):
    meaning = "multipliers of d, such that the sum of products is a number"
    lam = Port("lam_d", (_pairs(options), 1), "1/m", meaning, _names(options["scene"]))
    q, *others = _inputs(robot, order, options)
    return [q, lam, *others]


def _adjoint_outputs(robot, order, options):
    meaning = "gradient of lam_d' d by a step on the tangent space of q"
    return [Port("adj_q", (nv(robot), 1), quotient_unit("1", "rad, m"), meaning, robot.velocity_names)]


def _hessian_outputs(robot, order, options):
    meaning = "second derivatives of lam_d' d by a step on the tangent space of q: full and symmetric"
    names = tuple(f"q {x}" for x in robot.velocity_names)
    return [Port("H", (nv(robot), nv(robot)), "1/(units of row and column)", meaning, names)]


def _given(ports, options):
    return options["scene"], ports["q"], ports.get("poses"), ports.get("t")


def _call(function, model, order, ports, options):
    found = function(model, *_given(ports, options), options["witnesses"])
    out = {"d": ca.vertcat(ca.SX(0, 1), *(x[0] for x in found))}
    if options["witnesses"]:
        out |= {f"p_{x}": ca.horzcat(ca.SX(3, 0), *(y[k] for y in found)) for k, x in ((1, "a"), (2, "b"))}
    return out


def _call_partials(function, model, order, ports, options):
    return {"dd_dq": ca.vertcat(ca.SX(0, model.robot.nv), *function(model, *_given(ports, options)))}


def _call_adjoint(function, model, order, ports, options):
    return {"adj_q": function(model, *_given(ports, options), ports["lam_d"])}


def _call_hessian(function, model, order, ports, options):
    return {"H": function(model, *_given(ports, options), ports["lam_d"])}


def example(robot):
    """(robot, options) for od.describe: balls on the last frame and at the root, above the ground."""
    robot = robot or robots.planar_2r()
    scene = Scene().attach("tip", list(robot.frames)[-1], Sphere(0.05))
    return robot, {"scene": scene.add("ground", HalfSpace((0, 0, 1), -0.5)).add("ball", Sphere(0.1))}


_SHARED = {
    "max_order": 0,
    "default": ("by_kind",),
    "own_derivatives": True,
    "same_in_fluid": True,
    "example": example,
    "errors": (
        "ShapeError: scene is no od.Scene; a pair of half-spaces; a method that cannot do a pair, which it names",
        "UnknownName: a shape on a link, or frame, that the robot does not have",
    ),
}
_SIGN = (
    "Below 0, d is minus the depth of penetration: exact for spheres, capsules and half-spaces; of other shapes that "
    "of a local optimum, which is never less deep than the true one."
)
_SMOOTH = (
    "Closed forms are exact to rounding, smooth_support is never above the distance; docs/distances.md has bounds."
)
_STEP = "q (+) e is robot.integrate(q, e): a step e on the tangent space has nv entries, body axes in free joints."
_MARGINS = "Margins of the shapes are not taken off: scene.margins has them."

quantity(
    name="distances",
    summary="distances of the pairs of shapes of a scene, and their nearest points",
    inputs=_inputs,
    outputs=_outputs,
    call=_call,
    options=("scene", "witnesses"),
    equation="d = min |x_b - x_a| over x_a, x_b in the shapes a, b of a pair",
    notes=(_SIGN, _SMOOTH, _MARGINS),
    **_SHARED,
)
quantity(
    name="distances_partials",
    summary="partial derivatives of the distances of pairs of shapes by configuration",
    inputs=_inputs,
    outputs=_partial_outputs,
    call=_call_partials,
    options=("scene",),
    equation="dd_dq = d d(q (+) e) / de at e = 0",
    notes=(_STEP,),
    **_SHARED,
)
quantity(
    name="distances_adjoint",
    summary="gradient of lam_d' d by configuration",
    inputs=_multiplied,
    outputs=_adjoint_outputs,
    call=_call_adjoint,
    options=("scene",),
    equation="adj_q = d (lam_d^T d) / de at q (+) e, e = 0 = dd_dq^T lam_d",
    notes=(_STEP,),
    **_SHARED,
)
quantity(
    name="distances_lagrangian_hessian",
    summary="second derivatives of lam_d' d by configuration: what an optimiser needs of the distances",
    inputs=_multiplied,
    outputs=_hessian_outputs,
    call=_call_hessian,
    options=("scene",),
    equation="H = d2 (lam_d^T d) / de2 at q (+) e, e = 0",
    notes=(
        _STEP,
        "By e twice it is the symmetric part of steps one after the other, which do not commute in every joint.",
    ),
    **{**_SHARED, "default": ("by_kind", "ad_of_adjoint")},
)
