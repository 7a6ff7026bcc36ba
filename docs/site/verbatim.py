"""Docstrings of the reference as they stand in the code: their formulas are plain text, not Markdown."""

import inspect

import griffe


class Verbatim(griffe.Extension):
    """Puts each docstring into a block of plain text."""

    def on_object(self, *, obj, **_):
        """Of modules, classes, functions and attributes."""
        if obj.docstring and not obj.docstring.value.startswith("```"):
            obj.docstring.value = f"```text\n{inspect.cleandoc(obj.docstring.value)}\n```"
