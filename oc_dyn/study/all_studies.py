"""Every study, one after the other: `oc-dyn study all`.

Each runs in a process of its own, so that none is disturbed by what another has left behind, and one that fails, or
crashes, does not keep the others from running. Studies that are done are stored in rows.sqlite beside studies.csv, in
the folder `all` beside theirs: a run that was stopped, however that came, goes on with what is missing. What was
measured by other code, or failed, counts as missing; of a study that was cut off in the middle the points that it had
stored stay, if it stores any. Points of studies that take an executor are computed there, in a resumed run by another
one if that is wanted; all else is about time, and runs here alone.
"""

import inspect
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from ..executors import checked, told
from ..interrupts import command
from ..runs.manifest import manifest, write_json
from ..runs.stored_table import StoredTable
from ..text import in_columns
from . import SAME, STUDIES, folder, has_results, load, run
from .apart import HERE, chosen_of, ended, typed

NAMES = tuple(name for name in STUDIES if name not in SAME)
ALL = "all"  # instead of the name of a study, and the folder of what this module writes
DONE = "done"
KEYS, VALUES = ("study",), ("status", "seconds", "CPU")
CAPTIONS = {"studies.csv": "Every study: how it ended, and the seconds that it took, wall and of the processor."}
_CHILD = """
import json, sys
given = json.loads(sys.stdin.read())
sys.path[:0] = given.pop("path")
from oc_dyn.study.all_studies import child
child(**given)
"""


def run_all(out=None, quick=False, executor="serial", only=None, say=lambda text: None):
    """Run all studies; returns (report as a text, names of those that failed).

    out: folder in which every study has one of its name, default results, or results/quick. executor: of the points of
    studies that take one. only: texts, semicolons between them; studies without any of them in their names are left
    out. say: is told of every study when it begins and when it ends. Raises ShapeError for an executor or for texts
    that are none, OSError where nothing can be written.
    """
    checked(executor)
    names = chosen_of(NAMES, only, str)
    own = place(out, ALL, quick)
    table, rows, begun = StoredTable(own / "studies.csv", KEYS, VALUES, quick=quick), {}, time.perf_counter()
    table.begin()
    try:
        for number, name in enumerate(names, 1):
            where, row = place(out, name, quick), table.known(study=name)
            kept = row is not None and row["status"] == DONE and has_results(where)
            say(f"{number}/{len(names)} {name}: {'done before' if kept else '...'}")
            if not kept:
                row = {"study": name, **measured(STUDIES[name], name, where, quick, executor)}
                say(f"{number}/{len(names)} {name}: {row['status']}, {row['seconds']} s")
            table.add(**row)
            rows[name] = row
    finally:
        for name in NAMES:  # of runs before, with other `only`
            row = None if name in rows else table.known(study=name)
            if row is not None:
                table.add(**row)
        table.close([{"study": name} for name in NAMES])
    words = typed(ALL, own.parent, quick, only=only, executor=None if executor == "serial" else executor)
    write_json(own / "manifest.json", manifest(words, failed=failures(rows)))
    return report(rows, time.perf_counter() - begun), failures(rows)


def place(out, name, quick):
    """The folder of a study."""
    return folder(name, quick) if out is None else Path(out) / folder(name, quick).name


def failures(rows):
    """Names of the studies that failed. rows: {name: row}."""
    return [name for name, row in rows.items() if row["status"] != DONE]


def report(rows, seconds):
    """A line a study, then those that failed, with their reasons."""
    cells = [(name, row["status"][:60], row["seconds"], row["CPU"]) for name, row in rows.items()]
    failed = failures(rows)
    last = f"{len(rows) - len(failed)} of {len(rows)} studies are done, {seconds:.0f} s now"
    told_of = [f"failed: {name}: {rows[name]['status']}" for name in failed]
    if failed:
        told_of.append("`oc-dyn study NAME` tells more of one; the same command again runs those that failed")
    return "\n".join([in_columns([("study", *VALUES), *cells]), last, *told_of])


def measured(target, name, out, quick, executor):
    """{status, seconds, CPU} of a study in a process of its own. target: "module:function" of it."""
    given = {"target": target, "name": name, "out": str(out), "quick": quick, "executor": executor}
    path = [str(HERE), *(p or os.getcwd() for p in sys.path)]
    words, begun, before = [sys.executable, "-c", _CHILD], time.perf_counter(), _children()
    done = command(words, json.dumps({**given, "parent": os.getpid(), "path": path}))
    status = DONE if done.returncode == 0 else ended(done)
    if status == DONE and not has_results(out):
        status = "it ended without writing manifest.json"
    seconds = time.perf_counter() - begun
    return {"status": status, "seconds": f"{seconds:.1f}", "CPU": f"{_children() - before:.1f}"}


def _children():
    """Processor time of all processes that have ended below this one [s]; 0 where the system does not tell."""
    times = os.times()
    return times.children_user + times.children_system


# -- the process of a study ----------------------------------------------------------------------------------------


def child(target, name, out, quick, executor, parent):
    """Run a study, and end with status 1, and the reason as the last line, where it fails."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # programs that it has started end with it
    threading.Thread(target=_end_with, args=[parent], daemon=True).start()
    STUDIES[name] = target
    takes = "executor" in inspect.signature(load(name)).parameters
    try:
        run(name, Path(out), quick, executor if takes else "serial", False)
    except KeyboardInterrupt:
        os._exit(130)
    except Exception as error:
        print(told(error), file=sys.stderr)
        sys.exit(1)


def _end_with(parent):
    """End this process if its parent is gone, killed for instance: another run may have begun to write here."""
    while os.getppid() == parent:
        time.sleep(0.5)
    signal.raise_signal(signal.SIGTERM)
    time.sleep(3.0)
    os._exit(1)
