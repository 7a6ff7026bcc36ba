"""Poles, margins and passivity of closed loops, against finite differences, formulas and simulations."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from elastic_arms import arm
from law_tools import at_rest, far_from, rest_of, robot

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.analysis.linear_loop import LinearLoop, linear_loop
from oc_dyn.elastic.analysis.margins import exponential, sampled


def test_poles_by_finite_differences():
    e, q = robot("2r"), rest_of("2r")
    law = el.full_state_feedback(e, 150.0, 15.0, inertia=0.1)
    rates, loop = at_rest(e, law, q)
    x, h = loop.first_state(None)[:8], 1e-6
    A = np.column_stack([(rates(x + h * d) - rates(x - h * d)).full() / (2 * h) for d in np.eye(8)])
    expected = np.linalg.eigvals(A)
    found = el.closed_loop_poles(e, law, q)
    assert far_from(found, expected) < 1e-6
    assert np.all(np.diff(found.real) <= 0)


def test_poles_of_feedback_linearization():
    """As placed, joint by joint."""
    wanted = np.array([-10.0, -14.0, -19.0 + 5.0j, -19.0 - 5.0j])
    e = robot("2r")
    found = el.closed_loop_poles(e, el.feedback_linearization(e, wanted), rest_of("2r"))
    assert far_from(found, np.tile(wanted, 2)) < 1e-7


@pytest.mark.slow
def test_poles_of_a_dynamic_law():
    """Those of the law's memory are the same as of the elastic joints."""
    wanted, mixed = np.array([-10.0, -14.0, -19.0 + 5.0j, -19.0 - 5.0j]), arm("mixed")
    found = el.closed_loop_poles(mixed, el.feedback_linearization(mixed, wanted), rest_of("three"))
    assert far_from(found, np.tile(wanted, 3)) < 1e-5


@pytest.mark.slow
def test_the_robot_may_differ_from_the_model():
    """It rests elsewhere then, and where it rests is where a simulation ends."""
    e, q = robot("2r"), rest_of("2r")
    law = el.impedance(e, 80.0, inertia=0.1)
    heavier = e.with_errors(mass=0.1)
    found = linear_loop(heavier, law, q, None).rest
    still = el.reference(e, lambda t: ca.DM(q), duration=25.0)
    run = el.simulate(heavier, law, still, rtol=1e-6, dt=1.0, start="reference")
    assert np.abs(run.states[-1] - found).max() < 1e-4 < np.abs(found[:2] - q).max()


def test_no_rest():
    e = robot("2r")
    law = el.feedforward(e)
    push = replace(law, function=_changed(law, lambda tau: tau + 5.0, e))
    free = el.elastic_robot(e.links.with_gravity([0, 0, 0]), 900.0, motor_inertia=0.3)
    with pytest.raises(od.SolveError, match="no state without motion"):
        el.closed_loop_poles(free, replace(push, elastic=free), rest_of("2r"))
    with pytest.raises(od.ShapeError, match="at"):
        el.closed_loop_poles(e, law, [0.0, np.nan])


def _changed(law, change, e):
    """The law's Function with other torques."""
    f = law.function
    ports = {n: ca.SX.sym(n, *f.size_in(n)) for n in f.name_in()}
    return ca.Function("changed", list(ports.values()), [change(f(**ports)["tau_m"])], list(ports), ["tau_m"])


# -- sampled loops ----------------------------------------------------------------------------------------------------


def some_loop(seed=0, n=4, m=2, u=2):
    rng = np.random.default_rng(seed)
    shapes = [(n, n), (n, u), (n, 1), (u, n), (u, m), (m, n), (m, m)]
    return LinearLoop(*(rng.normal(size=s) for s in shapes), slice(0, 1), np.zeros(n))


def test_matrix_exponential():
    A = np.array([[0.0, 3.0], [-3.0, 0.0]])
    assert exponential(A) == pytest.approx(np.array([[np.cos(3), np.sin(3)], [-np.sin(3), np.cos(3)]]), abs=1e-14)
    rng = np.random.default_rng(0)
    V, d = rng.normal(size=(5, 5)), np.array([-30.0, -3.0, 0.1, 1.0, 2.0])
    expected = V @ np.diag(np.exp(d)) @ np.linalg.inv(V)
    assert np.abs(exponential(V @ np.diag(d) @ np.linalg.inv(V)) - expected).max() < 1e-11 * np.abs(expected).max()


@pytest.mark.parametrize("delay", [0.0, 0.3, 1.0, 2.6])
def test_a_sample_with_delay_is_that_of_a_fine_march(delay):
    """Steps of a tenth of the sample time, the law's results kept in a list until their time has come."""
    loop, h, fine = some_loop(), 0.1, 10
    x, m = np.ones(4), np.array([1.0, -1.0])
    commands = [np.zeros(2)] * 4
    M = sampled(loop, h, delay)
    state = np.concatenate([x, m, np.zeros(len(M) - 6)])
    both = np.zeros((6, 6))
    both[:4, :4], both[:4, 4:] = loop.A, loop.B
    step = exponential(both * h / fine)
    for k in range(6):
        commands.append(loop.Lx @ x + loop.Lm @ m)
        m = m + h * (loop.Rx @ x + loop.Rm @ m)
        for i in range(fine):
            age = int(np.ceil((delay * fine - i) / fine - 1e-9))  # in samples, of the command that acts
            x = (step @ np.concatenate([x, commands[len(commands) - 1 - max(age, 0)]]))[:4]
        state = M @ state
        assert np.concatenate([x, m]) == pytest.approx(state[:6], rel=1e-9), k


