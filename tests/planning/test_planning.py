"""Point-to-point plans: limits everywhere, known optima, refusals, failures, solvers."""

import json

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import (
    CheckWarning,
    LimitError,
    Limits,
    ModelError,
    ModelWarning,
    OrderError,
    ShapeError,
    SolveError,
    UnknownName,
)
from oc_dyn.optimal_control.polynomials import at, bernstein, hermite, lobatto, shift
from oc_dyn.planning.feasibility import shortest_time

plan = od.plan_point_to_point
START = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
GOAL = np.array([1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6])


@pytest.fixture(scope="module")
def panda():
    return od.robots.panda()


@pytest.fixture(scope="module")
def arm():
    return od.robots.planar_2r()


@pytest.fixture(scope="module")
def limits(arm):
    return Limits.of(arm).updated({name: {"dv": 20.0, "d2v": 200.0, "dtau": 2000.0} for name in arm.coordinate_names})


A, B = [-1.2, 0.5], [-0.5, -0.8]


def slider(mass=2.0, **joint):
    """One prismatic joint without gravity."""
    b = od.RobotBuilder("slider")
    b.add_link("base")
    b.add_body("cart", "prismatic", "base", joint="rail", mass=mass, axis=(1.0, 0.0, 0.0), **joint)
    return b.build()


# -- known optima -----------------------------------------------------------------------------------------------


def ruckig_duration(start, goal, limits):
    ruckig = pytest.importorskip("ruckig")
    n = len(start)
    task, motion = ruckig.InputParameter(n), ruckig.Trajectory(n)
    task.current_position, task.target_position = list(start), list(goal)
    task.current_velocity = task.current_acceleration = task.target_velocity = task.target_acceleration = [0.0] * n
    task.max_velocity, task.max_acceleration, task.max_jerk = list(limits.v), list(limits.dv), list(limits.d2v)
    ruckig.Ruckig(n).calculate(task, motion)
    return motion.duration


def test_kinematic_limits_alone_reach_the_known_shortest_time(panda):
    motion = plan(panda, START, GOAL, continuity=2, nodes=100, ignore=("tau", "dtau"))
    shortest = ruckig_duration(START, GOAL, motion.limits)
    assert shortest == pytest.approx(0.92896, abs=1e-5)
    assert shortest <= motion.duration <= 1.01 * shortest
    assert motion.check().worst <= 1 + 1e-6


@pytest.mark.sample("25-1.006")
@pytest.mark.parametrize("nodes, ratio", [(25, 1.006), (50, 1.0015)])
def test_free_mesh_comes_closer_to_the_shortest_time(panda, nodes, ratio):
    """Equal pieces reach 1.0409 and 1.0185 of the time of the seven phases, which only the slowest joint needs."""
    motion = od.plan_point_to_point(panda, START, GOAL, continuity=2, nodes=nodes, mesh="free", ignore=("tau", "dtau"))
    assert 1 - 1e-9 < motion.duration / 0.9289646728 < ratio
    assert motion.check().worst < 1 + 1e-6
    assert np.ptp(np.diff(motion.t)) > 0.1 * motion.duration / nodes


def test_free_mesh_keeps_torque_limits(arm, limits):
    even, free = (
        od.plan_point_to_point(arm, A, B, limits=limits, nodes=16, mesh=mesh, continuity=2)
        for mesh in ("uniform", "free")
    )
    assert free.duration < even.duration
    assert free.check().worst < 1.005


@pytest.mark.sample(2)
@pytest.mark.parametrize("derivatives", ["ad", "analytic"])
def test_kinds_of_derivatives_and_compiled_stages_find_the_same(arm, limits, derivatives):
    ways = [{"derivatives": derivatives}, {"derivatives": derivatives, "compiled": True}]
    ways += [{"derivatives": derivatives, "hessian": "limited_memory"}]
    times = [od.plan_point_to_point(arm, A, B, limits=limits, nodes=12, **way).duration for way in ways]
    assert np.ptp(times) < 1e-6


def test_shortest_time_of_single_joints_agrees_with_ruckig():
    rng = np.random.default_rng(3)
    for _ in range(30):
        D, v, a, j = rng.uniform(0.01, 3), *10 ** rng.uniform(-1, 1.5, 3)
        one = Limits(("x",), v=v, dv=a, d2v=j)
        assert shortest_time([D], [v], [a], [j])[0] == pytest.approx(ruckig_duration([0.0], [D], one), rel=1e-9)
    assert shortest_time([2.0], [np.inf], [4.0], [np.inf])[0] == pytest.approx(np.sqrt(2), rel=1e-5)


