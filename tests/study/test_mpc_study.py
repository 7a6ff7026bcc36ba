"""The study of predictive control: the same program on both sides, what a peer that is not there does, and the fuzz."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from controllers import needs_compiler

from oc_dyn import cli
from oc_dyn.errors import SolveError
from oc_dyn.study.mpc import fuzz, peer
from oc_dyn.study.mpc.faults import _back
from oc_dyn.study.mpc.tracking import FIRST, HOME, JUMP, Setting, closed_loop_cost, controller, panda, start, task

HERE = Path(__file__).parents[2]


def test_targets_jump_there_and_back():
    setting = Setting(nodes=10, steps=150)
    targets = setting.targets()
    assert len(targets) == 161
    assert np.allclose(targets[[0, 49, 100]], HOME + JUMP)
    assert np.allclose(targets[[50, 99]], HOME)


def test_cost_of_a_loop_counts_the_stage_cost():
    setting, (_, most) = Setting(steps=2), panda()
    x = np.vstack([start(), start()])
    x[1, 7:14] = 1.0
    cost = closed_loop_cost(setting, x, np.vstack([most, 0 * most]))
    assert cost == pytest.approx(2 * np.sum(JUMP**2) + 7 / 100 + 7 / 100)
    fast = Setting(period=1e-3)
    assert fast.shift == 0
    assert closed_loop_cost(fast, x, 0 * x[:, :7]) == pytest.approx((2 * np.sum(JUMP**2) + 7 / 100) / 20)


@pytest.mark.slow
def test_optimum_of_the_first_step_is_the_known_one():
    control = controller(Setting(), iterations=30)
    q, v = start()[:7], start()[7:14]
    found = control.step({"q_now": q, "v_now": v, "r": np.tile(HOME + JUMP, (21, 1))})
    assert found["status"] == 0
    assert found["objective"] == pytest.approx(FIRST, abs=2e-8)


def test_good_samples_until_all_are_ok():
    assert _back(np.array([0, 0, 0])) == 1
    assert _back(np.array([4, 0, 0])) == 2
    assert _back(np.array([0, 1, 0])) == 3


def test_a_peer_that_is_not_there(monkeypatch):
    monkeypatch.delenv(peer.ENVIRONMENT, raising=False)
    assert peer.python() is None
    monkeypatch.setenv(peer.ENVIRONMENT, "no/such/python")
    with pytest.raises(SolveError, match="expected the path of a Python"):
        peer.python()


def test_a_peer_that_lacks_its_wheels(monkeypatch, tmp_path):
    shown = tmp_path / "python"
    shown.write_text(f'#!{sys.executable}\nimport sys\nsys.exit("ModuleNotFoundError: no mim_solvers")\n')
    shown.chmod(0o755)
    monkeypatch.setenv(peer.ENVIRONMENT, str(shown))
    with pytest.raises(SolveError, match="no mim_solvers"):
        peer.loops(task(Setting(steps=2), []))


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get(peer.ENVIRONMENT), reason="needs mim_solvers")
def test_the_peer_solves_the_same_program():
    way = {
        "name": "tight",
        "iterations": 30,
        "options": {**peer.LOOSE, "termination_tolerance": 1e-6, "eps_abs": 1e-8, "max_qp_iters": 1000},
    }
    found = peer.loops(task(Setting(steps=1), [way]))
    assert found["acceleration"] < 1e-9
    assert found["loops"][0]["objective"][0] == pytest.approx(FIRST, abs=1e-7)


@pytest.mark.slow
@needs_compiler
def test_quick_run_without_the_peer(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(peer.ENVIRONMENT, raising=False)
    assert cli.main(["study", "mpc", "--quick", "--out", str(tmp_path)]) == 0
    assert peer.MISSING in capsys.readouterr().out
    facts = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert {row["solver"] for row in facts["steps"]} == {"oc_dyn, riccati", "oc_dyn, qrqp"}
    costs = [row["closed-loop cost"] for row in facts["steps"]]
    assert np.ptp(costs) < 1e-3 * costs[0]
    assert all(row["steps not solved"] == 0 for row in facts["steps"])
    for row in facts["faults"]:
        assert row["torque, share of its limit"] <= 1
        assert row["good samples until ok"] <= 5


@pytest.mark.slow
@needs_compiler
def test_small_controller_in_c_under_fuzz(tmp_path):
    small = fuzz.small(tmp_path)
    found = fuzz.fuzzed(small, 3000, 1)
    assert {k: found[k] for k in ("outside", "broken", "unknown", "late", "twins")} == dict.fromkeys(
        ("outside", "broken", "unknown", "late", "twins"), 0
    )
    assert found["slowest"] <= fuzz.BACK
    assert found["away"] < 1e-6
    assert min(found["statuses"][0], found["statuses"][2]) > 100
    # outputs beyond bounds that are narrower than those that the controller keeps are noticed
    narrow = fuzz.Subject(**{**vars(small), "lower": small.lower / 10, "upper": small.upper / 10})
    assert fuzz.fuzzed(narrow, 500)["outside"] > 0


@pytest.mark.slow
@needs_compiler
def test_laws_in_c_under_fuzz(tmp_path):
    for subject in fuzz.laws(tmp_path):
        found = fuzz.fuzzed(subject, 5000)
        assert [found[k] for k in ("outside", "broken", "unknown", "late", "twins", "away")] == [0] * 6
        assert found["slowest"] <= fuzz.BACK  # a jump within reach is believed, and then the way back is one
        assert found["statuses"][2] > 100
