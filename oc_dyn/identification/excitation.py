"""Motions that tell base parameters apart: periodic, within the limits, the base regressor well conditioned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..errors import LimitError, ModelError, ShapeError, SolveError
from ..interrupts import TIME_LIMIT, iteration_watch, solver_run
from ..model.read_only import ReadOnlyArrays
from ..model.robot import Robot, check_robot
from ..numbers import shortened
from ..regressor.base_parameters import base_parameters
from ..types import Array, Numbers
from ..validation import count, number
from .criterion import GramCriterion

_POWER = 4  # of the means of eigenvalues that stand for the largest and smallest one


@dataclass(frozen=True, eq=False)
class PeriodicMotion(ReadOnlyArrays):
    """q(t) = offset + sum_l (a_l sin(l w t) - b_l cos(l w t)) / (l w), w = 2 pi / period [s]; a, b (nv, harmonics) are
    amplitudes of velocities [rad/s or m/s]."""

    period: float
    offset: Array
    a: Array
    b: Array

    def sample(self, t: Numbers) -> tuple[Array, Array, Array]:
        """(q, v, dv), each (nv, times), at times t [s]."""
        x = np.column_stack([self.offset, self.a, self.b])
        Q, V, A = _bases(self.period, self.a.shape[1], np.asarray(t, float))
        return x @ Q, x @ V, x @ A

    def __call__(self, t: Any) -> Any:
        """(nv,) q at a time t [s], a number or an expression: a PeriodicMotion is a motion for od.elastic.reference."""
        w = 2 * np.pi / self.period * np.arange(1, self.a.shape[1] + 1)
        return self.offset + ca.DM(self.a / w) @ ca.sin(w * t) - ca.DM(self.b / w) @ ca.cos(w * t)


def exciting_motion(
    robot: Robot,
    *,
    period: float = 10.0,
    harmonics: int = 5,
    samples: int | None = None,
    margin: float = 0.05,
    seed: int = 0,
    iterations: int = 80,
) -> PeriodicMotion:
    """PeriodicMotion that starts and ends at rest and keeps the limits, its base regressor as well conditioned as IPOPT
    makes it in `iterations` steps.

    Limits: position (its range narrowed by `margin` of it on both sides), velocity and acceleration (`margin` below).
    Where a position is not limited it stays within pi, or 1 m; a velocity that is not, within 2 rad/s, or m/s.
    samples: where along the period the limits and the regressor are taken, default 12 per harmonic.
    Minimises log(largest / smallest singular value) of the base regressor, both by means of order 4 of the eigenvalues
    of its Gram matrix, so that it is smooth. Raises ModelError for robots with joints of several coordinates.
    """
    check_robot("exciting_motion", robot)
    if any(j.nq != 1 or j.nv != 1 for j in robot.joints):
        raise ModelError(robot.name, ["exciting motions need joints of one coordinate each"])
    harmonics = count("exciting_motion: harmonics", harmonics, 2)
    iterations, seed = count("exciting_motion: iterations", iterations), count("exciting_motion: seed", seed, most=None)
    period, margin = number("exciting_motion: period", period, above=0), number("exciting_motion: margin", margin)
    if not 0 <= margin < 0.5:
        raise ShapeError(f"exciting_motion: margin is {margin:g}, expected a number from 0 to 0.5")
    nv, points = robot.nv, 12 * harmonics if samples is None else count("exciting_motion: samples", samples, 1)
    lower, upper, speed, acceleration = _limits(robot, margin)
    bases = _bases(period, harmonics, period * np.arange(points) / points)
    spread = _Spread(robot, bases)

    opti = ca.Opti()
    scale = np.minimum(speed, np.pi * (upper - lower) / period)
    z = opti.variable(nv, 1 + 2 * harmonics)
    x = ca.horzcat(z[:, 0], ca.DM(np.diag(scale)) @ z[:, 1:])
    q, v, dv = (x @ ca.DM(B) for B in bases)
    one = ca.DM.ones(1, points)
    opti.subject_to(ca.vec(ca.DM(lower) @ one) <= (ca.vec(q) <= ca.vec(ca.DM(upper) @ one)))
    opti.subject_to(opti.bounded(-1, ca.vec(ca.DM(np.diag(1 / speed)) @ v), 1))
    if np.isfinite(acceleration).any():
        k = np.flatnonzero(np.isfinite(acceleration)).tolist()
        opti.subject_to(opti.bounded(-1, ca.vec(ca.DM(np.diag(1 / acceleration[k])) @ dv[k, :]), 1))
    opti.subject_to(v[:, 0] == 0)
    opti.subject_to(dv[:, 0] == 0)
    opti.minimize(spread(ca.vec(x)))
    opti.set_initial(z, _start(seed, spread, scale, lower, upper, speed, acceleration, bases))
    ipopt: dict[str, Any] = {"print_level": 0, "sb": "yes", "tol": 1e-3, "max_iter": iterations}
    ipopt["hessian_approximation"] = "limited-memory"
    opti.solver("ipopt", {"print_time": False, "expand": False, "iteration_callback": iteration_watch()}, ipopt)
    found = np.array(_solved(opti).value(x)).reshape(nv, -1)
    motion = PeriodicMotion(float(period), found[:, 0], found[:, 1 : 1 + harmonics], found[:, 1 + harmonics :])
    _check(robot, motion, lower, upper, speed, acceleration, margin)
    return motion


def _solved(opti: ca.Opti) -> ca.OptiSol:
    """The last iterate, whatever stopped the solver but the limit of time."""
    try:
        with solver_run() as run:
            return opti.solve_limited()
    except RuntimeError:
        if run.timed_out:
            raise SolveError("exciting_motion: stopped by the limit of time", TIME_LIMIT) from None
        raise


def condition(robot: Robot, motion: PeriodicMotion, samples: int = 400) -> float:
    """Condition number of the base regressor along one period of a motion."""
    check_robot("condition", robot)
    if not isinstance(motion, PeriodicMotion):
        raise ShapeError(f"condition: motion is {shortened(motion)}, expected a PeriodicMotion")
    samples = count("condition: samples", samples, 1)
    q, v, dv = motion.sample(motion.period * np.arange(samples) / samples)
    rows = stacked(base_parameters(robot).regressor(), q, v, dv)
    s = np.linalg.svd(rows, compute_uv=False)
    return float(s[0] / s[-1])


def stacked(regressor: ca.Function, q: Array, v: Array, dv: Array) -> Array:
    """(nv samples, rank) rows of the base regressor at samples (columns), sample after sample."""
    count, (nv, rank) = q.shape[1], regressor.size_out(0)
    out = np.array(regressor(q, v, dv))  # looks at quaternions and loops, too
    return out.reshape(nv, count, rank).transpose(1, 0, 2).reshape(-1, rank)


def _bases(period: float, harmonics: int, t: Array) -> tuple[Array, Array, Array]:
    """Rows of q, v, dv, each (1 + 2 harmonics, times), by offset, a and b."""
    w = 2 * np.pi / period * np.arange(1, harmonics + 1)[:, None]
    s, c, one, none = np.sin(w * t), np.cos(w * t), np.ones((1, t.size)), np.zeros((1, t.size))
    return np.vstack([one, s / w, -c / w]), np.vstack([none, c, s]), np.vstack([none, -w * s, w * c])


def _limits(robot: Robot, margin: float) -> tuple[Array, Array, Array, Array]:
    reach = np.array([1.0 if j.kind == "prismatic" else np.pi for j in robot.joints])
    lower, upper = robot.limit("lower"), robot.limit("upper")
    lower = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * reach, -reach))
    upper = np.where(np.isfinite(upper), upper, lower + 2 * reach)
    room = margin * (upper - lower)
    speed = robot.limit("velocity")
    speed = np.where(np.isfinite(speed), speed, 2.0)
    return lower + room, upper - room, (1 - margin) * speed, (1 - margin) * robot.limit("acceleration")


def _start(
    seed: int,
    spread: ca.Callback,
    scale: Array,
    lower: Array,
    upper: Array,
    speed: Array,
    acceleration: Array,
    bases: tuple[Array, ...],
    tries: int = 10,
) -> Array:
    """The best of a few random motions about the middle of the ranges, each made small enough."""
    rng = np.random.default_rng(seed)
    middle, best, start = 0.5 * (lower + upper), np.inf, np.zeros(0)
    for _ in range(tries):
        z = rng.normal(size=(lower.size, bases[0].shape[0]))
        z[:, 0] = 0.0
        amplitude = [np.abs((z * scale[:, None]) @ B).max(axis=1) for B in bases]
        allowed = 0.5 * (upper - lower), speed, acceleration
        room = np.min([x / y for x, y in zip(allowed, amplitude, strict=True)], axis=0)
        z *= 0.9 * room[:, None]
        z[:, 0] = middle
        x = np.column_stack([middle, z[:, 1:] * scale[:, None]])
        value = float(spread(x.ravel(order="F")))
        if not start.size or value < best:
            best, start = value, z
    return start


def _check(
    robot: Robot, motion: PeriodicMotion, lower: Array, upper: Array, speed: Array, acceleration: Array, margin: float
) -> None:
    """The limits proper, on a grid far finer than that of the constraints."""
    fine = motion.period * np.arange(2000) / 2000
    q, v, dv = motion.sample(fine)
    room = margin * (upper - lower) / (1 - 2 * margin) + 1e-6
    slack = 1 / (1 - margin) + 1e-6
    bad = (q < (lower - room)[:, None]) | (q > (upper + room)[:, None]) | (np.abs(v) > (slack * speed)[:, None])
    bad |= np.abs(dv) > (slack * acceleration)[:, None]
    rows = np.flatnonzero(bad.any(axis=1))
    if rows.size:
        names = ", ".join(robot.joints[k].name for k in rows)
        problem = f"no motion found within the limits of {names}; give a longer period or more iterations"
        raise LimitError(f"exciting_motion of {robot.name}: {problem}")


class _Spread(GramCriterion):
    """Smooth logarithm of the base regressor's condition number by the coefficients of a motion."""

    def __init__(self, robot: Robot, bases: tuple[Array, ...]) -> None:
        super().__init__(base_parameters(robot).regressor(), bases, _log_condition)


def _log_condition(gram: Array) -> tuple[float, Array]:
    """Value, and its derivative by the Gram matrix. That of an eigenvalue e with eigenvector u is u u^T."""
    e, U = np.linalg.eigh(gram)
    e = np.maximum(e, 1e-14 * e[-1])
    high, low = (e / e[-1]) ** _POWER, (e / e[0]) ** -_POWER
    value = 0.5 * (np.log(e[-1] / e[0]) + (np.log(high.sum()) + np.log(low.sum())) / _POWER)
    g = 0.5 * (high / high.sum() - low / low.sum()) / e
    return float(value), (U * g) @ U.T