@pytest.mark.sample(2)
@pytest.mark.parametrize("continuity", [2, 3])
def test_one_radian_under_a_jerk_limit_alone(continuity):
    robot = od.robots.double_pendulum()
    motion = plan(
        robot, [0, 0], [1, 0], limits=Limits(robot.coordinate_names, d2v=100.0), continuity=continuity, nodes=60
    )
    least = (32 / 100) ** (1 / 3)
    assert least <= motion.duration <= 1.05 * least
    jerk = motion.both_sides(1e-4).d2v
    assert np.abs(jerk).max() <= 100 * (1 + 1e-6)


def test_least_effort_of_a_mass_is_the_cubic():
    # without limits the optimal force is linear in time, and its squared integral 12 m^2 D^2 / T^3; the continuity of
    # the acceleration at rest costs a little
    mass, D, T = 2.0, 0.7, 1.3
    robot = slider(mass)
    motion = plan(robot, [0.0], [D], objective="effort", duration=T, continuity=2, nodes=60)
    least = 12 * mass**2 * D**2 / T**3
    force = motion.sample(T / 4000).tau[:, 0]
    effort = np.sum((force[1:] ** 2 + force[:-1] ** 2) / 2) * T / 4000
    assert least <= effort <= 1.06 * least
    assert motion.info["objective_value"] == pytest.approx(effort, rel=2e-3)


@pytest.mark.slow
def test_effort_falls_with_time_and_is_below_any_other_motion(arm, limits):
    fast = plan(arm, A, B, limits=limits, nodes=20)
    efforts = [
        plan(arm, A, B, limits=limits, nodes=20, objective="effort", duration=T).info["objective_value"]
        for T in (1.02 * fast.duration, 1.5 * fast.duration, 2 * fast.duration)
    ]
    assert efforts[0] > efforts[1] > efforts[2]
    share = fast.sample(1e-3).tau / limits.tau
    assert efforts[0] < 1.02 * np.sum(share[1:] ** 2) * 1e-3 + 1e-3


def test_no_rate_of_torque_at_all_is_refused():
    arm = od.robots.planar_2r()
    limits = od.Limits.of(arm).updated({n: {"dtau": 2000.0} for n in arm.coordinate_names})
    with pytest.raises(od.LimitError, match="dtau|rate of torque|torque rate"):
        od.plan_point_to_point(arm, [0, 0], [0.5, 0.2], limits=limits, continuity=2, scale={"dtau": 0})



def test_scaling_the_limits_scales_the_time(arm, limits):
    kinematic = limits.without("tau", "dtau")
    one = plan(arm, A, B, limits=kinematic, nodes=20)
    twice = plan(arm, A, B, limits=kinematic.scaled(v=2, dv=4, d2v=8), nodes=20)
    assert twice.duration == pytest.approx(one.duration / 2, rel=1e-6)
    same = plan(arm, A, B, limits=kinematic, scale={"v": 2, "dv": 4, "d2v": 8}, nodes=20)
    assert same.duration == pytest.approx(twice.duration, rel=1e-9)


# -- limits between the nodes -----------------------------------------------------------------------------------


def ten_random_motions(robot):
    rng = np.random.default_rng(0)
    lower, upper = robot.limit("lower"), robot.limit("upper")
    return [(START, GOAL)] + [(rng.uniform(lower, upper), rng.uniform(lower, upper)) for _ in range(10)]


@pytest.mark.slow
@pytest.mark.parametrize("continuity, rate", [(3, 1.0), (2, 1.0), (3, 0.1)])
def test_panda_keeps_all_limits_between_the_nodes(panda, continuity, rate):
    bound = 0
    for start, goal in ten_random_motions(panda)[: None if rate == 1 else 5]:
        motion = plan(panda, start, goal, continuity=continuity, nodes=20, scale={"dtau": rate})
        report = motion.check(dt=1e-3)
        assert report.ok(0.005), f"{start} -> {goal}\n{report}"
        assert max(report.jumps.values()) < 1e-9
        ends = motion.both_sides(1e-3)
        for derivative in ends.derivatives[1 : continuity + 1]:
            assert np.abs(derivative[[0, -1]]).max() < 1e-6
        assert np.array_equal(motion.q[0], start)
        assert np.allclose(motion.q[-1], goal, atol=1e-12)
        least = shortest_time(goal - start, motion.limits.v, motion.limits.dv, motion.limits.d2v)
        assert motion.duration >= least.max()
        bound += motion.info["torque_limits_needed"]
    assert bound >= (3 if rate < 1 else 0)  # the third case is there to make the rate of torque bind


