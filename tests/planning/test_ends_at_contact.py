"""Plans among obstacles whose starts and goals just keep what is wanted, by exact distances."""

import warnings

import numpy as np
import pytest
from obstacles import TIP, at, ball, line, point_robot

import oc_dyn as od
from oc_dyn import shapes
from oc_dyn.planning.clearance import KEPT
from oc_dyn.planning.obstacles import obstacles_of


def planned(scene, start, goal, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", od.CheckWarning)
        return od.plan_point_to_point(
            point_robot(), start, goal, scene=scene, continuity=2, nodes=24, progress=False, **how
        )


def on_table(height):
    """A cylinder so far above a box of 5 m, whose distances are smoothed by more than 2 mm; the tip's y then."""
    scene = od.Scene().attach("tip", "point", shapes.Cylinder(TIP, 0.1))
    return scene.add("table", shapes.Box(5, 1, 1), at(0, -1)), -0.5 + TIP + height


@pytest.mark.slow
@pytest.mark.parametrize("height", [0.002, 0.0])
def test_an_end_is_judged_by_the_exact_distance(height):
    scene, y = on_table(height)
    around = obstacles_of("here", point_robot(), scene, 0.0)
    q = np.array([[-1.0, y], [-1.0, y - 1e-4 - height]])
    assert around.missing(q)[0, 0] > height / 10  # as smoothed, it overlaps
    assert around.lacking(q).ravel() == pytest.approx([-height, 1e-4], abs=1e-6)
    assert list(around.free(q, within=KEPT)) == [True, False]
    around.refuse("start", q[0])
    with pytest.raises(od.LimitError, match=r"overlap by 0.0001 m"):
        around.refuse("start", q[1])


@pytest.mark.slow
@pytest.mark.parametrize("height", [0.002, 0.0])
def test_a_plan_begins_and_ends_nearer_than_smoothing_tells(height):
    scene, y = on_table(height)
    motion = planned(scene, [-1, y], [1, y])
    assert motion.duration == pytest.approx(planned(None, [-1, y], [1, y]).duration, rel=1e-4)
    q = motion.sample(1e-3).q
    assert (q[:, 1] - y + height).min() > -KEPT
    assert motion.check(scene=scene).ok()


@pytest.mark.slow
def test_a_plan_round_a_post_on_the_table_that_it_stands_on():
    scene, y = on_table(0.0)
    scene = scene.add("post", shapes.Sphere(0.2), at(0, -0.4))
    motion = planned(scene, [-1, y], [1, y])
    q = motion.sample(1e-3).q
    assert q[:, 1].min() > y - KEPT
    assert q[np.abs(q[:, 0]) < 0.01, 1].min() > -0.2
    assert motion.check(scene=scene).ok()


@pytest.mark.sample(1)
@pytest.mark.parametrize("under", [0.0, 5e-7])
@pytest.mark.parametrize("goal", [[1, 0.05], [-1, 0.05], [0.4, 0.0]])
def test_a_start_that_touches(goal, under):
    motion = planned(ball(), [-0.4 + under, 0.0], goal)
    away = np.linalg.norm(motion.sample(1e-3).q, axis=1) - 0.3 - TIP
    assert away.min() > -KEPT
    assert motion.info["iterations"] < 300
    assert motion.check(scene=ball()).ok()


def test_deeper_is_refused():
    with pytest.raises(od.LimitError, match="overlap by 2e-06 m"):
        planned(ball(), [-0.4 + 2e-6, 0.0], [1, 0.05])


def test_what_moves_is_refused_where_there_is_no_time():
    scene = od.Scene().attach("tip", "point", shapes.Sphere(TIP))
    scene = scene.add("cart", shapes.Sphere(0.1), line((0, 1, 0), (0.1, 0, 0)))
    with pytest.raises(od.ShapeError, match=r"poses of cart depend on the time.* stand still.* motion\.check"):
        od.inverse_kinematics(point_robot(), "point", p=[1, 0, 0], q_start=[0, 0], scene=scene)


def test_distances_that_look_alike_are_told_apart():
    around = obstacles_of("here", point_robot(), ball(), 0.2)
    assert around.pair(0, 0.2 - 3e-6) == "'tip' and 'disc' are 0.2 m apart, 0.2 m wanted, 3e-06 m too little"
    assert around.pair(0, 0.1) == "'tip' and 'disc' are 0.1 m apart, 0.2 m wanted"


@pytest.mark.slow
def test_a_limit_of_time_names_what_is_in_the_way():
    wall = od.Scene().attach("tip", "point", shapes.Sphere(TIP)).add("wall", shapes.Box(0.2, 6.0, 1.0))
    with pytest.raises(od.SolveError, match="'tip' and 'wall' .*the limit of time has passed") as failed:
        planned(wall, [-1, 0.05], [1, 0], time_limit=1.5)
    assert failed.value.status == "time_limit"
    assert "may help" not in str(failed.value)


@pytest.mark.slow
def test_a_way_that_is_blocked_says_by_what():
    wall = od.Scene().attach("tip", "point", shapes.Sphere(TIP)).add("wall", shapes.Box(0.2, 6.0, 1.0))
    with pytest.raises(od.SolveError, match="'tip' and 'wall'") as failed:
        planned(wall, [-1, 0.05], [1, 0], solver_options={"max_iter": 40})
    assert "may help" not in str(failed.value)
