"""Twists and Jacobians of frames in the three representations, and the conversions between them."""

import warnings
from itertools import permutations
from math import comb

import casadi as ca
import numpy as np
import pytest
from samples import example_robot, functions_of, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.errors import ShapeError, UnknownName
from oc_dyn.lie import se3, so3
from oc_dyn.lie import twist_conversion as tc
from oc_dyn.ports import derivative_name

REPRESENTATIONS = ("body", "spatial", "hybrid")
PAIRS = list(permutations(REPRESENTATIONS, 2))


# -- conversions ----------------------------------------------------------------------------------------------


def moving_pose():
    """A generic pose (R, p) as expressions of time t."""
    t = ca.SX.sym("t")
    R = so3.rpy(0.3 + 0.7 * t - 0.2 * t**3, ca.sin(0.4 * t) + 0.5, 0.8 * t * t - 1.1 * t)
    p = ca.vertcat(0.4 + t * t, ca.cos(0.9 * t), 0.3 * t**3 - 0.5 * t)
    return t, R, p


def along_time(t, expression, order):
    """[e, e', ...] at t = 0.2, by AD in time."""
    out = [expression]
    for _ in range(order):
        out.append(ca.jacobian(out[-1], t))
    f = ca.Function("f", [t], out)
    return [np.array(x).ravel() for x in f.call([ca.DM(0.2)])]


def twists_by_time(order):
    """{representation: [V, V', ...]} of moving_pose() from its definitions, and the pose."""
    t, R, p = moving_pose()
    turn, path = (ca.jacobian(ca.vec(x), t) for x in (R, p))

    def vee(W):
        return ca.vertcat(W[2, 1], W[0, 2], W[1, 0])

    turn = turn.reshape((3, 3))
    w = vee(turn @ R.T)
    twists = {
        "body": ca.vertcat(vee(R.T @ turn), R.T @ path),
        "spatial": ca.vertcat(w, path - ca.cross(w, p)),
        "hybrid": ca.vertcat(w, path),
    }
    C = tuple(np.array(x) for x in ca.Function("C", [t], [R, p]).call([ca.DM(0.2)]))
    return {k: along_time(t, x, order) for k, x in twists.items()}, C


@pytest.mark.parametrize("source, target", PAIRS)
def test_conversion_is_that_of_the_definitions(source, target):
    twists, C = twists_by_time(4)
    convert = getattr(tc, f"{target}_from_{source}")
    for got, expected in zip(convert(C, twists[source]), twists[target], strict=True):
        assert relative(np.array(got).ravel(), expected) < 1e-12
    assert relative(twists[source][0], twists[target][0]) > 0.1  # they do differ


@pytest.mark.parametrize("source, target", PAIRS)
def test_conversion_there_and_back(source, target):
    rng = np.random.default_rng(1)
    C = so3.quat_to_rot(np.array([0.5, -0.5, 0.1, 0.7]) / 1.0), ca.DM(rng.normal(size=3))  # |quaternion| is 1
    V = [ca.DM(rng.normal(size=6)) for _ in range(6)]
    back = tc.convert_twists(target, source, C, tc.convert_twists(source, target, C, V))
    assert max(relative(x, y) for x, y in zip(back, V, strict=True)) < 1e-11


def test_power_is_the_same_in_every_representation():
    """And so are its derivatives: W V, with wrenches converted along with the twists."""
    twists, C = twists_by_time(3)
    rng = np.random.default_rng(2)
    W = [ca.DM(rng.normal(size=6)) for _ in range(4)]

    def powers(V, W):
        V = [ca.DM(x) for x in V]
        return [sum(comb(k, r) * float(ca.dot(W[r], V[k - r])) for r in range(k + 1)) for k in range(4)]

    expected = powers(twists["body"], W)
    for target in ("spatial", "hybrid"):
        converted = tc.convert_wrenches("body", target, C, twists["body"], W)
        assert powers(twists[target], converted) == pytest.approx(expected, rel=1e-11)
        back = tc.convert_wrenches(target, "body", C, twists[target], converted)
        assert max(relative(x, y) for x, y in zip(back, W, strict=True)) < 1e-12


