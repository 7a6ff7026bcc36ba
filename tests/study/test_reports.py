"""report.html of every study: one file that needs no other, with every table and figure of its folder."""

import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from clones import clone

import oc_dyn as od
from oc_dyn import cli
from oc_dyn.study import STUDIES, folder, load, write_page
from oc_dyn.study.html import write_report

RESULTS = Path(__file__).resolve().parents[2] / "results"
NAMES = sorted(name for name in STUDIES if folder(name).name == name)
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


@pytest.mark.sample(1)
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
    assert write_report(tmp_path, name, "a < b", module.__doc__, captions) == tmp_path / "report.html"
    page = checked(tmp_path)
    assert "a < b" in page.text
    for path in tmp_path.glob("*.png"):
        if path.name in captions:
            assert captions[path.name] in page.text


@pytest.mark.parametrize("name", NAMES)
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


@pytest.fixture
def study(monkeypatch):
    """The command of a study of this module."""
    monkeypatch.setitem(STUDIES, "tiny", f"{__name__}:tiny")
    return lambda *words: cli.main(["study", "tiny", *map(str, words)])


def test_report_is_written_on_request(tmp_path, study, capsys):
    pytest.importorskip("jinja2")
    out = tmp_path / "new"
    assert study("--out", out) == 0
    assert {p.name for p in out.iterdir()} == {"t.csv", "manifest.json"}
    (out / "t.csv").write_text("x,square\n3,9\n")
    assert study("--out", out, "--report") == 0
    assert capsys.readouterr().out.endswith("report.html\n")
    page = checked(out)
    assert {"Squares of numbers.", "9"} <= set(page.text)  # what is there is not measured again
    assert "all <well>" not in page.text
    assert any("one file that needs no other" in text for text in page.text)  # what this module says it is about


def test_report_of_a_study_that_has_not_run(tmp_path, study):
    pytest.importorskip("jinja2")
    assert study("--out", tmp_path / "new", "--report") == 0
    assert {"all <well>", "4"} <= set(checked(tmp_path / "new").text)


def test_report_of_no_results(tmp_path):
    with pytest.raises(od.ShapeError, match="no results in .*nowhere"):
        write_page("ali", tmp_path / "nowhere")


def test_report_without_jinja2(tmp_path, monkeypatch, study, capsys):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert study("--out", tmp_path / "new", "--report") == 2
    assert "Jinja2 is not installed" in capsys.readouterr().err
    assert (tmp_path / "new" / "t.csv").exists()


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_a_quick_study_leaves_committed_results_alone(name, tmp_path, monkeypatch):
    monkeypatch.setitem(STUDIES, name, f"{__name__}:tiny")
    with clone(tmp_path / "clone") as quick:
        assert cli.main(["study", name, "--quick", "--quiet"]) == 0
    assert (quick / folder(name).name / "t.csv").exists()


def test_a_report_is_not_for_git(tmp_path, study):
    pytest.importorskip("jinja2")
    with pytest.raises(AssertionError) as error, clone(tmp_path / "clone"):
        assert study("--report", "--quiet") == 0
    assert "results/tiny/t.csv" in str(error.value)
    assert "report.html" not in str(error.value)
    assert (tmp_path / "clone" / "results" / "tiny" / "report.html").exists()


def test_no_report_is_committed():
    assert [p for p in _committed() if p.endswith("report.html") and p.startswith("results/")] == []


def _committed():
    done = subprocess.run(["git", "-C", str(RESULTS.parent), "ls-files"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a clone")
    return done.stdout.split()


def test_long_numbers_are_shortened_and_long_tables_cut(tmp_path):
    pytest.importorskip("jinja2")
    (tmp_path / "manifest.json").write_text("{}")
    rows = "".join(f"{k},4.440892098500626e-16,{'word ' * 12}\n" for k in range(500))
    (tmp_path / "t.csv").write_text("k,x,code\n" + rows)
    write_report(tmp_path, "s", "")
    page = checked(tmp_path)
    assert "4.4409e-16" in page.text
    assert any("100 more rows" in text for text in page.text)
    assert len(page.all("th")) == 2  # code tells a reader nothing
