"""Identification: physical parameters, exciting motions, estimates and their intervals."""

import numpy as np
import pytest
from samples import build, robot

import oc_dyn as od
from oc_dyn.errors import ShapeError, SolveError
from oc_dyn.identification import (
    PeriodicMotion,
    condition,
    exciting_motion,
    identify,
    is_physical,
    nearest_physical,
    physical,
    pseudo_inertia,
)
from oc_dyn.identification.excitation import _bases, _Spread


@pytest.fixture(scope="module")
def arm():
    """Three joints, an exciting motion and torques along it: (robot, motion, q, v, dv, tau)."""
    r = build(["revolute"] * 3, seed=21, armature=True)
    motion = exciting_motion(r, period=6.0, harmonics=4, iterations=15)
    q, v, dv = motion.sample(np.arange(0, 6, 0.01))
    return r, motion, q, v, dv, torques(r, q, v, dv)


def torques(r, q, v, dv, **options):
    return np.array(od.function(r, "inverse_dynamics", **options).map(q.shape[1])(q, v, dv))


def noisy(tau, seed=0, share=0.01):
    return tau + share * rms(tau) * np.random.default_rng(seed).normal(size=tau.shape)


def rms(x):
    return np.sqrt(np.mean(x**2, axis=1, keepdims=True))


# -- physical parameters -----------------------------------------------------------------------------------------


def test_pseudo_inertia_of_a_box():
    m, size, com = 2.0, np.array([0.3, 0.2, 0.1]), np.array([0.1, -0.2, 0.3])
    square = m * size**2 / 12
    body = od.Inertia.from_com(m, com, np.diag(square.sum() - square))
    P = pseudo_inertia(body.parameters)
    assert np.allclose(P[:3, :3], np.diag(square) + m * np.outer(com, com))
    assert np.allclose(P[:3, 3], m * com)
    assert is_physical(body.parameters)
    assert np.array_equal(nearest_physical(body.parameters), body.parameters)


def test_coordinates_and_back():
    r = robot("serial")
    x = r.parameters
    back = np.array(physical.parameters_of(physical.ca.DM(physical.coordinates(x)))).ravel()
    assert np.abs(back - x).max() < 1e-14 * np.abs(x).max() * 10
    theta = physical.ca.DM(physical.coordinates(x))
    assert abs(float(physical.divergence(theta, x))) < 1e-10
    heavier = x.copy()
    heavier[:10] *= 2  # P0^-1 P is twice the unit matrix: 8 - log 16 - 4
    found = float(physical.divergence(physical.ca.DM(physical.coordinates(heavier)), x))
    assert found == pytest.approx(4 - np.log(16))


@pytest.mark.parametrize("seed", range(5))
def test_any_numbers_become_physical(seed):
    x = np.random.default_rng(seed).normal(size=40)
    x[:3] = 0.0
    assert not is_physical(x)
    assert is_physical(nearest_physical(x))
    any_coordinates = np.random.default_rng(seed).normal(size=40) * 2
    assert is_physical(np.array(physical.parameters_of(physical.ca.DM(any_coordinates))).ravel())


# -- motions -----------------------------------------------------------------------------------------------------


def test_motion_derivatives():
    rng = np.random.default_rng(0)
    m = PeriodicMotion(3.0, rng.normal(size=2), rng.normal(size=(2, 3)), rng.normal(size=(2, 3)))
    t, h = np.linspace(0, 3, 7), 1e-5
    q, v, dv = m.sample(t)
    assert np.allclose((m.sample(t + h)[0] - m.sample(t - h)[0]) / (2 * h), v, atol=1e-8)
    assert np.allclose((m.sample(t + h)[1] - m.sample(t - h)[1]) / (2 * h), dv, atol=1e-8)
    assert np.allclose(q[:, 0], q[:, -1])


def test_gradient_of_the_objective():
    r = build(["revolute"] * 3, seed=21)
    bases = _bases(4.0, 3, np.linspace(0, 4, 20, endpoint=False))
    spread = _Spread(r, bases)
    rng = np.random.default_rng(1)
    x, d = rng.normal(size=(2, 21))
    slope = float(spread(x + 1e-6 * d) - spread(x - 1e-6 * d)) / 2e-6
    assert float(spread.gradient(x) @ d) == pytest.approx(slope, rel=1e-5)
    W = np.array(spread._rows(x)).reshape(60, -1)
    s = np.linalg.svd(W, compute_uv=False)
    exact = np.log(s[0] / s[-1])
    assert exact <= float(spread(x)) < exact + np.log(s.size) / 4


