"""Searches from several starts, here and on executors: the same plan."""

import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from obstacles import ball, point_robot

import oc_dyn as od
from oc_dyn.planning.point_to_point_search import PlanSolver
from oc_dyn.planning.starts import outcomes


def planned(**how):
    """Motion of the point robot past a ball that is in its way."""
    given = {"continuity": 2, "nodes": 16, "clearance": 0.03, "progress": False} | how
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", od.CheckWarning)
        return od.plan_point_to_point(point_robot(), [-1.0, 0.05], [1.0, -0.02], scene=ball(0.3), **given)


@pytest.mark.parametrize("executor", ["threads", pytest.param("processes:2", marks=pytest.mark.slow)])
def test_the_plan_does_not_depend_on_where_starts_are_searched_from(executor):
    here = planned()
    with ThreadPoolExecutor(2) as threads:
        there = planned(executor=threads if executor == "threads" else executor)
    assert np.array_equal(here.q, there.q)
    assert here.info["tries"] == there.info["tries"]
    assert here.info["iterations"] == there.info["iterations"]


def test_starts_are_taken_in_their_order_and_count_what_failed_before():
    """Whichever is done first, and whatever comes after one that is taken is given up."""
    found = {}
    for where in ("serial", "threads"):
        solver = PlanSolver("ipopt", {}, {"max_iter": 5}, "exact", None)
        with ThreadPoolExecutor(3) as threads:
            for result, error in outcomes(_late, [3, 2, 1], solver, threads if where == "threads" else where):
                if error is None:
                    found[where] = result, solver.iterations, solver.tries
                    break
    assert found["serial"] == found["threads"] == (2, [3, 2], [["start", "3"], ["start", "2"]])


def _late(solver, number):
    assert solver.inner == {"max_iter": 5}
    solver.inner = {}
    time.sleep(0.02 * number)
    solver.iterations.append(number)
    solver.tries.append(["start", str(number)])
    if number == 3:
        raise od.SolveError("in the way", "none")
    return number


def test_an_executor_that_there_is_not_is_refused():
    with pytest.raises(od.ShapeError, match="executor: got 'many'"):
        planned(executor="many")
