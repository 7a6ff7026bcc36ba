"""What made a result: the command, the versions, the machine and the state of the code, as a JSON file beside it.

Nothing in it names a person, a computer or a folder of one: two people who run the same command on the same kind of
machine get the same facts but for the date.
"""

import os
import platform
import re
import shlex
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import casadi as ca
import numpy as np

from .._version import __version__
from ..files import write_text
from ..text import json_text

_PACKAGE = Path(__file__).resolve().parents[1]
_ABSOLUTE = re.compile(r"(?<![\w.:/\\~])(?:~/|[A-Za-z]:[\\/]|/(?=[\w.~]))[^\s,;'\"]*")


def manifest(command, **facts):
    """Facts about a run, to write beside its results with write_json.

    command: what was typed, a text or a list of words. facts: anything else worth keeping (settings, figures); numpy
    values are fine. Absolute paths, there or in the command, are cut down to what lies below the current folder, or
    to the file name. Returns a dict: command, date (UTC, ISO 8601), versions, machine, git (commit and whether the
    code was changed since; None if this code is not under git), then the facts.
    """
    return {
        "command": _portable(command) if isinstance(command, str) else shlex.join(map(_portable_word, command)),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {
            "oc_dyn": __version__,
            "casadi": ca.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "machine": machine(),
        "git": git_state(),
        **_plain(facts),
    }


def machine():
    """Kind of machine, without its name: system, architecture, model of the processor if it can be read, cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"system": platform.system(), "architecture": platform.machine(), "cpu": _cpu_model(), "cores": cores}


def git_state(folder=_PACKAGE):
    """{"commit", "dirty"} of the checkout that tracks `folder`; None if none does. Changed results are not dirt."""
    if not _git(folder, "ls-files", "--", "."):
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    return {"commit": commit, "dirty": bool(_git(folder, "status", "--porcelain", "--", ":/", ":(top,exclude)results"))}


def write_json(path, data):
    """Write data as JSON, indented, in one step: a reader sees the old file or the new one, never half of one.

    Numpy and CasADi numbers are fine; numbers that are not finite become null, absolute paths as in `manifest`.
    """
    write_text(path, json_text(_plain(data), indent=2, allow_nan=False) + "\n")


def _git(folder, *arguments):
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _cpu_model():
    try:
        if sys.platform == "linux":
            found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
            return found.group(1).strip() if found else None
        if sys.platform == "darwin":
            done = subprocess.run(
                ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, timeout=10, check=False
            )
            return done.stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        return None
    return os.environ.get("PROCESSOR_IDENTIFIER") or platform.processor() or None


def _portable(text):
    """Text with every absolute path in it made relative to the current folder, or cut to its last part."""
    return _ABSOLUTE.sub(lambda found: _relative(found.group()), text)


def _portable_word(word):
    """The same for one word of a command, NAME=PATH included, where blanks belong to the path."""
    head, equals, tail = str(word).rpartition("=")
    tail = _relative(tail) if os.path.isabs(os.path.expanduser(tail)) else _portable(tail)
    return _portable(head) + equals + tail


def _relative(path):
    path = Path(os.path.expanduser(path))
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.name


def _plain(value):
    """Value in types that JSON knows; numbers that are not finite become None."""
    if isinstance(value, dict):
        return {str(key): _plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(x) for x in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, ca.DM):
        return _plain(value.full().tolist())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, Path):
        return _portable_word(value)
    if isinstance(value, str):
        return _portable(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    return _portable(str(value))
