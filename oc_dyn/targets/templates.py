"""Templates of this folder."""

from __future__ import annotations

from importlib.resources import files
from string import Template


def filled_here(template: str, **words: object) -> str:
    """Text of a template of this folder with its words filled in."""
    return Template((files(__package__) / f"{template}.in").read_text(encoding="utf-8")).substitute(words)
