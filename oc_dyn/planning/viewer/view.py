"""od.view: one HTML file that shows a robot's motions, with nothing to install or to fetch; or a live view."""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, overload

from ...errors import ShapeError
from ...files import write_text
from ...model.loops import LoopRobot
from ...model.robot import Robot, check_robot
from ...numbers import shortened
from ...scene import Scene
from ...types import Numbers, StrPath
from ...validation import number, one_of
from .drawing import Drawing
from .live import LiveView
from .looks import SHOWN, looks
from .motions import all_coordinates, named, rows
from .page_text import page_text


@dataclass(frozen=True)
class View:
    """A page that shows motions; a notebook shows it where it is the value of a cell.

    html: its text. path: the file, None where none was written. notes: what of the robot is not shown, and why.
    """

    html: str = field(repr=False)
    path: Path | None = None
    notes: tuple[str, ...] = field(default=(), repr=False)

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


@overload
def view(
    robot: Robot, trajectory: Any = None, *, scene: Scene | None = None, path: StrPath | None = None, fps: float = 60,
    title: str | None = None, poses: Numbers | None = None, show: str = "visual",
    packages: Mapping[str, StrPath] | None = None, live: Literal[False] = False,
) -> View: ...  # fmt: skip
@overload
def view(
    robot: Robot, trajectory: Any = None, *, scene: Scene | None = None, path: StrPath | None = None, fps: float = 60,
    title: str | None = None, poses: Numbers | None = None, show: str = "visual",
    packages: Mapping[str, StrPath] | None = None, live: Literal[True],
) -> LiveView: ...  # fmt: skip


def view(
    robot: Robot, trajectory: Any = None, *, scene: Scene | None = None, path: StrPath | None = None, fps: float = 60,
    title: str | None = None, poses: Numbers | None = None, show: str = "visual",
    packages: Mapping[str, StrPath] | None = None, live: bool = False,
) -> View | LiveView:  # fmt: skip
    """View of a robot, at rest or moving: one HTML page that turns, zooms, plays and scrubs, and plots limits below.

    trajectory: a Trajectory or another motion with t and q, such as a plan along a path, an elastic plan or run; a pair
        (t (K,) [s], q (K, nq)); one configuration (nq,); or {name: one of these} for several that are seen together.
        None shows the robot at home. Shares of limits are plotted for motions that have limits.
    scene: an od.Scene, whose shapes are drawn, on links as well. Without any on links, the robot's own are.
    show: "visual" takes the robot's visual shapes, meshes among them, and for links without the collision shapes;
        "collision" these alone. Collision meshes are drawn by their hulls, robots without shapes as sticks, and so are
        links without beside others that have some: to frames that are fixed to them, and at tips to where their inertia
        says that they end; beads are the way of a joint that slides. Meshes are read where the extra `meshes` is
        installed and their files are there; .notes tells what is not shown, and why.
        packages: as of Scene.of.
    path: of a file to write, "motion.html", whose folder is made; without one, .open() shows the page and notebooks
        show it by themselves.
    fps: rows a second that are kept. title: of the page. poses: of scene.moving, as of animate, of the only motion.
    live: True serves the picture at an address of this computer instead, by viser (extra `live`), where a script can
        go on to move it; see LiveView. It takes no path.
    Raises ShapeError naming the motion that does not fit, whose quaternions are not of unit length too, and for a path
    that is no file's; UnknownName for links that the robot does not have; OSError where nothing can be written;
    ModelError for a live view where viser is not installed.
    """
    check_robot("view", robot)
    fps = number("view: fps", fps, above=0)
    one_of("view: show", show, SHOWN)
    place = None if path is None else _place(path)
    if place is not None and live:
        raise ShapeError("view: a live view writes no file; leave path out, or live")
    if scene is not None and not isinstance(scene, Scene):
        raise ShapeError(f"view: scene is {shortened(scene)}, expected an od.Scene")
    motions = named(robot, trajectory)
    if poses is not None and (len(motions) > 1 or scene is None):
        raise ShapeError("view: poses are of the shapes of a scene that move, and of one motion")
    shown = [rows(robot, name, motion, fps) for name, motion in motions.items()]
    if isinstance(robot, LoopRobot):
        shown, robot = [replace(x, q=all_coordinates(robot, x.q)) for x in shown], robot.tree
    seen = looks(robot, scene, show, packages)
    drawing = Drawing(robot, seen, scene or Scene())
    for x in shown:
        drawing.add(x, poses)
    title = title or robot.name
    if live:
        return LiveView(drawing.finish(), title, seen.notes)
    text = page_text(drawing.finish(), title)
    if place is not None:
        write_text(place, text)
    return View(text, place, seen.notes)


def _place(path: StrPath) -> Path:
    """Path of a file to write."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path) or os.path.isdir(path):
        what = "a directory" if isinstance(path, (str, os.PathLike)) and os.fspath(path) else "no name of a file"
        raise ShapeError(f'view: path {shortened(path)} is {what}, expected one such as "motion.html"')
    return Path(path)
