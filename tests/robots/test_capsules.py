"""Capsules of the package's robots: apart where the robots rest, few pairs, none that always touches."""

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.scene.link_poses import link_poses
from oc_dyn.scene.numeric import separation

READY = (0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4)
FREE = (1, 0, 0, 0, 0, 0, 0.6)


def standing():
    """The quadruped with bent knees."""
    robot = od.robots.quadruped()
    q = np.concatenate([robot.neutral()[:7], np.zeros(12)])
    for leg, x in (("LF", 1), ("RF", 1), ("LH", -1), ("RH", -1)):
        q[robot.joint(f"{leg}_hfe").q_index], q[robot.joint(f"{leg}_kfe").q_index] = 0.6 * x, -1.2 * x
    return robot, q


CASES = {
    "panda": lambda: (od.robots.panda(), READY),
    "fr3": lambda: (od.robots.fr3(), READY),
    "quadruped": standing,
    "quadruped, straight": lambda: (od.robots.quadruped(), od.robots.quadruped().neutral()),
    "humanoid": lambda: (od.robots.humanoid(), np.zeros(25)),
    "humanoid, floating": lambda: (od.robots.humanoid(True), od.robots.humanoid(True).neutral()),
}
PAIRS = {"panda": 20, "fr3": 20, "quadruped": 66, "humanoid": 92}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.sample(2)
def test_all_pairs_are_apart_where_the_robot_rests(case):
    robot, q = CASES[case]()
    scene = od.Scene.of(robot)
    assert len(scene.pairs) == PAIRS[robot.name]
    poses = link_poses(robot, {x.link for x in scene.items}, np.array(q, float)[:, None])
    placed = {x.name: (x.shape, poses[x.link][0] @ x.matrix) for x in scene.items}
    least = min(separation(*placed[a], *placed[b])[0] for a, b in scene.pairs)
    assert least > 0.009


def test_links_of_the_panda_that_are_next_but_one_stay_apart_within_the_limits():
    robot = od.robots.panda()
    scene, rng = od.Scene.of(robot, samples=0), np.random.default_rng(0)
    q = rng.uniform(robot.limit("lower")[:, None], robot.limit("upper")[:, None], (7, 200))
    poses = link_poses(robot, {x.link for x in scene.items}, q)
    for k in range(5):
        a, b = scene[f"panda_link{k}"], scene[f"panda_link{k + 2}"]
        d = separation(a.shape, poses[a.link] @ a.matrix, b.shape, poses[b.link] @ b.matrix)[0]
        assert np.min(d) > 0.01


@pytest.mark.slow
def test_examples_of_scenes_leave_the_ready_panda_alone():
    robot = od.robots.panda()
    poses = link_poses(robot, list(robot.frames), np.array(READY)[:, None])
    for name in od.scene.examples():
        scene = od.Scene.of(robot).join(od.scene.example(name))
        placed = {x.name: (x.shape, (poses[x.link][0] if x.link else np.eye(4)) @ x.matrix) for x in scene.items}
        assert min(separation(*placed[a], *placed[b])[0] for a, b in scene.pairs) > 0.02
