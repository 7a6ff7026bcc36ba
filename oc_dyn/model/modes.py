"""On which side of its singular configurations a robot with loops is assembled; random configurations that close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ModelError, ShapeError
from ..numbers import as_floats
from ..types import Array, Numbers
from .assembly import Block, closed, closing_blocks, closing_rows, largest, newton
from .closure import residual, row_owners

_STRIDE = 0.1  # [rad, m] of independent coordinates, in which loops are followed


def turning(robot: Any) -> list[float]:
    """(nq,) 1 for the angles of independent joints whose whole turns change nothing: those on no coupling."""
    coupled = {name for c in robot.couplings for name in (c.joint, *c.of)}
    coupled |= {j.mimic.joint for j in robot.tree.mimics if j.mimic is not None}
    out = [0.0] * robot.nq
    for j in robot.joints:
        if j.kind in ("revolute", "continuous") and j.name not in coupled:
            out[j.q_index] = 1.0
    return out


def modes(robot: Any, q: Numbers) -> dict[str, str]:
    """See LoopRobot.mode."""
    q = as_floats("mode: q", q).ravel()
    if q.size != robot.tree.nq:
        raise ShapeError(f"mode: q got {q.size} numbers, expected {robot.tree.nq}, q of the tree")
    blocks = closing_blocks(robot)
    kept = iter(_kept(robot, q, [b for b in blocks if not b.square]))
    owners, rows, out = row_owners(robot), closing_rows(robot), {}
    for b in blocks:
        own = [k for k in rows if owners[k] in b.names]
        at = q if b.square else robot.home
        plus = np.linalg.det(np.array(residual(robot)(at)[1])[np.ix_(own, b.columns)]) >= 0
        out[", ".join(b.names)] = "+" if plus == (b.square or next(kept)) else "-"
    return out


def _kept(robot: Any, q: Array, blocks: Sequence[Block]) -> list[bool]:
    """Whether blocks that are not square are assembled at q of the tree as at home: following the loops from there
    leads to q, the columns of their Jacobians turned round nowhere on the way."""
    if not blocks:
        return []
    tree, own, other = robot.tree, robot.rows("v", robot.independent), robot.rows("q", robot.dependent)
    q = newton(robot, tree.normalized(q), own)
    way = np.asarray(tree.difference(robot.home, q))
    way[robot.rows("v", robot.dependent)] = 0.0
    for j, turns in zip(robot.joints, _turns_of(robot), strict=True):
        row = tree.joint(j.name).v_index
        way[row] -= turns * 2 * np.pi * np.floor(way[row] / (2 * np.pi) + 0.5)
    count = 1 + int(np.abs(way).max(initial=0.0) / _STRIDE)
    x, A, signs = robot.home, _columns(robot, robot.home, blocks), np.ones(len(blocks))
    for k in range(1, count + 1):
        there = np.asarray(tree.integrate(robot.home, k / count * way))
        there[other] = x[other]
        x = newton(robot, there, own)
        if largest(robot, x) > 1e-4:
            return [False] * len(blocks)
        before, A = A, _columns(robot, x, blocks)
        signs *= [np.sign(np.linalg.det(a.T @ b)) for a, b in zip(A, before, strict=True)]
    off = np.asarray(tree.difference(x, q))
    out = []
    for b, sign in zip(blocks, signs, strict=True):
        apart = [abs(off[tree.joint(n).v_index]) for n in b.joints]  # whole turns apart is the same
        angles = [tree.joint(n).kind in ("revolute", "continuous") for n in b.joints]
        near = [2 * abs(np.sin(x / 2)) if angle else x for x, angle in zip(apart, angles, strict=True)]
        out.append(bool(sign >= 0 and max(near) < 1e-4))
    return out


def _turns_of(robot: Any) -> list[float]:
    found = turning(robot)
    return [found[j.q_index] for j in robot.joints]


def _columns(robot: Any, q: Array, blocks: Sequence[Block]) -> list[Array]:
    J = np.array(residual(robot)(q)[1])
    return [J[np.ix_(b.rows, b.columns)] for b in blocks]


def random_closed(robot: Any, rng: np.random.Generator) -> Array:
    """q of the tree, closed, all joints within their limits."""
    tree = robot.tree
    lower, upper = tree.limit("lower"), tree.limit("upper")
    dependent = robot.rows("q", robot.dependent)
    for k in range(1000):
        q = tree.random_configuration(rng)
        share = 1.0 if k % 2 == 0 else rng.uniform(0.0, 1.0)  # where few are closed, nearer to home
        q = np.asarray(tree.integrate(robot.home, share * np.asarray(tree.difference(robot.home, q))))
        way = np.asarray(tree.difference(robot.home, q))
        path = np.stack([np.asarray(tree.integrate(robot.home, s * way)) for s in np.linspace(0, 1, 11)], 1)
        path[dependent, 0] = robot.home[dependent]
        try:  # on the way to it, too, so that it is reached as it is assembled
            q = closed(robot, path)[:, -1]
        except ModelError:
            continue
        if np.all(q >= lower - 1e-9) and np.all(q <= upper + 1e-9) and modes(robot, q) == modes(robot, robot.home):
            return q
    raise ModelError(robot.name, ["1000 random configurations within its limits cannot be closed as it is assembled"])
