"""What is known between nodes: which symbols limits and costs may read within an interval, how costs are summed.

Chains and contact bodies are known at every point of an interval, and so is the time. States with rates are known at
the points of a method alone, states with a next value at nodes, and so are controls of methods that have them there;
those that change within intervals have their values at points of the method.
"""

from typing import NamedTuple

import casadi as ca

from ..errors import OrderError

POINTS = 3  # interior points at least, of integrals of chains on a free mesh: exact up to degree 7


def known(description, phase):
    """Symbols that change within an interval and are known there."""
    stepped = {id(description.states[k].symbol) for k in phase.steps}
    found = [x for chain in description.chains for x in chain[:-1] if id(x) in stepped]
    found += [x for chain in description.bernstein for x in chain.outputs[:-1]]
    found += [x for body in description.bodies for x in (body.q, body.v) if id(x) in stepped]
    return found if description.time is None else [*found, description.states[description.time].symbol]


def unknown(description, phase, controls):
    """[(symbol, what it is)] of those that are not known there. controls: why controls are not, or ""."""
    there = {id(x) for x in known(description, phase)}
    held, out = phase.held(description.states), []
    for k, v in enumerate(description.states):
        if k not in held and id(v.symbol) not in there:
            what = "has a rate" if k in phase.rates else "is known at nodes"
            out.append((v.symbol, f"state {v.name!r}, which {what}"))
    if controls:
        out += [(v.symbol, f"control {v.name!r}, which this method {controls}") for v in description.controls]
    return out


def _first(expression, unknown):
    """What an expression reads first of [(symbol, what it is)], or None."""
    return next((what for symbol, what in unknown if ca.depends_on(ca.MX(expression), symbol)), None)


def check_points(description, phase, controls):
    """Raise OrderError for a limit or cost at points within intervals that reads what is not known there."""
    not_known = unknown(description, phase, controls)
    advice = "its value within an interval is not known; "
    for w in phase.within:
        if w.fixed is None and w.share and (what := _first(w.constraint.expression, not_known)):
            advice += "leave out at= and last=, or take a chain (with rk4, euler or collocation)"
            raise OrderError(f"limit: {w.label[0]!r} at {w.share:g} of an interval reads {what}: {advice}")
    of_controls = [x for x in not_known if controls and x[1].startswith("control")]
    for rate, interior in phase.sums:
        at_start = interior == 0 and equal_lengths(description, phase)  # where nodes are all that is read
        if what := _first(rate, of_controls if at_start else not_known):
            advice += "leave out points=, so that the method sums it by its own rule"
            raise OrderError(f"minimize: an integral with points={interior} reads {what}: {advice}")


def equal_lengths(description, phase):
    """Whether all intervals of a phase are as long, so that what counts at the end of one may count at the start of the
    next."""
    return description.relative_length is None and phase.shares is None


def check_rates(description, phase):
    """Raise OrderError for a rate that reads a chain or contact body on a free mesh: it takes them as they are at the
    start of an interval, and lengths would be chosen to make use of that."""
    if description.relative_length is None:
        return
    moving = _moving(description, phase)
    for k, rate in phase.rates.items():
        if ca.depends_on(ca.MX(rate), moving):
            raise OrderError(
                f"rate: that of {description.states[k].name!r} reads a chain or contact body, whose values it holds "
                "constant over an interval, which a free mesh makes use of; write what it reads by rates, as states, "
                "or take a uniform mesh; a cost is summed rightly by minimize(integral=...)"
            )


def _moving(description, phase):
    """What chains and contact bodies make that changes within an interval, as one column."""
    time = None if description.time is None else description.states[description.time].symbol
    return ca.veccat(*(x for x in known(description, phase) if x is not time))


class Costs(NamedTuple):
    """Costs of a phase: by the rule of the method, integrals and squares, and at points within intervals, (expression,
    interior points)."""

    integrals: tuple
    squares: tuple
    sums: tuple
    sums_of_squares: tuple


def costs(description, phase, controls):
    """Costs of a phase. On a free mesh what chains and bodies make is summed at points of its own interval: taken at
    its start, a long interval would be chosen to begin where it is small."""
    if description.relative_length is None:
        return Costs(phase.integrals, phase.squares, phase.sums, ())
    moving = _moving(description, phase)
    not_known = unknown(description, phase, controls)
    points = max([POINTS, *(len(c) - 1 for c in description.chains), *(c.order for c in description.bernstein)])
    parts = {"integrals": ([], []), "squares": ([], [])}
    for what, (by_method, at_points) in parts.items():
        for cost in getattr(phase, what):
            if not ca.depends_on(ca.MX(cost), moving):
                by_method.append(cost)
            elif reads := _first(cost, not_known):
                raise OrderError(
                    f"minimize: one of the {what} reads a chain or contact body and {reads}: on a free mesh there is "
                    "no rule for both within an interval; give them as costs of their own, or take a uniform mesh"
                )
            else:
                at_points.append((cost, points))
    (integrals, sums), (squares, of_squares) = parts.values()
    return Costs(tuple(integrals), tuple(squares), (*phase.sums, *sums), tuple(of_squares))
