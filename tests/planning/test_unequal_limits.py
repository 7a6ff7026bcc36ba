"""Limits whose lower and upper sides differ: closed forms, the search, what is reported, saved and drawn."""

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.errors import LimitError, ModelError, UnknownName
from oc_dyn.planning.feasibility import shortest_time, time_alone

INF = np.inf
NAMES = ("a", "b", "c")


def slider(mass=2.0, gravity=(0, 0, 0)):
    """A body on a rail along z."""
    b = od.RobotBuilder("slider", gravity=gravity)
    b.add_link("rail")
    b.add_body("car", "prismatic", "rail", joint="z", axis=(0, 0, 1), mass=mass)
    return b.build()


def plan(robot, start, goal, **options):
    return od.plan_point_to_point(robot, start, goal, **{"check": "raise", "continuity": 2, "smoothing": 0, **options})


# -- how they are given ---------------------------------------------------------------------------------------


def test_ways_to_give_a_pair():
    for pair in ((-5, 20), [-5, 20], ([-5, -5, -5], 20), ([-5] * 3, [20] * 3), np.array([[-5] * 3, [20] * 3])):
        low, high = od.Limits(NAMES, dv=pair).bounds("dv")
        assert low.tolist() == [-5, -5, -5]
        assert high.tolist() == [20, 20, 20]


def test_equal_sides_are_one_array_as_before():
    limits = od.Limits(NAMES, dv=(-5, 5), tau=[1.0, 2.0, 3.0])
    assert limits.dv.tolist() == [5, 5, 5]
    assert limits.bounds("tau")[0].tolist() == [-1, -2, -3]
    assert isinstance(od.Limits(NAMES, dv=(-5, 6)).dv, tuple)


def test_two_numbers_of_two_joints():
    """Are one per joint, as they always were, unless the first is negative."""
    assert od.Limits(("a", "b"), v=(5, 20)).v.tolist() == [5, 20]
    assert od.Limits(("a", "b"), v=np.array([[5.0], [20.0]])).v.tolist() == [5, 20]
    low, high = od.Limits(("a", "b"), v=(-5, 20)).bounds("v")
    assert (low.tolist(), high.tolist()) == ([-5, -5], [20, 20])


def test_ranges_without_zero_are_refused_by_name():
    with pytest.raises(ModelError, match="joint 'b': limits dv are 1 to 20, expected a range that holds 0"):
        od.Limits(NAMES, dv=([-5, 1, -5], 20))
    with pytest.raises(ModelError, match="joint 'a': limits tau are -5 to -1"):
        od.Limits(NAMES, tau=(-5, -1))
    with pytest.raises(ModelError, match="joint 'a': limit v is -1, expected a number of at least 0"):
        od.Limits(NAMES, v=-1.0)


def test_scaled_updated_lifted_and_written(tmp_path):
    limits = od.Limits(NAMES, dv=(-5, 20)).updated({"b": {"tau": (-30, 10), "v": (None, 2)}, "c": {"dv": 7}})
    assert limits.bounds("dv")[0].tolist() == [-5, -5, -7]
    assert limits.bounds("v")[1].tolist() == [INF, 2, INF]
    assert limits.bounds("v")[0].tolist() == [-INF, -INF, -INF]
    half = limits.scaled(tau=0.5, dv=[1, 2, 3])
    assert half.bounds("tau")[0].tolist() == [-INF, -15, -INF]
    assert half.bounds("dv")[1].tolist() == [20, 40, 21]
    again = od.Limits(NAMES).updated(limits.as_dict())
    for k in ("v", "dv", "tau"):
        assert np.array_equal(again.bounds(k), limits.bounds(k))
    assert limits.as_dict()["b"] == {"v": [None, 2.0], "dv": [-5.0, 20.0], "tau": [-30.0, 10.0]}
    assert not np.isfinite(limits.without("dv").bounds("dv")).any()
    robot = slider()
    one = od.Limits.of(robot).updated({"z": {"dv": (-3, 1)}})
    one.write(tmp_path / "limits.json")
    assert od.Limits.read(tmp_path / "limits.json", robot).as_dict() == one.as_dict()


def test_values_are_held_against_their_side():
    limits = od.Limits(("a",), tau=(-30, 10))
    limits.assert_within("here", tau=-29.0)
    with pytest.raises(LimitError, match="tau of joint 'a' is 11, outside its limits -30 to 10"):
        limits.assert_within("here", tau=11.0)


