"""Tasks among obstacles, by seed: a scene and two configurations that keep the clearance."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ... import robots
from ...function import function
from ...planning.limits import Limits
from ...planning.obstacles import Obstacles
from ...scene import Scene, example
from ...scene.shapes import Box, Capsule, HalfSpace

KINDS = ("table", "shelf", "cage")
TOOL = "panda_link8"
_DRAWS = 20_000  # configurations that are drawn for a task at most
_BLOCK = 200
_APART = 1.0  # [rad] that start and goal are apart in some joint, at least
_INSIDE = {"table": ((0.25, -0.6, 0.05), (0.75, 0.6, 0.5)), "shelf": ((0.4, -0.4, 0.16), (0.75, 0.4, 0.84))}
_POSTS, _RING = 7, 0.55  # of the cage: how many, their distance from the axis of the arm [m]


@dataclass(frozen=True, eq=False)
class Task:
    """Number, kind, Obstacles (robot, scene, clearance), and q of start and goal (7,)."""

    number: int
    kind: str
    around: Obstacles
    start: np.ndarray
    goal: np.ndarray


def tasks(count, clearance):
    """The first so many tasks, kinds taking turns: each the same however many there are."""
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        around = surroundings(kind, clearance)
        rng = np.random.default_rng(1000 + number)
        ends = [_drawn(rng, kind, around)]
        while len(ends) < 2:
            q = _drawn(rng, kind, around)
            if np.abs(q - ends[0]).max() > _APART:
                ends.append(q)
        yield Task(number, kind, around, *ends)


@lru_cache
def surroundings(kind, clearance):
    """Obstacles of a kind of task about the Panda, its own capsules included."""
    robot = robots.panda()
    return Obstacles(robot, Scene.of(robot).join(cage() if kind == "cage" else example(kind)), clearance)


def cage():
    """Posts in a ring about the arm, under a lid, on the ground."""
    scene = Scene().add("ground", HalfSpace((0, 0, 1), 0.0))
    for k in range(_POSTS):
        angle = 2 * np.pi * (k + 0.5) / _POSTS
        C = np.eye(4)
        C[:3, 3] = _RING * np.cos(angle), _RING * np.sin(angle), 0.5
        scene = scene.add(f"post {k + 1}", Capsule(0.03, 1.0), C)
    C = np.eye(4)
    C[2, 3] = 1.15
    return scene.add("lid", Box(1.2, 1.2, 0.04), C)


def _drawn(rng, kind, around):
    """A configuration that keeps the clearance, its tool where the kind wants it."""
    robot, place = around.robot, function(around.robot, "frame_pose", frame=TOOL).map(_BLOCK)
    lower, upper = Limits.of(robot).q
    for _ in range(_DRAWS // _BLOCK):
        q = rng.uniform(lower, upper, (_BLOCK, len(lower)))
        p = np.array(place(q=q.T)["p"]).T
        good = q[_wanted(kind, p)]
        good = good[around.free(good)] if len(good) else good
        if len(good):
            return good[0]
    raise AssertionError(f"no free configuration of {kind} in {_DRAWS}")


def _wanted(kind, p):
    if kind == "cage":  # between the posts, or out of them
        return (np.linalg.norm(p[:, :2], axis=1) > _RING - 0.1) & (p[:, 2] > 0.1) & (p[:, 2] < 1.0)
    low, high = _INSIDE[kind]
    return ((p > low) & (p < high)).all(axis=1)
