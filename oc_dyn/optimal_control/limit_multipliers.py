"""Multipliers of the limits of a Solution, and of the bounds of its states, along its intervals.

The program has them at nodes and at points of its method; limits between these have a density of them. It is constant
over an interval, each of whose nodes gives it half of its own, or all where controls begin there. Of collocation with
polynomials of controls it is the polynomial through those at the points, each over its weight in the quadrature, for
equations and for limits of states alone.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from .check_rows import joined
from .description import Constraint
from .polynomials import lagrange, quadrature

_ACTIVE = 1e-6  # of the largest multiplier of a limit: none
_ALONE = 3.0  # times those of both neighbours, a multiplier of a node is not spread over the intervals about it


@dataclass(frozen=True, eq=False)
class LimitMultipliers:
    """Of a phase. rows: Constraints. even (k, N): multipliers that are spread evenly over an interval. at_points:
    {share: (k, N)} of those that a polynomial goes through. at_end (k, N): the parts of nodes at the ends of intervals
    which these have. alone (k, N + 1): those of nodes that stay there, as where limits of states begin to hold, and
    costates jump. controlled (k,): which rows read controls."""

    rows: tuple
    even: np.ndarray
    at_points: dict
    at_end: np.ndarray
    alone: np.ndarray
    controlled: np.ndarray

    @property
    def total(self):
        """(k, N): all of an interval."""
        return self.even + sum(self.at_points.values())

    def at(self, share):
        """(k, N): density at a share of the interval, times the length of that."""
        out, shares = self.even, list(self.at_points)
        for a, value, weight in zip(shares, lagrange(shares, share), quadrature(shares), strict=True):
            out = out + self.at_points[a] * (value / weight if weight > 1e-9 else 1.0)
        return out

    @property
    def outwards(self):
        """(k, N): 1 where the upper bound holds on an interval or at an end of it, -1 the lower one, 0 none."""
        total = self.total
        active = np.abs(total) > _ACTIVE * np.abs(total).max(axis=1, initial=0.0, keepdims=True)
        return np.sign(np.where(active, total, 0.0) + self.alone[:, :-1] + self.alone[:, 1:])

    def excess(self, values, outwards):
        """(k, N): what values are above the bound that holds."""
        lower, upper = (joined(getattr(r, b) for r in self.rows)[:, None] for b in ("lower", "upper"))
        bound = np.where(outwards > 0, upper, lower)
        return np.where(np.isfinite(bound) & (outwards != 0), values - bound, 0.0)


class _Found:
    """Multipliers as they are found: even (k, N), nodes (k, N + 1), points {share: (k, N)}; places of rows, by their
    id."""

    def __init__(self, rows, N):
        ends = np.cumsum([0, *(r.lower.size for r in rows)])
        self.places = {id(r): slice(a, b) for r, a, b in zip(rows, ends[:-1], ends[1:], strict=True)}
        self.even, self.nodes, self.points = np.zeros((ends[-1], N)), np.zeros((ends[-1], N + 1)), {}

    def add(self, place, share, where, values):
        """Values (rows, intervals) of rows at a share of intervals, None for one that does not matter."""
        into = self.even if share is None else self.points.setdefault(share, np.zeros_like(self.even))
        into[place, where] += values


def limit_multipliers(solution, part):
    """LimitMultipliers of a Part of a Solution."""
    made, phase = solution.transcribed, part.phase
    rows, N = _limits(made, phase), part.N
    found = _Found(rows, N)
    _of_rows(solution, part, found)
    _of_bounds(solution, part, rows, found)
    even, nodes = found.even, found.nodes
    controlled = np.repeat([made._controlled(r.expression) for r in rows], [r.lower.size for r in rows]).astype(bool)
    behind = controlled & (not made.nodal)  # of controls that begin at the node
    even[behind] += nodes[behind, :-1]
    nodes[behind] = 0.0
    alone, points = np.zeros_like(nodes), found.points
    if getattr(made.method, "scheme", "") == "radau" and made.control_degree:
        points[1.0] = points.get(1.0, 0.0) + nodes[:, 1:]  # a node is the last point of the interval before
        at_end = nodes[:, 1:]
    else:
        if not made.control_degree:
            sizes = np.abs(np.pad(nodes, ((0, 0), (1, 1))))
            alone = np.where(sizes[:, 1:-1] > _ALONE * np.maximum(sizes[:, :-2], sizes[:, 2:]), nodes, 0.0)
            nodes = nodes - alone
        even, at_end = even + (nodes[:, :-1] + nodes[:, 1:]) / 2, nodes[:, 1:] / 2
    if not made.control_degree:
        even, points = even + sum(points.values()), {}
    changed = tuple(r.with_bounds(solution.limit_bounds) for r in rows)
    return LimitMultipliers(changed, even, points, at_end, alone, controlled)


def _limits(made, phase):
    """Constraints of a phase that mean something between nodes: its limits, those at the points of the method, and the
    bounds of states."""
    parts = made.parts_of[phase.number]
    rows = {
        id(r): r for r in (*parts.rows, *parts.inner, *parts.equations, *phase.rows) if not of_nodes(made, phase, r)
    }
    for k in made.rated(phase):
        v = made.states[k]
        if np.isfinite([v.lower, v.upper]).any() and v.manifold is None:
            rows[id(v)] = Constraint(v.symbol, v.lower, v.upper, v.name)
    return tuple(rows.values())


def of_nodes(made, phase, limit):
    """Whether a limit is one of nodes alone: it is said to be, unless it is soft, or is of a later time."""
    if ca.depends_on(limit.expression, made.description.ahead):
        return True
    u = ca.veccat(
        ca.MX(0, 1), *(v.symbol for v, free in zip(made.controls, free_controls(made, phase), strict=True) if free)
    )
    return limit.of_nodes and not ca.depends_on(limit.expression, u)


def free_controls(made, phase):
    """For every control whether it may be another one at each time: no map reads it, as of chains."""
    maps = ca.veccat(ca.MX(0, 1), *phase.steps.values(), *(body.dv for body in made.description.bodies))
    return [not ca.depends_on(maps, v.symbol) for v in made.controls]


def _shares(made, limit, equation):
    """Shares of the interval of the points that a polynomial of the limit's multipliers goes through, one after the
    other: none where controls are limited at more points than they have coefficients."""
    method = made.method
    if (
        not made.control_degree
        or not hasattr(method, "scheme")
        or (made._controlled(limit.expression) and not equation)
    ):
        return []
    degree = made.control_degree + 1 if equation else method.degree
    found = ca.collocation_points(degree, method.scheme)
    return found if equation else [*(s for s in found if s < 1), 1.0]


def _of_rows(solution, part, found):
    """Add the multipliers of rows."""
    made, lam_g, at = solution.transcribed, np.append(solution.multipliers[1], 0.0), 0
    parts = made.parts_of[part.phase.number]
    count, equations = len(parts.rows) + len(part.phase.node_rows), {id(r) for r in parts.equations}
    for group in made.assembly.groups:
        here = np.arange(max(at, part.first), min(at + group.count, part.first + part.N + 1))
        last, at = at == made.total, at + group.count
        if not here.size or (here[0] == part.first + part.N and not last):
            continue  # the first node of the next phase
        rows = np.stack([made.assembly.stage_rows[k] for k in here])
        blocks = made.row_blocks[here[0]]
        ends = np.cumsum([block.size for block in blocks])
        limits = [k for k, b in enumerate(blocks) if b.constraint is not None and not b.where and b.label is None]
        of_nodes, seen = set(limits if last else limits[len(limits) - count :]), {}
        for k in limits:
            key = id(blocks[k].constraint)
            if key not in found.places:
                continue
            values = lam_g[rows[:, ends[k] - blocks[k].size : ends[k]]].T  # the last one, 0, of rows left out
            if k in of_nodes:
                found.nodes[found.places[key], here - part.first] += values
                continue
            shares, number = _shares(made, blocks[k].constraint, key in equations), seen.get(key, 0)
            found.add(found.places[key], shares[number] if number < len(shares) else None, here - part.first, values)
            seen[key] = number + 1


def _of_bounds(solution, part, rows, found):
    """Add the multipliers of bounds of states, but at ends that are fixed, and of those within intervals."""
    made, lam_x = solution.transcribed, solution.multipliers[0]
    first = made.assembly.first[part.first : part.first + part.N + 1]
    fixed = solution.bounds[0] == solution.bounds[1]
    inner = [x for x in made.inner(lam_x)[part.phase.number] if x[0] == "x"] if made.control_degree else []
    of = dict(zip((id(v.symbol) for v in made.states), made.state_rows, strict=True))
    everywhere = np.arange(part.N)
    for r in rows:
        place = found.places[id(r)]
        for row, i in zip(range(place.start, place.stop), of.get(id(r.expression), []), strict=False):
            found.nodes[row] += np.where(fixed[first + i], 0.0, lam_x[first + i]) / made.x_scale[i]
            for _, share, states, values in inner:  # as values of unknowns, which are times their scale
                if i in list(states) and share < 1:
                    found.add(row, share, everywhere, values[:, list(states).index(i)] / made.x_scale[i] ** 2)
