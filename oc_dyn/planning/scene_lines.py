"""Shapes of a scene along a motion, as lines that figures draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..model.robot import Robot
from ..numbers import are_sane, as_floats, shortened
from ..scene import Scene
from ..scene.outlines import joined, outline
from ..scene.sampling import link_poses
from ..scene.scene import Item
from ..scene.shapes import HalfSpace
from ..text import terminal
from ..types import Array, Numbers

STILL, MOVING, CARRIED = "0.55", "C1", "C2"  # colours: of what stands in the world, moves in it, and is on links
_THIN = {"linewidth": 0.8}
_ROOM = 1.0  # [m] that the grid of a half-space reaches where nothing else tells


@dataclass(frozen=True, eq=False)
class SceneLines:
    """Lines in the root frame, rows of NaN between them: still (k, 3) of shapes that stand, moving (K, k, 3) of those
    that move in the world, carried (K, k, 3) of those on links."""

    still: Array
    moving: Array
    carried: Array

    def draw(self, axis: Any, at: int = 0) -> list[Any]:
        """Draw all at one configuration on 3D axes; returns the artists of what moves."""
        if len(self.still):
            axis.plot(*self.still.T, color=STILL, **_THIN)
        parts = ((self.moving, MOVING), (self.carried, CARRIED))
        return [axis.plot(*x[at].T, color=color, **_THIN)[0] for x, color in parts if x.shape[1]]

    def show(self, artists: list[Any], at: int) -> None:
        """Move what `draw` returned to another configuration."""
        parts = [x for x in (self.moving, self.carried) if x.shape[1]]
        for artist, x in zip(artists, parts, strict=True):
            artist.set_data_3d(*x[at].T)


def scene_lines(
    what: str, robot: Robot, scene: Any, t: Array, q: Array, poses: Numbers | None, points: Array, at: Any
) -> tuple[SceneLines, Array]:
    """(SceneLines, corners (2, 3) of a box about bounded shapes and `points` (..., 3)) at those of times t (K,) and
    configurations q (K, nq) whose places are `at`.

    poses: of scene.moving, (4, 4 m), or (K, 4, 4 m). Raises ShapeError for what is no scene and for poses that do not
    fit; UnknownName for links that the robot does not have.
    """
    if not isinstance(scene, Scene):
        raise ShapeError(f"{what}: scene is {shortened(scene)}, expected an od.Scene")
    given = _given(what, scene, len(t), poses)[at]
    where = scene_poses(what, robot, scene, t[at], q[at], given)
    bounded = [x for x in scene.items if not isinstance(x.shape, HalfSpace)]
    drawn = {x.name: _placed(outline(x.shape), where[x.name]) for x in bounded}
    seen = np.concatenate([points.reshape(-1, 3), *(x.reshape(-1, 3) for x in drawn.values())])
    box = np.array([np.nanmin(seen, axis=0), np.nanmax(seen, axis=0)]) if len(seen) else np.zeros((2, 3))
    center, reach = box.mean(axis=0), float(np.diff(box, axis=0).max()) / 2 or _ROOM
    for x in scene.items:
        if isinstance(x.shape, HalfSpace):
            C = where[x.name][0]
            lines = outline(x.shape, C[:3, :3].T @ (center - C[:3, 3]), reach)
            drawn[x.name] = _placed(lines, where[x.name])
    still = [drawn[x.name][0] for x in scene.items if x.link is None and x.fixed]
    moving = [drawn[x.name] for x in scene.items if x.link is None and not x.fixed]
    carried = [drawn[x.name] for x in scene.items if x.link is not None]
    return SceneLines(joined(still), _together(moving, len(at)), _together(carried, len(at))), box


def scene_poses(what: str, robot: Robot, scene: Scene, t: Array, q: Array, poses: Numbers | None) -> dict[str, Array]:
    """{name: matrices (K, 4, 4) in the root frame} of all shapes; see scene_lines."""
    given = _given(what, scene, len(t), poses)
    links = [x for x in dict.fromkeys(item.link for item in scene.items) if x is not None]
    on = link_poses(robot, links, q.T) if links else {}
    return {x.name: _poses(x, scene, on, given, t) for x in scene.items}


def _given(what: str, scene: Scene, count: int, poses: Numbers | None) -> Array:
    """(K, 4, 4 m) poses of what moves."""
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


def _placed(lines: Array, C: Array) -> Array:
    """(K, k, 3) lines (k, 3) of a shape at poses (K, 4, 4)."""
    return np.einsum("Kij,kj->Kki", C[:, :3, :3], lines) + C[:, None, :3, 3]


def _together(lines: list[Array], count: int) -> Array:
    """(K, k, 3) of several shapes in one, rows of NaN between them."""
    if not lines:
        return np.empty((count, 0, 3))
    parts = [np.concatenate([x, np.full((count, 1, 3), np.nan)], axis=1) for x in lines]
    return np.concatenate(parts, axis=1)
