"""od.function: a quantity of a robot as a named casadi.Function."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import casadi as ca
import numpy as np

from .derivatives import analytic, without_registered
from .digest import unwound
from .errors import ModelError, OrderError, ShapeError, UnknownName
from .function_store import stored
from .lie.quick import quick
from .lie.twist_conversion import REPRESENTATIONS
from .model.cache import cached
from .model.canonical import canonical
from .model.canonical_report import counts_instructions
from .model.loops import LoopRobot
from .model.massless import require_inertia, require_inertia_at
from .model.parameters import checked_parts, with_values
from .model.quaternions import quaternions
from .model.robot import Robot, check_robot
from .model.robot_function import RobotFunction
from .numbers import shortened
from .ports import OF_MODEL, gravity_port, parameter_port
from .registry import CORIOLIS, OPTIONS, Method, Port, Quantity, choose, conversion_of, get, quantities
from .representation import converted, converts, described
from .subexpressions import merged
from .types import AnyRobot, Array, Option, StrPath

_WITH_DERIVATIVES = ("external_wrenches", "friction", "scene", "contacts", "gravity")  # options of registered ones, too
_VALUES = {"representation": REPRESENTATIONS, "coriolis": tuple(CORIOLIS), "frame": ("the name of a frame",)}
_NAMES = ("a name", "a list of names")  # of other options that are no truth values
_OF_KINDS = {"scene": ("Scene", "an od.Scene, such as od.Scene.of(robot)")}  # options that are values with a key


def function(
    robot: AnyRobot, quantity: str, *, order: int = 0, method: str | None = None, name: str | None = None,
    derivatives: str = "ad", normalize: bool = False, cache: StrPath | bool | None = None, **options: Option,
) -> RobotFunction:  # fmt: skip
    """Quantity of a robot as casadi.Function with named ports.

    robot: Robot. quantity, method: names, see od.table(); without a method the default one is taken.
    order: time derivatives 0..order come out. name: of the Function, default the quantity and its order.
    Ports with shapes, units and frames, and the options that a quantity knows, what they do and their defaults:
    od.describe(quantity); as records: od.ports(robot, quantity, order). Options are external_wrenches, friction, frame,
    prescribed, representation, parameters, gravity, columns, coriolis, scene and witnesses. Friction and damping of
    the robot count only with friction=True, unlike in plans, which keep their limits with them (friction=False: not).
    derivatives="analytic": CasADi, where it differentiates the Function, takes the registered partials, adjoint and
    Lagrangian Hessian instead of AD: for inverse, forward and constrained dynamics and distances, in MX graphs, Opti,
    nlpsol, map and generated code. They are lost by saving and loading, but for the Jacobian: make the Function anew.
    By q they are those by its coordinates, on joints of every kind. A quaternion Q stands for Q / |Q|, in values and
    derivatives: they are exact at any length but zero, as AD would have them, and first ones by Q along Q are zero.
    normalize: quaternions stand for the rotation of the normalised one, in values and derivatives. Where they are
    numbers, a norm that differs from 1 by more than 1e-6 is refused nevertheless; True takes any but zero. Symbols,
    `map` and generated C are not checked. robot.normalized(q) is the same of numbers.
    cache: folder for Functions that took 0.1 s and more to build, which are loaded from there when they are asked for
    again; default $OC_DYN_FUNCTION_CACHE, or "functions" in the folder of od.compile. False for none, as "off" in the
    variable. What this Robot object has made already, it gives again whatever `cache` is.
    Of a robot with loops, q, v, tau, ... are those of its independent coordinates; there are more options: q_guess=True
    (port q_guess, all coordinates of a closed configuration, from which loops are followed to q, instead of
    robot.home), and of inverse and forward dynamics actuated=(joint, ...), joints of the tree that have motors, whose
    torques tau then is: of more motors than needed those of least sum of squares, weighted=True with port weights.
    Raises UnknownName, OrderError, ShapeError, ModelError, each listing what would be right.
    """
    record = get(quantity)
    quantity = record.name
    _read(record, robot)
    order = _checked_order(quantity, record, order)
    if not isinstance(normalize, (bool, np.bool_)):
        raise ShapeError(f"{quantity}: normalize is {normalize!r}, expected True or False")
    if record.of == "robot" and isinstance(robot, LoopRobot):
        made = _embedded(robot, record, order, method, name, derivatives, options)
        return made.normalizing() if normalize else made
    settings = _settings(record, options)
    chosen = choose(quantity, robot, order, method, _coriolis(record, settings))
    name = checked_name(f"{quantity}_{order}" if name is None else name)
    # complete: a method's name cannot be registered twice, its model follows from the robot and the settings, and
    # these are names, truth values and values with a key; True is not taken for an order of 1
    key = ("function", quantity, order, chosen.name, name, _told(settings))
    if normalize:
        strict = function(
            robot, quantity, order=order, method=method, name=name, derivatives=derivatives, normalize=False,
            cache=cache, **options,
        )  # fmt: skip
        return cached(robot, ("normalizing", derivatives, *key), strict.normalizing)
    asked = robot, record, chosen, order, settings, name
    if derivatives == "ad":
        made = cached(robot, key, lambda: _stored(*asked, key, lambda: _build(*asked), cache))
        if record.of == "robot with loops" and not settings["q_guess"]:
            made.closing_by(_EMBEDDED[-1][1](robot))
        links = getattr(robot, "links", None)  # of an elastic robot
        if isinstance(links, LoopRobot):
            made.closing_by(_EMBEDDED[-1][1](links))
        return made
    if derivatives != "analytic":
        raise UnknownName("kind of derivatives", derivatives, ("ad", "analytic"))
    check_analytic(record, settings)

    def differentiated() -> ca.Function:
        plain = function(
            robot, quantity, order=order, method=method, name=name, derivatives="ad", normalize=False, cache=cache,
            **options,
        )  # fmt: skip
        kept = {k: x for k, x in settings.items() if k in _WITH_DERIVATIVES}
        kept |= {"method": chosen.name} if record.own_derivatives else {}
        at = robot.tree if isinstance(robot, LoopRobot) else robot  # whose coordinates the ports are
        return analytic(cast(Robot, at), quantity, order, plain, kept, function, robot)

    def with_twin() -> RobotFunction:
        made = _stored(*asked, ("analytic", *key), differentiated, cache)
        return made.with_base(made, twin=made.with_base(without_registered(made)))

    return cached(robot, ("analytic", *key), with_twin)


OF_LOOPS = ("q_guess", "actuated", "weighted")  # options of every quantity of a robot with loops
_EMBEDDED: list[tuple[Callable[..., RobotFunction], Callable[..., Any]]] = []


def embedded_by(f: Callable[..., RobotFunction], check: Callable[..., Any]) -> None:
    """Let f make the Functions of robots with loops, and check(robot) what looks whether these close."""
    _EMBEDDED.append((f, check))


def _told(settings: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The options of a quantity as a part of a key."""
    return tuple((k, settings[k] if k not in _OF_KINDS else settings[k].key) for k in sorted(settings))


