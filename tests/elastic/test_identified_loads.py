"""Identification where links rub and carry springs of their own, and what it does not know or believe."""

import casadi as ca
import numpy as np
import pytest
from test_elastic_identification import DT, arm, exact, guess, shaken

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.robots import planar_arm

LOADS = {
    "parallel": lambda q: 40 * (q[0] + 0.8 * q[1] - 0.2) ** 2 + 20 * (1 - ca.cos(q[1])),
    "link_damping": [0.4, 0.3],
    "link_friction": [0.8, 0.6],
    "link_smoothing": [0.4, 0.7],
}


@pytest.fixture(scope="module")
def clean():
    return exact(arm(**LOADS))


def test_parallel_springs_and_smoothings_are_known(clean):
    other = guess(**{**LOADS, "link_damping": 0.0, "link_friction": 0.0})
    found = el.identify_elastic(other, clean, link_friction=True)
    robot = found.robot()
    assert [found.value(f"stiffness joint{k}") for k in (1, 2)] == pytest.approx([500, 300], rel=1e-8)
    assert [found.value(f"link_damping joint{k}") for k in (1, 2)] == pytest.approx([0.4, 0.3], rel=1e-7)
    assert [found.value(f"link_friction joint{k}") for k in (1, 2)] == pytest.approx([0.8, 0.6], rel=1e-7)
    assert robot.link_friction == pytest.approx([0.8, 0.6], rel=1e-7)
    assert robot.link_damping == pytest.approx([0.4, 0.3], rel=1e-7)
    assert found.predict(clean).error.max() < 1e-8


def test_parallel_springs_at_rigid_joints(clean):
    words = {"motor_inertia": 0.3, "friction_smoothing": 0.5, "motor_friction": 0.8, **LOADS}
    robot = el.elastic_robot(planar_arm(2), {"joint1": 500.0}, **words)
    other = el.elastic_robot(planar_arm(2), {"joint1": 400.0}, **{**words, "motor_friction": 0.1})
    found = el.identify_elastic(other, exact(robot))
    assert found.value("stiffness joint1") == pytest.approx(500, rel=1e-8)
    assert found.value("motor_friction joint2") == pytest.approx(0.8, rel=1e-7)


def test_what_it_does_not_know_is_refused_by_name(clean):
    matrix = el.elastic_robot(planar_arm(2), [[500.0, 50.0], [50.0, 300.0]], motor_inertia=0.2)
    with pytest.raises(od.ModelError, match="a matrix of stiffness, cannot be identified"):
        el.identify_elastic(matrix, clean)
    across = el.elastic_robot(planar_arm(2), 300.0, motor_inertia=0.2, across=lambda q, theta: ca.sumsqr(theta - q))
    with pytest.raises(od.ModelError, match="springs across joints"):
        el.identify_elastic(across, clean)
    laws = {"motors": {"joint1": el.Stribeck(1.0)}, "springs": {"joint2": el.Backlash(0.1)}}
    rough = guess().with_friction(laws=laws)
    with pytest.raises(od.ModelError, match="Backlash at joint2, Stribeck at joint1. cannot be identified"):
        el.identify_elastic(rough, clean)


# -- recordings in other units ---------------------------------------------------------------------------------------

UNITS = {
    "ms": {"dt": 1e3}, "degrees": {"q": 57.3, "theta": 57.3}, "motor in degrees": {"theta": 57.3},
    "motor before the gear": {"theta": 100.0}, "mNm": {"tau_m": 1e3}, "sign of torque": {"tau_m": -1.0},
    "sign of motor": {"theta": -1.0},
}  # fmt: skip


def told(recording, links):
    """Messages of the ModelWarnings of an identification."""
    with pytest.warns() as seen:
        el.identify_elastic(guess(), recording, links=links)
    return [str(w.message) for w in seen if w.category is od.ModelWarning]


@pytest.fixture(scope="module")
def plain():
    return exact(arm())


@pytest.mark.sample(2)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("links", ["known", pytest.param("unused", marks=pytest.mark.slow)])
def test_recordings_in_other_units_are_doubted(plain, unit, links):
    scale = {"dt": 1.0, "q": 1.0, "theta": 1.0, "tau_m": 1.0} | UNITS[unit]
    rng, noise = np.random.default_rng(0), 1e-5
    q, theta = (x + noise * rng.normal(size=x.shape) for x in (plain.q, plain.theta))
    q, theta, tau_m = (x * scale[n] for n, x in (("q", q), ("theta", theta), ("tau_m", plain.tau_m)))
    wrong = el.Recording(DT * scale["dt"], q, theta, tau_m, held=False)
    (message,) = told(wrong, links)
    assert "Check the recordings' units" in message
    if unit == "sign of torque":
        assert "motor_inertia joint1 is -" in message
        assert "below zero" in message
    if unit == "mNm" and links == "unused":
        assert "of the robot given 0.2" in message


@pytest.mark.slow
def test_right_units_raise_no_doubt(plain, recwarn):
    for bits in (None, 14):
        step = 2 * np.pi / 2.0 ** (bits or 40)
        q, theta = (step * np.round(x / step) for x in (plain.q, plain.theta))
        el.identify_elastic(guess(), el.Recording(DT, q, theta, plain.tau_m, held=False))
        el.identify_elastic(guess(), el.Recording(DT, q, theta, plain.tau_m, held=False), springs=1)
    assert not [w for w in recwarn if w.category is od.ModelWarning]


def test_noise_of_encoders_alone_is_no_doubt(recwarn):
    """As large as the deflections: halves of the samples share nothing but the model."""
    words = {"links": "unused", "motor_friction": False, "motor_inertia": False}
    el.identify_elastic(arm(motor_friction=0.0), shaken(exact(arm(motor_friction=0.0)), 3e-2, 0), **words)
    assert not [w for w in recwarn if w.category is od.ModelWarning]


def test_motors_without_torque_leave_no_doubt(plain, recwarn):
    """Torques that cancel each other are not nothing: what is left counts against each of them."""
    t = DT * np.arange(2500)
    robot = el.elastic_robot(od.robots.chain(1), 100.0, motor_inertia=0.1)
    theta = 0.2 * np.sin(2 * np.pi * 1.5 * t)[None]
    dd = -((2 * np.pi * 1.5) ** 2) * theta
    noise = 1e-2 * np.random.default_rng(0).normal(size=theta.shape)
    free = el.Recording(DT, theta + 0.1 * dd / 100, theta, tau_m=noise, by_hand=True, held=False)
    known = {"motor_inertia joint1": 0.1}
    found = el.identify_elastic(robot, free, motor_friction=False, known=known)
    assert found.value("stiffness joint1") == pytest.approx(100, rel=0.05)
    assert not [w for w in recwarn if w.category is od.ModelWarning]
