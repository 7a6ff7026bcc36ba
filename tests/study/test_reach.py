"""The reach beside Crocoddyl: the same optimum on both sides, limits kept, and what it does if something is missing."""

import csv
import json
import sys

import numpy as np
import pytest

from oc_dyn.errors import SolveError
from oc_dyn.study import load, reach
from oc_dyn.study.reach import crocoddyl, problem


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def few(monkeypatch):
    monkeypatch.setattr(reach, "QUICK", reach.OURS[:1])


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    pytest.importorskip("crocoddyl", reason="Crocoddyl is not installed; it has no wheels for Windows")
    out = tmp_path_factory.mktemp("reach") / "new"
    return out, load("crocoddyl")(out, quick=True, progress=False)


@pytest.mark.slow
def test_both_sides_find_the_same_optimum(done):
    out, told = done
    assert {p.name for p in out.iterdir()} == {"agreement.csv", "reach.csv", "reach.png", "manifest.json"}
    rows = table(out / "reach.csv")
    for case in ("no bounds", "torque"):
        here = [row for row in rows if row["case"] == case]
        assert [row["library"] for row in here] == ["crocoddyl", *["oc_dyn"] * 3]
        costs = np.array([float(row["cost"]) for row in here])
        assert costs.max() / costs.min() - 1 < 1e-7
        assert all(row["solved"] == row["of"] == "3" and float(row["gap"]) < 1e-6 for row in here)
        assert [row["ratio"] for row in here if row["library"] == "crocoddyl"] == ["1"]
        assert all(abs(float(row["cost_difference"])) < 1e-7 for row in here)
        assert all(int(row["fewest"]) <= int(row["iterations"]) <= int(row["most"]) for row in here)
        assert all(0 < float(row["low"]) <= float(row["ratio"]) <= float(row["high"]) for row in here)
        assert all(float(row["torque_excess"]) < 1e-7 for row in here if case == "torque")
    facts = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert facts["largest_cost_difference"] < 1e-7
    assert facts["path"] in crocoddyl.PATHS
    assert facts["crocoddyl"]
    assert facts["pinocchio"]
    assert "both sides compute the same" in told


@pytest.mark.slow
def test_dynamics_agree_before_anything_is_measured(done):
    rows = {row["quantity"]: float(row["difference"]) for row in table(done[0] / "agreement.csv")}
    path = json.loads((done[0] / "manifest.json").read_text(encoding="utf-8"))["path"]
    rows = {name: x for name, x in rows.items() if "acceleration" not in name or name == f"acceleration, {path}"}
    assert len(rows) == 7
    assert max(rows.values()) < 1e-9


@pytest.mark.slow
def test_limits_are_kept_and_penalties_are_not(done):
    rows = [row for row in table(done[0] / "reach.csv") if row["case"] == "torque and velocity"]
    ours = [row for row in rows if row["library"] == "oc_dyn"]
    assert len(ours) == 3
    assert all(float(row["velocity_excess"]) < 1e-7 for row in ours)
    soft = [row for row in rows if row["library"] == "crocoddyl"]
    passed = [float(row["velocity_excess"]) for row in soft]
    assert len(soft) == 3
    assert min(passed) > 1e-6
    assert passed == sorted(passed, reverse=True)
    assert float(soft[0]["cost"]) < min(float(row["cost"]) for row in ours)  # what it gains by passing them


@pytest.mark.slow
def test_judge_sees_what_is_wrong():
    of = problem.Reach(5, np.full(7, 50.0), np.full(7, 0.5))
    _, solved = problem.prepared(of, problem.Way("oc_dyn", "fatrop", "exact"), None)
    good = solved(problem.GOAL)
    fine = problem.judged(of, good, problem.GOAL)
    assert fine["gap"] < 1e-6
    assert fine["torque_excess"] < 1e-7
    assert fine["velocity_excess"] < 1e-7
    x, u = good.x.copy(), good.u.copy()
    x[3, 9] = -0.8
    u[2, 1] = 55.0
    bad = problem.judged(of, problem.Outcome(0.0, x, u, 0, True), problem.GOAL)
    assert bad["gap"] > 0.1
    assert bad["torque_excess"] == pytest.approx(0.1)
    assert bad["velocity_excess"] == pytest.approx(0.3)
    assert bad["cost"] != fine["cost"]


@pytest.mark.slow
def test_torque_and_acceleration_as_controls_are_one_program():
    of = reach._cases(10)["torque and velocity"]
    costs = []
    for control in ("torque", "acceleration"):
        way = problem.Way("oc_dyn", "fatrop", "exact", control)
        goal = problem.goals(2)[1]
        costs.append(problem.judged(of, problem.prepared(of, way, None)[1](goal), goal)["cost"])
    assert costs[1] == pytest.approx(costs[0], rel=1e-7)


# -- what may not be there -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_says_that_crocoddyl_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "crocoddyl", None)
    few(monkeypatch)
    assert crocoddyl.version() is None
    told = load("crocoddyl")(tmp_path, quick=True, progress=False)
    assert "Crocoddyl is not installed" in told
    assert "oc-dyn[bench]" in told
    rows = table(tmp_path / "reach.csv")
    assert {row["library"] for row in rows} == {"oc_dyn"}
    assert not any(row["ratio"] for row in rows)
    facts = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert facts["path"] is None
    assert len(facts["left_out"]) == 1
    assert "crocoddyl" not in facts


@pytest.mark.slow
def test_another_robot_is_not_measured(monkeypatch, tmp_path):
    pytest.importorskip("crocoddyl", reason="Crocoddyl is not installed; it has no wheels for Windows")

    def heavier(robot):
        model = built(robot)
        model.inertias[7].mass *= 1.001
        return model

    built = crocoddyl.built_model
    monkeypatch.setattr(crocoddyl, "built_model", heavier)
    with pytest.raises(SolveError, match="not the same on both sides"):
        crocoddyl.agreement(problem.Reach(5), samples=2)
    few(monkeypatch)
    told = load("crocoddyl")(tmp_path, quick=True, progress=False)
    assert "nothing of Crocoddyl was measured" in told
    assert "crocoddyl  " not in told


def test_runs_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    notes = []
    assert not any(way.compiled for way in reach._possible(notes))
    assert "nothing was compiled" in notes[0]
