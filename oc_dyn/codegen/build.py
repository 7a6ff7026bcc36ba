"""Finding a C compiler, running it, and a cache of shared libraries that several processes may share."""

import hashlib
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from ..errors import ModelError, SolveError
from ..interrupts import command

FLAGS = ("-O3",)
COMPILERS = ("cc", "gcc", "clang")
ENVIRONMENT = "OC_DYN_CACHE"


def find_compiler(compiler=None):
    """Command of a C compiler, as a list of words: the one given, or $CC, cc, gcc, clang, whichever is there.

    Raises SolveError that says what was looked for.
    """
    if compiler is not None:
        words = _words(compiler) if isinstance(compiler, (str, os.PathLike)) else [str(word) for word in compiler]
        if not words or shutil.which(words[0]) is None:
            raise SolveError(f"no C compiler {compiler!r} was found; give the command or path of one as compiler=")
        return words
    own = os.environ.get("CC", "").strip()
    for words in (*([_words(own)] if own else []), *([name] for name in COMPILERS)):
        if shutil.which(words[0]):
            return words
    tried = ", ".join([f"$CC ({own})" if own else "$CC (not set)", *COMPILERS])
    raise SolveError(f"no C compiler was found; looked for {tried}; install one, or name one by compiler= or $CC")


def _words(command):
    """A command with its options, or a path, which may have blanks in it."""
    command = os.fspath(command)
    return [command] if shutil.which(command) else shlex.split(command)


def run_compiler(words, folder=None):
    """Run a command of a compiler; SolveError with its own words if it fails."""
    try:
        done = command(words, cwd=folder)
    except OSError as error:
        raise SolveError(f"{shlex.join(words)} cannot be run: {error}") from None
    if done.returncode:
        raise SolveError(f"{shlex.join(words)} ended with status {done.returncode}:\n{done.stderr.strip()[:2000]}")
    return done.stdout


def cache_folder(cache=None):
    """Where compiled libraries are kept: the folder given, $OC_DYN_CACHE, or oc_dyn in the user's cache folder."""
    if cache is None:
        cache = os.environ.get(ENVIRONMENT) or None
    if cache is None:
        home = Path.home()
        if sys.platform == "win32":
            base = os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
        elif sys.platform == "darwin":
            base = home / "Library" / "Caches"
        else:
            base = os.environ.get("XDG_CACHE_HOME") or home / ".cache"
        cache = Path(base) / "oc_dyn"
    folder = Path(cache).expanduser().resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        problem = f"it cannot be written to ({error.strerror}); name another folder by cache= or ${ENVIRONMENT}"
        raise ModelError(f"cache folder {folder}", [problem]) from None
    return folder


def library(texts, flags=FLAGS, compiler=None, cache=None, anew=False):
    """Path of the shared library of C texts {file: text}, compiled if the cache does not hold it, or if `anew`.

    The name comes from all that makes the library what it is: texts, flags, compiler, and the machine that the flags
    make it write for. It is built in a folder of its own and moved to its place in one step, so that processes that
    want the same one at the same time do not disturb each other.
    """
    words = find_compiler(compiler)
    flags = [flags] if isinstance(flags, str) else [str(flag) for flag in flags]
    folder = cache_folder(cache)
    key = hashlib.sha256()
    for piece in (*texts, *texts.values(), *flags, *words, _target(words, flags)):
        key.update(piece.encode("utf-8", "surrogateescape") + b"\0")
    path = folder / f"oc_dyn_{key.hexdigest()[:32]}{_suffix()}"
    if anew or not path.exists():
        with tempfile.TemporaryDirectory(dir=folder, prefix="build_", ignore_cleanup_errors=True) as place:
            for file, text in texts.items():
                Path(place, file).write_text(text, encoding="utf-8")
            position = [] if sys.platform == "win32" else ["-fPIC"]
            run_compiler([*words, *flags, *position, "-shared", "-o", path.name, *texts, "-lm"], place)
            os.replace(Path(place, path.name), path)
    return path


def _target(words, flags):
    """The macros that the compiler defines: its version, and what of this machine the flags let it use."""
    try:
        return run_compiler([*words, *flags, "-dM", "-E", "-x", "c", os.devnull])
    except SolveError:
        return run_compiler([*words, "--version"])


def processors():
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _suffix():
    return {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
