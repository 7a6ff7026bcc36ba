"""Planning of elastic robots: limits kept, motions that the full model follows, refusals that name the order needed."""

import csv

import casadi as ca
import numpy as np
import pytest
from elastic_arms import S3, planar_arm

import oc_dyn as od
from oc_dyn import elastic as el

START, GOAL = [-0.6, 0.3], [0.7, -0.9]


@pytest.fixture(scope="module")
def arm():
    return el.elastic_robot(planar_arm(2), [500, 300], motor_inertia=[0.3, 0.2])


@pytest.fixture(scope="module")
def fast(arm):
    return el.plan_elastic(arm, START, GOAL, motor_torque=[60, 30], motor_speed=4.0, deflection=0.2)


def test_limits_hold_between_nodes_and_one_binds(fast):
    shares = fast.shares(1e-4)
    assert max(shares.values()) < 1.005
    assert max(shares.values()) > 0.99
    assert set(shares) == {"motor_torque", "motor_speed", "deflection"}
    assert fast.motion.continuity == 4
    assert fast.objective == fast.duration
    report = fast.check()
    assert report.ok()
    assert "motor torque tau_m" in str(report)
    assert max(report.jumps.values()) < 1e-6
    assert max(report.ends.values()) < 1e-6
    halved = {"motor_torque": fast.limits["motor_torque"] / 2}
    assert not el.ElasticPlan(fast.elastic, fast.motion, halved, 0.0, {}).check().ok()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "quantity, limit",
    [
        ("dv", {"v": 2.0, "dv": 15.0, "d2v": 400.0}),
        ("d3v", {"d3v": 4000.0}),
        ("v_of_q", {"v_of_q": lambda q: (-1 - 0.2 * q**2, 1 + 0.2 * q**2)}),
    ],
)
def test_limits_of_the_links_hold_between_nodes(arm, quantity, limit):
    limits = od.Limits(arm.links.coordinate_names, **limit)
    plan = el.plan_elastic(arm, START, GOAL, motor_torque=[60, 30], limits=limits, nodes=20)
    report = plan.check(1e-4)
    assert report.ok()
    assert report.shares[quantity].max() > 0.99


@pytest.mark.slow
def test_positions_are_kept_even_at_a_limit(arm):
    """The goal lies on the limit of a joint, and without it the motion swings back past the start."""
    free = el.plan_elastic(arm, START, GOAL, motor_torque=[25, 12], nodes=20)
    names = arm.links.coordinate_names
    low = [min(START[0], GOAL[0]) - 0.05, GOAL[1]]
    limits = od.Limits(names, q=(low, [GOAL[0], 0.35]))
    assert free.check().ok()
    assert (free.sample()["q"] < np.array(low) - 0.05).any()
    kept = el.plan_elastic(arm, START, GOAL, motor_torque=[25, 12], limits=limits, nodes=20)
    assert kept.check(1e-4).ok()
    assert kept.check(1e-4).shares["q"].max() > 0.99
    assert kept.duration > free.duration


def test_the_full_model_follows(arm, fast):
    """Fed forward into the whole elastic model."""
    run = el.simulate(arm, el.feedforward(arm), el.reference(arm, fast.motion), rtol=1e-10)
    assert run.largest_error < 1e-8


def test_torque_is_that_recovered_from_simulated_accelerations(arm, fast):
    """Accelerations by differences of simulated speeds, torques from them by inverse dynamics and the motors' inertia.

    At breakpoints the highest derivative jumps, which differences see; everywhere else they are of order 4.
    """
    step = 5e-4
    reference, end = el.reference(arm, fast.motion), step * int(fast.duration / step)
    run = el.simulate(arm, el.feedforward(arm), reference, rtol=1e-11, dt=step, duration=end)

    def rate(x):
        return (x[:-4] - 8 * x[1:-3] + 8 * x[3:-1] - x[4:]) / (12 * step)

    inside = slice(2, -2)
    tau = od.function(arm.links, "inverse_dynamics")(run.q[inside].T, run.v[inside].T, rate(run.v).T)
    recovered = np.array(tau).T + rate(run.dtheta) * [0.3, 0.2]
    planned = el.outputs_along(arm, fast.motion, run.t[inside])["tau_m"]
    away = np.abs(run.t[inside, None] - fast.motion.t).min(axis=1) > 2.01 * step
    assert away.mean() > 0.5
    assert np.abs(recovered - planned)[away].max() < 1e-5 * np.abs(planned).max()
    assert np.abs(recovered - planned).max() < 2e-2 * np.abs(planned).max()


