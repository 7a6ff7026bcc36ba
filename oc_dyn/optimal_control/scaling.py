"""How well the unknowns and rows of a Problem are scaled, as a solver sees them: at the guess, or at a solution."""

from dataclasses import dataclass

import numpy as np

from ..text import in_columns
from .program_names import ProgramNames
from .worst_rows import function_of

OFF = 1e3  # times its scale, or a gradient of that size or of one over it, that a hint is given for


@dataclass(frozen=True)
class ScalingRow:
    """Scaling of one state, control, duration, limit, equation or of the cost.

    what: "state", "control", "duration", "length", or of rows as WorstRow.what, or "cost". scale: what the unknown is
    divided by; of rows nan. typical: largest absolute value over all nodes, of rows of limits too; of dynamics nan.
    ratio: typical over scale. gradient: largest entry of the derivatives of its rows, or of the cost by it, by the
    scaled unknowns. hint: what to do, or "".
    """

    what: str
    name: str
    scale: float
    typical: float
    ratio: float
    gradient: float
    hint: str


@dataclass(frozen=True)
class Scaling:
    """Report of the scaling; printing it gives a table and the hints. rows: ScalingRow of everything. at: "the guess"
    or "the solution"."""

    rows: tuple
    at: str

    @property
    def hints(self):
        """Texts of what to do."""
        return tuple(f"{row.what} {row.name}: {row.hint}".replace("cost the cost", "the cost") for row in self.rows
                     if row.hint)  # fmt: skip

    def __str__(self):
        head = ("what", "of", "scale", "typical", "typical/scale", "gradient")
        cells = [(r.what, r.name, *map(_cell, (r.scale, r.typical, r.ratio, r.gradient))) for r in self.rows]
        hints = self.hints or ("nothing is off its scale by more than 1000",)
        return "\n".join([f"scaling at {self.at}", in_columns([head, *cells]), *hints])


def _cell(value):
    return "" if np.isnan(value) else f"{value:.3g}"


def report(made, unknowns, parameters, at):
    """Scaling of a Transcribed at some unknowns. parameters: those of the program."""
    names = ProgramNames(made)
    J = function_of(made, "jacobian")(unknowns, parameters)
    g = function_of(made, "rows")(unknowns, parameters).full().ravel()
    gradient = np.abs(function_of(made, "gradient")(unknowns, parameters).full().ravel())
    size = np.zeros(g.size)
    row, _ = (np.array(k, int) for k in J.sparsity().get_triplet())
    np.maximum.at(size, row, np.abs(np.array(J.nonzeros())))
    rows = [*_of_unknowns(made, names, unknowns, gradient), *_of_rows(names, g, size), _of_cost(made, gradient)]
    return Scaling(tuple(rows), at)


def _of_unknowns(made, names, unknowns, gradient):
    """[ScalingRow] of states, controls and durations."""
    found = {}
    kinds = {v.name: "state" for v in made.states} | {v.name: "control" for v in made.controls}
    given = {v.name for v in (*made.states, *made.controls) if v.scaled}
    for stage in range(len(names.places)):
        for k, label in enumerate(names.unknowns_of(stage)):
            i = names.first[stage] + k
            what = {"duration": "duration", "mesh": "length"}.get(label.what) or kinds.get(_whole(label.name), "state")
            typical, slope, _ = found.get((what, label.name), (0.0, 0.0, 1.0))
            value = abs(unknowns[i] * label.scale + label.offset)
            found[what, label.name] = max(typical, value), max(slope, gradient[i]), label.scale
    out = []
    for (what, name), (typical, slope, scale) in found.items():
        ratio, hint = typical / scale, ""
        if ratio > OFF or 0 < ratio < 1 / OFF:
            now = "given" if _whole(name) in given else "by default"
            hint = f"values of about {typical:.2g} are divided by {scale:.2g} ({now}); give scale={typical:.1g}"
        out.append(ScalingRow(what, name, scale, float(typical), float(ratio), float(slope), hint))
    return out


def _whole(name):
    return name.rpartition("[")[0] or name


def _of_rows(names, g, slopes):
    """[ScalingRow] of rows, those of one name together."""
    found = {}
    for i in range(g.size):
        label, _ = names.row(i)
        typical, largest, _ = found.get((label.what, label.name), (0.0, 0.0, 0))
        found[label.what, label.name] = max(typical, abs(g[i])), max(largest, slopes[i]), label.unit
    out = []
    for (what, name), (typical, slope, unit) in found.items():
        hint = ""
        if slope > OFF or 0 < slope < 1 / OFF:
            hint = f"its derivative by scaled unknowns is {slope:.2g}; "
            hint += "give scale= to the state" if unit is not None else f"divide it and its bounds by about {slope:.1g}"
        size = float(typical) if unit is None else np.nan
        out.append(ScalingRow(what, name, np.nan, size, np.nan, float(slope), hint))
    return out


def _of_cost(made, gradient):
    slope = float(gradient.max(initial=0.0))
    hint = ""
    if slope > OFF or 0 < slope < 1 / OFF:
        hint = f"its derivative by scaled unknowns is {slope:.2g}; divide it by about {slope:.1g}"
    return ScalingRow("cost", "the cost", np.nan, np.nan, np.nan, slope, hint)
