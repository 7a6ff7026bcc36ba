"""MJCF files: what MuJoCo makes of them and what the robot does, masses, forces, limits, loops; and what is refused."""

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.model.mjcf import load_mjcf
from oc_dyn.model.mjcf_read import read_mjcf

mujoco = pytest.importorskip("mujoco")

ALL = """<mujoco model="all">
<compiler angle="degree"/>
<option gravity="0.1 0.2 -9.7"/>
<default><joint damping="0.5"/><geom density="500"/>
  <default class="heavy"><geom density="3000"/><joint armature="0.02" frictionloss="0.3"/></default></default>
<worldbody>
  <body name="a" pos="0 0 1" euler="10 20 30">
    <joint name="j1" axis="0 1 0" pos="0.1 0 0" range="-90 90" ref="20" class="heavy"/>
    <joint name="j2" type="slide" axis="1 0 0" ref="0.1"/>
    <geom name="rod" type="capsule" size="0.05 0.2" class="heavy"/>
    <body name="b" pos="0 0 0.4">
      <joint name="j3" axis="0 0 1"/><geom type="box" size="0.1 0.2 0.1" pos="0.1 0 0"/>
      <site name="tip" pos="0 0 0.3" euler="0 90 0"/>
      <body name="c" pos="0.2 0 0">
        <joint name="ball" type="ball" pos="0 0.1 0" damping="0"/><geom type="cylinder" size="0.1 0.2" euler="45 0 0"/>
        <body name="d" pos="0 0 0.3"><geom type="sphere" size="0.1" contype="0" conaffinity="0"/></body>
      </body>
    </body>
  </body>
  <body name="f" pos="1 1 1"><freejoint name="free"/><geom type="ellipsoid" size="0.1 0.2 0.3" pos="0.1 0 0"/></body>
</worldbody>
<contact><exclude body1="a" body2="c"/></contact>
<actuator><motor joint="j1" gear="3" ctrlrange="-2 2"/>
  <position joint="j3" kp="5" forcerange="-7 9" gear="2"/></actuator>
</mujoco>"""


def compared(text, seed=0):
    """(robot, largest difference of inverse dynamics to MuJoCo's, over the largest value)."""
    robot, m = load_mjcf(text), mujoco.MjModel.from_xml_string(text)
    off = mujoco.mjtDisableBit
    m.opt.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_LIMIT | off.mjDSBL_ACTUATION
    m.dof_damping[:], m.dof_frictionloss[:], m.jnt_stiffness[:], m.eq_active0[:] = 0, 0, 0, 0
    d, theirs, rng = mujoco.MjData(m), od.interop.to_mujoco(robot, m), np.random.default_rng(seed)
    q, (v, dv) = robot.random_configuration(seed), rng.normal(size=(2, robot.nv))
    d.qpos[:], d.qvel[:] = theirs.q(q), theirs.v(v, q)
    mujoco.mj_forward(m, d)
    d.qacc[:] = theirs.dv(dv, v, q)
    mujoco.mj_inverse(m, d)
    wanted = theirs.from_tau(d.qfrc_inverse.copy(), d.qpos.copy())
    found = od.function(robot, "inverse_dynamics")(q=q, v=v, dv=dv)["tau"].full().ravel()
    return robot, np.abs(found - wanted).max() / np.abs(wanted).max()


@pytest.mark.parametrize("seed", range(3))
def test_all_kinds_of_joints_move_as_in_mujoco(seed):
    robot, difference = compared(ALL, seed)
    assert difference < 1e-13
    assert robot.nv == 2 + 1 + 3 + 6
    assert robot.total_mass == pytest.approx(sum(mujoco.MjModel.from_xml_string(ALL).body_mass))


def test_frames_are_where_mujoco_has_bodies_and_sites():
    robot, m = load_mjcf(ALL), mujoco.MjModel.from_xml_string(ALL)
    d, q = mujoco.MjData(m), load_mjcf(ALL).random_configuration(seed=4)
    d.qpos[:] = od.interop.to_mujoco(robot, m).q(q)
    mujoco.mj_forward(m, d)
    for name, place, R in [
        *((x, d.body(x).xpos, d.body(x).xmat) for x in "abcdf"),
        ("tip", d.site("tip").xpos, d.site("tip").xmat),
    ]:
        pose = od.function(robot, "frame_pose", frame=name)(q=q)
        assert np.allclose(pose["p"].full().ravel(), place, atol=1e-13)
        assert np.allclose(pose["R"].full(), R.reshape(3, 3), atol=1e-13)


