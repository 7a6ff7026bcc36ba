"""Text from outside on its way into a file or a terminal: one function for each target.

Names of robots, joints, links and frames, units, titles, paths and what errors quote of a file may hold anything. Each
function below says what it guarantees, whatever the text; none raises. HTML is left to Jinja's own escaping, see
study/html.py; names that become identifiers are refused rather than changed, see codegen/names.py.
"""

import json
import re

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|nan)", re.IGNORECASE)
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


def terminal(text):
    """One line for a terminal, a log or a table: every character that has no shape of its own (control characters and
    with them line ends and ANSI escapes, marks that turn the direction of writing, invisible ones, halves of
    surrogate pairs) is written out, as \\n, \\x1b or \\u202e. The result can be encoded as UTF-8."""
    text = str(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else _named(c) for c in text)


def terminal_lines(text):
    """The same for a text of several lines: its "\\n" stay, and its tabs."""
    text = str(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _named(c) for c in text)


def _named(character):
    return character.encode("unicode_escape").decode("ascii")


def c_comment(text):
    """Part of a C comment that stays within it: one line, in which no comment ends or begins, no line is continued by
    a backslash or the trigraph of one, and nothing runs together with a mark of the comment before or behind it."""
    text = re.sub(r"\?(?=\?)|\*(?=/)|/(?=\*)|[*/\\]$", lambda mark: mark[0] + " ", terminal(text))
    return f" {text}" if text[:1] in ("*", "/") else text


def c_string(text):
    """Literal of a C string, quotes included: its bytes are the text as `terminal` has it in UTF-8, whatever the
    character set of the compiler; no trigraphs. It is a value: a format of printf needs its % doubled besides."""
    out = ""
    for byte in terminal(text).encode("utf-8"):
        character = chr(byte)
        if character in '"\\?':
            out += f"\\{character}"
        else:
            out += character if 32 <= byte < 127 else f"\\{byte:03o}"  # three digits: none that follows joins them
    return f'"{out}"'


def cmake(text):
    """One argument of a CMake command, one element of its lists: as it is where it is plain, else quoted, with no
    variable, escape or semicolon in it that CMake would act on."""
    text = terminal(text)
    if re.fullmatch(r"[A-Za-z0-9_./+-]+", text):
        return text
    return '"' + re.sub(r'([\\"$;])', r"\\\1", text) + '"'


def csv_cell(value):
    """A cell for csv.writer. Numbers, and texts that are numbers, are as they are, minus signs included; a text that
    spreadsheets would take for a formula (it begins with = + - @, a tab or carriage return) gets an apostrophe in
    front, which `csv_text` takes off again. Control characters but line ends are written out. The cell can be encoded
    as UTF-8, and csv.reader gives it back."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    guarded = f"'{value}" if _FORMULA.match(value) else value
    return terminal_lines(guarded)


def csv_text(cell):
    """The text of which `csv_cell` made a cell."""
    return cell[1:] if _GUARDED.match(cell) else cell


def json_text(data, **options):
    """JSON that a reader can read: names as they are, but for characters without a shape, which become \\u escapes;
    json.loads gives the very same texts back. options: as for json.dumps. The result can be encoded as UTF-8."""
    text = json.dumps(data, ensure_ascii=False, **options)
    return text if text.isascii() else "".join(c if c.isprintable() or c in "\n" else json.dumps(c)[1:-1] for c in text)


def json_line(data):
    """The same on one line, such that a program that takes it for a row of a table finds no formula in it: texts hold
    no delimiter of cells, which become \\u escapes."""
    return _JSON_TEXT.sub(lambda found: _without_delimiters(found[0]), json_text(data))


def _without_delimiters(text):
    return re.sub("[,;|]", lambda found: f"\\u{ord(found[0]):04x}", text)


def mathtext(text, most=80):
    """Label or title of a matplotlib figure, shown literally: no $ of it begins a formula, an underscore in front does
    not leave it out of a legend, control characters are written out, and what is longer than `most` characters is cut
    in the middle, lest it push the axes out of the figure."""
    text = cut(terminal(text), most).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def cut(text, most):
    """At most so many characters, at least 3, the middle left out: names of one robot differ at either end."""
    if len(text) <= most:
        return text
    tail = (most - 2) // 2
    return f"{text[: most - 2 - tail]}..{text[len(text) - tail :]}"
