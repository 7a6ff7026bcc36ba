"""Searches from several starts, one after the other or on an executor: what comes out is the same."""

from __future__ import annotations

import math
from contextlib import closing
from typing import Any

from ..errors import SolveError
from ..interrupts import deadline, seconds_left
from .point_to_point_search import PlanSolver


def outcomes(search, starts, solver, executor="serial"):
    """Yield (result, error) of search(solver, start) for the starts, in their order, one of both None.

    Each search begins with the solver as it is, and its iterations and tries are added to those of the solver. Where
    an executor runs them, all of the starts do at once, and those that are not asked for any more are given up.
    search: picklable where the executor asks for that. Errors other than SolveError are raised.
    """
    begun = solver.name, solver.outer, solver.inner
    if executor == "serial":
        for start in starts:
            solver.name, solver.outer, solver.inner = begun
            try:
                found = search(solver, start), None
            except SolveError as error:
                found = None, error
            yield found
        return
    from ..executors import completed  # multiprocessing when it is first needed

    made = (*begun, solver.hessian, solver.asked)
    points = [(search, made, start, seconds_left()) for start in starts]
    known: dict[int, Any] = {}
    with closing(completed(_searched, points, executor, "start {}".format)) as done:
        for number in range(len(points)):
            while number not in known:
                k, result, error = next(done)
                known[k] = result, error
            result, error = known[number]
            if error is not None:
                if not isinstance(error, SolveError):
                    raise error
                result = None, error, [], []
            found, error, iterations, tries = result
            solver.iterations += iterations
            solver.tries += tries
            yield found, error


def _searched(search, made, start, seconds):
    """(result, SolveError, iterations, tries) of a search in a worker, in so many seconds."""
    name, outer, inner, hessian, asked = made
    solver = PlanSolver(name, outer, inner, hessian, None, asked)
    with deadline(None if math.isinf(seconds) else max(seconds, 1e-3)):
        try:
            found, error = search(solver, start), None
        except SolveError as failed:
            found, error = None, failed
    return found, error, solver.iterations, solver.tries
