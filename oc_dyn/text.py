"""Text from outside on its way into a file or a terminal: one function for each target.

Names of robots, joints, links and frames, units, titles, paths and what errors quote of a file may hold anything. Each
function below says what it guarantees, whatever the text; none raises. HTML is left to Jinja's own escaping, see
study/html.py; names that become identifiers are refused rather than changed, see codegen/names.py.
"""

import json
import re
import unicodedata
from bisect import bisect
from itertools import accumulate

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|nan)", re.IGNORECASE)
_FORMULA = re.compile(r"'*[=+\-@\t]")
_GUARDED = re.compile(r"'+[=+\-@\t]")
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


def terminal(text):
    r"""One line for a terminal, a log or a table: every character that has no shape of its own (control characters and
    with them line ends and ANSI escapes, marks that turn the direction of writing, invisible ones, halves of
    surrogate pairs) is written out, as \n, \x1b or \u202e. The result can be encoded as UTF-8."""
    text = str(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else _named(c) for c in text)


def terminal_lines(text):
    r"""The same for a text of several lines: its "\n" stay, and its tabs."""
    text = str(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _named(c) for c in text)


def in_columns(rows):
    """Rows of cells as a text, a line each for a terminal; all columns but the last as wide as their widest cell."""
    rows = [[terminal(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(c.ljust(w) for c, w in zip(row, [*widths[:-1], 0], strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


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
    spreadsheets would take for a formula (it begins with = + - @ or a tab) gets an apostrophe in
    front, which `csv_text` takes off again. Control characters but line ends are written out. The cell can be encoded
    as UTF-8, and csv.reader gives it back."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    text = terminal_lines(value)
    return f"'{text}" if _FORMULA.match(text) else text


def csv_text(cell):
    """The text of which `csv_cell` made a cell."""
    return cell[1:] if _GUARDED.match(cell) else cell


def json_text(data, **options):
    r"""JSON that a reader can read: names as they are, but for characters without a shape, which become \u escapes;
    json.loads gives the very same texts back (but two halves of a surrogate pair side by side as the character that
    they make). The result can be encoded as UTF-8. options: as for json.dumps."""
    text = json.dumps(data, ensure_ascii=False, **options)
    return text if text.isascii() else "".join(c if c.isprintable() or c in "\n" else json.dumps(c)[1:-1] for c in text)


def json_line(data):
    r"""The same on one line, such that a program that takes it for a row of a table finds no formula in it: texts hold
    no delimiter of cells, which become \u escapes."""
    return _JSON_TEXT.sub(lambda found: _without_delimiters(found[0]), json_text(data))


def _without_delimiters(text):
    return re.sub("[,;|]", lambda found: f"\\u{ord(found[0]):04x}", text)


def mathtext(text, most=80):
    """Label or title of a matplotlib figure, shown literally: no $ of it begins a formula, an underscore in front does
    not leave it out of a legend, control characters are written out, and it is cut to `most` columns (None: never),
    lest it push the axes out of the figure."""
    text = terminal(text)
    text = (text if most is None else told_apart([text], most)[0]).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def told_apart(names, width):
    """The names, each on one line, cut in the middle to a width in columns of a terminal, at least 3; or to a width
    not far above the least at which names that differ still do."""
    names = [terminal(name) for name in names]
    different = {name: _ends(name) for name in names}
    longest = max((ends[0][-1] for ends in different.values()), default=0)
    while width < longest:
        room = width - 2
        tails = {room // 2, *(room * k // 8 for k in range(9))}
        for tail in sorted(tails, key=lambda tail: abs(2 * tail - room)):  # from the middle outwards
            short = {name: _cut(name, *ends, room - tail, tail) for name, ends in different.items()}
            if len(set(short.values())) == len(different):
                return [short[name] for name in names]
        width += max(1, width // 8)
    return names


def columns(text):
    """Columns a terminal takes for the text: wide letters take two, accents set on a letter none."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(c):
    return 0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1


def _ends(text):
    """(columns before each place in the text and its end, columns behind each place counted from the end)."""
    widths = [_width(c) for c in text]
    return list(accumulate(widths, initial=0)), list(accumulate(reversed(widths), initial=0))


def _cut(text, before, behind, head, tail):
    """The text, or as much of its beginning and its end as fits into so many columns and the two dots between."""
    if before[-1] <= head + tail + 2:
        return text
    return f"{text[: bisect(before, head) - 1]}..{text[len(text) - bisect(behind, tail) + 1 :]}"
