"""The robot itself: steps on its manifold, names, limits, frames, joints held or following others."""

import dataclasses
import warnings

import casadi as ca
import numpy as np
import pytest
from samples import ROBOTS, build, robot

import oc_dyn as od
from oc_dyn import robots
from oc_dyn.errors import ModelError, ShapeError, UnknownName
from oc_dyn.lie.so3 import axis_frame
from oc_dyn.model.builder import RobotBuilder
from oc_dyn.model.joints import NQ, NV
from oc_dyn.model.robot import Joint, assemble


@pytest.fixture(params=list(ROBOTS))
def any_robot(request):
    return robot(request.param)


def torque(robot, q, v, dv):
    return np.array(od.function(robot, "inverse_dynamics")(q=q, v=v, dv=dv)["tau"]).ravel()


def pose(robot, q, frame):
    return np.array(od.function(robot, "frame_pose", frame=frame)(q=q)["C"])


# -- configurations -------------------------------------------------------------------------------------------


@pytest.mark.sample(24)
@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-8, 1e-4, 0.09, 0.11, 1.0])
def test_integrate_and_difference_are_inverse(any_robot, size):
    r = any_robot
    for seed in range(3):
        q = r.random_configuration(seed)
        dv = size * np.random.default_rng(seed).normal(size=r.nv)
        back = r.difference(q, r.integrate(q, dv))
        np.testing.assert_allclose(back, dv, rtol=1e-9, atol=3e-15)  # small steps keep their digits
        other = r.random_configuration(seed + 100)
        there = r.integrate(q, r.difference(q, other))
        for name in r.frames:  # the same place, though a quaternion may have changed sign
            np.testing.assert_allclose(pose(r, there, name), pose(r, other, name), atol=1e-12)


def test_integrate_is_a_constant_twist(any_robot):
    r = any_robot
    q = r.random_configuration(5)
    dv = np.random.default_rng(5).normal(size=r.nv)
    at_once, in_steps = r.integrate(q, dv), q
    for _ in range(8):
        in_steps = r.integrate(in_steps, dv / 8)
    np.testing.assert_allclose(at_once, in_steps, atol=1e-13)


def test_configuration_rate_is_the_derivative_of_integrate(any_robot):
    r = any_robot
    q = r.random_configuration(2)
    v = np.random.default_rng(2).normal(size=r.nv)
    h = 1e-5
    slope = (r.integrate(q, h * v) - r.integrate(q, -h * v)) / (2 * h)
    np.testing.assert_allclose(r.configuration_rate(q, v), slope, atol=1e-9)


def test_free_body_moves_along_its_own_axes():
    b = RobotBuilder("box")
    b.add_link("box", mass=1.0)
    r = b.build(floating_base=True)
    s = np.sqrt(0.5)
    q = np.array([s, 0, 0, s, 1.0, 2.0, 3.0])  # a quarter turn about z: body x is world y
    np.testing.assert_allclose(r.configuration_rate(q, [0, 0, 0, 1, 0, 0])[4:], [0, 1, 0], atol=1e-15)
    # a quarter turn on a circle of radius 1, forwards along x: ends ahead and to the left
    step = r.integrate(q, [0, 0, np.pi / 2, np.pi / 2, 0, 0])
    np.testing.assert_allclose(step[4:], [1 - 1, 2 + 1, 3], atol=1e-14)
    np.testing.assert_allclose(step[:4], [0, 0, 0, 1], atol=1e-14)


def test_difference_takes_the_shorter_way_round():
    r = robot("spherical")
    q = r.random_configuration(0)
    minus = q.copy()
    minus[:4] *= -1  # the same rotation
    np.testing.assert_allclose(r.difference(q, minus), np.zeros(r.nv), atol=1e-15)


