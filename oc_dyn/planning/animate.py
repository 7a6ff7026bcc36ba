"""GIF of a robot's motion as a stick figure."""

import casadi as ca
import numpy as np

from ..errors import ModelError, ShapeError
from ..kinematics.recursive_body import body_poses, frame_in_body
from ..lie import se3
from ..model.canonical import canonical
from .files import replacing


def animate(trajectory, path, fps=25, size=(480, 480)):
    """Write the GIF; see Trajectory.animate."""
    from matplotlib.animation import PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    robot = trajectory.robot
    if robot is None:
        raise ModelError("trajectory", ["animate needs the robot; load the file with robot=..."])
    if not fps > 0 or len(size) != 2 or min(size) < 32:
        raise ShapeError(f"animate: got fps {fps!r}, size {size!r}, expected a positive number and two of at least 32")
    f, sticks = stick_figure(robot)
    samples = trajectory.sample(1.0 / fps)
    points = np.array(f(samples.q.T)).reshape(3, len(samples), -1)

    dpi = 100
    figure = Figure(figsize=(size[0] / dpi, size[1] / dpi), dpi=dpi)
    FigureCanvasAgg(figure)
    axis = figure.add_subplot(projection="3d")
    low, high = points.min(axis=(1, 2)), points.max(axis=(1, 2))
    center, reach = (low + high) / 2, max(0.55 * (high - low).max(), 1e-3)
    for limits, x in zip((axis.set_xlim, axis.set_ylim, axis.set_zlim), center, strict=True):
        limits(x - reach, x + reach)
    axis.set_box_aspect((1, 1, 1))
    for label, set_label in zip("xyz", (axis.set_xlabel, axis.set_ylabel, axis.set_zlabel), strict=True):
        set_label(f"{label} [m]")
    lines = [axis.plot([], [], [], "-o", color="C0", linewidth=2.5, markersize=4)[0] for _ in sticks]
    title = axis.set_title("")
    writer = PillowWriter(fps=fps)
    with replacing(path) as part:
        with writer.saving(figure, str(part), dpi):
            for k, t in enumerate(samples.t):
                for line, ends in zip(lines, sticks, strict=True):
                    line.set_data_3d(*points[:, k, ends])
                title.set_text(f"{robot.name}, t = {t:.2f} s")
                writer.grab_frame()
    return path


def stick_figure(robot):
    """(casadi.Function q -> points (3, k) in the root frame, sticks): pairs of points joined by a line.

    Points are the root, the origin of each moving body, and the farthest frame on each body at a tip.
    """
    model = canonical(robot, regroup=False)
    q = ca.SX.sym("q", robot.nq)
    poses = body_poses(model, q)
    points, sticks = [ca.DM.zeros(3)], []

    def add(frame, parent):
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
