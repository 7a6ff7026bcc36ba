"""Way points of the joints that lead a frame along poses and keep the pairs of a scene apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from ..errors import LimitError
from ..optimal_control.avoid import distances
from ..optimal_control.solver import checked_options
from ..text import terminal
from ..types import Array
from .curves import Spline, spline
from .kinematics_clear import pose_off
from .obstacles import SPARE, Along, Obstacles, along
from .trajectory import Trajectory, joint_units

DEGREE = 7  # of the splines

_ROUGH = 1e-6  # weight of squared fourth derivatives by s against first ones: bends go over about a tenth of the path
_FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
ADVICE = "move the poses, or start elsewhere"
_MOST = 49  # way points that are searched for at once; more lie between these
_AGAIN = 4  # searches for so many
_TINY = 1e-6  # [m]
_HELD = 1e3  # weight of the start against what it was


class Freed:
    """Way points of a pose path among obstacles, on finer steps each time. More than are searched for at once lie on
    the spline through these, moved onto the poses by to_pose(q, s)."""

    def __init__(
        self, around: Obstacles, frame: str, pose: ca.Function, to_pose: Callable[[Array, float], Array],
    ) -> None:  # fmt: skip
        self.around, self.frame, self.pose, self.to_pose = around, frame, pose, to_pose
        self.searches, self.short = 0, True
        self.spare = np.full(len(around.wanted), SPARE)
        self.last: Spline | None = None
        self.found: Along | None = None
        self.moves = False

    def way(self, way: Array, at: Array) -> Array:
        """Way points (k, n) from those of least steps: the same where these keep the clearance."""
        if not self.moves and self.kept(spline(way, at, DEGREE)):
            return way
        if not self.moves:
            self._refuse_ends(way)
        self.moves = True
        many = len(at) > _MOST
        if self.last is None or not many or self.short:
            rough = np.linspace(0, 1, _MOST) if many else at
            self._search(spline(way, at, DEGREE).at(rough, 1)[0] if many else way, rough)
        assert self.last is not None
        points = self.last.at(at, 1)[0]
        return np.array([self.to_pose(q, s) for q, s in zip(points, at, strict=True)]) if many else points

    def _search(self, way: Array, at: Array) -> None:
        """The spline through way points from the last one, or from others (k, n)."""
        self.searches += len(at) == _MOST
        start = way if self.last is None else self.last.at(at, 1)[0]
        for begin in (start, way) if self.searches <= _AGAIN else ():
            found = way_clear(self.around, self.frame, self.pose, begin, self.spare)
            if found is not None:
                self.last, self.short = spline(found, at, DEGREE), False
                return
        raise LimitError(f"pose_path: no way points keep the clearance: {self.told()}; {ADVICE}")

    def kept(self, made: Spline) -> bool:
        """Whether a spline keeps the clearance; what it lacks is asked for besides, next time."""
        motion = Trajectory(
            made.breaks, made.pieces, joints=self.around.robot.coordinate_names, units=joint_units(self.around.robot),
            robot=self.around.robot,
        )  # fmt: skip
        self.found = along(self.around, motion)
        self.spare = self.spare + np.maximum(self.found.missing, 0.0) * self.moves
        self.short = bool(self.found.short.any())
        return not self.short

    def told(self) -> str:
        """Text: the pair that is nearest, and where."""
        assert self.found is not None
        k = int(np.argmax(self.found.missing))
        a, b = (repr(terminal(x)) for x in self.around.scene.pairs[k])
        d = self.around.wanted[k] - self.found.missing[k]
        return f"{a} and {b} {_apart(d)}, {self.around.wanted[k]:.4g} m wanted, at s = {self.found.time[k]:.4g}"

    def _refuse_ends(self, way: Array) -> None:
        """LimitError for a start in collision that leaves no freedom."""
        if self.around.robot.nv <= 6:
            raise LimitError(f"pose_path: {self.told()}; the robot has no freedom besides the poses: move them")


def _apart(d: float) -> str:
    return f"overlap by {-d:.4g} m" if d < 0 else f"are {d:.4g} m apart"


def _at_ends(around: Obstacles, ends: Array) -> Array:
    """(2, P) [m] that pairs keep at the ends (2, n): what is wanted, but by as little as the ends do where smoothing
    alone makes them short of it."""
    short = np.clip(around.missing(ends) + 2 * _TINY, 0.0, around.smoothed)
    return around.wanted + _TINY - np.where(around.lacking(ends) <= _TINY, short, 0.0)


def way_clear(around: Obstacles, frame: str, pose: ca.Function, way: Array, spare: Array) -> Array | None:
    """Way points (k, n) at equal steps of s from others, (k, n), with the frame at the poses; None where none are
    found. spare (P,) [m]: kept besides what is wanted.

    Of all such way points those with the least sum of squared steps, and of fourth differences, which makes them
    smooth; the first is kept where it can be. Source: a nonlinear program, this toolkit.
    """
    k, n = way.shape
    Q = ca.MX.sym("Q", n, k)
    s = ca.DM(np.linspace(0, 1, k)[None, :])
    R, p = pose.map(k)(s)
    there = pose_off(around.robot, frame).map(k)(Q, ca.reshape(R, 9, k), p)
    d = distances(around.robot, around.scene).map(k)(Q)
    steps = np.diff(np.eye(k), axis=0) * np.sqrt(k - 1)
    cost = ca.sumsqr(Q @ ca.DM(steps.T))
    if k > 4:
        fourth = ca.sparsify(ca.DM(np.array([np.roll(np.pad(_FOURTH, (0, k - 5)), i) for i in range(k - 4)])))
        cost += _ROUGH * (k - 1) ** 7 * ca.sumsqr(Q @ fourth.T)
    cost += _HELD * ca.sumsqr(Q[:, 0] - way[0])
    wanted = np.tile(around.wanted + spare, (k, 1))
    wanted[[0, -1]] = np.minimum(wanted[[0, -1]], _at_ends(around, way[[0, -1]]))  # poses there may leave no more
    lower, upper = around.robot.limit("lower"), around.robot.limit("upper")
    outer, inner = checked_options("ipopt", {"max_iter": 200}, free_time=False)
    nlp = {"x": ca.vec(Q), "f": cost, "g": ca.vertcat(ca.vec(there), ca.vec(d))}
    solver: Any = ca.nlpsol("way", "ipopt", nlp, {**outer, "ipopt": inner, "print_time": False})
    zeros, free = np.zeros(6 * k), np.full(wanted.size, np.inf)
    found = solver(
        x0=way.ravel(), lbx=np.tile(lower, k), ubx=np.tile(upper, k),
        lbg=np.concatenate([zeros, wanted.ravel()]), ubg=np.concatenate([zeros, free]),
    )  # fmt: skip
    if not solver.stats()["success"]:
        return None
    return np.array(found["x"]).reshape(k, n)
