"""Stiffness, inertia and friction of an elastic robot from recordings, with intervals that hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import validation
from ...errors import ShapeError, SolveError
from ...types import Array
from ..model import ElasticRobot
from .doubts import unexplained, warn_of_doubts
from .equations import KINDS, Equations, equations
from .filters import BANDWIDTH, REACH
from .identifiability import check_identifiable
from .intervals import long_run, quantile
from .recording import Recording, checked
from .result import ElasticIdentification
from .rows import Halves, Rows, check_length, encoder_steps, row_step, rows, states, used_rows
from .sliding import rests, sliding
from .unknowns import LINKS, TRANSMISSIONS, unknowns

_QUIET = 1e-5  # of an equation's rms torque: less noise than this is taken for this much, so that weights stay finite
_STEPS = 20
_SLIDING = 1  # the step after which speeds that friction sees are found anew: parameters hardly move any more
_EXACT = 1e-12  # [rad, m] step of an encoder that is taken for none
_CONVERGED = 1e-4  # of the standard deviation of a parameter


def identify_elastic(
    elastic: ElasticRobot,
    recordings: Recording | Sequence[Recording],
    *,
    springs: Any = None,
    links: str = "known",
    motor_inertia: bool = True,
    motor_friction: bool = True,
    spring_damping: bool = False,
    link_friction: bool = False,
    transmission: str | None = None,
    known: Mapping[str, float] | None = None,
    bandwidth: float | None = None,
    confidence: float = 0.95,
) -> ElasticIdentification:
    """ElasticIdentification of an elastic robot from one or more Recordings.

    elastic: its structure; what is not identified is as it says.
    springs: {joint: law} or one for all: None for the factor of the joint's own law (a LinearSpring's stiffness), a
        degree n for c_1 z + .. + c_n z^n, or a list of functions of the deflection z (casadi) whose factors are
        sought.
    links: "known" (their inertia is that of the robot), "identified" (their base parameters are identified as well; the
        armature of rigid joints is known), or "unused" (their equations are not used: nothing need be known of them,
        and the motor torques alone set the scale).
    motor_inertia, motor_friction (viscous and Coulomb), spring_damping, link_friction (viscous and Coulomb, beyond the
        springs): what is identified, besides springs and the zeros of torques.
    transmission: "gear" identifies for each elastic joint what its motor angle, and inversely its torque, are to be
        multiplied with: gear ratios in question; "encoder" the same for the angle alone; None: both are right.
    known: {name: value} of parameters that are not to be identified, by the names of the result.
    bandwidth [Hz]: of the low-pass that both sides of the equations pass; it should let pass the motion and the
        swings of the springs. Default 15 Hz, or a sixtieth of the sampling rate where that is less. confidence: of
        the intervals.

    Method: torques are linear in the parameters (but for the transmission: Gauss-Newton). Regressors are computed
    twice, from the even and from the odd samples of the encoders, and each is the other's instrument: noise of
    quantised and differentiated positions then does not bias the estimate. Coulomb friction of motors sees their
    likeliest speeds by encoders and torques together, found once, after two steps; see sliding(). Equations weigh by
    the noise that a first fit leaves. The covariance sums what equations leave over lags (Parzen window, 0.5 s at
    15 Hz), so that it counts correlation by filters, by encoders shared between equations, and noise that changes
    along the motion.
    Zeros of torques and deflections are free: each equation of each recording has a constant of its own (offsets), and
    each curved spring a zero within the steps of its encoders. Encoders that stand still do not have independent
    errors: rows where a joint's do are left out, unless one does all the time, as of a motor that is held. Noise of
    torques must be independent of the encoders'.
    A ModelWarning names what is not believable: inertias or stiffnesses below zero or far from the robot given, torques
    that the model does not explain; wrong units or signs of recordings do that.
    Parallel springs and smoothings of friction are known, as the robot has them.
    Raises ModelError for robots with loops, joints of several coordinates, variable stiffness, springs across joints,
    laws of friction for simulation alone, or coupling; ShapeError;
    SolveError naming the parameters that recordings do not tell.
    Sources: Janot, Vandanjon and Gautier 2014 (instruments for robots); Newey and West 1987, Andrews 1991
    (covariance); Albu-Schaeffer and Hirzinger 2001 (elastic joints).
    """
    if not isinstance(elastic, ElasticRobot):
        raise ShapeError(f"identify_elastic: got {type(elastic).__name__}, expected an ElasticRobot")
    given = checked(elastic, recordings)
    options = {
        "motor_inertia": motor_inertia, "motor_friction": motor_friction, "spring_damping": spring_damping,
        "link_friction": link_friction,
    }  # fmt: skip
    flags = {name: validation.flag(f"identify_elastic: {name}", value) for name, value in options.items()}
    links = validation.one_of("use of the links", links, LINKS)
    if transmission is not None:
        transmission = validation.one_of("kind of transmission", transmission, TRANSMISSIONS)
    confidence = validation.number("identify_elastic: confidence", confidence, above=0)
    if confidence >= 1:
        raise ShapeError(f"identify_elastic: confidence is {confidence:g}, expected a number between 0 and 1")
    there = {
        "motors": any(x.tau_m is not None for x in given),
        "sensors": any(x.tau is not None for x in given),
        "link_rows": links != "unused" and any(not x.by_hand for x in given),
    }
    there["offsets"] = False
    eq = equations(unknowns(elastic, springs, links, **flags, transmission=transmission, known=known, **there))
    band = min(BANDWIDTH, *(REACH / x.dt for x in given)) if bandwidth is None else bandwidth
    band = validation.number("identify_elastic: bandwidth", band, above=0)
    for k, x in enumerate(given):
        check_length(f"identify_elastic: recording {k}", x, band)
        if not used_rows(eq, x):
            raise ShapeError(
                f"identify_elastic: recording {k} has no equation: give tau_m, tau, or a motion that is not by hand"
            )
    return _estimated(eq, given, band, confidence)


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is estimated: parameters of the robot, and for each recording the zeros of deflections of curved springs,
    by which only these change their shape. rows, zeros: of x. prior (all,): inverse variances of the zeros, which lie
    anywhere within the encoders' steps, as many times as `repeats`, how many neighbouring rows tell the same."""

    rows: list[int]
    zeros: list[int]
    recordings: int
    prior: Array
    repeats: Array

    def x(self, x: Array, values: Array, k: int) -> Array:
        """All parameters in recording k; values (all,) of what is estimated."""
        out, n, z = x.copy(), len(self.rows), len(self.zeros)
        out[self.rows] = values[:n]
        out[self.zeros] = values[n + k * z : n + (k + 1) * z]
        return out

    def spread(self, eq: Equations, r: Rows, k: int) -> Rows:
        """Rows of recording k with the columns of all that is estimated."""
        place = {row: i for i, row in enumerate(self.rows)}
        first = len(self.rows) + k * len(self.zeros)
        place |= {row: first + i for i, row in enumerate(self.zeros)}
        columns = [place[row] for row in eq.unknowns.asked]
        J, slope = np.zeros((*r.J.shape[:2], self.prior.size)), np.zeros((len(r.slope), self.prior.size))
        J[:, :, columns], slope[:, columns] = r.J, r.slope
        return replace(r, J=J, slope=slope)


