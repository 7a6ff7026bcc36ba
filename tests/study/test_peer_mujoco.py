"""MuJoCo as a peer: the model that is made of a robot computes what ours does, and so does what the program timed."""

import csv
import sys

import numpy as np
import pytest
import samples

import oc_dyn as od
from oc_dyn.errors import ModelError, SolveError
from oc_dyn.interop import to_mujoco
from oc_dyn.runs.points import bar
from oc_dyn.study.peers import mujoco, native, robots
from oc_dyn.study.peers.tables import report

ROBOTS = {
    "panda": lambda: robots.robot("panda"),
    "ur5": lambda: robots.robot("ur5"),
    "hyq": lambda: robots.robot("hyq"),
    "humanoid": lambda: robots.robot(robots.HUMANOID),
    "armature": lambda: samples.build(["revolute", "prismatic", "revolute"], [0, 1, 1], seed=5, armature=True),
    "ball": lambda: samples.build(["free", "spherical", "revolute"], [0, 1, 1], seed=6),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", list(ROBOTS))
def test_model_is_our_robot(name):
    their = pytest.importorskip("mujoco")
    samples.example_robot(robots.FILES["hyq"][0])
    r = ROBOTS[name]()
    model = mujoco.model(r)
    data, to = their.MjData(model), to_mujoco(r, model)
    s = mujoco.states(r, 2)
    for k in range(2):
        q, v, dv, tau = (s[x][k] for x in ("q", "v", "dv", "tau"))
        data.qpos[:], data.qvel[:], data.qacc[:] = to.q(q), to.v(v, q), to.dv(dv, v, q)
        their.mj_inverse(model, data)
        want = np.array(od.function(r, "inverse_dynamics")(q, v, dv)).ravel()
        assert samples.relative(to.from_tau(data.qfrc_inverse, data.qpos), want) < 1e-9
        data.qfrc_applied[:] = to.tau(tau, q)
        their.mj_forward(model, data)
        want = np.array(od.function(r, "forward_dynamics")(q, v, tau)).ravel()
        assert samples.relative(to.from_dv(data.qacc, data.qvel, data.qpos), want) < 1e-9


def test_other_joints_are_refused():
    with pytest.raises(ModelError, match="joint2.*is helical"):
        mujoco.mjcf(samples.build(["revolute", "helical"]))
    with pytest.raises(ModelError, match="follows"):
        mujoco.mjcf(samples.robot("mimic"))


@pytest.mark.slow
def test_program_times_what_agrees(tmp_path, monkeypatch):
    samples.example_robot(robots.FILES["ur5"][0])
    try:
        mujoco.built()
    except SolveError as error:
        pytest.skip(str(error))
    notes, path = [], tmp_path / "mujoco.csv"
    with bar(False, 2) as steps:
        found = mujoco.ratios(path, ["ur5", "hyq"], steps, notes, 0.05, 5)
        monkeypatch.setattr(mujoco, "_timed", None)  # not called again
        assert mujoco.ratios(path, ["ur5", "hyq"], steps, notes, 0.05, 5) == found
    assert notes == []
    assert len(found) == 2 * sum(map(len, mujoco.ROUTINES.values()))
    for row in found:
        assert row["error"] < 1e-9
        assert 0 < row["low"] <= row["ratio"] <= row["high"]
        assert (row["python_microseconds"] is not None) == (row["routine"] == "interface")
    with open(path, newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(found)
    told = report([], [], found, [], [])
    assert "mj_inverse" in told
    assert "differs" not in told
    found[0]["error"] = 1e-3
    assert report([], [], found, [], []).count("differs") == 1


def test_a_wrong_result_is_found():
    """The comparison of what the program wrote: a bias that is off is seen, on a floating base too."""
    pytest.importorskip("mujoco")
    r = samples.build(["free", "revolute"], seed=6)
    model = mujoco.model(r)
    to, s = to_mujoco(r, model), mujoco.states(r, 1)
    q, v = s["q"][0], s["v"][0]
    T, M = to.velocity_matrix(q), np.array(od.function(r, "mass_matrix")(q))
    bias = np.array(od.function(r, "bias")(q, v)).ravel()
    theirs = to.tau(bias, q) - T @ M @ T.T @ to.dv(np.zeros(r.nv), v, q)
    rows = [{"label": "M", "routine": "mass_matrix", "state": "0", "theirs": T @ M @ T.T, "ours": M}]
    rows += [{"label": "h", "routine": "bias", "state": "0", "theirs": theirs, "ours": bias}]
    rows += [{"label": "bad", "routine": "bias", "state": "0", "theirs": theirs, "ours": 1.001 * bias}]
    texts = [{**x, **{k: mujoco._numbers(x[k]) for k in ("theirs", "ours")}} for x in rows]
    errors = mujoco._errors(r, to, s, texts)
    assert errors["M"] < 1e-12
    assert errors["h"] < 1e-12
    assert errors["bad"] > 1e-4


def test_says_what_is_missing(monkeypatch, tmp_path):
    try:
        native.find_compiler()
    except SolveError:
        pytest.skip("no C compiler")
    monkeypatch.setitem(sys.modules, "mujoco", None)
    assert mujoco.version() is None
    notes = []
    with bar(False, 1) as steps:
        assert mujoco.ratios(tmp_path / "mujoco.csv", ["ur5"], steps, notes, 1, 1) == []
    assert len(notes) == 1
    assert "MuJoCo 4 or newer is not installed" in notes[0]
