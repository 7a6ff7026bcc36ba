"""Writing the files of a folder all or not at all."""

import os
import shutil
from pathlib import Path

from ..errors import ModelError
from ..interrupts import watched


def write_texts(where, folder, texts):
    """Write {file: text} into a folder, which is made: all into one beside it, and then each to its place in one step.

    Raises ModelError, which starts with `where`, if the folder cannot be written to; what was in it then stays.
    """
    folder = Path(folder).resolve()
    beside = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside.mkdir(exist_ok=True)
        for file, text in texts.items():
            (beside / file).write_text(text, encoding="utf-8")
        if not folder.exists():
            os.replace(beside, folder)
            return
        with watched(hold=True):  # no Ctrl-C between one file and the next
            for file in texts:
                os.replace(beside / file, folder / file)
    except OSError as error:
        problem = f"{error.strerror}: {error.filename}; give another folder"
        raise ModelError(f"{where} into {folder}", [problem]) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
