"""Solution.worst_rows(): how far the last iterate is from the bounds and rows of its own nonlinear program, by name.

Solution.check() integrates the motion anew; this asks the program that the solver was given, whatever the iterate is.
"""

from copy import copy
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from ..text import in_columns
from .program_names import ProgramNames

NOTHING = 1e-6  # a violation that solvers leave, of a scale
_DEFECTS = ("dynamics", "step", "join")


@dataclass(frozen=True)
class WorstRow:
    """A bound, limit or equation of the program where it is violated most.

    what: "bound" of a state or control, "limit", "dynamics" of a state with a rate (value: the state at the end of the
    interval; lower, upper: where the rate leads; or the residual of an equation of the method, which is zero), "step"
    of one with a next value, "join", "start", "goal", "at", "duration", "mesh" or "norm".
    name: of the state, control or limit with its row, or the expression of a limit without a name. phase, node: the
    latter counted within the phase; of dynamics that of the interval's start. within: whether it holds at a point
    within the interval behind the node. time [s]: of the node. value, lower, upper: in the units of the problem.
    violation: of the scale of the state or control, of limits of their larger bound. places: at how many places of the
    phase it is violated.
    """

    what: str
    name: str
    phase: int
    node: int
    time: float
    value: float
    lower: float
    upper: float
    violation: float
    places: int
    within: bool = False
    phases: int = 1

    def where(self):
        """Text: phase and node with its time."""
        of = f" of phase {self.phase}" if self.phases > 1 else ""
        time = f" ({self.time:.6g} s)" if np.isfinite(self.time) else ""
        if self.what in _DEFECTS:
            return f"from node {self.node} to {self.node + 1}{of}{time}"
        return f"{'behind' if self.within else 'at'} node {self.node}{of}{time}"

    def expected(self):
        """Text: what the value should be."""
        if self.lower == self.upper:
            verb = "the dynamics lead to" if self.what in _DEFECTS else "expected"
            return f"{verb} {self.lower:.6g}"
        if self.violation <= 0:
            return f"within {self.lower:.6g} to {self.upper:.6g}"
        return f"above {self.upper:.6g}" if self.value > self.upper else f"below {self.lower:.6g}"

    def __str__(self):
        if self.what in ("duration", "mesh"):
            called = self.name if self.what == "mesh" else f"duration of {self.name}"
        else:
            called = f"limit {self.name}" if self.what == "limit" else f"{self.what} of {self.name}"
            called = self.name if self.name.startswith("value at") else called
        more = f", violated at {self.places} places" if self.places > 1 else ""
        return f"{called} {self.where()}: {self.value:.6g}, {self.expected()}{more}"


class WorstRows(tuple):
    """Tuple of WorstRow, the worst first; printing it gives a table."""

    def __str__(self):
        if not self:
            return f"no bound or row is violated by more than {NOTHING:g} of its scale"
        head = ("what", "of", "where", "value", "lower", "upper", "violation", "places")
        rows = [
            (r.what, r.name, r.where(), f"{r.value:.6g}", f"{r.lower:.6g}", f"{r.upper:.6g}", f"{r.violation:.2g}",
             r.places) for r in self
        ]  # fmt: skip
        return in_columns([head, *rows])


@dataclass(frozen=True, eq=False)
class Program:
    """Numbers of the program at an iterate: x, g, their bounds, and what each is called."""

    names: ProgramNames
    x: np.ndarray
    g: np.ndarray
    lbx: np.ndarray
    ubx: np.ndarray
    lbg: np.ndarray
    ubg: np.ndarray
    t: np.ndarray

    def label(self, number):
        """(Label, stage) of a number of the unknowns, or behind them of the rows."""
        n = self.x.size
        return self.names.unknown(number) if number < n else self.names.row(number - n)


def program_of(solution, unknowns=None):
    """Program of a Solution at its last iterate, or at other unknowns."""
    made = solution.transcribed
    x = solution.unknowns if unknowns is None else unknowns
    then = copy(made)  # bounds of limits may have been changed since
    then.numbers = replace(made.numbers, bounds=solution.limit_bounds)
    rows = then.row_bounds
    g = function_of(made, "rows")(x, solution.parameters).full().ravel()
    return Program(ProgramNames(then), x, g, *solution.bounds, rows["lbg"], rows["ubg"], solution.t)


def function_of(made, what):
    """Function (x, p) or (x, p, lam_g) of the program: its "rows", "cost", "jacobian", gradient of the cost, or
    "lagrangian", the gradient of it; made once."""
    key = "program", what
    if key not in made.checks:
        nlp, parts = made.assembly.nlp, made.assembly.parts
        given, lam = [nlp["x"], nlp["p"]], parts["lam_g"]
        found = {"rows": nlp["g"], "cost": nlp["f"], "jacobian": parts["jacobian"], "gradient": parts["gradient"]}
        if what == "lagrangian":
            given, found[what] = [*given, lam], parts["gradient"] + ca.mtimes(parts["jacobian"].T, lam)
        made.checks[key] = ca.Function(what, given, [found[what]])
    return made.checks[key]


