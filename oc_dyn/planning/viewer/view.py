"""od.view: one HTML file that shows a robot's motions, with nothing to install or to fetch."""

from __future__ import annotations

import base64
import html
import json
import os
import tempfile
import webbrowser
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ModelError, ShapeError
from ...files import write_text
from ...model.loops import LoopRobot
from ...model.quaternions import check_quaternions, quaternions
from ...model.robot import Robot, check_robot
from ...numbers import are_sane, as_floats, shortened
from ...scene import Scene
from ...scene.link_poses import link_poses
from ...scene.poses import item_poses
from ...scene.scene import Item
from ...scene.shapes import Capsule, HalfSpace, Shape, Sphere
from ...types import Array, Numbers, StrPath
from ...validation import number
from ..animate import stick_figure
from .surfaces import along, at, triangles

_FINER = 8  # points between rows at which shares of limits are looked at
_MOST = 20_000  # rows of a motion in a page
_COLORS = ((0.13, 0.44, 0.71), (0.84, 0.37, 0.0), (0.0, 0.62, 0.45), (0.8, 0.47, 0.65), (0.9, 0.62, 0.0))  # Okabe, Ito
_WORLD, _MOVING, _PLANE = (0.6, 0.6, 0.62, 1.0), (0.9, 0.62, 0.0, 1.0), (0.6, 0.6, 0.62, 0.25)
_STEPS = 20  # from home to the start of a motion of a robot with loops
_THICK = 0.03  # of the size of a robot without shapes: radius of its sticks


@dataclass(frozen=True)
class View:
    """A page that shows motions; a notebook shows it where it is the value of a cell.

    html: its text. path: the file, None where none was written.
    """

    html: str = field(repr=False)
    path: Path | None = None

    def open(self) -> Path:
        """Show it in the browser; without a file of its own in a temporary one. Returns the file."""
        path = self.path
        if path is None:
            path = Path(tempfile.mkdtemp(prefix="oc_dyn_")) / "view.html"
            write_text(path, self.html)
        webbrowser.open(path.resolve().as_uri())
        return path

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:600px;border:0"></iframe>'


def view(
    robot: Robot, trajectory: Any = None, *, scene: Scene | None = None, path: StrPath | None = None, fps: float = 60,
    title: str | None = None, poses: Numbers | None = None,
) -> View:  # fmt: skip
    """View of a robot, at rest or moving: one HTML page that turns, zooms, plays and scrubs, and plots limits below.

    trajectory: a Trajectory or another motion with t and q, such as a plan along a path, an elastic plan or run; a pair
        (t (K,) [s], q (K, nq)); one configuration (nq,); or {name: one of these} for several that are seen together.
        None shows the robot at home. Shares of limits are plotted for motions that have limits.
    scene: an od.Scene, whose shapes are drawn, on links as well. Without one, the robot's collision shapes are: meshes
        by their hulls, where the extra `meshes` is installed and their files are there; without shapes, sticks.
    path: of a file to write, "motion.html", whose folder is made; without one, .open() shows the page and notebooks
        show it by themselves.
    fps: rows a second that are kept. title: of the page. poses: of scene.moving, as of animate, of the only motion.
    Raises ShapeError naming the motion that does not fit, whose quaternions are not of unit length too, and for a path
    that is no file's; UnknownName for links that the robot does not have; OSError where nothing can be written.
    """
    check_robot("view", robot)
    fps = number("view: fps", fps, above=0)
    place = None if path is None else _place(path)
    if scene is not None and not isinstance(scene, Scene):
        raise ShapeError(f"view: scene is {shortened(scene)}, expected an od.Scene")
    named = _named(robot, trajectory)
    if poses is not None and (len(named) > 1 or scene is None):
        raise ShapeError("view: poses are of the shapes of a scene that move, and of one motion")
    shown = [_rows(robot, name, motion, fps) for name, motion in named.items()]
    if isinstance(robot, LoopRobot):
        shown, robot = [(name, t, _all_coordinates(robot, q), shares) for name, t, q, shares in shown], robot.tree
    items, sticks = _items(robot, scene)
    page = _Page(robot, items, sticks, scene or Scene())
    for k, (name, t, q, shares) in enumerate(shown):
        page.add(name, t, q, shares, _COLORS[k % len(_COLORS)], poses)
    text = _filled(page.data(title or robot.name))
    if place is not None:
        write_text(place, text)
    return View(text, place)


