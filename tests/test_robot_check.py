"""od.check_robot and oc-dyn check: each kind of finding has a robot that has it, and one that has not."""

import json

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import cli


def arm(mass=1.0, inertia=0.01, limits='lower="-1" upper="1" velocity="2" effort="3"', rpy="0 0 0", names=("l1", "j1"),
        kind="revolute", com="0 0 0", shape='<sphere radius="0.2"/>'):  # fmt: skip
    link, joint = names
    return f"""<robot name="arm"><link name="base"/><link name="{link}">
      <inertial><origin xyz="{com}"/><mass value="{mass}"/>
      <inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial>
      <collision><geometry>{shape}</geometry></collision></link>
      <joint name="{joint}" type="{kind}"><parent link="base"/><child link="{link}"/><axis xyz="0 0 1"/>
      <origin rpy="{rpy}"/><limit {limits}/></joint>
      <link name="l2"><inertial><origin xyz="0.1 0.2 0.3"/><mass value="1"/>
      <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="j2" type="revolute"><parent link="{link}"/><child link="l2"/><axis xyz="0 1 0"/>
      <origin rpy="{rpy}" xyz="0.1 0 0"/><limit lower="-1" upper="1" velocity="2" effort="3"/></joint></robot>"""


def test_a_sound_robot():
    found = od.check_robot(arm())
    assert found.ok()
    assert found.robot.nv == 2
    assert any("inverse_dynamics" in x for x in found.of("note"))
    assert str(found).startswith("a text: 0 errors, 0 warnings, ")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "level, part, said, change",
    [
        ("warning", "inertias", "radius of gyration is 3.16 m", {"inertia": 10}),
        ("warning", "inertias", "are units mixed", {"mass": 50000, "inertia": 500}),
        ("warning", "inertias", "is its mass in grams", {"mass": 2000, "inertia": 20}),
        ("warning", "limits", "turns by 180 rad", {"limits": 'lower="-90" upper="90" velocity="2" effort="3"'}),
        ("warning", "limits", "turns at 180 rad/s", {"limits": 'lower="-1" upper="1" velocity="180" effort="3"'}),
        ("note", "limits", "no limit of effort: j1", {"limits": 'lower="-1" upper="1" velocity="2"'}),
        ("note", "names", "'link 1'", {"names": ("link 1", "j1")}),
        ("warning", "names", "'l2'", {"names": ("L2", "j1")}),
        ("note", "limits", "no joint has a limit of acceleration, jerk, effort_rate", {}),
        ("note", "inertias", "zero, as of a point of 0.7 kg", {"mass": 0.7, "inertia": 0, "com": "0.1 0.12 0.1"}),
        ("note", "frames", "from quarter turns", {"rpy": "1.5708 0 1.5708"}),
        ("note", "code", "with exact quarter turns", {"rpy": "1.5708 0 1.5708"}),
        ("warning", "meshes", "mesh 'gone.stl'", {"shape": '<mesh filename="gone.stl"/>'}),
        ("error", "file", "mass", {"mass": -1}),
    ],
)  # fmt: skip
def test_findings(level, part, said, change, tmp_path):
    file = tmp_path / "arm.urdf"
    without = {"limits": arm.__defaults__[2] + ' acceleration="9"'} if not change else {}
    for options, there in ((change, True), (without, False)):
        file.write_text(arm(**options))
        found = [x for x in od.check_robot(file).findings if x.level == level and x.part == part and said in x.text]
        assert bool(found) is there


def test_what_reading_has_told_is_not_told_again():
    found = od.check_robot(arm().replace('izz="0.01"', 'izz="0.2"'))
    assert [(x.level, x.part) for x in found.findings if "link 'l1': no real body" in x.text] == [("warning", "file")]
    assert not od.Inertia.from_com(0.7, (0.1, 0.12, 0.1), np.zeros((3, 3))).tensor_com.any()  # -1.5e-18 of rounding


def test_command(tmp_path, capsys):
    file = tmp_path / "arm.urdf"
    file.write_text(arm())
    assert cli.main(["check", str(file)]) == 0
    assert "arm.urdf: 0 errors" in capsys.readouterr().out
    file.write_text(arm().replace('parent link="base"', 'parent link="bas"'))
    assert cli.main(["check", str(file), "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["level"] == "error"
    assert "bas" in rows[0]["text"]
    assert cli.main(["check", str(tmp_path / "gone.urdf")]) == 2
    assert "gone.urdf" in capsys.readouterr().err


@pytest.mark.slow
def test_robots_of_the_package_have_no_errors():
    for name in ("panda", "quadruped"):
        found = od.check_robot(name)
        assert found.of("error") == []
        assert od.check_robot(od.load(name)).robot.nv == found.robot.nv
    assert np.isfinite(found.robot.total_mass)
