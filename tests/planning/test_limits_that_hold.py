"""Checks of motions: infinite rates, both sides of limits, peaks between samples, friction, long motions, nonsense."""

import warnings

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.friction import SMOOTHING
from oc_dyn.optimal_control.polynomials import derivatives_at
from oc_dyn.planning.extremes import MOST, intervals, of_polynomials

J = ("j",)


def arm(axis=(0, 0, 1), **joint):
    """One link on a revolute joint, by default about the vertical: no gravity."""
    b = od.RobotBuilder("arm")
    b.add_link("base")
    given = {"lower": -3, "upper": 3, "velocity": 20, "acceleration": 300, "effort": 5, **joint}
    b.add_body(
        "link", "revolute", "base", joint="j", axis=axis, mass=1, com=(0.3, 0, 0), inertia=0.01 * np.eye(3), **given
    )
    return b.build()


INERTIA = 0.01 + 0.3**2


def motion(t, pieces, robot=None, limits=None, **more):
    pieces = np.array(pieces, float).reshape(len(t) - 1, -1, 1)
    return od.Trajectory(t, pieces, joints=J, units=("rad",), robot=robot, limits=limits, **more)


# -- what jumps has an infinite rate ----------------------------------------------------------------------------


def jerky():
    """Jerk 6, then -6: continuity 2."""
    return motion([0, 1, 2], [[0, 0, 0, 6], [1, 3, 6, -6]])


def test_the_snap_of_a_jerk_that_jumps_is_infinite():
    report = jerky().check(od.Limits(J, d3v=1e6))
    row = next(r for r in report.rows if r.quantity == "d3v")
    assert (row.share, row.value, row.time, row.limit) == (np.inf, np.inf, 1.0, 1e6)


def test_what_is_infinite_is_not_within_limits():
    report = jerky().check(od.Limits(J, d3v=1e6))
    assert report.worst == np.inf
    assert not report.ok()
    assert "infinite" in str(report)
    assert "limits exceeded" in str(report)


def test_without_a_limit_a_jump_is_none_of_its_business():
    assert jerky().check(od.Limits(J, d2v=6.0)).worst == pytest.approx(1.0)


def test_one_piece_has_no_jump_inside():
    assert motion([0, 1], [[0, 0, 0, 6]]).check(od.Limits(J, d3v=1e-3)).worst == 0.0


def test_rounding_is_no_jump():
    smooth = motion([0, 1, 2], [[0, 0, 0, 6], [1, 3, 6 * (1 + 1e-12), 6]])
    assert smooth.check(od.Limits(J, d2v=10.0, d3v=1.0)).worst == pytest.approx(0.6)


def test_everything_above_a_velocity_that_jumps_is_infinite():
    report = motion([0, 1, 2], [[0, 1], [1, 2]]).check(od.Limits(J, v=5, dv=5, d2v=5, d3v=5))
    assert [r.share for r in report.rows if r.quantity != "q"] == [0.4, np.inf, np.inf, np.inf]


def test_the_rate_of_a_torque_that_jumps_is_infinite():
    report = motion([0, 1, 2], [[0, 0, 1], [0.5, 1, -1]], robot=arm()).check(od.Limits(J, tau=5, dtau=100))
    assert {r.quantity: r.share for r in report.rows}["dtau"] == np.inf
    assert {r.quantity: r.share for r in report.rows}["tau"] == pytest.approx(INERTIA / 5)


def test_a_jump_of_velocity_takes_an_impulse_of_torque():
    report = motion([0, 1, 2], [[0, 1], [1, 2]], robot=arm()).check(od.Limits(J, tau=5))
    assert report.worst == np.inf


def test_samples_of_jerky_motions_do_not_say_that_no_snap_is_used():
    fine = od.Trajectory(
        jerky().t, jerky().pieces, joints=J, units=("rad",), limits=od.Limits(J, d2v=12.0, d3v=1e6)
    )  # fmt: skip
    assert np.all(np.isinf(fine.utilization()["d3v"]))
    assert np.all(np.isinf(fine.sample(0.1).utilization()["d3v"]))
    assert np.all(fine.sample(0.1).utilization()["d2v"] == 0.5)


