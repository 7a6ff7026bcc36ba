"""Kinematic plans with joints apart: the optimum of the program that has them together, times with gaps, failures."""

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import Limits, SolveError
from oc_dyn.planning import common_time, joint_program, separate_joints
from oc_dyn.planning.joint_blocks import Factor, blocks
from oc_dyn.planning.joint_program import Joints, solve
from oc_dyn.planning.separate_joints import NAME
from oc_dyn.study.cases import robots

plan = od.plan_point_to_point
START = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
GOAL = np.array([1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6])
SEEDS = range(20)  # of motions with speeds at both ends
TOGETHER = {"solver_options": {"max_iter": 500}}  # asks for ipopt


def sliders(n):
    b = od.RobotBuilder("sliders")
    b.add_link("base")
    for i in range(n):
        b.add_body(f"b{i}", "prismatic", f"b{i - 1}" if i else "base", joint=f"j{i}", mass=1.0, axis=(1.0, 0.0, 0.0))
    return b.build()


def random_task(seed, speeds, continuity=None, most=14):
    """(robot, start, goal, options): dof 1 to most, some limits unequal, some not there, some ranges close."""
    g = np.random.default_rng(seed)
    n, c = int(g.integers(1, most + 1)), int(g.choice([2, 3, 4]))
    c = continuity or c
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


@pytest.mark.few(12)
@pytest.mark.sample(1)
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
@pytest.mark.parametrize("continuity, nodes", [(2, 400), (3, 400), (4, 100)])
def test_long_horizons_come_near_to_the_least_time(continuity, nodes):
    motion = plan(od.robots.panda(), START, GOAL, continuity=continuity, nodes=nodes, ignore=("tau", "dtau"))
    assert motion.info["solver"] == NAME
    assert 0.92896 <= motion.duration <= 0.92896 * (1 + 1.2 * continuity / nodes)  # of seven phases
    assert motion.check().worst <= 1 + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [200, 400, 800])
@pytest.mark.parametrize("seed", range(3))
def test_rounding_stops_no_joint_on_fine_pieces(seed, nodes):
    """In blocks of more than 8 pieces it did, and ipopt went on, after some 150 iterations in vain."""
    robot = od.robots.panda()
    low, high = Limits.of(robot).bounds("q")
    start, goal = low + (high - low) * np.random.default_rng(seed).uniform(0.2, 0.8, (2, 7))
    motion = plan(robot, start, goal, continuity=3, nodes=nodes, ignore=("tau", "dtau"), check="off")
    assert motion.info["solver"] == NAME
    assert motion.info["iterations"] < 40


@pytest.mark.sample(1)
@pytest.mark.parametrize("smoothing", [0.0, 1e-5, 1e-2])
@pytest.mark.parametrize("continuity", [2, 3, 4, 5])
def test_smoothing_weighs_the_same_and_no_time_is_later(continuity, smoothing):
    """From 1e-2 on the duration depends on what smoothing is weighed against."""
    for seed in (1, 2):
        robot, start, goal, options = random_task(100 + seed, False, continuity, most=3)
        options |= {"smoothing": smoothing, "nodes": 14, "check": "off"}
        apart, together = plan(robot, start, goal, **options), plan(robot, start, goal, **options, **TOGETHER)
        assert apart.info["solver"] == (NAME if continuity < 5 else "ipopt")
        assert apart.duration == pytest.approx(together.duration, rel=1e-4)


@pytest.mark.sample(1)
@pytest.mark.parametrize("nodes, way, smoothing", [(20, 22.469, 1e-5), (20, 1.0, 1e-5), (20, 22.469, 0), (100, 1.0, 0)])
def test_success_is_an_optimum_from_continuity_5_on(nodes, way, smoothing):
    """Rounding ended the method of joints apart at times up to 7 % later, with success."""
    options = {"limits": Limits(("j0",), dv=19.84), "continuity": 5, "nodes": nodes, "smoothing": smoothing}
    times = [plan(sliders(1), [0], [way], check="off", **options, **how).duration for how in ({}, TOGETHER)]
    assert times[0] == pytest.approx(times[1], rel=1e-4)


def test_success_is_an_optimum_with_continuity_4():
    """One whose limits differ by 1e9: joints apart ended 0.7 % late."""
    sides = ([-883.75781866], [202.87469265])
    limits = Limits(("j0",), q=([-1e-9], [0.28956971]), v=4.52954865, dv=16.06511571, d2v=sides)
    motion = plan(sliders(1), [0], [0.28956971], limits=limits, continuity=4, nodes=20, smoothing=0)
    assert motion.info["solver"] == NAME
    assert motion.duration == pytest.approx(0.383395, rel=1e-5)


def test_a_motion_that_is_not_the_best_is_no_success(monkeypatch):
    """Where steps of Newton's method are wrong, slacks may vanish all the same: what says so is a derivative."""
    made = blocks(4, 20, (4, 4))
    limits = 9 * np.ones((1, 5))
    joints = Joints(made, np.zeros((1, 4)), np.eye(1, 4), -limits, limits, np.ones(1), np.zeros(1))
    assert solve(joints, np.ones(1), 1.0, "time", shared=True).success.all()
    monkeypatch.setattr(joint_program, "Factor", lambda made, M: Factor(made, M * np.linspace(1, 3, M.shape[-1])))
    assert not solve(joints, np.ones(1), 1.0, "time", shared=True).success.any()