def test_panda_with_default_settings_where_the_torque_rate_binds(panda):
    free = plan(panda, START, GOAL, ignore=("tau", "dtau"))
    over = free.check(limits=Limits.of(panda).scaled(dtau=0.3))
    assert over.worst > 2  # the fastest motion needs more than twice the rate
    motion = plan(panda, START, GOAL, scale={"dtau": 0.3})
    report = motion.check()
    assert report.ok(0.005), report
    assert max(report.shares["dtau"]) > 0.99
    assert motion.duration >= free.duration * (1 - 1e-5)
    assert motion.info["torque_limits_needed"]
    assert not free.info["torque_limits_needed"]
    # what a controller sees at 1 kHz, standing still before and after: differences up to the third, and of the torque
    dt = 1e-3
    at = motion.sample(np.clip(dt * np.arange(-5, np.ceil(motion.duration / dt) + 6), 0, motion.duration))
    for order, limit in ((1, motion.limits.v), (2, motion.limits.dv), (3, motion.limits.d2v)):
        assert np.all(np.abs(np.diff(at.q, order, axis=0)) <= 1.005 * limit * dt**order)
    assert np.all(np.abs(np.diff(at.tau, axis=0)) <= 1.005 * motion.limits.dtau * dt)


@pytest.mark.sample(1)
@pytest.mark.parametrize("continuity", [3, 4])
def test_torques_that_bulge_between_nodes_do_not_slow_all_of_a_motion(continuity):
    """2 kg over 1 m with 40 N either way take 2 sqrt(1 / 20) s at least; smooth motions a few percent more."""
    builder = od.RobotBuilder("slider")
    builder.add_link("base")
    options = {"joint": "j", "mass": 2.0, "axis": [1, 0, 0], "lower": -5, "upper": 5, "effort": 40}
    builder.add_body("m", "prismatic", "base", **options)
    motion = od.plan_point_to_point(builder.build(), [0], [1], continuity=continuity, nodes=50, check="raise")
    assert motion.duration < 1.08 * 2 * np.sqrt(1 / 20)


@pytest.mark.slow
def test_coarse_grid_is_tightened_between_nodes(arm, monkeypatch):
    # torque is bounded at the nodes only: where it binds, the first solution exceeds it in between
    motion = plan(arm, A, B, nodes=24)
    assert motion.info["rounds"] > 2  # without torque, with torque, and at least once tightened
    assert motion.check().ok(0.005)
    finer = plan(arm, A, B, nodes=24, interior=3)
    assert finer.check().ok(0.005)
    assert finer.duration == pytest.approx(motion.duration, rel=1e-3)
    monkeypatch.setattr("oc_dyn.planning.point_to_point_search._ROUNDS", 1)
    words = "tau of joint '(shoulder|elbow)' is .* % over its limit .* more nodes or interior points"
    with pytest.warns(CheckWarning, match=words):
        first = plan(arm, A, B, nodes=24, refinements=0)
    assert first.check().worst > 1.1
    at_nodes = np.abs(first.tau / first.limits.tau).max()
    assert at_nodes <= 1 + 1e-6


def test_both_position_limits_are_allowed(arm, limits):
    top = np.radians(170)
    motion = plan(arm, [-top, top], [top, -top], limits=limits.without("tau", "dtau"), nodes=20)
    q = motion.both_sides(1e-3).q
    assert np.all(np.abs(q) <= top + 1e-9)
    assert motion.q[0, 0] == -top


def test_continuity_is_as_asked(arm, limits):
    durations = []
    for c in (2, 3, 4, 5):
        motion = plan(arm, A, B, limits=limits, continuity=c, nodes=16)
        assert motion.continuity == c
        assert motion.pieces.shape == (16, c + 2, 2)
        assert max(motion.check().jumps.values()) < 1e-7
        top = motion.pieces[:, c + 1]
        assert np.abs(np.diff(top, axis=0)).max() > 1  # the next derivative does jump
        durations.append(motion.duration)
    assert durations == sorted(durations)


