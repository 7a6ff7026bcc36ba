"""Files that are written so that a reader never sees half of one, and read without trusting what is in them."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import secrets
import shutil
import stat
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from .errors import FileError, UnknownName
from .interrupts import watched
from .text import csv_cell
from .types import StrPath

MAX_BYTES = 1_000_000_000  # of a file that is read, and of what it unpacks to


@contextmanager
def replacing(path: StrPath) -> Iterator[Path]:
    """Path of a temporary neighbour that takes the place of `path` at the end; gone if anything fails.

    A full disk or a folder that must not be written to is an OSError that names `path`. Of a link the file that it
    leads to is written.
    """
    path = behind(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(unique(path.suffix))
    try:
        yield part
        os.replace(part, path)
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(part), os.fspath(path)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        part.unlink(missing_ok=True)


def save_figure(figure: Any, path: StrPath, dpi: int) -> None:
    """Write a matplotlib Figure as the ending of its file says; UnknownName for one that matplotlib does not write."""
    ending, known = os.path.splitext(os.fspath(path))[1], figure.canvas.get_supported_filetypes()
    if ending.removeprefix(".").lower() not in known:
        raise UnknownName("file format of a figure", ending or os.fspath(path), [f".{kind}" for kind in known])
    with replacing(path) as part:
        if ending.lower() == ".png" and hasattr(figure.canvas, "buffer_rgba") and not _adapted():
            _write_png(figure, part, dpi)
        else:
            figure.savefig(part, dpi=dpi)


def _adapted() -> bool:
    """Whether settings of matplotlib change what savefig writes."""
    from matplotlib import rcParams

    usual = {"bbox": None, "facecolor": "auto", "edgecolor": "auto", "transparent": False}
    settings: Any = rcParams
    return any(settings[f"savefig.{name}"] != value for name, value in usual.items())


def _write_png(figure: Any, path: Path, dpi: int) -> None:
    """The picture that savefig writes, in half the time: that draws twice where there is a layout to find, and writes
    how opaque every pixel is where all are."""
    from matplotlib import __version__ as version
    from PIL import Image, PngImagePlugin

    before = figure.dpi
    try:
        figure.set_dpi(dpi)
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())
    finally:
        figure.set_dpi(before)
    opaque = (pixels[..., 3] == 255).all()
    facts = PngImagePlugin.PngInfo()
    facts.add_text("Software", f"Matplotlib version{version}, https://matplotlib.org/")
    picture = Image.fromarray(pixels[..., :3] if opaque else pixels)
    picture.save(path, format="png", dpi=(dpi, dpi), pnginfo=facts, compress_type=3)  # runs alone: lines are that


def behind(path: StrPath) -> Path:
    """The file that a link leads to, there or not, and which os.replace would leave as it is; else the path itself."""
    return Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)


def unique(suffix: str = "") -> str:
    """A short name that no other thread or process uses, hidden, with this ending: some writers look at it."""
    return f".{secrets.token_hex(8)}.part{suffix if len(suffix) <= 8 else ''}"


@contextmanager
def together(folder: StrPath) -> Iterator[Path]:
    """Path of a folder whose files take their places in `folder`, which is made, all at the end; gone if anything
    fails, and then `folder` is as it was.

    The files are made inside `folder`, as it may be a disk of its own, where nothing can be moved to from outside. An
    OSError names the places the files were meant for.
    """
    folder = Path(folder)
    made = [f for f in (folder, *folder.parents) if not f.exists()]
    part = folder / unique()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.mkdir()
        yield part
        places = {f: folder / f.relative_to(part) for f in sorted(part.rglob("*")) if not f.is_dir()}
        taken = next((place for place in places.values() if place.is_dir()), None)
        if taken:
            raise IsADirectoryError(0, "is a folder, and would be a file", str(taken))
        with watched(hold=True):  # no Ctrl-C between one file and the next
            for file, place in places.items():
                place.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, behind(place))
    except OSError as error:
        for name in ("filename", "filename2"):
            if isinstance(found := getattr(error, name), (str, os.PathLike)):
                setattr(error, name, os.fspath(found).replace(str(part), str(folder)))
        raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
        for f in made:  # those that are empty
            with suppress(OSError):
                f.rmdir()


def write_bytes(path: StrPath, data: bytes) -> None:
    """Write a file in one step; the folder is made."""
    with replacing(path) as part:
        part.write_bytes(data)


def write_text(path: StrPath, text: str) -> None:
    """Write a UTF-8 text file in one step; the folder is made."""
    write_bytes(path, text.encode("utf-8"))


def write_csv(path: StrPath, rows: Iterable[Iterable[Any]]) -> None:
    """Write rows, the first of them the headings, as a CSV in one step, its texts as csv_cell has them; the folder is
    made."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([map(csv_cell, row) for row in rows])
    write_text(path, text.getvalue())


