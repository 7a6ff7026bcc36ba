"""How shapes move against each other over an interval of time: where they are in its middle, how fast, and bounds.

Every body of the robot, and every obstacle with a pose that depends on the time, is a node of a tree; the world is its
root. Of each node it is known how it moves in its parent: pose and rate in the middle of an interval, and bounds of
speeds and accelerations on all of it. Along the chain of nodes from one to another these add up to bounds for all
points of a shape. Everything is for K intervals at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, ShapeError
from ..model.cache import cached
from ..model.canonical import canonical
from ..model.joints import QUATERNIONS
from ..model.robot import Robot
from ..types import Array

_ABOUT_Z = ("revolute", "continuous", "helical", "planar")
_SHORTEST = 1e-150  # of a quaternion: squares of a shorter one may be 0
WORLD = 0


@dataclass(frozen=True, eq=False)
class Link:
    """How a node moves in its parent. R (K, 3, 3), p (K, 3): pose in the middle; dR, dp: their rates there. turn,
    turn_rate, speed, acceleration (K,): bounds of angular speed [rad/s] and acceleration, of speed [m/s] and
    acceleration of its origin on the whole interval. about_z: whether it turns about its z axis alone."""

    R: Array
    p: Array
    dR: Array
    dp: Array
    turn: Array
    turn_rate: Array
    speed: Array
    acceleration: Array
    about_z: bool = False


@dataclass(frozen=True, eq=False)
class ShapeMotion:
    """A shape as seen from a node. R (K, 3, 3), p (K, 3): pose of its frame in the middle of the intervals; dR, dp:
    their rates there. speed, acceleration (K,): bounds for all of its points on the whole interval."""

    R: Array
    p: Array
    dR: Array
    dp: Array
    speed: Array
    acceleration: Array

    def rows(self, which: Any) -> ShapeMotion:
        """Of some of the intervals."""
        return ShapeMotion(*(x[which] for x in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Tree:
    """parents: of each node, None for the world. links: how each moves in its parent, None for the world. h (K,): half
    the length [s] of the intervals."""

    parents: tuple[int | None, ...]
    links: tuple[Link | None, ...]
    h: Array

    def path(self, node: int) -> list[int]:
        """Nodes from the one below the world to this one."""
        out: list[int] = []
        at: int | None = node
        while at:
            out.append(at)
            at = self.parents[at]
        return out[::-1]

    def meeting(self, a: int, b: int) -> int:
        """The last node that both paths have in common."""
        both = [x for x, y in zip(self.path(a), self.path(b), strict=False) if x == y]
        return both[-1] if both else WORLD

    def seen(self, node: int, pose: Array, radius: float, on: int) -> ShapeMotion:
        """A shape at pose (4, 4) on `node`, within `radius` [m] of its frame's origin, as seen from node `on`.

        From frame to frame, with all points x of the shape within r of what the frame turns about:
        |y'| <= |x'| + w r + u and |y''| <= |x''| + 2 w |x'| + (w^2 + a) r + g, where w, a bound the turn of the frame,
        u, g the motion of its origin. r holds for the whole interval: it is what it is in the middle, and what the
        speed found so far makes of it in half the interval.
        """
        K, common = len(self.h), self.meeting(node, on)
        state = ShapeMotion(
            np.broadcast_to(pose[:3, :3], (K, 3, 3)), np.broadcast_to(pose[:3, 3], (K, 3)), np.zeros((K, 3, 3)),
            np.zeros((K, 3)), np.zeros(K), np.zeros(K),
        )  # fmt: skip
        with np.errstate(invalid="ignore", over="ignore"):
            for i in self.path(node)[len(self.path(common)) :][::-1]:
                state = self._outwards(state, i, radius)
            for i in self.path(on)[len(self.path(common)) :]:
                state = self._inwards(state, i, radius)
        bounds = (np.where(np.isnan(x), np.inf, x) for x in (state.speed, state.acceleration))  # infinite times zero
        return ShapeMotion(state.R, state.p, state.dR, state.dp, *bounds)

    def _link(self, i: int) -> Link:
        link = self.links[i]
        assert link is not None
        return link

    def _outwards(self, x: ShapeMotion, i: int, radius: float) -> ShapeMotion:
        """From node i to its parent."""
        link = self._link(i)
        r = _arm(x.p, link.about_z) + radius + x.speed * self.h
        R, p = link.R @ x.R, _turned(link.R, x.p) + link.p
        dR = link.dR @ x.R + link.R @ x.dR
        dp = _turned(link.dR, x.p) + _turned(link.R, x.dp) + link.dp
        a = x.acceleration + 2 * link.turn * x.speed + (link.turn**2 + link.turn_rate) * r + link.acceleration
        return ShapeMotion(R, p, dR, dp, x.speed + link.turn * r + link.speed, a)

    def _inwards(self, y: ShapeMotion, i: int, radius: float) -> ShapeMotion:
        """From the parent of node i to node i."""
        link = self._link(i)
        back, dback = link.R.swapaxes(1, 2), link.dR.swapaxes(1, 2)
        away, daway = y.p - link.p, y.dp - link.dp
        p = _turned(back, away)
        r = _arm(p, link.about_z) + radius + (y.speed + link.speed) * self.h
        speed = y.speed + link.speed + link.turn * r
        a = y.acceleration + link.acceleration + 2 * link.turn * speed + (link.turn**2 + link.turn_rate) * r
        dR, dp = dback @ y.R + back @ y.dR, _turned(dback, away) + _turned(back, daway)
        return ShapeMotion(back @ y.R, p, dR, dp, speed, a)


def _turned(R: Array, x: Array) -> Array:
    return np.einsum("kij,kj->ki", R, x)


def _arm(p: Array, about_z: bool) -> Array:
    """Distance [m] from what a frame turns about: its z axis, or its origin."""
    return np.linalg.norm(p[:, :2] if about_z else p, axis=1)


# -- the robot's nodes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ranges:
    """Coordinates over K intervals, all (K, nq). q, dq: in the middle. speed, acceleration: bounds of the sizes of
    their first and second time derivatives on the whole interval."""

    q: Array
    dq: Array
    speed: Array
    acceleration: Array


def robot_links(
    robot: Robot, x: Ranges, h: Array, t: Array | None = None
) -> tuple[tuple[int | None, ...], tuple[Link | None, ...]]:
    """(parents, links) of the nodes of a robot, which are the bodies of its canonical form; see Tree.

    t: middles (K,) of the intervals [s], for errors. Raises ModelError for joints whose motion is a Function, of which
    no bound is known, and ShapeError for a quaternion that is 0.
    """
    model = canonical(robot)
    _check_quaternions(robot, x.q, t)
    poses = _poses(robot)(x.q.T, x.dq.T).full().T.reshape(len(h), model.n, 24)
    links: list[Link | None] = [None]
    for i in model.bodies:
        if model.kind[i] == "transform":
            name = next(b.joint.name for b in robot.bodies if model.number[b.index] == i)
            problem = f"joint {name!r} is given by a Function, which has no bound of its speed: not to be certified"
            raise ModelError(robot.name, [problem])
        first, size = model.coordinates[i][:2]
        part = slice(first, first + size)
        scale = abs(model.rule[i][0])
        bounds = _joint_bounds(
            model.kind[i], model.pitch[i], x.q[:, part], scale * x.speed[:, part], scale * x.acceleration[:, part], h
        )
        R, p, dR, dp = np.split(poses[:, i - 1], (9, 12, 21), axis=1)
        R, dR = (m.reshape(-1, 3, 3).swapaxes(1, 2) for m in (R, dR))  # columns follow each other
        links.append(Link(R, p, dR, dp, *bounds, about_z=model.kind[i] in _ABOUT_Z))
    return model.parent, tuple(links)


def _check_quaternions(robot: Robot, q: Array, t: Array | None) -> None:
    model = canonical(robot)
    for i in model.bodies:
        first = model.coordinates[i][0]
        if model.kind[i] not in QUATERNIONS:
            continue
        size = np.linalg.norm(q[:, first : first + 4], axis=1)
        if not np.all(size > _SHORTEST):
            k = int(np.argmin(size > _SHORTEST))
            name = next(b.joint.name for b in robot.bodies if model.number[b.index] == i)
            when = "" if t is None else f" at t = {t[k]:.6g} s"
            raise ShapeError(
                f"certify: the quaternion of joint {name!r} is {q[k, first : first + 4].tolist()}{when}, which is no "
                "rotation; choose a motion whose quaternions keep away from 0, as between nodes with signs that agree"
            )


def _joint_bounds(
    kind: str, pitch: float, q: Array, speed: Array, acceleration: Array, h: Array,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """(turn, turn_rate, speed, acceleration), see Link, of one joint from those of its coordinates (K, nq)."""
    zero = np.zeros(len(q))
    if kind in ("revolute", "continuous"):
        return speed[:, 0], acceleration[:, 0], zero, zero
    if kind == "prismatic":
        return zero, zero, speed[:, 0], acceleration[:, 0]
    if kind == "helical":
        return speed[:, 0], acceleration[:, 0], abs(pitch) * speed[:, 0], abs(pitch) * acceleration[:, 0]
    if kind == "planar":
        along = (np.linalg.norm(x[:, 1:], axis=1) for x in (speed, acceleration))
        return speed[:, 0], acceleration[:, 0], *along
    turn, rate = _quaternion_bounds(q[:, :4], speed[:, :4], acceleration[:, :4], h)
    along = (np.linalg.norm(x[:, 4:], axis=1) for x in (speed, acceleration))
    return turn, rate, *along


def _quaternion_bounds(Q: Array, speed: Array, acceleration: Array, h: Array) -> tuple[Array, Array]:
    """Bounds of angular speed and acceleration of the rotation Q / |Q|.

    With u = Q / |Q|, m = |Q| and P = 1 - u u^T: w = 2 Im(u* u'), w' = 2 Im(u* u''), u' = P Q' / m and
    P u'' = (P Q'' - 2 m' u') / m, so |w| <= 2 |Q'| / m and |w'| <= 2 (|Q''| + |Q'|^2 / m) / m, as m' and P Q' are at
    right angles in Q'.
    """
    v, a = np.linalg.norm(speed, axis=1), np.linalg.norm(acceleration, axis=1)
    m = np.linalg.norm(Q, axis=1) - h * v
    with np.errstate(all="ignore"):
        turn, rate = 2 * v / m, 2 * (a + v * v / m) / m
    short = m <= 0
    return np.where(short, np.inf, turn), np.where(short, np.inf, rate)


def _poses(robot: Robot) -> ca.Function:
    """q, dq (nq,) -> for each body (24,): R, p of the pose in its parent, and their rates."""

    def make() -> ca.Function:
        model, q, dq = canonical(robot), ca.SX.sym("q", robot.nq), ca.SX.sym("dq", robot.nq)
        parts, columns = model.joint_q(q), []
        for i in model.bodies:
            R, p = model.placement(i, parts[i])
            pose = ca.vertcat(ca.vec(R), p)
            columns += [pose, ca.jtimes(pose, q, dq)]
        out = ca.vertcat(*columns) if columns else ca.SX(0, 1)
        return ca.Function("poses", [q, dq], [ca.densify(out)])

    return cached(robot, ("poses_of_bodies",), make)


def node_of(robot: Robot, frame: str) -> tuple[int, Array]:
    """(node, pose (4, 4) in it) of a frame of the robot. Raises UnknownName."""
    model, f = canonical(robot), robot.frame(frame)
    i = model.number[f.body]
    R, p = model.to_body[i]
    pose = np.eye(4)
    pose[:3, :3] = R.T @ f.rotation
    pose[:3, 3] = R.T @ (f.translation - p)
    return i, pose
