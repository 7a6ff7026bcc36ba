"""GIF of a robot's motion as a stick figure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from ..drawing import COLORS, styled
from ..errors import ShapeError
from ..kinematics.recursive_body import body_poses, frame_in_body
from ..lie import se3
from ..model.canonical import canonical
from ..model.inertia import Inertia
from ..model.robot import Body, Frame, Robot
from ..numbers import as_floats
from ..scene import Scene
from ..text import mathtext
from ..types import Array, Numbers, StrPath
from ..validation import number
from .gif import write_gif
from .scene_lines import scene_lines

P = TypeVar("P", bound=StrPath)


@styled()
def animate(
    robot: Robot,
    t: Numbers,
    q: Numbers,
    path: P,
    fps: float = 25,
    size: tuple[int, int] = (480, 480),
    *,
    scene: Scene | None = None,
    poses: Numbers | None = None,
) -> P:
    """Write a GIF of a robot as a stick figure and return its path.

    t (K,): times [s]. q (K, nq): configurations; a picture shows the last one that is not later than it. size: in
    pixels. scene: an od.Scene whose shapes are drawn as lines, those on links and those that move where they are then.
    poses (K, 4, 4 m), or (4, 4 m): matrices in the root frame of scene.moving side by side, at the times t.
    Raises ShapeError naming what does not fit, UnknownName for links that the robot does not have.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    t, q = as_floats("animate: t", t).ravel(), as_floats("animate: q", q)
    if q.shape != (t.size, robot.nq) or t.size < 2 or np.any(np.diff(t) < 0):
        raise ShapeError(
            f"animate: got q of shape {q.shape} for {t.size} times, expected ({t.size}, {robot.nq}) for {robot.name}, "
            "at two times or more that do not fall"
        )
    fps, size = number("animate: fps", fps), as_floats("animate: size", size)
    if not fps > 0 or size.shape != (2,) or not size.min() >= 32:
        raise ShapeError(f"animate: got fps {fps}, size {size}, expected a positive number and two of at least 32")
    f, sticks = stick_figure(robot)
    shown = t[0] + np.arange(int((t[-1] - t[0]) * fps * (1 + 1e-12)) + 1) / fps
    shown = shown if t[-1] - shown[-1] < 1e-9 else np.append(shown, t[-1])
    chosen = np.searchsorted(t, shown + 1e-9, side="right") - 1
    points = np.array(f.map(len(shown))(q[chosen].T)).reshape(3, len(shown), -1)

    low, high = points.min(axis=(1, 2)), points.max(axis=(1, 2))
    around = None
    if scene is not None:
        around, (low, high) = scene_lines("animate", robot, scene, t, q, poses, points.T, chosen)
    elif poses is not None:
        raise ShapeError("animate: got poses, but no scene whose shapes they are of; give scene=")
    dpi = 100
    figure = Figure(figsize=(size[0] / dpi, size[1] / dpi), dpi=dpi)
    FigureCanvasAgg(figure)
    axis = figure.add_subplot(projection="3d")
    cube(axis, low, high)
    shapes = around.draw(axis) if around is not None else []
    line = axis.plot([], [], [], "-o", color=COLORS[0], linewidth=2.5, markersize=4)[0]
    ends = np.array([[*stick, -1] for stick in sticks]).ravel()  # of one line, which NaN cuts into sticks
    points = np.concatenate([points, np.full((3, len(shown), 1), np.nan)], axis=2)
    title, name = axis.set_title(""), mathtext(robot.name, 40)

    def show(k: int) -> None:
        if around is not None:
            around.show(shapes, k)
        line.set_data_3d(*points[:, k, ends])
        title.set_text(f"{name}, t = {shown[k]:.2f} s")

    write_gif(figure, [*shapes, line, title], show, len(shown), path, int(1000 / fps))
    return path


def cube(axis: Any, low: Array, high: Array) -> None:
    """Show as much along all axes as a box from low to high (3,) needs, in metres."""
    center, reach = (low + high) / 2, max(0.55 * (high - low).max(), 1e-3)
    for limits, x in zip((axis.set_xlim, axis.set_ylim, axis.set_zlim), center, strict=True):
        limits(x - reach, x + reach)
    axis.set_box_aspect((1, 1, 1))
    for label, set_label in zip("xyz", (axis.set_xlabel, axis.set_ylabel, axis.set_zlabel), strict=True):
        set_label(f"{label} [m]")


def stick_figure(robot: Robot, of: Collection[int] | None = None) -> tuple[ca.Function, list[list[int]]]:
    """(casadi.Function q -> points (3, k) in the root frame, sticks): pairs of points joined by a line.

    Points are the root, the origin of each moving body, frames without mass that are fixed to bodies, such as tools,
    and at tips the farthest frame, and the end that `inertial_end` tells where the centre of mass is farther out than
    all frames. of: numbers of the bodies whose sticks are listed, from their origins on; None: of all, and the root's.
    """
    model = canonical(robot, regroup=False)
    q = ca.SX.sym("q", robot.nq)
    poses = body_poses(model, q)
    points, sticks = [ca.DM.zeros(3)], []

    def add(frame: Frame, parent: int, owner: int) -> int:
        i, seen = frame_in_body(model, frame)
        points.append(se3.compose(poses[i], seen)[1])
        if of is None or owner in of:
            sticks.append([parent, len(points) - 1])
        return len(points) - 1

    place, carries = {0: 0}, {b.parent for b in robot.bodies}
    for frame in _tools(robot, 0):
        add(frame, 0, 0)
    for b in robot.bodies:  # parents before children
        place[b.index] = add(robot.frames[b.name], place[b.parent], b.parent)
        for frame in _tools(robot, b.index) if b.index in carries else _ends(robot, b):
            add(frame, place[b.index], b.index)
    return ca.Function("stick_figure", [q], [ca.densify(ca.horzcat(*points))], ["q"], ["points"]), sticks


def _tools(robot: Robot, body: int) -> list[Frame]:
    """Frames without mass that are fixed to a body, away from its origin."""
    links = robot.description[0]
    massless = (f for f in robot.frames.values() if f.body == body and not getattr(links.get(f.name), "mass", 0))
    return [f for f in massless if np.any(f.translation)]


def _ends(robot: Robot, body: Body) -> list[Frame]:
    """What is drawn of a body at a tip; the farthest frame is last."""
    farthest = max((f for f in robot.frames.values() if f.body == body.index), key=lambda f: _far(f.translation))
    out = [f for f in _tools(robot, body.index) if f is not farthest]
    if _far(body.inertia.com) > _far(farthest.translation):
        out.insert(0, Frame(body.name, body.index, np.eye(3), inertial_end(body.inertia)))
    return [*out, farthest] if np.any(farthest.translation) else out


def inertial_end(inertia: Inertia) -> Array:
    """(3,) [m] where a body ends, seen from its origin, as far as its inertia tells: the end of a slender uniform rod
    through origin and centre of mass; of a point mass the point. At most twice as far as the centre of mass."""
    com, tensor = inertia.com, inertia.tensor_com
    far = _far(com)
    if far == 0:
        return com
    across = (np.trace(tensor) - com @ tensor @ com / far**2) / 2  # mean about two axes normal to the way to it
    half = np.sqrt(max(3 * across / inertia.mass, 0.0))  # m (2 half)^2 / 12
    return com * (1 + min(half / far, 1.0))


def _far(x: Array) -> float:
    return float(np.linalg.norm(x))
