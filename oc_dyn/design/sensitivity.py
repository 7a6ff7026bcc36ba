"""od.sensitivity: derivatives of the dynamics by design parameters, where the motion may depend on them as well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import casadi as ca

from ..errors import OrderError, ShapeError, UnknownName
from ..function import checked_name
from ..hybrid_dynamics import prescribed_rows
from ..model.cache import cached
from ..model.quaternions import quaternions
from ..model.robot import Robot
from ..model.robot_function import RobotFunction
from ..partials import scalar_changes as kim
from ..registry import get
from ..subexpressions import merged
from .parameters import Parameter
from .tree import DesignTree

Symbols: TypeAlias = dict[str, ca.SX]  # by the name of a port

_OUTPUTS = {"inverse_dynamics": ("tau",), "forward_dynamics": ("dv",), "hybrid_dynamics": ("tau_p", "dv_f")}


def sensitivity(
    robot: Robot,
    quantity: str,
    parameter: Parameter | Sequence[Parameter],
    *,
    method: str = "recursive_scalar",
    name: str | None = None,
    **options: Any,
) -> RobotFunction:
    """Dynamics and their derivatives by design parameters, as casadi.Function with named ports.

    quantity: "inverse_dynamics", "forward_dynamics" or "hybrid_dynamics", at order 0; options external_wrenches and
    prescribed as for od.function. parameter: one of oc_dyn.design, or a list of m. method: "recursive_scalar" (Kim
    2012, Tables 5 to 7) or "ad".
    Inputs: those of the quantity; p (m, 1), the parameters, counted from the robot as it is; for every input x its
    derivative dx_dp (its rows, its columns times m), for q on the tangent space (nv, m). Outputs: what the quantity
    computes and, for each y of that, dy_dp (rows, m). Ports left out count as zero: then the robot is as it is, and its
    motion does not depend on the parameters.
    Raises UnknownName, ShapeError, ModelError; OrderError for mimic joints but in inverse dynamics.
    """
    if quantity not in _OUTPUTS:
        raise UnknownName("quantity with sensitivities", quantity, _OUTPUTS)
    if method not in _METHODS:
        raise UnknownName("method of sensitivity", method, _METHODS)
    parameters = tuple(parameter) if isinstance(parameter, (list, tuple)) else (parameter,)
    if not parameters or not all(isinstance(x, Parameter) for x in parameters):
        raise ShapeError(f"sensitivity: got {parameter!r}, expected a parameter of oc_dyn.design, or a list of them")
    known = [x for x in ("external_wrenches", "prescribed") if x in get(quantity).options]
    for key in options:
        if key not in known:
            raise UnknownName(f"option of sensitivity of {quantity}", key, known)
    if robot.mimics and quantity != "inverse_dynamics":
        raise OrderError(
            f"sensitivity of {quantity}: the recursions need joints that move independently, not mimic joints"
        )
    named = options.get("prescribed", ())
    settings = {
        "external_wrenches": bool(options.get("external_wrenches", False)),
        "prescribed": (named,) if isinstance(named, str) else tuple(named),
    }
    name = checked_name(name or f"{quantity}_sensitivity")
    # complete: a parameter is compared by its terms, which are functions of a module, names and numbers
    key = ("sensitivity", quantity, parameters, method, name, *settings.values())
    return cached(robot, key, lambda: _build(robot, quantity, parameters, method, settings, name))


def _build(
    robot: Robot, quantity: str, parameters: tuple[Parameter, ...], method: str, settings: dict[str, Any], name: str
) -> RobotFunction:
    inputs, m = get(quantity).inputs(robot, 0, settings), len(parameters)
    x = {port.name: ca.SX.sym(port.name, *port.shape) for port in inputs}
    p = ca.SX.sym("p", m)
    dx = {n: ca.SX.sym(n, robot.nv if n == "q" else s.shape[0], m * s.shape[1]) for n, s in x.items()}
    rows = prescribed_rows(robot, settings) if quantity == "hybrid_dynamics" else ()
    dynamics = _Dynamics(quantity, DesignTree(robot, [c.changes(robot) for c in parameters], p), rows)
    each = [{n: _columns(s, k, m) for n, s in dx.items()} for k in range(m)]
    values, found = _METHODS[method](dynamics, x, each)
    derivatives = [ca.horzcat(*(d[n] for d in found)) for n in values]
    names = [*x, "p", *(f"d{n}_dp" for n in x)], [*values, *(f"d{n}_dp" for n in values)]
    expressions = merged([ca.densify(y) for y in (*values.values(), *derivatives)])
    base = ca.Function(name, [*x.values(), p, *dx.values()], expressions, *names)
    columns = {"w_ext": tuple(b.name for b in robot.bodies)} if settings["external_wrenches"] else {}
    names = {port.name: port.rows for port in inputs if port.rows}
    return RobotFunction(base, names, columns, rotations=quaternions(robot))


def _columns(x: ca.SX, k: int, m: int) -> ca.SX:
    n = x.shape[1] // m
    return x[:, k * n : (k + 1) * n]


class _Dynamics:
    """Values and derivatives of one quantity of a DesignTree, by Kim's tables."""

    def __init__(self, quantity: str, tree: DesignTree, prescribed: Iterable[int]) -> None:
        self.quantity, self.tree, self.p = quantity, tree, list(prescribed)
        self.f = [k for k in range(tree.robot.nv) if k not in prescribed]

    def full(self, x: Symbols) -> tuple[ca.SX, ca.SX]:
        """Accelerations and torques (nv,) from the inputs x, zero where they are not given."""
        a, tau = ca.SX(self.tree.robot.nv, 1), ca.SX(self.tree.robot.nv, 1)
        if self.quantity == "hybrid_dynamics":
            a[self.p], tau[self.f] = x["dv_p"], x["tau_f"]
            return a, tau
        return x.get("dv", a), x.get("tau", tau)

    def evaluate(self, x: Symbols, each: Sequence[Symbols] = ()) -> tuple[Symbols, list[Symbols]]:
        """({output: value}, [{output: derivative}, ...]) at inputs x; a list entry for each {input: derivative}."""
        tree = self.tree
        m = tree.mechanism(x["q"], x["v"], x.get("w_ext"))
        changes = [tree.change(m, k, x["q"], d["q"], d["v"], *self.full(d), d.get("w_ext")) for k, d in enumerate(each)]
        a, tau = (tree.joint_v(y) for y in self.full(x))
        if self.quantity == "inverse_dynamics":
            tau, found = kim.inverse_dynamics(m, a, changes)
            return {"tau": tree.stack(tau)}, [{"tau": tree.stack(d)} for d in found]
        given = [i for i in tree.bodies if tree.coordinates[i][2] in self.p]
        a, tau, found = kim.hybrid_dynamics(m, a, tau, given, changes)
        return self._chosen(a, tau), [self._chosen(*d) for d in found]

    def _chosen(self, a: Any, tau: Any) -> Symbols:
        a, tau = self.tree.stack(a), self.tree.stack(tau)
        return {"dv": a} if self.quantity == "forward_dynamics" else {"tau_p": tau[self.p], "dv_f": a[self.f]}


