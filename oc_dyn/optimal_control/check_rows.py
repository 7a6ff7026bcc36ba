"""What Solution.check() says: a row for everything that was looked at."""

from dataclasses import dataclass

import numpy as np

NOTHING = 1e-7  # an excess that solvers leave, whatever the scale


@dataclass(frozen=True)
class CheckRow:
    """One thing that was looked at, where it is worst.

    what: "defect", "between nodes", "map", "join", "bound", "limit", "rest", "start", "goal", "duration", "norm",
    "cost", "clipping", "polynomial" or "integration". "rest": a limit that is meant for nodes, between them. "cost":
    the objective of the program, against the cost integrated along the motion. "clipping": what changes at the next
    node if the polynomial of the controls is cut at its bounds. "polynomial": a limit along that polynomial, where
    straight lines through its points keep it. "integration": where the dynamics of an interval cannot be integrated, as
    stiff ones, so that defects are not known.
    name: of the state, control or limit, with its row. error: distance from what is right, relative to the scale of the
    state, or its largest value where that is more, to the larger bound, or to the cost. time [s], value, lower, upper:
    where it is worst. counts: whether it decides on ok().
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
        if self.what == "integration":
            return (
                f"the dynamics of the phase from {self.time:.6g} s on cannot be integrated, its defects are not known"
            )
        if self.lower == self.upper:
            expected = f"expected {self.lower:.6g}"
        else:
            expected = f"outside {self.lower:.6g} to {self.upper:.6g}" if self.error > 0 else "within its bounds"
        of = {"limit": "", "rest": "of limit ", "polynomial": "of limit "}.get(self.what, "of ")
        where = f"{self.what} {of}{self.name} at {self.time:.6g} s"
        return f"{where}: {self.value:.6g}, {expected} (error {self.error:.2g})"


@dataclass(frozen=True)
class SolutionCheck:
    """What Solution.check() found; printing it gives a verdict and a table.

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
            rest = max((row.error for row in self.rows if not row.counts), default=0.0)
            other = f"; those that do not count are off by up to {rest:.2g}" if rest > self.tolerance else ""
            return f"all rows that count are within {self.tolerance:g} of their scale{other}"
        more = f", and {len(bad) - 2} more" if len(bad) > 2 else ""
        return f"{'; '.join(map(str, bad[:2]))}{more}; .check() tells all"

    def __str__(self):
        lines = [f"{'ok' if self.ok() else 'not ok'}: {self.summary().removesuffix('; .check() tells all')}"]
        lines += [f"{'what':<15}{'of':<24}{'error':>10}{'at [s]':>11}{'value':>14}{'lower':>12}{'upper':>12}"]
        for r in self.rows:
            mark = "" if r.counts else "  (does not count)"
            lines.append(
                f"{r.what:<15}{r.name:<24}{r.error:>10.2g}{r.time:>11.5g}{r.value:>14.6g}{r.lower:>12.5g}"
                f"{r.upper:>12.5g}{mark}"
            )
        lines.append(f"objective integrated along the motion: {self.objective:.9g}")
        return "\n".join(lines)


def outside(what, names, values, lower, upper, times, only=None, scales=None):
    """CheckRow of each row of the values (n, K) where it is furthest outside its bounds (n,); none without bounds.

    scales: of the rows, used where a bound says little of their size, or a function of the number of a row; default
    their largest values.
    """
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
            broken = lower[i] if lower[i] - values[i, k] > values[i, k] - upper[i] else upper[i]
            error = max(0.0, float(over[i, k]))
            if error > NOTHING and lower[i] != upper[i]:
                error /= _scale(broken, values[i], scales, i)
            elif abs(broken) > 1:
                error /= abs(broken)
            seen = float(times[k]), float(values[i, k]), float(lower[i]), float(upper[i])
            rows.append(CheckRow(what, names[i], error, *seen, counts=what not in ("rest", "polynomial")))
    return rows


def _scale(bound, values, scales, i):
    """What an excess is measured by: the bound that is broken; where that says little, as 0 does of a force that only
    pushes, the scale or the largest value."""
    largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    scale = largest if scales is None or callable(scales) else scales[i]
    if abs(bound) >= 1e-3 * scale:
        return abs(bound) or 1.0
    return max(scale, scales(i)) if callable(scales) else scale


def joined(arrays):
    """One array after the other; an empty one for none."""
    return np.concatenate([np.zeros(0), *arrays])
