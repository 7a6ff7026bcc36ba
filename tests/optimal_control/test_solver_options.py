"""Options that programs are solved with by default, and what is tried after a failure."""

import pickle

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.optimal_control import solver as solvers
from oc_dyn.optimal_control.solver import SAFER, SolverResult, checked_options, first_success, safer

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
    assert safer("fatrop", {"mu_init": 1e-3}, {}) == {SAFER: {"mu_init": 0.1}}
    assert safer("fatrop", {"mu_init": 1e-3}, {"fatrop.mu_init": 1e-3}) == {}
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