def _asked(eq: Equations, given: list[Recording], band: float) -> _Asked:
    u, e = eq.unknowns, eq.unknowns.elastic
    zeros = [row for row in u.asked if row in u.rows["zero"]]
    rows_ = [row for row in u.asked if row not in zeros]
    joints = [e.joints[u.rows["zero"].index(row)] for row in zeros]
    variances, repeats = [np.full(len(rows_), np.inf)], [np.zeros(len(rows_))]
    for r in given:
        step = encoder_steps(r)
        step = np.where(np.isfinite(step), step, 0.0)
        variances.append(np.array([step[j.v] ** 2 + step[e.nv + j.theta[0]] ** 2 for j in joints]) / 12)
        repeats.append(np.full(len(zeros), 1 / (np.sqrt(np.pi) * band * row_step(r.dt, band) * r.dt)))
    every = np.concatenate(repeats)
    return _Asked(rows_, zeros, len(given), every / np.maximum(np.concatenate(variances), _EXACT**2), every)


def _estimated(eq: Equations, given: list[Recording], band: float, confidence: float) -> ElasticIdentification:
    u, asked = eq.unknowns, _asked(eq, given, band)
    names = [u.names[k] for k in asked.rows] + [u.names[k] for k in asked.zeros] * len(given)
    values = np.concatenate([u.start[asked.rows], np.zeros(len(given) * len(asked.zeros))])
    moving, springs = [states(eq, r) for r in given], rests(eq)

    def measured() -> list[Halves]:
        out = []
        for k, (r, both) in enumerate(zip(given, moving, strict=True)):
            x = asked.x(u.start, values, k)
            out.append(Halves(*(asked.spread(eq, rows(eq, r, s, x, band), k) for s in both)))
        return out

    def condition() -> float:
        J = [h.even.J for h in halves], [h.odd.J for h in halves]
        return check_identifiable(u.elastic.name, names, *J, weights, asked.prior)

    halves = measured()
    weights = [_weights(h, values, start=True) for h in halves]
    condition()
    for k in range(_STEPS):
        gram, score = _normal(halves, weights)
        gram, score = gram + np.diag(asked.prior), score - asked.prior * values
        scale = 1 / np.sqrt(np.abs(np.diag(gram)))
        step = scale * np.linalg.solve(gram * scale[:, None] * scale, scale * score)
        values, halves = values + step, _moved(halves, step)
        if k == _SLIDING:
            moving = [
                sliding(eq, springs, r, both, asked.x(u.start, values, i), h.even, band)
                for i, (r, both, h) in enumerate(zip(given, moving, halves, strict=True))
            ]
        if u.transmission or k == _SLIDING:
            halves = measured()
        weights = [_weights(h, values) for h in halves] if k < 3 else weights
        if k >= 3 and np.all(np.abs(step) <= _CONVERGED * scale):
            break
    else:
        raise SolveError(f"identify_elastic: no convergence in {_STEPS} steps; give a nearer start (elastic)", "steps")
    conditioned = condition()
    gram = _normal(halves, weights)[0] + np.diag(asked.prior)
    inverse = np.linalg.inv(gram * scale[:, None] * scale) * scale[:, None] * scale
    spread, freedom = long_run(halves, weights, band)
    n = len(asked.rows)
    covariance = (inverse @ (spread + np.diag(asked.prior * asked.repeats)) @ inverse)[:n, :n]
    half = quantile(0.5 * (1 + confidence), freedom) * np.sqrt(np.diag(covariance))
    x = u.start.copy()
    x[asked.rows] = values[:n]
    facts = _noise(eq, halves), _offsets(eq, halves)
    shares = unexplained(len(eq.names), halves, [_sizes(h, values) for h in halves])
    warn_of_doubts(eq, names[:n], values[:n], half[:n], shares)
    return ElasticIdentification(eq, tuple(names[:n]), values[:n], half, covariance, x, conditioned, band, *facts)


