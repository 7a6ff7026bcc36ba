"""A table whose rows are stored as they come, so that a study that was stopped resumes where it was."""

import csv
import hashlib
import json
import subprocess
from functools import cache, cached_property
from pathlib import Path

from ..digest import version
from ..errors import ShapeError
from ..files import write_csv
from ..store import KEPT, Store
from ..text import csv_text
from .manifest import machine

_BASE = "rows.sqlite"
# nothing is measured with these
_ASIDE = ("cli.py", "demo.py", "executors.py", "store.py", "digest.py", "text.py", "command_line.py")
_ASIDE += tuple(f"runs/{x}.py" for x in ("manifest", "points", "script", "stored_table", "sweeps"))
_ASIDE += tuple(f"study/{x}" for x in ("all_studies.py", "html.py", "report.html", "sweeps.py"))
_ASIDE += tuple(f"study/{x}figures.py" for x in ("growth_", "paper_", "second_order_", "beyond/"))


@cache
def fingerprint():
    """Sixteen digits (hexadecimal) that tell machines, versions of Python, NumPy, CasADi and C compilers, and states of
    the code that is measured, or measures, apart."""
    text = json.dumps([version(_ASIDE), machine(), *map(_compiler, ("gcc", "cc", "clang"))], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _compiler(name):
    try:
        done = subprocess.run([name, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.partition("\n")[0]


class StoredTable:
    """Rows {field: text or number} of a CSV file that `close` writes. Each row is stored in rows.sqlite beside the file
    as soon as it is added, together with those that other versions of the code left there.

    keys: fields that name a row; values: the others. Rows that an earlier run with the same code left are there from
    the start, in `found`: {tuple of keys, as texts: row}; those of other code are not. code: what tells versions of the
    code apart, default that of all that studies measure. quick: rows of a quick run are not those of a full one.
    Raises ShapeError for an existing file that is no such table.
    """

    def __init__(self, path, keys, values, code=None, quick=False):
        self.path, self.keys, self.fields = Path(path), tuple(keys), (*keys, *values, "code")
        self.code = (code or fingerprint()) + (" quick" if quick else "")
        self.name = json.dumps([self.path.name, self.keys, self.fields])
        self.found, self.rows, self.before = {}, [], []
        old = self._of_table()
        if old or self.path.with_name(_BASE).exists():
            there = {row["key"] for row in self.store.rows()} if old else set()
            for key in old.keys() - there:
                self.store.write(old[key])
            of = "function = ? AND version = ? AND status = 'done'"
            for stored in self.store.rows(of, self.name, self.code):
                row = json.loads(stored["result"])
                self.found[tuple(row[k] for k in self.keys)] = row

    @cached_property
    def store(self):
        """The Store of the rows, a file beside the table, opened when it is first asked for."""
        return Store(self.path.with_name(_BASE), known=self.path.exists())

    def known(self, **keys):
        """The row of these keys that an earlier run left, or None."""
        return self.found.get(tuple(str(keys[k]) for k in self.keys))

    def add(self, **row):
        """Append a row and store it."""
        row = {k: str(row.get(k, "")) for k in self.fields[:-1]} | {"code": self.code}
        self.rows.append(row)
        if row != self.found.pop(tuple(row[k] for k in self.keys), None):
            self.store.write(self._stored(row), replace=True)

    def close(self, plan=None):
        """Write the table of the rows that were added. plan: order of the rows, a list of {key: value}."""
        if plan is not None:
            places = {tuple(str(keys[k]) for k in self.keys): place for place, keys in enumerate(plan)}
            self.rows.sort(key=lambda row: places[tuple(row[k] for k in self.keys)])
        self.store.close()
        try:
            cells = ([*(row[k] for k in self.fields[:-1]), f"{row['code']} {_check(row)}"] for row in self.rows)
            write_csv(self.path, [self.fields, *cells])
        except OSError as error:  # no space, no right
            raise type(error)(error.errno, f"{error.strerror or error}; {KEPT}", str(self.path)) from error

    def keep(self, which):
        """Rows that were in the file before, and of which which(row) is true, stay in it behind those that were added,
        whatever code has written them."""
        added = {tuple(row[k] for k in self.keys) for row in self.rows}
        self.rows += [row for row in self.before if which(row) and tuple(row[k] for k in self.keys) not in added]

    def begin(self):
        """Open the file of rows: a folder that cannot be written to is noticed before any work is done."""
        return self.store

    def _stored(self, row):
        """A row as it is stored."""
        facts = {"function": self.name, "version": row["code"], "status": "done", "result": json.dumps(row)}
        return {"key": _hash([self.name, row["code"], [row[k] for k in self.keys]]), **facts}

    def _of_table(self):
        """{key: stored row} of the existing table, in case it came without rows.sqlite: rows with the right check are
        used, others stored and never used."""
        if not self.path.exists():
            return {}
        try:
            with open(self.path, newline="", encoding="utf-8") as file:
                head, *lines = [*csv.reader(file)] or [()]
        except (UnicodeDecodeError, csv.Error):
            head, lines = (), []
        if not head or head[-1] != "code":
            raise ShapeError(f"{self.path}: it is not a table of a study and is left unchanged: give another folder")
        rows = []
        for line in lines:
            row = dict(zip(head, map(csv_text, line), strict=False))
            code, _, check = row.get("code", "").rpartition(" ")
            if tuple(row) == self.fields and check == _check(row | {"code": code}):
                self.before.append(row | {"code": code})
                rows.append(self._stored(self.before[-1]))
            else:
                text = json.dumps(row)
                rows.append({"key": _hash([self.path.name, row]), "function": self.path.name, "result": text})
        return {row["key"]: {"status": "kept", **row} for row in rows}


def _check(row):
    """Eight digits that tell whether a row in a table is as it was written."""
    return _hash([*row.values()])[:8]


def _hash(value):
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]
