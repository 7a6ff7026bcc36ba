"""Figures beside the panels over time: the phase plane of each joint, and the way of a frame in space."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..drawing import color, ink, look, styled
from ..errors import ModelError
from ..files import save_figure
from ..function import function
from ..text import mathtext, told_apart
from ..types import Array, Axes, Figure, StrPath
from .quantities import BY_NAME

_POINTS = 600  # along a motion
_MARKS = 5  # instants that are marked along a way


def dense(motion: Any) -> Any:
    """Samples close enough to draw curves by; of samples themselves."""
    return motion.sample(motion.duration / _POINTS) if hasattr(motion, "sample") else motion


def _empty(width: float, height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _ended(figure: Figure, samples: Any, path: StrPath | None, what: str) -> Figure:
    figure.suptitle(mathtext(f"{samples.robot_name or 'motion'}: {what}"))
    if path is not None:
        save_figure(figure, path, 200)
    return figure


def phase_plane(motion: Any, path: StrPath | None = None, dark: bool = False) -> Figure:
    """matplotlib Figure of a motion; see Samples.phase_plane."""
    samples = dense(motion)
    names = told_apart(samples.joints, 30)
    n = len(names)
    columns = min(4, max(1, n))
    rows = -(-n // columns)
    with styled(dark):
        figure = _empty(2.7 * columns + 0.3, 2.4 * rows + 0.5)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        units = samples.units or ("rad",) * n
        for i, axis in enumerate(axes[:n]):
            _phase(axis, samples, i)
            axis.set_title(mathtext(names[i], None), fontsize="medium")
            axis.set_xlabel(mathtext(f"position [{BY_NAME['q'].unit_of(units[i])}]"), fontsize="small")
            axis.set_ylabel(mathtext(f"velocity [{BY_NAME['v'].unit_of(units[i])}]"), fontsize="small")
        for axis in axes[n:]:
            axis.remove()
        return _ended(figure, samples, path, "phase plane, from dot to square")


def _phase(axis: Axes, samples: Any, i: int) -> None:
    """Velocity over position of one joint, and its limits."""
    q, v = samples.q[:, i], samples.v[:, i]
    axis.plot(q, v, linewidth=1.3, color=color(0))
    axis.plot(q[:1], v[:1], "o", q[-1:], v[-1:], "s", color=color(0), markersize=4)
    axis.grid(alpha=0.3)
    if samples.limits is None:
        return
    for quantity, draw in (("q", axis.axvline), ("v", axis.axhline)):
        for bound in (float(x[i]) for x in samples.limits.bounds(quantity)):
            if np.isfinite(bound):
                draw(bound, color=ink(), linewidth=0.8)


def tool_path(motion: Any, path: StrPath | None = None, frame: str | None = None, dark: bool = False) -> Figure:
    """matplotlib Figure of a motion; see Samples.tool_path."""
    if motion.robot is None:
        raise ModelError("trajectory", ["tool_path needs the robot; load the file with robot=..."])
    samples = dense(motion)
    frame = outermost(motion.robot) if frame is None else motion.robot.frame(frame).name
    p, speed = positions(motion.robot, frame, samples)
    marks = np.minimum(np.searchsorted(samples.t, np.linspace(samples.t[0], samples.t[-1], _MARKS)), len(p) - 1)
    with styled(dark):
        figure = _empty(9.0, 7.5)
        axes = figure.subplots(2, 2).ravel()
        for axis, (a, b) in zip(axes, ((0, 1), (0, 2), (1, 2)), strict=False):
            axis.plot(p[:, a], p[:, b], linewidth=1.4, color=color(0))
            axis.plot(p[marks, a], p[marks, b], ".", color=color(1))
            axis.plot(p[:1, a], p[:1, b], "o", p[-1:, a], p[-1:, b], "s", color=color(0), markersize=5)
            axis.set_xlabel(f"{'xyz'[a]} [m]")
            axis.set_ylabel(f"{'xyz'[b]} [m]")
            axis.set_aspect("equal", adjustable="datalim")
            axis.grid(alpha=0.3)
        axes[3].plot(samples.t, speed, linewidth=1.4, **look(0, 1))
        every = (samples.t[-1] - samples.t[0]) / (_MARKS - 1)
        label = f"every {every:.3g} s, in all panels"
        axes[3].plot(samples.t[marks], speed[marks], ".", color=color(1), label=label)
        axes[3].legend(fontsize="small")
        axes[3].set_xlabel("time [s]")
        axes[3].set_ylabel("speed [m/s]")
        axes[3].grid(alpha=0.3)
        return _ended(figure, samples, path, f"way of {frame}, from dot to square")


def positions(robot: Any, frame: str, samples: Any) -> tuple[Array, Array]:
    """((K, 3) positions [m] of a frame in the root frame, (K,) its speeds [m/s])."""
    f = function(robot, "frame_pose", order=1, frame=frame).map(len(samples.t))
    found = f(q=samples.q.T, v=samples.v.T)
    return np.array(found["p"]).T, np.linalg.norm(np.array(found["dp"]), axis=0)


def outermost(robot: Any) -> str:
    """The frame that a motion is told of where none is named: "tool", or the link that is last in the tree."""
    if "tool" in robot.frames:
        return "tool"
    deepest = max(robot.bodies, key=lambda b: (_depth(robot, b.index), -b.index))
    held = [f for f in robot.frames.values() if f.body == deepest.index]
    return str(held[-1].name)


def _depth(robot: Any, index: int) -> int:
    depth = 0
    while index:
        index, depth = robot.bodies[index - 1].parent, depth + 1
    return depth
