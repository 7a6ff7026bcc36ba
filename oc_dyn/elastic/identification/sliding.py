"""Speeds of motors that Coulomb friction sees, from encoders where these tell more, and from the torques where they do.

An encoder that turns round stands on a step for a while: errors of neighbouring samples are then the same, instruments
of even and odd samples do not tell them from motion, and friction comes out too large. Torques tell what moves faster
than an encoder can say.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import casadi as ca
import numpy as np

from ...types import Array
from .equations import Equations
from .filters import EDGE, positions_margin
from .recording import Recording
from .rows import Rows, at_samples, speeds_of_halves

_SEEN = 1e-2  # least variance of differentiated speeds, by the square of the smoothing, at which torques are asked
_STEPS = 20
_HALF_BAND = np.array([3.0, 0, -25, 0, 150, 256, 150, 0, -25, 0, 3]) / 512  # of every second sample; maximally flat
_END = 8  # samples that the filter does not reach
_NEAR = 1e-2  # of the smoothing: a Newton step that small is the last


def sliding(
    eq: Equations, springs: list[ca.Function], recording: Recording, halves: list[list[Array]], x: Array, rows: Rows,
    bandwidth: float,
) -> list[list[Array]]:  # fmt: skip
    """Ports of Equations.model, halves as of rows.states(), with the likeliest speeds of motors that slide under noise.

    minimise  w^2 sum (v - v_encoder)^2 + sum (v' + (friction(v) + .. - tau_m) / m)^2,    w^4 = S_tau / (m^2 S_theta)

    over the speeds v of a motor of inertia m. S_tau, S_theta: densities of the noise of torques, from what rows leave,
    and of angles; at w [rad/s] a speed by differentiation is as uncertain as one by integration. springs: rests(eq). x:
    parameters; rows: of these, by the even samples. A motor whose speeds do not converge keeps those of its encoder.
    Source: Bell 1994 (the iterated Kalman smoother is a Gauss-Newton method).
    """
    e, dt = eq.unknowns.elastic, recording.dt
    if recording.tau_m is None:
        return halves
    motors = range(len(e.elastic_motors))
    even, odd, variance = speeds_of_halves(recording.theta, dt, np.full(len(motors), EDGE))
    density = variance / (8 / 3 * np.pi**2 * (EDGE / dt) ** 3)  # of white noise with such derivatives
    mean, bend = _torques(recording, list(e.elastic_motors), halves[0][0].shape[1])
    both: tuple[list[_Slides], list[_Slides]] = ([], [])
    places = []
    for k in motors:
        motor = _motor(eq, x, k)
        if k not in rows.used or motor.coulomb == 0 or variance[k] <= _SEEN * motor.smoothing**2:
            continue
        row = rows.used.index(k)
        noise = rows.rms(rows.left)[row] ** 2 / (np.sqrt(np.pi) * bandwidth)
        corner = float((noise / (motor.inertia**2 * density[k])) ** 0.25)
        corner = min(max(corner, 2 * np.pi * bandwidth), 2 * np.pi * EDGE / dt)
        tau = mean[k] - rows.offset[row], bend[k]
        found = [
            _likeliest(motor, springs[k], half, v[k], tau, x, corner, 2 * dt)
            for half, v in zip(halves, (even, odd), strict=True)
        ]
        if all(y is not None for y in found):
            places.append(e.nv + k)
            for out, y in zip(both, found, strict=True):
                out += [y] if y is not None else []
    return [_with(half, places, out, both) for half, out in zip(halves, both, strict=True)]


@dataclass(frozen=True, eq=False)
class _Slides:
    """Speeds of a motor (T,), and what samples leave unseen of their tanh."""

    speed: Array
    unseen: Array


def _with(
    half: list[Array], places: list[int], found: list[_Slides], both: tuple[list[_Slides], list[_Slides]],
) -> list[Array]:  # fmt: skip
    """A half with what was found; noise: by what both say."""
    own, variance, unseen = (y.copy() for y in half[6:])
    for k, y, a, b in zip(places, found, *both, strict=True):
        own[k], variance[k], unseen[k] = y.speed, 0.5 * np.mean((a.speed - b.speed) ** 2), y.unseen
    return [*half[:6], own, variance, unseen]


def rests(eq: Equations) -> list[ca.Function]:
    """Of each motor a Function (q, v, theta, d2theta, x) -> torque of its spring and of the other motors."""
    f, out = eq.model, []
    p = {n: ca.SX.sym(n, f.size1_in(n)) for n in ("q", "v", "theta", "d2theta", "x")}
    for k in range(f.size1_in("d2theta")):
        others = ca.vertcat(*(0 if k == i else y for i, y in enumerate(ca.vertsplit(p["d2theta"]))))
        r = f(**{**p, "d2theta": others}, dv=0, dtheta=0, sliding=0, variance=0, unseen=0)["r"][k]
        out.append(ca.Function("rest", list(p.values()), [r]))
    return out


@dataclass(frozen=True, eq=False)
class _Motor:
    """A motor's equation, inertia v' + viscous v + coulomb tanh(v / smoothing) + rest = tau_m - offset."""

    inertia: float
    viscous: float
    coulomb: float
    smoothing: float

    def friction(self, v: Array) -> tuple[Array, Array]:
        """(torque, its derivative) at speeds v, by the inertia."""
        y = np.tanh(v / self.smoothing)
        slope = self.viscous + self.coulomb / self.smoothing * (1 - y**2)
        return (self.viscous * v + self.coulomb * y) / self.inertia, slope / self.inertia


def _motor(eq: Equations, x: Array, k: int) -> _Motor:
    """The equation of motor k at parameters x: it is linear in acceleration, speed and tanh."""
    f, u = eq.model, eq.unknowns
    none = {n: np.zeros(f.size1_in(n)) for n in f.name_in()}

    def torque(port: str, row: int, value: float) -> float:
        at = {**none, "x": x, port: value * (np.arange(none[port].size) == row)}
        return float(f(**at)["r"][k])

    rest = torque("dv", 0, 0.0)
    inertia, viscous = torque("d2theta", k, 1.0) - rest, torque("dtheta", k, 1.0) - rest
    coulomb = torque("sliding", u.elastic.nv + k, 1e9) - rest
    smoothing = u.elastic.friction_smoothing[u.elastic.elastic_motors[k]] / u.of(x, "transmission")[k]
    return _Motor(inertia, viscous, coulomb, float(smoothing))


def _torques(recording: Recording, motors: list[int], count: int) -> tuple[Array, Array]:
    """(motors, count - 1), between every second sample and the next: mean torques, and by how much their first half
    moves the speed in the middle, by inertia and time between."""
    assert recording.tau_m is not None
    first = positions_margin()
    a, b, c = (recording.tau_m[motors, first + k : first + k + 2 * count - 2 : 2] for k in range(3))
    return (0.5 * (a + b), (a - b) / 4) if recording.held else ((a + 4 * b + c) / 6, (a - c) / 8)


def _likeliest(
    motor: _Motor, rest: ca.Function, half: list[Array], measured: Array, torques: tuple[Array, Array], x: Array,
    corner: float, h: float,
) -> _Slides | None:  # fmt: skip
    """Speeds, None where they do not converge: Newton steps, intervals by Simpson's rule."""
    mean, bend = (y / motor.inertia for y in torques)
    q, v, dv, theta, dtheta, d2theta = half[:6]
    ends = at_samples(rest, [q, v, theta, d2theta], x)[0][0] / motor.inertia
    between = [_middle(q, v, h), _middle(v, dv, h), _middle(theta, dtheta, h), 0.5 * (d2theta[:, 1:] + d2theta[:, :-1])]
    middle = at_samples(rest, between, x)[0][0] / motor.inertia
    speed, w2 = measured.copy(), corner**2
    for _ in range(_STEPS):
        push, slope = motor.friction(speed)
        push = push + ends
        inside = 0.5 * (speed[1:] + speed[:-1]) + h * (0.125 * (push[1:] - push[:-1]) + bend)
        rub, rise = motor.friction(inside)
        miss = np.diff(speed) / h + (push[1:] + push[:-1] + 4 * (rub + middle)) / 6 - mean
        before = -1 / h + (slope[:-1] + 4 * rise * (0.5 - 0.125 * h * slope[:-1])) / 6
        behind = 1 / h + (slope[1:] + 4 * rise * (0.5 + 0.125 * h * slope[1:])) / 6
        diagonal, score = np.full(speed.size, w2), w2 * (measured - speed)
        diagonal[:-1] += before**2
        diagonal[1:] += behind**2
        score[:-1] -= before * miss
        score[1:] -= behind * miss
        step = _tridiagonal(diagonal, before * behind, score)
        speed = speed + step
        if np.abs(step).max() <= _NEAR * motor.smoothing:
            return _Slides(speed, _unseen(speed, inside, motor.smoothing))
    return None


def _unseen(speed: Array, inside: Array, smoothing: float) -> Array:
    """What tanh(speed / smoothing), low-passed between samples, has more than at them: a motor that turns round quickly
    does so within two. inside (T - 1,): speeds in the middle between samples; parabolas between."""
    a, b = speed[:-1], speed[1:]
    quarters = [(3 * a + 6 * inside - b) / 8, (3 * b + 6 * inside - a) / 8]
    fine = np.append(np.column_stack([a, quarters[0], inside, quarters[1]]).ravel(), speed[-1])
    y = np.tanh(fine / smoothing)
    for _ in range(2):
        y = np.convolve(y, _HALF_BAND, "same")[::2]
    y -= np.tanh(speed / smoothing)
    y[:_END] = y[len(y) - _END :] = 0.0
    return y


def _middle(x: Array, rate: Array, h: float) -> Array:
    """x between its samples (n, T), by Hermite's cubic."""
    return 0.5 * (x[:, 1:] + x[:, :-1]) + 0.125 * h * (rate[:, :-1] - rate[:, 1:])


def _tridiagonal(diagonal: Array, beside: Array, b: Array) -> Array:
    """x of A x = b, A symmetric, positive definite, with this diagonal (n,) and (n - 1,) beside it."""
    n = len(diagonal)
    entries = np.zeros((n, 3))
    entries[1:, 0], entries[:, 1], entries[:-1, 2] = beside, diagonal, beside
    return np.array(_solver(n)(ca.DM(_band(n), entries.ravel()[1:-1]), b)).ravel()


@lru_cache(maxsize=8)
def _band(n: int) -> ca.Sparsity:
    return ca.Sparsity.banded(n, 1)


@lru_cache(maxsize=8)
def _solver(n: int) -> ca.Function:
    A, b = ca.MX.sym("A", _band(n)), ca.MX.sym("b", n)
    return ca.Function("tridiagonal", [A, b], [ca.solve(A, b, "ldl")])
