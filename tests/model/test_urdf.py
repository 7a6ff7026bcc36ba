"""Reading URDF: sources and encodings, every element and attribute, what is assumed, refused and only reported."""

import os
import random
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from effort import function_calls
from lxml import etree
from urdf_files import example_robots, quiet

import oc_dyn as od
import oc_dyn.model.urdf  # so that what it imports counts for no text
from oc_dyn.errors import ModelError, ModelWarning, UnknownName
from oc_dyn.lie.so3 import axis_frame
from oc_dyn.model import joints as jt

INF = np.inf
CASES = sorted((Path(__file__).parents[1] / "data" / "urdf_cases").glob("*.urdf"))
FIXED = '<joint name="{0}" type="fixed"><parent link="{1}"/><child link="{2}"/></joint>'
BODY = '<inertial><mass value="2"/><inertia ixx=".1" ixy="0" ixz="0" iyy=".1" iyz="0" izz=".1"/></inertial>'
LIMIT = '<limit lower="-1" upper="1" effort="5" velocity="3"/>'


def arm(joint=LIMIT, link=BODY, kind="revolute", more="", axis='<axis xyz="1 0 0"/>'):
    """Text of a robot of two links and one joint j."""
    joint = joint if "<axis" in joint else joint + axis
    return (
        f'<robot name="arm"><link name="base"/><link name="tip">{link}</link>{more}'
        f'<joint name="j" type="{kind}"><parent link="base"/><child link="tip"/>{joint}</joint></robot>'
    )


def problems(text, **options):
    with pytest.raises(ModelError) as caught:
        od.load_urdf(text, **options)
    return caught.value.problems


def joint_of(text, **options):
    robot = quiet(text, **options)
    return (robot.joints + robot.mimics)[0]


def doubtful(text, *words):
    """The robot; exactly one warning must hold all words, and strict mode must refuse with the same words."""
    with pytest.warns(ModelWarning) as seen:
        robot = od.load_urdf(text)
    assert len(seen) == 1
    for said in (str(seen[0].message), "\n".join(robot.report), "\n".join(problems(text, strict=True))):
        assert [w for w in words if w not in said] == []
    return robot


# -- where it comes from --------------------------------------------------------------------------------------


def test_path_str_bytes_and_text_are_the_same_robot(tmp_path):
    text = arm()
    file = tmp_path / "an arm é.urdf"
    file.write_text(text, encoding="utf-8")
    for source in (file, str(file), text, text.encode(), bytearray(text.encode()), "\n \t" + text, "\ufeff" + text):
        robot = quiet(source)
        assert robot.name == "arm"
        assert robot.total_mass == 2
        assert robot.joints[0].upper == 1


@pytest.mark.parametrize(
    "declared, codec",
    [("utf-8", "utf-8"), ("utf-8", "utf-8-sig"), ("utf-16", "utf-16"), ("UTF-16", "utf-16-le"), ("utf-32", "utf-32"),
     ("ISO-8859-1", "latin-1"), ("latin-1", "latin-1"), ("windows-1252", "cp1252")],
)  # fmt: skip
def test_declared_encoding(declared, codec, tmp_path):
    text = f'<?xml version="1.0" encoding="{declared}"?>\n' + arm().replace('"tip"', '"größe"')
    assert "größe" in quiet(text.encode(codec)).frames
    assert "größe" in quiet(text).frames  # as text the declaration says nothing
    (tmp_path / "x.urdf").write_bytes(text.encode(codec))
    assert "größe" in quiet(tmp_path / "x.urdf").frames


def test_japanese_encoding():
    text = '<?xml version="1.0" encoding="shift_jis"?>' + arm().replace('"tip"', '"手先"')
    assert "手先" in quiet(text.encode("shift_jis")).frames


@pytest.mark.parametrize("lead", [b"\n", b"\r\n\r\n", b"  \t", b"\xef\xbb\xbf", b"\n\xef\xbb\xbf\n"])
def test_blanks_and_mark_before_the_declaration(lead):
    data = lead + b'<?xml version="1.0" encoding="utf-8"?>\n' + arm().encode()
    assert quiet(data).nv == 1
    assert quiet(data.decode()).nv == 1


def test_lines_count_from_the_start_of_what_was_given():
    text = '\n\n<?xml version="1.0"?>\n' + arm(link='\n<inertial><mass value="x"/></inertial>')
    (first, *_) = problems(text)
    assert first.startswith("line 5:")


def test_missing_file_is_named(tmp_path):
    for source in ("no/such/arm.urdf", tmp_path / "none.urdf"):
        with pytest.raises(FileNotFoundError, match=str(source)):
            od.load_urdf(source)
    with pytest.raises(FileNotFoundError, match="robot of words"):
        od.load_urdf("a robot of words " * 1000)
    with pytest.raises(FileNotFoundError):
        od.load_urdf("a\0b.urdf")


