"""Solution.two_meshes(): what a solution is off by, from solving again with every interval in two.

Of an error C h^p the objective J on intervals of length h and J' on h / 2 tell J - J* = (J - J') 2^p / (2^p - 1)
(Richardson), p being the order of the objective of the method for smooth problems, or 1 where that is not known. What
p is, changes it by a factor of two at most. Unlike Solution.error it needs no multipliers and sees all errors, whatever
they come from, but where both meshes have the same: a switch that neither has a node at, or another local optimum.
Source: Betts, Practical Methods for Optimal Control, 2010, section 4.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import OrderError, ShapeError
from .integrators import order_of_cost
from .remeshing import halved


@dataclass(frozen=True, eq=False)
class TwoMeshes:
    """What Solution.two_meshes found.

    objective: how much the objective is above that of the exact optimum, below it if negative; nan where the solver
    failed on the finer mesh. finer: the Solution there. order: that was counted on.
    """

    objective: float
    finer: Any
    order: int

    def __str__(self):
        return (
            f"objective off by {self.objective:+.2g}, by {len(self.finer.t) - 1} intervals instead of half as many, "
            f"where it is {self.finer.objective:.12g} (order {self.order})"
        )


def two_meshes(solution, how):
    """See Solution.two_meshes."""
    if solution.objective_changed or solution.constraints_changed:
        what = "objective" if solution.objective_changed else "constraints"
        raise OrderError(f"two_meshes: its {what} were changed in an Opti; solve on both meshes there and compare")
    if fixed := sorted({"method", "initial", "parameters"} & set(how)):
        raise ShapeError(f"two_meshes: got {fixed[0]}=, which is that of this solution; leave it out")
    description, order = solution.description, order_of_cost(solution.method)
    problem = solution.problem.as_described(description)
    phases = description.phases
    nodes = [2 * phase.nodes for phase in phases]
    mesh = None if all(p.shares is None for p in phases) else [halved(p.breakpoints) for p in phases]
    if len(phases) == 1:
        nodes, mesh = nodes[0], None if mesh is None else mesh[0]
    how = {"check": "off", "raises": False, **how}
    halves = problem.with_mesh(nodes, mesh=mesh)
    _as_solved(halves, solution)
    finer = halves.solve(method=solution.method, initial=solution, parameters=_parameters(solution), **how)
    off = (solution.objective - finer.objective) * 2**order / (2**order - 1) if finer.success else np.nan
    return TwoMeshes(float(off), finer, order)


def _as_solved(problem, solution):
    """Give a problem the bounds of limits and the fixed ends of a solution, which may have been changed since."""
    made, lower = solution.transcribed, solution.transcribed.values(solution.bounds[0])[0]
    problem.numbers.bounds = dict(solution.limit_bounds)
    for where, node in (("start", 0), ("goal", -1)):
        ends = getattr(problem.numbers, where)
        for v, rows in zip(made.states, made.state_rows, strict=True):
            if v.name in solution.description.fixed[where] and np.isfinite(lower[node][rows]).all():
                ends[v.name] = lower[node][rows]
    turned = [v for v in made.states if v.manifold is not None]  # their goals are the last of the parameters
    at = made.n_p - sum(v.size for v in turned)
    for v in turned:
        if v.name in solution.description.fixed["goal"]:
            problem.numbers.goal[v.name] = solution.parameters[at : at + v.size]
        at += v.size


def _parameters(solution):
    """{name: value} that a solution was found for; what varies along the nodes is as in the interval that is halved."""
    made, description = solution.transcribed, solution.description
    common, own = solution.parameters[: made.n_p], solution.parameters[made.n_p :].reshape(-1, made.n_s)
    values, at = {}, 0
    for name, symbol in description.parameters:
        values[name] = common[at : at + symbol.numel()]
        at += symbol.numel()
    at = 1  # the first is the share of an interval
    for name, symbol in description.varying:
        rows = own[:, at : at + symbol.numel()]
        values[name] = np.vstack([np.repeat(rows[:-1], 2, axis=0), rows[-1:]])
        at += symbol.numel()
    return values
