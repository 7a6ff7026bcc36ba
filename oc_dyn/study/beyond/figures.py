"""Figures of these studies, in colours that colour-blind readers tell apart."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ...drawing import COLORS, styled
from ..paper_figures import DPI, whole_ticks

_MAPS = (("cheapest", "ratio", "instructions"), ("fastest", "ratio by time", "time of compiled C"))
MANY = (COLORS[-1], *COLORS[:-1], "#000000", "#882255", "#999933")  # the last ones after Paul Tol
MARKERS = "oosD^vPX*h"  # the first is that of the function, which is not drawn
_MARKS = {"not steady": " ~", "none": " ="}


@styled()
def plot_map(rows, path):
    """Rows of cheapest.csv: panels of order over bodies, coloured by the cheapest method."""
    panels = list(dict.fromkeys((row["quantity"], row["robot"]) for row in rows))
    names = sorted({row[what] for row in rows for what, _, _ in _MAPS if row[what]}, key=lambda m: (m != "taylor", m))
    figure = Figure(figsize=(4.2 * len(panels), 8.6), layout="constrained")
    figure.suptitle("The cheapest method; numbers: the best analytic one over the best AD")
    for axes_row, (what, ratio, told) in zip(figure.subplots(2, len(panels), squeeze=False), _MAPS, strict=True):
        for axes, (quantity, robot) in zip(axes_row, panels, strict=True):
            of = [row for row in rows if (row["quantity"], row["robot"]) == (quantity, robot)]
            sizes = list(dict.fromkeys(row["bodies"] for row in of))
            orders = list(dict.fromkeys(row["order"] for row in of))
            for row in of:
                x, y = sizes.index(row["bodies"]), orders.index(row["order"])
                color = COLORS[names.index(row[what]) % len(COLORS)] if row[what] else "white"
                axes.add_patch(_square(x, y, color))
                mark = _MARKS.get(row["verdict"], "") if what == "fastest" else ""
                number = f"{float(row[ratio]):.2f}" if row[ratio] else ""
                axes.text(x, y, number + mark, ha="center", va="center", fontsize="x-small")
            axes.set(xlim=(-0.5, len(sizes) - 0.5), ylim=(-0.5, len(orders) - 0.5), xlabel="bodies", ylabel="order")
            axes.set_xticks(range(len(sizes)), sizes)
            axes.set_yticks(range(len(orders)), orders)
            axes.set_title(f"{quantity.replace('_', ' ')}, {robot}\nby {told}", fontsize="medium")
    shown = [Patch(facecolor=COLORS[k % len(COLORS)], alpha=0.6, label=m) for k, m in enumerate(names)]
    figure.legend(handles=shown, loc="outside lower center", ncols=6, fontsize="small")
    figure.savefig(path, dpi=DPI)


def _square(x, y, color):
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=color, alpha=0.6, edgecolor="white")


@styled()
def plot_costs_of_building(rows, path):
    """Rows of costs.csv with their "set-up": the time of a call over the time until the first one; hollow: AD."""
    names = list(dict.fromkeys(row["robot"] for row in rows))
    quantities = list(dict.fromkeys((row["quantity"], row["order"]) for row in rows))
    figure = Figure(figsize=(4.6 * len(names), 5.6), layout="constrained")
    figure.suptitle("Time of a call, over what comes before the first (hollow: AD)")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for number, (quantity, order) in enumerate(quantities):
            of = [r for r in rows if (r["robot"], r["quantity"], r["order"]) == (name, quantity, order)]
            points = sorted((r["set-up"], float(r["microseconds"]), r["kind"]) for r in of if r["set-up"] is not None)
            if not points:
                continue
            color = COLORS[number % len(COLORS)]
            axes.loglog(*list(zip(*points, strict=True))[:2], "-", color=color, linewidth=0.7, alpha=0.6)
            for x, y, what in points:
                face = "none" if what == "ad" else color
                axes.loglog(x, y, MARKERS[number + 1], color=color, markerfacecolor=face, markersize=6)
            axes.loglog([], [], MARKERS[number + 1], color=color, label=_told(quantity, order))
        axes.set(title=name, xlabel="building and compiling [s]", ylabel="µs of a call")
        axes.grid(alpha=0.3, which="both")
    figure.axes[0].legend(fontsize="x-small", framealpha=0.5)
    figure.savefig(path, dpi=DPI)


def _told(quantity, order):
    short = quantity.replace("_dynamics", "").replace("_", " ")
    return short if order == "0" else f"{short}, order {order}"


@styled()
def plot_shares(rows, products, value, path, title):
    """Instructions, or times, over those of the function, over the bodies: rows {"quantity", "robot", "bodies",
    "product", "way", value}; full: chains, dashed: trees."""
    quantities, names = (list(dict.fromkeys(row[k] for row in rows)) for k in ("quantity", "way"))
    figure = Figure(figsize=(4.6 * len(products), 4.4 * len(quantities)), layout="constrained")
    figure.suptitle(title)
    panels = figure.subplots(len(quantities), len(products), squeeze=False)
    for axes_row, quantity in zip(panels, quantities, strict=True):
        for axes, product in zip(axes_row, products, strict=True):
            of = [r for r in rows if (r["quantity"], r["product"]) == (quantity, product) and r[value]]
            for way in dict.fromkeys(r["way"] for r in of):
                number = names.index(way)
                for robot, line in (("chain", "-"), ("tree", "--")):
                    points = [(int(r["bodies"]), float(r[value])) for r in of if (r["way"], r["robot"]) == (way, robot)]
                    if points:
                        look = {"color": MANY[number % len(MANY)], "marker": MARKERS[number % len(MARKERS)]}
                        label = way if robot == "chain" else None
                        axes.plot(*zip(*points, strict=True), line, markersize=4, linewidth=1.2, label=label, **look)
            axes.set(title=f"{quantity.replace('_', ' ')}: {product}", xlabel="bodies", ylabel="over the function")
            axes.set(xscale="log", yscale="log" if product == products[-1] else "linear")
            if of:
                whole_ticks(axes, [int(r["bodies"]) for r in of])
                axes.legend(fontsize="x-small", framealpha=0.5)
            axes.grid(alpha=0.3, which="both")
    figure.savefig(path, dpi=DPI)


@styled()
def plot_digits(rows, path):
    """Rows of digits.csv: digits of every quantity and method that are lost in single precision, by robot."""
    ways = list(dict.fromkeys((r["quantity"], r["order"], r["method"]) for r in rows))
    names = list(dict.fromkeys(r["robot"] for r in rows))
    figure = Figure(figsize=(9, 0.27 * len(ways) + 1.6), layout="constrained")
    axes = figure.subplots()
    for number, name in enumerate(names):
        look = {"color": COLORS[number], "markersize": 5}
        for field, mark, told in (("lost", "o", name), ("lost by inputs", "|", None)):
            points = [
                (float(r[field]), ways.index((r["quantity"], r["order"], r["method"])) + 0.12 * (number - 1.5))
                for r in rows
                if r["robot"] == name and r[field]
            ]
            if points:
                axes.plot(*zip(*points, strict=True), mark, label=told, **look)
    told = [f"{_told(q, order)}: {m}" for q, order, m in ways]
    axes.set_yticks(np.arange(len(ways)), told, fontsize="x-small")
    axes.invert_yaxis()
    axes.set(xlabel="decimal digits lost, median", title="Single precision (|: what rounding the inputs alone costs)")
    axes.grid(alpha=0.3, axis="x")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=DPI)
