"""Programs of robots on a free base by AD and by analytic derivatives: what the study writes."""

import csv

import pytest

from oc_dyn import cli


@pytest.mark.slow
def test_quick_study(tmp_path, capsys):
    assert cli.main(["study", "floating_nlp", "--quick", "--out", str(tmp_path)]) == 0
    with open(tmp_path / "floating_nlp.csv", newline="", encoding="utf-8") as file:
        ad, analytic = csv.DictReader(file)
    assert [ad["derivatives"], analytic["derivatives"]] == ["ad", "analytic"]
    assert ad["status"] == analytic["status"] == "Solve_Succeeded"
    assert float(ad["objective"]) == pytest.approx(float(analytic["objective"]), rel=1e-8)
    assert ad["iterations"] == analytic["iterations"]
    assert int(analytic["Jacobian"]) < int(ad["Jacobian"])
    assert int(analytic["Hessian"]) < int(ad["Hessian"])
    assert "Hessian over AD" in capsys.readouterr().out
