"""Second partials of forward dynamics over the bodies: operations, what is compiled, tables, parts alone."""

import csv
import json

import casadi as ca
import numpy as np
import pytest
from tqdm import tqdm

import oc_dyn as od
from oc_dyn.errors import ModelError, ShapeError
from oc_dyn.study import singh, singh_forward
from oc_dyn.study.operation_counts import operations
from oc_dyn.study.second_order import FORWARD


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_operations_are_those_written_out():
    """Of products with structural zeros, of calls, of maps and of sums into entries."""
    x, y = ca.SX.sym("x", 3), ca.SX.sym("y")
    inner = ca.Function("inner", [x, y], [ca.vertcat(ca.sin(x[0]) * y, x[1] / x[2] - y)])
    assert operations(inner) == 4
    A = ca.MX.sym("A", ca.Sparsity.triplet(2, 3, [0, 1, 1], [0, 1, 2]))
    B, z = ca.MX.sym("B", 3, 2), ca.MX.sym("z", 1, 5)
    product = ca.Function("product", [A, B], [A @ B])
    assert operations(product) == operations(product.expand()) == 2 * 1 + 2 * 3
    mapped = ca.Function("mapped", [B, z], [inner.map(2)(B, z[:2]), inner(B[:, 1], z[4]) + 1])
    assert operations(mapped) == operations(mapped.expand()) == 3 * 4 + 2


def test_operations_of_what_is_not_known_are_refused():
    A, b = ca.MX.sym("A", 3, 3), ca.MX.sym("b", 3)
    with pytest.raises(ModelError, match="are not known"):
        operations(ca.Function("f", [A, b], [ca.solve(A, b, "qr")]))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spatial_vector", "bicomplex", "finite_difference_2"])
def test_what_is_compiled_is_the_same(method):
    """In parts, and without them."""
    robot = od.robots.tree(4)
    q, (v, tau) = robot.random_configuration(3), np.random.default_rng(3).normal(size=(2, 4))
    one, other = (singh_forward.built(robot, method, parted) for parted in (False, True))
    assert len(other.find_functions()) > len(one.find_functions())
    for a, b in zip(one.call([q, v, tau]), other.call([q, v, tau]), strict=True):
        assert np.abs(np.array(a - b)).max() <= 1e-9 * np.abs(np.array(a)).max()


@pytest.mark.slow
def test_tables_resume_and_parts_run_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(singh_forward, "QUICK", (2, 3))
    monkeypatch.setattr(singh_forward, "KINDS", ("tree",))
    monkeypatch.setattr(singh_forward, "MOST", {"spatial_vector": 3, "chain_rule": 3, "bicomplex": 2})
    (tmp_path / "manifest.json").write_text(json.dumps({"crossovers": [1], "other": 2}))
    told = singh.run(tmp_path, quick=True, progress=False, only="forward")
    assert "N^3 published" in told
    facts = json.loads((tmp_path / "manifest.json").read_text())
    assert facts["crossovers"] == [1]  # of an earlier run of another part
    named = {f"{what} tree {n}" for what in ("forward", "time of forward") for n in (2, 3)}
    assert named <= set(facts["parts"])
    assert "--only forward" in facts["parts"]["forward tree 2"]["command"]
    counts, clock = read(tmp_path / "forward.csv"), read(tmp_path / "forward_times.csv")
    f = od.function(od.robots.tree(3), FORWARD, method="spatial_vector")
    own = [r for r in counts if r["method"] == "spatial_vector"]
    assert int(own[1]["operations"]) == operations(f)
    assert len(counts) == len(clock) == 5
    compiled = read(tmp_path / "forward_compiled.csv")
    assert {r["bodies"] for r in compiled} == ({"2"} if singh_forward.compiler() else set())
    for rows in (clock, compiled):
        assert all(r["ratio"] == "1" for r in rows if r["method"] == "spatial_vector")
        assert all(float(r["microseconds"]) > 0 for r in rows)
    slopes = {(r["of"], r["method"]): r for r in read(tmp_path / "forward_slopes.csv")}
    found = {r["bodies"]: int(r["operations"]) for r in counts if r["method"] == "chain_rule"}
    A = np.log(found["3"] / found["2"]) / np.log(1.5)
    assert float(slopes["operations", "chain_rule"]["A"]) == pytest.approx(A, abs=0.01)
    assert all(float(r["max_rel"]) < 1e-11 for r in counts if r["max_rel"])
    assert sum(not r["max_rel"] for r in counts) == 1  # the reference
    before = {path: path.read_bytes() for path in tmp_path.glob("*.csv")}
    singh_forward.measure(tmp_path, True, ("tree", 2), "serial", tqdm(disable=True))  # the other one stays
    singh_forward.measure_times(tmp_path, True, ("tree", 3), False, tqdm(disable=True))
    assert before == {path: path.read_bytes() for path in tmp_path.glob("*.csv")}


def test_parts_that_are_not_there_are_told(tmp_path):
    with pytest.raises(ShapeError, match="some are: sizes; terms; breakdown; forward chain 2"):
        singh.run(tmp_path, only="figures")
