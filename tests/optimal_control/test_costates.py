"""Solution.costates against closed forms, differences of the best cost, and the minimum principle."""

import pickle

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import OrderError
from oc_dyn.optimal_control.assembly import SOLVERS
from oc_dyn.optimal_control.integrators import METHODS

BY_INTERVALS = [name for name, method in METHODS.items() if not getattr(method, "controls_are_states", False)]
TOLERANCES = {"ipopt": {"tol": 1e-11}, "fatrop": {"tol": 1e-11}, "sqpmethod": {"tol_du": 1e-7, "tol_pr": 1e-9}}
TOLERANCES["uno"] = {"primal_tolerance": 1e-11, "dual_tolerance": 1e-9}


def solved(problem, method, solver="ipopt", **more):
    return problem.solve(method=method, solver=solver, check="off", solver_options=TOLERANCES[solver], **more)


def least_effort(nodes, scales=(1.0, 1.0, 1.0)):
    ocp = od.Problem(nodes, 1.0)
    x, v = ocp.state("x", scale=scales[0]), ocp.state("v", scale=scales[1])
    u = ocp.control("u", scale=scales[2])
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=u**2 / 2)
    return ocp


def nonlinear(nodes, duration, start, goal=None, phases=1, upper=np.inf):
    """A pendulum with a cost of all; start: of q and v. With two phases v is halved between them."""
    ocp = od.Problem(nodes // phases, duration / phases)
    q, v, u = ocp.state("q", scale=0.3), ocp.state("v", scale=7.0, upper=upper), ocp.control("u", scale=5)
    for number in range(phases):
        if number:
            ocp.join(v, v / 2)
            ocp.phase(nodes // phases, duration / phases)
        ocp.rate(q, v)
        ocp.rate(v, u - 9.81 * ca.sin(q) - 0.1 * v**3)
        ocp.minimize(integral=u**2 / 2 + q**2)
    ocp.start({q: start[0], v: start[1]})
    if goal is not None:
        ocp.goal({q: goal})
    ocp.minimize(terminal=3 * v**2 + q)
    return ocp


@pytest.mark.sample(5)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("method", METHODS)
def test_closed_form_of_least_effort(method, solver):
    """u = 6 - 12 t, so that the costate of v is 12 t - 6, that of x is -12; on scales that are not 1."""
    found = solved(least_effort(40, (3.0, 0.1, 20.0)), method, solver)
    expected = np.column_stack([np.full(41, -12.0), 12 * found.t - 6])
    order = getattr(METHODS[method], "order", 1)
    near = 1e-6 if method == "hermite_simpson" else 0.4 if order == 1 else 0.05
    assert found.costates == pytest.approx(expected, abs=near)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
def test_closed_form_of_the_hypersensitive_problem(method):
    """x' = -x + u, cost (x^2 + u^2) / 2, 1.5 -> 1 in 10 s: x = a exp(-s t) + b exp(s (t - T)); the costate is -u."""
    ocp = od.Problem(320, 10.0)
    x, u = ocp.state("x", scale=0.2, guess=0.1), ocp.control("u")
    ocp.rate(x, -x + u)
    ocp.start({x: 1.5})
    ocp.goal({x: 1})
    ocp.minimize(integral=(x**2 + u**2) / 2)
    found = solved(ocp, method)
    s, decay, t = np.sqrt(2), np.exp(-10 * np.sqrt(2)), found.t
    a, b = np.linalg.solve([[1, decay], [decay, 1]], [1.5, 1])
    u_known = (1 - s) * a * np.exp(-s * t) + (1 + s) * b * np.exp(s * (t - 10))
    near = {"hermite_simpson": 1e-6, "euler": 0.1}.get(method, 3e-3)
    assert found.costates[:, 0] == pytest.approx(-u_known, abs=near)


@pytest.mark.few(14)
@pytest.mark.sample(1)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("method", METHODS)
def test_costates_at_the_start_are_derivatives_of_the_best_cost(method, solver):
    start, d = np.array([0.4, -0.5]), 1e-4
    found = solved(nonlinear(10, 1.0, start, 1.0), method, solver)
    costs = [[solved(nonlinear(10, 1.0, start + s * d * e, 1.0), method).objective for s in (1, -1)] for e in np.eye(2)]
    differences = [(a - b) / (2 * d) for a, b in costs]
    assert found.costates[0] == pytest.approx(differences, rel=1e-5, abs=1e-5)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", BY_INTERVALS)
def test_costates_on_the_way_are_those_of_what_is_left(method):
    """The rest of the motion as a problem of its own, from the node on."""
    found, d = solved(nonlinear(10, 1.0, (0.4, -0.5), 1.0), method), 1e-4
    for k in (3, 7):
        rest = [
            [solved(nonlinear(10 - k, 1 - k / 10, found.x[k] + s * d * e, 1.0), method).objective for s in (1, -1)]
            for e in np.eye(2)
        ]
        assert found.costates[k] == pytest.approx([(a - b) / (2 * d) for a, b in rest], rel=1e-4)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
def test_ends_that_are_free(method):
    """Transversality: the derivative of the terminal cost 3 v^2 + q at the end."""
    found = solved(nonlinear(10, 1.0, (0.4, -0.5)), method)
    expected = [1.0, 6 * found["v"][-1, 0]]
    assert found.costates[-1] == pytest.approx(expected, rel=1e-6)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
def test_starts_that_are_free(method):
    ocp = od.Problem(20, 1.0)
    x, v, u = ocp.state("x", scale=4.0), ocp.state("v"), ocp.control("u")
    ocp.rate(x, v)
    ocp.rate(v, u - x)
    ocp.start({v: 1})
    ocp.goal({x: 1, v: 3})
    ocp.minimize(integral=u**2)
    found = solved(ocp, method)
    assert found.costates[0, 0] == pytest.approx(0, abs=1e-7)
    assert abs(found.costates[0, 1]) > 0.01


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
def test_starts_that_are_rows(method):
    """The same start by rows has the same costates."""
    found = solved(least_effort(10), method)
    ocp = od.Problem(10, 1.0)
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u")
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x + v: 0, x - v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(integral=u**2 / 2)
    assert solved(ocp, method).costates == pytest.approx(found.costates, abs=1e-7)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rk4", "hermite_simpson"])
def test_two_phases_with_a_jump(method):
    """v is halved on the way: before the jump its costate is half of that behind it."""
    found, d = solved(nonlinear(20, 1.0, (0.4, 1.5), 1.0, phases=2), method), 1e-4
    whole = [
        [solved(nonlinear(20, 1.0, np.array([0.4, 1.5]) + s * d * e, 1.0, phases=2), method).objective for s in (1, -1)]
        for e in np.eye(2)
    ]
    assert found.costates[0] == pytest.approx([(a - b) / (2 * d) for a, b in whole], rel=1e-5)
    behind = nonlinear(10, 0.5, found.x[10], 1.0)
    assert found.costates[10] == pytest.approx(solved(behind, method).costates[0], rel=1e-2, abs=1e-2)


@pytest.mark.slow
def test_a_bound_that_is_reached():
    """Costates of what is left, where the bound of v holds: that at the node itself is in them."""
    found, d = solved(nonlinear(20, 1.0, (0.4, 0.5), 1.6, upper=1.3), "rk4"), 1e-5
    assert np.sum(found["v"] > 1.3 - 1e-6) > 3
    ends = [np.array([0.4, 0.5]) + s * d * e for e in np.eye(2) for s in (1, -1)]
    costs = [solved(nonlinear(20, 1.0, x, 1.6, upper=1.3), "rk4").objective for x in ends]
    expected = [(costs[0] - costs[1]) / (2 * d), (costs[2] - costs[3]) / (2 * d)]
    assert found.costates[0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method, near", [("hermite_simpson", 1e-3), ("trapezoidal", 0.03)])
def test_the_hamiltonian_is_constant_and_least(method, near):
    """Of a problem that time does not appear in; u minimises it: u = -costate of v."""
    found = solved(nonlinear(100, 1.0, (0.4, -0.5), 1.0), method)
    (q, v), u, c = found.x.T, found.u[:, 0], found.costates
    H = u**2 / 2 + q**2 + c[:, 0] * v + c[:, 1] * (u - 9.81 * np.sin(q) - 0.1 * v**3)
    assert np.ptp(H) < near * np.abs(H).max()
    assert np.abs(u + c[:, 1]).max() < near * np.abs(u).max()


def test_the_hamiltonian_of_a_free_duration():
    """H = -1 along a motion of least time, but for where in its interval the switch is."""
    ocp = od.Problem(30, (0.5, 10.0))
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(terminal=ocp.duration)
    found = solved(ocp, "rk4")
    H = found.costates[:-1, 0] * found.x[:-1, 1] + found.costates[:-1, 1] * found.u[:, 0]
    assert H == pytest.approx(-1, abs=1 / 30)


def test_a_variable():
    """Its costate goes from what the cost loses by it, which is nothing at the optimum, to its part at the end."""
    ocp = od.Problem(20, 1.0)
    x, u, a = ocp.state("x"), ocp.control("u"), ocp.variable("a", scale=5)
    ocp.rate(x, u + a)
    ocp.start({x: 0})
    ocp.goal({x: 1})
    ocp.minimize(integral=u**2, terminal=a**2)
    found = solved(ocp, "rk4")
    assert found.costates[0, 1] == pytest.approx(0, abs=1e-7)
    assert found.costates[-1, 1] == pytest.approx(2 * found["a"][-1, 0], rel=1e-6)


def test_a_taylor_chain_has_them():
    ocp = od.Problem(40, 1.0)
    q, dq, u = ocp.chain("q", 1, 2)
    ocp.start({q: 0, dq: 0})
    ocp.goal({q: 1, dq: 0})
    ocp.minimize(integral=u**2 / 2)
    found = solved(ocp, "rk4")
    assert found.costates[:, 1] == pytest.approx(12 * found.t - 6, abs=0.02)


@pytest.mark.sample(2)
@pytest.mark.parametrize("basis", ["bernstein", "b_spline"])
def test_coefficients_have_none(basis):
    ocp = od.Problem(10, 1.0)
    q, dq, u = ocp.chain("q", 1, 2, basis=basis)
    ocp.start({q: 0, dq: 0})
    ocp.goal({q: 1, dq: 0})
    ocp.minimize(integral=u**2 / 2)
    found = solved(ocp, "rk4")
    with pytest.raises(OrderError, match="costates: those of 'q"):
        found.costates  # noqa: B018
    assert np.isfinite(found.error.objective)


@pytest.mark.slow
def test_states_on_manifolds_have_none():
    ocp = od.Problem(10, 1.0)
    o, w = ocp.state("o", manifold="unit_quaternion"), ocp.control("w", 3)
    ocp.rate(o, w)
    ocp.start({o: [1, 0, 0, 0]})
    ocp.goal({o: [0.8, 0.6, 0, 0]})
    ocp.minimize(integral=ca.sumsqr(w))
    found = ocp.solve(check="off")
    with pytest.raises(OrderError, match="costates: those of 'o' lie on a manifold"):
        found.costates  # noqa: B018


def test_they_survive_another_process():
    found = solved(least_effort(8), "rk4")
    assert np.array_equal(pickle.loads(pickle.dumps(found)).costates, found.costates)
