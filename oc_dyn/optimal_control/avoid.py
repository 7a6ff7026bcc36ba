"""Distances of the pairs of a scene as limits of a Problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca

from ..errors import ShapeError
from ..function import function
from ..model.robot import Robot, check_robot
from ..numbers import shortened
from ..scene import Scene
from ..validation import expression as expression_of
from ..validation import number


def avoid(problem, scene, q, clearance, robot, t, poses, method, limit):
    """See Problem.avoid. limit: soft, at and last, as for Problem.limit."""
    robot = robot_of("avoid", scene, robot)
    scene.check_names(robot)
    if not scene.pairs:
        raise ShapeError("avoid: the scene has no pair of shapes to keep apart; scene.attach puts shapes on links")
    q = expression_of("avoid: q", q)
    if q.numel() != robot.nq:
        raise ShapeError(f"avoid: q has {q.numel()} values, expected the {robot.nq} coordinates of {robot.name}")
    if not isinstance(clearance, ca.MX):
        clearance = number("avoid: clearance [m]", clearance)
    d = distances(robot, scene, method)(q, *_where(problem, scene, t, poses))
    for k, ((a, b), margin) in enumerate(zip(scene.pairs, scene.margins.tolist(), strict=True)):
        problem.limit(clearance + margin, d[k], float("inf"), name=f"{a} - {b}", **limit)
    return d


def robot_of(what: str, scene: Any, robot: Robot | None) -> Robot:
    """The robot given, or the one that the scene was read from. Raises ShapeError where there is neither."""
    if not isinstance(scene, Scene):
        raise ShapeError(f"{what}: scene is {shortened(scene)}, expected an od.Scene")
    robot = scene.robot if robot is None else robot
    if robot is None:
        raise ShapeError(f"{what}: the scene was not read from a robot; give robot=")
    check_robot(what, robot)
    return robot


def distances(robot: Robot, scene: Scene, method: str | None = None) -> ca.Function:
    """The quantity, with analytic derivatives but of robots with transform joints, whose methods have none."""
    plain = "transform" in robot.features
    return function(robot, "distances", scene=scene, method=method, derivatives="ad" if plain else "analytic")


def _where(problem, scene, t, poses):
    """[poses, t], those of them that the scene needs: where its obstacles are."""
    out = []
    if scene.moving:
        out.append(_side_by_side(scene.moving, poses))
    elif poses is not None:
        raise ShapeError("avoid: got poses, but no shape of the scene has its pose at the port")
    if scene.timed:
        t = problem.time if t is None else expression_of("avoid: t", t)
        if t.numel() != 1:
            raise ShapeError(f"avoid: t has {t.numel()} values, expected the time [s]")
        out.append(t)
    return out


def _side_by_side(names, poses):
    """(4, 4 m) matrices of the shapes of these names, in their order."""
    told = "a homogeneous matrix (4, 4) each, or its columns one after the other"
    if poses is None:
        raise ShapeError(f"avoid: the scene has shapes whose poses come in: give poses= of {', '.join(names)}, {told}")
    if not isinstance(poses, Mapping):
        x = expression_of("avoid: poses", poses)  # columns one after the other
        if x.numel() != 16 * len(names):
            raise ShapeError(f"avoid: poses has {x.numel()} values, expected 16 of each of {', '.join(names)}; {told}")
        return ca.reshape(x, 4, 4 * len(names))
    if set(poses) != set(names):
        raise ShapeError(f"avoid: poses of {', '.join(map(str, poses))}, expected those of {', '.join(names)}")
    return ca.horzcat(*(_side_by_side([name], poses[name]) for name in names))
