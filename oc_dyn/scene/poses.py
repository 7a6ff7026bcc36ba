"""Where the shapes of a scene are at configurations, and how far apart they are there: as numbers."""

from __future__ import annotations

from collections.abc import Iterable

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..model.quaternions import TOLERANCE
from ..model.robot import Robot, check_robot
from ..numbers import are_sane, as_floats, shortened
from ..text import terminal
from ..types import Array, Numbers
from .link_poses import link_poses
from .numeric import separation
from .scene import Item, Scene


def exact_distances(
    robot: Robot, scene: Scene, q: Numbers, t: Numbers = 0.0, poses: Numbers | None = None,
    which: Iterable[int] | None = None,
) -> Array:  # fmt: skip
    """(K, pairs) distances [m] of the pairs of a scene at configurations q (K, nq), by `separation`: another way than
    that of the quantity `distances`.

    t [s]: times (K,), or one, at which shapes are whose poses depend on the time. poses: of scene.moving side by side,
    (4, 4 m), or (K, 4, 4 m). which: numbers of the pairs that are asked for, in scene.pairs; default all.
    Raises ShapeError for what is no scene and for numbers that do not fit; UnknownName for links that the robot does
    not have.
    """
    what = "exact_distances"
    check_robot(what, robot)
    if not isinstance(scene, Scene):
        raise ShapeError(f"{what}: scene is {shortened(scene)}, expected an od.Scene")
    q = np.atleast_2d(as_floats(f"{what}: q", q))
    if q.ndim != 2 or q.shape[1] != robot.nq or not are_sane(q):
        raise ShapeError(f"{what}: q has shape {q.shape}, expected finite numbers (K, {robot.nq})")
    times = as_floats(f"{what}: t", t).ravel()
    if times.size not in (1, len(q)) or not are_sane(times):
        raise ShapeError(f"{what}: t has {times.size} values, expected {len(q)} times [s], or one")
    numbers = range(len(scene.pairs)) if which is None else which
    pairs = [tuple(scene[x] for x in scene.pairs[k]) for k in numbers]
    items = {x.name: x for pair in pairs for x in pair}.values()
    where = item_poses(what, robot, scene, items, np.broadcast_to(times, len(q)), q, poses)
    found = [separation(a.shape, where[a.name], b.shape, where[b.name])[0] for a, b in pairs]
    return np.array(found).reshape(len(found), len(q)).T


def item_poses(
    what: str, robot: Robot, scene: Scene, items: Iterable[Item], t: Array, q: Array, poses: Numbers | None
) -> dict[str, Array]:
    """{name: matrices (K, 4, 4) in the root frame} of some shapes of a scene at times t (K,), q (K, nq); poses as of
    exact_distances. Raises ShapeError for poses that do not fit or are none, UnknownName for links it does not have."""
    items, given = list(items), given_poses(what, scene, len(t), poses)
    links = [x for x in dict.fromkeys(item.link for item in items) if x is not None]
    on = link_poses(robot, links, q.T) if links else {}
    found = {x.name: _poses(x, scene, on, given, t) for x in items}
    for x in items:
        if x.link is None and not x.fixed:
            _check_poses(f"{what}: poses of {terminal(x.name)}", found[x.name], t)
    return found


def _check_poses(what: str, C: Array, t: Array) -> None:
    """Raise ShapeError unless all of C (K, 4, 4) are a rotation and a position."""
    R = C[:, :3, :3]
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
        wrong = ~((off <= TOLERANCE) & (np.linalg.det(R) > 0) & np.isfinite(C).all(axis=(1, 2)))
        wrong |= (C[:, 3] != [0, 0, 0, 1]).any(axis=1)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ShapeError(
            f"{what}: at {t[k]:g} s it is {C[k].tolist()}, no pose: a rotation matrix, a position, 0 0 0 1"
        )


def given_poses(what: str, scene: Scene, count: int, poses: Numbers | None) -> Array:
    """(K, 4, 4 m) poses of what moves, from one for all or one each. Raises ShapeError that says what is missing."""
    m = len(scene.moving)
    names = ", ".join(map(terminal, scene.moving))
    if poses is None:
        if m:
            raise ShapeError(
                f"{what}: poses of {names} come in at a port, and are not known here; give them by "
                "scene.released(name, pose), or to od.animate as poses="
            )
        return np.empty((count, 4, 0))
    x = as_floats(f"{what}: poses", poses)
    if not m and x.shape == (count, 4, 0):
        return x
    if x.shape == (4, 4 * m):
        x = np.broadcast_to(x, (count, 4, 4 * m))
    if x.shape != (count, 4, 4 * m) or not are_sane(x):
        raise ShapeError(
            f"{what}: poses of shape {x.shape}, expected finite numbers ({count}, 4, {4 * m}) or (4, {4 * m}): "
            f"homogeneous matrices of {names or 'no shape'} side by side"
        )
    return x


def _poses(item: Item, scene: Scene, on: dict[str, Array], given: Array, t: Array) -> Array:
    """(K, 4, 4) of a shape."""
    if item.link is not None:
        return on[item.link] @ item.matrix
    if item.fixed:
        return np.broadcast_to(item.matrix, (len(t), 4, 4))
    if isinstance(item.pose, ca.Function):
        return np.array([np.array(item.pose(x)) for x in t]).reshape(-1, 4, 4)
    k = scene.moving.index(item.name)
    return given[:, :, 4 * k : 4 * k + 4]
