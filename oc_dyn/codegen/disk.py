"""Writing the files of a folder all or not at all."""

import os
import shutil
from pathlib import Path

from ..errors import ModelError
from ..interrupts import watched
from ..planning.files import behind, unique


def write_texts(where, folder, texts):
    """Write {file: text} into a folder, which is made: all into one inside it, and then each to its place in one step.

    Inside, as the folder may be a disk of its own, where nothing can be moved to from outside. Raises ModelError, which
    starts with `where`, if the folder cannot be written to; what was in it then stays.
    """
    folder = Path(folder).resolve()
    aside, made = folder / unique(), _missing(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        aside.mkdir()
        for file, text in texts.items():
            (aside / file).write_text(text, encoding="utf-8")
        taken = [file for file in texts if (folder / file).is_dir()]
        if taken:
            raise IsADirectoryError(0, "is a folder, and would be a file", str(folder / taken[0]))
        with watched(hold=True):  # no Ctrl-C between one file and the next
            for file in texts:
                os.replace(aside / file, behind(folder / file))
        made = []
    except OSError as error:
        named = str(error.filename2 or error.filename or folder).replace(str(aside), str(folder))  # a full disk: none
        problem = f"{error.strerror or error}: {named}; give another folder"
        raise ModelError(f"{where} into {folder}", [problem]) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        for place in made:
            _removed_if_empty(place)


def _missing(folder):
    """The folder and those above it that are not there, innermost first."""
    out = []
    for place in (folder, *folder.parents):
        if os.path.lexists(place):
            break
        out.append(place)
    return out


def _removed_if_empty(folder):
    try:
        folder.rmdir()
    except OSError:
        pass
