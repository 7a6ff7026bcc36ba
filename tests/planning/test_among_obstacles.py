"""Planners among obstacles: the clearance in dense samples by other formulas, refusals by pair and place, starts."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from obstacles import TIP, at, ball, point_robot

import oc_dyn as od
from oc_dyn import shapes
from oc_dyn.planning import sampled_start
from oc_dyn.planning.obstacles import obstacles_of, reduced
from oc_dyn.scene import PORT

A, B = np.array([-1.0, 0.05]), np.array([1.0, -0.02])
CLEARANCE = 0.03
sampled_start_looked = sampled_start._Looked


def planned(scene, robot=None, start=A, goal=B, **how):
    """Motion of the point robot."""
    given = {"continuity": 2, "nodes": 24, "clearance": CLEARANCE, "progress": False} | how
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", od.CheckWarning)
        return od.plan_point_to_point(robot or point_robot(), start, goal, scene=scene, **given)


def apart(motion, centre=(0, 0), radius=0.3):
    """Smallest distance [m] of the tip from a disc, in dense samples."""
    q = motion.sample(motion.duration / 5000).q
    return float((np.linalg.norm(q - centre, axis=1) - radius - TIP).min())


def counted(looked, kind):
    """The kind, of which what is made is kept in a list."""

    def made(*given):
        looked.append(kind(*given))
        return looked[-1]

    return made


def arm():
    """Planar arm of three links with balls on them, and a post."""
    robot = od.robots.planar_arm(3)
    scene = od.Scene()
    for name in ("link2", "link3", "tip"):
        scene = scene.attach(f"ball on {name}", name, shapes.Sphere(0.05))
    ahead = np.array(od.function(robot, "frame_pose", frame="tip")(q=np.zeros(3))["p"]).ravel()
    return robot, scene.add("post", shapes.Sphere(0.12), at(*(0.8 * ahead)))


# -- point to point -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_tip_goes_round_the_disc_in_the_time_that_it_takes_without():
    scene = ball()
    motion, alone = planned(scene), planned(None, clearance=0.0)
    assert apart(alone) < -0.3
    assert apart(motion) > CLEARANCE
    assert motion.duration == pytest.approx(alone.duration, rel=2e-3)  # x needs its time, and y is quicker
    assert motion.info["clearance"]["certified"] >= CLEARANCE
    assert motion.info["clearance"]["nearest"] == "tip - disc"
    assert motion.check(scene=scene, clearance=CLEARANCE).ok()


@pytest.mark.slow
def test_a_way_that_costs_time_is_not_longer_than_it_has_to_be():
    walls = od.Scene().attach("tip", "point", shapes.Sphere(TIP))
    walls = walls.add("wall", shapes.Box(0.2, 3.0, 1.0), at(0, -0.5))  # up to y = 1
    motion, alone = planned(walls, nodes=40), planned(None, clearance=0.0, nodes=40)
    q = motion.sample(1e-3).q
    beside = np.abs(q[:, 0]) < 0.1
    assert q[beside, 1].min() > 1 + TIP + CLEARANCE - 1e-6
    assert motion.duration > alone.duration + 0.1
    # up from rest to rest with v = 1 and dv = 2, across 0.2 at full speed, and down: one that keeps all
    assert motion.duration < (1.08 + 0.5) + 0.2 + (1.15 + 0.5)


def test_a_scene_that_is_not_near_changes_nothing():
    far, none = planned(ball(pose=at(0, 1.5))), planned(None, clearance=0.0)
    assert np.array_equal(far.t, none.t)
    assert np.array_equal(far.pieces, none.pieces)
    assert far.info["clearance"]["certified"] > 0.9


@pytest.mark.parametrize("where, q", [("q_start", (A, B)), ("q_goal", (B, A))])
def test_an_end_in_collision_is_refused_with_pair_and_depth(where, q):
    scene = ball(pose=at(-0.8, 0.05))
    with pytest.raises(od.LimitError, match=f"{where} is in collision: 'tip' and 'disc' overlap by 0.2 m"):
        planned(scene, start=q[0], goal=q[1])
    near = ball(0.08, at(-0.8, 0.05))
    with pytest.raises(od.LimitError, match=r"are 0.02 m apart, 0.03 m wanted"):
        planned(near, start=q[0], goal=q[1])


@pytest.mark.slow
def test_what_blocks_is_named():
    wall = od.Scene().attach("tip", "point", shapes.Sphere(TIP)).add("wall", shapes.Box(0.2, 6.0, 1.0))
    with pytest.raises(od.SolveError, match="'tip' and 'wall'") as failed:
        planned(wall, nodes=12, solver_options={"max_iter": 60})
    assert failed.value.trajectory is not None


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"continuity": 3}, {"continuity": 4, "nodes": 40}, {"mesh": "free"},
                                 {"solver": "fatrop"}])  # fmt: skip
def test_every_kind_of_motion_keeps_the_clearance(how):
    motion = planned(ball(), **how)
    assert apart(motion) > CLEARANCE - 1e-9
    assert motion.check(scene=ball(), clearance=CLEARANCE).ok()


@pytest.mark.slow
def test_speeds_at_the_ends_and_margins():
    scene = ball(margin=0.05)
    motion = planned(scene, v_start=[0.5, 0.0], v_goal=[0.3, 0.2])
    assert apart(motion) > CLEARANCE + 0.05
    assert motion.sample([0.0]).v[0] == pytest.approx([0.5, 0.0], abs=1e-9)


@pytest.mark.slow
def test_the_last_plan_is_a_warm_start():
    first = planned(ball())
    again = planned(ball(), initial=first)
    assert again.info["iterations"] < 0.5 * first.info["iterations"]
    assert again.duration == pytest.approx(first.duration, rel=1e-6)
    other = planned(ball(0.35), initial=first)
    assert apart(other, radius=0.35) > CLEARANCE


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"objective": "effort", "duration": 3.0}])
def test_arms_keep_their_links_off_a_post(how):
    robot, scene = arm()
    limits = od.Limits.of(robot).updated({name: {"v": 2.0, "dv": 6.0, "d2v": 60.0} for name in robot.coordinate_names})
    start, goal = np.array([-0.9, 0.3, 0.3]), np.array([0.9, -0.3, -0.3])
    alone = planned(None, robot, start, goal, continuity=3, clearance=0.0, limits=limits, **how)
    motion = planned(scene, robot, start, goal, continuity=3, clearance=0.02, limits=limits, **how)
    found = od.function(robot, "distances", scene=scene)
    least = [np.array(found.map(2001)(x.sample(np.linspace(0, x.duration, 2001)).q.T)).min() for x in (alone, motion)]
    assert least[0] < 0
    assert least[1] > 0.02 - 1e-9
    assert motion.check(scene=scene, clearance=0.02).ok()


# -- starts -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_a_sampling_planner_ways_lead_through_a_few_points(monkeypatch):
    monkeypatch.setattr(sampled_start, "installed", lambda: False)
    motion = planned(ball())
    assert apart(motion) > CLEARANCE


@pytest.mark.parametrize("ompl", [True, False])
def test_ways_are_free_and_the_same_again(ompl, monkeypatch):
    if ompl:
        pytest.importorskip("ompl")
    monkeypatch.setattr(sampled_start, "installed", lambda: ompl)
    around = obstacles_of("test", point_robot(), ball(), CLEARANCE)
    limits = np.full(2, -2.0), np.full(2, 2.0)
    first, again = ([*sampled_start.ways(around, A, B, limits, 2)] for _ in range(2))
    assert len(first) == 2
    for way, same in zip(first, again, strict=True):
        assert np.array_equal(way, same)
        assert np.array_equal(way[[0, -1]], [A, B])
        between = np.concatenate([a + (b - a) * np.linspace(0, 1, 200)[:, None] for a, b in pairwise(way)])
        assert (np.linalg.norm(between, axis=1) - 0.3 - TIP).min() > CLEARANCE - 2e-3  # looked at every 0.05


def test_the_search_for_a_way_ends_by_a_count(monkeypatch):
    """Whatever the time, the same: a goal that cannot be reached is given up after so many looks."""
    pytest.importorskip("ompl")
    wall = od.Scene().attach("tip", "point", shapes.Sphere(TIP)).add("wall", shapes.Box(0.2, 6.0, 1.0))
    around, box = obstacles_of("test", point_robot(), wall, 0.0), (np.full(2, -2.0), np.full(2, 2.0))
    for checks in (50, 400):
        looked = []
        monkeypatch.setattr(sampled_start, "_Looked", counted(looked, sampled_start_looked))
        assert sampled_start.by_ompl(around, A, B, box, 0, checks) is None
        assert checks <= looked[0].count <= checks + 10


class Maze:
    """Walls across a square, with gaps at its sides in turn, and how many configurations were looked at."""

    def __init__(self, walls, open_=True):
        self.walls, self.open, self.count = walls, open_, 0

    def free(self, q):
        q = np.atleast_2d(q)
        self.count += 1
        out = np.ones(len(q), bool)
        for k, x in enumerate(self.walls):
            gap = (q[:, 1] > 1.4 if k % 2 else q[:, 1] < -1.4) & self.open
            out &= (np.abs(q[:, 0] - x) > 0.1) | gap
        return out


@pytest.mark.slow
def test_trees_of_our_own_find_a_way_through_a_maze():
    start, goal, box = np.array([-1.8, 0.0]), np.array([1.8, 0.0]), (np.full(2, -2.0), np.full(2, 2.0))
    maze = Maze([-0.8, 0.0, 0.8])
    assert sampled_start.detours(maze, start, goal, box, 2) == []
    way, again = (sampled_start.by_trees(maze, start, goal, box, 1, 4000) for _ in range(2))
    assert np.array_equal(way, again)
    assert np.array_equal(way[[0, -1]], [start, goal])
    between = np.concatenate([a + (b - a) * np.linspace(0, 1, 200)[:, None] for a, b in pairwise(way)])
    assert Maze([-0.8, 0.0, 0.8]).free(between).mean() > 0.99  # looked at every 0.05
    closed = Maze([0.0], open_=False)
    assert sampled_start.by_trees(closed, start, goal, box, 0, 300) is None
    assert closed.count < 1500  # some looks a line


def test_pairs_of_a_part_of_a_scene_keep_their_order_and_distances():
    robot, scene = arm()
    names = ("link1", "link2", "link3")
    scene = scene.attach(names[1], names[2], shapes.Sphere(0.02))  # called as another's link
    q = np.array([0.2, -0.3, 0.5])
    every = np.array(od.function(robot, "distances", scene=scene)(q)).ravel()
    rng = np.random.default_rng(0)
    for _ in range(5):
        kept = rng.random(len(scene.pairs)) < 0.4
        part = reduced(scene, kept)
        assert len(part.pairs) == kept.sum()
        if kept.any():
            assert np.array(od.function(robot, "distances", scene=part)(q)).ravel() == pytest.approx(every[kept])


# -- along paths --------------------------------------------------------------------------------------------------


def test_a_path_in_collision_is_refused_with_pair_and_place():
    robot, way = point_robot(), np.array([[-1, 0.0], [0, 0.0], [1, 0.1]])
    with pytest.raises(od.LimitError, match=r"at s = 0.\d+ 'tip' and 'disc' overlap by 0.\d+ m"):
        od.plan_along_path(robot, way, scene=ball(), clearance=CLEARANCE, check="off", ignore=("tau", "dtau"))


@pytest.mark.slow
def test_a_path_that_is_just_too_near_is_refused_by_the_proof():
    near = 0.3 + TIP + CLEARANCE - 1e-4
    way = np.array([[-1, near], [1, near]])
    with pytest.raises(od.LimitError, match="'tip' and 'disc' are 0.0299 m apart"):
        od.plan_along_path(point_robot(), way, scene=ball(), clearance=CLEARANCE, check="off")


@pytest.mark.slow
def test_a_path_that_is_free_is_planned_as_without():
    way = np.array([[-1, 0.5], [0, 0.6], [1, 0.5]])
    motion = od.plan_along_path(point_robot(), way, scene=ball(), clearance=CLEARANCE, check="off", nodes=30)
    same = od.plan_along_path(point_robot(), way, check="off", nodes=30)
    assert np.array_equal(motion.law, same.law)
    assert motion.info["clearance"]["certified"] > CLEARANCE


# -- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scene, clearance, text",
    [
        (None, 0.1, "give scene="),
        ("table", 0.1, "expected an od.Scene"),
        (od.Scene(), 0.0, "no pair"),
        (ball(pose=PORT), 0.0, "come in at a port"),
            (ball(), "wide", "clearance"),
    ],
)
def test_scenes_that_do_not_fit_are_refused(scene, clearance, text):
    robot, way = point_robot(), np.array([A, B])
    given = {"scene": scene, "clearance": clearance}
    for plan in (
        lambda: od.plan_point_to_point(robot, A, B, **given),
        lambda: od.plan_along_path(robot, way, **given),
        lambda: od.inverse_kinematics(robot, "point", p=[0, 1, 0], **given),
    ):
        with pytest.raises(od.ShapeError, match=text):
            plan()


def test_links_that_there_are_not_are_refused():
    scene = ball().attach("hand", "wrist", shapes.Sphere(0.1))
    with pytest.raises(od.UnknownName, match="wrist"):
        od.plan_point_to_point(point_robot(), A, B, scene=scene)
