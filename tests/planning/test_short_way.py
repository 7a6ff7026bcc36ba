"""Continuous joints that go the short way round."""

from math import pi

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import LimitError, ShapeError
from oc_dyn.planning.short_way import short_way, turning_joints


def wheels(mimic=None):
    """A wheel, a joint with ends, a wheel."""
    b = od.RobotBuilder("wheels", gravity=(0, 0, 0))
    b.add_link("base")
    b.add_body("one", "continuous", "base", joint="a", axis=(0, 0, 1), mass=1, com=(0.1, 0, 0))
    b.add_body("two", "revolute", "one", joint="b", axis=(0, 0, 1), mass=1, com=(0.1, 0, 0), lower=-4, upper=4)
    b.add_body("three", "continuous", "two", joint="c", axis=(0, 0, 1), mass=1, com=(0.1, 0, 0))
    if mimic is not None:
        b.add_body("four", "continuous", "three", joint="d", mass=1, com=(0.1, 0, 0), mimic=("c", mimic, 0.0))
    return b.build()


LIMITS = {"v": 1.0, "dv": 5.0, "d2v": 50.0}


def limits(robot, **more):
    return od.Limits(robot.coordinate_names, **{**LIMITS, **more})


def test_three_to_minus_three_goes_028():
    robot = wheels()
    options = {"limits": limits(robot), "continuity": 2, "nodes": 20, "check": "raise"}
    motion = od.plan_point_to_point(robot, [3, 3, 0], [-3, 2.9, 0.1], short_way=True, **options)
    assert motion.q[-1] == pytest.approx([2 * pi - 3, 2.9, 0.1])
    assert motion.info["wrapped"] == {"a": 1}
    assert "went the short way round: a (+1 turns)" in str(motion.check())
    assert motion.check().wrapped == {"a": 1}
    long = od.plan_point_to_point(robot, [3, 3, 0], [-3, 2.9, 0.1], **options)
    assert long.q[-1] == pytest.approx([-3, 2.9, 0.1])
    assert long.duration > 6 > 1 > motion.duration
    assert "wrapped" not in long.info
    assert "short way" not in str(long.check())


def test_many_turns_and_the_other_way():
    robot = wheels()
    way, told = short_way(robot, limits(robot), [[0, 0, -3], [20.0, 0, 3.1]])
    assert way[1] == pytest.approx([20 - 6 * pi, 0, 3.1 - 2 * pi])
    assert told == {"a": -3, "c": -1}
    assert short_way(robot, limits(robot), [[0, 0, 0], [1, 3.9, 1]])[1] == {}


def test_limits_of_the_position_stay():
    """Another way round where the limits that are given leave no other."""
    robot = wheels()
    ends = (np.array([-3.1, -4, -9]), np.array([3.1, 4, 9]))
    way, told = short_way(robot, limits(robot, q=ends), [[3, 0, 3], [-3, 0, -3]])
    assert way[1] == pytest.approx([-3, 0, 2 * pi - 3])
    assert told == {"c": 1}


def test_what_follows_by_part_of_a_turn_is_elsewhere_after_one():
    assert turning_joints(wheels()) == [0, 2]
    assert turning_joints(wheels(-2)) == [0, 2]
    assert turning_joints(wheels(0.5)) == [0]


def test_paths_go_the_short_way_from_point_to_point():
    robot = wheels()
    way = [[3, 0, 0], [-3, 0.5, 0], [-2.5, 1, 0]]
    motion = od.plan_along_path(robot, way, limits=limits(robot), short_way=True, nodes=40)
    assert motion.q[-1] == pytest.approx([2 * pi - 2.5, 1, 0])
    assert motion.info["wrapped"] == {"a": 1}
    assert "a (+1 turns)" in str(motion.check())


def test_files_tell_of_it(tmp_path):
    robot = wheels()
    motion = od.plan_point_to_point(robot, [3, 0, 0], [-3, 0, 0], limits=limits(robot), nodes=12, short_way=True)
    motion.save(tmp_path / "motion.json")
    assert od.Trajectory.load(tmp_path / "motion.json").check().wrapped == {"a": 1}


def test_nothing_is_left_to_do():
    robot = wheels()
    with pytest.raises(LimitError, match="start and goal"):
        od.plan_point_to_point(robot, [0, 0, 0], [2 * pi, 0, 0], limits=limits(robot), short_way=True)


def test_half_a_turn_goes_as_it_is_told():
    robot = wheels()
    way, told = short_way(robot, limits(robot), np.array([[0, 0, 0], [pi, 0, -pi]]))
    assert way[1].tolist() == [pi, 0, -pi]
    assert told == {}


def test_mistakes_in_a_path_are_named_as_without_it():
    robot = wheels()
    for path, said in (
        ([[3, 0, 3], [-3, 0.1]], "path: got .* expected numbers"),
        ([[3, 0], [-3, 0.1]], r"path: got shape \(2, 2\)"),
        ([[3, 0, 3], [-3, 0.1, np.nan]], "'c' is not a finite number"),
        ([["a", "b", "c"]] * 2, "expected numbers"),
    ):
        with pytest.raises(ShapeError, match=said):
            od.plan_along_path(robot, path, limits=limits(robot), short_way=True)
    s = ca.SX.sym("s")
    with pytest.raises(ShapeError, match="short_way is for way points"):
        od.plan_along_path(robot, ca.Function("f", [s], [ca.vertcat(s, 0, s)]), limits=limits(robot), short_way=True)
