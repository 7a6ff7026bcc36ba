"""inverse_kinematics and pose_path among obstacles: poses met, clearance kept, refusals by pair and place."""

import casadi as ca
import numpy as np
import pytest
from obstacles import at

import oc_dyn as od
from oc_dyn import shapes

TIP, Q = "panda_link8", np.array([0, -0.3, 0, -2, 0, 1.8, 0.7])
CLEARANCE = 0.02


def panda():
    """Panda with shapes on elbow, forearm and hand."""
    scene = od.Scene().attach("elbow", "panda_link4", shapes.Sphere(0.08)).attach("hand", TIP, shapes.Sphere(0.06))
    scene = scene.attach("fore", "panda_link5", shapes.Capsule(0.06, 0.3))
    return od.robots.panda(), scene.leave_out(("hand", "fore"), ("elbow", "fore"))


def place(robot, frame, q):
    found = od.function(robot, "frame_pose", frame=frame)(q=q)
    return np.array(found["p"]).ravel(), np.array(found["R"])


def apart(robot, scene, q):
    return np.array(od.function(robot, "distances", scene=scene)(np.asarray(q).T))


@pytest.mark.parametrize("turned", [True, False])
def test_a_redundant_robot_moves_its_elbow_off(turned):
    robot, scene = panda()
    p, R = place(robot, TIP, Q)
    elbow, _ = place(robot, "panda_link4", Q)
    scene = scene.add("ball", shapes.Sphere(0.12), at(*(elbow + [0, 0.1, 0])))
    assert apart(robot, scene, Q).min() < -0.05
    given = {"p": p, "q_start": Q, "scene": scene, "clearance": CLEARANCE} | ({"R": R} if turned else {})
    q = od.inverse_kinematics(robot, TIP, **given)
    there, axes = place(robot, TIP, q)
    assert there == pytest.approx(p, abs=1e-9)
    assert not turned or axes == pytest.approx(R, abs=1e-9)
    assert apart(robot, scene, q).min() >= CLEARANCE
    assert apart(robot, scene, q).min() < CLEARANCE + 1e-4  # no farther than it has to
    assert (q >= robot.limit("lower")).all()
    assert (q <= robot.limit("upper")).all()


def test_what_is_free_is_found_as_without_a_scene():
    robot, scene = panda()
    p, R = place(robot, TIP, Q + 0.1)
    scene = scene.add("ball", shapes.Sphere(0.1), at(0, 1.5, 0))
    q = od.inverse_kinematics(robot, TIP, p=p, R=R, q_start=Q, scene=scene, clearance=CLEARANCE)
    assert np.array_equal(q, od.inverse_kinematics(robot, TIP, p=p, R=R, q_start=Q))


def test_a_pose_within_an_obstacle_is_refused_with_pair_and_depth():
    robot, scene = panda()
    p, R = place(robot, TIP, Q)
    scene = scene.add("ball", shapes.Sphere(0.1), at(*p))
    with pytest.raises(od.LimitError, match="'hand' and 'ball' overlap by 0.16 m"):
        od.inverse_kinematics(robot, TIP, p=p, R=R, q_start=Q, scene=scene)


def test_limits_of_joints_hold_beside_the_clearance():
    robot = od.robots.planar_2r()
    tip = list(robot.frames)[-1]
    p, _ = place(robot, tip, np.array([0.4, 0.8]))
    elbow, _ = place(robot, list(robot.frames)[-2], np.array([0.4, 0.8]))
    scene = od.Scene().attach("elbow", list(robot.frames)[-2], shapes.Sphere(0.05)).add(
        "post", shapes.Sphere(0.05), at(*elbow)
    )  # fmt: skip
    with pytest.raises(od.LimitError, match="'elbow' and 'post' overlap by 0.1 m"):
        od.inverse_kinematics(robot, tip, p=p, q_start=[0.4, 0.8], scene=scene)
    q = od.inverse_kinematics(robot, tip, p=p, q_start=[0.4, 0.8], scene=scene, starts=8)  # the other elbow
    assert q[1] < 0
    assert place(robot, tip, q)[0] == pytest.approx(p, abs=1e-9)


def poses(robot):
    """Function of a straight line of the hand."""
    p, R = place(robot, TIP, Q)
    s = ca.SX.sym("s")
    return ca.Function("pose", [s], [ca.DM(R), p + s * ca.DM([-0.2, 0.2, 0.1])])


