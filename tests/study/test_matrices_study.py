"""The study of the dynamic matrices: what sharing saves on a humanoid."""

import csv

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.study import dense_matrices, load, native


@pytest.mark.slow
def test_matrices(tmp_path):
    report = load("matrices")(tmp_path, quick=True)
    with open(tmp_path / "matrices.csv", newline="", encoding="utf-8") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"jacobian_sum", "composite", "ad_taylor", *dense_matrices.WAYS}
    assert all(row["nv"] == "25" for row in rows.values())
    assert all(name in report for name in rows)
    assert (tmp_path / "manifest.json").exists()
    # two evaluations of the sums that the paper measures cost more than twice what all six matrices do
    assert float(rows["composite"]["share of the sums"]) < 0.5
    # products have two terms in their derivative: a method against itself saves nothing
    assert 1.0 < float(rows["jacobian_sum"]["share"]) < 1.2
    assert 1.0 < float(rows["composite"]["share"]) < 1.3
    assert 0.9 < float(rows["dense (Remark 5)"]["share"]) < 1.1 < float(rows["dense (25a)"]["share"]) < 1.4
    # and no more than the three of its matrices, each by the Function that counts fewest, at two instants
    assert float(rows["composite"]["share of separate Functions"]) < 1.05


@pytest.mark.parametrize("way", dense_matrices.WAYS)
def test_dense_products_give_the_same_matrices(way):
    robot, rng = od.robots.tree(4), np.random.default_rng(1)
    q, (v, dv) = robot.random_configuration(1), rng.normal(size=(2, 4))
    wanted = od.function(robot, "dynamic_matrices", order=1, method="jacobian_sum")(q=q, v=v, dv=dv)
    f = dense_matrices.dense_matrices(robot, 1, way)
    found = f(q=q, v=v, dv=dv)
    for name in f.name_out():
        assert np.abs(np.array(found[name] - wanted[name])).max() < 1e-13
    before = dense_matrices.dense_matrices(robot, 0, way)(q=q, v=v)
    assert all(np.array_equal(before[name], found[name]) for name in "MCg")


def test_dense_products_are_counted_with_their_zeros():
    x, y = ca.MX.sym("x", 2, 3), ca.MX.sym("y", 3, 4)
    f = ca.Function("f", [x, y], [x @ y + ca.MX.ones(2, 4)])
    assert dense_matrices.operations(f) == 2 * 2 * 3 * 4 + 2 * 4
    with pytest.raises(od.ModelError, match="one degree of freedom"):
        dense_matrices.dense_matrices(od.robots.humanoid(floating_base=True), 0, dense_matrices.WAYS[0])


@pytest.mark.slow
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