@pytest.mark.sample(1)
def test_steps_take_numbers_and_symbols(any_robot):
    r = any_robot
    q, dv = r.random_configuration(1), np.random.default_rng(1).normal(size=r.nv)
    numbers = r.integrate(q, dv)
    assert isinstance(numbers, np.ndarray)
    assert numbers.shape == (r.nq,)
    np.testing.assert_array_equal(r.integrate(q.reshape(-1, 1), ca.DM(dv)), numbers)
    f, g = r.integrate_function(), r.difference_function()
    for kind in (ca.SX, ca.MX):
        x, y = kind.sym("x", r.nq), kind.sym("y", r.nv)
        F = ca.Function("F", [x, y], [r.integrate(x, y), r.configuration_rate(x, y), f(x, y), g(x, r.integrate(x, y))])
        out = [np.array(o).ravel() for o in F(q, dv)]
        np.testing.assert_allclose(out[0], numbers, atol=1e-15)
        np.testing.assert_allclose(out[1], r.configuration_rate(q, dv), atol=1e-15)
        np.testing.assert_allclose(out[2], numbers, atol=1e-15)
        np.testing.assert_allclose(out[3], r.difference(q, numbers), atol=1e-14)


def test_steps_have_finite_derivatives_at_rest(any_robot):
    r = any_robot
    x, y, dv = ca.SX.sym("x", r.nq), ca.SX.sym("y", r.nq), ca.SX.sym("dv", r.nv)
    J = ca.Function("J", [x, y, dv], [ca.jacobian(r.integrate(x, dv), dv), ca.jacobian(r.difference(x, y), y)])
    q = r.random_configuration(4)
    step, back = (np.array(j) for j in J(q, q, np.zeros(r.nv)))
    assert np.all(np.isfinite(step))
    assert np.all(np.isfinite(back))
    np.testing.assert_allclose(back @ step, np.eye(r.nv), atol=1e-12)


def test_wrong_sizes_are_refused_by_name():
    r = robot("floating")
    with pytest.raises(ShapeError, match="q: got 9 entries, expected 10"):
        r.integrate(np.zeros(9), np.zeros(9))
    with pytest.raises(ShapeError, match="dv: got 10 entries, expected 9"):
        r.integrate(r.neutral(), np.zeros(10))
    with pytest.raises(ShapeError, match="q1: got 3"):
        r.difference(r.neutral(), ca.SX.sym("q", 3))


def test_neutral_and_random_configurations(any_robot):
    r = any_robot
    q0 = r.neutral()
    np.testing.assert_array_equal(r.random_configuration(seed=7), r.random_configuration(seed=7))
    assert not np.array_equal(r.random_configuration(seed=7), r.random_configuration(seed=8))
    for j in r.joints:
        part = slice(j.q_index, j.q_index + j.nq)
        if j.kind in ("spherical", "free"):
            np.testing.assert_array_equal(q0[part][:4], [1, 0, 0, 0])
            assert np.linalg.norm(r.random_configuration(3)[part][:4]) == pytest.approx(1)
        else:
            assert not q0[part].any()


def test_random_configurations_respect_the_limits():
    r = robots.panda()
    for seed in range(20):
        q = r.random_configuration(seed)
        assert np.all(q >= r.limit("lower"))
        assert np.all(q <= r.limit("upper"))
    b = RobotBuilder("half")
    b.add_link("base")
    b.add_body("a", "revolute", "base", mass=1, lower=10.0)
    b.add_body("c", "prismatic", "a", mass=1, upper=-10.0)
    for seed in range(20):
        q = b.build().random_configuration(seed)
        assert q[0] >= 10.0
        assert q[1] <= -10.0


# -- names ----------------------------------------------------------------------------------------------------


