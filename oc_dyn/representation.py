"""Option representation="spatial" or "hybrid": how functions take and give the motion of a floating base.

Methods know body twists only. Here the rows of free joints on the root, in every port of the families v and tau, are
converted on the way in and out, with all derivatives. Where the base's motion is what comes out, the conversion of a
derivative of its wrench needs the accelerations of lower orders, so definitions are put in one after the other.
"""

import re
from dataclasses import dataclass, field, replace

import casadi as ca

from .lie import se3
from .lie.twist_conversion import checked_representation, convert_twists, convert_wrenches
from .model import joints as jt

_SEEN = {"spatial": "in root axes, at the root's origin", "hybrid": "in root axes, at the body's origin"}


def converts(record, robot, options):
    """Whether ports of this quantity change: the option says so and the robot has a floating base."""
    if not record.base_ports or options["representation"] is None:
        return False
    name = checked_representation(record.name, options["representation"])
    return name != "body" and bool(_bases(robot))


def described(robot, ports, options):
    """The ports with what the option changes said in their meaning."""
    bases, seen = _bases(robot), _SEEN[options["representation"]]
    names = ", ".join(b.joint.name for b in bases)
    return [
        replace(p, meaning=f"{p.meaning}; that of {names} {seen}") if any(b.row(p) is not None for b in bases) else p
        for p in ports
    ]


def converted(robot, order, inputs, outputs, symbols, options, run):
    """Values of `outputs` by name, as run({input: value}) gives them, but in the representation asked for."""
    name, bases = options["representation"], _bases(robot)
    changed = [p for p in inputs if any(b.row(p) is not None for b in bases)]
    inner = {**symbols, **{p.name: ca.SX.sym(p.name, *p.shape) for p in changed}}
    results = run(inner)
    for b in bases:
        b.pose_at(symbols["q"])

    definitions = []  # (symbol, what it stands for), in order: what is given, then what follows from it
    for k in range(order + 2):
        for b in bases:
            b.read_inputs(name, inputs, symbols, k)
        definitions += _in_body_frames(bases, changed, inner, symbols, ("v", k))
        for b in bases:
            definitions += b.read_twist_found(name, outputs, results, k)
        definitions += _in_body_frames(bases, changed, inner, symbols, ("tau", k))
    for b in bases:
        b.read_wrenches_found(name, outputs, results, order)
    values = [_with_rows(bases, p, ca.SX(results[p.name])) for p in outputs]
    _, values = ca.substitute_inplace([x for x, _ in definitions], [y for _, y in definitions], values)
    return {p.name: x for p, x in zip(outputs, values, strict=True)}


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
