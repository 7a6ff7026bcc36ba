"""Generated C on microcontrollers: size, stack, and the instructions of a step, in single precision, against Python.

Functions, laws and players of the Panda and predictive controllers are compiled for Cortex-M4F and Cortex-M7 by
arm-none-eabi-gcc, and run by qemu-arm; see cortex.py for what is counted and how cycles are estimated. The share is of
a period of 1 ms at 168 MHz on the Cortex-M4F, the longest step counted. Sizes of the Panda's controller in double
precision are measured beside those of an earlier checkout (--against FOLDER), which writes its code in a process of
its own.
"""

import tempfile
from pathlib import Path

import numpy as np

from ..codegen.build import run_compiler
from ..files import write_csv
from ..runs.manifest import git_state, manifest, write_json
from ..runs.points import bar
from ..text import in_columns
from . import apart, cortex, embedded_sizes
from .cortex_cases import cases

CLOCK, PERIOD = 168e6, 1e-3  # [Hz, s]
FIELDS = ("kind", "what", "processor", "text [B]", "data [B]", "bss [B]", "instance [B]", "stack [B]")
FIELDS += ("stack measured [B]", "instructions", "cycles", "of 1 ms at 168 MHz", "error", "statuses")
CAPTIONS = {
    "embedded.csv": "Code in single precision by arm-none-eabi-gcc -O2. text: code and constants without the C "
    "library; stack: of the deepest calls, and as it was measured, the C library included; instructions: most of a "
    "step, those of the C library included; cycles: estimated from above by the manual of the Cortex-M4, without wait "
    "states of the memory; error: from double precision, relative to the largest entry of an output, in all steps.",
    "sizes.csv": embedded_sizes.CAPTION,
}


def run(out, quick=False, progress=None, against=None):
    """Measure, and write embedded.csv, sizes.csv and manifest.json to the folder `out`; returns the tables as a text.

    Without arm-none-eabi-gcc and qemu-arm there is no table of steps, without gcc none of its sizes, and the report
    says so. against: folder of an earlier checkout of the repository, whose sizes stand beside. quick: shorter
    horizons. progress: show a bar on stderr; default on a terminal only. Raises ShapeError for a folder that is no
    checkout.
    """
    folder, earlier = Path(out), apart.checkout(against)
    rows, sizes, notes = _steps(quick, progress), embedded_sizes.rows(earlier, quick, progress), []
    tables = {"embedded.csv": [FIELDS, *rows], "sizes.csv": [embedded_sizes.FIELDS, *sizes]}
    tables = {file: table for file, table in tables.items() if len(table) > 1}
    for file, table in tables.items():
        write_csv(folder / file, table)
    if not rows:
        notes.append(f"steps: nothing is measured: it takes {cortex.GCC} and {cortex.QEMU}")
    if not sizes:
        notes.append(f"sizes: nothing is measured: it takes {embedded_sizes.GCC} or {cortex.GCC}")
    notes += [f"sizes, {', '.join(row[:3])}: {row[-1]}" for row in sizes if row[-1] != "done"]
    programs = [x for x in (embedded_sizes.GCC, cortex.GCC, cortex.QEMU) if cortex.available(x)]
    facts = {"tools": {x: run_compiler([x, "--version"]).splitlines()[0] for x in programs}, "notes": notes}
    facts["against"] = None if earlier is None else git_state(earlier)
    for file, (names, *table) in tables.items():
        facts[Path(file).stem] = [dict(zip(names, row, strict=True)) for row in table]
    write_json(folder / "manifest.json", manifest(apart.typed("embedded", out, quick, against=against), **facts))
    return "\n\n".join([*map(in_columns, tables.values()), *notes])


def _steps(quick, progress):
    """Rows of FIELDS."""
    rows = []
    listed = cases(quick) if cortex.available(cortex.GCC, cortex.QEMU) else []
    with bar(progress, len(listed), "embedded", " cases") as shown:
        for kind, what, make in listed:
            shown.set_postfix_str(what)
            with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as place:
                case = make(Path(place))
                rows += [(kind, what, target, *measured(case, target)) for target in cortex.TARGETS]
            shown.update()
    return rows


def measured(case, target):
    """Cells of a row, from the size on."""
    entry = case.name if case.entry == "evaluate" else f"{case.name}_{case.entry}"
    size = cortex.size_of(case.folder, case.sources, [entry], target)
    how = {"wide": case.wide, "entry": case.entry, "header": case.header}
    steps, instance = cortex.steps_of(case.folder, case.sources, case.name, target, case.given, **how)
    cycles = max(s.cycles for s in steps)
    return (
        size.text,
        size.data,
        size.bss,
        instance,
        size.stack[entry] if not size.recursive + size.unbounded else "unbounded",
        max(s.stack for s in steps),
        max(s.instructions for s in steps),
        cycles,
        f"{cycles / (CLOCK * PERIOD):.2f}" if target == "Cortex-M4F" else "",
        f"{error_of(case, steps):.1e}",
        "as in Python" if tuple(s.status for s in steps) == case.statuses else " ".join(str(s.status) for s in steps),
    )


def error_of(case, steps):
    """Largest difference of an output from double precision, relative to its largest entry in all steps."""
    found = np.array([np.frombuffer(s.out, "<f4")[: case.expected.shape[1]] for s in steps], float)
    worst, first = 0.0, 0
    for end, least in zip(case.ends, case.least, strict=True):
        own, wanted = found[:, first:end], case.expected[:, first:end]
        scale, first = np.abs(wanted).max(initial=least), end
        worst = max(worst, float(np.abs(own - wanted).max(initial=0.0) / (scale or 1.0)))
    return worst
