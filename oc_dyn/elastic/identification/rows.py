"""Equations of an elastic robot along a recording, low-passed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from ...errors import ShapeError
from ...types import Array
from .equations import Equations
from .filters import EDGE, REACH, derivatives, low_pass_margin, low_passed, positions_margin, speeds
from .recording import Recording

_ROWS_PER_BANDWIDTH = 8  # rows in the time 1 / bandwidth
_CHUNK = 1000  # samples
_STILL = 0.1  # [s] in which, before or after, an encoder that moves changes by two of its steps
_NOISY = 0.1  # most variance of the speeds that Coulomb friction sees, by the square of its smoothing
_LOWEST = 0.1  # least edge of their low-pass, by EDGE


@dataclass(frozen=True, eq=False)
class Rows:
    """Equations along a recording, low-passed: used: which of Equations.names. measured (E, T); modelled, compared
    (E, T): sides at the parameters x; J (E, T, p) by those asked for. start, step [s]: times of the rows.

    Every equation has a constant `offset` (E,), which is part of `modelled`: that of least squares, so that what is
    left has no mean, and neither has J; slope (E, p): the mean taken from it. moving (E, T): 1 where the encoders of an
    equation's joint move, else 0: J is zero there, and nothing is `left`.
    """

    used: tuple[int, ...]
    measured: Array
    modelled: Array
    compared: Array
    J: Array
    offset: Array
    slope: Array
    moving: Array
    start: float
    step: float

    @property
    def left(self) -> Array:
        """(E, T) what the model leaves of the torques, zero where encoders stand still."""
        return self.moving * (self.measured - self.modelled)

    def rms(self, x: Array) -> Array:
        """(E,) root of the mean square of x (E, T) where encoders move."""
        return np.sqrt(np.sum(self.moving * x**2, axis=1) / np.maximum(np.sum(self.moving, axis=1), 1.0))


@dataclass(frozen=True, eq=False)
class Halves:
    """Rows of a recording by the even and by the odd samples of its encoders."""

    even: Rows
    odd: Rows


def used_rows(eq: Equations, recording: Recording) -> tuple[int, ...]:
    """Which equations a recording has."""
    e, allowed = eq.unknowns.elastic, []
    for k, kind in enumerate(eq.kinds):
        link = k - len(e.elastic_motors)
        there = {
            "motor": recording.tau_m is not None,
            "link": eq.unknowns.links != "unused" and not recording.by_hand
            and (eq.sprung[k] or recording.tau_m is not None),
            "sensor": recording.tau is not None,
        }  # fmt: skip
        if kind == "link" and not eq.sprung[k] and link not in e.rigid:
            there["link"] = False
        if there[kind]:
            allowed.append(k)
    return tuple(allowed)


def row_step(dt: float, bandwidth: float) -> int:
    """Samples from one row to the next: an even number."""
    return max(2, 2 * int(1 / (2 * _ROWS_PER_BANDWIDTH * bandwidth * dt)))


def check_length(where: str, recording: Recording, bandwidth: float) -> None:
    """ShapeError where a recording is too coarse or too short for the filters."""
    dt = recording.dt
    if bandwidth > 1.0001 * REACH / dt:
        raise ShapeError(
            f"{where}: bandwidth is {bandwidth:g} Hz, expected at most {REACH / dt:.3g} Hz, 1/60 of the sampling rate; "
            "give a smaller bandwidth, or sample faster"
        )
    lost = 2 * (positions_margin() + low_pass_margin(dt, bandwidth) + 2 * row_step(dt, bandwidth))
    if recording.q.shape[1] < 2 * lost:
        raise ShapeError(
            f"{where}: it has {recording.q.shape[1]} samples, expected at least {2 * lost}: the filters take {lost} of "
            "them at its ends"
        )


def states(eq: Equations, recording: Recording, halves: bool = True) -> list[list[Array]]:
    """[ports of Equations.model but for x], at every second sample, by the even and by the odd samples of positions;
    halves=False: one by all of them."""
    e, dt = eq.unknowns.elastic, recording.dt
    both = np.vstack([recording.q, recording.theta])
    u = eq.unknowns
    rub = [row in u.asked or u.start[row] != 0 for row in u.rows["link_friction"]]  # links that have Coulomb friction
    smoothing = np.append(np.where(rub, e.link_smoothing, np.inf), [e.friction_smoothing[m] for m in e.elastic_motors])
    for m, v in zip(e.rigid_motors, e.rigid, strict=True):
        smoothing[v] = min(smoothing[v], e.friction_smoothing[m])
    even, odd, variance = speeds_of_halves(both, dt, np.full(len(both), EDGE))
    # the variance of differentiated white noise grows with the cube of the edge
    share = np.maximum(variance / smoothing**2, 1e-300)
    edges = EDGE * np.clip(_NOISY / share, _LOWEST**3, 1.0) ** (1 / 3)
    if np.any(edges < EDGE):
        even, odd, variance = speeds_of_halves(both, dt, edges)
    out = []
    for half, sliding in ((0, even), (1, odd)) if halves else ((None, 0.5 * (even + odd)),):
        own = [*derivatives(recording.q, dt, half), *derivatives(recording.theta, dt, half), sliding]
        noise = 0.5 * variance if half is None else variance
        out.append([*own, np.repeat(noise[:, None], sliding.shape[1], axis=1), np.zeros_like(sliding)])
    return out


def speeds_of_halves(x: Array, dt: float, edges: Array) -> tuple[Array, Array, Array]:
    """(speeds by the even, by the odd samples, variance of the noise of either) of rows x, edges as of speeds()."""
    even, odd = (speeds(x, dt, edges, half) for half in (0, 1))
    return even, odd, 0.5 * np.mean((even - odd) ** 2, axis=1)


def rows(eq: Equations, recording: Recording, state: list[Array], x: Array, bandwidth: float) -> Rows:
    """Rows of a recording at parameters x, its motion as of states()."""
    e, dt, used = eq.unknowns.elastic, recording.dt, used_rows(eq, recording)
    every, cut = row_step(dt, bandwidth), low_pass_margin(2 * dt, bandwidth)
    modelled, compared, J = (low_passed(y, 2 * dt, bandwidth, every // 2) for y in at_samples(eq.model, state, x))
    first = positions_margin() + 2 * cut  # sample of the first row
    count = modelled.shape[1]
    full = np.zeros((len(eq.names), count, len(eq.unknowns.asked)))
    full[eq.sparsity[0], :, eq.sparsity[1]] = J
    measured = np.zeros((len(eq.names), count))
    for kind, values in (("motor", recording.tau_m), ("sensor", recording.tau)):
        if values is None:
            continue
        values = _sampled(values, dt, bandwidth, first, every, count, recording.held and kind == "motor")
        mine = [k for k, name in enumerate(eq.kinds) if name == kind]
        measured[mine] = values[list(e.elastic_motors)] if kind == "motor" else values
        if kind == "motor":
            for m, v in zip(e.rigid_motors, e.rigid, strict=True):
                measured[len(e.elastic_motors) + v] = values[m]
    pick = list(used)
    measured, modelled, compared, full = measured[pick], modelled[pick], compared[pick], full[pick]
    moving = _moving(eq, recording, bandwidth, first, every, count)[pick]
    share = moving / np.maximum(np.sum(moving, axis=1, keepdims=True), 1.0)
    offset = np.sum(share * (measured - modelled), axis=1)
    slope = np.einsum("et,etp->ep", share, full)
    full = (full - slope[:, None]) * moving[:, :, None]
    modelled = modelled + offset[:, None]
    return Rows(used, measured, modelled, compared, full, offset, slope, moving, first * dt, every * dt)


def encoder_steps(recording: Recording) -> Array:
    """(q and theta,) smallest change of each encoder: its step if it is quantised, else hardly anything; inf where it
    never changes."""
    changes = np.abs(np.diff(np.vstack([recording.q, recording.theta]), axis=1))
    return np.min(np.where(changes > 0, changes, np.inf), axis=1)


def _moving(eq: Equations, recording: Recording, bandwidth: float, first: int, every: int, count: int) -> Array:
    """(equations, T) 1 where both encoders of a joint move, or one does and the other stands all the time.

    Errors of an encoder that stands still do not change, and could not be told from torques that are missing; where it
    never moves they are part of a constant.
    """
    e, dt = eq.unknowns.elastic, recording.dt
    both = np.vstack([recording.q, recording.theta])
    step = encoder_steps(recording)
    x = _sampled(both, dt, bandwidth, first, every, count, False)
    reach = max(1, round(_STILL / (every * dt)))
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((0, 0), (reach, reach)), mode="edge"), 2 * reach + 1, 1
    )
    moves = np.ptp(windows, axis=2) >= 2 * step[:, None]
    moves |= (np.ptp(x, axis=1) < 2 * step)[:, None]
    q, theta = moves[: e.nv], moves[e.nv :]
    joints = np.array([q[j.v] & theta[j.theta[0]] for j in e.joints])
    links = q.copy()
    for j, own in zip(e.joints, joints, strict=True):
        links[j.v] = own
    return np.vstack([joints, links, joints]).astype(float)


def at_samples(f: ca.Function, state: list[Array], x: Array) -> list[Array]:
    """Outputs of f, dense, at all samples of its ports and at x; in parts, as a map of many samples takes long to
    build."""
    mapped, count = f.map(_CHUNK), state[0].shape[1]
    buffer, evaluate = mapped.buffer()  # what is copied to CasADi's matrices and back takes as long as the equations

    def memory(size: int, of: Any) -> Array:
        flat = np.zeros(size * _CHUNK)
        of(memoryview(flat.data))
        return flat.reshape(_CHUNK, size).T

    given = [memory(len(y), partial(buffer.set_arg, k)) for k, y in enumerate((*state, x))]
    part = [memory(f.size1_out(k), partial(buffer.set_res, k)) for k in range(f.n_out())]
    given[-1][:] = x[:, None]
    outputs = [np.zeros((len(y), count)) for y in part]
    for first in range(0, count, _CHUNK):
        last = min(first + _CHUNK, count)
        for y, whole in zip(given, state, strict=False):
            y[:, : last - first] = whole[:, first:last]
        evaluate()
        for y, whole in zip(part, outputs, strict=True):
            whole[:, first:last] = y[:, : last - first]
    return outputs


def _sampled(x: Array, dt: float, bandwidth: float, first: int, every: int, count: int, held: bool) -> Array:
    """Rows x low-passed, at sample `first` and at every so many after it."""
    cut = low_pass_margin(dt, bandwidth)
    return low_passed(x, dt, bandwidth, 1, held)[:, first - cut :: every][:, :count]
