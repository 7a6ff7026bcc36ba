"""Writing files so that a reader never sees half of one."""

import csv
import io
import os
from contextlib import contextmanager
from pathlib import Path

from ..text import csv_cell


@contextmanager
def replacing(path):
    """Path of a temporary neighbour that takes the place of `path` at the end; gone if anything fails."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_bytes(path, data):
    """Write a file in one step; the folder is made."""
    with replacing(path) as part:
        part.write_bytes(data)


def write_text(path, text):
    """Write a UTF-8 text file in one step; the folder is made."""
    write_bytes(path, text.encode("utf-8"))


def write_csv(path, rows):
    """Write rows, the first of them the headings, as a CSV in one step, its texts as csv_cell has them; the folder is
    made."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([map(csv_cell, row) for row in rows])
    write_text(path, text.getvalue())
