"""report.html of a study: its text, figures, tables and manifest in one file that needs no other."""

import base64
import csv
import json
from pathlib import Path

from ..errors import ShapeError
from ..files import write_text
from ..text import csv_text, terminal_lines

_TEMPLATE = Path(__file__).with_name("report.html")
_MOST = 400  # rows of a table that are shown
_LONG = 12  # characters beyond which a number is shown with five digits


def write_report(folder, name, report, about="", captions=None):
    """Write report.html from the results in the folder of a study; returns its path.

    report: what the study printed, a text that may be empty. about: what the study measures, paragraphs. captions:
    {file: what it shows} of figures and tables. Raises ShapeError without Jinja2 (extra report).
    """
    try:
        from jinja2 import Environment
    except ImportError:
        raise ShapeError("report.html: Jinja2 is not installed; pip install 'oc-dyn[report]'") from None
    folder, captions = Path(folder), captions or {}
    text = (folder / "manifest.json").read_text(encoding="utf-8")
    template = Environment(autoescape=True, trim_blocks=True, finalize=_shown).from_string(
        _TEMPLATE.read_text(encoding="utf-8")
    )
    page = template.render(
        name=name,
        report=report,
        about=[" ".join(paragraph.split()) for paragraph in about.split("\n\n") if paragraph.strip()],
        figures=[
            {"name": p.name, "data": _encoded(p), "caption": captions.get(p.name, "")} for p in _files(folder, "png")
        ],
        tables=[{**_table(p), "caption": captions.get(p.name, "")} for p in _files(folder, "csv")],
        manifest=json.loads(text),
        manifest_text=text,
    )
    write_text(folder / "report.html", page)
    return folder / "report.html"


def _shown(value):
    """Texts without control characters; Jinja escapes the rest."""
    return terminal_lines(value) if type(value) is str else value


def _files(folder, kind):
    return sorted(folder.glob(f"*.{kind}"))


def _encoded(path):
    return base64.b64encode(path.read_bytes()).decode("ascii")


def _table(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    fields = rows[0] if rows else []
    columns = [k for k, field in enumerate(fields) if field != "code"]  # the version of the code tells a reader nothing
    shown = [[_cell(row[k]) for k in columns] for row in rows[1 : 1 + _MOST]]
    return {
        "name": path.name,
        "fields": [fields[k] for k in columns],
        "rows": shown,
        "numeric": [2 * sum(row[k]["number"] for row in shown) > len(shown) for k in range(len(columns))],
        "more": len(rows) - 1 - len(shown),
    }


def _cell(text):
    try:
        number = float(text)
    except ValueError:
        return {"text": csv_text(text), "number": False}
    return {"text": f"{number:.5g}" if len(text) > _LONG else text, "number": True}