def test_what_is_no_urdf_file(tmp_path):
    assert "directory" in str(problems(tmp_path)[0])
    for data in (b"", b"  \n", "", " \n"):
        assert "empty" in problems(data)[0]
    (tmp_path / "mesh.stl").write_bytes(bytes(range(256)) * 4)
    with pytest.raises(ModelError, match="mesh.stl.*not XML"):
        od.load_urdf(tmp_path / "mesh.stl")
    assert "expected <robot>" in problems("<sdf version='1.9'/>")[0]
    assert "line 1" in problems("<robot name='x'><link></robot>")[0]
    assert "UTF-8" in problems('<robot name="é"/>'.encode("latin-1"))[0]
    assert "klingon" in problems(b'<?xml version="1.0" encoding="klingon"?><robot/>')[0]
    assert "no link" in problems('<robot name="x"/>')[0]
    with pytest.raises(TypeError, match="int"):
        od.load_urdf(3)


def billion_laughs():
    levels = "".join(f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(9))
    return f'<!DOCTYPE robot [<!ENTITY a "lol">{levels}]><robot name="r">&j;<link name="&j;"/></robot>'


HOSTILE = {
    "laughs": billion_laughs,
    "file entity": lambda: '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/hostname">]><robot name="r">&a;</robot>',
    "parameter entity": lambda: '<!DOCTYPE r [<!ENTITY % a SYSTEM "file:///etc/hostname"> %a;]><robot name="r"/>',
    "deep": lambda: '<robot name="r">' + "<a>" * 1_000_000,
    "deeper": lambda: "<a>" * 33_000_000,
    "wide": lambda: '<robot name="r">' + "".join(f"<j{i}/>" for i in range(100_000)) + "</robot>",
    "parts": lambda: '<robot name="r">' + '<link name="a"/>' * 100_000 + "</robot>",
    "number": lambda: arm(link=f'<inertial><mass value="{"1" * 5_000_000}"/></inertial>'),
    "missing": lambda: arm(
        more="".join(f'<link name="link{i}"/>' + FIXED.format(f"x{i}", f"lirk{i}", f"limk{i}") for i in range(1500))
    ),
    "nul": lambda: b'<robot name="\0"/>',
    "surrogate": lambda: '<robot name="\udcff"/>',
}


@pytest.mark.few(4)
@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_ends_in_one_error_soon(kind):
    text = HOSTILE[kind]()
    assert function_calls(lambda: problems(text)) < 2_000 + 20 * len(text)


def test_endless_file():
    if not Path("/dev/zero").exists():
        pytest.skip("no endless file here")
    assert "no regular file" in problems("/dev/zero")[0]


def test_a_document_type_without_entities_is_harmless():
    assert quiet("<!DOCTYPE robot>" + arm()).nv == 1
    assert quiet('<!DOCTYPE robot SYSTEM "http://127.0.0.1:1/none.dtd">' + arm()).nv == 1


@pytest.mark.slow
def test_long_chain_needs_no_recursion():
    n = 1500
    links = "".join(f'<link name="l{i}"/>' for i in range(n)) + f'<link name="l{n}">{BODY}</link>'
    joints = "".join(
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/></joint>' for i in range(n)
    )
    assert quiet(f'<robot name="r">{joints}{links}</robot>').nv == n


def test_comma_locale():
    code = (
        "import locale, sys, oc_dyn as od; locale.setlocale(locale.LC_ALL, sys.argv[2]);"
        "print(od.load_urdf(sys.argv[1]).joints[1].upper)"
    )
    if shutil.which("locale") is None:
        pytest.skip("cannot tell which locales there are")
    known = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split()
    commas = [name for name in known if name.startswith(("de_", "fr_", "it_", "es_"))]
    if not commas:
        pytest.skip("no locale with a decimal comma is installed")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, "-c", code, CASES[0], commas[0]], capture_output=True, text=True, env=env)
    assert done.stdout.strip() == "1.2", done.stderr


# -- what is left out -----------------------------------------------------------------------------------------

NOISE = """
  <material name="blue"/> <material name="red"><color rgba="1,0 0 0 1"/></material>
  <transmission name="t"><type>old</type><joint name="j"/></transmission> <transmission/>
  <gazebo reference="tip"><sensor:ray name="s"><update_rate>x</update_rate></sensor:ray></gazebo>
  <sensor name="cam"/> <unknown a="b"><deep/></unknown> <ros2_control name="c" type="system"/>
  <!-- <link name="base"/> <xacro:nothing/> ${no} --> <?editor was="here"?>
"""
SHAPES = """
  <visual name="v"><origin xyz="a b"/><geometry><mesh filename="package://nowhere/x.stl"/></geometry></visual>
  <collision name="c1"><geometry/></collision> <collision name="c2"/> <contact_coefficients mu="0"/> <visual/>
"""


