"""The collision shapes of a robot as shapes of a scene, and the pairs of them that need not count."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

from ..errors import ModelError, ShapeError
from ..model.collision import LEFT_OUT, Collision
from ..model.robot import Robot, check_robot
from ..numbers import shortened
from ..types import StrPath
from ..validation import count, one_of, options_of
from .fitting import capsule_around, excess_of, hull_around
from .meshes import points_of
from .sampling import Placed, always_touching, configurations
from .shapes import KINDS, Capsule, Polytope
from .srdf import disabled_pairs

MESHES = "hull", "capsule", "omit"
MOST = 2000  # shapes on a robot
SAMPLES = 300
VERTICES = 32  # of the hull of a mesh: what a distance costs grows with them, 3 to 7 mm of a link of an arm stick out


@dataclass
class Shapes:
    """What was read of a robot: shapes with their places, pairs of links, and of shapes, that do not count, notes."""

    placed: list[Placed] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    touching: list[tuple[str, str]] = field(default_factory=list)
    still: frozenset[str] = frozenset()  # links that do not move
    notes: list[str] = field(default_factory=list)


def shapes_of(
    robot: Robot,
    srdf: StrPath | bytes | None,
    meshes: str,
    seed: int,
    samples: int,
    packages: Mapping[str, StrPath] | None,
) -> Shapes:
    """See Scene.of."""
    check_robot("Scene.of", robot)
    one_of("Scene.of: meshes", meshes, MESHES)
    samples = count("Scene.of: samples", samples)
    seed = count("Scene.of: seed", seed, most=None)
    if len(robot.collisions) > MOST:
        raise ModelError(robot.name, [f"it has {len(robot.collisions)} collision shapes; a scene holds {MOST} at most"])
    packages = _packages(packages)
    out = Shapes(notes=[x for x in robot.report if LEFT_OUT in x])
    names = _names(robot)
    problems: list[str] = []
    for name, x in zip(names, robot.collisions, strict=True):
        if x.kind == "mesh":
            try:
                _add_mesh(out, robot, name, x, meshes, packages)
            except ModelError as error:
                problems.append(f"{name}: {error}")
        else:
            out.placed.append((name, x.link, KINDS[x.kind](*x.sizes), x.matrix))
    if problems:
        raise ModelError(robot.name, problems)
    if not robot.collisions:
        out.notes.append(f"{robot.name} has no collision shapes; attach some: scene.attach(name, link, shape)")
    leave_out(out, robot, srdf, seed, samples)
    return out


def _names(robot: Robot) -> list[str]:
    """Names of the shapes, each once: those of the description, and link, link_1, ... without one. None is that of
    another link, which pairs that are left out may mean."""
    taken, numbered, out = set(robot.frames), dict.fromkeys(robot.frames, -1), []
    for x in robot.collisions:
        name = base = x.name or x.link
        number = numbered.get(base, 0)
        if base == x.link and number < 0:  # the first one of its link
            number = 0
        else:
            number = max(number, 0)
            while name in taken:
                number += 1
                name = f"{base}_{number}"
        numbered[base] = number
        taken.add(name)
        out.append(name)
    return out


# -- pairs ----------------------------------------------------------------------------------------------------------


def leave_out(out: Shapes, robot: Robot, srdf: Any, seed: int, samples: int) -> None:
    """Add the pairs that do not count, and why, to `out`: those of links by the joints between them, the others of the
    shapes that the robot has, as nothing is known of what will be attached."""
    links = dict.fromkeys(x[1] for x in out.placed)
    pairs = list(combinations(links, 2))
    near, out.still = tied_links(robot, links)
    _note(out, "adjacent links, or fixed to each other", near)
    out.left_out.extend(near)
    left = _without(pairs, near)
    untied = left
    described = set(map(frozenset, robot.may_touch))
    let = [pair for pair in left if frozenset(pair) in described]
    _note(out, "allowed to touch by the robot", let)
    left = _without(left, let)
    if srdf is not None:
        named, notes = disabled_pairs(srdf, robot, left)
        out.notes.extend(notes)
        _note(out, "left out by the srdf", named)
        left = _without(left, named)
    if samples and robot.nq:
        q = configurations(robot, samples, seed)
        always = always_touching(robot, out.placed, left, q)
        _note(out, f"links that touch at all of {samples} configurations within the limits (seed {seed})", always)
        left = _without(left, always)
    carried: dict[str, list[str]] = {}
    for name, link, *_ in out.placed:
        carried.setdefault(link, []).append(name)
    out.touching = [both for a, b in _without(untied, left) for both in product(carried[a], carried[b])]


def tied_links(robot: Robot, links: Iterable[str]) -> tuple[list[tuple[str, str]], frozenset[str]]:
    """(pairs of these links with one joint or none between them, those that do not move)."""
    links = list(links)
    return _adjacent(robot, list(combinations(links, 2))), frozenset(x for x in links if robot.frame(x).body == 0)


def _adjacent(robot: Robot, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Pairs of links between which there is one movable joint or none, held ones counted as movable, and of links that
    do not move to each other."""
    _, joints, _, _ = robot.description
    above = {j.child: j for j in joints}
    cluster: dict[str, str] = {}  # of a link: the uppermost link that it is fixed to
    for link in robot.frames:
        chain = [link]
        while chain[-1] not in cluster and chain[-1] in above and above[chain[-1]].kind == "fixed":
            chain.append(above[chain[-1]].parent)
        top = cluster.get(chain[-1], chain[-1])
        cluster.update(dict.fromkeys(chain, top))
    tied = {(cluster[j.parent], cluster[j.child]) for j in joints}
    out = []
    for a, b in pairs:
        A, B = cluster[a], cluster[b]
        same = A == B or robot.frame(a).body == robot.frame(b).body
        if same or (A, B) in tied or (B, A) in tied:
            out.append((a, b))
    return out


def _without(pairs: list[tuple[str, str]], some: list[tuple[str, str]]) -> list[tuple[str, str]]:
    gone = set(some)
    return [pair for pair in pairs if pair not in gone]


def _note(out: Shapes, why: str, pairs: list[tuple[str, str]]) -> None:
    if pairs:
        out.notes.append(f"{len(pairs)} pairs do not count, {why}: {', '.join(f'{a} - {b}' for a, b in pairs)}")


def _packages(given: Any) -> dict[str, StrPath]:
    given = options_of("Scene.of: packages", given)
    for name, folder in given.items():
        if not isinstance(folder, (str, os.PathLike)):
            raise ShapeError(f"Scene.of: packages: {name!r} is {shortened(folder)}, expected a folder")
    return given


def _add_mesh(out: Shapes, robot: Robot, name: str, x: Collision, meshes: str, packages: Any) -> None:
    """Add the shape around a mesh to `out`; ModelError where it cannot be read."""
    if meshes == "omit":
        out.notes.append(f"{name}: the mesh {x.mesh!r} is left out")
        return
    points = points_of(x, robot.folder, packages)
    if meshes == "hull":
        corners, excess = hull_around(points, VERTICES)
        out.placed.append((name, x.link, Polytope(corners.tolist()), x.matrix))
        told = f"a hull of {len(corners)} vertices"
        if not excess:
            return
    else:
        radius, length, T = capsule_around(points)
        excess = excess_of(radius, length, T, points)
        out.placed.append((name, x.link, Capsule(radius, length), x.matrix @ T))
        told = f"a capsule of radius {radius:.4g} m and length {length:.4g} m"
    out.notes.append(
        f"{name}: {told} contains the mesh and sticks out of its convex hull by {1e3 * excess:.2g} mm at most"
    )
