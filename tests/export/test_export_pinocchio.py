"""Robots as pinocchio.Model: Pinocchio's inverse dynamics and frames, limits, drives; what is refused."""

import numpy as np
import pytest
from samples import ROBOTS

import oc_dyn as od
from oc_dyn.errors import ModelError

pin = pytest.importorskip("pinocchio")

WRITTEN = {n: make for n, make in ROBOTS.items() if n not in ("transform", "planar")}


def check(robot, seed=0):
    model = od.export.pinocchio(robot)
    data, theirs = model.createData(), od.interop.to_pinocchio(robot, model)
    rng = np.random.default_rng(seed)
    q, (v, dv) = robot.random_configuration(seed), rng.normal(size=(2, robot.nv))
    x, y, a = theirs.q(q), theirs.v(v, q), theirs.dv(dv, v, q)
    found = theirs.from_tau(pin.rnea(model, data, x, y, a), x)
    wanted = od.function(robot, "inverse_dynamics")(q=q, v=v, dv=dv)["tau"].full().ravel()
    np.testing.assert_allclose(found, wanted, atol=1e-12 * np.abs(wanted).max())
    pin.framesForwardKinematics(model, data, x)
    for name in robot.frames:
        ours = od.function(robot, "frame_pose", frame=name)(q=q)
        at = data.oMf[model.getFrameId(name)]
        np.testing.assert_allclose(at.translation, ours["p"].full().ravel(), atol=1e-13)
        np.testing.assert_allclose(at.rotation, ours["R"].full(), atol=1e-13)


@pytest.mark.sample("serial", "floating", "helical", "cylindrical", "mimic")
@pytest.mark.parametrize("name", WRITTEN)
def test_pinocchio_finds_the_same_torques_and_frames(name):
    check(WRITTEN[name]())


@pytest.mark.sample("panda")
@pytest.mark.parametrize("name", ["panda", "aerial_manipulator", "humanoid", "quadruped"])
def test_robots_of_the_package(name):
    check(od.robots.by_name(name))


def test_planar_joints_whose_axis_is_z():
    b = od.RobotBuilder("cart")
    b.add_link("base")
    body = {"mass": 2.0, "com": (0.1, 0.2, 0), "inertia": np.diag([0.2, 0.3, 0.4])}
    b.add_body("cart", "planar", "base", joint="floor", xyz=(1, 2, 3), rpy=(0.1, 0.2, 0.3), **body)
    b.add_body("arm", "universal", "cart", joint="neck", axis=(1, 2, 3), **body)
    check(b.build())


def test_limits_drives_and_names_are_carried_over():
    b = od.RobotBuilder("facts")
    b.add_link("base", mass=1, inertia=np.eye(3))
    body = {"mass": 1.0, "inertia": np.eye(3)}
    facts = {"lower": -1, "upper": 2, "effort": 7, "velocity": 3, "damping": 0.4, "friction": 0.2, "armature": 0.1}
    b.add_body("one", "revolute", "base", joint="a", axis=(1, 2, 3), **facts, **body)
    b.add_body("two", "prismatic", "one", joint="b", axis=(0, 0, 1), lower=-3, **body)
    robot = b.build().with_gravity((1, 2, 3))
    model = od.export.pinocchio(robot)
    assert model.name == "facts"
    assert list(model.names) == ["universe", "a", "b"]
    assert model.joints[2].shortname() == "JointModelPZ"
    np.testing.assert_array_equal(model.gravity.linear, [1, 2, 3])
    np.testing.assert_array_equal(model.lowerPositionLimit, [-1, -3])
    np.testing.assert_array_equal(model.upperPositionLimit, [2, np.inf])
    np.testing.assert_array_equal(model.armature, [0.1, 0])
    np.testing.assert_array_equal(model.damping, [0.4, 0])
    limits = (("effort", 7), ("velocity", 3))
    for name, value in limits:
        upper = f"upper{name.capitalize()}Limit"
        found = getattr(model, upper) if hasattr(model, upper) else getattr(model, f"{name}Limit")
        np.testing.assert_array_equal(found, [value, np.inf])
    assert model.inertias[0].mass == 1


def test_what_pinocchio_has_no_joint_for_is_named():
    with pytest.raises(ModelError, match="joint 'joint1' is transform; Pinocchio has no joint like it"):
        od.export.pinocchio(ROBOTS["transform"]())
    with pytest.raises(ModelError, match=r"joint 'joint1': only planar joints with axis \(0, 0, 1\)"):
        od.export.pinocchio(ROBOTS["planar"]())
    with pytest.raises(ModelError, match="expected a Robot"):
        od.export.pinocchio(None)


def test_without_pinocchio_there_is_a_hint(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pinocchio", None)
    with pytest.raises(ModelError, match="pinocchio is not installed; pip install pin"):
        od.export.pinocchio(ROBOTS["serial"]())