@pytest.mark.slow
def test_snap_is_bounded(arm, limits):
    snap = Limits(limits.joints, q=limits.q, v=limits.v, dv=limits.dv, d2v=limits.d2v, d3v=2500.0)
    motion = plan(arm, A, B, limits=snap, nodes=30)
    assert np.abs(motion.d3v).max() <= 2500 * (1 + 1e-6)
    assert motion.duration > plan(arm, A, B, limits=snap.without("d3v"), nodes=30).duration
    with pytest.raises(OrderError, match="continuity 3"):
        plan(arm, A, B, limits=snap, continuity=2)


@pytest.mark.slow
def test_velocity_limits_that_depend_on_the_position():
    robot = od.robots.fr3()
    lower, upper = robot.velocity_limits(np.array([2.6, 0, 0, -1.5, 0, 1.8, 0]))
    assert float(np.array(upper).ravel()[0]) == pytest.approx(-0.30 + np.sqrt(12 * (2.7501 - 2.6)))
    start, goal = [2.6, 0, 0, -1.5, 0, 1.8, 0], [-2.6, 0.5, 1, -2.5, 0.5, 2.5, 1]
    motion = plan(robot, start, goal, nodes=30)
    assert "v_of_q" in motion.check().shares
    assert motion.check().ok(0.005)
    without = plan(robot, start, goal, nodes=30, ignore="v_of_q")
    assert without.check(limits=motion.limits).shares["v_of_q"].max() > 1.05
    assert without.duration < motion.duration


# -- starts and goals -------------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("continuity", [2, 3])
def test_start_is_met_exactly(arm, limits, continuity):
    q, v, dv = np.array([-1.2000123, 0.5]), np.array([1.1, -0.4]), np.array([3.0, -1.0])
    motion = plan(arm, q, B, limits=limits, continuity=continuity, nodes=20, v_start=v, dv_start=dv)
    assert np.array_equal(motion.q[0], q)
    assert np.array_equal(motion.v[0], v)
    assert np.array_equal(motion.dv[0], dv)
    assert np.abs(motion.v[-1]).max() < 1e-9
    assert np.abs(motion.dv[-1]).max() < 1e-9
    assert motion.check().ends["v"] < 1e-9
    assert motion.check().ok()


def test_goal_in_motion_and_a_stop(arm, limits):
    motion = plan(arm, A, B, limits=limits, nodes=20, v_goal=[0.5, -0.5], d2v_goal=[1.0, 2.0])
    assert np.allclose(motion.v[-1], [0.5, -0.5], atol=1e-9)
    assert np.allclose(motion.d2v[-1], [1.0, 2.0], atol=1e-6)
    stop = plan(arm, A, A, limits=limits, nodes=20, v_start=[1.0, 0.0])
    assert np.allclose(stop.q[-1], A, atol=1e-12)
    assert stop.duration > 0


def test_holding_still_has_no_nan(arm, limits):
    motion = plan(arm, A, A, limits=limits, nodes=12, objective="effort", duration=1.0)
    assert np.all(np.isfinite(motion.tau))
    assert np.allclose(motion.q[[0, -1]], A, atol=1e-12)
    with pytest.raises(LimitError, match="nothing to plan"):
        plan(arm, A, A, limits=limits)


def test_a_joint_with_a_limit_of_zero_is_held(arm, limits):
    held = limits.updated({"elbow": {"v": 0.0}})
    motion = plan(arm, [-1.2, 0.5], [-0.5, 0.5], limits=held, nodes=20)
    assert np.array_equal(motion.both_sides(1e-2).q[:, 1], np.full(len(motion.both_sides(1e-2)), 0.5))
    assert motion.check().ok()
    both = held.updated({"shoulder": {"q": (-1.2, -1.2)}})
    still = plan(arm, A, A, limits=both, objective="effort", duration=1.0)
    assert np.array_equal(still.q, [A, A])
    assert still.check().ok()


