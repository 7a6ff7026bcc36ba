"""A motion along a geometric path: a law s(t) of polynomial pieces, and the path q(s)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..model.robot import Robot
from ..optimal_control.polynomials import derivatives_at
from ..text import terminal
from ..types import Array, Indices, Numbers, StrPath
from .limits import Limits
from .quantities import ORDERS, order_name
from .samples import Samples, read_only
from .trajectory import Motion

Terms: TypeAlias = dict[tuple[int, ...], float]


def bell(order: int, x: Any) -> list[list[Any]]:
    """[B_(m,j) for j = 1..m] for m = 0..order: d^m q / dt^m = sum_j d^j q / ds^j B_(m,j)(s', s'', ...).

    x: [s', s'', ...], at least `order` of them, numbers, arrays or casadi expressions. These are the partial Bell
    polynomials (formula of Faa di Bruno), by B' = d/dt B: B_(m+1,j) = s' B_(m,j-1) + dB_(m,j)/dt.
    """
    # every polynomial as {exponents of (s', s'', ...): factor}
    table: list[dict[int, Terms]] = [{0: {(): 1.0}}]
    for _ in range(order):
        new: dict[int, Terms] = {}
        for j, terms in table[-1].items():
            for powers, factor in terms.items():
                _add(new.setdefault(j + 1, {}), _times(powers, 0), factor)
                for i, p in enumerate(powers):
                    if p:
                        less = tuple(e - (k == i) for k, e in enumerate(powers))
                        _add(new.setdefault(j, {}), _times(less, i + 1), factor * p)
        table.append(new)
    return [[_value(table[m][j], x) for j in range(1, m + 1)] for m in range(order + 1)]


def _add(terms: Terms, powers: tuple[int, ...], factor: float) -> None:
    terms[powers] = terms.get(powers, 0.0) + factor


def _times(powers: tuple[int, ...], i: int) -> tuple[int, ...]:
    more = list(powers) + [0] * (i + 1 - len(powers))
    more[i] += 1
    return tuple(more)


def _value(terms: Terms, x: Any) -> Any:
    total = 0
    for powers, factor in terms.items():
        product = factor
        for i, p in enumerate(powers):
            for _ in range(p):
                product = product * x[i]
        total = total + product
    return total


def composed(path: Any, law: Array) -> Array:
    """(count, K, n) time derivatives of q from those of the path by s and (count, K) those of s by t."""
    count = len(path)
    B = bell(count - 1, law[1:])
    out = [path[0]]
    for m in range(1, count):
        out.append(sum(path[j] * B[m][j - 1][:, None] for j in range(1, m + 1)))
    return np.array(out)


def joined_motion(on: Any, motions: Sequence[PathMotion]) -> PathMotion:
    """One PathMotion of those of the stretches of a Joined curve, at rest where they meet."""
    t, law = [np.zeros(1)], []
    for motion, a, width in zip(motions, on.edges, on.widths, strict=False):
        t.append(t[-1][-1] + motion.t[1:])
        law.append(motion.law * width)
        law[-1][:, 0] += a
    info = dict(motions[0].info) | {"stops": on.stops.tolist(), "nodes": sum(len(x) for x in law)}
    info |= {k: sum(m.info[k] for m in motions) for k in ("rounds", "iterations")}
    first = motions[0]
    return PathMotion(
        np.concatenate(t), np.concatenate(law), on, joints=first.joints, units=first.units, robot=first.robot,
        limits=first.limits, info=info, friction=first.friction,
    )  # fmt: skip


class PathMotion(Motion):
    """A planned motion along a path. t (N + 1,): breakpoints [s]; law (N, c + 2): s and its time derivatives at the
    start of each piece of s(t), a polynomial; curve: the path. The attributes of Samples are values at the breakpoints.
    """

    def __init__(
        self, t: Numbers, law: Numbers, curve: Any, *, joints: Sequence[str], units: Sequence[str],
        robot: Robot | None = None, limits: Limits | None = None, info: Mapping[str, Any] | None = None,
        friction: bool = True,
    ) -> None:  # fmt: skip
        self.law, self.curve = read_only(law), curve
        continuity = self.law.shape[1] - 2
        self._orders = max(ORDERS, continuity + 2)  # derivatives that are computed, those that are saved at least
        super().__init__(
            t, None, joints=joints, units=units, robot=robot, limits=limits, info=info,
            continuity=continuity, friction=friction,
        )  # fmt: skip
        self.derivatives = self._at(self.t)

    @property
    def s(self) -> Array:
        """(N + 1,) share of the path passed at the breakpoints."""
        return self.shares(self.t)[0]

    def shares(self, times: Array) -> Array:
        """(c + 2, K): s and its time derivatives at times [s]."""
        piece = np.clip(np.searchsorted(self.t, times, side="right") - 1, 0, len(self.law) - 1)
        return self._law(piece, times - self.t[piece], self.law.shape[1])

    def _law(self, piece: Indices, u: Array, count: int) -> Array:
        return derivatives_at(self.law[piece][:, :, None], u, count)[:, :, 0]

    def _evaluated(self, law: Array, before: bool = False) -> list[Array]:
        s = np.clip(law[0], 0.0, 1.0)
        return list(composed(self.curve.at(s, self._orders, before), law))

    def _at(self, times: Array) -> list[Array]:
        piece = np.clip(np.searchsorted(self.t, times, side="right") - 1, 0, len(self.law) - 1)
        law = self._law(piece, times - self.t[piece], self._orders)
        on = times == self.t[piece]
        law[0] = np.where(on, self.law[piece, 0], law[0])  # exactly at a knot, not a rounding in front of it
        return self._evaluated(law)

    def on_pieces(self, piece: Indices, s: Array) -> Samples:
        """Samples at times s (K,) after the start of pieces (K,): at its end a piece is as it is before a jump."""
        end = s >= np.diff(self.t)[piece]
        law = self._law(piece, s, self._orders)
        law[0] = np.where(s <= 0, self.law[piece, 0], np.where(end, np.append(self.law[1:, 0], 1.0)[piece], law[0]))
        derivatives = self._evaluated(law)
        if end.any():
            for x, y in zip(derivatives, self._evaluated(law[:, end], before=True), strict=True):
                x[end] = y
        return Samples(self.t[piece] + s, derivatives, **self._context(), continuity=self.continuity)

    def before(self) -> list[Array]:
        """Derivatives in front of the breakpoints t[1:]: list of (N, n)."""
        N = len(self.law)
        law = self._law(np.arange(N), np.diff(self.t), self._orders)
        law[0] = np.append(self.law[1:, 0], 1.0)
        return self._evaluated(law, before=True)

    def both_sides(self, dt: float) -> Samples:
        """Samples every dt [s] and on both sides of each breakpoint, where derivatives may jump; times repeat."""
        grid = self.sample(dt)
        times = np.concatenate([grid.t, self.t[1:], self.t])
        order = np.argsort(times, kind="stable")
        parts = zip(grid.derivatives, self.before(), self.derivatives, strict=True)
        derivatives = [np.concatenate(x)[order] for x in parts]
        return Samples(times[order], derivatives, **self._context(), continuity=self.continuity)

    def jumps(self) -> dict[str, float]:
        """{quantity: largest jump at the breakpoints} of q and the derivatives that should be continuous."""
        before, after = self.before(), self.derivatives
        count = self.continuity + 1
        return {order_name(k): float(np.abs(before[k][:-1] - after[k][1:-1]).max(initial=0.0)) for k in range(count)}

    def save(self, path: StrPath, dt: float | None = 1e-3, layout: str | None = None) -> None:
        """Write .csv, .npz or .json, by the ending of `path`, sampled every dt [s]; see Trajectory.save and load."""
        super().save(path, dt, layout)

    def __str__(self) -> str:
        name = terminal(self.robot_name or "a robot")
        return (
            f"Motion of {name} along a path: {len(self.joints)} joints, {self.duration:.6g} s, "
            f"{len(self.law)} pieces, {self.continuity} times continuously differentiable"
        )