def test_a_path_motion_of_jumping_jerk_has_infinite_snap():
    robot = arm()
    along = od.plan_along_path(robot, [[-1.0], [0.2], [1.0]], nodes=16)
    assert along.check(od.Limits(J, d3v=1e9)).worst == np.inf
    assert along.check(od.Limits(J, d2v=1e9)).worst < 1


def test_figures_say_what_is_infinite():
    titles = [axis.get_title() for axis in motion([0, 1, 2], [[0, 0, 1], [0.5, 1, -1]]).plot().axes]
    assert "jerk d2v, infinite at jumps" in titles
    assert "acceleration dv" in titles


# -- extremes, both sides ---------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("degree", [2, 3, 4, 6])
def test_extremes_of_polynomials(degree):
    rng = np.random.default_rng(degree)
    t = np.cumsum(rng.uniform(0.1, 1, 6))
    pieces = rng.normal(size=(5, degree + 1, 2)) * 10.0 ** np.arange(degree + 1)[None, :, None]
    s = np.linspace(0, 1, 4001)
    for d in range(degree + 1):
        low, _, high, at = of_polynomials(t, pieces, d)
        fine = [
            derivatives_at(np.repeat(pieces[k : k + 1], len(s), axis=0), s * (t[k + 1] - t[k]), degree + 1)[d]
            for k in range(5)
        ]
        size = np.abs(fine).max()
        assert np.abs(high - np.max(fine, axis=(0, 1))).max() < 1e-5 * size
        assert np.abs(low - np.min(fine, axis=(0, 1))).max() < 1e-5 * size
        assert np.all((t[0] <= at) & (at <= t[-1]))


def test_a_peak_between_samples_is_found():
    """The velocity is largest, 2, at 0.5 s; samples would be at the ends alone."""
    report = motion([0, 1], [[0, 0, 8, -16]]).check(od.Limits(J, v=1.0), dt=10.0)
    row = max(report.rows, key=lambda r: r.share)
    assert (row.quantity, row.share, row.time) == ("v", pytest.approx(2.0), pytest.approx(0.5, abs=1e-3))


@pytest.mark.sample(2)
@pytest.mark.parametrize("q, end", [((-0.2, 5.0), -0.2), ((-5.0, 0.2), 0.2)])
def test_either_end_of_an_unequal_range(q, end):
    there_and_back = motion([0, 1, 2], [[0, np.sign(end), 0], [np.sign(end), -np.sign(end), 0]])
    row = there_and_back.check(od.Limits(J, q=q)).rows[0]
    assert row.limit == end
    assert row.value == pytest.approx(np.sign(end))
    assert row.share > 1


def test_wide_ranges_make_no_light_of_an_excess():
    report = motion([0, 1], [[0.9, 1.0]]).check(od.Limits(J, q=(-1000.0, 1.0)))
    assert report.worst == pytest.approx(1.9)
    assert not report.ok()


@pytest.mark.sample(2)
@pytest.mark.parametrize("v, side", [(0.5, 1), (-0.5, -1)])
def test_both_sides_of_velocity_limits_that_depend_on_the_position(v, side):
    """Neither may it go faster than 0.4 nor, where it has to go, slower than that."""
    bounds = {1: lambda q: ([-1.0], [0.4 + 0 * q[0]]), -1: lambda q: ([-0.4 + 0 * q[0]], [1.0])}[side]
    row = motion([0, 1], [[0, v]]).check(od.Limits(J, v=1.0, v_of_q=bounds)).rows[-1]
    assert (row.quantity, row.limit, row.share) == ("v_of_q", 0.4 * side, pytest.approx(1.25))


def test_too_slow_where_a_lower_limit_is_positive():
    slow = motion([0, 1], [[0, 0.1]]).check(od.Limits(J, v=1.0, v_of_q=lambda q: ([0.3 + 0 * q[0]], [1.0])))
    assert slow.worst > 1.5


def test_a_torque_peak_between_samples_is_found():
    """Gravity is largest at q = 0, which is passed between the samples."""
    robot = arm(axis=(0, 1, 0))
    swing = motion([0, 1], [[-0.31, 0.73]], robot=robot)
    row = next(r for r in swing.check(od.Limits(J, tau=3.0), dt=10.0).rows if r.quantity == "tau")
    assert abs(row.value) == pytest.approx(0.3 * 9.81, rel=1e-5)
    assert row.time == pytest.approx(0.31 / 0.73, abs=0.01)


# -- friction of the file ---------------------------------------------------------------------------------------


