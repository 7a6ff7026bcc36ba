"""Writing files so that a reader never sees half of one."""

import csv
import io
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path

from ..interrupts import watched


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


@contextmanager
def together(folder):
    """Path of a folder whose files take their places in `folder`, which is made, all at the end; gone if anything
    fails, and then `folder` is as it was."""
    folder = Path(folder)
    made = [f for f in (folder, *folder.parents) if not f.exists()]
    part = folder / f".{os.getpid()}.part"
    try:
        part.mkdir(parents=True, exist_ok=True)
        yield part
        with watched(hold=True):
            for file in sorted(f for f in part.rglob("*") if not f.is_dir()):
                place = folder / file.relative_to(part)
                place.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, place)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        for f in made:  # those that are empty
            with suppress(OSError):
                f.rmdir()


def write_bytes(path, data):
    """Write a file in one step; the folder is made."""
    with replacing(path) as part:
        part.write_bytes(data)


def write_text(path, text):
    """Write a UTF-8 text file in one step; the folder is made."""
    write_bytes(path, text.encode("utf-8"))


def write_csv(path, rows):
    """Write rows, the first of them the headings, as a CSV in one step; the folder is made."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_text(path, text.getvalue())