def test_names_are_exact():
    b = RobotBuilder("names")
    b.add_link("base")
    for parent, name in (("base", "arm"), ("arm", "forearm"), ("forearm", "arm_2")):
        b.add_body(name, "revolute", parent, mass=1.0)
    r = b.build()
    assert r.frame("arm").body == 1
    assert r.body("arm_2").index == 3
    assert r.joint("arm_joint").q_index == 0
    for look in (r.frame, r.body, r.joint):
        with pytest.raises(UnknownName) as caught:
            look("ar")
        assert "'ar'" in str(caught.value)
        assert "forearm" in str(caught.value)
    with pytest.raises(UnknownName, match="did you mean 'arm_2'"):
        r.frame("arm-2")
    with pytest.raises(KeyError):
        r.joint("arm")  # a link, not a joint


def test_coordinate_names():
    r = build(["revolute", "spherical", "planar"], seed=1, floating_base=True)
    assert r.coordinate_names == (
        *(f"root_joint.{s}" for s in ("qw", "qx", "qy", "qz", "x", "y", "z")),
        "joint1",
        *(f"joint2.{s}" for s in ("qw", "qx", "qy", "qz")),
        *(f"joint3.{s}" for s in ("angle", "x", "y")),
    )
    assert r.velocity_names[:7] == (*(f"root_joint.{s}" for s in ("wx", "wy", "wz", "vx", "vy", "vz")), "joint1")
    assert (len(r.coordinate_names), len(r.velocity_names)) == (r.nq, r.nv)


def test_coordinates_follow_the_tree_and_not_the_order_of_writing():
    def made(order):
        b = RobotBuilder("tree")
        b.add_link("base")
        for i in range(1, 5):
            b.add_link(f"link{i}", mass=1.0)
        parents = {1: "base", 2: "link1", 3: "link1", 4: "link2"}
        for i in order:
            b.add_joint(f"j{i}", "revolute", parents[i], f"link{i}", xyz=(0, 0, 0.1 * i), axis=(0, 1, 0))
        return b.build()

    assert [j.name for j in made([1, 2, 3, 4]).joints] == ["j1", "j2", "j4", "j3"]  # depth first
    assert [j.name for j in made([4, 2, 1, 3]).joints] == ["j1", "j2", "j4", "j3"]
    assert [j.name for j in made([3, 4, 2, 1]).joints] == ["j1", "j3", "j2", "j4"]  # children in the order given


# -- sizes, masses, limits ------------------------------------------------------------------------------------


def test_sizes_and_parameters(any_robot):
    r = any_robot
    assert r.nq == sum(NQ.get(j.kind, 2) for j in r.joints)
    assert r.nv == sum(NV.get(j.kind, 2) for j in r.joints)
    assert [b.index for b in r.bodies] == list(range(1, len(r.bodies) + 1))
    assert all(b.parent < b.index for b in r.bodies)
    params = r.parameters.reshape(-1, 10)
    assert r.total_mass == pytest.approx(params[:, 0].sum())
    b = r.bodies[-1].inertia
    T = b.tensor
    expected = [b.mass, *(b.mass * b.com), T[0, 0], T[0, 1], T[1, 1], T[0, 2], T[1, 2], T[2, 2]]
    np.testing.assert_allclose(params[-1], expected, atol=1e-14)


def test_root_mass_counts_when_it_floats():
    b = RobotBuilder("torso")
    b.add_link("pelvis")  # massless root, its mass only behind a fixed joint
    b.add_body("torso", "fixed", "pelvis", mass=5.0, xyz=(0, 0, 0.3))
    b.add_body("arm", "revolute", "torso", mass=2.0)
    assert b.build().total_mass == 2.0
    floating = b.build(floating_base=True)
    assert floating.total_mass == 7.0
    tau = torque(floating, floating.neutral(), np.zeros(7), np.zeros(7))
    assert tau[5] == pytest.approx(7.0 * 9.81)


