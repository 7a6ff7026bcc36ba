"""od.taylor_mode: sparse inputs, exponents that are inputs, Functions without inputs, orders that are too high."""

import math

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od

KINDS = [ca.SX, ca.MX]


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_inputs_are_those_entries(kind):
    X = kind.sym("x", ca.Sparsity.diag(2))
    made = od.taylor_mode(ca.Function("f", [X], [ca.sum1(ca.sum2(X @ X @ X)) + 1], ["x"], ["y"]), 3)
    assert all(made.nnz_in(n) == 2 for n in made.name_in())
    values, t = np.random.default_rng(1).normal(size=(4, 2)), ca.SX.sym("t")
    curve = sum(ca.DM(x) * t**k / math.factorial(k) for k, x in enumerate(values))
    y = ca.sum1(curve**3) + 1
    found = made(**{n: ca.diag(ca.DM(x)) for n, x in zip(made.name_in(), values, strict=True)})
    for name in made.name_out():
        assert float(found[name]) == pytest.approx(float(ca.Function("y", [t], [y])(0)), rel=1e-13)
        y = ca.jacobian(y, t)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparse", ["x", "dx", "none"])
def test_ports_of_one_curve_have_their_own_sparsity(kind, sparse):
    diag = ca.Sparsity.diag(2)
    X, D = (kind.sym(n, diag if n == sparse else ca.Sparsity.dense(2, 2)) for n in ("x", "dx"))
    f = ca.Function("f", [X, D], [ca.sum1(ca.sum2(X * X)), ca.sum1(ca.sum2(D)) + X[0, 0]], ["x", "dx"], ["y", "z"])
    made = od.taylor_mode(f, 2)
    rng = np.random.default_rng(2)
    x, dx, d2x, d3x = (ca.DM(rng.normal(size=(2, 2))) for _ in range(4))
    found = made(x=x, dx=dx, d2x=d2x, d3x=d3x)
    wanted = f(x=x, dx=dx)
    assert float(found["y"]) == pytest.approx(float(wanted["y"]))
    assert float(found["z"]) == pytest.approx(float(wanted["z"]))
    x, dx, d2x = (ca.project(a, made.sparsity_in(n)) for a, n in ((x, "x"), (dx, "dx"), (d2x, "d2x")))
    rates = ca.Function("r", [X, D], f.call([X, D])).forward(1)(x, dx, *f.call([x, dx]), dx, d2x)
    assert float(found["dy"]) == pytest.approx(float(rates[0]))
    assert float(found["dz"]) == pytest.approx(float(rates[1]))


