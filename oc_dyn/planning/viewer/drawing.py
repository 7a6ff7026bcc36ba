"""What is to be drawn of motions, as numbers: surfaces, which part has which, and where parts are over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...model.robot import Robot
from ...scene import Scene
from ...scene.link_poses import link_poses
from ...scene.poses import item_poses
from ...scene.scene import Item
from ...scene.shapes import Capsule, HalfSpace, Shape, Sphere
from ...types import Array, Numbers
from ..animate import stick_figure
from .looks import Looks
from .motions import Rows, at_home
from .surfaces import Triangles, along, at, triangles

_COLORS = ((0.13, 0.44, 0.71), (0.84, 0.37, 0.0), (0.0, 0.62, 0.45), (0.8, 0.47, 0.65), (0.9, 0.62, 0.0))  # Okabe, Ito
_WORLD, _MOVING, _PLANE = (0.6, 0.6, 0.62, 1.0), (0.9, 0.62, 0.0, 1.0), (0.6, 0.6, 0.62, 0.25)
_THICK = 0.03  # of the size of a robot without shapes: radius of its sticks
_BEADS = 9  # that show a stick whose length changes


@dataclass
class Part:
    """A surface of a motion, by its number. slot: which of the poses that change is its; -1 for one that stands still
    at `pose` (4, 4). color: rgba, None for that of the motion."""

    surface: int
    slot: int
    color: tuple[float, ...] | None = None
    pose: Array | None = None


@dataclass
class Drawn:
    """A motion: t (K,) [s], poses (K, slots, 4, 4) in the root frame, shares as of Rows."""

    name: str
    color: tuple[float, ...]
    t: Array
    shares: dict[str, Array]
    parts: list[Part] = field(default_factory=list)
    poses: Array = field(default_factory=lambda: np.zeros((0, 0, 4, 4)))


class Drawing:
    """All motions of one robot. surfaces: (points, triangles). low, high (3,): the room that they take."""

    def __init__(self, robot: Robot, looks: Looks, scene: Scene) -> None:
        self.robot, self.looks, self.scene = robot, looks, scene
        self.surfaces: list[Triangles] = []
        self.motions: list[Drawn] = []
        self.low, self.high = np.full(3, np.inf), np.full(3, -np.inf)
        self._numbers: dict[Any, int] = {}
        self._planes: list[tuple[HalfSpace, list[Part], Array]] = []

    def add(self, rows: Rows, poses: Numbers | None) -> None:
        """A motion; poses: of scene.moving."""
        made = Drawn(rows.name, _COLORS[len(self.motions) % len(_COLORS)], rows.t, rows.shares)
        where = item_poses("view", self.robot, self.scene, self.looks.items, rows.t, rows.q, poses)
        moving: list[Array] = []
        for x in self.looks.items:
            self._add_item(made, x, where[x.name], moving)
        links = list(dict.fromkeys(x.link for x in self.looks.seen))
        on = link_poses(self.robot, links, rows.q.T) if links else {}
        for k, seen in enumerate(self.looks.seen):
            made.parts.append(Part(self._number(("seen", k), seen.surface), len(moving)))
            moving.append(on[seen.link] @ seen.pose)
            points = seen.surface[0]
            middle = (points.min(axis=0) + points.max(axis=0)) / 2
            radius = float(np.linalg.norm(points - middle, axis=1).max())
            self._reach(moving[-1][:, :3, :3] @ middle + moving[-1][:, :3, 3], radius)
        for shape, C in self._sticks(rows.q):
            made.parts.append(Part(self._of_shape(shape), len(moving)))
            moving.append(C)
        made.poses = np.stack(moving, axis=1) if moving else np.zeros((len(rows.t), 0, 4, 4))
        self.motions.append(made)

    def _add_item(self, made: Drawn, x: Item, where: Array, moving: list[Array]) -> None:
        """A shape with its poses (K, 4, 4)."""
        if isinstance(x.shape, HalfSpace):
            self._planes.append((x.shape, made.parts, where[0]))
            return
        color = None if x.link is not None else _WORLD if x.fixed else _MOVING
        if x.link is None and x.fixed:
            if self.motions:  # drawn with the first motion
                return
            made.parts.append(Part(self._of_shape(x.shape), -1, color, where[0]))
        else:
            made.parts.append(Part(self._of_shape(x.shape), len(moving), color))
            moving.append(where)
        self._reach(where[:, :3, 3], x.shape.radius_about_origin)

    def _of_shape(self, shape: Shape, reach: float = 1.0) -> int:
        key = (type(shape).__name__, repr(shape), reach)
        return self._numbers[key] if key in self._numbers else self._number(key, triangles(shape, reach))

    def _number(self, key: Any, surface: Triangles) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.surfaces)
            self.surfaces.append(surface)
        return self._numbers[key]

    def _reach(self, points: Array, radius: float) -> None:
        self.low = np.minimum(self.low, points.min(axis=0) - radius)
        self.high = np.maximum(self.high, points.max(axis=0) + radius)

    def _sticks(self, q: Array) -> list[tuple[Shape, Array]]:
        """Capsules between joints, beads where a joint slides, and balls at joints and ends, with their poses
        (K, 4, 4)."""
        if self.looks.sticks == ():
            return []
        f, pairs = stick_figure(self.robot, self.looks.sticks)
        points = np.array(f.map(len(q))(q.T)).reshape(3, len(q), -1).transpose(1, 2, 0)
        self._reach(points[:, np.ravel(pairs)].reshape(-1, 3) if pairs else points[:, 0], 0.0)
        thick = max(_THICK * float(np.max(self.high - self.low)), 1e-3)
        out: list[tuple[Shape, Array]] = []
        for a, b in pairs:
            start, end = points[:, a], points[:, b]
            lengths = np.linalg.norm(end - start, axis=1)
            length = float(lengths.max())
            if np.ptp(lengths) > 1e-6 * length:
                between = (start + w * (end - start) for w in np.linspace(0, 1, _BEADS + 2)[1:-1])
                out += [(Sphere(round(0.6 * thick, 6)), at(x)) for x in between]
            elif length > 1e-9:
                out.append((Capsule(round(thick, 6), round(length, 6)), along(start, end)))
        out += [(Sphere(round(1.5 * thick, 6)), at(points[:, b])) for _, b in pairs]
        return out

    def finish(self) -> Drawing:
        """Give planes their places, which take the room of all motions; itself."""
        if not np.all(np.isfinite(self.low)):
            frames = link_poses(self.robot, self.robot.frames, at_home(self.robot)[:, None])
            self._reach(np.array([C[0, :3, 3] for C in frames.values()]).reshape(-1, 3), 0.5)
        middle, planes = (self.low + self.high) / 2, self._planes
        self._planes = []
        for shape, parts, C in planes:
            centre = C[:3, :3].T @ (middle - C[:3, 3])
            normal = np.array(shape.normal) / np.linalg.norm(shape.normal)
            foot = centre - normal * (normal @ centre - shape.offset / np.linalg.norm(shape.normal))
            shifted = np.array(C)
            shifted[:3, 3] = C[:3, :3] @ (foot - normal * (normal @ foot)) + C[:3, 3]
            parts.append(Part(self._of_shape(shape, round(2 * self.size, 6)), -1, _PLANE, shifted))
        return self

    @property
    def size(self) -> float:
        """Half of the longest side [m] of the room that is taken."""
        return max(float(np.max(self.high - self.low)) / 2, 1e-2)
