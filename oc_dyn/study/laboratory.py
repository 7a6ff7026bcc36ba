"""Laws of control for elastic robots as in a laboratory: 1 kHz, delay, encoders, wrong models, noise; and their C.

Every law follows the same motion from rest to rest, under each effect alone and under all together, over 20 seeds. A
seed draws where the steps of the encoders lie and the noise of torque sensors; stiffnesses are wrong to either side in
turns. The laws know nothing of the effects. A run is stable if its errors stay below the range of the motion, and if
it settles: the links stand at its end; see oc_dyn.elastic.laboratory_table. The second table is that of the laws as C
in single precision on a Cortex-M4F, as in the study embedded, with limits of what they measure (measured_limits), steps
whose input is no number or a wild sample, and torques at their limits.
"""

import csv
from pathlib import Path

from .. import elastic as el
from ..elastic.laboratory.table import FILTER, HEAD, cells
from ..errors import ShapeError
from ..files import write_csv, write_text
from ..runs.manifest import manifest, write_json
from ..runs.points import bar
from ..text import in_columns, terminal
from . import apart, cortex
from .laboratory_code import CODE_FIELDS, code_row
from .laboratory_laws import LAWS, ROBOTS

SEEDS, SAMPLE_TIME = 20, 1e-3  # [1, s]
FIELDS = ("robot", *HEAD)
QUICK = ("2R arm", ("feedforward_pd", "feedback_linearization"), ("none", "delay of 1 sample", "encoders of 17 bits"))
CAPTIONS = {
    "laboratory.csv": "runs: of seeds and variants (those in which nothing is drawn run once); stable: how many are; "
    "rms and largest error of the links [rad] over all of them, nan where one diverged; at rest: largest speed of a "
    f"link at the end [rad/s]. Where speeds are differences, their low-pass has {FILTER:g} Hz.",
    "code.csv": "Laws in single precision by arm-none-eabi-gcc -O2 for a Cortex-M4F; error: from double precision, "
    "relative to the largest entry of an output; of measured limits: part of the text that looks for wild samples, as "
    "generate_controller has it; not a number, wild sample (an angle wrong by 1 rad, once): status, and whether "
    "the safe torque came out; limits: whether torques at their limits are, and are told.",
}


def run(out, quick=False, progress=None, executor="serial", only=None):
    """Measure, and write laboratory.csv, laboratory.md, code.csv and manifest.json to the folder `out`; returns the
    tables as a text.

    Without arm-none-eabi-gcc and qemu-arm there is no code.csv, and the report says so. quick: two laws, three effects,
    two seeds, one robot. progress: show a bar on stderr; default on a terminal only. only: a text, or several with
    semicolons between them; laws without one of them in "law, robot" are left out, and what the files have of them
    stays. laboratory.csv or code.csv among these texts measures that table alone. Raises ShapeError where no law is
    left, or where what the files have is of other columns.
    """
    folder, emulated = Path(out), cortex.available(cortex.GCC, cortex.QEMU)
    pairs = _pairs(quick)
    tables, laws_only = _tables(only)
    chosen = apart.chosen_of(pairs, laws_only, lambda pair: ", ".join(reversed(pair)))
    effects, c_code = "laboratory.csv" in tables, emulated and "code.csv" in tables
    rows = _stored(folder / "laboratory.csv", FIELDS, [x for x in pairs if not (effects and x in chosen)])
    code = _stored(folder / "code.csv", CODE_FIELDS, [x for x in pairs if not (c_code and x in chosen)])
    with bar(progress, len(chosen) * (effects + c_code), "laboratory", " laws") as shown:
        for robot in dict.fromkeys(robot for robot, _ in chosen):
            setting = ROBOTS[robot]()
            laws = {law: LAWS[law][0](setting) for of, law in chosen if of == robot}
            for row in _table(setting, laws, quick, executor).rows if effects else ():
                rows.setdefault((robot, row.law), []).append((robot, *cells(row)))
            shown.update(len(laws) * effects)
            for name, law in laws.items() if c_code else ():
                code[robot, name] = [code_row(robot, name, law)]
                shown.update()
    return _write(folder, [[row for x in pairs for row in y.get(x, ())] for y in (rows, code)], quick, only, emulated)


