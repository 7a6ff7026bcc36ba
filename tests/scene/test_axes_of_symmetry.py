"""A joint that turns a shape about an axis of symmetry of it does not count on the way to it."""

import casadi as ca
import numpy as np
import pytest
from samples import random_ports, relative

import oc_dyn as od
from oc_dyn.model.canonical import canonical
from oc_dyn.scene.placed import placed, reference

s = od.shapes
DERIVATIVES = ("distances_partials", "distances_adjoint", "distances_lagrangian_hessian")
ROUND = [s.Sphere(0.05), s.Capsule(0.05, 0.2), s.Cylinder(0.05, 0.2), s.Ellipsoid(0.05, 0.05, 0.2)]


def off(x, z=0.07):
    C = np.eye(4)
    C[:3, 3] = x, 0, z
    return C


def bodies(robot, scene):
    model, q = canonical(robot), ca.SX.sym("q", robot.nq)
    return {k: x.body for k, x in placed(model, scene, q, None, None, reference(model, scene))[0].items()}


def scene_of(shape, x):
    """On link 6 of the Panda, whose joint turns about its z axis, among capsules askew."""
    scene = od.Scene().attach("low", "panda_link1", s.Capsule(0.06, 0.3), off(0.05))
    return scene.attach("held", "panda_link6", shape, off(x)).add("post", s.Capsule(0.05, 1.0), off(0.9))


@pytest.mark.sample("shape1")
@pytest.mark.parametrize("shape", ROUND)
def test_on_the_axis_of_its_joint(shape):
    robot, scene = od.robots.panda(), scene_of(shape, 0.0)
    assert bodies(robot, scene)["held"] == 5
    for quantity in DERIVATIVES:
        ours, ad = (od.function(robot, quantity, scene=scene, method=m) for m in (None, "ad"))
        for seed in range(2):
            ports = random_ports(ours, robot, seed)
            (x,), (y,) = (list(f(**ports).values()) for f in (ours, ad))
            assert relative(x, y) < 1e-7
    rng = np.random.default_rng(0)
    q = np.tile(rng.uniform(-1, 1, 7), (5, 1))
    q[:, 5] = rng.uniform(-1, 1, 5)
    assert np.ptp(od.scene.exact_distances(robot, scene, q), axis=0).max() < 1e-12


@pytest.mark.parametrize(
    "shape, x",
    [(s.Box(0.1, 0.1, 0.2), 0.0), (s.Ellipsoid(0.05, 0.0500001, 0.2), 0.0), *((x, 1e-9) for x in ROUND)],
)
def test_no_symmetry_no_rounding(shape, x):
    """Shapes that are turned, or that are a nanometre off the axis, count."""
    assert bodies(od.robots.panda(), scene_of(shape, x))["held"] == 6


def test_across_the_axis_and_several_joints():
    """A capsule across the axis counts; a ball where three axes meet is where the first of them leaves it; along the
    axis of a prismatic joint a capsule is moved."""
    across = np.eye(4)
    across[:3, :3] = [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    robot = od.robots.panda()
    scene = od.Scene().attach("across", "panda_link6", s.Capsule(0.05, 0.2), across)
    scene = scene.attach("wrist", "panda_link6", s.Sphere(0.05)).attach("end", "panda_link8", s.Sphere(0.05))
    assert bodies(robot, scene) == {"across": 6, "wrist": 4, "end": 6}
    b = od.RobotBuilder("slide")
    b.add_link("base")
    b.add_link("rod", mass=1.0, inertia=np.eye(3))
    b.add_joint("joint", "prismatic", "base", "rod", axis=(0, 0, 1))
    assert bodies(b.build(), od.Scene().attach("rod_", "rod", s.Capsule(0.05, 0.3)))["rod_"] == 1
