"""SDF files: poses, axes, kinds of joints, links with several parents, gearboxes, springs; what is refused."""

import warnings
from pathlib import Path

import casadi
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import ModelError
from oc_dyn.model.loops import LoopRobot
from oc_dyn.model.sdf import Spring, load_sdf, sdf_springs

BODY = (
    "<inertial><pose>0.1 0 0 0 0 0.3</pose><mass>{}</mass>"
    "<inertia><ixx>0.01</ixx><iyy>0.02</iyy><izz>0.02</izz></inertia></inertial>"
)


def model(parts, version="1.9"):
    return f'<sdf version="{version}"><model name="arm">{parts}</model></sdf>'


def link(name, pose="0 0 0 0 0 0", mass=1.0):
    return f'<link name="{name}"><pose>{pose}</pose>{BODY.format(mass)}</link>'


def joint(name, kind, parent, child, inner=""):
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{inner}</joint>'


AXIS = "<axis><xyz>0 1 0</xyz>{}</axis>"


def two_links(inner="", pose="0.3 0 0.1 0 0.4 0"):
    return model(
        link("base") + link("arm_link", pose) + joint("j", "revolute", "base", "arm_link", inner or AXIS.format(""))
    )


def test_an_arm_is_the_one_that_the_builder_makes():
    limits = "<limit><lower>-1</lower><upper>2</upper><effort>30</effort><velocity>4</velocity></limit>"
    robot = load_sdf(two_links(AXIS.format(limits + "<dynamics><damping>0.2</damping></dynamics>")))
    b = od.RobotBuilder("arm")
    R = np.array([[np.cos(0.3), -np.sin(0.3), 0], [np.sin(0.3), np.cos(0.3), 0], [0, 0, 1]])
    tensor = R @ np.diag([0.01, 0.02, 0.02]) @ R.T
    b.add_link("base", 1.0, (0.1, 0, 0), tensor)
    ends = {"xyz": (0.3, 0, 0.1), "rpy": (0, 0.4, 0), "axis": (0, 1, 0)}
    facts = {"lower": -1, "upper": 2, "effort": 30, "velocity": 4, "damping": 0.2}
    b.add_body("arm_link", "revolute", "base", joint="j", mass=1.0, com=(0.1, 0, 0), inertia=tensor, **ends, **facts)
    other = b.build()
    given = [np.array([x]) for x in (0.3, -0.2, 0.5)]
    assert float(od.function(robot, "inverse_dynamics")(*given)) == pytest.approx(
        float(od.function(other, "inverse_dynamics")(*given)), abs=1e-12
    )
    assert [robot.limit(k)[0] for k in ("lower", "upper", "effort", "velocity")] == [-1, 2, 30, 4]
    assert robot.joint("j").damping == 0.2


def test_a_joint_beside_the_frame_of_its_link_turns_about_its_own_point():
    robot = load_sdf(two_links("<pose>0 0 -0.2 0 0 0</pose>" + AXIS.format(""), pose="0.5 0 0 0 0 0"))
    for q in (0.0, 0.7):
        p = np.array(od.function(robot, "frame_pose", frame="arm_link")(q)[2]).ravel()
        assert p == pytest.approx([0.5 + 0.2 * np.sin(q), 0, -0.2 + 0.2 * np.cos(q)], abs=1e-12)


def test_poses_are_relative_to_frames_and_in_degrees():
    parts = (
        '<frame name="mount"><pose>1 0 0 0 0 90</pose></frame>'.replace("<pose>", '<pose degrees="true">')
        + link("base")
        + f'<link name="a"><pose relative_to="mount">0.5 0 0 0 0 0</pose>{BODY.format(1)}</link>'
        + joint("j", "revolute", "base", "a", '<axis><xyz expressed_in="base">0 0 1</xyz></axis>')
    )
    robot = load_sdf(model(parts))
    C = np.array(od.function(robot, "frame_pose", frame="a")(0.0)[0])
    assert C[:3, 3] == pytest.approx([1, 0.5, 0], abs=1e-12)
    assert C[:3, 0] == pytest.approx([0, 1, 0], abs=1e-12)


