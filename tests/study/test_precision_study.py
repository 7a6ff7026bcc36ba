"""The study of digits far from the origin."""

import csv

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.inverse_dynamics.recursive_body import recursive_body
from oc_dyn.model.canonical import canonical
from oc_dyn.study import load, precision


@pytest.mark.slow
def test_precision(tmp_path):
    told = load("precision")(tmp_path, quick=True)
    with open(tmp_path / "precision.csv", newline="", encoding="utf-8") as file:
        rows = {(row["form"], row["distance"], row["order"]): float(row["error"]) for row in csv.DictReader(file)}
    assert set(rows) == {(f, d, k) for f in precision.FORMS for d in ("0", "10000") for k in "01"}
    assert all(form in told for form in precision.FORMS)
    for (form, distance, order), error in rows.items():
        if (form, distance) == ("about origin", "10000"):
            assert 1e-9 < error < 1e-6, order  # inertias about the origin are 1e8 times as large
        else:
            assert error < 5e-15, (form, distance, order)
    assert (tmp_path / "precision.png").stat().st_size > 5000
    assert (tmp_path / "manifest.json").exists()


def test_a_model_that_is_carried_away_is_that_of_the_robot_there():
    """Beside poses of links by od.function of a robot whose first joint is where the model was carried."""
    robot = od.robots.double_pendulum()
    links, joints, floating, held = robot.description
    way = 5 / np.sqrt(3)
    first = joints[0].parent
    moved = [type(j)(**{**vars(j), "translation": j.translation + way}) if j.parent == first else j for j in joints]
    there = canonical(robot._assembled(links, moved, floating, held))
    model = precision.moved(canonical(robot), 5)
    for i in model.bodies:
        assert np.allclose(model.p[i], there.p[i], atol=1e-15)
    points = precision.motions(model, 0)[:3]
    assert np.allclose(*(precision.torques(recursive_body, m, 0, points) for m in (model, there)), atol=1e-13)


def test_digits():
    assert precision.digits(1e-3) == pytest.approx(3)
    assert precision.digits(0) == pytest.approx(15.65, abs=0.01)
