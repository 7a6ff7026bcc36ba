"""The chain rule of the articulated-body algorithm, and the matrices with partials that it is made of."""

import casadi as ca
import numpy as np
import pytest
from samples import random_ports, relative, robot

import oc_dyn as od
from oc_dyn.errors import OrderError
from oc_dyn.lie.se3 import ad
from oc_dyn.second_partials.differentiated import Differentiated, bracket, turned_force

FORWARD = "forward_dynamics_second_partials"
Q = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
TWO_ROWS = ca.DM([[2, 0, 0, 1, 0, 3], [1, -1, 0, 0, 2, 0]])
PAIRS = {("q", "q"): Q, ("q", "v"): [(j, k) for j in range(3) for k in range(3)]}


def of(expression, q, v):
    """A matrix of SX with its partials by AD."""
    x, by = ca.vec(ca.densify(expression)), {"q": q, "v": v}
    first = {a: ca.jacobian(x, y) for a, y in by.items()}
    second = {}
    for (a, b), pairs in PAIRS.items():
        columns = [ca.jacobian(first[a][:, j], by[b])[:, k] for j, k in pairs]
        second[a, b] = ca.horzcat(*columns)
    return Differentiated(PAIRS, ca.densify(expression), first, second)


def values(x, q, v):
    parts = [x.value, *(x.first[a] for a in "qv"), *(x.second[ab] for ab in PAIRS)]
    f = ca.Function("f", [q, v], [ca.densify(part) for part in parts])
    return [np.array(y) for y in f.call([[0.3, -0.4, 0.7], [1.1, 0.2, -0.5]])]


def matrix(q, v, rows, columns, seed):
    """Entries that depend on all of q and v, in ways of their own."""
    rng, every = np.random.default_rng(seed), ca.vertcat(q, v)
    entries = [ca.sin(rng.normal(size=(1, 6)) @ every) + rng.normal() * q[0] * v[2] for _ in range(rows * columns)]
    return ca.reshape(ca.vertcat(*entries), rows, columns)


def symmetric(A):
    return 3 * ca.SX.eye(A.shape[0]) + A + A.T


@pytest.mark.parametrize(
    "result, expression",
    [
        (lambda A, B, X, Y: A @ B, lambda A, B, X, Y: A @ B),
        (lambda A, B, X, Y: A.T - B, lambda A, B, X, Y: A.T - B),
        (lambda A, B, X, Y: X.map(TWO_ROWS) @ Y.T, lambda A, B, X, Y: TWO_ROWS @ X @ Y.T),
        (lambda A, B, X, Y: bracket(X, Y), lambda A, B, X, Y: ad(X) @ Y),
        (lambda A, B, X, Y: turned_force(X, Y), lambda A, B, X, Y: -ad(X).T @ Y),
    ],
    ids=["product", "transpose", "map", "bracket", "force"],
)
def test_lines_are_differentiated_as_by_ad(result, expression):
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    sizes = ((2, 3), (3, 2), (6, 1), (6, 1))
    operands = [matrix(q, v, *size, seed) for seed, size in enumerate(sizes)]
    found = values(result(*(of(x, q, v) for x in operands)), q, v)
    for a, b in zip(found, values(of(expression(*operands), q, v), q, v), strict=True):
        assert np.abs(b).max() > 0.1
        assert np.abs(a - b).max() < 1e-12 * np.abs(b).max()


@pytest.mark.parametrize("size", [1, 3])
def test_inverse_is_differentiated_as_by_ad(size):
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    A = 3 * ca.SX.eye(size) + 0.2 * symmetric(matrix(q, v, size, size, 5))
    for a, b in zip(values(of(A, q, v).inverse(), q, v), values(of(ca.inv(A), q, v), q, v), strict=True):
        assert np.abs(a - b).max() < 1e-12 * np.abs(b).max()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain", "spherical"])
def test_agrees_with_bicomplex_steps(name):
    """Also where the steps within one joint do not commute."""
    r = od.robots.chain(3) if name == "chain" else robot(name)
    f, other = (od.function(r, FORWARD, method=m) for m in ("chain_rule", "bicomplex"))
    ports = random_ports(f, r)
    got, expected = f(**ports), other(**ports)
    for port in expected:
        assert relative(got[port], expected[port]) < 1e-11


def test_joints_that_follow_others_are_refused():
    with pytest.raises(OrderError, match="joints that move independently"):
        od.function(robot("mimic"), FORWARD, method="chain_rule")
