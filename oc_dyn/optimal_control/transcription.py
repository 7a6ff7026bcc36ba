"""A Problem as stages for a method of integration, and the way back from its unknowns to its symbols.

State of a stage: the problem's states, each divided by its scale, the free durations, and the controls where the method
has them at nodes. Its other unknowns: the controls elsewhere, and what the method adds.
"""

import functools
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np

from ..errors import OrderError, ShapeError, UnknownName
from ..numbers import as_floats, shortened
from ..validation import numbers
from . import bernstein
from .assembly import Group, assemble
from .description import Constraint
from .mesh import LONGEST, SHORTEST
from .polynomials import later, lobatto
from .stages import kind


@dataclass(frozen=True, eq=False)
class Stretch:
    """Stages of one kind in a phase, of that number. extras: what the method adds."""

    count: int
    phase: int
    extras: list


@dataclass(frozen=True, eq=False)
class Extra:
    """An unknown that a method adds to a stage: what it is like, "x" or "u", the share of the interval where, the rows
    of the states that it stands for, and whether the bounds of controls hold for it."""

    like: str
    share: float
    rows: list
    scale: np.ndarray
    bounded: bool


@dataclass(frozen=True, eq=False)
class Parts:
    """What the stages of a phase are made of. start_rows: of its first node. inner: limits at the points of the method.
    at_end: limits of its last node. extras, closing_extras: what the method adds, and adds to its last interval.
    closes: whether the last interval is a kind of its own. decided: by what each of phase.within is."""

    start_rows: list
    inner: list
    at_end: list
    extras: list
    closing_extras: list
    closes: bool
    decided: list


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a stage that belong together. constraint: whose bounds they have, None for zero. where: "start" or "goal"
    for rows of that end alone. label: (name, place) that tells them apart from the others of their stage, or None.
    decided: None, or for each row how many derivatives of a chain at the (start, end) of the interval decide it."""

    size: int
    constraint: Constraint | None = None
    where: str = ""
    label: tuple | None = None
    decided: np.ndarray | None = None


def pattern(description, numbers):
    """What ends of chains decide of the stages: for each, how many derivatives are fixed at the (start, goal), and
    whether they are so by rows, as the unknowns stand for them times powers of a time that is unknown too."""
    free = any(d.free for d in description.durations)
    out = []
    for chain in description.bernstein:
        ends = [bernstein.fixed(chain, numbers, where) for where in ("start", "goal")]
        out.append(tuple((len(end), free and bool(np.any(end[1:]))) for end in ends))
    return tuple(out)


class Transcribed:
    """Nonlinear program of a Problem: assembly, bounds {lbx, ubx, lbg, ubg}, guess, parameters, values."""

    def __init__(self, description, numbers, method, compiled, graph="mx"):
        self.description, self.numbers, self.method = description, numbers, method
        self.compiled, self.graph = compiled, graph
        self.phases, self.durations = description.phases, description.durations
        self.states, self.controls = description.states, description.controls
        self.pattern = pattern(description, numbers)
        self.checks = {}  # Functions of solution_check, by number of the phase
        self.nodal = getattr(method, "controls_are_states", False)
        self.state_rows, self.control_rows = (_numbered(some) for some in (self.states, self.controls))
        self.state_names, self.control_names = (
            [f"{v.name}[{i}]" if v.size > 1 else v.name for v in some for i in range(v.size)]
            for some in (self.states, self.controls)
        )
        self.x_scale, self.u_scale = (_joined(v.scale for v in some) for some in (self.states, self.controls))
        self.times = [k for k, duration in enumerate(self.durations) if duration.free]
        self.nx = self.x_scale.size + len(self.times) + (self.u_scale.size if self.nodal else 0)
        self.free_mesh = description.relative_length is not None
        self.p = [symbol for _, symbol in description.parameters] + description.hidden
        self.n_p = sum(s.numel() for s in self.p)
        self.symbols = [v.symbol for v in (*self.states, *self.controls)]
        self.own = [description.share, *(symbol for _, symbol in description.varying)]  # parameters of a stage
        self.n_s = sum(s.numel() for s in self.own)
        self.symbols += [self.durations[k].symbol for k in self.times] + self.p + self.own
        self.symbols += [description.relative_length] if self.free_mesh else []
        self.outputs = [s for chain in description.bernstein for s in chain.outputs]
        self.groups, self.row_blocks, self.stretches = [], [], []
        for phase in self.phases:
            self._add_phase(phase)
        self._add_end(self.phases[-1])
        self.assembly = assemble(self.groups, n_p=self.n_p, n_s=self.n_s)

    def _kept(self, key, make):
        """What make() gives, built once for all problems that differ from this one in their numbers of intervals, ends
        and bounds alone."""
        # complete: a description never changes, and those that share `stages` differ in what no stage reads
        key = (self.method, self.compiled, self.graph, *key)
        if key not in self.description.stages:
            self.description.stages[key] = make()
        return self.description.stages[key]

    # -- stages ---------------------------------------------------------------------------------------------

    def _physical(self, x, u, p, s):
        """(states, controls or None, [durations, parameters of the problem and of the stage, relative length]) of a
        stage, and what is left of u: all but controls and length."""
        own, free, nodal = ca.vertsplit(x, self._rows_of_state)
        parameters = self.split(p, self.p)
        T = ca.vertsplit(np.array(self.times_of(self.nominal_durations)) * free) if self.times else []
        constants = [*T, *parameters, *self.split(s, self.own)]
        if self.free_mesh and u is not None:
            u, length = ca.vertsplit(u, [0, u.numel() - 1, u.numel()])
        if self.free_mesh:
            constants.append(length if u is not None else type(x)(1))
        controls = None
        if self.nodal:
            controls = self.u_scale * nodal
        elif u is not None:
            controls, u = ca.vertsplit(u, [0, self.u_scale.size, u.numel()])
            controls = self.u_scale * controls
        return self.x_scale * own, controls, constants, u

    @property
    def _rows_of_state(self):
        """Where states, free durations and controls begin and end in the state of a stage."""
        n, k = self.x_scale.size, len(self.times)
        return [0, n, n + k, self.nx]

    @staticmethod
    def split(column, symbols):
        """Parts of a column, one for each of the symbols."""
        return ca.vertsplit(column, _ends(symbols)) if symbols else []

    def at(self, expressions, x, u, constants, share=0.0, phase=0):
        """Expressions of the problem at states, controls (columns), and [durations, parameters, those of a stage], a
        share of an interval of a phase behind its start where they are of chains."""
        if not expressions:
            return []
        columns = [self.split(y, [v.symbol for v in some]) for y, some in ((x, self.states), (u, self.controls))]
        given = [*columns[0], *columns[1], *constants, type(x)(0)]
        known = [*self.symbols, self.description.ahead]
        expressions = [ca.MX(e) for e in expressions]
        if self.outputs:
            of_chains = ca.Function("f", known, self._outputs(share)).call(given, True, False)
            known, given = [*known, *self.outputs], [*given, *of_chains]
        if share:
            known, given = self._moved(known, given, share, phase)
        f = ca.Function("f", known, expressions)
        return f.call(given, True, False)

    def at_nodes(self, expressions):
        """Function of all symbols that gives expressions of them and of the outputs of chains at the start of an
        interval."""
        known = [*self.symbols, self.description.ahead]
        if self.outputs:
            f = ca.Function("f", [*known, *self.outputs], expressions)
            expressions = f.call([*known, *self._outputs(0.0)], True, False)
        return ca.Function("value", known, expressions)

    def _outputs(self, share):
        """Expressions of the outputs of bernstein chains a share of the interval behind its start."""
        mean, relative = self.durations[0].mean_step(self.description.share), self.description.relative_length
        return [x for c in self.description.bernstein for x in bernstein.outputs(c, share, mean, relative)]

    def _moved(self, known, given, share, phase):
        """The same with the states of taylor chains a share of the interval later."""
        given, places = list(given), {id(s): i for i, s in enumerate(known)}
        symbols, h = known[: len(self.symbols) + 1], self.description.length(phase)
        for chain in self.description.chains:
            f = ca.Function("f", symbols, later(list(chain), share * h)[:-1])
            for symbol, value in zip(chain[:-1], f.call(given[: len(symbols)], True, False), strict=True):
                given[places[id(symbol)]] = value
        return known, given

    def _add_phase(self, phase):
        last = phase is self.phases[-1]
        parts = self._kept(("parts", phase.number), lambda: self._parts(phase, last))
        ends = last and self._last_differs(phase, parts)
        counts = {False: phase.nodes - (parts.closes or ends), True: int(parts.closes or ends)}
        tied = any(chain[0][1] for chain in self.pattern)
        for closing, count in counts.items():
            extras = parts.closing_extras if closing else parts.extras
            if count:
                key = ("stage", phase.number, closing, tied)
                of, blocks = self._kept(key, lambda c=closing: self._stage(phase, parts, c, tied))
                first = len(self.row_blocks) == 0
                self.groups.append(Group(of, count, self._keep(blocks, count, first, last and (closing or not ends))))
                self.row_blocks += [blocks] * count
            self.stretches.append(Stretch(count, phase.number, extras))

    def _parts(self, phase, last):
        """Parts of a phase."""
        missing = [v.name for k, v in enumerate(self.states) if k not in phase.rates and k not in phase.steps]
        if missing:
            raise OrderError(
                f"Problem: in phase{phase.number} state {missing[0]!r} has neither a rate nor a next value; give one"
            )
        self._check_maps(phase)
        inner, extras = self._rows_at_points(phase), self._extras(phase)
        # a node between phases is the start of the next one, which has limits of its own
        at_end = [] if last or self.nodal else [r for r in inner if not self._controlled(r.expression)]
        after = [Extra("u", 1.0, [], self.u_scale, False)] if self.nodal else []
        ends = [replace(e, bounded=e.bounded or (self.nodal and e.like == "u")) for e in extras]
        return Parts(
            [*self.description.start_rows, *self._norm_rows()] if phase.number == 0 else [],
            inner,
            at_end,
            extras,
            [*ends, *after] if not last else extras,
            bool(phase.join) or bool(at_end) or (self.nodal and bool(self.controls) and not last),
            [self._decided(w) for w in phase.within],
        )

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
            if block.where and block.label is not None:  # derivatives that are fixed are held, and no others
                keep[:, rows] &= block.label[1] < self._known(block.where == "goal")
            elif block.decided is not None:
                if first:
                    keep[0, rows] &= self._within_keep(block.decided, self._known(0), None)
                if last:
                    keep[-1, rows] &= self._within_keep(block.decided, None, self._known(1))
        return keep

    def _limits_of_all(self, blocks):
        """(lower, upper) of the rows of a stage, as they are now."""
        both = [self._limits_of(block) for block in blocks]
        return tuple(_joined(x[end] for x in both) for end in (0, 1))

    def _limits_of(self, block):
        """(lower, upper) of the rows of a block, as they are now."""
        if block.constraint is None:
            return np.zeros((2, block.size))
        row, changed = block.constraint, self.numbers.bounds.get(block.constraint.name)
        if changed is None or (block.label is not None and block.label[0] in self._unit_rows):
            return row.lower, row.upper
        if changed[0].size != row.lower.size:  # bounded joints of a chain
            which = next(c.bounded[0] for c in self.description.bernstein if c.name == row.name)
            return tuple(bound[which] for bound in changed)
        return changed

    @cached_property
    def _unit_rows(self):
        """Names of derivatives of chains, which are divided by their bounds."""
        return {name for chain in self.description.bernstein for name in chain.names[1:]}

    def _decided(self, within):
        """(rows, 2): how many derivatives of the chain at the start and end of an interval decide each row; infinite
        where others do too."""
        size = within.constraint.lower.size
        if within.fixed is not None:
            return np.tile(np.array(within.fixed, float), (size, 1))
        out = np.full((size, 2), np.inf)
        if within.share not in (0.0, 1.0) or not self.description.bernstein:
            return out
        expression, given = ca.vec(within.constraint.expression), [*self.parameter_symbols, *self.outputs]
        orders = [d for chain in self.description.bernstein for d in range(chain.order + 1)]
        if any(not any(ca.is_equal(s, y) for y in given) for s in ca.symvar(expression)):
            return out
        f = ca.Function("f", given, [expression])
        worst = np.zeros(size)
        for k, d in enumerate(orders):
            rows = np.unique(np.array(f.jac_sparsity(0, len(self.parameter_symbols) + k).row(), int))
            worst[rows] = np.maximum(worst[rows], d)
        out[:, int(within.share)] = worst
        return out

    @property
    def parameter_symbols(self):
        """Symbols that are given, not found."""
        return [*self.p, *self.own]

    def _stage(self, phase, parts, closing, tied):
        """(Kind, its Blocks) of the intervals of a phase, or of its last one."""
        points, constrained = [], []
        build = functools.partial(self._build, phase, parts, closing, tied, points, constrained)
        extras = parts.closing_extras if closing else parts.extras
        nu = (0 if self.nodal else self.u_scale.size) + sum(e.scale.size for e in extras) + self.free_mesh
        name = f"phase{phase.number}" + ("_join" if closing else "")
        of = kind(name, self.nx, nu, build, self.n_p, self.n_s, self.graph)
        known = [*parts.inner * len(points), *(parts.at_end if closing else ()), *phase.rows]
        blocks = [Block(r.lower.size, r) for r in known]
        blocks += [Block(r.lower.size, r, "start") for r in parts.start_rows] + constrained
        blocks.insert(0, Block(of.ng - sum(b.size for b in blocks)))
        return of.compiled(self.compiled) if self.compiled else of, tuple(blocks)

    def _build(self, phase, parts, closing, tied, points, constrained, x, u, p, s):
        """What a stage is made of; see stages.kind. points: filled with the points of the method. constrained: with the
        Blocks of what is limited within intervals."""
        X, U, constants, more = self._physical(x, u, p, s)
        empty, after = type(x)(0, 1), None
        if closing and self.nodal and phase is not self.phases[-1]:
            more, after = ca.vertsplit(more, [0, more.numel() - self.u_scale.size, more.numel()])
        scales = [e.scale for e in parts.extras]
        step, following, points[:], rule = self._step(phase, X, U, constants, more, scales)
        if after is not None:  # controls may jump where the next phase starts: this is their last value here
            points.append((following, step.u_next))
        end = following
        if closing:
            ks = list(phase.join)
            found = dict(zip(ks, self.at([phase.join[k] for k in ks], following, U, constants), strict=True))
            own = ca.vertsplit(following, _ends([v.symbol for v in self.states]))
            following = ca.vertcat(*(found.get(k, y) for k, y in enumerate(own)))
        rest = [ca.vertsplit(x, self._rows_of_state)[1]]
        rest += [step.u_next / self.u_scale if after is None else after] if self.nodal else []
        rows = [r / self.x_scale[self._rows_rated(phase)] for r in step.rows]
        rows += [y for at in points for y in self.at([r.expression for r in parts.inner], *at, constants)]
        rows += self.at([r.expression for r in (parts.at_end if closing else ())], end, U, constants)
        rows += self.at([r.expression for r in (*phase.rows, *parts.start_rows)], X, U, constants)
        within, cost = self._within(phase, parts, closing, X, U, constants, constrained)
        rows += [*within, *(self._ties(0, X, U, constants, constrained) if tied else [])]
        h = self._length(phase, X, U, constants)
        residuals = [
            np.sqrt(weight) * ca.sqrt(h) * r
            for weight, *at in (rule if phase.squares else ())
            for r in self.at(phase.squares, *at, constants)
        ]
        return {
            "next": ca.vertcat(following / self.x_scale, *rest),
            "rows": ca.vertcat(empty, *rows),
            "cost": step.cost + cost,
            "residuals": ca.vertcat(empty, *residuals),
        }

    def _within(self, phase, parts, closing, X, U, constants, blocks):
        """([rows], cost) of what is said of points within an interval; what is at one point is evaluated together."""
        which = [(w, d) for w, d in zip(phase.within, parts.decided, strict=True) if closing or not w.last]
        blocks[:] = [Block(w.constraint.lower.size, w.constraint, "", w.label, decided) for w, decided in which]
        asked, costs = {}, []
        for w, _ in which:
            asked.setdefault(w.share, []).append(w.constraint.expression)
        for rate, interior in phase.sums:
            at, weights = lobatto(interior)
            weights[0] += weights[-1]  # the end is the start of the next interval
            for share, weight in zip(at[:-1].tolist(), weights.tolist(), strict=False):
                asked.setdefault(share, []).append(rate)
                costs.append((share, weight))
        found = {share: iter(self.at(some, X, U, constants, share, phase.number)) for share, some in asked.items()}
        rows, cost = [ca.vec(next(found[w.share])) for w, _ in which], 0
        if costs:
            h = self._length(phase, X, U, constants)
            cost = sum(weight * h * next(found[share]) for share, weight in costs)
        if phase.means:
            mean = self.at([self.description.share * e for e in phase.means], X, U, constants)
            cost = cost + sum(mean)
        return rows, cost

    def _ties(self, end, X, U, constants, blocks):
        """Rows that hold derivatives of chains at an end; blocks: theirs are added."""
        rows = []
        for chain, fixed in zip(self.description.bernstein, self.pattern, strict=True):
            length = self.durations[0].mean_step(self.description.share)
            rows += self.at(bernstein.ties(chain, end, length), X, U, constants) if fixed[end][1] else []
            for j in range(1, chain.order) if fixed[end][1] else ():
                label = (f"{chain.names[j]} at the {('start', 'goal')[end]}", j)
                blocks.append(Block(chain.size, None, ("start", "goal")[end], label))
        return rows

    def _rows_at_points(self, phase):
        """Limits, and bounds of states, that hold at the points of a method too: not those of states that are stepped,
        which are known at nodes, and no equations of states alone, which nodes take care of."""
        stepped = ca.vertcat(ca.MX(0, 1), *(self.states[k].symbol for k in phase.steps))
        rows = []
        for r in phase.rows:
            if self._controlled(r.expression):
                rows.append(r)
            elif not (r.of_nodes or ca.depends_on(r.expression, ca.vertcat(stepped, self.description.ahead))):
                rows += [one for one in r.scalars(r.name) if one.lower != one.upper]
        states = [self.states[k] for k in self.rated(phase)]
        return rows + [Constraint(v.symbol / v.scale, v.lower / v.scale, v.upper / v.scale) for v in states]

    def rated(self, phase):
        """Numbers of the states that have rates."""
        return [k for k in range(len(self.states)) if k not in phase.steps]

    def _rows_rated(self, phase):
        return [i for k in self.rated(phase) for i in self.state_rows[k]]

    def _length(self, phase, X, U, constants):
        return self.at([self.description.length(phase.number)], X, U, constants)[0]

    def _step(self, phase, X, U, constants, more, scales):
        """(Step, states at the next node, [(states, controls)] at its points, [(weight, states, controls)] of its
        rule). States that are stepped stay as they are while the others are integrated."""
        ks = self.rated(phase)
        sizes = _ends([self.states[k].symbol for k in ks])
        own = ca.vertsplit(X, _ends([v.symbol for v in self.states])) if self.states else []
        h = self._length(phase, X, U, constants)

        def merged(y):
            moving = dict(zip(ks, ca.vertsplit(y, sizes), strict=True)) if ks else {}
            return ca.vertcat(*(moving.get(k, x) for k, x in enumerate(own)))

        def dynamics(y, w):
            return ca.vertcat(type(X)(0, 1), *self.at([phase.rates[k] for k in ks], merged(y), w, constants))

        def cost(y, w):
            return sum(self.at(phase.integrals, merged(y), w, constants), type(X)(0))

        unknowns = iter(ca.vertsplit(more, np.cumsum([0, *(x.size for x in scales)]).tolist()) if scales else [])
        factors = iter(scales)
        rated = ca.vertcat(type(X)(0, 1), *(own[k] for k in ks))
        step = self.method(dynamics, cost, rated, U, h, lambda name, size: next(factors) * next(unknowns))
        moved = dict(zip(ks, ca.vertsplit(step.following, sizes), strict=True)) if ks else {}
        stepped = list(phase.steps)
        moved |= dict(zip(stepped, self.at([phase.steps[k] for k in stepped], X, U, constants), strict=True))
        points = [(merged(y), w) for _, y, w in step.points]
        rule = step.quadrature if ks and step.quadrature else [(1.0, rated, U)]
        if self.nodal and step.quadrature:
            rule = step.quadrature
        following = ca.vertcat(*(moved[k] for k in range(len(self.states))))
        return step, following, points, [(weight, merged(y), w) for weight, y, w in rule]

    def _controlled(self, expression):
        u = ca.vertcat(ca.MX(0, 1), *(v.symbol for v in self.controls), *self.controlled_outputs)
        return bool(self.controls) and ca.depends_on(ca.MX(expression), u)

    @property
    def controlled_outputs(self):
        """Outputs of bernstein chains that depend on controls at the start of an interval."""
        return [chain.outputs[-1] for chain in self.description.bernstein]

    def _check_maps(self, phase):
        """A map takes the control of its interval; where controls belong to nodes it would take that of one end, and
        the cost both."""
        for k, expression in phase.steps.items() if self.nodal else ():
            if self._controlled(expression):
                raise OrderError(
                    f"Problem: state {self.states[k].name!r} is stepped by controls of intervals (next, a chain or a "
                    "contact body), but this method has controls at nodes; use rk4, euler or collocation"
                )

    def _norm_rows(self):
        """Rows that keep quaternions of contact bodies at norm 1 at the start where nothing else says what they are:
        steps keep the norm, whatever it is."""
        rows = []
        for body in self.description.bodies:
            state = next(v for v in self.states if v.symbol is body.q)
            fixed = [r.expression for r in self.description.start_rows if np.array_equal(r.lower, r.upper)]
            others = ca.vertcat(ca.MX(0, 1), *(v.symbol for v in self.states if v is not state))
            fixed = ca.vertcat(ca.MX(0, 1), *(x for x in fixed if not ca.depends_on(x, others)))
            for i in () if state.name in self.description.fixed["start"] else body.quaternions:
                if ca.sprank(ca.jacobian(fixed, body.q)[:, i : i + 4]) < 4:
                    rows.append(Constraint(ca.sumsqr(body.q[i : i + 4]), np.ones(1), np.ones(1)))
        return rows

    def _extras(self, phase):
        """[Extra] of what the method adds, from a step on symbols."""
        rows = self._rows_rated(phase)
        x, u = ca.MX.sym("x", len(rows)), ca.MX.sym("u", self.u_scale.size)
        step = self.method(
            lambda y, w: 0 * y, lambda y, w: ca.MX(0), x, u, ca.MX(1), lambda name, size: ca.MX.sym(name, size)
        )
        return [  # what stands for the next node is bounded there
            Extra(like, share, rows, self.x_scale[rows], False)
            if like == "x"
            else Extra(like, share, [], self.u_scale, share < 1)
            for like, share in step.guesses
        ]

    def _add_end(self, phase):
        tied = any(chain[1][1] for chain in self.pattern)
        of, blocks = self._kept(("end", tied), lambda: self._end(phase, tied))
        self.groups.append(Group(of, 1, self._keep(blocks, 1, False, False)))
        self.row_blocks.append(blocks)

    def _end(self, phase, tied):
        """(Kind, its Blocks) of the last node."""

        def controlled(expression):
            return not self.nodal and self._controlled(expression)

        goal, terminal = self.description.goal_rows, self.description.terminal
        if any(controlled(r.expression) for r in goal) or any(controlled(t) for t in terminal):
            raise OrderError("Problem: a goal or terminal cost depends on controls, which end before the last node")
        rows, blocks = [*(r for r in phase.rows if not controlled(r.expression)), *goal], []

        def build(x, _, p, s):
            X, U, constants, _ = self._physical(x, None, p, s)
            U = type(x).zeros(self.u_scale.size) if U is None else U
            found = self.at([r.expression for r in rows], X, U, constants)
            blocks[:] = [Block(r.lower.size, r) for r in rows]
            found += self._ties(1, X, U, constants, blocks) if tied else []
            cost = sum(self.at(terminal, X, U, constants), type(x)(0))
            return {"rows": ca.vertcat(type(x)(0, 1), *found), "cost": cost}

        end = kind("end", self.nx, 0, build, self.n_p, self.n_s, self.graph)
        return end.compiled(self.compiled) if self.compiled else end, tuple(blocks)

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
        fixed |= {name: both[upper] for name, both in known[where].items()}
        own = [fixed.get(v.name, getattr(v, bound)) for v in self.states]
        T = [self.duration_numbers(t)[1 + upper] if where == "start" else free for t in self.times]
        controls = _joined(getattr(v, bound) for v in self.controls) / self.u_scale
        row = [_joined(own) / self.x_scale, np.array(T) / self.T_scale]
        row += [controls] if self.nodal or stretch else []
        row += [controls if e.bounded else np.full(e.scale.size, free) for e in (stretch.extras if stretch else [])]
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
        return self.assembly.parameters(_joined(common), np.vstack([self.shares, *(r.T for r in rows)]))

    def hidden_values(self):
        """Values of description.hidden, as they are now."""
        out = [x for chain in self.chain_numbers for x in chain.values()]
        for duration, T, phase in zip(self.durations, self.nominal_durations, self.phases, strict=True):
            out += [] if duration.nominal_step is None else [[T, T / phase.nodes]]
        return _joined(out)

    @property
    def shares(self):
        """(N + 1,) share of its phase's duration that an interval takes; at the last node that of the last interval."""
        shares = [1 / self.phases[s.phase].nodes for s in self.stretches for _ in range(s.count)]
        return np.array([*shares, shares[-1]])

    def guess(self, initial):
        """Unknowns from the guesses of the variables, or from a Solution."""
        if initial is not None and initial.transcribed is self:
            return initial.unknowns
        known = (None, None) if initial is None else (initial.x, initial.u)
        x = _guessed(self.states, self.numbers.guess, known[0], self.total)  # functions of the share of all intervals
        u = _guessed(self.controls, self.numbers.guess, known[1], self.total)
        rows = []
        chains, lengths = self._chain_guesses(initial), self._length_guesses(initial)
        if initial is not None:
            for what, found, own in (("states", initial.x, self.x_scale), ("controls", initial.u, self.u_scale)):
                if found.shape[1] != own.size:
                    got = f"{found.shape[1]} rows of {what}, this problem {own.size}"
                    raise ShapeError(f"initial: the solution has {got}; give one of a problem with the same variables")
        for k, (stretch, _) in enumerate(self._stages()):
            share = k / self.total
            durations = self.T_scale
            if initial is not None and len(initial.durations) == len(self.durations):
                durations = [initial.durations[t] for t in self.times]
            own = [x(share) / self.x_scale, u(share) / self.u_scale]
            for value, places, table in chains:
                own[value][places] = table[min(k, len(table) - 1)]
            row = [own[0], np.array(durations) / self.T_scale]
            row += [own[1]] if self.nodal or stretch else []
            for e in stretch.extras if stretch else []:
                there = share + e.share / self.total
                row.append((x(there)[e.rows] if e.like == "x" else u(there)) / e.scale)
            row += [lengths[k : k + 1]] if self.free_mesh and stretch else []
            rows.append(np.concatenate([np.zeros(0), *row]))
        return np.concatenate(rows)

    def packed(self, x, u, durations, lengths):
        """Unknowns from states x (N + 1, n), controls u (N, nu), durations of the phases, and lengths (N,) of intervals
        over the mean ones, for methods that add nothing."""
        free = [durations[k] / scale for k, scale in zip(self.times, self.T_scale, strict=True)]
        columns = [x[:-1] / self.x_scale, np.tile(free, (self.total, 1)), u / self.u_scale]
        rows = np.hstack(columns + ([lengths[:, None]] if self.free_mesh else []))
        return np.concatenate([rows.ravel(), x[-1] / self.x_scale, free])

    def mean_duration(self, phase):
        """What a cost that is averaged over the intervals is divided by to be a rate of cost."""
        d = self.description
        T = self.durations[phase.number].value
        return T if d.relative_length is None else T * d.relative_length

    def now(self, row):
        """A constraint with its bounds as they are now."""
        lower, upper = self._limits_of(Block(row.lower.size, row))
        return replace(row, lower=lower, upper=upper)

    def chain_limits(self):
        """Bounds of bernstein chains as limits of their outputs."""
        rows = []
        for chain in self.description.bernstein:
            for output, name, which in zip(chain.outputs, chain.names, chain.bounded, strict=True):
                if which.any():
                    rows.append(Constraint(output, *self.numbers.bounds[name], name))
        return rows

    def _chain_guesses(self, initial):
        """[(0 of the states or 1 of the controls, rows, values (nodes or intervals, rows))] of bernstein chains."""
        out, N = [], self.total
        places = dict(zip(map(id, self.symbols), [*self.state_rows, *self.control_rows], strict=False))
        for c in self.chain_numbers:
            derivatives = bernstein.guess_table(c.chain, self.numbers.guess[c.chain.name], self.numbers, N, c.T)
            T = c.T
            if initial is not None:
                known = [x for x in initial.description.bernstein if (x.name, x.order) == (c.chain.name, c.chain.order)]
                at, T = np.linspace(0, 1, len(initial.t)), initial.duration
                for d, output in enumerate(known[0].outputs[:-1] if known else ()):
                    values = initial[output]
                    derivatives[d] = np.array([np.interp(np.linspace(0, 1, N + 1), at, y) for y in values.T]).T
            x, u = c.unknowns(derivatives, T, c.T / N if self.free_mesh else None)
            out += [(0, places[id(s)], x[:, j]) for j, s in enumerate(c.chain.coefficients[:-1])]
            out.append((1, places[id(c.chain.coefficients[-1])], u))
        return out

    def _length_guesses(self, initial):
        """(N,) lengths of the intervals over the mean one."""
        N, T = self.total, self.duration_numbers(0)[0]
        if initial is None:
            return np.ones(N)
        nodes = np.interp(np.linspace(0, 1, N + 1), np.linspace(0, 1, len(initial.t)), initial.t)
        return np.clip(np.diff(nodes) * N / T, SHORTEST, LONGEST)

    def relative_lengths(self, unknowns):
        """(N,) lengths of the intervals over the mean ones of their phases."""
        if not self.free_mesh:
            return np.ones(self.total)
        return unknowns[self.assembly.first[1:-1] - 1]

    def steps(self, unknowns):
        """(N,) lengths of the intervals [s]."""
        T = self.values(unknowns)[2]
        if self.free_mesh:
            return self.duration_numbers(0)[0] / self.total * self.relative_lengths(unknowns)
        return np.array([T[p.number] / p.nodes for p in self.phases for _ in range(p.nodes)])

    def values(self, unknowns):
        """(states (N + 1, n), controls (N or N + 1, n), durations of the phases) from the unknowns."""
        n, k = self.x_scale.size, len(self.times)
        stages = np.split(unknowns, self.assembly.first[1:-1])
        x = np.array([z[:n] * self.x_scale for z in stages])
        free = dict(zip(self.times, stages[0][n : n + k] * self.T_scale, strict=True))
        T = [float(free.get(t, self.duration_numbers(t)[0])) for t in range(len(self.durations))]
        if self.free_mesh:
            T[0] *= float(np.mean(self.relative_lengths(unknowns)))
        size = self.u_scale.size
        controls = [z[n + k : n + k + size] * self.u_scale for z in (stages if self.nodal else stages[:-1])]
        return x, np.array(controls).reshape(len(controls), size), T

    def inner(self, unknowns):
        """[(what it is like, share of the interval, rows, values (intervals, n))] of what the method adds within
        intervals, a list for every phase."""
        stages, at, parts = np.split(unknowns, self.assembly.first[1:-1]), 0, [[] for _ in self.phases]
        for stretch in self.stretches:
            own, values = stages[at : at + stretch.count], []
            skip = self.nx + (0 if self.nodal else self.u_scale.size)
            for e in stretch.extras:
                found = np.array([z[skip : skip + e.scale.size] * e.scale for z in own]).reshape(len(own), e.scale.size)
                values.append((e, found))
                skip += e.scale.size
            parts[stretch.phase].append(values)
            at += stretch.count

        def joined(same):
            e = same[0][0]
            return e.like, e.share, e.rows, np.vstack([values for _, values in same])

        # the last interval of a phase may have one more, for the start of the next
        return [[joined(same) for same in zip(*of, strict=False)] for of in parts]


def _joined(arrays):
    return np.concatenate([np.zeros(0), *arrays])


def _numbered(variables):
    """For each variable the numbers of its rows, all variables one below the other."""
    ends = _ends([v.symbol for v in variables])
    return [list(range(a, b)) for a, b in zip(ends[:-1], ends[1:], strict=True)]


def _ends(symbols):
    return np.cumsum([0, *(s.numel() for s in symbols)]).tolist()


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


def _guessed(variables, guesses, known, total):
    """Function share of all intervals -> guess of the variables, one after the other, or what is known of them.

    known: None, or values at the nodes, or at all but the last, of a problem with any number of them.
    """
    if known is not None:
        at = np.linspace(0, 1, len(known))  # controls of intervals are stretched by one: it is a guess
        return lambda share: np.array([np.interp(share, at, column) for column in known.T])

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
        at = np.arange(table.shape[0]) / total
        return lambda share: np.array([np.interp(share, at, column) for column in table.T])

    parts = [one(v) for v in variables]
    return lambda share: _joined(part(share) for part in parts)
