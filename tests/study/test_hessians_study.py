"""When exact Hessians pay: what the study makes of its runs, and what it found."""

import csv
from pathlib import Path

import numpy as np
import pytest

from oc_dyn import cli
from oc_dyn.study import hessians
from oc_dyn.study.apart import Told

RESULTS = Path(__file__).resolve().parents[2] / "results" / "hessians"


def told(build, first, again, objective=2.0, seen=(0.1, 0.2), success=True):
    facts = {"status": "Solve_Succeeded", "success": success, "iterations": 10, "objective": objective}
    facts |= {"functions": first / 2, "unknowns": 2, "rows": 1, "seen": list(seen)}
    facts |= {"instructions": {"value": 5, "Jacobian": 6, "Hessian": None}}
    parts = [
        {"part": "build", "value": build, "cpu": build},
        {"part": "first", "value": first, "cpu": first, **facts},
        {"part": "again", "value": again, "cpu": again},
    ]
    return Told("done", parts, 1.0)


AD, QUICK, OTHER = ("AD", False), ("analytic", True), ("quasi-Newton", False)


def test_seconds_are_the_least_of_all_rounds():
    """A machine that is half as fast in one round changes nothing, but is told."""
    runs = {AD: [told(1, 0.5, 0.4), told(2, 1, 0.8)], QUICK: [told(6, 0.4, 0.2), told(3, 0.2, 0.1)]}
    plain, quick = hessians.rows_of("some", runs)
    assert plain["once over AD"] == 1
    assert quick["solve over AD"] == pytest.approx(0.25)
    assert (quick["solve over AD low"], quick["solve over AD high"]) == (pytest.approx(0.125), pytest.approx(0.5))
    assert quick["once over AD"] == pytest.approx(3.2 / 1.5)
    assert quick["solve [s]"] == pytest.approx(0.1)
    assert quick["steady"] == "no"
    once = {way: some[1:] for way, some in runs.items()}
    assert {row["steady"] for row in hessians.rows_of("some", once)} == {"no"}
    runs = {way: some * 2 for way, some in runs.items()}
    assert {row["steady"] for row in hessians.rows_of("some", runs)} == {"yes"}


def test_another_optimum_is_noticed_by_its_objective_and_other_unknowns_are_told():
    ways = [("AD", True), ("analytic", False), *hessians.WAYS.items()]
    runs = {AD: [told(1, 1, 1)], QUICK: [told(1, 1, 1, seen=(0.1, 0.21))], OTHER: [told(1, 1, 1, objective=2.001)]}
    runs[ways[0]] = [told(1, 1, 1, objective=1.0, success=False)]
    found = [row["same optimum"] for row in hessians.rows_of("some", runs)]
    assert found == ["yes", "yes", "no", "no"]
    assert hessians.rows_of("some", runs)[1]["off"] == pytest.approx(0.01)


def test_what_did_not_end_is_told_and_not_chosen():
    runs = {AD: [told(1, 1, 1)] * 2, QUICK: [told(1, 0.1, 0.1), Told("more than 120 s", [], 120.0)]}
    rows = hessians.rows_of("some", runs)
    assert rows[1]["status"] == "more than 120 s"
    assert {row["way"] for row in hessians.choices(rows)} == {"AD"}


def test_choices_are_the_least_of_building_and_so_many_solves():
    runs = {AD: [told(1, 0.5, 0.5)], QUICK: [told(10, 0.1, 0.1)], OTHER: [told(0.2, 2, 2)]}
    rows = hessians.choices(hessians.rows_of("some", runs))
    for row in rows:
        n = row["solves"]
        sides = {"AD": 1 + 0.5 * n, "analytic, compiled": 10 + 0.1 * n, "quasi-Newton": 0.2 + 2 * n}
        assert row["way"] == min(sides, key=sides.get)
        assert row["over AD"] == pytest.approx(min(sides.values()) / sides["AD"])
        assert row["best without exact"] == pytest.approx(sides["quasi-Newton"] / sides["AD"])
    assert [row["way"] for row in rows[:3]] == ["AD", "AD", "analytic, compiled"]


def test_each_way_comes_first_in_turn():
    ways = hessians.ways_of("cart_pole")
    assert len(ways) == 8
    assert {hessians.turned(ways, k)[0] for k in range(8)} == set(ways)
    assert all(set(hessians.turned(ways, k)) == set(ways) for k in range(9))
    assert {name for name, _ in hessians.ways_of("panda_path")} == {"AD", "analytic", "quasi-Newton"}


def kept():
    with open(RESULTS / "hessians.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("problem", hessians.NODES)
def test_exact_hessians_of_the_committed_results_agree(problem):
    """Analytic ones and those of AD, compiled or not, take the same way to the same optimum."""
    rows = [row for row in kept() if row["problem"] == problem and row["hessian"] in ("AD", "analytic")]
    assert len(rows) == 4
    assert {row["same optimum"] for row in rows} == {"yes"}
    np.testing.assert_allclose([float(row["objective"]) for row in rows], float(rows[0]["objective"]), rtol=1e-7)


def test_the_swing_up_of_the_committed_results_is_the_known_one():
    for row in kept():
        if row["problem"] == "cart_pole" and row["same optimum"] == "yes":
            assert float(row["objective"]) == pytest.approx(58.80764, abs=6e-6)  # Hermite-Simpson, 50 intervals


@pytest.mark.slow
def test_quick_study(tmp_path, capsys):
    assert cli.main(["study", "hessians", "--quick", "--out", str(tmp_path)]) == 0
    with open(tmp_path / "hessians.csv", newline="", encoding="utf-8") as file:
        rows = {(row["hessian"], row["compiled"]): row for row in csv.DictReader(file)}
    assert len(rows) == 8
    assert {row["same optimum"] for row in rows.values()} == {"yes"}
    assert int(rows["quasi-Newton", "no"]["iterations"]) > int(rows["AD", "no"]["iterations"])
    assert rows["quasi-Newton", "no"]["Hessian"] == ""
    assert (tmp_path / "hessians.png").exists()
    assert "quasi-Newton" in capsys.readouterr().out
