"""MJCF files without trust: what names other files, what is too much, and what is not what it says."""

import os
import time

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.model import mjcf_read
from oc_dyn.model.mjcf import load_mjcf
from oc_dyn.model.mjcf_read import read_mjcf

mujoco = pytest.importorskip("mujoco")

ARM = '<mujoco>{0}<worldbody><body name="a"><joint name="j"/><geom size="0.1"/>{1}</body></worldbody>{2}</mujoco>'


def refused(text, said, within=1.0):
    started = time.process_time()
    with pytest.raises(od.ModelError, match=said):
        load_mjcf(text)
    assert time.process_time() - started < within


@pytest.mark.parametrize(
    "text",
    [
        ARM.format('<asset><model name="m" file="/etc/hostname"/></asset>', "", ""),
        ARM.format('<asset><model name="m" file="other.xml" content_type="text/xml"/></asset>', "", ""),
        ARM.format("", '<attach model="m" body="b" prefix="p"/>', ""),
        ARM.format("", '<frame><attach model="m" body="b" prefix="p"/></frame>', ""),
    ],
)
def test_bodies_of_other_documents_are_refused(text):
    refused(text, "takes bodies from another document")


def test_includes_in_a_namespace_are_none():
    refused(ARM.format('<include xmlns="x" file="/etc/hostname"/>', "", ""), "XML namespace")


def test_no_name_of_a_file_reaches_mujoco(tmp_path):
    (tmp_path / "robot.xml").write_text(
        ARM.format(
            '<compiler meshdir="/etc" texturedir="/etc" assetdir="."/><asset>'
            '<texture name="t" fileright="/etc/x.png"/><hfield name="h" file="/etc/x"/>'
            '<skin file="/etc/x"/><mesh name="v" vertex="0 0 0 1 0 0 0 1 0 0 0 1" content_type="model/obj"/></asset>'
            '<default><mesh file="/etc/x.obj"/></default>',
            '<geom type="mesh" mesh="v"/><plugin plugin="x"><config key="f" value="/etc/x"/></plugin>'
            '<flexcomp name="x" type="gmsh" file="/etc/x"/>',
            '<deformable><skin file="/etc/x"/></deformable>',
        )
    )
    text = read_mjcf(tmp_path / "robot.xml").text
    assert "/etc" not in text
    assert "file" not in text
    assert "content_type" not in text
    assert load_mjcf(tmp_path / "robot.xml").total_mass > 1000 / 6


def test_pipes_and_devices_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.xml")
    os.mkfifo(tmp_path / "pipe.xacro")
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe.xml", "pipe", "pipe.xacro"):
        for given in (tmp_path / name, str(tmp_path / name)):
            with pytest.raises(od.ModelError, match="no regular file"):
                od.load(given, trusted=True)
    with pytest.raises(od.ModelError, match="no regular file"):
        od.load("/dev/zero")
    assert od.check_robot(tmp_path / "pipe.xml").findings[0].text == "is no regular file"
    for section in ('<include file="pipe.xml"/>', '<asset><mesh name="m" file="pipe.obj"/></asset>'):
        (tmp_path / "robot.xml").write_text(ARM.format(section, '<geom type="mesh" mesh="m"/>', ""))
        with pytest.raises(od.ModelError, match="no such file"):
            load_mjcf(tmp_path / "robot.xml")


@pytest.mark.parametrize(
    "text, said",
    [
        (ARM.format("", '<replicate count="100000"><geom size="1"/></replicate>', ""), "<replicate> would make more"),
        (
            ARM.format("", '<replicate count="9999">' * 3 + '<geom size="1"/>' + "</replicate>" * 3, ""),
            "<replicate> would make more",
        ),
        (ARM.format("", '<replicate count="1e9"><geom size="1"/></replicate>', ""), "no whole number"),
        (
            ARM.format('<asset><mesh name="m" builtin="grid" params="900 900 900 1 1 1"/></asset>', "", ""),
            "vertices",
        ),
        (ARM.format('<asset><mesh name="m" builtin="supersphere" params="1e5 1 1"/></asset>', "", ""), "vertices"),
        (ARM.format('<asset><mesh name="m" builtin="sphere" params="nan"/></asset>', "", ""), "vertices|MuJoCo"),
    ],
)
def test_what_would_be_too_much_is_told_at_once(text, said):
    refused(text, said)


