"""What users wait for, before and after: motions, batches, building and calling Functions, the demo.

Every line is measured in processes of its own, those of an earlier checkout (--against FOLDER) and of this one taking
turns, with peers beside them: the same program by hand in casadi.Opti; ruckig, which keeps less than a plan does, and
toppra; the Python bindings of Pinocchio and MuJoCo. A case that an earlier checkout cannot do, that crashes or that
takes too long says so in its cell. Times are least and median wall seconds, and least seconds of the processor.
"""

import shutil
import sys
from pathlib import Path

from ...files import write_csv
from ...runs.manifest import git_state, manifest, write_json
from ...runs.points import bar
from ...text import in_columns
from .. import apart
from .lines import lines
from .tables import FIELDS, SHOWN, rows_of, shown

MOST = 150.0  # [s] of all runs of a line after which it is not run again
CAPTIONS = {
    "waits.csv": "before, now: least of the runs, wall time; median and CPU: their median, and the least time of the "
    "processor; ratio: now over before, of CPU where both have it; first: in a new process, with nothing kept unless "
    "the line says so; again: in the same process; aim: what now is to stay below. Lines that the last run left out "
    "stand as an earlier one left them; runs.csv tells which code was measured.",
    "runs.csv": apart.RUNS,
}


def run(out, quick=False, progress=None, against=None, only=None):
    """Measure, and write runs.csv, waits.csv and manifest.json to the folder `out`; returns the table as a text.

    against: folder of an earlier checkout of the repository. only: a text; lines without it in their names are left
    out, and what the files have of them stays; several, with semicolons between them. quick: two lines. progress: show
    a bar on stderr; default on a terminal only. What the same code has measured there is not measured again.
    Raises ShapeError for a folder that is no checkout, and where no line is left.
    """
    out, earlier = Path(out), apart.checkout(against)
    known = [x for x in lines() if x.quick or not quick]
    chosen = apart.chosen_of(known, only)
    names = {x.name for x in chosen}
    others = {x.name for x in known} - names
    with bar(progress, len(chosen), "waits", " lines") as moved, apart.runs(out, earlier, quick, others) as one:
        for line in chosen:
            moved.set_postfix_str(line.name)
            measured(line, earlier, one)
            moved.update()
    told = apart.told(out)
    tables = {line.name: rows_of(line, told[line.name]) for line in known if line.name in told}
    rows = [row for table in tables.values() for row in table]
    write_csv(out / "waits.csv", [FIELDS, *([row[k] for k in FIELDS] for row in rows)])
    command = apart.typed("waits", out, quick, against=against, only=only)
    facts = {"limit": apart.LIMIT, "against": None if earlier is None else git_state(earlier), **versions()}
    write_json(out / "manifest.json", manifest(command, **facts))
    return in_columns([SHOWN, *(shown(row) for row in rows if row["line"] in names)])


def measured(line, earlier, one):
    """{who: [Told]} of a line: "before" and "now" in turns, then its peers."""
    sides = {"before": earlier, "now": None} if earlier else {"now": None}
    told: dict[str, list] = {who: [] for who in sides}
    spent = 0.0
    for number in range(line.runs):
        for who, folder in sides.items():
            if not told[who] or told[who][-1].done:  # what did not end once is not tried again
                told[who].append(one(line.name, who, number, line.case, folder))
                spent += told[who][-1].seconds
        if spent > MOST:
            break
    for peer, case in line.peers.items():
        told[peer] = [one(line.name, peer, 0, case)]
    return told


def versions():
    """{"compiler", "peers"} that the lines were measured with."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("ruckig", "toppra", "pin", "mujoco", "distributed"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return {"peers": found, "compiler": bool(shutil.which("gcc") or shutil.which("cc")), "platform": sys.platform}