def _recursive_scalar(dynamics: _Dynamics, x: Symbols, each: Sequence[Symbols]) -> tuple[Symbols, list[Symbols]]:
    return dynamics.evaluate(x, each)


def _ad(dynamics: _Dynamics, x: Symbols, each: Sequence[Symbols]) -> tuple[Symbols, list[Symbols]]:
    """The values' derivatives along every direction, by one jtimes each."""
    robot, p = dynamics.tree.robot, dynamics.tree.p
    e = ca.SX.sym("e", robot.nv)
    values, _ = dynamics.evaluate({**x, "q": robot.integrate(x["q"], e)})
    others = [n for n in x if n != "q"]
    symbols = ca.vertcat(p, e, *(ca.vec(x[n]) for n in others))
    found = []
    for k, d in enumerate(each):
        seed = ca.vertcat(ca.DM.eye(p.numel())[:, k], d["q"], *(ca.vec(d[n]) for n in others))
        found.append({n: ca.jtimes(y, symbols, seed) for n, y in values.items()})
    rows = [values, *found]
    flat = ca.substitute([y for row in rows for y in row.values()], [e], [ca.DM.zeros(robot.nv)])
    flat = [dict(zip(values, flat[k : k + len(values)], strict=True)) for k in range(0, len(flat), len(values))]
    return flat[0], flat[1:]


_METHODS = {"recursive_scalar": _recursive_scalar, "ad": _ad}