def test_sizes_that_the_file_asks_for_are_not_given():
    started = time.process_time()
    size = (
        '<size nuser_body="2000000000" nuser_geom="2000000000" memory="900G"/><default><geom user="1 2 3"/></default>'
    )
    muscle = '<actuator><muscle joint="j" nsample="2000000000"/></actuator>'
    slow = '<compiler><lengthrange mode="all" useexisting="false" interval="1e9" inttotal="2e9"/></compiler>'
    robot = load_mjcf(ARM.format(size + slow, "", muscle))
    assert robot.nv == 1
    assert time.process_time() - started < 1


def test_includes_are_bounded_together_and_read_in_linear_time(tmp_path, monkeypatch):
    part = "<mujoco><worldbody>" + '<site name="{}_{}"/>' * 900 + "</worldbody></mujoco>"
    for k in range(40):
        (tmp_path / f"{k}.xml").write_text(part.format(*(x for i in range(900) for x in (k, i))))
    text = ARM.format("".join(f'<include file="{k}.xml"/>' for k in range(40)), "", "")
    (tmp_path / "robot.xml").write_text(text)
    refused(tmp_path / "robot.xml", "with its includes it has more than 10000 elements")
    monkeypatch.setattr(mjcf_read, "MAX_ELEMENTS", 40000)
    started = time.process_time()
    assert len(list(read_mjcf(tmp_path / "robot.xml").root.iter("site"))) == 36000
    assert time.process_time() - started < 2
    monkeypatch.setattr(mjcf_read, "MAX_ALL_BYTES", 10**5)
    refused(tmp_path / "robot.xml", "larger than 0.1 MB together")


def test_includes_are_not_nested_without_end(tmp_path):
    deep = "<mujoco><worldbody>" + "<frame>" * 200 + "{}" + "</frame>" * 200 + "</worldbody></mujoco>"
    (tmp_path / "b.xml").write_text(deep.format('<geom size="0.1"/>').replace("worldbody", "frame"))
    (tmp_path / "a.xml").write_text(deep.format('<include file="b.xml"/>'))
    refused(tmp_path / "a.xml", "elements in each other")
    (tmp_path / "c.xml").write_text('<include file="b.xml"/>')
    (tmp_path / "a.xml").write_text('<mujoco><include file="c.xml"/></mujoco>')
    refused(tmp_path / "a.xml", "is the whole document")


@pytest.mark.parametrize(
    "compiler, inside, mass",
    [
        ("", "<frame>{}</frame>", None),
        ("", '<replicate count="2"><frame>{}</frame></replicate>', None),
        ('<compiler inertiafromgeom="true"/>', '<inertial mass="3" pos="0 0 0" diaginertia="1 1 1"/>{}', None),
        ("", '<inertial mass="3" pos="0 0 0" diaginertia="1 1 1"/><frame>{}</frame>', 3),
        ("", "<body><inertial mass='3' pos='0 0 0' diaginertia='1 1 1'/></body><frame>{}</frame>", None),
    ],
)
def test_mass_of_a_mesh_that_is_not_there(tmp_path, compiler, inside, mass):
    body = inside.format('<geom type="mesh" mesh="gone"/>')
    text = f"""<mujoco>{compiler}<asset><mesh name="gone" file="gone.obj"/></asset><worldbody><body name="a">
        <joint name="j"/><geom size="0.1"/>{body}</body></worldbody></mujoco>"""
    (tmp_path / "robot.xml").write_text(text)
    if mass is None:
        refused(tmp_path / "robot.xml", "mesh 'gone': there is no such file")
    else:
        assert load_mjcf(tmp_path / "robot.xml").total_mass == pytest.approx(mass)


def test_a_mesh_that_is_too_large_is_told(tmp_path, monkeypatch):
    (tmp_path / "a.obj").write_text("v 0 0 0\n" * 100)
    text = ARM.format('<asset><mesh name="m" file="a.obj"/></asset>', '<geom type="mesh" mesh="m"/>', "")
    (tmp_path / "robot.xml").write_text(text)
    monkeypatch.setattr(mjcf_read, "MAX_ALL_MESH_BYTES", 500)
    refused(tmp_path / "robot.xml", "larger than")


