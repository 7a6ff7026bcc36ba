"""Figure of the study of peers: instructions and times as shares of the best peer's."""

import numpy as np
from matplotlib.figure import Figure

from ...drawing import styled

_SHORT = {
    "inverse_dynamics": "inverse\ndynamics",
    "forward_dynamics": "forward\ndynamics",
    "mass_matrix": "mass\nmatrix",
    "bias": "bias\nforce",
    "inverse_dynamics_partials": "partials\ninverse",
    "forward_dynamics_partials": "partials\nforward",
    "inverse_dynamics_second_partials": "second\npartials",
    "inverse_dynamics_lagrangian_hessian": "Lagrangian\nHessian",
}


@styled()
def plot(counts, ratios, beside, path):
    """Our instructions over those of the best peer; our time over that of Pinocchio's routines, and of MuJoCo's."""
    rows = 1 + bool(ratios) + bool(beside)
    figure = Figure(figsize=(11, 1 + 3.6 * rows), layout="constrained")
    axes = list(figure.subplots(rows, 1, squeeze=False)[:, 0])
    shares, goals = {}, {}
    for row in counts:
        others = [row[name.removesuffix("_source")] for name in row if name.endswith("_source")]
        if any(others):
            key = row["robot"], _SHORT[row["quantity"]] + (f"\n0..{row['order']}" if row["order"] else "")
            best = min(x for x in others if x)
            shares[key], goals[key] = row["instructions"] / best, row["target"] / best
    _bars(axes.pop(0), shares, goals, "instructions over those of the best peer")
    if ratios:
        defaults = [row for row in ratios if row["method"] == "default"]
        times = {(row["robot"], _SHORT[row["quantity"]]): row["ratio"] for row in defaults}
        goals = {(row["robot"], _SHORT[row["quantity"]]): row["target"] for row in defaults if row["target"]}
        _bars(axes.pop(0), times, goals, "time of generated C over Pinocchio's routine")
    if beside:
        times = {(row["robot"], _SHORT[row["quantity"]] + f"\n{row['routine']}"): row["ratio"] for row in beside}
        _bars(axes.pop(0), times, {}, "time of generated C over MuJoCo's (steps: nothing but what the result needs)")
    figure.savefig(path, dpi=85)


def _bars(axes, values, goals, title):
    groups, robots = (list(dict.fromkeys(key[k] for key in values)) for k in (1, 0))
    width = 0.8 / max(1, len(robots))
    for number, name in enumerate(robots):
        shown = [(k, group) for k, group in enumerate(groups) if (name, group) in values]
        x = np.array([k for k, _ in shown]) + width * (number - (len(robots) - 1) / 2)
        axes.bar(x, [values[name, group] for _, group in shown], width, label=name, color=f"C{number}")
        named = [(place, (name, group)) for place, (_, group) in zip(x, shown, strict=True)]
        marked = [(place, goals[key]) for place, key in named if key in goals]
        if marked:
            label = "target" if number == len(robots) - 1 else None
            axes.plot(*zip(*marked, strict=True), "k_", markersize=40 * width, label=label)
    axes.axhline(1, color="k", linewidth=0.8)
    axes.set(title=title, ylim=(0, 1.05 * max([1, *values.values(), *goals.values()])))
    axes.set_xticks(range(len(groups)), groups, fontsize="small")
    axes.grid(axis="y", alpha=0.3)
    if values:
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