def _embedded(
    robot: LoopRobot, record: Quantity, order: int, method: str | None, name: str | None, derivatives: str,
    options: dict[str, Any],
) -> RobotFunction:  # fmt: skip
    name = checked_name(f"{record.name}_{order}" if name is None else name)
    own = {k: tuple(x) if isinstance(x, (list, set, frozenset)) else x for k, x in options.items() if k in OF_LOOPS}
    settings = _settings(record, {k: x for k, x in options.items() if k not in OF_LOOPS})
    both = _ports(robot, record, order, settings)
    # complete: as of trees
    key = ("function", record.name, order, method, name, derivatives, _told(settings), tuple(sorted(own.items())))
    return cached(
        robot, key, lambda: _EMBEDDED[-1][0](robot, record, order, method, name, derivatives, (settings, own), both)
    )


def _stored(
    robot: Any, record: Quantity, chosen: Method, order: int, settings: dict[str, Any], name: str,
    key: tuple[Any, ...], make: Callable[[], ca.Function], cache: StrPath | bool | None,
) -> RobotFunction:  # fmt: skip
    """The Function of make(), or of an earlier process, that checks its ports."""
    inputs, outputs = _ports(robot, record, order, settings)
    if all(_is_ours(x) for x in (chosen.function, record.call, record.inputs, record.outputs)):
        shapes = [(p.name, p.shape) for p in inputs], [(p.name, p.shape) for p in outputs]
        base = stored(robot, key, shapes, make, cache)
    else:
        base = make()
    names = {p.name: p.rows for p in inputs if p.rows}
    bodies = tuple(b.name for b in robot.bodies)
    columns = {p.name: bodies for p in inputs if p.name.endswith("w_ext")}
    regular = None if _symbolic(record, settings) else _regular(record, robot, settings)
    rotations = quaternions(robot) if any(p.name == "q" for p in inputs) else ()
    facts = {p.name: (p.unit, p.rows) for p in (*inputs, *outputs)}
    return RobotFunction(base, names, columns, regular=regular, rotations=rotations, facts=facts)


