"""What stands for a robot in a picture: the shapes that its description shows, those that collide, or sticks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ModelError, ShapeError
from ...model.collision import Collision
from ...model.robot import Robot
from ...scene import Scene
from ...scene.meshes import triangles_of
from ...scene.of_robot import KINDS
from ...scene.scene import Item
from ...types import Array, StrPath
from .surfaces import Triangles, simplified, triangles

SHOWN = ("visual", "collision")
_MOST = 120_000  # triangles of the meshes of a robot: what a page of some megabytes holds and a phone turns


@dataclass(frozen=True)
class Seen:
    """A surface on a link; pose (4, 4): in its frame."""

    link: str
    pose: Array
    surface: Triangles


@dataclass(frozen=True)
class Looks:
    """items: shapes of a scene. seen: surfaces on links. sticks: numbers of the bodies that are drawn as sticks; None:
    the whole robot. notes: what is not shown, and why."""

    items: tuple[Item, ...]
    seen: tuple[Seen, ...]
    sticks: tuple[int, ...] | None
    notes: tuple[str, ...] = ()


def looks(robot: Robot, scene: Scene | None, show: str, packages: Mapping[str, StrPath] | None) -> Looks:
    """What is drawn: shapes of the scene on links, if it has any; else what the robot has, by `show` one of SHOWN.
    What it shows is `robot.visuals`, and `robot.collisions` of links without, or whose meshes cannot be read."""
    items = () if scene is None else scene.items
    if any(x.link is not None for x in items):
        return Looks(items, (), ())
    seen, notes = _visuals(robot, packages or {}) if show == "visual" else ((), ())
    done = {x.link for x in seen}
    taken = {x.name for x in items}
    rest = any(x.link not in done for x in robot.collisions)
    own, more = _collisions(robot, packages) if rest else ((), ())
    own = tuple(x for x in own if x.link not in done and x.name not in taken)
    sticks = _bare(robot, {*done, *(x.link for x in own)}) if show == "visual" else ()
    return Looks((*own, *items), seen, sticks if own or seen else None, (*notes, *more))


def _bare(robot: Robot, shown: set[str | None]) -> tuple[int, ...]:
    """Numbers of the bodies with mass none of whose links is shown."""
    done = {frame.body for name, frame in robot.frames.items() if name in shown}
    return tuple(b.index for b in robot.bodies if b.inertia.mass and b.index not in done)


def _collisions(robot: Robot, packages: Mapping[str, StrPath] | None) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    """(collision shapes of a robot, meshes by their hulls, notes)."""
    try:
        return Scene.of(robot, samples=0, packages=packages).items, ()
    except ModelError as error:  # meshes that are not there, or no program that reads them
        return Scene.of(robot, samples=0, meshes="omit").items, tuple(error.problems)


def _visuals(robot: Robot, packages: Mapping[str, StrPath]) -> tuple[tuple[Seen, ...], tuple[str, ...]]:
    """(surfaces of the links all of whose visuals can be read, notes)."""
    found: list[tuple[Collision, Triangles]] = []
    notes: dict[str, str] = {}  # by link
    read: dict[Any, Triangles] = {}
    for x in robot.visuals:
        if x.link not in robot.frames or x.link in notes:
            continue
        try:
            found.append((x, _surface(x, robot.folder, packages, read)))
        except (ModelError, ShapeError) as error:
            notes[x.link] = f"link {x.link!r} is not shown as its file describes it: {error}"
    found = [(x, surface) for x, surface in found if x.link not in notes]
    total = sum(len(faces) for _, (_, faces) in found)
    if total > _MOST:
        found = [(x, simplified(*s, most=_MOST * len(s[1]) // total) if x.kind == "mesh" else s) for x, s in found]
    return tuple(Seen(x.link, x.matrix, surface) for x, surface in found), tuple(notes.values())


def _surface(
    x: Collision, folder: str | None, packages: Mapping[str, StrPath], read: dict[Any, Triangles],
) -> Triangles:  # fmt: skip
    """Of one visual; meshes of the same file once."""
    if x.kind != "mesh":
        return triangles(KINDS[x.kind](*x.sizes))
    key = x.mesh, x.sizes
    if key not in read:
        points, faces = triangles_of(x, folder, packages)
        mirrored = np.prod(x.sizes) < 0
        read[key] = points, faces[:, ::-1] if mirrored else faces
    return read[key]
