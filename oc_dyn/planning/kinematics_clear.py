"""A configuration near one that brings a frame to a pose, which keeps the pairs of a scene apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from ..function import function
from ..model.robot import Robot
from ..optimal_control.avoid import distances
from ..types import Array
from .obstacles import Obstacles

_QUIET: dict[str, Any] = {
    "print_time": False,
    "ipopt": {"print_level": 0, "sb": "yes", "max_iter": 200, "tol": 1e-9, "mu_strategy": "adaptive"},
}  # fmt: skip
_SPARE = 1e-6  # [m] that is left for the last steps
_STEPS = 20


def moved_clear(
    around: Obstacles, frame: str, miss: Callable[..., tuple[Array, Array]], q: Array, p: Array, R: Array | None,
    tolerance: float, bounds: tuple[Array, Array],
) -> Array | None:  # fmt: skip
    """The configuration nearest to q (nq,) with the frame at p (3,), its axes at R (3, 3) or free, that keeps the
    clearance; None where none is found from there.

    A nonlinear program on the tangent space at q: least step, under equations of the pose and the distances.
    """
    robot = around.robot
    e, solver = _program(around, frame, R is not None)
    given = ca.vertcat(q, p, *([] if R is None else [ca.vec(ca.DM(R))]))
    lower, upper = bounds
    n_pose = 3 if R is None else 6
    wanted = around.wanted + _SPARE
    low = np.concatenate([np.zeros(n_pose), wanted, lower])
    high = np.concatenate([np.zeros(n_pose), np.full(len(wanted), np.inf), upper])
    try:
        found = solver(x0=np.zeros(e), p=given, lbg=low, ubg=high)
    except RuntimeError:
        return None
    if not np.isfinite(np.array(found["x"])).all():
        return None
    return _polished(around, miss, robot.integrate(q, np.array(found["x"]).ravel()), p, R, tolerance, bounds)


def _polished(around, miss, q, p, R, tolerance, bounds):
    """q with the pose met to the tolerance, by a few short steps; None where that, or the clearance, is missed."""
    for _ in range(_STEPS):
        error, J = miss(q, p, R)
        if np.abs(error).max() < tolerance:
            inside = (q >= bounds[0] - 1e-12).all() and (q <= bounds[1] + 1e-12).all()
            return q if inside and around.free(q)[0] else None
        if np.abs(error).max() > 1e-3:
            return None
        q = np.clip(around.robot.integrate(q, np.linalg.pinv(J) @ error), *bounds)
    return None


def _program(around: Obstacles, frame: str, turned: bool):
    """(nv, nlpsol over a step e (nv,)) with parameters q, p and R."""
    robot = around.robot
    e, q, p = ca.MX.sym("e", robot.nv), ca.MX.sym("q", robot.nq), ca.MX.sym("p", 3)
    R = ca.MX.sym("R", 9) if turned else ca.MX(0, 1)
    there = robot.integrate_function()(q, e)
    off = pose_off(robot, frame)(there, R if turned else 0, p)[: 6 if turned else 3]
    d = distances(robot, around.scene)(there)
    nlp = {"x": e, "p": ca.vertcat(q, p, R), "f": ca.sumsqr(e) / 2, "g": ca.vertcat(off, d, there)}
    return robot.nv, ca.nlpsol("clear", "ipopt", nlp, _QUIET)


def pose_off(robot: Robot, frame: str) -> ca.Function:
    """Function (q, R (9,), p) -> (6,): what is missing of a pose, position first, zero where it is met, near it."""
    q, R, p = ca.MX.sym("q", robot.nq), ca.MX.sym("R", 9), ca.MX.sym("p", 3)
    at = function(robot, "frame_pose", frame=frame)(q=q)
    D = ca.mtimes(at["R"], ca.reshape(R, 3, 3).T)
    turned = ca.vertcat(D[2, 1] - D[1, 2], D[0, 2] - D[2, 0], D[1, 0] - D[0, 1]) / 2
    return ca.Function("off", [q, R, p], [ca.vertcat(at["p"] - p, turned)])