@pytest.mark.parametrize("version", ["", 'version="1.2"', 'version="17"'])
def test_tags_that_dynamics_never_needs(version, capfd):
    text = arm(link=SHAPES + BODY, more=NOISE, joint=LIMIT + '<safety_controller k_velocity="x"/><calibration/>')
    robot = quiet(text.replace("<robot ", f"<robot {version} "))
    assert list(robot.frames) == ["base", "tip"]
    assert robot.report == ()
    assert capfd.readouterr() == ("", "")


def test_namespaces():
    assert quiet(arm().replace("<robot ", '<robot xmlns="http://www.ros.org" ')).nv == 1
    assert quiet(arm().replace("<robot ", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ')).nv == 1  # expanded


def test_xacro_in_all_its_forms():
    for text in (
        arm(more="<xacro:leg id='1'/>"),  # prefix not declared
        arm(more="<x:leg id='1'/>").replace("<robot ", '<robot xmlns:x="http://www.ros.org/wiki/xacro" '),
        arm(joint=LIMIT + '<origin xyz="0 0 ${len}"/>'),
        arm(joint='<limit lower="$(arg low)" upper="1" effort="1" velocity="1"/>'),
        arm(more='<link name="${prefix}hand"/>'),
        arm().replace('child link="tip"', 'child link="${prefix}tip"'),
    ):
        (only,) = problems(text)
        assert "run xacro first" in only
        assert "line 1" in only


@pytest.mark.parametrize(
    "text, words",
    [
        (arm(joint=LIMIT + '<orign xyz="0 0 1"/>'), ["joint 'j'", "<orign>", "<origin>"]),
        (arm(joint=LIMIT + '<origin xzy="0 0 1"/>'), ["joint 'j'", "'xzy'", "xyz"]),
        (arm(link="<interial/>" + BODY), ["link 'tip'", "<interial>", "<inertial>"]),
        (arm(joint=LIMIT + '<dynamics dampin="1"/>'), ["joint 'j'", "'dampin'", "damping"]),
        (arm(joint=LIMIT.replace("/>", ' accelleration="2"/>')), ["'accelleration'", "acceleration"]),
        (arm(more='<Joint name="k" type="fixed"/>'), ["<Joint>", "<joint>"]),
    ],
)
def test_misspelt_names_are_not_swallowed(text, words):
    doubtful(text, *words)


def test_attributes_of_others_are_no_misspellings():
    joint = '<limit lower="-1" upper="1" effort="5" velocity="3" gear_velocity="1" current="2" command_effort="1"/>'
    assert quiet(arm(joint=joint + '<dynamics damping="1" D="2" K="3" mu_viscous="1"/>')).report == ()


# -- joints ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, inside, nq, nv",
    [("revolute", "revolute", 1, 1), ("continuous", "continuous", 1, 1), ("prismatic", "prismatic", 1, 1),
     ("floating", "free", 7, 6), ("planar", "planar", 3, 3), ("fixed", "fixed", 0, 0)],
)  # fmt: skip
def test_joint_types(kind, inside, nq, nv):
    robot = quiet(arm(kind=kind))
    assert (robot.nq, robot.nv) == (nq, nv)
    assert [j.kind for j in robot.joints] == ([inside] if nv else [])
    if kind in ("floating", "planar"):
        assert np.all(np.isinf(robot.limit("velocity")))
        assert np.all(np.isinf(robot.limit("upper")))


def test_unknown_type_names_near_ones():
    assert "did you mean 'revolute'" in problems(arm(kind="Revolut"))[0]
    assert "has no type" in problems(arm().replace('type="revolute"', ""))[0]


def test_axis():
    for axis in ("", "<axis/>"):
        robot = quiet(arm(axis=axis))
        assert robot.joints[0].axis.tolist() == [1, 0, 0]  # what the specification says
        (only,) = robot.report
        assert only.startswith("line 1: joint 'j'")
        assert "axis" in only
    assert joint_of(arm(joint=LIMIT + '<axis xyz="0 0 -1"/>')).axis.tolist() == [0, 0, -1]
    for axis, turned in (("", [1, 0, 0]), ("0 0 -1", [0, 0, -1]), ("0 -3 4", [0, -0.6, 0.8])):
        tag = f'<axis xyz="{axis}"/>' if axis else ""
        R, _ = poses(quiet(arm(axis=tag)), np.array([0.3]))["tip"]
        angle = np.arccos((np.trace(R) - 1) / 2)
        vector = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (2 * np.sin(angle))
        np.testing.assert_allclose(angle * vector, 0.3 * np.array(turned), atol=1e-12)


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "planar"])
def test_zero_axis_of_a_moving_joint(kind):
    (only,) = problems(arm(kind=kind, joint=LIMIT + '<axis xyz="0 0 0"/>'))
    assert "joint 'j'" in only
    assert "axis is zero" in only


