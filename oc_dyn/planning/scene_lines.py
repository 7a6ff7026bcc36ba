"""Shapes of a scene along a motion, as lines that figures draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..model.robot import Robot
from ..numbers import shortened
from ..scene import Scene
from ..scene.outlines import joined, outline
from ..scene.poses import given_poses, item_poses
from ..scene.shapes import HalfSpace
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
    given = given_poses(what, scene, len(t), poses)[at]
    where = item_poses(what, robot, scene, scene.items, t[at], q[at], given)
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


def _placed(lines: Array, C: Array) -> Array:
    """(K, k, 3) lines (k, 3) of a shape at poses (K, 4, 4)."""
    return np.einsum("Kij,kj->Kki", C[:, :3, :3], lines) + C[:, None, :3, 3]


def _together(lines: list[Array], count: int) -> Array:
    """(K, k, 3) of several shapes in one, rows of NaN between them."""
    if not lines:
        return np.empty((count, 0, 3))
    parts = [np.concatenate([x, np.full((count, 1, 3), np.nan)], axis=1) for x in lines]
    return np.concatenate(parts, axis=1)
