"""A Problem with nodes that move: each interval takes `relative_length` times its share of the duration of its phase,
an unknown, so that what switches does so at a node. A state "clock", 0 at the start and one more behind each phase,
keeps the sum of a phase at 1, and nodes with values of their own (Problem.at) where they are.

It is made of a Problem with a mesh of any kind: expressions that read the length of an interval, as steps of chains,
have the share in them, which is replaced.
"""

from dataclasses import replace
from types import MappingProxyType

import casadi as ca
import numpy as np

from .description import Constraint, Variable
from .mesh import check_unequal
from .names import taken


def movable(problem):
    """The Problem with nodes that move."""
    description, numbers = problem.description, problem.numbers.copy()
    check_unequal("with_mesh: a free mesh", problem)
    relative, number = ca.MX.sym("relative_length"), len(description.states)
    share = description.share * relative
    name = "clock"
    while name in taken(problem):
        name += "_"
    clock = Variable(name, ca.MX.sym(name), -np.full(1, np.inf), np.full(1, np.inf), np.ones(1))

    def put(x):
        return _replaced(x, description.share, share)

    phases, passed = [], []
    for k, phase in enumerate(description.phases):
        changed = {what: put(getattr(phase, what)) for what in _READ}
        at = sorted({0.0, *(row.fraction for row in phase.node_rows)})
        rows = [_row(clock.symbol - (k + f), f"clock at {f:.6g}", f) for f in at if k or f]
        new = replace(phase, **changed).with_state("steps", number, clock.symbol + share)
        phases.append(new.with_more("node_rows", *rows))
        passed.append(k + phase.breakpoints[:-1])
    numbers.guess[name] = np.append(np.concatenate(passed), len(phases))[:, None]
    numbers.start[name], numbers.goal[name] = np.zeros(1), np.full(1, float(len(phases)))
    other = object.__new__(type(problem))
    more = {what: put(getattr(description, what)) for what in ("start_rows", "goal_rows", "terminal", "named")}
    fixed = MappingProxyType({where: names | {name} for where, names in description.fixed.items()})
    made = {"states": (*description.states, clock), "phases": tuple(phases), "relative_length": relative}
    other._take(replace(description, **more, **made, fixed=fixed, stages={}), numbers)
    return other


_READ = ("rates", "steps", "rows", "integrals", "squares", "within", "sums", "means", "join", "node_rows")


def _row(expression, name, fraction):
    return Constraint(expression, np.zeros(1), np.zeros(1), name, fraction=fraction)


def _replaced(x, symbol, value):
    """x, an expression or what has some in it, with a symbol replaced."""
    if isinstance(x, ca.MX):
        return ca.substitute(x, symbol, value) if ca.depends_on(x, symbol) else x
    if isinstance(x, (tuple, list)):
        return type(x)(_replaced(y, symbol, value) for y in x)
    if isinstance(x, (dict, MappingProxyType)):
        return MappingProxyType({k: _replaced(y, symbol, value) for k, y in x.items()})
    if isinstance(x, Constraint):
        return replace(x, expression=_replaced(x.expression, symbol, value))
    if hasattr(x, "constraint"):
        return replace(x, constraint=_replaced(x.constraint, symbol, value))
    return x


def breakpoints(solution):
    """[breakpoints of each phase] of a Solution with nodes that moved."""
    first, out = 0, []
    for phase in solution.description.phases:
        lengths = phase.lengths * solution.relative_lengths[first : first + phase.nodes]
        passed = np.cumsum(lengths) / lengths.sum()
        out.append(np.concatenate([[0.0], passed[:-1], [1.0]]))
        for row in phase.node_rows:
            out[-1][phase.node(row.fraction)] = row.fraction
        first += phase.nodes
    return out
