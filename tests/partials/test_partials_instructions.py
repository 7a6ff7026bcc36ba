"""Instructions of the default methods of the partials, not above these figures, and against the strongest AD."""

from functools import cache

import pytest
from test_instructions import load as read

import oc_dyn as od
from oc_dyn.registry import get_method

FIGURES = {  # zeros that the tree makes are not counted
    "panda": {
        "inverse_dynamics_partials": 2985,
        "forward_dynamics_partials": 5100,
        "inverse_dynamics_adjoint": 1575,
        "inverse_dynamics_lagrangian_hessian": 5180,
        "forward_dynamics_lagrangian_hessian": 8160,
        "mass_matrix_inverse": 850,
    },
    "ur5": {
        "inverse_dynamics_partials": 1075,
        "forward_dynamics_partials": 2095,
        "inverse_dynamics_adjoint": 720,
        "inverse_dynamics_lagrangian_hessian": 1880,
        "forward_dynamics_lagrangian_hessian": 3470,
        "mass_matrix_inverse": 365,
    },
    "hyq": {
        "inverse_dynamics_partials": 5990,
        "forward_dynamics_partials": 21400,
        "inverse_dynamics_adjoint": 3370,
        "inverse_dynamics_lagrangian_hessian": 9010,
    },
    "talos": {"inverse_dynamics_partials": 23750},
}


load = cache(read)  # Functions live as long as their robot


def count(robot, quantity, order=0, method=None):
    return od.function(robot, quantity, order=order, method=method).n_instructions()


@pytest.mark.sample("panda-inverse_dynamics_partials", "panda-mass_matrix_inverse", "ur5-mass_matrix_inverse")
@pytest.mark.parametrize("name, quantity", [(n, q) for n, row in FIGURES.items() for q in row])
def test_not_above(name, quantity):
    assert count(load(name), quantity) <= FIGURES[name][quantity]


SHARES = [
    ("inverse_dynamics_partials", 0, 0.63, ("panda", "ur5", "hyq")),
    ("inverse_dynamics_partials", 1, 0.60, ("panda", "ur5")),
    ("forward_dynamics_partials", 0, 0.80, ("panda", "ur5")),
    ("inverse_dynamics_adjoint", 0, 0.99, ("panda", "ur5", "hyq")),
    ("inverse_dynamics_lagrangian_hessian", 0, 0.78, ("panda", "ur5", "hyq")),
]


@pytest.mark.sample("inverse_dynamics_partials-0-0.63-panda", "forward_dynamics_partials-0-0.8-ur5")
@pytest.mark.parametrize("quantity, order, share, name", [(*x, n) for *x, names in SHARES for n in names])
def test_shares_of_the_strongest_ad(quantity, order, share, name):
    """Of all methods that are automatic differentiation, that of our analytic adjoint included."""
    robot = load(name)
    rivals = [m for m in od.methods(quantity) if get_method(quantity, m).kind == "ad"]
    assert count(robot, quantity, order) <= share * min(count(robot, quantity, order, m) for m in rivals)


@pytest.mark.sample(2)
@pytest.mark.parametrize("quantity", list(FIGURES["panda"]))
def test_default_is_the_smallest(quantity):
    robot = load("ur5")
    assert count(robot, quantity) == min(count(robot, quantity, method=m) for m in od.methods(quantity))


@pytest.mark.slow
def test_pairs_of_joints_are_all_that_grows_faster():
    """O(n depth): the second difference of the count, that of a pair of joints, does not grow with the chain."""
    counts = [count(od.robots.chain(n), "inverse_dynamics_partials") for n in (4, 8, 12, 16)]
    first, second = counts[2] - 2 * counts[1] + counts[0], counts[3] - 2 * counts[2] + counts[1]
    assert second == pytest.approx(first, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("quantity, most", [("adjoint", 1.9), ("lagrangian_hessian_product", 4.2)])
def test_gradients_and_products_of_long_chains_cost_a_few_functions(quantity, most):
    """They take articulated inertias where forward dynamics does: by the factorised mass matrix it was 2.4 and 4.8."""
    robot = od.robots.chain(20)
    assert count(robot, f"forward_dynamics_{quantity}") <= most * count(robot, "forward_dynamics")
