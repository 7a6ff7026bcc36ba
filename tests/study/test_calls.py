"""The study of calls: what it leaves, with and without a compiler and Pinocchio."""

import csv

import pytest

from oc_dyn.study import calls, load, native
from oc_dyn.study.example_robots import example_file


def rows_of(file):
    with open(file, newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


@pytest.mark.slow
@pytest.mark.skipif(native.compiler() is None, reason="needs a C compiler")
def test_calls(tmp_path):
    report = load("calls")(tmp_path, quick=True, progress=False)
    assert (tmp_path / "manifest.json").exists()
    rows = rows_of(tmp_path / "binding.csv")
    assert {row["quantity"] for row in rows} == set(calls.ROUTINES)
    assert {row["robot"] for row in rows} >= {"panda"}
    assert all(row["quantity"] in report for row in rows)
    for row in rows:
        assert float(row["bare [us]"]) < float(row["numpy_call [us]"])
        if row["difference"]:
            assert float(row["difference"]) < 1e-9
    assert len(rows_of(tmp_path / "checks.csv")) == 3 * 7 * 2


def test_calls_without_compiler(tmp_path, monkeypatch):
    monkeypatch.setattr(calls, "compiler", lambda: None)
    monkeypatch.setattr(calls, "_checks", lambda *of: [(*of, "by", 1, 2, 3)])
    report = calls.run(tmp_path, quick=True, progress=False)
    assert "no C compiler" in report
    assert not (tmp_path / "binding.csv").exists()
    assert [row["quantity"] for row in rows_of(tmp_path / "checks.csv")] == ["inverse_dynamics"] * 2 + [
        "forward_dynamics"
    ]


@pytest.mark.slow
@pytest.mark.skipif(native.compiler() is None, reason="needs a C compiler")
@pytest.mark.parametrize("missing", ["pinocchio", "files"])
def test_calls_without_peers(missing, monkeypatch):
    if missing == "pinocchio":
        monkeypatch.setitem(__import__("sys").modules, "pinocchio", None)
    else:
        monkeypatch.setattr("oc_dyn.study.peers.robots.example_file", lambda path: None)
    monkeypatch.setattr(calls, "ROUTINES", {"mass_matrix": ("crba", ("q",))})
    monkeypatch.setattr(calls, "FLAGS", ("-O0",))
    notes = []
    rows = calls._binding("ur5", 2, notes) + calls._binding("panda", 2, notes)
    there = missing == "pinocchio" and example_file("ur_description/urdf/ur5_robot.urdf") is not None
    assert [row[0] for row in rows] == (["ur5", "panda"] if there else ["panda"])
    assert all(len(row) == len(calls.BINDING) for row in rows)
    assert all(row[-4:] == ("", "", "", "") for row in rows)
    assert any(("Pinocchio" if there else "the Panda of this package") in note for note in notes)
