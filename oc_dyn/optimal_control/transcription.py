"""A Problem as stages for a method of integration, and the way back from its unknowns to its symbols."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import ShapeError, UnknownName
from ..interrupts import check_building
from ..numbers import as_floats, shortened
from ..validation import numbers
from . import bernstein, inside
from . import manifolds as curved
from .assembly import Group, assemble
from .description import Constraint
from .initial import unknowns
from .mesh import LONGEST, SHORTEST
from .polynomials import bernstein_values
from .stage_derivatives import HESSIANS
from .stage_kinds import StageKinds, joined


@dataclass(frozen=True, eq=False)
class Stretch:
    """Stages of one kind in a phase, of that number. extras: what the method adds."""

    count: int
    phase: int
    extras: list


def pattern(description, numbers):
    """What ends of chains decide of the stages: for each, how many derivatives are fixed at the (start, goal), and
    whether they are so by rows, as the unknowns stand for them times powers of a time that is unknown too."""
    free = any(d.free for d in description.durations)
    out = []
    for chain in description.bernstein:
        ends = [bernstein.fixed(chain, numbers, where) for where in ("start", "goal")]
        out.append(tuple((len(end), free and bool(np.any(end[1:]))) for end in ends))
    return tuple(out)


class Transcribed(StageKinds):
    """Nonlinear program of a Problem: assembly, bounds {lbx, ubx, lbg, ubg}, guess, parameters, values."""

    def __init__(self, description, numbers, method, compiled, graph="mx", hessians=HESSIANS):
        super().__init__(description, method, compiled, graph, hessians)
        self.numbers, self.pattern = numbers, pattern(description, numbers)
        self.checks = {}  # Functions of solution_check, by number of the phase
        self.state_names, self.control_names = (
            [f"{v.name}[{i}]" if v.size > 1 else v.name for v in some for i in range(v.size)]
            for some in (self.states, self.controls)
        )
        self.groups, self.row_blocks, self.stretches = [], [], []
        self.parts_of = {}  # Parts, by number of the phase
        for phase in self.phases:
            self._add_phase(phase)
        self._add_end(self.phases[-1])
        check_building()
        self.assembly = assemble(self.groups, n_p=self.n_p, n_s=self.n_s, hessians=hessians)

    # -- stages ---------------------------------------------------------------------------------------------

    def _add_phase(self, phase):
        check_building()
        last = phase is self.phases[-1]
        # complete: of its mesh a stage reads whether intervals are as long as each other, where points count
        merged = bool(phase.sums) and inside.equal_lengths(self.description, phase)
        parts = self.kept(("parts", phase.number, merged), lambda: self.parts(phase, last))
        self.parts_of[phase.number] = parts
        ends = last and self._last_differs(phase, parts)
        counts = {False: phase.nodes - (parts.closes or ends), True: int(parts.closes or ends)}
        tied = tuple(chain[0][1] for chain in self.pattern)
        for closing, count in counts.items():
            extras = parts.closing_extras if closing else parts.extras
            if count:
                check_building()
                key = ("stage", phase.number, closing, tied, merged)
                of, blocks = self.kept(key, lambda c=closing: self.stage(phase, parts, c, tied))
                keep = self._keep(blocks, count, len(self.row_blocks) == 0, last and (closing or not ends))
                self._keep_at_nodes(keep, blocks, phase, phase.nodes - count if closing else 0)
                self.groups.append(Group(of, count, keep))
                self.row_blocks += [blocks] * count
            self.stretches.append(Stretch(count, phase.number, extras))

    def _last_differs(self, phase, parts):
        """Whether limits of the last interval alone are left where the goal is fixed."""
        for w, decided in zip(phase.within, parts.decided, strict=True):
            if w.last and np.any(self._within_keep(decided, None, self._known(1))):
                return True
        return False

    def _known(self, end):
        """How many derivatives of the chain are fixed at an end: with several chains, the least."""
        return min((chain[end][0] for chain in self.pattern), default=0)

    @staticmethod
    def _within_keep(decided, start, goal):
        """Which rows are left where so many derivatives are fixed at the ends of an interval, None for none."""
        keep = np.ones(len(decided), bool)
        for known, orders in ((start, decided[:, 0]), (goal, decided[:, 1])):
            if known is not None:
                keep &= orders >= known
        return keep

    def _keep(self, blocks, count, first, last):
        """(count, rows) which rows of the stages of a group are constraints; first, last: of all intervals."""
        lower, upper = self._limits_of_all(blocks)
        keep, at = np.tile(np.isfinite(lower) | np.isfinite(upper), (count, 1)), 0
        for block in blocks:
            rows = slice(at, at + block.size)
            at += block.size
            if block.where == "start":
                keep[0 if first else slice(None), rows] &= first
                keep[1:, rows] = False
            if block.chain is not None:  # derivatives that are fixed are held, and no others
                keep[:, rows] &= block.label[1] < self.pattern[block.chain][block.where == "goal"][0]
            elif block.decided is not None:
                if first:
                    keep[0, rows] &= self._within_keep(block.decided, self._known(0), None)
                if last:
                    keep[-1, rows] &= self._within_keep(block.decided, None, self._known(1))
        return keep

    @staticmethod
    def _keep_at_nodes(keep, blocks, phase, first):
        """Leave out of keep what holds at another node of the phase. first: number of the stages' first node in it."""
        nodes, at = first + np.arange(len(keep)), 0
        for block in blocks:
            fraction = None if block.constraint is None else block.constraint.fraction
            if fraction is not None:
                keep[:, at : at + block.size] &= (nodes == phase.node(fraction))[:, None]
            at += block.size

    def _limits_of_all(self, blocks):
        """(lower, upper) of the rows of a stage, as they are now."""
        both = [self._limits_of(block) for block in blocks]
        return tuple(joined(x[end] for x in both) for end in (0, 1))

    def _limits_of(self, block):
        """(lower, upper) of the rows of a block, as they are now."""
        if block.constraint is None:
            return np.zeros((2, block.size))
        row, bounds = block.constraint, self.numbers.bounds
        chain = self._chain_of.get(row.name)
        if chain is None:
            return row.bounds_of(bounds)
        changed = bounds[row.name]
        order = chain.names.index(row.name)
        scale = bernstein.unit(*changed) if order else 1.0
        return tuple((bound / scale)[chain.bounded[order]] for bound in changed)

    @cached_property
    def _chain_of(self):
        """{name of q, d1q, ...: its chain}."""
        return {name: chain for chain in self.description.bernstein for name in chain.names}

    def _add_end(self, phase):
        check_building()
        tied = tuple(chain[1][1] for chain in self.pattern)
        of, blocks = self.kept(("end", tied), lambda: self.end(phase, tied))
        self.groups.append(Group(of, 1, self._keep(blocks, 1, False, False)))
        self.row_blocks.append(blocks)

    # -- numbers --------------------------------------------------------------------------------------------

    @property
    def total(self):
        """Number of intervals."""
        return sum(s.count for s in self.stretches)

    def _stages(self):
        """[(Stretch or None at the last node, share of its interval number k)]."""
        return [(s, k) for s in self.stretches for k in range(s.count)] + [(None, 0)]

    def duration_numbers(self, phase):
        """(nominal, lower, upper) of the duration of a phase, as they are now."""
        return self.numbers.durations[phase]

    @property
    def T_scale(self):
        """What the free durations are divided by."""
        return np.array([self.duration_numbers(k)[0] for k in self.times])

    @property
    def nominal_durations(self):
        """Nominal durations of all phases."""
        return [self.duration_numbers(k)[0] for k in range(len(self.durations))]

    def times_of(self, durations):
        """Values of the symbols of the free durations from the durations of the phases [s]."""
        reused = [self.durations[k].nominal_step is not None for k in self.times]
        nominal = self.nominal_durations
        return [durations[k] / nominal[k] if of else durations[k] for k, of in zip(self.times, reused, strict=True)]

    @property
    def chain_numbers(self):
        """[ChainNumbers] of the bernstein chains, as they are now."""
        N, T = self.total, self.duration_numbers(0)[0]
        tied = [[end[1] for end in chain] for chain in self.pattern]
        chains = zip(self.description.bernstein, tied, strict=True)
        return [bernstein.ChainNumbers(chain, self.numbers, N, T, tied) for chain, tied in chains]

    @property
    def bounds(self):
        """{lbx, ubx, lbg, ubg}, with the ends as they are fixed now."""
        known = {where: {} for where in (None, "start", "goal")}
        for chain in self.chain_numbers:
            for where, values in known.items():
                values |= zip((s.name() for s in chain.chain.coefficients), chain.unknown_bounds(where), strict=False)
        stretches, sides = [*self.stretches, None], {"lbx": [], "ubx": []}
        for side, rows in sides.items():
            for stretch in stretches:
                where, count = (None, stretch.count) if stretch else ("goal", 1)
                if count and not rows:
                    rows.append(self._unknown_bounds(stretch, "start", side == "ubx", known))
                    count -= 1
                rows += [self._unknown_bounds(stretch, where, side == "ubx", known)] * count if count else []
        return {**{k: np.concatenate(x) for k, x in sides.items()}, **self.row_bounds}

    def _unknown_bounds(self, stretch, where, upper, known):
        """Bounds of the unknowns of a stage. known: {where: {name: (lower, upper)}} of those of chains."""
        bound, free = ("upper", np.inf) if upper else ("lower", -np.inf)
        fixed = {**(getattr(self.numbers, where) if where else {})}
        if where == "goal":  # on manifolds rows hold it
            fixed = {k: x for k, x in fixed.items() if not any(v.name == k and v.manifold for v in self.states)}
        fixed |= {name: both[upper] for name, both in known[where].items()}
        own = [fixed.get(v.name, getattr(v, bound)) for v in self.states]
        T = [self.duration_numbers(t)[1 + upper] if where == "start" else free for t in self.times]
        controls = joined(getattr(v, bound) for v in self.controls) / self.u_scale
        row = [joined(own) / self.x_scale, np.array(T) / self.T_scale]
        row += [controls] if self.nodal or stretch else []
        for e in stretch.extras if stretch else []:
            like = controls if e.like == "u" else self.local_bounds(self.phases[stretch.phase])[upper]
            row.append(like if e.bounded else np.full(e.scale.size, free))
        row += [[LONGEST if upper else SHORTEST]] if self.free_mesh and stretch else []
        return np.concatenate(row)

    @property
    def row_bounds(self):
        """{lbg, ubg}: zero for the dynamics and rows of methods."""
        lower, upper = np.zeros((2, self.assembly.size[1]))
        known = {}
        for rows, blocks in zip(self.assembly.stage_rows, self.row_blocks, strict=True):
            if id(blocks) not in known:
                known[id(blocks)] = self._limits_of_all(blocks)
            kept = rows >= 0
            lower[rows[kept]], upper[rows[kept]] = (x[kept] for x in known[id(blocks)])
        return {"lbg": lower, "ubg": upper}

    def carried(self, multipliers, other):
        """Multipliers (lam_x, lam_g) of another problem with the same unknowns as those of this one: of limits within
        intervals by their names and places, zero where rows are new."""
        lam_x, lam_g = multipliers
        out = np.zeros(self.assembly.size[1])
        out[self.assembly.dynamics] = lam_g[other.assembly.dynamics]
        for mine, theirs in zip(self._labelled(), other._labelled(), strict=True):
            for label, rows in mine.items():
                if label in theirs:
                    both = (rows >= 0) & (theirs[label] >= 0)
                    out[rows[both]] = lam_g[theirs[label][both]]
        return lam_x, out

    def _labelled(self):
        """[{label: numbers of the rows}] of every stage."""
        out = []
        for rows, blocks in zip(self.assembly.stage_rows, self.row_blocks, strict=True):
            ends = np.cumsum([b.size for b in blocks])
            out.append({b.label: rows[end - b.size : end] for b, end in zip(blocks, ends, strict=True) if b.label})
        return out

    def parameters(self, given):
        """Values of the parameter of the program from {symbol or name: value}."""
        named = (*self.description.parameters, *self.description.varying)
        known = [name for name, _ in named]
        if not isinstance(given, dict):
            raise ShapeError(f"parameters: got {shortened(given)}, expected {{symbol or name: value}}")
        for k in given:
            if isinstance(k, str) and k not in known:
                raise UnknownName("parameter of the problem", k, known)
        values = {}
        for name, symbol in named:
            value = next((x for k, x in given.items() if k is symbol or (isinstance(k, str) and k == name)), None)
            if value is None:
                raise ShapeError(f"Problem: parameter {name!r} has no value; give parameters={{...}} to solve")
            values[name] = value
        common = [_sized(f"parameter {n!r}", values[n], symbol.numel()) for n, symbol in self.description.parameters]
        rows = [_rows(f"parameter {n!r}", values[n], self.total + 1, s.numel()) for n, s in self.description.varying]
        common.append(self.hidden_values())
        return self.assembly.parameters(joined(common), np.vstack([self.shares, *(r.T for r in rows)]))

    def hidden_values(self):
        """Values of description.hidden, as they are now."""
        on, goals = [v for v in self.states if v.manifold is not None], self.numbers.goal
        out = [x for chain in self.chain_numbers for x in chain.values()]
        for duration, T, phase in zip(self.durations, self.nominal_durations, self.phases, strict=True):
            out += [] if duration.nominal_step is None else [[T, T / phase.nodes]]
        out += [goals[v.name] if v.name in goals else v.manifold.neutral() for v in on]
        return joined(out)

    @property
    def shares(self):
        """(N + 1,) share of its phase's duration that an interval takes; at the last node that of the last interval."""
        shares = np.concatenate([phase.lengths for phase in self.phases])
        return np.append(shares, shares[-1])

    @cached_property
    def places(self):
        """(N + 1,) of the nodes, as guesses count; see Description."""
        return self.description.places

    def guess(self, initial):
        """Unknowns from the guesses of the variables, or from a Solution."""
        if initial is not None:
            return initial.unknowns if initial.transcribed is self else unknowns(self, initial)
        places, rows, chains = self.places, [], self._chain_guesses()
        x, u = self._guessed_states(), guessed(self.controls, self.numbers.guess, places)
        steps = [self._local(phase).guessed_steps for phase in self.phases]
        for k, (stretch, _) in enumerate(self._stages()):
            share, gap, here = places[k], np.diff(places[k : k + 2]), x(places[k])
            own = [here / self.x_scale, u(share) / self.u_scale]
            for value, where, table in chains:
                own[value][where] = table[min(k, len(table) - 1)]
            row = [own[0], np.ones(len(self.times))]
            row += [own[1]] if self.nodal or stretch else []
            for e in stretch.extras if stretch else []:
                like = (x if e.like == "x" else u)(share + e.share * gap[0])
                if e.like == "x":
                    like = steps[stretch.phase](here[None, e.rows], like[None, e.rows])[0]
                row.append(like / e.scale)
            row += [np.ones(1)] if self.free_mesh and stretch else []
            rows.append(np.concatenate([np.zeros(0), *row]))
        return np.concatenate(rows)

    def _guessed_states(self):
        """Function of the place: guess of the states; quaternions are of unit length, and have signs that fit at
        nodes."""
        places = self.places
        x = guessed(self.states, self.numbers.guess, places)
        if all(v.manifold is None for v in self.states):
            return x
        nodes = np.array([x(place) for place in places])
        signs = curved.signs(self.states, nodes, self.numbers.start)

        def on_manifolds(place):
            near = signs[int(np.argmin(np.abs(places - place)))]
            return curved.unit_rows(self.states, (x(place) * near)[None])[0]

        return on_manifolds

    def packed(self, x, u, durations, lengths):
        """Unknowns from states x (N + 1, n), controls u (N, nu), durations of the phases, and lengths (N,) of intervals
        over those that the mesh gives, for methods that add nothing."""
        free = [durations[k] / scale for k, scale in zip(self.times, self.T_scale, strict=True)]
        columns = [x[:-1] / self.x_scale, np.tile(free, (self.total, 1)), u / self.u_scale]
        rows = np.hstack(columns + ([lengths[:, None]] if self.free_mesh else []))
        return np.concatenate([rows.ravel(), x[-1] / self.x_scale, free])

    def mean_duration(self, phase):
        """What a cost that is averaged over the intervals is divided by to be a rate of cost."""
        d = self.description
        T = self.durations[phase.number].value
        return T if d.relative_length is None else T * d.relative_length

    def chain_limits(self, bounds):
        """Bounds of bernstein chains, {name: (lower, upper)}, as limits of their outputs."""
        rows = []
        for chain in self.description.bernstein:
            for output, name, which in zip(chain.outputs, chain.names, chain.bounded, strict=True):
                if which.any():
                    rows.append(Constraint(output, *bounds[name], name))
        return rows

    def _chain_guesses(self):
        """[(0 of the states or 1 of the controls, rows, values (nodes or intervals, rows))] of bernstein chains."""
        out, N = [], self.total
        places = dict(zip(map(id, self.symbols), [*self.state_rows, *self.control_rows], strict=False))
        for c in self.chain_numbers:
            derivatives = bernstein.guess_table(c.chain, self.numbers.guess[c.chain.name], self.numbers, N, c.T)
            x, u = c.unknowns(derivatives, c.T, c.T / N if self.free_mesh else None)
            out += [(0, places[id(s)], x[:, j]) for j, s in enumerate(c.chain.coefficients[:-1])]
            out.append((1, places[id(c.chain.coefficients[-1])], u))
        return out

    def relative_lengths(self, unknowns):
        """(N,) lengths of the intervals over those that the mesh gives: what is free of them."""
        if not self.free_mesh:
            return np.ones(self.total)
        return unknowns[self.assembly.first[1:-1] - 1]

    def steps(self, durations, relative_lengths):
        """(N,) lengths of the intervals [s] from what `values` and `relative_lengths` give."""
        if self.free_mesh and self.description.of_nominal:
            return self.duration_numbers(0)[0] / self.total * relative_lengths
        if self.free_mesh:
            parts = np.split(self.shares[:-1] * relative_lengths, np.cumsum([p.nodes for p in self.phases])[:-1])
            return np.concatenate([T * part / part.sum() for T, part in zip(durations, parts, strict=True)])
        return np.concatenate([
            np.full(p.nodes, durations[p.number] / p.nodes) if p.shares is None else durations[p.number] * p.lengths
            for p in self.phases
        ])  # fmt: skip

    def values(self, unknowns):
        """(states (N + 1, n), controls (N or N + 1, n), durations of the phases) from the unknowns."""
        n, k = self.x_scale.size, len(self.times)
        stages = np.split(unknowns, self.assembly.first[1:-1])
        x = curved.unit_rows(self.states, np.array([z[:n] * self.x_scale for z in stages]))
        free = dict(zip(self.times, stages[0][n : n + k] * self.T_scale, strict=True))
        T = [float(free.get(t, self.duration_numbers(t)[0])) for t in range(len(self.durations))]
        if self.free_mesh and self.description.of_nominal:
            T[0] *= float(np.mean(self.relative_lengths(unknowns)))
        size = self.u_scale.size
        controls = [z[n + k : n + k + size] * self.u_scale for z in (stages if self.nodal else stages[:-1])]
        return x, np.array(controls).reshape(len(controls), size), T

    def inner(self, unknowns):
        """[(what it is like, share of the interval, rows, values (intervals, n))] of what the method adds within
        intervals, a list for every phase. Of controls that are polynomials of control_degree their values there."""
        stages, at, parts = np.split(unknowns, self.assembly.first[1:-1]), 0, [[] for _ in self.phases]
        x, _, _ = self.values(unknowns)
        for stretch in self.stretches:
            own, values = stages[at : at + stretch.count], []
            skip = self.nx + (0 if self.nodal else self.u_scale.size)
            for e in stretch.extras:
                found = np.array([z[skip : skip + e.scale.size] * e.scale for z in own]).reshape(len(own), e.scale.size)
                if e.like == "x":
                    starts = x[at : at + stretch.count][:, e.rows]
                    found = self._local(self.phases[stretch.phase]).values(starts, found)
                values.append((e, found))
                skip += e.scale.size
            if self.control_degree:
                values = self._valued(own, values)
            parts[stretch.phase].append(values)
            at += stretch.count

        def joined(same):
            e = same[0][0]
            return e.like, e.share, e.rows, np.vstack([values for _, values in same])

        # the last interval of a phase may have one more, for the start of the next
        return [[joined(same) for same in zip(*of, strict=False)] for of in parts]

    def _valued(self, stages, extras):
        """[(Extra, values)] with the values of the polynomials of controls in place of their coefficients."""
        u = [z[self.nx : self.nx + self.u_scale.size] * self.u_scale for z in stages]
        coefficients = [np.reshape(u, (len(stages), self.u_scale.size))]
        coefficients += [values for e, values in extras if e.like == "u"]
        out = []
        for e, values in extras:
            if e.like == "u":
                weights = bernstein_values(self.control_degree, e.share)
                values = sum(w * c for w, c in zip(weights, coefficients, strict=True))
            out.append((e, values))
        return out


