"""The pairs of a scene on a robot, and the tree in which they move."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..model.robot import Robot
from ..types import Array
from .chains import WORLD, Link, Ranges, ShapeMotion, Tree, node_of, robot_links
from .intervals import CurveBounds
from .scene import Item, Scene
from .shapes import HalfSpace, Shape

_OFF = 1e-6  # that a rotation matrix may be off


@dataclass(frozen=True, eq=False)
class Member:
    """A shape of a pair: its node, its pose (4, 4) there, and a ball about its frame's origin that holds it."""

    name: str
    shape: Shape
    node: int
    pose: Array
    radius: float


@dataclass(frozen=True, eq=False)
class Pair:
    """Two shapes that must keep apart. on: the node that they are seen from; margin [m] of both."""

    a: Member
    b: Member
    on: int
    margin: float

    @property
    def names(self) -> tuple[str, str]:
        """Of the shapes."""
        return self.a.name, self.b.name


class PairsInMotion:
    """What is known of a scene's pairs over intervals of time.

    pairs: in the order of scene.pairs. notes: what is not proven. Raises ShapeError for obstacles whose pose comes in
    at a port, and for pairs of half-spaces; UnknownName for links that the robot does not have.
    """

    def __init__(self, robot: Robot, scene: Scene) -> None:
        self.robot = robot
        counted = {name for pair in scene.pairs for name in pair}
        items = [x for x in scene.items if x.name in counted]
        self._obstacles = [x for x in items if isinstance(x.pose, ca.Function)]
        self._bounds = [CurveBounds(x.pose) for x in self._obstacles if isinstance(x.pose, ca.Function)]
        bare = robot_links(robot, _still(robot), np.zeros(1))
        nodes = {x.name: len(bare[0]) + k for k, x in enumerate(self._obstacles)}
        members = {x.name: _member(robot, x, nodes) for x in items}
        self._parents = (*bare[0], *(WORLD for _ in self._obstacles))
        tree = Tree(self._parents, (), np.zeros(1))
        both = zip(scene.pairs, scene.margins, strict=True)
        self.pairs = tuple(_pair(tree, members[a], members[b], float(margin)) for (a, b), margin in both)
        self.notes = tuple(
            f"the speed of {x.name!r} is bounded by samples of its pose: not a proof"
            for x, bounds in zip(self._obstacles, self._bounds, strict=True)
            if not bounds.proven
        )

    def tree(self, x: Ranges, t: Array, h: Array) -> Tree:
        """The Tree on intervals [t - h, t + h] of time, with coordinates x there."""
        _, links = robot_links(self.robot, x, h, t)
        of_obstacles = [
            _obstacle_link(item, bounds, t, h) for item, bounds in zip(self._obstacles, self._bounds, strict=True)
        ]
        return Tree(self._parents, (*links, *of_obstacles), h)


def seen(tree: Tree, member: Member, on: int) -> ShapeMotion:
    """A member of a pair as seen from a node."""
    return tree.seen(member.node, member.pose, _reach(member.shape, member.radius), on)


def _reach(shape: Shape, radius: float) -> float:
    return 0.0 if isinstance(shape, HalfSpace) else radius  # it is seen from its own node, where it stands still


def _still(robot: Robot) -> Ranges:
    q = robot.neutral()[None, :]
    return Ranges(q, 0 * q, 0 * q, 0 * q)


def _member(robot: Robot, item: Item, nodes: dict[str, int]) -> Member:
    if isinstance(item.pose, str):
        raise ShapeError(
            f"certify: the pose of {item.name!r} comes in at a port, so nothing is known of its motion; give it as a "
            "Function of the time, or leave it out by scene.without"
        )
    node, pose = (nodes.get(item.name, WORLD), np.eye(4)) if item.link is None else node_of(robot, item.link)
    own = item.matrix if item.fixed else np.eye(4)
    return Member(item.name, item.shape, node, pose @ own, item.shape.radius_about_origin)


def _pair(tree: Tree, a: Member, b: Member, margin: float) -> Pair:
    endless = [x for x in (a, b) if isinstance(x.shape, HalfSpace)]
    if len(endless) == 2:
        raise ShapeError(
            f"certify: {a.name!r} and {b.name!r} are half-spaces, which meet wherever they are not parallel; leave the "
            "pair out by scene.leave_out"
        )
    return Pair(a, b, endless[0].node if endless else tree.meeting(a.node, b.node), margin)


def _obstacle_link(item: Item, bounds: CurveBounds, t: Array, h: Array) -> Link:
    """Bounds of a pose R, p from those of its second derivatives: as R' = R W with W skew, |R'| = sqrt(2) w, and
    W' = R^T R'' less its symmetric part."""
    x, dx = (_matrices(y) for y in bounds.at(t))
    _check_poses(item, x, t)
    second = _matrices(bounds.largest(t, h))
    first = np.abs(dx) + second * h[:, None, None]
    turns = [np.linalg.norm(y[:, :3, :3], axis=(1, 2)) / np.sqrt(2) for y in (first, second)]
    ways = [np.linalg.norm(y[:, :3, 3], axis=1) for y in (first, second)]
    return Link(x[:, :3, :3], x[:, :3, 3], dx[:, :3, :3], dx[:, :3, 3], *turns, *ways)


def _matrices(x: Array) -> Array:
    """(K, 4, 4) of columns one after the other (K, 16)."""
    return x.reshape(-1, 4, 4).swapaxes(1, 2)


def _check_poses(item: Item, x: Array, t: Array) -> None:
    R = x[:, :3, :3]
    off = np.abs(R @ R.swapaxes(1, 2) - np.eye(3)).max(axis=(1, 2)) + np.abs(x[:, 3] - [0, 0, 0, 1]).max(axis=1)
    bad = ~((off < _OFF) & (np.linalg.det(R) > 0) & np.isfinite(x).all(axis=(1, 2)))
    if bad.any():
        k = int(np.argmax(bad))
        raise ShapeError(f"certify: the pose of {item.name!r} at t = {t[k]:.6g} s is no pose: {x[k].tolist()}")