def test_a_fixed_part_counts_like_one_merged_by_hand():
    def made(split):
        b = RobotBuilder("tool")
        b.add_link("base")
        b.add_body("arm", "revolute", "base", mass=2.0, com=(0.1, 0, 0.2), inertia=np.diag([0.02, 0.03, 0.02]))
        R = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        xyz, com, tensor = np.array([0.3, 0.1, 0.4]), np.array([0.05, 0.02, 0.1]), np.diag([0.001, 0.002, 0.0025])
        if split:
            b.add_body("drill", "fixed", "arm", mass=0.9, com=com, inertia=tensor, xyz=xyz, rotation=R)
        else:
            arm = (2.0, np.array([0.1, 0, 0.2]), np.diag([0.02, 0.03, 0.02]))
            parts = [arm, (0.9, R @ com + xyz, R @ tensor @ R.T)]
            centre, total = sum(m * c for m, c, _ in parts) / 2.9, np.zeros((3, 3))
            for m, c, T in parts:
                d = c - centre
                total += T + m * (d @ d * np.eye(3) - np.outer(d, d))
            b = RobotBuilder("tool")
            b.add_link("base")
            b.add_body("arm", "revolute", "base", mass=2.9, com=centre, inertia=total)
        return b.build(floating_base=True)

    one, two = made(True), made(False)
    np.testing.assert_allclose(one.parameters, two.parameters, atol=1e-15)
    assert "drill" in one.frames
    assert one.frame("drill").body == 2


def test_limits_come_in_coordinate_order():
    b = RobotBuilder("limits")
    b.add_link("base")
    b.add_body("a", "spherical", "base", mass=1)
    b.add_body("c", "revolute", "a", mass=1, lower=-1, upper=2, velocity=3, effort=4, acceleration=5, jerk=6)
    r = b.build()
    np.testing.assert_array_equal(r.limit("lower"), [-np.inf] * 4 + [-1])
    np.testing.assert_array_equal(r.limit("upper"), [np.inf] * 4 + [2])
    for kind, value in (("velocity", 3), ("effort", 4), ("acceleration", 5), ("jerk", 6), ("effort_rate", np.inf)):
        np.testing.assert_array_equal(r.limit(kind), [np.inf] * 3 + [value])


def test_features():
    assert robots.aerial_manipulator().features == {"free", "revolute", "floating"}
    assert robots.panda().features == {"revolute"}
    assert robot("free").features == {"free", "revolute"}  # a free joint further up is no floating base


# -- held joints ----------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(ROBOTS))
def test_a_held_joint_leaves_the_others_their_torques_and_all_frames_their_places(name):
    full = robot(name)
    q = full.random_configuration(11)
    rng = np.random.default_rng(11)
    v, dv = rng.normal(size=(2, full.nv))
    for j in full.joints:
        if j.name == "root_joint":
            continue
        at, by = slice(j.q_index, j.q_index + j.nq), slice(j.v_index, j.v_index + j.nv)
        still_v, still_dv = v.copy(), dv.copy()
        still_v[by] = still_dv[by] = 0.0
        expected = np.delete(torque(full, q, still_v, still_dv), np.arange(full.nv)[by])
        held = full.locked({j.name: q[at]})
        assert [x.name for x in held.joints] == [x.name for x in full.joints if x.name != j.name]
        assert held.frames.keys() == full.frames.keys()
        rest = np.delete(q, np.arange(full.nq)[at])
        if held.nv:
            got = torque(held, rest, np.delete(v, np.arange(full.nv)[by]), np.delete(dv, np.arange(full.nv)[by]))
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)
        for frame in full.frames:
            np.testing.assert_allclose(pose(held, rest, frame), pose(full, q, frame), atol=1e-12)


