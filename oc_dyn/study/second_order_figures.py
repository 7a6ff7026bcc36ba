"""Figure of the study of second partials: errors of all methods over the number of bodies."""

from matplotlib.figure import Figure

from ..drawing import mark, styled
from ..registry import methods
from .paper_figures import whole_ticks

_TITLES = {
    "max_abs": "largest error",
    "rms_abs": "root mean square error",
    "max_rel": "largest relative error",
    "rms_rel": "root mean square relative error",
}


@styled()
def plot_accuracy(errors, path):
    """The four error metrics; chains with full lines, trees with dashed ones."""
    figure = Figure(figsize=(11, 8), layout="constrained")
    figure.suptitle("Second partials of inverse dynamics against the bicomplex step (dashed: binary trees)")
    for axes, metric in zip(figure.subplots(2, 2).ravel(), _TITLES, strict=True):
        for number, m in enumerate(methods("inverse_dynamics_second_partials")):
            for robot, line in (("chain", "-"), ("tree", "--")):
                rows = [row for row in errors if row["method"] == m and row["robot"] == robot]
                x, y = [row["bodies"] for row in rows], [max(row[metric], 1e-18) for row in rows]
                label = m if robot == "chain" else None
                style = {"marker": mark(number), "markersize": 3, "linewidth": 1.2, "color": f"C{number}"}
                axes.loglog(x, y, line, label=label, **style)
        axes.set(title=_TITLES[metric], xlabel="bodies")
        whole_ticks(axes, [row["bodies"] for row in errors])
        axes.grid(alpha=0.3)
    figure.axes[0].legend(fontsize="x-small")
    figure.savefig(path, dpi=85)