@pytest.mark.slow
def test_a_path_of_poses_is_followed_round_an_obstacle():
    robot, scene = panda()
    pose = poses(robot)
    way, at_, _ = od.pose_path(robot, TIP, pose, Q)
    elbow, _ = place(robot, "panda_link4", way[len(way) // 2])
    near = scene.add("ball", shapes.Sphere(0.1), at(*(elbow + [0, 0.13, 0])))
    assert apart(robot, near, way).min() < 0
    found, places, degree = od.pose_path(robot, TIP, pose, Q, scene=near, clearance=CLEARANCE)
    motion = od.plan_along_path(
        robot, found, at=places, degree=degree, scene=near, clearance=CLEARANCE, check="off", nodes=40
    )
    assert motion.info["clearance"]["certified"] >= CLEARANCE
    for s, q in zip(motion.shares(motion.t)[0], motion.q, strict=True):
        there, axes = place(robot, TIP, q)
        assert there == pytest.approx(np.array(pose(s)[1]).ravel(), abs=2e-5)
        assert axes == pytest.approx(np.array(pose(s)[0]), abs=2e-5)
    far = scene.add("ball", shapes.Sphere(0.1), at(0, 1.5, 0))
    same, *_ = od.pose_path(robot, TIP, pose, Q, scene=far, clearance=CLEARANCE)
    assert np.array_equal(same, way)


@pytest.mark.slow
def test_a_path_of_poses_through_an_obstacle_is_refused_with_pair_and_place():
    robot, scene = panda()
    pose = poses(robot)
    scene = scene.add("ball", shapes.Sphere(0.05), at(*np.array(pose(0.5)[1]).ravel()))
    with pytest.raises(od.LimitError, match=r"'hand' and 'ball' overlap by 0.1\d* m, 0.02 m wanted, at s = 0.5"):
        od.pose_path(robot, TIP, pose, Q, scene=scene, clearance=CLEARANCE)


def beside_the_elbow(robot, scene, way):
    """With a ball that the elbow hits half way."""
    elbow, _ = place(robot, "panda_link4", way[len(way) // 2])
    return scene.add("ball", shapes.Sphere(0.1), at(*(elbow + [0, 0.13, 0])))


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"tolerance": 3e-11}, {"points": 80}])
def test_more_way_points_than_are_searched_for_at_once(how):
    robot, scene = panda()
    pose = poses(robot)
    scene = beside_the_elbow(robot, scene, od.pose_path(robot, TIP, pose, Q)[0])
    way, places, degree = od.pose_path(robot, TIP, pose, Q, scene=scene, clearance=CLEARANCE, **how)
    assert len(way) > 49
    assert apart(robot, scene, way).min() >= CLEARANCE
    fine = od.planning.curves.spline(way, places, degree)
    for s in np.linspace(0, 1, 40):
        q = fine.at(np.array([s]), 1)[0][0]
        assert place(robot, TIP, q)[0] == pytest.approx(np.array(pose(s)[1]).ravel(), abs=how.get("tolerance", 1e-5))
        assert apart(robot, scene, q[None]).min() >= CLEARANCE - 1e-6


@pytest.mark.slow
def test_a_start_is_judged_by_the_exact_distance():
    """The hand begins so near a wide plate that its smoothed distance is short of the clearance."""
    robot, scene = panda()
    pose = poses(robot)
    way = od.pose_path(robot, TIP, pose, Q)[0]
    p, _ = place(robot, TIP, Q)
    top = p[2] - 0.06 - CLEARANCE - 1e-4
    scene = beside_the_elbow(robot, scene, way).add("plate", shapes.Cylinder(2.5, 0.1), at(*p[:2], top - 0.05))
    scene = scene.leave_out(*((x, "plate") for x in ("elbow", "fore")))
    k = scene.pairs.index(("hand", "plate"))
    assert apart(robot, scene, Q[None])[k].item() < CLEARANCE - 1e-3
    found, *_ = od.pose_path(robot, TIP, pose, Q, scene=scene, clearance=CLEARANCE)
    exact = od.scene.exact_distances(robot, scene, found)
    assert exact.min() >= CLEARANCE - 1e-6
    assert exact[0, k] == pytest.approx(CLEARANCE + 1e-4, abs=1e-6)
