"""Quantities of a tree as those of a robot with loops: constraint embedding.

With v = G v_y of the closed tree, generalised forces are tau_y = G^T tau, the mass matrix is G^T M G, a Coriolis matrix
G^T (C G + M dG), and so on, with time derivatives by Leibniz' rule. Everything is first a Function of q of the tree and
the motion of the robot's own coordinates; then q is put in as the loops close it.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from ..errors import OrderError
from ..lie.leibniz import product_derivative
from ..matrices.closed_form import coefficients
from ..matrices.other_velocities import bias_in, coriolis_in, forces_in, mass_in, product
from ..model.loops import LoopRobot
from ..model.parameters import checked_parts
from ..ports import OF_MODEL, derivative_name
from ..registry import Port, get
from ..subexpressions import merged
from .implicit import motion

Jet = list[Any]  # of time derivatives


class Embedded:
    """What a quantity reads at q of the tree: `function` makes Functions of the tree, ports are those given.

    v: derivatives of the tree's velocities, G: of the matrix between, as many as there are of the robot's own.
    """

    def __init__(self, robot: LoopRobot, order: int, q: Any, ports: dict[str, Any], function: Any, options: Any):
        self.robot, self.order, self.q, self.ports, self.options = robot, order, q, ports, options
        self._function = function
        own: Jet = []
        while derivative_name("v", len(own)) in ports:
            own.append(ports[derivative_name("v", len(own))])
        self.own = own
        found = ca.Function.call(motion(robot, len(own), len(own)), [q, *own])
        self.v, self.G = found[: len(own)], found[len(own) :]
        self.others = {n: x for n, x in ports.items() if n.endswith("w_ext") or n in (*OF_MODEL, "poses", "t")}

    def of_tree(
        self, quantity: str, order: int | None = None, method: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """{port: value} of a quantity of the tree along the motion; more: options, and values of ports that are not
        of the motion."""
        order = self.order if order is None else order
        record = get(quantity)
        options = {k: x for k, x in self.options.items() if k in record.options}
        options |= {k: more.pop(k) for k in list(more) if k in record.options}
        parts = checked_parts("parameters", options.get("parameters"))
        others = self.others
        if "viscous" in parts and not options.get("friction"):  # the last part, of what has no friction in it
            options["parameters"] = tuple(x for x in parts if x != "viscous") or None
            others = others | {"params": others["params"][: -self.robot.tree.nv]}
        f = self._function(self.robot.tree, quantity, order=order, method=method, **options)
        given = {"q": self.q, **others, **{derivative_name("v", k): x for k, x in enumerate(self.v)}, **more}
        names = f.name_in()
        found = ca.Function.call(f, [given[n] for n in names])
        return dict(zip(f.name_out(), found, strict=True))

    def jet(self, found: dict[str, Any], name: str, order: int | None = None) -> Jet:
        """Derivatives of an output."""
        return [found[derivative_name(name, k)] for k in range((self.order if order is None else order) + 1)]


def _named(name: str, jet: Jet) -> dict[str, Any]:
    return {derivative_name(name, k): x for k, x in enumerate(jet)}


def _same(quantity: str):
    """Outputs as the tree has them: what depends on its motion alone."""

    def way(e: Embedded, method: str | None) -> dict[str, Any]:
        return e.of_tree(quantity, method=method)

    return way


def _forces(quantity: str, name: str):
    """G^T of rows that are generalised forces."""

    def way(e: Embedded, method: str | None) -> dict[str, Any]:
        x = e.jet(e.of_tree(quantity, method=method), name)
        return _named(name, forces_in(e.G, x, e.order))

    return way


def _columns(quantity: str, name: str):
    """Matrices whose columns belong to velocities, times G."""

    def way(e: Embedded, method: str | None) -> dict[str, Any]:
        return _named(name, product(e.jet(e.of_tree(quantity, method=method), name), e.G, e.order))

    return way


def mass(e: Embedded, order: int, method: str | None = None) -> Jet:
    """Derivatives of G^T M G."""
    M = e.jet(e.of_tree("mass_matrix", order, method), "M", order)
    return mass_in(e.G, M, order)


def _mass(e: Embedded, method: str | None) -> dict[str, Any]:
    return _named("M", mass(e, e.order, method))


def _coriolis(e: Embedded, method: str | None) -> dict[str, Any]:
    C = e.jet(e.of_tree("coriolis_matrix", method=method), "C")
    return _named("C", coriolis_in(e.G, C, e.jet(e.of_tree("mass_matrix"), "M"), e.order))


def _all_matrices(e: Embedded, method: str | None) -> dict[str, Any]:
    found = e.of_tree("dynamic_matrices", method=method)
    M, C, g = (e.jet(found, name) for name in "MCg")
    out = _named("M", mass_in(e.G, M, e.order)) | _named("C", coriolis_in(e.G, C, M, e.order))
    return out | _named("g", forces_in(e.G, g, e.order))


def _coefficients(e: Embedded, method: str | None) -> dict[str, Any]:
    del method
    M = e.jet(e.of_tree("mass_matrix"), "M")
    C = coriolis_in(e.G, e.jet(e.of_tree("coriolis_matrix"), "C"), M, e.order)
    whole = mass_in(e.G, M, e.order)
    return {f"P{k}": x for k, x in enumerate(coefficients(e.order, whole.__getitem__, C.__getitem__), 1)}


def _bias(e: Embedded, method: str | None) -> dict[str, Any]:
    h, M = e.jet(e.of_tree("bias", method=method), "h"), e.jet(e.of_tree("mass_matrix"), "M")
    return _named("h", bias_in(e.G, h, M, e.own, e.order))


def _reference(quantity: str, name: str):
    """G^T of generalised forces of a reference motion, which the tree has as G vr, G dvr + dG vr, ..."""

    def way(e: Embedded, method: str | None) -> dict[str, Any]:
        r = e.order
        vr = [e.ports[derivative_name("vr", k)] for k in range(r + 2)]
        given = {derivative_name("vr", k): product_derivative(e.G, vr, k) for k in range(r + 2)}
        x = e.jet(e.of_tree(quantity, method=method, **given), name)
        return _named(name, forces_in(e.G, x, r))

    return way


def _inverse(e: Embedded, method: str | None) -> dict[str, Any]:
    found = _forces("inverse_dynamics", "tau")(e, method)
    motors = e.options.get("motors")
    if motors is None:
        return found
    return _named("tau", motors.torques(e.G[: e.order + 1], e.jet(found, "tau"), e.ports.get("weights")))


def _distances_partials(e: Embedded, method: str | None) -> dict[str, Any]:
    return {"dd_dq": e.of_tree("distances_partials", method=method)["dd_dq"] @ e.G[0]}


def _distances_adjoint(e: Embedded, method: str | None) -> dict[str, Any]:
    found = e.of_tree("distances_adjoint", method=method, lam_d=e.ports["lam_d"])
    return {"adj_q": e.G[0].T @ found["adj_q"]}


WAYS: dict[str, Any] = {
    "distances": _same("distances"),
    "distances_partials": _distances_partials,
    "distances_adjoint": _distances_adjoint,
    "inverse_dynamics": _inverse,
    "gravity": _forces("gravity", "g"),
    "joint_torque_regressor": _forces("joint_torque_regressor", "Y"),
    "slotine_li_regressor": _reference("slotine_li_regressor", "Ys"),
    "slotine_li_torque": _reference("slotine_li_torque", "tau"),
    "mass_matrix": _mass,
    "coriolis_matrix": _coriolis,
    "bias": _bias,
    "dynamic_matrices": _all_matrices,
    "eom_coefficients": _coefficients,
    "frame_jacobian": _columns("frame_jacobian", "J"),
    "com_jacobian": _columns("com_jacobian", "J"),
    "centroidal_momentum_matrix": _columns("centroidal_momentum_matrix", "A"),
    **{x: _same(x) for x in ("frame_pose", "frame_twist", "kinetic_energy", "potential_energy", "momentum", "com")},
}
METHODS: dict[str, tuple[str, ...]] = {
    "eom_coefficients": ("embedding",)
}  # of quantities whose ways other modules register, the default one first


def way_of(quantity: str) -> Any:
    """What embeds a quantity; OrderError for one that is not embedded."""
    if quantity in WAYS:
        return WAYS[quantity]
    able = ", ".join(WAYS)
    raise OrderError(f"{quantity} is not there for robots with loops, take that of robot.tree; there are {able}")


def at_tree(
    robot: LoopRobot, quantity: str, order: int, method: str | None, inputs: list[Port], outputs: list[Port],
    options: dict[str, Any], function: Any,
) -> ca.Function:  # fmt: skip
    """casadi.Function of a quantity at q of the tree (port q_tree for q), the other ports as they are."""
    q = ca.SX.sym("q_tree", robot.tree.nq)
    ports = {p.name: ca.SX.sym(p.name, *p.shape) for p in inputs if p.name not in ("q", "q_guess")}
    found = way_of(quantity)(Embedded(robot, order, q, ports, function, options), method)
    values = merged([ca.densify(ca.SX(found[p.name])) for p in outputs])
    names = [p.name for p in outputs]
    return ca.Function(f"{quantity}_at_tree", [q, *ports.values()], values, ["q_tree", *ports], names)
