"""The closed form read from the right: what it costs, and that its cost is linear in the bodies."""

import numpy as np
import pytest

import oc_dyn as od


def count(robot, method, order=2):
    return od.function(robot, "inverse_dynamics", order=order, method=method).n_instructions()


def test_it_takes_fewer_instructions_than_the_recursions_and_a_tenth_of_the_matrices():
    panda = od.robots.panda()
    count_here = count(panda, "closed_form_vectors")
    assert count_here <= 3620 < count(panda, "recursive_body_leibniz") < count(panda, "recursive_body")
    assert count_here < 0.1 * count(panda, "closed_form")


@pytest.mark.parametrize("order", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_its_cost_is_linear_in_the_bodies(order):
    counts = [count(od.robots.chain(n), "closed_form_vectors", order) for n in (6, 9, 12, 15)]
    np.testing.assert_allclose(np.diff(counts), np.diff(counts)[0], rtol=0.01)
