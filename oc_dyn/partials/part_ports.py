"""Ports that partials, adjoints and Lagrangian Hessians have, of whatever dynamics.

inputs, products: functions (robot, order, options) -> ports of the quantity; [(name of its multipliers, port)] of what
is multiplied.
"""

from typing import Any

import casadi as ca

from ..ports import nv, quotient_unit, step, step_unit
from ..registry import Port

OPTIONS: dict[str, Any] = {"options": ("external_wrenches", "friction", "gravity"), "sparse": True}
STEP = "q (+) e is robot.integrate(q, e): a step e on the tangent space has nv entries, body axes in free joints."
SEEN_STEP = "With representation, e is a step in it, too: along a motion dtau = dtau_dq v + dtau_dv dv + dtau_ddv d2v."
SYMMETRIC = "By e twice it is the symmetric part of steps one after the other, which do not commute in every joint."


def sized(robot, ports):
    """[(port, rows of a change of it)]."""
    return [(p, nv(robot) if p.name == "q" else p.shape[0]) for p in ports]


def without_wrenches(ports):
    """Ports that derivatives are taken by."""
    return [p for p in ports if not p.name.endswith("w_ext")]


def numbered(ports):
    """[("lam" of the first one, then lam_NAME, port)]."""
    return [("lam" if k == 0 else f"lam_{p.name}", p) for k, p in enumerate(ports)]


def multiplied(inputs, products):
    """inputs with the multipliers of products before the wrenches."""

    def with_multipliers(robot, order, options):
        given = inputs(robot, order, options)
        free = without_wrenches(given)
        lams = [
            Port(
                name,
                p.shape,
                quotient_unit("1", p.unit),
                f"multipliers of {p.name}, such that the sum of products is a number",
                p.rows,
            )
            for name, p in products(robot, order, options)
        ]
        return [*free, *lams, *given[len(free) :]]

    return with_multipliers


def adjoint_outputs(inputs, products):
    """adj_x by every port x of inputs but wrenches."""

    def outputs(robot, order, options):
        terms = " + ".join(f"{name}' {p.name}" for name, p in products(robot, order, options))
        return [
            Port(
                f"adj_{x.name}",
                (rows, 1),
                quotient_unit("1", step_unit(x)),
                f"gradient of {terms} by {step(x)}",
                robot.velocity_names if x.name == "q" else x.rows,
            )
            for x, rows in sized(robot, without_wrenches(inputs(robot, order, options)))
        ]

    return outputs


def rows_of_arguments(robot, ports):
    """Names of the rows of all that derivatives are taken by, one after the other: "q joint1", ..., "v joint1", ..."""
    names = [(x.name, robot.velocity_names if x.name == "q" else x.rows) for x in without_wrenches(ports)]
    return tuple(f"{x} {y}" for x, rows in names for y in rows)


def hessian_outputs(inputs):
    """H by all ports of inputs but wrenches."""

    def outputs(robot, order, options):
        given = inputs(robot, order, options)
        by = [x.name for x in without_wrenches(given)]
        n = (order + 3) * nv(robot)
        meaning = (
            f"second derivatives of the products with the multipliers by a step on the tangent space of q, by "
            f"{', '.join(by[1:])}, in this order: full and symmetric"
        )
        return [Port("H", (n, n), "1/(units of row and column)", meaning, rows_of_arguments(robot, given))]

    return outputs


def product_ports(inputs, products):
    """(inputs, outputs) of the product of the Lagrangian Hessian with a vector z: z after the multipliers; Hz."""
    with_multipliers = multiplied(inputs, products)

    def entries(robot, order, options, name, unit, meaning):
        rows = rows_of_arguments(robot, inputs(robot, order, options))
        return Port(name, ((order + 3) * nv(robot), 1), unit, f"{meaning}, rows as those of H", rows)

    def with_vector(robot, order, options):
        given = with_multipliers(robot, order, options)
        free = without_wrenches(given)
        z = entries(robot, order, options, "z", "units of rows", "vector that H is multiplied with, a direction")
        return [*free, z, *given[len(free) :]]

    def outputs(robot, order, options):
        return [entries(robot, order, options, "Hz", "1/(units of rows)", "product of H with z")]

    return with_vector, outputs


def symmetric(H, count, nv):
    """Matrix of count x count blocks from those on and above the diagonal."""
    zero = ca.SX(nv, nv)
    full = {**{(j, i): x.T for (i, j), x in H.items()}, **H}
    return ca.blockcat([[full.get((i, j), zero) for j in range(count)] for i in range(count)])
