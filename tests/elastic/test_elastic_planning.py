"""Planning of elastic robots: limits kept, motions that the full model follows, refusals that name the order needed."""

import csv

import numpy as np
import pytest
from elastic_arms import planar_arm

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
    shares = fast.shares()
    assert max(shares.values()) < 1.005 and max(shares.values()) > 0.99
    assert set(shares) == {"motor_torque", "motor_speed", "deflection"}
    assert fast.motion.continuity == 4


def test_the_full_model_follows(arm, fast):
    """Fed forward into the whole elastic model, and its torque is that recovered from the simulated accelerations."""
    run = el.simulate(arm, el.feedforward(arm), el.reference(arm, fast.motion), rtol=1e-10)
    assert run.largest_error < 1e-8
    samples = fast.sample(1e-3)
    # link side: spring torques are inverse dynamics of what was simulated
    f = od.function(arm.links, "forward_dynamics")
    dv = np.array(f(run.q.T, run.v.T, run.tau.T)).T
    planned = np.array([np.interp(run.t, samples["t"], column) for column in samples["dv"].T]).T
    assert np.abs(dv - planned).max() < 1e-3 * np.abs(planned).max()


def test_torque_rate_needs_one_order_more(arm, fast):
    plan = el.plan_elastic(
        arm, START, GOAL, motor_torque=[60, 30], motor_torque_rate=800.0, motor_speed=4.0, deflection=0.2
    )
    assert plan.motion.continuity == 5 and plan.duration > fast.duration
    s = plan.sample(1e-4)
    rate = np.abs(np.diff(s["tau_m"], axis=0)).max() / 1e-4
    assert rate < 800 * 1.01 and np.abs(s["dtau_m"]).max() < 800 * 1.005
    for continuity, words in ((4, "continuity=5"), (2, "continuity=5")):
        with pytest.raises(od.OrderError, match=words):
            el.plan_elastic(arm, START, GOAL, continuity=continuity, motor_torque_rate=800.0)
    with pytest.raises(od.OrderError, match="continuity=4"):
        el.plan_elastic(arm, START, GOAL, continuity=3, motor_torque=60.0)


def test_loss_falls_with_the_time_given(arm):
    # as long as it is not holding against gravity that costs most
    losses = [
        el.plan_elastic(arm, START, GOAL, objective="energy", duration=T, motor_torque=[60, 30], nodes=20).objective
        for T in (0.5, 0.6, 0.7)
    ]
    assert losses[0] > losses[1] > losses[2] > 0


def test_stiff_springs_tend_to_the_rigid_arm():
    """The shortest time under a limit of the motors' speed alone: distance over speed, plus what torque allows."""
    times = []
    for factor in (1, 10, 100):
        stiff = el.elastic_robot(planar_arm(2), [500 * factor, 300 * factor], motor_inertia=[0.3, 0.2])
        plan = el.plan_elastic(stiff, START, GOAL, motor_torque=[60, 30], motor_speed=4.0, nodes=20)
        times.append(plan.duration)
        largest = np.abs(plan.sample()["deflection"]).max()
        assert largest < 0.25 / factor
    assert abs(times[2] - times[1]) < abs(times[1] - times[0])


def test_saved_table_is_whole(fast, tmp_path):
    fast.save(tmp_path / "plan.csv", dt=0.01)
    with open(tmp_path / "plan.csv", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    samples = fast.sample(0.01)
    assert len(rows) == len(samples["t"]) and "tau_m joint1" in header
    assert np.allclose([float(r[header.index("theta joint2")]) for r in rows], samples["theta"][:, 1])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"motor_torque": 5.0}, od.LimitError, "q_start: motor 'joint1' needs motor_torque"),
        ({"deflection": 1e-3}, od.LimitError, "deflection"),
        ({"q_goal": START}, od.LimitError, "nothing to plan"),
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


def test_damped_springs_are_refused_as_by_the_flat_map():
    damped = el.elastic_robot(planar_arm(2), [500, 300], damping=1.0, motor_inertia=[0.3, 0.2])
    with pytest.raises(od.OrderError, match="differential equation"):
        el.plan_elastic(damped, START, GOAL, motor_torque=60.0)
