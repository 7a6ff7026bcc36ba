"""report.html of every study: one file that needs no other, with every table and figure of its folder."""

import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from oc_dyn.study import STUDIES, folder, load, run
from oc_dyn.study.html import write_report

RESULTS = Path(__file__).resolve().parents[2] / "results"
NAMES = sorted(name for name in STUDIES if folder(name).name == name)
TOLD = ("ali", "crocoddyl", "growth", "kim", "kumar_mueller", "matrices", "peers", "second_order", "singh", "solvers")
VOID = {"meta", "img", "br", "hr"}


class Page(HTMLParser):
    """Elements of a page; refuses tags that are not closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.found, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def checked(out):
    """The page of a folder, after what holds for all of them."""
    page = Page((out / "report.html").read_text(encoding="utf-8"))
    tables, pictures = ({p.name for p in out.glob(f"*.{kind}")} for kind in ("csv", "png"))
    assert len(page.all("table")) == len(tables)
    assert len(page.all("img")) == len(pictures)
    for _, attributes in page.found:  # nothing is fetched
        assert attributes.get("src", "data:").startswith("data:")
        assert attributes.get("href", "#").startswith("#")
    assert not page.all("link")
    assert not page.all("script")
    assert not page.all("iframe")
    style = "".join(page.text)
    assert "url(" not in style
    assert "@import" not in style
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert tables | pictures <= set(ids)
    assert {a["href"][1:] for a in page.all("a")} <= set(ids)
    return page


@pytest.mark.parametrize("name", NAMES)
def test_report_of_kept_results(name, tmp_path):
    """The page of what is kept under results/, written anew."""
    pytest.importorskip("jinja2")
    kept = RESULTS / name
    if not (kept / "manifest.json").exists():
        pytest.skip("no results are kept here")
    for path in kept.iterdir():
        if path.suffix in (".csv", ".png", ".json"):
            shutil.copy(path, tmp_path)
    module = sys.modules[load(name).__module__]
    captions = getattr(module, "CAPTIONS", {})
    assert write_report(tmp_path, name, "a < b", module.__doc__, captions) is None
    page = checked(tmp_path)
    assert "a < b" in page.text
    for path in tmp_path.glob("*.png"):
        if path.name in captions:
            assert captions[path.name] in page.text


@pytest.mark.parametrize("name", TOLD)
def test_files_have_captions(name):
    captions = sys.modules[load(name).__module__].CAPTIONS
    kept = {p.name for kind in ("csv", "png") for p in (RESULTS / name).glob(f"*.{kind}")}
    assert kept <= set(captions)
    assert all(text.endswith(".") for text in captions.values())


CAPTIONS = {"t.csv": "Squares of numbers."}


def tiny(out, quick=False, progress=None):
    """A study, of this module."""
    out.mkdir(parents=True)
    (out / "t.csv").write_text("x,square\n2,4\n")
    (out / "manifest.json").write_text('{"command": "tiny"}')
    return "all <well>"


def test_every_study_gets_its_report(tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    monkeypatch.setitem(STUDIES, "tiny", f"{__name__}:tiny")
    assert run("tiny", tmp_path / "new") == "all <well>"
    page = checked(tmp_path / "new")
    assert {"all <well>", "Squares of numbers.", "4"} <= set(page.text)
    assert any("one file that needs no other" in text for text in page.text)  # what this module says it is about


def test_without_jinja2_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(STUDIES, "tiny", f"{__name__}:tiny")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "no report.html" in run("tiny", tmp_path / "new")
    assert not (tmp_path / "new" / "report.html").exists()


def test_long_numbers_are_shortened_and_long_tables_cut(tmp_path):
    pytest.importorskip("jinja2")
    (tmp_path / "manifest.json").write_text("{}")
    rows = "".join(f"{k},4.440892098500626e-16,{'word ' * 12}\n" for k in range(500))
    (tmp_path / "t.csv").write_text("k,x,code\n" + rows)
    assert write_report(tmp_path, "s", "") is None
    page = checked(tmp_path)
    assert "4.4409e-16" in page.text
    assert any("100 more rows" in text for text in page.text)
    assert len(page.all("th")) == 2  # code tells a reader nothing