# -- refused before solving -------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "start, goal, options, words",
    [
        ([-3.0, 0], B, {}, "q_start: joint 'shoulder' is -3, outside its limits -2.96706 to 2.96706"),
        (A, [0, 3.2], {}, "q_goal: joint 'elbow' is 3.2"),
        (A, [0, 0], {"scale": {"tau": 0.6}}, "q_goal: joint 'shoulder' needs tau = 98.1 for holding still, .* 90"),
        (
            A,
            B,
            {"objective": "effort", "duration": 0.01},
            "duration 0.01 s .* 'elbow' moves by -1.3, .* d2v of 200",
        ),
        (A, B, {"objective": "effort", "duration": 0.6}, "limits v, dv and d2v together asks for 0.6"),
        (A, B, {"v_goal": [3.5, 0]}, "v_goal: joint 'shoulder' has 3.5, over its limit 3"),
        (A, B, {"dv_goal": [0, -25]}, "dv_goal: joint 'elbow' has -25, over its limit 20"),
        (A, B, {"scale": {"v": [1, 0]}}, "joint 'elbow' has to move by -1.3, but its limit v"),
        (A, B, {"ignore": ("v", "dv", "d2v", "tau", "dtau")}, "no limit bounds the speed of joint 'shoulder'"),
        (A, B, {"scale": {"dtau": 0}}, "limit dtau of joint 'shoulder' is 0"),
    ],
)
def test_the_impossible_is_refused(arm, limits, start, goal, options, words):
    with pytest.raises(LimitError, match=words):
        plan(arm, start, goal, limits=limits, **options)


def test_limits_of_the_robot_are_used_and_can_be_left_out(arm):
    with pytest.raises(LimitError, match="tau = 98.1"):
        plan(arm, A, [0, 0], scale={"tau": 0.5}, nodes=20)
    motion = plan(arm, A, B, nodes=20, ignore="tau")
    assert np.array_equal(motion.limits.v, [3.0, 3.0])
    assert np.all(np.isinf(motion.limits.tau))
    assert motion.check().ok()


def test_velocity_over_the_limit_at_this_position_is_refused():
    robot = od.robots.fr3()
    start = [2.6, 0, 0, -1.5, 0, 1.8, 0]
    with pytest.raises(LimitError, match="fr3_joint1.* its limits at position 2.6"):
        plan(robot, start, [0, 0, 0, -1.5, 0, 1.8, 0], v_start=[1.5, 0, 0, 0, 0, 0, 0])


def test_ends_within_wider_limits_than_those_of_an_earlier_plan(arm):
    """What is built for a robot is kept, but not the limits of the plan that it was built for."""
    names = arm.coordinate_names
    for most in (1.0, 3.0):
        limits = Limits(names, q=(-most, most), v=1.0, dv=3.0, d2v=30.0)
        motion = plan(arm, [0.9 * most] * 2, [0, 0], limits=limits, nodes=10, check="off")
        assert motion.sample(0.1).q[0] == pytest.approx([0.9 * most] * 2)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda r: plan(r, [0, 0, 0], B), ShapeError, "q_start: got 3 values, expected 2: shoulder, elbow"),
        (lambda r: plan(r, A, [0, np.nan]), ShapeError, "joint 'elbow' is not a finite number"),
        (lambda r: plan(r, A, B, v_start=[1.0]), ShapeError, "v_start: got 1 values"),
        (lambda r: plan(r, A, "home"), ShapeError, "q_goal"),
        (lambda r: plan(r, A, B, continuity=1), OrderError, "at least 2"),
        (lambda r: plan(r, A, B, continuity=2.5), OrderError, "continuity is 2.5"),
        (lambda r: plan(r, A, B, nodes=5), OrderError, "give at least 8"),
        (lambda r: plan(r, A, B, interior=-1), OrderError, "interior"),
        (lambda r: plan(r, A, B, continuity=2, d2v_start=[1, 1]), OrderError, "continuity 3"),
        (lambda r: plan(r, A, B, duration=1.0), ShapeError, "finds the duration"),
        (lambda r: plan(r, A, B, objective="effort"), ShapeError, "needs a duration"),
        (lambda r: plan(r, A, B, objective="energy", duration=1.0), UnknownName, "effort"),
        (lambda r: plan(r, A, B, scale={"torque": 0.5}), UnknownName, "no limit to scale 'torque'"),
        (lambda r: plan(r, A, B, ignore=("jerk",)), UnknownName, "d2v"),
        (lambda r: plan(r, A, B, limits={"v": 1}), ShapeError, "expected Limits"),
        (lambda r: plan(r, A, B, limits=Limits(("a", "b"), v=1.0)), ShapeError, "limits are of joints a, b"),
        (lambda r: plan(r, A, B, initial="x"), ShapeError, "expected a Trajectory"),
        (lambda r: plan(r, A, B, progress="x"), ShapeError, "progress is .x., expected True or False"),
        (lambda r: plan(r, A, B, solver="snopt"), UnknownName, "available: .*fatrop.*ipopt"),
        (lambda r: plan(r, A, B, solver_options={"linear_solver": "ma999"}), UnknownName, "mumps, spral"),
    ],
)
def test_wrong_arguments_are_named(arm, call, error, words):
    with pytest.raises(error, match=words):
        call(arm)


