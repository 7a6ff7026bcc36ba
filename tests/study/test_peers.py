"""The study of peers: its tables, its models for the benchmark, and what it does where something is not installed."""

import csv
import json
import sys

import casadi as ca
import numpy as np
import pytest
from lxml import etree
from samples import example_robot

import oc_dyn as od
from oc_dyn.errors import ModelError, SolveError
from oc_dyn.study import load, peers
from oc_dyn.study.peers import adam, native, recorded, robots
from oc_dyn.study.peers.tables import report


@pytest.fixture(scope="module")
def ur5():
    example_robot(robots.FILES["ur5"][0])
    return robots.robot("ur5")


@pytest.fixture(scope="module")
def done(tmp_path_factory, ur5):
    out = tmp_path_factory.mktemp("peers") / "new"
    return out, load("peers")(out, quick=True, progress=False)


@pytest.mark.slow
def test_writes_table_figure_and_manifest(done, ur5):
    out, told = done
    assert {p.name for p in out.iterdir()} == {"instructions.csv", "peers.png", "manifest.json", "rows.sqlite"}
    with open(out / "instructions.csv", newline="", encoding="utf-8") as file:
        rows = {(row["quantity"], int(row["order"])): row for row in csv.DictReader(file)}
    assert set(rows) == set(recorded.TARGETS)
    for (quantity, order), row in rows.items():
        count = od.function(ur5, quantity, order=order).n_instructions()
        others = [int(row[peer]) for peer in peers.PEERS if row[peer]]
        assert int(row["instructions"]) == count <= int(row["target"])
        assert all(count < x for x in others), quantity
        assert all(row[f"{peer}_source"] == "recorded" for peer in ("pinocchio", "urdf2casadi") if row[peer])
    facts = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert facts["command"].startswith("oc-dyn study peers --quick")
    assert facts["cells"] == len(rows)
    assert facts["cells_above_target"] == []
    assert facts["adam"] == adam.version()
    assert ("adam is not installed" in told) == (adam.version() is None)
    assert "missed" not in told


def test_recorded_figures_are_whole():
    rows = recorded.recorded()
    assert {row["peer"] for row in rows} == set(peers.PEERS)
    for (quantity, order), targets in recorded.TARGETS.items():
        found = [row for row in rows if (row["quantity"], row["order"]) == (quantity, order)]
        assert found
        assert any(row["peer"] == "pinocchio" for row in found)
        for name, target in zip(recorded.ROBOTS, targets, strict=True):
            assert all(row[name] > target for row in found if row[name] is not None), (quantity, name)


def test_a_missed_target_is_told():
    count = {"robot": "r", "quantity": "q", "order": 0, "target": 10, "x": 20, "x_source": "recorded", "ad_taylor": ""}
    time = {"robot": "r", "quantity": "q", "method": "default", "microseconds": 1.0, "routine_microseconds": 2.0}
    time |= {"target": 0.4, "seconds": 1.0, "bytes": 1e4}
    for c, t, error, missed in ((11, 0.5, 1e-12, 2), (10, 0.4, 1e-8, 0), (11, 0.4, float("nan"), 1)):
        told = report([{**count, "instructions": c}], [{**time, "ratio": t, "error": error}], [], [], [])
        assert told.count("missed") == missed
        assert ("differs" in told) == (error != 1e-12)


# -- what may not be there -------------------------------------------------------------------------------------


def test_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(SolveError, match="no C compiler"):
        native.built()
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    with pytest.raises(SolveError, match="Pinocchio is not installed"):
        native.includes()


def test_runs_with_nothing_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(peers, "robot", lambda name: None)
    told = load("peers")(tmp_path, progress=False)
    assert "example-robot-data is not installed" in told
    assert "no C compiler" in told
    facts = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert len(facts["left_out"]) >= 2
    assert facts["cells"] == 0
    assert facts["largest_relative_difference"] is None


# -- the benchmark ---------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["panda", "hyq", robots.HUMANOID])
def test_models_of_the_benchmark_are_our_robots(name):
    pin = pytest.importorskip("pinocchio")
    example_robot(robots.FILES["hyq"][0])
    ours, model = robots.robot(name), robots.pinocchio_model(name)
    q_place, v_place = robots.coordinate_places(ours, model)
    q = ours.random_configuration(3)
    v, dv = np.random.default_rng(3).normal(size=(2, ours.nv))
    Q, V, A = np.empty(model.nq), np.empty(model.nv), np.empty(model.nv)
    Q[q_place], V[v_place], A[v_place] = q, v, dv  # as the benchmark does it, from theirs to ours
    data = model.createData()
    want = pin.rnea(model, data, Q, V, A)[v_place]
    got = np.array(od.function(ours, "inverse_dynamics")(q=q, v=v, dv=dv)["tau"]).ravel()
    assert np.abs(got - want).max() < 1e-10 * np.abs(want).max()
    lines = robots.model_text(ours, model).splitlines()
    assert int(lines[0]) == model.njoints - 1 == len(lines) - 3
    assert {len(line.split()) for line in lines[1:-2]} == {3 + 9 + 3 + 1 + 3 + 9 + 2 + 3}
    assert lines[-2].split() == [str(k) for k in q_place]
    assert lines[-1].split() == [str(k) for k in v_place]


def test_other_coordinates_are_refused():
    pin = pytest.importorskip("pinocchio")
    b = od.RobotBuilder("turning")
    b.add_link("base")
    b.add_body("arm", "continuous", "base", mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3))
    ours, model = b.build(), pin.Model()
    joint = model.addJoint(0, pin.JointModelRUBZ(), pin.SE3.Identity(), ours.joints[0].name)
    model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    with pytest.raises(ModelError, match="turning"):
        robots.coordinate_places(ours, model)


def test_compiled_code_is_the_function(tmp_path, ur5):
    try:
        native.find_compiler()
    except SolveError:
        pytest.skip("no C compiler")
    f = od.function(ur5, "inverse_dynamics")
    code = native.compiled(f, tmp_path, "tau", ("-O1",))
    assert code["seconds"] > 0
    assert code["bytes"] == (tmp_path / "tau.c").stat().st_size
    assert code["library_bytes"] == code["library"].stat().st_size
    again = ca.external("tau", str(code["library"]))
    x = [ur5.random_configuration(1), *np.random.default_rng(1).normal(size=(2, 6))]
    assert np.abs(np.array(again(*x)) - np.array(f(*x))).max() < 1e-12


def test_prescribed_joints():
    assert len(robots.prescribed(od.robots.panda())) == 4
    floating = od.robots.humanoid(floating_base=True)
    assert len(robots.prescribed(floating)) == floating.nv - 6


def test_file_that_adam_reads():
    path, _, held = robots.FILES["panda"]
    tree = etree.fromstring(adam._readable(example_robot(path), held))
    assert not [joint for joint in tree.findall("joint") if joint.get("name") in held]
    links = {link.get("name") for link in tree.findall("link")}
    assert all(joint.find("child").get("link") in links for joint in tree.findall("joint"))
    assert "panda_hand" in links
    assert "panda_leftfinger" not in links
    assert not tree.findall("link/visual")
    assert all(inertial.find("origin") is not None for inertial in tree.findall("link/inertial"))
