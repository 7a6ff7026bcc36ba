"""One of everything: a single motor, or a single elastic joint beside a rigid one, goes through all there is."""

import shutil

import casadi as ca
import numpy as np
import pytest
from elastic_arms import cubic, exponential, planar_arm, swing

import oc_dyn as od
from oc_dyn import elastic as el

QUICK = ("-std=c99", "-O0", "-ffp-contract=off")
ROBOTS = {
    "linear": lambda: el.elastic_robot(planar_arm(1), 300.0, motor_inertia=0.3),
    "damped": lambda: el.elastic_robot(planar_arm(1), 300.0, damping=[0.5], motor_inertia=[0.3]),
    "nonlinear": lambda: el.elastic_robot(planar_arm(1), el.NonlinearSpring(cubic), motor_inertia=0.3),
    "direct": lambda: el.elastic_robot(planar_arm(1), el.VariableSpring(), motor_inertia=0.3),
    "driven": lambda: el.elastic_robot(planar_arm(1), el.VariableSpring(), motor_inertia=0.3, stiffness_inertia=1e-2),
    "pairs": lambda: el.elastic_robot(planar_arm(1), el.AntagonisticSprings(exponential), motor_inertia=0.3),
    "first_elastic": lambda: el.elastic_robot(planar_arm(2), {"joint1": 300.0}, motor_inertia=[0.3, 0.2]),
    "last_elastic": lambda: el.elastic_robot(planar_arm(2), {"joint2": 300.0}, motor_inertia=[0.3, 0.2]),
    "complete": lambda: el.elastic_robot(planar_arm(1), 300.0, motor_inertia=0.3, coupling=[[0.0]]),
}
SIGMA = {"direct": 400.0, "driven": 400.0, "pairs": 900.0}
LAWS = {
    "feedforward": el.feedforward,
    "feedforward_pd": lambda e: el.feedforward_pd(e, 50.0, 5.0, integrate_damping=bool(e.damped)),
    "gravity_pd": lambda e: el.gravity_pd(e, 50.0, 5.0),
    "computed_torque": lambda e: el.computed_torque(e, 50.0, 5.0),
    "feedback_linearization": lambda e: el.feedback_linearization(e, 20.0),
}
REFUSED = {  # laws that such a robot cannot have, by name
    ("damped", "feedforward"),
    *(("driven", law) for law in ("gravity_pd", "computed_torque")),
    ("pairs", "computed_torque"),
}
_MADE = {}


def robot(name):
    if name not in _MADE:
        e = ROBOTS[name]()
        sigma = None if name not in SIGMA else lambda t: SIGMA[name] * (1 + 0.1 * ca.sin(t))
        _MADE[name] = e, el.reference(e, swing(e.nv), duration=0.02, sigma=sigma)
    return _MADE[name]


@pytest.mark.few(15)
@pytest.mark.sample(2)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", ROBOTS)
def test_every_integrator_gives_the_same_motion(name, law):
    e, reference = robot(name)
    if (name, law) in REFUSED:
        with pytest.raises((od.ModelError, od.OrderError), match=f"{law}|elastic_flat_map|drives"):
            LAWS[law](e)
        return
    controller = LAWS[law](e)
    for options, methods in (({}, ("dop853", "cvodes", "idas")), ({"sample_time": 1e-3}, ("dop853", "collocation"))):
        runs = [el.simulate(e, controller, reference, method=m, **options).states for m in methods]
        for other in runs[1:]:
            assert np.abs(other - runs[0]).max() < 1e-7 * np.abs(runs[0]).max()


def test_held_torque_moves_one_joint_as_its_equations_say():
    """Pendulum on a spring, written out by hand, integrated by small steps of Runge-Kutta of order four."""
    e, reference = robot("linear")
    law = el.feedforward_pd(e, 50.0, 5.0)
    run = el.simulate(e, law, reference, sample_time=1e-3, dt=1e-3)
    inertia, weight, k, B = 3 * 0.4**2 / 3, 3 * 9.81 * 0.2, 300.0, 0.3

    def rates(x, u):
        spring = k * (x[2] - x[0])
        return np.array([x[1], (spring - weight * np.cos(x[0])) / inertia, x[3], (u - spring) / B])

    x = run.states[0]
    for i in range(20):
        u, h = run.tau_m[i, 0], 1e-3 / 4
        for _ in range(4):
            a = rates(x, u)
            b = rates(x + h / 2 * a, u)
            c = rates(x + h / 2 * b, u)
            x = x + h / 6 * (a + 2 * b + 2 * c + rates(x + h * c, u))
    assert x == pytest.approx(run.states[20], abs=1e-9)


@pytest.mark.sample(1)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize(
    "name, law",
    [
        ("linear", "feedforward"),
        ("linear", "gravity_pd"),
        ("damped", "feedforward_pd"),
        ("nonlinear", "feedforward_pd"),
        ("first_elastic", "feedback_linearization"),
        ("pairs", "feedback_linearization"),
    ],
)
def test_law_and_loop_as_c(name, law, tmp_path):
    e, reference = robot(name)
    controller = LAWS[law](e)
    made = el.generate_controller(controller, tmp_path, reference=reference, flags=QUICK)
    _, states, commands = made.loop(5)
    run = el.simulate(e, controller, reference, sample_time=1e-3, dt=1e-3, duration=5e-3)
    assert np.abs(states - run.states).max() < 1e-10 * np.abs(run.states).max()
    assert np.abs(commands[:, : len(e.motor_names)] - run.tau_m).max() < 1e-9 * np.abs(run.tau_m).max()


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", [n for n in ROBOTS if n not in ("damped",)])
def test_flat_map_by_every_method(name):
    e, _ = robot(name)
    able = [m for m in od.methods("elastic_flat_map") if name != "complete" or not m.startswith("second_order")]
    maps = [od.function(e, "elastic_flat_map", method=m) for m in able]
    ports = {n: np.full(maps[0].size_in(n), 0.3 if n != "sigma" else 900.0) for n in maps[0].name_in()}
    expected = maps[0](**ports)
    for f in maps[1:]:
        for port, value in f(**ports).items():
            assert value.full() == pytest.approx(expected[port].full(), rel=1e-8, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "last_elastic"])
def test_plans(name):
    e, _ = robot(name)
    plan = el.plan_elastic(e, [0.0] * e.nv, [0.5] * e.nv, motor_torque=60.0, nodes=10, check="raise")
    assert plan.shares()["motor_torque"] == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("degree", [1, 3])
def test_collocation_helpers(degree):
    e, _ = robot("linear")
    rates = el.plant_rates(e)
    step = el.collocation_step(rates, degree=degree)
    x, h = np.array([0.2, 0.1, 0.25, 0.0]), 1e-4
    assert step(0.0, x, h, [1.0]).full().ravel() == pytest.approx(x + h * rates(0.0, x, [1.0]).full().ravel(), abs=1e-5)
    defects, _ = el.collocation_equations(rates, degree=degree)(0.0, x, np.tile(x[:, None], (1, degree)), h, [1.0])
    assert defects.shape == (4, degree)


def test_no_elastic_joint_is_refused_by_name():
    with pytest.raises(od.ModelError, match="arm_1r: no joint is elastic"):
        el.elastic_robot(planar_arm(1), np.inf, motor_inertia=0.3)
