"""What M, C, g and their time derivatives cost together, against the matrices alone at two instants.

Garofalo et al. 2013 report 0.71 of the time, for their sums over Jacobians on a humanoid with 25 joints, 100 runs
on average. Counted here are CasADi instructions, after common subexpressions are taken out: the same on every machine.
"""

import csv
import io
from pathlib import Path

from .. import robots
from ..function import function
from ..planning.files import write_text
from ..registry import methods
from .manifest import manifest, write_json

SUMS = "jacobian_sum"  # the method of the paper
SEPARATE = ("mass_matrix", "coriolis_matrix", "gravity")
FIELDS = (
    "robot",
    "nv",
    "method",
    "M C g",
    "M C g dM dC dg",
    "share",
    "share of the sums",
    "share of separate Functions",
)


def run(out, quick=False, progress=None):
    """Measure and write matrices.csv and manifest.json to the folder `out`; returns the table as a text.

    share: cost of one Function with M, C, g, dM, dC, dg over that of two evaluations of M, C, g by the same method;
    share of the sums: over two evaluations of M, C, g by the sums over Jacobians of the paper; share of separate
    Functions: over two evaluations of the default Functions of M, of C and of g, each on its own. quick: the fixed base
    alone.
    """
    rows = []
    for floating in (False,) if quick else (False, True):
        robot = robots.humanoid(floating_base=floating)
        alone = {m: _count(robot, "dynamic_matrices", m, 0) for m in methods("dynamic_matrices")}
        separate = sum(_count(robot, quantity, None, 0) for quantity in SEPARATE)
        for m, before in alone.items():
            both = _count(robot, "dynamic_matrices", m, 1)
            shares = (both / (2 * x) for x in (before, alone[SUMS], separate))
            name = "floating base" if floating else "fixed base"
            rows.append((name, robot.nv, m, before, both, *(f"{x:.2f}" for x in shares)))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([FIELDS, *rows])
    write_text(Path(out) / "matrices.csv", text.getvalue())
    command = ["oc-dyn", "study", "matrices", *(["--quick"] if quick else []), "--out", out]
    facts = [dict(zip(FIELDS, row, strict=True)) for row in rows]
    write_json(Path(out) / "manifest.json", manifest(command, reported_share_of_time=0.71, rows=facts))
    return _table(rows)


def _count(robot, quantity, method, order):
    return function(robot, quantity, order=order, method=method).n_instructions()


def _table(rows):
    cells = [[str(x) for x in row] for row in (FIELDS, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(FIELDS))]
    return "\n".join("  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)).rstrip() for row in cells)