def test_arrays_follow_the_names_when_the_middle_joint_is_held():
    b = RobotBuilder("three")
    b.add_link("base")
    for i, parent in ((1, "base"), (2, "link1"), (3, "link2")):
        drive = {"armature": i, "effort": 10 * i, "velocity": i, "damping": 0.25 * i}
        place = {"mass": 1.0, "com": (0.1, 0, 0.2), "xyz": (0, 0, 0.3), "axis": (0, 1, 0)}
        b.add_body(f"link{i}", "revolute", parent, joint=f"j{i}", **place, **drive)
    full, held = b.build(), b.build().locked({"j2": 0.7})
    np.testing.assert_array_equal(held.limit("effort"), [10, 30])
    np.testing.assert_array_equal(held.limit("velocity"), [1, 3])
    assert [(j.name, j.armature, j.damping) for j in held.joints] == [("j1", 1.0, 0.25), ("j3", 3.0, 0.75)]
    v, dv = np.array([0.4, 0.0, -0.3]), np.array([1.0, 0.0, 2.0])
    expected = torque(full, [0.2, 0.7, -0.5], v, dv)[[0, 2]]
    np.testing.assert_allclose(torque(held, [0.2, -0.5], v[[0, 2]], dv[[0, 2]]), expected, atol=1e-12)
    assert held.total_mass == 3.0
    assert set(held.frames) == {"base", "link1", "link2", "link3"}


def test_joints_held_one_after_the_other_stay_held():
    full = robots.panda()
    once = full.locked({"panda_joint2": 0.3, "panda_joint5": -0.4})
    twice = full.locked({"panda_joint2": 0.3}).locked({"panda_joint5": -0.4})
    np.testing.assert_array_equal(once.parameters, twice.parameters)
    assert twice.nq == 5
    moved = twice.locked({"panda_joint2": 0.5})  # held again elsewhere
    np.testing.assert_array_equal(moved.parameters, full.locked({"panda_joint2": 0.5, "panda_joint5": -0.4}).parameters)
    with pytest.raises(UnknownName, match="panda_jint3.*did you mean 'panda_joint3'"):
        full.locked({"panda_jint3": 0.0})
    with pytest.raises(ShapeError, match="joint panda_joint3 .revolute. got .*expected 1"):
        full.locked({"panda_joint3": [0.0, 1.0]})
    with pytest.raises(ShapeError, match="panda_joint3"):
        full.locked({"panda_joint3": np.nan})


def test_every_joint_held_leaves_a_statue():
    r = robots.planar_2r().locked({"shoulder": 0.1, "elbow": 0.2})
    assert (r.nq, r.nv, len(r.bodies), r.total_mass) == (0, 0, 0, 0.0)
    assert r.base_parts.mass == pytest.approx(20.0)
    assert "no moving body" in str(r)


def test_a_held_free_joint_ignores_the_axis_it_does_not_have():
    # readers of files may leave an axis on such joints
    links = {"world": None, "box": robots.panda().bodies[0].inertia}
    joint = Joint("drift", "free", "world", "box", axis=np.array([1.0, 0.0, 0.0]))
    free = assemble("box", links, [joint])
    q = free.random_configuration(1)
    np.testing.assert_allclose(pose(free.locked({"drift": q}), [], "box"), pose(free, q, "box"), atol=1e-14)


def test_gravity_is_a_variant_and_survives_holding():
    r = robots.planar_2r().with_gravity((0, 0, 3.0))
    g = torque(r, [0, 0], [0, 0], [0, 0])
    assert g[1] == pytest.approx(-10 * 3.0 * 0.25)
    np.testing.assert_array_equal(r.locked({"elbow": 0.0}).gravity, [0, 0, 3])
    np.testing.assert_array_equal(robots.planar_2r().gravity, [0, 0, -9.81])
    with pytest.raises(ShapeError, match="gravity"):
        r.with_gravity((0, 0))


# -- joints that follow others --------------------------------------------------------------------------------


def gripper():
    b = RobotBuilder("gripper")
    b.add_link("palm")
    b.add_body("a", "prismatic", "palm", joint="slide_a", mass=0.2, axis=(0, 1, 0))
    b.add_body("c", "prismatic", "palm", joint="slide_c", mass=0.3, axis=(0, 1, 0), mimic=("slide_a", -0.5, 0.01))
    b.add_body("d", "prismatic", "palm", joint="slide_d", mass=0.4, axis=(0, 1, 0), mimic=("slide_c", 2.0, 0.1))
    return b.build()


