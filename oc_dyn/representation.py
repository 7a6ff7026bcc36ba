"""Option representation="spatial" or "hybrid": how functions take and give the motion of a floating base.

Methods know body twists only. Here the rows of free joints on the root, in every port of the families v and tau, are
converted on the way in and out, with all derivatives. Where the base's motion is what comes out, the conversion of a
derivative of its wrench needs the accelerations of lower orders, so definitions are put in one after the other.
Where matrices come out, the quantity has registered how they change with the velocities: see registry.conversion.
"""

import re
from dataclasses import dataclass, field, replace

import casadi as ca

from .lie import se3
from .lie.twist_conversion import checked_representation, convert_columns, convert_twists, convert_wrenches
from .model import joints as jt
from .ports import derivative_name
from .registry import conversion_of

_SEEN = {"spatial": "in root axes, at the root's origin", "hybrid": "in root axes, at the body's origin"}


def converts(record, robot, options):
    """Whether ports of this quantity change: the option says so and the robot has a floating base."""
    if not record.base_ports or options["representation"] is None:
        return False
    name = checked_representation(record.name, options["representation"])
    return name != "body" and bool(_bases(robot))


def described(robot, ports, options, whole=False):
    """The ports with what the option changes said in their meaning; whole: of all of them, or of those of v and tau."""
    bases, seen = _bases(robot), _SEEN[options["representation"]]
    names = ", ".join(b.joint.name for b in bases)
    return [
        replace(p, meaning=f"{p.meaning}; that of {names} {seen}") if whole or _has_rows(bases, p) else p for p in ports
    ]


def converted(record, model, order, inputs, outputs, symbols, options, run):
    """Values of `outputs` by name, as run({input: value}) gives them, but in the representation asked for."""
    name, bases = options["representation"], _bases(model.robot)
    changed = [p for p in inputs if _has_rows(bases, p)]
    inner = {**symbols, **{p.name: ca.SX.sym(p.name, *p.shape) for p in changed}}
    results = run(inner)
    for b in bases:
        b.pose_at(symbols["q"])
    change = conversion_of(record.name)
    follow = _followed if change is None else _given
    definitions = follow(bases, name, order, (inputs, outputs), (changed, inner, symbols), results)
    if change is None:
        values = [_with_rows(bases, p, ca.SX(results[p.name])) for p in outputs]
    else:
        results = change(Seen(name, model, order, options, inner, symbols, tuple(bases)), results)
        values = [ca.SX(results[p.name]) for p in outputs]
    _, values = ca.substitute_inplace([x for x, _ in definitions], [y for _, y in definitions], values)
    return {p.name: x for p, x in zip(outputs, values, strict=True)}


def _followed(bases, name, order, ports, given, results):
    """Definitions [(symbol, what it stands for)], in order: what is given, then what follows from it."""
    (inputs, outputs), (changed, inner, symbols), definitions = ports, given, []
    for k in range(order + 2):
        definitions += _given_twists(bases, name, inputs, given, k)
        for b in bases:
            definitions += b.read_twist_found(name, outputs, results, k)
        definitions += _in_body_frames(bases, changed, inner, symbols, ("tau", k))
    for b in bases:
        b.read_wrenches_found(name, outputs, results, order)
    return definitions


def _given(bases, name, order, ports, given, results):
    """As _followed, where all twists are inputs and no wrench is."""
    del results
    return [x for k in range(order + 2) for x in _given_twists(bases, name, ports[0], given, k)]


def _given_twists(bases, name, inputs, given, k):
    """Definitions of the derivative k of the twists that are inputs."""
    changed, inner, symbols = given
    for b in bases:
        b.read_inputs(name, inputs, symbols, k)
    return _in_body_frames(bases, changed, inner, symbols, ("v", k))


@dataclass(frozen=True)
class Seen:
    """What a conversion reads. name: the representation. inner, symbols: {input: value} with body twists and as the
    user gives them. bases: the bodies that float, each with its pose C, its twists and rows."""

    name: str
    model: object
    order: int
    options: dict
    inner: dict
    symbols: dict
    bases: tuple

    def velocities(self, own=False):
        """[v, dv, ...] with body twists; own: as the user gives them."""
        ports, out = self.symbols if own else self.inner, []
        while derivative_name("v", len(out)) in ports:
            out.append(ports[derivative_name("v", len(out))])
        return out

    def jet(self, found, name):
        """Derivatives 0..order of an output."""
        return [found[derivative_name(name, k)] for k in range(self.order + 1)]

    def named(self, name, jet):
        """{output: derivative}."""
        return {derivative_name(name, k): x for k, x in enumerate(jet)}

    def matrix(self, order):
        """Derivatives 0..order of G (nv, nv), with which v = G w for body twists v and those of the user w."""
        return self._columns(self.name, "body", order)

    def inverse(self):
        """(nv, nv) inverse of G."""
        return self._columns("body", self.name, 0)[0]

    def _columns(self, source, target, order):
        nv, out = self.model.robot.nv, []
        jets = [convert_columns(source, target, b.C, b.twist, [ca.DM.eye(6)] + [None] * order) for b in self.bases]
        for k in range(order + 1):
            out.append(self.placed([x[k] for x in jets], ca.SX.eye(nv) if k == 0 else ca.SX(nv, nv)))
        return out

    def placed(self, blocks, matrix):
        """The matrix (nv, nv) with the blocks (6, 6) of the bases put in."""
        matrix = ca.SX(matrix)
        for b, block in zip(self.bases, blocks, strict=True):
            rows = slice(b.joint.v_index, b.joint.v_index + 6)
            matrix[rows, rows] = ca.sparsify(ca.SX(block))
        return matrix


