"""The study of the dynamic matrices: what sharing saves on a humanoid."""

import csv

from oc_dyn.study import load


def test_matrices(tmp_path):
    report = load("matrices")(tmp_path, quick=True)
    with open(tmp_path / "matrices.csv", newline="", encoding="utf-8") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"jacobian_sum", "composite"} and all(row["nv"] == "25" for row in rows.values())
    assert all(name in report for name in rows) and (tmp_path / "manifest.json").exists()
    # two evaluations of the sums that the paper measures cost more than twice what all six matrices do
    assert float(rows["composite"]["share of the sums"]) < 0.5
    # products have two terms in their derivative: a method against itself saves nothing
    assert 1.0 < float(rows["jacobian_sum"]["share"]) < 1.2 and 1.0 < float(rows["composite"]["share"]) < 1.3
