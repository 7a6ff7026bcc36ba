"""Results in one file of SQLite: whole after every row, for several programs at once, other versions' beside ours."""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from .errors import ShapeError
from .files import behind
from .types import StrPath

_ID = 0x6F63647E  # "ocd~", in the head of the file: that it is ours
_COLUMNS = (
    "key", "function", "version", "point", "arguments", "status", "seconds", "error", "kind", "result", "note",
    "written", "hash",
)  # fmt: skip
_TABLE = f"""CREATE TABLE IF NOT EXISTS results ({_COLUMNS[0]} TEXT PRIMARY KEY, {", ".join(_COLUMNS[1:])});
CREATE INDEX IF NOT EXISTS places ON results (function, point)"""
_WAIT = 60.0  # seconds that a writer waits for others
KEPT = "what was written before is kept, and the same call resumes after it"


class Store:
    """Rows {column: value} by key in a file, which is made; see _COLUMNS. Close it, or use it within closing(...).

    known: whether something beside the file tells that it is ours, so that one that is none any more is set aside under
    another name, with a warning and without what is whole in it being lost. Raises ShapeError for a file of another
    kind, OSError where it cannot be read or written.
    """

    def __init__(self, path: StrPath, known: bool = False) -> None:
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = behind(path)
        _check_kind(path)
        with _as_os_errors(self.path), _alone_in(self.path.parent):
            self._open(known)

    def _open(self, known: bool) -> None:
        saved = self._set_aside() if self._is_damaged(known) else []
        self.connection = self._connected()
        try:
            for statement in ("BEGIN IMMEDIATE", *_TABLE.split(";"), f"PRAGMA application_id = {_ID}", "COMMIT"):
                self.connection.execute(statement)
            for row in saved:
                self.write(row)
        except BaseException:
            self.connection.close()
            raise

    def close(self) -> None:
        """Close the file; what was written stays."""
        self.connection.close()

    def read(self, key: str) -> dict[str, Any] | None:
        """The row of a key; None if there is none. One that is damaged is none either, and a warning tells so."""
        found = self.rows("key = ?", key)
        return found[0] if found else None

    def rows(self, where: str = "1", *given: Any, warn: bool = True) -> list[dict[str, Any]]:
        """All rows for which an expression of SQL holds, in the order in which they came."""
        with _as_os_errors(self.path):
            select = f"SELECT {', '.join(_COLUMNS)} FROM results WHERE {where} ORDER BY rowid"
            found = [dict(zip(_COLUMNS, row, strict=True)) for row in self.connection.execute(select, given)]
        whole = [row for row in found if _is_whole(row)]
        if warn and len(whole) < len(found):
            lost = len(found) - len(whole)
            warnings.warn(f"{self.path}: {lost} damaged rows are left out and computed again", stacklevel=3)
        return whole

    def write(self, row: dict[str, Any], replace: bool = False) -> dict[str, Any]:
        """Keep a row, and return what is kept under its key: what was done before stays, unless it is to be replaced.
        It is on the disk when this returns, whole or not at all."""
        row = {**dict.fromkeys(_COLUMNS), "written": time.time(), **row}
        row["hash"] = _hash(row)
        with _as_os_errors(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                there = next(iter(self.rows("key = ?", row["key"], warn=False)), None)
                if there is None or replace or there["status"] != "done":
                    marks = ", ".join("?" * len(_COLUMNS))
                    self.connection.execute(
                        f"INSERT OR REPLACE INTO results ({', '.join(_COLUMNS)}) VALUES ({marks})",
                        [row[name] for name in _COLUMNS],
                    )
                    there = row
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
        return there

    # -- what the file is -----------------------------------------------------------------------------------------

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)

    def _is_damaged(self, known: bool) -> bool:
        """Whether the file was ours and is none any more; raises ShapeError if it is something else."""
        if not self.path.exists() or not self.path.stat().st_size:
            return False
        with closing(self._connected()) as connection:
            try:  # what a writer that was killed has left half done is undone here
                number = connection.execute("PRAGMA application_id").fetchone()[0]
                whole = connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
                if number == _ID:
                    if whole:
                        self._check_columns(connection)
                    return not whole
                known = known and not (whole and _head(self.path) is not None)  # short files pass for empty ones
            except sqlite3.OperationalError:  # locked, no right, a disk that fails
                raise
            except sqlite3.DatabaseError:
                known = known or _head(self.path) == _ID
        if not known:
            raise ShapeError(f"{self.path}: it is not a file of results that oc_dyn wrote; it is left as it is: "
                             "give another name")  # fmt: skip
        return True

    def _check_columns(self, connection: sqlite3.Connection) -> None:
        there = [row[1] for row in connection.execute("PRAGMA table_info(results)")]
        missing = [name for name in _COLUMNS if name not in there]
        if there and missing:
            raise ShapeError(f"{self.path}: its table results has no {', '.join(missing)}, so that another version of "
                             "oc_dyn or another program made it; it is left as it is: give another name")  # fmt: skip

    def _set_aside(self) -> list[dict[str, Any]]:
        """Rename the damaged file; returns the rows in it that are whole."""
        name = aside(self.path, "damaged")
        journal = self.path.with_name(f"{self.path.name}-journal")  # belongs to the damaged file alone
        if journal.exists():
            os.rename(journal, f"{name}-journal")
        warnings.warn(f"{self.path}: it is damaged and was set aside as {name.name}; what is not whole in it is "
                      "computed again", stacklevel=6)  # fmt: skip
        saved = []
        try:
            with closing(sqlite3.connect(f"{name.resolve().as_uri()}?immutable=1", uri=True)) as connection:
                connection.execute("PRAGMA writable_schema = ON")  # read on where its list of tables is damaged
                for row in connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM results"):
                    row = dict(zip(_COLUMNS, row, strict=True))
                    saved += [row] if _is_whole(row) else []
        except (sqlite3.Error, UnicodeDecodeError):
            pass  # as far as it could be read
        return saved


