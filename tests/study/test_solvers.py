"""The study of solvers: every way finds the same optimum, and compiled stages cost less than the linear algebra."""

import csv

import pytest

from oc_dyn.study import solvers


def test_quick_study(tmp_path):
    solvers.run(tmp_path, quick=True)
    with open(tmp_path / "solvers.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {r["problem"] for r in rows} == {"panda tracking", "acrobot"} and (tmp_path / "manifest.json").exists()
    for name in ("panda tracking", "acrobot"):
        found = [float(r["objective"]) for r in rows if r["problem"] == name and r["objective"]]
        assert len(found) == 4 and max(found) - min(found) < 1e-6 * max(found)


@pytest.mark.parametrize("derivatives", ["ad", "analytic"])
def test_panda_under_torque_rate_is_the_known_optimum(derivatives):
    ocp, method = solvers.point_to_point(derivatives)
    assert ocp.solve(method=method).objective == pytest.approx(0.94616, abs=1e-5)
