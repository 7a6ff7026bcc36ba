"""Chains of integrators by the Taylor coefficients of their intervals, bounded everywhere by Bernstein coefficients.

On an interval of length h, q(t) = x_0 + x_1 s + ... + x_r s^r with s = t / h and x_j = q^(j) h^j / j!. Unknown are the
x_j at its start, each divided by a scale, and x_r, a control. From interval to interval they obey Pascal's triangle, a
constant linear map, so that the time enters the limits alone. With a free mesh coefficients are those of an interval of
the mean length h_0, and s = t / h_0: what passes from one interval to the next does not depend on their lengths.

A polynomial lies between its smallest and largest Bernstein coefficient: bounds of q, dq, ... bound those of every
interval and hold everywhere, not at nodes alone. The coefficient number i of the d-th derivative depends on derivatives
up to i + d at the start of the interval, and up to r - i at its end; where these are fixed it cannot be changed, and a
bound just met would leave the solver no room, so it is left out.

Numbers, ends, bounds and scales, are parameters of the stages: problems that differ in those alone share their stages.
"""

from math import factorial
from types import MappingProxyType

import casadi as ca
import numpy as np

from ..errors import OrderError, ShapeError
from ..numbers import as_floats, shortened
from ..validation import numbers
from .description import BernsteinChain, Constraint, Within
from .polynomials import at, bernstein, hermite, shift


def chain_symbols(name, coefficients, size, bounds, reach):
    """BernsteinChain of an order of len(coefficients) - 1. bounds: [(lower, upper) of q, of dq, ...]."""
    order = len(coefficients) - 1
    names = [f"d{j}{name}" if j else name for j in range(order + 1)]
    bounded = np.array([np.isfinite(low) | np.isfinite(high) for low, high in bounds])

    def rates(where):
        return tuple(ca.MX.sym(f"{n}_{where}", size) for n in names[1:order])

    units = {d: ca.MX.sym(f"{names[d]}_unit", size) for d in range(1, order + 1) if bounded[d].any()}
    return BernsteinChain(
        name,
        tuple(coefficients),
        tuple(ca.MX.sym(n, size) for n in names),
        ca.MX.sym(f"{name}_origin", size),
        tuple(ca.MX.sym(f"{name}_scale{j}", size) for j in range(order + 1)),
        MappingProxyType(units),
        (rates("start"), rates("goal")),
        reach,
        bounded,
    )


def checked_reach(name, scale, size, order):
    """(size,) of the scale of q, a number or array, or the first of those of q, dq, ..., as other chains take them."""
    if isinstance(scale, (list, tuple)):
        if len(scale) not in (1, order + 1):
            raise ShapeError(f"chain {name!r}: got {len(scale)} scales, expected {order + 1}: of {name} and its rates")
        scale = scale[0]
    reach = numbers(f"{name}: scale", scale, size)
    if not np.all((reach > 0) & np.isfinite(reach)):
        raise ShapeError(f"{name}: scale is {shortened(reach.tolist())}, expected positive numbers")
    return reach


def checked_guess(name, guess, order):
    """A guess of q, or a list of those of q, dq, ... up to the order, of finite numbers where it is no function."""
    if guess is None:
        return None
    several = isinstance(guess, (list, tuple))
    if several and not 0 < len(guess) <= order + 1:
        expected = f"up to {order + 1}: of {name} and its rates"
        raise ShapeError(f"chain {name!r}: got {len(guess)} guesses, expected {expected}")
    for one in guess if several else [guess]:
        if not callable(one) and not np.isfinite(as_floats(f"guess of {name}", one)).all():
            raise ShapeError(f"guess of {name}: got {shortened(one)}, expected finite numbers")
    return guess


# -- expressions ----------------------------------------------------------------------------------------------


def following(chain, relative_length):
    """Coefficients 0 .. order - 1 at the next node, each divided by its scale."""
    P, out = shift(chain.order), []
    for i in range(chain.order):
        y, k = chain.coefficients, chain.scales
        terms = [y[i], *(float(P[i, j]) * (k[j] / k[i]) * y[j] for j in range(i + 1, chain.order + 1))]
        if relative_length is not None:
            terms = [term * relative_length**n if n else term for n, term in enumerate(terms)]
        out.append(sum(terms[1:], terms[0]))
    return out


