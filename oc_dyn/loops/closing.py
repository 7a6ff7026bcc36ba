"""All coordinates of a robot with loops from the independent ones: Newton steps on a path from where it is closed."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..model.assembly import closing_blocks
from ..model.cache import cached
from ..model.closure import residual
from ..model.loops import LoopRobot
from ..model.modes import turning
from ..model.quaternions import quaternions
from ..ports import Size
from ..registry import Port
from ..subexpressions import merged

PATH, LAST, DIFFERENTIATED = 10, 4, 2  # Newton steps on the way, at its end, and those that derivatives see
FINE = 40  # on the way of overconstrained loops, whose side of singular positions is followed, too


def closing(robot: LoopRobot) -> ca.Function:
    """casadi.Function q (nq,), q_guess (tree.nq,) -> q_tree (tree.nq,), residual (rows,).

    q_guess is closed, or nearly; from its independent coordinates those of q are reached in ten steps, a Newton step of
    the dependent ones at each, so the branch is kept as long as these steps are short; of overconstrained loops in
    forty, of least squares. At the end four more, and two that derivatives see: Newton's error squares with each, so
    derivatives up to order three are exact.
    """
    return cached(robot, ("closing",), lambda: _explicit(robot) if not robot.loops else _iterated(robot))


def guess_port(robot: LoopRobot) -> Port:
    """q_guess, an input of Functions of robots with loops."""
    meaning = "all coordinates of a closed configuration, from which loops are followed to q"
    return Port("q_guess", (Size(robot.tree.nq, "tree.nq"), 1), "rad, m, 1", meaning, robot.tree.coordinate_names)


def _iterated(robot: LoopRobot) -> ca.Function:
    last, whole = newton_step(robot, None), residual(robot)
    y, guess = ca.MX.sym("q", robot.nq), ca.MX.sym("q_guess", robot.tree.nq)
    d = ca.stop_diff(followed(robot, y, guess)[-1][1], 1)
    for _ in range(DIFFERENTIATED):
        d = last(y, d)
    q = tree_q(robot, y, d)
    return ca.Function("closing", [y, guess], [q, whole(q)[0]], ["q", "q_guess"], ["q_tree", "residual"])


def followed(robot: LoopRobot, y: Any, guess: Any) -> list[tuple[Any, Any]]:
    """[(independent coordinates, dependent ones)] on the way from a guess of all to y, one Newton step each."""
    own, other = robot.rows("q", robot.independent), robot.rows("q", robot.dependent)
    step, start, d = newton_step(robot, 0.5), guess[own], guess[other]
    for _, first in quaternions(robot):  # of two quaternions of a rotation the nearer one
        rows = slice(first, first + 4)
        near = ca.if_else(ca.dot(start[rows], y[rows]) < 0, -1, 1)
        start = ca.vertcat(start[:first], near * start[rows], start[first + 4 :])
    turns = ca.DM(turning(robot)) * 2 * np.pi
    way = y - start
    way = way - turns * ca.floor(way / (2 * np.pi) + 0.5)  # whole turns lead to where they begin
    count, out = PATH if all(b.square for b in closing_blocks(robot)) else FINE, []
    for at in (*(start + k / count * way for k in range(1, count + 1)), *[y] * LAST):
        d = step(at, d)
        out.append((at, d))
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
    place = {c: k for k, c in enumerate(robot.rows("v", robot.dependent))}
    out = ca.SX(d)
    for b in closing_blocks(robot):
        A = J[b.rows, b.columns]
        if b.square:
            change = ca.solve(ca.sparsify(A), r[b.rows])
        else:
            Q, R = ca.qr(ca.densify(A))
            change = ca.solve(R, Q.T @ r[b.rows])
        share = 1 if longest is None else longest / ca.fmax(ca.norm_inf(change), longest)  # differentiable at 0, too
        out[[place[c] for c in b.columns]] -= share * change
    return ca.Function("newton_step", [y, d], [merged(out)], ["y", "d"], ["d_next"])