def test_a_follower_owns_no_coordinate_and_adds_to_its_master():
    r = gripper()
    assert [j.name for j in r.joints] == ["slide_a"]
    assert [j.name for j in r.mimics] == ["slide_c", "slide_d"]
    assert r.joint("slide_d").mimic.joint == "slide_a"  # rules in a row are composed
    assert "mimic" in r.features
    M = np.array(od.function(r, "mass_matrix")(q=[0.3])["M"])
    np.testing.assert_allclose(M, [[0.2 + 0.25 * 0.3 + 1.0 * 0.4]])
    np.testing.assert_allclose(pose(r, [0.3], "c")[:3, 3], [0, -0.5 * 0.3 + 0.01, 0], atol=1e-15)
    np.testing.assert_allclose(pose(r, [0.3], "d")[:3, 3], [0, 2 * (-0.5 * 0.3 + 0.01) + 0.1, 0], atol=1e-15)


def test_holding_a_master_holds_its_followers():
    held = gripper().locked({"slide_a": 0.3})
    assert held.nq == 0
    assert not held.mimics
    np.testing.assert_allclose(held.frame("d").translation, [0, 2 * (-0.5 * 0.3 + 0.01) + 0.1, 0], atol=1e-15)
    alone = gripper().locked({"slide_c": 0.7})  # a follower held where it does not belong
    np.testing.assert_allclose(alone.frame("c").translation, [0, 0.7, 0], atol=1e-15)


def test_followers_in_a_circle_are_refused():
    b = RobotBuilder("circle")
    b.add_link("base")
    b.add_body("a", "revolute", "base", mimic="c_joint")
    b.add_body("c", "revolute", "base", mimic="a_joint")
    with pytest.raises(ModelError, match="circle"):
        b.build()


# -- the object -----------------------------------------------------------------------------------------------


def test_a_robot_cannot_be_changed():
    r = robots.panda()
    with pytest.raises(dataclasses.FrozenInstanceError):
        r.nq = 3
    with pytest.raises(TypeError):
        r.frames["x"] = None
    assert repr(r) == "<oc_dyn.Robot 'panda': 7 bodies, nq = 7, nv = 7>"


def test_axis_frames_are_rotations_onto_the_axis():
    rng = np.random.default_rng(0)
    axes = [*np.eye(3), *-np.eye(3), [1, 1, 0], [0, -1, 1e-13], [1e-13, 0, 1], *rng.normal(size=(50, 3))]
    for axis in axes:
        A = axis_frame(axis)
        np.testing.assert_allclose(A @ A.T, np.eye(3), atol=1e-14)
        assert np.linalg.det(A) == pytest.approx(1)
        np.testing.assert_allclose(A[:, 2], np.array(axis) / np.linalg.norm(axis), atol=1e-12)


def test_building_is_quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in ROBOTS.values():
            make()


# -- chains of followers, held anywhere -----------------------------------------------------------------------

CHAIN = """<robot name="chain"><link name="base"/>{links}
<joint name="C" type="continuous"><parent link="b"/><child link="c"/><axis xyz="0 0 1"/>
  <mimic joint="B" multiplier="-0.5" offset="0.2"/></joint>
<joint name="A" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>
<joint name="B" type="continuous"><parent link="base"/><child link="b"/><axis xyz="0 0 1"/>
  <mimic joint="A" multiplier="-2" offset="0.3"/></joint></robot>"""