@pytest.mark.sample(2)
@pytest.mark.parametrize("m", [-2.0, 2.0, 0.5])
def test_followers_bind_with_their_sides(m):
    """q' = m q + 0.1: a negative ratio swaps the sides."""
    b = od.RobotBuilder("hand", gravity=(0, 0, 0))
    b.add_link("base")
    b.add_body("x", "revolute", "base", joint="master", mass=1, com=(0.1, 0, 0))
    b.add_body("y", "revolute", "x", joint="follower", mass=1, com=(0.1, 0, 0), mimic=("master", m, 0.1))
    robot = b.build()
    own = {"q": (-1, 2), "v": (-1, 3), "dv": (-4, None), "tau": (-5, 7)}
    found = od.Limits.of(robot).updated({"follower": own}, robot)
    for k, (low, high) in own.items():
        low, high = float(low), INF if high is None else float(high)
        rng = np.random.default_rng(1)
        for x in rng.uniform(-8, 8, 200):  # of the master
            of_follower = {"q": m * x + 0.1, "tau": x / m}.get(k, m * x)
            inside = found.bounds(k)[0][0] <= x <= found.bounds(k)[1][0]
            assert inside == (low <= of_follower <= high)
    with pytest.raises(UnknownName, match="follower"):
        od.Limits.of(robot).updated({"follower": own})


# -- closed forms ---------------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("D", [1.3, -1.3])
def test_double_integrator(D):
    """sqrt(2 D (a + b) / (a b)), the same either way, as speeding up and slowing down swap."""
    a, b = 3.0, 7.0
    least = np.sqrt(2 * abs(D) * (a + b) / (a * b))
    limits = od.Limits(("z",), dv=(-b, a))
    assert time_alone(limits, [D], "dv")[0] == pytest.approx(least, rel=1e-12)
    assert shortest_time([D], [INF], ([-b], [a]), [INF])[0] == pytest.approx(least, rel=1e-5)


def test_velocity_of_the_side_of_the_way():
    assert time_alone(od.Limits(("a", "b"), v=(-1, 4)), [2.0, -2.0], "v").tolist() == [0.5, 2.0]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_seven_phases_of_unequal_limits_by_a_search(seed):
    """Pieces of constant jerk whose lengths are free: the search finds the same time."""
    rng = np.random.default_rng(seed)
    D = rng.uniform(0.2, 2) * rng.choice([-1, 1])
    v, a, j = ((-x, y) for x, y in 10 ** rng.uniform([(0, 0), (0.3, 0.3), (1.5, 1.5)], [(1, 1), (1, 1), (2.5, 2.5)]))
    least = shortest_time([D], *(([low], [high]) for low, high in (v, a, j)))[0]
    motion = plan(slider(), [0], [D], limits=od.Limits(("z",), v=v, dv=a, d2v=j), mesh="free", nodes=30)
    assert least * (1 - 1e-6) <= motion.duration <= 1.005 * least


@pytest.mark.sample(2)
@pytest.mark.parametrize("D", [0.8, -0.8])
def test_plan_of_a_double_integrator(D):
    robot = slider()
    limits = od.Limits(("z",), dv=(-2, 8), d2v=4000.0)
    motion = plan(robot, [0], [D], limits=limits, mesh="free", nodes=20)
    least = shortest_time([D], [INF], ([-2], [8]), [4000.0])[0]
    assert least == pytest.approx(np.sqrt(2 * 0.8 * 10 / 16), rel=5e-3)
    assert motion.duration == pytest.approx(least, rel=1e-2)
    assert motion.duration >= least * (1 - 1e-6)
    fine = motion.both_sides(1e-3)
    assert fine.dv.min() == pytest.approx(-2, abs=1e-5)
    assert fine.dv.max() == pytest.approx(8, abs=1e-4)
    assert motion.check().worst == pytest.approx(1, abs=1e-5)


def test_plan_under_unequal_forces():
    """Up against gravity with a force from -30 to 30: the same as accelerations from -30/m - g to 30/m - g."""
    robot = slider(2.0, (0, 0, -9.81))
    least = shortest_time([1.0], [INF], ([-8 / 2 - 9.81], [40 / 2 - 9.81]), [2000.0])[0]
    motion = plan(robot, [0], [1], limits=od.Limits(("z",), tau=(-8, 40), d2v=2000.0), mesh="free", nodes=20)
    assert motion.duration == pytest.approx(least, rel=2e-3)
    tau = motion.both_sides(1e-3).tau
    assert tau.min() == pytest.approx(-8, abs=0.05)
    assert tau.max() == pytest.approx(40, abs=0.05)
    with pytest.raises(LimitError, match="needs tau = 19.62 for holding still, over its limit 15"):
        plan(robot, [0], [1], limits=od.Limits(("z",), tau=(-40, 15), d2v=2000.0))


def test_plan_with_one_side_free():
    """No limit of the acceleration, one of the deceleration."""
    robot = slider()
    limits = od.Limits(("z",), v=(-INF, 1.0), dv=(-2, INF), d2v=(-1e4, 1e4))
    motion = plan(robot, [0], [1], limits=limits, mesh="free", nodes=20)
    least = shortest_time([1.0], [1.0], ([-2], [INF]), [1e4])[0]
    assert motion.duration == pytest.approx(least, rel=5e-3)
    assert motion.duration >= least * (1 - 1e-6)
    assert motion.check().ok()


def test_no_way_back_is_refused():
    limits = od.Limits(("z",), v=(0, 1.0), dv=2.0)
    assert plan(slider(), [0], [1], limits=limits).duration > 1
    with pytest.raises(LimitError, match="joint 'z' has to move by -1 from rest to rest, .* v of 0 to 1 do not allow"):
        plan(slider(), [0], [-1], limits=limits)
    with pytest.raises(LimitError, match="limits dv of 0 to 2 do not allow"):
        plan(slider(), [0], [1], limits=od.Limits(("z",), dv=(0, 2)))