def test_two_parents_close_a_loop():
    parts = (
        link("base")
        + link("crank", "0 0 0 0 -1 0")
        + link("rod", "0.1621 0 0.2524 0 0.4 0")
        + link("slide", "0.75 0 0 0 0 0")
        + joint("a", "revolute", "base", "crank", AXIS.format(""))
        + joint("b", "revolute", "crank", "rod", AXIS.format(""))
        + joint("s", "prismatic", "base", "slide", "<axis><xyz>1 0 0</xyz></axis>")
        + joint("pin", "revolute", "rod", "slide", AXIS.format(""))
    )
    robot = load_sdf(model(parts), independent=("a",))
    assert isinstance(robot, LoopRobot)
    assert robot.independent == ("a",)
    for q in (0.0, 0.4):
        assert np.abs(np.array(od.function(robot, "loop_closure")(q)[-1])).max() < 1e-10


def test_a_gearbox_couples_the_joints_of_its_reference_body():
    parts = (
        link("base")
        + link("motor")
        + link("output")
        + joint("m", "revolute", "base", "motor", AXIS.format(""))
        + joint("o", "revolute", "base", "output", AXIS.format(""))
        + joint(
            "g", "gearbox", "motor", "output",
            "<gearbox_reference_body>base</gearbox_reference_body><gearbox_ratio>0.25</gearbox_ratio>"
            + AXIS.format("") + AXIS.format("").replace("axis>", "axis2>"),
        )
    )  # fmt: skip
    robot = load_sdf(model(parts))
    q = np.array(od.function(robot, "loop_closure")(0.8)[0]).ravel()
    assert q == pytest.approx([0.8, -0.2])


def test_springs_are_told():
    spring = "<dynamics><spring_stiffness>40</spring_stiffness><spring_reference>0.1</spring_reference></dynamics>"
    assert sdf_springs(two_links(AXIS.format(spring))) == (Spring("j", 40.0, 0.1),)


@pytest.mark.parametrize(
    "text, said",
    [
        ("<robot/>", "begins with <robot>"),
        ('<sdf version="1.9"></sdf>', "holds 0 models"),
        (model(link("a") + link("a")), "link 'a' is defined more than once"),
        (model("<include><uri>x</uri></include>" + link("a")), "<include> is not read"),
        (model(link("a") + joint("j", "hinge", "a", "a")), "joint 'j' has type 'hinge'"),
        (model(link("a") + joint("j", "fixed", "a", "b")), "its child is 'b'"),
        (model(link("a") + link("b")), "expected one link that no joint moves, found 2"),
        (model(link("a", "1 2 x 0 0 0")), "is '1 2 x 0 0 0', expected 6 finite numbers"),
        (model(link("a", "1 2 nan 0 0 0")), "expected 6 finite numbers"),
        (two_links("<axis><xyz>0 0 0</xyz></axis>"), "joint 'j': its axis is zero"),
        (two_links("<pose/>"), "is revolute and needs 1 axes"),
        (
            model('<link name="a"><pose relative_to="b"/></link><link name="b"><pose relative_to="a"/></link>'),
            "on itself",
        ),
    ],
)
def test_what_is_wrong_is_named(text, said):
    with pytest.raises(ModelError, match=said):
        load_sdf(text)


def test_a_line_is_told():
    with pytest.raises(ModelError, match=r"line 3: joint 'j' has type"):
        load_sdf('<sdf version="1.6">\n<model name="m"><link name="a"/>\n<joint name="j" type="hinge"/></model></sdf>')


def test_a_joint_may_be_called_as_its_link():
    masses = []
    for name in ("arm", "j"):
        inner = "<pose>.3 0 0 0 0 0</pose><axis><xyz>0 0 1</xyz></axis>"
        robot = load_sdf(model(link("arm") + joint(name, "revolute", "world", "arm", inner)))
        masses.append(float(od.function(robot, "mass_matrix")(0.0)))
    assert masses[0] == pytest.approx(masses[1], rel=1e-12)


