"""The study of growth: what it measures, that it goes on where it was stopped, and its fits."""

import csv
import json
import os

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import SolveError
from oc_dyn.runs import stored_table
from oc_dyn.study import STUDIES, growth, load, memory


@pytest.fixture(scope="module", params=["one process", pytest.param("fresh processes", marks=pytest.mark.slow)])
def done(request, tmp_path_factory):
    """Folder and report of the quick study; it weighs Functions in processes of their own, or in this one."""
    out = tmp_path_factory.mktemp("growth") / "new"
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "one process":
            patch.setattr(growth, "fresh", lambda function, **arguments: function(**arguments))
        return out, load("growth")(out, quick=True, progress=False)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_writes_tables_figures_and_manifest(done):
    out, report = done
    pictures = {"growth.png", "bodies.png", "memory.png"}
    assert {p.name for p in out.iterdir()} == {"growth.csv", "bodies.csv", "manifest.json", "rows.sqlite"} | pictures
    assert all((out / name).read_bytes()[:4] == b"\x89PNG" for name in pictures)
    facts = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert facts["command"].startswith("oc-dyn study growth --quick")
    (ours,) = (f for f in facts["over_order"] if f["method"] == "taylor" and f["quantity"] == "inverse_dynamics")
    assert ours["fits"]["2"]["residual"] < 0.01
    assert "inverse taylor" in report
    assert "forward ad_via_inverse" in report


@pytest.mark.slow
def test_counts_are_those_of_the_functions(done):
    measured = {
        (r["quantity"], r["method"], r["robot"], r["bodies"], r["order"]): r for r in read(done[0] / "growth.csv")
    }
    panda = od.robots.panda()
    for method, order in (("taylor", 2), ("ad_jet_cse", 1)):
        row = measured["inverse_dynamics", method, "panda", "7", str(order)]
        assert (
            int(row["instructions"])
            == od.function(panda, "inverse_dynamics", order=order, method=method).n_instructions()
        )
        assert float(row["seconds"]) > 0
    for row in measured.values():
        assert bool(row["instructions"]) != bool(row["note"])
    assert any(row["note"] for row in measured.values())  # so the bound is at work
    (row,) = (
        r
        for r in read(done[0] / "bodies.csv")
        if (r["quantity"], r["method"], r["robot"], r["bodies"], r["order"])
        == ("forward_dynamics", "taylor", "tree", "6", "0")
    )
    assert int(row["instructions"]) == od.function(od.robots.tree(6), "forward_dynamics").n_instructions()


@pytest.mark.slow
def test_memory_is_that_of_the_functions(done):
    rows = read(done[0] / "growth.csv")
    panda = od.robots.panda()
    f = od.function(panda, "inverse_dynamics", order=3)
    (row,) = (r for r in rows if (r["quantity"], r["method"], r["order"]) == ("inverse_dynamics", "taylor", "3"))
    assert int(row["work"]) == f.sz_w()
    assert int(row["bytes"]) == len(f.serialize())
    for row in rows:
        weighed = row["method"] == "taylor" and row["instructions"]
        assert bool(row["peak_mb"]) == bool(weighed and memory.peak() is not None)


@pytest.mark.slow
def test_work_in_a_new_process():
    before = memory.peak()
    assert memory.fresh(os.getpid) != os.getpid()
    if before is not None:
        assert float(memory.fresh(growth._build, **POINT)["peak_mb"]) > 0.5  # whatever this process has used already
        assert memory.peak() < before + 50
    with pytest.raises(SolveError, match="(?s)own ended with status 1.*no method"):
        memory.fresh(growth._build, **POINT | {"method": "none"})


POINT = {"quantity": "inverse_dynamics", "method": "taylor", "robot": "panda", "bodies": 7, "order": 2}


