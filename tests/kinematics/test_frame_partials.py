"""Partials of twists of frames and of their time derivatives: against differences, by every method, and Pinocchio."""

import warnings

import numpy as np
import pytest
from samples import ROBOTS, example_robot, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.errors import ShapeError, UnknownName

STEP = 1e-6
REPRESENTATIONS = ("body", "spatial", "hybrid")
VELOCITY, ACCELERATION = "frame_velocity_partials", "frame_acceleration_partials"
KINDS = [  # of joints whose screws are constant, are not, or do not commute
    pytest.param(name, marks=pytest.mark.slow) if name != "prismatic" else name for name in ROBOTS
]


def at(f, x):
    found = f(**{n: x[n] for n in f.name_in()})
    return {n: np.array(found[n]) for n in f.name_out()}


def moved(r, x, name, e):
    return {**x, "q": r.integrate(x["q"].ravel(), e)} if name == "q" else {**x, name: x[name] + np.c_[e]}


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@pytest.mark.parametrize("name", KINDS)
def test_they_are_those_of_differences(name, representation):
    """Of V, dV and d2V, by all that they depend on, of both quantities."""
    r = robot(name)
    options = {"frame": "link2", "representation": representation}
    f = od.function(r, "frame_twist", order=2, **options)
    x = random_ports(f, r, 2)
    found = at(od.function(r, VELOCITY, order=2, **options), x)
    later = at(od.function(r, ACCELERATION, order=1, **options), x)
    assert [n for n in found if not n.startswith("dV_")] == list(later)
    for by in ("q", "v", "dv", "d2v"):
        ends = [(at(f, moved(r, x, by, e)), at(f, moved(r, x, by, -e))) for e in STEP * np.eye(r.nv)]
        for of in ("V", "dV", "d2V"):
            J = np.column_stack([(a[of] - b[of]) / (2 * STEP) for a, b in ends])
            port = f"d{of}_d{by}"
            assert relative(found.get(port, np.zeros((6, r.nv))), J) < 1e-7, port
            if port in later:
                assert relative(later[port], J) < 1e-7, port


@pytest.mark.few(6)
@pytest.mark.slow
@pytest.mark.parametrize("representation", REPRESENTATIONS)
@pytest.mark.parametrize("name", list(ROBOTS))
def test_methods_agree_in_every_representation(name, representation):
    r, options = robot(name), {"frame": "link2", "representation": representation}
    first, *others = (od.function(r, VELOCITY, order=2, method=m, **options) for m in od.methods(VELOCITY))
    x = random_ports(first, r, 4)
    expected = at(first, x)
    assert others
    for f in others:
        assert max(relative(y, expected[n]) for n, y in at(f, x).items()) < 1e-11


def test_joints_that_do_not_carry_the_frame_have_no_entries():
    r = robot("branching")
    f = od.function(r, VELOCITY, order=1, frame="link2", representation="hybrid")
    for port in f.name_out():
        assert set(f.sparsity_out(port).get_col()) <= {0, 1}, port


def test_of_an_arm_in_the_plane():
    """The origin p of the second link of a 2R arm, whose first joint has axis n: its acceleration is
    dv n x p + v^2 n x (n x p), and turns with the first joint."""
    arm = od.robots.planar_2r()
    frame, n = arm.bodies[1].name, arm.joints[0].axis
    q, v, dv = [0.3, 0.5], [1.2, -0.7], [0.4, 0.9]
    p = np.array(od.function(arm, "frame_pose", frame=frame)(q)[2]).ravel()
    assert np.linalg.norm(np.cross(n, p)) > 0.1
    around = np.cross(n, p)
    acceleration = dv[0] * around + v[0] ** 2 * np.cross(n, around)
    J = od.function(arm, ACCELERATION, frame=frame, representation="hybrid")(q, v, dv)
    assert np.array(J[0])[3:, 0] == pytest.approx(np.cross(n, acceleration))
    assert np.array(J[1])[3:, 0] == pytest.approx(2 * v[0] * np.cross(n, around))
    assert np.array(J[2])[3:, 0] == pytest.approx(around)


def test_frame_and_representation_must_be_given():
    r = robot("serial")
    for quantity in (VELOCITY, ACCELERATION):
        with pytest.raises(ShapeError, match="frame="):
            od.function(r, quantity)
        with pytest.raises(ShapeError, match="representation="):
            od.function(r, quantity, frame="link2")
        with pytest.raises(UnknownName, match="hybird"):
            od.function(r, quantity, frame="link2", representation="hybird")


@pytest.mark.sample("spatial-frame_velocity_partials")
@pytest.mark.parametrize("quantity", [VELOCITY, ACCELERATION])
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_the_recursion_takes_less_than_half_of_ad(quantity, representation):
    r, options = robot("serial"), {"frame": "link4", "representation": representation}
    counts = {m: od.function(r, quantity, method=m, **options).n_instructions() for m in od.methods(quantity)}
    assert 2 * counts["recursive_spatial"] < counts["ad"]
    assert od.function(r, quantity, **options).n_instructions() == counts["recursive_spatial"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "path, frame",
    [
        ("hyq_description/robots/hyq_no_sensors.urdf", "lf_foot"),
        ("talos_data/robots/talos_reduced.urdf", "arm_left_7_link"),
    ],
)
def test_equal_pinocchio(path, frame):
    """getFrameVelocityDerivatives, getFrameAccelerationDerivatives, whose twists are [linear; angular]."""
    pin = pytest.importorskip("pinocchio")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", od.ModelWarning)
        r = od.load_urdf(example_robot(path), floating_base=True)
    model = pin.buildModelFromUrdf(str(example_robot(path)), pin.JointModelFreeFlyer())
    data, theirs = model.createData(), od.interop.to_pinocchio(r, model)
    x = random_ports(od.function(r, "inverse_dynamics"), r, 1)
    Q, V, A = theirs.q(x["q"].ravel()), theirs.v(x["v"].ravel()), theirs.dv(x["dv"].ravel())
    P, swapped = theirs.velocity_matrix(x["q"].ravel()), [3, 4, 5, 0, 1, 2]
    pin.computeForwardKinematicsDerivatives(model, data, Q, V, A)
    number = model.getFrameId(frame)
    for representation, seen in (("body", pin.LOCAL), ("spatial", pin.WORLD)):
        options = {"frame": frame, "representation": representation}
        found = at(od.function(r, VELOCITY, order=1, **options), x)
        v_dq, a_dq, a_dv, a_da = pin.getFrameAccelerationDerivatives(model, data, number, seen)
        for port, expected in (("dV_dq", v_dq), ("ddV_dq", a_dq), ("ddV_dv", a_dv), ("ddV_ddv", a_da)):
            assert relative(found[port], expected[swapped] @ P) < 1e-11, (representation, port)
        v_dq, v_dv = pin.getFrameVelocityDerivatives(model, data, number, seen)
        assert relative(found["dV_dq"], v_dq[swapped] @ P) < 1e-11
        assert relative(found["dV_dv"], v_dv[swapped] @ P) < 1e-11
