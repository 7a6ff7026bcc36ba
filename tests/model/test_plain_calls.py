"""Calls of a RobotFunction with what needs no second look: passed on as they are, same numbers and types."""

import pickle

import casadi as ca
import numpy as np
import pytest
from effort import function_calls
from samples import robot

import oc_dyn as od
from oc_dyn.model.robot_function import RobotFunction

N = 4
X = np.linspace(-1.0, 1.0, 3 * N).reshape(3, N)
PLAIN = {
    "arrays": list(X),
    "columns": [x[:, None] for x in X],
    "pickled": pickle.loads(pickle.dumps(list(X))),
    "strided": list(np.repeat(X, 2, axis=1)[:, ::2]),
    "lists": X.tolist(),
    "tuples": [tuple(x) for x in X.tolist()],
    "DM": [ca.DM(x) for x in X],
    "zeros": [X[0], 0, 0.0],
    "all zeros": [0, 0, 0],
    "points": [np.repeat(x[:, None], 5, axis=1) for x in X],
    "points by rows": [np.array([x] * 5).T for x in X],
    "one of many": [np.repeat(X[0][:, None], 5, axis=1), X[1], 0],
    "SX": [ca.SX.sym("x", N) for _ in X],
    "MX": [ca.MX.sym("x", N) for _ in X],
    "MX and numbers": [ca.MX.sym("x", N), X[1].tolist(), 0],
    "SX and numbers": [X[0], ca.SX.sym("x", N), ca.DM(X[2])],
}


@pytest.fixture(scope="module", params=["inverse_dynamics", "forward_dynamics"])
def f(request):
    return od.function(robot("serial"), request.param)


def numbers(y, given):
    """(type, shape, numbers) of a result, symbols among what was given replaced."""
    symbols = [x for x in given if isinstance(x, (ca.SX, ca.MX))]
    value = ca.Function("value", symbols, [y])(*(X[k] for k in range(len(symbols)))) if symbols else y
    return type(y), y.shape, np.array(value)


@pytest.mark.parametrize("kind", PLAIN)
def test_they_pass_without_a_second_look(f, kind, monkeypatch):
    given = PLAIN[kind]
    expected = numbers(
        ca.Function.__call__(f, *(x.reshape(N, -1) if isinstance(x, np.ndarray) else x for x in given)), given
    )
    monkeypatch.setattr(RobotFunction, "_check", lambda *args: pytest.fail("looked at twice"))
    for y in (f(*given), f(**dict(zip(f.name_in(), given, strict=True)))[f.name_out(0)]):
        kind_of, shape, value = numbers(y, given)
        assert (kind_of, shape) == expected[:2]
        assert np.array_equal(value, expected[2])


@pytest.mark.parametrize("kind", ["arrays", "lists", "DM", "MX", "zeros"])
def test_they_take_few_function_calls(kind):
    """Python's and C's, above those of CasADi: at most six a port, and as many again in all."""
    f = od.function(robot("serial"), "inverse_dynamics")
    given = PLAIN[kind]
    assert function_calls(lambda: f(*given)) <= function_calls(lambda: ca.Function.__call__(f, *given)) + 24


def test_what_looks_plain_but_is_not():
    f = od.function(robot("serial"), "inverse_dynamics")
    zero = np.zeros(N)
    for value, words in {
        "True": (True, "expected numbers"),
        "a list with a truth value": ([1.0, 1.0, True, 1.0], "expected numbers"),
        "one": (1.0, "no other number for all rows"),
        "NaN": (float("nan"), "no other number for all rows"),
        "an empty list": ([], r"got shape \(0, 1\)"),
        "an empty matrix": (ca.DM(), r"got shape \(0, 0\)"),
        "an empty array": (np.zeros((0, 0)), r"got shape \(0, 0\)"),
        "a masked array": (np.ma.array(zero), "without a mask"),
        "a cube": (np.zeros((N, 1, 1)), r"got shape \(4, 1, 1\)"),
        "a list of lists": ([[0.0] * N] * 2, r"got shape \(2, 4\)"),
        "a huge integer": ([10**400] * N, "expected numbers"),
    }.values():
        with pytest.raises(od.ShapeError, match=f"port v.*{words}"):
            f(zero, value, zero)
    assert f(zero, [1, 2, 3, 4], zero).shape == (N, 1)
    with pytest.raises(od.UnknownName, match="speed"):
        f(q=zero, speed=0)
    with pytest.raises(od.ShapeError, match="port q of 2, port v of 3"):
        f(np.zeros((N, 2)), np.zeros((N, 3)), 0)


