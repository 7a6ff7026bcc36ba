"""Robots written as MJCF: the same robot again through od.load, MuJoCo's own inverse dynamics, and what is refused."""

import numpy as np
import pytest
from samples import ROBOTS, build

import oc_dyn as od
from oc_dyn.errors import ModelError
from oc_dyn.model.fluid import Fluid
from oc_dyn.model.inertia import Inertia

mujoco = pytest.importorskip("mujoco")

WRITTEN = [n for n in ROBOTS if n not in ("transform", "free")]
OWN = ("panda", "aerial_manipulator", "humanoid", "quadruped")


def torque(robot, q, v, dv):
    return od.function(robot, "inverse_dynamics")(q=q, v=v, dv=dv)["tau"].full().ravel()


def compiled(text):
    m = mujoco.MjModel.from_xml_string(text)
    off = mujoco.mjtDisableBit
    m.opt.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_LIMIT | off.mjDSBL_ACTUATION
    m.dof_damping[:], m.dof_frictionloss[:], m.eq_active0[:] = 0, 0, 0
    return m


def differences(robot, seed=0):
    """Largest differences of inverse dynamics, over the largest value: of the robot read again, and of MuJoCo."""
    text = od.export.mjcf(robot)
    m, again = compiled(text), od.load(text)
    d, theirs, of_again = mujoco.MjData(m), od.interop.to_mujoco(robot, m), od.interop.to_mujoco(again, m)
    rng = np.random.default_rng(seed)
    q, (v, dv) = robot.random_configuration(seed), rng.normal(size=(2, robot.nv))
    x, y, a = theirs.q(q), theirs.v(v, q), theirs.dv(dv, v, q)
    wanted = torque(robot, q, v, dv)
    q2 = of_again.from_q(x)
    found = torque(again, q2, of_again.from_v(y, x), of_again.from_dv(a, y, x))
    d.qpos[:], d.qvel[:] = x, y
    mujoco.mj_forward(m, d)
    d.qacc[:] = a
    mujoco.mj_inverse(m, d)
    size = np.abs(wanted).max()
    back = theirs.from_tau(of_again.tau(found, q2), x)
    return np.abs(back - wanted).max() / size, np.abs(theirs.from_tau(d.qfrc_inverse.copy(), x) - wanted).max() / size


@pytest.mark.sample("serial", "floating", "planar", "helical", "mimic")
@pytest.mark.parametrize("name", WRITTEN)
def test_the_robot_is_the_same_again_and_mujoco_agrees(name):
    again, of_mujoco = differences(ROBOTS[name]())
    assert again < 1e-12
    assert of_mujoco < 1e-12


@pytest.mark.sample("panda")
@pytest.mark.parametrize("name", OWN)
def test_robots_of_the_package(name):
    again, of_mujoco = differences(od.robots.by_name(name))
    assert again < 1e-12
    assert of_mujoco < 1e-12


def drives():
    b = od.RobotBuilder("drives <&>")
    b.add_link("base")
    body = {"mass": 1.0, "inertia": np.eye(3), "com": (0.1, 0, 0)}
    b.add_body("one", "revolute", "base", joint="a b", lower=-1, upper=2, effort=7, velocity=3, damping=0.4, **body)
    b.add_body("two", "prismatic", "one", joint="c", lower=0.5, armature=0.3, friction=0.6, **body)
    b.add_body("three", "revolute", "two", joint="d", mimic=("a b", 2, 0.1), lower=-9, upper=9, **body)
    b.add_body("four", "spherical", "three", joint="e", damping=0.2, armature=0.7, friction=0.1, **body)
    b.add_body("four_1", "cylindrical", "four", joint="f", **body)
    b.add_body("one_1", "helical", "one", joint="g", pitch=0.2, **body)
    b.add_frame("tip <1>", "two", xyz=(0, 0.2, 0.3), rpy=(0.1, 0.2, 0.3))
    b.add_collision("one", ("box", 0.1, 0.2, 0.3), xyz=(0.1, 0, 0), name="crate")
    b.add_collision("tip <1>", ("capsule", 0.05, 0.4))
    b.add_collision("base", ("cylinder", 0.3, 0.1))
    b.add_collision("two", ("ellipsoid", 0.3, 0.1, 0.2))
    b.let_touch("one", "four")
    return b.build().with_gravity((0.1, 0.2, -9.7))


def test_drives_limits_frames_and_shapes_are_kept():
    robot = drives()
    again = od.load(od.export.mjcf(robot))
    assert again.name == robot.name
    np.testing.assert_array_equal(again.gravity, robot.gravity)
    for name in ("a b", "c", "d", "e"):
        for fact in ("lower", "upper", "effort", "damping", "friction", "armature"):
            assert getattr(again.joint(name), fact) == getattr(robot.joint(name), fact), (name, fact)
    assert vars(again.joint("d").mimic) == vars(robot.joint("d").mimic)
    assert vars(again.joint("g.slide").mimic) == {"joint": "g", "multiplier": 0.2, "offset": 0.0}
    q = again.random_configuration(0)
    pose = od.function(again, "frame_pose", frame="tip <1>")(q=q)
    at = {j.name: q[j.q_index : j.q_index + j.nq] for j in again.joints}
    ours = np.concatenate([at[n] for n in ("a b", "c", "e", "f.angle", "f.distance", "g")])
    mine = od.function(robot, "frame_pose", frame="tip <1>")(q=ours)
    np.testing.assert_allclose(np.array(pose["p"]), np.array(mine["p"]), atol=1e-14)
    np.testing.assert_allclose(np.array(pose["R"]), np.array(mine["R"]), atol=1e-14)
    assert sorted((x.kind, *x.sizes) for x in again.collisions) == sorted((x.kind, *x.sizes) for x in robot.collisions)
    assert [x.name for x in again.collisions if x.kind == "box"] == ["crate"]
    assert again.may_touch == (("one", "four"),)


