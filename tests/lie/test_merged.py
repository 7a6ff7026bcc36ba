"""merged: equal expressions become one node, values stay bitwise as they are."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.lie import merged as module
from oc_dyn.lie.merged import merged


def _program(seed, size=900, ports=3):
    """Random expressions with many equal ones, among them products in either order."""
    rng = np.random.default_rng(seed)
    x = ca.SX.sym("x", 5)
    pool = [*ca.vertsplit(x), ca.SX(2.5), ca.SX(-0.5)]
    for k in range(size):
        a, b = (pool[i] for i in rng.integers(max(0, len(pool) - 60), len(pool), 2))
        kind = rng.integers(6)
        pool.append([a + b, b * a, a - b, ca.sin(a), ca.fmax(a, b), b + a][kind])
        if k % 7 == 0:
            pool.append([a * b, b + a, a - b, ca.sin(a), ca.fmax(a, b), a + b][kind])
    columns = [ca.vertcat(*(pool[i] for i in rng.integers(len(pool) - 120, len(pool), 8))) for _ in range(ports)]
    columns.append(ca.diagcat(columns[0][0], ca.SX(2, 2), columns[1][3]))
    return x, [ca.sin(y) for y in columns]


def _function(x, y):
    return ca.Function("f", [x], list(y))


@pytest.mark.parametrize("seed", [pytest.param(s, marks=[pytest.mark.slow] * (s > 1)) for s in range(8)])
def test_values_stay_bitwise_and_instructions_are_at_most_those_of_casadi(seed):
    x, y = _program(seed)
    got = merged(y)
    before, after, other = _function(x, y), _function(x, got), _function(x, ca.cse(y))
    assert before.n_instructions() > module._FEW
    assert after.n_instructions() <= other.n_instructions() < before.n_instructions()
    at = np.random.default_rng(seed).uniform(-1, 1, 5)
    for a, b in zip(before.call([at]), after.call([at]), strict=True):
        assert a.sparsity() == b.sparsity()
        assert np.array_equal(np.array(a), np.array(b), equal_nan=True)


def test_products_and_sums_in_either_order_are_one():
    x, y = ca.SX.sym("x", 300), ca.SX.sym("y", 300)
    (got,) = merged([ca.sin(x * y) + ca.cos(y * x)])
    f = ca.Function("f", [x, y], [got])
    assert f.n_instructions() == 600 + 300 * 4 + 300  # inputs; product, sine, cosine, sum; outputs


def test_what_is_not_equal_stays_apart():
    x = ca.SX.sym("x", 300)
    f = ca.Function("f", [x], merged([ca.vertcat(x - 2, 2 - x, x / 3, 3 / x, ca.atan2(x, 3), ca.atan2(3, x))]))
    assert f.n_instructions() >= 300 + 6 * 300 + 6 * 300
    at = np.linspace(0.1, 1, 300)
    expected = np.concatenate([at - 2, 2 - at, at / 3, 3 / at, np.arctan2(at, 3), np.arctan2(3, at)])
    assert np.allclose(np.array(f(at)).ravel(), expected, rtol=1e-15)


def test_what_simplifies_when_merged_is_merged_again():
    x, y = ca.SX.sym("x", 200), ca.SX.sym("y", 200)
    expression = ca.sin((x * y + 1) - (y * x + 1)) + x * y
    a = _count([x, y], merged([expression]))
    assert a <= _count([x, y], ca.cse(merged([expression])))


def test_what_calls_functions_is_left_to_casadi():
    x = ca.SX.sym("x", 300)
    inner = ca.Function("inner", [x], [ca.sin(x)], {"never_inline": True})
    y = inner(x)
    f = _function(x, merged([y + ca.cos(x) * ca.cos(x)]))
    assert np.allclose(np.array(f(np.full(300, 0.3))), np.sin(0.3) + np.cos(0.3) ** 2)
    z = ca.MX.sym("z", 3)
    (same,) = merged([ca.sin(z)])
    assert isinstance(same, ca.MX)


def test_functions_of_robots_take_it():
    f = od.function(od.robots.panda(), "inverse_dynamics_partials", order=2, cache=False)
    x = f.sx_in()
    y = f.call(x, True, False)
    assert f.n_instructions() == _count(x, merged(y)) < 16976  # by casadi.cse


def _count(x, y):
    return ca.Function("n", x, list(y)).n_instructions()


def test_nothing_is_made_again_where_nothing_is_equal(monkeypatch):
    x = ca.SX.sym("x", 500)
    y = [ca.sin(x) * ca.DM(np.arange(1, 501))]
    monkeypatch.setattr(module, "_rebuilt", None)
    (got,) = merged(y)
    assert ca.is_equal(got, y[0], 0)