@pytest.mark.slow
def test_goes_on_where_it_was(done, tmp_path, monkeypatch):
    whole = read(done[0] / "growth.csv")
    plan = growth._over_orders(range(4))[:1]
    lines = (done[0] / "growth.csv").read_text().splitlines(keepends=True)
    path = tmp_path / "growth.csv"
    path.write_text("".join(lines[:4]))  # orders 0 to 2
    built, facts = [], {"instructions": 4711, "work": 12, "bytes": 99, "seconds": "0.5", "peak_mb": "3.5"}
    monkeypatch.setattr(growth, "fresh", lambda _, **row: built.append(row["order"]) or facts)
    with growth._bar(False, 4) as bar:
        (series,) = growth._measure(path, plan, (10_000, 10), bar, values=growth.WEIGHED)
    assert built == [3]
    assert series.instructions == [*(int(r["instructions"]) for r in whole[:3]), 4711]
    assert series.peaks[3] == 3.5
    assert [s["peak_mb"] for s in whole[:3]] == [r["peak_mb"] for r in read(path)][:3]
    assert [r["instructions"] for r in read(path)] == [str(x) for x in series.instructions]


def test_rows_of_other_code_are_measured_again(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    stored_table.StoredTable(path, ("x",), ("y",)).add(x=1, y=2)
    assert stored_table.StoredTable(path, ("x",), ("y",)).known(x=1)["y"] == "2"
    assert stored_table.StoredTable(path, ("x",), ("z",)).known(x=1) is None  # another table
    monkeypatch.setattr(stored_table, "fingerprint", lambda: "another")
    assert stored_table.StoredTable(path, ("x",), ("y",)).known(x=1) is None


def test_interrupted_rows_stay(tmp_path):
    path = tmp_path / "rows.csv"
    first = stored_table.StoredTable(path, ("x",), ("y",))
    for x in range(3):
        first.add(x=x, y=x * x)
    again = stored_table.StoredTable(path, ("x",), ("y",))
    again.add(x=0, y=0)  # and stopped here
    third = stored_table.StoredTable(path, ("x",), ("y",))
    assert {r["x"]: r["y"] for r in third.found.values()} == {"0": "0", "1": "1", "2": "4"}
    third.add(**third.known(x=2))
    third.close()
    assert [r["y"] for r in read(path)] == ["4"]  # what was asked for
    assert stored_table.StoredTable(path, ("x",), ("y",)).known(x=1)["y"] == "1"  # and the rest is kept


def test_fit():
    x = list(range(6))
    square = growth.fit(x, [3 + 2 * k + 5 * k**2 for k in x], 2)
    assert np.allclose(square["coefficients"], [3, 2, 5])
    assert square["residual"] < 1e-12
    cubic = growth.fit(x, [k**3 for k in x], 3)
    assert cubic["top_term"] == pytest.approx(1)
    assert growth.fit(x, [k**3 for k in x], 2)["residual"] > 0.01
    assert growth.fit(x[:3], [1, 2, 3], 2) is None
    assert growth.fit(x, [100, 50, 3, 4, 5, 6], 1, first=2)["residual"] < 1e-12


def test_expected():
    s = growth.Series("q", "m", "r", None, places=[0, 1], instructions=[100, 300])
    assert growth._expected(s, 2) == pytest.approx(900)
    assert growth._expected(s, 3) == pytest.approx(2700)
    s = growth.Series("q", "m", "r", None, places=[0, 1], instructions=[10, 300])
    assert growth._expected(s, 2) == pytest.approx(900)
    s = growth.Series("q", "m", "r", 2, places=[10, 20], instructions=[100, 400])
    assert growth._expected(s, 40) == pytest.approx(1600)
    assert growth._expected(growth.Series("q", "m", "r", 2), 40) == 0
    assert growth._expected(growth.Series("q", "m", "r", 2, [2], [100]), 4) == 800


def test_unknown_study():
    assert "growth" in STUDIES
    with pytest.raises(od.UnknownName, match="growth"):
        load("grwth")
