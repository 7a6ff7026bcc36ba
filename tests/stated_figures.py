"""Figures of a page and the tables they are from: footnotes that name table and rows, read and evaluated.

In the text a figure, a range, or a list of them stands right before its mark:

    AD takes 0.83[^order] of it, 2.6 to 3.7[^kim] there, 0.1, 0.2 and 0.3[^list] and less than 0.1 %[^off] here.

    [^order]: growth/growth.csv, instructions of method=taylor, order=12 / method=ad_taylor
    [^kim]: kim/costs.csv, instructions of method=recursive_scalar, robot=panda|humanoid / method=composite by robot
    [^off]: ali/manifest.json#findings, off_parabola of over=order, method=taylor
    [^times]: Kumar and Mueller 2021, section IV

A footnote that starts with a path is a rule: a column of the rows that match all conditions (=, !=, <=, >=; | between
alternatives; the text behind a sign may have commas), as a quotient with / over the row that matches after these
conditions are replaced, and is equal in the columns behind `by`. `largest`, `smallest`, `median` or `number` before the
column takes one figure of all rows, `1000 x` before it is for another unit, and cells may be in %. JSON files are read
as a list of rows behind #, or whole as one row, with dots in names of columns, and places of lists. Other footnotes are
sources of published figures.
"""

import csv
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

NUMBER = r"-?\d+(?: \d{3})+|-?\d+(?:\.\d+)?(?:e-?\d+)?"
_MARKED = re.compile(
    rf"(?P<below>less than )?(?P<first>(?<![\w.])(?:(?:{NUMBER})(?: %)?(?:,|\s(?:to|and))\s)*)(?P<last>{NUMBER})"
    r"(?P<percent> %)?\[\^(?P<mark>[\w-]+)\]"
)
_NOTE = re.compile(r"^\[\^([\w-]+)\]: (.*)$", re.MULTILINE)
_RULE = re.compile(
    r"(?P<path>[\w/]+\.(?:csv|json)(?:#\w+)?), (?:(?P<take>largest|smallest|median|number) (?!\[))?"
    r"(?:(?P<unit>[\d.e-]+) x )?(?:(?P<column>[^=/]+) )?of "
    r"(?P<rows>.+?)(?: / (?:(?P<below>[^=/]+?) of )?(?P<over>.+?)(?: by (?P<by>[\w, ]+))?)?"
)
_CONDITION = re.compile(r"([^=<>!]+)(=|!=|<=|>=)(.*)")
_TAKEN = {"largest": max, "smallest": min, "median": median}
_RESULTS = Path(__file__).resolve().parents[1] / "results"


@dataclass(frozen=True)
class Stated:
    """A figure of the text as it is written, or those of a range or list, and its mark."""

    mark: str
    figures: tuple
    between: bool  # "a to b": the least and the largest of several; else one for all, or one by one
    percent: bool
    below: bool  # "less than"


def split(text):
    """(text without footnotes, {mark: footnote})."""
    notes = _NOTE.findall(text)
    names = [name for name, _ in notes]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"footnotes defined twice: {sorted(twice)}"
    return _NOTE.sub("", text), dict(notes)


def stated(body):
    """All Stated of a text without footnotes."""
    out = []
    for match in _MARKED.finditer(body):
        figures = *re.findall(NUMBER, match["first"]), match["last"]
        between, percent, below = "to" in match["first"].split(), bool(match["percent"]), bool(match["below"])
        out.append(Stated(match["mark"], figures, between, percent, below))
    return out


def unmarked(body):
    """Figures with decimals, or of thousands, that have no mark behind them."""
    body = re.sub(r"`[^`]*`|\]\([^)]*\)|https?://\S+", "", _MARKED.sub("", body))
    return re.findall(r"(?<![\w.])(?:\d+\.\d+|\d{1,3}(?: \d{3})+|\d+e-?\d+)(?!\w|\.\d)", body)


def is_rule(note):
    return re.match(r"[\w/]+\.(csv|json)", note) is not None


