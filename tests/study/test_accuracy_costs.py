"""Costs of the check, the estimate and refinement: what the study writes."""

import csv

import pytest

from oc_dyn import cli
from oc_dyn.study import accuracy_costs as study


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_quick_study(tmp_path, capsys):
    assert cli.main(["study", "accuracy_costs", "--quick", "--out", str(tmp_path)]) == 0
    rows = rows_of(tmp_path / "accuracy_costs.csv")
    found = [(row["problem"], int(row["intervals"])) for row in rows]
    assert found == [(name, k) for name in study.CASES for k in study.QUICK]
    assert all(float(row["peak MB"]) > 10 for row in rows)
    rounds = rows_of(tmp_path / "refinement.csv")
    assert [row["problem"] for row in rounds] == list(study.CASES)
    assert all(float(row["error of states"]) <= study.TOLERANCES[0] for row in rounds)
    assert "refinement over that solve" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["hypersensitive", "cart pole"])
def test_what_is_measured(name):
    told = study.measured(name, 20)
    assert told["intervals"] == 20
    assert len(told["times"]) == 2
    row = study._row(told, [])
    assert row["check share"].endswith("%")
    assert row["kB per interval"] == ""
    later = study._row({**told, "intervals": 30, "peak": told["peak"] + 0.5}, [row])
    assert float(later["kB per interval"]) == pytest.approx(50, abs=10)  # of MB in one decimal


def test_what_refinement_takes():
    told = study.refined("hypersensitive", 1e-3)
    assert told["reached"]
    assert told["error"] <= 1e-3
    assert study._round(told, "hypersensitive")["rounds"] == told["rounds"]
