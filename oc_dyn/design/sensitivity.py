"""od.sensitivity: derivatives of the dynamics by design parameters, where the motion may depend on them as well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import casadi as ca

from ..errors import OrderError, ShapeError, UnknownName
from ..friction import friction_torques
from ..function import checked_name
from ..hybrid_dynamics import prescribed_rows
from ..model.cache import cached
from ..model.loops import LoopRobot
from ..model.quaternions import quaternions
from ..model.robot import Robot, check_robot, tangent_map
from ..model.robot_function import RobotFunction
from ..partials import scalar_changes as kim
from ..registry import get
from ..subexpressions import merged
from .changes import Changes
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
    adjoint: bool = False,
    **options: Any,
) -> RobotFunction:
    """Dynamics and their derivatives by design parameters, as casadi.Function with named ports.

    quantity: "inverse_dynamics", "forward_dynamics" or "hybrid_dynamics", at order 0; options external_wrenches,
    friction and prescribed as for od.function. parameter: one of oc_dyn.design, or a list of m. method:
    "recursive_scalar" (Kim 2012, Tables 5 to 7) or "ad".
    Inputs: those of the quantity; p (m, 1), the parameters, counted from the robot as it is; for every input x its
    derivative dx_dp (its rows, its columns times m), for q on the tangent space (nv, m). Outputs: what the quantity
    computes and, for each y of that, dy_dp (rows, m). Ports left out count as zero: then the robot is as it is, and its
    motion does not depend on the parameters.
    adjoint=True, for many parameters: gradients of the products with multipliers, by "ad" in one reverse sweep whatever
    m is. Inputs: those of the quantity, p, for each output y lam_y (its rows). Outputs: each y; adj_p (m, 1) and, for
    every input x, adj_x (its shape; for q on the tangent space (nv, 1)).
    Raises UnknownName, ShapeError, ModelError; OrderError for mimic joints but in inverse dynamics.
    """
    _require_tree(robot)
    if quantity not in _OUTPUTS:
        raise UnknownName("quantity with sensitivities", quantity, _OUTPUTS)
    if method not in _METHODS:
        raise UnknownName("method of sensitivity", method, _METHODS)
    parameters = tuple(parameter) if isinstance(parameter, (list, tuple)) else (parameter,)
    if not parameters or not all(isinstance(x, Parameter) for x in parameters):
        raise ShapeError(f"sensitivity: got {parameter!r}, expected a parameter of oc_dyn.design, or a list of them")
    known = [x for x in ("external_wrenches", "friction", "prescribed") if x in get(quantity).options]
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
        "friction": bool(options.get("friction", False)),
        "prescribed": (named,) if isinstance(named, str) else tuple(named),
    }
    name = checked_name(name or f"{quantity}_sensitivity")
    # complete: a parameter is compared by its terms, which are functions of a module, names and numbers
    key = ("sensitivity", quantity, parameters, method, name, bool(adjoint), *settings.values())
    make = _build_adjoint if adjoint else _build
    return cached(robot, key, lambda: make(robot, quantity, parameters, method, settings, name))


def _require_tree(robot: Any) -> None:
    if isinstance(robot, LoopRobot):
        raise OrderError(
            f"sensitivity of {robot.name}: the recursions are those of trees, not those with loops; take robot.tree"
        )
    check_robot("sensitivity", robot)


def _build(
    robot: Robot, quantity: str, parameters: tuple[Parameter, ...], method: str, settings: dict[str, Any], name: str
) -> RobotFunction:
    inputs, m = get(quantity).inputs(robot, 0, settings), len(parameters)
    x = {port.name: ca.SX.sym(port.name, *port.shape) for port in inputs}
    p = ca.SX.sym("p", m)
    dx = {n: ca.SX.sym(n, robot.nv if n == "q" else s.shape[0], m * s.shape[1]) for n, s in x.items()}
    dynamics = _dynamics(robot, quantity, [c.changes(robot) for c in parameters], p, settings)
    each = [{n: _columns(s, k, m) for n, s in dx.items()} for k in range(m)]
    values, found = _METHODS[method](dynamics, x, each)
    derivatives = [ca.horzcat(*(d[n] for d in found)) for n in values]
    names = [*x, "p", *(f"d{n}_dp" for n in x)], [*values, *(f"d{n}_dp" for n in values)]
    expressions = merged([ca.densify(y) for y in (*values.values(), *derivatives)])
    base = ca.Function(name, [*x.values(), p, *dx.values()], expressions, *names)
    return _named(robot, base, inputs, settings)


def _build_adjoint(
    robot: Robot, quantity: str, parameters: tuple[Parameter, ...], method: str, settings: dict[str, Any], name: str
) -> RobotFunction:
    inputs, m = get(quantity).inputs(robot, 0, settings), len(parameters)
    x = {port.name: ca.SX.sym(port.name, *port.shape) for port in inputs}
    p = ca.SX.sym("p", m)
    changes = [c.changes(robot) for c in parameters]
    if method == "recursive_scalar":  # one more parameter, which changes nothing, for the motion alone
        dynamics = _dynamics(robot, quantity, [*changes, Changes()], ca.vertcat(p, 0), settings)
    else:
        dynamics = _dynamics(robot, quantity, changes, p, settings)
    sizes = [p for p in get(quantity).outputs(robot, 0, settings) if p.name in _OUTPUTS[quantity]]
    lam = {port.name: ca.SX.sym(f"lam_{port.name}", *port.shape) for port in sizes}
    values, gradients = _ADJOINTS[method](dynamics, x, lam, p)
    outputs = {**values, "adj_p": gradients.pop("p"), **{f"adj_{n}": y for n, y in gradients.items()}}
    expressions = merged([ca.densify(ca.SX(y)) for y in outputs.values()])
    given = [*x, "p", *(f"lam_{n}" for n in lam)]
    base = ca.Function(name, [*x.values(), p, *lam.values()], expressions, given, list(outputs))
    return _named(robot, base, inputs, settings)


def _named(robot: Robot, base: ca.Function, inputs: Sequence[Any], settings: dict[str, Any]) -> RobotFunction:
    columns = {"w_ext": tuple(b.name for b in robot.bodies)} if settings["external_wrenches"] else {}
    names = {port.name: port.rows for port in inputs if port.rows}
    return RobotFunction(base, names, columns, rotations=quaternions(robot))


def _dynamics(robot: Robot, quantity: str, changes: list[Changes], p: Any, settings: dict[str, Any]) -> _Dynamics:
    tree = DesignTree(robot, changes, p)
    if tree.damps() and not settings["friction"]:
        raise ShapeError(f"sensitivity of {quantity}: damping counts where friction does; give friction=True")
    rows = prescribed_rows(robot, settings) if quantity == "hybrid_dynamics" else ()
    return _Dynamics(quantity, tree, rows, settings["friction"])


def _columns(x: ca.SX, k: int, m: int) -> ca.SX:
    n = x.shape[1] // m
    return x[:, k * n : (k + 1) * n]


class _Dynamics:
    """Values and derivatives of one quantity of a DesignTree, by Kim's tables."""

    def __init__(self, quantity: str, tree: DesignTree, prescribed: Iterable[int], friction: bool) -> None:
        self.quantity, self.tree, self.p, self.friction = quantity, tree, list(prescribed), friction
        self.f = [k for k in range(tree.robot.nv) if k not in prescribed]

    def full(self, x: Symbols) -> tuple[ca.SX, ca.SX]:
        """Accelerations and torques (nv,) from the inputs x, zero where they are not given."""
        a, tau = ca.SX(self.tree.robot.nv, 1), ca.SX(self.tree.robot.nv, 1)
        if self.quantity == "hybrid_dynamics":
            a[self.p], tau[self.f] = x["dv_p"], x["tau_f"]
            return a, tau
        return x.get("dv", a), x.get("tau", tau)

    def effort(self, x: Symbols) -> ca.SX:
        """(nv,) what the torques have to overcome besides the motion of bodies: friction, springs."""
        found = self.tree.effort(x["q"], x["v"])
        return found + friction_torques(self.tree.robot, [x["v"]])[0] if self.friction else found

    def evaluate(self, x: Symbols, each: Sequence[tuple[int, Symbols]] = ()) -> tuple[Symbols, list[Symbols]]:
        """({output: value}, [{output: derivative}, ...]) at inputs x; a list entry for each (number of the parameter,
        {input: derivative})."""
        tree = self.tree
        m = tree.mechanism(x["q"], x["v"], x.get("w_ext"))
        a, tau = self.full(x)
        effort, efforts = self.effort(x), [self._effort_change(x, k, d) for k, d in each]
        changes = []
        for (k, d), e in zip(each, efforts, strict=True):
            da, dtau = self.full(d)
            changes.append(tree.change(m, k, x["q"], d["q"], d["v"], da, dtau - e, d.get("w_ext")))
        a, tau = tree.joint_v(a), tree.joint_v(tau - effort)
        if self.quantity == "inverse_dynamics":
            tau, found = kim.inverse_dynamics(m, a, changes)
            pairs = zip(found, efforts, strict=True)
            return {"tau": tree.stack(tau) + effort}, [{"tau": tree.stack(d) + e} for d, e in pairs]
        given = [i for i in tree.bodies if tree.coordinates[i][2] in self.p]
        a, tau, found = kim.hybrid_dynamics(m, a, tau, given, changes)
        chosen = [self._chosen(da, dtau, e) for (da, dtau), e in zip(found, efforts, strict=True)]
        return self._chosen(a, tau, effort), chosen

    def _effort_change(self, x: Symbols, k: int, d: Symbols) -> ca.SX:
        """Change of the effort by parameter k and the motion's derivative by it."""
        q, v, p = x["q"], x["v"], self.tree.p
        at = {n: ca.SX.sym(n, *y.shape) for n, y in (("q", q), ("v", v))}
        free = ca.symvar(p)
        seed = ca.DM.eye(p.numel())[: len(free), k]
        rates = ca.vertcat(seed, tangent_map(self.tree.robot, at["q"]) @ d["q"], d["v"])
        change = ca.jtimes(self.effort(at), ca.vertcat(*free, *at.values()), rates)
        return ca.substitute([change], list(at.values()), [q, v])[0]

    def _chosen(self, a: Any, tau: Any, effort: Any) -> Symbols:
        a, tau = self.tree.stack(a), self.tree.stack(tau) + effort
        return {"dv": a} if self.quantity == "forward_dynamics" else {"tau_p": tau[self.p], "dv_f": a[self.f]}


