"""What Solution.check() says: a row for everything that was looked at."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class CheckRow:
    """One thing that was looked at, where it is worst.

    what: "defect", "between nodes", "map", "join", "bound", "limit", "rest", "start", "goal", "duration", "norm" or
    "clipping"; "rest" is what an equation leaves between nodes that a method of low order holds at nodes.
    name: of the state, control or limit, with its row. error: distance from what is right, relative to the scale of the
    state, or its largest value where that is more, or to the larger bound. time [s], value, lower, upper: where it is
    worst. counts: whether it decides on ok().
    """

    what: str
    name: str
    error: float
    time: float
    value: float
    lower: float
    upper: float
    counts: bool = True

    def __str__(self):
        if self.lower == self.upper:
            expected = f"expected {self.lower:.6g}"
        else:
            expected = f"outside {self.lower:.6g} to {self.upper:.6g}" if self.error > 0 else "within its bounds"
        of = "" if self.what == "limit" else "of limit " if self.what == "rest" else "of "
        where = f"{self.what} {of}{self.name} at {self.time:.6g} s"
        return f"{where}: {self.value:.6g}, {expected} (error {self.error:.2g})"


@dataclass(frozen=True)
class SolutionCheck:
    """What Solution.check() found; printing it gives a table.

    rows: CheckRow of everything that was looked at, worst first. objective: with the integral costs integrated along
    the motion. uncertainty: of the integration itself, relative to the scales of the states.
    """

    rows: tuple
    objective: float
    uncertainty: float
    tolerance: float

    @property
    def worst(self):
        """Largest error among the rows that count; 0 if there is none."""
        return max((row.error for row in self.rows if row.counts), default=0.0)

    @property
    def defect(self):
        """Largest error of a state at a node or between nodes, relative to its scale, whether it counts or not."""
        kinds = ("defect", "between nodes", "map", "join")
        return max((row.error for row in self.rows if row.what in kinds), default=0.0)

    def ok(self, tolerance=None):
        """Whether no error that counts exceeds the tolerance, by default that of the check."""
        return bool(self.worst <= (self.tolerance if tolerance is None else tolerance))

    def summary(self):
        """One line: what exceeds the tolerance, the worst first."""
        bad = [row for row in self.rows if row.counts and not row.error <= self.tolerance]
        if not bad:
            return f"all of {len(self.rows)} rows are within {self.tolerance:g} of their scale"
        more = f", and {len(bad) - 2} more" if len(bad) > 2 else ""
        return f"{'; '.join(map(str, bad[:2]))}{more}; .check() tells all"

    def __str__(self):
        lines = [f"{'what':<15}{'of':<24}{'error':>10}{'at [s]':>11}{'value':>14}{'lower':>12}{'upper':>12}"]
        for r in self.rows:
            mark = "" if r.counts else "  (does not count)"
            lines.append(
                f"{r.what:<15}{r.name:<24}{r.error:>10.2g}{r.time:>11.5g}{r.value:>14.6g}{r.lower:>12.5g}"
                f"{r.upper:>12.5g}{mark}"
            )
        lines.append(f"objective integrated along the motion: {self.objective:.9g}")
        return "\n".join(lines)


def outside(what, names, values, lower, upper, times, only=None):
    """CheckRow of each row of the values (n, K) where it is furthest outside its bounds (n,); none without bounds."""
    rows = []
    bounded = np.isfinite(lower) | np.isfinite(upper)
    if not bounded.any() or not values.size:
        return rows
    over = np.maximum(lower[:, None] - values, values - upper[:, None])
    over[np.isnan(over)] = np.inf
    worst = np.argmax(over, axis=1)
    for i in range(len(names)) if only is None else only:
        if bounded[i]:
            k = worst[i]
            error = max(0.0, float(over[i, k])) / _scale(lower[i], upper[i], values[i])
            seen = float(times[k]), float(values[i, k]), float(lower[i]), float(upper[i])
            rows.append(CheckRow(what, names[i], error, *seen, counts=what != "rest"))
    return rows


def _scale(lower, upper, values):
    """The larger bound; where it says next to nothing, as that of a force that only pushes, the largest value."""
    larger = max(abs(b) for b in (lower, upper) if np.isfinite(b))
    largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    if lower != upper and larger < 1e-3 * largest:
        larger = max(largest, 1.0)
    return larger or 1.0


def joined(arrays):
    """One array after the other; an empty one for none."""
    return np.concatenate([np.zeros(0), *arrays])
