"""Motions of robots among shapes whose clearance is known, for the tests of certificates."""

import numpy as np

import oc_dyn as od
from oc_dyn.model.builder import RobotBuilder
from oc_dyn.optimal_control.polynomials import derivatives_at
from oc_dyn.planning.trajectory import Trajectory


def place(xyz=(0, 0, 0), R=None):
    """Homogeneous matrix (4, 4)."""
    C = np.eye(4)
    C[:3, 3] = xyz
    if R is not None:
        C[:3, :3] = R
    return C


def trajectory(robot, pieces, duration=1.0, start=0.0):
    """Trajectory of pieces (M, k, nq) of equal lengths."""
    t = start + np.linspace(0, duration, len(pieces) + 1)
    names = robot.coordinate_names
    return Trajectory(t, pieces, joints=names, units=("",) * len(names), robot=robot)


def gantry():
    """A point that three slides move along x, y and z of the root frame; link3 is at q."""
    b = RobotBuilder("gantry")
    for k in range(4):
        b.add_link(f"link{k}", mass=1.0, inertia=0.01 * np.eye(3))
    for k, axis in enumerate(np.eye(3)):
        b.add_joint(f"joint{k + 1}", "prismatic", parent=f"link{k}", child=f"link{k + 1}", axis=axis)
    return b.build()


def arm(offset=(0, 0, 0), length=1.0):
    """One revolute joint about z, at an offset in the root frame; the frame tip is `length` along x."""
    b = RobotBuilder("arm")
    for name in ("base", "link", "tip"):
        b.add_link(name, mass=1.0, inertia=0.01 * np.eye(3))
    b.add_joint("turn", "revolute", parent="base", child="link", xyz=offset, axis=[0, 0, 1])
    b.add_joint("weld", "fixed", parent="link", child="tip", xyz=[length, 0, 0])
    return b.build()


def random_motion(robot, seed, M=6, duration=1.0, size=1.0):
    """Trajectory of degree 4 from a random configuration, twice continuously differentiable; quaternions, if there are
    any, are of other lengths than 1 and stay away from 0."""
    rng = np.random.default_rng(seed)
    n, h = robot.nq, duration / M
    slow = np.ones(n)
    for j in robot.joints:
        if j.kind in ("free", "spherical"):
            slow[j.q_index : j.q_index + 4] = 0.3
    state = np.array([robot.random_configuration(rng), size * slow * rng.normal(size=n), np.zeros(n)])
    pieces = []
    for _ in range(M):
        wanted = size * slow * rng.normal(size=n)  # velocity at the end of the piece
        rest = (wanted - state[1] - h * state[2]) / h**2
        pieces.append(np.array([*state, 2 * rest, np.zeros(n)]))
        state = np.array(derivatives_at(pieces[-1][None], np.array([h]), 5))[:3, 0]
    return trajectory(robot, pieces, duration)


def poses(robot, frame, q):
    """(R (K, 3, 3), p (K, 3)) of a frame at q (K, nq), by the quantity frame_pose."""
    _, R, p = od.function(robot, "frame_pose", frame=frame)(robot.normalized(q.T))
    return np.array(R).reshape(3, len(q), 3).swapaxes(0, 1), np.array(p).T


def sampled(motion, scene, count):
    """(pairs, count) distances of pairs of spheres, less their margins, at times evenly from start to end."""
    q = motion.sample(np.linspace(motion.t[0], motion.t[-1], count)).q
    centres = {}
    for item in scene.items:
        centres[item.name] = np.tile(item.matrix[:3, 3], (count, 1))
        if item.link is not None:
            R, p = poses(motion.robot, item.link, q)
            centres[item.name] = R @ item.matrix[:3, 3] + p
    away = [
        np.linalg.norm(centres[a] - centres[b], axis=1) - scene[a].shape.radius - scene[b].shape.radius - margin
        for (a, b), margin in zip(scene.pairs, scene.margins, strict=True)
    ]
    return np.array(away)