@pytest.mark.parametrize("name", ["x" * 5000, "x" * 5000 + ".xacro", "/" + "x" * 5000, "a\0b", ""])
def test_names_that_no_file_can_have(name):
    with pytest.raises((FileNotFoundError, od.UnknownName)) as told:
        od.load(name, trusted=True)
    assert len(str(told.value)) < 5000


# -- names ----------------------------------------------------------------------------------------------------------


def test_names_that_are_made_differ_from_those_of_the_file():
    text = """<mujoco><worldbody>
      <body name="a"><joint name="a_fixed"/><joint name="x" axis="1 0 0"/><geom size="0.1"/>
        <body name="a_1"><joint axis="0 1 0"/><geom size="0.1"/>
          <body><geom size="0.1"/><site name="a_2"/><site name="a"/></body></body></body>
      <body name="body_3"><joint name="a_1_joint_2"/><geom size="0.1"/></body>
      <body><joint name="body_4_fixed" pos="1 0 0"/><geom size="0.1"/></body>
    </worldbody><equality><connect name="equality_1" body1="a" anchor="0 0 0"/>
      <connect body1="body_3" anchor="0 0 0"/></equality></mujoco>"""
    robot = load_mjcf(text)
    tree = robot.tree
    assert tree.total_mass == pytest.approx(sum(mujoco.MjModel.from_xml_string(text).body_mass))
    assert tree.nv == 5
    assert len({j.name for j in tree.joints}) == 5
    assert {"a", "a_1", "a_1_1", "body_3", "a_2", "body_3_1"} <= set(tree.frames)
    assert any("site 'a' is no frame" in note for note in robot.report)


# -- drives ---------------------------------------------------------------------------------------------------------


def joint(*actuators, more="", option="", attributes=""):
    text = f"""<mujoco>{option}<worldbody><body name="a"><joint name="j" {attributes}/><geom size="0.1"/>
        <body name="b"><joint name="k"/><geom size="0.2" pos="0.1 0.2 0"/></body></body>
        <body name="c"><joint name="l"/><geom size="0.2"/></body></worldbody>
        <actuator>{"".join(actuators)}</actuator>{more}</mujoco>"""
    return load_mjcf(text), mujoco.MjModel.from_xml_string(text)


@pytest.mark.parametrize(
    "actuators, effort",
    [
        (('ctrlrange="0 5"', 'ctrlrange="0 5" gear="-1"'), 5),
        (('ctrlrange="0 5" gear="2"', 'ctrlrange="0 3" gear="-3"'), 9),
        (('ctrlrange="0 5"', 'ctrlrange="-4 2"'), 4),
        (('ctrlrange="0 5"',), 0),
        (('ctrlrange="2 5"', 'ctrlrange="2 5" gear="-1"'), 3),
        (('ctrlrange="-5 5"', 'gear="2"'), np.inf),
        (('gear="0"', 'ctrlrange="-1 2"'), 1),
    ],
)
def test_efforts_of_actuators_add_up_in_each_direction(actuators, effort):
    robot, m = joint(*(f'<motor joint="j" {x}/>' for x in actuators))
    assert robot.joint("j").effort == effort
    assert any("one direction alone" in x for x in robot.report) == (effort == 0)
    d, reached = mujoco.MjData(m), []  # the same by all corners of MuJoCo's own controls
    for corner in np.ndindex(*(2 for _ in range(m.nu))):
        d.ctrl[:] = [m.actuator_ctrlrange[k, x] if m.actuator_ctrllimited[k] else 0 for k, x in enumerate(corner)]
        mujoco.mj_forward(m, d)
        reached.append(d.qfrc_actuator[0])
    if np.isfinite(effort):
        assert max(min(max(reached), -min(reached)), 0) == pytest.approx(effort)


