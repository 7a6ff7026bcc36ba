"""Parsing of command lines: errors in one line, numbers read strictly."""

import argparse
import os
import re
import shutil
import textwrap

from .errors import ShapeError
from .text import terminal

_FLOAT = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?[0-9]{1,9}")  # nothing here is counted in more digits
# what errors advise in Python, as options of the command
_ADVICE = (
    (re.compile(r"ignore=\('(\w+)',\)"), r"--ignore \1"),
    (re.compile(r"\(Limits\.of\(robot\)\.updated\(\{\.\.\.\}\)\)"), "(--v, --limits FILE)"),
    (re.compile(r"a duration (?=with|and)"), "--duration "),
    (re.compile(r"objective='effort'"), "--objective effort"),
    (re.compile(r"limits=replace\(Limits\.of\(robot\), \w+=\.\.\.\) or (?=--)"), ""),
)


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose error messages are one line; it refuses words that argparse cannot handle."""

    def parse_args(self, args, namespace=None):
        """As in argparse, after words that no file and no name can be were refused."""
        for word in args:
            option, _, value = word.partition("=")
            if "\0" in word:
                self.error(f"argument {terminal(word)}: it contains a NUL character, which no file or name can")
            try:
                os.fsencode(word)
            except UnicodeEncodeError:
                self.error(f"argument {terminal(word)}: it is no text that a command line can contain")
            if option.startswith("-") and value == "--":  # argparse drops it and finds no value
                self.error(f"argument {option}: got '--', expected a value")
        return super().parse_args(args, namespace)

    def error(self, message):
        """Tells in one line what is wrong, and exits with status 2."""
        self.exit(2, f"{self.prog}: error: {terminal(message)} ({self.prog} --help tells more)\n")


def as_options(text):
    """The text of an error, its advice for Python as options of `oc-dyn plan`."""
    for pattern, option in _ADVICE:
        text = pattern.sub(option, text)
    return text


def width_of(stream):
    """Columns of the terminal behind a stream, None where there is none: lines in files and pipes stay whole."""
    try:
        return max(40, shutil.get_terminal_size((80, 24)).columns) if stream.isatty() else None
    except (AttributeError, ValueError):  # no stream of a terminal, or a closed one
        return None


def fitted(text, width):
    """The lines of a text, those that are wider broken at blanks; what follows stands below their last column."""
    out = []
    for line in text.split("\n"):
        if len(line) <= width:
            out.append(line)
            continue
        indent = len(line) - len(line.lstrip(" "))
        gaps = [m.end() for m in re.finditer(r" {2,}", line) if indent < m.end() <= width // 2]
        below = " " * (gaps[-1] if gaps else indent + 4)
        keep = {"break_long_words": False, "break_on_hyphens": False, "drop_whitespace": True}
        out += textwrap.wrap(line, width, subsequent_indent=below, replace_whitespace=False, **keep)
    return "\n".join(out)


def whole_number(text):
    """An int; ValueError for a text with other characters than digits and a sign, such as 1_000."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"not a whole number of at most nine digits: {text!r}")
    return int(text)


def floating_number(text):
    """A float, of ASCII digits without underscores; ValueError otherwise."""
    if not _FLOAT.fullmatch(text):
        raise ValueError(f"could not convert string to float: {text!r}")
    return float(text)


def numbers_of(text):
    """Numbers of a text with blanks, commas, semicolons or brackets between and around them."""
    for character in "[](),;":
        text = text.replace(character, " ")
    return [floating_number(x) for x in text.split()]


def named_numbers(option, words):
    """{name: [numbers]} of words NAME=NUMBERS; ShapeError, which names the option, for others."""
    out = {}
    for word in words:
        name, equals, text = word.partition("=")
        try:
            values = numbers_of(text)
        except ValueError:
            values = []
        if not (name and equals and values):
            raise ShapeError(f"{option}: got {word!r}, expected NAME=NUMBER")
        if name in out:
            raise ShapeError(f"{option}: {name!r} is given twice")
        out[name] = values
    return out
