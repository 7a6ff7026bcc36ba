"""Quantities and methods: what can be computed, and by which ways.

A Quantity is a contract: named ports with shape, unit and frame, for any robot and order. A Method is one way to
compute it. Both are plain records in two dictionaries; tests, studies, the README's table and `oc-dyn list` walk
over them, so a method that is registered is tested, measured and listed.
"""

from dataclasses import dataclass, field

from .errors import OrderError, UnknownName
from .text import terminal

CORIOLIS = {  # the matrices C(q, v) on offer, all with the same C v: what they are, whether admissible: M' = C + C^T
    "christoffel": ("Christoffel symbols", True),
    "garofalo": ("Garofalo et al. 2013, eq. 6b", True),
    "kumar_mueller": ("Kumar and Mueller 2021, eq. 30", False),
}
_QUANTITIES = {}
_METHODS = {}


@dataclass(frozen=True)
class Port:
    """A named input or output: shape (rows, columns), unit and what it means, in which frame; names of its rows."""

    name: str
    shape: tuple
    unit: str
    meaning: str
    rows: tuple = ()


@dataclass(frozen=True)
class Quantity:
    """A contract. `inputs` and `outputs` are functions (robot, order, options) -> list of Port; `call` runs a
    method: (method function, model, order, {port: value}, options) -> {port: value}. `compare`, where the outputs are
    not unique: (order, {input: value}, {output: value}) -> {what: value} on which all methods must agree. `of` says
    what it is a quantity of; where that is not a Robot, which methods read in canonical form, `admit` is a function
    that returns what methods read, or raises if the quantity makes no sense for what was given. `solves`, where the
    mass matrix is solved with: (robot, options) -> rows of v whose accelerations are given, and so not solved for."""

    name: str
    summary: str
    inputs: object
    outputs: object
    call: object
    options: tuple = ()
    compare: object = None
    max_order: int | None = None
    default: tuple = ()  # methods in order of preference; the first that can is taken
    base_ports: bool = False  # whether the option representation says how a floating base is seen in its ports
    of: str = "robot"
    admit: object = None
    solves: object = None
    sparse: bool = False  # whether zeros that the tree makes are structural in the outputs


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
    """

    quantity: str
    name: str
    function: object
    kind: str
    source: str
    max_order: int | None = None
    cannot: dict = field(default_factory=dict)
    regroup: bool = False
    cse: bool = True
    graph: str = "sx"
    tolerance: float | None = None
    numeric_parameters: str | None = None
    coriolis: tuple = ()

    @property
    def admissible(self):
        """Whether M' = C + C^T of every Coriolis matrix it gives; None where there is none."""
        return all(CORIOLIS[x][1] for x in self.coriolis) if self.coriolis else None

    def refusal(self, robot, order, coriolis=None):
        """Why this method cannot serve this robot at this order, or with this Coriolis matrix; None if it can."""
        if coriolis is not None and coriolis not in self.coriolis:
            return f"{self.quantity}/{self.name} gives the Coriolis matrix {' or '.join(self.coriolis)}, not {coriolis}"
        if self.max_order is not None and order > self.max_order:
            return f"{self.quantity}/{self.name} goes up to order {self.max_order}, got order {order}"
        for feature, reason in self.cannot.items():
            if feature in robot.features:
                return f"{self.quantity}/{self.name} cannot do robots with a {feature} joint: {reason}"
        return None


def quantity(**facts):
    """Register a quantity; see Quantity for the facts."""
    record = Quantity(**facts)
    if record.name in _QUANTITIES:
        raise ValueError(f"quantity {record.name!r} is registered already")
    _QUANTITIES[record.name] = record
    _METHODS[record.name] = {}
    return record


def method(quantity, name, *, kind, source, **facts):
    """Decorator that registers a function as a method of a quantity; see Method for the facts."""

    def register(function):
        table = _METHODS[get(quantity).name]
        if name in table:
            raise ValueError(f"method {quantity}/{name} is registered already")
        table[name] = Method(quantity, name, function, kind, source, **facts)
        return function

    return register


def quantities(of=None):
    """Names of the registered quantities; of="robot" or "elastic robot": of those that such a one has."""
    return tuple(name for name, q in _QUANTITIES.items() if of in (None, q.of))


def get(name):
    """The Quantity of this name; UnknownName lists near ones."""
    if not isinstance(name, str) or name not in _QUANTITIES:
        raise UnknownName("quantity", name, _QUANTITIES)
    return _QUANTITIES[name]


def methods(quantity):
    """Names of the methods registered for a quantity."""
    return tuple(_METHODS[get(quantity).name])


def get_method(quantity, name):
    """The Method of this name; UnknownName lists near ones."""
    table = _METHODS[get(quantity).name]
    if not isinstance(name, str) or name not in table:
        raise UnknownName(f"method of {quantity!r}", name, table)
    return table[name]


def choose(quantity, robot, order, name=None, coriolis=None):
    """The method asked for, or the default one: the first of the quantity's preferences that can. coriolis: the name
    of the Coriolis matrix that it has to give, None for any.

    Raises UnknownName for a name that is not there, OrderError if it cannot do this robot or order.
    """
    record = get(quantity)
    if name is not None:
        found = get_method(quantity, name)
        refusal = found.refusal(robot, order, coriolis)
        if refusal:
            able = [m.name for m in _METHODS[quantity].values() if not m.refusal(robot, order, coriolis)]
            raise OrderError(f"{refusal}; methods that can: {', '.join(able) or 'none'}")
        return found
    reasons = []
    for candidate in (*record.default, *methods(quantity)):
        found = get_method(quantity, candidate)
        refusal = found.refusal(robot, order, coriolis)
        if not refusal:
            return found
        reasons.append(refusal)
    raise OrderError("; ".join(dict.fromkeys(reasons)) or f"quantity {quantity!r} has no method")


def _coriolis(m):
    """What the table says of a method's Coriolis matrix."""
    of = " or ".join(f"{x} ({'' if CORIOLIS[x][1] else 'not '}admissible)" for x in m.coriolis)
    return f"; C: {of}" if of else ""


def table(markdown=False):
    """Text table of all quantities and methods: orders, kind, source; markdown=True gives the README's."""
    rows = [("quantity", "method", "orders", "kind", "source")]
    for q in _QUANTITIES.values():
        for m in _METHODS[q.name].values():
            top = [x for x in (q.max_order, m.max_order) if x is not None]
            orders = "0" if 0 in top else f"0..{min(top)}" if top else "any"
            mark = " (default)" if q.default and q.default[0] == m.name else ""
            rows.append((q.name, m.name + mark, orders, m.kind, m.source + _coriolis(m)))
    rows = [tuple(map(terminal, row)) for row in rows]
    if markdown:
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        return "\n".join([lines[0], "|---" * 5 + "|", *lines[1:]])
    widths = [max(len(r[k]) for r in rows) for k in range(4)]
    lines = ["  ".join([*(c.ljust(w) for c, w in zip(r, widths, strict=False)), r[4]]).rstrip() for r in rows]
    return "\n".join([lines[0], "  ".join("-" * w for w in [*widths, 6]), *lines[1:]])
