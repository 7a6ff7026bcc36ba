"""Quantities and methods: what can be computed, and by which ways.

A Quantity is a contract: named ports with shape, unit and frame, for any robot and order. A Method is one way to
compute it. Both are plain records in two dictionaries; tests, studies, the table of docs/quantities.md, `oc-dyn list`
and od.describe walk over them, so a method that is registered is tested, measured and listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .errors import OrderError, UnknownName
from .text import in_columns, terminal
from .types import AnyRobot

F = TypeVar("F", bound=Callable[..., Any])  # of a method

CORIOLIS = {  # the matrices C(q, v) on offer, all with the same C v: what they are, whether admissible: M' = C + C^T
    "christoffel": ("Christoffel symbols", True),
    "garofalo": ("Garofalo et al. 2013, eq. 6b", True),
    "kumar_mueller": ("Kumar and Mueller 2021, eq. 30", False),
}

# options of quantities: the default, and what they do unless a quantity has `meanings` of its own
OPTIONS: dict[str, tuple[Any, str]] = {
    "external_wrenches": (
        False,
        "True: wrenches act on the bodies from outside, port w_ext; also given as {body: (6,)}",
    ),
    "friction": (False, "True: friction of the joints counts, damping v + friction tanh(v / 0.02), v in SI units"),
    "frame": (None, "name of the frame, one of robot.frames; it must be given"),
    "scene": (None, "the od.Scene whose pairs of shapes are meant; it must be given"),
    "contacts": ((), '{frame: "point" or "surface"}: frames that the ground holds, their origins or all of them'),
    "moving": (False, "True: the port a_c, what the constraints' rates d(J v)/dt are to be; False: zero"),
    "baumgarte": (False, "True: the port gains, with which constraints that are open are closed"),
    "actuated": (None, "names of the joints with motors"),
    "weighted": (False, "True: the port weights, of the squares of what is not unique; False: all of them one"),
    "q_guess": (False, "True: the port q_guess, from which loops are closed; False: where the robot was assembled"),
    "witnesses": (False, "True: the nearest points of each pair come out as well"),
    "prescribed": ((), "names of the joints whose motion is prescribed"),
    "representation": (
        None,
        "how the motion of a floating base is seen in every port of v and tau, and in rows and columns of matrices: "
        '"body" (default: its own axes and origin), "spatial" (root axes, the origin of the root) or "hybrid" (root '
        "axes, the origin of the body)",
    ),
    "parameters": (
        None,
        'the port params: "symbolic" for the inertial parameters, or some of "inertia", "armature" and "viscous", '
        "which come in this order, viscous with friction=True alone",
    ),
    "gravity": (False, "True: the port gravity, the acceleration of gravity in the root frame; False: robot.gravity"),
    "columns": (
        None,
        'some of "inertia", "armature" and "viscous", in this order: the parameters that have columns, by default the '
        "inertia; robot.parameter_rows of the same parts names them, robot.parameter_values has the values",
    ),
    "coriolis": (
        None,
        'which of the matrices C with the same C v: "christoffel" (default) or "garofalo", both admissible: '
        "dM/dt = C + C^T",
    ),
}
_QUANTITIES: dict[str, Quantity] = {}
_SHORT = {"lagrangian_hessian_product": "inverse_dynamics_lagrangian_hessian_product"}
_CONVERSIONS: dict[str, Callable[..., dict[str, Any]]] = {}  # see conversion
_METHODS: dict[str, dict[str, Method]] = {}
_MORE: list[Callable[[], Any]] = []  # see complete_by


@dataclass(frozen=True)
class Port:
    """A named input or output: shape (rows, columns), unit and what it means, in which frame; names of its rows.

    unit: that of an entry; where they differ, all of them, those of angular rows first. shape: numbers that say what
    they count, where that depends on the robot; see ports.Size.
    """

    name: str
    shape: tuple[int, int]
    unit: str
    meaning: str
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Quantity:
    """A contract. `inputs` and `outputs` are functions (robot, order, options) -> list of Port; `call` runs a
    method: (method function, model, order, {port: value}, options) -> {port: value}. `compare`, where the outputs are
    not unique: (order, {input: value}, {output: value}) -> {what: value} on which all methods must agree. `of` says
    what it is a quantity of; where that is not a Robot, which methods read in canonical form, `admit` is a function
    that returns what methods read, or raises if the quantity makes no sense for what was given. `solves`, where the
    mass matrix is solved with: (robot, options) -> rows of v whose accelerations are given, and so not solved for.

    For od.describe: `equation`, what defines it; `notes`, sentences on what ports and options do not say; `errors`,
    what is refused besides what its other facts tell; `meanings`, {option: what it does} where that differs from
    OPTIONS; `example`: (robot or None) -> (robot, options) with which it is shown where either is not given."""

    name: str
    summary: str
    inputs: Callable[[Any, int, dict[str, Any]], list[Port]]
    outputs: Callable[[Any, int, dict[str, Any]], list[Port]]
    call: Callable[..., dict[str, Any]]
    options: tuple[str, ...] = ()
    compare: Callable[..., dict[str, Any]] | None = None
    max_order: int | None = None
    default: tuple[str, ...] = ()  # methods in order of preference; the first that can is taken
    base_ports: bool = False  # whether the option representation says how a floating base is seen in its ports
    of: str = "robot"
    admit: Callable[[Any], Any] | None = None
    solves: Callable[[Any, dict[str, Any]], Any] | None = None
    own_derivatives: bool = False  # whether each method has derivatives of its own: they differ by more than rounding
    repeats: bool = False  # whether outputs say again what others do: then derivatives="analytic" is not there
    same_in_fluid: bool = False  # whether what a fluid does to bodies leaves it as it is
    sparse: bool = False  # whether zeros that the tree makes are structural in the outputs
    equation: str = ""
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    meanings: Mapping[str, str] = field(default_factory=dict)
    example: Callable[[Any], tuple[Any, dict[str, Any]]] | None = None


@dataclass(frozen=True)
class Method:
    """One way to compute a quantity.

    kind: "analytic", "closed_form", "ad" or "numeric". source: where the algorithm is published.
    max_order: None is any. cannot: {feature of a robot: reason}. regroup: whether it reads the robot with base
    parameters. cse: whether common subexpressions are taken out of the result; off where a baseline must stay as it is.
    graph: "sx", or "mx" for methods that call Functions instead of writing everything out. tolerance: how far its
    results may be off, relative to the largest one; None for methods that are exact to rounding.
    numeric_parameters: why it cannot take inertial parameters as symbols; None if it can. coriolis: names of CORIOLIS,
    the matrices that its results contain or are made with, the one taken without a word first; empty where none is.
    fluid: whether it counts what a fluid does to bodies, where the quantity is another one for that.
    """

    quantity: str
    name: str
    function: Callable[..., Any]
    kind: str
    source: str
    max_order: int | None = None
    cannot: Mapping[str, str] = field(default_factory=dict)
    regroup: bool = False
    cse: bool = True
    graph: str = "sx"
    tolerance: float | None = None
    numeric_parameters: str | None = None
    coriolis: tuple[str, ...] = ()
    fluid: bool = False

    @property
    def admissible(self) -> bool | None:
        """Whether M' = C + C^T of every Coriolis matrix it gives; None where there is none."""
        return all(CORIOLIS[x][1] for x in self.coriolis) if self.coriolis else None

    def refusal(self, robot: AnyRobot, order: int, coriolis: str | None = None) -> str | None:
        """Why this method cannot serve this robot at this order, or with this Coriolis matrix; None if it can."""
        if self.max_order is not None and order > self.max_order:
            return f"{self.quantity}/{self.name} goes up to order {self.max_order}, got order {order}"
        if "fluid" in getattr(robot, "features", ()) and not self.fluid and not get(self.quantity).same_in_fluid:
            return f"{self.quantity}/{self.name} does not count what a fluid does to bodies (added_inertia, drag)"
        for feature, reason in self.cannot.items():
            if feature in robot.features:
                return f"{self.quantity}/{self.name} cannot do robots with a {feature} joint: {reason}"
        if coriolis is not None and coriolis not in self.coriolis:
            return f"{self.quantity}/{self.name} gives the Coriolis matrix {' or '.join(self.coriolis)}, not {coriolis}"
        return None


