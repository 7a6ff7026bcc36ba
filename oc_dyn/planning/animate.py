"""GIF of a robot's motion as a stick figure."""

from __future__ import annotations

from typing import Any, TypeVar

import casadi as ca
import numpy as np

from ..drawing import COLORS, styled
from ..errors import ShapeError
from ..kinematics.recursive_body import body_poses, frame_in_body
from ..lie import se3
from ..model.canonical import canonical
from ..model.robot import Frame, Robot
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


def stick_figure(robot: Robot) -> tuple[ca.Function, list[list[int]]]:
    """(casadi.Function q -> points (3, k) in the root frame, sticks): pairs of points joined by a line.

    Points are the root, the origin of each moving body, and the farthest frame on each body at a tip.
    """
    model = canonical(robot, regroup=False)
    q = ca.SX.sym("q", robot.nq)
    poses = body_poses(model, q)
    points, sticks = [ca.DM.zeros(3)], []

    def add(frame: Frame, parent: int) -> int:
        i, seen = frame_in_body(model, frame)
        points.append(se3.compose(poses[i], seen)[1])
        sticks.append([parent, len(points) - 1])
        return len(points) - 1

    place, carries = {0: 0}, {b.parent for b in robot.bodies}
    for b in robot.bodies:  # parents before children
        place[b.index] = add(robot.frames[b.name], place[b.parent])
        if b.index not in carries:
            on_body = (f for f in robot.frames.values() if f.body == b.index)
            add(max(on_body, key=lambda f: np.linalg.norm(f.translation)), place[b.index])
    return ca.Function("stick_figure", [q], [ca.densify(ca.horzcat(*points))], ["q"], ["points"]), sticks
