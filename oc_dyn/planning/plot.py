"""Figure of a motion against its limits, drawn without a screen."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..drawing import COLORS, ink, look, styled
from ..errors import ModelError
from ..files import save_figure
from ..text import mathtext, told_apart
from ..types import Array, Axes, Figure, StrPath
from .quantities import BY_NAME, DRAWN
from .report import quantities
from .scene_panels import PANEL_ROWS, scene_panels


def plot(
    samples: Any, path: StrPath | None = None, normalized: bool = True, scene: Any = None, dark: bool = False,
) -> Figure:  # fmt: skip
    """matplotlib Figure of Samples; see Samples.plot.

    Joints without a limit are dashed where others have one: normalised, they are divided by their own peak. A rate or
    torque with unequal limits is divided by that of its side, so that both are at 1 and -1. From eight joints on line
    styles tell apart what has one colour, and joints without a limit are pale.
    """
    with styled(dark):
        return _drawn(samples, path, normalized, scene)


def _drawn(samples: Any, path: StrPath | None, normalized: bool, scene: Any) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if scene is not None and samples.robot is None:
        raise ModelError("trajectory", ["plot needs the robot to draw a scene; load the file with robot=..."])
    infinite = ()
    if hasattr(samples, "both_sides"):  # a Trajectory: draw the curves, not the chords between its breakpoints
        infinite = samples.impulses()
        samples = samples.both_sides(samples.duration / 600)
    rows = -(-len(DRAWN) // 2)
    names = [mathtext(x, None) for x in told_apart(samples.joints, 40)]
    where: Any
    below = 0 if scene is None else PANEL_ROWS
    where, columns, more = _legend(names, 8 * (rows + below) / 3)
    figure = Figure(figsize=(10 + more, 8 * (rows + below) / 3), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows + below, 2, sharex=True)
    if scene is not None:
        axes = scene_panels(figure, axes, rows, samples, scene)
    shown: dict[str, Any] = {quantity: table for quantity, *table, _ in quantities(samples, samples.limits)}
    handles = []
    for axis, quantity in zip(axes.ravel(), DRAWN, strict=False):
        note = ", infinite at jumps" if quantity in infinite else ""
        axis.set_title(f"{BY_NAME[quantity].title} {quantity}{note}", fontsize="medium")
        axis.grid(alpha=0.3)
        if quantity not in shown:
            axis.text(0.5, 0.5, "needs the robot", ha="center", va="center", transform=axis.transAxes)
            continue
        value, low, high = shown[quantity]
        handles = _panel(axis, samples, quantity, value, low, high, normalized)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    for axis in axes.ravel()[len(DRAWN) :]:
        axis.remove()
    title = f"{samples.robot_name or 'motion'}: {samples.t[-1] - samples.t[0]:.4g} s"
    figure.suptitle(mathtext(title))
    length = 2.0 if len(names) <= len(COLORS) else 3.2  # of a line, longer where its style tells
    figure.legend(handles, names, loc=where, ncols=columns, fontsize="small", handlelength=length)
    if path is not None:
        save_figure(figure, path, 300)
    return figure


def _legend(names: list[str], height: float) -> tuple[str, int, float]:
    """(where the legend is, its columns, how much wider [inch] the figure gets): below where three rows are enough."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(size="small")
    widest = max((TextPath((0, 0), x, prop=font).get_extents().width / 72 for x in names), default=0.0)  # [inch]
    one = widest + (0.6 if len(names) <= len(COLORS) else 0.75)  # a name, its line and the space between
    columns = max(1, min(len(names), int(9.8 / one)))
    if -(-len(names) // columns) <= 3:
        return "outside lower center", columns, 0.0
    columns = -(-len(names) // int((height - 0.6) / 0.19))
    return "outside right upper", columns, columns * one


def _panel(
    axis: Axes, samples: Any, quantity: str, value: Array, low: Array, high: Array, normalized: bool,
) -> list[Any]:  # fmt: skip
    limited: Any = _limited(quantity, low, high)
    scaled, n = normalized and limited.any(), len(samples.joints)
    looks = [look(i, n, bool(limited[i] or not limited.any())) for i in range(n)]
    drawn = _scaled(quantity, value, low, high, limited) if scaled else value
    handles = []
    for y, line in zip(drawn.T, looks, strict=True):
        handles += axis.plot(samples.t, y, linewidth=1.2, **line)
    if scaled:
        axis.axhline(1, color=ink(), linewidth=0.8)
        axis.axhline(-1, color=ink(), linewidth=0.8)
        axis.set_ylabel("share of limit")
    else:
        axis.set_ylabel(mathtext(f"[{_unit(samples, quantity)}]"))
        _limit_lines(axis, value, low, high, limited, [line["color"] for line in looks])
    return handles


def _limited(quantity: str, low: Array, high: Array) -> Any:
    """(n,) joints with limits: of positions on both sides, of others on one at least."""
    ends = np.isfinite(low).all(axis=0), np.isfinite(high).all(axis=0)
    return ends[0] & ends[1] if quantity == "q" else ends[0] | ends[1]


def _scaled(quantity: str, value: Array, low: Array, high: Array, limited: Any) -> Array:
    """Values by their limits, which are at 1 and -1; of joints without one by their own peak."""
    peak = np.abs(value).max(axis=0)
    if quantity == "q":
        with np.errstate(invalid="ignore"):
            middle, half = np.where(limited, (low + high) / 2, 0.0), np.where(limited, (high - low) / 2, peak)
        return (value - middle) / np.where(half > 0, half, 1.0)
    near = np.where(value >= 0, high, -low)
    sizes = np.abs(np.array([low, high]))
    larger = np.where(np.isfinite(sizes), sizes, 0.0).max(axis=0)
    unit = np.where(np.isfinite(near) & limited, np.maximum(near, 0.1 * larger), np.where(limited, larger, peak))
    return value / np.where(unit > 0, unit, 1.0)


def _limit_lines(axis: Axes, value: Array, low: Array, high: Array, limited: Any, colors: list[Any]) -> None:
    """Thin lines at the limits that are near what is drawn."""
    reach = 1.5 * np.abs(value).max(initial=0.0)
    for i in np.flatnonzero(limited):
        for bound in (low[0, i], high[0, i]):
            if abs(bound) <= reach:
                axis.axhline(bound, color=colors[i], linewidth=0.8, linestyle=":")


def _unit(samples: Any, quantity: str) -> str:
    return ", ".join(dict.fromkeys(BY_NAME[quantity].unit_of(u) for u in samples.units or ("rad",)))