def outputs(chain, shares, mean_length, relative_length):
    """Expressions of q, dq, ... for each of some shares of the interval behind its start, one list after the other."""
    x = _taylor(chain, relative_length)
    length = mean_length if relative_length is None else mean_length * relative_length
    values = []
    for share in shares:
        for d in range(chain.order + 1):
            weights = at(chain.order, d, share)
            terms = [float(w) * y for w, y in zip(weights, x, strict=True) if w]
            values.append(sum(terms[1:], terms[0]) / length**d if d else sum(terms[1:], terms[0]))
    return values


def _taylor(chain, relative_length):
    """Taylor coefficients x_0, x_1, ... of an interval."""
    x = [k * y for k, y in zip(chain.scales, chain.coefficients, strict=True)]
    if relative_length is not None:
        x = [y * relative_length**j if j else y for j, y in enumerate(x)]
    return [x[0] + chain.origin, *x[1:]]


def hull(chain, bounds, mean_length, relative_length):
    """[Within] of the bounded Bernstein coefficients: those of dq, ... over their units."""
    rows, order, x = [], chain.order, ca.horzcat(*_taylor(chain, relative_length))
    length = mean_length if relative_length is None else mean_length * relative_length
    for d, which in enumerate(chain.bounded):
        degree, joints = order - d, np.flatnonzero(which)
        if joints.size == 0:
            continue
        values = ca.mtimes(x, ca.DM(bernstein(order, d).T))
        values = ca.horzsplit(values / length**d if d else values)
        low, high = bounds[d] if d == 0 else (-np.ones(chain.size), np.ones(chain.size))
        for i, value in enumerate(values):
            if d == 0 and i in (0, degree):  # nodes are bounded as unknowns
                continue
            value = value if d == 0 else value / chain.units[d]
            value = value if joints.size == chain.size else value[joints.tolist()]
            row = Constraint(value, low[joints], high[joints], chain.names[d], of_nodes=True)
            last = i == degree and d < order  # the next interval has it as its first one
            rows.append(Within(row, 0.0, last, (chain.names[d], i), (i + d, degree - i + d)))
    return rows


def ties(chain, end, length):
    """[expression] of orders 1, 2, ... that are zero where derivatives are as fixed at an end, where the unknowns stand
    for them times powers of a length that is unknown too."""
    return [
        chain.coefficients[j] - chain.rates[end][j - 1] * length**j / factorial(j) / chain.scales[j]
        for j in range(1, chain.order)
    ]


# -- numbers --------------------------------------------------------------------------------------------------


class ChainNumbers:
    """Numbers of a chain for a solve: of N intervals of a nominal duration T."""

    def __init__(self, chain, numbers, N, T, tied):
        self.chain, self.N, self.T, self.bounds = chain, N, T, numbers.bounds
        self.start, self.goal = (fixed(chain, numbers, where) for where in ("start", "goal"))
        self.tied = tied  # at the (start, goal)
        size = chain.size
        self.origin = self.start[0] if self.start else np.zeros(size)
        reach = chain.reach
        if reach is None:
            reach = np.abs(self.goal[0] - self.start[0]) if self.start and self.goal else np.ones(size)
            reach = np.maximum(reach, 0.2 * reach.max(initial=0.0) or 0.1)
        orders = [(2 / N) ** j for j in range(chain.order)]  # as of a smooth step
        orders.append(orders[-1] / chain.order)  # what the control changes in one interval is the one before it
        self.scale = np.array(orders)[:, None] * reach

    def values(self):
        """[(size,)] of chain.parameters."""
        units = []
        for d in self.chain.units:
            units.append(unit(*self.bounds[self.chain.names[d]]))
        rates = []
        for state in (self.start, self.goal):
            known = [np.asarray(x, float) for x in state[1 : self.chain.order]]
            rates += known + [np.zeros(self.chain.size)] * (self.chain.order - 1 - len(known))
        return [self.origin, *self.scale, *units, *rates]

    def unknown_bounds(self, where):
        """[(lower, upper)] of the unknowns 0 .. order - 1 at the "start", at the "goal", or None for nodes between."""
        free = np.full(self.chain.size, np.inf)
        out = [(-free, free)] * self.chain.order
        if self.chain.name in self.bounds:
            out[0] = tuple((bound - self.origin) / self.scale[0] for bound in self.bounds[self.chain.name])
        if where is not None:
            state, tied = (self.start, self.tied[0]) if where == "start" else (self.goal, self.tied[1])
            for j, value in enumerate(state[: 1 if tied else None]):
                value = value - self.origin if j == 0 else value * (self.T / self.N) ** j / factorial(j)
                out[j] = (value / self.scale[j],) * 2
        return out

    def unknowns(self, derivatives, T, mean_length=None):
        """(x (N + 1, order, size), u (N, size)) from derivatives (order + 1, N + 1, size) of q at equally spaced nodes
        of a motion of duration T. mean_length: that of the coefficients, by default that of the intervals."""
        r, h = self.chain.order, T / self.N
        length = h if mean_length is None else mean_length
        x = np.array([derivatives[j] * length**j / factorial(j) for j in range(r)])
        u = np.diff(x[r - 1], axis=0) / r * (length / h)
        x[0] -= self.origin
        return (x / self.scale[:r, None]).transpose(1, 0, 2), u / self.scale[r]

    def derivatives(self, x, u, length):
        """(q, dq, ... at the nodes (N + 1, order, size), the last derivative in the intervals (N, size)) from unknowns;
        length: of the intervals that coefficients are of."""
        r = self.chain.order
        with np.errstate(all="ignore"):  # an iterate that failed may have no length
            to_rates = np.array([factorial(j) / length**j for j in range(r + 1)])
        q = x * self.scale[:r] * to_rates[:r, None]
        q[:, 0] += self.origin
        return q, u * self.scale[r] * to_rates[r]


