"""Values of a Solution at any time, on the polynomials of its method.

Controls are the polynomials of the method: constant on an interval, or through their values where they are free.
States are its polynomials, too: of collocation the one through the points of an interval, of methods by nodes the cubic
through states and rates at both nodes (of the trapezoidal rule it is the parabola that the rule integrates), of chains
and contact bodies their exact motion. Methods that only step from node to node (rk4, euler) have none: there the
dynamics are integrated from every node under the controls of the solution, and what is missing at the next node is
taken up in proportion to the time. Maps (`next`) that tell nothing of the time between are straight lines. Quaternions
of states on manifolds are scaled to unit length.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError, UnknownName
from ..files import write_csv
from ..numbers import as_floats, shortened
from ..types import Array, StrPath
from ..validation import one_of
from .check_functions import columns, evaluated
from .check_phase import hermite
from .manifolds import unit_rows
from .polynomials import lagrange
from .solution_check import constants_of

ACCURACY = 2e-6  # of an integration between nodes, relative to the scales
PARTS = 8  # of an interval that is integrated, with cubics between
MOST = 10**7  # times that are asked for at once


class Curves:
    """States and controls of a phase between its nodes, from its Part."""

    def __init__(self, part):
        self.part, self.f = part, part.f
        self.rows, self.count = np.array(self.f.rated, int), part.N
        points = [(share, y.T) for like, share, _, y in part.inner_points if like == "x"]
        polynomial = points and (not part.made.nodal or any(share < 1 for share, _ in points))
        self.points = [(0.0, part.x[self.rows]), *points] if polynomial else []
        unknown = [i for i in self.f.mapped if i not in self.f.free]
        self.unknown = np.array(unknown, int)

    def at(self, k, share):
        """(states (n, M), controls (nu, M)) a share (M,) behind the starts of the intervals k (M,)."""
        part = self.part
        x, u = part.x[:, k], through(part.shares, part.controls, k, share)
        if self.unknown.size:
            x[self.unknown] += share * (self.mapped - part.x[self.unknown])[:, k]
        for known in self.f.known:
            known(x, u, share, (part.h[k], part.relative[k]))
        if self.rows.size:
            x[self.rows] = self._rated(k, share)
        x = np.where(share > 0, unit_rows(part.made.states, x.T.copy()).T, x)
        # at nodes it is what was found, to the last digit, but for what a join changes
        joined = np.isin(np.arange(len(x)), self.f.joined)[:, None] & (k == self.count - 1)
        return np.where((share == 1) & ~joined, part.following[:, k], x), u

    @cached_property
    def mapped(self):
        """Values at the end of every interval of the states that nothing is known of between nodes."""
        found = columns(self.f.maps, self.part.x, self.part.controls[0], self.part.constants)
        return found[[self.f.mapped.index(i) for i in self.unknown]]

    def _rated(self, k, share):
        if self.points:
            return through(*zip(*self.points, strict=True), k, share)
        if self.part.made.nodal:
            ends = self.part.x[self.rows], self._ends
            slopes = self.slopes
            return hermite(np.array([0.0, 1.0]), ends, slopes, share, k)
        grid, values, slopes, gap = self.integrated
        return hermite(grid, values, slopes, share, k) + share * gap[:, k]

    @cached_property
    def _ends(self):
        """States at the end of every interval, in front of a join."""
        whole = self.part.following.copy()
        last = [y[-1] for like, share, rows, y in self.part.inner_points if like == "x" and share == 1]
        if last:
            whole[self.rows, -1] = last[0]
        return whole[self.rows]

    @cached_property
    def slopes(self):
        """Rates at the start and the end of every interval, times its length."""
        part, x = self.part, self.part.following.copy()
        x[self.rows] = self._ends
        rates = (part.rates_of(part.x, part.controls[0]), part.rates_of(x, part.polynomial(1.0)))
        return [(part.h * r)[:-1] for r in rates]

    @cached_property
    def integrated(self):
        """(shares, states there, their rates, what is missing at the ends), see Part.integrated."""
        grid, values, slopes, error = self.part.integrated(ACCURACY * 20)
        if self.part.flow.count < PARTS:
            grid, values, slopes, error = self.part.in_parts(PARTS, False)
        if not error <= 1e-3:
            grid, values, slopes = self.part.unknown()
        values, slopes = [y[:-1] for y in values], [y[:-1] for y in slopes]
        gap = self.part.following[self.rows] - values[-1]
        gap[np.isin(self.rows, self.f.joined), -1] = 0.0
        return grid, values, slopes, gap


def through(shares, values, k, share):
    """Polynomials of the intervals k (M,), through values[i] (n, N) at shares[i], at share (M,): (n, M)."""
    return sum(weight * y[:, k] for weight, y in zip(lagrange(shares, share), values, strict=True))


def located(solution, times, side):
    """(times (M,), numbers of the intervals, shares of them behind their starts); see Solution.sample."""
    one_of("side", side, ("after", "before"))
    given, t = as_floats("times", times), solution.t
    if given.ndim > 1:
        raise ShapeError(f"times: got the shape {given.shape}, expected one time or a list (M,) of them")
    asked = given.ravel()
    close = 16 * np.finfo(float).eps * max(abs(t[0]), abs(t[-1]))
    outside = ~((asked >= t[0] - close) & (asked <= t[-1] + close))
    if outside.any():
        got, span = asked[int(np.argmax(outside))], f"{t[0]:.6g} to {t[-1]:.6g} s"
        raise ShapeError(f"times: {got:.6g} s is no time of the solution, which goes from {span}")
    near = np.clip(np.searchsorted(t, asked), 1, len(t) - 1)
    near -= asked - t[near - 1] < t[near] - asked
    asked = np.where(np.abs(asked - t[near]) <= close, t[near], asked)  # a node that rounding has moved
    k = np.searchsorted(t, asked, "right" if side == "after" else "left") - 1
    k = np.clip(k, 0, len(t) - 2)
    return asked, k, (asked - t[k]) / (t[k + 1] - t[k])


def states_and_controls(solution, k, share):
    """(states (n, M), controls (nu, M)) a share (M,) behind the starts of the intervals k (M,) of all phases."""
    made, first = solution.transcribed, 0
    x, u = np.zeros((made.x_scale.size, len(k))), np.zeros((made.u_scale.size, len(k)))
    for curves in solution.curves:
        here = (k >= first) & (k < first + curves.count)
        if here.any():
            x[:, here], u[:, here] = curves.at(k[here] - first, share[here])
        first += curves.count
    return unit_rows(made.states, x.T).T, u


class SolutionSamples:
    """A Solution at some times t (M,). samples[symbol, expression or name] -> (M, size), as Solution has them; names:
    those of its states, controls and what else has one, which it can be run through by, as a dict."""

    def __init__(self, solution: Any, times: Any, side: str = "after") -> None:
        self._take(solution, *located(solution, times, side))

    @classmethod
    def of_intervals(cls, solution: Any, shares: Array) -> SolutionSamples:
        """At some shares of every interval behind its start, so that 0 and 1 are both sides of every node."""
        N = len(solution.t) - 1
        k, share = np.repeat(np.arange(N), len(shares)), np.tile(shares, N)
        out = cls.__new__(cls)
        out._take(solution, solution.t[k] + share * np.diff(solution.t)[k], k, share)
        return out

    def _take(self, solution, t, k, share):
        self.solution, self.t, self.intervals = solution, t, k
        self._x, self._u = states_and_controls(solution, k, share)
        self._constants = constants_of(solution)[:, k]

    @property
    def names(self) -> tuple[str, ...]:
        """Names that stand for something."""
        return tuple(self.solution.named)

    def __getitem__(self, expression: Any) -> Array:
        expression = ca.vec(self.solution.expression("samples[...]", expression))
        f = evaluated(self.solution.transcribed, [expression], "sampled")
        return columns(f, self._x, self._u, self._constants).T

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def keys(self) -> tuple[str, ...]:
        """The names, which dict(samples) asks for."""
        return self.names

    def limit(self, name: str) -> Array:
        """Values (M, size) of a named limit, NaN in phases that have none of the name."""
        known = limits_of(self.solution)
        if name not in known:
            raise UnknownName("limit with a name", name, known)
        out = np.full((len(self.t), next(iter(known[name].values())).numel()), np.nan)
        for number, here in phases_at(self.solution, self.intervals):
            if number in known[name]:
                out[here] = self[known[name][number]][here]
        return out

    def to_csv(self, path: StrPath) -> None:
        """Write a table; see Solution.to_csv."""
        names = limits_of(self.solution)
        write_table(path, self.t, {n: self[n] for n in self.names} | {n: self.limit(n) for n in names})


def limits_of(solution):
    """{name: {number of a phase: expression}} of the limits that have a name, but no other thing of that name."""
    found: dict[str, dict[int, Any]] = {}
    for phase in solution.description.phases:
        for row in (*phase.rows, *(w.constraint for w in phase.within if w.fixed is None)):
            if row.name and row.name not in solution.named:
                same = found.setdefault(row.name, {})
                if all(row.expression.numel() == x.numel() for x in same.values()):
                    same.setdefault(phase.number, row.expression)
    return found


def phases_at(solution, k):
    """[(number of a phase, which of the intervals k are of it)]."""
    ends = np.cumsum([0, *(phase.nodes for phase in solution.description.phases)])
    return [(number, (k >= ends[number]) & (k < ends[number + 1])) for number in range(len(ends) - 1)]


def nodes_to_csv(solution, path):
    """Write states, controls, what has a name and limits at the nodes; see Solution.to_csv."""
    count = len(solution.t)
    phases = phases_at(solution, np.minimum(np.arange(count), count - 2))  # the last node is of the last phase

    def whole(values):
        return np.vstack([values, np.full((count - len(values), values.shape[1]), np.nan)])

    table = {name: whole(solution[name]) for name in solution.named}
    for name, expressions in limits_of(solution).items():
        table[name] = np.full((count, next(iter(expressions.values())).numel()), np.nan)
        for number, here in phases:
            if number in expressions:
                table[name][here] = whole(solution[ca.vec(expressions[number])])[here]
    write_table(path, solution.t, table)


def write_table(path, t, table):
    """Write a CSV of times and {name: values (M, n)}, blank where there is no number. A state that is the time is no
    column more; the times are called "t" where another has the name."""
    own = table.get("time")
    if own is not None and own.shape[1] == 1 and np.allclose(own[:, 0], t, rtol=1e-9, atol=1e-9):
        table = {name: values for name, values in table.items() if name != "time"}
    headings = ["t" if "time" in table else "time"]
    for name, values in table.items():
        n = values.shape[1]
        headings += [f"{name}[{i}]" for i in range(n)] if n > 1 else [name] * n
    rows = np.column_stack([t, *table.values()])
    write_csv(path, [headings, *([float(x) if np.isfinite(x) else "" for x in row] for row in rows)])


def times_of(solution, rate, times):
    """Times (M,) from what a caller gives: so many a second from the start on and the end, or the times themselves."""
    if (rate is None) == (times is None):
        raise ShapeError("resample: give rate=, or times=, and not both")
    if times is not None:
        return times
    rate = float(as_floats("rate", rate)) if np.ndim(rate) == 0 else np.nan
    if not (0 < rate < np.inf):
        raise ShapeError(f"rate: got {shortened(rate)}, expected how many samples a second, a positive number")
    count = np.floor(solution.duration * rate * (1 + 1e-12))
    if count >= MOST:
        raise ShapeError(f"rate: {rate:g} a second over {solution.duration:.4g} s are more than {MOST:g} samples")
    t = solution.t[0] + np.arange(int(count) + 1) / rate
    near = abs(solution.t[-1] - t[-1]) <= 1e-9 / rate
    return np.append(t[:-1] if near else t, solution.t[-1])
