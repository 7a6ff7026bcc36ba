"""Chains of integrators as states and controls of a Problem; see Problem.chain."""

from itertools import pairwise
from math import factorial
from typing import Any

import numpy as np

from ..errors import OrderError, ShapeError
from ..numbers import shortened
from ..validation import count, name_of, numbers, one_of
from . import bernstein, names
from . import mesh as meshes
from .description import Constraint
from .polynomials import uniform_b_spline


def add(problem, name, size, order, lower, upper, bounds, scale, guess, basis):
    """[q, dq, ...] of a new chain of the Problem."""
    name, size = name_of("chain", name), count("chain: size", size, 1, 10**5)
    order = count("chain: order", order, 1, 20)
    one_of("basis of a chain", basis, ("taylor", "b_spline", "bernstein"))
    names.claim_chain(problem, name, order, basis)
    if basis == "bernstein":
        ends = problem._bounds(name, lower, upper, size)
        return _bernstein(problem, name, size, order, ends, bounds, scale, guess)
    guess = 0.0 if guess is None else guess
    limits = _each("bounds", bounds, order, size)
    limits += [None] * (order - len(limits))
    scale = [None] * (order + 1) if scale is None else _each("scale", scale, order + 1, size)
    if len(scale) != order + 1:
        raise ShapeError(f"chain {name!r}: got {len(scale)} scales, expected {order + 1}: of {name} and its rates")
    if basis == "b_spline":
        if problem._relative_length is not None:
            raise OrderError("Problem: a b_spline chain has knots at equal times; use another basis on a free mesh")
        meshes.check_equal("a b_spline chain", problem)
        if np.isfinite([*problem._bounds(name, lower, upper, size)]).any():
            raise ShapeError(f"chain {name!r}: bounds of q are for the other bases; use limit with b_spline")
        return _spline(problem, name, size, order, limits, scale, guess)
    guesses: list[Any] = list(guess) if isinstance(guess, (list, tuple)) else [guess] + [0.0] * order
    if len(guesses) != order + 1:
        what = f"{order + 1}: of {name} and its rates"
        raise ShapeError(f"chain {name!r}: got {len(guesses)} guesses, expected {what}")
    made = [problem.state(name, size, lower=lower, upper=upper, scale=scale[0], guess=guesses[0])]
    for j in range(1, order + 1):
        unknown = problem.state if j < order else problem.control
        bound = np.inf if limits[j - 1] is None else limits[j - 1]
        made.append(unknown(f"d{j}{name}", size, lower=-bound, upper=bound, scale=scale[j], guess=guesses[j]))
    problem._chains.append(made)
    problem._step(made)
    return made


def _bernstein(problem, name, size, order, ends, bounds, scale, guess):
    """The chain of bernstein.py."""
    if len(problem._phases) > 1:
        raise OrderError("Problem: a bernstein chain is for one phase; use taylor")
    meshes.check_equal("a bernstein chain", problem)
    limits = _each("bounds", bounds, order, size)
    limits = [np.full(size, np.inf) if x is None else x for x in limits + [None] * (order - len(limits))]
    bounds = [tuple(ends), *(problem._bounds(f"{name}: bounds", -x, x, size) for x in limits)]
    reach = None if scale is None else bernstein.checked_reach(name, scale, size, order)
    guess = bernstein.checked_guess(name, guess, order)
    coefficients = [problem.state(f"{name}_{j}", size, scale=1.0) for j in range(order)]
    coefficients.append(problem.control(f"{name}_{order}", size, scale=1.0))
    made = bernstein.chain_symbols(name, coefficients, size, bounds, reach)
    problem._bernstein.append(made)
    relative, mean = problem._relative_length, problem._durations[-1].mean_step(problem._share)
    for x, after in zip(coefficients[:-1], bernstein.following(made, relative), strict=True):
        problem.next(x, after)
    problem._add("within", *bernstein.hull(made, bounds, mean, relative))
    for output, which, both in zip(made.names, made.bounded, bounds, strict=True):
        if which.any():
            problem.numbers.bounds[output] = tuple(both)
    problem.numbers.guess[name] = guess
    problem._named |= {x.name(): x for x in made.outputs}
    return list(made.outputs)


def _spline(problem, name, size, order, limits, scale, guess):
    """The chain whose states are the control points that bear on the start of an interval, all but the last one."""
    scale = scale[0]
    guess = guess[0] if isinstance(guess, (list, tuple)) else guess
    points = [problem.state(f"{name}_{j}", size, scale=scale, guess=guess) for j in range(order)]
    points.append(problem.control(f"{name}_{order}", size, scale=scale, guess=guess))
    for j in range(order):
        problem.next(points[j], points[j + 1])
    problem._splines.append(points)
    h, differences = problem.step, points
    for d in range(1, order + 1):
        differences = [b - a for a, b in pairwise(differences)]
        if limits[d - 1] is not None:
            # those behind the first are bounded by the intervals before; the first interval bounds its own
            rows = [
                Constraint(x / h**d / limits[d - 1], -np.ones(size), np.ones(size), f"d{d}{name}", of_nodes=True)
                for x in differences
            ]
            problem._start_rows += rows[:-1]
            problem._add("rows", rows[-1])
    weights = uniform_b_spline(order)
    out = []
    for j in range(order + 1):
        terms = [float(w) * p for w, p in zip(weights[j], points, strict=True) if abs(w) > 1e-14]
        out.append(factorial(j) * sum(terms[1:], terms[0]) / h**j)
    problem._named |= {f"d{j}{name}" if j else name: x for j, x in enumerate(out)}
    return out


def _each(what, values, most, size):
    """Every one of a list as (size,) floats, or None."""
    listed = isinstance(values, (list, tuple)) or (isinstance(values, np.ndarray) and values.ndim > 0)
    if not listed or len(values) > most:
        raise ShapeError(f"chain: {what} is {shortened(values)}, expected a list of at most {most}")
    return [None if x is None else numbers(f"chain: {what}[{k}]", x, size) for k, x in enumerate(values)]