def test_what_a_fixed_joint_does_not_use_cannot_be_wrong():
    joint = '<axis xyz="0 0 0"/><limit lower="x"/><dynamics damping="-1"/><mimic joint="none"/><origin xyz="1 2 3"/>'
    robot = quiet(arm(kind="fixed", joint=joint))
    assert robot.frame("tip").translation.tolist() == [1, 2, 3]


def test_origin():
    robot = quiet(arm(joint=LIMIT + '<origin xyz="1 -2 3e-1" rpy="0.1 0.2 0.3"/>'))
    assert robot.bodies[0].translation.tolist() == [1, -2, 0.3]
    (cr, cp, cy), (sr, sp, sy) = np.cos([0.1, 0.2, 0.3]), np.sin([0.1, 0.2, 0.3])
    Rz = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    Ry = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    Rx = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    np.testing.assert_allclose(robot.bodies[0].rotation, Rz @ Ry @ Rx, atol=1e-15)
    assert np.array_equal(quiet(arm()).bodies[0].rotation, np.eye(3))
    assert quiet(arm(joint=LIMIT + "<origin/>")).bodies[0].translation.tolist() == [0, 0, 0]


def test_origin_by_quaternion():
    rng = np.random.default_rng(3)
    flips = [[0, 0, 0, 1], [0, 1, 0, 1], [0, -1, 0, 1], [1, 1, 1, 1], [1, 1, -1, 1], [0, 1, 1e-9, 1], [1, 0, 0, 0]]
    for Q in [*flips, *rng.normal(size=(40, 4))]:
        x, y, z, w = Q = np.array(Q) / np.linalg.norm(Q)
        S = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        text = " ".join(map(repr, Q.tolist()))
        R = quiet(arm(joint=LIMIT + f'<origin quat_xyzw="{text}"/>')).bodies[0].rotation
        np.testing.assert_allclose(R, np.eye(3) + 2 * w * S + 2 * S @ S, atol=1e-14)
    assert "length" in problems(arm(joint=LIMIT + '<origin quat_xyzw="0 0 0 0"/>'))[0]
    assert "both" in problems(arm(joint=LIMIT + '<origin quat_xyzw="0 0 0 1" rpy="0 0 0"/>'))[0]


def test_dynamics_and_further_limits():
    joint = (
        '<limit lower="-1" upper="2" effort="50" velocity="3" acceleration="12" jerk="900" effort_rate="1000"/>'
        '<dynamics damping="0.5" friction="0.2" armature="0.01"/>'
    )
    j = joint_of(arm(joint=joint))
    got = (j.lower, j.upper, j.effort, j.velocity, j.acceleration, j.jerk, j.effort_rate)
    assert got == (-1, 2, 50, 3, 12, 900, 1000)
    assert (j.damping, j.friction, j.armature) == (0.5, 0.2, 0.01)
    plain = joint_of(arm())
    assert (plain.acceleration, plain.jerk, plain.effort_rate) == (INF, INF, INF)
    assert (plain.damping, plain.friction, plain.armature) == (0, 0, 0)
    assert joint_of(arm(joint=LIMIT.replace("/>", ' drake:acceleration="7"/>'))).acceleration == 7
    both = quiet(arm(joint=LIMIT.replace("/>", ' acceleration="10" deceleration="5"/>')))
    assert both.joints[0].acceleration == 5
    assert "deceleration" in both.report[0]
    assert "at least 0" in problems(arm(joint=LIMIT + '<dynamics damping="-1"/>'))[0]


def test_limits_that_are_missing():
    def limits(robot):
        return tuple(float(robot.limit(k)[0]) for k in ("lower", "upper", "effort", "velocity"))

    for kind in ("revolute", "prismatic"):
        assert limits(doubtful(arm("", kind=kind), "'j'", "no <limit>")) == (-INF, INF, INF, INF)
    text = arm('<limit lower="-1" upper="1"/>', kind="prismatic")
    assert limits(doubtful(text, "'j'", "effort", "velocity")) == (-1, 1, INF, INF)
    assert limits(doubtful(arm('<limit effort="5" velocity="3"/>'), "'j'", "lower, upper")) == (-INF, INF, 5, 3)
    assert limits(doubtful(arm('<limit upper="1" effort="5" velocity="3"/>'), "'j'", "lower", "0")) == (0, 1, 5, 3)
    assert limits(doubtful(arm('<limit lower="-1"/>'), "upper is taken as 0", "effort, velocity")) == (-1, 0, INF, INF)
    assert limits(doubtful(arm("<limit/>"), "lower, upper, effort, velocity")) == (-INF, INF, INF, INF)
    (only,) = problems(arm('<limit lower="0.5" effort="5" velocity="3"/>'))
    assert "no upper" in only


