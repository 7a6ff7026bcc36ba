"""Options that programs are solved with by default, and what is tried after a failure."""

import pickle
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.optimal_control import solver as solvers
from oc_dyn.optimal_control.solver import (
    INSTEAD,
    SAFER,
    SolverResult,
    checked_options,
    first_success,
    ipopt_instead,
    safer,
)
from oc_dyn.study.suite import listed, load

WEAK = {"max_hessian_perturbation": 1e-12, "first_hessian_perturbation": 1e-13}  # fails if not convex


def wells(nodes=12):
    """A cost that is not convex: u in one of two wells."""
    ocp = od.Problem(nodes, 1.0)
    x, u = ocp.state("x"), ocp.control("u", lower=-3, upper=3, guess=0.1)
    ocp.rate(x, u)
    ocp.start({x: 0})
    ocp.minimize(integral=(u**2 - 1) ** 2 + 0.1 * x)
    return ocp


@pytest.mark.parametrize("free_time", [False, True])
def test_linear_algebra_is_quick_unless_told_otherwise(free_time):
    inner = checked_options("ipopt", {}, free_time)[1]
    assert inner["mumps_permuting_scaling"] == 0
    assert inner["mumps_pivot_order"] == 2
    assert inner["mumps_mem_percent"] == 20
    own = checked_options("ipopt", {"mumps_permuting_scaling": 5, "ipopt.mumps_pivot_order": 0}, free_time)[1]
    assert (own["mumps_permuting_scaling"], own["mumps_pivot_order"], own["mumps_mem_percent"]) == (5, 0, 20)
    assert "mumps_pivot_order" not in checked_options("fatrop", {}, free_time)[1]


def test_a_safer_try_leaves_the_options_of_the_caller_alone():
    asked = {"mumps_pivot_order": 0, "ipopt.mumps_pivtol": 1e-7}
    inner = checked_options("ipopt", asked, False)[1]
    tried = safer("ipopt", inner, asked)[SAFER]
    assert tried == inner | {"mumps_permuting_scaling": 7}
    assert safer("ipopt", inner, {**asked, "mumps_permuting_scaling": 0}) == {}
    assert safer("ipopt", inner | {"linear_solver": "ma57"}, {}) == {}
    assert safer("sqpmethod", {}, {}) == {}


@pytest.mark.slow
def test_after_a_failure_a_safer_try_follows_and_info_tells_of_it(monkeypatch):
    outer, inner = solvers._QUIET["ipopt"]
    monkeypatch.setitem(solvers._QUIET, "ipopt", (outer, inner | WEAK))
    failed = wells().solve(check="off", raises=False, solver_options={"max_iter": 100, **WEAK, **_OWN})
    assert failed.info["tries"] == [("start", failed.status, failed.iterations)]
    assert not failed.success
    monkeypatch.setattr(solvers, "_SAFE", {"ipopt": solvers._SAFE["ipopt"] | {"max_hessian_perturbation": 1e20}})
    found = wells().solve(check="off")
    (first, status, count), second = found.info["tries"]
    assert (first, status) == ("start", failed.status)
    assert second[:2] == (SAFER, "Solve_Succeeded")
    assert found.iterations == count + second[2]
    assert pickle.loads(pickle.dumps(found)).info == found.info
    monkeypatch.undo()
    plain = wells().solve(check="off")
    assert plain.info["tries"] == [("start", "Solve_Succeeded", plain.iterations)]


_OWN = {key: value for key, value in solvers._QUICK.items() if key in solvers._SAFE["ipopt"]} | {"mumps_pivtol": 1e-6}


def result(status, iterations=3):
    none = np.zeros(0)
    return SolverResult(none, none, none, 0.0, status, status == "Solve_Succeeded", iterations, {})


@pytest.mark.parametrize(
    "statuses, names",
    [
        (["Infeasible_Problem_Detected"], ["start"]),
        (["time_limit"], ["start"]),
        (["Maximum_Iterations_Exceeded"], ["start"]),
        (["User_Requested_Stop"], ["start"]),
        (["Restoration_Failed", "Solve_Succeeded"], ["start", SAFER]),
        (["Error_In_Step_Computation", "time_limit"], ["start", SAFER]),
    ],
)
def test_what_is_tried_again(statuses, names):
    left = list(statuses)
    found = first_success(lambda inner: result(left.pop(0)), {"start": {}, SAFER: {}})
    assert [name for name, *_ in found.tries] == names
    assert (found.status, found.iterations) == (statuses[-1], 3 * len(statuses))


def test_a_guess_without_numbers_is_not_tried_again():
    found = first_success(lambda inner: result("Invalid_Number_Detected", 0), {"start": {}, SAFER: {}})
    assert len(found.tries) == 1


def test_no_safer_try_after_the_limit_of_time_or_an_interrupt():
    ocp, calls = wells(), []

    def stop(*_):
        calls.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        first_success(lambda inner: stop(), {"start": {}, SAFER: {}})
    assert len(calls) == 1
    found = ocp.solve(check="off", raises=False, time_limit=1e-9)
    assert [status for _, status, _ in found.info["tries"]] == ["time_limit"]