def _is_ours(f: Callable[..., Any]) -> bool:
    """Whether a function is of this package, so that digests of its source tell what it does."""
    return str(getattr(unwound(f)[0], "__module__", "")).partition(".")[0] == __package__


def check_analytic(record: Quantity, settings: dict[str, Any]) -> None:
    """Raise OrderError where a quantity with these options has no registered derivatives."""
    try:
        get(f"{record.name}_lagrangian_hessian")
    except UnknownName:
        has = [x for x in quantities() if f"{x}_lagrangian_hessian" in quantities()]
        able = ", ".join(x for x in has if not get(x).repeats)
        raise OrderError(f"{record.name} has no registered derivatives; derivatives='analytic' is for {able}") from None
    if record.repeats:
        names = ", ".join(f"{record.name}_{x}" for x in ("partials", "adjoint", "lagrangian_hessian"))
        raise OrderError(f"{record.name}: derivatives='analytic' is not there, some outputs repeat others; use {names}")
    other = [k for k, x in settings.items() if x and k not in _WITH_DERIVATIVES]
    if other:
        raise OrderError(f"{record.name}: derivatives='analytic' cannot be had with {', '.join(other)}; use 'ad'")


@counts_instructions
def instructions(robot: AnyRobot, quantity: str, model: Any) -> int:
    """How many the default method of a quantity takes where it reads `model` for the robot's canonical form."""
    record = get(quantity)
    return _build(robot, record, choose(quantity, robot, 0), 0, _settings(record, {}), quantity, model).n_instructions()


def ports(robot: AnyRobot, quantity: str, order: int = 0, **options: Option) -> tuple[list[Port], list[Port]]:
    """(inputs, outputs): the Port records of a quantity, in order; od.describe shows them as a text.

    order, options: as for od.function. Raises UnknownName, OrderError, ShapeError, ModelError, as od.function.
    """
    record = get(quantity)
    _read(record, robot)
    return _ports(robot, record, _checked_order(quantity, record, order), _settings(record, options))


def _ports(robot: Any, record: Quantity, order: int, settings: dict[str, Any]) -> tuple[list[Port], list[Port]]:
    both = record.inputs(robot, order, settings), record.outputs(robot, order, settings)
    if converts(record, robot, settings):
        whole = conversion_of(record.name) is not None
        both = described(robot, both[0], settings), described(robot, both[1], settings, whole)
    parts = _symbolic(record, settings)
    more = ([parameter_port(robot, parts)] if parts else []) + ([gravity_port()] if settings.get("gravity") else [])
    return [*both[0], *more], both[1]


def _symbolic(record: Quantity, settings: dict[str, Any]) -> tuple[str, ...]:
    """The parts of the robot's parameters that are an input."""
    parts = checked_parts(f"{record.name}: parameters", settings.get("parameters"))
    if "viscous" in parts and not settings.get("friction"):
        known = "give friction=True" if "friction" in record.options else "leave it out"
        raise ShapeError(f"{record.name}: 'viscous' is a parameter only where friction counts; {known}")
    return parts


