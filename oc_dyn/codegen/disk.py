"""Writing the files of a folder all or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import ModelError
from ..files import together
from ..types import StrPath


def write_texts(where: str, folder: StrPath, texts: Mapping[str, str]) -> None:
    """Write {file: text} into a folder, which is made: all of them take their places at the end.

    Raises ModelError, which starts with `where`, if the folder cannot be written to; what was in it then stays.
    """
    folder = Path(folder).resolve()
    try:
        with together(folder) as part:
            for file, text in texts.items():
                (part / file).write_text(text, encoding="utf-8")
    except OSError as error:
        named = error.filename2 or error.filename or folder  # a full disk: none
        problem = f"{error.strerror or error}: {named}; give another folder"
        raise ModelError(f"{where} into {folder}", [problem]) from None
