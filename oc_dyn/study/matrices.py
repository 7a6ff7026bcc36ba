"""What M, C, g and their time derivatives cost together, against the matrices alone at two instants.

Garofalo et al. 2013 report 0.71 of the time, for their sums over Jacobians on a humanoid with 25 joints, 100 runs
on average. Counted here are CasADi instructions, after common subexpressions are taken out: the same on every machine;
and the time of the compiled code, as ratios of runs that alternate. CasADi leaves zeros out; the same formulas by dense
matrices, as a library of matrices computes them, stand beside them, in operations. The robot is not the paper's: 25
joints as there, lengths, masses and tree are others.
"""

from pathlib import Path

import numpy as np

from .. import robots
from ..files import write_csv
from ..function import function
from ..registry import methods
from ..runs.manifest import manifest, write_json
from ..text import in_columns
from . import apart
from .dense_matrices import WAYS, dense_matrices, operations
from .functions import steadied
from .native import compiled_runs, compiler, in_turns

REPORTED = 0.71
SUMS = "jacobian_sum"  # the method of the paper
LARGEST = 50_000  # instructions: larger Functions, which compilers need minutes for, are counted and not timed
ROUNDS, CALLS = 21, 40
SEPARATE = ("mass_matrix", "coriolis_matrix", "gravity")
FIELDS = (
    "robot",
    "nv",
    "method",
    "counted",
    "M C g",
    "M C g dM dC dg",
    "share",
    "share of the sums",
    "share of separate Functions",
    "time [us]",
    "share of time",
    "share of time of separate Functions",
    "steady",
)

CAPTIONS = {
    "matrices.png": "Cost of M, C, g with their time derivatives as a share of what it is compared with; dotted: as "
    "Garofalo et al. report it.",
    "matrices.csv": "Instructions of M, C, g and of them with their derivatives by method (dense: operations of the "
    "paper's formulas, no zero left out; dM by them, or as C + C^T); shares are those of two evaluations of M, C, g by "
    "the same method, by the sums of the paper, by separate Functions; times of compiled C.",
}


def run(out, quick=False, progress=None):
    """Measure, write matrices.csv, matrices.png and manifest.json to the folder `out`; returns the table as a text.

    share: cost of one Function with M, C, g, dM, dC, dg over that of two evaluations of M, C, g by the same method;
    share of the sums: over two evaluations of M, C, g by the sums over Jacobians of the paper; share of separate
    Functions: over two evaluations of the default Functions of M, of C and of g, each on its own. Shares are of
    instructions, and of the time of compiled code: medians of ratios within a round. Dense products, fixed base: the
    share alone, of operations. quick: the fixed base alone, not compiled.
    """
    from .paper_figures import plot_shares

    rows = []
    for floating in (False,) if quick else (False, True):
        robot = robots.humanoid(floating_base=floating)
        alone = {m: _count(robot, "dynamic_matrices", m, 0) for m in methods("dynamic_matrices")}
        separate = sum(_count(robot, quantity, None, 0) for quantity in SEPARATE)
        small = [m for m in alone if _count(robot, "dynamic_matrices", m, 1) < LARGEST]
        timed = {} if quick or not compiler() else _times(robot, small)
        for m, before in alone.items():
            both = _count(robot, "dynamic_matrices", m, 1)
            shares = (both / (2 * x) for x in (before, alone[SUMS], separate))
            name = "floating base" if floating else "fixed base"
            counts = "instructions", before, both
            rows.append((name, robot.nv, m, *counts, *(f"{x:.2f}" for x in shares), *timed.get(m, [""] * 4)))
        if not floating:
            rows += _dense(name, robot, not quick and compiler())
    write_csv(Path(out) / "matrices.csv", [FIELDS, *rows])
    command = apart.typed("matrices", out, quick)
    facts = [dict(zip(FIELDS, row, strict=True)) for row in rows]
    plot_shares(facts, [name for name in FIELDS if "share" in name], REPORTED, Path(out) / "matrices.png")
    write_json(Path(out) / "manifest.json", manifest(command, reported_share_of_time=REPORTED, rows=facts))
    return in_columns([FIELDS, *rows])


def _count(robot, quantity, method, order):
    return function(robot, quantity, order=order, method=method).n_instructions()


def _times(robot, names):
    """{method: (time of all six [us], share of time, share of time of separate Functions, whether steady)}."""
    pairs = [[_named(robot, "dynamic_matrices", m, order) for order in (0, 1)] for m in names]
    parts = [_named(robot, quantity, None, 0) for quantity in SEPARATE]
    alone = 2 * len(pairs)
    own = [k - k % 2 for k in range(alone)] + [alone] * len(parts)  # what each is compared with
    rows, seconds = _seconds([*(f for pair in pairs for f in pair), *parts], robot, own)
    separate, out = 2 * seconds[:, -len(parts) :].sum(axis=1), {}
    for k, m in enumerate(names):
        before, both = seconds[:, 2 * k], seconds[:, 2 * k + 1]
        shares = (np.median(both / x) for x in (2 * before, separate))
        steady = _all_steady([*rows[2 * k : 2 * k + 2], *rows[-len(parts) :]])
        out[m] = f"{1e6 * np.median(both):.3g}", *(f"{x:.2f}" for x in shares), steady
    return out


def _dense(name, robot, timed):
    """Rows of the paper's formulas by dense products."""
    before, after = dense_matrices(robot, 0, WAYS[0], "before"), []
    for number, way in enumerate(WAYS):
        after.append(dense_matrices(robot, 1, way, f"after_{number}"))
    told = [[""] * 4] * len(WAYS)
    if timed:
        rows, seconds = _seconds([before, *after], robot, [0] * (1 + len(after)))
        told = [
            (f"{1e6 * np.median(x):.3g}", f"{np.median(x / (2 * seconds[:, 0])):.2f}", "", _all_steady([rows[0], row]))
            for x, row in zip(seconds.T[1:], rows[1:], strict=True)
        ]
    counts = [operations(f) for f in (before, *after)]
    return [
        (name, robot.nv, way, "operations", counts[0], x, f"{x / (2 * counts[0]):.2f}", "", "", *of_time)
        for way, x, of_time in zip(WAYS, counts[1:], told, strict=True)
    ]


def _seconds(functions, robot, reference):
    """functions.steadied of compiled C."""
    runs = compiled_runs(functions, _motion(robot))
    return steadied(lambda: in_turns(runs, ROUNDS, CALLS), reference)


def _all_steady(rows):
    return "yes" if all(row["steady"] == "yes" for row in rows) else "no"


def _motion(robot):
    ports = dict(zip(("v", "dv"), np.random.default_rng(0).normal(size=(2, robot.nv)), strict=True))
    return ports | {"q": robot.random_configuration(0)}


def _named(robot, quantity, method, order):
    name = f"{quantity}_{method}_{order}" if method else quantity
    return function(robot, quantity, order=order, method=method, name=name)
