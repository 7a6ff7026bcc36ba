"""Quantities: products of Lagrangian Hessians with a vector, without the Hessian, and their methods."""

from typing import Any

import casadi as ca

from ..model.robot import tangent_map
from ..ports import derivative_name, torque_ports
from ..registry import get, method, quantity
from ..subexpressions import merged
from ..working_axes.assembly import velocity_brackets
from .by_ad import inverse_adjoint_method, inverse_gradient_at_step, solved_gradient_at_step
from .composite import CANNOT
from .composite_adjoint import adjoint, adjoint_along_motion
from .friction_terms import friction_curvature
from .hessian_product import product
from .order_by_order import multiplied_at, on_symbols, tangent
from .part_ports import OPTIONS, STEP, SYMMETRIC, numbered, product_ports
from .recursive_scalar import inverse_adjoint as recursive_adjoint
from .solved import forward_lams, forward_products, given_forward

_INVERSE, _FORWARD = (f"{x}_dynamics_lagrangian_hessian_product" for x in ("inverse", "forward"))


def _inverse_inputs(robot, order, options):
    return get("inverse_dynamics").inputs(robot, order, options)


def _torques(robot, order, options):
    return numbered(torque_ports(robot, order))


def _call_inverse(function, model, order, ports, options):
    V = [ports[derivative_name("v", k)] for k in range(order + 2)]
    lams = [ports["lam"], *(ports[f"lam_{derivative_name('tau', k)}"] for k in range(1, order + 1))]
    W = [ports[derivative_name("w_ext", k)] for k in range(order + 1)] if options["external_wrenches"] else None
    z = ca.vertsplit(ports["z"], model.robot.nv)
    return {"Hz": ca.vertcat(*_with_friction(function, model, order, ports["q"], V, lams, z, W, options["friction"]))}


def _with_friction(function, model, order, q, V, lams, z, W, friction):
    """[by q, v, dv, ...] of a method, and what friction adds."""
    found = list(function(model, order, q, V, lams, z, W))
    if friction:
        for (i, j), x in friction_curvature(model.robot, V[: order + 1], lams).items():
            found[i + 1] = found[i + 1] + x @ z[j + 1]
            if i != j:
                found[j + 1] = found[j + 1] + x.T @ z[i + 1]
    return found


def _call_forward(function, model, order, ports, options):
    given = given_forward(model, order, ports, options)
    z = ca.vertsplit(ports["z"], model.robot.nv)
    return {"Hz": ca.vertcat(*function(given, forward_lams(order, ports), z))}


for _name, _of, _inputs, _products, _call, _default, _more in (
    (_INVERSE, "tau + lam_dtau' dtau", _inverse_inputs, _torques, _call_inverse, ("composite", "ad"), {}),
    (
        _FORWARD,
        "dv + lam_d2v' d2v",
        None,
        forward_products,
        _call_forward,
        ("ad_via_inverse",),
        {"solves": lambda robot, options: ()},
    ),
):
    _what = _name.removesuffix("_lagrangian_hessian_product")
    _ports = product_ports(_inputs or get(_what).inputs, _products)
    quantity(
        name=_name,
        summary=f"product of the second derivatives of lam' {_of} + ... with a vector, at the cost of a few gradients",
        inputs=_ports[0],
        outputs=_ports[1],
        call=_call,
        default=_default,
        **OPTIONS,
        **_more,
        equation=f"Hz = H z, H as {_what}_lagrangian_hessian has it",
        notes=(STEP, SYMMETRIC),
    )

_FACTS: dict[str, Any] = {"kind": "analytic", "cannot": CANNOT, "regroup": True}
_OF_ADJOINT = "AD: jtimes of the analytic adjoint"


@method(
    _INVERSE,
    "composite",
    source="this toolkit: derivative of the adjoint's recursion along a vector, forward over reverse",
    max_order=0,
    **_FACTS,
)
def composite(model, order, q, V, lams, z, W=None):
    """[by q, v, dv]; see od.describe("inverse_dynamics_lagrangian_hessian_product"). Cost O(n)."""
    return product(model, q, *V, *lams, z, W and W[0])


@method(
    _INVERSE,
    "composite_along_motion",
    source="this toolkit: jtimes of the adjoint by sums over subtrees, of time derivatives along the motion",
    **_FACTS,
)
def along_motion(model, order, q, V, lams, z, W=None):
    """[by q, v, dv, ...]; see od.describe("inverse_dynamics_lagrangian_hessian_product")."""
    return _changes(model, q, V, z, adjoint_along_motion(model, order, q, V, lams, W))


