"""Solution.error: what a solution is off by, from the integration of Solution.check and the multipliers.

With the unknowns of intervals gone, a discretised problem is: minimise sum of l_k(x_k, u_k) subject to x_(k+1) =
F_k(x_k, u_k). Integrated exactly, it is the same with the flow F* and the cost l*. Its optimum as a function of e, for
F + e (F* - F) and l + e (l* - l), has by the envelope theorem the derivative of the Lagrangian,
sum of (l* - l)_k + c_(k+1)' (F* - F)_k, where c_(k+1) are the costates, minus the multipliers of x_(k+1) - F_k = 0. So
the objective is off by

    J - J* = sum of (l - l*)_k + c_(k+1)' (F - F*)_k + O(defects^2),

with controls of the same kind, as constants on intervals; errors need not be small one by one, their products do.
Unknowns within intervals, as of collocation, and their multipliers do not appear: they are functions of (x_k, u_k), of
which the Lagrangian is stationary. What this does not see is what other controls would gain, and limits between the
nodes.
Sources: Betts, Practical Methods for Optimal Control, 2010, chapter 4 (errors of intervals); Becker and Rannacher,
Acta Numerica 10, 2001, 1-102 (residuals weighted by the adjoint).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import Array
from .check_phase import SUBSTEPS
from .costates import of_dynamics
from .solution_check import check, parts_of, terminal_costs

_ENOUGH = 0.1  # of an error: what its integration may be off by
_STATES, _OBJECTIVE = 1e-9, 1e-11  # errors that are not told apart, relative to the scales and to the cost


@dataclass(frozen=True, eq=False)
class ErrorEstimate:
    """What a Solution is off by; printing it tells.

    intervals: for every phase (N,) the largest error of a state over each interval, from node to node, relative to its
    scale (that of Solution.check), infinite where the dynamics cannot be integrated. states: the largest of all.
    objective: estimate of what the objective is above (below, if negative) the one of the same problem with exact
    integration and controls of the same kind: costates times defects, and what the method's rule misses of the cost.
    nan where there are no multipliers, as of a solver that failed. It sees all of the error where that comes from the
    dynamics, not what controls lose that are constant on intervals.
    uncertainty: what `objective` may be off by as the integration is inexact itself.
    """

    intervals: tuple[Array, ...]
    states: float
    objective: float
    uncertainty: float

    def __str__(self):
        worst = max(range(len(self.intervals)), key=lambda k: self.intervals[k].max(initial=0.0))
        where = f"interval {int(np.argmax(self.intervals[worst]))}"
        if len(self.intervals) > 1:
            where += f" of phase {worst}"
        return (
            f"error of the states over one interval: up to {self.states:.2g} of their scales ({where}); "
            f"of the objective: {self.objective:+.2g} (uncertain by {self.uncertainty:.1g})"
        )


def estimated(solution):
    """ErrorEstimate of a Solution."""
    if len(solution._flows) < len(solution.transcribed.phases):
        check(solution, 1e-3)
    costates, cost = of_dynamics(solution), abs(solution.objective)
    intervals, terms, uncertain, exact = [], [], 0.0, terminal_costs(solution).sum()
    for part in parts_of(solution):
        here = costates[sum(map(len, intervals)) :][: part.N].T
        flow = _accurate(part, solution._flows[part.phase.number], here, max(1.0, cost))
        errors, terms_of, uncertain_of = _of_phase(part, flow, here)
        solution._flows[part.phase.number] = flow
        intervals.append(errors)
        terms.append(terms_of)
        uncertain += uncertain_of
        exact += flow.end[-1].sum()
    objective = solution.objective - exact + np.concatenate(terms).sum() if solution.success else np.nan
    largest = max((float(x.max(initial=0.0)) for x in intervals), default=0.0)
    if not np.isfinite(uncertain):
        objective = np.nan
    return ErrorEstimate(tuple(intervals), largest, float(objective), float(uncertain))


def _of_phase(part, flow, costates):
    """((N,) relative errors, (N,) costates times defects, what the cost may be off by) of a phase."""
    rated = part.f.rated
    _, ends = part.ends(flow.end)
    defects = part.following - ends
    errors = np.maximum(np.abs(defects[rated]), flow.errors[:-1]) / part.scale[rated][:, None]
    relative = np.nan_to_num(errors, nan=np.inf).max(axis=0, initial=0.0)
    terms = (costates * defects).sum(axis=0)
    uncertain = (np.abs(costates[rated]) * flow.errors[:-1]).sum() + flow.errors[-1].sum()
    return relative, terms, float(np.nan_to_num(uncertain, nan=np.inf))


def _accurate(part, flow, costates, cost):
    """The Flow of a phase, integrated in more parts until its own errors do not matter beside those it is to tell."""
    if not part.f.rated:
        return flow
    for count in (n for n in SUBSTEPS if n > flow.count):
        if _tells(part, flow, costates, cost):
            break
        part.in_parts(count, flow.implicit)
        if not np.isfinite(part.flow.errors).all() or part.flow.errors.max() > flow.errors.max():
            break  # as where rounding is all that is left
        flow = part.flow
    return flow


def _tells(part, flow, costates, cost):
    relative, terms, uncertain = _of_phase(part, flow, costates)
    own = (flow.errors[:-1] / part.scale[part.f.rated][:, None]).max(axis=0, initial=0.0)
    of_states = own <= np.maximum(_ENOUGH * relative, _STATES)
    return bool(of_states.all()) and uncertain <= max(_ENOUGH * abs(terms.sum()), _OBJECTIVE * cost)
