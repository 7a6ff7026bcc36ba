"""od.inverse_kinematics: a configuration that brings a frame to a pose, by Newton's method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import LimitError, ShapeError
from ..function import function
from ..interop import quaternion_of
from ..interrupts import check_deadline, deadline
from ..model.quaternions import check_quaternions, check_rotation, quaternions
from ..model.robot import Robot, check_robot
from ..numbers import are_sane, as_floats
from ..scene import Scene
from ..types import Array, Numbers
from ..validation import count, flag, number
from .followers import FollowerRanges, check_closed, closes
from .kinematics_clear import moved_clear
from .obstacles import Obstacles, obstacles_of

_LONGEST = 0.5  # of a step [rad or m]: Newton's method is right close to the solution only
_DAMPING = 1e-4  # of steps: near a singularity they stay finite
_HALVINGS = 8  # of a step behind which loops do not close


def inverse_kinematics(
    robot: Robot, frame: str, *, p: Numbers, R: Numbers | None = None, q_start: Numbers | None = None,
    tolerance: float = 1e-10, steps: int = 200, limits: bool = True, time_limit: float | None = None,
    starts: int = 1, seed: int = 0, scene: Scene | None = None, clearance: float = 0.0,
) -> Array:  # fmt: skip
    """Configuration (nq,) that brings a frame's origin to p (3,) [m], and its axes to R (3, 3) where R is given.

    q_start (nq,): where the search begins, by default robot.neutral(); of the solutions, one near it is found, and a
    redundant robot moves no more than it must. limits: keep within the positions of the joints and of those that
    follow them, on loops too. tolerance [m and rad]. time_limit [s]: after it SolveError of status "time_limit" is
    raised, its solution where the search has got to.
    starts: from q_start, and from so many less one random configurations (seed); of what is found the one nearest to
    q_start is returned, by the length of the step from it.
    scene: od.Scene whose pairs are to keep `clearance` [m] besides their margins. What is found in collision is moved
    as little as that takes, where the robot is redundant; LimitError otherwise names pairs and depths.
    Raises LimitError where the frame cannot get there, or not from q_start; ShapeError for what does not fit.
    Source: Newton's method on the damped pseudoinverse (Nakamura and Hanafusa 1986); steps are on the tangent space.
    """
    check_robot("inverse_kinematics", robot)
    tolerance = number("inverse_kinematics: tolerance", tolerance, above=0)
    steps = count("inverse_kinematics: steps", steps, 1, 100_000)
    p = _sized("p", p, (3,))
    R = None if R is None else _sized("R", R, (3, 3))
    if R is not None:
        check_rotation("inverse_kinematics: R", R)
    limits = flag("inverse_kinematics: limits", limits)
    q = np.array(robot.neutral(), float) if q_start is None else _sized("q_start", q_start, (robot.nq,))
    check_quaternions("inverse_kinematics: q_start", quaternions(robot), q)
    check_closed("inverse_kinematics: q_start", robot, np.clip(q, *_range(robot, limits)))
    miss = pose_error(robot, frame)
    starts, seed = count("inverse_kinematics: starts", starts, 1, 10_000), count("inverse_kinematics: seed", seed)
    around = obstacles_of("inverse_kinematics", robot, scene, clearance, timed=False)
    found, failed = [], None
    with deadline(time_limit):
        for k in range(starts):
            begin = q if k == 0 else robot.random_configuration(seed + k)
            try:
                x = _searched(robot, frame, miss, begin, p, R, tolerance, steps, limits)
                found.append(x if around is None else _clear(around, frame, miss, x, p, R, tolerance, limits))
            except LimitError as error:
                failed = failed or error
    if not found and failed is not None:
        raise failed
    return min(found, key=lambda x: float(np.linalg.norm(robot.difference(q, x))))


def _searched(
    robot: Robot, frame: str, miss: Callable[..., tuple[Array, Array]], q: Array, p: Array, R: Array | None,
    tolerance: float, steps: int, limits: bool,
) -> Array:  # fmt: skip
    lower, upper = _range(robot, limits)
    q, off = np.clip(q, lower, upper), FollowerRanges.followers(robot) if limits else None  # where it begins, too
    for _ in range(steps):
        error, J = miss(q, p, R)
        if off is not None:  # what is beyond its range goes to the end of it, besides
            beyond, G = off.beyond(q)
            error, J = np.concatenate([error, beyond]), np.vstack([J, G])
        if np.abs(error).max() < tolerance:
            return q
        check_deadline("inverse_kinematics", solution=q)
        damping = (_DAMPING * min(1.0, float(np.linalg.norm(error)))) ** 2
        step = J.T @ np.linalg.lstsq(J @ J.T + damping * np.eye(len(J)), error, rcond=None)[0]
        step *= min(1.0, _LONGEST / np.abs(step).max(initial=1e-12))
        q = _stepped(robot, q, step, lower, upper)
    left = f"{np.abs(error).max():.3g} m or rad are left after {steps} steps"
    if off is not None and np.abs(off.beyond(q)[0]).max(initial=0.0) >= tolerance:
        left += f", and {off.told(q)}"
    raise LimitError(f"inverse_kinematics: {frame!r} cannot get there from q_start: {left}; try another q_start")


def _stepped(robot: Robot, q: Array, step: Array, lower: Array, upper: Array) -> Array:
    """q after a step, within the range; of robots with loops shorter, as far as the loops close there."""
    for k in range(_HALVINGS + 1):
        found = np.clip(robot.integrate(q, step / 2**k), lower, upper)
        if closes(robot, found):
            return found
    return q


def _range(robot: Robot, limits: bool) -> tuple[Array, Array]:
    if limits:
        return robot.limit("lower"), robot.limit("upper")
    return np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)


def _clear(
    around: Obstacles, frame: str, miss: Callable[..., tuple[Array, Array]], q: Array, p: Array, R: Array | None,
    tolerance: float, limits: bool,
) -> Array:  # fmt: skip
    """The configuration where it keeps the clearance, or the nearest that does. LimitError where none is found."""
    if around.free(q)[0]:
        return q
    check_deadline("inverse_kinematics", solution=q)
    moved = moved_clear(around, frame, miss, q, p, R, tolerance, _range(around.robot, limits))
    if moved is None:
        advice = "; give several starts, another q_start, or another pose"
        around.refuse(f"inverse_kinematics: {frame!r}, where it gets from q_start,", q, advice=advice)
    assert moved is not None
    return moved


def pose_error(robot: Robot, frame: str) -> Callable[..., tuple[Array, Array]]:
    """Function (q, p, R or None) -> ([rotation vector;] what is missing of p, in root axes; Jacobian of its motion)."""
    pose = function(robot, "frame_pose", frame=frame)
    jacobian = function(robot, "frame_jacobian", frame=frame, representation="hybrid")

    def miss(q: Array, p: Array, R: Array | None = None) -> tuple[Array, Array]:
        at, J = pose(q=q), np.array(jacobian(q=q)["J"])
        far = np.ravel(p) - np.array(at["p"]).ravel()
        if R is None:
            return far, J[3:]
        return np.concatenate([rotation_vector(R @ np.array(at["R"]).T), far]), J

    return miss


def rotation_vector(R: Array) -> Array:
    """(3,) axis times angle [rad] of a rotation matrix; the angle is at most pi."""
    Q = quaternion_of(R)  # which is as exact near half a turn as elsewhere
    w, v = (Q[0], Q[1:]) if Q[0] >= 0 else (-Q[0], -Q[1:])
    length = np.linalg.norm(v)
    return v * (2 * np.arctan2(length, w) / length) if length else v


def _sized(what: str, value: Numbers, shape: tuple[int, ...]) -> Array:
    value = np.array(as_floats(f"inverse_kinematics: {what}", value))
    value = value.reshape(shape) if value.size == np.prod(shape) else value
    if value.shape != shape:
        raise ShapeError(f"inverse_kinematics: {what} has shape {value.shape}, expected {shape}")
    if not are_sane(value):
        raise ShapeError(f"inverse_kinematics: {what} is {value.tolist()}, expected finite numbers")
    return value
