"""Motion of single joints of a robot with loops from that of its independent coordinates."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from ..model.cache import cached
from ..model.loops import LoopRobot
from .closing import closing
from .implicit import motion


def joint_motion(robot: LoopRobot, names: Sequence[str], order: int) -> ca.Function:
    """casadi.Function q, v, dv, ... up to derivative `order` of q -> q of the tree, then x, x', ... (names,) of joints
    of the tree, one coordinate each; nothing is refused where loops do not close."""
    return cached(robot, ("joint motion", tuple(names), order), lambda: _joint_motion(robot, names, order))


def _joint_motion(robot: LoopRobot, names: Sequence[str], order: int) -> ca.Function:
    given = [ca.MX.sym("q", robot.nq), *(ca.MX.sym(f"d{k}q", robot.nv) for k in range(1, order + 1))]
    q, _ = closing(robot)(given[0], robot.home)
    moved = ca.Function.call(motion(robot, order, 0), [q, *given[1:]]) if order else []
    rows = robot.rows("v", names)
    return ca.Function("joint_motion", given, [q, q[robot.rows("q", names)], *(x[rows] for x in moved[:order])])


def joint_matrix(robot: LoopRobot, names: Sequence[str]) -> ca.Function:
    """casadi.Function q -> (names, nv) matrix A with x' = A v of joints of the tree."""
    return cached(robot, ("joint matrix", tuple(names)), lambda: _joint_matrix(robot, names))


def _joint_matrix(robot: LoopRobot, names: Sequence[str]) -> ca.Function:
    q = ca.MX.sym("q", robot.nq)
    G = motion(robot, 0, 0)(closing(robot)(q, robot.home)[0])
    return ca.Function("joint_matrix", [q], [G[robot.rows("v", names), :]])