def test_results_are_looked_at_whatever_form_the_numbers_have():
    b = od.RobotBuilder("stretched")
    b.add_link("base")
    b.add_body("upper", "revolute", "base", joint="shoulder")
    b.add_body("lower", "revolute", "upper", joint="elbow", xyz=(1, 0, 0), mass=1.0, com=(1, 0, 0))
    f = od.function(b.build(), "forward_dynamics")
    points = np.array([[0.3, 0.3], [0.5, 0.0]])  # the second one is singular
    for q in (np.zeros(2), [0.3, 0.0], (0.3, 0.0), ca.DM([0.3, 0]), 0, 0.0, points):
        with pytest.raises(od.ModelError, match="'shoulder', 'elbow' have"):
            f(q, np.ones(2), np.ones(2))
        with pytest.raises(od.ModelError, match="'shoulder', 'elbow' have"):
            f(q=q, tau=[1.0, 1.0])
    assert np.isnan(f([0.3, np.nan], [0.0, 0.0], 0).full()).any()


def test_no_point_at_all_has_no_wrong_quaternion():
    r = od.RobotBuilder("free")
    r.add_link("body", mass=1.0, inertia=np.eye(3))
    f = od.function(r.build(floating_base=True), "inverse_dynamics")
    with pytest.raises(od.ShapeError, match="port q of 0, port v of 2, port dv of 3"):
        f(np.zeros((7, 0)), np.zeros((6, 2)), np.zeros((6, 3)))
    for q in (np.zeros((7, 0)), ca.DM(7, 0), ca.SX(7, 0), ca.MX(7, 0)):
        assert f(q, 0, np.zeros((6, 1))).shape == (6, 0)


@pytest.mark.parametrize("kind", [np.zeros, ca.DM, ca.SX, ca.MX])
def test_no_point_has_no_results(f, kind):
    """CasADi takes a matrix without columns for zeros, so that an empty selection gave the results of a point."""
    none = np.zeros((N, 0)) if kind is np.zeros else kind(N, 0)
    name = f.name_out(0)
    for given in ([none] * 3, [none, X[1], 0], [X[0], X[1], none], [X[0], none, ca.DM(X[2])]):
        for y in (f(*given), f(**dict(zip(f.name_in(), given, strict=True)))[name]):
            assert (type(y), y.shape) == (ca.DM if kind is np.zeros else kind, (N, 0))
    assert od.function(robot("serial"), "mass_matrix")(none).shape == (N, 0)
    both = od.function(robot("serial"), "mass_matrix", order=1)(none, 0)
    assert [y.shape for y in both] == [(N, 0)] * len(both)
    assert pickle.loads(pickle.dumps(f))(none, 0, 0).shape == (N, 0)
    for n in (2, 5):
        with pytest.raises(od.ShapeError, match=f"port {f.name_in(0)} of 0, port {f.name_in(1)} of {n} points"):
            f(none, np.zeros((N, n)), 0)


def test_symbols_of_two_kinds_in_wrenches():
    r = robot("serial")
    f = od.function(r, "inverse_dynamics", external_wrenches=True)
    (first, second, *_), x = f._columns[f.name_in(3)], np.zeros(N)
    sx, mx = ca.SX.sym("w", 6), ca.MX.sym("w", 6)
    for wrenches in ({first: sx, second: mx}, {first: [sx[0], mx[0], 0, 0, 0, 0]}):
        with pytest.raises(od.ShapeError, match="both SX and MX symbols; give one kind"):
            f(x, x, x, wrenches)
    with pytest.raises(od.ShapeError, match="expected 6 numbers or symbols"):
        f(x, x, x, {first: [sx[0], None, 0, 0, 0, 0]})
    assert f(x, x, x, {first: sx, second: [sx[1], 0, 0, 0, 0, 1]}).shape == (N, 1)
