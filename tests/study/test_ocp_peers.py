"""The study of six problems beside YAPSS and dymos: its programs have the known optima, its figures are of them all."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from oc_dyn import cli
from oc_dyn.study import ocp_peers
from oc_dyn.study.ocp_peers import our_programs

RESULTS = Path(__file__).resolve().parents[2] / "results" / "ocp_peers"


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", our_programs.NUMBERS)
def test_programs_have_the_known_optima(number):
    """From five intervals on, by tolerance; guesses are tables for the peers."""
    found = our_programs.refined(number, "radau", 1e-5, 1)
    assert found["objective"] == pytest.approx(our_programs.known(number), rel=2e-5)
    guess = our_programs.guess_of(number)
    assert {len(row) for row in (*guess["x"], *guess["u"])} == {21}
    assert np.isfinite([*guess["x"], *guess["u"]]).all()


@pytest.mark.slow
def test_quick_study(tmp_path, capsys):
    assert cli.main(["study", "ocp_peers", "--quick", "--out", str(tmp_path)]) == 0
    rows = rows_of(tmp_path / "runs.csv")
    ours = [row for row in rows if row["tool"].startswith("oc_dyn")]
    assert {row["problem"] for row in ours} == {"1", "6"}
    assert all(float(row["warm"]) > 0 and float(row["error"]) < 2e-3 for row in ours)
    assert "to import" in capsys.readouterr().out


@pytest.mark.skipif(not RESULTS.exists(), reason="the study has not been run here")
def test_committed_figures_are_of_all_problems_and_of_a_peer():
    rows = rows_of(RESULTS / "digits.csv")
    assert [(int(r["problem"]), float(r["asked"])) for r in rows] == [
        (n, asked) for n in our_programs.NUMBERS for asked in ocp_peers.DIGITS
    ]
    facts = json.loads((RESULTS / "manifest.json").read_text(encoding="utf-8"))
    assert "yapss" in facts["peers"]
