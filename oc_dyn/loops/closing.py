"""All coordinates of a robot with loops from the independent ones: Newton steps on a path from where it is closed."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..model.assembly import closing_rows
from ..model.cache import cached
from ..model.closure import groups, residual, row_owners
from ..model.loops import LoopRobot
from ..model.quaternions import quaternions
from ..ports import Size
from ..registry import Port
from ..subexpressions import merged

PATH, LAST, DIFFERENTIATED = 10, 4, 2  # Newton steps on the way, at its end, and those that derivatives see


def closing(robot: LoopRobot) -> ca.Function:
    """casadi.Function q (nq,), q_guess (tree.nq,) -> q_tree (tree.nq,), residual (rows,).

    q_guess is closed, or nearly; from its independent coordinates those of q are reached in ten steps, a Newton step of
    the dependent ones at each, so the branch is kept as long as these steps are short. At the end four more, and two
    that derivatives see: Newton's error squares with each, so derivatives up to order three are exact.
    """
    return cached(robot, ("closing",), lambda: _explicit(robot) if not robot.loops else _iterated(robot))


def guess_port(robot: LoopRobot) -> Port:
    """q_guess, an input of Functions of robots with loops."""
    meaning = "all coordinates of a closed configuration, from which loops are followed to q"
    return Port("q_guess", (Size(robot.tree.nq, "tree.nq"), 1), "rad, m, 1", meaning, robot.tree.coordinate_names)


def _iterated(robot: LoopRobot) -> ca.Function:
    own, other = robot.rows("q", robot.independent), robot.rows("q", robot.dependent)
    step, last, whole = newton_step(robot, 0.5), newton_step(robot, None), residual(robot)
    y, guess = ca.MX.sym("q", robot.nq), ca.MX.sym("q_guess", robot.tree.nq)
    start, d = guess[own], guess[other]
    for _, first in quaternions(robot):  # of two quaternions of a rotation the nearer one
        rows = slice(first, first + 4)
        near = ca.if_else(ca.dot(start[rows], y[rows]) < 0, -1, 1)
        start = ca.vertcat(start[:first], near * start[rows], start[first + 4 :])
    turns = ca.DM(_turning(robot)) * 2 * np.pi
    way = y - start
    way = way - turns * ca.floor(way / (2 * np.pi) + 0.5)  # whole turns lead to where they begin
    for k in range(1, PATH + 1):
        d = step(start + k / PATH * way, d)
    for _ in range(LAST):
        d = step(y, d)
    d = ca.stop_diff(d, 1)
    for _ in range(DIFFERENTIATED):
        d = last(y, d)
    q = tree_q(robot, y, d)
    return ca.Function("closing", [y, guess], [q, whole(q)[0]], ["q", "q_guess"], ["q_tree", "residual"])


def _turning(robot: LoopRobot) -> list[float]:
    """(nq,) 1 for the angles of independent joints whose whole turns change nothing: those on no coupling."""
    coupled = {name for c in robot.couplings for name in (c.joint, *c.of)}
    coupled |= {j.mimic.joint for j in robot.tree.mimics if j.mimic is not None}
    out = [0.0] * robot.nq
    for j in robot.joints:
        if j.kind in ("revolute", "continuous") and j.name not in coupled:
            out[j.q_index] = 1.0
    return out


def _explicit(robot: LoopRobot) -> ca.Function:
    """Couplings alone: one after the other, without a step."""
    tree = robot.tree
    y, guess = ca.SX.sym("q", robot.nq), ca.SX.sym("q_guess", tree.nq)
    found = {j.name: y[j.q_index] for j in robot.joints}
    waiting = list(robot.couplings)
    while waiting:
        ready = next(c for c in waiting if all(name in found for name in c.of))
        found[ready.joint] = ready.function(ca.vertcat(*(found[name] for name in ready.of)))
        waiting.remove(ready)
    d = ca.vertcat(*(found[name] for name in robot.dependent))
    q = tree_q(robot, y, d)
    return ca.Function("closing", [y, guess], [q, residual(robot)(q)[0]], ["q", "q_guess"], ["q_tree", "residual"])


def tree_q(robot: LoopRobot, y, d):
    """q of the tree from the independent coordinates and the dependent ones."""
    order = {row: k for k, row in enumerate([*robot.rows("q", robot.independent), *robot.rows("q", robot.dependent)])}
    return ca.vertcat(y, d)[[order[k] for k in range(robot.tree.nq)]]


def newton_step(robot: LoopRobot, longest: float | None) -> ca.Function:
    """casadi.Function y (nq,), d -> d: a Newton step of the dependent coordinates, at most so long [rad, m] in each;
    None: of any length, as those that are differentiated, since a bound has no derivative at a step of exactly 0."""
    y, d = ca.SX.sym("y", robot.nq), ca.SX.sym("d", len(robot.rows("q", robot.dependent)))
    r, J, _ = residual(robot)(tree_q(robot, y, d))
    rows, owners, columns = closing_rows(robot), row_owners(robot), robot.rows("v", robot.dependent)
    place = {c: k for k, c in enumerate(columns)}
    out = ca.SX(d)
    for names, joints in groups(robot):
        own = [k for k in rows if owners[k] in names]
        mine = robot.rows("v", joints)
        change = ca.solve(ca.sparsify(J[own, mine]), r[own])
        share = 1 if longest is None else longest / ca.fmax(ca.norm_inf(change), longest)  # differentiable at 0, too
        out[[place[c] for c in mine]] -= share * change
    return ca.Function("newton_step", [y, d], [merged(out)], ["y", "d"], ["d_next"])
