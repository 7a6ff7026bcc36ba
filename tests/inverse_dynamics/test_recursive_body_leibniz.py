"""The body-fixed recursion from parent to body alone: how much less it takes than the listing along all paths."""

import pytest

import oc_dyn as od


@pytest.mark.parametrize("robot, most", [("panda", 4640), pytest.param("chain", 25453, marks=pytest.mark.slow)])
def test_counts(robot, most):
    r = od.robots.panda() if robot == "panda" else od.robots.chain(20)
    counts = [
        od.function(r, "inverse_dynamics", order=2, method=m).n_instructions()
        for m in ("recursive_body_leibniz", "recursive_body")
    ]
    assert counts[0] <= most < 0.6 * counts[1]
