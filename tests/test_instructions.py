"""The speed test that every machine repeats: instructions of the default methods, not above these figures.

A Function of order r computes orders 0..r; its instructions are counted after CasADi's own simplifications. Six of a
floating base are for quaternions that are not of unit length.
"""

import warnings

import numpy as np
import pytest
from samples import example_robot

import oc_dyn as od
from oc_dyn.registry import get_method
from oc_dyn.study.distances import panda_rows

FILES = {  # of the wheel example-robot-data: file, floating base, held joints
    "panda of a file": ("panda_description/urdf/panda.urdf", False, ("panda_finger_joint1", "panda_finger_joint2")),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False, ()),
    "hyq": ("hyq_description/robots/hyq_no_sensors.urdf", True, ()),
    "talos": ("talos_data/robots/talos_reduced.urdf", True, ()),
}
INVERSE = {  # by order
    "panda": {0: 702, 1: 1505, 2: 2600, 3: 3930, 4: 5530, 5: 7360},
    "panda of a file": {0: 702, 1: 1505, 2: 2600, 3: 3930, 4: 5530, 5: 7360},
    "ur5": {0: 366, 1: 812, 2: 1450, 3: 2245, 4: 3215, 5: 4345},
    "hyq": {0: 1621, 1: 3500, 2: 6050, 5: 17200},
    "talos": {0: 4077, 1: 8790, 2: 15150},
}
FORWARD = {
    "panda": {0: 1330, 4: 8410},
    "panda of a file": {0: 1330, 4: 8410},
    "ur5": {0: 635, 4: 4485},
    "hyq": {0: 3510, 4: 20700},
    "talos": {0: 9360, 1: 18100},
}
MASS_MATRIX = {"panda": 515, "panda of a file": 515, "ur5": 245, "hyq": 1212, "talos": 5090}


def load(name):
    if name == "panda":
        return od.robots.panda()
    path, floating, held = FILES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", od.ModelWarning)
        return od.load_urdf(example_robot(path), floating_base=floating, lock=dict.fromkeys(held, 0.0))


def count(robot, quantity, order=0, **options):
    return od.function(robot, quantity, order=order, **options).n_instructions()


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(INVERSE))
def test_not_above(name):
    robot = load(name)
    for quantity, figures in (("inverse_dynamics", INVERSE[name]), ("forward_dynamics", FORWARD[name])):
        for order, most in figures.items():
            assert count(robot, quantity, order) <= most, (quantity, order)
    assert count(robot, "mass_matrix") <= MASS_MATRIX[name]


@pytest.mark.sample("forward_dynamics-4-ad_via_inverse-0.8")
@pytest.mark.parametrize(
    "quantity, order, other, share",
    [("inverse_dynamics", 5, "ad_jet_cse", 0.55), ("forward_dynamics", 4, "ad_via_inverse", 0.8)],
)
def test_shares_of_the_strongest_ad(quantity, order, other, share):
    panda = od.robots.panda()
    assert count(panda, quantity, order) <= share * count(panda, quantity, order, method=other)


@pytest.mark.sample(1)
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("name", ["panda", "aerial_manipulator"])
def test_default_is_the_smallest(name, quantity):
    robot = od.robots.by_name(name)
    others = [m for m in od.methods(quantity) if get_method(quantity, m).refusal(robot, 1) is None]
    assert len(others) > 4
    assert count(robot, quantity, 1) == min(count(robot, quantity, 1, method=m) for m in others)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "quantity, order, sizes",
    [
        ("inverse_dynamics", 0, (25, 50, 100)),
        ("inverse_dynamics", 2, (15, 20, 30)),
        ("forward_dynamics", 0, (15, 30, 60)),
        ("forward_dynamics", 1, (15, 20, 30)),
    ],
)
def test_linear_in_the_number_of_bodies(quantity, order, sizes):
    """Twice the step in bodies, twice the step in instructions; bodies of one seed are the same in every chain."""
    few, some, many = (count(od.robots.chain(n), quantity, order) for n in sizes)
    assert many - some == pytest.approx(2 * (some - few), rel=0.02)


@pytest.mark.sample("forward_dynamics-8")
@pytest.mark.parametrize("quantity, top", [("inverse_dynamics", 10), ("forward_dynamics", 8)])
def test_quadratic_in_the_order(quantity, top):
    """A parabola goes through the counts, and what a cubic would add is nothing."""
    chain, orders = od.robots.chain(2), np.arange(top + 1)
    counts = np.array([count(chain, quantity, int(r)) for r in orders])
    square = np.polynomial.Polynomial.fit(orders, counts, 2)
    cubic = np.polynomial.Polynomial.fit(orders, counts, 3).convert().coef
    assert np.abs(square(orders) - counts).max() < 0.01 * counts.max()
    assert abs(cubic[3]) * top**3 < 0.02 * counts.max()


@pytest.mark.slow
def test_distances_of_the_panda():
    """27 pairs of capsules, and all of their derivatives: less than three times the partials of inverse dynamics."""
    rows = {what.split(": ")[-1]: count for what, count, _ in panda_rows() if "balls" not in what}
    assert rows["distances"] <= 1629
    assert rows["distances_partials"] <= 3066
    assert rows["distances_adjoint"] <= 2595
    assert rows["distances_lagrangian_hessian"] <= 7746
    together = rows["value, gradients and Hessian in one Function"]
    assert together <= 8675
    assert together < 3 * rows["inverse_dynamics_partials"]
