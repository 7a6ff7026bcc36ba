"""Figure of a Solution: states, controls and named limits against their bounds, and the error of every interval."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from ..drawing import color, styled
from ..errors import ShapeError
from ..files import save_figure
from ..text import mathtext, told_apart
from ..types import Array, Axes, Figure, StrPath
from .resampling import SolutionSamples, limits_of, phases_at

POINTS = 3000  # of the motion, about; an interval has 2 at least, 16 at most
LINES = 7  # in a panel: so many can be told apart
ALIKE = 5.0  # scalars whose sizes differ by this factor at most may share a panel, where there are many of them
SEVERAL = 6  # panels that stand one below the other; more get two columns
MOST_PANELS = 60
STYLES = ("-", "--", "-.", ":")


@dataclass
class _Panel:
    """Lines [(label, values (M,))] with their bounds [(lower, upper)], or None where they differ from time to time."""

    title: str
    lines: list[tuple[str, Array]] = field(default_factory=list)
    bounds: list[tuple[Any, Any]] = field(default_factory=list)

    @property
    def size(self) -> float:
        """The largest value, without sign."""
        return max((float(np.nanmax(np.abs(y), initial=0.0)) for _, y in self.lines), default=0.0)


def plot(solution: Any, path: StrPath | None = None) -> Figure:
    """matplotlib Figure of a Solution; see Solution.plot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    count = min(max(POINTS // len(solution.t), 2), 16)
    samples = SolutionSamples.of_intervals(solution, np.linspace(0.0, 1.0, count))
    panels = _panels(solution, samples)
    wide = 1 if len(panels) <= SEVERAL else 2
    rows = -(-(len(panels) + 1) // wide)
    with styled():
        figure = Figure(figsize=(9.0 * (1 + 0.75 * (wide - 1)), 0.8 + 1.9 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, wide, sharex=True, squeeze=False).T.ravel()
        for axis, panel in zip(axes, panels, strict=False):
            _draw(axis, solution, samples.t, panel)
        _draw_errors(axes[len(panels)], solution)
        for axis in axes[len(panels) + 1 :]:
            axis.remove()
        for number, axis in enumerate(axes[: len(panels) + 1]):
            _draw_mesh(axis, solution, number % rows == 0)
            if number % rows == rows - 1 or number == len(panels):
                axis.set_xlabel("time [s]")
                axis.tick_params(labelbottom=True)
        figure.suptitle(mathtext(_title(solution)), fontsize="medium")
        if path is not None:
            save_figure(figure, path, 120)
    return figure


def _title(solution):
    N, T = len(solution.t) - 1, solution.duration
    return f"{solution.status}: objective {solution.objective:.8g}, {T:.4g} s, {N} intervals"


# -- what is drawn ------------------------------------------------------------------------------------------------


def _panels(solution, samples):
    """[_Panel] of states, controls, what else has a name, and named limits."""
    made, known = solution.transcribed, set()
    out = []
    for what, variables in (("state", made.states), ("control", made.controls)):
        own = []
        for v in variables:
            known.add(v.name)
            own += _split(what, v.name, samples[v.name], v.lower, v.upper)
        out += _joined(what, own) if len(own) > SEVERAL else own
    for name in (x for x in samples.names if x not in known):
        values = samples[name]
        free = np.full(values.shape[1], np.inf)
        lower, upper = solution.limit_bounds.get(name, (-free, free))
        out += _split("", name, values, lower, upper)
    for name in limits_of(solution):
        out += _split("limit", name, samples.limit(name), *_limit_bounds(solution, name, samples))
    if len(out) > MOST_PANELS:
        most = f"a figure holds {MOST_PANELS}; draw those that matter from resample(...)"
        raise ShapeError(f"plot: the solution has {len(out)} panels of lines, {most}")
    return out


def _limit_bounds(solution, name, samples):
    """(lower, upper) of the rows of a limit, (M, n): phases may have their own."""
    expressions = limits_of(solution)[name]
    size = next(iter(expressions.values())).numel()
    out = np.full((2, len(samples.t), size), np.nan)
    for number, here in phases_at(solution, samples.intervals):
        phase = solution.description.phases[number]
        for row in (*phase.rows, *(w.constraint for w in phase.within if w.fixed is None)):
            if row.name == name and row.lower.size == size:
                out[:, here] = np.array(row.bounds_of(solution.limit_bounds))[:, None, :]
    return out


def _split(what, name, values, lower, upper):
    """Panels of some lines each."""
    n, out = values.shape[1], []
    lower, upper = (np.broadcast_to(b, values.shape) for b in (lower, upper))
    for first in range(0, n, LINES):
        columns = range(first, min(first + LINES, n))
        part = f"[{first}:{columns[-1] + 1}]" if n > LINES else ""
        lines = [(f"{name}[{i}]" if n > 1 else name, values[:, i]) for i in columns]
        bounds = [(lower[:, i], upper[:, i]) for i in columns]
        out.append(_Panel(f"{what} {name}{part}".strip(), lines, bounds))
    return out


def _joined(what, panels):
    """Panels of which scalars of like size share one."""
    out: list[_Panel] = []
    for scalar, some in groupby(panels, lambda panel: len(panel.lines) == 1):
        for panel in some:
            last = out[-1] if out else None
            sizes = sorted([max(panel.size, 1e-12), max(last.size, 1e-12)]) if last else [0, 1]
            fits = last and scalar and last.title.endswith(":") and len(last.lines) < LINES - 3
            if fits and sizes[1] <= ALIKE * sizes[0]:
                last.lines, last.bounds = last.lines + panel.lines, last.bounds + panel.bounds
            else:
                out.append(_Panel(f"{what}s:", panel.lines, panel.bounds) if scalar else panel)
    for panel in out:
        if panel.title.endswith(":"):
            names = [name for name, _ in panel.lines]
            panel.title = f"{what if len(names) == 1 else what + 's'} {', '.join(names)}"
    return out


# -- how ----------------------------------------------------------------------------------------------------------


def _draw(axis: Axes, solution, t, panel):
    axis.set_title(mathtext(panel.title), fontsize="small", loc="left")
    names = [mathtext(name, None) for name in told_apart([name for name, _ in panel.lines], 24)]
    for i, ((_, y), name) in enumerate(zip(panel.lines, names, strict=True)):
        axis.plot(t, y, STYLES[i % len(STYLES)], color=color(i), linewidth=1.3, label=name)
    values = np.concatenate([y[np.isfinite(y)] for _, y in panel.lines])
    low, high = (values.min(), values.max()) if values.size else (0.0, 1.0)
    room = 0.08 * max(high - low, 1e-3 * max(abs(low), abs(high)), 1e-9)
    near = low - 6 * room, high + 6 * room  # bounds that are further away are not drawn
    shared = all(np.array_equal(b, panel.bounds[0], equal_nan=True) for b in panel.bounds)
    for i, (lower, upper) in enumerate(panel.bounds[:1] if shared else panel.bounds):
        for bound in (lower, upper):
            there = np.isfinite(bound) & (bound >= near[0]) & (bound <= near[1])
            if there.any():
                low, high = min(low, bound[there].min()), max(high, bound[there].max())
                hue = "black" if shared else color(i)
                axis.plot(t, np.where(there, bound, np.nan), dashes=(5, 3), color=hue, linewidth=0.8)
    axis.set_ylim(low - room, high + room)
    if shared:
        for bound, edge in zip(panel.bounds[0], (low - room, high + room), strict=True):
            axis.fill_between(t, bound, edge, where=_beyond(bound, edge, low), color="0.88", linewidth=0)
    if len(panel.lines) > 1:
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="x-small", frameon=False)


def _beyond(bound, edge, low):
    """Where a bound is between the lines and the edge of the panel."""
    return np.isfinite(bound) & ((bound >= edge) if edge <= low else (bound <= edge))


def _draw_errors(axis: Axes, solution):
    """Steps of the error of every interval, in powers of ten."""
    axis.set_title("error of the states over an interval, relative to their scales", fontsize="small", loc="left")
    try:
        errors = np.concatenate(solution.error.intervals)
    except (ArithmeticError, RuntimeError, ValueError):
        errors = np.full(len(solution.t) - 1, np.nan)
    seen = np.isfinite(errors) & (errors > 0)
    if seen.any():
        axis.stairs(np.where(seen, np.maximum(errors, 1e-17), np.nan), solution.t, color=color(1), baseline=None)
        decades = np.log10(np.maximum(errors[seen], 1e-17))
        axis.set_yscale("log")
        axis.set_ylim(10.0 ** np.floor(decades.min()), 10.0 ** max(np.ceil(decades.max()), np.floor(decades.min()) + 1))
        axis.grid(axis="y", alpha=0.3)
    else:
        told = "none: stepped exactly" if np.isfinite(errors).all() else "not known"
        axis.text(0.5, 0.5, told, ha="center", va="center", transform=axis.transAxes, fontsize="small")


def _draw_mesh(axis: Axes, solution, top):
    """Nodes as ticks at the foot, and phases, with their numbers in the panels on top."""
    t, ends = solution.t, np.cumsum([0, *(phase.nodes for phase in solution.description.phases)])
    across = axis.get_xaxis_transform()
    axis.plot(t, np.zeros(len(t)), "|", color="0.3", markersize=5, markeredgewidth=0.6, transform=across, clip_on=False)
    axis.set_xlim(t[0], t[-1])
    axis.tick_params(labelsize="x-small")
    if len(ends) == 2:
        return
    for number, (a, b) in enumerate(pairwise(ends)):
        if number % 2:
            axis.axvspan(t[a], t[b], color=color(0), alpha=0.06, linewidth=0)
        if number:
            axis.axvline(t[a], color="0.4", linewidth=0.8)
        if top and t[b] - t[a] > 0.03 * (t[-1] - t[0]):
            middle = (t[a] + t[b]) / 2
            axis.text(middle, 0.97, f"phase {number}", ha="center", va="top", transform=across, fontsize="x-small")
