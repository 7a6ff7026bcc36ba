"""Motions to follow, as a Function of time that gives q and the time derivatives that an elastic robot needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb, factorial, inf
from typing import Any

import casadi as ca
import numpy as np

from .. import validation
from ..errors import ModelError, OrderError, ShapeError
from ..numbers import are_sane, as_floats
from ..planning.trajectory import Trajectory
from ..ports import derivative_name
from ..subexpressions import merged
from ..types import Array, Numbers
from .model import ElasticRobot


@dataclass(frozen=True, eq=False)
class Reference:
    """A motion to follow. function: casadi.Function t -> q, v, dv, .. and, for robots of variable stiffness, sigma,
    dsigma, d2sigma. breaks: times [s] where a derivative may jump. continuity: derivatives of q without jumps."""

    function: ca.Function
    duration: float
    breaks: tuple[float, ...]
    continuity: int | float

    def at(self, times: Array | Sequence[float]) -> dict[str, Array]:
        """{port: array (rows, times)} at the times [s]."""
        outputs = self.function.map(len(times))(np.reshape(times, (1, -1)))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return {name: x.full() for name, x in zip(self.function.name_out(), outputs, strict=True)}


@dataclass(frozen=True, eq=False)
class Polynomials:
    """Piecewise polynomials: breakpoints t (M + 1,) [s], pieces (M, k, n) of q and its derivatives at their starts.

    points (M, k, n): the same as Bernstein control points, for values as exact at the ends as at the starts; those from
    the starts alone lose digits on the way, at high degrees many.
    """

    t: Array
    pieces: Array
    continuity: int
    points: Array | None = None


def reference(
    elastic: ElasticRobot, motion: Callable[[Any], Any] | Polynomials | Trajectory, *,
    sigma: Callable[[Any], Any] | Polynomials | Trajectory | Numbers | None = None, duration: float | None = None,
    order: int = 0, needs: str = "torque",
) -> Reference:  # fmt: skip
    """Reference of an elastic robot.

    motion: a callable or casadi.Function t -> q (q,), smooth; or polynomials, such as those of rest_to_rest or a
        planned Trajectory. sigma: the same, or numbers, for the stiffness of robots that vary it. duration [s]: of a
        callable.
    order: of the highest derivative of the motor torque that will be asked for. needs: "bounded torque", "torque" for a
        motor torque without jumps, or "torque_rate" for a bounded rate of it.
    Raises OrderError for polynomials that are not continuous enough, saying how often q must be continuously
        differentiable; ShapeError, ModelError.
    """
    if elastic.nq != elastic.nv:
        raise ModelError(elastic.name, ["references are for robots with joints of one coordinate alone"])
    t = ca.MX.sym("t")
    count = elastic.flat_order(order) + 1
    given: Any = motion
    if hasattr(motion, "pieces"):
        wanted = elastic.continuity(needs)
        if given.continuity < wanted:
            raise OrderError(
                f"reference of {elastic.name}: the motion is {given.continuity} times continuously differentiable, "
                f"{_WHY[needs]} needs {wanted}: the motor torque reads derivatives of q up to the "
                f"{elastic.flat_order()}th; plan with continuity={wanted}, or say needs=... if less will do"
            )
        if given.pieces.shape[2] != elastic.nq:
            raise ShapeError(f"reference: the motion has {given.pieces.shape[2]} joints, {elastic.name} {elastic.nq}")
        jets = (_of_pieces if getattr(given, "points", None) is None else _of_points)(t, given, count)
        breaks, duration = tuple(map(float, given.t)), float(given.t[-1] - given.t[0])
        continuity = given.continuity
    else:
        if duration is None or not 0 < duration < inf:
            raise ShapeError(f"reference: duration is {duration!r}, expected a positive number of seconds")
        jets, breaks, continuity = _of_expression(t, "motion", motion, elastic.nq, count), (), inf
    outputs = [derivative_name("v", k - 1) if k else "q" for k in range(count)]
    if elastic.sigma_names:
        if sigma is None:
            raise ShapeError(f"reference: sigma is missing: the stiffness of {', '.join(elastic.sigma_names)}")
        size = len(elastic.sigma_names)
        constant = None if callable(sigma) else validation.numbers("reference: sigma", sigma, size)
        law: Any = sigma if constant is None else (lambda _: ca.DM(constant))
        jets += _of_expression(t, "sigma", law, size, elastic.sigma_order + 1 + order)
        outputs += [derivative_name("sigma", k) for k in range(elastic.sigma_order + 1 + order)]
    return Reference(ca.Function("reference", [t], jets, ["t"], outputs), float(duration), breaks, continuity)


_WHY = {
    "bounded torque": "a bounded motor torque",
    "torque": "a continuous motor torque",
    "torque_rate": "a bounded motor torque rate",
}


def _of_expression(t: ca.MX, what: str, law: Callable[[Any], Any], n: int, count: int) -> list[ca.MX]:
    """[x, x', ..] of an expression in time, by AD."""
    s = ca.SX.sym("t")
    x = law(s)
    x = x[0] if isinstance(x, (tuple, list)) and len(x) == 1 else x
    x = ca.SX(ca.vertcat(*x) if isinstance(x, (tuple, list, np.ndarray)) else x)
    if x.numel() != n:
        raise ShapeError(f"reference: {what} gives {x.numel()} values, expected {n}")
    jets = [ca.densify(ca.vec(x))]
    while len(jets) < count:
        jets.append(ca.densify(ca.jacobian(jets[-1], s)))
    return list(ca.Function(what, [s], merged(jets)).call([t]))


def _of_pieces(t: ca.MX, motion: Any, count: int) -> list[ca.MX]:
    """[q, q', ..] of piecewise polynomials."""
    M, k, n = motion.pieces.shape
    piece = ca.low(ca.DM(motion.t), t) if M > 1 else 0
    columns = ca.MX(ca.DM(motion.pieces.reshape(M, k * n).T))
    mine = columns[:, piece]
    start = ca.MX(ca.DM(motion.t).T)[piece]
    s = t - start
    parts = [mine[j * n : (j + 1) * n] for j in range(k)]
    jets = []
    for d in range(count):
        terms = [parts[j] * s ** (j - d) / factorial(j - d) for j in range(d, k)]
        jets.append(ca.densify(sum(terms[1:], terms[0])) if terms else ca.MX(ca.DM.zeros(n)))
    return jets


def _of_points(t: ca.MX, motion: Any, count: int) -> list[ca.MX]:
    """[q, q', ..] of piecewise polynomials by their control points, whose differences are those of the derivatives."""
    M, k, n = motion.points.shape
    piece = ca.low(ca.DM(motion.t), t) if M > 1 else 0
    ends = ca.MX(ca.DM(motion.t).T)
    h = np.diff(motion.t)[:, None, None]
    before, after = ca.SX.sym("before"), ca.SX.sym("after")  # shares of the piece; each exact near its end
    up, down = [ca.SX(1)], [ca.SX(1)]
    for _ in range(k - 1):
        up.append(up[-1] * before)
        down.append(down[-1] * after)
    basis, tables, points = [], [], motion.points
    for degree in range(k - 1, max(k - 1 - count, -1), -1):
        basis.append(ca.vertcat(*(comb(degree, i) * up[i] * down[degree - i] for i in range(degree + 1))))
        tables.append(points)
        points = degree * np.diff(points, axis=1) / h
    bernstein = ca.Function("bernstein", [before, after], [merged(ca.vertcat(*basis))])
    shares = [x / ca.MX(ca.DM(h.ravel()).T)[piece] for x in (t - ends[piece], ends[piece + 1] - t)]
    rows = ca.vertsplit(bernstein(*shares), np.cumsum([0, *(x.shape[1] for x in tables)]).tolist())
    jets = []
    for table, weights in zip(tables, rows, strict=True):
        columns = ca.MX(ca.DM(table.reshape(M, -1).T))
        jets.append(ca.densify(ca.reshape(columns[:, piece], n, table.shape[1]) @ weights))
    return jets + [ca.MX(ca.DM.zeros(n))] * (count - len(jets))


def rest_to_rest(
    start: Numbers, goal: Numbers, duration: float, *, continuity: int = 4, wait: float = 0.0, hold: float = 0.0,
) -> Polynomials:  # fmt: skip
    """Polynomials from rest to rest, with derivatives up to `continuity` zero at both ends: degree 2 continuity + 1.

    start, goal (n,) [rad, m]; duration [s] of the motion; wait, hold [s] before and after it. All derivatives are exact
    at both ends of a reference built from it. Raises ShapeError.
    """
    start, goal = (as_floats(f"rest_to_rest: {name}", x).ravel() for name, x in (("start", start), ("goal", goal)))
    if start.shape != goal.shape or not (are_sane(start) and are_sane(goal)):
        raise ShapeError(f"rest_to_rest: from {start.tolist()} to {goal.tolist()}, expected as many finite numbers")
    c = validation.count("rest_to_rest: continuity", continuity)
    T = validation.number("rest_to_rest: duration", duration, above=0)
    wait, hold = (validation.number(f"rest_to_rest: {name}", x) for name, x in (("wait", wait), ("hold", hold)))
    if wait < 0 or hold < 0:
        raise ShapeError(f"rest_to_rest: wait {wait:g} s, hold {hold:g} s, expected numbers of at least 0")
    degree = 2 * c + 1
    moving = np.zeros((degree + 1, start.size))
    moving[0] = start
    for i in range(c + 1):
        j = c + 1 + i  # power of t / T
        share = (-1) ** i * comb(c + i, i) * comb(degree, c - i)
        moving[j] = share * factorial(j) / T**j * (goal - start)
    still = np.zeros((2, degree + 1, start.size))
    still[0, 0], still[1, 0] = start, goal
    before, after = (np.tile(x, (c + 1, 1)) for x in (start, goal))
    pieces, points, times = [moving], [np.vstack([before, after])], [0.0, T]
    if wait > 0:
        pieces, points = [still[0], *pieces], [np.vstack([before, before]), *points]
        times = [0.0, wait, wait + T]
    if hold > 0:
        pieces, points = [*pieces, still[1]], [*points, np.vstack([after, after])]
        times = [*times, times[-1] + hold]
    return Polynomials(np.array(times), np.array(pieces), c, np.array(points))
