"""What is zero where loops are closed, from the poses of their frames as written, and its Jacobian by velocities."""

from __future__ import annotations

from typing import Any

import casadi as ca

from ..lie import se3
from ..subexpressions import merged
from .cache import cached
from .loop_joints import Coupling, Loop
from .robot import Robot, displaced, tangent_map


def row_owners(robot: Any) -> list[str]:
    """Name of the loop or coupling of each row of residual."""
    return [x.name for x in robot.loops for _ in x.directions] + [c.name for c in robot.couplings]


def residual(robot: Any) -> ca.Function:
    """casadi.Function q (tree.nq,) -> r (rows,), J (rows, tree.nv), side (loops,): what is zero where the loops are
    closed [m, 1], its Jacobian by the velocities, and what is positive where frames are not turned over."""
    return cached(robot, ("closure",), lambda: _residual(robot))


def _residual(robot: Any) -> ca.Function:
    tree = robot.tree
    q = ca.SX.sym("q", tree.nq)
    poses = body_poses(tree, q)
    rows, sides = [], [ca.SX.zeros(0, 1)]
    for loop in robot.loops:
        r, side = loop_rows(loop, *loop_frames(loop, poses))
        rows.append(r)
        sides.append(side)
    rows += [q[tree.joint(c.joint).q_index] - c.function(_of(tree, c, q)) for c in robot.couplings]
    r = ca.vertcat(*rows)
    J = ca.jtimes(r, q, tangent_map(tree, q)) if tree.nv else ca.SX.zeros(r.size1(), 0)
    return ca.Function("closure", [q], merged([r, ca.densify(J), ca.vertcat(*sides)]), ["q"], ["r", "J", "side"])


def _of(tree: Robot, c: Coupling, q: Any) -> Any:
    return ca.vertcat(*(q[tree.joint(name).q_index] for name in c.of))


def body_poses(tree: Robot, q: Any) -> list[Any]:
    """[(R, p)] of the ground and of the bodies in the root frame, at q (nq,)."""
    poses: list[Any] = [(ca.DM.eye(3), ca.DM.zeros(3))]
    for b in tree.bodies:
        j = b.joint
        x = q[j.q_index : j.q_index + j.nq]
        if j.mimic is not None:
            x = j.mimic.multiplier * x + j.mimic.offset
        rest = ca.DM(b.rotation), ca.DM(b.translation)
        poses.append(se3.compose(poses[b.parent], se3.compose(rest, displaced(j, x))))
    return poses


def loop_frames(loop: Loop, poses: list[Any]) -> tuple[Any, Any]:
    """Poses of the two frames of a loop."""
    a, b = loop.bodies
    first = se3.compose(poses[a], (ca.DM(loop.rotation_a), ca.DM(loop.translation_a)))
    second = se3.compose(poses[b], (ca.DM(loop.rotation_b), ca.DM(loop.translation_b)))
    return first, second


def loop_rows(loop: Loop, a: Any, b: Any) -> tuple[Any, Any]:
    """(rows that are zero where the loop is closed, what is then positive unless the frames are turned over).

    Of turns about all axes the rows are the skew part of the relative rotation; about two, how the third axis of b is
    seen along those of a; about one, a cosine between axes: for small turns the angles.
    """
    R, p = a[0].T @ b[0], a[0].T @ (b[1] - a[1])
    rows = [p["xyz".index(x)] for x in loop.directions if x in ("x", "y", "z")]
    turns = tuple("xyz".index(x[1]) for x in loop.directions if x[0] == "r")
    if len(turns) == 3:
        rows += [0.5 * (R[2, 1] - R[1, 2]), 0.5 * (R[0, 2] - R[2, 0]), 0.5 * (R[1, 0] - R[0, 1])]
        side = ca.trace(R) + 1e-9
    elif len(turns) == 2:
        axis = 3 - sum(turns)
        rows += [sign_of(t, axis) * R[3 - t - axis, axis] for t in turns]
        side = R[axis, axis]
    elif len(turns) == 1:
        rows.append(R[(turns[0] + 2) % 3, (turns[0] + 1) % 3])
        side = ca.SX(1)
    else:
        side = ca.SX(1)
    return ca.vertcat(*rows), side


def sign_of(turn: int, axis: int) -> int:
    """1 or -1 with which a small turn about axis `turn` moves axis `axis` along the third one."""
    return 1 if (axis - turn) % 3 == 1 else -1


def groups(robot: Any) -> list[tuple[list[str], list[str]]]:
    """[(names of loops and couplings, names of dependent joints)]: what is solved together, in the order of the first
    joint; while none is chosen, all joints count as dependent."""
    tree = robot.tree
    chosen = {j.name for j in robot.joints} if robot.nq < tree.nq else set()
    own = {j.name for j in tree.joints} - chosen
    parts = [(x.name, path_joints(tree, x)) for x in robot.loops]
    parts += [(c.name, {c.joint, *c.of}) for c in robot.couplings]
    found: list[tuple[set[str], set[str]]] = []
    for name, joints in parts:
        joints &= own
        touching = [g for g in found if g[1] & joints]
        found = [g for g in found if g not in touching]
        found.append(({name}.union(*(g[0] for g in touching)), joints.union(*(g[1] for g in touching))))
    order = [j.name for j in tree.joints]
    names = [x.name for x in (*robot.loops, *robot.couplings)]
    sorted_ = [(sorted(a, key=names.index), sorted(b, key=order.index)) for a, b in found]
    return sorted(sorted_, key=lambda g: order.index(g[1][0]) if g[1] else -1)


def path_joints(tree: Robot, loop: Loop) -> set[str]:
    """Names of the joints between the two bodies of a loop that own coordinates, masters of those that follow."""
    paths = [set(_support(tree, b)) for b in loop.bodies]
    between = paths[0] ^ paths[1]
    joints = [tree.bodies[b - 1].joint for b in between]
    return {j.mimic.joint if j.mimic is not None else j.name for j in joints}


def _support(tree: Robot, body: int) -> list[int]:
    path = []
    while body:
        path.append(body)
        body = tree.bodies[body - 1].parent
    return path