def test_joints_of_two_coordinates_can_be_planned():
    b = od.RobotBuilder("gimbal")
    b.add_link("base")
    b.add_body("body", "cylindrical", "base", joint="post", mass=1.0, com=(0.1, 0, 0), inertia=0.01 * np.eye(3))
    robot = b.build()
    limits = Limits(robot.coordinate_names, v=[2.0, 0.5], dv=5.0, d2v=50.0)
    motion = plan(robot, [0, 0], [1.0, 0.3], limits=limits, nodes=20)
    assert motion.units == ("rad", "m")
    assert motion.check().ok()
    assert motion.tau[0, 1] == pytest.approx(9.81)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["spherical", "planar", "free"])
def test_joints_without_one_rate_per_coordinate_are_refused(kind):
    b = od.RobotBuilder("ball")
    b.add_link("base")
    b.add_body("body", kind, "base", joint="loose", mass=1.0, inertia=np.eye(3))
    with pytest.raises(ModelError, match=f"joints with one coordinate each.*loose .{kind}"):
        plan(b.build(), np.zeros(3), np.ones(3))


# -- the solver -------------------------------------------------------------------------------------------------


def test_infeasible_says_what_is_violated(arm, limits):
    # the arm cannot be lifted through the horizontal with 30 Nm, which start and goal do not show
    weak = limits.updated({"shoulder": {"tau": 30.0}, "elbow": {"tau": 10.0}})
    with pytest.raises(SolveError) as caught:
        plan(arm, [-np.pi / 2, 0], [np.pi / 2, 0], limits=weak, nodes=12)
    error = caught.value
    assert error.status == "Infeasible_Problem_Detected"
    assert error.violations[0].quantity == "tau"
    assert {v.joint for v in error.violations} == {"shoulder", "elbow"}
    shares = [v.share for v in error.violations]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.5
    worst = error.violations[0]
    assert f"joint '{worst.joint}', torque at t = {worst.time:.4g} s: {worst.amount:.3g} over its limit" in str(error)
    i = error.trajectory.joints.index(worst.joint)
    tau = error.trajectory.sample([worst.time]).tau[0, i]
    assert abs(tau) - weak.tau[i] == pytest.approx(worst.amount, rel=1e-6)


def test_too_few_iterations_and_refused_options(arm, limits):
    with pytest.raises(SolveError, match="Maximum_Iterations_Exceeded") as caught:
        plan(arm, A, B, limits=limits, nodes=20, solver_options={"max_iter": 2})
    assert caught.value.trajectory is not None
    with pytest.raises(SolveError, match="No such IPOPT option: nonsense"):
        plan(arm, A, B, limits=limits, nodes=20, solver_options={"nonsense": 1})


@pytest.mark.sample(1)
@pytest.mark.parametrize("solver", ["fatrop", "sqpmethod"])
def test_solvers_agree(arm, limits, solver):
    limits = limits.scaled(tau=0.9, dtau=0.2)
    reference = plan(arm, A, B, limits=limits, nodes=12)
    motion = plan(arm, A, B, limits=limits, nodes=12, solver=solver)
    assert motion.info["solver"] == solver
    assert motion.info["torque_limits_needed"]
    assert motion.duration == pytest.approx(reference.duration, rel=1e-3)
    assert motion.check().ok()


def test_bounds_are_recognised_and_change_nothing(arm, limits):
    motion = plan(arm, A, B, limits=limits, nodes=12)
    general = plan(arm, A, B, limits=limits, nodes=12, solver_options={"detect_simple_bounds": False})
    assert general.duration == pytest.approx(motion.duration, rel=1e-6)


