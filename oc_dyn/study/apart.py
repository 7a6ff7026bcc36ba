"""Cases of the folder cases/ in processes of their own, with this package or with an earlier checkout of it.

A case that takes too long, crashes or raises leaves the parts that it had measured and a status that says so. Every
process has the threads of one processor for what computes in many, and a cache of compiled code of its own, empty
unless the case asks for one that earlier processes have filled.
"""

import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals

from ..errors import ShapeError
from ..interrupts import command
from ..runs.stored_table import StoredTable, fingerprint
from ..text import csv_text, terminal

LIMIT = 120.0  # [s] for a process
KEYS, VALUES = ("line", "who", "run"), ("status", "seconds", "parts")
RUNS = "Every process: what it measured, as JSON, and how it ended."
HERE = Path(__file__).resolve().parents[2]
CASES = Path(__file__).with_name("cases")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_CHILD = """
import importlib, importlib.util, json, os, sys
root, folder, module, name, arguments, out, fill = json.loads(sys.stdin.read())
spec = importlib.util.spec_from_file_location("measured_cases", os.path.join(folder, "__init__.py"),
                                              submodule_search_locations=[folder])
sys.modules["measured_cases"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
with open(out, "w", encoding="utf-8") as file:
    def tell(**part):
        file.write(json.dumps(part) + "\\n")
        file.flush()
    place = importlib.util.find_spec("oc_dyn").origin
    if not os.path.realpath(place).startswith(os.path.realpath(root) + os.sep):
        tell(failed=f"oc_dyn is that of {place}")
        sys.exit(1)
    try:
        for part in getattr(importlib.import_module("measured_cases." + module), name)(**arguments):
            tell(**part)
            if fill:
                break
    except Exception as error:
        tell(failed=f"{type(error).__name__}: {error}")
        sys.exit(1)
"""
_MOST = 300  # characters of what a process said that a status holds


@dataclass(frozen=True)
class Case:
    """A function of a module of cases/ with its arguments, what JSON can carry.

    kept: a cache of compiled code and Functions that the processes of a checkout share, and that one more process fills
    before, which ends after its first part; otherwise each has an empty one.
    """

    module: str
    name: str
    arguments: dict = field(default_factory=dict)
    kept: bool = False


@dataclass(frozen=True)
class Told:
    """What a process measured: status "done" or what went wrong; parts as the case yields them; seconds of it all."""

    status: str
    parts: list
    seconds: float

    @property
    def done(self):
        """The case came to its end."""
        return self.status == "done"


def checkout(folder):
    """The folder of an earlier checkout, resolved; None for None. ShapeError where no package oc_dyn is in it, or where
    it is the one that runs."""
    if folder is None:
        return None
    place = Path(folder).expanduser().resolve()
    if not (place / "oc_dyn" / "__init__.py").is_file():
        raise ShapeError(f"against: {terminal(folder)} has no folder oc_dyn; give a checkout of this repository")
    if place == HERE:
        raise ShapeError(f"against: {terminal(folder)} is the checkout that runs; give an earlier one")
    return place


def code(against=None):
    """Digits that tell states of the code that is measured apart: of this package, and of the checkout beside it."""
    return fingerprint() if against is None else f"{fingerprint()} against {_digits_of(against / 'oc_dyn')}"


def chosen_of(some, only, name=lambda x: x.name):
    """Those whose names contain one of the texts `only`, semicolons between them; None: all. A whole name means the one
    that has it, though others contain it. ShapeError for none."""
    words = [w.strip().lower() for w in (only or "").split(";") if w.strip()]
    names = [name(x).lower() for x in some]
    kept = [x for x, of in zip(some, names, strict=True) if not words or any(_means(w, of, names) for w in words)]
    if not kept:
        raise ShapeError(f"only: nothing has {only!r} in its name; some are: {'; '.join(map(name, some[:5]))}")
    return kept


def _means(word, name, names):
    return word == name if word in names else word in name


def typed(study, out, quick, **options):
    """The words of a command, for a manifest."""
    words = ["oc-dyn", "study", study, *(["--quick"] if quick else []), "--out", out]
    return words + [word for name, x in options.items() if x for word in (f"--{name}", x)]


def _digits_of(folder):
    found = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"):
        found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


