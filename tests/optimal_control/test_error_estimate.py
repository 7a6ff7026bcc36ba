"""Solution.error against errors that are known: closed forms, and the same problem integrated exactly."""

import pickle

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.optimal_control.integrators import METHODS, collocation
from oc_dyn.study.suite import listed, load


def of_suite(number):
    """The module of that number in problems/known_optima."""
    return load(listed()[number])


def solved(problem, method, **more):
    return problem.solve(method=method, check="off", solver_options={"tol": 1e-11}, **more)


def pendulum(nodes, scale=1.0, mesh="uniform"):
    """Swing through pi / 2 in a second; times a scale, the costates of which are so much smaller."""
    ocp = od.Problem(nodes, 1.0 if mesh == "uniform" else (0.5, 2.0), mesh=mesh)
    q, v, u = ocp.state("q", scale=scale), ocp.state("v", scale=3 * scale), ocp.control("u")
    ocp.rate(q, v)
    ocp.rate(v, scale * (u - 9.81 * np.sin(1.0) * q / scale + (q / scale) ** 3))
    ocp.start({q: 0, v: 0})
    ocp.goal({q: np.pi / 2 * scale, v: 0})
    ocp.minimize(integral=u**2 / 2 + (q / scale) ** 2 + (0 if mesh == "uniform" else 10))
    return ocp


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e4])
@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_objective_of_the_program_with_exact_integration(method, scale):
    """Collocation of degree 5 has the same controls, and integrates as good as exactly."""
    found, exact = (solved(pendulum(20, scale), m) for m in (method, collocation(5)))
    error = found.objective - exact.objective
    assert abs(found.error.objective - error) < 0.1 * abs(error)


@pytest.mark.parametrize("method", ["trapezoidal", "hermite_simpson"])
def test_objective_where_controls_are_no_error(method):
    found, fine = solved(pendulum(20), method), solved(pendulum(160), "hermite_simpson")
    error = found.objective - fine.objective
    assert 0.2 < found.error.objective / error < 5


@pytest.mark.parametrize("method", METHODS)
def test_errors_of_intervals_are_those_of_the_check(method):
    found = solved(pendulum(12), method)
    largest = max(row.error for row in found.check().rows if row.what == "defect")
    assert found.error.states == pytest.approx(largest, rel=0.01, abs=1e-9)
    assert [len(x) for x in found.error.intervals] == [12]


def test_intervals_of_several_phases():
    module = of_suite(10)
    found = solved(module.problem(40), "rk4")
    assert [len(x) for x in found.error.intervals] == [40, 20, 40]
    assert found.error.states == max(x.max() for x in found.error.intervals)


def test_a_chain_that_hangs_too_low_is_told_of():
    """Controls free within the intervals make use of the method's errors: 4.98 in place of 5.07."""
    module = of_suite(16)
    found = solved(module.problem(40), "hermite_simpson")
    error = found.objective - module.known()
    assert error < -0.05
    assert 10 * error < found.error.objective < error / 10
    assert found.error.states > 0.01


def test_solutions_that_failed_have_no_estimate_of_the_objective():
    found = solved(pendulum(12), "rk4", raises=False, time_limit=1e-6)
    assert not found.success
    assert np.isnan(found.error.objective)


def test_it_goes_on_from_the_check():
    found = pendulum(12).solve(method="euler")
    flow = found._flows[0]
    assert found.error.states > 0
    assert found._flows[0] is flow


def test_it_survives_another_process():
    found = solved(pendulum(12), "rk4")
    there = pickle.loads(pickle.dumps(found))
    assert there.error.objective == pytest.approx(found.error.objective, rel=1e-9)
    assert "interval" in str(there.error)


def test_free_mesh():
    """Lengths of intervals make use of the method's errors, too."""
    found, exact = (solved(pendulum(16, mesh="free"), m) for m in ("rk4", collocation(5)))
    error = found.objective - exact.objective
    assert 0.1 < found.error.objective / error < 10
