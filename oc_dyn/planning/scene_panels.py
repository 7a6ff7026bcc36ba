"""Two panels of a figure of a motion: the robot among the shapes of a scene, and how far they are apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..drawing import color, ink
from ..scene.numeric import separation
from ..scene.poses import item_poses
from ..scene.shapes import HalfSpace
from ..text import mathtext
from ..types import Array, Axes, Figure
from .animate import cube, stick_figure
from .scene_lines import scene_lines

PANEL_ROWS = 2  # of the figure, that they are high
_INSTANTS = 5  # at which the robot is drawn
_PAIRS = 6  # that are drawn over time
_TIMES = 101  # at most


def scene_panels(figure: Figure, axes: Any, rows: int, samples: Any, scene: Any) -> Any:
    """The first `rows` of axes (rows + PANEL_ROWS, 2): the others make room for the panels.

    Raises ShapeError for what is no scene, and for poses that are not known; UnknownName for links that the robot does
    not have.
    """
    grid = axes[0, 0].get_gridspec()
    for axis in axes[rows:].ravel():
        axis.remove()
    for axis in axes[rows - 1]:
        axis.tick_params(labelbottom=True)
    _robot(figure.add_subplot(grid[rows:, 0], projection="3d"), samples, scene)
    _distances(figure.add_subplot(grid[rows:, 1], sharex=axes[0, 0]), samples, scene)
    return axes[:rows]


def _robot(axis: Any, samples: Any, scene: Any) -> None:
    """Sticks and shapes at some times, later ones darker; shapes that move at the last."""
    at = np.searchsorted(samples.t, np.linspace(samples.t[0], samples.t[-1], _INSTANTS))
    at = np.minimum(at, len(samples.t) - 1)
    f, sticks = stick_figure(samples.robot)
    points = np.array([np.array(f(q)).T for q in samples.q[at]])
    around, (low, high) = scene_lines("plot", samples.robot, scene, samples.t, samples.q, None, points, at)
    cube(axis, low, high)
    around.draw(axis, len(at) - 1)
    for k, p in enumerate(points):
        strength = 0.25 + 0.75 * k / max(len(at) - 1, 1)
        lines = np.concatenate([[*p[stick], [np.nan] * 3] for stick in sticks])
        axis.plot(*lines.T, "-o", color=color(0), linewidth=1.8, markersize=2.5, alpha=strength)
    axis.set_title(f"from {samples.t[0]:.4g} to {samples.t[-1]:.4g} s, later darker", fontsize="medium")


def _distances(axis: Axes, samples: Any, scene: Any) -> None:
    """What pairs keep beyond their margins, those that come nearest."""
    axis.set_title("distances of the nearest pairs, less their margins", fontsize="medium")
    axis.set_xlabel("time [s]")
    axis.grid(alpha=0.3)
    if not scene.pairs:
        axis.text(0.5, 0.5, "no pairs", ha="center", va="center", transform=axis.transAxes)
        return
    at = np.unique(np.linspace(0, len(samples.t) - 1, _TIMES).astype(int))
    C = item_poses("plot", samples.robot, scene, scene.items, samples.t[at], samples.q[at], None)
    for i, (name, kept) in enumerate(_nearest(scene, C, _PAIRS)):
        axis.plot(samples.t[at], kept, color=color(i), linewidth=1.2, label=mathtext(name, 50))
    axis.axhline(0, color=ink(), linewidth=0.8)
    axis.set_ylabel("[m]")
    axis.legend(fontsize="x-small")


def _nearest(scene: Any, C: dict[str, Array], count: int) -> list[tuple[str, Array]]:
    """(name, (K,) distances less margins) of so many pairs, the nearest first. Balls about the shapes tell of most that
    they stay farther apart."""
    pairs = [(scene[a], scene[b], margin) for (a, b), margin in zip(scene.pairs, scene.margins, strict=True)]
    apart = [np.linalg.norm(C[b.name][:, :3, 3] - C[a.name][:, :3, 3], axis=1).min() for a, b, _ in pairs]
    sizes = [a.shape.radius_about_origin + b.shape.radius_about_origin + margin for a, b, margin in pairs]
    bounds = np.array(apart) - sizes
    found: list[tuple[str, Array]] = []
    for k in np.argsort(bounds, kind="stable"):
        if len(found) == count and bounds[k] >= found[-1][1].min():
            break
        a, b, margin = pairs[k]
        if isinstance(a.shape, HalfSpace) and isinstance(b.shape, HalfSpace):
            continue
        d = separation(a.shape, C[a.name], b.shape, C[b.name])[0]
        found.append((f"{a.name} - {b.name}", np.asarray(d) - margin))
        found = sorted(found, key=lambda x: float(x[1].min()))[:count]
    return found
