"""Bounds of how shapes move against each other: against motions of robots of every kind of joint, finely sampled."""

import numpy as np
import pytest
from samples import ROBOTS, build, robot, scaled_quaternions

import oc_dyn as od
from oc_dyn.errors import ModelError
from oc_dyn.model.joints import QUATERNIONS
from oc_dyn.scene.chains import Ranges, Tree, node_of, robot_links

NAMES = sorted(set(ROBOTS) - {"transform"})


def moves(r, K, seed, longest=0.3):
    """q, dq, ddq (K, nq) of motions q + dq t + ddq t^2 / 2 on [-h, h], and h (K,); quaternions of any length."""
    rng = np.random.default_rng(seed)
    q = np.array([scaled_quaternions(r, r.random_configuration(rng), rng.uniform(0.3, 3)) for _ in range(K)])
    dq, ddq = rng.normal(size=q.shape), 3 * rng.normal(size=q.shape)
    h = rng.uniform(0.001, longest, K)
    for j in r.joints:
        if j.kind in QUATERNIONS:  # not through zero
            part = slice(j.q_index, j.q_index + 4)
            size = np.linalg.norm(q[:, part], axis=1) / np.linalg.norm(dq[:, part], axis=1)
            h = np.minimum(h, 0.2 * size / (1 + size))
    return q, dq, ddq, h


def tree_of(r, q, dq, ddq, h):
    """The Tree of such motions."""
    return Tree(*robot_links(r, Ranges(q, dq, np.abs(dq) + h[:, None] * np.abs(ddq), np.abs(ddq)), h), h)


def poses(r, frame, q):
    """(K, 4, 4) of a frame of the robot by its quantity, or the identity; q (K, nq)."""
    out = np.tile(np.eye(4), (len(q), 1, 1))
    if frame is not None:
        f = od.function(r, "frame_pose", frame=frame)
        for k, x in enumerate(r.normalized(q.T).T):
            out[k] = f(x)[0]
    return out


def excess(r, tree, motion, a, b, seed):
    """Largest of what points of a ball on frame a go as seen from frame b, by the first and the second bound."""
    q, dq, ddq, h = motion
    rng = np.random.default_rng(seed)
    node, X = node_of(r, a)
    on, Y = (0, np.eye(4)) if b is None else node_of(r, b)
    pose, radius = np.eye(4), 0.25
    pose[:3, 3] = rng.normal(size=3)
    seen = tree.seen(node, X @ pose, radius, on)
    point = rng.normal(size=3)
    point *= radius / np.linalg.norm(point)
    at = []
    for t in (np.zeros(len(h)), *(h * s for s in np.linspace(-1, 1, 13))):
        now = q + dq * t[:, None] + ddq * t[:, None] ** 2 / 2
        T = np.linalg.inv(poses(r, b, now) @ np.linalg.inv(Y)) @ poses(r, a, now) @ pose
        at.append((t, np.einsum("kij,j->ki", T[:, :3, :3], point) + T[:, :3, 3]))
    start, rate = seen.R @ point + seen.p, seen.dR @ point + seen.dp
    np.testing.assert_allclose(start, at[0][1], atol=1e-8)
    first, second = [], []
    assert np.isfinite(seen.acceleration).all()
    for t, y in at[1:]:
        first.append(np.linalg.norm(y - start, axis=1) - seen.speed * np.abs(t))
        second.append(np.linalg.norm(y - start - rate * t[:, None], axis=1) - seen.acceleration * t**2 / 2)
    return np.max(first), np.max(second)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", NAMES)
def test_no_point_goes_farther_than_the_bounds(name):
    r = robot(name)
    frames = [b.name for b in r.bodies]
    motion = moves(r, 5, seed=1)
    tree = tree_of(r, *motion)
    for seed, (a, b) in enumerate([(frames[-1], None), (frames[-1], frames[0]), (frames[0], frames[-1])]):
        first, second = excess(r, tree, motion, a, b, seed)
        assert first < 1e-9
        assert second < 1e-9


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_point_goes_farther_between_any_two_bodies(name):
    r = robot(name)
    frames = [None, *(b.name for b in r.bodies)]
    for seed in range(6):
        motion = moves(r, 10, seed=seed, longest=1.0)
        tree = tree_of(r, *motion)
        for a in frames[1:]:
            for b in frames:
                first, second = excess(r, tree, motion, a, b, seed)
                assert first < 1e-9
                assert second < 1e-9


def test_followers_of_large_multipliers_and_long_slides():
    r = build(["prismatic", "revolute", "prismatic", "revolute"], seed=3, mimic={3: ("joint2", -40.0, 0.3)})
    q, dq, ddq, h = moves(r, 8, seed=2, longest=0.05)
    q[:, [0, 2]] += [[30.0, -20.0]]
    motion = q, dq, ddq, h
    tree = tree_of(r, *motion)
    for a, b in [("link4", None), ("link4", "link1"), ("link1", "link4")]:
        first, second = excess(r, tree, motion, a, b, 0)
        assert first < 1e-9
        assert second < 1e-9


def test_bounds_are_near_what_a_single_joint_does():
    r = build(["revolute"], seed=5)
    q, dq, ddq, h = np.zeros((1, 1)), np.full((1, 1), 2.0), np.zeros((1, 1)), np.full(1, 1e-6)
    node, _ = node_of(r, "link1")
    pose = np.eye(4)
    pose[0, 3] = 0.5  # from the axis, the z axis of the node
    seen = tree_of(r, q, dq, ddq, h).seen(node, pose, 0.0, 0)
    assert seen.speed[0] == pytest.approx(2.0 * 0.5, rel=1e-5)
    assert seen.acceleration[0] == pytest.approx(4.0 * 0.5, rel=1e-5)


def test_a_quaternion_that_may_pass_through_zero_has_no_bound():
    r = robot("spherical")
    q = r.random_configuration(0)[None, :]
    tree = tree_of(r, q, 100 * np.ones_like(q), np.zeros_like(q), np.ones(1))
    node, X = node_of(r, r.bodies[0].name)
    assert np.isinf(tree.seen(node, X, 0.1, 0).speed[0])


def test_a_joint_given_by_a_function_is_refused_by_name():
    r = robot("transform")
    q = r.random_configuration(0)[None, :]
    with pytest.raises(ModelError, match="joint 'joint1'.*Function.*certified"):
        tree_of(r, q, q, q, np.ones(1))