def test_wrench_of_a_force_at_the_body():
    """A force at the body's origin has its lever arm in the spatial wrench."""
    C = (so3.rot_z(np.pi / 2), ca.DM([1.0, 2.0, 3.0]))
    W = [ca.DM([0, 0, 0, 5.0, 0, 0])]  # along body x, which is root y
    V = [ca.DM.zeros(6)]
    assert relative(tc.convert_wrenches("body", "hybrid", C, V, W)[0], [[0], [0], [0], [0], [5], [0]]) < 1e-15
    assert relative(tc.convert_wrenches("body", "spatial", C, V, W)[0], [[-15], [0], [5], [0], [5], [0]]) < 1e-14


# -- frames ---------------------------------------------------------------------------------------------------


def hinge():
    """One revolute joint about z at x = 1; a tip 1 m out."""
    b = od.RobotBuilder("hinge")
    b.add_link("base")
    b.add_body("arm", "revolute", "base", mass=1.0, xyz=(1, 0, 0))
    b.add_frame("tip", "arm", xyz=(1, 0, 0))
    return b.build()


@pytest.mark.parametrize("method", od.methods("frame_jacobian"))
def test_hinge_by_hand(method):
    r, q = hinge(), 0.5
    J = {
        x: np.array(od.function(r, "frame_jacobian", frame="tip", representation=x, method=method)(q=q)["J"]).ravel()
        for x in REPRESENTATIONS
    }
    np.testing.assert_allclose(J["body"], [0, 0, 1, 0, 1, 0], atol=1e-15)  # along the tip's y
    np.testing.assert_allclose(J["hybrid"], [0, 0, 1, -np.sin(q), np.cos(q), 0], atol=1e-15)
    np.testing.assert_allclose(J["spatial"], [0, 0, 1, 0, -1, 0], atol=1e-15)  # w x (origin - hinge)


def test_turning_base_has_the_cross_term():
    """1 rad/s about z and 1 m/s along body x without accelerating in body axes: the origin accelerates along y."""
    b = od.RobotBuilder("box")
    b.add_link("box", mass=1.0, inertia=np.eye(3))
    r = b.build(floating_base=True)
    x = {"q": r.neutral(), "v": [0, 0, 1, 1, 0, 0], "dv": np.zeros(6)}
    twist = {k: od.function(r, "frame_twist", order=1, frame="box", representation=k)(**x) for k in ("body", "hybrid")}
    assert relative(twist["body"]["dV"], np.zeros((6, 1))) < 1e-15
    assert relative(twist["hybrid"]["dV"], [[0], [0], [0], [0], [1], [0]]) < 1e-15


@pytest.mark.sample("floating-body", "cylindrical-body")
@pytest.mark.parametrize("representation", REPRESENTATIONS)
@pytest.mark.parametrize("name", ["floating", "mimic", "cylindrical", "transform"])
def test_methods_agree_in_every_representation(name, representation):
    r = robot(name)
    for quantity in ("frame_twist", "frame_jacobian"):
        functions = functions_of(r, quantity, 2, frame="link3", representation=representation)
        assert {m for m, _ in functions} == {"recursive_body", "recursive_spatial", "ad", "ad_taylor"}
        x = random_ports(functions[0][1], r)
        expected = functions[0][1](**x)
        for method, f in functions[1:]:
            for port, value in f(**x).items():
                assert relative(value, expected[port]) < 1e-10, (quantity, method, port)


