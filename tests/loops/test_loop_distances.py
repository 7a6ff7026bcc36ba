"""Distances of robots with loops: those of the tree where it is closed, and their derivatives."""

import numpy as np
import pytest
from loops.linkages import linkage

import oc_dyn as od
from oc_dyn.errors import ModelError, OrderError
from oc_dyn.scene.shapes import Capsule, HalfSpace, Sphere


def at(*xyz):
    pose = np.eye(4)
    pose[:3, 3] = xyz
    return pose


def scene():
    made = od.Scene().attach("middle", "coupler_link", Capsule(0.05, 0.4), at(0.4, 0, 0))
    return made.add("ground", HalfSpace((0, 0, 1), -0.8)).add("post", Sphere(0.1), at(0.2, 0.1, 0.9))


def test_they_are_those_of_the_closed_tree():
    robot, s = linkage("four_bar"), scene()
    q = robot.neutral() + 0.4
    closed = np.array(od.function(robot, "loop_closure")(q)[0]).ravel()
    found, wanted = od.function(robot, "distances", scene=s)(q), od.function(robot.tree, "distances", scene=s)(closed)
    assert np.array(found) == pytest.approx(np.array(wanted), abs=1e-12)


@pytest.mark.slow
def test_derivatives_are_those_of_differences():
    robot, s, h = linkage("four_bar"), scene(), 1e-6
    q, lam = robot.neutral() + 0.4, np.array([0.7, -1.3])
    f = od.function(robot, "distances", scene=s)
    slope = (np.array(f(q + h)) - np.array(f(q - h))) / (2 * h)
    assert np.array(od.function(robot, "distances_partials", scene=s)(q)) == pytest.approx(slope, abs=1e-7)
    adjoint = od.function(robot, "distances_adjoint", scene=s)(q, lam[: slope.size])
    assert float(adjoint) == pytest.approx(float(lam[: slope.size] @ slope.ravel()), abs=1e-7)


@pytest.mark.slow
def test_what_is_not_there_is_refused_by_name():
    robot = linkage("four_bar")
    with pytest.raises(OrderError, match="distances_lagrangian_hessian is not there for robots with loops"):
        od.function(robot, "distances_lagrangian_hessian", scene=scene())
    with pytest.raises(ModelError, match="not there for robots with loops"):
        od.Scene.of(robot)


def test_plans_among_obstacles_are_refused_by_name():
    robot = linkage("four_bar")
    limits = od.Limits(robot.coordinate_names, v=[1.0], dv=[3.0])
    q = robot.neutral()
    with pytest.raises(ModelError, match="plans among obstacles are not there"):
        od.plan_point_to_point(robot, q, q + 0.2, limits=limits, scene=scene())
