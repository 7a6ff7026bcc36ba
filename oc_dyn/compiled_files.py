"""A folder of compiled files that several processes may share: nothing is loaded from it that others could have put
there, or that is not as it was written."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .errors import ModelError, ModelWarning, SolveError, warn
from .types import StrPath
from .validation import switch

ENVIRONMENT = "OC_DYN_CACHE"
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_READ = os.O_RDONLY | sum(getattr(os, x, 0) for x in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))  # no link, no pipe
_ANOTHER = f"name another folder by cache= or ${ENVIRONMENT}"


def digest(x: Any) -> str:
    """Digest of bytes, or of texts and numbers in lists, as 32 hexadecimal digits."""
    data = x if isinstance(x, bytes) else json.dumps(x).encode()
    return hashlib.sha256(data).hexdigest()[:32]


def cache_folder(cache: StrPath | None = None) -> Path:
    """Where compiled files are kept: the folder given, $OC_DYN_CACHE, or oc_dyn in the user's cache folder.

    It is made for the user alone. Raises ModelError where it cannot be made or written to, and where others could
    write to it: what is in it is run.
    """
    folder = _place(cache)
    try:
        _make(folder)
        _require_own(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        problem = f"it cannot be written to ({error.strerror or error}); {_ANOTHER}"
        raise ModelError(f"cache folder {folder}", [problem]) from None
    return folder


def _place(cache: StrPath | None) -> Path:
    if cache is None:
        cache = _named()
    try:
        if cache is None:
            cache = _of_user() / "oc_dyn"
        return Path(cache).expanduser().resolve()
    except (RuntimeError, ValueError, OSError) as error:  # no such user; a NUL; a loop of links
        shown = "of this user" if cache is None else repr(os.fspath(cache))
        raise ModelError(f"cache folder {shown}", [f"{error}; {_ANOTHER}"]) from None
    except TypeError:
        raise ModelError("cache", [f"got a {type(cache).__name__}, expected the path of a folder"]) from None


def _named() -> str | None:
    """The folder in the environment; a word such as "off" is none: what is compiled has to be somewhere."""
    named = os.environ.get(ENVIRONMENT, "").strip()
    wanted = switch(named)
    if wanted is False:
        problem = "compiled code needs a folder; name one, ./off for one of this name, or set none for the usual one"
        raise ModelError(f"${ENVIRONMENT}", [f"it is {named!r}, but {problem}"])
    return None if wanted else named or None


def _of_user() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):  # others are not valid, says its specification
        return Path(base)
    if os.environ.get("HOME") == "":
        raise RuntimeError("HOME is empty, so there is no folder for caches")
    return Path.home() / ".cache"


def _make(folder: Path) -> None:
    """The folder, and those above it that are not there, for the user alone, whatever the umask lets others do."""
    for place in (*reversed(folder.parents), folder):
        try:
            place.mkdir(mode=0o700)
        except FileExistsError:
            pass
        except OSError:
            if not place.is_dir():
                raise
    if not folder.is_dir():
        raise NotADirectoryError(0, "there is a file of this name")


def _require_own(folder: Path) -> None:
    if os.name != "posix":
        return
    found = os.stat(folder)
    problem = _not_own(found)
    for above in folder.parents:
        mode = os.stat(above).st_mode
        if not problem and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            problem = f"{above} above it can be written to by everyone (mode {stat.S_IMODE(mode):o}), who could move it"
    if problem:
        cure = f"empty it and take others' right to write (chmod go-w), or {_ANOTHER}"
        raise ModelError(f"cache folder {folder}", [f"it is not used, as {problem}; what is in it is run: {cure}"])


def _not_own(found: os.stat_result) -> str:
    """Why others could have written what os.stat found; empty if they could not."""
    if os.name != "posix":
        return ""
    if found.st_uid not in (os.geteuid(), 0):
        return f"it belongs to another user (uid {found.st_uid}, not {os.geteuid()})"
    if found.st_mode & _OTHERS:
        return f"others can write to it (mode {stat.S_IMODE(found.st_mode):o})"
    return ""


def built(folder: Path, name: str, key: str, make: Callable[[str], Path], suffix: str, maker: str) -> Path:
    """Path of the file of this name and key in a cache folder, made if it is not there as it was written.

    make(place) -> path of what it made in the folder `place`. The name of the file contains a digest of its content, so
    that one rename puts both there, and one that was cut, swapped or damaged is seen before it is loaded; it is then
    made again, with a ModelWarning. Processes that want the same one at the same time make it twice, and disturb each
    other in no other way. maker: who makes it, for messages.
    """
    damaged = False
    for path in sorted(folder.glob(f"{name}_{key}_*{suffix}")):
        try:
            problem = _damage(path)
        except OSError:  # another process has removed it since, or it cannot be read now
            continue
        if not problem:
            return path
        damaged = True
        _removed(path)
        warn(ModelWarning(f"{path} is not as it was written: {problem}; it is made again"))
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix="build_", ignore_cleanup_errors=True) as place:
            made = make(place)
            if not made.is_file() or not made.stat().st_size:
                raise SolveError(f"{maker} ended without an error, but wrote nothing")
            os.chmod(made, 0o700)
            # another name than that of a damaged file, which this process may still have loaded under it
            again = f"_{secrets.token_hex(4)}" if damaged else ""
            path = folder / f"{name}_{key}_{digest(made.read_bytes())}{again}{suffix}"
            try:
                os.replace(made, path)
            except OSError:  # Windows, where another process has just made and loaded it
                if _damage(path):
                    raise
    except OSError as error:
        problem = f"{error.strerror or error}, while a file was written there; {_ANOTHER}"
        raise ModelError(f"cache folder {folder}", [problem]) from None
    return path


def require_whole(path: StrPath) -> None:
    """Raise SolveError if a file of a cache folder is not there, or not as it was written."""
    try:
        problem = _damage(Path(path))
    except OSError as error:
        raise SolveError(f"{path} cannot be read ({error.strerror or error}); compile the Function anew") from None
    if problem:
        raise SolveError(f"{path} is not as it was written: {problem}; compile the Function anew")


def _damage(path: Path) -> str:
    """What is wrong with a file of the cache; empty if nothing is. OSError as own_content."""
    data, problem = own_content(path)
    return problem or ("" if digest(data) in path.name else "its content is another")


def own_content(path: Path) -> tuple[bytes, str]:
    """(content, why it must not be used) of a file of a cache folder: one of them is empty.

    Raises OSError where it cannot be read, which says nothing of what is in it: others may remove a file at any time,
    and too many files may be open.
    """
    try:
        with open(os.open(path, _READ), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return b"", "it is no regular file"
            problem = _not_own(found)
            return (b"", problem) if problem else (file.read(), "")
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR):  # a link, a folder
            return b"", str(error.strerror)
        raise


def _removed(path: Path) -> None:
    with suppress(OSError):  # used by another process on Windows: the new one gets another name
        path.unlink()