def _build(
    robot: Any, record: Quantity, chosen: Method, order: int, settings: dict[str, Any], name: str,
    model: Any = None,
) -> ca.Function:  # fmt: skip
    inputs, outputs = _ports(robot, record, order, settings)
    matrix: Any = {"sx": ca.SX, "mx": ca.MX}[chosen.graph]
    symbols = {p.name: quick(matrix.sym(p.name, *p.shape)) for p in inputs}
    parts = _symbolic(record, settings)
    why = chosen.numeric_parameters
    if settings.get("gravity") and chosen.graph == "mx":
        why = why or "it calls Functions of the motion alone"
    if (parts or settings.get("gravity")) and why:
        what = "symbolic parameters" if parts else "gravity as an input"
        problem = f"{record.name}/{chosen.name} cannot take {what}: {why}"
        raise OrderError(problem)
    model = model or _read(record, robot) or canonical(robot, chosen.regroup and "inertia" not in parts)
    if parts:
        model = with_values(model, parts, symbols["params"])
    if settings.get("gravity"):
        model = replace(model, gravity=symbols["gravity"])
    if record.solves is not None:
        require_inertia(model, record.name, record.solves(robot, settings))

    def run(values: dict[str, Any]) -> Any:
        given = {name: x for name, x in values.items() if name not in OF_MODEL}
        return record.call(chosen.function, model, order, given, settings)

    if converts(record, robot, settings):
        results = converted(record, model, order, inputs, outputs, symbols, settings, run)
    else:
        results = run(symbols)
    expressions = [matrix(results[p.name]) for p in outputs]
    if not record.sparse:
        expressions = [ca.densify(x) for x in expressions]
    if chosen.cse:
        expressions = merged(expressions)
    return ca.Function(name, list(symbols.values()), expressions, [p.name for p in inputs], [p.name for p in outputs])


def _regular(record: Quantity, robot: Any, settings: dict[str, Any]) -> Callable[[Array], None] | None:
    """What looks, for a quantity that solves with the mass matrix, whether it can be solved with at a q; None for
    others."""
    if record.solves is None:
        return None
    what, known = record.name, record.solves(robot, settings)
    return lambda q: require_inertia_at(robot, q, what, known)


def _read(record: Quantity, robot: AnyRobot) -> Any:
    """What the methods of a quantity read of `robot`, None for its canonical form; raises if it has none such."""
    if record.admit:
        return record.admit(robot)
    check_robot(record.name, robot)
    if robot.nv == 0 and "frame" not in record.options:
        problem = "it has no moving joint; load it with floating_base=True, or give it one"
        raise ModelError(f"{record.name} of {robot.name}", [problem])
    return None


def _checked_order(quantity: str, record: Quantity, order: Any) -> int:
    if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 0:
        raise OrderError(f"{quantity}: order is {order!r}, expected an integer of at least 0")
    if record.max_order is not None and order > record.max_order:
        raise OrderError(f"{quantity}: got order {order}, it goes up to order {record.max_order}")
    return int(order)


def _settings(record: Quantity, options: dict[str, Option]) -> dict[str, Any]:
    for key in options:
        if key not in record.options:
            raise UnknownName(f"option of {record.name!r}", key, record.options)
    given = {k: tuple(x) if isinstance(x, (list, set, frozenset)) else x for k, x in options.items()}
    given = {k: tuple(x.items()) if isinstance(x, Mapping) else x for k, x in given.items()}
    for key, value in given.items():
        if isinstance(OPTIONS[key][0], bool) and not isinstance(value, (bool, np.bool_)):
            raise ShapeError(f"{record.name}: {key} is {value!r}, expected True or False")
        if key in _OF_KINDS:
            continue
        values = value if isinstance(value, tuple) else (value,)
        if key == "contacts":  # pairs
            values = tuple(y for x in values for y in (x if isinstance(x, tuple) else (x,)))
        if not all(x is None or isinstance(x, (bool, str)) for x in values):
            raise UnknownName(f"value of option {key} of {record.name!r}", value, _VALUES.get(key, _NAMES))
    found = {k: given.get(k, OPTIONS[k][0]) for k in record.options}
    for key, (kind, example) in _OF_KINDS.items():
        if key in found and type(found[key]).__name__ != kind:
            raise ShapeError(f"{record.name}: {key} is {shortened(found[key])}, expected {example}")
    return found


def _coriolis(record: Quantity, settings: dict[str, Any]) -> str | None:
    """The Coriolis matrix asked for, None for the method's own."""
    name = settings.get("coriolis")
    if name is not None and name not in CORIOLIS:
        raise UnknownName(f"Coriolis matrix of {record.name!r}", name, CORIOLIS)
    return name


def checked_name(name: object) -> str:
    """The name, if casadi takes it for a Function; ShapeError otherwise."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z](?:_?[A-Za-z0-9])*", name):
        raise ShapeError(
            f"{name!r} cannot name a Function: letters, digits and single underscores, starting with a letter"
        )
    return name