def quantity(**facts: Any) -> Quantity:
    """Register a quantity; see Quantity for the facts."""
    record = Quantity(**facts)
    if record.name in _QUANTITIES:
        raise ValueError(f"quantity {record.name!r} is registered already")
    _QUANTITIES[record.name] = record
    _METHODS[record.name] = {}
    return record


def method(quantity: str, name: str, *, kind: str, source: str, **facts: Any) -> Callable[[F], F]:
    """Decorator that registers a function as a method of a quantity; see Method for the facts."""

    def register(function: F) -> F:
        table = _METHODS[get(quantity).name]
        if name in table:
            raise ValueError(f"method {quantity}/{name} is registered already")
        table[name] = Method(quantity, name, function, kind, source, **facts)
        return function

    return register


def conversion(*quantities: str) -> Callable[[F], F]:
    """Decorator of a function (Seen, {output: value for body twists}) -> {output: value in the representation asked
    for}: of quantities whose outputs are not twists, wrenches and their time derivatives alone; see representation."""

    def register(function: F) -> F:
        _CONVERSIONS.update(dict.fromkeys(quantities, function))
        return function

    return register


def conversion_of(quantity: str) -> Callable[..., dict[str, Any]] | None:
    """What `conversion` registered for a quantity, None if nothing."""
    return _CONVERSIONS.get(quantity)


