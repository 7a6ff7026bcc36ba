"""Figures of the study of growth: counts on plain axes with their fits, and on logarithmic ones with all methods."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..drawing import mark, styled
from ..registry import get_method, methods

_SHOWN = {  # on the plain axes: the default method and the strongest AD
    "inverse_dynamics": ("taylor", "ad_taylor"),
    "forward_dynamics": ("taylor", "ad_taylor"),
}


@styled()
def plot_orders(series, path):
    """Instructions over the order."""
    figure, panels = _panels("Instructions of a Function of orders 0 to r, Panda (dashed: automatic differentiation)")
    for (plain, logarithmic), quantity in zip(panels.T, _SHOWN, strict=True):
        for s in (s for s in series if s.quantity == quantity):
            style = _style(s)
            logarithmic.semilogy(s.places, s.instructions, **style)
            if s.method in _SHOWN[quantity]:
                plain.plot(s.places, s.instructions, **style)
            if s.method == "taylor" and s.fits[2]:
                a, b, c = s.fits[2]["coefficients"]
                r = np.linspace(s.places[0], s.places[-1], 100)
                label = f"{a:.0f} {b:+.0f} r {c:+.0f} r$^2$, off by {100 * s.fits[2]['residual']:.2f} %"
                plain.plot(r, a + b * r + c * r**2, "k:", label=label)
        _finish(plain, logarithmic, quantity, "order r")
    figure.savefig(path, dpi=85)


@styled()
def plot_bodies(series, path, long):
    """Instructions over the number of bodies; lines fitted from `long` bodies on."""
    figure, panels = _panels("Instructions over the number of bodies (dashed: automatic differentiation)")
    for (plain, logarithmic), quantity in zip(panels.T, _SHOWN, strict=True):
        for s in (s for s in series if s.quantity == quantity):
            if s.robot == "chain" and s.order == 2:
                logarithmic.loglog(s.places, s.instructions, **_style(s))
            if s.method == "taylor":
                label, color = f"{s.method}, {s.robot}, order {s.order}", f"C{s.order + (s.robot == 'tree')}"
                if s.fits[1]:
                    a, b = s.fits[1]["coefficients"]
                    n = np.array([max(long, s.places[0]), s.places[-1]])
                    plain.plot(n, a + b * n, ":", color="k")
                    label += f": {a:.0f} {b:+.0f} n, off by {100 * s.fits[1]['residual']:.1f} %"
                plain.plot(s.places, s.instructions, "o-", color=color, markersize=4, linewidth=1.2, label=label)
        _finish(plain, logarithmic, quantity, "bodies n")
        logarithmic.set_title("all methods, chain, order 2", fontsize="medium")
    figure.savefig(path, dpi=85)


@styled()
def plot_memory(by_order, by_bodies, path):
    """Memory of building, size as a file and numbers kept, over instructions: default methods and strongest AD."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    figure.suptitle("What Functions take over their instructions: default methods, and AD (hollow)")
    panels = figure.subplots(1, 3)
    shown = [s for s in (*by_order, *by_bodies) if s.weighed]
    for axes, field, unit, title in zip(
        panels,
        ("peaks", "bytes", "work"),
        (1, 1e6, 1),
        ("memory to build [MB]", "size as a file [MB]", "numbers kept by a call"),
        strict=True,
    ):
        for k, (quantity, ad) in enumerate((q, ad) for q in _SHOWN for ad in (False, True)):
            rows = [s for s in shown if s.quantity == quantity and (get_method(quantity, s.method).kind == "ad") == ad]
            points = [(c, y / unit) for s in rows for c, y in zip(s.instructions, getattr(s, field), strict=True) if y]
            if points:
                label = f"{quantity.split('_')[0]} {rows[0].method}"
                face = {"markerfacecolor": "none"} if ad else {}
                axes.loglog(*zip(*points, strict=True), "o", color=f"C{k // 2}", markersize=4, label=label, **face)
        axes.set(xlabel="instructions", title=title)
        axes.grid(alpha=0.3, which="both")
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize="x-small")
    figure.savefig(path, dpi=85)


def _panels(title):
    figure = Figure(figsize=(11, 9), layout="constrained")
    figure.suptitle(title)
    return figure, figure.subplots(2, 2)


def _style(s):
    """The same colour for a method in all panels of a quantity; dashed for AD, thick for the default."""
    names = sorted(methods(s.quantity), key=lambda m: (m != "taylor", m))
    line = "--" if get_method(s.quantity, s.method).kind == "ad" else "-"
    width = 2.2 if s.method == "taylor" else 1.2
    k = names.index(s.method)
    line = {"linestyle": line, "linewidth": width, "color": f"C{k}", "marker": mark(k), "markersize": 3.5}
    return {"label": s.method, **line}


def _finish(plain, logarithmic, quantity, x):
    plain.set_title(quantity.replace("_", " "))
    for axes in (plain, logarithmic):
        axes.set(xlabel=x, ylabel="instructions")
        axes.grid(alpha=0.3, which="both" if axes is logarithmic else "major")
        axes.legend(fontsize="x-small")
        if axes.get_xscale() == "linear":
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain.set_ylim(bottom=0)