def angles_of_chain(tmp_path, lock, how, q=0.7):
    """(a, b, c relative to b) [rad] about z, with what is in `lock` held when the file is read or after it."""
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    file = tmp_path / "chain.urdf"
    file.write_text(CHAIN.format(links="".join(f'<link name="{x}">{body}</link>' for x in "abc")))
    r = od.load_urdf(file, lock=lock) if how == "read" else od.load_urdf(file).locked(lock)
    C = [pose(r, np.full(r.nq, q), x)[:3, :3] for x in "abc"]
    a, b, c = (np.arctan2(R[1, 0], R[0, 0]) for R in C)
    return a, b, c - b


@pytest.mark.parametrize("how", ["read", "locked"])
@pytest.mark.parametrize(
    "lock, angles",
    [
        ({"A": 0.0, "B": 0.5}, (0.0, 0.5, -0.05)),
        ({"B": 0.5}, (0.7, 0.5, -0.05)),
        ({"A": 0.1}, (0.1, 0.1, 0.15)),
        ({"C": 0.4}, (0.7, -1.1, 0.4)),
        ({"A": 0.1, "C": 0.4}, (0.1, 0.1, 0.4)),
        ({}, (0.7, -1.1, 0.75)),
    ],
)
def test_what_follows_a_held_follower_stands_where_its_own_rule_puts_it(tmp_path, lock, angles, how):
    assert angles_of_chain(tmp_path, lock, how) == pytest.approx(angles, abs=1e-12)


# -- steps of planar joints, lengths of quaternions -----------------------------------------------------------


@pytest.mark.parametrize("turns", [-2, -1, 1, 3])
def test_a_planar_joint_does_not_travel_in_whole_turns(turns):
    r = build(["planar"], [0])
    with pytest.raises(ShapeError, match=r"joint joint1: .* whole turns"):
        r.difference([0, 0, 0], [2 * np.pi * turns, 1, 0])


def test_a_planar_joint_may_turn_on_the_spot_or_travel_in_other_turns():
    r = build(["planar"], [0])
    assert r.difference([0.1, 1, 2], [0.1 + 2 * np.pi, 1, 2]) == pytest.approx([2 * np.pi, 0, 0], abs=1e-14)
    for angle in (0.0, 1e-9, np.pi, 6.0, 7.0):
        ends = np.array([0.1, 1, 2]), np.array([0.1 + angle, 2, -1])
        assert r.integrate(ends[0], r.difference(*ends)) == pytest.approx(ends[1], abs=1e-12)


@pytest.mark.parametrize("length", [1e-60, 1e-8, 1e-4, 1e-3, 1.0, 1e4, 1e60])
def test_the_step_between_quaternions_does_not_depend_on_their_length(length):
    r = build(["spherical"], [0])
    q = r.random_configuration(0)
    step = np.array([0.3, -0.2, 1e-3])
    (found,) = r.difference_function().call([length * q, length * r.integrate(q, step)])  # without checks
    assert np.array(found).ravel() == pytest.approx(step, rel=1e-9)


@pytest.mark.parametrize("columns", [(), (2,)])
@pytest.mark.parametrize("length", [1e-3, 1e160, 1e200, 1.5e308])
def test_normalized_of_any_length(length, columns):
    r = build(["spherical"], [0])
    assert r.normalized(np.full((4, *columns), length)) == pytest.approx(0.5)


@pytest.mark.parametrize("columns", [(), (2,)])
@pytest.mark.parametrize("q", [(np.inf, 0, 0, 0), (1, -np.inf, 0, 0), (0, 0, 0, 0)])
def test_normalized_refuses_what_has_no_direction(q, columns):
    r = build(["spherical"], [0])
    with pytest.raises(ShapeError, match="joint joint1"):
        r.normalized(np.reshape([q] * (columns[0] if columns else 1), (*columns, 4)).T)


@pytest.mark.parametrize("length", [1e160, np.inf])
def test_functions_that_normalise_refuse_what_overflows(length):
    f = od.function(build(["spherical"], [0]), "mass_matrix", normalize=True)
    with pytest.raises(ShapeError, match="too large"):
        f(q=np.full(4, length))
