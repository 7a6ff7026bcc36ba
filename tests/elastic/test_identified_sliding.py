"""Speeds that Coulomb friction sees where encoders turn round, and the friction that is then found."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.identification import sliding as module
from oc_dyn.elastic.identification.filters import positions_margin
from oc_dyn.elastic.identification.identifiability import check_identifiable
from oc_dyn.elastic.identification.recording import checked
from oc_dyn.elastic.identification.rows import rows, states

DT = 1e-3


def pendulum(stiffness=300.0, inertia=0.15, damping=0.6, friction=2.0):
    """A rod on a spring; its motor's friction is sharper than encoders see speeds."""
    words = {"motor_damping": damping, "motor_friction": friction}
    return el.elastic_robot(od.robots.planar_arm(1, 0.5, 2.0), stiffness, motor_inertia=inertia, **words)


def swing(t):
    return -0.3 + 0.35 * ca.sin(2.9 * t) + 0.12 * ca.sin(11.3 * t + 1) + 0.02 * ca.sin(24.7 * t)


def exact(robot, duration):
    """(Recording without noise, speeds of the motor (T,)) by the flat map."""
    t = np.arange(0, duration, DT)
    at = el.reference(robot, swing, duration=duration).at(t)
    f = od.function(robot, "elastic_flat_map")
    out = f.map(t.size)(**{n: at[n] for n in f.name_in()})
    recording = el.Recording(DT, at["q"], out["theta"].full(), out["tau_m"].full(), held=False)
    return recording, out["dtheta"].full()[0]


def quantised(recording, bits, noise, seed):
    rng, step = np.random.default_rng(seed), 2 * np.pi / 2**bits
    q, theta = (step * np.round(x / step + rng.uniform(-0.5, 0.5)) for x in (recording.q, recording.theta))
    return el.Recording(DT, q, theta, recording.tau_m + noise * rng.normal(size=recording.tau_m.shape), held=False)


@pytest.fixture(scope="module")
def sharp():
    """(robot, Recording without noise, Recording, its identification, true speeds at samples of ports)."""
    robot = pendulum()
    recording, true = exact(robot, 3.0)
    cut = positions_margin()
    (noisy,) = checked(robot, quantised(recording, 16, 0.05, 1))
    found = el.identify_elastic(robot, noisy, links="unused")
    found = replace(found, x=found.equations.unknowns.start)  # parameters of the robot itself
    return recording, noisy, found, true[cut : true.size - cut : 2]


def both_speeds(recording, found):
    """Halves of ports before and after torques are asked, by the parameters of an identification."""
    eq = found.equations
    before = states(eq, recording)
    r = rows(eq, recording, before[0], found.x, found.bandwidth)
    return before, module.sliding(eq, module.rests(eq), recording, before, found.x, r, found.bandwidth)


def test_speeds_of_motors_that_turn_round(sharp):
    _, noisy, found, true = sharp
    before, after = both_speeds(noisy, found)
    slow = np.abs(true) < 2 * od.friction.SMOOTHING
    for old, new in zip(before, after, strict=True):
        worse, better = (np.sqrt(np.mean((x[6][-1] - true)[slow] ** 2)) for x in (old, new))
        assert better < 0.65 * worse
        assert all(np.array_equal(x, y) for x, y in zip(old[:6], new[:6], strict=True))
    assert np.all(after[0][7][-1] < 0.1 * before[0][7][-1])


def test_speeds_without_noise_are_those_of_the_motion(sharp, monkeypatch):
    """Simpson's rule is exact but for terms of fourth order: the torques' noise is all that is left."""
    clean, _, found, true = sharp
    before, after = both_speeds(clean, found)
    assert np.array_equal(after[0][6], before[0][6])  # encoders see all of it
    monkeypatch.setattr(module, "_SEEN", -1.0)
    _, after = both_speeds(clean, found)
    assert np.abs(after[0][6][-1] - true).max() < 0.02 * od.friction.SMOOTHING


def test_motors_whose_torques_are_not_known_keep_their_speeds(sharp):
    _, noisy, found, _ = sharp
    unknown = el.Recording(DT, noisy.q, noisy.theta, tau=np.zeros((1, noisy.q.shape[1])), by_hand=True)
    before = states(found.equations, noisy)
    r = rows(found.equations, noisy, before[0], found.x, found.bandwidth)
    assert module.sliding(found.equations, [], unknown, before, found.x, r, found.bandwidth) is before


def test_what_turns_round_between_samples_is_counted():
    """The mean of tanh over many samples is its integral, which samples alone miss where it is as short as they."""
    h, smoothing = 2e-3, 0.02
    for shift in (0.0, 0.3, 0.7):
        t = h * (np.arange(100) - 50 + shift)
        at = 60.0 * t  # [rad/s]: from end to end of the friction's kink in 0.7 ms
        missed = np.sum(module._unseen(at, 0.5 * (at[1:] + at[:-1]), smoothing)) * h
        whole = smoothing / 60.0 * (np.log(np.cosh(at[-1] / smoothing)) - np.log(np.cosh(at[0] / smoothing)))
        y = np.tanh(at / smoothing)
        sampled = h * (np.sum(y) - 0.5 * (y[-1] + y[0]))
        assert abs(sampled + missed - whole) < 2e-5
        assert shift == 0 or abs(sampled - whole) > 1e-4


def test_tridiagonal_systems():
    rng = np.random.default_rng(0)
    diagonal, beside, b = 3 + rng.uniform(size=7), rng.uniform(-1, 1, 6), rng.normal(size=7)
    A = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    assert module._tridiagonal(diagonal, beside, b) == pytest.approx(np.linalg.solve(A, b), rel=1e-12)


def test_what_is_known_does_not_silence_what_is_not():
    """Encoders of fine steps tell the zeros of springs by themselves, in a unit that is not that of the rows."""
    even = np.random.default_rng(0).normal(size=(1, 200, 2)) * [1e-3, 1.0]
    prior = np.array([0.0, 1e30])
    assert check_identifiable("arm", ["stiffness", "zero"], [even], [even], [np.ones(1)], prior) < 2
    with pytest.raises(od.SolveError, match="do not tell stiffness"):
        silent = even * [0.0, 1.0]
        check_identifiable("arm", ["stiffness", "zero"], [silent], [silent], [np.ones(1)], prior)


@pytest.mark.slow
@pytest.mark.parametrize("bits, noise, friction", [(16, 0.05, 2.0), (17, 0.02, 0.5)])
def test_friction_is_not_biased(bits, noise, friction):
    """Encoders' steps at rest made it larger by more than its deviation."""
    robot, inside, errors = pendulum(friction=friction), [], []
    recording, _ = exact(robot, 15.0)
    for seed in range(24):
        found = el.identify_elastic(robot, quantised(recording, bits, noise, seed), links="unused")
        true = [friction if name.startswith("motor_friction") else found.value(name) for name in found.names]
        k = [name.startswith("motor_friction") for name in found.names].index(True)
        errors.append(found.values[k] - true[k])
        inside.append(abs(errors[-1]) <= found.interval[k])
    print(np.mean(errors), np.std(errors), np.mean(inside))
    assert abs(np.mean(errors)) < 0.6 * np.std(errors)
    assert np.mean(inside) >= 0.83
