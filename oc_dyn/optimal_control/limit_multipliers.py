"""Multipliers of the limits of a Solution, and of the bounds of its states, interval by interval."""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from .check_rows import joined
from .description import Constraint

_ACTIVE = 1e-6  # of the largest multiplier of a limit: none
_ALONE = 3.0  # times those of both neighbours, a multiplier of a node is not spread over the intervals about it


@dataclass(frozen=True, eq=False)
class LimitMultipliers:
    """Of a phase. rows: Constraints. total (k, N): multipliers of every interval, those of a node shared by both sides.
    at_end (k, N): the parts of nodes at the ends of intervals which these are to have. alone (k, N + 1): those of nodes
    that stay there, as where limits of states begin to hold, and costates jump. controlled (k,): which rows read
    controls. active (k, N): where multipliers are not zero."""

    rows: tuple
    total: np.ndarray
    at_end: np.ndarray
    alone: np.ndarray
    controlled: np.ndarray

    @property
    def active(self):
        """(k, N): where multipliers are not zero."""
        return np.abs(self.total) > _ACTIVE * np.abs(self.total).max(axis=1, initial=0.0, keepdims=True)

    @property
    def outwards(self):
        """(k, N): 1 where the upper bound holds on an interval or at an end of it, -1 the lower one, 0 none."""
        return np.sign(np.where(self.active, self.total, 0.0) + self.alone[:, :-1] + self.alone[:, 1:])

    def excess(self, values):
        """(k, N): what values are above the bound that holds."""
        lower, upper = (joined(getattr(r, b) for r in self.rows)[:, None] for b in ("lower", "upper"))
        bound = np.where(self.outwards > 0, upper, lower)
        return np.where(np.isfinite(bound) & (self.outwards != 0), values - bound, 0.0)


def limit_multipliers(solution, part):
    """LimitMultipliers of a Part of a Solution."""
    made, phase = solution.transcribed, part.phase
    rows = _limits(made, phase)
    numbers = [r.lower.size for r in rows]
    ends = np.cumsum([0, *numbers])
    places = {id(r): slice(a, b) for r, a, b in zip(rows, ends[:-1], ends[1:], strict=True)}
    own, nodes = np.zeros((ends[-1], part.N)), np.zeros((ends[-1], part.N + 1))
    _of_rows(solution, part, places, own, nodes)
    _of_bounds(solution, part, places, rows, own, nodes)
    controlled = np.repeat([made._controlled(r.expression) for r in rows], numbers).astype(bool)
    behind = controlled & (not made.nodal)  # of controls that begin at the node
    own[behind] += nodes[behind, :-1]
    nodes[behind] = 0.0
    sizes = np.abs(np.pad(nodes, ((0, 0), (1, 1))))
    alone = np.where(sizes[:, 1:-1] > _ALONE * np.maximum(sizes[:, :-2], sizes[:, 2:]), nodes, 0.0)
    nodes = nodes - alone
    total = own + (nodes[:, :-1] + nodes[:, 1:]) / 2
    changed = tuple(r.with_bounds(solution.limit_bounds) for r in rows)
    return LimitMultipliers(changed, total, nodes[:, 1:] / 2, alone, controlled)


def _limits(made, phase):
    """Constraints of a phase that mean something between nodes: its limits, those at the points of the method, and the
    bounds of states."""
    parts, rows = made.parts_of[phase.number], {}
    for r in (*parts.rows, *parts.inner, *parts.equations, *phase.rows):
        if not (r.of_nodes or ca.depends_on(r.expression, made.description.ahead)):
            rows[id(r)] = r
    for k in made.rated(phase):
        v = made.states[k]
        if np.isfinite([v.lower, v.upper]).any() and v.manifold is None:
            rows[id(v)] = Constraint(v.symbol, v.lower, v.upper, v.name)
    return tuple(rows.values())


def _of_rows(solution, part, places, own, nodes):
    """Add the multipliers of rows."""
    made, lam_g, at = solution.transcribed, np.append(solution.multipliers[1], 0.0), 0
    count = len(made.parts_of[part.phase.number].rows) + len(part.phase.node_rows)
    for group in made.assembly.groups:
        here = np.arange(max(at, part.first), min(at + group.count, part.first + part.N + 1))
        last, at = at == made.total, at + group.count
        if not here.size or (here[0] == part.first + part.N and not last):
            continue  # the first node of the next phase
        rows = np.stack([made.assembly.stage_rows[k] for k in here])
        blocks = made.row_blocks[here[0]]
        ends = np.cumsum([block.size for block in blocks])
        limits = [k for k, b in enumerate(blocks) if b.constraint is not None and not b.where and b.label is None]
        of_nodes = set(limits if last else limits[len(limits) - count :])
        for k in limits:
            block = blocks[k]
            if id(block.constraint) in places:
                found = lam_g[rows[:, ends[k] - block.size : ends[k]]].T  # the last one, 0, of rows that are left out
                into = nodes if k in of_nodes else own
                into[places[id(block.constraint)], here - part.first] += found


def _of_bounds(solution, part, places, rows, own, nodes):
    """Add the multipliers of bounds of states, but at ends that are fixed, and of those within intervals."""
    made = solution.transcribed
    first = made.assembly.first[part.first : part.first + part.N + 1]
    fixed = solution.bounds[0] == solution.bounds[1]
    inner = [(list(states), y) for like, _, states, y in _inner(solution)[part.phase.number] if like == "x"]
    of = dict(zip((id(v.symbol) for v in made.states), made.state_rows, strict=True))
    for r in rows:
        which = of.get(id(r.expression), [])
        for place, i in zip(range(places[id(r)].start, places[id(r)].stop), which, strict=False):
            nodes[place] += np.where(fixed[first + i], 0.0, solution.multipliers[0][first + i]) / made.x_scale[i]
            for states, lam_x in inner:
                if i in states:
                    own[place] += lam_x[:, states.index(i)] / made.x_scale[i] ** 2


def _inner(solution):
    """Multipliers of the bounds of what the method adds within intervals, as Transcribed.inner, times scales."""
    return solution.transcribed.inner(solution.multipliers[0])