@pytest.mark.slow
def test_exciting_motion(arm):
    r, motion, q, v, dv, _ = arm
    assert condition(r, motion) < 0.7 * condition(r, exciting_motion(r, period=6.0, harmonics=4, iterations=0))
    assert np.abs(v[:, 0]).max() < 1e-6
    assert np.abs(dv[:, 0]).max() < 1e-6
    assert np.abs(q).max() <= np.pi
    assert np.abs(v).max() <= 2.0


def test_limits_are_kept():
    r = od.robots.panda().locked({f"panda_joint{k}": 0.5 for k in (3, 5, 6, 7)} | {"panda_joint4": -1.5})
    m = exciting_motion(r, period=3.0, harmonics=3, iterations=10)
    q, v, dv = m.sample(np.linspace(0, 3, 500))
    assert (q > r.limit("lower")[:, None]).all()
    assert (q < r.limit("upper")[:, None]).all()
    assert (np.abs(v) < r.limit("velocity")[:, None]).all()
    assert (np.abs(dv) < r.limit("acceleration")[:, None]).all()
    assert (np.abs(v).max(axis=1) > 0.5 * r.limit("velocity")).any()  # and made use of


def test_exciting_motion_refuses():
    with pytest.raises(od.ModelError, match="one coordinate"):
        exciting_motion(robot("spherical"))
    with pytest.raises(ShapeError, match="harmonics"):
        exciting_motion(robot("serial"), harmonics=1)


# -- estimates ---------------------------------------------------------------------------------------------------


def test_without_noise_it_is_exact(arm):
    r, _, q, v, dv, tau = arm
    found = identify(r, q, v, dv, tau)
    assert np.abs(found.values - found.base.values).max() < 1e-9
    assert np.abs(found.predict(q, v, dv) - tau).max() < 1e-5 * np.abs(tau).max()


@pytest.mark.slow
def test_noise_and_intervals(arm):
    r, _, q, v, dv, tau = arm
    missed, noise = [], []
    for seed in range(8):
        found = identify(r, q, v, dv, noisy(tau, seed))
        missed.append(np.abs(found.values - found.base.values) > found.interval)
        noise.append(found.noise)
    assert 0.005 < np.mean(missed) < 0.13  # 5 % are meant to
    assert np.allclose(np.mean(noise, axis=0), 0.01 * rms(tau).ravel(), rtol=0.05)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(3))
def test_unphysical_start_and_held_out_motion(arm, seed):
    r, _, q, v, dv, tau = arm
    rng = np.random.default_rng(seed)
    prior = r.parameters * (1 + rng.normal(size=30))
    prior[10] = -2.0
    prior[24] = -abs(prior[24])
    assert not is_physical(prior)
    found = identify(r, q, v, dv, noisy(tau, seed), prior=prior)
    assert is_physical(found.parameters)
    other = exciting_motion(r, period=5.0, harmonics=3, iterations=0, seed=7)
    q, v, dv = other.sample(np.arange(0, 5, 0.02))
    measured = noisy(torques(r, q, v, dv), seed)
    assert (rms(found.predict(q, v, dv) - measured) < 0.03 * rms(measured)).all()


def test_friction(arm):
    r, _, q, v, dv, tau = arm
    damping, coulomb = np.array([0.5, 0.2, 0.1]), np.array([0.3, 0.4, 0.1])
    rubbing = damping[:, None] * v + coulomb[:, None] * np.tanh(v / 0.02)
    found = identify(r, q, v, dv, noisy(tau + rubbing, 3, 1e-4), friction=True)
    assert np.allclose(found.damping, damping, atol=0.02)
    assert np.allclose(found.friction, coulomb, atol=0.02)
    assert np.abs(found.predict(q, v, dv) - tau - rubbing).max() < 0.01 * np.abs(tau).max()


def test_what_the_motion_does_not_tell(arm):
    r, _, q, v, dv, tau = arm
    still = np.zeros_like(v)
    with pytest.raises(SolveError, match="exciting_motion"):
        identify(r, q, still, still, tau)
    with pytest.raises(SolveError, match="more samples"):
        identify(r, q[:, :3], v[:, :3], dv[:, :3], tau[:, :3])
    with pytest.raises(ShapeError, match="samples"):
        identify(r, q, v, dv, tau[:, 1:])
    with pytest.raises(ShapeError, match="prior"):
        identify(r, q, v, dv, tau, prior=np.ones(7))
    with pytest.raises(ShapeError, match="finite"):
        identify(r, q, v, dv, np.where(tau > 0, np.nan, tau))
