"""The study of formulations: an ellipsoid about a sum holds it, and ways found by all keep the clearance."""

import numpy as np
import pytest

from oc_dyn.scene import Scene, exact_distances
from oc_dyn.study import formulations as study


def test_an_ellipsoid_about_a_sum_holds_it():
    rng = np.random.default_rng(0)
    A, B = (x @ x.T + 0.1 * np.eye(3) for x in rng.normal(size=(2, 3, 3)))
    M = np.array(study._around(A, B))
    n = rng.normal(size=(200, 3))
    h = [np.sqrt(np.einsum("ki,ij,kj->k", n, x, n)) for x in (A, B, M)]
    assert (h[2] >= h[0] + h[1] - 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", list(study.FORMS))
def test_ways_keep_the_clearance(name):
    case, robot = study.drawn("ellipsoid - ellipsoid", 0), study.flyer()
    scene = Scene().attach("a", "body", case.a).add("b", case.b)
    way, facts = study.FORMS[name](robot, scene, case)
    assert facts["solved"]
    assert np.abs(way[[0, -1]] - case.way[[0, -1]]).max() < 1e-7
    assert exact_distances(robot, scene, way).min() > study.CLEARANCE - 1e-6
    assert float(study._cost(way.T)) < float(study._cost(case.way.T))
