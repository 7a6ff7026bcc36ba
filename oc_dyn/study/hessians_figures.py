"""The figure of the study of Hessians: seconds of building and solving over the number of solves."""

import numpy as np
from matplotlib.figure import Figure

from ..drawing import styled

COLORS = {"AD": "C0", "analytic": "C1", "Gauss-Newton": "C2", "quasi-Newton": "C3"}


@styled()
def plot(rows, path):
    """A panel a problem, a line for each way that found the optimum; solid: compiled."""
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    figure = Figure(figsize=(2 + 3.1 * len(problems), 4), layout="constrained")
    figure.suptitle("Building and so many solves, over AD of the same number (solid: compiled, dashed: interpreted)")
    solves = np.logspace(0, 4, 60)
    for axes, problem in zip(figure.subplots(1, len(problems), squeeze=False)[0], problems, strict=True):
        right = [r for r in rows if r["problem"] == problem and r.get("same optimum") == "yes"]
        reference = next((r for r in right if (r["hessian"], r["compiled"]) == ("AD", "no")), None)
        for row in right if reference else ():
            ratio = seconds(row, solves) / seconds(reference, solves)
            style, label = ("-", None) if row["compiled"] == "yes" else ("--", row["hessian"])
            axes.loglog(solves, ratio, style, color=COLORS[row["hessian"]], label=label)
        axes.set(title=problem.replace("_", " "), xlabel="solves")
        axes.grid(alpha=0.3, which="both")
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize="x-small")
    figure.savefig(path, dpi=85)


def seconds(row, solves):
    """Of building and so many solves."""
    return row["once [s]"] + (solves - 1) * row["solve [s]"]
