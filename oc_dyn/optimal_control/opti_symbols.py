"""Symbols of a Problem as expressions of the variables and parameters of a casadi.Opti of it; see Problem.opti."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from ..errors import UnknownName
from ..numbers import shortened
from ..validation import expression as expression_of


class OptiSymbols(Mapping[Any, ca.MX]):
    """{name: expression of the Opti}, whose columns are nodes; symbols[symbol of the Problem, or an expression] too.

    States (size, N + 1), physical, and what chains and bodies have besides; controls (size, N), or (size, N + 1) where
    the method has them at nodes; so are expressions of both. One column: variables, parameters and free durations.
    Parameters that vary (size, N + 1). Limits by their names: what they bound, at the nodes of their phases, of those
    within intervals (at, last) one interval after the other for each share. t (1, N + 1): times of the nodes;
    durations: of the phases, expressions or numbers.
    States, controls and parameters can be given to opti.set_initial and opti.set_value.
    """

    def __init__(self, made: Any, x: ca.MX, p: ca.MX) -> None:
        self._made, self._x, self._p = made, x, p
        description, N = made.description, made.total
        self._count = N + 1
        first = made.assembly.first[:-1]
        n, times = made.x_scale.size, len(made.times)
        self._states = self._table(first, 0, made.x_scale)
        self._controls = self._table(first if made.nodal else first[:-1], n + times, made.u_scale)
        T = [made.duration_numbers(k)[0] for k in range(len(made.durations))]
        for i, k in enumerate(made.times):
            T[k] = x[int(first[0]) + n + i] * float(made.T_scale[i])
        self._times = [ca.MX(t) for t in made.times_of(T)]
        common = ca.vertsplit(p[: made.n_p], np.cumsum([0, *(s.numel() for s in made.p)]).tolist()) if made.p else []
        own = ca.reshape(p[made.n_p :], made.n_s, N + 1)
        own = ca.vertsplit(own, np.cumsum([0, *(s.numel() for s in made.own)]).tolist())
        self._constants = [*self._times, *common, *own]
        if made.free_mesh:
            lengths = x[(made.assembly.first[1:-1] - 1).tolist()]
            self._constants.append(ca.horzcat(lengths.T, 1))
        held = set.intersection(*(set(phase.held(description.states)) for phase in made.phases))
        rows, free = made.state_rows, [description.durations[k].symbol for k in made.times]
        self._known = [  # symbols with their expressions
            *((v.symbol, self._states[r, :1] if k in held else self._states[r, :])
              for k, (v, r) in enumerate(zip(made.states, rows, strict=True))),
            *((v.symbol, self._controls[r, :]) for v, r in zip(made.controls, made.control_rows, strict=True)),
            *zip(free, self._times, strict=True),
            *zip(made.p, common, strict=True),
            *zip(made.own, own, strict=True),
        ]  # fmt: skip
        self._names = {v.name: v.symbol for v in (*made.states, *made.controls)}
        self._names |= dict(description.parameters) | dict(description.varying) | description.named
        self._limits: dict[str, list[Any]] = {}
        for phase in made.phases:
            for row in (*phase.rows, *phase.node_rows):
                if row.name:
                    self._limits.setdefault(row.name, []).append((phase, row, None))
            for w in phase.within:
                if w.constraint.name and w.fixed is None:
                    self._limits.setdefault(w.constraint.name, []).append((phase, w.constraint, w))

    def _table(self, first, skip, scale):
        """(n, nodes) values of n unknowns that begin `skip` behind the first one of every stage."""
        rows = (np.asarray(first)[:, None] + skip + np.arange(scale.size)).ravel()
        values = ca.reshape(self._x[rows.tolist()], scale.size, len(first))
        return values * ca.repmat(ca.DM(scale), 1, len(first))

    @cached_property
    def durations(self) -> tuple[Any, ...]:
        """Durations of the phases [s]."""
        steps, ends = ca.horzsplit(self._steps), np.cumsum([0, *(p.nodes for p in self._made.phases)])
        free = any(d.free for d in self._made.durations) or self._made.free_mesh
        if not free:
            return tuple(self._made.nominal_durations)
        return tuple(ca.sum2(ca.horzcat(*steps[a:b])) for a, b in pairwise(ends))

    @cached_property
    def t(self) -> ca.MX:
        """Times of the nodes (1, N + 1) [s], as solution.t."""
        description = self._made.description
        time = description.time
        start = ca.MX(description.start_time) if time is None else self._states[self._made.state_rows[time][0], 0]
        return start + ca.horzcat(0, ca.cumsum(self._steps, 1))

    @cached_property
    def _steps(self):
        """(1, N) lengths of the intervals [s]."""
        first, parts = 0, []
        for phase in self._made.phases:
            length = expression_of("length", self._made.description.length(phase.number))
            parts.append(self._at_nodes(length, first, first + phase.nodes))
            first += phase.nodes
        return ca.horzcat(*parts)

    def _at_nodes(self, expression, first, end, function=None):
        """Columns of an expression at the nodes first .. end - 1; at the last node controls are those before it."""
        made, count = self._made, end - first
        f = made.at_nodes([expression]) if function is None else function
        columns = []
        for table, some in ((self._states, made.states), (self._controls, made.controls)):
            if some and table.shape[1] < self._count:
                table = ca.horzcat(table, table[:, -1])
            ends = np.cumsum([0, *(v.size for v in some)]).tolist()
            columns += ca.vertsplit(table[:, first:end], ends) if some else []
        for value in self._constants:
            columns.append(value[:, first:end] if value.shape[1] == self._count else ca.repmat(value, 1, count))
        return f.map(count)(*columns, ca.MX.zeros(1, count))

    def _of_controls(self, expression):
        made = self._made
        u = ca.vertcat(ca.MX(0, 1), *(v.symbol for v in made.controls), *made.controlled_outputs)
        return not made.nodal and bool(made.controls) and ca.depends_on(expression, u)

    def _limit(self, phase, row, within):
        first = sum(p.nodes for p in self._made.phases[: phase.number])
        end = first + phase.nodes
        if within is not None:
            begin = end - 1 if within.last else first
            return self._at_nodes(row.expression, begin, end, self._moved(row, within, phase))
        if row.fraction is not None:
            k = first + phase.node(row.fraction)
            return self._at_nodes(row.expression, k, k + 1)
        last = phase is self._made.phases[-1] and not self._of_controls(row.expression)
        return self._at_nodes(row.expression, first, end + last)

    def _moved(self, row, within, phase):
        """Function as made.at_nodes of a row a share of the interval later."""
        made = self._made
        x, u = ca.MX.sym("x", made.x_scale.size), ca.MX.sym("u", made.u_scale.size)
        sizes = [s.numel() for s in made.symbols[len(made.states) + len(made.controls) :]]
        constants = [ca.MX.sym("c", size) for size in sizes]
        share = within.share
        (value,) = made.at_shares({share: [row.expression]}, x, u, constants, phase.number)[share]
        parts = [ca.MX.sym(v.name, v.size) for v in (*made.states, *made.controls)]
        columns = [ca.vertcat(ca.MX(0, 1), *some) for some in (parts[: len(made.states)], parts[len(made.states) :])]
        f = ca.Function("f", [x, u, *constants], [value])
        return ca.Function("moved", [*parts, *constants, ca.MX.sym("ahead")], f.call([*columns, *constants]))

    def __getitem__(self, key: Any) -> ca.MX:
        if isinstance(key, str):
            if key not in self._names and key in self._limits:
                return ca.horzcat(*(self._limit(*one) for one in self._limits[key]))
            if key not in self._names:
                raise UnknownName("symbol or limit of the problem", key, list(self))
            key = self._names[key]
        key = expression_of("symbols[...]", key)
        for symbol, value in self._known:
            if ca.is_equal(symbol, key):
                return value
        self._made.check_known("symbol of the problem", key)
        return self._at_nodes(key, 0, self._count - self._of_controls(key))

    def __iter__(self) -> Iterator[str]:
        return iter({**self._names, **self._limits})

    def __len__(self) -> int:
        return len({**self._names, **self._limits})

    def __contains__(self, key: object) -> bool:
        return key in set(self) if isinstance(key, str) else super().__contains__(key)

    def __repr__(self) -> str:
        return f"OptiSymbols({shortened(list(self))})"