@pytest.mark.sample(4)
@pytest.mark.parametrize("representation", REPRESENTATIONS)
@pytest.mark.parametrize("name", ["floating", "mimic", "spherical"])
def test_twist_is_jacobian_times_velocity(name, representation):
    """With all derivatives: V^(k) = sum_r C(k,r) J^(r) v^(k-r)."""
    r, order = robot(name), 3
    f = od.function(r, "frame_twist", order=order, frame="link2", representation=representation)
    g = od.function(r, "frame_jacobian", order=order, frame="link2", representation=representation)
    x = random_ports(f, r)
    V, J = f(**x), g(**{k: x[k] for k in g.name_in()})
    for k in range(order + 1):
        expected = sum(
            comb(k, l) * np.array(J[derivative_name("J", l)]) @ x[derivative_name("v", k - l)] for l in range(k + 1)
        )
        assert relative(V[derivative_name("V", k)], expected) < 1e-12


@pytest.mark.parametrize("name", ["floating", "branching"])
def test_pose_turns_and_moves_by_the_twist(name):
    r = robot(name)
    C = od.function(r, "frame_pose", order=2, frame="link3")
    x = random_ports(C, r)
    C = C(**x)
    V = od.function(r, "frame_twist", order=1, frame="link3", representation="hybrid")(**x)
    w, dw = (np.array(V[k][:3]) for k in ("V", "dV"))
    R, dR, d2R = (np.array(C[k]) for k in ("R", "dR", "d2R"))
    W, dW = (np.array(so3.skew(ca.DM(a))) for a in (w, dw))
    assert relative(W @ R, dR) < 1e-13
    assert relative(dW @ R + W @ dR, d2R) < 1e-13
    assert relative(V["V"][3:], C["dp"]) < 1e-13
    assert relative(V["dV"][3:], C["d2p"]) < 1e-13


def test_frames_of_one_body_have_one_spatial_twist():
    b = od.RobotBuilder("arm")
    b.add_link("base")
    b.add_body("arm", "spherical", "base", mass=1.0)
    b.add_frame("tip", "arm", xyz=(0.2, 0.3, 0.4), rpy=(1, 2, 3))
    r = b.build()
    f, g = (od.function(r, "frame_twist", order=2, frame=x, representation="spatial") for x in ("arm", "tip"))
    x = random_ports(f, r)
    for port, value in f(**x).items():
        assert relative(g(**x)[port], value) < 1e-13


@pytest.mark.parametrize("method", od.methods("frame_twist"))
def test_frames_on_the_ground_do_not_move(method):
    r = robot("serial")
    for quantity in ("frame_twist", "frame_jacobian"):
        f = od.function(r, quantity, order=1, frame="link0", representation="hybrid", method=method)
        assert all(not np.array(x).any() for x in f(**random_ports(f, r)).values())


@pytest.mark.parametrize("quantity", ["frame_twist", "frame_jacobian"])
def test_frame_and_representation_must_be_said(quantity):
    r = robot("serial")
    with pytest.raises(ShapeError, match="give frame=..., one of link0, link1"):
        od.function(r, quantity, representation="body")
    with pytest.raises(ShapeError) as caught:
        od.function(r, quantity, frame="link1")
    assert all(repr(x) in str(caught.value) for x in REPRESENTATIONS)
    with pytest.raises(UnknownName, match="'local'.*body, spatial, hybrid"):
        od.function(r, quantity, frame="link1", representation="local")
    with pytest.raises(UnknownName, match="'link9'"):
        od.function(r, quantity, frame="link9", representation="body")


def test_ports_say_what_they_mean():
    inputs, outputs = od.ports(robot("floating"), "frame_jacobian", 1, frame="link1", representation="hybrid")
    assert [p.name for p in inputs] == ["q", "v"]
    assert [p.name for p in outputs] == ["J", "dJ"]
    assert outputs[0].shape == (6, 9)
    assert "root axes" in outputs[0].meaning
    inputs, outputs = od.ports(robot("floating"), "frame_twist", 1, frame="link1", representation="body")
    assert [p.name for p in inputs] == ["q", "v", "dv"]
    assert [p.name for p in outputs] == ["V", "dV"]