def parts(note):
    """What a rule says, by name, its rows as conditions."""
    rule = _RULE.fullmatch(note)
    assert rule, f"not understood: {note}"
    return {**rule.groupdict(), "rows": _conditions(rule["rows"])}


def values(note, results=_RESULTS):
    """The numbers that a footnote takes from its table. AssertionError says what does not match."""
    rule = parts(note)
    rows = table(str(results / rule["path"]))
    wanted = rule["rows"]
    found = [row for row in rows if matches(row, wanted)]
    assert found, f"no row: {note}"
    if rule["take"] == "number":
        return [len(found)]
    column = rule["column"]
    if rule["over"] is None:
        out = [_number(row, column) for row in found]
    else:
        changed = {} if rule["over"] == "same" else _conditions(rule["over"])
        by = [name.strip() for name in (rule["by"] or "").split(",") if name.strip()]
        out = []
        for row in found:
            same = {name: ("=", (row[name],)) for name in by}
            others = [x for x in rows if matches(x, wanted | changed | same)]
            assert len(others) == 1, f"{len(others)} rows to divide by: {note}"
            out.append(_number(row, column) / _number(others[0], rule["below"] or column))
    out = [float(rule["unit"] or 1) * x for x in out]
    return out if rule["take"] is None else [_TAKEN[rule["take"]](out)]


def agrees(figure, found):
    """Whether the figure of a text is what the numbers give at its digits."""
    scale = 100 if figure.percent else 1
    found = [scale * x for x in found]
    if figure.below:
        bound = _value(figure.figures[-1])
        return bound / 10 < max(found) < bound
    if figure.between:
        assert len(figure.figures) == 2, f"a range of {figure.figures}"
        low, high = sorted(figure.figures, key=_value)
        return min(found) < max(found) and _rounded(min(found), low) and _rounded(max(found), high)
    if len(figure.figures) == 1:
        return all(_rounded(x, figure.figures[0]) for x in found)
    return len(found) == len(figure.figures) and all(map(_rounded, found, figure.figures))


@cache
def table(path):
    """Rows {column: text} of a CSV or JSON file."""
    path, _, name = path.partition("#")
    if path.endswith(".csv"):
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    whole = json.loads(Path(path).read_text(encoding="utf-8"))
    return [_flat(row) for row in (whole[name] if name else [whole])]


def _flat(row, head=""):
    out = {}
    for name, x in row.items():
        x = dict(enumerate(x)) if isinstance(x, list) else x
        out |= _flat(x, f"{head}{name}.") if isinstance(x, dict) else {f"{head}{name}": str(x)}
    return out


def _conditions(text):
    """{column: (sign, alternatives)}."""
    out = {}
    for part in re.split(r", (?=[^,]*[^ ,]=)", text):
        condition = _CONDITION.fullmatch(part)
        assert condition, f"no condition: {part}"
        name, sign, value = condition.groups()
        out[name] = sign, tuple(value.split("|"))
    return out


def matches(row, conditions):
    """Whether a row is one of those that are meant."""
    return all(_holds(row, *item) for item in conditions.items())


def _holds(row, name, condition):
    sign, alternatives = condition
    assert name in row, f"no column {name}"
    if sign == "=":
        return row[name] in alternatives
    if sign == "!=":
        return row[name] not in alternatives
    if not row[name]:
        return False
    bound = float(alternatives[0])
    return float(row[name]) <= bound if sign == "<=" else float(row[name]) >= bound


def _number(row, column):
    assert row.get(column), f"no {column} in {row}"
    return number(row[column])


def number(cell):
    """The number of a cell."""
    return float(cell.removesuffix("%")) / (100 if cell.endswith("%") else 1)


def _value(figure):
    return float(figure.replace(" ", ""))


def _rounded(x, figure):
    plain = figure.replace(" ", "")
    if "e" in plain:
        digits = len(plain.partition("e")[0].lstrip("-").replace(".", "")) - 1
        return float(f"{x:.{digits}e}") == float(plain)
    unit = 10.0 ** -len(plain.partition(".")[2])
    return abs(x - float(plain)) <= 0.5 * unit * (1 + 1e-9)