@pytest.mark.slow
def test_margins_by_simulation():
    """Sampled loops of the real robot a little inside the margins come to rest, a little outside they swing up."""
    e, q, h = robot("one_weightless"), np.array([0.2]), 2e-3
    law = el.full_state_feedback(e, 100.0, 6.0, inertia=0.05)
    found = el.margins(e, law, q, sample_time=h)
    assert found.stable
    assert 2 < found.gain[1] < 100
    assert 0.5 < found.delay / h < 100
    still = el.reference(e, lambda t: ca.DM(q), duration=0.4)

    def grows(gain):
        changed = replace(law, function=_changed(law, lambda tau: gain * tau, e))
        try:
            run = el.simulate(e, changed, still, sample_time=h, dt=h, start={"theta": 1e-4}, substeps=2)
        except od.SolveError:  # it diverged
            return True
        size = np.abs(run.error).max(axis=1) + np.abs(run.theta - q).max(axis=1)
        return size[-50:].max() > size[50:100].max()

    assert grows(1.05 * found.gain[1])
    assert not grows(0.95 * found.gain[1])
    late = el.margins(e, law, q, sample_time=h, delay=0.98 * found.delay / h)
    later = el.margins(e, law, q, sample_time=h, delay=1.02 * found.delay / h)
    assert late.stable
    assert not later.stable
    assert np.isnan(later.delay)
    assert late.gain[1] < 1.1
    assert "samples" in str(found)


def test_margins_refuse():
    e = robot("2r")
    law = el.feedforward_pd(e, 150.0, 15.0)
    for more, words in (({"sample_time": 0.0}, "sample_time"), ({"delay": -1}, "delay")):
        with pytest.raises(od.ShapeError, match=words):
            el.margins(e, law, rest_of("2r"), **more)


# -- passivity --------------------------------------------------------------------------------------------------------


def test_passivity_index_of_a_joint():
    """Y = 1 / (m s + K (B s^2 + kd s + kp) / (s (B s^2 + kd s + kp + K))), and with the torques late."""
    e, K, B, kp, kd = robot("one_weightless"), 200.0, 0.1, 100.0, 6.0
    m = float(od.function(e.links, "mass_matrix")([0.0]))
    law, w = el.full_state_feedback(e, kp, kd), np.geomspace(0.5, 500, 40)
    for delay in (0.0, 0.01):
        s = 1j * w
        motor = B * s**2 + (kd * s + kp) * np.exp(-s * delay)
        expected = np.real(1 / (m * s + K * motor / (s * (motor + K))))
        found = el.passivity_index(e, law, [0.3], w, delay=delay)
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-12)
        assert (found.min() < 0) == (delay > 0)


def test_laws_by_passivity_are_passive():
    e, q, w = robot("2r"), rest_of("2r"), np.geomspace(0.1, 1e3, 60)
    laws = [
        el.online_gravity_pd(e, 600.0, 30.0),
        el.full_state_feedback(e, 150.0, 15.0, inertia=0.1),
        el.impedance(e, 80.0, inertia=0.1),
    ]
    for law in laws:
        assert el.passivity_index(e, law, q, w).min() > -1e-10, law.name
    assert el.passivity_index(e, el.feedback_linearization(e, 20.0), q, w).min() < -1e-3


def test_passivity_refuses():
    e = robot("2r")
    law = el.feedforward_pd(e, 150.0, 15.0)
    for w, more, words in (([0.0], {}, "above 0"), ([], {}, "above 0"), ([1.0], {"delay": -1.0}, "delay")):
        with pytest.raises(od.ShapeError, match=words):
            el.passivity_index(e, law, rest_of("2r"), w, **more)


@pytest.mark.slow
def test_margins_of_the_panda():
    """At 1 kHz, springs damped and the laws not told: the numbers of docs/elastic-laws.md."""
    e, q = robot("panda"), rest_of("panda")
    real = el.elastic_robot(od.robots.panda(), 7000.0, motor_inertia=np.diag(e.motor_inertia), damping=5.0)
    half = np.diag(e.motor_inertia) / 2
    laws = {
        "full_state_feedback": (el.full_state_feedback(e, 500.0, 20.0, inertia=half), 3.6),
        "impedance": (el.impedance(e, 200.0, inertia=half), 3.5),
        "esp": (el.esp(e, 500.0, 20.0, 5.0), 9.5),
        "esp_i": (el.esp_i(e, 500.0, 20.0, 20.0), None),
        "feedback_linearization": (el.feedback_linearization(e, 20.0), None),
    }
    for name, (law, samples) in laws.items():
        found = el.margins(real, law, q)
        assert found.stable == (samples is not None), name
        if samples:
            assert found.delay / 1e-3 == pytest.approx(samples, abs=0.06), name
