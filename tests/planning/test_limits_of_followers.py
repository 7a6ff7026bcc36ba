"""Mimic joints: what their limits leave of the joint that they follow, and that all who plan keep it."""

import numpy as np
import pytest

import oc_dyn as od

MASTER = {"lower": -3, "upper": 3, "velocity": 5, "effort": 10, "acceleration": 50, "jerk": 500, "effort_rate": 900}
FOLLOWER = {"lower": -1, "upper": 1, "velocity": 2, "effort": 9, "acceleration": 30, "jerk": 240, "effort_rate": 90}


def hand(multiplier=3.0, offset=0.0, master=None, **follower):
    """A joint and one that follows it, moving in a plane without gravity."""
    b = od.RobotBuilder("hand", gravity=(0, 0, 0))
    b.add_link("base")
    b.add_body("a", "revolute", "base", joint="master", mass=0.1, com=(0.1, 0, 0), **{**MASTER, **(master or {})})
    rule = ("master", multiplier, offset)
    b.add_body("b", "revolute", "a", joint="follower", xyz=(0.3, 0, 0), mass=0.1, com=(0.1, 0, 0), mimic=rule, **{
        **FOLLOWER, **follower
    })  # fmt: skip
    b.add_frame("tip", "b", xyz=(0.2, 0, 0))
    return b.build()


def limits(robot):
    return {kind: float(robot.limit(kind)[0]) for kind in ("lower", "upper", *MASTER)}


def test_rates_of_the_follower_bind_its_master():
    found = limits(hand())
    expected = {"lower": -1 / 3, "upper": 1 / 3, "velocity": 2 / 3, "acceleration": 10, "jerk": 80}
    assert {k: found[k] for k in expected} == pytest.approx(expected)


def test_torques_of_the_follower_bind_as_its_drive_gives_them():
    """It turns three times as fast, so it gets a third of the torque of the drive."""
    found = limits(hand())
    assert (found["effort"], found["effort_rate"]) == (10, 270)


def test_effort_of_a_follower_with_a_small_multiplier():
    assert limits(hand(multiplier=-0.5))["effort"] == 4.5


def test_negative_multipliers_turn_the_range_round():
    found = limits(hand(multiplier=-2.0, offset=0.1, lower=-0.5, upper=1.5))
    assert (found["lower"], found["upper"]) == pytest.approx((-0.7, 0.3))


def test_one_end_without_limit_stays_so():
    found = limits(hand(multiplier=-2.0, lower=-0.5, upper=None, master={"lower": None, "upper": None}))
    assert (found["lower"], found["upper"]) == (-np.inf, 0.25)


def test_what_never_moves_or_has_no_drive_does_not_bind():
    free = {k: float(MASTER[k]) for k in MASTER}
    assert limits(hand(multiplier=0.0)) == free
    assert limits(hand(multiplier=1.0, velocity=0, effort=0))["velocity"] == 5
    assert limits(hand(multiplier=1.0, velocity=0, effort=0))["effort"] == 10


def test_followers_of_followers():
    b = od.RobotBuilder("chain")
    b.add_link("base")
    b.add_body("a", "revolute", "base", joint="first", mass=1, lower=-3, upper=3, velocity=5)
    b.add_body("b", "revolute", "a", joint="second", mass=1, mimic=("first", -2, 0.5))
    third = {"mimic": ("second", 3, -0.6), "lower": -1.2, "upper": 0.3, "velocity": 6}
    b.add_body("c", "prismatic", "b", joint="third", mass=1, **third)
    robot = b.build()
    # third = -6 first + 0.9
    assert limits(robot)["lower"] == pytest.approx(0.1)
    assert limits(robot)["upper"] == pytest.approx(0.35)
    assert limits(robot)["velocity"] == pytest.approx(1.0)


def test_no_range_left_is_said_by_name():
    robot = hand(multiplier=1.0, lower=4, upper=5)
    words = r"joint 'master' has no position .*\('follower'\) are in range: from 4 to 3"
    with pytest.raises(od.ModelError, match=words):
        od.Limits.of(robot)
    assert "has no position" in robot.report[0]


def test_a_follower_whose_range_has_the_wrong_sign_is_noted():
    """As in the file of the PR2: it follows with -1, but its range is that of its master."""
    robot = hand(multiplier=-1.0, lower=0, upper=0.5, master={"lower": 0, "upper": 0.5})
    assert "'master': the ranges of joints that follow it leave it the one position 0" in robot.report[0]
    assert robot.random_configuration(1)[0] == 0