@pytest.mark.slow
def test_the_common_time_is_found_in_few_looks(monkeypatch):
    """By Newton's method between a time that is too short and one that is not; by halving alone they are 47."""
    looks, at = [], common_time.Search.at
    monkeypatch.setattr(common_time.Search, "at", lambda self, t: looks.append(t) or at(self, t))
    for seed in range(5):
        robot, start, goal, options = random_task(seed, speeds=True, continuity=3, most=4)
        assert plan(robot, start, goal, **options).info["solver"] == NAME
    assert len(looks) <= 38


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


@pytest.mark.sample(1)
@pytest.mark.parametrize("ends, least", [
    ({"v_start": [0.02] * 7}, 0.88058), ({"v_start": [0.2] * 7, "v_goal": [0.2] * 7}, 0.81820),
    ({"dv_start": [0.5] * 7}, 0.88294),
])  # fmt: skip
def test_times_are_found_where_velocities_have_no_limit(ends, least):
    motion = plan(od.robots.panda(), START, GOAL, ignore=("v", "tau", "dtau"), check="off", **ends)
    assert motion.info["solver"] == NAME
    assert motion.duration == pytest.approx(least, rel=2e-5)


@pytest.mark.sample(4)
@pytest.mark.parametrize("fastest", [np.inf, 1000.0])
@pytest.mark.parametrize("speed", [1e-6, 0.01, -0.01, 2.0])
def test_a_slow_start_is_far_from_the_limits(fastest, speed):
    limits = Limits(("j0",), v=fastest, dv=5.0)
    motion = plan(sliders(1), [0], [1], limits=limits, continuity=2, v_start=[speed], check="off")
    assert motion.info["solver"] == NAME
    least = (-speed + np.sqrt(speed**2 / 2 + 5)) / 5 * 2 - -speed / 5  # full speed, then full stop
    assert least <= motion.duration <= 1.03 * least


def test_what_the_search_does_not_find_the_coupled_program_decides(monkeypatch):
    """The search sees some times alone, so that it cannot tell that there is none."""
    monkeypatch.setattr(separate_joints, "_span", lambda joints: (1e-3, 2e-3))
    limits = Limits(("j0",), dv=5.0)
    motion = plan(sliders(1), [0], [1], limits=limits, continuity=2, v_start=[0.01], check="off")
    assert motion.duration == pytest.approx(0.91079, rel=1e-4)
    assert [x[:2] for x in motion.info["tries"]] == [[NAME, "infeasible"], ["start", "Solve_Succeeded"]]


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
    assert first.info["tries"] == [[NAME, "Solve_Succeeded", first.info["iterations"]]]
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


def test_rounding_hides_no_time_from_a_search_with_speeds():
    """Joints with much room ended in rounding, as if they had no time: the motion took 1.07 s."""
    robot, start, goal, options = random_task(1026, speeds=True, continuity=2)
    assert plan(robot, start, goal, **options).duration < 0.67


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.sample("2")
@pytest.mark.parametrize("seed", SEEDS)
def test_more_pieces_make_no_time_later(seed):
    """Where rounding hid the least factor of the limits, times were passed over, up to the twentyfold."""
    robot, g = robots.robot("panda"), np.random.default_rng(seed)
    limits, (start, goal) = robots.limits(robot), robots.ends(robot, (22, seed))
    v = {f"v_{end}": 0.6 * g.uniform(-1, 1, 7) * (g.random(7) < 0.7) for end in ("start", "goal")}
    options = {"limits": limits, "ignore": ("tau", "dtau"), "refinements": 0, "check": "off", "continuity": 4}
    few, many = (plan(robot, start, goal, nodes=N, **options, **v) for N in (24, 80))
    assert many.duration < 1.002 * few.duration


def test_a_search_begins_near_the_least_time():
    """From a time in which there is room to all limits the first steps went far below the least time, and back."""
    counts = []
    for nodes in (20, 50):
        motion = plan(od.robots.panda(), START, GOAL, nodes=nodes, ignore=("tau", "dtau"))
        assert motion.info["solver"] == NAME
        counts.append(motion.info["iterations"])
    assert sum(counts) <= 31  # 26; 38 from there


def test_factors_solve_for_several_right_hand_sides():
    made = blocks(4, 23, (3, 4))
    g = np.random.default_rng(5)
    factor = Factor(made, g.uniform(0.5, 2.0, (3, *made.rows.shape)) * made.rows)
    rows = g.normal(size=(2, 3, *made.rows.shape)) * made.rows
    both = factor.solve(rows)
    assert both == pytest.approx(np.array([factor.solve(x) for x in rows]), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("quantity, continuity", [("v", 3), ("dv", 3), ("d2v", 3), ("d3v", 3)])
def test_ways_that_limits_of_zero_forbid(quantity, continuity):
    """A limit of zero along the way, or on either side of what has to be both."""
    sizes = {"v": 1.0, "dv": 5.0, "d2v": 50.0, "d3v": 900.0}
    limits = Limits(("j0",), **sizes | {quantity: ([-1.0], [0.0])})
    with pytest.raises(od.LimitError, match=f"limits {quantity} of -1 to 0 do not allow"):
        plan(sliders(1), [0], [0.5], limits=limits, continuity=continuity, nodes=12)
