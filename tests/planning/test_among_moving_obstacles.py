"""Planners among obstacles that move: times known in closed form, distances by other formulas, refusals, attacks."""

import warnings

import casadi as ca
import numpy as np
import pytest
from obstacles import TIP, at, line, point_robot

import oc_dyn as od
from oc_dyn import shapes
from oc_dyn.planning.moving_obstacles import from_then_on, frozen, passage, still_part
from oc_dyn.planning.obstacles import obstacles_of

V, A = 1.0, 2.0  # limits of the joints


def slider():
    """A point on a prismatic joint."""
    b = od.RobotBuilder("slider", gravity=(0, 0, 0))
    b.add_link("base")
    b.add_link("point", 1.0)
    b.add_joint(
        "x", "prismatic", "base", "point", axis=(1, 0, 0), lower=-3, upper=3, velocity=V, acceleration=A, effort=10
    )
    return b.build()


def tip():
    return od.Scene().attach("tip", "point", shapes.Sphere(TIP))


def crossing(begin, speed=0.5, radius=0.3):
    """A ball that crosses the way along y; y at the start."""
    return tip().add("ball", shapes.Sphere(radius), line((0, begin, 0), (0, speed, 0)))


def behind(begin, goal, speed=0.5, radius=0.3):
    """Least time in which a point gets to x = goal behind a ball that crosses at x = 0: at full speed past the boundary
    x^2 + y(t)^2 = r^2 of what is hit, along a tangent, and braking to rest. Known where there is room to run up."""
    r = radius + TIP
    return -begin / speed + (goal + r * np.sqrt(1 + (V / speed) ** 2)) / V + V / A / 2


def planned(robot, scene, start, goal, **how):
    given = {"continuity": 2, "nodes": 40, "progress": False} | how
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", od.CheckWarning)
        return od.plan_point_to_point(robot, start, goal, scene=scene, **given)


