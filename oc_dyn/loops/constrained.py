"""Dynamics with explicit constraints: loops of a tree that is cut open, couplings, contacts, and impacts.

    M dv + h = tau + J^T f,    d(J v)/dt = a_c,

in all coordinates of the tree, f the forces of the constraints: along the directions that loops hold, in the axes of
their frame a, those of couplings, and those on frames in contact, in root axes.
"""

from typing import Any

import casadi as ca

from .. import robots
from ..errors import ShapeError, UnknownName
from ..model.closure import residual
from ..model.loops import LoopRobot
from ..model.robot import check_robot
from ..ports import Size, configuration_port, derivative_name, derivative_unit, motion_ports, torque_ports, wrench_ports
from ..registry import Port, quantity

KINDS = {"point": ("x", "y", "z"), "surface": ("rx", "ry", "rz", "x", "y", "z")}


def _admit(robot):
    check_robot("constrained_dynamics", robot)
    return robot


def tree_of(robot):
    """The tree in whose coordinates constraints are written."""
    return robot.tree if isinstance(robot, LoopRobot) else robot


def checked_contacts(robot, options) -> tuple[tuple[str, str], ...]:
    """((frame, kind), ...) of the option contacts."""
    out: list[tuple[str, str]] = []
    given: Any = options["contacts"] or ()
    for pair in (given,) if isinstance(given, str) else given:
        frame, kind = pair if isinstance(pair, tuple) and len(pair) == 2 else (pair, "point")
        if kind not in KINDS:
            raise UnknownName(f"kind of contact of frame {frame!r}", kind, KINDS)
        if not robot.frame(frame).body:
            raise ShapeError(f"contacts: frame {frame!r} is fixed to the ground")
        out.append((str(frame), str(kind)))
    return tuple(out)


def row_names(robot, options) -> tuple[str, ...]:
    """Names of the rows of J, and of f."""
    loops = getattr(robot, "loops", ())
    names = [f"{x.name}.{d}" for x in loops for d in x.directions]
    names += [c.name for c in getattr(robot, "couplings", ())]
    return tuple(names + [f"{frame}.{d}" for frame, kind in checked_contacts(robot, options) for d in KINDS[kind]])


def _rows(robot, options):
    names = row_names(robot, options)
    if not names:
        raise ShapeError("constrained_dynamics: there is no constraint; give contacts={frame: 'point'}, or a loop")
    return Size(len(names), "rows"), names


_FORCE = "forces of the constraints, on the second link of a loop or the frame in contact"


def _force_ports(robot, order, options, name="f", unit="N, Nm", meaning=_FORCE):
    size, names = _rows(robot, options)
    ports = []
    for k in range(order + 1):
        what = f"time derivative {k} of {name}" if k else meaning
        ports.append(Port(derivative_name(name, k), (size, 1), derivative_unit(unit, k), what, names))
    return ports


def _inputs(robot, order, options):
    tree = tree_of(robot)
    ports = [configuration_port(tree), motion_ports(tree, 0)[1], *torque_ports(tree, order)]
    ports += wrench_ports(tree, order) if options["external_wrenches"] else []
    if options.get("moving"):
        ports += _force_ports(robot, order, options, "a_c", "m/s2, rad/s2", "what d(J v)/dt is to be")
    if options.get("baumgarte"):
        ports.append(Port("gains", (2, 1), "1/s2, 1/s", "of what is open and of J v, which d(J v)/dt takes back"))
    return ports


def _outputs(robot, order, options):
    return [*motion_ports(tree_of(robot), order + 1)[2:], *_force_ports(robot, order, options)]


def _call(function, robot, order, ports, options):
    given = Given(robot, order, ports, options)
    accelerations, forces = function(given)
    out = {derivative_name("v", k + 1): x for k, x in enumerate(accelerations)}
    return out | {derivative_name("f", k): x for k, x in enumerate(forces)}


