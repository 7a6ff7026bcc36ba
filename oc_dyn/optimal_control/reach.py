"""States that cannot make their way in the longest duration, by the bounds of their rates."""

import casadi as ca
import numpy as np

from .integrators import METHODS

TOLERANCE = 1e-6


def out_of_reach(boxes, method):
    """Text of a state that cannot go from start to goal, or "". boxes: infeasible.Boxes. method: of integration."""
    d = boxes.description
    if not any(method is x for x in METHODS.values()) and not hasattr(method, "order"):
        return ""  # nobody knows what a method of the caller's own makes of rates
    for k, v in enumerate(d.states):
        if any(k in phase.join for phase in d.phases):
            continue
        way = _way(boxes, method, k, v)
        if told := way and _told(boxes, v.name, v.symbol, *way):
            return told
    for chain in d.bernstein:
        if told := _of_bernstein(boxes, chain):
            return told
    return ""


def _told(boxes, name, symbol, low, high, rates, longest):
    """Text where the difference of goal and start is none that is between low and high."""
    start, goal = (box[id(symbol)] for box in (boxes.start, boxes.goal))
    for i in range(symbol.numel()):
        least, most = goal[0][i] - start[1][i], goal[1][i] - start[0][i]
        size = TOLERANCE * max([1.0, *(abs(x) for x in (least, most, low[i], high[i]) if np.isfinite(x))])
        if least <= high[i] + size and most >= low[i] - size:
            continue
        one = f"{name}[{i}]" if symbol.numel() > 1 else name
        need = least if least > high[i] else most
        slow, fast = (rate[i] + 0.0 for rate in rates)  # no -0
        ends = [f"{s[0][i]:.6g}" if s[0][i] == s[1][i] else f"{s[0][i]:.6g} to {s[1][i]:.6g}" for s in (start, goal)]
        return (
            f"{one} cannot go from {ends[0]} at the start to {ends[1]} at the goal: with a rate from {slow:.6g} "
            f"to {fast:.6g} it changes by {low[i]:.6g} to {high[i]:.6g} in the longest duration of "
            f"{longest:.6g} s, and has to change by {need:.6g}"
        )
    return ""


def _way(boxes, method, k, v):
    """(least, most change of a state over all phases, (least, most rate), longest duration) or None."""
    low, high, longest = np.zeros(v.size), np.zeros(v.size), 0.0
    slowest, fastest = np.full(v.size, np.inf), np.full(v.size, -np.inf)
    for phase in boxes.description.phases:
        rate = _rate(boxes, method, phase, k)
        if rate is None:
            return None
        _, *T = boxes.numbers.durations[phase.number]
        with np.errstate(invalid="ignore"):
            ends = np.nan_to_num(np.array([T[0] * rate[0], T[1] * rate[0], T[0] * rate[1], T[1] * rate[1]]), nan=0.0,
                                 posinf=np.inf, neginf=-np.inf)  # fmt: skip
        low, high, longest = low + ends.min(axis=0), high + ends.max(axis=0), longest + T[1]
        slowest, fastest = np.minimum(slowest, rate[0]), np.maximum(fastest, rate[1])
    return low, high, (slowest, fastest), longest


def _rate(boxes, method, phase, k):
    """(least, most) rate of a state in a phase, None where it is not known."""
    d = boxes.description
    if k in phase.steps:
        if k in phase.held(d.states):
            return np.zeros((2, d.states[k].size))
        return _rate_of_chain(boxes, phase, k)
    box = boxes.at_nodes(phase)
    if d.states[k].manifold is not None:
        return None
    for j in boxes.kept(("read by", phase.number, k), lambda: _read(d.states, phase, k)):
        box[id(d.states[j].symbol)] = _between_nodes(boxes, method, phase, j, box)
    return boxes.of(("rate", phase.number, k), phase.rates[k], box)


def _read(states, phase, k):
    """Numbers of the states that the rate of one reads, of those that have rates."""
    rate = ca.MX(phase.rates[k])
    return [j for j, v in enumerate(states) if j not in phase.steps and ca.depends_on(rate, v.symbol)]


def _between_nodes(boxes, method, phase, j, box):
    """Bounds of a state at the points of a method, from those at nodes: the same where it is linear in between, or
    further out by what it moves in two intervals."""
    d = boxes.description
    lower, upper = box[id(d.states[j].symbol)]
    plain = any(method is x for x in METHODS.values()) and not getattr(method, "control_degree", 0)
    if plain and not boxes.kept(("read by", phase.number, j), lambda: _read(d.states, phase, j)):
        return lower, upper
    on_manifold = d.states[j].manifold is not None
    rate = None if on_manifold else boxes.of(("rate", phase.number, j), phase.rates[j], boxes.at_nodes(phase))
    return _widened(boxes, phase, (lower, upper), rate)


def _widened(boxes, phase, bounds, rate):
    if rate is None:
        return np.full(bounds[0].size, -np.inf), np.full(bounds[0].size, np.inf)
    size = np.maximum(np.abs(rate[0]), np.abs(rate[1]))
    step = boxes.numbers.durations[phase.number][2] * float(np.max(phase.lengths))
    step *= 4.0 if boxes.description.relative_length is not None else 1.0
    return bounds[0] - 2 * step * size, bounds[1] + 2 * step * size


def _rate_of_chain(boxes, phase, k):
    """The same of a state of a taylor chain, whose rate is the next one of it."""
    d = boxes.description
    for chain in d.chains:
        place = next((j for j, x in enumerate(chain[:-1]) if x is d.states[k].symbol), None)
        if place is None:
            continue
        box = boxes.at_nodes(phase)
        after = box[id(chain[place + 1])]
        if place + 2 < len(chain) - 1 or (place + 2 < len(chain) and place + 3 < len(chain)):
            return _widened(boxes, phase, after, box[id(chain[place + 2])])
        return after
    return None


def _of_bernstein(boxes, chain):
    """Text of a derivative of a chain that cannot go from start to goal; bounds hold everywhere but where derivatives
    that are fixed decide, so that those have to be zero."""
    numbers = boxes.numbers
    _, _, T = numbers.durations[0]
    for order, symbol in enumerate(chain.outputs[:-1]):
        after = chain.names[order + 1]
        ends = [np.abs(x[name]).max() for x in (numbers.start, numbers.goal) for name in chain.names[2:] if name in x]
        if after not in numbers.bounds or any(ends) or symbol.name() not in numbers.start:
            continue
        rate = tuple(np.array(b, float) for b in numbers.bounds[after])
        low, high = np.minimum(T * rate[0], 0.0), np.maximum(T * rate[1], 0.0)
        if told := _told(boxes, symbol.name(), symbol, low, high, rate, T):
            return told
    return ""
