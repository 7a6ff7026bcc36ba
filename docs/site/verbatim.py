"""Docstrings of the reference as plain text, since their formulas are no Markdown, in lines of any width."""

import inspect
import re

import griffe

# what begins a line of its own: an argument or several, or one of these words
_NEW = re.compile(r"\*{0,2}[A-Za-z_][\w.]*(, \*{0,2}[A-Za-z_.][\w.]*)*( \([^()]*\))?: |(Raises|Warns|Returns|Source)\b")
_LAID_OUT = re.compile(r"\S  +\S")  # columns, or a formula


class Verbatim(griffe.Extension):
    """Puts each docstring into a block of plain text."""

    def on_object(self, *, obj, **_):
        """Of modules, classes, functions and attributes."""
        if obj.docstring and not obj.docstring.value.startswith("```"):
            obj.docstring.value = f"```text\n{flowing(inspect.cleandoc(obj.docstring.value))}\n```"


def flowing(text):
    """The text with what was broken at column 120 joined again, so that it breaks where its reader's screen ends.
    Paragraphs that are laid out, as tables and formulas, stay as they are."""
    return "\n\n".join(map(_paragraph, re.split(r"\n[ \t]*\n", text)))


def _paragraph(text):
    lines = text.split("\n")
    if any(map(_LAID_OUT.search, lines)):
        return text
    out = lines[:1]
    for line in lines[1:]:
        indent, above = _indent(line), _indent(out[-1])
        item = _NEW.match(line.lstrip()) and indent <= above
        if item or indent < above or out[-1].rstrip().endswith(":"):
            out.append(line)
        else:  # goes on with what is above it
            out[-1] = f"{out[-1].rstrip()} {line.lstrip()}"
    return "\n".join(out)


def _indent(line):
    return len(line) - len(line.lstrip())