def along_path(robot, scene, path, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", od.CheckWarning)
        return od.plan_along_path(robot, path, scene=scene, **({"nodes": 40} | how))


def nearest(motion, scene):
    """Smallest distance [m] in dense samples, by numbers."""
    t = np.linspace(0, motion.duration, 4001)
    return od.scene.exact_distances(motion.robot, scene, motion.sample(t).q, t).min()


# -- known answers ------------------------------------------------------------------------------------------------


def test_a_point_waits_for_a_ball_in_the_known_time():
    scene = crossing(-0.6)
    motion, alone = planned(slider(), scene, [-1.5], [1.0]), planned(slider(), None, [-1.5], [1.0])
    assert nearest(alone, scene) < -0.1
    assert behind(-0.6, 1.0) > 2.5 / V + V / A
    assert 1.0 <= motion.duration / behind(-0.6, 1.0) < 1.02  # equal pieces do not switch where they should
    assert nearest(motion, scene) > 0
    assert motion.info["clearance"]["certified"] >= 0
    assert motion.check(scene=scene).ok()


@pytest.mark.slow
def test_more_pieces_come_nearer_to_the_known_time():
    off = [planned(slider(), crossing(-0.6), [-1.5], [1.0], nodes=n).duration - behind(-0.6, 1.0) for n in (20, 40, 80)]
    assert min(off) > 0
    assert off[2] < 0.6 * off[1]
    assert off[1] < 0.6 * off[0]


@pytest.mark.parametrize("begin", [0.45, -3.0])
def test_what_has_passed_or_comes_later_changes_nothing(begin):
    alone = planned(slider(), None, [-1.5], [1.0])
    assert planned(slider(), crossing(begin), [-1.5], [1.0]).duration == alone.duration


@pytest.mark.slow
def test_along_a_path_the_point_waits_in_the_known_time():
    scene = crossing(-0.6)
    motion = along_path(slider(), scene, [[-1.5], [1.0]], nodes=60)
    assert 1.0 <= motion.duration / behind(-0.6, 1.0) < 1.01
    assert nearest(motion, scene) > 0
    assert motion.check(scene=scene).ok()
    alone = along_path(slider(), None, [[-1.5], [1.0]], nodes=60)
    assert along_path(slider(), crossing(-3.0), [[-1.5], [1.0]], nodes=60).duration == alone.duration


@pytest.mark.slow
def test_a_gate_opens_at_a_known_time():
    """A bar of 8 m across the way that is drawn aside at 1 m/s leaves it free after 4 m and the tip."""
    t, C = ca.SX.sym("t"), ca.SX([[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
    C[1, 3] = t
    scene = tip().add("gate", shapes.Capsule(0.1, 8.0), ca.Function("gate", [t], [C]))
    motion = planned(point_robot(), scene, [-1, 0.02], [1, 0], nodes=24, clearance=0.02)
    t = np.linspace(0, motion.duration, 2001)
    x, y = motion.sample(t).q.T
    beside = y > -4 + t
    assert np.abs(x[beside]).min() > 0.1 + TIP + 0.02 - 1e-6
    assert nearest(motion, scene) >= 0.02
    assert motion.duration > 2.5  # it goes to meet the end of the bar


@pytest.mark.slow
def test_moving_obstacles_are_passed_in_front_where_that_is_quicker():
    """In the plane there is room in front of the ball, which costs no time, as y is quicker."""
    scene = crossing(-0.6)
    motion = planned(point_robot(), scene, [-1, 0.02], [1, 0], nodes=24, clearance=0.02)
    alone = planned(point_robot(), None, [-1, 0.02], [1, 0], nodes=24)
    assert motion.duration == pytest.approx(alone.duration, rel=2e-3)
    assert nearest(motion, scene) >= 0.02


# -- kinds of motions ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        {"continuity": 3},
        {"mesh": "free"},
        {"solver": "fatrop"},
        {"objective": "effort", "duration": 4.0},
        {"v_start": [1.5, 0.0]},
        {"v_start": [0.5, 0.0], "v_goal": [0.3, 0.2]},
    ],
)
def test_every_kind_of_motion_keeps_the_clearance(how):
    scene = crossing(-0.6)
    motion = planned(point_robot(), scene, [-1, 0.02], [1, 0], nodes=24, clearance=0.02, check="off", **how)
    assert nearest(motion, scene) >= 0.02 - 1e-6
    assert motion.info["clearance"]["certified"] >= 0.02 - 1e-6
    assert nearest(planned(point_robot(), None, [-1, 0.02], [1, 0], nodes=24, check="off", **how), scene) < 0


@pytest.mark.slow
def test_among_what_moves_and_what_stands():
    scene = tip().add("ball", shapes.Sphere(0.3), line((0.3, -0.6, 0), (0, 0.5, 0)))
    scene = scene.add("post", shapes.Sphere(0.3), at(-0.4, -0.1))
    motion = planned(point_robot(), scene, [-1, 0.02], [1, 0], nodes=24, clearance=0.02)
    assert nearest(motion, scene) >= 0.02 - 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"continuity": 3}, {"stops": [1]}])
def test_paths_of_every_kind(how):
    scene, path = crossing(-0.6), [[-1, 0], [-0.5, 0.2], [1, 0]]
    motion = along_path(point_robot(), scene, path, clearance=0.02, check="off", nodes=30, **how)
    assert nearest(motion, scene) >= 0.02 - 1e-6
    s = motion.shares(motion.t)[0]
    assert (np.diff(s) >= -1e-9).all()


# -- refusals and attacks -----------------------------------------------------------------------------------------


