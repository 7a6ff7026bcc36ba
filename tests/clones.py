"""A clone in which commands run as a newcomer runs them, to see whether they change committed results."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def clone(folder):
    """A repository with the project's .gitignore and some results in a new folder, as the current folder; yields the
    path of its results/quick. At its end git sees no file changed and no new one."""
    (folder / "results" / "demo").mkdir(parents=True)
    shutil.copy(_ROOT / ".gitignore", folder)
    shutil.copy(_ROOT / "results" / "demo" / "manifest.json", folder / "results" / "demo")
    _git(folder, "init", "--quiet")
    _git(folder, "add", "--all")
    _git(folder, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "--message", "results")
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield folder / "results" / "quick"
    finally:
        os.chdir(before)
    changed = changes(folder)
    assert changed == "", f"not committed:\n{changed}"


def changes(folder):
    """What git says about changed and new files."""
    return _git(folder, "status", "--porcelain", "--untracked-files=all")


def _git(folder, *words):
    words = ["git", "-C", str(folder), *words]
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout
