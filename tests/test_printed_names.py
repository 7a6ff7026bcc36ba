"""Names that are cut where a robot is printed or drawn: they can still be told apart, and are never cut for nothing."""

import re

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.text import columns, told_apart


def arm(pattern, count=7):
    """An arm whose links and joints are called after a pattern."""
    b = od.RobotBuilder("arm")
    links = [pattern.format(what="link", k=k) for k in range(count + 1)]
    b.add_link(links[0])
    for k in range(count):
        joint = pattern.format(what="joint", k=k + 1)
        b.add_body(links[k + 1], "revolute", links[k], joint=joint, mass=1.0, inertia=0.1 * np.eye(3))
    return b.build()


def rows(robot):
    """(body, parent, joint) of each line of the table."""
    lines = str(robot).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("-"))
    return [re.split(r"  +", line)[1:4] for line in lines[first + 1 :][: len(robot.bodies)]]


@pytest.mark.parametrize(
    "pattern",
    [
        "arm_left_shoulder_{k}_motor_housing_assembly_{what}",
        "the_very_long_name_of_an_arm_of_seven_joints_{what}_{k}",
        "{k}_{what}_of_the_very_long_name_of_an_arm_of_seven",
        "{what}_of_the_very_{k}_long_name_of_an_arm_of_seven",
        "腕の関節の番号は{k}であるとても長い名前の{what}",
    ],
)
def test_names_of_a_printed_robot_differ(pattern):
    robot = arm(pattern)
    found = rows(robot)
    bodies, parents, joints = zip(*found, strict=True)
    assert len(set(bodies)) == 7
    assert len(set(joints)) == 7
    assert list(parents) == ["ground", *bodies[:-1]]  # a body is called the same in both columns
    assert max(map(columns, str(robot).splitlines()[2:10])) < 160


def test_names_that_fit_are_whole():
    assert rows(arm("{what}_{k}"))[0] == ["link_1", "ground", "joint_1"]


@pytest.mark.parametrize("width", [3, 5, 8, 20, 40])
def test_cut_to_a_width(width):
    rng = np.random.default_rng(width)
    letters = list("ab_日\u0301")
    for _ in range(60):
        names = ["".join(rng.choice(letters, size=rng.integers(1, 60))) for _ in range(rng.integers(1, 8))]
        short = told_apart(names, width)
        assert len(set(short)) == len(set(names))
        assert [a == b for a in short for b in short] == [a == b for a in names for b in names]
        for name, cut in zip(names, short, strict=True):
            head, dots, tail = cut.partition("..")
            assert cut == name or (name.startswith(head) and name.endswith(tail) and dots)
            assert columns(cut) <= columns(name) or columns(name) < width
        if len(names) == 1:
            assert columns(short[0]) <= max(width, min(columns(names[0]), width))


def test_long_names_are_cut():
    names = [f"{'x' * 20_000}{k}{'y' * 20_000}" for k in range(5)]
    assert len(set(told_apart(names, 40))) == 5  # they differ in the middle alone
    ends = [f"{'x' * 20_000}{k}" for k in range(5)]
    assert max(map(columns, told_apart(ends, 40))) == 40


def test_the_legend_tells_joints_apart():
    robot = arm("arm_left_shoulder_{k}_motor_housing_assembly_joint_{what}_of_the_left_arm_of_the_robot")
    plan = od.Trajectory([0.0, 1.0], np.zeros((1, 3, 7)), joints=robot.coordinate_names, units=["rad"] * 7, robot=robot)
    labels = [x.get_text() for x in plan.plot().legends[0].get_texts()]
    assert len(set(labels)) == 7


def test_an_underscore_in_front_stays_in_the_legend():
    names = ["_one", "__two", "three"]
    plan = od.Trajectory([0.0, 1.0], np.zeros((1, 3, 3)), joints=names, units=["rad"] * 3)
    assert [x.get_text().strip() for x in plan.plot().legends[0].get_texts()] == names


@pytest.mark.slow
def test_no_text_of_a_figure_is_read_by_tex(tmp_path):
    """Where a user's settings say that TeX is to set all texts."""
    from matplotlib import rc_context

    robot = arm("left_{what}_{k}")
    plan = od.Trajectory([0.0, 1.0], np.zeros((1, 3, 7)), joints=robot.coordinate_names, units=["rad"] * 7, robot=robot)
    with rc_context({"text.usetex": True, "savefig.dpi": 20}):
        figure = plan.plot()
        figure.savefig(tmp_path / "plan.png")
    assert not any(x.get_usetex() for x in [figure._suptitle, *figure.legends[0].get_texts()])
