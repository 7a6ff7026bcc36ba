"""Paths with speeds at their ends, and paths that stop and turn."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import LimitError, OrderError, ShapeError, UnknownName
from oc_dyn.planning.stops import shared_nodes

A, V, J = 4.0, 2.0, 4000.0


def slider():
    b = od.RobotBuilder("slider", gravity=(0, 0, 0))
    b.add_link("rail")
    b.add_body("car", "prismatic", "rail", joint="z", axis=(0, 0, 1), mass=2.0)
    return b.build()


def table():
    """Two rails, crosswise."""
    b = od.RobotBuilder("table", gravity=(0, 0, 0))
    b.add_link("base")
    b.add_body("first", "prismatic", "base", joint="x", axis=(1, 0, 0), mass=1.0)
    b.add_body("second", "prismatic", "first", joint="y", axis=(0, 1, 0), mass=1.0)
    return b.build()


def along(path, robot=None, **options):
    robot = robot or slider()
    limits = od.Limits(robot.coordinate_names, v=V, dv=A, d2v=J)
    return od.plan_along_path(robot, path, **{"limits": limits, "check": "raise", **options})


def least(D, a=0.0, b=0.0):
    """Time of a double integrator over D from the speed a to b, with speeds up to V."""
    top = np.sqrt(A * D + (a * a + b * b) / 2)
    if top <= V:
        return (2 * top - a - b) / A
    return (2 * V - a - b) / A + (D - (2 * V * V - a * a - b * b) / 2 / A) / V


# -- speeds at the ends ---------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("a, b", [(0.0, 1.0), (1.0, 0.0), (1.0, 1.5), (2.0, 2.0), (0.3, 2.0)])
def test_least_times(a, b):
    motion = along([[0.0], [1.0]], speed_start=a, speed_end=b)
    assert motion.duration == pytest.approx(least(1.0, a, b), rel=6e-3)
    assert motion.duration >= least(1.0, a, b) * (1 - 1e-5)
    assert motion.v[[0, -1], 0] == pytest.approx([a, b], abs=1e-7)
    assert motion.check().ok(1e-3)
    assert (motion.q[0, 0], motion.q[-1, 0]) == pytest.approx((0, 1), abs=1e-9)


@pytest.mark.slow
def test_velocities_of_joints_are_speeds_along_the_path():
    way = [[0.0, 0.0], [2.0, 1.0]]
    motion = along(way, table(), speed_start=[1.0, 0.5], speed_end=[0.4, 0.2])
    assert motion.v[[0, -1]] == pytest.approx(np.array([[1, 0.5], [0.4, 0.2]]), abs=1e-7)
    same = along(way, table(), speed_start=0.5, speed_end=0.2)
    assert same.duration == pytest.approx(motion.duration, rel=1e-6)


@pytest.mark.slow
def test_two_halves_are_as_fast_as_the_whole():
    """Passing the middle at the speed that the whole has there."""
    whole = along([[0.0], [1.0]], nodes=60)
    middle = whole.duration / 2
    speed = whole.sample([middle]).v[0]
    first = along([[0.0], [0.5]], speed_end=speed, nodes=40)
    second = along([[0.5], [1.0]], speed_start=speed, nodes=40)
    assert first.duration + second.duration == pytest.approx(whole.duration, rel=5e-3)


@pytest.mark.slow
def test_a_panda_that_moves_at_both_ends():
    arm = od.robots.panda()
    ready = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
    way = [ready, ready + [0.3, 0.2, 0.1, 0.3, -0.2, 0.3, 0.2], ready + [0.8, 0.1, 0.3, 0.5, -0.4, 0.4, 0.5]]
    rest = od.plan_along_path(arm, way, check="raise", nodes=60)
    moving = od.plan_along_path(arm, way, check="raise", nodes=60, speed_start=0.6, speed_end=0.4)
    assert moving.duration < 0.9 * rest.duration
    assert moving.shares(moving.t[[0, -1]])[1] == pytest.approx([0.6, 0.4], rel=1e-6)


def test_speeds_that_cannot_be_are_refused():
    with pytest.raises(LimitError, match="speed_start: v of joint 'z' is 3, over its limit 2"):
        along([[0.0], [1.0]], speed_start=3.0)
    with pytest.raises(LimitError, match="speed_end is -1 1/s, against the path"):
        along([[0.0], [1.0]], speed_end=[-1.0])
    with pytest.raises(LimitError, match="speed_start: joint 'y' has 1, which is not along the path: there it moves"):
        along([[0.0, 0.0], [2.0, 1.0]], table(), speed_start=[1.0, 1.0])
    with pytest.raises(ShapeError, match="speed_start"):
        along([[0.0], [1.0]], speed_start=[1.0, 2.0])


# -- stops ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_way_point_where_the_path_turns_back():
    """There, a quarter back: two motions from rest to rest."""
    motion = along([[0.0], [1.0], [0.75]], nodes=200)
    assert motion.duration == pytest.approx(least(1.0) + least(0.25), rel=1e-2)
    (stop,) = motion.info["stops"]
    k = int(np.argmin(np.abs(motion.s - stop)))
    assert motion.s[k] == pytest.approx(stop, abs=1e-12)
    assert motion.q[k, 0] == pytest.approx(1, abs=1e-12)
    for x in motion.derivatives[1:3]:
        assert x[k] == pytest.approx(0, abs=1e-6)
    assert motion.q.max() == pytest.approx(1, abs=1e-12)  # no overshoot
    assert max(motion.jumps().values()) < 1e-6


@pytest.mark.slow
def test_there_and_back_in_two_joints():
    motion = along([[0, 0], [1, 0.5], [0.4, 0.2], [1.4, 0.7]], table(), nodes=120)
    assert len(motion.info["stops"]) == 2
    assert motion.duration == pytest.approx(least(1.0) + least(0.6) + least(1.0), rel=2e-2)
    fine = motion.sample(1e-3).q
    assert fine[:, 1] == pytest.approx(fine[:, 0] / 2, abs=1e-9)


@pytest.mark.slow
def test_a_corner_that_is_asked_for():
    """Two straight ways, the corner exact; without a stop it is rounded."""
    way = [[0, 0], [1, 0], [1, 1]]
    motion = along(way, table(), stops=[1])
    assert motion.duration == pytest.approx(2 * least(1.0), rel=1.5e-2)
    fine = motion.sample(1e-3).q
    assert np.minimum(np.abs(fine[:, 1]), np.abs(fine[:, 0] - 1)).max() < 1e-9
    assert "stops" not in along(way, table()).info


@pytest.mark.slow
def test_functions_that_turn_back():
    """They are passed with an acceleration at the turn: 0 to 1 to -1 to 0."""
    s = ca.SX.sym("s")
    swing = ca.Function("swing", [s], [ca.sin(2 * ca.pi * s)])
    motion = along(swing, nodes=200)
    legs = 2 * least(1.0) + least(2.0)
    assert legs * (1 - 1e-3) <= motion.duration <= 1.02 * legs
    fine = motion.sample(1e-3)
    assert (fine.q.min(), fine.q.max()) == pytest.approx((-1, 1), abs=1e-4)
    assert fine.dv[int(np.argmax(fine.q)), 0] == pytest.approx(-A, rel=0.02)


def test_a_function_that_is_not_passed_is_refused():
    s = ca.SX.sym("s")
    with pytest.raises(LimitError, match="q does not change with s at s = 0.5"):
        along(ca.Function("slow", [s], [(s - 0.5) ** 3]))


@pytest.mark.slow
def test_places_to_stop_at_on_a_function():
    s = ca.SX.sym("s")
    line = ca.Function("line", [s], [2 * s])
    motion = along(line, stops=[0.25])
    assert motion.duration == pytest.approx(least(0.5) + least(1.5), rel=2e-2)


@pytest.mark.slow
def test_stops_and_speeds_together():
    motion = along([[0.0], [1.0], [0.0]], speed_start=[1.0], speed_end=[-1.0])
    assert motion.duration == pytest.approx(2 * least(1.0, 1.0), rel=1.5e-2)
    assert motion.v[[0, -1], 0] == pytest.approx([1, -1], abs=1e-6)


def test_stops_that_cannot_be_are_refused():
    with pytest.raises(UnknownName, match="way point to stop at"):
        along([[0.0], [1.0], [2.0]], stops=[2])
    with pytest.raises(ShapeError, match="stops has 1.5, expected places of the path"):
        along(ca.Function("f", [ca.SX.sym("s")], [ca.SX(1)]), stops=[1.5])
    with pytest.raises(ShapeError, match="stops is 1, expected numbers of way points"):
        along([[0.0], [1.0], [2.0]], stops=1)
    with pytest.raises(OrderError, match="10 nodes for 2 stretches between stops; give at least 12"):
        along([[0.0], [1.0], [0.0]], nodes=10)
    with pytest.raises(LimitError, match="way points 1 and 2 are the same"):
        along([[0.0], [1.0], [1.0], [0.0], [1.0]])


def test_nodes_are_shared():
    assert shared_nodes(np.array([0.5, 0.3, 0.2]), 100, 6) == [50, 30, 20]
    assert shared_nodes(np.array([0.98, 0.01, 0.01]), 100, 6) == [88, 6, 6]


def test_no_limit_of_velocity():
    """A jerk of J up, down, down, up: T = (32 D / J)^(1/3)."""
    robot = slider()
    for more in ({}, {"v": (-1, np.inf)}):
        limits = od.Limits(robot.coordinate_names, d2v=J, **more)
        motion = od.plan_along_path(robot, [[0.0], [1.0]], limits=limits, nodes=60, check="raise")
        assert motion.duration == pytest.approx((32 / J) ** (1 / 3), rel=2e-3)


@pytest.mark.slow
def test_a_stop_where_a_function_turns_back():
    s = ca.SX.sym("s")
    path = ca.Function("there_and_back", [s], [4 * s * (1 - s)])
    motion = along(path, nodes=80, stops=[0.5])
    assert motion.duration == pytest.approx(2 * least(1.0), rel=0.05)
    assert np.abs(motion.sample([motion.t[motion.s == 0.5][0]]).v).max() < 1e-9


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "given, said",
    [
        ({"v": (-2, 0)}, "v of joint 'z' are -2 to 0, which do not allow its way"),
        ({"dv": (0, 4)}, "dv of joint 'z' are 0 to 4, which do not allow a motion from rest"),
        ({"d2v": (-40, 0)}, "d2v of joint 'z' are -40 to 0, which do not allow a motion from rest"),
        ({"d3v": (0, 400), "continuity": 3}, "d3v of joint 'z' are 0 to 400, which do not allow a motion from rest"),
    ],
)
def test_limits_of_zero_on_one_side(given, said):
    robot, continuity = slider(), given.pop("continuity", 2)
    limits = od.Limits(robot.coordinate_names, **{"v": V, "dv": A, "d2v": J, **given})
    with pytest.raises(LimitError, match=said):
        od.plan_along_path(robot, [[0.0], [1.0]], limits=limits, continuity=continuity)


@pytest.mark.slow
def test_what_moves_to_one_side_needs_one_limit():
    """From rest to a speed of 1 with accelerations of 0 to A: the acceleration is never below 0."""
    robot = slider()
    limits = od.Limits(robot.coordinate_names, v=(0, V), dv=(0, A), d2v=J)
    motion = od.plan_along_path(robot, [[0.0], [1.0]], limits=limits, speed_end=2.0, check="raise")
    assert motion.duration == pytest.approx(V / A + (1 - V**2 / 2 / A) / V, rel=5e-3)
    assert motion.both_sides(1e-3).dv.min() > -1e-4


@pytest.mark.slow
def test_an_end_that_is_too_fast_is_named():
    with pytest.raises(od.SolveError, match="or a smaller speed_start"):
        along([[0.0], [0.01]], speed_start=180.0, nodes=30)  # 1.8 m/s in front of 1 cm


@pytest.mark.parametrize("continuity", [4, pytest.param(5, marks=pytest.mark.slow)])
def test_smooth_paths_are_as_fast_as_motions_between_their_ends(continuity, tmp_path):
    robot, options = slider(), {"continuity": continuity, "nodes": 40}
    options["limits"] = od.Limits(robot.coordinate_names, v=V, dv=10.0, d2v=400.0)
    best = od.plan_point_to_point(robot, [0.0], [1.0], **options).duration
    motion = od.plan_along_path(robot, [[0.0], [1.0]], **options)
    assert 0.99 * best < motion.duration < 1.06 * best
    jumps = motion.check().jumps
    assert list(jumps) == ["q", "v", "dv", "d2v", "d3v", "d4v"][: continuity + 1]
    assert all(x < 1e-6 * 100.0**k for k, x in enumerate(jumps.values()))
    motion.save(tmp_path / "motion.csv", dt=0.01)
    saved, sampled = od.Trajectory.load(tmp_path / "motion.csv", robot), motion.sample(0.01)
    assert all(np.allclose(*x, rtol=1e-12) for x in zip(saved.derivatives, sampled.derivatives, strict=True))


def test_a_second_try_where_the_first_fails():
    robot = table()
    limits = od.Limits(robot.coordinate_names, v=(V, 3.0), dv=20.0)
    tries = []

    def solve(self, **given):
        tries.append(given["solver_options"]["mu_strategy"])
        found = original(self, **given)
        found.success = len(tries) > 1
        return found

    original = od.Problem.solve
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(od.Problem, "solve", solve)
        motion = od.plan_along_path(robot, [[0.0, 0.0], [1.0, 0.5]], limits=limits, nodes=20)
    assert tries[:2] == ["adaptive", "monotone"]
    assert motion.check().ok(1e-3)