def test_a_sparse_rate_of_a_sparse_input():
    X = ca.SX.sym("x", ca.Sparsity.diag(2))
    for rate in (X * X, X @ ca.DM([[1, 2], [0, 1]]), ca.diag(ca.vertcat(X[0, 0], 0))):
        made = od.taylor_mode(ca.Function("f", [X], [rate], ["x"], ["dx"]), 1)
        x = ca.diag(ca.DM([0.3, -0.4]))
        moved = ca.project(ca.DM(made(x=x)["dx"]), X.sparsity())
        wanted = ca.jtimes(rate, X, moved)
        assert np.allclose(made(x=x)["d2x"], ca.Function("w", [X], [wanted])(x), atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("x", [-1.5, -1, 0, 0.3, 2])
@pytest.mark.parametrize("p", [0, 1, 2, 3, 5, -2])
def test_an_exponent_that_is_an_input_and_does_not_change(kind, x, p):
    if x == 0 and p < 0:
        return
    s, e = kind.sym("x"), kind.sym("p")
    order = 4
    made = od.taylor_mode(ca.Function("f", [s, e], [s**e], ["x", "p"], ["y"]), order)
    of_number = od.taylor_mode(ca.Function("f", [s], [s**p], ["x"], ["y"]), order)
    for motion in ({"dx": 1, "d2x": 0.5, "d3x": -0.7}, {"d2x": 2, "d4x": 1}):
        found, wanted = made(x=x, p=p, **motion), of_number(x=x, **motion)
        assert all(float(found[n]) == pytest.approx(float(wanted[n]), rel=1e-13) for n in wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_exponents_that_begin_to_change(kind):
    s, e = kind.sym("x", 3), kind.sym("p", 3)
    made = od.taylor_mode(ca.Function("f", [s, e], [s**e], ["x", "p"], ["y"]), 3)
    x, dx, d2x, d3x = 0.7, 0.3, -0.2, 0.4
    ps = np.array([[3, 2.5, -1.5], [0, 0, 0.2], [0, 0.3, 0], [0.5, 0, 0.1]])
    names = ("p", "dp", "d2p", "d3p")
    found = made(x=x, dx=dx, d2x=d2x, d3x=d3x, **dict(zip(names, ps, strict=True)))
    t = ca.SX.sym("t")
    y = (x + dx * t + d2x * t**2 / 2 + d3x * t**3 / 6) ** (
        sum(ca.DM(a) * t**k / math.factorial(k) for k, a in enumerate(ps))
    )
    for name in ("y", "dy", "d2y", "d3y"):
        assert np.allclose(np.ravel(found[name]), np.ravel(ca.Function("y", [t], [y])(0)), rtol=1e-12)
        y = ca.jacobian(y, t)


def test_exponents_of_matrices():
    X, p = ca.MX.sym("x", ca.Sparsity.diag(2)), ca.MX.sym("p")
    made = od.taylor_mode(ca.Function("f", [X, p], [X**p], ["x", "p"], ["y"]), 2)
    found = made(x=ca.diag(ca.DM([-0.5, 0])), p=2, dx=ca.diag(ca.DM([1, 3])))
    assert np.allclose(found["dy"], np.diag([-1, 0]))
    assert np.allclose(found["d2y"], np.diag([2, 18]))
    s = ca.MX.sym("x", 3)
    found = od.taylor_mode(ca.Function("f", [s], [s ** ca.DM([1, 2, 3])], ["x"], ["y"]), 2)(x=0, dx=2)
    assert np.allclose(found["d2y"], [[0], [8], [0]])


@pytest.mark.parametrize("kind", KINDS)
def test_functions_without_inputs(kind):
    f = ca.Function("f", [], [kind([3, 4]), kind(5)], [], ["y", "z"])
    found = od.taylor_mode(f, 2)()
    assert np.allclose(found["y"], [[3], [4]])
    assert float(found["z"]) == 5
    assert not any(np.any(found[n]) for n in ("dy", "d2y", "dz", "d2z"))
    x = kind.sym("x")
    if kind is ca.MX:  # called by another one
        inner = ca.Function("g", [], [ca.MX(3)], {"never_inline": True})
        assert float(od.taylor_mode(ca.Function("f", [x], [inner()["o0"] * x], ["x"], ["y"]), 1)(x=1, dx=2)["dy"]) == 6


@pytest.mark.parametrize("kind", KINDS)
def test_orders_beyond_the_largest_factorial(kind):
    with pytest.raises(od.OrderError, match="expected 170 at most"):
        od.taylor_mode(ca.Function("g", [x := kind.sym("x")], [x * x]), 171)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_order(kind):
    f = ca.Function("f", [x := kind.sym("x")], [2 * x], ["x"], ["y"])
    assert float(od.taylor_mode(f, 170)(x=0, d170x=3)["d170y"]) == pytest.approx(6, rel=1e-12)


def test_large_powers_at_zero():
    x = ca.SX.sym("x")
    found = od.taylor_mode(ca.Function("f", [x], [x**70], ["x"], ["y"]), 70)(x=0, dx=1)
    assert float(found["d70y"]) == pytest.approx(math.factorial(70), rel=1e-12)
    assert float(found["d69y"]) == 0
