"""Electrical limits, planned stiffness, free ends, periodic motions, energies: against known answers."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import planar_arm
from test_damped_plans import GOAL, MOTORS, START, slide

import oc_dyn as od
from oc_dyn import elastic as el

K_T, R, GEAR = 0.05, 0.5, 100.0
_V = ca.SX.sym("v")
OUT = ca.Function("speed", [ca.SX.sym("q"), _V], [_V])


def geared(**more):
    return el.elastic_robot(planar_arm(2), [500, 300], rotor_inertia=[3e-5, 2e-5], gear_ratio=GEAR, **more)


def electrics(**limits):
    return el.MotorElectrics(K_T, R, **limits)


@pytest.fixture(scope="module")
def driven():
    """Time-optimal within a voltage and a current, at the rotors, and nothing else."""
    how = {"electrical": electrics(voltage=20.0, current=10.0), "nodes": 14}
    return el.plan_elastic(geared(), START, GOAL, check="raise", **how)


@pytest.mark.slow
def test_current_and_voltage_are_those_of_the_windings(driven):
    s = driven.sample(1e-3)
    current = s["tau_m"] / GEAR / K_T
    assert np.allclose(s["current"], current, atol=1e-9)
    assert np.allclose(s["voltage"], R * current + K_T * GEAR * s["dtheta"], atol=1e-9)


def test_they_bind_and_the_report_names_motor_and_quantity(driven):
    report = driven.check(1e-4)
    assert report.ok(1.1e-3)
    for name in ("current", "voltage"):
        row = next(r for r in report.rows if r.quantity == name)
        assert row.share > 0.99
        assert row.joint in ("joint1", "joint2")
    assert "motor voltage" in str(report)
    halved = el.ElasticPlan(
        driven.elastic, driven.motion, driven.limits | {"voltage": driven.limits["voltage"] / 2}, 0.0, {},
        electrical=driven.electrical,
    )  # fmt: skip
    assert "voltage of 'joint" in halved.check(dynamics=False).complaint()


@pytest.mark.slow
def test_limits_that_are_far_away_change_nothing():
    alone = el.plan_elastic(geared(), START, GOAL, **MOTORS)
    far = electrics(voltage=1e3, current=1e3, torque_speed=[(0, 1e2), (1e5, 0)])
    plan = el.plan_elastic(geared(), START, GOAL, electrical=far, **MOTORS)
    assert plan.duration == pytest.approx(alone.duration, rel=1e-5)


@pytest.mark.slow
def test_the_curve_of_a_voltage_is_a_straight_line():
    """U = R i + k_e w bounds the same torques and speeds as the line from k_t U / R to U / k_e, driving; braking and
    the largest speed are bounded by the current and the speed alone."""
    U = 20.0
    stall, free = K_T * U / R, U / K_T
    line = el.MotorElectrics(K_T, torque_speed=[(0.0, stall), (free, 0.0)])
    volts = electrics(voltage=U, current=stall / K_T)
    plans = [
        el.plan_elastic(geared(), START, GOAL, electrical=x, motor_speed=free / GEAR, nodes=16) for x in (line, volts)
    ]
    assert plans[0].duration == pytest.approx(plans[1].duration, rel=1e-4)
    assert plans[0].check().ok(1.1e-3)


def test_the_curve_binds_where_it_bends():
    curve = [(0.0, 0.6), (200.0, 0.5), (400.0, 0.0)]
    x = el.MotorElectrics(K_T, torque_speed=curve)
    robot = geared()

    def share(torque, speed):
        found = x.outputs(robot, [torque * GEAR, 0.0], [speed / GEAR, 0.0])["torque_speed"]
        return np.abs(np.array(found)).max()

    for speed, torque in ((0, 0.6), (100, 0.55), (200, 0.5), (300, 0.25)):
        assert share(torque, speed) == pytest.approx(1.0)
        assert share(-torque, -speed) == pytest.approx(1.0)
        assert share(torque, -speed) == pytest.approx(max(torque / 0.6, speed / 400))  # braking
    assert share(0.0, 400.0) == pytest.approx(1.0)


@pytest.mark.parametrize("side", ["rotor", "joint"])
def test_power_is_losses_and_mechanical_power(side):
    robot, rng = geared(), np.random.default_rng(0)
    x = el.MotorElectrics([0.05, 0.06], [0.5, 0.4], side=side)
    tau, speed = rng.normal(size=(2, 2, 5))
    power, losses = (np.array(f) for f in (x.power(robot, tau, speed), x.losses(robot, tau)))
    assert np.allclose(power, losses + tau * speed, rtol=1e-12)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"torque_constant": 0.0}, "torque_constant"),
        ({"torque_constant": [0.1, np.nan]}, "torque_constant"),
        ({"torque_constant": 0.1, "resistance": -1.0}, "resistance"),
        ({"torque_constant": 0.1, "voltage": 0.0}, "voltage"),
        ({"torque_constant": 0.1, "torque_speed": [(0, 1)]}, "at least 2"),
        ({"torque_constant": 0.1, "torque_speed": [(1, 1), (2, 0)]}, "from 0 on"),
        ({"torque_constant": 0.1, "torque_speed": [(0, 1), (2, 2)]}, "not increasing"),
        ({"torque_constant": 0.1, "torque_speed": [(0, 1), (1, 0.2), (2, 0)]}, "bends inwards at speed 1"),
    ],
)
def test_data_that_are_none_are_refused(given, words):
    with pytest.raises(od.ShapeError, match=words):
        el.MotorElectrics(**given)


@pytest.mark.parametrize(
    "given, error, words",
    [
        ({"electrical": el.MotorElectrics([1, 2, 3])}, od.ShapeError, "3 values, expected 1 or 2: joint1, joint2"),
        ({"electrical": el.MotorElectrics(0.1, voltage=24.0)}, od.ModelError, "resistance"),
        ({"electrical": 24.0}, od.ShapeError, "expected MotorElectrics"),
        ({"electrical": el.MotorElectrics(0.1, current=0.1)}, od.LimitError, "q_start: motor 'joint1' needs current"),
        ({"objective": "electrical_energy", "duration": 1.0}, od.ShapeError, "needs electrical"),
        ({"objective": "work"}, od.ShapeError, "give a duration"),
        ({"q_goal": None}, od.ShapeError, "objective='speed'"),
        ({"objective": "speed", "duration": 1.0, "q_goal": None}, od.ShapeError, "give speed="),
        ({"objective": "speed", "duration": 1.0, "q_goal": None, "speed": OUT}, od.ShapeError, "expected 2, 2 -> 1"),
        ({"periodic": True}, od.ShapeError, "a periodic motion"),
        ({"way": [[0, 0], [1, 1]]}, od.ShapeError, "kind 'rest'"),
        ({"sigma": el.PlannedStiffness(100, 200)}, od.ShapeError, "no joint varies its stiffness"),
    ],
)
def test_what_does_not_go_together_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        el.plan_elastic(geared(), **{"q_start": START, "q_goal": GOAL, "motor_torque": 60.0} | given)


@pytest.mark.parametrize(
    "given, words",
    [((0, 100), "0 < lower"), ((200, 100), "0 < lower"), ((100, 200, -1), "rate"), ((100, 200, None, 300), "start")],
)
def test_bounds_of_stiffness_that_are_none_are_refused(given, words):
    arm = el.elastic_robot(planar_arm(2), el.VariableSpring(), motor_inertia=0.3)
    with pytest.raises(od.ShapeError, match=words):
        el.plan_elastic(arm, START, GOAL, motor_torque=60.0, sigma=el.PlannedStiffness(*given))


@pytest.mark.slow
def test_planned_stiffness_is_as_good_as_any_that_is_held():
    arm = el.elastic_robot(planar_arm(2), el.VariableSpring(), motor_inertia=[0.3, 0.2])
    bounds, how = el.PlannedStiffness([200, 150], [800, 500], rate=3000.0), MOTORS | {"nodes": 12}
    plan = el.plan_elastic(arm, START, GOAL, sigma=bounds, check="raise", **how)
    held = [el.plan_elastic(arm, START, GOAL, sigma=s, **how).duration for s in ([200, 150], [500, 300], [800, 500])]
    assert plan.duration < min(held)
    rows = {r.quantity: r for r in plan.check().rows}
    assert rows["sigma"].share < 1 + 1e-6
    assert rows["dsigma"].share < 1 + 1e-6
    s = plan.sample(1e-3)
    assert np.abs(np.gradient(s["sigma"], s["t"], axis=0) - s["dsigma"]).max() < 0.02 * 3000
    narrow = el.PlannedStiffness([499.9, 299.9], [500.1, 300.1], start=[500, 300], goal=[500, 300])
    alike = el.plan_elastic(arm, START, GOAL, sigma=narrow, **how)
    assert alike.duration == pytest.approx(held[1], rel=2e-3)


def released(damping, T, w=1.0):
    """Largest speed of a mass of 1 kg on a spring of 100 N/m whose motor turns no faster than w, from rest in T: what
    it makes of the motor's speed is a convolution, so the best speed is w times the integral of the kernel's size."""
    A = np.array([[0.0, 1.0], [-100.0, -damping]])
    t = np.linspace(0, T, 4001)
    lam, V = np.linalg.eig(A)
    x = np.einsum("ij,kj,j->ki", V, np.exp(np.outer(t, lam)), np.linalg.solve(V, [0.0, 1.0])).real
    kernel = np.abs(x @ [100.0, damping])
    return w * np.sum((kernel[1:] + kernel[:-1]) / 2) * (t[1] - t[0])


@pytest.mark.parametrize("half_swings", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_spring_doubles_the_speed_of_its_motor_in_every_half_swing(half_swings):
    T = half_swings * np.pi / 10
    plan = el.plan_elastic(
        slide(), [0.0], None, objective="speed", speed=OUT, duration=T, motor_speed=1.0, nodes=20, check="raise"
    )
    assert released(0.0, T) == pytest.approx(2 * half_swings, rel=1e-4)
    assert 0.97 * 2 * half_swings < plan.objective < 2 * half_swings * (1 + 1e-3)
    assert plan.objective == pytest.approx(float(plan.motion.sample(1e-3).v[-1, 0]), rel=1e-9)
    assert plan.check().ok(1.1e-3)


@pytest.mark.slow
def test_dampers_take_from_it_what_the_kernel_says():
    for n in (1, 2):
        T = n * np.pi / 10
        how = {"objective": "speed", "speed": OUT, "duration": T, "motor_speed": 1.0, "nodes": 24}
        plan = el.plan_elastic(slide(damping=1.0), [0.0], None, **how)
        assert 0.96 * released(1.0, T) < plan.objective < released(1.0, T) * (1 + 1e-3)


def half_way(problem, flat):
    problem.at({flat.q[0]: np.array([0.4])}, fraction=0.5)


@pytest.mark.slow
def test_a_swing_at_its_own_pace_takes_nothing():
    """Mass and motor swing against each other in their own mode without any motor force."""
    robot = slide(100.0, 0.0, 0.25)
    T = 2 * np.pi / np.sqrt(100 * (1 + 1 / 0.25))
    how = {"periodic": True, "objective": "energy", "nodes": 16, "say": half_way}
    way = 0.4 * np.sin(np.pi * np.linspace(0, 1, 9)[:, None]) ** 2
    plan = el.plan_elastic(robot, [0.0], None, duration=T, way=way, **how)
    other = el.plan_elastic(robot, [0.0], None, duration=0.7 * T, way=way, **how)
    assert plan.objective < 1e-4 * other.objective
    s = plan.sample(1e-3)
    assert all(np.allclose(s[n][0], s[n][-1], atol=1e-8 * np.abs(s[n]).max()) for n in ("q", "v", "dv", "theta"))


@pytest.mark.slow
def test_a_swing_in_another_time_takes_what_its_impedance_says():
    """Of one harmonic: q = 0.2 (1 - cos w t) takes the motor force 0.2 |Z| cos w t; a plan may do a little better."""
    robot, K, B, T = slide(100.0, 0.0, 0.25), 100.0, 0.25, 0.7
    w = 2 * np.pi / T
    force = 0.2 * (B / K * w**4 - (1 + B) * w**2)
    way = 0.4 * np.sin(np.pi * np.linspace(0, 1, 9)[:, None]) ** 2
    plan = el.plan_elastic(
        robot, [0.0], None, duration=T, way=way, periodic=True, objective="energy", nodes=16, say=half_way
    )
    assert plan.objective < force**2 * T / 2 * (1 + 1e-4)
    assert plan.objective > 0.5 * force**2 * T / 2


@pytest.mark.slow
def test_periodic_motions_repeat_with_dampers_too():
    robot = el.elastic_robot(planar_arm(2), [500, 300], damping=3.0, motor_inertia=[0.3, 0.2])
    way = [[-0.3, 0.3], [0.15, -0.1], [0.6, -0.5], [0.15, -0.1], [-0.3, 0.3]]

    def through(problem, flat):
        problem.at({flat.q[0]: np.array(way[2])}, fraction=0.5)

    plan = el.plan_elastic(
        robot, way[0], None, periodic=True, objective="work", duration=1.0, motor_torque=[60, 30], nodes=16, way=way,
        say=through, check="raise",
    )  # fmt: skip
    s = plan.sample(1e-3)
    for name in ("q", "v", "dv", "theta", "dtheta", "tau_m"):
        assert np.abs(s[name][0] - s[name][-1]).max() < 1e-6 * np.abs(s[name]).max(), name
    middle = np.argmin(np.abs(s["t"] - 0.5))
    assert np.allclose(s["q"][middle], way[2], atol=1e-6)


@pytest.mark.slow
def test_energies_are_the_integrals_and_least_where_they_are_asked_for():
    x, found = electrics(voltage=60.0), {}
    for objective in ("energy", "work", "electrical_energy"):
        plan = el.plan_elastic(
            geared(), START, GOAL, objective=objective, duration=0.6, electrical=x, **MOTORS | {"nodes": 12}
        )
        s = plan.sample(2e-4)
        mechanical = s["tau_m"] * s["dtheta"]
        power = {
            "energy": (s["tau_m"] / [60, 30]) ** 2,
            "work": np.maximum(mechanical, 0),
            "electrical_energy": np.maximum(mechanical + R * (s["tau_m"] / GEAR / K_T) ** 2, 0),
        }
        found[objective] = {n: np.sum((p[1:] + p[:-1]) / 2) * 2e-4 for n, p in power.items()}
        assert plan.objective == pytest.approx(found[objective][objective], rel=2e-3)
    for name in found:
        assert found[name][name] < 1.002 * min(other[name] for other in found.values())


def shortest_time(K, B, F, far):
    """Of a mass of 1 kg on a spring of K, its motor of inertia B with forces within F, from rest to rest over `far`:
    bang-bang with three switches, odd about half the time, the second of them there, which leave nothing in the mode.

    With switches `a` from the middle: far (1 + B) / F = (T / 2)^2 - 2 a^2, 1 - 2 cos(w a) + cos(w T / 2) = 0.
    """
    w, least = np.sqrt(K * (1 + 1 / B)), np.sqrt(far * (1 + B) / F)
    half = np.linspace(least, 4 * least, 200001)[1:]
    left = 1 - 2 * np.cos(w * np.sqrt((half**2 - least**2) / 2)) + np.cos(w * half)
    first = np.flatnonzero(left[1:] * left[:-1] <= 0)[0]
    return 2 * half[first]


@pytest.mark.slow
def test_shortest_times_tend_to_bang_bang():
    least = shortest_time(100.0, 0.2, 20.0, 0.5)
    times = [
        el.plan_elastic(slide(), [0.0], [0.5], motor_torque=20.0, nodes=n, check="raise").duration for n in (16, 32, 64)
    ]
    over = np.array(times) / least - 1
    assert np.all(over > -1e-3)
    assert np.all(np.diff(over) < 0)
    assert over[-1] < 0.05


@pytest.mark.slow
def test_players_refuse_what_they_cannot_play():
    plan = el.plan_elastic(
        slide(damping=2.0), [0.0], [0.5], objective="energy", duration=0.7, nodes=8, check="off"
    )  # fmt: skip
    with pytest.raises(od.ModelError, match="damped springs is not played"):
        od.codegen_player(plan, "nowhere")
    varied = el.elastic_robot(planar_arm(2), el.VariableSpring(damping=1.0), motor_inertia=0.3)
    jets = [np.full((3, 2), 100.0), *[np.zeros((3, 2))] * 2]
    with pytest.raises(od.ShapeError, match="give it as a Trajectory"):
        el.outputs_along(varied, _rest(varied), [0.0, 0.1, 0.2], jets)


def _rest(robot):
    m = el.rest_to_rest(START, GOAL, 0.6, continuity=4)
    return od.Trajectory(m.t, m.pieces, joints=robot.links.coordinate_names, units=("rad",) * 2, robot=robot.links)
