"""Parameters of elastic robots in every form, friction at the motors, and simulations that cannot be."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import planar_arm, swing

import oc_dyn as od
from oc_dyn import elastic as el

BASE = {"stiffness": 500.0, "motor_inertia": 0.3}
READ = {  # of the robot
    "stiffness": lambda e: e.linear_stiffness(),
    "damping": lambda e: [j.spring.damping for j in e.joints],
    "motor_inertia": lambda e: np.diag(e.motor_inertia),
    "gear_ratio": lambda e: np.diag(e.gear),
    "motor_damping": lambda e: e.motor_damping,
    "motor_friction": lambda e: e.motor_friction,
    "friction_smoothing": lambda e: e.friction_smoothing,
}
FORMS = (
    list,
    tuple,
    np.array,
    lambda x: np.array(x)[:, None],
    lambda x: dict(zip(("joint1", "joint2"), x, strict=True)),
)


@pytest.mark.parametrize("name", READ)
def test_every_parameter_is_read_in_every_form(name):
    for form in FORMS:
        made = el.elastic_robot(planar_arm(2), **BASE | {name: form([0.5, 0.25])})
        assert np.array_equal(READ[name](made), [0.5, 0.25])
    assert np.array_equal(READ[name](el.elastic_robot(planar_arm(2), **BASE | {name: 0.5})), [0.5, 0.5])


@pytest.mark.parametrize("name", READ)
def test_wrong_lengths_and_names_are_named(name):
    with pytest.raises(od.ModelError, match=f"{name}: got 3 values.*joint1, joint2"):
        el.elastic_robot(planar_arm(2), **BASE | {name: [0.5, 0.5, 0.5]})
    with pytest.raises(od.UnknownName, match="elbow"):
        el.elastic_robot(planar_arm(2), **BASE | {name: {"elbow": 0.5}})


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("value", [True, "300", np.ma.masked_array([5.0, 6.0], [False, True]), ["a", "b"], None])
def test_what_is_no_number_is_refused(name, value):
    if value is None and name == "motor_inertia":
        value = np.array([["a", "b"], ["c", "d"]])
    with pytest.raises(od.ModelError, match=name):
        el.elastic_robot(planar_arm(2), **BASE | {name: value})


@pytest.mark.parametrize(
    "coupling",
    ["x", 3.0, np.full((2, 2), np.nan), [["a", "b"], ["c", "d"]], lambda q: "x", lambda q: ca.SX.sym("p", 2, 2)],
)
def test_what_is_no_coupling_is_refused(coupling):
    with pytest.raises(od.ModelError, match="coupling: "):
        el.elastic_robot(planar_arm(2), **BASE, coupling=coupling)


def test_what_is_no_rotor_is_refused():
    with pytest.raises(od.ShapeError, match="motor_coupling: gear_ratio"):
        el.motor_coupling(planar_arm(2), 1e-4, "a")


def test_damping_of_rigid_joints_and_of_given_springs():
    with pytest.raises(od.ModelError, match="'joint2': damping 0.5 is given, but the joint is rigid"):
        el.elastic_robot(planar_arm(2), [500.0, np.inf], damping=[0.5, 0.5], motor_inertia=0.3)
    with pytest.raises(od.ModelError, match="'joint1': damping 0.5 is given beside a spring"):
        el.elastic_robot(planar_arm(2), [el.LinearSpring(500.0), 300.0], damping=[0.5, 0.5], motor_inertia=0.3)
    mixed = el.elastic_robot(planar_arm(2), [500.0, np.inf], damping=[0.5, 0.0], motor_inertia=0.3)
    assert mixed.damped == ("joint1",)


def _with_friction():
    b = od.RobotBuilder("one")
    b.add_link("base")
    b.add_body("link", "revolute", "base", joint="hinge", mass=1.0, com=(0.3, 0, 0), damping=0.4, friction=0.2)
    return b.build()


def test_friction_of_joints_is_said_or_counts():
    with pytest.warns(od.ModelWarning, match="joints hinge are ignored; give joint_friction"):
        left_out = el.elastic_robot(_with_friction(), 100.0, motor_inertia=0.1)
    counted = el.elastic_robot(_with_friction(), 100.0, motor_inertia=0.1, joint_friction=True, motor_damping=0.1)
    assert (left_out.motor_damping[0], left_out.motor_friction[0]) == (0.0, 0.0)
    assert (counted.motor_damping[0], counted.motor_friction[0]) == (0.5, 0.2)


def test_smoothing_is_that_of_each_motor():
    e = el.elastic_robot(planar_arm(2), **BASE, motor_friction=3.0, friction_smoothing=[0.01, 0.5])
    f = od.function(e, "elastic_forward_dynamics")
    slow = f(dtheta=[0.05, 0.05])["d2theta"].full().ravel() - f()["d2theta"].full().ravel()
    assert slow == pytest.approx(-3.0 * np.tanh(0.05 / np.array([0.01, 0.5])) / 0.3)


@pytest.mark.slow
def test_coulomb_friction_at_the_reference_speed_of_a_sampled_law():
    """At 1 kHz, modelled exactly: 0.0034 rad of error at the measured speed, 0.0002 at that of the reference.

    The motion is integrated once more by small steps of Runge-Kutta of order four under the same torques.
    """
    e = el.elastic_robot(planar_arm(1), 500.0, motor_inertia=0.5, motor_damping=0.5, motor_friction=30.0)
    reference = el.reference(e, swing(1), duration=0.6)
    errors = {}
    for speed in ("measured", "reference", "none"):
        law = el.feedback_linearization(e, 20.0, friction_speed=speed)
        run = el.simulate(e, law, reference, sample_time=1e-3, dt=1e-3, substeps=8)
        assert _pendulum(run)[-1] == pytest.approx(run.q[-1, 0], abs=1e-6)
        errors[speed] = run.largest_error
    assert errors["reference"] < 0.1 * errors["measured"] < 0.1 * errors["none"]
    assert errors["reference"] < 5e-4


def _pendulum(run, parts=10):
    inertia, weight, k, B = 3 * 0.4**2 / 3, 3 * 9.81 * 0.2, 500.0, 0.5

    def rates(x, u):
        spring = k * (x[2] - x[0])
        friction = 0.5 * x[3] + 30.0 * np.tanh(x[3] / 0.02)
        return np.array([x[1], (spring - weight * np.cos(x[0])) / inertia, x[3], (u - friction - spring) / B])

    x, h, out = run.states[0], 1e-3 / parts, []
    for u in run.tau_m[:-1, 0]:
        for _ in range(parts):
            a = rates(x, u)
            b = rates(x + h / 2 * a, u)
            c = rates(x + h / 2 * b, u)
            x = x + h / 6 * (a + 2 * b + 2 * c + rates(x + h * c, u))
        out.append(x[0])
    return out


def test_springs_too_stiff_for_the_explicit_method_are_refused_at_once():
    e = el.elastic_robot(planar_arm(2), 1e12, motor_inertia=0.3)
    law, reference = el.feedforward_pd(e, 200.0, 20.0), el.reference(e, swing(2), duration=0.5)
    with pytest.raises(od.SolveError, match="spring of 'joint.' swings at .* rad/s.*cvodes"):
        el.simulate(e, law, reference)
    assert el.simulate(e, law, reference, method="cvodes", rtol=1e-6).largest_error < 1e-5


def test_fixed_steps_that_are_too_long_are_said():
    e = el.elastic_robot(planar_arm(2), 5e5, motor_inertia=0.3)
    law, reference = el.feedforward(e), el.reference(e, swing(2), duration=0.1)
    with pytest.warns(od.ModelWarning, match="fixed steps of dop853, 1 in 0.001 s, are too long"):
        el.simulate(e, law, reference, sample_time=1e-3, start={"theta": 1e-3})