def unit(lower, upper):
    """(size,) what a bounded derivative is divided by: the larger of its bounds that are finite and not 0, or 1."""
    sizes = np.abs([lower, upper])
    larger = np.where(np.isfinite(sizes), sizes, 0.0).max(axis=0)
    return np.where(larger > 0, larger, 1.0)


def fixed(chain, numbers, where):
    """[q, dq, ...] that are fixed at an end, up to the first that is not."""
    values, out = getattr(numbers, where), []
    for name in chain.names[:-1]:
        if name not in values:
            break
        out.append(values[name])
    missing = [n for n in chain.names[len(out) :] if n in values]
    if missing:
        raise OrderError(f"{where}: {missing[0]!r} is fixed, but {chain.names[len(out)]!r} is not; fix that too")
    return out


def guess_table(chain, guess, numbers, N, T):
    """(order + 1, N + 1, size) derivatives of q at the nodes from a guess of q, or a list of those of q, dq, ...; by
    default the polynomial between the ends that are fixed."""
    out = np.zeros((chain.order + 1, N + 1, chain.size))
    if guess is None:
        ends = [fixed(chain, numbers, where) for where in ("start", "goal")]
        if all(ends):
            polynomial = hermite(*(np.array(e) for e in ends), T)
            t = np.linspace(0, T, N + 1)
            for d in range(chain.order + 1):
                degrees = range(d, len(polynomial))
                out[d] = sum(np.outer(t ** (j - d) * factorial(j) / factorial(j - d), polynomial[j]) for j in degrees)
        elif any(ends):
            out[0] = (ends[0] or ends[1])[0]
        return out
    for d, one in enumerate(guess if isinstance(guess, (list, tuple)) else [guess]):
        values = [one(k / N) for k in range(N + 1)] if callable(one) else one
        values = as_floats(f"guess of {chain.names[d]}", values)
        if not np.isfinite(values).all():
            raise ShapeError(f"guess of {chain.names[d]}: got {shortened(values)}, expected finite numbers")
        try:
            out[d] = values
        except ValueError:
            text = f"guess of {chain.names[d]}: got shape {values.shape}, expected ({N + 1}, {chain.size})"
            raise ShapeError(text) from None
    return out


def shifted(chain_scale, x, s):
    """Unknowns (order + 1, size, K) of the same polynomials a time s mean lengths (K,) later."""
    order, out = len(x) - 1, []
    P = shift(order)
    for i in range(order + 1):
        out.append(sum(P[i, j] * s ** (j - i) * (chain_scale[j] / chain_scale[i])[:, None] * x[j]
                       for j in range(i, order + 1)))  # fmt: skip
    return np.array(out)
