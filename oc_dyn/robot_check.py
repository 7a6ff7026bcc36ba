"""od.check_robot: what people who make descriptions of robots want to hear of theirs."""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import ModelError, ModelWarning
from .function import function
from .model.inertia import unphysical
from .model.robot import Robot
from .robots.load import load
from .scene.meshes import found_path
from .text import terminal_lines

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SNAP = 1e-3  # rotations that near a quarter turn were meant to be one, such as 1.57
_SAVING = 0.02  # of the instructions, that are worth a word
_MASSES = 1e4  # ratio of the heaviest moving link to the lightest
_FAST, _TURNS = 100.0, 10 * np.pi  # rad/s; range of a joint
_DENSE = 30_000.0  # kg/m^3 of a link's shapes, above that of all that links are made of
_WIDE = 3.0  # a radius of gyration over the size of the link's shapes
_PLANNED = ("acceleration", "jerk", "effort_rate")  # limits that URDF, as others have it, does not know
_PARTS = ("inertias", "limits", "names", "frames", "meshes")
LEVELS = ("error", "warning", "note")


@dataclass(frozen=True)
class RobotFinding:
    """level: "error", what makes the file unusable, "warning", what is doubtful, or "note", what could be better. part:
    "file", "inertias", "limits", "names", "frames", "meshes" or "code"."""

    level: str
    part: str
    text: str


@dataclass(frozen=True)
class RobotCheck:
    """What od.check_robot found; printed as a report. robot: None where it cannot be loaded."""

    source: str
    robot: Robot | None
    findings: tuple[RobotFinding, ...]

    def ok(self) -> bool:
        """Whether nothing is wrong or doubtful."""
        return all(x.level == "note" for x in self.findings)

    def of(self, level: str) -> list[str]:
        """Texts of a level."""
        return [x.text for x in self.findings if x.level == level]

    def __str__(self) -> str:
        counts = Counter(x.level for x in self.findings)
        told = ", ".join(f"{counts[x]} {x}{'s' if counts[x] != 1 else ''}" for x in LEVELS)
        lines = [f"{self.source}: {told}"]
        for level in LEVELS:
            lines += [f"  {level:8} {x.part:9} {x.text}" for x in self.findings if x.level == level]
        return "\n".join(terminal_lines(line) for line in lines)


def check_robot(robot: Any, **options: Any) -> RobotCheck:
    """RobotCheck of a file, text or name, as od.load takes it, or of a Robot: inertias, limits, names, frames, meshes,
    and what would make its Functions shorter.

    options: of od.load. What is wrong with the file is in the findings; nothing is raised for it but FileNotFoundError.
    """
    found: list[RobotFinding] = []
    if isinstance(robot, Robot):
        source, loaded = robot.name, robot
    else:
        loaded, source = _loaded(robot, options, found), _source(robot)
    if loaded is not None:
        told = [x.text for x in found]
        for part, look in zip(_PARTS, (_inertias, _limits, _names, _frames, _meshes), strict=True):
            rows = [(level, text) for level, text in look(loaded) if not any(text in x for x in told)]
            found += [RobotFinding(level, part, text) for level, text in rows]
        found += [RobotFinding("note", "code", text) for text in _code(loaded)]
    return RobotCheck(source, loaded, tuple(found))


def _source(given: Any) -> str:
    text = os.fsdecode(given) if isinstance(given, (str, bytes, os.PathLike)) else str(given)
    return "a text" if text.lstrip().startswith("<") else text


def _loaded(given: Any, options: dict[str, Any], found: list[RobotFinding]) -> Robot | None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            robot = load(given, **options)
        except ModelError as error:
            found += [RobotFinding("error", "file", str(x)) for x in error.problems]
            robot = None
    warned = [str(w.message) for w in told if issubclass(w.category, ModelWarning)]
    found += [RobotFinding("warning", "file", text) for text in dict.fromkeys(warned)]
    if robot is not None:  # what was not warned of
        notes = [text for text in dict.fromkeys(robot.report) if not any(text in x for x in warned)]
        found += [RobotFinding("note", "file", text) for text in notes]
    return robot


# -- parts: [(level, text)] ------------------------------------------------------------------------------------------


def _inertias(robot: Robot) -> list[tuple[str, str]]:
    out, links = [], robot.description[0]
    moving = {name: x for name, x in links.items() if robot.frames[name].body and x is not None and x.mass > 0}
    for name, x in moving.items():
        doubt = unphysical(x.mass, x.tensor_com)
        if doubt:
            out.append(("warning", f"link {name!r}: {doubt}"))
        elif not x.tensor_com.any():
            text = f"link {name!r}: its inertia about its centre of mass is zero, as of a point of {x.mass:g} kg"
            out.append(("note", f"{text}; give one unless that is meant"))
    if moving:
        heavy, light = max(moving, key=lambda n: moving[n].mass), min(moving, key=lambda n: moving[n].mass)
        if moving[heavy].mass > _MASSES * moving[light].mass:
            text = f"link {heavy!r} has {moving[heavy].mass:g} kg, {light!r} {moving[light].mass:g} kg"
            out.append(("warning", f"{text}: are units mixed?"))
    sizes: dict[str, float] = {}
    for shape in robot.collisions:
        if shape.kind != "mesh":
            reach = np.linalg.norm(shape.matrix[:3, 3]) + max(shape.sizes)
            sizes[shape.link] = max(sizes.get(shape.link, 0.0), float(reach))
    volumes = {link: sum(_volume(s) for s in robot.collisions if s.link == link) for link in sizes}
    for name, x in moving.items():
        if name in volumes and x.mass > _DENSE * volumes[name] > 0:
            text = f"link {name!r}: {x.mass:g} kg in shapes of {volumes[name]:.3g} m^3: is its mass in grams?"
            out.append(("warning", text))
        gyration = float(np.sqrt(max(np.linalg.eigvalsh(x.tensor_com).max(), 0) / x.mass))
        if name in sizes and gyration > _WIDE * sizes[name]:
            text = f"link {name!r}: its radius of gyration is {gyration:.3g} m, its shapes reach {sizes[name]:.3g} m"
            out.append(("warning", f"{text}; is the inertia in other units, or about another point?"))
    return out