@pytest.mark.slow
def test_torque_rate_needs_one_order_more(arm, fast):
    plan = el.plan_elastic(
        arm, START, GOAL, motor_torque=[60, 30], motor_torque_rate=800.0, motor_speed=4.0, deflection=0.2
    )
    assert plan.motion.continuity == 5
    assert plan.duration > fast.duration
    s = plan.sample(1e-4)
    rate = np.abs(np.diff(s["tau_m"], axis=0)).max() / 1e-4
    assert rate < 800 * 1.01
    assert np.abs(s["dtau_m"]).max() < 800 * 1.005
    for continuity, words in ((4, "continuity=5"), (2, "continuity=5")):
        with pytest.raises(od.OrderError, match=words):
            el.plan_elastic(arm, START, GOAL, continuity=continuity, motor_torque_rate=800.0)
    with pytest.raises(od.OrderError, match="continuity=4"):
        el.plan_elastic(arm, START, GOAL, continuity=3, motor_torque=60.0)


@pytest.mark.slow
def test_loss_falls_with_the_time_given_and_is_least(arm):
    # as long as it is not holding against gravity that costs most
    plans = [
        el.plan_elastic(arm, START, GOAL, objective="energy", duration=T, motor_torque=[60, 30], nodes=20)
        for T in (0.5, 0.6, 0.7)
    ]
    losses = [plan.objective for plan in plans]
    assert losses[0] > losses[1] > losses[2] > 0

    def loss(motion):
        t = np.linspace(0, motion.duration, 20001)
        share = el.outputs_along(arm, motion, t)["tau_m"] / [60, 30]
        rate = np.sum(share**2, axis=1)
        return np.sum(np.diff(t) * (rate[1:] + rate[:-1]) / 2)

    assert losses[1] == pytest.approx(loss(plans[1].motion), rel=2e-3)
    smooth = el.rest_to_rest(START, GOAL, 0.6, continuity=4)
    names = arm.links.coordinate_names
    smooth = od.Trajectory(smooth.t, smooth.pieces, joints=names, units=("rad", "rad"), robot=arm.links)
    assert losses[1] < 0.9 * loss(smooth)


def rigid_time(nodes):
    """Shortest time of the arm without springs, with the same motors and as smooth a motion."""
    links = planar_arm(2)
    ocp, f = od.Problem(nodes, (0.1, 2.0)), od.function(links, "inverse_dynamics")
    start, goal = np.array(START), np.array(GOAL)
    guess = [lambda s: start + s * (goal - start), *[0.0] * 5]
    q = ocp.chain("q", 2, 5, guess=guess, scale=[1, 4, 40, 4e2, 1e4, 3e5])
    for part in (0, 1 / 3, 2 / 3):
        x = ocp.between(q, part)
        ocp.limit(-1, (f(*x[:3]) + np.array([0.3, 0.2]) * x[2]) / [60, 30], 1)
        ocp.limit(-1, x[1] / 4, 1)
    rest = {x: 0 for x in q[1:5]}
    ocp.start({q[0]: start, **rest})
    ocp.goal({q[0]: goal, **rest})
    ocp.minimize(terminal=ocp.duration, integral=1e-9 * ca.sumsqr(q[5] / 1e5))
    return ocp.solve().duration


@pytest.mark.slow
def test_stiff_springs_tend_to_the_rigid_arm():
    rigid, times = rigid_time(20), []
    for factor in (1, 10, 100):
        stiff = el.elastic_robot(planar_arm(2), [500 * factor, 300 * factor], motor_inertia=[0.3, 0.2])
        plan = el.plan_elastic(stiff, START, GOAL, motor_torque=[60, 30], motor_speed=4.0, nodes=20)
        times.append(plan.duration)
        assert np.abs(plan.sample()["deflection"]).max() < 0.25 / factor
    assert (
        times[0] < times[1] < times[2]
    )  # the links may be faster than the motors, the less so the stiffer the springs
    gaps = np.abs(np.array(times) / rigid - 1)
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.01