def _sized(what, value, size):
    return numbers(what, _finite(what, value), size)


def _finite(what, value):
    value = as_floats(what, value)
    if not np.isfinite(value).all():
        raise ShapeError(f"{what}: value {int(np.argmin(np.isfinite(value)))} is not a finite number")
    return value


def _rows(what, value, count, size):
    value = _finite(what, value)
    if value.ndim < 2 and (value.size == size or value.ndim == 0):
        return np.broadcast_to(value.ravel(), (count, size))
    if value.shape != (count, size) and not (size == 1 and value.shape == (count,)):
        raise ShapeError(f"{what}: got shape {value.shape}, expected ({count}, {size}), a row for every node")
    return value.reshape(count, size)


def guessed(variables, guesses, places):
    """Function place -> guess of the variables, one after the other; places: (N + 1,) of the nodes, see Description."""
    total = len(places) - 1

    def one(v):
        guess = guesses[v.name]
        if callable(guess):
            return lambda share: _sized(f"guess of {v.name}", guess(share), v.size)
        table = as_floats(f"guess of {v.name}", guess)
        if table.ndim < 2:
            return lambda share: _sized(f"guess of {v.name}", table, v.size)
        if table.shape[1] != v.size or table.shape[0] not in (total, total + 1):
            raise ShapeError(
                f"guess of {v.name}: got shape {table.shape}, expected ({total + 1}, {v.size}) or ({v.size},)"
            )
        at = places[: table.shape[0]]
        return lambda share: np.array([np.interp(share, at, column) for column in table.T])

    parts = [one(v) for v in variables]
    return lambda share: joined(part(share) for part in parts)