def test_carried_derivatives_of_an_adjoint():
    """Derivatives of Ad(C(t)) x(t) by the general rule, against AD in time."""
    from oc_dyn.lie.leibniz import carry

    t, R, p = moving_pose()
    x = ca.vertcat(ca.sin(t), t * t, 1 - t, ca.cos(2 * t), t**3, 0.5)
    twists, C = twists_by_time(3)
    rates = [se3.ad(ca.DM(V)) for V in twists["spatial"]]
    got = carry(se3.Ad(C), rates, [ca.DM(a) for a in along_time(t, x, 4)])
    for a, b in zip(got, along_time(t, se3.Ad((R, p)) @ x, 4), strict=True):
        assert relative(np.array(a).ravel(), b) < 1e-12


@pytest.mark.parametrize("path, frame", [("anymal_b_simple_description/robots/anymal.urdf", "LF_FOOT")])
def test_frames_equal_pinocchio(path, frame):
    """Its LOCAL, WORLD and LOCAL_WORLD_ALIGNED; the derivative of a hybrid twist is what it calls classical."""
    pin = pytest.importorskip("pinocchio")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", od.ModelWarning)
        r = od.load_urdf(example_robot(path), floating_base=True)
    model = pin.buildModelFromUrdf(str(example_robot(path)), pin.JointModelFreeFlyer())
    data, theirs = model.createData(), od.interop.to_pinocchio(r, model)
    q, (v, dv) = r.random_configuration(1), np.random.default_rng(1).normal(size=(2, r.nv))
    pin.computeJointJacobians(model, data, theirs.q(q))
    pin.computeJointJacobiansTimeVariation(model, data, theirs.q(q), theirs.v(v))
    pin.forwardKinematics(model, data, theirs.q(q), theirs.v(v), theirs.dv(dv))
    pin.updateFramePlacements(model, data)
    order, number, P = [3, 4, 5, 0, 1, 2], model.getFrameId(frame), np.array(theirs.velocity_matrix(q))
    for representation, seen in (("body", pin.LOCAL), ("spatial", pin.WORLD), ("hybrid", pin.LOCAL_WORLD_ALIGNED)):
        options = {"order": 1, "frame": frame, "representation": representation}
        J = od.function(r, "frame_jacobian", **options)(q=q, v=v)
        V = od.function(r, "frame_twist", **options)(q=q, v=v, dv=dv)
        assert relative(J["J"], pin.getFrameJacobian(model, data, number, seen)[order] @ P) < 1e-12
        assert relative(J["dJ"], pin.getFrameJacobianTimeVariation(model, data, number, seen)[order] @ P) < 1e-12
        twist = pin.getFrameVelocity(model, data, number, seen).vector[order]
        rate = pin.getFrameClassicalAcceleration if representation == "hybrid" else pin.getFrameAcceleration
        assert relative(np.array(V["V"]).ravel(), twist) < 1e-12
        assert relative(np.array(V["dV"]).ravel(), rate(model, data, number, seen).vector[order]) < 1e-12


# -- contacts, inverse kinematics -----------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", od.methods("inverse_dynamics"))
def test_contact_forces_count_as_transposed_jacobians(method):
    robot, frames, rng = od.robots.quadruped(), ["LF_foot", "RH_foot", "RH_shank", "RH_foot"], np.random.default_rng(4)
    q, (v, dv), f = robot.random_configuration(3), rng.normal(size=(2, robot.nv)), 100 * rng.normal(size=(3, 4))
    try:
        inverse = od.function(robot, "inverse_dynamics", method=method, external_wrenches=True)
    except od.ModelError:
        pytest.skip("the method is not for this robot")
    w = od.contact_wrenches(robot, frames)(q, f)
    tau = np.array(inverse(q=q, v=v, dv=dv, w_ext=w)["tau"]).ravel()
    want = np.array(od.function(robot, "inverse_dynamics")(q, v, dv)).ravel()
    for name, force in zip(frames, f.T, strict=True):
        J = od.function(robot, "frame_jacobian", frame=name, representation="hybrid")(q=q)["J"]
        want -= np.array(J)[3:].T @ force
    assert relative(tau, want) < 1e-12


