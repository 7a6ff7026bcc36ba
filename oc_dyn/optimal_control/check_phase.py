"""One phase of a Solution, integrated and looked at between its nodes, for solution_check."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from .check_functions import buffered, columns, largest_term, low_order, slopes_of
from .check_rows import CheckRow, joined, outside
from .polynomials import lagrange

GRID = 4  # places in a part of an interval that is integrated at once where limits are looked at
SUBSTEPS = (2, 4, 8, 16, 32, 64, 128, 256)  # of an interval, tried in turn until the integration is accurate enough


@dataclass(frozen=True, eq=False)
class Flow:
    """Where the integration of every interval ends. end (n + 1, N): states with rates, and the cost; errors: what they
    may be off by. count: of the parts that intervals were integrated in; implicit: by the method for stiff dynamics."""

    end: np.ndarray
    errors: np.ndarray
    count: int
    implicit: bool


class Part:
    """A phase of a solution: arrays with a column for every interval.

    constants (n, N): durations and parameters of every interval. inner: what the method adds within intervals, see
    Transcribed.inner. first: number of the phase's first node.
    """

    def __init__(self, solution, phase, functions, constants, inner, first):
        made, N = solution.transcribed, phase.nodes
        here = slice(first, first + N)
        self.made, self.phase, self.f, self.N, self.first = made, phase, functions, N, first
        self.t, self.h = solution.t[here], np.diff(solution.t)[here]
        self.relative = solution.relative_lengths[here]
        # of a state whose scale nobody gave the largest value, as 1 may be far more; below 1e-4 solvers leave noise
        given = np.array([v.scaled for v in made.states for _ in range(v.size)], bool)
        largest = np.abs(solution.x).max(axis=0)
        for v, rows in zip(made.states, made.state_rows, strict=True):
            if v.manifold is not None:
                largest[rows] = v.manifold.largest(largest[rows])
        self.scale = np.where(given, np.maximum(made.x_scale, largest), np.maximum(largest, 1e-4))
        self.x, self.following = solution.x[here].T, solution.x[first + 1 : first + N + 1].T
        self.constants = constants
        self.lower, self.upper = (joined(getattr(v, b) for v in made.controls)[:, None] for b in ("lower", "upper"))
        self.bounded = made.control_degree > 0  # polynomials that bounds hold for everywhere
        points = [
            (0.0, solution.u[here].T),
            *((share, y.T) for like, share, _, y in inner if like == "u" and (share < 1 or self.bounded)),
        ]
        if made.nodal:  # at the end of a phase the last controls are not those of the next node
            ends = [y.T for like, share, _, y in inner if like == "u" and share == 1]
            points.append((1.0, ends[0] if ends else solution.u[first + 1 : first + N + 1].T))
        self.shares, self.controls = ([x[i] for x in points] for i in (0, 1))
        self.inner_points = inner
        self.inner_states = [(share, rows, y) for like, share, rows, y in inner if like == "x" and share < 1]
        self.rates_of = buffered(functions.rates, N, self.constants)
        self.clip, self.jacobian, self.flow = False, None, None

    def polynomial(self, share):
        """Controls (nu, N) a share of the interval behind its start, as the method takes them."""
        if len(self.shares) == 1:
            return self.controls[0]
        u = sum(weight * y for weight, y in zip(lagrange(self.shares, share), self.controls, strict=True))
        return np.clip(u, self.lower, self.upper) if self.clip else u

    def straight(self, share):
        """Controls on straight lines between the points where they are free: no bound is left that the points keep.
        Those that are bounded everywhere are polynomials."""
        if len(self.shares) == 1 or self.bounded:
            return self.polynomial(share)
        order = np.argsort(self.shares)
        at = [self.shares[i] for i in order]
        k = min(max(int(np.searchsorted(at, share, "right")) - 1, 0), len(at) - 1)
        left = self.controls[order[k]]
        if k == len(at) - 1:
            return left
        return left + (share - at[k]) / (at[k + 1] - at[k]) * (self.controls[order[k + 1]] - left)

    def within(self, share, u):
        """(states, controls) within the intervals, those that are integrated still as at the start."""
        x, u = self.x.copy(), u.copy()
        for known in self.f.known:
            known(x, u, share, (self.h, self.relative))
        return x, u

    def rates(self, share, y):
        """Time derivative of the states that are integrated, and of the cost, per share of the interval."""
        x, u = self.within(share, self.polynomial(share))
        x[self.f.rated] = y[:-1]
        return self.h * self.rates_of(x, u)

    def integrated(self, tolerance):
        """(shares, [states and cost there], [their rates], error of the integration relative to the scales)."""
        *explicit, error = self._integrated(False, tolerance)
        if error <= tolerance:
            return *explicit, error
        flow = self.flow
        shares, values, _, other = self._integrated(True, tolerance, least=8)
        # rates of fast parts tell of what dies out at once, so slopes are those of the motion
        implicit = shares, values, list(np.gradient(np.array(values), shares, axis=0)), other
        if other < error or not np.isfinite(error):
            return implicit
        self.flow = flow
        return *explicit, error

    def _integrated(self, implicit, tolerance, least=2):
        for count in (n for n in SUBSTEPS if n >= least):
            shares, values, slopes, error = self.in_parts(count, implicit)
            if error <= tolerance / 20 or not self.f.rated or not np.isfinite(error):
                break
        return shares, values, slopes, error

    def in_parts(self, count, implicit):
        """(shares, values, slopes, error) as integrated(), with so many parts of every interval; sets `flow`."""
        if implicit and self.jacobian is None:
            self.jacobian = slopes_of(self.f)
        scales, shares, error = self.scale[self.f.rated][:, None], np.linspace(0, 1, count + 1), 0.0
        with np.errstate(all="ignore"):
            y = np.vstack([self.x[self.f.rated], np.zeros(self.N)])
            values, slopes, errors = [y], [self.rates(0.0, y)], np.zeros(y.shape)
            for a, b in pairwise(shares):
                if implicit:
                    y, estimate = _linearly_implicit(self.rates, self.slopes, a, b, y)
                else:
                    y, estimate = _gragg(self.rates, a, b, y, slopes[-1])
                values.append(y)
                slopes.append(self.rates(b, y))
                errors += np.abs(estimate)
                error = max(error, np.nan_to_num(np.abs(estimate[:-1] / scales), nan=np.inf).max(initial=0.0))
        self.flow = Flow(y, np.nan_to_num(errors, nan=np.inf), count, implicit)
        return shares, values, slopes, error

    def slopes(self, share, y):
        """(N, m, m) derivative of rates() by the states that are integrated and the cost."""
        x, u = self.within(share, self.polynomial(share))
        x[self.f.rated] = y[:-1]
        J = columns(self.jacobian, x, u, self.constants).reshape(len(y), self.N, -1).transpose(1, 0, 2)
        return self.h[:, None, None] * np.concatenate([J, np.zeros((self.N, len(y), 1))], axis=2)

    def check(self, tolerance):
        """([CheckRow], cost of every interval, error of the integration)."""
        grid, values, slopes, error = self.integrated(tolerance)
        f, rows, known = self.f, [], error <= tolerance
        if not known:
            grid, values, slopes = self.unknown()
            when, found = float(self.t[0]), float(min(error, 1e300))
            rows.append(CheckRow("integration", "the states", found, when, found, 0.0, 0.0))
        whole, ends = self.ends(values[-1])
        miss = {"defect": f.rated, "map": f.mapped, "join": f.joined}
        difference = self.following - ends
        gap = self.following - whole  # what is between the integrated motion and the nodes; none of it is for a join
        gap[:, -1] = np.where(np.isin(np.arange(len(gap)), f.joined), 0.0, gap[:, -1])
        for what, which in miss.items():
            for i in which if known or what != "defect" else ():
                kept = slice(-1, None) if what == "join" else slice(None, -1) if i in f.joined else slice(None)
                times = self.t[kept] + self.h[kept]
                if times.size:
                    rows.append(self.state_row(what, i, difference[:, kept], ends[:, kept], times))
        rows += self.inner(grid, values, slopes) if known else []
        rows += self.limits(grid, values, slopes, gap)
        if len(self.shares) > 2 and not self.bounded and any(self.leaves(s) for s in (0.25, 0.75)):
            rows += self.clipping(values[-1], tolerance)
        return rows, values[-1][-1], error

    def ends(self, integrated):
        """(states (n, N) at the end of every interval, the same behind the join at the end of the phase) from the
        integrated states and cost there."""
        f, whole = self.f, self.x.copy()
        whole[f.rated] = integrated[:-1]
        if f.mapped:
            whole[f.mapped] = columns(f.maps, self.x, self.controls[0], self.constants)
        ends = whole.copy()
        if f.joined:
            last = [ends[:, -1:], self.polynomial(1.0)[:, -1:], self.constants[:, -1:]]
            ends[f.joined, -1] = columns(f.joins, *last)[:, 0]
        return whole, ends

    def unknown(self):
        """Straight lines between the nodes, as integrated() gives a motion, where nothing better is known."""
        ends = [np.vstack([x[self.f.rated], np.zeros(self.N)]) for x in (self.x, self.following)]
        return np.array([0.0, 1.0]), ends, [ends[1] - ends[0]] * 2

    def state_row(self, what, i, difference, expected, times):
        """A CheckRow of the largest difference (n, times) between state i and what it is expected to be."""
        k = int(np.argmax(np.nan_to_num(np.abs(difference[i]), nan=np.inf)))
        value, right = expected[i, k] + difference[i, k], expected[i, k]
        error = abs(difference[i, k]) / self.scale[i]
        counts = what in ("map", "join") or not low_order(self.made.method)
        counts &= what != "between nodes" or not self.made.nodal  # whose states there are interpolated, no unknowns
        error = np.inf if np.isnan(error) else float(error)
        return CheckRow(what, self.made.state_names[i], error, float(times[k]), value, right, right, counts)

    def inner(self, grid, values, slopes):
        """States that the method has within intervals, against the motion that is integrated."""
        rows = []
        points = list(self.inner_states)
        if self.made.nodal and self.f.rated:  # the cubic through states and rates at both nodes
            end = self.rates_at_nodes()
            middle = (self.x + self.following)[self.f.rated] / 2 + (slopes[0][:-1] - end) / 8
            points.append((0.5, self.f.rated, middle.T))
        for share, which, found in points:
            y = hermite(grid, values, slopes, share)[:-1]
            place = {i: k for k, i in enumerate(self.f.rated)}
            right = np.zeros_like(self.x)
            right[which] = y[[place[i] for i in which]]
            difference = np.zeros_like(self.x)
            difference[which] = found.T - right[which]
            rows += [self.state_row("between nodes", i, difference, right, self.t + share * self.h) for i in which]
        return rows

    def rates_at_nodes(self):
        """Rates of the states at the end of each interval, times its length."""
        x = self.following.copy()
        return (self.h * self.rates_of(x, self.controls[-1]))[:-1]

    def limits(self, grid, values, slopes, gap):
        """Bounds of states, and limits, on a dense grid of the motion, which is moved to pass through the nodes."""
        made, f = self.made, self.f
        states, controls, smooth, times = [], [], [], []
        several = len(self.shares) > 2 and not self.bounded  # ways to join the points at which controls are free
        known = sorted({*f.rated, *(i for i in f.mapped if f.known)})
        dense = np.linspace(0, 1, GRID * (len(grid) - 1) + 1)
        for share in np.unique(np.concatenate([dense, self.shares])):
            x, u = self.within(share, self.straight(share))
            x[f.rated] = hermite(grid, values, slopes, share)[:-1]
            x[known] += share * gap[known]
            states.append(x)
            controls.append(u)
            if several:
                smooth.append(self.within(share, self.polynomial(share))[1])
            times.append(self.t + share * self.h)
        x, u, times = np.hstack(states), np.hstack(controls), np.concatenate(times)
        rows = outside("bound", made.state_names, x, *_bounds(made.states), times, only=known, scales=self.scale)
        at_nodes = self.x, self.controls[0], None, self.constants, self.t
        everywhere = x, u, np.hstack(smooth) if several else None, np.tile(self.constants, (1, len(states))), times
        for what, (limits, f_limits), (y, u, w, constants, t) in (
            ("limit", f.dense, everywhere), ("limit", f.nodal, at_nodes), ("rest", f.rest, everywhere)
        ):  # fmt: skip
            names, (lower, upper) = [r.name for r in limits], _bounds(limits)
            values, sizes = columns(f_limits, y, u, constants), partial(largest_term, f_limits, (y, u, constants))
            if w is not None and what == "limit":
                smooth = columns(f_limits, y, w, constants)
                rows += outside("polynomial", names, smooth, lower, upper, t, scales=sizes)
                values = _nearer(values, smooth, lower, upper)
            rows += outside(what, names, values, lower, upper, t, scales=sizes)
        if self.bounded:
            u, points = everywhere[1], everywhere[-1]
        else:
            u, points = np.hstack(self.controls), np.concatenate([self.t + s * self.h for s in self.shares])
        return rows + outside("bound", made.control_names, u, *_bounds(made.controls), points, scales=made.u_scale)

    def leaves(self, share):
        """Whether the polynomial of the controls leaves bounds that the points keep."""
        u = self.polynomial(share)
        return bool(((u < self.lower - 1e-9) | (u > self.upper + 1e-9)).any())

    def clipping(self, end, tolerance):
        """What cutting the polynomial of the controls at its bounds does to the states at the next node."""
        flow, self.clip = self.flow, True
        _, values, _, _ = self.integrated(tolerance)
        self.flow, self.clip = flow, False
        rows = []
        for k, i in enumerate(self.f.rated):
            worst = int(np.argmax(np.abs(values[-1][k] - end[k])))
            there, right = values[-1][k][worst], end[k][worst]
            error = abs(there - right) / self.scale[i]
            time = float(self.t[worst] + self.h[worst])
            rows.append(CheckRow("clipping", self.made.state_names[i], error, time, there, right, right, False))
        return rows


def _gragg(rates, a, b, y, slope):
    """(y at b, difference to order 4): modified midpoint rule with 2, 4 and 6 steps, extrapolated to order 6."""
    table = []
    for n in (2, 4, 6):
        d = (b - a) / n
        before, now = y, y + d * slope
        for k in range(1, n):
            before, now = now, before + 2 * d * rates(a + k * d, now)
        table.append((now + before + d * rates(b, now)) / 2)
    two = table[1] + (table[1] - table[0]) / 3
    other = table[2] + (table[2] - table[1]) / (9 / 4 - 1)
    best = other + (other - two) / 8
    return best, best - other


def _nearer(a, b, lower, upper):
    """Of two arrays of values, element by element, the one that is less outside its bounds: where one way to join the
    points keeps a bound, no other is asked for."""
    over = [np.maximum(lower[:, None] - y, y - upper[:, None]) for y in (a, b)]
    return np.where(over[0] <= over[1], a, b)


def _linearly_implicit(rates, slopes, a, b, y):
    """The same for stiff dynamics: Euler's linearly implicit method with 1 to 6 steps, extrapolated to order 5.
    Source: Deuflhard 1985."""
    numbers, table = (1, 2, 3, 4, 6), []
    J = slopes(a, y)
    for n in numbers:
        d = (b - a) / n
        A, z = np.eye(len(y)) - d * J, y
        if not np.isfinite(A).all():
            return y * np.nan, y * np.nan
        for k in range(n):
            z = z + np.linalg.solve(A, d * rates(a + k * d, z).T[:, :, None])[:, :, 0].T
        row = [z]
        for k, before in enumerate(table[-1] if table else ()):
            row.append(row[-1] + (row[-1] - before) / (n / numbers[len(table) - k - 1] - 1))
        table.append(row)
    return table[-1][-1], table[-1][-1] - table[-1][-2]


def hermite(grid, values, slopes, share, which=None):
    """Cubic through values and slopes (n, N) of the parts of the grid; which: columns (M,), for shares (M,)."""
    k = np.minimum(np.searchsorted(grid, share, "right") - 1, len(grid) - 2)
    d = grid[k + 1] - grid[k]
    s = (share - grid[k]) / d
    if which is None:
        a, b, m, n = values[k], values[k + 1], d * slopes[k], d * slopes[k + 1]
    else:
        values, slopes = np.array(values), np.array(slopes)
        a, b = values[k, :, which].T, values[k + 1, :, which].T
        m, n = d * slopes[k, :, which].T, d * slopes[k + 1, :, which].T
    return a + s * (m + s * (3 * (b - a) - 2 * m - n + s * (2 * (a - b) + m + n)))


def _bounds(rows):
    """(lower, upper) of limits, states or controls, one below the other."""
    return tuple(joined(getattr(r, end) for r in rows) for end in ("lower", "upper"))