@method(
    _INVERSE,
    "ad_of_adjoint",
    kind="ad",
    source=_OF_ADJOINT + ", by sums over subtrees or, for transform joints, by Kim's recursion",
    max_order=0,
    regroup=True,
)
def of_adjoint(model, order, q, V, lams, z, W=None):
    """[by q, v, dv]; see od.describe("inverse_dynamics_lagrangian_hessian_product")."""
    analytic = recursive_adjoint if "transform" in model.robot.features else adjoint
    return _changes(model, q, V, z, analytic(model, q, *V, *lams, W and W[0]))


@method(_INVERSE, "ad", kind="ad", source="AD: jtimes of the gradient of the method taylor", regroup=True)
def by_ad(model, order, q, V, lams, z, W=None):
    """[by q, v, dv, ...]; see od.describe("inverse_dynamics_lagrangian_hessian_product")."""
    step, gradient = inverse_gradient_at_step(model, order, q, V, lams, W)
    return _directional(gradient, [step, *V], z, step)


def _directional(gradient, arguments, z, step):
    found = ca.jtimes(merged(gradient), ca.vertcat(*arguments), ca.vertcat(*z))
    (found,) = ca.substitute([found], [step], [ca.DM.zeros(*step.shape)])
    ends = [0]
    for x in arguments:
        ends.append(ends[-1] + x.shape[0])
    return ca.vertsplit(found, ends)


def _changes(model, q, V, z, gradient):
    """Change of a gradient on the tangent space along z, its symmetric part: that by q less half of the gradient along
    the bracket of z and the step, which do not commute."""
    rates = ca.vertcat(tangent_map(model.robot, q) @ z[0], *z[1:])
    g = merged(ca.vertcat(*(ca.densify(x) for x in gradient)))
    by_q, *rest = ca.vertsplit(ca.jtimes(g, ca.vertcat(q, *V), rates), model.robot.nv)
    return [by_q - 0.5 * (velocity_brackets(model, z[0]).T @ gradient[0]), *rest]


# -- forward dynamics ------------------------------------------------------------------------------------------


def _solved(given, lams, z, adjoint, of_inverse):
    """[by q, v, tau, dtau, ...] from adjoint and product of inverse dynamics.

    Equation:  with F = sum of m' tau^(k) as of the adjoint, y the change of q and the motion along z, and m' the
               multipliers that keep F_v^(k+1) along z:  F_x,(q, v, ..) y + F_x at m'
    """
    model, order = given.model, given.order
    none = [ca.DM.zeros(0, 1)] * (order + 1)
    V = [given.v, *given.solved()[0]]
    first = multiplied_at(given, V, lams, none, adjoint)
    y = tangent(given, V, z)

    def changes(q, V, W, rest):
        lams, y = rest[: order + 1], rest[order + 1 :]
        return _with_friction(of_inverse, model, order, q, V, lams, y, W, given.friction)

    by_q, by_v, *by_a = on_symbols(given, V, changes, [*first.m, *y])
    again = multiplied_at(given, V, by_a, none, adjoint)
    return [by_q + again.gradient[0], by_v + again.gradient[1], *(-m for m in again.m)]


@method(
    _FORWARD,
    "composite",
    source="this toolkit: jtimes of the adjoint along the motion, solved for the accelerations order by order",
    **_FACTS,
)
def forward_composite(given, lams, z):
    """[by q, v, tau, dtau, ...]; see od.describe("forward_dynamics_lagrangian_hessian_product")."""
    return _solved(given, lams, z, adjoint_along_motion, along_motion)


@method(
    _FORWARD, "ad_via_inverse", kind="ad", source="AD of inverse dynamics, solved for the accelerations", regroup=True
)
def forward_via_inverse(given, lams, z):
    """[by q, v, tau, dtau, ...]; see od.describe("forward_dynamics_lagrangian_hessian_product")."""
    return _solved(given, lams, z, inverse_adjoint_method, by_ad)


@method(_FORWARD, "ad", kind="ad", source="AD: jtimes of the gradient of the method taylor", regroup=True)
def forward_by_ad(given, lams, z):
    """[by q, v, tau, dtau, ...]; see od.describe("forward_dynamics_lagrangian_hessian_product")."""
    n = given.order + 1

    def changes(at, more):
        lams, z = more[:n], more[n:]
        step, gradient = solved_gradient_at_step(at, [*lams, *[ca.DM.zeros(0, 1)] * n])
        return _directional(gradient, [step, at.v, *at.T], z, step)

    return given.at(changes, [*lams, *z])
