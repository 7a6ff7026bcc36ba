"""What holds at the start and the goal of a Problem: fixed values of states, and rows; see Problem.start."""

import casadi as ca

from ..errors import ShapeError
from ..model.quaternions import check_quaternions, quaternions
from ..numbers import shortened
from ..validation import check_within
from ..validation import expression as expression_of
from . import manifolds, words
from .description import Constraint


def said(problem, values, rows, where):
    """Take {state or expression: value, or (lower, upper)} at "start" or "goal"; rows: those there, to be added to."""
    if not isinstance(values, dict):
        raise ShapeError(f"{where}: got {shortened(values)}, expected {{state or expression: value}}")
    for symbol, value in values.items():
        if _of_chain(problem, symbol, value, where) or manifolds.end(problem, symbol, value, where, rows):
            continue
        known = next((v for v in problem._states if v.symbol is symbol), None)
        x = expression_of(where, symbol)
        if isinstance(value, tuple):
            x, *ends = words.pair(where, x, value)
            rows.append(Constraint(x, *problem._bounds(where, *ends, x.numel())))
        elif isinstance(value, ca.MX):
            if value.numel() not in (1, x.numel()):
                raise ShapeError(f"{where}: got {value.numel()} values, expected {x.numel()}")
            rows.append(Constraint(x - ca.vec(value), *problem._bounds(where, 0, 0, x.numel())))
        elif known is not None:
            fixed, _ = problem._bounds(f"{where} of {known.name}", value, value, known.size)
            for body in (b for b in problem._bodies if b.q is symbol):
                check_quaternions(f"{where} of {known.name}", quaternions(body.robot), fixed)
            check_within(where, known.name, fixed, known.lower, known.upper)
            ends = getattr(problem.numbers, where)
            if known.name not in ends:
                problem._revision += 1
            ends[known.name] = fixed
            continue
        else:
            rows.append(Constraint(x, *problem._bounds(where, value, value, x.numel())))
        problem._revision += 1


def _of_chain(problem, symbol, value, where):
    """Whether a value is that of a bernstein chain's output, which is fixed by its unknowns."""
    chain = next((c for c in problem._bernstein if any(symbol is x for x in c.outputs[:-1])), None)
    if chain is None or isinstance(value, (tuple, ca.MX)):
        return False
    fixed, _ = problem._bounds(f"{where} of {symbol.name()}", value, value, chain.size)
    if symbol.name() in problem.numbers.bounds:
        check_within(where, symbol.name(), fixed, *problem.numbers.bounds[symbol.name()], relative=True)
    getattr(problem.numbers, where)[symbol.name()] = fixed
    return True