def test_defaults_ranges_gears_and_units():
    robot = load_mjcf(ALL)
    j1, j3 = robot.joint("j1"), robot.joint("j3")
    assert (j1.lower, j1.upper) == pytest.approx(np.deg2rad([-110, 70]))  # degrees; from `ref` on
    assert (j1.damping, j1.friction, j1.armature) == (0.5, 0.3, 0.02)  # of its class, and of the class above
    assert j1.effort == 6  # gear times the range of the control
    assert j3.effort == 14  # the smaller of both directions, times the gear
    assert np.allclose(robot.gravity, [0.1, 0.2, -9.7])
    assert j3.kind == "continuous"
    shapes = {(x.link, x.kind): x for x in robot.collisions}
    assert shapes["a", "capsule"].sizes == pytest.approx((0.05, 0.4))
    assert shapes["b", "box"].sizes == pytest.approx((0.2, 0.4, 0.2))
    assert ("d", "sphere") not in shapes  # it does not collide
    assert ("a", "c") in robot.may_touch


@pytest.mark.parametrize(
    "option, own, lower",
    [("autolimits='true'", "", -1.0), ("autolimits='false'", "limited='false'", -np.inf), ("", "limited='true'", -1.0)],
)
def test_autolimits(option, own, lower):
    text = f"""<mujoco><compiler angle="radian" {option}/><worldbody><body>
        <joint name="j" range="-1 2" {own}/><geom size="0.1"/></body></worldbody></mujoco>"""
    assert load_mjcf(text).joint("j").lower == lower


FOUR_BAR = """<mujoco><worldbody>
  <body name="crank"><joint name="crank" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 0.2" size="0.01"/>
    <body name="rod" pos="0 0 0.2"><joint name="rod" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0.1" size="0.01"/></body></body>
  <body name="rocker" pos="0.4 0 0"><joint name="rocker" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.01"/></body>
</worldbody><equality><connect name="pin" body1="rod" body2="rocker" anchor="0.4 0 0.1"/></equality></mujoco>"""


def test_a_connection_closes_a_loop():
    robot = load_mjcf(FOUR_BAR)
    assert robot.nv == 1
    q = np.full(1, 0.2)
    guess = np.zeros(3)
    guess[robot.rows("q", robot.independent)] = q
    all_ = robot.close(guess)
    ends = [od.function(robot.tree, "frame_pose", frame=x)(q=all_) for x in ("rod", "rocker")]
    one, other = (
        x["p"].full().ravel() + x["R"].full() @ r for x, r in zip(ends, ([0.4, 0, 0.1], [0, 0, 0.3]), strict=True)
    )
    assert np.allclose(one, other, atol=1e-12)


def test_a_weld_holds_two_bodies():
    text = FOUR_BAR.replace('<connect name="pin" body1="rod" body2="rocker" anchor="0.4 0 0.1"/>', "")
    text = text.replace("</equality>", '<weld body1="crank" body2="rocker"/></equality>')
    robot = load_mjcf(text)
    assert robot.independent == ("rod",)  # two bars that turn about different axes cannot move
    assert np.allclose(robot.close(np.zeros(3)), 0, atol=1e-12)


JOINTS = """<mujoco><worldbody>
  <body><joint name="a"/><geom size="0.1"/>
    <body pos="0.1 0 0"><joint name="b" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/>
      <body pos="0 0.2 0"><joint name="c"/><geom size="0.1"/></body></body></body>
  </worldbody><equality><joint joint1="b" joint2="a" polycoef="COEFFICIENTS"/>LAST</equality></mujoco>"""


def test_equalities_of_joints():
    still = '<joint joint1="c" polycoef="0.3 0 0 0 0"/>'
    robot = load_mjcf(JOINTS.replace("COEFFICIENTS", "0.1 -2 0 0 0").replace("LAST", still))
    assert robot.nv == 1
    mimic = robot.joint("b").mimic
    assert (mimic.joint, mimic.multiplier, mimic.offset) == ("a", -2, 0.1)
    bent = load_mjcf(JOINTS.replace("COEFFICIENTS", "0 -2 0.5 0 0").replace("LAST", ""))
    f = od.function(bent, "loop_closure")
    q = f(q=bent.neutral() + 0.2)
    found = dict(zip(bent.tree.coordinate_names, q[f.name_out()[0]].full().ravel(), strict=True))
    assert found["b"] == pytest.approx(-2 * found["a"] + 0.5 * found["a"] ** 2, abs=1e-12)


def test_what_changes_the_motion_is_told():
    text = """<mujoco><option density="1000"/><worldbody><body gravcomp="1"><joint name="a" stiffness="3"/>
      <geom size="0.1"/></body></worldbody></mujoco>"""
    report = " ".join(load_mjcf(text).report)
    assert "its spring, 3 per unit, is not read" in report
    assert "gravcomp" in report
    assert "density" in report
    weightless = text.replace('<option density="1000"/>', '<option><flag gravity="disable"/></option>')
    assert not load_mjcf(weightless).gravity.any()