def test_limits_of_a_continuous_joint():
    assert quiet(arm("", kind="continuous")).report == ()
    j = joint_of(arm('<limit lower="0" upper="0" effort="5" velocity="3"/>', kind="continuous"))
    assert (j.lower, j.upper, j.effort, j.velocity) == (-INF, INF, 5, 3)
    robot = doubtful(arm('<limit effort="5"/>', kind="continuous"), "'j'", "velocity")
    assert robot.joints[0].velocity == INF


def test_limits_written_as_infinite_or_as_the_largest_number():
    j = joint_of(arm('<limit lower="-inf" upper="+INF" effort="1.7976931348623157e+308" velocity="infinity"/>'))
    assert (j.lower, j.upper, j.effort, j.velocity) == (-INF, INF, INF, INF)
    assert "leaves no room" in problems(arm(LIMIT.replace('"-1"', '"inf"')))[0]
    assert "leaves no room" in problems(arm(LIMIT.replace('"5"', '"-inf"')))[0]


def test_limits_that_hold_a_joint_still_are_reported():
    text = arm('<limit lower="0" upper="0" effort="0" velocity="0"/>')
    robot = doubtful(text, "line 1: joint 'j'", "effort and velocity limit is 0")
    assert (robot.joints[0].effort, robot.joints[0].velocity) == (0, 0)
    assert len(robot.report) == 2


def test_limits_that_contradict():
    assert "above the upper" in problems(arm(LIMIT.replace('"-1"', '"2"')))[0]
    assert "effort" in problems(arm(LIMIT.replace('"5"', '"-5"')))[0]


def test_mimic():
    more = '<link name="b"/><joint name="k" type="prismatic"><parent link="base"/><child link="b"/>{}{}</joint>'
    robot = quiet(arm(kind="prismatic", more=more.format(LIMIT, '<mimic joint="j"/>')))
    assert robot.nv == 1
    assert robot.mimics[0].mimic.multiplier == 1
    assert robot.mimics[0].mimic.offset == 0
    assert "did you mean 'j'" in problems(arm(more=more.format(LIMIT, '<mimic joint="jj"/>')))[0]
    assert "<mimic joint" in problems(arm(more=more.format(LIMIT, "<mimic/>")))[0]
    both = more.format(LIMIT, '<mimic joint="j"/>')
    assert "circle" in problems(arm(joint=LIMIT + '<mimic joint="k"/>', more=both))[0]


# -- bodies ---------------------------------------------------------------------------------------------------


def test_inertial():
    inertia = quiet(arm(link=BODY.replace("<mass", '<origin xyz="1 0 0"/><mass'))).bodies[0].inertia
    assert inertia.mass == 2
    assert inertia.com.tolist() == [1, 0, 0]
    np.testing.assert_allclose(inertia.tensor, np.diag([0.1, 2.1, 2.1]), atol=1e-15)
    assert quiet(arm()).bodies[0].inertia.com.tolist() == [0, 0, 0]
    assert doubtful(arm(link=""), "joint 'j' moves no inertia").total_mass == 0


def test_products_of_inertia_and_their_signs():
    link = '<inertial><mass value="1"/><inertia ixx="3" ixy=".1" ixz=".2" iyy="4" iyz=".3" izz="5"/></inertial>'
    expected = [[3, 0.1, 0.2], [0.1, 4, 0.3], [0.2, 0.3, 5]]
    np.testing.assert_array_equal(quiet(arm(link=link)).bodies[0].inertia.tensor, expected)
    short = '<inertial><mass value="1"/><inertia ixx="3" iyy="4" izz="5"/></inertial>'
    robot = quiet(arm(link=short))
    np.testing.assert_array_equal(robot.bodies[0].inertia.tensor, np.diag([3, 4, 5]))
    assert "ixy, ixz, iyz" in robot.report[0]


def test_inertial_with_parts_missing():
    assert "no <mass>" in problems(arm(link="<inertial/>"), strict=True)[0]
    robot = doubtful(arm(link='<inertial><mass value="2"/></inertial>'), "link 'tip'", "point mass")
    assert robot.total_mass == 2
    assert not robot.bodies[0].inertia.tensor.any()
    assert "<mass> has no value" in problems(arm(link=BODY.replace(' value="2"', "")))[0]
    assert "<inertia> has no ixx" in problems(arm(link=BODY.replace('ixx=".1"', "")))[0]


