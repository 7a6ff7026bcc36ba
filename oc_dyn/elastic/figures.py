"""Pictures of simulations, drawn without a screen: motions, torques and errors, and an animated stick figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from ..drawing import color, styled
from ..errors import ModelError, ShapeError
from ..files import save_figure
from ..planning.animate import stick_figure
from ..planning.gif import write_gif
from ..text import mathtext, told_apart
from ..types import Array, Axes, Figure, StrPath
from .model import ElasticRobot
from .simulate import Run

P = TypeVar("P", bound=StrPath)


@styled()
def plot_runs(runs: Mapping[str, Run], path: StrPath | None = None, *, title: str | None = None) -> Figure:
    """matplotlib Figure of simulations {name: Run} of one robot, the first in detail.

    Panels: link and motor positions and the deflections, spring and motor torques of the first; the largest tracking
    error of all joints over time of every run. Written to `path` if given.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not runs:
        raise ShapeError("plot_runs: no run to plot")
    name, run = next(iter(runs.items()))
    figure = Figure(figsize=(11, 8), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(3, 2)
    panels = [figure.add_subplot(grid[i]) for i in ((0, 0), (0, 1), (1, 0), (1, 1))]
    _lines(panels[0], run.t, run.q, "-", "joint {}")
    _lines(panels[0], run.t, run.theta, "--")
    panels[0].set(title="links (solid) and motors (dashed)", ylabel="position [rad]")
    _lines(panels[1], run.t, run.deflection, "-")
    panels[1].set(title="deflections of the springs", ylabel="theta - q [rad]")
    _lines(panels[2], run.t, run.tau, "-")
    panels[2].set(title="spring torques", ylabel="torque [Nm]")
    _lines(panels[3], run.t, run.tau_m, "-")
    panels[3].set(title="motor torques", ylabel="torque [Nm]")
    panels[0].legend(fontsize="x-small", ncols=4)
    errors = figure.add_subplot(grid[2, :])
    for label, other in zip(told_apart(runs, 40), runs.values(), strict=True):
        late = other.error[1:] if len(other.t) > 1 else other.error  # at the start it may be exactly zero
        size = np.maximum(np.abs(late).max(axis=1), 1e-17)
        errors.semilogy(other.t[-len(late) :], size, linewidth=1.2, label=mathtext(label, None))
    errors.set(title="largest tracking error of the joints", xlabel="time [s]", ylabel="|q - q_ref| [rad]")
    errors.legend(fontsize="x-small", ncols=4)
    for axis in (*panels, errors):
        axis.grid(alpha=0.3)
        axis.margins(x=0)
    figure.suptitle(mathtext(name if title is None else title))
    if path is not None:
        save_figure(figure, path, 90)
    return figure


def _lines(axis: Axes, t: Array, rows: Array, style: str, label: str | None = None) -> None:
    for i, y in enumerate(rows.T):
        axis.plot(t, y, style, color=color(i), linewidth=1.2, label=label and label.format(i + 1))


@styled()
def animate_run(
    elastic: ElasticRobot, run: Run, path: P, *, fps: float = 15, size: tuple[int, int] = (360, 360),
    slow: float = 1.0, exaggerate: float = 1.0,
) -> P:  # fmt: skip
    """Write a GIF of a Run: the links, dashed where they would be if they followed their motors, q = theta, and the
    wanted path of the tip.

    Robots that move in a coordinate plane are drawn flat. slow: seconds of the animation for one of the motion.
    exaggerate: factor of the deflections as drawn. Needs one motor a joint; returns the path.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if any(len(j.theta) > 1 for j in elastic.joints):
        raise ModelError(elastic.name, ["animate_run draws robots with one motor a joint"])
    f, sticks = stick_figure(elastic.robot)
    times = np.arange(run.t[0], run.t[-1], 1 / (fps * slow))
    frames = np.searchsorted(run.t, times)
    rigid = run.q.copy()
    rigid[:, [j.q for j in elastic.joints]] += exaggerate * run.deflection
    links, motors, wanted = (_points(f, x[frames]) for x in (run.q, rigid, run.q_ref))
    every = np.concatenate([links, motors], axis=1)
    low, high = every.min(axis=(1, 2)), every.max(axis=(1, 2))
    center, reach = (low + high) / 2, max(0.55 * (high - low).max(), 1e-3)
    flat = (high - low).min() < 1e-9
    axes = [k for k in range(3) if not (flat and k == np.argmin(high - low))]

    dpi = 100
    figure = Figure(figsize=(size[0] / dpi, size[1] / dpi), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    axis: Any = figure.add_subplot(**({} if flat else {"projection": "3d"}))
    for k, letter in zip(axes, "xyz", strict=False):
        getattr(axis, f"set_{letter}lim")(center[k] - reach, center[k] + reach)
        getattr(axis, f"set_{letter}label")(f"{'xyz'[k]} [m]", fontsize="small")
    axis.tick_params(labelsize="x-small")
    if flat:
        axis.set_aspect("equal")
    axis.plot(*wanted[axes][:, :, -1], color="0.8", linewidth=0.8)
    styles = ((motors, "--", color(1), 1.2), (links, "-o", color(0), 2.5))
    drawn = [
        (points, stick, axis.plot(*[[]] * len(axes), style, color=hue, linewidth=width, markersize=4)[0])
        for points, style, hue, width in styles
        for stick in sticks
    ]
    text = axis.set_title("links, and motors", fontsize="small")
    factor = "" if exaggerate == 1 else f", deflections x {exaggerate:g}"
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # otherwise the axes would shift from frame to frame

    def show(k: int) -> None:
        for points, stick, line in drawn:
            ends = points[axes][:, k, stick]
            line.set_data(*ends) if flat else line.set_data_3d(*ends)
        text.set_text(f"links, and motors (dashed){factor}, t = {times[k]:.2f} s")

    write_gif(figure, [*(line for *_, line in drawn), text], show, len(times), path, round(1000 / fps))
    return path


def _points(f: ca.Function, q: Array) -> Array:
    """(3, frames, points) of the stick figure."""
    return f.map(len(q))(q.T).full().reshape(3, len(q), -1)
