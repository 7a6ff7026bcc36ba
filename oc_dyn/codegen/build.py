"""Finding a C compiler, running it, and loading what it made."""

from __future__ import annotations

import ctypes
import math
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import casadi as ca

from ..compiled_files import built, cache_folder, digest
from ..errors import ShapeError, SolveError
from ..interrupts import LONGEST, command
from ..numbers import shortened
from ..types import StrPath

Flags: TypeAlias = str | Sequence[str]
Command: TypeAlias = str | os.PathLike[str] | Sequence[str]

FLAGS = ("-O3",)
FAST_MATH = {"-Ofast", "-ffast-math", "-funsafe-math-optimizations"}
REORDERING = {*FAST_MATH, "-fassociative-math"}  # they would ruin our reduction of angles
COMPILERS = ("cc", "gcc", "clang")
TIME_LIMIT = 600.0  # [s] of a run of the compiler: -O3 takes minutes over the longest Functions
_ASKED = 30.0  # [s] for its version, which takes milliseconds
_READ_BY_COMPILERS = (  # environment variables: folders of headers and libraries, parts of the compiler, options
    "CPATH C_INCLUDE_PATH LIBRARY_PATH COMPILER_PATH GCC_EXEC_PREFIX CCC_OVERRIDE_OPTIONS SDKROOT "
    "MACOSX_DEPLOYMENT_TARGET NIX_CFLAGS_COMPILE NIX_LDFLAGS"
).split()


def find_compiler(compiler: Command | None = None) -> list[str]:
    """Command of a C compiler, as a list of words: the one given, or $CC, cc, gcc, clang, whichever is there.

    Raises SolveError that says what was looked for.
    """
    if compiler is not None:
        words = _words("compiler", compiler)
        if not words or _which(words[0]) is None:
            raise SolveError(f"no C compiler {compiler!r} was found; give the command or path of one as compiler=")
        return words
    own = os.environ.get("CC", "").strip()
    for words in (*([_words("$CC", own)] if own else []), *([name] for name in COMPILERS)):
        if words and _which(words[0]):
            return words
    tried = ", ".join([f"$CC ({own})" if own else "$CC (not set)", *COMPILERS])
    raise SolveError(f"no C compiler was found; looked for {tried}; install one, or name one by compiler= or $CC")


def _words(what: str, command: Command) -> list[str]:
    """A command with its options, or a path, which may have blanks in it, as a list."""
    if not isinstance(command, (str, os.PathLike)):
        try:
            return [str(word) for word in command]
        except TypeError:
            kind = type(command).__name__
            raise ShapeError(f"{what} is a {kind}, expected a command, a path, or a list of words") from None
    command = os.fspath(command)
    try:
        return [command] if _which(command) else shlex.split(command)
    except ValueError as error:  # a quotation mark without its second
        said = f"{error}; quote its words as in a shell"
        raise SolveError(f"no C compiler {command!r} was found ({what}): {said}") from None


def _which(word: str) -> str | None:
    try:
        return shutil.which(word)
    except ValueError:  # a name with a NUL
        return None


def checked_time_limit(where: str, time_limit: Any) -> float | None:
    """Seconds as a float, None for no limit; ShapeError for what is no positive number."""
    if time_limit is None:
        return None
    valid = isinstance(time_limit, (int, float)) and not isinstance(time_limit, bool) and 0 < time_limit < math.inf
    if not valid:
        raise ShapeError(f"{where}: time_limit is {time_limit!r}, expected a positive number of seconds, or None")
    return float(min(time_limit, LONGEST))


def checked_flags(where: str, flags: Any) -> list[str]:
    """Flags of a compiler as a list of words; ShapeError for what is neither a text nor several."""
    words = [flags] if isinstance(flags, str) else flags
    try:
        if not isinstance(words, bytes) and all(isinstance(word, (str, os.PathLike)) for word in words):
            return [str(word) for word in words]
    except TypeError:
        pass
    raise ShapeError(f'{where}: flags is {shortened(flags)}, expected a text or several, as ("-O3", "-march=native")')


def run_compiler(words: Sequence[str], folder: StrPath | None = None, time_limit: float | None = TIME_LIMIT) -> str:
    """Output of a command of a compiler; SolveError with its own words if it fails, or takes longer than time_limit
    [s]."""
    status, out, err = run(words, folder, time_limit)
    if status:
        raise SolveError(f"{shlex.join(words)} ended with status {status}:\n{err.strip()[:2000]}")
    return out


def run(
    words: Sequence[str],
    folder: StrPath | None = None,
    time_limit: float | None = TIME_LIMIT,
    env: Mapping[str, str] | None = None,
) -> tuple[int, str, str]:
    """(status, output, errors) of a command, as texts.

    At time_limit [s], and when this thread is interrupted, it is ended with all that it has started: what a compiler
    leaves running would hold its pipes open, and so the caller. Raises SolveError.
    """
    try:
        done = command(words, timeout=time_limit, cwd=folder, env=env)
    except subprocess.TimeoutExpired:
        said = f"{shlex.join(words)} did not end within {time_limit:g} s; give more by time_limit="
        raise SolveError(said, status="time_limit") from None
    except (OSError, ValueError) as error:
        raise SolveError(f"{shlex.join(words)} cannot be run: {error}") from None
    return done.returncode, done.stdout, done.stderr


