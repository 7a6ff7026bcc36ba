"""How the search for a least-time motion uses its solver: options, tries, the second phase on free meshes."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.optimal_control import solver as solvers
from oc_dyn.planning import point_to_point_search as search
from oc_dyn.study.cases.robots import ENDS

START = [0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4]
GOAL = [1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6]


def arm_plan(**options):
    """Of two links. Options of a solver are given, so that joints are not solved apart."""
    given = {"nodes": 12, "check": "off", "progress": False, "solver_options": {"max_iter": 300}, **options}
    return od.plan_point_to_point(od.robots.planar_2r(), [-1.2, 0.5], [-0.5, -0.8], **given)


@pytest.fixture
def seen(monkeypatch):
    """Options that ipopt is given, of every run."""
    options = []

    def noted(assembly, name, hessian, outer, inner, *rest):
        options.append(inner)
        return solvers.solve(assembly, name, hessian, outer, inner, *rest)

    monkeypatch.setattr(search, "solve", noted)
    return options


@pytest.mark.slow
def test_options_of_a_search_and_those_of_the_caller(seen):
    arm_plan()
    assert seen[0]["bound_mult_init_method"] == "mu-based"
    assert (seen[0]["mu_init"], seen[0]["mumps_permuting_scaling"]) == (1e-3, 0)
    seen.clear()
    arm_plan(solver_options={"mu_init": 0.1, "ipopt.alpha_for_y": "primal", "mumps_pivot_order": 0})
    assert (seen[0]["mu_init"], seen[0]["alpha_for_y"], seen[0]["mumps_pivot_order"]) == (0.1, "primal", 0)
    seen.clear()
    arm_plan(objective="effort", duration=1.5)
    assert "bound_mult_init_method" not in seen[0]


@pytest.mark.slow
def test_after_a_failure_the_second_try_is_a_safer_one(seen, monkeypatch):
    outer, inner = solvers._QUIET["ipopt"]
    seen.clear()
    weak = {"max_hessian_perturbation": 1e-12, "first_hessian_perturbation": 1e-13}  # fails where a cost is not convex
    monkeypatch.setitem(solvers._QUIET, "ipopt", (outer, inner | weak))
    monkeypatch.setattr(solvers, "_SAFE", {"ipopt": solvers._SAFE["ipopt"] | {"max_hessian_perturbation": 1e20}})
    motion = arm_plan(mesh="free")
    failed = next(k for k, x in enumerate(motion.info["tries"]) if x[1] != "Solve_Succeeded")
    assert motion.info["tries"][failed + 1][:2] == ["slow start, safer options", "Solve_Succeeded"]
    assert seen[failed + 1]["mumps_permuting_scaling"] == 7
    assert motion.check().worst < 1.005
    assert motion.info["iterations"] == sum(x[2] for x in motion.info["tries"])


def test_the_limit_of_time_is_not_tried_again(seen, monkeypatch):
    monkeypatch.setattr(search, "building", nullcontext)  # it is the solver that runs out
    with pytest.raises(od.SolveError) as told:
        arm_plan(time_limit=1e-6)
    assert (told.value.status, len(seen)) == ("time_limit", 1)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [16, 24])
def test_smoothing_costs_no_time_on_a_free_mesh(nodes):
    """Where the snap has no limit: with the smoothing in the cost it was 0.4 to 1.4 % longer. A task on which both find
    the same of several optima."""
    panda = od.robots.panda()
    options = {"mesh": "free", "nodes": nodes, "ignore": ("tau", "dtau"), "progress": False}
    goal = np.array(GOAL) - 0.2
    calm, sharp = (od.plan_point_to_point(panda, START, goal, smoothing=s, **options) for s in (1e-5, 1e-9))
    assert calm.duration == pytest.approx(sharp.duration, rel=2.5e-4)
    assert [x[0] for x in calm.info["tries"]][-2:] == ["less smoothing", "polished at this time"]
    assert calm.check().worst < 1.001
    changes = [np.abs(np.diff(m.both_sides(m.duration / 2000).dv, axis=0)).sum() for m in (calm, sharp)]
    assert changes[0] <= 1.1 * changes[1]


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [20, 100])
def test_fatrop_finds_the_same_time_in_few_iterations(nodes):
    panda = od.robots.panda()
    options = {"nodes": nodes, "scale": {"dtau": 0.3}, "progress": False}
    plans = [od.plan_point_to_point(panda, START, GOAL, solver=s, **options) for s in ("ipopt", "fatrop")]
    assert plans[1].duration == pytest.approx(plans[0].duration, rel=1e-4)
    assert plans[1].info["iterations"] < 120


@pytest.mark.slow
def test_a_start_makes_no_plan_on_a_free_mesh_later():
    """The program has several optima there: from the motion at half the speed it ended 1.6 % later."""
    b = od.RobotBuilder("sliders")
    b.add_link("base")
    for i in range(2):
        b.add_body(f"b{i}", "prismatic", f"b{i - 1}" if i else "base", joint=f"j{i}", mass=1.0, axis=(1.0, 0.0, 0.0))
    robot, g = b.build(), np.random.default_rng(1)
    goal, sizes = g.uniform(0.3, 1.5, 2), {"v": (0.5, 2), "dv": (2, 8), "d2v": (20, 80), "d3v": (300, 900)}
    limits = od.Limits(robot.coordinate_names, **{k: g.uniform(*x, 2) for k, x in sizes.items()})
    options = {"limits": limits, "nodes": 9, "check": "raise", "progress": False, "refinements": 0}
    slow = od.plan_point_to_point(robot, [0, 0], goal, scale={"v": 0.5, "dv": 0.5}, **options)
    alone = od.plan_point_to_point(robot, [0, 0], goal, mesh="free", **options)
    started = od.plan_point_to_point(robot, [0, 0], goal, mesh="free", initial=slow, **options)
    assert started.duration <= alone.duration * (1 + 1e-6)
    assert len(started.info["tries"]) > len(alone.info["tries"])
    assert started.info["iterations"] == sum(x[2] for x in started.info["tries"])


@pytest.mark.slow
def test_a_second_start_on_a_free_mesh_may_run_out_of_time(monkeypatch):
    """What the first one found is given, then; an error only where neither found a motion."""
    searched, found = search._searched, []

    def once(task, settings, solver, initial):
        if found:
            raise od.SolveError("late", "time_limit")
        found.append(searched(task, settings, solver, initial))
        return found[0]

    start = arm_plan()
    monkeypatch.setattr(search, "_searched", once)
    assert arm_plan(mesh="free", initial=start).duration == found[0][0].duration
    with pytest.raises(od.SolveError, match="late"):
        arm_plan(mesh="free", initial=start)


def test_torques_without_limits_are_not_looked_at_while_searching(monkeypatch):
    looked, counted = [], search.report

    def noted(*arguments, **options):
        told = counted(*arguments, **options)
        looked.append([row.quantity for row in told.rows])
        return told

    monkeypatch.setattr(search, "report", noted)
    motion = od.plan_point_to_point(od.robots.panda(), START, GOAL, nodes=12, ignore=("tau", "dtau"), progress=False)
    assert looked == [["q", "v", "dv", "d2v"]]
    assert (motion.info["shares"]["tau"], motion.info["shares"]["dtau"]) == (0.0, 0.0)
    assert [row.quantity for row in motion.check().rows] == ["q", "v", "dv", "d2v", "tau", "dtau"]


def failing(monkeypatch, statuses):
    """Names of the solvers that are run; of fatrop the first runs end with these statuses."""
    names, left = [], list(statuses)

    def solve(assembly, name, *rest):
        names.append(name)
        found = solvers.solve(assembly, name, *rest)
        return replace(found, status=left.pop(0), success=False) if left and name == "fatrop" else found

    monkeypatch.setattr(search, "solve", solve)
    return names


def test_ipopt_goes_on_where_fatrop_fails(monkeypatch):
    expected = arm_plan().duration
    names = failing(monkeypatch, ["1"])
    motion = arm_plan(solver="fatrop", solver_options={})
    assert names == ["fatrop"] + ["ipopt"] * (len(names) - 1)
    tries = [x[:2] for x in motion.info["tries"]]
    assert tries[:2] == [["start", "1"], ["ipopt instead", "Solve_Succeeded"]]
    assert motion.info["solver"] == "ipopt"
    assert motion.info["iterations"] == sum(x[2] for x in motion.info["tries"])
    assert motion.duration == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("status, options", [("time_limit", {}), ("Maximum_Iterations_Exceeded", {"max_iter": 80})])
def test_ipopt_does_not_go_on_where_time_or_iterations_asked_for_ran_out(monkeypatch, status, options):
    names = failing(monkeypatch, [status] * 2)
    with pytest.raises(od.SolveError) as told:
        arm_plan(solver="fatrop", solver_options=options)
    assert told.value.status == status
    assert set(names) == {"fatrop"}


@pytest.mark.slow
def test_a_plan_that_fatrop_fails_on_is_that_of_ipopt():
    """With 200 pieces it stops beside the optimum, with status 1, by either of its options."""
    panda, goal = od.robots.panda(), ENDS["across"]
    options = {"nodes": 200, "scale": {"dtau": 0.3}, "progress": False, "refinements": 0, "check": "off"}
    plans = [od.plan_point_to_point(panda, *goal, solver=s, **options) for s in ("ipopt", "fatrop")]
    assert plans[1].duration == pytest.approx(plans[0].duration, rel=2e-4)


@pytest.mark.slow
def test_fatrop_ends_with_400_pieces():
    """It took 218 iterations, most of them in steps that its regularisation kept small."""
    panda = od.robots.panda()
    options = {"nodes": 400, "scale": {"dtau": 0.3}, "progress": False, "refinements": 0, "check": "off"}
    plans = [od.plan_point_to_point(panda, START, GOAL, solver=s, **options) for s in ("ipopt", "fatrop")]
    assert plans[1].duration == pytest.approx(plans[0].duration, rel=1e-4)
    assert plans[1].info["iterations"] < 150
