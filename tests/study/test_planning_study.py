"""The study of planning: what is measured, what is left out, growth, and the files that it leaves."""

import csv

import pytest

from oc_dyn.study import apart, planning
from oc_dyn.study.apart import Told
from oc_dyn.study.cases import planning as cases


def part(how, nodes, power=1.0, iterations=20):
    seconds = 0.01 * nodes**power
    found = {"part": how, "value": 2 * seconds, "cpu": seconds, "functions": 0.5 * seconds, "solver": seconds}
    return {**found, "iterations": iterations, "T": 1.25, "nodes": nodes, "peak": 99.96}


def told(nodes, compiled=False, **more):
    return Told("done", [part(how, nodes, **more) for how in planning.HOWS[2 * compiled : 2 * compiled + 2]], 1.0)


SLOW = Told("more than 120 s", [part("cold", 100)], 120.0)


def test_rows_of_a_plan():
    def one(line, who, number, case, folder):
        assert (line, number, folder) == ("7 joints, rate, 50 nodes", 0, None)
        assert who == ("now, compiled" if case.arguments["compiled"] else "now, built")
        return told(50, case.arguments["compiled"])

    rows = planning.measured(one, "now", None, 7, "rate", 50, {})
    assert [row["how"] for row in rows] == list(planning.HOWS)
    assert rows[1]["seconds"] == 1.0
    assert (rows[1]["in functions"], rows[1]["in the solver"], rows[1]["outside"]) == (0.25, 0.5, 0.25)
    assert (rows[1]["share in functions"], rows[1]["peak MB"], rows[1]["T"]) == (0.25, 100.0, "1.25")
    assert all(set(row) <= set(planning.FIELDS) for row in rows)


def test_longer_plans_than_one_that_took_too_long_are_left_out():
    asked, late, rows = [], {}, []

    def one(line, who, number, case, folder):
        asked.append((case.arguments["nodes"], case.arguments["compiled"]))
        return SLOW if asked[-1] == (100, False) else told(*asked[-1])

    for nodes in (50, 100, 200):
        rows += planning.measured(one, "now", None, 7, "rate", nodes, late)
    assert asked == [(50, False), (50, True), (100, False), (100, True), (200, True)]
    status = {(row["nodes"], row["how"]): row["status"] for row in rows}
    assert status[100, "cold"] == "done"  # it was measured before the time was over
    assert status[100, "warm"] == "more than 120 s"
    assert status[200, "warm"] == "left out: more than 120 s on 100 nodes"
    assert status[200, "compiled"] == "done"


def test_growth_is_that_of_what_ended():
    rows = []
    for nodes, power in ((20, 9.0), (50, 1.5), (100, 1.5), (200, 1.5)):  # the first is below those that are fitted
        iterations = nodes // 10
        given = lambda *_, n=nodes, p=power, k=iterations: told(n, power=p, iterations=k)  # noqa: E731
        rows += [row for row in planning.measured(given, "now", None, 7, "rate", nodes, {}) if row["how"] == "warm"]
    (fit,) = planning.fitted(rows)
    assert (fit["growth"], fit["growth of an iteration"], fit["points"]) == (1.5, 0.5, 3)
    assert (fit["longest"], fit["CPU there"]) == (200, pytest.approx(0.01 * 200**1.5, rel=1e-3))
    (few,) = planning.fitted(rows[:3])
    assert few["growth"] is None
    (none,) = planning.fitted([{k: rows[0][k] for k in planning.KEYS} | {"status": "more than 120 s"}])
    assert (none["growth"], none["longest"]) == (None, None)


@pytest.mark.slow
def test_the_study_leaves_tables_and_a_figure(tmp_path, monkeypatch):
    def run(case, *_):
        given = case.arguments
        if given["nodes"] == 20 and given["compiled"]:
            return Told("ended by SIGSEGV", [], 1.0)
        return told(given["nodes"], given["compiled"])

    monkeypatch.setattr(apart, "_run", run)
    report = planning.run(tmp_path, quick=True, progress=False)
    names = {"runs.csv", "planning.csv", "growth.csv", "planning.png", "manifest.json", "rows.sqlite"}
    assert {p.name for p in tmp_path.iterdir()} == names
    assert (tmp_path / "planning.png").read_bytes()[:4] == b"\x89PNG"
    assert report.splitlines()[-1] == "8 plans [s of the processor], 2 without an end"
    with open(tmp_path / "planning.csv", newline="", encoding="utf-8") as file:
        rows = {(row["nodes"], row["how"]): row for row in csv.DictReader(file)}
    assert rows["20", "compiled"]["status"] == "ended by SIGSEGV"
    assert rows["20", "warm"]["CPU"] == "0.2"


def test_the_same_motions_are_asked_for_whatever_the_nodes():
    for dof in (7, 14):
        start, goal = cases.ends(dof)
        assert len(start) == len(goal) == dof


@pytest.mark.slow
def test_a_plan_for_real():
    with apart.processes() as measure:
        found = measure(apart.Case("planning", "plan", {"dof": 7, "kind": "rate", "nodes": 20}))
    assert found.status == "done"
    cold, warm = found.parts
    assert (cold["part"], warm["part"]) == ("cold", "warm")
    assert warm["T"] == pytest.approx(cold["T"], rel=1e-9)
    for x in (cold, warm):
        assert 0 < x["functions"]
        assert 0 < x["solver"]
        assert x["functions"] + x["solver"] < x["value"]
