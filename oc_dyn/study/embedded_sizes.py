"""Sizes of the C of the Panda's predictive controller, of this package and of an earlier checkout, by one compiler.

The code is written by a process with the package of its checkout, and measured here, so that both are measured alike.
"""

import platform
import tempfile
from pathlib import Path

from ..codegen.footprint import footprint
from ..errors import SolveError
from ..runs.points import bar
from . import apart, cortex

GCC = "gcc"
NODES, QUICK = 20, 3
LIMIT = 600.0  # [s] for writing the code
ENTRY = "mpc_step"
PROGRAMS = {"torques": False, "torques and speeds": True}  # whether it is that of the example
FIELDS = (
    "limited",
    "code",
    "processor",
    "text [B]",
    "data [B]",
    "bss [B]",
    "work [B]",
    "instance [B]",
    "stack [B]",
    "status",
)
CAPTION = (
    "Predictive controllers of the Panda, 20 intervals, ten iterations, double precision, by gcc and arm-none-eabi-gcc "
    "-O2, of this version and of the earlier one: limits of torque, the program of embedded.csv; and of speed, too, "
    "that of problems/panda_nmpc.py. text: code and constants without libraries; work: the array w of a step; "
    "instance: all that a caller provides for a controller besides inputs and outputs, in the earlier version arg, "
    "res, iw, w and memory; stack: of the deepest calls."
)


def targets():
    """{processor: (compiler, flags)} of those whose compiler is installed."""
    known = {platform.machine(): (GCC, ()), "Cortex-M7": (cortex.GCC, cortex.TARGETS["Cortex-M7"])}
    return {who: x for who, x in known.items() if cortex.available(x[0])}


def rows(earlier=None, quick=False, progress=None):
    """Rows of FIELDS of every target, "before" above "now"; earlier: folder of a checkout, or None for "now" alone.

    The status is "done", or what a checkout or a compiler said instead.
    """
    processors, found = targets(), {}
    sides = {**({"before": earlier} if earlier else {}), "now": None}
    turns = [(what, who) for what in PROGRAMS for who in sides] if processors else []
    with bar(progress, len(turns), "sizes", " controllers") as shown, apart.processes(LIMIT) as measure:
        for what, who in turns:
            shown.set_postfix_str(f"{what}, {who}")
            with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as folder:
                given = {"example": PROGRAMS[what], "nodes": QUICK if quick else NODES, "folder": folder}
                told = measure(apart.Case("controllers", "panda", given), sides[who])
                for target in processors:
                    cells = sizes(Path(folder), told.parts[0], target) if told.done else [*[""] * 6, told.status]
                    found[what, target, who] = (what, who, target, *cells)
            shown.update()
    return [found[what, target, who] for what in PROGRAMS for target in processors for who in sides]


def sizes(folder, part, target):
    """Cells of a row, from text on, of the code in a folder; part: what the case says of it."""
    compiler, flags = targets()[target]
    options = {"compiler": [compiler], "flags": (*flags, *cortex.FLAGS)}
    try:
        code = footprint([folder / "mpc.c"], [ENTRY], **options)
        work, instance = _held(folder, part, options)
    except SolveError as error:
        return [*[""] * 6, " ".join(str(error).split())[:300]]
    stack = "unbounded" if code.recursive + code.unbounded else code.stack[ENTRY]
    return [code.text, code.data, code.bss, work, instance, stack, "done"]


def _held(folder, part, options):
    """Bytes of w, and of all that a caller holds, by the compiler's own sizes."""
    named, declared = "mpc_t", ""
    if not part["instance"]:
        kinds = {"arg": "const casadi_real *", "res": "casadi_real *", "iw": "casadi_int ", "w": "casadi_real "}
        kinds["memory"] = "casadi_real "
        members = " ".join(f"{kind}{name}[{max(1, part[name])}];" for name, kind in kinds.items())
        named, declared = "struct held", f"struct held {{ {members} }};\n"
    found = []
    for k, what in enumerate((f"((({named} *)0)->w)", f"({named})")):
        probe = folder / f"probe_{k}.c"
        probe.write_text(f'#include "mpc.h"\n{declared}char probe[sizeof {what}];\n', encoding="utf-8")
        found.append(footprint([probe], [], **options).bss)
    return found