def test_mass_zero_or_negative():
    zero = BODY.replace('"2"', '"0"')
    robot = doubtful(arm(link=zero), "link 'tip'", "mass is zero")
    np.testing.assert_array_equal(robot.bodies[0].inertia.tensor, 0.1 * np.eye(3))
    frame = zero.replace('".1"', '"0"')  # a frame written as a body
    assert quiet(arm(more=f'<link name="eye">{frame}</link>{FIXED.format("k", "tip", "eye")}')).report == ()
    assert "negative" in problems(arm(link=BODY.replace('"2"', '"-2"')))[0]


def test_impossible_inertia_is_told_and_refused_in_strict_mode():
    assert doubtful(arm(link=BODY.replace('ixx=".1"', 'ixx="1"')), "link 'tip'", "exceeds").nv == 1
    rod = BODY.replace('ixx=".1"', 'ixx="0"')
    assert quiet(arm(link=rod)).report == ()


def test_root_mass_counts_when_it_floats():
    heavy = BODY.replace('mass value="2"', 'mass value="5"')
    text = arm().replace('<link name="base"/>', f'<link name="base">{heavy}</link>')
    assert quiet(text).total_mass == 2
    assert quiet(text).base_parts.mass == 5
    robot = quiet(text, floating_base=True)
    assert robot.total_mass == 7
    assert robot.nv == 7
    tau = od.function(robot, "inverse_dynamics")(q=robot.neutral(), v=np.zeros(7), dv=np.zeros(7))["tau"]
    assert float(tau[5]) == pytest.approx(68.67)


def test_root_mass_behind_a_fixed_joint():
    robot = quiet(arm(kind="fixed"), floating_base=True)
    assert robot.total_mass == 2
    assert robot.nv == 6
    assert robot.root == "base"


def test_single_link():
    text = f'<robot name="one"><link name="body">{BODY}</link></robot>'
    assert quiet(text).nv == 0
    assert quiet(text, floating_base=True).nv == 6


def test_order_of_the_file_does_not_matter_for_the_tree():
    robot = quiet(CASES[0])
    root = etree.parse(CASES[0]).getroot()
    mixed = etree.Element("robot", name=root.get("name"))
    for e in reversed(list(root.iterchildren(etree.Element))):
        mixed.append(e)
    other = quiet(etree.tostring(mixed))
    assert [j.name for j in other.joints] == [j.name for j in robot.joints]
    assert np.array_equal(other.parameters, robot.parameters)


def test_options():
    robot = quiet(CASES[0], gravity=(0, 0, -1.62))
    assert robot.gravity.tolist() == [0, 0, -1.62]
    assert [j.name for j in quiet(CASES[0], lock={"elbow": 0.3}).joints] == ["spin"]
    with pytest.raises(UnknownName, match="did you mean 'elbow'"):
        od.load_urdf(CASES[0], lock={"elbo": 0.3})


def test_second_free_joint_named_like_the_base():
    text = arm().replace('name="j"', 'name="root_joint"')
    assert quiet(text).nv == 1
    assert "root_joint" in problems(text, floating_base=True)[0]


def test_robot_without_a_name_is_called_after_its_file(tmp_path):
    (tmp_path / "digger.urdf").write_text(arm().replace(' name="arm"', ""))
    robot = quiet(tmp_path / "digger.urdf")
    assert robot.name == "digger"
    assert "no name" in robot.report[0]


# -- what is wrong --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["nan", "inf", "-Infinity", "1e400", "1e99", "0x10", "1_0", "１", "1 m", "1f", "pi"])
def test_what_is_no_number(number):
    for text, who, what in (
        (arm(link=BODY.replace('"2"', f'"{number}"')), "link 'tip'", "<mass value="),
        (arm(link=BODY.replace('ixx=".1"', f'ixx="{number}"')), "link 'tip'", "<inertia ixx="),
        (arm(LIMIT + f'<origin xyz="0 {number} 0"/>'), "joint 'j'", "<origin xyz="),
        (arm(LIMIT + f'<axis xyz="0 {number} 1 "/>'), "joint 'j'", "<axis xyz="),
        (arm(LIMIT + f'<dynamics damping="{number}"/>'), "joint 'j'", "<dynamics damping="),
        (arm(LIMIT + f'<mimic joint="j" offset="{number}"/>'), "joint 'j'", "<mimic offset="),
    ):
        first = problems(text)[0]
        assert who in first
        assert what in first
        assert "line 1" in first
        assert number in first