def read_bytes(path: StrPath, most: int = MAX_BYTES) -> bytes:
    """What is in a file; FileError if it is no regular file or larger than `most` bytes, OSError if it is not
    there or a folder."""
    source = os.fspath(path)
    try:
        found = os.stat(source)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), source)
        if not stat.S_ISREG(found.st_mode):  # a pipe or a device may have no end
            raise FileError(source, ["is no regular file"])
        if found.st_size > most:
            raise FileError(source, [f"is larger than {most / 1e6:g} MB"])
        with open(source, "rb") as file:
            return file.read(found.st_size)
    except ValueError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(repr(source), [f"no file can have this name: {error}"]) from None


def read_text(path: StrPath, most: int = MAX_BYTES) -> str:
    """Text of a UTF-8 file, with a byte order mark or without, its ends of lines as they are; errors as read_bytes."""
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text: {error.reason} at byte {error.start}"
        raise FileError(os.fspath(path), [problem]) from None


def read_json(path: StrPath, most: int = MAX_BYTES) -> Any:
    """What a JSON file holds; FileError with its line where it is none, is nested too deeply, or has a key twice."""
    return parsed_json(os.fspath(path), read_text(path, most))


def parsed_json(source: str, text: str) -> Any:
    """What a JSON text holds; errors, as those of read_json, name `source`."""
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _once(source, pairs))
    except json.JSONDecodeError as error:
        raise FileError(f"{source}:{error.lineno}", [f"not JSON: {error.msg}"]) from None
    except RecursionError:
        raise FileError(source, ["its JSON is nested too deeply"]) from None
    except ValueError as error:  # an integer of thousands of digits
        if isinstance(error, FileError):
            raise
        raise FileError(source, [f"not JSON that can be read: {error}"]) from None


def read_npz(path: StrPath, what: str) -> dict[str, Any]:
    """{name: array} of an npz file, which may hold numbers and texts, no objects; FileError for all else. what: of
    which it is, for messages."""
    source = os.fspath(path)
    data = io.BytesIO(read_bytes(source))
    try:
        _bound(source, what, data)
        data.seek(0)
        with np.load(data, allow_pickle=False) as arrays:
            return dict(arrays)
    except FileError:
        raise
    except Exception as error:  # of zip, its compressors, numpy's headers: each has its own
        raise FileError(source, [f"not an npz file of a {what}: {error}"]) from error


def _bound(source: str, what: str, data: io.BytesIO) -> None:
    """Nothing is unpacked that is larger than such files are, or that claims to be larger than it is."""
    with zipfile.ZipFile(data) as archive:
        members = archive.infolist()
        if len({m.filename for m in members}) != len(members):
            raise FileError(source, ["two of its tables have one name"])
        whole = sum(m.file_size for m in members)
        if whole > min(MAX_BYTES, max(50e6, 100 * len(data.getbuffer()))):
            raise FileError(source, [f"it would unpack to {whole / 1e6:g} MB, which no {what} of its size does"])
        for member in members:
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                read: Any = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                shape, _, dtype = read[version](file)
                if int(np.prod([int(x) for x in shape], dtype=object)) * dtype.itemsize > member.file_size:
                    raise FileError(source, [f"table {member.filename!r} says that it has the shape {shape}"])


def _once(source: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        keys = [k for k, _ in pairs]
        twice = next(k for k in keys if keys.count(k) > 1)
        raise FileError(source, [f"{twice!r} is there twice; which one counts cannot be known"])
    return out
