"""A Problem as stages for a method of integration, and the way back from its unknowns to its symbols.

State of a stage: the problem's states, each divided by its scale, the free durations, and the controls where the method
has them at nodes. Its other unknowns: the controls elsewhere, and what the method adds.
"""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from ..errors import OrderError, ShapeError, UnknownName
from ..numbers import as_floats, shortened
from ..validation import numbers
from .assembly import Group, assemble
from .description import Constraint
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


class Transcribed:
    """Nonlinear program of a Problem: assembly, bounds {lbx, ubx, lbg, ubg}, guess, parameters, values."""

    def __init__(self, description, numbers, method, compiled):
        self.description, self.numbers, self.method = description, numbers, method
        self.phases, self.durations = description.phases, description.durations
        self.states, self.controls = description.states, description.controls
        self.checks = {}  # Functions of solution_check, by number of the phase
        self.nodal = getattr(method, "controls_are_states", False)
        self.state_rows, self.control_rows = (_numbered(some) for some in (self.states, self.controls))
        self.state_names, self.control_names = (
            [f"{v.name}[{i}]" if v.size > 1 else v.name for v in some for i in range(v.size)]
            for some in (self.states, self.controls)
        )
        self.x_scale, self.u_scale = (_joined(v.scale for v in some) for some in (self.states, self.controls))
        self.times = [k for k, (_, _, free) in enumerate(self.durations) if free]
        self.T_scale = np.array([np.sqrt(np.prod(self.durations[k][1])) for k in self.times])
        self.nx = self.x_scale.size + len(self.times) + (self.u_scale.size if self.nodal else 0)
        self.p = [symbol for _, symbol in description.parameters]
        self.n_p = sum(s.numel() for s in self.p)
        self.symbols = [v.symbol for v in (*self.states, *self.controls)]
        self.own = [description.share, *(symbol for _, symbol in description.varying)]  # parameters of a stage
        self.n_s = sum(s.numel() for s in self.own)
        self.symbols += [self.durations[k][0] for k in self.times] + self.p + self.own
        self.groups, self.row_bounds, self.stretches = [], [], []
        for phase in self.phases:
            self._add_phase(phase, compiled)
        self._add_end(self.phases[-1], compiled)
        self.assembly = assemble(self.groups, n_p=self.n_p, n_s=self.n_s)

    # -- stages ---------------------------------------------------------------------------------------------

    def _physical(self, x, u, p, s):
        """(states, controls or None, [durations, parameters of the problem and of the stage]) of a stage."""
        own, free, nodal = ca.vertsplit(x, self._rows_of_state)
        T = ca.vertsplit(self.T_scale * free) if self.times else []
        constants = [*T, *self.split(p, self.p), *self.split(s, self.own)]
        controls = None
        if self.nodal:
            controls = self.u_scale * nodal
        elif u is not None:
            controls = self.u_scale * ca.vertsplit(u, [0, self.u_scale.size, u.numel()])[0]
        return self.x_scale * own, controls, constants

    @property
    def _rows_of_state(self):
        """Where states, free durations and controls begin and end in the state of a stage."""
        n, k = self.x_scale.size, len(self.times)
        return [0, n, n + k, self.nx]

    @staticmethod
    def split(column, symbols):
        """Parts of a column, one for each of the symbols."""
        return ca.vertsplit(column, _ends(symbols)) if symbols else []

    def at(self, expressions, x, u, constants):
        """Expressions of the problem at states, controls (columns), and [durations, parameters, those of a stage]."""
        if not expressions:
            return []
        columns = [self.split(y, [v.symbol for v in some]) for y, some in ((x, self.states), (u, self.controls))]
        f = ca.Function("f", [*self.symbols, self.description.ahead], [ca.MX(e) for e in expressions])
        return f.call([*columns[0], *columns[1], *constants, ca.MX(0)], True, False)

    def _add_phase(self, phase, compiled):
        name = f"phase{phase.number}"
        missing = [v.name for k, v in enumerate(self.states) if k not in phase.rates and k not in phase.steps]
        if missing:
            raise OrderError(f"Problem: in {name} state {missing[0]!r} has neither a rate nor a next value; give one")
        self._check_maps(phase)
        last = phase is self.phases[-1]
        start_rows = [*self.description.start_rows, *self._norm_rows()] if phase.number == 0 else []
        extras = self._extras(phase)
        inner = self._rows_at_points(phase)
        # a node between phases is the start of the next one, which has limits of its own
        at_end = [] if last or self.nodal else [r for r in inner if not self._controlled(r.expression)]
        points = []

        def build(x, u, p, s, closing=False):
            X, U, constants = self._physical(x, u, p, s)
            more = u if self.nodal else ca.vertsplit(u, [0, self.u_scale.size, u.numel()])[1]
            after = None
            if closing and self.nodal:
                more, after = ca.vertsplit(more, [0, more.numel() - self.u_scale.size, more.numel()])
            step, following, points[:], rule = self._step(phase, X, U, constants, more, [e.scale for e in extras])
            if closing and self.nodal:  # controls may jump where the next phase starts: this is their last value here
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
            rows += [y for at in points for y in self.at([r.expression for r in inner], *at, constants)]
            rows += self.at([r.expression for r in (at_end if closing else ())], end, U, constants)
            rows += self.at([r.expression for r in (*phase.rows, *start_rows)], X, U, constants)
            h = self._length(phase, X, U, constants)
            residuals = [
                np.sqrt(weight) * ca.sqrt(h) * r
                for weight, *at in (rule if phase.squares else ())
                for r in self.at(phase.squares, *at, constants)
            ]
            return {
                "next": ca.vertcat(following / self.x_scale, *rest),
                "rows": ca.vertcat(ca.MX(0, 1), *rows),
                "cost": step.cost,
                "residuals": ca.vertcat(ca.MX(0, 1), *residuals),
            }

        def bounds(rows, closing):
            """Those of a kind of stage that was just built."""
            known = [*inner * len(points), *(at_end if closing else ()), *phase.rows, *start_rows]
            zero = np.zeros(rows - sum(r.lower.size for r in known))
            return tuple(np.concatenate([zero, *(getattr(r, b) for r in known)]) for b in ("lower", "upper"))

        def add(name, build, count, extras, closing=False):
            nu = (0 if self.nodal else self.u_scale.size) + sum(e.scale.size for e in extras)
            of = kind(name, self.nx, nu, build, self.n_p, self.n_s, "mx")
            lower, upper = bounds(of.ng, closing)
            keep = np.tile(np.isfinite(lower) | np.isfinite(upper), (count, 1))
            own, first = of.ng - sum(r.lower.size for r in start_rows), len(self.row_bounds) == 0
            keep[:, own:] &= (np.arange(count) == (0 if first else -1))[:, None]
            if count:
                self.groups.append(Group(of.compiled(compiled) if compiled else of, count, keep))
            self.row_bounds += [(lower, upper)] * count
            self.stretches.append(Stretch(count, phase.number, extras))

        closes = bool(phase.join) or bool(at_end) or (self.nodal and bool(self.controls) and not last)
        add(name, build, phase.nodes - closes, extras)
        if closes:
            after = [Extra("u", 1.0, [], self.u_scale, False)] if self.nodal else []
            ends = [replace(e, bounded=e.bounded or (self.nodal and e.like == "u")) for e in extras]
            add(f"{name}_join", lambda *z: build(*z, closing=True), 1, [*ends, *after], closing=True)

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
        return self.at([self.durations[phase.number][0] * self.description.share], X, U, constants)[0]

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
            return ca.vertcat(ca.MX(0, 1), *self.at([phase.rates[k] for k in ks], merged(y), w, constants))

        def cost(y, w):
            return sum(self.at(phase.integrals, merged(y), w, constants), ca.MX(0))

        unknowns = iter(ca.vertsplit(more, np.cumsum([0, *(x.size for x in scales)]).tolist()) if scales else [])
        factors = iter(scales)
        rated = ca.vertcat(ca.MX(0, 1), *(own[k] for k in ks))
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
        u = ca.vertcat(ca.MX(0, 1), *(v.symbol for v in self.controls))
        return bool(self.controls) and ca.depends_on(ca.MX(expression), u)

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

    def _add_end(self, phase, compiled):

        def controlled(expression):
            return not self.nodal and self._controlled(expression)

        goal, terminal = self.description.goal_rows, self.description.terminal
        if any(controlled(r.expression) for r in goal) or any(controlled(t) for t in terminal):
            raise OrderError("Problem: a goal or terminal cost depends on controls, which end before the last node")
        rows = [*(r for r in phase.rows if not controlled(r.expression)), *goal]

        def build(x, _, p, s):
            X, U, constants = self._physical(x, None, p, s)
            U = ca.MX.zeros(self.u_scale.size) if U is None else U
            found = self.at([r.expression for r in rows], X, U, constants)
            cost = sum(self.at(terminal, X, U, constants), ca.MX(0))
            return {"rows": ca.vertcat(ca.MX(0, 1), *found), "cost": cost}

        end = kind("end", self.nx, 0, build, self.n_p, self.n_s, "mx")
        lower, upper = (_joined(getattr(r, b) for r in rows) for b in ("lower", "upper"))
        keep = (np.isfinite(lower) | np.isfinite(upper))[None, :]
        self.groups.append(Group(end.compiled(compiled) if compiled else end, 1, keep))
        self.row_bounds.append((lower, upper))

    # -- numbers --------------------------------------------------------------------------------------------

    @property
    def total(self):
        """Number of intervals."""
        return sum(s.count for s in self.stretches)

    def _stages(self):
        """[(Stretch or None at the last node, share of its interval number k)]."""
        return [(s, k) for s in self.stretches for k in range(s.count)] + [(None, 0)]

    @property
    def bounds(self):
        """{lbx, ubx, lbg, ubg}, with the ends as they are fixed now."""
        sides = {"lbx": [], "ubx": []}
        for k, (stretch, _) in enumerate(self._stages()):
            fixed = "start" if k == 0 else "goal" if stretch is None else None
            for side, bound, free in (("lbx", "lower", -np.inf), ("ubx", "upper", np.inf)):
                known = getattr(self.numbers, fixed) if fixed else {}
                ends = [known.get(v.name, getattr(v, bound)) for v in self.states]
                T = [self.durations[t][1][bound == "upper"] if k == 0 else free for t in self.times]
                controls = _joined(getattr(v, bound) for v in self.controls) / self.u_scale
                row = [_joined(ends) / self.x_scale, np.array(T) / self.T_scale]
                row += [controls] if self.nodal or stretch else []
                extras = stretch.extras if stretch else []
                row += [controls if e.bounded else np.full(e.scale.size, free) for e in extras]
                sides[side].append(np.concatenate(row))
        m = self.assembly.size[1]
        lower, upper = np.zeros((2, m))
        for rows, (low, high) in zip(self.assembly.stage_rows, self.row_bounds, strict=True):
            kept = rows >= 0
            lower[rows[kept]], upper[rows[kept]] = low[kept], high[kept]
        return {**{k: np.concatenate(x) for k, x in sides.items()}, "lbg": lower, "ubg": upper}

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
        return self.assembly.parameters(_joined(common), np.vstack([self.shares, *(r.T for r in rows)]))

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
        if initial is not None:
            for what, found, own in (("states", initial.x, self.x_scale), ("controls", initial.u, self.u_scale)):
                if found.shape[1] != own.size:
                    got = f"{found.shape[1]} rows of {what}, this problem {own.size}"
                    raise ShapeError(f"initial: the solution has {got}; give one of a problem with the same variables")
        for k, (stretch, _) in enumerate(self._stages()):
            share = k / self.total
            durations = [np.sqrt(np.prod(self.durations[t][1])) for t in self.times]
            if initial is not None and len(initial.durations) == len(self.durations):
                durations = [initial.durations[t] for t in self.times]
            row = [x(share) / self.x_scale, np.array(durations) / self.T_scale]
            row += [u(share) / self.u_scale] if self.nodal or stretch else []
            for e in stretch.extras if stretch else []:
                there = share + e.share / self.total
                row.append((x(there)[e.rows] if e.like == "x" else u(there)) / e.scale)
            rows.append(np.concatenate([np.zeros(0), *row]))
        return np.concatenate(rows)

    def values(self, unknowns):
        """(states (N + 1, n), controls (N or N + 1, n), durations of the phases) from the unknowns."""
        n, k = self.x_scale.size, len(self.times)
        stages = np.split(unknowns, self.assembly.first[1:-1])
        x = np.array([z[:n] * self.x_scale for z in stages])
        free = dict(zip(self.times, stages[0][n : n + k] * self.T_scale, strict=True))
        T = [float(free.get(t, bounds[0])) for t, (_, bounds, _) in enumerate(self.durations)]
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
