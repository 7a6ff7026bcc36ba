"""Least-time motions: what the regulariser does and costs, and a word where nothing limits accelerations."""

import dataclasses
import warnings

import numpy as np
import pytest
from samples import example_robot

import oc_dyn as od

READY = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])


def variation(motion):
    """Total variation of the accelerations, of all joints [rad/s^2]."""
    dv = motion.both_sides(motion.duration / 2000).dv
    return np.abs(np.diff(dv, axis=0)).sum()


def both(*task, **options):
    """Plans without the regulariser and with that of the default."""
    return [od.plan_point_to_point(*task, **options, **more) for more in ({"smoothing": 0}, {})]


def ur5():
    return od.load_urdf(example_robot("ur_description/urdf/ur5_robot.urdf"))


def test_a_joint_that_has_time_to_spare_moves_calmly():
    """Two sliders, one of which goes a tenth of the way: it takes all of the time, and the time stays."""
    b = od.RobotBuilder("sliders", gravity=(0, 0, 0))
    b.add_link("base")
    for name, axis in (("x", (1, 0, 0)), ("y", (0, 1, 0))):
        b.add_body(f"body_{name}", "prismatic", "base", joint=name, axis=axis, mass=1.0)
    robot, limits = b.build(), od.Limits(("x", "y"), v=2.0, dv=4.0, d2v=40.0)
    plans = both(robot, [0, 0], [1, 0.1], limits=limits, continuity=2)
    assert plans[1].duration == pytest.approx(plans[0].duration, rel=1e-6)
    assert np.abs(plans[1].dv[:, 1]).max() < 0.6  # the least is 0.3 to 0.4, the limit 4
    assert np.abs(plans[1].dv[:, 0]).max() == pytest.approx(4.0, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("continuity", [2, 3])
def test_a_ur5_under_the_limits_of_its_file(continuity):
    robot = ur5()
    task = ([0, -1.5, 1.5, 0, 0.5, 0], [1.2, -0.8, 0.6, 0.4, -0.3, 1.0])
    plans = both(robot, *task, continuity=continuity, nodes=40, check="off")
    assert plans[1].duration <= 1.001 * plans[0].duration
    assert variation(plans[1]) < 0.75 * variation(plans[0])
    assert plans[1].info["iterations"] <= 1.1 * plans[0].info["iterations"]


@pytest.mark.slow
@pytest.mark.parametrize("continuity", [2, 3])
def test_a_panda(continuity):
    goal = [1.2, 0.3, -0.5, -1.6, 0.4, 1.8, -0.6]
    robot = od.robots.panda()
    plans = both(robot, READY, goal, continuity=continuity, nodes=40)
    assert plans[1].duration == pytest.approx(plans[0].duration, rel=1e-6)
    assert variation(plans[1]) < 0.9 * variation(plans[0])


def test_a_word_where_nothing_limits_accelerations():
    robot = od.robots.planar_2r()
    words = r"no limits of accelerations or jerks of joints 'shoulder', 'elbow': that of '\w+' gets to [0-9.]+ rad/s²"
    with pytest.warns(od.CheckWarning, match=words):
        od.plan_point_to_point(robot, [-1.2, 0.5], [-0.5, -0.8], nodes=12)
    with pytest.warns(od.CheckWarning, match="plan_along_path: the robot has no limits of accelerations or jerks"):
        od.plan_along_path(robot, [[-1.2, 0.5], [-0.5, -0.8]], nodes=12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = dataclasses.replace(od.Limits.of(robot), dv=20.0)
        od.plan_point_to_point(robot, [-1.2, 0.5], [-0.5, -0.8], nodes=12, limits=given)
        od.plan_point_to_point(robot, [-1.2, 0.5], [-0.5, -0.8], nodes=12, check="off")
        od.plan_point_to_point(robot, [-1.2, 0.5], [-0.5, -0.8], nodes=12, ignore=("dv",))
        od.plan_point_to_point(od.robots.panda(), READY, READY + 0.1, nodes=12, ignore=("tau", "dtau"))
