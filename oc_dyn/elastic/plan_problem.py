"""plan_elastic as a Problem: limits of links, motors and springs at nodes and at points between them, each bound
multiplied by a margin that is a parameter."""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..optimal_control.problem import Problem
from ..planning.limits import velocity_bounds
from .flat_motion import FlatMotion, flat_expressions
from .plan import OUTPUTS


@dataclass(frozen=True, eq=False)
class ElasticProblem:
    """A Problem and its expressions. loss: of an interval, None where the time is what is least. margins: {quantity:
    parameter that its bounds are multiplied by}; the parameter "smooth" is the weight of the highest derivative."""

    ocp: Problem
    flat: FlatMotion
    loss: object
    margins: dict


def elastic_problem(task, duration, guess, scale):
    """ElasticProblem of an ElasticTask. duration: a number, or bounds. guess, scale: of q and its derivatives."""
    ocp = Problem(task.nodes, duration)
    flat = task.flat(ocp, guess=guess, scale=scale)
    margins = {name: ocp.parameter(f"margin of {name}", m.size) for name, m in task.margins.items()}
    bounds = task.limits.v_of_q and velocity_bounds(task.limits)

    def at(part):
        if part == 0:
            return flat
        return flat_expressions(task.elastic, ocp.between(flat.q, part), flat.sigma, task.rate)

    for part in np.arange(task.interior + 1) / (task.interior + 1):
        here = at(part)
        _limit_outputs(task, ocp, here, margins)
        _limit_links(task, ocp, here, margins)
        if "q" in margins:
            _limit_positions(task, ocp, here.q[0], margins["q"])
        if bounds:
            low, high = bounds(here.q[0])
            for i in range(task.elastic.nv):
                ocp.limit(-np.inf, here.q[1][i] - margins["v_of_q"][i] * high[i], 0)
                ocp.limit(0, here.q[1][i] - margins["v_of_q"][i] * low[i], np.inf)
    rest = {x: 0 for x in flat.q[1 : task.continuity + 1]}
    start, goal = task.ends
    ocp.start({flat.q[0]: start, **rest})
    ocp.goal({flat.q[0]: goal, **rest})
    smooth = ocp.parameter("smooth") * ca.sumsqr(flat.q[-1] / scale[-1]) / ocp.duration
    if task.objective == "time":
        ocp.minimize(terminal=ocp.duration, integral=smooth)
        return ElasticProblem(ocp, flat, None, margins)
    loss = _loss(task, at)
    ocp.minimize(integral=loss + smooth)
    return ElasticProblem(ocp, flat, ocp.step * loss, margins)


def _limit_outputs(task, ocp, here, margins):
    for name, bound in task.given.items():
        ocp.limit(-1, getattr(here, OUTPUTS[name]) / bound / margins[OUTPUTS[name]], 1)


def _limit_links(task, ocp, here, margins):
    for name, (order, ends) in task.of_links.items():
        kept, held = np.flatnonzero(np.isfinite(ends).any(axis=0)), task.limits.larger(name) == 0
        unit = np.where(held, 1e-9, task.limits.unit(name))
        lower, upper = (np.where(held, side, x / unit)[kept] for side, x in zip((-1, 1), ends, strict=True))
        ocp.limit(lower, ca.vertcat(*(here.q[order][i] / margins[name][i] / unit[i] for i in kept)), upper)


def _limit_positions(task, ocp, q, margin):
    start, goal = task.ends
    for i in np.flatnonzero(np.isfinite(task.limits.q).any(axis=0)):
        low, high = task.limits.q[0][i], task.limits.q[1][i]
        half = (high - low) / 2 if np.isfinite(high - low) else 1.0
        inset = half * (1 - margin[i])  # never past the ends, which may lie at the limit
        top, bottom = max(start[i], goal[i]), min(start[i], goal[i])
        if np.isfinite(high):
            ocp.limit(-np.inf, q[i] - ca.fmax(high - inset, top), 0)
        if np.isfinite(low):
            ocp.limit(0, q[i] - ca.fmin(low + inset, bottom), np.inf)


def _loss(task, at):
    """Mean over an interval of the squared motor torques, each divided by its limit."""
    unit = task.given.get("motor_torque", np.ones(len(task.elastic.motor_names)))
    unit = np.where(np.isfinite(unit), unit, 1.0)
    # within an interval the motion is a polynomial, whose values are known at the points of Gauss' rule, too
    points, weights = np.polynomial.legendre.leggauss(3)
    shares = zip((1 + points) / 2, weights / 2, strict=True)
    return sum(float(w) * ca.sumsqr(at(float(s)).tau_m / unit) for s, w in shares)
