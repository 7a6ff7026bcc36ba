"""Loops and couplings in URDF files, as URDF+ adds them: what is read, and what is refused by file and element."""

import casadi as ca
import numpy as np
import pytest
from urdf_files import quiet

import oc_dyn as od
from oc_dyn.errors import ModelError

BODY = '<inertial><origin xyz="0.15 0 0"/><mass value="0.5"/>'
BODY += '<inertia ixx="1e-4" iyy="4e-3" izz="4e-3" ixy="0" ixz="0" iyz="0"/></inertial>'
PIN = """<loop name="pin" type="revolute">
  <predecessor link="rod"><origin xyz="0.6 0 0"/></predecessor>
  <successor link="ram"><origin xyz="0 0 0" rpy="0 0 0"/></successor>
  <axis xyz="0 1 0"/>
</loop>"""
BELT = """<coupling name="belt">
  <predecessor link="crank"/><successor link="rod"/><ratio value="-2"/>
</coupling>"""
START = {"motor": -0.8, "elbow": 1.1, "slide": 0.7}


def joint(name, kind, parent, child, axis, xyz="0 0 0", more=""):
    limit = '<limit lower="-3" upper="3" effort="9" velocity="9"/>'
    inner = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}"/><axis xyz="{axis}"/>{limit}'
    return f'<joint name="{name}" type="{kind}" {more}>{inner}</joint>'


def press(more, motor='independent="true"', elbow=""):
    return f"""<robot name="press"><link name="base"/>
    <link name="crank">{BODY}</link><link name="rod">{BODY}</link><link name="ram">{BODY}</link>
    {joint("motor", "revolute", "base", "crank", "0 1 0", more=motor)}
    {joint("elbow", "revolute", "crank", "rod", "0 1 0", "0.2 0 0", elbow)}
    {joint("slide", "prismatic", "base", "ram", "1 0 0")}
    {more}</robot>"""


def built():
    b = od.RobotBuilder("press")
    b.add_link("base")
    rod = {"mass": 0.5, "com": (0.15, 0, 0), "inertia": np.diag([1e-4, 4e-3, 4e-3])}
    b.add_body("crank", "revolute", "base", joint="motor", axis=(0, 1, 0), **rod)
    b.add_body("rod", "revolute", "crank", joint="elbow", xyz=(0.2, 0, 0), axis=(0, 1, 0), **rod)
    b.add_body("ram", "prismatic", "base", joint="slide", axis=(1, 0, 0), **rod)
    b.close_loop("pin", "rod", "ram", xyz_a=(0.6, 0, 0), axis=(0, 1, 0), independent=("motor",))
    return b.build(start=START)


def test_a_loop_is_that_of_the_builder():
    robot, wanted = quiet(press(PIN), start=START), built()
    assert robot.independent == ("motor",)
    assert robot.home == pytest.approx(wanted.home, abs=1e-9)
    f, g = (od.function(r, "inverse_dynamics") for r in (robot, wanted))
    assert float(f(-0.5, 1.0, 2.0)) == pytest.approx(float(g(-0.5, 1.0, 2.0)), rel=1e-9)


@pytest.mark.parametrize("type_, kind", [("spherical", "position"), ("continuous", "revolute")])
def test_types_of_loops(type_, kind):
    robot = quiet(press(PIN.replace('type="revolute"', f'type="{type_}"')), start=START)
    assert robot.loops[0].kind == kind


@pytest.mark.parametrize("elbow", ["", 'independent="true"'])
def test_a_coupling_keeps_the_ratio(elbow):
    robot = quiet(press(BELT, motor="" if elbow else 'independent="1"', elbow=elbow))
    assert robot.independent == (("elbow" if elbow else "motor"), "slide")
    q = np.array(od.function(robot, "loop_closure")([0.4, 0.1])[0]).ravel()
    assert q[1] == pytest.approx(-2 * q[0])
    tau = od.function(robot, "inverse_dynamics")
    assert ca.DM(tau([0.4, 0.1], [0.1, 0.2], 0)).is_regular()


def test_a_floating_base_and_a_changed_gravity_stay():
    robot = od.load_urdf(press(PIN), floating_base=True, start=START, gravity=(0, 0, -1.0))
    assert robot.nv == 7
    assert robot.gravity == pytest.approx([0, 0, -1.0])


@pytest.mark.parametrize(
    "text, said",
    [
        (PIN.replace('"ram"', '"rma"'), r"line \d+: loop 'pin', <successor link=\"rma\">: there is no such link"),
        (PIN.replace('"ram"', '"rod"'), "both of its links are 'rod'"),
        (PIN.replace("revolute", "hinge"), "loop 'pin', <loop type=\"hinge\">: loops are revolute"),
        (PIN.replace(' type="revolute"', ""), "loop 'pin' has no type"),
        (PIN.replace("0.6 0 0", "0.6 x 0"), "'x' is not a number"),
        (PIN.replace("0.6 0 0", "0.6 nan 0"), "'nan' is not a finite number"),
        (PIN.replace('xyz="0 1 0"', 'xyz="0 0 0"'), "its axis is zero"),
        (PIN.replace('<successor link="ram">', "<successor>"), "no <successor link"),
        (PIN + PIN, "loop 'pin' is defined more than once"),
        (PIN.replace('name="pin" ', ""), "a loop has no name"),
        (BELT.replace('<ratio value="-2"/>', ""), "coupling 'belt': no <ratio"),
        (BELT.replace('"-2"', '"1e99"'), "too large"),
        (BELT.replace('"crank"', '"base"'), "link 'base' hangs on 0 joints"),
        (BELT.replace("coupling", "loop"), "unknown tag <ratio>|has no type"),
        (
            "<loop name='w' type='fixed'><predecessor link='rod'/><successor link='ram'/></loop>",
            "1 velocities are independent",
        ),
        (PIN.replace("0.6 0 0", "0.6 5 0"), "left open: 'pin'"),
    ],
)
def test_what_is_wrong_is_named(text, said):
    with pytest.raises(ModelError, match=said) as caught:
        od.load_urdf(press(text), start=START)
    assert "URDF text" in str(caught.value)


def test_more_that_is_refused():
    with pytest.raises(ModelError, match="expected true or false"):
        od.load_urdf(press(PIN, motor='independent="maybe"'))
    with pytest.raises(ModelError, match="are one body"):
        od.load_urdf(press(PIN), lock={"motor": 0.0, "elbow": 0.0, "slide": 0.0})
    with pytest.raises(ModelError, match="leave start out"):
        od.load_urdf(press(""), start=START)
    many = "".join(PIN.replace('"pin"', f'"pin{k}"') for k in range(1001))
    with pytest.raises(ModelError, match="more than 1000 loops"):
        od.load_urdf(press(many), start=START)


@pytest.mark.parametrize("root", ["crank", "rod"])
def test_loops_of_a_tree_that_hangs_at_another_link(root):
    """Joints keep their coordinates, so that the loops close at the same ones."""
    here, there = quiet(press(PIN), start=START), quiet(press(PIN), start=START, root=root)
    assert there.root == root
    assert there.independent == ("motor",)
    found = [
        dict(
            zip(
                r.tree.coordinate_names, np.array(od.function(r, "loop_closure")(q=-0.5)["q_tree"]).ravel(), strict=True
            )
        )
        for r in (here, there)
    ]
    assert found[0] == pytest.approx(found[1], abs=1e-9)
