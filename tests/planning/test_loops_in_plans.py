"""Robots with loops in planners: limits of joints that follow bind, loops stay closed and in their mode."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import LimitError, ModelError, ShapeError, UnknownName
from oc_dyn.planning.feasibility import shortest_time

CRANK, ROD = 0.2, 0.6


def rod(length):
    about = length**3 / 12
    return {"mass": length, "com": (length / 2, 0, 0), "inertia": np.diag([1e-3 * length, about, about])}


def slider_crank(**limits):
    """A slider-crank whose slide has limits, fast at its crank."""
    b = od.RobotBuilder("press")
    b.add_link("base")
    turn = {"axis": (0, 1, 0)}
    fast = {"velocity": 50, "acceleration": 2000, "jerk": 4e5}
    b.add_body("crank_link", "continuous", "base", joint="crank", **turn, **rod(CRANK), **fast)
    b.add_body("rod_link", "continuous", "crank_link", joint="rod", xyz=(CRANK, 0, 0), **turn, **rod(ROD))
    b.add_body("ram", "prismatic", "base", joint="slide", axis=(1, 0, 0), mass=0.5, **limits)
    b.close_loop("pin", "rod_link", "ram", xyz_a=(ROD, 0, 0), **turn, independent=("crank",))
    return b.build(start={"crank": -0.8, "rod": 1.1, "slide": 0.7})


def slide(angle):
    """Its position, in closed form."""
    return CRANK * np.cos(angle) + np.sqrt(ROD**2 - (CRANK * np.sin(angle)) ** 2)


def four_bar(**limits):
    """The crank-rocker of od.robots.four_bar with limits of its rocker."""
    b = od.RobotBuilder("rocks")
    b.add_link("base")
    turn = {"axis": (0, 1, 0)}
    fast = {"velocity": 50, "acceleration": 2000, "jerk": 4e5}
    b.add_body("crank_link", "continuous", "base", joint="crank", **turn, **rod(0.3), **fast)
    b.add_body("coupler_link", "continuous", "crank_link", joint="coupler", xyz=(0.3, 0, 0), **turn, **rod(0.8))
    b.add_body("rocker_link", "continuous", "base", joint="rocker", xyz=(0.7, 0, 0), **turn, **rod(0.6), **limits)
    ends = {"xyz_a": (0.8, 0, 0), "xyz_b": (0.6, 0, 0), **turn, "independent": ("crank",)}
    b.close_loop("joint", "coupler_link", "rocker_link", **ends)
    return b.build(start={"crank": -1.0, "coupler": 0.5, "rocker": -1.2})


def rocker(angle):
    """Its angle, in closed form: where the circles about the crank's end and the rocker's foot meet."""
    x, z = 0.3 * np.cos(angle) - 0.7, 0.3 * np.sin(angle)  # z: the turn about y goes from x to -z
    far = np.hypot(x, z)
    return np.arctan2(z, x) + np.arccos((far**2 + 0.6**2 - 0.8**2) / (2 * 0.6 * far))


BOUNDS = {"velocity": 0.5, "acceleration": 3.0, "jerk": 200.0}
START, GOAL = -2.5, -0.8


def least(way):
    """Least time of one coordinate under BOUNDS, in closed form."""
    return shortest_time([way], *(np.array([x]) for x in BOUNDS.values()))[0]


def planned(robot, how, **more):
    if how == "path":
        return od.plan_along_path(robot, [[START], [(START + GOAL) / 2], [GOAL]], nodes=100, **more)
    return od.plan_point_to_point(robot, [START], [GOAL], continuity=2, nodes=60, **more)


@pytest.mark.sample("path")
@pytest.mark.parametrize("how", ["path", "point"])
def test_a_slide_takes_the_least_time_of_its_own_limits(how):
    T = least(slide(GOAL) - slide(START))
    motion = planned(slider_crank(**BOUNDS), how, check="raise")
    assert T * (1 - 1e-3) < motion.duration < T * 1.012


@pytest.mark.sample("point")
@pytest.mark.parametrize("how", ["path", "point"])
def test_without_its_limits_a_slide_is_too_fast(how):
    robot = slider_crank(**BOUNDS)
    motion = planned(robot, how, limits=replace(od.Limits.of(robot), followers=od.Limits(("slide",))))
    report = motion.check(od.Limits.of(robot))
    assert motion.duration < 0.5 * least(slide(GOAL) - slide(START))
    assert not report.ok()
    assert {r.joint for r in report.rows if r.share > 1.005} == {"slide"}
    assert motion.check().ok()


@pytest.mark.sample("path")
@pytest.mark.parametrize("how", ["path", "point"])
def test_a_velocity_limit_alone_gives_the_integral_of_its_slope(how):
    angle = np.linspace(START, GOAL, 200_001)
    T = np.trapezoid(np.abs(np.gradient(slide(angle), angle)), angle) / 0.5
    motion = planned(slider_crank(velocity=0.5), how, check="raise")
    assert T < motion.duration < 1.08 * T  # the ends are at rest
    speed = np.abs(np.gradient(slide(motion.sample(1e-4).q[:, 0]), motion.sample(1e-4).t))
    assert speed.max() < 0.5 * 1.001


@pytest.mark.slow
def test_a_rocker_takes_the_least_time_of_its_own_limits():
    robot = four_bar(**BOUNDS)
    start, goal = 0.5, 2.0
    closed = np.array(od.function(robot, "loop_closure")(start)[0]).ravel()[2]
    assert abs(np.sin((rocker(start) - closed) / 2)) < 1e-9
    T = least(abs(rocker(goal) - rocker(start)))
    motion = od.plan_point_to_point(robot, [start], [goal], continuity=2, nodes=60, check="raise")
    assert T * (1 - 1e-3) < motion.duration < T * 1.015


def test_scales_and_lists_of_what_is_ignored_hold_for_joints_that_follow():
    limits = od.Limits.of(slider_crank(**BOUNDS, lower=0.4, upper=0.9))
    assert limits.scaled(v=0.5).followers.v.tolist()[-1] == 0.25
    assert not limits.without("v", "q").followers.bounded("v").any()
    assert limits.updated({"slide": {"v": 0.1}}).followers.v[-1] == 0.1
    assert limits.as_dict()["slide"]["q"] == [0.4, 0.9]
    with pytest.raises(UnknownName, match="sled"):
        limits.updated({"sled": {"v": 0.1}})
    with pytest.raises(ShapeError, match="a joint of these limits itself"):
        replace(limits, followers=od.Limits(("crank",)))
    with pytest.raises(ShapeError, match="has tau"):
        replace(limits, followers=od.Limits(("slide",), tau=1.0))
    with pytest.raises(ModelError, match="'sled' is no joint"):
        planned(slider_crank(), "point", limits=replace(limits, followers=od.Limits(("sled",), v=1.0)))


def test_limits_of_zero_of_joints_without_a_drive_do_not_bind():
    with pytest.warns(od.ModelWarning, match="limit is 0"):
        robot = slider_crank(velocity=0.0)
    assert not od.Limits.of(robot).followers.bounded("v").any()


@pytest.mark.slow
def test_limits_of_joints_that_follow_are_in_files(tmp_path):
    robot = slider_crank(**BOUNDS)
    motion = od.Trajectory(
        [0.0, 1.0], [[[-2.0], [0.1], [0.0]]], joints=("crank",), units=("rad",), robot=robot,
        limits=od.Limits.of(robot).scaled(v=0.8),
    )  # fmt: skip
    for name in ("motion.csv", "motion.npz", "motion.json"):
        motion.save(tmp_path / name)
        again = od.Trajectory.load(tmp_path / name, robot)
        assert again.limits.followers.as_dict() == motion.limits.followers.as_dict()
    assert again.check().worst == pytest.approx(motion.check().worst, abs=1e-9)
    assert pickle.loads(pickle.dumps(motion)).limits.followers.v[-1] == 0.4


def test_ends_and_paths_out_of_the_range_of_a_joint_that_follows_are_refused():
    robot = slider_crank(**BOUNDS, lower=0.45, upper=0.77)
    with pytest.raises(LimitError, match=r"q_start: joint 'slide', which follows, has q = 0\.4277"):
        planned(robot, "point")
    with pytest.raises(LimitError, match=r"path: joint 'slide' is 0\.42"):
        planned(robot, "path")
    with pytest.raises(LimitError, match="v_start: joint 'slide'|q_start: joint 'slide', which follows, has v"):
        od.plan_point_to_point(robot, [-1.5], [-1.0], v_start=[10.0])


@pytest.mark.slow
def test_motions_are_slowed_down_for_joints_that_follow():
    robot = slider_crank(velocity=0.5)
    motion = planned(robot, "point", ignore=("v",))
    motion.limits = od.Limits.of(robot).without("dv", "d2v")
    slow = motion.scaled_in_time()
    row = next(r for r in slow.check().rows if r.joint == "slide")
    assert row.share == pytest.approx(1.0, abs=1e-4)
    assert slow.duration > 2 * motion.duration


def mirrored():
    """A parallel linkage: two equal cranks, joined by a rod as long as the ground, which may fold over at its ends."""
    b = od.RobotBuilder("folds")
    b.add_link("base")
    turn = {"axis": (0, 1, 0)}
    own = {"velocity": 3, "acceleration": 30, "jerk": 300}
    b.add_body("a", "continuous", "base", joint="crank", **turn, **rod(0.3), **own)
    b.add_body("b", "continuous", "a", joint="coupler", xyz=(0.3, 0, 0), **turn, **rod(0.7))
    b.add_body("c", "continuous", "base", joint="rocker", xyz=(0.7, 0, 0), **turn, **rod(0.3))
    b.close_loop("pin", "b", "c", xyz_a=(0.7, 0, 0), xyz_b=(0.3, 0, 0), **turn, independent=("crank",))
    return b.build(start={"crank": -1.0, "coupler": 1.0, "rocker": -1.0})


def test_a_plan_through_a_change_of_mode_is_refused_by_name():
    robot = mirrored()
    for plan in (
        lambda: od.plan_point_to_point(robot, [-1.0], [1.0]),
        lambda: od.plan_along_path(robot, [[-1.0], [0.5], [1.0]]),
    ):
        with pytest.raises(ModelError, match="loops .*pin.*(mode|closed)"):
            plan()


def arm(rule=lambda x: x[0] + x[1], **limits):
    """A planar arm of three joints, and a joint that follows the first two by a rule."""
    b = od.RobotBuilder("arm")
    b.add_link("base")
    own = {"velocity": 2, "acceleration": 10, "jerk": 100, "lower": -3, "upper": 3}
    b.add_body("upper", "revolute", "base", joint="one", axis=(0, 1, 0), **rod(0.4), **own)
    b.add_body("lower", "revolute", "upper", joint="two", xyz=(0.4, 0, 0), axis=(0, 1, 0), **rod(0.4), **own)
    b.add_body("third", "revolute", "lower", joint="three", xyz=(0.4, 0, 0), axis=(0, 1, 0), **rod(0.2), **own)
    b.add_body("slave", "revolute", "base", joint="sum", axis=(0, 1, 0), xyz=(0, 1, 0), **rod(0.1), **limits)
    b.couple("sum", ("one", "two"), rule)
    b.add_frame("tip", "third", xyz=(0.2, 0, 0))
    return b.build()


def tip(robot, q):
    return np.array(od.function(robot, "frame_pose", frame="tip")(q=q)["p"]).ravel()


def test_inverse_kinematics_keeps_joints_that_follow_in_range():
    free, kept = arm(), arm(lower=-0.6, upper=0.6)
    start = [0.6, 0.5, 0.2]
    p = tip(free, start)
    assert np.sum(od.inverse_kinematics(free, "tip", p=p, q_start=start)[:2]) > 1.0
    q = od.inverse_kinematics(kept, "tip", p=p, q_start=start)
    assert abs(q[0] + q[1]) < 0.6 + 1e-9
    assert np.abs(tip(kept, q) - p).max() < 1e-9
    with pytest.raises(LimitError, match="joint 'sum', which follows"):
        od.inverse_kinematics(kept, "tip", p=[0.05, 0, -0.85], q_start=start)


@pytest.mark.slow
def test_a_plan_goes_round_where_a_joint_that_follows_ends():
    """The straight way passes where the sum of squares is too small."""
    robot = arm(lambda x: x[0] ** 2 + x[1] ** 2, lower=0.5, upper=10)
    ends = [1.0, -0.8, 0.0], [-0.9, 1.0, 0.0]
    motion = od.plan_point_to_point(robot, *ends, check="raise", continuity=2, nodes=20)
    free = od.plan_point_to_point(robot, *ends, ignore=("q",), continuity=2, nodes=20)
    least = [np.min(np.sum(m.sample(1e-3).q[:, :2] ** 2, axis=1)) for m in (motion, free)]
    assert least[0] > 0.5 - 5e-3
    assert least[1] < 0.1
    assert free.duration < motion.duration


@pytest.mark.slow
def test_what_a_joint_that_follows_exceeds_is_told_where_no_plan_is_found():
    robot = slider_crank(**BOUNDS)
    with pytest.raises(od.SolveError, match="joint 'slide'"):
        od.plan_point_to_point(robot, [START], [GOAL], continuity=2, nodes=20, objective="effort", duration=0.6)
