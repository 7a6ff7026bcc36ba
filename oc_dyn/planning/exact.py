"""Exact distances of pairs of a scene at configurations: what starts and goals are judged by."""

from __future__ import annotations

from collections.abc import Iterable

import casadi as ca
import numpy as np

from ..function import function
from ..model.robot import Robot
from ..scene import Scene
from ..scene.distances import has_closed_form
from ..scene.numeric import separation
from ..scene.scene import Item
from ..scene.smooth_support import bound
from ..types import Array


def smoothed_by(scene: Scene) -> Array:
    """(P,) [m] by how much `distances` is below the exact one at most: 0 for pairs of closed forms."""
    out = []
    for a, b in (tuple(scene[x].shape for x in pair) for pair in scene.pairs):
        out.append(0.0 if has_closed_form(a, b) else bound(a) + bound(b))
    return np.array(out)


def exact_distances(robot: Robot, scene: Scene, which: Iterable[int], q: Array, t: Array) -> Array:
    """(K, len(which)) [m] of pairs of these numbers at configurations (K, nq) and times (K,)."""
    poses: dict[str, Array] = {}
    pairs = [tuple(scene[x] for x in scene.pairs[k]) for k in which]
    for item in (x for pair in pairs for x in pair):
        if item.name not in poses:
            poses[item.name] = _poses(robot, item, q, t)
    found = [separation(a.shape, poses[a.name], b.shape, poses[b.name])[0] for a, b in pairs]
    return np.array(found).reshape(len(found), len(q)).T


def _poses(robot: Robot, item: Item, q: Array, t: Array) -> Array:
    """(K, 4, 4) in the root frame."""
    if item.link is None:
        if isinstance(item.pose, ca.Function):
            pose = item.pose
            return np.array([np.array(pose(x)) for x in t])
        return np.repeat(item.matrix[None], len(q), axis=0)
    f, out = function(robot, "frame_pose", frame=item.link), np.zeros((len(q), 4, 4))
    for k, x in enumerate(q):
        at = f(q=x)
        out[k, :3, :3], out[k, :3, 3], out[k, 3, 3] = np.array(at["R"]), np.array(at["p"]).ravel(), 1.0
    return out @ item.matrix