def test_rounding_leaves_a_point():
    robot = hand(multiplier=3.0, lower=0.3, upper=0.3, master={"lower": 0.1, "upper": 0.1})
    assert limits(robot)["lower"] == limits(robot)["upper"] == pytest.approx(0.1)


def test_the_table_shows_what_holds():
    lines = str(hand()).splitlines()
    row = next(line for line in lines if " master " in line and "revolute" in line)
    assert row.split()[-5:] == ["-0.33333", "..", "0.33333", "0.66667", "10"]
    row = next(line for line in lines if "follower" in line and "revolute" in line)
    assert row.split()[-5:] == ["-1", "..", "1", "2", "9"]


def test_each_joint_keeps_its_own():
    assert hand().joint("master").upper == 3


def test_random_configurations_are_in_range():
    robot = hand(offset=0.4)
    q = np.array([robot.random_configuration(seed)[0] for seed in range(200)])
    assert np.abs(3 * q + 0.4).max() <= 1
    assert np.ptp(3 * q) > 1.9


def test_inverse_kinematics_is_in_range():
    robot = hand()
    at = lambda q: np.array(od.function(robot, "frame_pose", frame="tip")(q=q)["p"]).ravel()  # noqa: E731
    assert od.inverse_kinematics(robot, "tip", p=at(0.3), q_start=[0.1]) == pytest.approx([0.3])
    with pytest.raises(od.LimitError, match="cannot get there"):
        od.inverse_kinematics(robot, "tip", p=at(0.5), q_start=[0.1])


def test_inverse_kinematics_does_not_stay_out_of_range_where_it_begins():
    robot = hand()
    at = np.array(od.function(robot, "frame_pose", frame="tip")(q=0.5)["p"]).ravel()
    with pytest.raises(od.LimitError, match="cannot get there"):
        od.inverse_kinematics(robot, "tip", p=at, q_start=[0.5])


def followers_share(motion):
    """Largest share of its range and velocity that the follower takes."""
    samples = motion.sample(1e-4)
    return max(np.abs(3 * samples.q).max() / 1, np.abs(3 * samples.v).max() / 2)


def test_a_plan_keeps_the_follower_in_its_limits():
    motion = od.plan_point_to_point(hand(), [-0.33], [0.33], nodes=16)
    assert 0.98 < followers_share(motion) <= 1 + 1e-6
    with pytest.raises(od.LimitError, match="q_goal: joint 'master' is 0.34, outside its limits"):
        od.plan_point_to_point(hand(), [-0.33], [0.34], nodes=16)


@pytest.mark.slow
def test_a_motion_along_a_path_keeps_the_follower_in_its_limits():
    motion = od.plan_along_path(hand(), [[-0.33], [0.33]], nodes=30)
    assert 0.98 < followers_share(motion) <= 1.002
    with pytest.raises(od.LimitError, match="path: joint 'master' is 0.34"):
        od.plan_along_path(hand(), [[-0.33], [0.34]], nodes=30)


def test_a_check_measures_against_the_follower():
    robot = hand()
    fast = od.Limits.of(robot).updated({"master": {"q": (-3, 3), "v": 5}})
    motion = od.plan_point_to_point(robot, [-0.5], [0.5], limits=fast, nodes=16)
    shares = motion.check(od.Limits.of(robot)).shares
    assert shares["q"][0] == pytest.approx(1.5)
    assert shares["v"][0] == pytest.approx(np.abs(motion.sample(1e-4).v).max() * 1.5, rel=1e-4)


def test_a_follower_that_stands_out_of_its_range_is_said_by_name():
    robot = hand(multiplier=0.0, offset=5.0)
    words = "joint 'follower' is never in range: .* stands at 5, its range is from -1 to 1"
    with pytest.raises(od.ModelError, match=words):
        robot.limit("lower")


def test_the_report_says_it_too():
    assert any("'follower' is never in range" in line for line in hand(multiplier=0.0, offset=-5.0).report)


def test_a_follower_that_stands_at_the_end_of_its_range_is_in_it():
    assert limits(hand(multiplier=0.0, offset=1.0)) == {k: float(MASTER[k]) for k in MASTER}


def test_limits_of_followers_bind_in_whatever_order_they_are_given():
    robot = hand(-2.0)
    given = {"follower": {"v": (-1, 3)}, "master": {"v": 4.0}}
    for order in (given, dict(reversed(given.items()))):
        assert od.Limits.of(robot).updated(order, robot).as_dict()["master"]["v"] == [-1.5, 0.5]