def test_a_duration_that_is_too_short_is_refused():
    limits = od.Limits(("z",), dv=(-2, 8))
    least = np.sqrt(2 * 10 / 16)
    with pytest.raises(LimitError, match="limit dv of 8 alone asks for 1.11803"):
        plan(slider(), [0], [1], limits=limits, objective="effort", duration=0.99 * least)
    assert plan(slider(), [0], [1], limits=limits, objective="effort", duration=1.1 * least).check().ok()


@pytest.mark.sample("3")
@pytest.mark.parametrize("continuity", [2, 3])
def test_path_with_unequal_limits(continuity):
    """A straight way of one joint: the time of the joint alone."""
    robot = slider(2.0, (0, 0, -9.81))
    limits = od.Limits(("z",), v=(-9, 0.9), dv=(-2, 6), d2v=500.0, tau=(0, 31))
    least = shortest_time([1.0], [0.9], ([-2], [31 / 2 - 9.81]), [500.0])[0]
    motion = od.plan_along_path(robot, [[0.0], [0.4], [1.0]], limits=limits, continuity=continuity, check="raise")
    assert motion.duration == pytest.approx(least, rel=0.01 if continuity == 2 else 0.08)
    assert motion.duration >= least * (1 - 2e-3)
    fine = motion.both_sides(1e-3)
    assert fine.dv.min() >= -2 * 1.001
    assert fine.dv.max() > 5
    assert fine.tau.max() <= 31 * 1.001


def test_the_same_plan_where_sides_are_equal_but_given_as_pairs():
    robot = od.robots.double_pendulum()
    one = od.Limits(robot.coordinate_names, v=2.0, dv=20.0, d2v=200.0, tau=50.0)
    two = od.Limits(robot.coordinate_names, v=(-2, 2), dv=(-20, 20), d2v=(-200, 200), tau=(-50, 50))
    first, second = (plan(robot, [0, 0], [1, -0.5], nodes=20, limits=x) for x in (one, two))
    assert first.duration == second.duration
    assert first.info["iterations"] == second.info["iterations"]


@pytest.mark.slow
def test_elastic_robots():
    arm = od.robots.double_pendulum()
    robot = el.elastic_robot(arm, [2000.0, 2000.0], motor_inertia=[0.2, 0.2])
    limits = od.Limits(arm.coordinate_names, v=4.0, dv=(-6, 15))
    motion = el.plan_elastic(robot, [0, 0], [0.6, 0.3], motor_torque=200.0, limits=limits, nodes=20, check="raise")
    fine = motion.motion.both_sides(1e-3)
    assert fine.dv.min() >= -6 * 1.002
    assert fine.dv.max() > 7.0


# -- reports, files, figures ----------------------------------------------------------------------------------


def ramp(**limits):
    """q = t^3 - t: acceleration from 0 to 6."""
    joints = {"joints": ("z",), "units": ("m",), "robot": slider(1.0)}
    return od.Trajectory([0, 1], [[[0], [-1], [0], [6]]], **joints, limits=od.Limits(("z",), **limits))


def test_shares_are_of_the_side():
    motion = ramp(dv=(-1, 12), v=(-4, 1), tau=(-1, 3), d2v=(-1, INF))
    rows = {r.quantity: r for r in motion.check().rows}
    assert rows["dv"].share == pytest.approx(0.5)
    assert (rows["v"].share, rows["v"].value, rows["v"].limit) == pytest.approx((2.0, 2.0, 1.0))
    assert (rows["tau"].share, rows["tau"].limit) == pytest.approx((2.0, 3.0))
    assert rows["d2v"].share == 0
    used = motion.sample(0.25).utilization()
    assert used["v"] == pytest.approx([0.25, 0.203125, 0.0625, 0.6875, 2.0])


def test_what_is_over_a_limit_of_zero_counts_by_the_other_side():
    motion = ramp(v=(0, 4))
    row = next(r for r in motion.check().rows if r.quantity == "v")
    assert row.share == pytest.approx(1 + 1 / 0.4)
    assert (row.value, row.limit) == pytest.approx((-1, 0))


def test_files_keep_both_sides(tmp_path):
    motion = ramp(dv=(-1, 12), v=2.0)
    for kind in ("json", "csv", "npz"):
        motion.save(tmp_path / f"motion.{kind}")
        again = od.Trajectory.load(tmp_path / f"motion.{kind}")
        assert np.array_equal(again.limits.bounds("dv"), motion.limits.bounds("dv"))
        assert again.limits.v.tolist() == [2.0]


def test_a_snap_of_one_sign_moves_nothing_from_rest_to_rest():
    limits = od.Limits(("z",), v=2.0, d3v=(0, 60.0))
    with pytest.raises(LimitError, match="d3v of 0 to 60 do not allow"):
        plan(slider(), [0.0], [1.0], limits=limits, continuity=3)
