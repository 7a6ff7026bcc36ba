"""The study of second partials: its tables, its error metrics, and programs that stay small on humanoids."""

import csv
import json

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.study import load, second_order


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("second_order") / "new"
    return out, load("second_order")(out, quick=True, progress=False)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow


@pytest.mark.slow
def test_writes_tables_figure_and_manifest(done):
    out, report = done
    tables = {"instructions.csv", "accuracy.csv", "programs.csv"}
    assert {p.name for p in out.iterdir()} == tables | {"accuracy.png", "manifest.json", "rows.sqlite"}
    facts = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert facts["command"].startswith("oc-dyn study second_order --quick")
    assert len(facts["instructions"]) == len(read(out / "instructions.csv")) > 6
    assert "composite (default)" in report
    assert "chain" in report


@pytest.mark.slow
def test_errors_are_those_of_the_methods(done):
    rows = read(done[0] / "accuracy.csv")
    assert {row["robot"] for row in rows} == {"chain", "tree"}
    for row in rows:
        worst = {"finite_difference_1": 1e-6, "finite_difference_2": 1e-9}.get(row["method"], 1e-14)
        assert 0 < float(row["rms_rel"]) <= float(row["max_rel"]) < worst, row
        assert float(row["rms_abs"]) <= float(row["max_abs"])
    best = min(float(row["max_abs"]) for row in rows if row["method"] == "finite_difference_1")
    assert best > max(float(row["max_abs"]) for row in rows if row["method"] == "finite_difference_2")


@pytest.mark.slow
def test_counts_are_those_of_the_functions(done):
    counts = {(r["quantity"], r["method"]): int(r["instructions"]) for r in read(done[0] / "instructions.csv")}
    f = od.function(od.robots.double_pendulum(), second_order.INVERSE)
    assert counts[second_order.INVERSE, "composite"] == f.n_instructions()
    assert 0 < counts[second_order.INVERSE, second_order.REPEATED] < 1000
    assert {m for q, m in counts if q == second_order.FORWARD} == {"composite", "ad", "ad_symmetric", "ad_pure"}


def test_metrics():
    """Of n (3 n)^2 numbers: those by (v, q) and by (q, a) are there twice."""
    n = 2
    reference = [np.zeros((n * n, n)) for _ in range(4)]
    got = [x.copy() for x in reference]
    reference[0][1, 1], got[0][1, 1] = 10.0, 13.0
    got[2][0, 0] = 1.0
    found = second_order.metrics(got, reference)
    assert found["max_abs"] == 3.0
    assert found["max_rel"] == 1.0
    assert np.isclose(found["rms_abs"], np.sqrt((9 + 2) / (9 * n**3)))
    assert np.isclose(found["rms_rel"], np.sqrt((0.09 + 2) / (9 * n**3)))


@pytest.mark.slow
def test_large_tensors_are_taken_in_parts(monkeypatch):
    r = od.robots.tree(5)
    at = r.random_configuration(1), *np.random.default_rng(1).normal(size=(2, 5))
    for method, bound in (("bicomplex", 1e-12), ("finite_difference_1", 1e-6)):
        whole = second_order.tensors(r, method, *at)
        monkeypatch.setattr(second_order, "CHUNK", 2)
        parts = second_order.tensors(r, method, *at)
        monkeypatch.undo()
        assert all(np.abs(a - b).max() < bound for a, b in zip(whole, parts, strict=True))


def test_program_of_a_humanoid_is_small():
    r = second_order.humanoid()
    assert r.nv == 36
    assert second_order.program(r, "compact", compiled=False)["bytes"] < 1_000_000