def test_ends_are_looked_at_when_the_robot_is_there():
    onto_start = tip().add("ball", shapes.Sphere(0.3), line((-1.5, 0, 0), (0, 0.5, 0)))
    with pytest.raises(od.LimitError, match="q_start is in collision: 'tip' and 'ball' overlap"):
        planned(slider(), onto_start, [-1.5], [1.0])
    off_goal = tip().add("ball", shapes.Sphere(0.3), line((1.0, 0, 0), (0, 1, 0)))
    assert nearest(planned(slider(), off_goal, [-1.5], [1.0]), off_goal) > 0
    onto_goal = tip().add("ball", shapes.Sphere(0.3), line((1.0, -4, 0), (0, 1, 0)))
    with pytest.raises(od.LimitError, match="q_goal is in collision: 'tip' and 'ball' overlap by 0.4 m"):
        planned(slider(), onto_goal, [-1.5], [1.0], objective="effort", duration=4.0)
    with pytest.raises(od.LimitError, match="at s = 0 'tip' and 'ball' overlap"):
        along_path(slider(), onto_start, [[-1.5], [1.0]])


def test_a_robot_that_may_not_move_is_not_left_to_be_hit():
    limits = od.Limits.of(slider()).scaled(v=0.0)
    how = {"objective": "effort", "duration": 3.0, "limits": limits}
    with pytest.raises(od.LimitError, match="no joint may move, and 'tip' and 'ball' overlap by 0.4 m at 1.2 s"):
        planned(slider(), crossing(-0.6), [0.0], [0.0], **how)
    assert planned(slider(), crossing(-4.0), [0.0], [0.0], **how).info["clearance"]["certified"] > 1


@pytest.mark.slow
@pytest.mark.parametrize("speed", [20.0, 200.0])
def test_what_is_too_fast_for_the_pieces_is_never_overlooked(speed):
    """It passes between two nodes: found or refused, not planned through."""
    scene = tip().add("shot", shapes.Sphere(0.05), line((0, -1.29 * speed, 0), (0, speed, 0)))
    try:
        motion = planned(slider(), scene, [-1.0], [1.0], nodes=20)
    except od.SolveError as error:
        assert "'tip' and 'shot'" in str(error)
        return
    assert motion.clearance(scene).certified >= -1e-6


def test_what_never_leaves_is_named():
    with pytest.raises(od.SolveError, match="'tip' and 'ball' overlap .* no time was found at which the path is free"):
        along_path(slider(), crossing(0.0, 1e-9), [[-1.0], [1.0]])


@pytest.mark.slow
def test_what_never_leaves_is_named_point_to_point():
    with pytest.raises(od.SolveError, match="'tip' and 'ball'"):
        planned(slider(), crossing(0.0, 1e-9), [-1.0], [1.0], nodes=10, solver_options={"max_iter": 20})


# -- parts ----------------------------------------------------------------------------------------------------------


def test_scenes_seen_later_frozen_and_still():
    robot, q = slider(), np.array([[0.3]])
    around = obstacles_of("here", robot, crossing(-0.6).add("post", shapes.Sphere(0.1), at(2)), 0.0)
    assert from_then_on(around, 0.7).distances(q, 0.2) == pytest.approx(around.distances(q, 0.9))
    assert frozen(around, 0.9).distances(q) == pytest.approx(around.distances(q, 0.9))
    assert not frozen(around, 0.9).scene.timed
    assert list(around.timed) == [True, False]
    still = still_part(around)
    assert still.distances(q) == pytest.approx(around.distances(q)[:, 1:])
    assert still_part(obstacles_of("here", robot, crossing(-0.6), 0.0)) is None


@pytest.mark.parametrize("back", [True, False])
def test_a_passage_is_free_in_every_cell(back):
    around = obstacles_of("here", slider(), crossing(-0.6), 0.0)
    t, s = passage(around, lambda s: -1.5 + 2.5 * s[:, None], 2.0, back)
    assert (s[0], s[-1]) == (0, 1)
    assert around.distances(-1.5 + 2.5 * s[:, None], t).min() >= 0
    assert np.abs(np.diff(s)).max() < 1.001 / 47
    assert back or (np.diff(s) >= 0).all()