def worst_rows(solution, count=10):
    """See Solution.worst_rows."""
    program = program_of(solution)
    worst, places = {}, {}
    for number, excess in _excesses(program):
        label, stage = program.label(number)
        phase, _ = program.names.phase_and_node(stage)
        key = label.what, label.name, phase
        violation = np.inf if np.isnan(excess) else excess / _unit(program, number, label)
        if violation <= NOTHING:
            continue
        places.setdefault(key, set()).add((stage, label.share))
        if key not in worst or violation > worst[key][0]:
            worst[key] = violation, number
    order = sorted(worst.items(), key=lambda item: (-item[1][0], item[1][1]))[:count]
    return WorstRows(_row(program, number, violation, len(places[key])) for key, (violation, number) in order)


def _excesses(program):
    """[(number, distance from the bounds in the numbers of the program)] of all that are outside, unknowns first."""
    values = np.concatenate([program.x, program.g])
    lower, upper = np.concatenate([program.lbx, program.lbg]), np.concatenate([program.ubx, program.ubg])
    with np.errstate(invalid="ignore"):
        over = np.maximum(lower - values, values - upper)
    bad = np.flatnonzero(~(over <= 1e-12))
    return [(int(i), float(over[i])) for i in bad if np.isnan(over[i]) or over[i] > 0]


def _bounds(program, number):
    n = program.x.size
    if number < n:
        return program.x[number], program.lbx[number], program.ubx[number]
    return program.g[number - n], program.lbg[number - n], program.ubg[number - n]


def _unit(program, number, label):
    """What a violation in the numbers of the program is measured by."""
    if label.unit is not None:
        return label.unit / label.scale
    larger = [abs(b) for b in _bounds(program, number)[1:] if np.isfinite(b)]
    return max(larger, default=0.0) or 1.0


def _row(program, number, violation, places):
    label, stage = program.label(number)
    phase, node = program.names.phase_and_node(stage)
    value, lower, upper = (label.scale * b for b in _bounds(program, number))
    if number >= program.x.size and label.share == 1.0 and label.what != "duration":
        # x_(k+1) - next_k: told as the state at the end of the interval, and where the dynamics lead
        i = number - program.x.size - program.names.first_row[stage]
        end = program.x[program.names.first[stage + 1] + i] * label.scale
        offset = program.names.unknowns_of(stage + 1)[i].offset
        value, lower, upper = end + offset, end - value + offset, end - value + offset
    else:
        value, lower, upper = value + label.offset, lower + label.offset, upper + label.offset
    return WorstRow(
        label.what, label.name, phase, node, float(program.t[stage]), float(value), float(lower), float(upper),
        float(violation), places, label.share is None, len(program.names.made.phases),
    )  # fmt: skip


def active(program, tolerance=1e-4):
    """[(name, "lower" or "upper", bound, places, of how many)] of bounds and limits that the iterate lies on, or is
    outside of, where they leave room, those at the most places first."""
    counts, total = {}, {}
    values = np.concatenate([program.x, program.g])
    lower, upper = np.concatenate([program.lbx, program.lbg]), np.concatenate([program.ubx, program.ubg])
    for side, bound, sign in (("lower", lower, 1), ("upper", upper, -1)):
        for i in np.flatnonzero((lower < upper) & np.isfinite(bound)):
            label, _ = program.label(int(i))
            if label.what == "mesh":
                continue
            key = label.what, label.name, side
            total[key] = total.get(key, 0) + 1
            if sign * (values[i] - bound[i]) <= tolerance * _unit(program, int(i), label):
                value = float(bound[i] * label.scale + label.offset)
                counts[key] = (counts.get(key, (0, 0))[0] + 1, value)
    order = sorted(counts, key=lambda key: -counts[key][0] / total[key])
    return [(key[1], key[2], counts[key][1], counts[key][0], total[key]) for key in order]


def gradients(solution, count=5):
    """[(size, name, phase, node)] of the largest entries of the gradient of the Lagrangian by the unknowns, each over
    what a scale of it is; (nan, ...) first where one is no number."""
    made, program = solution.transcribed, program_of(solution)
    lam_x, lam_g = solution.multipliers
    slope = function_of(made, "lagrangian")(solution.unknowns, solution.parameters, lam_g).full().ravel() + lam_x
    fixed = program.lbx == program.ubx
    size = np.where(fixed, 0.0, np.abs(slope))
    order = np.argsort(-np.nan_to_num(size, nan=np.inf), kind="stable")
    found = {}
    for i in order[: 50 * count]:
        label, stage = program.names.unknown(int(i))
        if size[i] != 0 and label.name not in found and len(found) < count:
            found[label.name] = (float(size[i]), label.name, *program.names.phase_and_node(stage))
    return list(found.values())
