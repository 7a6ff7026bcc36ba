"""Six problems with known optima beside YAPSS and dymos: digits of the optimum, and seconds, cold and warm, in one run.

The same statement, guess and grids on all sides: collocation of degree 5, on uniform meshes that are doubled, by each
scheme that a side has; YAPSS and this package with the ipopt of CasADi and exact second derivatives, dymos with SLSQP,
the solver that its wheel has. Cold is the first solve with all that is built for it, warm the least time of those
behind it, from the same guess; imports are counted apart. Each run has a process of its own. Then the cheapest grid of
each side for so many digits; and this package by itself from five intervals on, with tolerance=.
"""

import os
import subprocess
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from ...errors import SolveError
from ...files import write_csv
from ...runs.manifest import manifest, write_json
from ...runs.points import bar
from ...text import in_columns
from .. import apart
from ..memory import fresh
from . import our_programs

GRIDS = {"oc_dyn": (5, 10, 20, 40, 80, 160), "yapss": (5, 10, 20, 40, 80, 160), "dymos": (4, 8)}
SCHEMES = {"oc_dyn": ("gauss", "radau"), "yapss": ("lg", "lgr", "lgl"), "dymos": ("Radau",)}
DEGREE = 5
DIGITS = (1e-4, 1e-6, 1e-8)
WARM = 5
FIELDS = ("problem", "tool", "scheme", "intervals", "known", "computed", "error", "cold", "warm", "status")
TOLD = ("scheme", "intervals", "cold", "warm")
BEST = ("problem", "asked", *(f"{tool} {what}" for tool in GRIDS for what in TOLD), "ratio")
CAPTIONS = {
    "runs.csv": "seconds: cold, the first solve with all that is built; warm, the least of those behind "
    "it. error: relative to the optimum.",
    "digits.csv": "for every problem and error that is asked: the grid of each tool that gets there in the least warm "
    "time. ratio: warm seconds of this package over those of the best peer.",
}


def run(out, quick=False, progress=None):
    """Measure, and write runs.csv, digits.csv and manifest.json to the folder `out`; returns the tables as a text.

    quick: two problems, two grids. Peers that are not installed (extra "bench") are left out, and the text says so.
    """
    tools = [tool for tool in GRIDS if tool == "oc_dyn" or find_spec(tool)]
    numbers = our_programs.NUMBERS[:2] if quick else our_programs.NUMBERS
    grids = {tool: GRIDS[tool][: 2 if quick else None] for tool in tools}
    cases = [(n, tool, scheme, k) for n in numbers for tool in tools for k in grids[tool] for scheme in SCHEMES[tool]]
    cases += [(n, "oc_dyn tolerance", "radau", t) for n in numbers for t in (DIGITS[:1] if quick else DIGITS)]
    rows = []
    with bar(progress, len(cases), "ocp_peers", " runs") as shown:
        for number, tool, scheme, grid in cases:
            shown.set_postfix_str(f"{tool} {number}")
            rows.append(_row(number, tool, scheme, grid))
            shown.update()
    best = [_best(rows, number, asked) for number in numbers for asked in DIGITS]
    write_csv(Path(out) / "runs.csv", [FIELDS, *([row[k] for k in FIELDS] for row in rows)])
    digits = [BEST, *([row.get(k, "") for k in BEST] for row in best)]
    write_csv(Path(out) / "digits.csv", digits)
    command = apart.typed("ocp_peers", out, quick)
    versions = {tool: getattr(import_module(tool), "__version__", "") for tool in tools[1:]}
    imports = {tool: _seconds_to_import(tool) for tool in tools}
    facts = {"peers": versions, "degree": DEGREE, "seconds_to_import": imports, "rows": rows}
    write_json(Path(out) / "manifest.json", manifest(command, **facts))
    missing = [tool for tool in GRIDS if tool not in tools]
    note = f"\nnot installed, see the extra bench: {', '.join(missing)}" if missing else ""
    spent = ", ".join(f"{tool} {seconds} s" for tool, seconds in imports.items())
    return f"{in_columns(digits)}\nto import: {spent}{note}"


def _row(number, tool, scheme, grid):
    known = our_programs.known(number)
    row = dict.fromkeys(FIELDS, "") | {"problem": number, "tool": tool, "scheme": scheme, "intervals": grid}
    row["known"] = f"{known:.12g}"
    try:
        found = fresh(one_run, number=number, tool=tool, scheme=scheme, grid=grid)
    except SolveError as error:
        return row | {"status": str(error).splitlines()[-1][-200:]}
    return row | {
        "intervals": found.get("intervals", grid),
        "computed": f"{found['objective']:.12g}",
        "error": f"{abs(found['objective'] - known) / (abs(known) or 1):.1e}",
        "cold": f"{found['seconds'][0]:.3f}",
        "warm": f"{min(found['seconds'][1:]):.3f}",
        "status": found["status"],
    }


def one_run(number, tool, scheme, grid):
    """{objective, seconds, status} of a tool on a grid; for "oc_dyn tolerance" grid is the tolerance."""
    if tool == "oc_dyn tolerance":
        return our_programs.refined(number, scheme, grid, WARM + 1)
    if tool == "oc_dyn":
        return our_programs.solved(number, scheme, grid, DEGREE, WARM + 1)
    guess, here = our_programs.guess_of(number), os.getcwd()
    solved = import_module(f"{__package__}.{tool}_programs").solved
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)  # dymos writes where it runs
        try:
            return solved(number, scheme, grid, DEGREE, guess, 2 if tool == "dymos" else WARM + 1)
        finally:
            os.chdir(here)


def _seconds_to_import(tool):
    code = f"import time; t = time.perf_counter(); import {tool}; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return round(float(done.stdout.splitlines()[-1]), 2)


def _best(rows, number, asked):
    """For each tool the run with an error of at most `asked` that takes the least time."""
    out = {"problem": number, "asked": asked}
    for tool in GRIDS:
        good = [r for r in rows if (r["problem"], r["tool"]) == (number, tool) and r["error"]]
        good = [r for r in good if float(r["error"]) <= asked]
        if good:
            row = min(good, key=lambda r: float(r["warm"]))
            out |= {f"{tool} {what}": row[what] for what in TOLD}
    peers = [float(out[f"{tool} warm"]) for tool in ("yapss", "dymos") if f"{tool} warm" in out]
    if peers and "oc_dyn warm" in out:
        out["ratio"] = f"{float(out['oc_dyn warm']) / min(peers):.2f}"
    return out