def test_a_linear_solver_that_is_not_there_is_replaced(arm, limits):
    with pytest.warns(ModelWarning, match="'ma57' cannot be loaded, mumps is used; available: mumps"):
        motion = plan(arm, A, B, limits=limits, nodes=12, solver_options={"linear_solver": "ma57"})
    assert motion.info["status"] == "Solve_Succeeded"


@pytest.mark.slow
def test_warm_start_takes_fewer_iterations(arm, limits):
    limits = limits.scaled(tau=0.9, dtau=0.2)
    first = plan(arm, A, B, limits=limits, nodes=20)
    again = plan(arm, A, B, limits=limits, nodes=20, initial=first)
    assert again.info["iterations"] <= 5 < first.info["iterations"]
    assert again.duration == pytest.approx(first.duration, rel=1e-6)
    near = plan(arm, A, np.add(B, 0.01), limits=limits, nodes=20, initial=first)
    assert near.info["iterations"] < first.info["iterations"]
    far = plan(arm, np.add(A, [0.5, 0.0]), np.add(B, [0.8, 0.3]), limits=limits, nodes=20, initial=first)
    assert far.check().ok()
    assert far.check().ends["q"] < 1e-9
    fewer_limits = plan(arm, A, B, limits=limits.without("d2v"), nodes=20, initial=first)
    assert fewer_limits.duration < first.duration
    other_grid = plan(arm, A, B, limits=limits, nodes=24, initial=first)
    assert other_grid.duration == pytest.approx(first.duration, rel=0.03)


