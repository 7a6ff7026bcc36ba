"""The figure of the study of planning: seconds over nodes on logarithmic axes."""

from matplotlib.figure import Figure

from ..drawing import styled
from .paper_figures import whole_ticks

LINES = {"warm": "-", "cold": "--", "compiled": ":"}


@styled()
def plot(rows, path):
    """A panel for each kind of limits, colours for numbers of joints; what an earlier checkout took is pale."""
    kinds = list(dict.fromkeys(row["limits"] for row in rows))
    colors = {joints: f"C{k}" for k, joints in enumerate(dict.fromkeys(row["joints"] for row in rows))}
    figure = Figure(figsize=(4 + 3.5 * len(kinds), 4.8), layout="constrained")
    figure.suptitle("A plan over the number of nodes (solid: again, dashed: the first, dotted: compiled)")
    panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, kind in zip(panels, kinds, strict=True):
        for (side, joints, how), points in series(rows, kind).items():
            style = {"color": colors[joints], "linestyle": LINES[how], "alpha": 0.4 if side == "before" else 1.0}
            label = f"{joints} joints" + (", before" if side == "before" else "") if how == "warm" else None
            axes.loglog(*zip(*points, strict=True), marker="o", markersize=3.5, label=label, **style)
        low, high = axes.get_xlim()
        bottom = axes.get_ylim()[0]
        axes.loglog([low, high], [bottom, bottom * high / low], color="black", linewidth=0.8)
        axes.set(xlabel="nodes", title=f"limits: {kind}")
        whole_ticks(axes, [row["nodes"] for row in rows if row["limits"] == kind])
        axes.grid(alpha=0.3, which="both")
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize="x-small")
    panels[0].set_ylabel("CPU [s]")
    figure.savefig(path, dpi=85)


def series(rows, kind):
    """{(side, joints, how): [(nodes, CPU seconds)]} of what ended."""
    found: dict[tuple, list] = {}
    for row in rows:
        if row["limits"] == kind and row["how"] in LINES and row.get("CPU"):
            found.setdefault((row["side"], row["joints"], row["how"]), []).append((row["nodes"], row["CPU"]))
    return found