def _volume(shape: Any) -> float:
    """[m^3], 0 of a mesh."""
    a = shape.sizes
    return float({
        "sphere": lambda: 4 / 3 * np.pi * a[0] ** 3,
        "box": lambda: a[0] * a[1] * a[2],
        "cylinder": lambda: np.pi * a[0] ** 2 * a[1],
        "capsule": lambda: np.pi * a[0] ** 2 * (a[1] + 4 / 3 * a[0]),
        "ellipsoid": lambda: 4 / 3 * np.pi * a[0] * a[1] * a[2],
        "mesh": lambda: 0.0,
    }[shape.kind]())  # fmt: skip


def _limits(robot: Robot) -> list[tuple[str, str]]:
    out = []
    lacking: dict[str, list[str]] = {"position": [], "velocity": [], "effort": []}
    for j in robot.joints:
        if j.nv != 1:
            continue
        if j.kind != "continuous" and not np.isfinite([j.lower, j.upper]).all():
            lacking["position"].append(j.name)
        for what in ("velocity", "effort"):
            if not np.isfinite(getattr(j, what)):
                lacking[what].append(j.name)
        if j.kind == "revolute" and np.isfinite([j.lower, j.upper]).all() and j.upper - j.lower > _TURNS:
            text = f"joint {j.name!r} turns by {j.upper - j.lower:.4g} rad"
            out.append(("warning", f"{text}: are its limits in degrees?"))
        if j.kind in ("revolute", "continuous") and np.isfinite(j.velocity) and j.velocity > _FAST:
            out.append(("warning", f"joint {j.name!r} turns at {j.velocity:g} rad/s: is that in degrees?"))
    for what, joints in lacking.items():
        if joints:
            shown = ", ".join(joints[:6]) + (f" and {len(joints) - 6} more" if len(joints) > 6 else "")
            out.append(("note", f"no limit of {what}: {shown}"))
    never = [] if not any(j.nv == 1 for j in robot.joints) else [x for x in _PLANNED if _none(robot.limit(x))]
    if never:
        how = "they are attributes of <limit>, too, or given by od.Limits.of(robot).updated"
        out.append(("note", f"no joint has a limit of {', '.join(never)}, which planners keep: {how}"))
    return out


def _none(limits: Any) -> bool:
    return not np.isfinite(limits).any()


def _names(robot: Robot) -> list[tuple[str, str]]:
    out = []
    for kind, names in (("link", list(robot.description[0])), ("joint", [j.name for j in robot.description[1]])):
        odd = [x for x in names if not _NAME.fullmatch(x)]
        if odd:
            out.append(("note", f"{kind}s whose names are no names in code: {', '.join(map(repr, odd[:6]))}"))
        alike = [x for x, n in Counter(x.lower() for x in names).items() if n > 1]
        if alike:
            out.append(("warning", f"{kind}s whose names differ in case alone: {', '.join(map(repr, alike[:6]))}"))
    return out


def _frames(robot: Robot) -> list[tuple[str, str]]:
    out = []
    for j in robot.description[1]:
        R = np.abs(np.asarray(j.rotation, float))
        off = np.minimum(R, np.abs(R - 1))
        if 1e-9 < off.max() < _SNAP:
            text = f"joint {j.name!r}: its rotation is {off.max():.1e} from quarter turns; write more digits"
            out.append(("note", text))
    return out


def _meshes(robot: Robot) -> list[tuple[str, str]]:
    out = []
    for name in sorted({x.mesh for x in robot.collisions if x.kind == "mesh"}):
        try:
            if not found_path(name, robot.folder, {}).is_file():
                out.append(("warning", f"mesh {name!r}: there is no such file"))
        except (ModelError, OSError) as error:
            out.append(("warning", f"mesh {name!r}: {error.problems[0] if isinstance(error, ModelError) else error}"))
    return out


def _code(robot: Robot) -> list[str]:
    """Instructions of dynamics, and what fewer digits of rotations cost."""
    if not robot.nv:
        return []
    try:
        counts = {q: function(robot, q).n_instructions() for q in ("inverse_dynamics", "forward_dynamics")}
    except ModelError as error:
        return [f"no dynamics: {error.problems[0]}"]
    out = [", ".join(f"{q} {n} instructions" for q, n in counts.items())]
    snapped = function(robot.with_snapped_angles(_SNAP), "inverse_dynamics").n_instructions()
    if snapped < (1 - _SAVING) * counts["inverse_dynamics"]:
        how = f"snap_angles={_SNAP:g}, or more digits in the file"
        out.append(f"with exact quarter turns inverse_dynamics has {snapped}: {how}")
    return out