def library(
    texts: Mapping[str, str],
    flags: Flags = FLAGS,
    compiler: Command | None = None,
    cache: StrPath | None = None,
    time_limit: float | None = TIME_LIMIT,
) -> Path:
    """Path of the shared library of C texts {file: text}, compiled if the cache does not hold it as it was written.

    time_limit [s]: as of run_compiler. Raises SolveError if compiling fails, ModelError for the cache folder.
    """
    words = find_compiler(compiler)
    flags = checked_flags("compile", flags)
    folder = cache_folder(cache)
    name = f"oc_dyn{suffix()}"
    position = [] if sys.platform == "win32" else ["-fPIC"]
    # The key holds all that decides what the library does: every text; the commands as they are run; which file the
    # compiler is; the macros it defines, which tell its version and, with -march=native, the processor; what the flags
    # and the environment let it read. Versions of oc_dyn and CasADi show in the texts.
    lines = _lines(words, [*flags, *position], list(texts), name)
    read = _read([*words[1:], *flags])
    key = digest([list(texts.items()), lines, sys.platform, _compiler(words, flags, time_limit), read])

    def make(place: str) -> Path:
        for file, text in texts.items():
            Path(place, file).write_text(text, encoding="utf-8")
        for line in lines:
            run_compiler(line, place, time_limit)
        return Path(place, name)

    return built(folder, "oc_dyn", key, make, suffix(), shlex.join(words))


def _lines(words: list[str], flags: list[str], files: list[str], name: str) -> list[list[str]]:
    """Commands that make a library of C files."""
    if not FAST_MATH.intersection([*words, *flags]):
        return [[*words, *flags, "-shared", "-o", name, *files, "-lm"]]
    # linked with these flags, gcc's library would make the whole process round small numbers to zero when it loads
    others = [word for word in [*words, *flags] if word not in FAST_MATH]
    objects = [str(Path(file).with_suffix(".o")) for file in files]
    return [[*words, *flags, "-c", *files], [*others, "-shared", "-o", name, *objects, "-lm"]]


def _compiler(words: Sequence[str], flags: Sequence[str], time_limit: float | None) -> list[Any]:
    """What tells compilers apart: their file, the macros they define, or what they say of themselves."""
    limit = _ASKED if time_limit is None else min(_ASKED, time_limit)
    path = os.path.realpath(_which(words[0]) or words[0])
    file = os.stat(path)
    try:
        macros = run_compiler([*words, *flags, "-dM", "-E", "-x", "c", os.devnull], None, limit)
    except SolveError as error:
        if error.status == "time_limit":
            raise
        # no macros, so nothing tells what `native` stands for: then a library is for this machine alone
        macros = [run_compiler([*words, "--version"], None, limit), platform.node(), platform.machine()]
    return [path, file.st_size, file.st_mtime_ns, macros]


def _read(flags: Sequence[str]) -> list[Any]:
    """Variables that compilers read, and a digest of each file that the flags name: -include, @options, profiles."""
    names = [n for flag in flags for n in (flag, flag.removeprefix("@"), flag.rpartition("=")[2])]
    files = [n for n in dict.fromkeys(names) if n and "\0" not in n and os.path.isfile(n)]
    return [[os.environ.get(n) for n in _READ_BY_COMPILERS], [[n, digest(Path(n).read_bytes())] for n in files]]


def loaded(name: str, path: StrPath) -> ca.Function:
    """casadi.Function `name` of a shared library; SolveError if this system does not load it."""
    try:
        with _same_rounding():
            return ca.external(name, str(path))
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise SolveError(_unloadable(path, reason)) from None


def opened(path: StrPath) -> ctypes.CDLL:
    """ctypes.CDLL of a shared library; SolveError if this system does not load it."""
    try:
        with _same_rounding():
            return ctypes.CDLL(str(path))
    except OSError as error:
        raise SolveError(_unloadable(path, error)) from None


@contextmanager
def _same_rounding() -> Iterator[None]:
    """Small numbers stay what they are, whatever a library sets when it is loaded: one that a script of the user has
    linked with -ffast-math, where no command shows it."""
    kept = ctypes.create_string_buffer(512)  # more than any fenv_t takes
    try:
        own = ctypes.CDLL(None)
        found = own.fegetenv(kept) == 0
    except (OSError, TypeError, AttributeError):  # Windows
        found = False
    try:
        yield
    finally:
        if found:
            own.fesetenv(kept)


def _unloadable(path: StrPath, reason: object) -> str:
    if not Path(path).exists():
        return f"the library {path} was removed before it could be loaded; call again, and it is compiled again"
    hint = "where its disk forbids to run code (noexec), name another folder by cache= or $OC_DYN_CACHE"
    return f"the library {path} was compiled, but cannot be loaded; {hint}: {str(reason)[-600:]}"


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def suffix() -> str:
    """Ending of shared libraries."""
    return {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
