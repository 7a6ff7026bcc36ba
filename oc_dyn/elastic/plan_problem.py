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
from .damped_collocation import STATE, CollocatedDeflections, guess_of
from .flat_motion import FlatMotion, flat_expressions, gaps_of
from .plan_costs import loss_unit, say_cost
from .plan_outputs import OUTPUTS
from .plan_stiffness import stiffness_chain
from .plan_units import Units

LEAST, MOST = 0.2, 5.0  # bounds of the duration over the nominal one
_FOLLOWS = 3e-4  # missed by the deflection at the goal, in shares of its largest
ROUGH_STIFFNESS = 1e-6  # weight of the planned stiffness' highest derivative, over its scale


@dataclass(frozen=True, eq=False)
class ElasticProblem:
    """A Problem and its expressions. task: an ElasticTask; those of its kind differ in numbers alone."""

    ocp: Problem
    flat: FlatMotion
    task: object
    units: Units | None = None

    def given(self, margins, smooth, scale):
        """Values of the parameters, after the bounds that are numbers have been set: every limit times its margin.
        smooth: weight of the highest derivative over its scale (n,)."""
        task, units, values = self.task, self.units, {"rough": smooth / scale**2}
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
        if task.sigma is not None and task.stiffness is None:
            values["sigma"] = task.sigma
        if task.elastic.damped:
            values |= {"unit of deflections": units.deflection, "unit of gaps": units.gap}
        if task.objective == "speed":
            values["unit of speed"] = units.speed
        elif task.objective != "time":
            energy = task.objective == "energy"
            values["unit of loss"] = loss_unit(task.elastic, task.given) if energy else units.power
            values |= {} if energy else {"unit of energy": units.power.sum() * task.duration}
        return values


def elastic_problem(task, T, guess):
    """ElasticProblem of an ElasticTask. T: its duration, or one near the least. guess: of q and its derivatives."""
    v_of_q = task.limits.v_of_q and velocity_bounds(task.limits).serialize()
    shape = (task.continuity, task.rate, task.interior, task.objective, task.derivatives, task.sigma is not None)
    finite = [(name, np.isfinite(ends).tobytes()) for name, (_, ends) in task.of_links.items()]
    kind = (task.kind, task.speed and task.speed.serialize(), task.stiffness and task.stiffness.key)
    # complete: numbers of the task are numbers of the problem; what else it reads is which limits there are, and the
    # bounds of v_of_q, whose text is in the key, as a function may change by what it refers to; so may the speed;
    # electrical data are what they are as objects
    key = ("plan_elastic", shape, kind, tuple(task.given), tuple(finite), np.isfinite(task.limits.q).tobytes(), v_of_q)
    key = (*key, task.electrical) if task.near is None else (*key, task.electrical, task.near.key)
    template = cached(task.elastic, key, lambda: _template(task))
    duration = (LEAST * T, MOST * T) if task.objective == "time" else T
    ocp = template.ocp.with_mesh(task.nodes, duration, T)
    units = Units.of(task, T, guess)
    _say_ends(task, ocp, template.flat.q, units)
    ocp.guess({"q": guess})
    if task.elastic.damped:
        ocp.guess(guess_of(units.deflections, task.nodes))
    if task.say is not None:
        task.say(ocp, template.flat)
    return ElasticProblem(ocp, template.flat, task, units)


def _say_ends(task, ocp, q, units):
    """Start and goal as numbers, at rest where they are."""
    rest = {x: np.zeros(task.elastic.nq) for x in q[1 : task.continuity + 1]}
    for k, say in enumerate((ocp.start, ocp.goal)):
        held = rest if task.kind == "rest" or (task.kind == "free" and k == 0) else {}
        at = {q[0]: task.ends[k]} if len(task.ends) > k else {}
        say(at | held)
        if task.elastic.damped and held:
            z, size = next(x.symbol for x in ocp._states if x.name == STATE), len(task.elastic.damped)
            still = units.held(task.ends[k]) / units.deflection[:size]
            if k == 0:
                say({z: np.concatenate([still, np.zeros(z.numel() - size)])})
                continue
            # at the goal z' and z'' follow; so does z where the dampers act in far less than an interval, and to say so
            # besides would take the last interval all its freedom
            for i in np.flatnonzero(units.lag(task) ** (task.continuity - 1) > _FOLLOWS):
                say({z[int(i)]: still[i]})


