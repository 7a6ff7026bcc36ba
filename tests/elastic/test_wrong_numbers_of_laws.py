"""Wrong numbers for laws, observers and gains are refused by their names, before anything is written."""

import re
from dataclasses import replace

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import elastic as el


@pytest.fixture(scope="module")
def arm():
    return el.elastic_robot(od.robots.planar_arm(2), [500.0, 300.0], motor_inertia=[0.3, 0.2])


BUILDERS = {
    "feedback_linearization: poles": el.feedback_linearization,
    "velocity_filter: poles": el.velocity_filter,
    "momentum_observer: poles": el.momentum_observer,
    "disturbance_observer: poles": el.disturbance_observer,
    "friction_observer: poles": el.friction_observer,
    "link_state_observer: poles": el.link_state_observer,
    "joint_gains: poles": lambda arm, poles: el.joint_gains(arm, [0.0, 0.0], poles=poles),
}
WRONG = [np.nan, np.inf, -np.inf, 1e200, 1e29, "fast", None, [-1.0, [-2.0, -3.0]], [], [-20.0, np.nan], 10 + 5j, True]


@pytest.mark.parametrize("what", BUILDERS)
@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_poles(what, wrong, arm):
    if wrong == 1e29 and what.split(":")[0] not in ("feedback_linearization", "link_state_observer", "joint_gains"):
        return  # of first order: the gain itself, which is below the bound
    if wrong is None and "joint_gains" in what:
        return  # there it says that none is given
    with pytest.raises(od.ShapeError, match=re.escape(what)):
        BUILDERS[what](arm, wrong)


def test_a_lone_complex_pole_with_its_conjugate_is_taken():
    gains = el.pole_gains([-10 + 5j, -10 - 5j], 2, 1)
    assert gains == pytest.approx(np.array([[125.0, 20.0]]))
    assert el.pole_gains(np.complex128(3.0), 2, 1) == pytest.approx(np.array([[9.0, 6.0]]))


CALLS = {
    "joint_gains: at": lambda a: el.joint_gains(a, [0.0, np.nan], bandwidth=10.0),
    "impedance: at": lambda a: el.impedance(a, 100.0, at=[np.nan, 0.0]),
    "impedance: joint_stiffness": lambda a: el.impedance(a, 100.0, joint_stiffness=np.nan),
    "impedance: joint_damping": lambda a: el.impedance(a, 100.0, joint_damping=3.0),
    "kp": lambda a: el.feedforward_pd(a, "a", 1),
    "kp: ": lambda a: el.feedforward_pd(a, [1.0, [2.0, 3.0]], 1),
    "motor_stiffness": lambda a: el.esp(a, "a", 1, 1),
    "link_damping": lambda a: el.esp(a, 1, 1, 1e200),
    "vsa_damping: shape": lambda a: el.vsa_damping(a, 1e300),
    "velocity_filter: of": lambda a: el.velocity_filter(a, 10.0, of=3),
    "observed: compensate": lambda a: el.observed(
        el.feedforward_pd(a, 1, 1), el.disturbance_observer(a, 10.0), compensate=3
    ),
    "threshold": lambda a: el.momentum_observer(a, 10.0, threshold=np.inf),
    "at: ": lambda a: el.closed_loop_poles(a, el.feedforward_pd(a, 100, 10), [np.nan, 0.0]),
}


@pytest.mark.parametrize("what", CALLS)
def test_arguments(what, arm):
    with pytest.raises(od.ShapeError, match=re.escape(what)):
        CALLS[what](arm)