@pytest.mark.parametrize("number", ["nan", "-nan", "1e400", "0,5", "", "5 Nm"])
def test_what_is_no_limit(number):
    first = problems(arm(LIMIT.replace('effort="5"', f'effort="{number}"')))[0]
    assert "joint 'j'" in first
    assert "<limit effort=" in first


@pytest.mark.parametrize("vector", ["1 2", "1 2 3 4", "1,2,3", "[1 2 3]"])
def test_what_is_no_vector(vector):
    assert vector in problems(arm(LIMIT + f'<origin rpy="{vector}"/>'))[0]


def test_names_and_references():
    assert "a link has no name" in problems(arm(more="<link/>"))[0]
    assert "a joint has no name" in problems(arm().replace('name="j"', ""))[0]
    assert "defined 2 times" in problems(arm(more='<link name="tip"/>'))[0]
    assert "<child link" in problems(arm().replace('<child link="tip"/>', ""))[0]
    assert "<parent link" in problems(arm().replace('<parent link="base"/>', "<parent/>"))[0]
    assert "has 2 <limit>" in problems(arm(LIMIT + LIMIT))[0]
    assert "child of two joints" in problems(arm(more='<link name="b"/>' + FIXED.format("k", "b", "tip")))[0]
    ring = '<link name="b"/><link name="c"/>' + FIXED.format("k", "b", "c") + FIXED.format("l", "c", "b")
    assert "loop" in problems(arm(more=ring))[0]


def test_everything_wrong_is_listed_at_once():
    text = """<robot name="sick">
      <link name="base"/>
      <link name="a"><inertial><mass value="-1"/><inertia ixx="1,0" iyy="1" izz="nan"/></inertial></link>
      <link name="a"/>
      <link name="b"><inertial><mass value="1"/><mass value="1"/></inertial></link>
      <joint name="p" type="revolut"><parent link="base"/><child link="a"/></joint>
      <joint name="q" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 0"/>
        <limit lower="1" upper="-1" effort="-2" velocity="1"/><mimic joint="nobody"/></joint>
      <joint name="r" type="prismatic"><parent link="a"/><child link="bb"/><origin xyz="1 2"/></joint>
    </robot>"""
    found = problems(text)
    for words in (
        ("line 3", "link 'a'", "mass", "-1"), ("line 3", "ixx", "1,0"), ("line 3", "izz", "nan"),
        ("line 4", "link 'a'", "2 times"), ("line 5", "link 'b'", "2 <mass>"), ("line 6", "joint 'p'", "'revolute'"),
        ("line 7", "joint 'q'", "axis is zero"), ("line 7", "joint 'q'", "lower"), ("line 7", "joint 'q'", "effort"),
        ("line 7", "joint 'q'", "'nobody'"), ("line 9", "joint 'r'", "'bb'"), ("line 9", "joint 'r'", "1 2"),
    ):  # fmt: skip
        assert any(all(w in p for w in words) for p in found), words
    assert len(found) == 12
    lines = [int(p.split()[1].rstrip(":")) for p in found]
    assert lines == sorted(lines)


def test_two_roots_do_not_hide_other_faults():
    found = problems(arm(more='<link name="alone"/>', joint=LIMIT + '<axis xyz="0 0 0"/>'))
    assert len(found) == 2
    assert "axis is zero" in found[0]
    assert "'alone'" in found[1]


def test_mutilated_files_give_a_robot_or_a_model_error():
    values = ["", "nan", "-inf", "1e400", "-1", "0,5", "1 2 3", "0 0 0", "x", "${x}", "1e308", "planar", "floating"]
    tags = ["origin", "mass", "inertia", "limit", "axis", "mimic", "dynamics", "inertial", "link", "joint", "orign"]
    keys = ["xyz", "rpy", "quat_xyzw", "value", "ixx", "lower", "upper", "effort", "jerk", "joint", "link", "name"]
    draw, good, bad = random.Random(5), 0, 0
    for _ in range(600):
        root = etree.parse(draw.choice(CASES)).getroot()
        for _ in range(draw.randint(1, 3)):
            e = draw.choice(list(root.iter(etree.Element)))
            change = draw.randrange(5)
            if change == 0 and e is not root:
                e.getparent().remove(e)
            elif change == 1 and e.attrib:
                del e.attrib[draw.choice(e.keys())]
            elif change == 2:
                e.set(draw.choice(e.keys() or keys), draw.choice(values))
            elif change == 3:
                etree.SubElement(e, draw.choice(tags)).set(draw.choice(keys), draw.choice(values))
            else:
                e.tag = draw.choice(tags)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ModelWarning)
            try:
                strict, floating_base = draw.random() < 0.3, draw.random() < 0.3
                robot = od.load_urdf(etree.tostring(root), strict=strict, floating_base=floating_base)
            except ModelError as error:
                bad += 1
                assert error.problems
                assert str(error)
            else:
                good += 1
                assert np.all(np.isfinite(robot.parameters))
    assert good > 30
    assert bad > 100


