"""Kinematic plans with joints apart: the optimum of the program that has them together, times with gaps, failures."""


import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import Limits, SolveError
from oc_dyn.planning.joint_blocks import Factor, blocks
from oc_dyn.planning.separate_joints import NAME

plan = od.plan_point_to_point
START = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
GOAL = np.array([1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6])
TOGETHER = {"solver_options": {"max_iter": 500}}  # asks for ipopt


def sliders(n):
    b = od.RobotBuilder("sliders")
    b.add_link("base")
    for i in range(n):
        b.add_body(f"b{i}", "prismatic", f"b{i - 1}" if i else "base", joint=f"j{i}", mass=1.0, axis=(1.0, 0.0, 0.0))
    return b.build()


def random_task(seed, speeds):
    """(robot, start, goal, options): dof 1 to 14, some limits unequal, some not there, some ranges close."""
    g = np.random.default_rng(seed)
    n, c = int(g.integers(1, 15)), int(g.choice([2, 3, 4]))
    robot = sliders(n)
    start = g.uniform(-1, 1, n)
    goal = start + g.choice([1.0, 0.1, 2.0], n) * g.uniform(0.2, 1, n) * g.choice([-1, 1], n)
    values = {}
    for order, name in enumerate(("v", "dv", "d2v", "d3v")[: c + 1], 1):
        size = 10 ** (0.2 + 0.75 * order + g.uniform(-0.3, 0.3, n))
        size[(g.random(n) < 0.2) & (order != 2)] = np.inf
        values[name] = (-size * np.where(g.random(n) < 0.3, 0.7, 1.0), size)
    room = np.where(g.random(n) < 0.3, 0.02, 5.0)
    options = {"continuity": c, "nodes": int(g.choice([10, 16, 23, 40])), "check": "raise"}
    if speeds:
        options |= {"v_start": g.uniform(-0.3, 0.3, n), "v_goal": g.uniform(-0.3, 0.3, n), "nodes": 30}
        room = np.full(n, 5.0)
    values["q"] = (np.minimum(start, goal) - room, np.maximum(start, goal) + room)
    return robot, start, goal, {**options, "limits": Limits(robot.coordinate_names, **values)}


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(36))
def test_the_optimum_is_that_of_all_joints_together(seed):
    robot, start, goal, options = random_task(seed, speeds=seed % 3 == 2)
    apart = plan(robot, start, goal, **options)
    together = plan(robot, start, goal, **options, **TOGETHER)
    assert apart.info["solver"] == NAME
    assert together.info["solver"] == "ipopt"
    assert apart.duration <= together.duration * (1 + 1e-4)
    if seed % 3 != 2:  # with speeds at the ends ipopt ends in any of several
        assert apart.duration == pytest.approx(together.duration, rel=1e-4)
        assert (
            np.abs(apart.sample([0.4 * apart.duration]).q - together.sample([0.4 * together.duration]).q).max() < 0.02
        )
    assert apart.check().worst <= 1 + 1e-7
    assert apart.q[[0, -1]] == pytest.approx(np.array([start, goal]), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("continuity, nodes", [(2, 400), (3, 400), (4, 200), (5, 50)])
def test_long_horizons_come_near_to_the_least_time(continuity, nodes):
    motion = plan(od.robots.panda(), START, GOAL, continuity=continuity, nodes=nodes, ignore=("tau", "dtau"))
    assert motion.info["solver"] == NAME
    assert 0.92896 <= motion.duration <= 0.92896 * (1 + 1.2 * continuity / nodes)  # of seven phases
    assert motion.check().worst <= 1 + 1e-6


# -- times with gaps ---------------------------------------------------------------------------------------------


def passing(way, nodes=60, **options):
    """Joint j0 from rest to rest over a way, j1 passes 0.3 at a speed of 1: within 0.368 s, or not before 1.633 s."""
    limits = Limits(("j0", "j1"), v=np.array([9.0, 1.2]), dv=2.0)
    return plan(
        sliders(2),
        [0, 0],
        [way, 0.3],
        limits=limits,
        continuity=2,
        nodes=nodes,
        v_start=[0, 1],
        v_goal=[0, 1],
        **options,
    )


def test_a_common_time_before_the_gap_is_found():
    alone = 2 * np.sqrt(0.05 / 2)
    assert alone <= passing(0.05).duration <= 1.02 * alone


@pytest.mark.parametrize("way", [0.1, 1.0])
def test_a_time_in_the_gap_of_one_joint_is_none(way):
    """j0 could be there in 0.447 or 1.414 s; j1 has to stop, go back and come again."""
    after = 1 + np.sqrt(0.4)
    assert after <= passing(way).duration <= 1.05 * after


def test_after_the_gap_the_slower_joint_decides():
    alone = 2 * np.sqrt(2.0 / 2)
    assert alone <= passing(2.0).duration <= 1.02 * alone


# -- what is told, and what goes another way -----------------------------------------------------------------------


@pytest.mark.slow
def test_solvers_that_are_asked_for_are_used():
    robot, start, goal, options = random_task(3, speeds=False)
    for how in ({"mesh": "free"}, {"hessian": "limited_memory"}, {"solver_options": {"tol": 1e-8}}):
        motion = plan(robot, start, goal, **options | {"nodes": 12, "continuity": 2, "check": "off"} | how)
        assert motion.info["solver"] == "ipopt"


@pytest.mark.slow
def test_a_motion_starts_another_plan():
    robot = od.robots.panda()
    first = plan(robot, START, GOAL, nodes=20, ignore=("tau", "dtau"))
    assert first.info["solver"] == NAME
    second = plan(robot, START, GOAL, nodes=20, scale={"dtau": 0.3}, initial=first)
    assert second.info["solver"] == "ipopt"
    assert second.check().ok(1e-3)


def test_the_limit_of_time_holds():
    robot, start, goal, options = random_task(4, speeds=False)
    with pytest.raises(SolveError) as told:
        plan(robot, start, goal, **options, time_limit=1e-6)
    assert told.value.status == "time_limit"


@pytest.mark.slow
def test_a_joint_that_can_never_keep_its_limits_is_named():
    """It starts at a speed of 1, for which it needs 0.25 to stop, in front of the end of its range at 0.1."""
    limits = Limits(("j0", "j1"), q=([-5, -5], [5, 0.1]), v=2.0, dv=2.0)
    with pytest.raises(SolveError, match="j1") as told:
        plan(sliders(2), [0, 0], [1, 0.05], limits=limits, continuity=2, nodes=30, v_start=[0, 1])
    assert told.value.trajectory is not None


# -- inside ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("r, N, known", [(3, 13, (3, 3)), (4, 50, (3, 4)), (5, 23, (5, 3))])
def test_blocks_solve_what_dense_matrices_solve(r, N, known):
    made, g = blocks(r, N, known), np.random.default_rng(1)
    weight = g.uniform(0.5, 2, (1, *made.rows.shape)) * made.rows
    rows = g.standard_normal(weight.shape) * made.rows
    factor = Factor(made, weight)
    basis = []  # directions that are zero at the ends
    for _ in range(N + r - sum(known)):
        basis.append(factor.solve(g.standard_normal(weight.shape) * made.rows)[0])
    D = np.array([(z @ made.G.T * made.rows).ravel() for z in basis])
    assert np.linalg.matrix_rank(D) == len(basis)
    best = np.linalg.solve(D * weight.ravel() @ D.T, D @ rows.ravel()) @ D
    found = (factor.solve(rows)[0] @ made.G.T * made.rows).ravel()
    assert found == pytest.approx(best, abs=1e-6 * np.abs(best).max())


def test_motions_that_meet_an_end_do():
    made = blocks(4, 30, (4, 3))
    _, z = made.basic
    end = z[:, -1, :4] @ made.A[-1].T + z[:, -1, 4:] @ made.B[-1].T
    assert z[:, 0, :4] == pytest.approx(np.eye(7)[:, :4], abs=1e-12)
    assert end[:, :3] == pytest.approx(np.eye(7)[:, 4:], abs=1e-9)
