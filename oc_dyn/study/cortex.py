"""Generated C on Cortex-M processors: compiled by arm-none-eabi-gcc, sizes, stack, and instructions that a step takes.

Code for a Cortex-M runs under qemu-arm's emulation of a processor that knows all its instructions, as a program of
Linux. Instructions are those that were executed between the call of a step and its return. Cycles are instructions by
the table of the Cortex-M4's manual (ARM 100166, sections 3.3 and 7.2.3), each taken branch refilling the pipeline for
two cycles, each floating-point result waited for: an estimate from above without wait states of the memory.
"""

import ctypes
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

import numpy as np

from ..codegen.build import run, run_compiler
from ..codegen.footprint import footprint
from ..errors import SolveError

GCC, QEMU = "arm-none-eabi-gcc", "qemu-arm"
TARGETS = {
    "Cortex-M4F": ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"),
    "Cortex-M7": ("-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"),
}
FLAGS = ("-std=c99", "-O2", "-ffunction-sections", "-fdata-sections")
DEEPEST = 1 << 16  # [bytes] of stack that is looked at
_BLOCK = re.compile(r"^0x([0-9a-f]{8}):\s+[0-9a-f]{4}(?: [0-9a-f]{4})?\s+(\S+)\s*(.*)$")
_TRACE = re.compile(r"^Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]{8})/")
_SLOW = {"vdiv": 14, "vsqrt": 14, "sdiv": 12, "udiv": 12}
_SLOW |= dict.fromkeys(("vmla", "vmls", "vfma", "vfms", "vnmla", "vnmls"), 3)
_MEMORY = {"ldr", "ldrb", "ldrh", "ldrsb", "ldrsh", "str", "strb", "strh", "vldr", "vstr"}
_SEVERAL = ("ldm", "stm", "push", "pop", "vldm", "vstm", "vpush", "vpop")
_BRANCHES = {"b", "bl", "blx", "bx", "cbz", "cbnz", "tbb", "tbh"}


def available(*programs):
    """Whether these are installed."""
    return all(shutil.which(x) for x in programs)


def size_of(folder, sources, entries, target, flags=()):
    """Footprint of sources in a folder on a target."""
    return footprint(
        [Path(folder, x) for x in sources], entries, flags=(*TARGETS[target], *FLAGS, *flags), compiler=[GCC]
    )


@dataclass(frozen=True)
class Step:
    """A step on the emulated processor: its status, the bytes of <name>_out, bytes of stack with those of the C
    library, instructions executed, cycles estimated."""

    status: int
    out: bytes
    stack: int
    instructions: int
    cycles: int


def steps_of(
    folder, sources, name, target, inputs, *, wide=False, entry="step", header=None, flags=(), time_limit=600.0
):
    """[Step] of <name>_<entry> at rows of inputs (K, numbers of <name>_in), one after the other with one instance; and
    the bytes that an instance takes.

    wide: whether the inputs are doubles. header: that of the sources, default <name>.h.
    """
    rows = np.atleast_2d(np.asarray(inputs, float))
    literals = ["{" + ", ".join(_literal(x, wide) for x in row) + "}" for row in rows]
    words = {"name": name, "steps": len(rows), "inputs": rows.shape[1], "given": ",\n    ".join(literals)}
    text = Template((files(__package__) / "cortex_driver.c.in").read_text(encoding="utf-8"))
    words |= {"header": header or f"{name}.h", "entry": entry, "in_real": "double" if wide else "float"}
    driver = text.substitute(words, deepest=DEEPEST)
    with tempfile.TemporaryDirectory(prefix="oc_dyn_", ignore_cleanup_errors=True) as place:
        Path(place, "driver.c").write_text(driver, encoding="utf-8")
        program, log = str(Path(place, "program")), str(Path(place, "log"))
        command, own = [GCC, *TARGETS[target], *FLAGS], [*flags, f"-I{folder}", "-c"]
        parts = [(Path(folder, x), own) for x in sources] + [
            (Path(place, "driver.c"), [f"-I{folder}", "-fno-builtin", "-c"])
        ]
        for k, (source, options) in enumerate(parts):
            run_compiler([*command, *options, "-o", f"{k}.o", str(source)], place)
        link = ["-nostartfiles", "-Wl,--gc-sections", "-o", program, *(f"{k}.o" for k in range(len(parts)))]
        run_compiler([GCC, *TARGETS[target], *link, "-lm", "-lc", "-lgcc"], place)
        output = str(Path(place, "out"))
        emulated = f'exec {QEMU} -cpu max -d in_asm,exec,nochain -D "$1" "$2" > "$3"'
        status, _, said = run(["sh", "-c", emulated, "sh", log, program, output], place, time_limit)
        if status:
            raise SolveError(f"{name} ended with status {status} on the emulated processor: {said.strip()[-500:]}")
        counts = _counted(log)
        told = Path(output).read_bytes()
    instance, told = int(np.frombuffer(told[:4], "<i4")[0]), told[4:]
    size = len(told) // len(rows)
    found = []
    for k, (instructions, cycles) in enumerate(counts):
        row = told[k * size : (k + 1) * size]
        status, stack = np.frombuffer(row[:8], "<i4").tolist()
        found.append(Step(status, row[8:], stack, instructions, cycles))
    return found, instance