# -- real robots, against another reader ----------------------------------------------------------------------

WITHOUT = {"ur3.urdf": "no link", "alex_psyonic_hands.urdf": "does not exist"}  # empty; leaders of mimics missing


def poses(robot, q):
    """{frame: (R, p)} by plain recursion."""
    body = [(np.eye(3), np.zeros(3))]
    for b in robot.bodies:
        j = b.joint
        x = q[j.q_index : j.q_index + j.nq]
        x = x if j.mimic is None else j.mimic.multiplier * x + j.mimic.offset
        R, p = (np.array(part, float) for part in jt.displacement(j.kind, x, j.pitch))
        A = np.eye(3) if j.kind == "free" else axis_frame(j.axis)
        R0, p0 = body[b.parent]
        R1, p1 = R0 @ b.rotation, R0 @ b.translation + p0
        body.append((R1 @ A @ R @ A.T, R1 @ A @ p.reshape(3) + p1))
    at = {f.name: (*body[f.body], f.rotation, f.translation) for f in robot.frames.values()}
    return {name: (R @ r, R @ t + p) for name, (R, p, r, t) in at.items()}


@pytest.mark.slow
@pytest.mark.skipif(not example_robots(), reason="needs example-robot-data")
@pytest.mark.parametrize("floating", [False, True])
def test_example_robots_agree_with_pinocchio(floating, capfd):
    pin = pytest.importorskip("pinocchio")
    bounded = 0
    for file in example_robots():
        if file.name in WITHOUT:
            with pytest.raises(ModelError, match=WITHOUT[file.name]):
                od.load_urdf(file, floating_base=floating)
            continue
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            robot = od.load_urdf(file, floating_base=floating)
        assert all(w.category is ModelWarning for w in seen)
        assert len(seen) <= 4
        assert capfd.readouterr() == ("", "")
        model = pin.buildModelFromUrdf(str(file), *([pin.JointModelFreeFlyer()] if floating else []))
        bounded += compare(pin, model, robot, file.name)
        capfd.readouterr()
    assert bounded > 500


def compare(pin, model, robot, name):
    """Masses, limits, lumped inertias and poses at a random configuration; the number of bounded joints."""
    q, other, data = robot.random_configuration(1), pin.neutral(model), model.createData()
    bounded = 0
    for j in robot.joints + robot.mimics:
        joint = model.joints[model.getJointId(j.name)]
        x = q[j.q_index : j.q_index + j.nq]
        x = x if j.mimic is None else j.mimic.multiplier * x + j.mimic.offset
        at = slice(joint.idx_q, joint.idx_q + joint.nq)
        if j.kind == "free":
            other[at] = [*x[4:], *x[1:4], x[0]]
        elif j.kind == "planar":
            other[at] = [x[1], x[2], np.cos(x[0]), np.sin(x[0])]
        elif j.kind == "continuous":
            other[at] = [np.cos(x[0]), np.sin(x[0])]
        else:
            other[at] = x
            if np.isfinite([j.lower, j.upper]).all():
                bounded += 1
                assert (j.lower, j.upper) == (model.lowerPositionLimit[at][0], model.upperPositionLimit[at][0]), name
        if j.nv == 1:
            k = joint.idx_v
            expected = (model.velocityLimit[k], model.effortLimit[k], model.damping[k], model.friction[k])
            assert (j.velocity, j.effort, j.damping, j.friction) == expected, name
    assert robot.nv + sum(j.nv for j in robot.mimics) == model.nv
    assert robot.total_mass == pytest.approx(sum(I.mass for I in model.inertias[1:]), abs=1e-12, rel=1e-12)
    pin.forwardKinematics(model, data, other)
    pin.updateFramePlacements(model, data)
    here = poses(robot, q)
    frames = {f.name: data.oMf[i] for i, f in enumerate(model.frames) if f.type == pin.FrameType.BODY}
    assert set(frames) == set(here), name
    for link, (R, p) in here.items():
        np.testing.assert_allclose(R, frames[link].rotation, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(p, frames[link].translation, atol=1e-12, err_msg=name)
    for b in robot.bodies:
        i = model.getJointId(b.joint.name)
        theirs = data.oMi[i].act(model.inertias[i])
        mine = b.inertia.expressed_in(*here[b.name])
        np.testing.assert_allclose(mine.moment, theirs.mass * theirs.lever, atol=1e-11, err_msg=name)
        if mine.mass:
            np.testing.assert_allclose(mine.tensor_com, theirs.inertia, atol=1e-11, err_msg=name)
    return bounded