CUBE = "\n".join(
    [*(f"v {x} {y} {z}" for x in (0, 1) for y in (0, 1) for z in (0, 1)), "f 1 3 4", "f 1 4 2", "f 5 6 8", "f 5 8 7"]
    + ["f 1 2 6", "f 1 6 5", "f 3 7 8", "f 3 8 4", "f 1 5 7", "f 1 7 3", "f 2 4 8", "f 2 8 6"]
)
MESH = """<mujoco><compiler meshdir="parts"/><asset><mesh name="cube" file="cube.obj" scale="0.1 0.2 0.3"/>
  <texture name="t" type="2d" file="gone.png"/><material name="m" texture="t"/></asset>
  <include file="more/body.xml"/></mujoco>"""
BODY = """<mujocoinclude><worldbody><body name="x"><joint name="j" axis="1 0 0"/>
  <geom type="mesh" mesh="cube" material="m" pos="0.5 0 0"/></body></worldbody></mujocoinclude>"""


@pytest.fixture
def folder(tmp_path):
    for name, text in (("robot.xml", MESH), ("more/body.xml", BODY), ("parts/cube.obj", CUBE)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_includes_and_meshes_beside_the_file(folder):
    robot = load_mjcf(folder / "robot.xml")
    assert robot.total_mass == pytest.approx(1000 * 0.1 * 0.2 * 0.3)
    (shape,) = robot.collisions
    assert (shape.kind, shape.mesh, shape.sizes) == ("mesh", "parts/cube.obj", (0.1, 0.2, 0.3))
    assert np.allclose(shape.matrix[:3, 3], [0.5, 0, 0], atol=1e-12)  # MuJoCo's shift to the centre is undone
    assert np.allclose(shape.matrix[:3, :3], np.eye(3), atol=1e-12)


def test_a_mesh_that_is_not_there(folder):
    (folder / "parts" / "cube.obj").unlink()
    with pytest.raises(od.ModelError, match="mesh 'cube': there is no such file"):
        load_mjcf(folder / "robot.xml")
    inertial = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/><joint name="j"'
    (folder / "more" / "body.xml").write_text(BODY.replace('<joint name="j"', inertial))
    robot = load_mjcf(folder / "robot.xml")  # its inertia is known without it
    assert robot.total_mass == 1
    assert any("mesh 'cube'" in note for note in robot.report)


@pytest.mark.parametrize(
    "name, old, new, said",
    [
        ("robot.xml", "more/body.xml", "../body.xml", "leads out of the folder"),
        ("robot.xml", "more/body.xml", "/etc/hostname", "leads out of the folder"),
        ("robot.xml", "more/body.xml", "gone.xml", "no such file"),
        ("robot.xml", 'meshdir="parts"', 'meshdir="../parts"', "leads out of the folder"),
        ("robot.xml", "cube.obj", "cube.txt", "no such file"),
        ("more/body.xml", "<worldbody>", '<include file="more/body.xml"/><worldbody>', "in each other"),
        ("more/body.xml", 'axis="1 0 0"', 'axis="0 0 0"', "MuJoCo: "),
        ("more/body.xml", "</worldbody>", "", "line"),
    ],
)
def test_what_is_wrong_is_told(folder, name, old, new, said):
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    with pytest.raises(od.ModelError, match=said):
        load_mjcf(folder / "robot.xml")


def test_entities_are_not_expanded(folder):
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + ALL.replace('model="all"', 'model="&b;"')
    with pytest.raises(od.ModelError):
        load_mjcf(bomb)
    with pytest.raises(od.ModelError, match="no folder to look in"):
        read_mjcf(MESH)
    with pytest.raises(FileNotFoundError):
        load_mjcf(folder / "nothing.xml")
    with pytest.raises(od.ModelError, match="holds a <mujoco>"):
        load_mjcf("<robot name='x'/>")


def test_names_of_links_between_joints_do_not_meet_those_of_bodies():
    body = '<body name="{}"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>{}</body>'
    two = '<joint name="x" axis="1 0 0"/><joint name="y" axis="0 1 0"/>'
    both = body.format("a", two) + body.format("a_1", '<joint name="z"/>')
    text = f"<mujoco><worldbody>{both}</worldbody></mujoco>"
    robot, difference = compared(text)
    assert difference < 1e-13
    assert [b.name for b in robot.bodies] == ["a_1_1", "a", "a_1"]


def test_drives_of_ball_joints_are_read():
    ball = '<joint name="b" type="ball" armature="0.2" damping="0.3" frictionloss="0.4"/>'
    body = f'<body><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>{ball}</body>'
    text = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
    robot, difference = compared(text)
    assert difference < 1e-13  # the armature counts
    j = robot.joint("b")
    assert (j.armature, j.damping, j.friction) == (0.2, 0.3, 0.4)
