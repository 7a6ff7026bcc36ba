"""Kinds of stages of a Problem by a method of integration: Functions of one of its intervals, or of its last node.

State of a stage: the problem's states, each divided by its scale, the free durations, and the controls where the method
has them at nodes. Its other unknowns: the controls elsewhere, what the method adds, and the length of the interval over
the mean one on a free mesh.
"""

import functools
from dataclasses import dataclass, replace
from itertools import pairwise

import casadi as ca
import numpy as np

from ..errors import OrderError, UnknownName
from . import bernstein, inside
from . import manifolds as curved
from .description import Constraint
from .polynomials import later, lobatto
from .stages import kind


@dataclass(frozen=True, eq=False)
class Extra:
    """An unknown that a method adds to a stage: what it is like, "x" or "u", the share of the interval where, the rows
    of the states that it stands for, and whether the bounds of these, or of controls, hold for it."""

    like: str
    share: float
    rows: list
    scale: np.ndarray
    bounded: bool


@dataclass(frozen=True, eq=False)
class Parts:
    """What the stages of a phase are made of. start_rows: of its first node. rows: limits of all nodes. inner: limits
    at the points of the method. controlled: those of them that depend on controls, for a point at the end, whose others
    are those of the next node. equations: limits at the method's points for equations. at_end: limits of its last node.
    costs: how they are summed. extras, closing_extras: what the method adds, and adds to its last interval. closes:
    whether the last interval is a kind of its own. decided: by what each of phase.within is."""

    start_rows: list
    rows: list
    inner: list
    controlled: list
    equations: list
    at_end: list
    costs: inside.Costs
    extras: list
    closing_extras: list
    closes: bool
    decided: list


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a stage that belong together.

    constraint: whose bounds they have, None for zero. where: "start" or "goal" for rows of one end. label: (name,
    place) that tells them apart from the others of their stage, or None. decided: None, or for each row how many
    derivatives of a chain at the (start, end) of the interval decide it. chain: number of the one whose ends they hold.
    """

    size: int
    constraint: Constraint | None = None
    where: str = ""
    label: tuple | None = None
    decided: np.ndarray | None = None
    chain: int | None = None


class StageKinds:
    """Kinds of stages of a Description; which symbols there are, and the way from unknowns to them."""

    def __init__(self, description, method, compiled, graph, hessians):
        self.description, self.method, self.compiled, self.graph = description, method, compiled, graph
        self.hessians = hessians  # that are built
        self.phases, self.durations = description.phases, description.durations
        self.states, self.controls = description.states, description.controls
        self.nodal = getattr(method, "controls_are_states", False)
        self.control_degree = getattr(method, "control_degree", 0)
        self.state_rows, self.control_rows = (numbered(some) for some in (self.states, self.controls))
        self.x_scale, self.u_scale = (joined(v.scale for v in some) for some in (self.states, self.controls))
        self.times = [k for k, duration in enumerate(self.durations) if duration.free]
        free = [self.durations[k] for k in self.times]
        self.time_scale = np.array([d.nominal if d.nominal_step is None else 1.0 for d in free])
        self.nx = self.x_scale.size + len(self.times) + (self.u_scale.size if self.nodal else 0)
        self.free_mesh = description.relative_length is not None
        self.p = [symbol for _, symbol in description.parameters] + description.hidden
        self.n_p = sum(s.numel() for s in self.p)
        self.symbols = [v.symbol for v in (*self.states, *self.controls)]
        self.own = [description.share, *(symbol for _, symbol in description.varying)]  # parameters of a stage
        self.n_s = sum(s.numel() for s in self.own)
        self.symbols += [d.symbol for d in free] + self.p + self.own
        self.symbols += [description.relative_length] if self.free_mesh else []
        self.outputs = [s for chain in description.bernstein for s in chain.outputs]

    def kept(self, key, make):
        """What make() gives, built once for all problems that differ from this one in their numbers of intervals, ends
        and bounds alone."""
        # complete: a description never changes, and those that share `stages` differ in what no stage reads
        key = (self.method, self.compiled, self.graph, self.hessians, *key)
        if key not in self.description.stages:
            self.description.stages[key] = make()
        return self.description.stages[key]

    def _physical(self, x, u, p, s):
        """(states, controls or None, [durations, parameters of the problem and of the stage, relative length]) of a
        stage, and what is left of u: all but controls and length."""
        own, free, nodal = ca.vertsplit(x, self._rows_of_state)
        parameters = self.split(p, self.p)
        T = ca.vertsplit(self.time_scale * free) if self.times else []
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
        return ca.vertsplit(column, ends_of(symbols)) if symbols else []

    def at(self, expressions, x, u, constants):
        """Expressions of the problem at states, controls (columns), and [durations, parameters, those of a stage]."""
        return self.at_shares({None: expressions}, x, u, constants)[None] if expressions else []

    def at_shares(self, expressions, x, u, constants, phase=0):
        """{share: values} of {share of an interval of a phase behind its start, None for its node: expressions}, where
        chains are so much later."""
        columns = [self.split(y, [v.symbol for v in some]) for y, some in ((x, self.states), (u, self.controls))]
        given = [*columns[0], *columns[1], *constants, type(x)(0)]
        known, outputs, values = [*self.symbols, self.description.ahead], {}, {}
        expressions = {share: [ca.MX(e) for e in some] for share, some in expressions.items()}
        every = ca.veccat(*(e for some in expressions.values() for e in some))
        if self.outputs and ca.depends_on(every, ca.veccat(*self.outputs)):
            f = ca.Function("f", known, self._outputs(expressions))  # of all shares, which have terms in common
            found = f.call(given, True, False)
            parts = [found[i : i + len(self.outputs)] for i in range(0, len(found), len(self.outputs))]
            outputs, known = dict(zip(expressions, parts, strict=True)), [*known, *self.outputs]
        for share, some in expressions.items():
            own = self._moved(known, given, share, phase) if share else given
            values[share] = ca.Function("f", known, some).call([*own, *outputs.get(share, ())], True, False)
        return values

    def at_nodes(self, expressions):
        """Function of all symbols that gives expressions of them and of the outputs of chains at the start of an
        interval."""
        known = [*self.symbols, self.description.ahead]
        if self.outputs:
            f = ca.Function("f", [*known, *self.outputs], expressions)
            expressions = f.call([*known, *self._outputs([None])], True, False)
        return ca.Function("value", known, expressions)

    def _outputs(self, shares):
        """Expressions of the outputs of bernstein chains for each of some shares of the interval behind its start, None
        for its node, where they do not depend on the length of the interval."""
        mean, relative = self.durations[0].mean_step(self.description.share), self.description.relative_length
        if None in shares:
            shares, relative = [0.0], None
        found = [bernstein.outputs(c, shares, mean, relative) for c in self.description.bernstein]
        return [x for k in range(len(shares)) for c, some in zip(self.description.bernstein, found, strict=True)
                for x in some[k * (c.order + 1) : (k + 1) * (c.order + 1)]]  # fmt: skip

    def _moved(self, known, given, share, phase):
        """Values of the symbols with taylor chains, contact bodies and the time a share of the interval later."""
        out, places = list(given), {id(s): i for i, s in enumerate(known)}
        symbols, t = known[: len(given)], share * self.description.length(phase)
        moved = [(list(chain[:-1]), later(list(chain), t)[:-1]) for chain in self.description.chains]
        for body in self.description.bodies:
            q = body.robot.integrate_function()(body.q, t * body.v + t**2 / 2 * body.dv)
            moved.append(([body.q, body.v], [q, body.v + t * body.dv]))
        if self.description.time is not None:
            time = self.states[self.description.time].symbol
            moved.append(([time], [time + t]))
        for own, values in moved:
            f = ca.Function("f", symbols, values)
            for symbol, value in zip(own, f.call(given, True, False), strict=True):
                out[places[id(symbol)]] = value
        return out

    def parts(self, phase, last):
        """Parts of a phase."""
        missing = [v.name for k, v in enumerate(self.states) if k not in phase.rates and k not in phase.steps]
        if missing:
            raise OrderError(
                f"Problem: in phase{phase.number} state {missing[0]!r} has neither a rate nor a next value; give one"
            )
        self._check_maps(phase)
        self._check_means(phase)
        inside.check_points(self.description, phase, self._moving)
        inside.check_rates(self.description, phase)
        rows, equations = self._sorted_rows(phase)
        inner, extras = self._rows_at_points(phase, rows), self._extras(phase)
        bounds = self._bounds_at_points(phase)
        # a node between phases is the start of the next one, which has limits of its own
        at_end = [] if last or self.nodal else [r for r in inner if not self._controlled(r.expression)] + bounds
        inner += bounds if not self.control_degree else self._bounds_at_points(phase, of_manifolds=True)
        after = [Extra("u", 1.0, [], self.u_scale, False)] if self.nodal else []
        ends = [replace(e, bounded=e.bounded or (self.nodal and e.like == "u")) for e in extras]
        return Parts(
            [*self.description.start_rows, *self._norm_rows()] if phase.number == 0 else [],
            rows,
            inner,
            [r for r in inner if self._controlled(r.expression)],
            equations,
            at_end,
            inside.costs(self.description, phase, self._moving),
            extras,
            [*ends, *after] if not last else extras,
            bool(phase.join) or bool(at_end) or (self.nodal and bool(self.controls) and not last),
            [self._decided(w) for w in phase.within],
        )

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

    def check_known(self, what, expression):
        """UnknownName for a symbol that is none of the problem's; what: what it would be one of."""
        known = [*self.symbols, self.description.ahead, *self.outputs]
        for s in ca.symvar(expression):
            if not any(ca.is_equal(s, y) for y in known):
                raise UnknownName(what, s.name(), [y.name() for y in self.symbols])

    @property
    def parameter_symbols(self):
        """Symbols that are given, not found."""
        return [*self.p, *self.own]

    def stage(self, phase, parts, closing, tied):
        """(Kind, its Blocks) of the intervals of a phase, or of its last one."""
        points, constrained = [], []
        build = functools.partial(self._build, phase, parts, closing, tied, points, constrained)
        extras = parts.closing_extras if closing else parts.extras
        nu = (0 if self.nodal else self.u_scale.size) + sum(e.scale.size for e in extras) + self.free_mesh
        name = f"phase{phase.number}" + ("_join" if closing else "")
        of = kind(name, self.nx, nu, build, self.n_p, self.n_s, self.graph, self.hessians)
        known = [r for some in points for r in some]
        known += [*(parts.at_end if closing else ()), *parts.rows, *phase.node_rows]
        blocks = [Block(r.lower.size, r) for r in known]
        blocks += [Block(r.lower.size, r, "start") for r in parts.start_rows] + constrained
        blocks.insert(0, Block(of.ng - sum(b.size for b in blocks)))
        return of.compiled(self.compiled) if self.compiled else of, tuple(blocks)

    def _build(self, phase, parts, closing, tied, points, constrained, x, u, p, s):
        """What a stage is made of; see stages.kind. points: filled with the limits at each point of the method.
        constrained: with the Blocks of what is limited within intervals."""
        X, U, constants, more = self._physical(x, u, p, s)
        empty, after = type(x)(0, 1), None
        if closing and self.nodal and phase is not self.phases[-1]:
            more, after = ca.vertsplit(more, [0, more.numel() - self.u_scale.size, more.numel()])
        step = self._step(phase, parts, X, U, constants, more)
        end = following = step.following
        held = [(parts.inner if share < 1 else parts.controlled, at) for share, *at in step.points]
        held += [(parts.equations, at) for _, *at in step.equations]
        if after is not None:  # controls may jump where the next phase starts: this is their last value here
            held.append((parts.inner, (following, step.u_next)))
        points[:] = [some for some, _ in held]
        if closing:
            ks = list(phase.join)
            found = dict(zip(ks, self.at([phase.join[k] for k in ks], following, U, constants), strict=True))
            own = ca.vertsplit(following, ends_of([v.symbol for v in self.states]))
            following = ca.vertcat(*(found.get(k, y) for k, y in enumerate(own)))
        rest = [ca.vertsplit(x, self._rows_of_state)[1]]
        rest += [step.u_next / self.u_scale if after is None else after] if self.nodal else []
        rows = [r / self._local(phase).scale for r in step.rows]
        rows += [y for some, at in held for y in self.at([r.expression for r in some], *at, constants)]
        rows += self.at([r.expression for r in (parts.at_end if closing else ())], end, U, constants)
        here = (*parts.rows, *phase.node_rows, *parts.start_rows)
        rows += self.at([r.expression for r in here], X, U, constants)
        costs = parts.costs
        within, cost, inner = self._within(phase, parts, closing, X, U, constants, constrained)
        rows += [*within, *self._ties(0, tied, X, U, constants, constrained)]
        h = self._length(phase, X, U, constants) if phase.squares else None
        residuals = [
            np.sqrt(weight) * ca.sqrt(h) * r
            for weight, *at in (step.quadrature if costs.squares else ())
            for r in self.at(costs.squares, *at, constants)
        ]
        residuals += [np.sqrt(weight) * ca.sqrt(h) * r for weight, r in inner]
        return {
            "next": ca.vertcat(following / self.x_scale, *rest),
            "rows": ca.vertcat(empty, *rows),
            "cost": step.cost + cost,
            "residuals": ca.vertcat(empty, *residuals),
        }

    def _within(self, phase, parts, closing, X, U, constants, blocks):
        """([rows], cost, [(weight, residual)]) of what is said of points within an interval; what is at one point is
        evaluated together."""
        which = [(w, d) for w, d in zip(phase.within, parts.decided, strict=True) if closing or not w.last]
        blocks[:] = [Block(w.constraint.lower.size, w.constraint, "", w.label, decided) for w, decided in which]
        asked, weights, costs, merged = {}, [], parts.costs, inside.equal_lengths(self.description, phase)
        for w, _ in which:
            asked.setdefault(w.share, []).append(w.constraint.expression)
        for rate, interior in (*costs.sums, *costs.sums_of_squares):
            at, own = lobatto(interior)
            if merged:
                own[0] += own[-1]  # the end is the start of the next interval, which is as long
                at = at[:-1]
            for share, weight in zip(at.tolist(), own.tolist(), strict=False):
                asked.setdefault(share, []).append(rate)
                weights.append((share, weight))
        found = {k: iter(values) for k, values in self.at_shares(asked, X, U, constants, phase.number).items()}
        rows, cost = [ca.vec(next(found[w.share])) for w, _ in which], 0
        values = [(weight, next(found[share])) for share, weight in weights]
        ends = sum(interior + 2 - merged for _, interior in costs.sums)
        if ends:
            h = self._length(phase, X, U, constants)
            cost = sum(weight * h * value for weight, value in values[:ends])
        if phase.means:
            mean = self.at([self.description.share * e for e in phase.means], X, U, constants)
            cost = cost + sum(mean)
        return rows, cost, values[ends:]

    def _ties(self, end, tied, X, U, constants, blocks):
        """Rows that hold derivatives of the chains that are tied at an end; blocks: theirs are added."""
        rows, where = [], ("start", "goal")[end]
        length = self.durations[0].mean_step(self.description.share)
        for number, chain in enumerate(self.description.bernstein):
            if tied[number]:
                rows += self.at(bernstein.ties(chain, end, length), X, U, constants)
                labels = [(f"{chain.names[j]} at the {where}", j) for j in range(1, chain.order)]
                blocks += [Block(chain.size, None, where, label, chain=number) for label in labels]
        return rows

    @property
    def _moving(self):
        """What controls are, where they change within intervals; else ""."""
        return "has at nodes" if self.nodal else "changes within intervals" if self.control_degree else ""

    def _sorted_rows(self, phase):
        """(limits of nodes, equations of controls that are no limits of nodes but of as many points of an interval as
        controls have coefficients)."""
        rows, equations = [], []
        for r in phase.rows:
            several = self.control_degree and np.any(r.lower == r.upper) and self._controlled(r.expression)
            for one in r.scalars(r.name) if several else [r]:
                at_points = several and one.lower == one.upper and self._controlled(one.expression)
                (equations if at_points else rows).append(one)
        return rows, equations

    def _bounds_at_points(self, phase, of_manifolds=False):
        """Bounds of states with rates, as limits; of_manifolds: of those whose unknowns are steps, and have none."""
        states = [self.states[k] for k in self.rated(phase) if self.states[k].manifold or not of_manifolds]
        return [Constraint(v.symbol / v.scale, v.lower / v.scale, v.upper / v.scale) for v in states]

    def _rows_at_points(self, phase, limits):
        """Limits that hold at the points of a method too: not those of states that are stepped, which are known at
        nodes, and no equations of states alone, which nodes take care of."""
        held = phase.held(self.states)
        stepped = ca.vertcat(ca.MX(0, 1), *(self.states[k].symbol for k in phase.steps if k not in held))
        rows = []
        for r in limits:
            if self._controlled(r.expression):
                rows.append(r)
            elif not (r.of_nodes or ca.depends_on(r.expression, ca.vertcat(stepped, self.description.ahead))):
                rows += [one for one in r.scalars(r.name) if one.lower != one.upper]
        return rows

    def rated(self, phase):
        """Numbers of the states that have rates."""
        return [k for k in range(len(self.states)) if k not in phase.steps]

    def _rows_rated(self, phase):
        return [i for k in self.rated(phase) for i in self.state_rows[k]]

    def _local(self, phase):
        """What the method integrates of the states that have rates."""
        return curved.Local([self.states[k] for k in self.rated(phase)])

    def local_bounds(self, phase):
        """(lower, upper) of what the method integrates, over its scale: of plain states theirs."""
        states = [self.states[k] for k in self.rated(phase)]
        sides = [
            joined(getattr(v, side) if v.manifold is None else np.full(v.rate_size, free) for v in states)
            for side, free in (("lower", -np.inf), ("upper", np.inf))
        ]
        return tuple(side / self._local(phase).scale for side in sides)

    def _length(self, phase, X, U, constants):
        return self.at([self.description.length(phase.number)], X, U, constants)[0]

    def _step(self, phase, parts, X, U, constants, more):
        """Step of all states: those that are stepped stay as they are while the others are integrated."""
        ks, local = self.rated(phase), self._local(phase)
        own = ca.vertsplit(X, ends_of([v.symbol for v in self.states])) if self.states else []
        known, h = [own[k] for k in ks], self._length(phase, X, U, constants)

        def merged(y):
            moving = dict(zip(ks, local.states(known, y), strict=True))
            return ca.vertcat(*(moving.get(k, x) for k, x in enumerate(own)))

        def dynamics(y, w):
            rates = self.at([phase.rates[k] for k in ks], merged(y), w, constants)
            return ca.vertcat(type(X)(0, 1), *local.rates(y, rates))

        def cost(y, w):
            return sum(self.at(parts.costs.integrals, merged(y), w, constants), type(X)(0))

        scales = [e.scale for e in parts.extras]
        unknowns = iter(ca.vertsplit(more, np.cumsum([0, *(x.size for x in scales)]).tolist()) if scales else [])
        factors = iter(scales)
        rated = local.start(known, type(X)(0, 1))

        def symbol(name, size):
            return next(factors) * next(unknowns)

        symbol.scale = local.scale
        step = self.method(dynamics, cost, rated, U, h, symbol)
        moved = dict(zip(ks, local.states(known, step.following), strict=True))
        stepped = list(phase.steps)
        moved |= dict(zip(stepped, self.at([phase.steps[k] for k in stepped], X, U, constants), strict=True))
        rule = step.quadrature if (ks or self._moving) and step.quadrature else [(1.0, rated, U)]
        points, equations, rule = ([(t, merged(y), w) for t, y, w in x] for x in (step.points, step.equations, rule))
        following = ca.vertcat(*(moved[k] for k in range(len(self.states))))
        return replace(step, following=following, points=points, equations=equations, quadrature=rule)

    def _controlled(self, expression):
        u = ca.vertcat(ca.MX(0, 1), *(v.symbol for v in self.controls), *self.controlled_outputs)
        return bool(self.controls) and ca.depends_on(ca.MX(expression), u)

    @property
    def controlled_outputs(self):
        """Outputs of bernstein chains that depend on controls at the start of an interval."""
        return [chain.outputs[-1] for chain in self.description.bernstein]

    def _check_maps(self, phase):
        """A map takes the control of its interval; where controls belong to nodes, or change, it would take that of one
        end, and the cost all."""
        for k, expression in phase.steps.items() if self._moving else ():
            if self._controlled(expression):
                what = "has controls at nodes" if self.nodal else "has controls that change within intervals"
                raise OrderError(
                    f"Problem: state {self.states[k].name!r} is stepped by controls of intervals (next, a chain or a "
                    f"contact body), but this method {what}; use rk4, euler, collocation "
                    "or another with controls that are constant on intervals, as radau(3, control_degree=0)"
                )

    def _check_means(self, phase):
        """A mean counts the starts of intervals: controls that change within would do what they do behind them."""
        if self._moving and any(map(self._controlled, phase.means)):
            what = "are values of nodes" if self.nodal else "change within intervals"
            raise OrderError(
                f"Problem: minimize(mean=...) reads controls at starts of intervals, but those of this method {what}; "
                "use integral=, or a method with controls that are constant on intervals, as rk4 or collocation"
            )

    def _norm_rows(self):
        """Rows that keep quaternions of contact bodies and manifolds at norm 1 at the start where nothing else says
        what they are: steps keep the norm, whatever it is."""
        rows, on_manifolds = [], [v for v in self.states if v.manifold is not None]
        known = [(next(v for v in self.states if v.symbol is b.q), b.quaternions) for b in self.description.bodies]
        for state, quaternions in (*known, *((v, v.manifold.quaternions) for v in on_manifolds)):
            fixed = [r.expression for r in self.description.start_rows if np.array_equal(r.lower, r.upper)]
            others = ca.vertcat(ca.MX(0, 1), *(v.symbol for v in self.states if v is not state))
            fixed = ca.vertcat(ca.MX(0, 1), *(x for x in fixed if not ca.depends_on(x, others)))
            for i in () if state.name in self.description.fixed["start"] else quaternions:
                if ca.sprank(ca.jacobian(fixed, state.symbol)[:, i : i + 4]) < 4:
                    rows.append(Constraint(ca.sumsqr(state.symbol[i : i + 4]), np.ones(1), np.ones(1)))
        return rows

    def _extras(self, phase):
        """[Extra] of what the method adds, from a step on symbols."""
        rows, local = self._rows_rated(phase), self._local(phase)
        x, u = ca.MX.sym("x", local.size), ca.MX.sym("u", self.u_scale.size)
        step = self.method(
            lambda y, w: 0 * y, lambda y, w: ca.MX(0), x, u, ca.MX(1), lambda name, size: ca.MX.sym(name, size)
        )
        several = self.control_degree > 0
        return [  # what stands for the next node is bounded there
            Extra(like, share, rows, local.scale, several and share < 1)
            if like == "x"
            else Extra(like, share, [], self.u_scale, several or share < 1)
            for like, share in step.guesses
        ]

    def end(self, phase, tied):
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
            found += self._ties(1, tied, X, U, constants, blocks)
            cost = sum(self.at(terminal, X, U, constants), type(x)(0))
            return {"rows": ca.vertcat(type(x)(0, 1), *found), "cost": cost}

        end = kind("end", self.nx, 0, build, self.n_p, self.n_s, self.graph, self.hessians)
        return end.compiled(self.compiled) if self.compiled else end, tuple(blocks)


def joined(arrays):
    """One array of all, one below the other; empty of none."""
    return np.concatenate([np.zeros(0), *arrays])


def numbered(variables):
    """For each variable the numbers of its rows, all variables one below the other."""
    ends = ends_of([v.symbol for v in variables])
    return [list(range(a, b)) for a, b in pairwise(ends)]


def ends_of(symbols):
    """[0, rows of the first, rows of the first two, ...]."""
    return np.cumsum([0, *(s.numel() for s in symbols)]).tolist()
