"""Laws that iterate the links' position too few times show another stiffness at rest than was asked for."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import elastic as el

SPRINGS = np.array([900.0, 700.0])
WANTED = [0.0, 20.0, 0.0, 300.0, 0.0, 300.0]


@pytest.fixture(scope="module")
def arm():
    return el.elastic_robot(od.robots.planar_2r(), SPRINGS, motor_inertia=[0.3, 0.2])


def impedance(arm, **options):
    return el.impedance(arm, WANTED, frame="tip", inertia=[0.08, 0.05], **options)


def shown(arm, law, at):
    """(2, 2) stiffness of the links at rest, by finite differences: motors where the law's torque is the springs'."""

    def motors(q):
        theta = np.array(q)
        for _ in range(60):  # Newton's method with differences
            residual = _residual(arm, law, at, q, theta)
            slope = np.column_stack(
                [(_residual(arm, law, at, q, theta + 1e-6 * e) - residual) / 1e-6 for e in np.eye(2)]
            )
            theta = theta - np.linalg.solve(slope, residual)
        return theta

    def force(q):  # from outside, that holds the links at q
        g = od.function(arm.links, "inverse_dynamics")(q, np.zeros(2), np.zeros(2)).full().ravel()
        return g - SPRINGS * (motors(q) - q)

    return np.column_stack([(force(at + 1e-5 * e) - force(at - 1e-5 * e)) / 2e-5 for e in np.eye(2)])


def _residual(arm, law, at, q, theta):
    ports = {n: np.zeros(law.function.size1_in(n)) for n in law.function.name_in()}
    tau = SPRINGS * (theta - q)
    ports |= {"q_ref": at, "q": q, "theta": theta, "tau": tau}
    return law.function(**ports)["tau_m"].full().ravel() - tau


def wanted(arm, at):
    J = od.function(arm.links, "frame_jacobian", frame="tip", representation="hybrid")(at).full()
    return J.T @ np.diag(WANTED) @ J


@pytest.mark.parametrize("iterations", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 8))])
def test_too_few_iterations_are_refused(iterations, arm):
    with pytest.raises(od.ModelError, match=rf"impedance: iterations={iterations} leave .* 13 do"):
        impedance(arm, iterations=iterations)
    at = np.array([0.3, -0.4])
    law, ideal = impedance(arm, iterations=iterations, check=False), wanted(arm, at)
    error = np.linalg.norm(shown(arm, law, at) - ideal, 2) / np.linalg.norm(ideal, 2)
    assert error > {1: 0.1, 2: 0.05, 8: 5e-4}[iterations]


@pytest.mark.slow
def test_what_is_taken_shows_what_was_asked_for(arm):
    law = impedance(arm, iterations=13)
    for at in (np.array([0.3, -0.4]), np.array([-1.2, 0.8])):
        ideal = wanted(arm, at)
        assert np.linalg.norm(shown(arm, law, at) - ideal, 2) < 1e-3 * np.linalg.norm(ideal, 2)


def test_the_error_it_says_is_that_of_differences(arm):
    """One configuration: the slopes of the recursion against the law itself."""
    from oc_dyn.elastic.laws import truncation

    at = np.array([0.3, -0.4])
    law = impedance(arm, iterations=2, check=False)
    kept = {}

    def look(name, elastic, iterations, loads, step, motors=0.0):
        kept["rest"] = truncation._Rest(elastic, loads, step, np.zeros(2))

    old, truncation_of = truncation._SAMPLES, "oc_dyn.elastic.laws.impedance.check_iterations"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(truncation, "ranges", lambda elastic: (at, at))
        patch.setattr(truncation, "_SAMPLES", 1)
        patch.setattr(truncation_of, look)
        impedance(arm, iterations=2)
    assert old == 200
    ideal = wanted(arm, at)
    error = np.linalg.norm(shown(arm, law, at) - ideal, 2) / np.linalg.norm(ideal, 2)
    assert kept["rest"].worst(2) == pytest.approx(error, rel=1e-4)


def test_full_state_feedback(arm):
    """Gravity at too few iterations changes the stiffness of the motor loop, too."""
    with pytest.raises(od.ModelError, match=r"full_state_feedback: iterations=1 leave .* do \(or check=False\)"):
        el.full_state_feedback(arm, 300.0, 20.0, iterations=1)
    el.full_state_feedback(arm, 300.0, 20.0, iterations=1, check=False)
    el.full_state_feedback(arm, 300.0, 20.0, iterations=6)


@pytest.mark.slow
def test_springs_that_are_not_linear():
    """5 sinh(30 z) is softest at rest: the iteration is that of its deflections."""
    bent = el.NonlinearSpring(lambda z: 25 * ca.sinh(30 * z))
    robot = el.elastic_robot(od.robots.planar_2r(), [900.0, bent], motor_inertia=[0.3, 0.2])
    with pytest.raises(od.ModelError, match="iterations=1 leave"):
        el.impedance(robot, [50.0, 30.0], iterations=1)
    el.impedance(robot, [50.0, 30.0], iterations=20)