def _pairs(quick):
    """[(robot, law)]."""
    if quick:
        return [(QUICK[0], law) for law in QUICK[1]]
    return [(robot, law) for robot in ROBOTS for law, (_, on) in LAWS.items() if robot in on]


def _tables(only):
    """(names of the tables to measure, what `only` says besides, None for nothing)."""
    words = [w.strip() for w in (only or "").split(";")]
    tables = [w for w in words if w in CAPTIONS]
    return tables or list(CAPTIONS), ";".join(w for w in words if w and w not in CAPTIONS) or None


def _stored(path, fields, pairs):
    """{(robot, law): rows} of a table in a file; ShapeError where rows that are to stay have other columns."""
    if not pairs or not path.exists():
        return {}
    with open(path, newline="", encoding="utf-8") as text:
        rows = [tuple(row) for row in csv.reader(text)]
    head = rows[0] if rows else ()
    if head != tuple(fields):
        problem = f"its columns are {', '.join(head)}, not {', '.join(fields)}"
        raise ShapeError(f"laboratory: {terminal(path)}: {problem}; measure it whole, --only {path.name}")
    return {pair: [row for row in rows if row[:2] == pair] for pair in pairs}


def _table(setting, laws, quick, executor):
    """LaboratoryTable of laws of a robot."""
    return el.laboratory_table(
        setting.elastic,
        laws,
        setting.reference,
        effects={name: el.EFFECTS[name] for name in (QUICK[2] if quick else el.EFFECTS)},
        seeds=2 if quick else SEEDS,
        sample_time=SAMPLE_TIME,
        substeps=setting.substeps,
        torque_limit=setting.torque_limit,
        executor=executor,
    )


def _write(folder, found, quick, only, emulated):
    """Write what was found, and return its text."""
    rows, code = found
    tables = {"laboratory.csv": [FIELDS, *rows]} | ({"code.csv": [CODE_FIELDS, *code]} if code else {})
    for file, table in tables.items():
        write_csv(folder / file, table)
    write_text(folder / "laboratory.md", markdown(rows))
    notes = [] if emulated else [f"code: nothing is measured: it takes {cortex.GCC} and {cortex.QEMU}"]
    facts = {"seeds": 2 if quick else SEEDS, "sample_time": SAMPLE_TIME, "effects": el.EFFECTS, "notes": notes}
    write_json(folder / "manifest.json", manifest(apart.typed("laboratory", folder, quick, only=only), **facts))
    return "\n\n".join([*map(in_columns, tables.values()), *notes])


def markdown(rows):
    """Tables law x effect of rows of FIELDS, one per robot: the largest error in mrad, with how many runs do
    not settle."""
    out = []
    for robot in dict.fromkeys(row[0] for row in rows):
        own = [dict(zip(FIELDS, map(str, row), strict=True)) for row in rows if row[0] == robot]
        effects = list(dict.fromkeys(row["effect"] for row in own))
        out += [f"| {robot} | {' | '.join(effects)} |", f"| --- |{' --- |' * len(effects)}"]
        for law in dict.fromkeys(row["law"] for row in own):
            found = {row["effect"]: row for row in own if row["law"] == law}
            out.append(f"| {law} | {' | '.join(_cell(found[x]) if x in found else '' for x in effects)} |")
        out.append("")
    return "\n".join(out)


def _cell(row):
    """Text of a row in the table of a robot."""
    off = int(row["runs"]) - int(row["stable"])
    largest = float(row["largest"])
    size = "diverged" if largest != largest else f"{1e3 * largest:.2g}" if largest < 0.0995 else f"{1e3 * largest:.0f}"
    return size if not off else f"**{size}** ({off} of {row['runs']} unsettled)"
