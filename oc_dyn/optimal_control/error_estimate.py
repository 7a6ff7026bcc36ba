"""Solution.error: what a solution is off by, from the integration of Solution.check and the multipliers.

With the unknowns of intervals gone, a discretised problem is: minimise sum of l_k(x_k, u_k) subject to x_(k+1) =
F_k(x_k, u_k). Integrated exactly, it is the same with the flow F* and the cost l*. Its optimum as a function of e, for
F + e (F* - F) and l + e (l* - l), has by the envelope theorem the derivative of the Lagrangian,
sum of (l* - l)_k + c_(k+1)' (F* - F)_k, where c_(k+1) are the costates, minus the multipliers of x_(k+1) - F_k = 0. So
the objective is off by

    J - J* = sum of (l - l*)_k + c_(k+1)' (F - F*)_k + O(defects^2)

with controls of the same kind. Unknowns within intervals, as of collocation, and their multipliers do not appear: they
are functions of (x_k, u_k) in which the Lagrangian is stationary; controls of nodes are unknowns that two intervals
share. What controls of another kind would gain is added, see control_error. Limits that are broken between the nodes
are not seen, nor is what multipliers mean that are not unique, as where a bang-bang control switches at a node.
Sources: Betts, Practical Methods for Optimal Control, 2010, section 4.7 (errors of intervals); Becker and Rannacher,
Acta Numerica 10, 2001, 1-102 (residuals weighted by the adjoint).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import Array
from .check_functions import columns
from .check_phase import SUBSTEPS
from .control_error import gains
from .costates import of_dynamics
from .solution_check import check, parts_of, terminal_costs

_ENOUGH = 0.1  # of an error: what its integration may be off by
_STATES, _OBJECTIVE = 1e-9, 1e-9  # errors that are not told apart, relative to the scales and to the cost


@dataclass(frozen=True, eq=False)
class ErrorEstimate:
    """What a Solution is off by; printing it tells.

    intervals: for every phase (N,) the largest error of a state over each interval, from node to node, relative to its
    scale (that of Solution.check), infinite where the dynamics cannot be integrated. states: the largest of all.
    objective: how much the objective is above that of the exact optimum, below it if negative: the sum of
    integration, by costates times defects and what the method's rule misses of the cost, and of controls, what those
    lose that are constants or polynomials on intervals. All three are nan where there are no multipliers, as of a
    solver that failed, and where the objective is another than that of the Problem, as an Opti may have. They are of
    first order: for errors that are small.
    uncertainty: what `integration` may be off by as the integration that tells it is inexact itself.
    losses: for every phase (N,) the size of what each interval adds to `objective`, nan where that cannot be told.
    """

    intervals: tuple[Array, ...]
    states: float
    objective: float
    uncertainty: float
    integration: float
    controls: float
    losses: tuple[Array, ...] = ()

    def __str__(self):
        worst = max(range(len(self.intervals)), key=lambda k: self.intervals[k].max(initial=0.0))
        where = f"interval {int(np.argmax(self.intervals[worst]))}"
        if len(self.intervals) > 1:
            where += f" of phase {worst}"
        return (
            f"objective off by {self.objective:+.2g}: {self.integration:+.2g} by integration (within "
            f"{self.uncertainty:.1g}), {self.controls:+.2g} by the kind of controls; states over one interval by up to "
            f"{self.states:.2g} of their scales ({where})"
        )


def estimated(solution):
    """ErrorEstimate of a Solution."""
    if len(solution._flows) < len(solution.transcribed.phases):
        check(solution, 1e-3)
    costates, size = of_dynamics(solution), max(1.0, abs(solution.objective))
    told = solution.success and not solution.objective_changed
    relative, integration, lost, uncertain = [], solution.objective - terminal_costs(solution).sum(), 0.0, 0.0
    losses, costs = [], stage_costs(solution)
    for part in parts_of(solution):
        here = costates[part.first : part.first + part.N].T
        flow = solution._flows[part.phase.number] = _accurate(part, solution._flows[part.phase.number], here, size)
        errors, off, uncertain_here = _of_phase(part, flow, here)
        relative.append(errors)
        integration += off.sum() - flow.end[-1].sum()
        uncertain += uncertain_here
        gained = _lost(solution, part, flow, here)
        lost += gained.sum()
        missed = off + costs[part.first : part.first + part.N] - flow.end[-1]
        losses.append(np.abs(missed) + np.abs(gained) if told else np.full(part.N, np.nan))
    if not (told and np.isfinite(uncertain)):
        integration = lost = np.nan
    largest = max((float(x.max(initial=0.0)) for x in relative), default=0.0)
    numbers = (float(x) for x in (integration + lost, uncertain, integration, lost))
    return ErrorEstimate(tuple(relative), largest, *numbers, tuple(losses))


def stage_costs(solution):
    """(N,) costs of the intervals by the rule of the method."""
    made, first, out = solution.transcribed, 0, []
    stages = np.split(solution.unknowns, made.assembly.first[1:-1])
    common, own = solution.parameters[: made.n_p], solution.parameters[made.n_p :].reshape(-1, made.n_s).T
    for group in made.assembly.groups[:-1]:
        here = slice(first, first + group.count)
        out.append(columns(group.kind.cost, np.stack(stages[here], axis=1), common, own[:, here])[0])
        first += group.count
    return np.concatenate(out)


def _lost(solution, part, flow, costates):
    """(N,) what other controls would gain in a phase, nan where that cannot be told."""
    if not (solution.success and np.isfinite(flow.errors).all() and np.isfinite(costates).all()):
        return np.full(part.N, np.nan)
    try:
        with np.errstate(all="ignore"):
            return gains(solution, part, flow, costates)
    except np.linalg.LinAlgError:
        return np.full(part.N, np.nan)


def _of_phase(part, flow, costates):
    """((N,) relative errors, (N,) costates times defects, what that and the cost may be off by) of a phase."""
    rated = part.f.rated
    _, ends = part.ends(flow.end)
    defects = part.following - ends
    errors = np.maximum(np.abs(defects[rated]), flow.errors[:-1]) / part.scale[rated][:, None]
    relative = np.nan_to_num(errors, nan=np.inf).max(axis=0, initial=0.0)
    off = (costates * defects).sum(axis=0)
    uncertain = (np.abs(costates[rated]) * flow.errors[:-1]).sum() + flow.errors[-1].sum()
    return relative, off, float(np.nan_to_num(uncertain, nan=np.inf))


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
    relative, off, uncertain = _of_phase(part, flow, costates)
    own = (flow.errors[:-1] / part.scale[part.f.rated][:, None]).max(axis=0, initial=0.0)
    of_states = own <= np.maximum(_ENOUGH * relative, _STATES)
    return bool(of_states.all()) and uncertain <= max(_ENOUGH * abs(off.sum()), _OBJECTIVE * cost)
