"""A table that is written row by row, so that a study that was stopped goes on where it was."""

import csv
import hashlib
import io
from functools import cache
from pathlib import Path

import casadi as ca

from ..planning.files import write_text
from ..text import csv_cell, csv_text

_PACKAGE = Path(__file__).resolve().parents[1]
# no Function is built with these
_ASIDE = ("study", "planning", "codegen", "elastic", "cli.py", "demo.py", "executors.py", "interop.py", "sweeps.py")


@cache  # what is changed on the disk while this runs is not what is measured
def fingerprint(aside=_ASIDE):
    """Twelve digits (hexadecimal) that tell versions of CasADi and of the code that builds Functions apart.

    aside: files and folders of the package that do not count.
    """
    digest = hashlib.sha256(ca.__version__.encode())
    for path in sorted(_PACKAGE.rglob("*.py"), key=lambda p: p.relative_to(_PACKAGE).as_posix()):
        name = path.relative_to(_PACKAGE)
        if name.parts[0] not in aside:
            digest.update(name.as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


class Rows:
    """Rows {field: text or number} of a CSV file, which is whole after every row.

    keys: fields that name a row; values: the others. Rows that an earlier run with the same code left in the file are
    there from the start, in `found`: {tuple of keys, as texts: row}; those of other code are not. code: what tells
    versions of the code apart, default that of Functions.
    """

    def __init__(self, path, keys, values, code=None):
        self.path, self.keys, self.fields = Path(path), tuple(keys), (*keys, *values, "code")
        self.code = code or fingerprint()
        self.found, self.rows = {}, []
        if self.path.exists():
            with open(self.path, newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    if row.get("code") == self.code and tuple(row) == self.fields and None not in row.values():
                        row = {k: csv_text(x) for k, x in row.items()}
                        self.found[tuple(row[k] for k in self.keys)] = row

    def known(self, **keys):
        """The row of these keys that an earlier run left; None if there is none."""
        return self.found.get(tuple(str(keys[k]) for k in self.keys))

    def add(self, **row):
        """Append a row and write the file in one step; rows of an earlier run that were not added yet are kept."""
        row = {k: str(row.get(k, "")) for k in self.fields[:-1]} | {"code": self.code}
        self.rows.append(row)
        self.found.pop(tuple(row[k] for k in self.keys), None)
        self._write([*self.rows, *self.found.values()])

    def close(self, plan=None):
        """Drop rows of earlier runs that this one did not ask for. plan: order of the rows, a list of {key: value}."""
        if plan is not None:
            places = {tuple(str(keys[k]) for k in self.keys): place for place, keys in enumerate(plan)}
            self.rows.sort(key=lambda row: places[tuple(row[k] for k in self.keys)])
        self._write(self.rows)

    def begin(self):
        """Write the file as it is: a folder that cannot be written to is noticed before any work is done."""
        self._write([*self.rows, *self.found.values()])

    def _write(self, rows):
        text = io.StringIO()
        writer = csv.DictWriter(text, self.fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows([{k: csv_cell(x) for k, x in row.items()} for row in rows])
        try:
            write_text(self.path, text.getvalue())
        except OSError as error:  # no space, no right, a folder that is a file
            kept = "what was written before is kept, and the same command goes on behind it"
            raise type(error)(error.errno, f"{error.strerror or error}; {kept}", str(self.path)) from error
