"""Quick looks agree with the distances of the quantity, for every kind of pair."""

import numpy as np
import pytest
from obstacles import at

import oc_dyn as od
from oc_dyn import shapes
from oc_dyn.planning.obstacles import obstacles_of
from oc_dyn.planning.quick_looks import QuickLooks

OTHERS = {
    "box": shapes.Box(0.3, 0.2, 0.4),
    "half-space": shapes.HalfSpace((0, 0, 1), -0.6),
    "sphere": shapes.Sphere(0.2),
    "capsule": shapes.Capsule(0.1, 0.4),
    "cylinder": shapes.Cylinder(0.1, 0.4),
    "ellipsoid": shapes.Ellipsoid(0.1, 0.2, 0.3),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_free_is_told_by_both(kind):
    robot = od.robots.panda()
    turned = np.array([[0, -1, 0, 0.4], [0.6, 0, -0.8, 0.1], [0.8, 0, 0.6, 0.5], [0, 0, 0, 1.0]])
    scene = od.Scene.of(robot).add("other", OTHERS[kind], turned, margin=0.01)
    scene = scene.attach("tool", "panda_link8", shapes.Box(0.1, 0.05, 0.1), at(0, 0, 0.1))
    around = obstacles_of("test", robot, scene, 0.02)
    rng = np.random.default_rng(1)
    lower, upper = robot.limit("lower"), robot.limit("upper")
    q = lower + (upper - lower) * rng.random((300, 7))
    missing = around.missing(q).max(axis=1)
    clear = np.abs(missing) > 3e-3  # nearer to the border balls and smooth distances may differ
    told = QuickLooks(around).free(q)
    assert np.array_equal(told[clear], (missing <= 0)[clear])
    assert 0.02 < told.mean() < 0.98
    assert np.array_equal(QuickLooks(around).free(q[3]), told[3:4])
