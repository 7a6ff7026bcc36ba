"""plan_elastic as a Problem: limits of links, motors and springs at nodes and at points between them.

The motion is a chain of integrators by Taylor coefficients of its intervals. What differs between tasks of a kind on
one robot, ends, limits, stiffnesses, durations and margins, are numbers, so that the stages of a kind are built once.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..model.cache import cached
from ..optimal_control.avoid import distances
from ..optimal_control.problem import Problem
from ..planning.limits import velocity_bounds
from ..planning.motion_problem import row_of
from .flat_motion import FlatMotion, flat_expressions
from .plan import OUTPUTS

LEAST, MOST = 0.2, 5.0  # bounds of the duration over the nominal one


@dataclass(frozen=True, eq=False)
class ElasticProblem:
    """A Problem and its expressions. task: an ElasticTask; those of its kind differ in numbers alone."""

    ocp: Problem
    flat: FlatMotion
    task: object

    def given(self, margins, smooth, scale):
        """Values of the parameters, after the bounds that are numbers have been set: every limit times its margin.
        smooth: weight of the highest derivative over its scale (n,)."""
        task, values = self.task, {"rough": smooth / scale**2}
        for name, bound in task.given.items():
            values[f"most {name}"] = bound * margins[OUTPUTS[name]]
        for name, (_, ends) in task.of_links.items():
            unit, _, lower, upper = _link_rows(task, name, ends)
            self.ocp.bound(_of_links(name), lower, upper)
            values[f"unit of {name}"] = unit * margins[name]
        if "q" in margins:
            self.ocp.bound("position", *_positions(task, margins["q"]))
        if "v_of_q" in margins:
            values["share of v_of_q"] = margins["v_of_q"]
        if task.near is not None:
            for pair, least in zip(task.near.pairs, task.apart, strict=True):
                self.ocp.bound(row_of(*pair), least, np.inf)
        if task.sigma is not None:
            values["sigma"] = task.sigma
        if task.objective == "energy":
            values["unit of loss"] = _loss_unit(task)
        return values


def elastic_problem(task, T, guess):
    """ElasticProblem of an ElasticTask. T: its duration, or one near the least. guess: of q and its derivatives."""
    v_of_q = task.limits.v_of_q and velocity_bounds(task.limits).serialize()
    shape = (task.continuity, task.rate, task.interior, task.objective, task.derivatives, task.sigma is not None)
    finite = [(name, np.isfinite(ends).tobytes()) for name, (_, ends) in task.of_links.items()]
    # complete: numbers of the task are numbers of the problem; what else it reads is which limits there are, and the
    # bounds of v_of_q, whose text is in the key, as a function may change by what it refers to
    key = ("plan_elastic", shape, tuple(task.given), tuple(finite), np.isfinite(task.limits.q).tobytes(), v_of_q)
    key = key if task.near is None else (*key, task.near.key)
    template = cached(task.elastic, key, lambda: _template(task))
    duration = T if task.objective == "energy" else (LEAST * T, MOST * T)
    ocp = template.ocp.with_mesh(task.nodes, duration, T)
    q, (start, goal) = template.flat.q, task.ends
    rest = {x: np.zeros(task.elastic.nq) for x in q[1 : task.continuity + 1]}
    ocp.start({q[0]: start, **rest})
    ocp.goal({q[0]: goal, **rest})
    ocp.guess({"q": guess})
    return ElasticProblem(ocp, template.flat, task)


def _template(task):
    """ElasticProblem of a kind of task, whose numbers are to be replaced."""
    fixed = task.objective == "energy"
    ocp = Problem(1, 1.0 if fixed else (LEAST, MOST), nominal=1.0, reusable=True)
    q = ocp.chain("q", task.elastic.nq, task.continuity + 1, basis="bernstein")
    flat = flat_expressions(task.elastic, q, _sigma(task, ocp), task.rate, task.derivatives)
    points = (np.arange(task.interior + 1) / (task.interior + 1)).tolist()

    def limit(lower, expression, upper, name=""):
        ocp.limit(lower, expression, upper, name=name, at=points)

    for name, bound in task.given.items():
        most = ocp.parameter(f"most {name}", bound.size)
        limit(-1, getattr(flat, OUTPUTS[name]) / most, 1)
    for name, (order, ends) in task.of_links.items():
        unit = ocp.parameter(f"unit of {name}", task.elastic.nv)
        _, kept, lower, upper = _link_rows(task, name, ends)
        limit(lower, (flat.q[order] / unit)[kept.tolist()], upper, _of_links(name))
    if np.isfinite(task.limits.q).any():
        kept = _bounded_positions(task).tolist()
        limit(*(task.limits.q[0][kept], flat.q[0][kept], task.limits.q[1][kept]), "position")
    if task.limits.v_of_q:
        low, high = velocity_bounds(task.limits)(flat.q[0])
        share = ocp.parameter("share of v_of_q", task.elastic.nv)
        limit(-np.inf, flat.q[1] - share * high, 0)
        limit(0, flat.q[1] - share * low, np.inf)
    if task.near is not None:
        d = distances(task.elastic.links, task.near)(flat.q[0], *([ocp.time] if task.near.timed else []))
        for k, pair in enumerate(task.near.pairs):
            limit(0.0, d[k], np.inf, row_of(*pair))
    ocp.minimize(mean=ca.dot(ocp.parameter("rough", task.elastic.nq), flat.q[-1] ** 2))
    if fixed:
        unit = ocp.parameter("unit of loss", len(task.elastic.motor_names))
        ocp.minimize(integral=ca.sumsqr(flat.tau_m / unit), points=3)
    else:
        ocp.minimize(terminal=ocp.duration)
    return ElasticProblem(ocp, flat, task)


def _sigma(task, ocp):
    if task.sigma is None:
        return None
    sigma = ocp.parameter("sigma", task.sigma.size)
    return [sigma, *(ca.MX.zeros(task.sigma.size) for _ in task.jets[1:])]


def _of_links(name):
    return f"{name} of the links"


def _link_rows(task, name, ends):
    """(unit (n,), numbers of the joints with limits, lower, upper bounds of their rows over the unit)."""
    kept, held = np.flatnonzero(np.isfinite(ends).any(axis=0)), task.limits.larger(name) == 0
    unit = np.where(held, 1e-9, task.limits.unit(name))
    lower, upper = (np.where(held, side, x / unit)[kept] for side, x in zip((-1, 1), ends, strict=True))
    return unit, kept, lower, upper


def _bounded_positions(task):
    return np.flatnonzero(np.isfinite(task.limits.q).any(axis=0))


def _positions(task, margin):
    """(lower, upper) of the joints with limits, moved inwards, never past the ends, which may lie at the limit."""
    low, high = task.limits.q
    half = np.where(np.isfinite(high - low), (high - low) / 2, 1.0)
    inset = half * (1 - margin)
    lower = np.minimum(low + inset, np.min(task.ends, axis=0))
    upper = np.maximum(high - inset, np.max(task.ends, axis=0))
    kept = _bounded_positions(task)
    return np.where(np.isfinite(low), lower, low)[kept], np.where(np.isfinite(high), upper, high)[kept]


def _loss_unit(task):
    """(tau_m,) torques that the loss is relative to: their limits, or 1."""
    unit = task.given.get("motor_torque", np.ones(len(task.elastic.motor_names)))
    return np.where(np.isfinite(unit), unit, 1.0)


def loss(task, motion):
    """Integral of the squared motor torques, each divided by its limit, along a Trajectory."""
    points, weights = np.polynomial.legendre.leggauss(3)
    h = np.diff(motion.t)[:, None]
    times = (motion.t[:-1, None] + (1 + points) / 2 * h).ravel()
    share = task.outputs(motion.sample(times).derivatives)["tau_m"] / _loss_unit(task)
    return float((weights / 2 * h).ravel() @ np.sum(share**2, axis=1))