def test_motors_are_left_out_when_they_are_not_wanted():
    assert mujoco.MjModel.from_xml_string(od.export.mjcf(drives())).nu == 3
    assert mujoco.MjModel.from_xml_string(od.export.mjcf(drives(), motors=False)).nu == 0


def test_a_body_without_inertia_is_part_of_the_next():
    b = od.RobotBuilder("wrist")
    b.add_link("base")
    b.add_link("between")
    b.add_joint("x", "revolute", "base", "between", xyz=(0.1, 0.2, 0.3), rpy=(1, 2, 3), axis=(1, 2, 3))
    tensor = np.diag([0.2, 0.3, 0.4])
    b.add_body("end", "prismatic", "between", joint="y", xyz=(0.4, 0.1, 0), rpy=(2, 0.1, 1), axis=(1, 0, 1),
               mass=2, com=(0.1, 0.2, 0.3), inertia=tensor)  # fmt: skip
    robot = b.build()
    assert mujoco.MjModel.from_xml_string(od.export.mjcf(robot)).nbody == 2
    assert max(differences(robot)) < 1e-12


def test_flat_bodies_are_taken_and_impossible_ones_refused():
    b = od.RobotBuilder("flat")
    b.add_link("base")
    R = build(["revolute"], seed=4).bodies[0].rotation
    b.add_body("plate", "revolute", "base", mass=1, inertia=R @ np.diag([0.1, 0.2, 0.1 + 0.2]) @ R.T)
    robot = b.build()
    assert max(differences(robot)) < 1e-12
    b.check_inertia = False
    b.add_body("wrong", "revolute", "base", mass=1, inertia=np.diag([1, 1, 3]))
    b.add_body("point", "revolute", "base", mass=1, com=(1, 0, 0))
    with pytest.raises(ModelError, match="'wrong': no real body has its principal") as caught:
        od.export.mjcf(b.build())
    assert "body 'point' has mass 1 kg and smallest moment" in str(caught.value)


def test_what_mjcf_has_no_place_for_is_named():
    with pytest.raises(ModelError, match="joint 'joint1' is transform; MJCF has no joint like it"):
        od.export.mjcf(ROBOTS["transform"]())
    with pytest.raises(ModelError, match="free joint 'joint2' is on 'link1'; MuJoCo has them on the ground"):
        od.export.mjcf(ROBOTS["free"]())
    b = od.RobotBuilder("names")
    b.add_link("base")
    b.add_body("world", "revolute", "base", mass=1, inertia=np.eye(3))
    with pytest.raises(ModelError, match="body 'world': MuJoCo calls the ground so"):
        od.export.mjcf(b.build())
    fluid = (Fluid(np.eye(6), np.eye(6), np.ones(6)),)
    panda = od.robots.by_name("panda")
    wet = panda.with_payload(panda.bodies[-1].name, Inertia.computed(1.0, np.zeros(3), np.eye(3), fluid))
    with pytest.raises(ModelError, match="forces of a fluid"):
        od.export.mjcf(wet)
    with pytest.raises(ModelError, match="expected a Robot"):
        od.export.mjcf("panda")


def test_files_of_meshes_are_copied(tmp_path):
    (tmp_path / "in").mkdir()
    corners = "".join(f"v {x} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1))
    triangles = "123 243 152 562 135 375 876 567 847 374 864 246".split()
    faces = "".join(f"f {' '.join(x)}\n" for x in triangles)
    (tmp_path / "in" / "cube.obj").write_text(corners + faces)
    urdf = """<robot name="m"><link name="b"/><link name="l"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial><collision><origin xyz="0.1 0 0"/>
      <geometry><mesh filename="cube.obj" scale="0.1 0.2 0.3"/></geometry></collision></link>
      <joint name="j" type="continuous"><parent link="b"/><child link="l"/></joint></robot>"""
    (tmp_path / "in" / "m.urdf").write_text(urdf)
    robot = od.load(tmp_path / "in" / "m.urdf")
    assert "mesh" not in od.export.mjcf(robot)
    od.export.mjcf(robot, tmp_path / "out" / "m.xml")
    (shape,) = od.load(tmp_path / "out" / "m.xml").collisions
    assert shape.kind == "mesh"
    np.testing.assert_allclose(shape.sizes, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(shape.matrix, robot.collisions[0].matrix, atol=1e-7)
    assert (tmp_path / "out" / shape.mesh).read_bytes() == (tmp_path / "in" / "cube.obj").read_bytes()
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "out" / "m.xml")).nmesh == 1