def test_filters_disabled_groups_and_flags():
    filtered = '<general joint="j" dyntype="filterexact" dynprm="0.1" gainprm="3" ctrlrange="-2 2"/>'
    assert joint(filtered)[0].joint("j").effort == 6
    other = '<motor joint="j" ctrlrange="-1 1" group="2"/>'
    robot, _ = joint(filtered, other, option='<option actuatorgroupdisable="2"/>')
    assert robot.joint("j").effort == 6
    assert any("disabled" in x for x in robot.report)
    robot, _ = joint(other, option='<option><flag actuation="disable"/></option>')
    assert not np.isfinite(robot.joint("j").effort)
    assert any("disabled" in x for x in robot.report)
    free = 'range="-1 1" limited="true" damping="3" frictionloss="0.1"'
    for flag, values in (("limit", (-np.inf, 3, 0.1)), ("constraint", (-np.inf, 3, 0)), ("damper", (None, 0, 0.1))):
        robot, _ = joint(option=f'<option><flag {flag}="disable"/></option>', attributes=free)
        found = robot.joint("j")
        assert (found.damping, found.friction) == values[1:]
        assert found.lower == values[0] or values[0] is None


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "actuator_armature"), reason="needs MuJoCo 4")
def test_armature_and_damping_of_actuators_count_to_their_joints():
    robot, m = joint(
        '<motor joint="j" gear="3" armature="0.1" damping="0.2"/>', '<motor joint="k" gear="-2" armature="0.05"/>',
        '<motor joint="j" armature="0.03"/>', attributes='armature="0.4" damping="0.7"',
    )  # fmt: skip
    j = robot.joint("j")
    assert (j.armature, j.damping) == pytest.approx((0.4 + 9 * 0.1 + 0.03, 0.7 + 9 * 0.2))
    d, rng = mujoco.MjData(m), np.random.default_rng(1)
    theirs = od.interop.to_mujoco(robot, m)
    q, v, dv = rng.normal(size=(3, 3))
    d.qpos[:], d.qvel[:] = theirs.q(q), theirs.v(v, q)
    mujoco.mj_forward(m, d)
    d.qacc[:] = theirs.dv(dv, v, q)
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    mujoco.mj_inverse(m, d)
    wanted = theirs.from_tau(d.qfrc_inverse.copy(), d.qpos.copy())
    found = od.function(robot, "inverse_dynamics")(q=q, v=v, dv=dv)["tau"].full().ravel()
    assert np.allclose(found + [j.damping * v[0], 0, 0], wanted, rtol=1e-12)


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "dof_dampingpoly"), reason="needs MuJoCo 4")
def test_what_is_not_linear_is_told():
    for more in ('damping="1 2 3"', 'stiffness="0 2 3"'):
        robot, _ = joint(attributes=more)
        assert any("joint 'j'" in x for x in robot.report)
    assert robot.joint("j").damping == 0
    assert joint(attributes='damping="1 2 3"')[0].joint("j").damping == 1
    robot, _ = joint('<motor joint="k" damping="0 1"/>')
    assert any("only the linear part" in x for x in robot.report)
    ball = '<mujoco><worldbody><body><joint name="b" type="ball" {}/><geom size="1"/></body></worldbody></mujoco>'
    assert any("only the linear part" in x for x in load_mjcf(ball.format('damping="0 1"')).report)
    assert not any("linear part" in x for x in load_mjcf(ball.format('damping="1"')).report)


# -- equalities -----------------------------------------------------------------------------------------------------

TWICE = '<equality><joint joint1="j" joint2="k" polycoef="0 2"/>{}</equality>'


@pytest.mark.parametrize("other", ['joint2="l" polycoef="0 3"', 'joint2="l" polycoef="0 3 1"', 'polycoef="0.2"'])
def test_two_equalities_of_one_joint_are_refused(other):
    with pytest.raises(od.ModelError, match="'equality_0' and 'second' both hold joint 'j'"):
        joint(more=TWICE.format(f'<joint name="second" joint1="j" {other}/>'))
    robot, _ = joint(more=TWICE.format(f'<joint name="second" joint1="j" {other} active="false"/>'))
    assert robot.nv == 2


@pytest.mark.parametrize("flag", ["equality", "constraint"])
def test_disabled_equalities_do_not_hold(flag):
    assert joint(more=TWICE.format(""))[0].nv == 2
    robot, _ = joint(more=TWICE.format(""), option=f'<option><flag {flag}="disable"/></option>')
    assert robot.nv == 3
    assert any("disabled" in x for x in robot.report)
