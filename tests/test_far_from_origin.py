"""A robot kilometres from the root's origin. That what does not depend on its place keeps its digits there, by all
methods of all quantities, is part of test_agreement: spatial methods look from where the first body of each tree is.
"""

from dataclasses import replace

import numpy as np
import pytest
from samples import build, carried_far, random_ports, relative, robot
from test_agreement import OPTIONS

import oc_dyn as od
from oc_dyn.registry import get_method

FAR = 1e4  # m


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics", "hybrid_dynamics", "coriolis_matrix"])
def test_robots_that_stand_far_away(quantity):
    """On the ground, and one of two trees alone."""
    here, there = (build(["revolute"] * 3, [0, 1, 0], seed=31) for _ in range(2))
    links, joints, floating, held = there.description
    joints = [replace(j, translation=j.translation + [FAR, -FAR, 0]) if j.parent == "link0" else j for j in joints]
    there = there._assembled(links, joints, floating, held)
    options = OPTIONS.get(quantity, {})
    for method in od.methods(quantity):
        order = min(x for x in (3, get_method(quantity, method).max_order) if x is not None)
        one, other = (od.function(r, quantity, order=order, method=method, **options) for r in (here, there))
        x = random_ports(one, here, 1)
        got, expected = other(**x), one(**x)
        assert max(relative(got[port], expected[port]) for port in expected) < 1e-11, method


@pytest.mark.parametrize("quantity, port", [("com", "c"), ("frame_pose", "p")])
def test_places_move_along(quantity, port):
    """Where it is differs by the way it was carried."""
    r = robot("small floating")
    q = r.random_configuration(2)
    for method in od.methods(quantity):
        f = od.function(r, quantity, method=method, **OPTIONS.get(quantity, {}))
        way = np.array(f(q=carried_far(r, q))[port] - f(q=q)[port]).ravel()
        assert np.abs(way - FAR).max() < 1e-11, method


def test_spatial_twists_are_about_the_root_s_origin():
    """They change with the place, by the lever."""
    r = robot("small floating")
    options = {"frame": "link2", "representation": "spatial"}
    for method in od.methods("frame_twist"):
        f = od.function(r, "frame_twist", order=1, method=method, **options)
        x = random_ports(f, r, 4)
        far = {**x, "q": carried_far(r, x["q"])}
        V, W = (np.array(f(**at)["V"]).ravel() for at in (x, far))
        assert np.abs(W[3:] - V[3:] - np.cross([FAR] * 3, V[:3])).max() < 1e-10, method