def needed(plan, damping=0.0, friction=0.0):
    """Torque of the vertical arm at 10 kHz by hand: Coulomb friction by the sign of the velocity."""
    s = plan.sample(1e-4)
    return (INERTIA * s.dv + damping * s.v + friction * np.sign(np.round(s.v, 9)))[:, 0]


@pytest.mark.sample(1)
@pytest.mark.parametrize("drag", [{"damping": 5}, {"friction": 2}, {"damping": 0.3, "friction": 1.5}])
def test_plans_keep_torque_limits_with_friction(drag):
    plan = od.plan_point_to_point(arm(**drag), [-1], [1], nodes=20)
    assert 0.9 < np.abs(needed(plan, **drag)).max() / 5 < 1.0015


@pytest.mark.sample(1)
@pytest.mark.parametrize("drag", [{"damping": 5}, {"friction": 2}, {"damping": 0.3, "friction": 1.5}])
def test_motions_along_paths_keep_torque_limits_with_friction(drag):
    along = od.plan_along_path(arm(**drag), [[-1], [0.5], [1]], nodes=30)
    assert 0.98 < np.abs(needed(along, **drag)).max() / 5 < 1.0015


@pytest.mark.slow
def test_a_motion_along_a_path_keeps_the_rate_of_torques_with_friction():
    robot = arm(damping=0.3, friction=1.5, effort_rate=1000)
    along = od.plan_along_path(robot, [[-1], [0.5], [1]], nodes=30)
    s = along.both_sides(1e-4)
    slope = 0.3 + 1.5 / SMOOTHING / np.cosh(np.minimum(np.abs(s.v) / SMOOTHING, 300)) ** 2
    assert np.abs(INERTIA * s.d2v + slope * s.dv).max() / 1000 < 1.0015


@pytest.mark.slow
def test_friction_can_be_left_out():
    robot = arm(damping=5)
    free, plain = (
        od.plan_point_to_point(r, [-1], [1], nodes=20, **x) for r, x in ((robot, {"friction": False}), (arm(), {}))
    )
    assert free.duration == plain.duration
    assert free.check().worst == plain.check().worst


@pytest.mark.slow
def test_a_check_counts_friction():
    drag = arm(damping=5)
    free = od.plan_point_to_point(drag, [-1], [1], nodes=20, friction=False)
    again = od.Trajectory(free.t, free.pieces, joints=J, units=("rad",), robot=drag, limits=free.limits)
    assert again.check().worst == pytest.approx(np.abs(needed(free, damping=5)).max() / 5, rel=1e-4)


def test_torques_and_their_rates_are_those_with_friction():
    robot = arm(damping=0.7, friction=1.5)
    x = motion([0, 1], [[0, 0.01, 0.3, 0.2]], robot=robot).sample([0.1])
    v, dv, d2v = x.v[0, 0], x.dv[0, 0], x.d2v[0, 0]
    assert x.tau[0, 0] == pytest.approx(INERTIA * dv + 0.7 * v + 1.5 * np.tanh(v / SMOOTHING))
    assert x.dtau[0, 0] == pytest.approx(
        INERTIA * d2v + 0.7 * dv + 1.5 * dv / SMOOTHING / np.cosh(v / SMOOTHING) ** 2
    )  # fmt: skip


def test_coulomb_friction_is_of_either_sign_where_a_joint_turns_round():
    """It turns at 1 s under -2 rad/s^2: the motor gives -0.2 - 1.5 behind the turn and -0.2 + 1.5 before it."""
    robot = arm(friction=1.5)
    turn = motion([0, 2], [[0, 2, -2]], robot=robot)
    row = next(r for r in turn.check(od.Limits(J, tau=5)).rows if r.quantity == "tau")
    assert row.value == pytest.approx(-2 * INERTIA - 1.5)
    short = motion([0, 1.001], [[0, 2, -2]], robot=robot)  # ends in the turn, where tanh would be small yet
    row = next(r for r in short.check(od.Limits(J, tau=5)).rows if r.quantity == "tau")
    assert row.value == pytest.approx(-2 * INERTIA - 1.5)


