"""Interval arithmetic on casadi Functions: what is inside the intervals, and what is known of kinks."""

import casadi as ca
import numpy as np
import pytest

from oc_dyn.scene.intervals import CurveBounds, enclosure

T = ca.SX.sym("t")
CURVES = {
    "sines": ca.sin(3 * T) + T**3 - T**2 * ca.cos(T),
    "bell": ca.exp(-(T**2)) / (1 + T * T),
    "root": ca.sqrt(2 + ca.sin(5 * T)) * ca.tanh(T),
    "logarithm": ca.atan(T) ** 3 - ca.log(2 + ca.cos(T)),
    "tangent": ca.tan(T / 4),
    "power": (T + 3.5) ** 2.5,
    "hyperbolic": ca.cosh(T) * ca.sinh(T / 2) - ca.asinh(T),
    "pole": T**-2,
    "arc": ca.acos(ca.sin(T) / 2) + ca.asin(ca.cos(T) / 3),
    "logarithms": ca.log1p(T * T) * ca.expm1(T / 2),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CURVES)
def test_samples_are_inside_the_intervals(name):
    x, rng = CURVES[name], np.random.default_rng(0)
    f = ca.Function("f", [T], [x, ca.jacobian(x, T), ca.jacobian(ca.jacobian(x, T), T)])
    bounds = CurveBounds(ca.Function("g", [T], [x]))
    middle, h = rng.uniform(-2, 2, 100), rng.uniform(0, 1, 100)
    low, high = enclosure(f, middle - h, middle + h)
    largest = bounds.largest(middle, h)[:, 0]
    assert bounds.proven
    for _ in range(100):
        values = np.vstack([y.full() for y in f((middle + h * rng.uniform(-1, 1, 100))[None, :])])
        slack = 1e-9 * (1 + np.abs(values))
        assert np.all(values >= low - slack)
        assert np.all(values <= high + slack)
        assert np.all(np.abs(values[2]) <= largest + slack[2])


@pytest.mark.parametrize("name", sorted(set(CURVES) - {"pole"}))
def test_short_intervals_are_bounded_closely(name):
    bounds = CurveBounds(ca.Function("g", [T], [CURVES[name]]))
    second = ca.Function("h", [T], [ca.jacobian(ca.jacobian(CURVES[name], T), T)])
    t = np.linspace(-2, 2, 9)
    largest = bounds.largest(t, np.full(9, 1e-7))[:, 0]
    np.testing.assert_allclose(largest, np.abs(second(t[None, :]).full()).ravel(), rtol=1e-3, atol=1e-4)


def test_intervals_through_a_pole_have_no_bound():
    bounds = CurveBounds(ca.Function("g", [T], [1 / T]))
    assert np.isinf(bounds.largest(np.zeros(1), np.ones(1))).all()


def test_roots_of_what_may_be_negative_have_no_bound():
    low, high = enclosure(ca.Function("g", [T], [1 / ca.sqrt(T)]), np.array([-1.0]), np.array([4.0]))
    assert low[0, 0] <= 0.5
    assert high[0, 0] == np.inf


@pytest.mark.parametrize("x", [ca.fabs(T), ca.fmax(T, 0), ca.floor(T), ca.if_else(T > 0, T, T**2)])
def test_kinks_and_jumps_are_not_proven(x):
    assert not CurveBounds(ca.Function("g", [T], [x])).proven


def test_what_is_no_sx_inside_is_sampled():
    t = ca.MX.sym("t")
    table = ca.interpolant("table", "bspline", [np.linspace(0, 1, 9)], np.linspace(0, 1, 9) ** 3)
    bounds = CurveBounds(ca.Function("g", [t], [table(t)]))
    assert not bounds.proven
    assert bounds.largest(np.array([0.5]), np.array([0.1]))[0, 0] >= 3.0
