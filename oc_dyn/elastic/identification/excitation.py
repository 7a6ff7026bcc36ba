"""Motions that tell the parameters of an elastic robot: periodic, within the limits, of the largest information."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ... import validation
from ...errors import LimitError, ModelError, ShapeError, SolveError
from ...function import function
from ...identification.criterion import GramCriterion
from ...identification.excitation import PeriodicMotion
from ...interrupts import TIME_LIMIT, iteration_watch, solver_run
from ...types import Array, Numbers
from ..effects import refuse_effects
from ..model import ElasticRobot
from .equations import Equations, equations
from .unknowns import LINKS, unknowns

_DERIVATIVES = 5  # q .. d3v
_FINE = 2000  # samples at which limits are looked at
_FAST = 2.0  # [rad/s, m/s] where a joint's velocity has no limit
_WHERE = "od.elastic.exciting_motion"


def exciting_motion(
    elastic: ElasticRobot,
    *,
    period: float = 10.0,
    harmonics: int = 8,
    torque_limit: Numbers | None = None,
    margin: float = 0.05,
    samples: int | None = None,
    seed: int = 0,
    iterations: int = 60,
    springs: Any = None,
    links: str = "known",
    spring_damping: bool = False,
    link_friction: bool = False,
) -> PeriodicMotion:
    """PeriodicMotion q(t) of the links that begins at rest, its first four derivatives zero, and is as informative for
    identify_elastic as IPOPT makes it: a D-optimal design.

    Maximises log det of the Gram matrix of the equations' derivatives by the parameters, motors' equations in parts of
    their torque limits, along the motion of the elastic robot as given (without the springs' dampers), under its limits
    of position and velocity and torque_limit (motors,) [Nm], `margin` of each left free. Where a position is not
    limited it stays within pi, or 1 m; a velocity that is not, within 2 rad/s or m/s. Highest frequency: harmonics /
    period [Hz]. samples: where along the period, default 12 per harmonic.
    springs, links, spring_damping, link_friction: what is to be identified, as in identify_elastic; inertia and
    friction of the motors always.
    A period repeated exactly repeats the errors of quantised encoders too: for one long recording plan one long
    period. Use: reference(elastic, motion, duration=motion.period).
    Raises LimitError where no motion within the limits was found; ModelError, ShapeError.
    """
    if not isinstance(elastic, ElasticRobot):
        raise ShapeError(f"{_WHERE}: got {type(elastic).__name__}, expected an ElasticRobot")
    refuse_effects(_WHERE, elastic)
    elastic = elastic.undamped()
    eq = _equations(elastic, springs, links, spring_damping, link_friction)
    limits = _limits(elastic, torque_limit, margin)
    period = validation.number(f"{_WHERE}: period", period, above=0)
    harmonics = validation.count(f"{_WHERE}: harmonics", harmonics, 3)
    points = 12 * harmonics if samples is None else validation.count(f"{_WHERE}: samples", samples, 1)
    iterations, seed = validation.count(f"{_WHERE}: iterations", iterations), validation.count(f"{_WHERE}: seed", seed)
    free = _at_rest(period, harmonics)
    design = _Design(elastic, eq, limits, period, free)
    coefficients = design.optimised(points, design.start(points, seed), iterations)
    motion = PeriodicMotion(
        period, coefficients[:, 0], coefficients[:, 1 : 1 + harmonics], coefficients[:, 1 + harmonics :]
    )
    design.check(coefficients)
    return motion


@dataclass(frozen=True, eq=False)
class _Limits:
    lower: Array  # [rad, m]
    upper: Array
    speed: Array
    torque: Array  # (motors,), inf for none
    margin: float


def _equations(elastic: ElasticRobot, springs: Any, links: str, spring_damping: bool, link_friction: bool) -> Equations:
    links = validation.one_of("use of the links", links, LINKS)
    flags = {"spring_damping": spring_damping, "link_friction": link_friction}
    flags = {name: validation.flag(f"{_WHERE}: {name}", value) for name, value in flags.items()}
    asked = unknowns(
        elastic, springs, links, motor_inertia=True, motor_friction=True, **flags, transmission=None, known={},
        motors=True, sensors=False, link_rows=links != "unused", offsets=True,
    )  # fmt: skip
    return equations(asked)


def _limits(elastic: ElasticRobot, torque_limit: Any, margin: float) -> _Limits:
    margin = validation.number(f"{_WHERE}: margin", margin)
    if not 0 <= margin < 0.5:
        raise ShapeError(f"{_WHERE}: margin is {margin:g}, expected a number from 0 to 0.5")
    robot = elastic.links
    reach = np.array([1.0 if j.kind == "prismatic" else np.pi for j in robot.joints])
    lower, upper = robot.limit("lower"), robot.limit("upper")
    lower = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * reach, -reach))
    upper = np.where(np.isfinite(upper), upper, lower + 2 * reach)
    speed = robot.limit("velocity")
    torque = np.full(len(elastic.motor_names), np.inf)
    if torque_limit is not None:
        torque = validation.numbers(f"{_WHERE}: torque_limit", torque_limit, torque.size)
        if not np.all(torque > 0):
            raise ShapeError(f"{_WHERE}: torque_limit is {torque.tolist()}, expected positive numbers")
    return _Limits(lower, upper, np.where(np.isfinite(speed), speed, _FAST), torque, margin)


def _bases(period: float, harmonics: int, t: Array) -> tuple[Array, ...]:
    """(1 + 2 harmonics, times) rows of q, v, .. d3v by offset, a and b of a PeriodicMotion."""
    w = 2 * np.pi / period * np.arange(1, harmonics + 1)[:, None]
    out = []
    for k in range(_DERIVATIVES):
        turned = w * t + 0.5 * np.pi * k  # a derivative is a quarter turn
        constant = np.full((1, t.size), float(k == 0))
        out.append(np.vstack([constant, w ** (k - 1) * np.sin(turned), -(w ** (k - 1)) * np.cos(turned)]))
    return tuple(out)


def _at_rest(period: float, harmonics: int) -> Array:
    """(free, 1 + 2 harmonics): rows span the coefficients of motions that begin at rest, the offset first."""
    rest = np.hstack([B[1:] for B in _bases(period, harmonics, np.zeros(1))[1:]])
    U, s, _ = np.linalg.svd(rest / np.linalg.norm(rest, axis=0))
    null = U[:, int(np.sum(s > 1e-10)) :].T
    out = np.zeros((1 + len(null), 1 + 2 * harmonics))
    out[0, 0], out[1:, 1:] = 1.0, null
    return out


class _Design:
    """The problem: coefficients y (v, free) of motions that begin at rest."""

    def __init__(self, elastic: ElasticRobot, eq: Equations, limits: _Limits, period: float, free: Array) -> None:
        self.elastic, self.limits, self.period, self.free = elastic, limits, period, free
        self.harmonics = (free.shape[1] - 1) // 2
        self.flat = function(elastic, "elastic_flat_map")
        self.rows = _rows(elastic, eq, self.flat, limits.torque)

    def bases(self, points: int) -> tuple[Array, ...]:
        t = self.period * np.arange(points) / points
        return tuple(self.free @ B for B in _bases(self.period, self.harmonics, t))

    def share(self, y: Array, points: int) -> float:
        """Largest share of any limit but for its margin."""
        x = [y @ B for B in self.bases(points)]
        tau = self.flat.map(points)(*x)[-1].full()
        m, half = self.limits, 0.5 * (self.limits.upper - self.limits.lower)
        middle = 0.5 * (m.upper + m.lower)
        parts = [(x[0] - middle[:, None]) / half[:, None], x[1] / m.speed[:, None], tau / m.torque[:, None]]
        return float(max(np.abs(part).max() for part in parts) / (1 - m.margin))

    def start(self, points: int, seed: int, tries: int = 8) -> Array:
        """The most informative of some random motions about the middle of the ranges, each made small enough."""
        rng, criterion = np.random.default_rng(seed), self.criterion(points)
        n, best, found = self.elastic.nv, np.inf, None
        middle = 0.5 * (self.limits.lower + self.limits.upper)
        for _ in range(tries):
            y = np.zeros((n, len(self.free)))
            y[:, 1:] = rng.normal(size=(n, len(self.free) - 1))
            reach = np.abs(y @ self.bases(points)[0]).max(axis=1)
            y *= (0.9 * 0.5 * (self.limits.upper - self.limits.lower) / reach)[:, None]
            for _ in range(60):  # gravity may ask for more than the limit at the middle itself
                y[:, 0] = middle
                if self.share(y, points) <= 1:
                    break
                y *= 0.8
            else:
                continue
            value = float(criterion(y.ravel(order="F")))
            if value < best:
                best, found = value, y
        if found is None:
            raise LimitError(
                f"exciting_motion of {self.elastic.name}: no motion about the middle of the joints' ranges keeps "
                "torque_limit; give higher limits of torque, or a robot with narrower ranges of its joints"
            )
        return found

    def criterion(self, points: int) -> GramCriterion:
        return GramCriterion(self.rows, self.bases(points), _minus_log_det)

    def optimised(self, points: int, start: Array, iterations: int) -> Array:
        """Coefficients (v, 1 + 2 harmonics) after so many steps of IPOPT."""
        m, n = self.limits, self.elastic.nv
        criterion, bases = self.criterion(points), self.bases(points)
        # each coefficient in units of the largest one of its joint at the start
        scale = np.tile(np.abs(start[:, 1:]).max(axis=1, keepdims=True), (1, start.shape[1]))
        scale[:, 0] = 0.5 * (m.upper - m.lower)
        opti = ca.Opti()
        z = opti.variable(n, start.shape[1])
        y = z * ca.DM(scale)
        x = [y @ ca.DM(B) for B in bases]
        middle, half = 0.5 * (m.lower + m.upper), 0.5 * (m.upper - m.lower)
        room = 1 - m.margin
        opti.subject_to(opti.bounded(-room, ca.vec((x[0] - ca.DM(middle)) / ca.DM(half)), room))
        opti.subject_to(opti.bounded(-room, ca.vec(x[1] / ca.DM(m.speed)), room))
        limited = np.flatnonzero(np.isfinite(m.torque)).tolist()
        if limited:
            tau = self.flat.map(points)(*x)[-1][limited, :] / ca.DM(m.torque[limited])
            opti.subject_to(opti.bounded(-room, ca.vec(tau), room))
        opti.minimize(criterion(ca.vec(y)))
        opti.set_initial(z, start / scale)
        ipopt: dict[str, Any] = {"print_level": 0, "sb": "yes", "tol": 1e-3, "max_iter": iterations}
        ipopt["hessian_approximation"] = "limited-memory"
        opti.solver("ipopt", {"print_time": False, "expand": False, "iteration_callback": iteration_watch()}, ipopt)
        try:
            with solver_run() as run:
                found = np.array(opti.solve_limited().value(y)).reshape(n, -1)
        except RuntimeError:
            if run.timed_out:
                raise SolveError("exciting_motion: stopped by the limit of time", TIME_LIMIT) from None
            found = np.array(opti.debug.value(y)).reshape(n, -1)
        # an iterate that was not finished, or limits between samples: smaller about its offset, or the start
        fine = max(_FINE, 8 * points)
        for shrunk in (found, *(np.hstack([found[:, :1], f * found[:, 1:]]) for f in (0.98, 0.95, 0.9, 0.8)), start):
            if np.all(np.isfinite(shrunk)) and self.share(shrunk, fine) <= 1 / room:
                found = shrunk
                break
        else:
            found = start
        if float(criterion(found.ravel(order="F"))) > float(criterion(start.ravel(order="F"))):
            found = start
        return found @ self.free

    def check(self, coefficients: Array) -> None:
        """LimitError where the motion leaves its limits on a fine grid."""
        y = coefficients @ np.linalg.pinv(self.free)
        if self.share(y, _FINE) > (1 + 1e-6) / (1 - self.limits.margin):
            raise LimitError(
                f"exciting_motion of {self.elastic.name}: no motion found within the limits; give a longer period, "
                "fewer harmonics or more iterations"
            )


def _rows(elastic: ElasticRobot, eq: Equations, flat: ca.Function, torque: Array) -> ca.Function:
    """casadi.Function (q, v, dv, d2v, d3v) -> derivatives (equations, parameters) of the equations, motors' in parts of
    their torque limits where these are finite."""
    if elastic.flat_order() != _DERIVATIVES - 1:
        raise ModelError(elastic.name, ["exciting motions are for the reduced model"])
    x = [ca.SX.sym(name, elastic.nv) for name in flat.name_in()]
    theta, dtheta, d2theta, _ = flat.call(x)
    m = len(elastic.elastic_motors)
    values = ca.DM(eq.unknowns.start)
    J = eq.model(*x[:3], theta, dtheta, d2theta, ca.vertcat(x[1], dtheta), *2 * [ca.DM(elastic.nv + m, 1)], values)[2]
    kept = [
        k for k, kind in enumerate(eq.kinds) if kind == "motor" or (kind == "link" and eq.unknowns.links != "unused")
    ]
    full = ca.SX(len(eq.names), len(eq.unknowns.asked))
    for k, (i, j) in enumerate(zip(*eq.sparsity, strict=True)):
        full[int(i), int(j)] = J[k]
    sizes = np.ones(len(eq.names))
    finite = np.where(np.isfinite(torque), torque, 1.0)
    sizes[:m] = finite[list(elastic.elastic_motors)]
    for j in elastic.joints:
        sizes[m + j.v] = finite[j.tau[0]]
    for v, motor in zip(elastic.rigid, elastic.rigid_motors, strict=True):
        sizes[m + v] = finite[motor]
    return ca.Function("rows", x, [ca.densify((full / ca.DM(sizes))[kept, :])])


def _minus_log_det(gram: Array) -> tuple[float, Array]:
    """-log det of a Gram matrix, and its derivative, columns scaled; what hardly counts is bounded."""
    scale = 1 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    e, U = np.linalg.eigh(gram * scale[:, None] * scale)
    e = np.maximum(e, 1e-13 * e[-1])
    inverse = (U / e) @ U.T * scale[:, None] * scale
    return float(-np.log(e).sum() + 2 * np.log(scale).sum()), -inverse
