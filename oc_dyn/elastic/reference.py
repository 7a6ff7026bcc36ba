"""Motions to follow, as a Function of time that gives q and the time derivatives that an elastic robot needs."""

from dataclasses import dataclass
from math import comb, factorial, inf

import casadi as ca
import numpy as np

from ..errors import ModelError, OrderError, ShapeError
from ..ports import derivative_name


@dataclass(frozen=True, eq=False)
class Reference:
    """A motion to follow. function: casadi.Function t -> q, v, dv, .. and, for robots of variable stiffness, sigma,
    dsigma, d2sigma. breaks: times [s] where a derivative may jump. continuity: derivatives of q without jumps."""

    function: ca.Function
    duration: float
    breaks: tuple
    continuity: float

    def at(self, times):
        """{port: array (rows, times)} at the times [s]."""
        found = self.function.map(len(times))(np.reshape(times, (1, -1)))
        found = found if isinstance(found, tuple) else (found,)
        return {name: x.full() for name, x in zip(self.function.name_out(), found, strict=True)}


@dataclass(frozen=True, eq=False)
class Polynomials:
    """Piecewise polynomials: breakpoints t (M + 1,) [s], pieces (M, k, n) of q and its derivatives at their starts."""

    t: np.ndarray
    pieces: np.ndarray
    continuity: int


def reference(elastic, motion, *, sigma=None, duration=None, order=0, needs="torque"):
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
    if hasattr(motion, "pieces"):
        wanted = elastic.continuity(needs)
        if motion.continuity < wanted:
            raise OrderError(
                f"reference of {elastic.name}: the motion is {motion.continuity} times continuously differentiable, "
                f"{_WHY[needs]} needs {wanted}: the motor torque reads derivatives of q up to the "
                f"{elastic.flat_order()}th; plan with continuity={wanted}, or say needs=... if less will do"
            )
        if motion.pieces.shape[2] != elastic.nq:
            raise ShapeError(f"reference: the motion has {motion.pieces.shape[2]} joints, {elastic.name} {elastic.nq}")
        jets, breaks, duration = _of_pieces(t, motion, count), tuple(motion.t), float(motion.t[-1] - motion.t[0])
        continuity = motion.continuity
    else:
        if duration is None or not 0 < duration < inf:
            raise ShapeError(f"reference: duration is {duration!r}, expected a positive number of seconds")
        jets, breaks, continuity = _of_expression(t, "motion", motion, elastic.nq, count), (), inf
    outputs = [derivative_name("v", k - 1) if k else "q" for k in range(count)]
    if elastic.sigma_names:
        if sigma is None:
            raise ShapeError(f"reference: sigma is missing: the stiffness of {', '.join(elastic.sigma_names)}")
        given = (
            sigma
            if callable(sigma)
            else (lambda _: ca.DM(np.broadcast_to(np.asarray(sigma, float), len(elastic.sigma_names))))
        )
        jets += _of_expression(t, "sigma", given, len(elastic.sigma_names), 3 + order)
        outputs += [derivative_name("sigma", k) for k in range(3 + order)]
    return Reference(ca.Function("reference", [t], jets, ["t"], outputs), float(duration), breaks, continuity)


_WHY = {
    "bounded torque": "a bounded motor torque",
    "torque": "a continuous motor torque",
    "torque_rate": "a bounded motor torque rate",
}


def _of_expression(t, what, given, n, count):
    """[x, x', ..] of an expression in time, by AD."""
    s = ca.SX.sym("t")
    x = given(s)
    x = x[0] if isinstance(x, (tuple, list)) and len(x) == 1 else x
    x = ca.SX(ca.vertcat(*x) if isinstance(x, (tuple, list, np.ndarray)) else x)
    if x.numel() != n:
        raise ShapeError(f"reference: {what} gives {x.numel()} values, expected {n}")
    jets = [ca.densify(ca.vec(x))]
    while len(jets) < count:
        jets.append(ca.densify(ca.jacobian(jets[-1], s)))
    return list(ca.Function(what, [s], ca.cse(jets)).call([t]))


def _of_pieces(t, motion, count):
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


def rest_to_rest(start, goal, duration, *, continuity=4, wait=0.0, hold=0.0):
    """Polynomials from rest to rest, with derivatives up to `continuity` zero at both ends: degree 2 continuity + 1.

    start, goal (n,) [rad, m]; duration [s] of the motion; wait, hold [s] before and after it.
    """
    start, goal = (np.asarray(x, float).ravel() for x in (start, goal))
    c, T = int(continuity), float(duration)
    if start.shape != goal.shape or not T > 0 or c < 0:
        raise ShapeError(f"rest_to_rest: got {start.size} and {goal.size} joints, duration {T:g}, continuity {c}")
    degree = 2 * c + 1
    moving = np.zeros((degree + 1, start.size))
    moving[0] = start
    for i in range(c + 1):
        j = c + 1 + i  # power of t / T
        share = (-1) ** i * comb(c + i, i) * comb(degree, c - i)
        moving[j] = share * factorial(j) / T**j * (goal - start)
    still = np.zeros((2, degree + 1, start.size))
    still[0, 0], still[1, 0] = start, goal
    pieces, times = [moving], [0.0, T]
    if wait > 0:
        pieces, times = [still[0], *pieces], [0.0, wait, wait + T]
    if hold > 0:
        pieces, times = [*pieces, still[1]], [*times, times[-1] + hold]
    return Polynomials(np.array(times), np.array(pieces), c)
