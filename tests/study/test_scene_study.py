"""The study of motions among obstacles: its tasks, its table, and what it calls solved."""

import csv
import json

import numpy as np
import pytest

from oc_dyn import function
from oc_dyn.scene.numeric import separation
from oc_dyn.study import STUDIES, scene
from oc_dyn.study.scene import planners
from oc_dyn.study.scene.tasks import Task, tasks


def row(task, planner, duration, clearance=0.02, solved=True):
    times = {"first [s]": 2.0, "again [s]": 1.0}
    return {
        "task": task,
        "planner": planner,
        "solved": solved,
        "duration [s]": duration,
        **times,
        "clearance [m]": clearance,
    }


def test_medians_are_of_what_is_solved_and_comparisons_of_what_both_have():
    ours, other = "plan_point_to_point", "other"
    rows = [row(0, ours, 1.0), row(1, ours, 2.0), row(2, ours, np.nan, solved=False)]
    rows += [row(0, other, 1.5, 0.01), row(1, other, 9.0, solved=False, clearance=-1.0), row(2, other, 4.0)]
    first, second = scene.summary(rows)
    assert (first["tasks"], first["solved"], first["duration [s]"]) == (3, 2, 1.5)
    assert first["longer than ours"] == 0
    assert (second["solved"], second["duration [s]"]) == (2, 2.75)
    assert second["longer than ours"] == pytest.approx(0.5)
    assert second["clearance [m]"] == 0.01  # of what is solved
    nothing = scene.summary([row(0, ours, np.nan, solved=False)])
    assert nothing[0]["solved"] == 0
    assert np.isnan(nothing[0]["duration [s]"])


def test_what_falls_below_the_clearance_is_not_solved():
    assert planners._row(1.0, 2.0, 1.0, 0.01, 0.01)["solved"]
    short = planners._row(1.0, 2.0, 1.0, 0.0099, 0.01)
    assert not short["solved"]
    assert short["why not"]


def test_points_of_a_way_lie_on_it_and_hold_its_corners():
    way = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.02], [1.0, 3.0]])
    points = planners.dense(way)
    assert all((np.abs(points - corner).max(axis=1) < 1e-12).any() for corner in way)
    assert np.linalg.norm(np.diff(points, axis=0), axis=1).sum() == pytest.approx(4.0)
    assert (np.diff(points, axis=0).max(axis=1) > 1e-6).all()


def test_a_run_that_is_stopped_tells_of_what_was_done(tmp_path, monkeypatch):
    monkeypatch.setattr(scene, "tasks", lambda n, _: (Task(k, "table", None, None, None) for k in range(n)))
    found = {
        "solved": True,
        "duration [s]": 1.0,
        "first [s]": 2.0,
        "again [s]": 1.0,
        "clearance [m]": 0.02,
        "why not": "",
    }
    monkeypatch.setattr(scene, "PLANNERS", {"plan_point_to_point": lambda task, nodes: found})
    clock = iter(range(100))
    monkeypatch.setattr(scene.time, "monotonic", lambda: float(next(clock)))
    report = scene.run(tmp_path, count=9, seconds=4, progress=False)  # as with --quiet
    facts = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert (facts["tasks"], facts["tasks asked for"], facts["stopped after [s]"]) == (4, 9, 4)
    assert "count=9, seconds=4" in facts["command"]
    assert report.startswith("4 tasks")
    assert len((tmp_path / "tasks.csv").read_text(encoding="utf-8").splitlines()) == 5


@pytest.mark.slow
def test_tasks_are_the_same_each_time_and_free():
    few, more = list(tasks(1, 0.01)), list(tasks(1, 0.01))
    assert np.array_equal(few[0].start, more[0].start)
    task = few[0]
    assert np.abs(task.goal - task.start).max() > 1.0
    for q in (task.start, task.goal):
        where = {}
        for x in task.around.scene.items:
            where[x.name] = x.matrix
            if x.link is not None:
                where[x.name] = np.array(function(task.around.robot, "frame_pose", frame=x.link)(q=q)["C"]) @ x.matrix
        for a, b in task.around.scene.pairs:
            d = separation(task.around.scene[a].shape, where[a], task.around.scene[b].shape, where[b])[0]
            assert d > 0.01 - 1e-6


@pytest.mark.slow
def test_it_writes_what_it_finds(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(scene, "QUICK_COUNT", 1)
    report = scene.run(tmp_path, quick=True, progress=True)
    with open(tmp_path / "tasks.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [x["planner"] for x in rows] == [x for x in planners.PLANNERS if planners.installed(x)]
    assert f"{len(rows)}/{len(rows)}" in capsys.readouterr().err
    assert rows[0]["solved"] == "True"
    assert float(rows[0]["clearance [m]"]) >= scene.CLEARANCE - 1e-6
    facts = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert facts["tasks"] == 1
    assert "plan_point_to_point" in report
    assert "scene" in STUDIES
