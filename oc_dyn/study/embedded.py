"""Generated C on microcontrollers: size, stack, and the instructions of a step, in single precision, against Python.

Functions, laws and players of the Panda and predictive controllers are compiled for Cortex-M4F and Cortex-M7 by
arm-none-eabi-gcc, and run by qemu-arm; see cortex.py for what is counted and how cycles are estimated. The share is of
a period of 1 ms at 168 MHz on the Cortex-M4F, the longest step counted.
"""

import tempfile
from pathlib import Path

import numpy as np

from ..codegen.build import run_compiler
from ..files import write_csv
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from ..text import in_columns
from . import cortex
from .cortex_cases import cases

CLOCK, PERIOD = 168e6, 1e-3  # [Hz, s]
FIELDS = ("kind", "what", "processor", "text [B]", "data [B]", "bss [B]", "instance [B]", "stack [B]")
FIELDS += ("stack measured [B]", "instructions", "cycles", "of 1 ms at 168 MHz", "error", "statuses")
CAPTIONS = {
    "embedded.csv": "Code in single precision by arm-none-eabi-gcc -O2. text: code and constants without the C "
    "library; stack: of the deepest calls, and as it was measured, the C library included; instructions: most of a "
    "step, those of the C library included; cycles: estimated from above by the manual of the Cortex-M4, without wait "
    "states of the memory; error: from double precision, relative to the largest entry of an output, most of all steps."
}


def run(out, quick=False, progress=None):
    """Measure, and write embedded.csv and manifest.json to the folder `out`; returns the table as a text.

    Without arm-none-eabi-gcc and qemu-arm there is no table, and the report says so. quick: a shorter horizon.
    progress: show a bar on stderr; default on a terminal only.
    """
    rows, notes, folder = [], [], Path(out)
    listed = cases(quick) if cortex.available(cortex.GCC, cortex.QEMU) else []
    with bar(progress, len(listed), "embedded", " cases") as shown:
        for kind, what, make in listed:
            shown.set_postfix_str(what)
            with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as place:
                case = make(Path(place))
                rows += [(kind, what, target, *measured(case, target)) for target in cortex.TARGETS]
            shown.update()
    if rows:
        write_csv(folder / "embedded.csv", [FIELDS, *rows])
    else:
        notes.append(f"nothing is measured: it takes {cortex.GCC} and {cortex.QEMU}")
    tools = {
        x: run_compiler([x, "--version"]).splitlines()[0] for x in (cortex.GCC, cortex.QEMU) if cortex.available(x)
    }
    command = "oc-dyn study embedded" + (" --quick" if quick else "")
    table = [dict(zip(FIELDS, row, strict=True)) for row in rows]
    write_json(folder / "manifest.json", manifest(command, tools=tools, notes=notes, embedded=table))
    return "\n\n".join([*([in_columns([FIELDS, *rows])] if rows else []), *notes])


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