def _moved(halves: list[Halves], step: Array) -> list[Halves]:
    """Rows after a step of the parameters in which they are linear."""

    def moved(r: Rows) -> Rows:
        return replace(r, modelled=r.modelled + r.J @ step, offset=r.offset - r.slope @ step)

    return [Halves(moved(h.even), moved(h.odd)) for h in halves]


def _weights(h: Halves, values: Array, start: bool = False) -> Array:
    """(E,) inverse variances of what equations leave, bounded by a small part of the torques in them; at the start
    those of the torques: parameters that are all wrong by the same factor leave nothing of motors that are off."""
    sizes = _sizes(h, values)
    noise = sizes if start else np.maximum(h.even.rms(h.even.left), _QUIET * sizes)
    return 1 / np.where(noise > 0, noise, 1.0) ** 2


def _sizes(h: Halves, values: Array) -> Array:
    """(E,) rms of the torques in each equation, which may compensate each other."""
    parts = np.sum(np.array([h.even.rms(column) for column in np.moveaxis(h.even.J * values, 2, 0)]) ** 2, axis=0)
    return np.sqrt(parts + h.even.rms(h.even.compared) ** 2)


def _normal(halves: list[Halves], weights: list[Array]) -> tuple[Array, Array]:
    """(gram, score): the step of the parameters is gram^-1 score."""
    p = halves[0].even.J.shape[2]
    gram, score = np.zeros((p, p)), np.zeros(p)
    for h, w in zip(halves, weights, strict=True):
        for k, weight in enumerate(w):
            A, B = h.even.J[k], h.odd.J[k]
            cross = A.T @ B
            gram += 0.5 * weight * (cross + cross.T)
            score += 0.5 * weight * (B.T @ h.even.left[k] + A.T @ h.odd.left[k])
    return gram, score


def _offsets(eq: Equations, halves: list[Halves]) -> Array:
    """(recordings, equations) constants; NaN where an equation is not used."""
    out = np.full((len(halves), len(eq.names)), np.nan)
    for k, h in enumerate(halves):
        out[k, list(h.even.used)] = 0.5 * (h.even.offset + h.odd.offset)
    return out


def _noise(eq: Equations, halves: list[Halves]) -> dict[str, Array]:
    """{kind: rms torque that its equations leave, one per motor, velocity or sensor}, of all recordings together."""
    squares, counts = np.zeros(len(eq.names)), np.zeros(len(eq.names))
    for h in halves:
        left, used = 0.5 * (h.even.left + h.odd.left), list(h.even.used)
        squares[used] += np.sum(left**2, axis=1)
        counts[used] += np.sum(h.even.moving, axis=1)
    with np.errstate(invalid="ignore"):
        rms = np.sqrt(squares / np.where(counts > 0, counts, np.nan))
    return {kind: rms[[k for k, name in enumerate(eq.kinds) if name == kind]] for kind in KINDS}