def _recursive_scalar(dynamics: _Dynamics, x: Symbols, each: Sequence[Symbols]) -> tuple[Symbols, list[Symbols]]:
    return dynamics.evaluate(x, list(enumerate(each)))


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


def _recursive_adjoint(dynamics: _Dynamics, x: Symbols, lam: Symbols, p: ca.SX) -> tuple[Symbols, Symbols]:
    """From derivatives by every parameter and by every unit direction of the inputs."""
    nv, m = dynamics.tree.robot.nv, p.numel()
    sizes = {n: (nv, 1) if n == "q" else y.shape for n, y in x.items()}
    none = {n: ca.SX(ca.DM.zeros(*size)) for n, size in sizes.items()}
    each: list[tuple[int, Symbols]] = [(k, none) for k in range(m)]
    for n, size in sizes.items():
        each += [(m, {**none, n: ca.reshape(ca.SX(e), *size)}) for e in ca.horzsplit(ca.DM.eye(size[0] * size[1]))]
    values, found = dynamics.evaluate(x, each)
    products = [sum((ca.dot(lam[n], d[n]) for n in lam), ca.SX(0)) for d in found]
    gradients, first = {"p": ca.vertcat(*products[:m])}, m
    for n, size in sizes.items():
        count = size[0] * size[1]
        gradients[n] = ca.reshape(ca.vertcat(ca.SX(0, 1), *products[first : first + count]), *size)
        first += count
    return values, gradients


def _reverse(dynamics: _Dynamics, x: Symbols, lam: Symbols, p: ca.SX) -> tuple[Symbols, Symbols]:
    """One gradient in reverse mode of the products, by everything."""
    values, _ = dynamics.evaluate(x)
    product = sum((ca.dot(lam[n], y) for n, y in values.items()), ca.SX(0))
    others = list(x)
    gradient = ca.gradient(product, ca.vertcat(p, *(ca.vec(x[n]) for n in others)))
    ends = [0, p.numel()]
    for n in others:
        ends.append(ends[-1] + x[n].numel())
    by_p, *rest = ca.vertsplit(gradient, ends)
    gradients = {n: ca.reshape(y, *x[n].shape) for n, y in zip(others, rest, strict=True)}
    gradients["q"] = tangent_map(dynamics.tree.robot, x["q"]).T @ gradients["q"]
    return values, {"p": by_p, **gradients}


_ADJOINTS = {"recursive_scalar": _recursive_adjoint, "ad": _reverse}
