"""The study of random tasks: what is drawn, verdicts, and that sides take turns."""

import csv
import json

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.study import apart, tasks
from oc_dyn.study.apart import Told
from oc_dyn.study.cases import robots
from oc_dyn.study.cases import tasks as cases


def told(T=1.0, cpu=(1.0, 1.1), objective=None, first=3.0):
    row = {"part": "first", "value": 9.0, "cpu": first, "whole": first + 0.3, "T": T, "iterations": 20}
    row |= {"status": "Solve_Succeeded", "nodes": 20, "worst": 1.0}
    row["objective"] = T if objective is None else objective
    return Told("done", [row, *({"part": "again", "value": x, "cpu": x} for x in cpu)], 5.0)


FAILED = Told("SolveError: infeasible", [], 2.0)


def verdict(before, now):
    return tasks.compared(3, {"before": tasks.summed(before), "now": tasks.summed(now)})


def test_what_is_drawn_is_balanced_and_the_same_again():
    drawn = [cases.drawn(number) for number in range(tasks.TASKS)]
    assert drawn == [cases.drawn(number) for number in range(tasks.TASKS)]
    for key, values in (("robot", cases.ROBOTS), ("kind", cases.OF_LIMITS), ("continuity", (2, 3, 4))):
        found = [own[key] for own in drawn]
        assert {x: found.count(x) for x in set(found)} == pytest.approx(dict.fromkeys(values, 60 / len(values)), abs=4)
    assert {own["objective"] for own in drawn} == {"time", "effort"}
    assert {own["mesh"] for own in drawn} == {"uniform", "free"}
    assert {own["speeds"] for own in drawn} == {"none", "start", "goal", "both"}
    assert len({tasks.named(number) for number in range(tasks.TASKS)}) == tasks.TASKS


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [0, 2, 3, 5])
def test_what_is_asked_for_can_be_held(number):
    r, start, goal, options = cases.asked(number)
    for q in (start, goal):
        options["limits"].assert_within("an end", q=q, tau=od.function(r, "inverse_dynamics")(q, 0, 0))
    again = cases.asked(number)
    assert np.array_equal([start, goal], again[1:3])


def test_two_pandas_are_two_pandas():
    one, two = od.robots.panda(), robots.two_pandas()
    q, v, dv = np.random.default_rng(0).uniform(-1, 1, (3, 7))
    right = np.array(od.function(one, "inverse_dynamics")(q, v, dv)).ravel()
    found = np.array(od.function(two, "inverse_dynamics")(*(np.r_[x, x] for x in (q, v, dv)))).ravel()
    assert found == pytest.approx(np.r_[right, right], rel=1e-12, abs=1e-12)
    for name in ("v", "dv", "d2v", "tau", "dtau"):
        assert np.array_equal(getattr(od.Limits.of(two), name), np.tile(getattr(od.Limits.of(one), name), 2))


def test_limits_that_a_file_has_not_are_made_up_and_others_stay():
    assert np.array_equal(robots.limits(od.robots.panda()).dv, od.Limits.of(od.robots.panda()).dv)
    r = od.robots.planar_2r()
    assert np.all(np.isfinite(robots.limits(r).d2v))


@pytest.mark.parametrize("before, now, right", [
    ([told()], [told(T=1.00005)], ""),
    ([told()], [told(T=1.0002)], "worse"),
    ([told()], [told(T=0.99)], "better"),
    ([told(), told()], [told(cpu=(1.3, 1.4)), told(cpu=(1.25, 1.3))], "slower"),
    ([told(), told(cpu=(1.2, 1.4))], [told(cpu=(1.3, 1.4)), told(cpu=(1.25, 1.3))], ""),  # before it took as long once
    ([told()], [told(T=1.01, cpu=(2.0, 2.0))], "worse; slower"),
    ([told()], [told(first=3.5)], ""),
    ([told()], [told(first=4.0)], "slower at first"),
    ([told(), told()], [told(), told(first=4.0)], "slower later"),
    ([told()], [FAILED], "lost"),
    ([FAILED], [told()], "gained"),
    ([FAILED], [FAILED], "both fail"),
    ([told(T=2.0, objective=5.0)], [told(T=2.0, objective=6.0)], "worse"),
])  # fmt: skip
def test_verdicts(before, now, right):
    row = verdict(before, now)
    assert row["verdict"] == right
    assert set(row) <= set(tasks.FIELDS)


def test_a_failure_is_told():
    row = verdict([told()], [FAILED])
    assert row["now status"] == "SolveError: infeasible"
    assert row["before status"] == "done"
    later = tasks.summed([told(), Told("ended by SIGSEGV", [], 1.0)])
    assert later["status"] == "ended by SIGSEGV"


def test_the_study(tmp_path, monkeypatch):
    earlier = tmp_path / "earlier"
    (earlier / "oc_dyn").mkdir(parents=True)
    (earlier / "oc_dyn" / "__init__.py").write_text("")
    asked = []

    def run(case, folder, cache, limit, fill=False):
        if not fill:
            asked.append((case.arguments["number"], folder == earlier))
        return told(T=1.0 if folder == earlier or case.arguments["number"] else 0.9)

    monkeypatch.setattr(apart, "_run", run)
    report = tasks.run(tmp_path / "out", quick=True, progress=False, against=earlier)
    assert asked == [(k, side) for k in tasks.QUICK for _ in tasks.RUNS for side in (True, False)]
    assert report.splitlines()[-1].startswith("2 tasks: 1 better, 1 same; CPU now over before: median 1, largest 1")
    with open(tmp_path / "out" / "tasks.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["better", ""]
    assert rows[0]["change"] == "-1.0e-01"
    facts = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert facts["verdicts"] == {"better": 1, "same": 1}


@pytest.mark.slow
def test_a_task_for_real(tmp_path):
    report = tasks.run(tmp_path, quick=True, progress=False, only="task 0")
    assert "1 tasks: 1 same" in report
    with open(tmp_path / "tasks.csv", newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert float(row["now T"]) == pytest.approx(1.272672728, rel=1e-4)
    assert float(row["now worst"]) < 1.001
