"""The study of the dynamic matrices: what sharing saves on a humanoid."""

import csv

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.study import load, native


@pytest.mark.slow
def test_matrices(tmp_path):
    report = load("matrices")(tmp_path, quick=True)
    with open(tmp_path / "matrices.csv", newline="", encoding="utf-8") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"jacobian_sum", "composite"}
    assert all(row["nv"] == "25" for row in rows.values())
    assert all(name in report for name in rows)
    assert (tmp_path / "manifest.json").exists()
    # two evaluations of the sums that the paper measures cost more than twice what all six matrices do
    assert float(rows["composite"]["share of the sums"]) < 0.5
    # products have two terms in their derivative: a method against itself saves nothing
    assert 1.0 < float(rows["jacobian_sum"]["share"]) < 1.2
    assert 1.0 < float(rows["composite"]["share"]) < 1.3
    # and no more than the three of its matrices, each by the Function that counts fewest, at two instants
    assert float(rows["composite"]["share of separate Functions"]) < 1.05


@pytest.mark.skipif(native.compiler() is None, reason="needs a C compiler")
def test_time_of_compiled_code():
    """Runs that alternate: more work takes longer, in every round but for a disturbed one."""
    arm = od.robots.by_name("panda")
    small, large = (od.function(arm, "inverse_dynamics", order=k) for k in (0, 3))
    ports = {name: np.ones(large.size_in(name)) for name in large.name_in()}
    found = native.times([small, large], ports, rounds=9, flags=("-O1",))
    assert found.shape == (9, 2)
    assert np.all(found > 0)
    assert np.median(found[:, 1] / found[:, 0]) > 2