def test_the_smoothed_jump_of_friction_between_two_samples_is_seen():
    """It turns under -200 rad/s^2, so that the jump takes a fifth of the time between samples."""
    turn = motion([0, 0.0195], [[0, 2, -200]], robot=arm(friction=1.5))
    row = next(r for r in turn.check(od.Limits(J, dtau=20000)).rows if r.quantity == "dtau")
    assert row.share < 1
    assert row.value == pytest.approx(-1.5 * 200 / SMOOTHING, rel=1e-3)


def test_a_joint_that_stands_still_has_no_friction():
    still = motion([0, 1], [[0.3, 0, 0]], robot=arm(friction=1.5, damping=1))
    assert still.check(od.Limits(J, tau=5)).worst == 0.0


def test_followers_rub_too():
    b = od.RobotBuilder("pair", gravity=(0, 0, 0))
    b.add_link("base")
    b.add_body("a", "revolute", "base", joint="j", mass=1, inertia=0.01 * np.eye(3), friction=0.5, damping=0.2)
    b.add_body("b", "revolute", "base", mass=1, inertia=0.01 * np.eye(3), mimic=("j", -3), friction=0.4, damping=0.1)
    x = motion([0, 1], [[0, 1.0]], robot=b.build()).check(od.Limits(J, tau=10)).rows
    assert next(r.value for r in x if r.quantity == "tau") == pytest.approx(0.2 + 9 * 0.1 + 0.5 + 3 * 0.4)


@pytest.mark.slow
def test_friction_stays_with_the_motion_in_files(tmp_path):
    robot = arm(damping=5)
    plan = od.plan_point_to_point(robot, [-1], [1], nodes=12, friction=False)
    plan.save(tmp_path / "a.json")
    assert od.Trajectory.load(tmp_path / "a.json", robot).check().worst == plan.check().worst


@pytest.mark.slow
def test_robots_without_friction_take_the_same_functions():
    robot = arm()
    plan = od.plan_point_to_point(robot, [-1], [1], nodes=12)
    assert plan.check().ok()
    assert not any(("friction", True) in key[-1] for key in robot._made if key[0] == "function")


@pytest.mark.sample(2)
@pytest.mark.parametrize("transcription", ["inverse", "forward"])
@pytest.mark.parametrize("friction", [True, False])
def test_rigid_body_counts_friction(transcription, friction):
    ocp = od.Problem(4, 1.0)
    q, v, dv, tau = ocp.rigid_body(arm(damping=5), transcription, friction=friction)
    f = ca.Function("f", [q, v, dv if transcription == "inverse" else tau], [tau if transcription == "inverse" else dv])
    given = f(0, 2.0, 3.0)
    drag = 10.0 if friction else 0.0
    expected = INERTIA * 3 + drag if transcription == "inverse" else (3 - drag) / INERTIA
    assert float(given) == pytest.approx(expected)


def test_simulations_count_friction():
    """v' = -d / I v without a motor."""
    tau = np.zeros((201, 1))
    _, v = od.simulate(arm(damping=0.2), [0], [1], tau, 0.01)
    assert v[-1, 0] == pytest.approx(np.exp(-0.2 / INERTIA), rel=1e-5)
    _, v = od.simulate(arm(damping=0.2), [0], [1], tau, 0.01, friction=False)
    assert v[-1, 0] == pytest.approx(1.0)


@pytest.mark.slow
def test_what_friction_takes_is_no_error_of_the_energy():
    plan = od.plan_point_to_point(arm(damping=0.5, axis=(0, 1, 0)), [-1], [1], nodes=12, continuity=4)
    s = plan.sample(np.linspace(0, plan.duration, 2001))
    report = od.motion_report(plan.robot, s.t, s.q, s.v, s.tau, kinks=plan.t)
    assert report["rate of the energy less the power, relative"] < 1e-5
    assert report["velocities given back by forward dynamics"] < 1e-3
    other = od.motion_report(plan.robot, s.t, s.q, s.v, s.tau, kinks=plan.t, friction=False)
    assert other["rate of the energy less the power, relative"] > 0.1


# -- plans check themselves -------------------------------------------------------------------------------------


def one_round(monkeypatch):
    monkeypatch.setattr("oc_dyn.planning.point_to_point_search._ROUNDS", 1)
    return {"nodes": 12, "refinements": 0}


