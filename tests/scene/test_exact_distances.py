"""Distances of a scene's pairs as numbers: the quantity's, by another way; bad input is named."""

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import shapes


def at(x, y, z):
    C = np.eye(4)
    C[:3, 3] = x, y, z
    return C


@pytest.mark.parametrize("make", [od.robots.planar_2r, od.robots.quadruped, od.robots.panda])
def test_they_are_those_of_the_quantity(make):
    """Closed forms, on a chain, and on a robot with a floating base and branches."""
    robot = make()
    links = [b.name for b in robot.bodies][-2:]
    scene = od.Scene().attach("one", links[0], shapes.Capsule(0.05, 0.2), at(0.1, 0, 0))
    scene = scene.attach("two", links[1], shapes.Sphere(0.04)).add("ball", shapes.Sphere(0.1), od.scene.PORT)
    scene = scene.add("ground", shapes.HalfSpace((0, 0.6, 0.8), -1))
    rng = np.random.default_rng(1)
    q = np.array([robot.random_configuration(rng) for _ in range(4)])
    C = at(1, 2, 3)
    expected = [np.array(od.function(robot, "distances", scene=scene)(x, C)).ravel() for x in q]
    found = od.scene.exact_distances(robot, scene, q, poses=C)
    assert found == pytest.approx(np.array(expected), abs=1e-12)
    assert od.scene.exact_distances(robot, scene, q[0], poses=C, which=[2, 0]) == pytest.approx(found[:1, [2, 0]])


@pytest.mark.parametrize(
    "given, told",
    [
        ({"q": [0.0, 0.0, 0.0]}, r"q has shape \(1, 3\), expected finite numbers \(K, 2\)"),
        ({"q": [[0.0, np.nan]]}, "expected finite numbers"),
        ({"scene": None}, "scene is None, expected an od.Scene"),
        ({"t": [0.0, 1.0]}, r"t has 2 values, expected 1 times \[s\], or one"),
        ({"poses": None}, "poses of ball come in at a port"),
        ({"poses": np.eye(3)}, r"poses of shape \(3, 3\), expected finite numbers \(1, 4, 4\)"),
    ],
)
def test_what_does_not_fit_is_told(given, told):
    robot = od.robots.planar_2r()
    scene = od.Scene().attach("tip", list(robot.frames)[-1], shapes.Sphere(0.1))
    scene = scene.add("ball", shapes.Sphere(0.1), od.scene.PORT)
    arguments = {"robot": robot, "scene": scene, "q": [0.0, 0.0], "poses": np.eye(4), **given}
    with pytest.raises(od.ShapeError, match=told):
        od.scene.exact_distances(**arguments)
