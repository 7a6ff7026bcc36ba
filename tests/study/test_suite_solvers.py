"""Every solver on the problems with known optima: outcomes are told apart, and what crashes ends its own run alone."""

import csv
import json
import signal

import pytest

from oc_dyn import cli
from oc_dyn.study import suite, suite_solvers

PATHS = suite.listed()


@pytest.mark.slow
def test_quick_study(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(suite, "QUICK", (1, 7))
    assert cli.main(["study", "suite_solvers", "--quick", "--out", str(tmp_path)]) == 0
    with open(tmp_path / "suite_solvers.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["number"], row["solver"]) for row in rows] == [
        (number, solver) for number in ("1", "7") for solver in suite_solvers.QUICK_WAYS
    ]
    assert {row["outcome"] for row in rows} == {"solved"}
    told = capsys.readouterr().out
    for solver in suite_solvers.QUICK_WAYS:
        assert solver in told
    facts = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert facts["options"]["sqpmethod, piqp"]["qpsol"] == "piqp"


def test_a_solve_is_told():
    told = suite_solvers.solved_once(PATHS[7], "ipopt", {})
    assert (told["success"], told["intervals"]) == (True, 8)
    assert told["cost"] == pytest.approx(6)
    refused = suite_solvers.solved_once(PATHS[7], "ipopt", {"tolerance_of_nothing": 1})
    assert set(refused) == {"status"}
    assert "tolerance_of_nothing" in refused["status"]


@pytest.mark.slow
def test_crashes_and_endless_runs_are_told(monkeypatch):
    assert suite_solvers.apart(PATHS[7], "ipopt", {})["success"]
    monkeypatch.setattr(suite_solvers, "LIMIT", 0.05)
    assert suite_solvers.apart(PATHS[7], "ipopt", {}) == {"status": "did not end in 0 s"}
    monkeypatch.undo()
    monkeypatch.setattr(suite_solvers, "PROGRAM", "import os; os.abort()")
    assert suite_solvers.apart(PATHS[7], "ipopt", {}) == {"status": f"the process ended with {-signal.SIGABRT}"}


def test_outcomes_and_their_sums():
    reference = {"success": True, "cost": 2.0, "iterations": 10, "seconds": 1.0, "intervals": 4}

    def outcome(**told):
        return suite_solvers.judged({**reference, **told}, reference)["outcome"]

    assert outcome() == "solved"
    assert outcome(cost=2.0 + 1e-6) == "solved"
    assert outcome(cost=2.1) == "higher"
    assert outcome(cost=1.9) == "lower"
    assert outcome(success=False) == "failed"
    assert suite_solvers.judged({"status": "gone"}, reference)["outcome"] == "failed"
    rows = [
        {"number": n, "solver": solver, "outcome": told, "iterations": i, "seconds": s}
        for n, solver, told, i, s in (
            *((1, "ipopt", "solved", 10, 1.0), (2, "ipopt", "solved", 10, 1.0)),
            *((1, "other", "solved", 20, 3.0), (2, "other", "higher", 5, 0.1)),
        )
    ]
    assert suite_solvers.summed("other", rows[2:], rows) == ["other", 1, 2, 1, "2.00", "3.00"]
