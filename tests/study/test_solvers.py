"""The study of solvers: every way finds the same optimum, and compiled stages cost less than the linear algebra."""

import csv

import pytest

from oc_dyn.errors import SolveError
from oc_dyn.study import solvers


@pytest.mark.slow
def test_quick_study(tmp_path):
    solvers.run(tmp_path, quick=True)
    with open(tmp_path / "solvers.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {r["problem"] for r in rows} == {"panda tracking", "acrobot"}
    assert (tmp_path / "manifest.json").exists()
    for name in ("panda tracking", "acrobot"):
        found = [float(r["objective"]) for r in rows if r["problem"] == name and r["objective"]]
        assert len(found) == 4
        assert max(found) - min(found) < 1e-6 * max(found)


@pytest.mark.slow
@pytest.mark.parametrize("derivatives", ["ad", "analytic"])
def test_panda_under_torque_rate_is_the_known_optimum(derivatives):
    ocp, method = solvers.point_to_point(derivatives)
    assert ocp.solve(method=method).objective == pytest.approx(0.94616, abs=1e-5)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(solvers.PROBLEMS))
def test_fatrop_and_ipopt_agree(name):
    objectives = []
    for solver in ("ipopt", "fatrop"):
        ocp, method = solvers.PROBLEMS[name]("ad")
        objectives.append(ocp.solve(method=method, solver=solver).objective)
    assert objectives[1] == pytest.approx(objectives[0], rel=1e-6)


@pytest.mark.slow
def test_stages_are_compiled_once_for_all_numbers_of_nodes(monkeypatch, tmp_path):
    monkeypatch.setenv("OC_DYN_CACHE", str(tmp_path))
    libraries = []
    for nodes in (10, 30):
        ocp, method = solvers.swing_up("ad", nodes)
        try:
            ocp.transcribed(method, True)
        except SolveError:
            pytest.skip("no C compiler")
        libraries.append(len(list(tmp_path.rglob("*.so"))))
    assert libraries[0] == libraries[1] > 0
