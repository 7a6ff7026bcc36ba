"""Figure of a motion against its limits, drawn without a screen."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..files import replacing
from ..text import mathtext, told_apart
from ..types import Array, Axes, Figure, StrPath
from .drawing import without_tex
from .quantities import BY_NAME, DRAWN
from .report import quantities


@without_tex
def plot(samples: Any, path: StrPath | None = None, normalized: bool = True) -> Figure:
    """matplotlib Figure of Samples; see Samples.plot.

    Joints without a limit are dashed where others have one: normalised, they are divided by their own peak.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    infinite = ()
    if hasattr(samples, "both_sides"):  # a Trajectory: draw the curves, not the chords between its breakpoints
        infinite = samples.impulses()
        samples = samples.both_sides(samples.duration / 600)
    rows = -(-len(DRAWN) // 2)
    figure = Figure(figsize=(10, 8 * rows / 3), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, 2, sharex=True)
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
    columns = min(len(samples.joints), 7)
    figure.legend(
        handles,
        [mathtext(x, None) for x in told_apart(samples.joints, 40)],
        loc="outside lower center",
        ncols=columns,
        fontsize="small",
    )
    if path is not None:
        with replacing(path) as part:
            figure.savefig(part, dpi=300)
    return figure


def _panel(
    axis: Axes, samples: Any, quantity: str, value: Array, low: Array, high: Array, normalized: bool,
) -> list[Any]:  # fmt: skip
    limited: Any = np.isfinite(low).all(axis=0) & np.isfinite(high).all(axis=0)
    scaled = normalized and limited.any()
    middle = np.where(limited, (low + high) / 2, 0.0) if scaled else np.zeros_like(value)
    half = np.where(limited, (high - low) / 2, np.abs(value).max(axis=0)) if scaled else np.ones_like(value)
    half = np.where(half > 0, half, 1.0)
    colors = [f"C{i % 10}" for i in range(len(samples.joints))]
    handles = []
    for i, color in enumerate(colors):
        style = "--" if limited.any() and not limited[i] else "-"
        y = (value[:, i] - middle[:, i]) / half[:, i]
        handles += axis.plot(samples.t, y, style, color=color, linewidth=1.2)
    if scaled:
        axis.axhline(1, color="black", linewidth=0.8)
        axis.axhline(-1, color="black", linewidth=0.8)
        axis.set_ylabel("share of limit")
    else:
        axis.set_ylabel(mathtext(f"[{_unit(samples, quantity)}]"))
        _limit_lines(axis, value, low, high, limited, colors)
    return handles


def _limit_lines(axis: Axes, value: Array, low: Array, high: Array, limited: Any, colors: list[Any]) -> None:
    """Thin lines at the limits that are near what is drawn."""
    reach = 1.5 * np.abs(value).max(initial=0.0)
    for i in np.flatnonzero(limited):
        for bound in (low[0, i], high[0, i]):
            if abs(bound) <= reach:
                axis.axhline(bound, color=colors[i], linewidth=0.8, linestyle=":")


def _unit(samples: Any, quantity: str) -> str:
    return ", ".join(dict.fromkeys(BY_NAME[quantity].unit_of(u) for u in samples.units or ("rad",)))