def _check_kind(path: Path) -> None:
    """Raise ShapeError for what is no file, nor to become one."""
    if path.is_symlink() and not path.exists() and not Path(os.path.realpath(path)).parent.is_dir():
        kind = f"a link to {os.path.realpath(path)}, whose folder is not there"
    elif path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device"
    else:
        return
    raise ShapeError(f"{path}: it is {kind}, expected a file of results or nothing; give another name")


def aside(path: Path, why: str) -> Path:
    """Give a file the first free name NAME.WHY-1, -2, ...; returns it."""
    count = 1
    while (name := path.with_name(f"{path.name}.{why}-{count}")).exists():
        count += 1
    os.rename(path, name)
    return name


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Other processes that want the same wait: a file is looked at, set aside and made anew by one of them. Windows
    renames no file that another one has open."""
    lock = None
    try:
        if fcntl is not None:
            with suppress(OSError):  # no right to read it, a file system without locks
                lock = os.open(folder, os.O_RDONLY)
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        if lock is not None:
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_UN)  # not left to os.close: a process that was forked has it open, too
            os.close(lock)


def _head(path: Path) -> int | None:
    """The number that stands for the kind in the head of a file of SQLite."""
    with open(path, "rb") as file:
        head = file.read(100)
    return int.from_bytes(head[68:72], "big") if head.startswith(b"SQLite format 3\0") else None


def _is_whole(row: dict[str, Any]) -> bool:
    return row["hash"] == _hash(row)


def _hash(row: dict[str, Any]) -> str:
    told = "\0".join(f"{name}={row[name]!r}" for name in _COLUMNS if name != "hash")
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@contextmanager
def _as_os_errors(path: Path) -> Iterator[None]:
    """Errors of SQLite as OSError that names the file and says what became of the rest."""
    kinds = (
        (("SQLITE_FULL", "full"), errno.ENOSPC),
        (("SQLITE_BUSY", "SQLITE_LOCKED", "locked"), errno.EBUSY),
        (("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH", "readonly"), errno.EACCES),
    )
    try:
        yield
    except sqlite3.DatabaseError as error:
        told = f"{getattr(error, 'sqlite_errorname', '')} {error}"
        number = next((n for words, n in kinds if any(word in told for word in words)), errno.EIO)
        raise OSError(number, f"{error}; {KEPT}", str(path)) from error