def test_axes_of_the_first_versions_are_seen_from_the_model():
    parts = link("a") + joint("j", "revolute", "world", "a", "<pose>0 0 0 0 0 1.2</pose><axis><xyz>1 0 0</xyz></axis>")
    old, new = (float(od.function(load_sdf(model(parts, v)), "mass_matrix")(0.0)) for v in ("1.4", "1.9"))
    assert old != pytest.approx(new, rel=1e-3)
    with pytest.raises(ModelError, match="version is 'abc'"):
        load_sdf(model(parts, "abc"))


def test_the_pose_of_the_model_counts():
    parts = "<pose>0 0 0 1.5707963267948966 0 0</pose>" + link("a")
    parts += joint("j", "revolute", "world", "a", "<axis><xyz>0 0 1</xyz></axis>")
    g = float(od.function(load_sdf(model(parts)), "gravity")(0.0))
    assert abs(g) == pytest.approx(9.81 * 0.1, rel=1e-9)


def test_a_geared_joint_may_be_the_independent_one():
    inner = "<gearbox_reference_body>base</gearbox_reference_body><gearbox_ratio>0.25</gearbox_ratio>"
    parts = link("base") + link("m") + link("o")
    parts += joint("jm", "revolute", "base", "m", AXIS.format("")) + joint(
        "jo", "revolute", "base", "o", AXIS.format("")
    )
    parts += joint("g", "gearbox", "m", "o", inner + AXIS.format("") + AXIS.format("").replace("axis>", "axis2>"))
    robot = load_sdf(model(parts), independent=("jo",))
    assert robot.independent == ("jo",)
    with pytest.raises(od.UnknownName, match="to be independent"):
        load_sdf(model(parts), independent=("nobody",))


def test_many_frames_that_hang_on_each_other_are_refused():
    frames = "".join(f'<frame name="f{k}"><pose relative_to="f{k + 1}"/></frame>' for k in range(2000))
    text = model(link("a") + frames + '<frame name="f2000"/><link name="b"><pose relative_to="f0"/></link>')
    with pytest.raises(ModelError, match="more than 200 poses"):
        load_sdf(text)


def cassie(name):
    """A file of the package example-robot-data, which comes with Pinocchio's wheel."""
    share = Path(casadi.__file__).parents[1] / "cmeel.prefix/share/example-robot-data/robots"
    path = share / "cassie_description/robots" / name
    if not path.exists():
        pytest.skip("example-robot-data is not installed")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name, free, springs", [("cassie_v2.sdf", 18, 4), ("cassie.sdf", 18, 4)])