@pytest.mark.slow
def test_one_line_tells_the_worst(monkeypatch):
    settings = one_round(monkeypatch)
    with pytest.warns(od.CheckWarning) as seen:
        plan = od.plan_point_to_point(arm(friction=1.5), [-1], [1], **settings)
    row = max(plan.check().rows, key=lambda r: r.share)
    assert len(seen) == 1
    assert "\n" not in str(seen[0].message)
    words = f"tau of joint 'j' is {row.value:.6g} at {row.time:.4g} s, {100 * (row.share - 1):.2g} % over its limit"
    assert words in str(seen[0].message)


def test_raise_keeps_the_motion(monkeypatch):
    settings = one_round(monkeypatch)
    with pytest.raises(od.SolveError, match="tau of joint 'j' is") as error:
        od.plan_point_to_point(arm(friction=1.5), [-1], [1], check="raise", **settings)
    assert error.value.trajectory.check().worst > 1.001


@pytest.mark.slow
def test_off_is_silent(monkeypatch):
    settings = one_round(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert od.plan_point_to_point(arm(friction=1.5), [-1], [1], check="off", **settings).check().worst > 1.001


def test_paths_check_themselves(monkeypatch):
    monkeypatch.setattr("oc_dyn.planning.path._ROUNDS", 1)
    robot, way = arm(axis=(0, 1, 0), effort=8), [[-2], [0.5], [2]]
    with pytest.warns(od.CheckWarning, match="plan_along_path: .* of joint 'j' is .* % over its limit"):
        od.plan_along_path(robot, way, nodes=8)
    with pytest.raises(od.SolveError, match="plan_along_path"):
        od.plan_along_path(robot, way, nodes=8, check="raise")


def test_way_points_of_poses_check_the_ranges():
    robot = od.robots.planar_2r()
    pose = od.function(robot, "frame_pose", frame="tip")
    s = ca.SX.sym("s")
    way = ca.vertcat(0.2 + 0.3 * s, 1.0 + 0.2 * s)
    found = pose(q=way)
    along = ca.Function("along", [s], [found["R"], found["p"]])
    b = robot.joint("elbow")
    assert b.upper > 1.2
    narrow = robot.locked({})
    object.__setattr__(narrow, "joints", (robot.joints[0], od.model.robot.replace(b, upper=1.1)))
    with pytest.warns(od.CheckWarning, match="joint 'elbow' gets to 1.2 at s = 1, beyond its limit 1.1"):
        od.pose_path(narrow, "tip", along, [0.2, 1.0])
    with pytest.raises(od.LimitError, match="elbow"):
        od.pose_path(narrow, "tip", along, [0.2, 1.0], check="raise")


# -- long motions and numbers without sense ---------------------------------------------------------------------


def test_samples_do_not_grow_with_the_duration():
    assert intervals(np.array([0.0, 5e5, 1e6]), np.array([1.0, 1.0]), 1e-3).sum() <= MOST
    assert list(intervals(np.array([0.0, 0.01, 0.02]), np.array([0.1, 1.0]), 1e-3)) == [10, 40]


@pytest.mark.slow
@pytest.mark.parametrize("duration", [3e4, 1e6])
def test_slow_plans_of_least_effort(duration):
    robot = od.robots.planar_2r()
    plan = od.plan_point_to_point(robot, [0, 0], [0.1, 0], nodes=8, objective="effort", duration=duration)
    tau = plan.sample(np.linspace(0, duration, 50)).tau
    still = od.function(robot, "gravity")(plan.sample(np.linspace(0, duration, 50)).q.T).full().T
    assert np.abs(tau - still).max() < 1e-5
    assert plan.check().ok()


def test_too_many_samples_are_refused():
    with pytest.raises(od.ShapeError, match="1e.09 samples, of 20000000 at most"):
        motion([0, 1e6], [[0, 1e-6, 0]]).sample(1e-3)


@pytest.mark.sample(2)
@pytest.mark.parametrize("factor", [1.5, -1.0, np.nan])
def test_a_path_of_poses_needs_rotations(factor):
    arm, s = od.robots.panda(), ca.MX.sym("s")
    q = np.array([0, -0.8, 0, -2.4, 0, 1.6, 0.8])
    here = od.function(arm, "frame_pose", frame="panda_link8")(q=q)
    pose = ca.Function("pose", [s], [factor * here["R"], here["p"] + 0 * s])
    with pytest.raises(od.ShapeError, match="R of pose at s = 0"):
        od.pose_path(arm, "panda_link8", pose, q)
