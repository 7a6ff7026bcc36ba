"""The study of distances: what it measures, a seeded sample of it."""

import csv

import numpy as np
import pytest

from oc_dyn import cli
from oc_dyn.study import distances as study


@pytest.mark.sample(1)
@pytest.mark.parametrize("kinds", [("capsule", "half-space"), ("capsule", "capsule"), ("capsule", "box")])
def test_a_row(kinds, monkeypatch):
    monkeypatch.setattr(study, "SLOPES", 3)
    row = dict(zip(study.FIELDS, study.measured(kinds, 60), strict=True))
    assert float(row["largest below numbers [m]"]) <= float(row["bound [m]"]) + 1e-9
    assert float(row["largest above numbers [m]"]) <= 1e-12
    assert row["not finite"] == 0
    assert float(row["gradient error"]) < 1e-6
    assert 20 < row["value"] < row["gradient"] < row["Hessian"]


def test_poses_are_those_of_the_body():
    q, B = study.drawn(5)
    assert np.allclose(B[:, :3, :3] @ np.swapaxes(B[:, :3, :3], 1, 2), np.eye(3))
    f = study.function(study.free_body(), "frame_pose", frame="body")
    A = study.poses(q[:4].T, q[4:].T)
    assert all(np.allclose(f(q=x)["C"], y) for x, y in zip(q.T, A, strict=True))


@pytest.mark.slow
def test_counts_of_the_panda():
    rows = {what: count for what, count, _ in study.panda_rows()}
    assert rows["27 pairs of capsules: distances"] <= 1630
    assert rows["27 pairs of capsules: distances_partials"] <= 3310
    assert rows["27 pairs of capsules: distances_adjoint"] <= 2750
    assert rows["27 pairs of capsules: distances_lagrangian_hessian"] <= 8300


@pytest.mark.slow
def test_quick_study(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "PAIRS", [("sphere", "capsule"), ("sphere", "box")])
    monkeypatch.setattr(study, "QUICK", 30)
    assert cli.main(["study", "distances", "--quick", "--out", str(tmp_path)]) == 0
    with open(tmp_path / "distances.csv", newline="", encoding="utf-8") as file:
        assert [row["pair"] for row in csv.DictReader(file)] == ["sphere - capsule", "sphere - box"]
    assert (tmp_path / "manifest.json").exists()