def _place(path: StrPath) -> Path:
    """Path of a file to write."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path) or os.path.isdir(path):
        what = "a directory" if isinstance(path, (str, os.PathLike)) and os.fspath(path) else "no name of a file"
        raise ShapeError(f'view: path {shortened(path)} is {what}, expected one such as "motion.html"')
    return Path(path)


# -- motions -------------------------------------------------------------------------------------------------------


def _named(robot: Robot, trajectory: Any) -> dict[str, Any]:
    """{name: motion}."""
    if isinstance(trajectory, Mapping):
        if not trajectory or not all(isinstance(name, str) for name in trajectory):
            raise ShapeError("view: trajectory is a mapping without motions, or with names that are no texts")
        return dict(trajectory)
    return {robot.name: _at_home(robot) if trajectory is None else trajectory}


def _at_home(robot: Robot) -> Array:
    """(nq,) where a robot with loops is assembled; else zeros, or the middle of limits that zero is outside of."""
    q = np.asarray(robot.neutral(), float).copy()
    if isinstance(robot, LoopRobot):
        return q
    for joint in robot.joints:
        if joint.nq == joint.nv == 1:
            low, high = joint.lower, joint.upper
            q[joint.q_index] = 0.0 if low <= 0 <= high else (low + high) / 2
    return q


def _rows(robot: Robot, name: str, motion: Any, fps: float) -> tuple[str, Array, Array, dict[str, Array]]:
    """(name, t (K,), q (K, nq), {quantity: (K,) shares of limits}) of a motion."""
    what, shares = f"view: {name}", {}
    motion = getattr(motion, "motion", motion)  # of elastic plans
    if hasattr(motion, "sample") and hasattr(motion, "utilization"):
        fine = motion.sample(1 / (_FINER * fps))
        every = np.unique(np.r_[np.arange(0, len(fine.t), _FINER), len(fine.t) - 1])
        t, q = fine.t[every], fine.q[every]
        shares = {k: np.maximum.reduceat(x, every) for k, x in fine.utilization().items()}  # up to the next row
    elif hasattr(motion, "unknowns"):
        raise ShapeError(f"{what}: a Solution has many expressions; give (found.t, found[q]) with q those of the robot")
    elif hasattr(motion, "t") and hasattr(motion, "q"):
        t, q = motion.t, motion.q
    elif isinstance(motion, tuple) and len(motion) == 2 and np.ndim(motion[1]) == 2:
        t, q = motion
    else:
        t, q = [0.0], np.atleast_2d(as_floats(what, motion))
    t, q = as_floats(f"{what}: t", t).ravel(), as_floats(f"{what}: q", q)
    if q.shape != (t.size, robot.nq) or not t.size or not are_sane(t) or not are_sane(q) or np.any(np.diff(t) < 0):
        raise ShapeError(
            f"{what}: got q of shape {q.shape} for {t.size} times, expected finite numbers ({t.size}, {robot.nq}) for "
            f"{robot.name}, at times that do not fall"
        )
    check_quaternions(what, quaternions(robot), q.T)
    chosen = _chosen(t, fps)
    return name, t[chosen] - t[0], q[chosen], {k: np.asarray(x)[chosen] for k, x in shares.items()}


def _chosen(t: Array, fps: float) -> Array:
    """Numbers of rows that are at least 1 / fps apart, the last one among them; _MOST at most."""
    least = max(1 / fps, (t[-1] - t[0]) / _MOST) * (1 - 1e-6)
    kept = [0]
    for k in range(1, t.size):
        if t[k] - t[kept[-1]] >= least:
            kept.append(k)
    return np.array(kept if kept[-1] == t.size - 1 else [*kept, t.size - 1])


def _all_coordinates(robot: LoopRobot, q: Array) -> Array:
    """(K, nq of the tree) with the loops closed as they are when they are followed from home; q (K, nq)."""
    way = np.linspace(robot.neutral(), q[0], _STEPS + 1)[:-1]
    guess = np.tile(robot.home[:, None], (1, _STEPS + len(q)))
    guess[robot.rows("q", robot.independent)] = np.vstack([way, q]).T
    return robot.close(guess)[:, _STEPS:].T


# -- shapes --------------------------------------------------------------------------------------------------------


def _items(robot: Robot, scene: Scene | None) -> tuple[tuple[Item, ...], bool]:
    """(shapes to draw, whether sticks are to stand for the robot)."""
    items = () if scene is None else scene.items
    if any(x.link is not None for x in items):
        return items, False
    if not robot.collisions:
        return items, True
    try:
        own = Scene.of(robot, samples=0).items
    except ModelError:  # meshes that are not there, or no program that reads them
        own = Scene.of(robot, samples=0, meshes="omit").items
    return (*own, *(x for x in items if x.name not in {y.name for y in own})), not own


class _Page:
    """What the page draws, put together."""

    def __init__(self, robot: Robot, items: tuple[Item, ...], sticks: bool, scene: Scene) -> None:
        self.robot, self.items, self.sticks, self.scene = robot, items, sticks, scene
        self.surfaces: dict[Any, int] = {}
        self.texts: list[dict[str, Any]] = []
        self.motions: list[dict[str, Any]] = []
        self.low, self.high = np.full(3, np.inf), np.full(3, -np.inf)
        self.planes: list[dict[str, Any]] = []

    def add(self, name: str, t: Array, q: Array, shares: dict[str, Array], color: Any, poses: Any) -> None:
        """A motion: t (K,), q (K, nq)."""
        where = item_poses("view", self.robot, self.scene, self.items, t, q, poses)
        moving: list[Array] = []
        parts: list[dict[str, Any]] = []
        for x in self.items:
            if isinstance(x.shape, HalfSpace):
                self.planes.append({"shape": x.shape, "parts": parts, "pose": where[x.name][0]})
                continue
            part: dict[str, Any] = {"surface": self._surface(x.shape), "slot": -1}
            if x.link is None:
                part["color"] = _WORLD if x.fixed else _MOVING
            if x.link is None and x.fixed:
                if self.motions:  # drawn with the first motion
                    continue
                part["pose"] = where[x.name][0].T.ravel().round(6).tolist()
            else:
                part["slot"] = len(moving)
                moving.append(where[x.name])
            parts.append(part)
            self._reach(where[x.name][:, :3, 3], x.shape.radius_about_origin)
        for shape, C in self._sticks(q) if self.sticks else ():
            parts.append({"surface": self._surface(shape), "slot": len(moving)})
            moving.append(C)
        rows = np.stack(moving, axis=1)[:, :, :3, :] if moving else np.zeros((len(t), 0, 3, 4))
        self.motions.append(
            {
                "name": name,
                "color": color,
                "parts": parts,
                "slots": len(moving),
                "t": _packed(t),
                "poses": _packed(rows.transpose(0, 1, 3, 2)),
                "shares": [{"name": k, "values": _packed(x)} for k, x in shares.items()],
            }
        )

    def _surface(self, shape: Shape, reach: float = 1.0) -> int:
        key = (type(shape).__name__, repr(shape), reach)
        if key not in self.surfaces:
            points, faces = triangles(shape, reach)
            self.surfaces[key] = len(self.texts)
            self.texts.append({"points": _packed(points), "faces": faces.ravel().tolist()})
        return self.surfaces[key]

    def _reach(self, points: Array, radius: float) -> None:
        self.low = np.minimum(self.low, points.min(axis=0) - radius)
        self.high = np.maximum(self.high, points.max(axis=0) + radius)

    def _sticks(self, q: Array) -> list[tuple[Shape, Array]]:
        """Capsules between joints, and balls at them, with their poses (K, 4, 4)."""
        f, pairs = stick_figure(self.robot)
        points = np.array(f.map(len(q))(q.T)).reshape(3, len(q), -1).transpose(1, 2, 0)
        self._reach(points.reshape(-1, 3), 0.0)
        thick = max(_THICK * float(np.max(self.high - self.low)), 1e-3)
        out: list[tuple[Shape, Array]] = []
        for a, b in pairs:
            start, end = points[:, a], points[:, b]
            length = float(np.linalg.norm(end - start, axis=1).max())
            if length > 1e-9:
                out.append((Capsule(round(thick, 6), round(length, 6)), along(start, end)))
        out += [(Sphere(round(1.5 * thick, 6)), at(points[:, b])) for _, b in pairs]
        return out

    def data(self, title: str) -> dict[str, Any]:
        """All of it, for JSON."""
        if not np.all(np.isfinite(self.low)):
            frames = link_poses(self.robot, self.robot.frames, _at_home(self.robot)[:, None])
            self._reach(np.array([C[0, :3, 3] for C in frames.values()]).reshape(-1, 3), 0.5)
        size = max(float(np.max(self.high - self.low)) / 2, 1e-2)
        middle = (self.low + self.high) / 2
        for plane in self.planes:
            C, shape = plane["pose"], plane["shape"]
            centre = C[:3, :3].T @ (middle - C[:3, 3])
            normal = np.array(shape.normal) / np.linalg.norm(shape.normal)
            foot = centre - normal * (normal @ centre - shape.offset / np.linalg.norm(shape.normal))
            shifted = np.array(C)
            shifted[:3, 3] = C[:3, :3] @ (foot - normal * (normal @ foot)) + C[:3, 3]
            flat = {"surface": self._surface(shape, round(2 * size, 6)), "slot": -1, "color": _PLANE}
            plane["parts"].append({**flat, "pose": shifted.T.ravel().round(6).tolist()})
        return {
            "title": title,
            "surfaces": self.texts,
            "motions": self.motions,
            "middle": middle[:2].round(6).tolist(),
            "height": round(float(middle[2]), 6),
            "floor": round(min(float(self.low[2]), 0.0), 6),
            "reach": round(size, 6),
            "radius": round(max(float(np.linalg.norm(self.high - self.low)) / 2, 1e-2), 6),
        }


def _packed(values: Numbers) -> str:
    """Numbers as text, four bytes each, the lowest first."""
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode("ascii")


def _filled(data: dict[str, Any]) -> str:
    """The page; nothing of its data can end the script element."""
    text = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    here = Path(__file__).parent
    page, script = ((here / name).read_text(encoding="utf-8") for name in ("page.html", "page.js"))
    before, rest = page.split("/*DATA*/")
    middle, after = rest.split("/*SCRIPT*/")
    return before + text + middle + script + after