def _in_body_frames(bases, changed, inner, symbols, family):
    """[(symbol that the method reads, its value from what the user gives)] of the ports of one family and order."""
    found = [p for p in changed if _family(p) == family]
    return [(inner[p.name], _with_rows(bases, p, symbols[p.name], body=True)) for p in found]


@dataclass
class _Base:
    """A body that floats: its joint, its pose in the root frame, its motion and wrench and their derivatives."""

    body: object
    names: tuple
    C: tuple = ()
    twist: list = field(default_factory=list)
    body_twist: list = field(default_factory=list)
    wrench: list = field(default_factory=list)
    body_wrench: list = field(default_factory=list)

    @property
    def joint(self):
        return self.body.joint

    def pose_at(self, q):
        j = self.joint
        home = ca.DM(self.body.rotation), ca.DM(self.body.translation)
        self.C = se3.compose(home, jt.displacement("free", q[j.q_index : j.q_index + j.nq]))

    def row(self, port):
        """First of its rows in a port, None if it has none there."""
        return port.rows.index(self.names[0]) if _family(port) and self.names[0] in port.rows else None

    def rows_of(self, value, port):
        return value[self.row(port) : self.row(port) + 6]

    def port(self, ports, letter, k):
        """The port of one family and order that has rows of this base, None if there is none."""
        return next((p for p in ports if _family(p) == (letter, k) and self.row(p) is not None), None)

    def read_inputs(self, name, inputs, symbols, k):
        """Twist and wrench of order k, where they are inputs, in the representation `name` and in the body's frame."""
        p = self.port(inputs, "v", k)
        if p is not None:
            self.twist.append(self.rows_of(symbols[p.name], p))
            self.body_twist.append(convert_twists(name, "body", self.C, self.twist)[k])
        p = self.port(inputs, "tau", k)
        if p is not None:
            self.wrench.append(self.rows_of(symbols[p.name], p))
            self.body_wrench.append(convert_wrenches(name, "body", self.C, self.twist[:k], self.wrench)[k])

    def read_twist_found(self, name, outputs, results, k):
        """Twist of order k, where it is an output; [(symbol for it in what follows, its value)]."""
        p = self.port(outputs, "v", k) if len(self.twist) == k else None
        if p is None:
            return []
        self.body_twist.append(ca.SX.sym("found", 6))
        self.twist.append(convert_twists("body", name, self.C, self.body_twist)[k])
        return [(self.body_twist[k], self.rows_of(results[p.name], p))]

    def read_wrenches_found(self, name, outputs, results, order):
        """Wrenches of all orders, where they are outputs."""
        if not self.wrench:
            found = [self.port(outputs, "tau", k) for k in range(order + 1)]
            self.body_wrench = [self.rows_of(results[p.name], p) for p in found]
            self.wrench = convert_wrenches("body", name, self.C, self.body_twist, self.body_wrench)


def _bases(robot):
    return [
        _Base(b, robot.velocity_names[b.joint.v_index : b.joint.v_index + 6])
        for b in robot.bodies
        if b.parent == 0 and b.joint.kind == "free"
    ]


def _has_rows(bases, port):
    return any(b.row(port) is not None for b in bases)


def _family(port):
    """("v" or "tau", how often differentiated) of a port, None for others."""
    match = re.fullmatch(r"(d?)(\d*)(v|tau)(?:_[pf])?", port.name)
    return (match[3], int(match[2] or 1) if match[1] else 0) if match else None


def _with_rows(bases, port, value, body=False):
    """The value of a port with the rows of the bases replaced by what they are in one representation."""
    for b in bases:
        start = b.row(port)
        if start is not None:
            letter, k = _family(port)
            kind = {"v": "twist", "tau": "wrench"}[letter]
            part = getattr(b, f"body_{kind}" if body else kind)[k]
            value = ca.vertcat(value[:start], part, value[start + 6 :])
    return value
