"""Figures of the studies of papers."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator

from ..drawing import mark, styled

DPI = 85


@styled()
def plot_ways(counts, labels, x, path, title):
    """Instructions over the order: rows {"method", "order", "instructions"}; AD dashed."""
    figure = Figure(figsize=(8, 6.5), layout="constrained")
    axes = figure.subplots()
    for number, (m, label) in enumerate(labels.items()):
        rows = [c for c in counts if c["method"] == m]
        line = "--" if m.startswith("ad") else "-"
        xs, ys = [c["order"] for c in rows], [c["instructions"] for c in rows]
        style = {"marker": mark(number), "markersize": 4, "color": f"C{number}"}
        axes.semilogy(xs, ys, line, label=f"{m}: {label}", **style)
    axes.set(xlabel=x, ylabel="instructions", title=title)
    axes.title.set_fontsize("medium")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3, which="both")
    figure.legend(loc="outside lower center", fontsize="x-small", ncols=2)
    figure.savefig(path, dpi=DPI)


@styled()
def plot_torques(t, motion, torques, path):
    """Joint positions, and the torques with their derivatives, over time."""
    figure = Figure(figsize=(9, 11), layout="constrained")
    names = ("q [rad]", "Q [Nm]", "Q' [Nm/s]", "Q'' [Nm/s²]", "Q''' [Nm/s³]")
    for axes, y, name in zip(figure.subplots(5, 1, sharex=True), (motion[0], *torques), names, strict=True):
        for joint, values in enumerate(y, 1):
            axes.plot(t, values, linewidth=1.1, label=f"joint {joint}")
        axes.set_ylabel(name)
        axes.grid(alpha=0.3)
    axes.set_xlabel("t [s]")
    figure.axes[0].legend(fontsize="x-small", ncols=4)
    figure.savefig(path, dpi=DPI)


@styled()
def plot_series(panels, path, title):
    """panels: [(title, x label, y label, scale "plain", "log y" or "log", [(label, xs, ys, style)])]."""
    rows = (len(panels) + 1) // 2
    figure = Figure(figsize=(11, 4.6 * rows), layout="constrained")
    figure.suptitle(title)
    for axes, (name, x, y, scale, lines) in zip(figure.subplots(rows, 2, squeeze=False).ravel(), panels, strict=False):
        for k, (label, xs, ys, style) in enumerate(lines):
            axes.plot(xs, ys, style, marker=mark(k), markersize=3.5, linewidth=1.2, label=label)
        axes.set(title=name, xlabel=x, ylabel=y)
        if scale != "plain":
            axes.set_yscale("log")
        if scale == "log":
            axes.set_xscale("log")
            whole_ticks(axes, [x for _, xs, _, _ in lines for x in xs])
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3, which="both")
        axes.legend(fontsize="x-small", framealpha=0.5)
    for axes in figure.axes[len(panels) :]:
        axes.remove()
    figure.savefig(path, dpi=DPI)


def whole_ticks(axes, places):
    """Ticks of a logarithmic x axis at the places themselves, where they do not crowd, instead of powers of ten."""
    ticks = []
    for x in sorted(set(places)):
        if not ticks or x > 1.25 * ticks[-1]:
            ticks.append(x)
    axes.set_xticks(ticks, [str(x) for x in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


@styled()
def plot_costs(costs, path):
    """Instructions of all ways to the same derivatives: rows {"quantity", "robot", "method", "instructions"}."""
    names = list(dict.fromkeys(row["robot"] for row in costs))
    figure = Figure(figsize=(5.5 * len(names), 8), layout="constrained")
    figure.suptitle("Instructions of derivatives of the dynamics (hatched: automatic differentiation)")
    quantities = list(dict.fromkeys(row["quantity"] for row in costs))
    left = 10 ** np.floor(np.log10(min(row["instructions"] for row in costs)))
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        rows = [row for row in costs if row["robot"] == name][::-1]
        for place, row in enumerate(rows):
            hatch, color = "//" if row["method"].startswith("ad") else None, f"C{quantities.index(row['quantity'])}"
            axes.barh(place, row["instructions"], color=color, hatch=hatch, edgecolor="white")
        told = [f"{row['quantity'].replace('_dynamics', '').replace('_', ' ')}: {row['method']}" for row in rows]
        axes.set_yticks(range(len(rows)), told, fontsize="x-small")
        axes.set(title=name, xlabel="instructions", xscale="log", xlim=(left, None))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3, axis="x", which="both")
    figure.savefig(path, dpi=DPI)


@styled()
def plot_shares(rows, names, reported, path):
    """Shares of rows {"robot", "method", name: share or ""}, beside what a paper reports."""
    names = [name for name in names if any(row[name] for row in rows)]
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(rows)
    for number, row in enumerate(rows):
        shown = [(k, float(row[name])) for k, name in enumerate(names) if row[name]]
        places, values = zip(*shown, strict=True)
        places = np.array(places) + width * (number - (len(rows) - 1) / 2)
        axes.bar(places, values, width, label=f"{row['method']}, {row['robot']}")
    axes.axhline(reported, color="k", linestyle=":", label=f"reported: {reported}")
    axes.set_xticks(range(len(names)), [name.replace(" of ", " of\n", 1) for name in names], fontsize="small")
    axes.set(ylabel="share", title="M, C, g and their time derivatives, over M, C, g at two instants")
    axes.grid(alpha=0.3, axis="y")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=DPI)
