"""Robots with loops: all coordinates from the independent ones, and every quantity of a tree in those."""

from .. import robots
from ..errors import ModelError
from ..model.loops import LoopRobot
from ..numbers import shortened
from ..ports import Size, derivative_name, derivative_unit, motion_ports, nv
from ..registry import Port, quantity
from .closing import closing, guess_port


def _admit(robot):
    if isinstance(robot, LoopRobot):
        return robot
    what = f"it is a quantity of a robot with loops, got {shortened(robot)}; RobotBuilder.close_loop makes one"
    raise ModelError("loop_closure", [what])


def _inputs(robot, order, options):
    ports = motion_ports(robot, order - 1) if order else motion_ports(robot, 0)[:1]
    return [*ports, guess_port(robot)] if options["q_guess"] else ports


def _outputs(robot, order, options):
    tree = robot.tree
    rows = sum(len(x.directions) for x in robot.loops) + len(robot.couplings)
    out = [Port("q_tree", (Size(tree.nq, "tree.nq"), 1), "rad, m, 1", "all coordinates", tree.coordinate_names)]
    for k in range(order):
        name, what = derivative_name("v_tree", k), f"time derivative {k} of v_tree" if k else "all velocities"
        out.append(
            Port(name, (Size(tree.nv, "tree.nv"), 1), derivative_unit("rad/s, m/s", k), what, tree.velocity_names)
        )
    for k in range(order + 1):
        what = f"time derivative {k} of G" if k else "matrix with v_tree = G v"
        unit = derivative_unit("1, m, 1/m", k)
        out.append(
            Port(derivative_name("G", k), (Size(tree.nv, "tree.nv"), nv(robot)), unit, what, tree.velocity_names)
        )
    what = "how far the loops are open, all directions that they hold, and couplings"
    return [*out, Port("residual", (Size(rows, "rows"), 1), "m, 1", what)]


def _call(function, robot, order, ports, options):
    guess = ports["q_guess"] if options["q_guess"] else robot.home
    q, residual = closing(robot)(ports["q"], guess)
    V = [ports[derivative_name("v", k)] for k in range(order)]
    v, G = function(robot, order, q, V)
    out = {"q_tree": q, "residual": residual}
    out |= {derivative_name("v_tree", k): x for k, x in enumerate(v)}
    return out | {derivative_name("G", k): x for k, x in enumerate(G)}


def example(robot):
    """(robot, options) for od.describe: a four-bar linkage."""
    return robot or robots.four_bar(), {}


quantity(
    name="loop_closure",
    summary="all coordinates of a robot with loops from its independent ones, all velocities and the matrix between "
    "them, and their time derivatives",
    inputs=_inputs,
    outputs=_outputs,
    call=_call,
    options=("q_guess",),
    of="robot with loops",
    admit=_admit,
    default=("implicit",),
    equation="the loops are closed at q_tree; v_tree = G(q_tree) v",
    notes=("Without q_guess the steps to q begin where the robot was assembled, robot.home.",),
    errors=("ModelError: numbers at which a loop is open by more than 1e-9, or assembled in another mode",),
    example=example,
)

from . import (  # noqa: E402  registers the methods, and the ways
    by_ad,
    constrained,
    constrained_inverse,
    constrained_partials,
    functions,
    implicit,
    more_partials,
    partials,
    solving,
)
