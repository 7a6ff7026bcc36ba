"""What the README shows runs, and what it says is up to date."""

import re
from pathlib import Path

import pytest

import oc_dyn as od

_ROOT = Path(__file__).resolve().parents[1]
_README = (_ROOT / "README.md").read_text(encoding="utf-8")
_TRY = "python3 -m venv .venv && .venv/bin/pip install -e . && .venv/bin/oc-dyn demo"
_TEST = "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest"


def _blocks(text, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def _run(page, text, capsys):
    """Names that the examples of a page leave; the Problem's solution where it is checked, under "checked"."""
    names = {"__name__": "page"}
    for block in _blocks(text):
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, page, "exec"), names)  # so that a failure names the line
        if "found.check()" in block:
            names["checked"] = names["found"]
    signatures = re.findall(r"^print\(f\)  # (.*)$", "\n".join(_blocks(text)), re.MULTILINE)
    assert signatures
    printed = capsys.readouterr().out
    assert [s for s in signatures if s not in printed] == []
    return names


def test_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert len(_blocks(_README)) == 5
    names = _run("README.md", _README, capsys)
    assert 0.2 < names["plan"].duration < 2
    assert names["plan"].check().ok()
    assert names["found"].check().ok()
    assert 0 < names["run"].largest_error < 0.05
    assert names["around"].clearance(names["scene"], 0.02).certified >= 0.02
    assert Path("plan.csv").stat().st_size > 1000
    assert Path("law_in_c/feedforward_pd.c").stat().st_size > 1000


@pytest.mark.slow
def test_examples_of_the_tour_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (_ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    (xml,) = _blocks(text, "xml")
    Path("arm.urdf").write_text(xml, encoding="utf-8")
    names = _run("tour.md", text, capsys)
    assert names["arm"].nq == 2
    assert names["held"].nq == 1
    assert names["r"]["d2tau"].shape == (2, 1)
    assert names["dM_dq2"].shape == (4, 1)
    assert not names["dM_dq2"].is_zero()
    assert 0.2 < names["plan"].duration < 2
    assert names["plan"].check().ok()
    assert names["checked"].duration == pytest.approx(0.3815, abs=3e-4)  # as collocation with 160 intervals
    assert names["checked"].check().ok()
    assert Path("plan.csv").stat().st_size > 1000
    assert Path("plan.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_is_short():
    assert len(_README.splitlines()) <= 150


def test_table_is_up_to_date():
    page = (_ROOT / "docs" / "quantities.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"<!-- table -->\n(.*?)\n<!-- /table -->", page, re.DOTALL)
    assert shown == od.table(markdown=True), "run `oc-dyn list --update docs/quantities.md`"


def test_table_has_every_method():
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in od.table(markdown=True).splitlines()[2:]]
    shown = [(quantity, method.removesuffix(" (default)")) for quantity, method in rows]
    assert shown == [(q, m) for q in od.quantities() for m in od.methods(q)]


@pytest.mark.parametrize("command", [_TRY, _TEST])
def test_shows_both_commands(command):
    assert f"\n```\n{command}\n```\n" in _README


def test_ci_runs_the_test_command():
    assert f"\n{_TEST}\n" in (_ROOT / ".ci" / "run").read_text()


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#\s]+)\)", _README)
    here = [t for t in targets if not t.startswith("http")]
    assert "results/demo/demo.gif" in here
    assert [t for t in here if not (_ROOT / t).exists()] == []