@pytest.mark.parametrize(
    "options, what",
    [
        ({"sample_time": "1"}, "generate_controller: sample_time"),
        ({"sample_time": np.nan}, "generate_controller: sample_time"),
        ({"torque_limit": np.nan}, "generate_controller: torque_limit"),
        ({"torque_limit": "a"}, "generate_controller: torque_limit"),
    ],
)
def test_arguments_of_generate_controller(options, what, arm, tmp_path):
    with pytest.raises(od.ShapeError, match=what):
        el.generate_controller(el.feedforward_pd(arm, 100, 10), tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_c_has_no_infinite_number(arm, tmp_path):
    law = el.feedforward_pd(arm, 100, 10)
    law = el.observed(law, el.disturbance_observer(arm, 50.0), compensate="disturbance", torque_limit=[np.inf, 30.0])
    for precision in ("double", "single"):
        made = el.generate_controller(
            law, tmp_path / precision, torque_limit=[np.inf, 30.0], precision=precision, compiler="none"
        )
        text = "".join(f.read_text() for f in made.sources)
        assert not re.search(r"\b(NAN|INFINITY|nan|inf|casadi_inf|casadi_nan)\b", text)


def test_own_laws_with_no_numbers(arm, tmp_path):
    """Laws of one's own reach C, too: a gain that is no number is refused before files are written."""
    from oc_dyn.elastic.controller import make_controller

    with pytest.raises(od.ShapeError, match="own: k comes out"):
        make_controller("own", arm, lambda ref, state, gains: {"tau_m": gains["k"] * state["q"]}, gains={"k": np.nan})
    law = el.feedforward_pd(arm, 100.0, 10.0)
    with pytest.raises(od.ModelError, match="kp of feedforward_pd is NaN"):
        el.generate_controller(replace(law, gains={**law.gains, "kp": np.full((2, 1), np.nan)}), tmp_path)
    assert list(tmp_path.iterdir()) == []


I2, WORD = np.eye(2), "modal_damping: "


@pytest.mark.parametrize(
    "inertia, stiffness, ratio, what",
    [
        (I2, I2, -0.5, "ratio"),
        (I2, I2, np.nan, "ratio"),
        (I2, I2, [0.5, 0.5, 0.5], "ratio"),
        (I2, -I2, 0.5, "stiffness"),
        (I2, np.nan * I2, 0.5, "stiffness"),
        (np.nan * I2, I2, 0.5, "inertia"),
        ([[1.0, 0.5], [0.0, 1.0]], I2, 0.5, "inertia"),
        ([[1.0, 2.0], [2.0, 1.0]], I2, 0.5, "inertia"),
        (0 * I2, I2, 0.5, "inertia"),
        ("a", I2, 0.5, "inertia"),
        (I2, [[1.0, 0.5], [0.0, 1.0]], 0.5, "stiffness"),
        (I2, np.eye(3), 0.5, "inertia"),
    ],
)
def test_modal_damping(inertia, stiffness, ratio, what):
    with pytest.raises(od.ShapeError, match=WORD + what):
        el.modal_damping(inertia, stiffness, ratio)


def test_modal_damping_of_a_singular_stiffness():
    """A mode without a spring is not damped; the other is as asked for: two independent oscillators."""
    assert el.modal_damping(np.diag([2.0, 3.0]), np.diag([8.0, 0.0]), 0.5) == pytest.approx(np.diag([4.0, 0.0]))


@pytest.mark.parametrize(
    "poles, most", [(2500.0, 8e-4), ([-100 + 1000j, -100 - 1000j], 200 / 1.01e6)], ids=["real", "complex"]
)
def test_observers_too_fast_for_the_samples(poles, most, arm, tmp_path):
    """Euler steps of e' = p e: |1 + h p| < 1 where h < -2 Re p / |p|^2."""
    order = np.size(poles)
    filter_ = el.velocity_filter(arm, poles, order=order)
    assert filter_.longest_sample == pytest.approx(most, rel=1e-9)
    law = el.observed(el.feedforward_pd(arm, 100.0, 10.0), filter_)
    still = el.reference(arm, lambda t: np.zeros(2), duration=0.01)
    with pytest.raises(od.ShapeError, match="generate_controller: sample_time"):
        el.generate_controller(law, tmp_path, sample_time=1e-3)
    with pytest.raises(od.ShapeError, match="simulate: sample_time"):
        el.simulate(arm, law, still, sample_time=1e-3, dt=1e-3)
    records = {"q": np.zeros((3, 2)), "theta": np.zeros((3, 2))}
    with pytest.raises(od.ShapeError, match="replay: sample_time"):
        filter_.replay(records, 1e-3)
    filter_.replay(records, 0.99 * most)
    el.simulate(arm, law, still, sample_time=1e-4, dt=1e-3)


def test_steps_diverge_from_the_longest_sample_on(arm):
    """The bound is that of the steps themselves: a jump is forgotten just below it, and grows just above."""
    filter_ = el.velocity_filter(arm, [-300 + 400j, -300 - 400j], order=2)
    records = {n: np.vstack([np.zeros(2), np.ones((400, 2))]) for n in ("q", "theta")}
    h = filter_.longest_sample
    assert h == pytest.approx(600 / 2.5e5)
    below = np.abs(filter_.replay(records, 0.98 * h)["v_hat"])
    assert below[-1].max() < 0.1 * below[1:30].max()
    memory = np.zeros(8)
    for _ in range(400):
        out = filter_.function(q=[1.0, 1.0], theta=[1.0, 1.0], memory=memory)
        memory = memory + 1.02 * h * out["memory_rate"].full().ravel()
    assert np.abs(memory).max() > 1e2
