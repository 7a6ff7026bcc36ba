"""od.pose_path: way points of the joints for a path that a frame is to follow."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise

import casadi as ca
import numpy as np

from ..errors import CheckWarning, LimitError, ShapeError
from ..interrupts import check_deadline
from ..model.quaternions import check_rotation
from ..model.robot import Robot
from ..scene import Scene
from ..types import Array, Numbers
from ..validation import count, number
from .arguments import check_robot, vector
from .curves import Spline, spline
from .extremes import of_polynomials
from .followers import FollowerRanges, check_closing
from .inverse_kinematics import pose_error
from .obstacles import obstacles_of
from .pose_path_clear import ADVICE, DEGREE, Freed
from .verdict import TOLERANCE, checked_mode

_LOOKS = 16  # at joints of robots with loops that follow, in every piece of the spline
_BETWEEN = 4  # solutions of inverse kinematics from one way point to the next
_MOST = 400  # way points


def pose_path(
    robot: Robot, frame: str, pose: ca.Function, q_start: Numbers, *, tolerance: float = 1e-5, points: int = 13,
    check: str = "warn", scene: Scene | None = None, clearance: float = 0.0,
) -> tuple[Array, Array, int]:  # fmt: skip
    """Way points (k, n), their s (k,), and the degree of a spline through them that leads a frame along poses.

        way, at, degree = od.pose_path(robot, "tool", pose, q_start)
        motion = od.plan_along_path(robot, way, at=at, degree=degree)

    pose: casadi.Function s -> R (3, 3), p (3,), of the frame in the root frame, s from 0 to 1. q_start (n,): positions
    near those at the start. From one way point to the next, Newton steps on the pseudoinverse of the Jacobian change
    joints as little as they can, which also decides what a redundant arm does with its freedom.
    tolerance: largest distance from the path between way points [m and rad]; they are doubled until it is met.
    check: what to do about joints that leave their range, or those that follow them theirs, anywhere on the spline:
    "warn", "raise" (LimitError), or "off".
    scene: od.Scene whose pairs are to keep `clearance` [m] besides their margins, anywhere on the spline. Where they do
    not, a redundant robot uses its freedom for it: all way points are then found at once, with the least sum of squared
    steps and bends. LimitError names pair and place where that fails.
    Raises LimitError where the frame cannot get there or stands at a singularity, ShapeError for what does not fit,
    SolveError within a deadline that has passed.
    Source: resolved motion rate control, Whitney 1969; spline and error control: this toolkit.
    """
    check_robot(robot)
    checked_mode(check)
    tolerance, points = number("pose_path: tolerance", tolerance, above=0), count("pose_path: points", points, 2, _MOST)
    if (
        not isinstance(pose, ca.Function)
        or pose.n_in() != 1
        or pose.n_out() != 2
        or pose.numel_in(0) != 1
        or (pose.numel_out(0), pose.numel_out(1)) != (9, 3)
    ):
        raise ShapeError(f"pose_path: {pose} should take one number s and give R (3, 3) and p (3,)")
    miss = pose_error(robot, frame)

    def off(q: Array, s: float) -> tuple[Array, Array]:
        R, p = (np.array(x) for x in pose(s))
        R = R.reshape((3, 3), order="F")
        check_rotation(f"pose_path: R of {pose.name()} at s = {s:.4g}", R)
        if not np.isfinite(p).all():
            raise ShapeError(f"pose_path: p of {pose.name()} at s = {s:.4g} is {p.ravel().tolist()}, not three numbers")
        return miss(q, p, R)

    around = obstacles_of("pose_path", robot, scene, clearance, timed=False)
    freed = None if around is None else Freed(around, frame, pose, lambda q, s: _solved(off, q, s, frame, 20))
    here = _solved(off, vector("q_start", q_start, robot.coordinate_names), 0.0, frame, 100)
    while True:
        at, way = np.linspace(0, 1, points), [here]
        for a, b in pairwise(at):
            x = way[-1]
            for share in np.arange(1, _BETWEEN + 1) / _BETWEEN:
                x = _solved(off, x, a + (b - a) * share, frame, 20)
            way.append(x)
        way = way if freed is None else freed.way(np.array(way), at)
        made, fine = spline(way, at, DEGREE), np.linspace(0, 1, 8 * points)
        error = max(np.abs(off(q, s)[0]).max() for q, s in zip(made.at(fine, 1)[0], fine, strict=True))
        if error <= tolerance and (freed is None or freed.kept(made)):
            _check_range(robot, frame, made, check)
            return np.array(way), at, DEGREE
        points = 2 * points - 1
        if points > _MOST:
            if freed is not None and error <= tolerance:
                raise LimitError(f"pose_path: no smooth path keeps the clearance: {freed.told()}; {ADVICE}")
            raise LimitError(
                f"pose_path: with {len(way)} way points {frame!r} is still {error:.3g} off the path, tolerance "
                f"{tolerance:.3g}; is the path smooth?"
            )


def _check_range(robot: Robot, frame: str, made: Spline, check: str) -> None:
    """Say which joint leaves its range most along a Spline, if any does."""
    low, at_low, high, at_high = of_polynomials(made.breaks, made.pieces, 0)
    lower, upper = robot.limit("lower"), robot.limit("upper")
    names = robot.coordinate_names
    off = FollowerRanges.followers(robot)
    if check != "off":
        s = np.linspace(0, 1, _LOOKS * len(made.breaks))
        q = made.at(s, 1)[0]
        check_closing("pose_path", robot, s, q, "s = {:.4g}")
        if off is not None:
            names, lower, upper = (*names, *off.names), np.append(lower, off.lower), np.append(upper, off.upper)
            x, k = off.at(q), np.arange(len(off.names))
            low, at_low = np.append(low, x.min(axis=0)), np.append(at_low, s[x.argmin(axis=0)[k]])
            high, at_high = np.append(high, x.max(axis=0)), np.append(at_high, s[x.argmax(axis=0)[k]])
    over = np.maximum(lower - low, high - upper)
    i = int(np.argmax(over))
    if check == "off" or over[i] <= TOLERANCE * min(1.0, max((upper[i] - lower[i]) / 2, 1e-9)):
        return
    q, s, end = (high[i], at_high[i], upper[i]) if high[i] - upper[i] >= over[i] else (low[i], at_low[i], lower[i])
    text = (
        f"pose_path: joint {names[i]!r} gets to {q:.6g} at s = {s:.4g}, beyond its limit {end:.6g}; "
        f"move the poses of {frame!r}, or start elsewhere"
    )
    if check == "raise":
        raise LimitError(text)
    warnings.warn(text, CheckWarning, stacklevel=3)


def _solved(off: Callable[[Array, float], tuple[Array, Array]], q: Array, s: float, frame: str, steps: int) -> Array:
    for _ in range(steps):
        check_deadline("pose_path")
        error, J = off(q, s)
        if np.abs(error).max() < 1e-13:
            return q
        sizes = np.linalg.svd(J, compute_uv=False)
        if sizes[-1] < 1e-3 * sizes[0] and J.shape[1] >= 6:
            raise LimitError(
                f"pose_path: {frame!r} is at a singularity at s = {s:.4g}; move the path, or start elsewhere"
            )
        step = np.linalg.pinv(J) @ error
        q = q + step * min(1.0, 0.5 / max(np.abs(step).max(), 1e-12))
    left = np.abs(off(q, s)[0]).max()
    if left < 1e-9:
        return q
    raise LimitError(f"pose_path: {frame!r} cannot get to the pose at s = {s:.4g}: {left:.3g} m or rad are left")