def complete_by(load: Callable[[], Any]) -> None:
    """A function that registers more quantities, where that has waited: called before all are listed, and where one is
    not found. It is called again and again, and so does nothing the second time, as an import."""
    _MORE.append(load)


def _all() -> dict[str, Quantity]:
    for load in _MORE:
        load()
    return _QUANTITIES


def quantities(of: str | None = None) -> tuple[str, ...]:
    """Names of the registered quantities; of="robot" or "elastic robot": of those that such a one has."""
    return tuple(name for name, q in _all().items() if of in (None, q.of))


def get(name: object) -> Quantity:
    """The Quantity of this name, or short name; UnknownName lists near ones."""
    name = _SHORT.get(name, name) if isinstance(name, str) else name
    if not isinstance(name, str) or (name not in _QUANTITIES and name not in _all()):
        raise UnknownName("quantity", name, _all())
    return _QUANTITIES[name]


def methods(quantity: str) -> tuple[str, ...]:
    """Names of the methods registered for a quantity, in the order of the table. Raises UnknownName."""
    return tuple(_METHODS[get(quantity).name])


def get_method(quantity: str, name: object) -> Method:
    """The Method of this name; UnknownName lists near ones."""
    table = _METHODS[get(quantity).name]
    if not isinstance(name, str) or name not in table:
        raise UnknownName(f"method of {quantity!r}", name, table)
    return table[name]


def choose(quantity: str, robot: AnyRobot, order: int, name: object = None, coriolis: str | None = None) -> Method:
    """The method asked for, or the default one: the first of the quantity's preferences that can. coriolis: the name
    of the Coriolis matrix that it has to give; None for that of the first preference, or of the method named.

    Raises UnknownName for a name that is not there, OrderError if it cannot do this robot or order.
    """
    record = get(quantity)
    if name is not None:
        found = get_method(quantity, name)
        refusal = found.refusal(robot, order, coriolis)
        if refusal:
            able = [m.name for m in _METHODS[get(quantity).name].values() if not m.refusal(robot, order, coriolis)]
            raise OrderError(f"{refusal}; methods that can: {', '.join(able) or 'none'}")
        return found
    if coriolis is None and record.default:  # no other matrix comes out without a word where the preferred cannot
        coriolis = next(iter(get_method(quantity, record.default[0]).coriolis), None)
    reasons = []
    for candidate in (*record.default, *methods(quantity)):
        found = get_method(quantity, candidate)
        refusal = found.refusal(robot, order, coriolis)
        if not refusal:
            return found
        reasons.append(refusal)
    raise OrderError("; ".join(dict.fromkeys(reasons)) or f"quantity {quantity!r} has no method")


def _coriolis(m: Method) -> str:
    """What the table says of a method's Coriolis matrix."""
    of = " or ".join(f"{x} ({'' if CORIOLIS[x][1] else 'not '}admissible)" for x in m.coriolis)
    return f"; C: {of}" if of else ""


def orders(quantity: str, top: int | None = None) -> str:
    """Orders that a quantity goes to, and a method of it with this max_order, in words: "any", "0" or "0..2"."""
    tops = [x for x in (get(quantity).max_order, top) if x is not None]
    return "any" if not tops else "0" if min(tops) == 0 else f"0..{min(tops)}"


def method_rows(quantity: str, default: str | None = None) -> list[tuple[str, str, str, str]]:
    """[(name, orders, kind, source)], in words, of the methods of a quantity; `default` is marked as such."""
    return [
        (m.name + (" (default)" if m.name == default else ""), orders(quantity, m.max_order), m.kind, source)
        for m in _METHODS[get(quantity).name].values()
        for source in [m.source + _coriolis(m)]
    ]


def table(markdown: bool = False) -> str:
    """Text table of all quantities and methods: orders, kind, source; markdown=True gives that of docs/quantities.md.

    od.describe(quantity) says what a quantity takes and gives.
    """
    rows = [("quantity", "method", "orders", "kind", "source")]
    for q in _all().values():
        rows += [(q.name, *row) for row in method_rows(q.name, q.default[0] if q.default else None)]
    if not markdown:
        underlined = ["-" * max(len(terminal(r[k])) for r in rows) for k in range(4)]
        return in_columns([rows[0], (*underlined, "-" * 6), *rows[1:]])
    cells = [[terminal(cell).replace("|", "\\|") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], "|---" * 5 + "|", *lines[1:]])
