"""Figure of the reach: times and iterations of every way, and what penalties do that stand in for limits."""

from matplotlib.figure import Figure

from ...drawing import styled

_COLOURS = {"crocoddyl": "C1", "oc_dyn": "C0"}
_MARKS = {(library, success): "full" if success else "none" for library in _COLOURS for success in (True, False)}


@styled()
def plot(rows, path):
    """Bars of the median time to solve, by case; below, what it takes over how far velocities pass their bound."""
    cases = list(dict.fromkeys(row["case"] for row in rows))
    figure = Figure(figsize=(13, 8), layout="constrained")
    axes = figure.subplots(2, len(cases))
    for ax, case in zip(axes[0], cases, strict=True):
        here = [row for row in rows if row["case"] == case]
        bars = ax.barh(
            [row["way"].replace(" gauss-newton penalty", "\npenalty") for row in here],
            [row["milliseconds"] for row in here],
            color=[_COLOURS[row["library"]] for row in here],
        )
        ax.bar_label(
            bars,
            [f"{row['iterations']} ({row['fewest']} to {row['most']})" for row in here],
            fontsize="x-small",
            padding=2,
        )
        title = f"bounds: {case.removeprefix('no bounds') or 'none'}"
        ax.set(title=title, xlabel="ms to solve; iterations", xscale="log")
        ax.set_xlim(1, 12 * max(row["milliseconds"] for row in here) ** 1.1)
        ax.invert_yaxis()
        ax.tick_params(axis="y", labelsize="x-small")
        ax.grid(axis="x", alpha=0.3)
    here = [row for row in rows if row["velocity_excess"] is not None]
    for ax, (field, label) in zip(axes[1], _BELOW, strict=True):
        for (library, success), fill in _MARKS.items():
            points = [
                (row["velocity_excess"], row[field])
                for row in here
                if (row["library"], row["solved"] == row["of"]) == (library, success)
            ]
            if points:
                name = library if success else f"{library}, not every goal"
                ax.plot(*zip(*points, strict=True), "o", color=_COLOURS[library], fillstyle=fill, label=name)
        ax.set(xlabel="velocity beyond its bound [rad/s]", ylabel=label)
        ax.set_xscale("symlog", linthresh=1e-6)
        ax.set_xticks([0, 1e-5, 1e-3, 1e-1])
        ax.grid(alpha=0.3)
        ax.legend(fontsize="small")
    axes[1][0].set_yscale("symlog", linthresh=1e-8)
    axes[1][1].set_yscale("log")
    axes[1][2].set_yscale("log")
    figure.savefig(path, dpi=85)


_BELOW = (
    ("cost_difference", "cost over that of fatrop, exact, less 1 (largest)"),
    ("iterations", "iterations (median)"),
    ("milliseconds", "ms to solve (median)"),
)