def test_contact_on_the_ground_and_unknown_frame():
    robot = od.robots.panda()
    f = od.contact_wrenches(robot, ["panda_link0"])
    assert not np.array(f(np.zeros(7), [1, 2, 3])).any()
    with pytest.raises(od.UnknownName, match="panda_link9"):
        od.contact_wrenches(robot, ["panda_link9"])


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name, frame", [("panda", "panda_link8"), ("quadruped", "LH_foot"), ("humanoid", None)])
def test_inverse_kinematics_finds_what_forward_kinematics_gives(name, frame, seed):
    robot = od.robots.by_name(name)
    frame = frame or list(robot.frames)[-1]
    there = robot.random_configuration(seed)
    pose = od.function(robot, "frame_pose", frame=frame)
    at = pose(q=there)
    R, p = np.array(at["R"]), np.array(at["p"]).ravel()
    start = robot.integrate(there, 0.3 * np.random.default_rng(seed).normal(size=robot.nv))
    q = od.inverse_kinematics(robot, frame, p=p, R=R, q_start=start)
    found = pose(q=q)
    assert np.abs(np.array(found["p"]).ravel() - p).max() < 1e-9
    assert np.abs(np.array(found["R"]) - R).max() < 1e-9
    assert np.all(q >= robot.limit("lower"))
    assert np.all(q <= robot.limit("upper"))
    only = od.inverse_kinematics(robot, frame, p=p, q_start=start)
    assert np.abs(np.array(pose(q=only)["p"]).ravel() - p).max() < 1e-10


def test_inverse_kinematics_half_a_turn_away_and_what_it_refuses():
    robot = od.robots.panda()
    pose = od.function(robot, "frame_pose", frame="panda_link8")
    q = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8])
    at = pose(q=q)
    turned = np.array(at["R"]) @ np.diag([-1.0, -1.0, 1.0])
    found = od.inverse_kinematics(robot, "panda_link8", p=at["p"], R=turned, q_start=q)
    assert np.abs(np.array(pose(q=found)["R"]) - turned).max() < 1e-9
    for wrong, error, words in (
        ({"p": [2.0, 0, 0]}, od.LimitError, "'panda_link8' cannot get there"),
        ({"p": [2.0, 0]}, od.ShapeError, "p has shape"),
        ({"p": [0.4, 0, 0.4], "R": np.ones((3, 3))}, od.ShapeError, "rotation matrix"),
        ({"p": [0.4, 0, 0.4], "q_start": [0.0]}, od.ShapeError, "q_start has shape"),
    ):
        with pytest.raises(error, match=words):
            od.inverse_kinematics(robot, "panda_link8", **wrong)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"R": np.diag([1.0, 1, -1])}, "R is not a rotation matrix but a reflection"),
        ({"R": np.ones((3, 3))}, "R is not a rotation matrix"),
        ({"p": [0.1, np.nan, 0]}, r"p is \[0.1, nan, 0.0\], expected finite numbers"),
        ({"p": [0.1, 0]}, r"p has shape \(2,\), expected \(3,\)"),
        ({"limits": "no"}, "limits is 'no', expected True or False"),
    ],
)
def test_inverse_kinematics_says_what_is_wrong(given, words):
    r = od.robots.chain(3)
    with pytest.raises(ShapeError, match=f"inverse_kinematics: {words}"):
        od.inverse_kinematics(r, list(r.frames)[-1], **{"p": [0.1, 0, 0], **given})