class Given:
    """What methods read: robot, tree, order, q, v, T and W (derivatives of tau and w_ext), A (of a_c), gains."""

    def __init__(self, robot: Any, order: int, ports: dict[str, Any], options: dict[str, Any]) -> None:
        self.robot, self.tree, self.order = robot, tree_of(robot), order
        self.loops, self.couplings = getattr(robot, "loops", ()), getattr(robot, "couplings", ())
        self.contacts, self.count = checked_contacts(robot, options), len(row_names(robot, options))
        self.q, self.v, self.options = ports["q"], ports["v"], options
        orders = range(order + 1)
        self.T = [ports[derivative_name("tau", k)] for k in orders] if "tau" in ports else []
        self.W = [ports[derivative_name("w_ext", k)] for k in orders] if options.get("external_wrenches") else None
        zero = ca.SX(self.count, 1)
        self.A = [ports[derivative_name("a_c", k)] if options.get("moving") else zero for k in orders]
        self.gains = ports.get("gains")

    def residual(self) -> Any:
        """(rows,) how far loops and couplings are open, zero for contacts."""
        if not (self.loops or self.couplings):
            return ca.SX(self.count, 1)
        r = residual(self.robot)(self.q)[0]
        return ca.vertcat(r, ca.SX(self.count - r.shape[0], 1))


def example(robot):
    """(robot, options) for od.describe: the end of a robot on the ground."""
    robot = robot or robots.planar_2r()
    return robot, {"contacts": ((list(robot.frames)[-1], "point"),)}


_EQUATION = "M(q) dv + C(q, v) v + g(q) = tau + J(q)^T f + sum_b J_b^T w_b, d(J v)/dt = a_c - gains[0] r - gains[1] J v"
_NOTES = (
    "Of a robot with loops, q and v are those of robot.tree: all coordinates.",
    "Where constraints say the same twice, dv is unique and f is not: methods agree on dv and J^T f.",
)


def _unique(order, ports, outputs):
    return {derivative_name("v", k + 1): outputs[derivative_name("v", k + 1)] for k in range(order + 1)}


quantity(
    name="constrained_dynamics",
    summary="joint accelerations and constraint forces of a robot in contact, or with loops cut open, and their time "
    "derivatives",
    inputs=_inputs,
    outputs=_outputs,
    call=_call,
    options=("contacts", "external_wrenches", "moving", "baumgarte"),
    compare=_unique,
    default=("delassus",),
    of="robot with constraints",
    admit=_admit,
    equation=_EQUATION,
    notes=_NOTES,
    errors=("ShapeError: there is no constraint", "UnknownName: a frame that is not there, another kind of contact"),
    example=example,
)


def _impact_inputs(robot, order, options):
    tree = tree_of(robot)
    meaning = "of the velocities of the constraints that comes back after the impact, 0 of none"
    return [configuration_port(tree), motion_ports(tree, 0)[1], Port("restitution", (1, 1), "1", meaning)]


def _impact_outputs(robot, order, options):
    tree = tree_of(robot)
    after = Port("v_after", (Size(tree.nv, "nv"), 1), "rad/s, m/s", "velocities after the impact", tree.velocity_names)
    return [after, *_force_ports(robot, 0, options, "impulse", "N s, N m s", "impulses of the constraints")]


def _call_impact(function, robot, order, ports, options):
    v, impulse = function(Given(robot, 0, ports, options), ports["restitution"])
    return {"v_after": v, "impulse": impulse}


quantity(
    name="impact",
    summary="velocities after a robot comes into contact, or its loops snap in, and the impulses",
    inputs=_impact_inputs,
    outputs=_impact_outputs,
    call=_call_impact,
    options=("contacts",),
    compare=lambda order, ports, outputs: {"v_after": outputs["v_after"]},
    max_order=0,
    default=("delassus",),
    of="robot with constraints",
    admit=_admit,
    equation="M(q) (v_after - v) = J(q)^T impulse, J v_after = -restitution J v",
    notes=_NOTES,
    errors=("ShapeError: there is no constraint", "UnknownName: a frame that is not there, another kind of contact"),
    example=example,
)

from . import constrained_methods  # noqa: E402, F401  registers the methods
