"""plan_elastic among obstacles: the links keep off them in dense samples, ends in collision are refused."""

import numpy as np
import pytest
from obstacles import at, line

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn import shapes

START, GOAL = np.array([-0.9, 0.4]), np.array([0.9, -0.4])
CLEARANCE = 0.02


def arm():
    """Arm of two links with springs, balls on it, and a post before it."""
    links = od.robots.planar_arm(2)
    robot = el.elastic_robot(links, [500, 400], motor_inertia=[0.5, 0.3])
    scene = od.Scene().attach("elbow", "link2", shapes.Sphere(0.05)).attach("hand", "tip", shapes.Sphere(0.05))
    ahead = np.array(od.function(links, "frame_pose", frame="tip")(q=np.zeros(2))["p"]).ravel()
    return robot, scene.add("post", shapes.Sphere(0.1), at(*(0.85 * ahead)))


def planned(robot, **how):
    return el.plan_elastic(robot, START, GOAL, motor_torque=[60, 30], motor_speed=4.0, nodes=20, check="off", **how)


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"objective": "energy", "duration": 1.5}])
def test_links_keep_the_clearance(how):
    robot, scene = arm()
    found = od.function(robot.links, "distances", scene=scene)
    plan, alone = planned(robot, scene=scene, clearance=CLEARANCE, **how), planned(robot, **how)
    least = [
        np.array(found.map(2001)(x.motion.sample(np.linspace(0, x.duration, 2001)).q.T)).min() for x in (plan, alone)
    ]
    assert least[1] < 0
    assert least[0] > CLEARANCE - 1e-9
    assert plan.info["clearance"]["certified"] >= CLEARANCE
    assert plan.check(scene=scene, clearance=CLEARANCE).ok()


def test_ends_in_collision_are_refused():
    robot, scene = arm()
    q = od.inverse_kinematics(robot.links, "tip", p=scene["post"].matrix[:3, 3], q_start=[0.5, -0.9])
    with pytest.raises(od.LimitError, match="q_goal is in collision: 'hand' and 'post' overlap by 0.15 m"):
        el.plan_elastic(robot, START, q, motor_torque=[60, 30], scene=scene)


@pytest.mark.slow
def test_a_scene_that_is_not_near_changes_nothing():
    robot, scene = arm()
    far = planned(robot, scene=scene.released("post", at(0, 3.0, 0)))
    assert np.array_equal(far.motion.pieces, planned(robot).motion.pieces)


@pytest.mark.slow
@pytest.mark.parametrize("speed, how", [(0.3, {}), (-0.3, {"objective": "energy", "duration": 1.5})])
def test_links_keep_off_what_moves(speed, how):
    robot, scene = arm()
    p, alone = scene["post"].matrix[:3, 3], planned(robot, **how)
    begin = p - [0, 0.5 * speed * alone.duration * 0.9, 0]
    scene = scene.released("post", line(begin, (0, speed, 0)))
    plan = planned(robot, scene=scene, clearance=CLEARANCE, **how)
    times = [np.linspace(0, x.duration, 2001) for x in (plan, alone)]
    least = [
        od.scene.exact_distances(robot.links, scene, x.motion.sample(t).q, t).min()
        for x, t in zip((plan, alone), times, strict=True)
    ]
    assert least[1] < CLEARANCE
    assert least[0] > CLEARANCE - 1e-6
    assert plan.info["clearance"]["certified"] >= CLEARANCE - 1e-6
    assert plan.check(scene=scene, clearance=CLEARANCE).ok()


@pytest.mark.slow
def test_what_is_long_gone_changes_nothing():
    robot, scene = arm()
    p = scene["post"].matrix[:3, 3]
    later = planned(robot, scene=scene.released("post", line(p - [0, 5.0, 0], (0, 1.0, 0))))
    assert np.array_equal(later.motion.pieces, planned(robot).motion.pieces)