def numbers_of(out, members):
    """{name: array} of the bytes of a struct with members {name: (C type, count)}, of float, double or int."""
    kinds = {"float": ctypes.c_float, "double": ctypes.c_double, "int": ctypes.c_int}
    fields = [(name, kinds[kind] * count) for name, (kind, count) in members.items()]
    told = type("Told", (ctypes.Structure,), {"_fields_": fields}).from_buffer_copy(out)
    return {name: np.array(getattr(told, name)) for name in members}


def _literal(x, wide):
    if not np.isfinite(x):
        return f'__builtin_nan{"" if wide else "f"}("")' if np.isnan(x) else f"{'-' if x < 0 else ''}__builtin_inf()"
    return f"{x:.17g}" if wide else f"{np.float32(x):.9e}f"


def _counted(log):
    """[(instructions, cycles)] between the marks, from qemu's listing of blocks and of the order they ran in."""
    blocks, open_block = {}, None
    found, ran = [], None
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            trace = _TRACE.match(line)
            if trace:
                start = trace[1]
                if "mark_begin" in line:
                    ran = Counter()
                elif "mark_end" in line and ran is not None:
                    found.append(_sums(ran, blocks))
                    ran = None
                elif ran is not None:
                    ran[start] += 1
                continue
            instruction = _BLOCK.match(line)
            if instruction:
                if open_block is None:
                    open_block = blocks[instruction[1]] = []
                open_block.append((instruction[2], instruction[3]))
            else:
                open_block = None
    return found


def _sums(ran, blocks):
    """Of blocks that ran so often; what the caller does between the marks is a handful of instructions."""
    counts = [(times, blocks[start]) for start, times in ran.items()]
    return sum(n * len(b) for n, b in counts), sum(n * _cycles(b) for n, b in counts)


def _cycles(block):
    """Of a block, in front of whose end no branch is taken."""
    total = sum(_cost(*instruction) for instruction in block)
    return total + (0 if block[-1][0].split(".")[0] in _BRANCHES else 2)  # pop {pc}, a conditional branch, or a page


def _cost(mnemonic, operands):
    base = mnemonic.split(".")[0] or mnemonic  # what the disassembler does not know is ".byte"
    if base.startswith(_SEVERAL):
        return 1 + _listed(operands)
    if base in ("ldrd", "strd"):
        return 3
    if base in _MEMORY:
        return 2
    if base in _BRANCHES:
        return 3
    if base in _SLOW:
        return _SLOW[base] + (base[0] == "v")
    return 2 if base[0] == "v" else 1


def _listed(operands):
    """Number of registers in a list such as {r4-r7, lr}, or {d8-d9}, whose registers have two words."""
    count = 0
    for part in re.sub(r"^.*\{|\}.*$", "", operands).split(","):
        ends = re.findall(r"([a-z]+)(\d*)", part.strip())
        span = int(ends[-1][1]) - int(ends[0][1]) + 1 if len(ends) == 2 and ends[0][1] else 1
        count += span * (2 if ends and ends[0][0] == "d" else 1)
    return count