def test_quiet_and_progress(arm, limits, capfd):
    plan(arm, A, B, limits=limits, nodes=12)
    assert capfd.readouterr() == ("", "")
    motion = plan(arm, A, B, limits=limits, nodes=12, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "planning" in err
    assert motion.info["iterations"] > 0
    assert motion.info["seconds"] > 0


def test_smoothing_is_a_small_price(arm, limits):
    exact = plan(arm, A, B, limits=limits, nodes=20, smoothing=0)
    default = plan(arm, A, B, limits=limits, nodes=20)
    assert exact.duration <= default.duration * (1 + 1e-7) <= 1.002 * exact.duration


# -- limits -----------------------------------------------------------------------------------------------------


def test_limits_change_by_order_and_by_name(arm):
    limits = Limits.of(arm)
    assert np.array_equal(limits.scaled(tau=0.5).tau, [75.0, 30.0])
    assert np.array_equal(limits.scaled(v=[1.0, 0.5], dtau=0.5).v, [3.0, 1.5])
    assert np.all(np.isinf(limits.scaled(dtau=0.0).dtau))  # no limit stays no limit
    assert np.all(np.isinf(limits.without("tau", "q").tau))
    assert np.all(np.isinf(limits.without("q").q[1]))
    changed = limits.updated({"elbow": {"v": 1.5, "q": (None, 2.0), "tau": None}})
    assert np.array_equal(changed.v, [3.0, 1.5])
    assert changed.q[0][1] == -np.inf
    assert changed.q[1][1] == 2.0
    assert changed.tau[1] == np.inf
    with pytest.raises(UnknownName, match="elbow"):
        limits.updated({"elbo": {"v": 1.0}})
    with pytest.raises(UnknownName, match="d2v"):
        limits.updated({"elbow": {"jerk": 1.0}})
    with pytest.raises(ModelError, match="elbow.*-1"):
        limits.updated({"elbow": {"v": -1.0}})
    with pytest.raises(ModelError, match="elbow.*lower limit 2 is above"):
        limits.updated({"elbow": {"q": (2.0, 1.0)}})
    with pytest.raises(ShapeError, match="3 values, expected 2: a, b"):
        Limits(("a", "b"), v=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="read-only"):
        limits.v[0] = 1.0


def test_values_are_required_to_be_within_limits():
    limits = Limits(("a", "b"), q=((-1, -2), (1, np.inf)), v=2.0, tau=(5.0, 10.0))
    limits.assert_within("start", q=[1, 1e6], v=[2, -2], dv=1e9, tau=[-5 * (1 + 1e-12), 10])
    for values, words in (
        ({"q": [0, -2.5]}, "start: q of joint 'b' is -2.5, outside its limits -2 to inf"),
        ({"q": [0, 0], "tau": [-5.5, 0]}, "start: tau of joint 'a' is -5.5, over its limit 5"),
        ({"v": 3.0}, "start: v of joint 'a' is 3, over its limit 2"),
    ):
        with pytest.raises(LimitError, match=words):
            limits.assert_within("start", **values)
    with pytest.raises(UnknownName, match="tau"):
        limits.assert_within("start", ta=1.0)
    for wrong in ([1.0, 2.0, 3.0], [np.nan, 0.0]):
        with pytest.raises(ShapeError, match="limits: start: q"):
            limits.assert_within("start", q=wrong)


def test_limits_in_a_text_file(arm, limits, tmp_path):
    path = tmp_path / "ünter" / "limits.json"
    limits.write(path)
    assert Limits.read(path, arm).as_dict() == limits.as_dict()
    path.write_text(json.dumps({"elbow": {"d2v": 50.0}, "wrist": {"v": 1.0}}))
    with pytest.warns(ModelWarning, match=r"does not have: wrist; no entry for: shoulder"):
        read = Limits.read(path, arm)
    assert read.d2v[1] == 50.0
    assert read.v[0] == 3.0
    assert np.isinf(read.d2v[0])
    for text, words in (
        ('{"elbow": {"v": 1.0,}}', r"limits.json:1: not JSON"),
        ('{"elbow": {"speed": 1.0}}', "limits.json: .*'speed'"),
        ('{"elbow": {"v": "fast"}}', "limits.json: .*elbow.*'fast'"),
        ('{"elbow": {"q": 1.0}}', r"limits.json: .*\[lower, upper\]"),
        ("[1, 2]", "expected an object"),
    ):
        path.write_text(text)
        with pytest.raises(ModelError, match=words):
            Limits.read(path, arm)


def test_a_velocity_limit_must_take_symbols(arm, limits):
    bad = Limits(limits.joints, v=1.0, v_of_q=lambda q: (-np.ones(2), [float(x) for x in np.asarray(q)]))
    with pytest.raises(ModelError, match="v_of_q cannot be called with CasADi symbols"):
        plan(arm, A, B, limits=bad)
    slow = Limits(limits.joints, v=3.0, dv=20.0, d2v=200.0, v_of_q=lambda q: ([-1, -1], [1, ca.fmin(1, 2 - q[1])]))
    motion = plan(arm, A, B, limits=slow, nodes=20)
    assert np.abs(motion.both_sides(1e-3).v).max() <= 1.002
    half = plan(arm, A, B, limits=slow.scaled(v=0.5), nodes=20)
    assert np.abs(half.both_sides(1e-3).v).max() <= 0.501


# -- polynomials ------------------------------------------------------------------------------------------------


def test_taylor_shift_and_bernstein_hull():
    rng = np.random.default_rng(1)
    for degree in (3, 4, 6):
        x = rng.normal(size=degree + 1)
        p = np.polynomial.Polynomial(x)
        moved = shift(degree) @ x
        s = np.linspace(0, 1, 101)
        assert np.allclose(np.polynomial.Polynomial(moved)(s - 1), p(s))
        for d in range(degree + 1):
            b, values = bernstein(degree, d) @ x, p.deriv(d)(s) if d else p(s)
            assert b[0] == pytest.approx(values[0])
            assert b[-1] == pytest.approx(values[-1])
            assert b.min() - 1e-12 <= values.min()
            assert values.max() <= b.max() + 1e-12
            assert at(degree, d, 0.3) @ x == pytest.approx(p.deriv(d)(0.3) if d else p(0.3))


def test_lobatto_and_hermite():
    for interior in range(5):
        points, weights = lobatto(interior)
        for power in range(2 * interior + 2):
            assert weights @ points**power == pytest.approx(1 / (power + 1))
    rng = np.random.default_rng(2)
    start, goal, T = rng.normal(size=(3, 2)), rng.normal(size=(4, 2)), 0.7
    c = hermite(start, goal, T)
    for i in range(2):
        p = np.polynomial.Polynomial(c[:, i])
        assert np.allclose([p(0), p.deriv()(0), p.deriv(2)(0)], start[:, i])
        assert np.allclose([p(T), p.deriv()(T), p.deriv(2)(T), p.deriv(3)(T)], goal[:, i])