@pytest.mark.slow
def test_the_complete_model_needs_more_and_follows():
    coupled = el.elastic_robot(planar_arm(2), [500, 300], motor_inertia=[0.3, 0.2], coupling=S3[:2, :2])
    with pytest.raises(od.OrderError, match="continuity=6"):
        el.plan_elastic(coupled, START, GOAL, continuity=5, motor_torque=60.0)
    plan = el.plan_elastic(coupled, START, GOAL, motor_torque=[60, 30], nodes=20)
    assert plan.motion.continuity == 6
    assert plan.check().ok()
    run = el.simulate(coupled, el.feedforward(coupled), el.reference(coupled, plan.motion))
    assert run.largest_error < 1e-8


@pytest.mark.slow
def test_stiffness_that_is_held():
    arm = el.elastic_robot(planar_arm(2), el.VariableSpring(), motor_inertia=[0.3, 0.2])
    given = {"motor_torque": [60, 30], "motor_speed": 4.0, "nodes": 20}
    plan = el.plan_elastic(arm, START, GOAL, sigma=[500, 300], **given)
    linear = el.elastic_robot(planar_arm(2), [500, 300], motor_inertia=[0.3, 0.2])
    assert plan.duration == pytest.approx(el.plan_elastic(linear, START, GOAL, **given).duration, rel=1e-4)
    assert plan.check().ok()
    for robot, sigma in ((arm, None), (linear, [500, 300])):
        with pytest.raises(od.ShapeError, match="give sigma"):
            el.plan_elastic(robot, START, GOAL, sigma=sigma, **given)


def test_saved_table_is_whole(fast, tmp_path):
    fast.save(tmp_path / "plan.csv", dt=0.01)
    with open(tmp_path / "plan.csv", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    samples = fast.sample(0.01)
    assert len(rows) == len(samples["t"])
    assert "tau_m joint1" in header
    assert np.allclose([float(r[header.index("theta joint2")]) for r in rows], samples["theta"][:, 1])


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"motor_torque": 5.0}, od.LimitError, "q_start: motor 'joint1' needs motor_torque"),
        ({"deflection": 1e-3}, od.LimitError, "deflection"),
        ({"q_goal": START}, od.LimitError, "nothing to plan"),
        ({"motor_torque": None}, od.LimitError, "nothing bounds the time"),
        ({"objective": "energy", "duration": 0.2, "motor_speed": 4.0}, od.LimitError, "motor_speed of 'joint1'.*0.3"),
        ({"limits": od.Limits(("joint1", "joint2"), v=(1.0, 0.0))}, od.LimitError, "joint 'joint2'"),
        ({"limits": od.Limits(("joint1", "joint2"), q=(-0.5, 1.0))}, od.LimitError, "q_start: joint 'joint1' is -0.6"),
        ({"limits": od.Limits(("elbow", "joint2"))}, od.ShapeError, "elbow"),
        ({"interior": -1}, od.ShapeError, "interior"),
        ({"nodes": 1}, od.OrderError, "continuity 4; give at least 5"),
        ({"nodes": 4}, od.OrderError, "continuity 4; give at least 5"),
        ({"nodes": 5, "continuity": 5}, od.OrderError, "continuity 5; give at least 6"),
        ({"nodes": 2.5}, od.ShapeError, "nodes"),
        ({"q_goal": [1.0]}, od.ShapeError, "expected 2"),
        ({"motor_speed": -1.0}, od.ShapeError, "motor_speed"),
        ({"objective": "fun"}, od.UnknownName, "fun"),
        ({"objective": "energy"}, od.ShapeError, "duration"),
    ],
)
def test_what_cannot_be_is_refused_before_solving(arm, change, error, words):
    given = {"q_start": START, "q_goal": GOAL, "motor_torque": [60, 30]} | change
    with pytest.raises(error, match=words):
        el.plan_elastic(arm, **given)