def test_fatrop_tries_the_barrier_that_it_begins_with_by_itself():
    assert checked_options("fatrop", None, free_time=True)[1]["mu_init"] == 1e-3
    assert "mu_init" not in checked_options("fatrop", None, free_time=False)[1]
    own = {"mu_init": 0.1, "delta_w0": 1e-4, "kappa_wplusem": 100.0}
    assert safer("fatrop", {"mu_init": 1e-3}, {}) == {SAFER: own}
    assert safer("fatrop", {"mu_init": 1e-3}, dict.fromkeys(["fatrop.mu_init", "delta_w0", "kappa_wplusem"], 1)) == {}
    assert safer("fatrop", {}, {}) == {}
    left = ["1", "Solve_Succeeded"]
    found = first_success(lambda inner: result(left.pop(0)), {"start": {}, SAFER: {}})
    assert [what for what, *_ in found.tries] == ["start", SAFER]


def test_a_limit_of_iterations_of_fatrop_is_told_as_such():
    ocp = od.Problem(8, 1.0)
    x, u = ocp.state("x", 2), ocp.control("u")
    ocp.rate(x, ca.vertcat(x[1], u))
    ocp.start({x: 0})
    ocp.goal({x: [1, 0]})
    ocp.minimize(integral=u**4)
    short = ocp.solve(solver="fatrop", solver_options={"max_iter": 2}, raises=False, check="off")
    assert [try_[:2] for try_ in short.info["tries"]] == [("start", "Maximum_Iterations_Exceeded")]


def kinked(**how):
    """A problem on which fatrop gives up or runs out of iterations: the root of a square that is zero at the start."""
    ocp = od.Problem(8, 1.0)
    x, u = ocp.state("x", guess=1.0), ocp.control("u", guess=0.3)
    ocp.rate(x, u + 0.1 * ca.sqrt(x**2))
    ocp.start({x: 0})
    ocp.minimize(integral=u**2 + (x - 1) ** 2)
    return ocp.solve(raises=False, check="off", **how)


@pytest.mark.slow
def test_ipopt_goes_on_where_fatrop_fails_and_info_tells_of_it():
    found, plain = kinked(solver="fatrop"), kinked()
    assert found.success
    assert found.objective == pytest.approx(plain.objective, rel=1e-8)
    tries = found.info["tries"]
    assert (tries[0][0], tries[-1][:2]) == ("start", (INSTEAD, "Solve_Succeeded"))
    assert found.iterations == sum(count for *_, count in tries)
    assert pickle.loads(pickle.dumps(found)).info == found.info


def test_a_limit_of_iterations_that_was_asked_for_is_the_last_try_of_fatrop():
    found = kinked(solver="fatrop", solver_options={"max_iter": 5})
    assert [try_[:2] for try_ in found.info["tries"]] == [("start", "Maximum_Iterations_Exceeded")]


def test_when_ipopt_goes_on_for_fatrop_and_with_which_options():
    assert ipopt_instead("fatrop", "time_limit", {}, True) is None
    assert ipopt_instead("fatrop", None, {}, True) is None  # it refused the problem
    assert ipopt_instead("fatrop", "Maximum_Iterations_Exceeded", {"fatrop.max_iter": 9}, True) is None
    assert ipopt_instead("ipopt", "Restoration_Failed", {}, True) is None
    assert ipopt_instead("fatrop", "1", {}, True) == checked_options("ipopt", {}, True)
    asked = {"fatrop.tolerance": 1e-6, "mu_init": 1.0, "max_iter": 9, "structure_detection": "auto"}
    assert ipopt_instead("fatrop", "1", asked, False) == checked_options("ipopt", {"tol": 1e-6, "max_iter": 9}, False)


@pytest.mark.sample(1)
@pytest.mark.parametrize("where", ["cost", "rate"])
def test_fatrop_ends_where_a_derivative_becomes_infinite(where):
    """In a process of its own, as no limit of time ends its search where this fails: the root at a start of zero, which
    it comes to by its first step."""
    program = f"""
import casadi as ca, oc_dyn as od
ocp = od.Problem(8, 1.0)
x, u = ocp.state("x", guess=1.0), ocp.control("u", guess=0.3)
ocp.rate(x, u + (ca.sqrt(x) if {where!r} == "rate" else 0))
ocp.start({{x: 0}})
ocp.minimize(integral=u**2 + (ca.sqrt(x) if {where!r} == "cost" else 0))
found = ocp.solve(solver="fatrop", raises=False, check="off", time_limit=5)
print(found.success, found.status, found.info["tries"][0][1])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["False", "Invalid_Number_Detected", "Invalid_Number_Detected"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [30, 29, 11])
def test_fatrop_is_told_of_the_stages_that_it_would_find(number):
    """The same iterates, to the bit: phases, rows of states, a free time."""
    module = load(listed()[number])
    found = []
    for options in ({}, {"structure_detection": "auto"}):
        ocp = module.problem(12)
        found.append(ocp.solve(method=module.METHOD, solver="fatrop", solver_options=options, check="off"))
    assert np.array_equal(found[0].unknowns, found[1].unknowns)
    assert found[0].info == found[1].info


@pytest.mark.sample(1)
@pytest.mark.parametrize("number, optimum", [(41, -0.37538379071661054), (33, 2.137934422148185)])
def test_problems_that_fatrop_leaves_to_ipopt(number, optimum):
    module = load(listed()[number])
    arguments = getattr(module, "VARIANTS", ({},))[0]
    found = module.problem(**arguments).solve(method=module.METHOD, solver="fatrop", check="off")
    assert found.objective == pytest.approx(optimum, rel=1e-5)