@contextmanager
def processes(limit=LIMIT):
    """measure(case, folder=None) -> Told, for one run of a study: folder of a checkout, default of this package."""
    with tempfile.TemporaryDirectory() as kept:
        filled = set()

        def measure(case, folder=None):
            where = HERE if folder is None else folder
            if not case.kept:
                with tempfile.TemporaryDirectory() as empty:
                    return _run(case, where, empty, limit)
            cache = Path(kept) / str(abs(hash(str(where))))
            cache.mkdir(exist_ok=True, mode=0o700)
            key = (str(where), case.module, case.name, json.dumps(case.arguments, sort_keys=True))
            if key not in filled:
                _run(case, where, cache, limit, fill=True)
                filled.add(key)
            return _run(case, where, cache, limit)

        yield measure


@contextmanager
def runs(out, against=None, quick=False, others=(), limit=LIMIT):
    """one(line, who, number, case, folder=None) -> Told, for one run of a study: of the table runs.csv in the folder
    `out` where the same code has left it there, else measured and stored. The table is written in the end, however
    that comes. against: the checkout that counts as code, too. others: names of lines whose rows stay in the table as
    they are, whatever code has measured them. limit [s]: of a process."""
    table = StoredTable(Path(out) / "runs.csv", KEYS, VALUES, code(against), quick)
    table.begin()

    def one(line, who, number, case, folder=None):
        keys = {"line": line, "who": who, "run": number}
        row = table.known(**keys)
        if row is None:
            found = measure(case, folder)
            row = {"status": found.status, "seconds": f"{found.seconds:.3f}", "parts": json.dumps(found.parts)}
        table.add(**{**row, **keys})
        return Told(row["status"], json.loads(row["parts"]), float(row["seconds"]))

    try:
        with processes(limit) as measure:
            yield one
    finally:
        table.keep(lambda row: row["line"] in others)
        table.close()


def told(out):
    """{line: {who: [Told]}} of the table runs.csv in the folder `out`."""
    found = {}
    with open(Path(out) / "runs.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            row = {k: csv_text(x) for k, x in row.items()}
            one = Told(row["status"], json.loads(row["parts"]), float(row["seconds"]))
            found.setdefault(row["line"], {}).setdefault(row["who"], []).append(one)
    return found


def environment(folder, cache):
    """Variables of a process whose package is that of the folder."""
    import matplotlib

    own = {"PYTHONPATH": str(folder), "OC_DYN_CACHE": str(Path(cache) / "compiled"), "MPLBACKEND": "agg"}
    own |= {"MPLCONFIGDIR": matplotlib.get_cachedir(), **dict.fromkeys(_THREADS, "1")}
    return {**{k: x for k, x in os.environ.items() if not k.startswith(("PYTHON", "OC_DYN"))}, **own}


def _run(case, folder, cache, limit, fill=False):
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "parts"
        given = json.dumps([str(folder), str(CASES), case.module, case.name, case.arguments, str(out), fill])
        words = [sys.executable, "-c", _CHILD]
        try:
            done = command(words, given, timeout=limit, env=environment(folder, cache), cwd=place)
        except subprocess.TimeoutExpired:
            status, parts = f"more than {limit:g} s", _parts(out)
        else:
            parts = _parts(out)
            status = "done" if done.returncode == 0 else ended(done)
        failed = [p["failed"] for p in parts if "failed" in p]
        status = _short(failed[0]) if failed else status
    return Told(status, [p for p in parts if "failed" not in p], time.perf_counter() - begun)


def _parts(out):
    """The parts that a process has written; a line that it did not end is none."""
    if not out.exists():
        return []
    lines = out.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    return [json.loads(line) for line in lines]


def ended(done):
    """Text: how a process ended, with the last that it said."""
    how = f"ended with status {done.returncode}"
    if done.returncode < 0:
        how = f"ended by {Signals(-done.returncode).name}"
    last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")
    return _short(f"{how}: {last.strip()}" if last else how)


def _short(text):
    """One line of a status, without the paths of this machine."""
    text = terminal(" ".join(re.sub(r"(?<![\w.])/[^\s,;'\"]*/", "", text).split()))
    return text if len(text) <= _MOST else text[: _MOST - 3] + "..."
