"""The study of laws as in a laboratory: what it leaves, its table in the documents, and its C."""

import csv
import json
from pathlib import Path

import pytest

import oc_dyn as od
from oc_dyn import cli
from oc_dyn import elastic as el
from oc_dyn.study import cortex, laboratory
from oc_dyn.study.laboratory_code import CODE_FIELDS, code_row
from oc_dyn.study.laboratory_laws import LAWS, ROBOTS

ROOT = Path(__file__).resolve().parents[2]


def read(path):
    with open(path, newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


@pytest.mark.slow
def test_quick_study(tmp_path, capsys):
    assert cli.main(["study", "laboratory", "--quick", "--out", str(tmp_path)]) == 0
    rows = read(tmp_path / "laboratory.csv")
    assert len(rows) == 6
    assert all(row["stable"] == row["runs"] for row in rows)
    assert "feedforward_pd" in capsys.readouterr().out
    facts = json.loads((tmp_path / "manifest.json").read_text())
    assert facts["seeds"] == 2
    assert (tmp_path / "code.csv").exists() == cortex.available(cortex.GCC, cortex.QEMU)


def test_without_the_compiler_for_microcontrollers(tmp_path, monkeypatch):
    monkeypatch.setattr(cortex, "available", lambda *programs: False)
    monkeypatch.setattr(laboratory, "LAWS", {k: v for k, v in LAWS.items() if k == "feedforward_pd"})
    monkeypatch.setattr(laboratory, "QUICK", ("2R arm", ("feedforward_pd",), ("none",)))
    assert "code: nothing is measured" in laboratory.run(tmp_path, quick=True, progress=False)
    assert not (tmp_path / "code.csv").exists()


@pytest.mark.slow
def test_what_is_left_out_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(cortex, "available", lambda *programs: False)
    monkeypatch.setattr(laboratory, "QUICK", ("2R arm", ("feedforward", "feedforward_pd"), ("none",)))
    laboratory.run(tmp_path, quick=True, progress=False)
    before = read(tmp_path / "laboratory.csv")
    text = (tmp_path / "laboratory.csv").read_text(encoding="utf-8").replace(before[0]["largest"], "1.23e-01")
    (tmp_path / "laboratory.csv").write_text(text, encoding="utf-8")
    laboratory.run(tmp_path, quick=True, progress=False, only="_pd")
    after = read(tmp_path / "laboratory.csv")
    assert [row["law"] for row in after] == ["feedforward", "feedforward_pd"]
    assert after[0]["largest"] == "1.23e-01"
    assert after[1] == before[1]
    with pytest.raises(od.ShapeError, match="only: nothing has 'nowhere'"):
        laboratory.run(tmp_path, quick=True, progress=False, only="nowhere")


@pytest.mark.slow
@pytest.mark.skipif(not cortex.available(cortex.GCC, cortex.QEMU), reason="needs arm-none-eabi-gcc and qemu-arm")
def test_a_law_on_the_processor():
    arm = el.elastic_robot(od.robots.planar_arm(1), 300.0, motor_inertia=0.2)
    row = dict(zip(CODE_FIELDS, code_row("one joint", "law", el.feedforward_pd(arm, 200.0, 10.0)), strict=True))
    assert row["not a number"] == "refused, safe torque"
    assert row["limits"].endswith(" of 3, told")
    assert row["limits"][0] in "123"
    assert float(row["error"]) < 1e-5
    assert 0 < row["instructions"] < row["cycles"]


def test_laws_are_of_robots_that_there_are():
    assert all(set(on) <= set(ROBOTS) for _, on in LAWS.values())


def test_the_documents_tell_the_results():
    results = ROOT / "results" / "laboratory"
    rows = read(results / "laboratory.csv")
    table = laboratory.markdown([tuple(row[name] for name in laboratory.FIELDS) for row in rows])
    assert (results / "laboratory.md").read_text(encoding="utf-8") == table
    text = (ROOT / "docs" / "elastic-laboratory.md").read_text(encoding="utf-8")
    _, told = text.split("see results/laboratory -->\n")
    assert told.split("<!-- end")[0] == table
    expected = {(robot, law) for law, (_, on) in LAWS.items() for robot in on}
    assert {(row["robot"], row["law"]) for row in rows} == expected
    code = read(results / "code.csv")
    assert {(row["robot"], row["law"]) for row in code} == expected
    for row in code:
        assert row["not a number"] == "refused, safe torque"
        assert row["limits"].endswith("told")
        assert float(row["error"]) < 1e-3


def test_cells_tell_what_is_not_stable():
    row = {"runs": "20", "stable": "20", "largest": "2.5e-04"}
    assert laboratory._cell(row) == "0.25"
    assert laboratory._cell({**row, "largest": "9.98e-02"}) == "100"
    assert laboratory._cell({**row, "stable": "3"}) == "**0.25** (17 of 20 unsettled)"
    assert laboratory._cell({**row, "stable": "0", "largest": "nan"}) == "**diverged** (20 of 20 unsettled)"
