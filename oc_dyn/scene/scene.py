"""od.Scene: shapes on the links of a robot and in the world, and which pairs of them must keep apart.

A scene is a value. `add`, `attach` and the others return a new one; two scenes with the same content are equal, so
that Functions, plans and stored results that depend on one can be told apart by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import casadi as ca
import numpy as np

from ..errors import FileError, ShapeError, UnknownName
from ..model.robot import Robot
from ..numbers import are_sane, as_floats, shortened
from ..types import Array, Numbers, StrPath
from ..validation import name_of, number
from .of_robot import SAMPLES, shapes_of, tied_links
from .pose_functions import checked_function
from .shapes import Shape

PORT = "port"  # as a pose: it comes in at the port `poses` of the Function
Pose = tuple[tuple[float, ...], ...]  # the first three rows of a homogeneous matrix
WORLD = None  # as a link


@dataclass(frozen=True)
class Item:
    """A shape with its name and place. link: name of the link, or of another frame of the robot, that carries it; None
    for the world. pose: of the shape in that link's frame, or in the root frame; for the world also PORT, or a
    casadi.Function of the time [s] that gives a (4, 4) matrix. margin [m]: to keep besides the clearance asked for.
    """

    name: str
    link: str | None
    shape: Shape
    pose: Pose | str | ca.Function
    margin: float = 0.0

    @property
    def fixed(self) -> bool:
        """Whether its pose in the frame that carries it is numbers."""
        return isinstance(self.pose, tuple)

    @property
    def matrix(self) -> Array:
        """Homogeneous matrix (4, 4) of a fixed pose."""
        return np.vstack([np.array(self.pose, float), [0.0, 0.0, 0.0, 1.0]])

    @property
    def key(self) -> tuple[Any, ...]:
        """All that it is, as plain values."""
        pose = ("function", self.pose.serialize()) if isinstance(self.pose, ca.Function) else self.pose
        return self.name, self.link, type(self.shape).__name__, repr(self.shape), pose, self.margin


@dataclass(frozen=True, eq=False, repr=False)
class Scene:
    """Shapes on links and in the world. Start from od.Scene(), Scene.of(robot) or Scene.read(file).

    items: in the order in which they came. left_out: pairs {a, b} of names of shapes, or of links, that do not count.
    notes: what reading it noticed. still: links that do not move, whose distances to what is fixed in the world no
    motion changes: such pairs do not count. robot: that it was read from, no part of what makes scenes equal.
    touching: pairs of names of shapes that do not count; unlike left_out, a name is not that of a link, too, whose
    other shapes would not count either.
    """

    items: tuple[Item, ...] = ()
    left_out: frozenset[frozenset[str]] = frozenset()
    notes: tuple[str, ...] = field(default=(), compare=False)
    still: frozenset[str] = frozenset()
    robot: Robot | None = field(default=None, compare=False)
    touching: frozenset[frozenset[str]] = frozenset()

    # -- from a robot -----------------------------------------------------------------------------------------------

    @classmethod
    def of(
        cls,
        robot: Robot,
        srdf: StrPath | bytes | None = None,
        meshes: str = "hull",
        seed: int = 0,
        samples: int = SAMPLES,
        packages: Mapping[str, StrPath] | None = None,
    ) -> Scene:
        """The collision shapes of a robot (`robot.collisions`) on its links.

        srdf: a file, or its text, whose disabled pairs are left out. Left out are also pairs of links with one joint or
        none between them, those fixed to each other counted as one, and pairs that touch at all of so many `samples`
        of configurations within the limits of the joints, drawn from `seed`. `scene.notes` lists them. Shapes that are
        attached later are left out by the joints between their links alone: a tool counts against all other links.
        Names are those of the description; without one link, link_1, ...
        meshes: "hull" takes the convex hull of each, with few vertices and all of the mesh within, "capsule" the
        smallest capsule found around it, "omit" leaves meshes out; notes tell how far either sticks out. They are read
        by trimesh: pip install "oc-dyn[meshes]". packages: {name: folder} of package:// paths that are not found in a
        folder of this name above the robot's file, or in $ROS_PACKAGE_PATH.
        Raises ModelError that lists all files that cannot be read, FileError for the srdf.
        """
        found = shapes_of(robot, srdf, meshes, seed, samples, packages)
        items = tuple(_item(name, link, shape, pose, 0.0) for name, link, shape, pose in found.placed)
        left_out, touching = (frozenset(map(frozenset, x)) for x in (found.left_out, found.touching))
        return cls(items, left_out, tuple(found.notes), found.still, robot, touching)

    # -- files --------------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, file: StrPath) -> Scene:
        """The scene of a YAML file; docs/scenes.md says what it may hold.

        Raises FileError that lists all that is wrong, with line and key, what was got and expected; OSError.
        """
        from .scene_file import read_parts  # YAML is needed here alone

        parts = read_parts(file)
        items, problems = [], []
        for name, link, shape, pose, margin in parts.shapes:
            try:
                items.append(_item(name, link, shape, pose, margin))
            except ShapeError as error:
                problems.append(str(error))
        if problems:
            raise FileError(str(file), problems)
        left_out, touching = (frozenset(map(frozenset, x)) for x in (parts.left_out, parts.touching))
        return cls(tuple(items), left_out, tuple(parts.notes), frozenset(parts.still), touching=touching)

    def write(self, file: StrPath) -> None:
        """Write it as a YAML file, in one step, with all digits: Scene.read gives an equal one.

        Raises ShapeError where a pose is a Function of the time.
        """
        from .scene_file import Parts, write_parts

        shapes = [(x.name, x.link, x.shape, x.matrix if x.fixed else x.pose, x.margin) for x in self.items]
        left_out, touching = (
            sorted((min(pair), max(pair)) for pair in pairs) for pairs in (self.left_out, self.touching)
        )
        write_parts(file, Parts(shapes, left_out, sorted(self.still), list(self.notes), touching))

    # -- building ---------------------------------------------------------------------------------------------------

    def add(self, name: str, shape: Shape, pose: Any = None, margin: float = 0.0) -> Scene:
        """With a shape in the world, at pose (4, 4) in the robot's root frame; None for the identity.

        pose: numbers; od.scene.PORT for one that is given at the port `poses` of Functions, as for an obstacle that is
        tracked; or a casadi.Function of the time [s], (1, 1) -> (4, 4). margin [m]: kept besides any clearance.
        Raises ShapeError for a name that is taken, for no shape, for a matrix that is no pose, and for a Function that
        is or calls a Callback, an FMU or compiled code: such scenes could not be told apart.
        """
        return self._with(_item(self._free(name), None, shape, pose, margin))

    def attach(self, name: str, link: str, shape: Shape, pose: Numbers | None = None, margin: float = 0.0) -> Scene:
        """With a shape on a link, or on any frame of the robot, at pose (4, 4) in that frame; None for the identity.

        Raises ShapeError as add does. Whether the robot has the link is looked at where scene and robot meet.
        """
        return self._with(_item(self._free(name), name_of(f"scene: link of {name!r}", link), shape, pose, margin))

    def attached(self, name: str, link: str, pose: Numbers | None = None) -> Scene:
        """With the shape of that name moved to a link, as one that was picked up; pose (4, 4) in the link's frame."""
        old = self[name]
        link = name_of(f"scene: link of {name!r}", link)
        return self._replaced(_item(old.name, link, old.shape, pose, old.margin))

    def released(self, name: str, pose: Any = None) -> Scene:
        """With the shape of that name moved to the world, as one that was put down; pose as for add."""
        old = self[name]
        return self._replaced(_item(old.name, None, old.shape, pose, old.margin))

    def join(self, other: Scene) -> Scene:
        """With all shapes of another scene, and what it leaves out: Scene.of(robot).join(Scene.read("table.yaml")).

        Raises ShapeError for a name that both have; where either was read from a robot, UnknownName for a pair left out
        whose names neither the scenes nor the robot have.
        """
        if not isinstance(other, Scene):
            raise ShapeError(f"scene: join got {shortened(other)}, expected a Scene")
        both = sorted({x.name for x in self.items} & {x.name for x in other.items})
        if both:
            raise ShapeError(f"scene: both scenes have a shape {both[0]!r}; give one another name")
        items, notes = (*self.items, *other.items), (*self.notes, *other.notes)
        robot = other.robot if self.robot is None else self.robot
        left_out, touching = self.left_out | other.left_out, self.touching | other.touching
        joined = Scene(items, left_out, notes, self.still | other.still, robot, touching)._tied()
        if robot is not None:
            joined.check_names(robot)
        return joined

    def without(self, *names: str) -> Scene:
        """Without the shapes of these names, and without what is left out by them."""
        for name in names:
            self[name]
        items = tuple(x for x in self.items if x.name not in names)
        gone = set(names) - self._links_known()
        left_out = frozenset(x for x in self.left_out if not x & gone)
        return replace(self, items=items, left_out=left_out, touching=_free_of(self.touching, names))

    def leave_out(self, *pairs: Iterable[str]) -> Scene:
        """With pairs (a, b) of names of shapes, or of links, that may touch: scene.leave_out(("hand", "cup"))."""
        known = {x.name for x in self.items} | self._links_known()
        more = []
        for pair in pairs:
            names = tuple(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else (pair,)
            if len(names) != 2 or not all(isinstance(x, str) for x in names):
                raise ShapeError(f"scene: leave_out got {pair!r}, expected pairs of two names, such as ('hand', 'cup')")
            for name in names:
                if name not in known:
                    raise UnknownName("shape or link of the scene", name, sorted(known))
            more.append(frozenset(names))
        return replace(self, left_out=self.left_out | frozenset(more))

    def check_names(self, robot: Robot | None = None) -> None:
        """Raise UnknownName for a pair left out of which neither the scene nor the robot has a name."""
        shapes = {x.name for x in self.items}
        links = self._links_known() | (set() if robot is None else set(robot.frames))
        for known, pairs in ((shapes | links, self.left_out), (shapes, self.touching)):
            for name in sorted({name for pair in pairs for name in pair} - known):
                raise UnknownName("shape or link in a pair that the scene leaves out", name, sorted(known))

    # -- reading ----------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Item:
        for item in self.items:
            if item.name == name:
                return item
        raise UnknownName("shape of the scene", name, [x.name for x in self.items])

    def __len__(self) -> int:
        return len(self.items)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Names of the pairs that count, in order: of shapes on different links, or of one on a link and one in the
        world, without those left out and those that are always as far apart."""
        return tuple((a.name, b.name) for a, b in combinations(self.items, 2) if self._counts(a, b))

    @property
    def moving(self) -> tuple[str, ...]:
        """Names of the shapes whose poses come in at the port `poses`, in its order."""
        return tuple(x.name for x in self.items if isinstance(x.pose, str))

    @property
    def margins(self) -> Array:
        """Margins [m] of both shapes of each pair together (pairs,), in the order of `pairs`."""
        own = {x.name: x.margin for x in self.items}
        return np.array([own[a] + own[b] for a, b in self.pairs])

    @property
    def timed(self) -> bool:
        """Whether a pose is a Function of the time, which comes in at the port `t`."""
        return any(isinstance(x.pose, ca.Function) for x in self.items)

    @property
    def key(self) -> tuple[Any, ...]:
        """All that it is, as plain values: equal for equal scenes, in every process."""
        left_out = tuple(sorted(tuple(sorted(x)) for x in self.left_out))
        touching = tuple(sorted(tuple(sorted(x)) for x in self.touching))
        return tuple(x.key for x in self.items), left_out, tuple(sorted(self.still)), touching

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scene) and (self is other or self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        on = sum(x.link is not None for x in self.items)
        return f"Scene({on} shapes on links, {len(self.items) - on} in the world, {len(self.pairs)} pairs)"

    def __str__(self) -> str:
        rows = [f"  {x.name}: {x.shape!r} {'in the world' if x.link is None else f'on {x.link}'}" for x in self.items]
        return "\n".join([repr(self), *rows, *(f"  note: {x}" for x in self.notes)])

    # -- parts ------------------------------------------------------------------------------------------------------

    def _free(self, name: str) -> str:
        name = name_of("scene: shape", name)
        if any(x.name == name for x in self.items):
            raise ShapeError(f"scene: there is a shape {name!r} already; give it another name")
        return name

    def _with(self, item: Item) -> Scene:
        return replace(self, items=(*self.items, item))._tied()

    def _replaced(self, item: Item) -> Scene:
        items = tuple(item if x.name == item.name else x for x in self.items)
        return replace(self, items=items, touching=_free_of(self.touching, (item.name,)))._tied()

    def _links_known(self) -> set[str]:
        links = {x.link for x in self.items if x.link is not None}
        return links if self.robot is None else links | set(self.robot.frames)

    def _tied(self) -> Scene:
        """With pairs of links left out that have one joint of the robot between them, or none, whatever they carry."""
        if self.robot is None:
            return self
        links = dict.fromkeys(x.link for x in self.items if x.link is not None and x.link in self.robot.frames)
        pairs, still = tied_links(self.robot, links)
        return replace(self, left_out=self.left_out | frozenset(map(frozenset, pairs)), still=self.still | still)

    def _counts(self, a: Item, b: Item) -> bool:
        if a.link == b.link:  # on one link, or both in the world
            return False
        if (a.link in self.still and b.link is None and b.fixed) or (
            b.link in self.still and a.link is None and a.fixed
        ):
            return False
        if frozenset((a.name, b.name)) in self.touching:
            return False
        names = [(x, y) for x in (a.name, a.link) for y in (b.name, b.link)]
        return not any(frozenset(pair) in self.left_out for pair in names if None not in pair)


def _free_of(pairs: frozenset[frozenset[str]], names: Iterable[str]) -> frozenset[frozenset[str]]:
    return frozenset(pair for pair in pairs if not pair & set(names))


def _item(name: str, link: str | None, shape: Any, pose: Any, margin: float) -> Item:
    if not isinstance(shape, Shape):
        raise ShapeError(f"scene: {name!r} is {shape!r}, expected a shape, such as od.shapes.Sphere(0.1)")
    margin = number(f"scene: margin of {name!r} [m]", margin)
    if margin < 0:
        raise ShapeError(f"scene: margin of {name!r} [m] is {margin:g}, expected at least 0")
    moving = link is None
    if moving and isinstance(pose, ca.Function):
        return Item(name, link, shape, checked_function(f"scene: pose of {name!r}", pose), margin)
    if isinstance(pose, str):
        if not moving or pose != PORT:
            expected = (
                f"numbers (4, 4), od.scene.PORT ({PORT!r}) or a Function of the time" if moving else "numbers (4, 4)"
            )
            raise ShapeError(f"scene: pose of {name!r} is {pose!r}, expected {expected}")
        return Item(name, link, shape, pose, margin)
    return Item(name, link, shape, pose_matrix(f"scene: pose of {name!r}", pose), margin)


def pose_matrix(what: str, pose: Any) -> Pose:
    """The first three rows of a homogeneous matrix, None for the identity. Raises ShapeError, saying what is wrong."""
    C = np.eye(4) if pose is None else as_floats(what, pose)
    if C.shape != (4, 4) or not are_sane(C):
        raise ShapeError(f"{what}: got shape {C.shape}, expected a matrix (4, 4) of finite numbers")
    R = C[:3, :3]
    off = max(float(np.abs(R @ R.T - np.eye(3)).max()), float(np.abs(C[3] - [0, 0, 0, 1]).max()))
    if off > 1e-6 or np.linalg.det(R) < 0:
        raise ShapeError(f"{what}: {C.tolist()} is no pose: a rotation matrix, a position, and a last row 0 0 0 1")
    return tuple(tuple(row) for row in C[:3].tolist())