def test_cassie_moves_with_its_loops_closed(name, free, springs):
    path = cassie(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = load_sdf(path, floating_base=True, snap_angles=1e-5)
    assert robot.nv == free
    assert len(sdf_springs(path)) == springs
    assert 30 < robot.total_mass < 40
    rng = np.random.default_rng(0)
    q, v = robot.integrate(robot.neutral(), 0.05 * rng.normal(size=robot.nv)), rng.normal(size=robot.nv)
    found = [np.array(x) for x in od.function(robot, "loop_closure", order=1)(q, v)]
    assert np.abs(found[-1]).max() < (1e-9 if name == "cassie_v2.sdf" else 1e-5)  # the other one rounds angles
    tau = rng.normal(size=robot.tree.nv)
    explicit = np.array(od.function(robot, "constrained_dynamics")(found[0].ravel(), found[1].ravel(), tau)[0]).ravel()
    embedded = np.array(od.function(robot, "forward_dynamics")(q, v, found[2].T @ tau)).ravel()
    rows = robot.rows("v", robot.independent)
    assert np.abs(embedded - explicit[rows]).max() < 1e-9 * np.abs(embedded).max()


LETTERS = "xyzpqr"  # forces along the axes, moments about them


def wet_link(A, pose):
    """A link whose fluid_added_mass is A (6, 6), in the order of SDF."""
    rows = [(i, j) for i in range(6) for j in range(i, 6)]
    entries = "".join(f"<{LETTERS[i]}{LETTERS[j]}>{float(A[i, j])!r}</{LETTERS[i]}{LETTERS[j]}>" for i, j in rows)
    body = BODY.format(1.0).replace("</inertial>", f"<fluid_added_mass>{entries}</fluid_added_mass></inertial>")
    return f'<link name="arm_link"><pose>{pose}</pose>{body}</link>'


@pytest.mark.parametrize("place", ["0 0 0 0 0 0", "0.2 -0.1 0.3 0.5 0.1 0.2"], ids=["at the link", "beside it"])
def test_added_mass_is_seen_from_the_frame_of_the_link(place):
    """It adds V^T A V / 2 to the energy, V the twist of the link's frame with linear parts first."""
    B = np.random.default_rng(3).normal(size=(6, 6))
    A = B @ B.T
    pose = "0.3 0 0.1 0.2 0.4 0"
    arm = joint("j", "revolute", "base", "arm_link", f"<pose>{place}</pose>" + AXIS.format(""))
    links = link("arm_link", pose), wet_link(A, pose)
    dry, wet = (load_sdf(model(link("base") + x + arm), floating_base=True) for x in links)
    q, v = dry.random_configuration(1), np.random.default_rng(4).normal(size=7)
    V = np.array(od.function(wet, "frame_twist", frame="arm_link", representation="body")(q, v)).ravel()
    V = V[[3, 4, 5, 0, 1, 2]]
    T = [float(od.function(r, "kinetic_energy")(q, v)) for r in (dry, wet)]
    assert T[1] - T[0] == pytest.approx(V @ A @ V / 2, rel=1e-9)
    assert "fluid" not in dry.features


def wet_arm(A):
    arm = joint("j", "revolute", "base", "arm_link", AXIS.format(""))
    return load_sdf(model(link("base") + wet_link(A, "0 0 0 0 0 0") + arm))


def test_added_mass_of_zeros_is_none():
    assert "fluid" in wet_arm(np.eye(6)).features
    assert "fluid" not in wet_arm(np.zeros((6, 6))).features


def test_wrong_added_mass_is_named():
    with pytest.raises(ModelError, match="added_inertia has the negative eigenvalue -2"):
        wet_arm(-2 * np.eye(6))
    with pytest.raises(ModelError, match="line 1: link 'arm_link': fluid_added_mass: <xx> is 'inf', expected 1 finite"):
        wet_arm(np.full((6, 6), np.inf))


UNREAD = {
    "auto": ("link 'arm_link': its inertia from collision shapes", "<inertial>", '<inertial auto="true">'),
    "gravity": ("link 'arm_link': that gravity does not", "<inertial>", "<gravity>0</gravity><inertial>"),
    "kinematic": ("link 'arm_link': that it is kinematic", "<inertial>", "<kinematic>true</kinematic><inertial>"),
    "decay": ("link 'arm_link': its velocity_decay", "<inertial>",
              "<velocity_decay><linear>0.1</linear></velocity_decay><inertial>"),
    "mimic": ("joint 'j': that its axis is to mimic", "</axis>", '<mimic joint="k"/></axis>'),
    "spring": ("joint 'j': its spring is in no", "</axis>",
               "<dynamics><spring_stiffness>40</spring_stiffness></dynamics></axis>"),
    "static": ("that the model is static", "</model>", "<static>true</static></model>"),
    "plugin": ("plugin 'gz::sim::systems::Hydrodynamics' is not read", "</model>",
               '<plugin filename="gz-sim-hydrodynamics-system" name="gz::sim::systems::Hydrodynamics"/></model>'),
}  # fmt: skip


@pytest.mark.parametrize("case", UNREAD)
def test_what_is_not_read_but_changes_the_motion_is_told(case):
    said, old, new = UNREAD[case]
    before, found, after = two_links().rpartition(old)
    assert found
    assert not any(said in line for line in load_sdf(two_links()).report)
    assert any(said in line for line in load_sdf(before + new + after).report)


def test_gravity_that_acts_and_other_plugins_are_no_news():
    more = "<gravity>true</gravity><velocity_decay><linear>0.0</linear></velocity_decay><inertial>"
    text = two_links().replace("<inertial>", more).replace("</model>", '<plugin name="camera"/></model>')
    assert load_sdf(text).report == load_sdf(two_links()).report