def _template(task):
    """ElasticProblem of a kind of task, whose numbers are to be replaced."""
    free = task.objective == "time"
    ocp = Problem(1, (LEAST, MOST) if free else 1.0, nominal=1.0, reusable=True)
    q = ocp.chain("q", task.elastic.nq, task.continuity + 1, basis="bernstein")
    flat_at, z = _flat_at(task, ocp, q)
    points = (np.arange(task.interior + 1) / (task.interior + 1)).tolist()
    last = 1.0 if task.kind == "free" else ()

    def limit(lower, expression, upper, name=""):
        ocp.limit(lower, expression, upper, name=name, at=points, last=last)

    _say_motors(task, ocp, flat_at, z, points, last)
    for name, (order, ends) in task.of_links.items():
        unit = ocp.parameter(f"unit of {name}", task.elastic.nv)
        _, kept, lower, upper = _link_rows(task, name, ends)
        limit(lower, (q[order] / unit)[kept.tolist()], upper, _of_links(name))
    if np.isfinite(task.limits.q).any():
        kept = _bounded_positions(task).tolist()
        limit(*(task.limits.q[0][kept], q[0][kept], task.limits.q[1][kept]), "position")
    if task.limits.v_of_q:
        low, high = velocity_bounds(task.limits)(q[0])
        share = ocp.parameter("share of v_of_q", task.elastic.nv)
        limit(-np.inf, q[1] - share * high, 0)
        limit(0, q[1] - share * low, np.inf)
    if task.near is not None:
        d = distances(task.elastic.links, task.near)(q[0], *([ocp.time] if task.near.timed else []))
        for k, pair in enumerate(task.near.pairs):
            limit(0.0, d[k], np.inf, row_of(*pair))
    _say_objective(task, ocp, q, flat_at)
    if task.kind == "periodic":
        _say_periodic(ocp, q, z)
    return ElasticProblem(ocp, flat_at(0.0), task)


def _say_motors(task, ocp, flat_at, z, points, last):
    """Limits of motors and springs, and the equations of damped ones."""
    q, sigma = flat_at(0.0).q, flat_at(0.0).sigma
    for share in z.shares if z else ():
        gaps = ca.vertcat(*gaps_of(task.elastic, q, sigma, z.jets(share), z.rates(share), task.derivatives))
        ocp.limit(0, gaps / ocp_parameter(ocp, "unit of gaps", gaps.numel()), 0, name="damped springs", at=[share])
    for name, bound in task.given.items():
        most = ocp.parameter(f"most {name}", bound.size)
        if z is None:
            ocp.limit(-1, _output(task, flat_at(0.0), name) / most, 1, at=points, last=last)
            continue
        for share in points:
            ocp.limit(-1, _output(task, flat_at(share), name) / most, 1, at=[share])
        if last:
            ocp.limit(-1, _output(task, flat_at(1.0), name) / most, 1, last=last)


def ocp_parameter(ocp, name, size):
    """The parameter of this name, made when it is first asked for."""
    known = next((x for x in ocp._parameters if x.name == name), None)
    return ocp.parameter(name, size) if known is None else known.symbol


def _flat_at(task, ocp, q):
    """(function share of an interval -> FlatMotion, CollocatedDeflections or None); without dampers it is one."""
    sigma, order, z = _sigma(task, ocp), int(task.rate), None
    if task.elastic.damped:
        size, orders = len(task.elastic.damped), 3 + order
        z = CollocatedDeflections(ocp, size, orders, ocp_parameter(ocp, "unit of deflections", size * orders))
    made = {}

    def flat_at(share):
        share = share if z else 0.0
        if share not in made:
            own = z and z.jets(share)
            made[share] = flat_expressions(task.elastic, q, sigma, task.rate, task.derivatives, z=own)
        return made[share]

    return flat_at, z


def _output(task, flat, name):
    """Expression of the output that a limit is of."""
    if name in ("current", "voltage", "torque_speed"):
        return task.electrical.outputs(task.elastic, flat.tau_m, flat.motor_speed)[name]
    return getattr(flat, OUTPUTS[name])


def _say_objective(task, ocp, q, flat_at):
    ocp.minimize(mean=ca.dot(ocp.parameter("rough", task.elastic.nq), q[-1] ** 2))
    if task.stiffness is not None:
        last = ocp.coefficients(flat_at(0.0).sigma)[-1]
        ocp.minimize(mean=ROUGH_STIFFNESS * ca.sumsqr(last))
    if task.objective == "time":
        ocp.minimize(terminal=ocp.duration)
    elif task.objective == "speed":
        ocp.minimize(terminal=-task.speed(q[0], q[1]) / ocp.parameter("unit of speed"))
    else:
        say_cost(task, ocp, flat_at)


def _say_periodic(ocp, q, z):
    """On equal intervals q and its derivatives are periodic where their coefficients are."""
    chains = [x for x in ocp._bernstein if x.outputs[0] is q[0] or x.name == "sigma"]
    ocp.periodic(*(x for chain in chains for x in chain.coefficients[:-1]))
    if z is not None:
        ocp.periodic(z.state)


def _sigma(task, ocp):
    if task.sigma is None:
        return None
    if task.stiffness is not None:
        return stiffness_chain(ocp, task.stiffness, (task.kind != "periodic", task.kind == "rest"))
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
    ends = task.ends or [(low + high) / 2]
    lower = np.minimum(low + inset, np.min(ends, axis=0))
    upper = np.maximum(high - inset, np.max(ends, axis=0))
    kept = _bounded_positions(task)
    return np.where(np.isfinite(low), lower, low)[kept], np.where(np.isfinite(high), upper, high)[kept]
