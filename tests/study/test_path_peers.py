"""The study of motions along a path beside toppra."""

import json
import sys

import pytest

from oc_dyn import cli


def rows_of(out):
    assert cli.main(["study", "path_peers", "--quick", "--out", str(out)]) == 0
    return {row["planner"]: row for row in json.loads((out / "manifest.json").read_text())["plans"]}


@pytest.mark.slow
def test_path_peers(tmp_path, capsys):
    pytest.importorskip("toppra")
    rows = rows_of(tmp_path)
    assert "toppra, no torque" in capsys.readouterr().out
    assert rows["plan_along_path"]["dtau"] <= 1.001
    assert rows["toppra"]["dtau"] in (float("inf"), "inf", None)
    assert rows["toppra"]["duration [s]"] < rows["plan_along_path"]["duration [s]"]


@pytest.mark.slow
def test_path_peers_without_toppra(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "toppra", None)
    assert list(rows_of(tmp_path)) == ["plan_along_path", "plan_along_path, no jerk, no torque rate"]
    assert "pip install toppra" in capsys.readouterr().out
