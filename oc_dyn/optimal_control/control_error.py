"""What a Solution gains or loses by its kind of controls, and by limits between nodes, to first order.

With the costates c between nodes, H = L + c' f, and v the controls within their bounds that minimise H at a time, the
optimum of the same problem with any controls lies below the cost J of controls u by

    integral of H(x, u, c) - H(x, v, c)

but for what the states move by, which is of second order in u - v, and less as these alternate within an interval. Of
linear problems it is the gap between a solution and its dual. Limits g(x, u) <= b that hold at nodes have multipliers
m there, which are spread over the intervals about them: c' = -dH/dx - m dg/dx, v keeps those that read controls, and
what is left between the nodes is worth -m (g - b). Controls that maps read, as those of chains, are what they are.
Where controls leave their bounds between the points of the method, the gap is negative.
Sources: Meidner and Vexler, SIAM J. Control Optim. 46, 2007, 116-142 (residuals of the control); Hager, Numer. Math.
87, 2000, 247-282 (multipliers of discretised limits).
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from .check_functions import columns, evaluated, expanded
from .check_phase import hermite
from .check_rows import joined
from .limit_multipliers import free_controls, limit_multipliers, of_nodes

PARTS = 4  # of an interval, in each of which controls are compared by Simpson's rule
_FLAT, _HELD = 1e-9, 1e4  # of the largest curvature of H: none; of limits that hold
_WEAK, _FAR = 1e-8, 0.1  # of the largest pull of a limit on the controls: none; of the way to a limit


@dataclass(frozen=True, eq=False)
class _Functions:
    """Of a phase. slopes (x, u, c): derivative of rates, cost and limits by the states that have rates. limits: their
    values. value (x, u, c, costates): H. gradient (..., multipliers): derivative by the controls of H and multipliers
    times limits, and of the limits. curve: derivative of the former. free: rows of the controls that no map reads.
    joins (x, u, c): derivative of the join at the end of the phase by the states in front of it, None without one."""

    slopes: ca.Function
    limits: ca.Function
    value: ca.Function
    gradient: ca.Function
    curve: ca.Function
    free: np.ndarray
    joins: Any


def gains(solution, part, flow, costates):
    """(N,): what other controls would gain on every interval of a Part whose integration ends in a Flow, less what is
    left of limits between the nodes. costates (n, N): at the ends of the intervals."""
    made, limits = solution.transcribed, limit_multipliers(solution, part)
    f = made.kept(("control error", part.phase.number), lambda: _functions(made, part.phase, part.f, limits))
    if f.joins is not None:
        costates = _before_join(f, part, flow, costates)
    total, over, outwards = np.zeros(part.N), np.zeros(limits.even.shape), limits.outwards
    if not (f.free.any() or limits.rows):
        return total
    places, curve = _along(f, part, limits, costates, _States(part, flow)), None
    for weight, share, x, c in sorted(places, key=lambda place: abs(place[1] - 0.5)):
        u = part.polynomial(share)
        at, density = (x, u, part.constants, c), limits.at(share) / part.h
        excess = limits.excess(columns(f.limits, x, u, part.constants), outwards)
        if curve is None and f.free.any():  # in the middle: it changes little over an interval
            curve = columns(f.curve, *at, density).T.reshape(part.N, len(u), -1)
        np.maximum(over, outwards * excess, out=over)
        beyond = np.where(limits.controlled[:, None], 0.0, np.maximum(outwards * excess, 0.0))
        gain = _gain(made, f, limits, density, excess, curve, at) if f.free.any() else 0.0
        total += weight * part.h * (gain - (np.abs(density) * beyond).sum(axis=0))
    sides = np.pad(over, ((0, 0), (1, 1)))
    alone = np.abs(limits.alone) * np.maximum(sides[:, :-1], sides[:, 1:])
    return total - alone[:, :-1].sum(axis=0) - np.append(np.zeros(part.N - 1), alone[:, -1].sum())


def _before_join(f, part, flow, costates):
    """costates (n, N) with those at the end of the phase in front of its join: they are of the states behind it."""
    whole, _ = part.ends(flow.end)
    at_end = (y[:, -1:] for y in (whole, part.polynomial(1.0), part.constants))
    J = np.eye(len(costates))
    J[part.f.joined] = f.joins(*at_end).full()
    return np.hstack([costates[:, :-1], J.T @ costates[:, -1:]])


def _along(f, part, limits, costates, of):
    """[(weight of Simpson's rule, share of the interval, states (n, N), costates (m, N) of those with rates)]."""
    m = len(part.f.rated)
    parts = PARTS if len(part.shares) > 1 else 2  # where controls are constant, they are off by a straight line

    def adjoint(share, x):
        """(M (N, m, m), b (N, m)): costates fall by M c + b per share of the interval."""
        A = part.h[:, None, None] * _slopes(f, x, part.polynomial(share), part.constants)
        forced = np.einsum("krj,rk->kj", A[:, m + 1 :], limits.at(share) / part.h)
        return A[:, :m].transpose(0, 2, 1), A[:, m] + forced

    ends = _slopes(f, part.following, part.polynomial(1.0), part.constants)
    c = costates[part.f.rated].T - np.einsum("krj,rk->kj", ends[:, m + 1 :], limits.at_end)
    right, out = adjoint(1.0, of(1.0)), [(1 / (6 * parts), 1.0, of(1.0), c.T)]
    for k in reversed(range(parts)):
        share, start = (k + 0.5) / parts, k / parts
        left = adjoint(start, of(start))
        c, middle = _before(c, right, adjoint(share, of(share)), left, 1 / parts)
        right = left
        out += [(4 / (6 * parts), share, of(share), middle.T), ((2 if k else 1) / (6 * parts), start, of(start), c.T)]
    return out


def _gain(made, f, limits, density, excess, curve, at):
    """(N,): what other controls would gain at a time. curve (N, nu, nu): second derivative by the controls. at: states,
    controls, constants, costates."""
    x, u, constants, costates = at
    nu, scale = len(u), made.u_scale
    g, C = np.split(columns(f.gradient, *at, density), [nu])
    g, C = g.T * scale, C.T.reshape(len(g.T), nu, -1).transpose(0, 2, 1) * scale
    most = np.abs(g).max()
    W = _convex(curve * np.outer(scale, scale), most)
    active = _active(limits, density, excess, W, C, most)
    C, left = C * active.T[:, :, None], np.where(active, excess, 0.0)
    lower, upper = ((joined(getattr(v, b) for v in made.controls) - u.T) / scale for b in ("lower", "upper"))
    d = _least(g, W, C, left.T, lower, upper, f.free, most)
    rest = left + np.einsum("kri,ki->rk", C, d)  # of limits that controls within their bounds cannot keep
    by_model = -(g * d).sum(axis=1) - np.einsum("ki,kij,kj->k", d, W, d) / 2
    by_model += (density * (rest - left) - np.abs(density) * np.maximum(np.sign(density) * rest, 0.0)).sum(axis=0)
    other = u + scale[:, None] * d.T
    by_value = np.subtract(*(columns(f.value, x, w, constants, costates)[0] for w in (u, other)))
    within = ((lower <= 0) & (upper >= 0)).all(axis=1)
    by_value = np.where(within, np.maximum(by_value, 0.0), by_value)
    return np.where(active.any(axis=0), by_model, by_value)


def _active(limits, density, excess, W, C, most):
    """(rows, N): limits that hold controls back: without them these would move farther than to where the limit is. That
    tells them from limits that solvers leave a small multiplier of."""
    size = np.maximum((C**2).sum(axis=2).T, 1e-300)
    curve = np.einsum("kri,kij,krj->rk", C, W, C) / size
    pull = np.abs(density) * np.sqrt(size)
    far = pull / np.maximum(curve, 1e-300) > _FAR * np.abs(excess) / np.sqrt(size)
    far |= joined(r.lower == r.upper for r in limits.rows).astype(bool)[:, None]
    return limits.controlled[:, None] & far & (pull > _WEAK * max(pull.max(initial=0.0), most))


def _functions(made, phase, checks, limits):
    """_Functions of a phase."""
    rates, rows = checks.rates, evaluated(made, [r.expression for r in limits.rows], "rows")
    kind = ca.SX if rates.is_a("SXFunction") and rows.is_a("SXFunction") else ca.MX
    x, u, c = (kind.sym(name, rates.size1_in(k)) for k, name in enumerate("xuc"))
    costates, multipliers = kind.sym("costates", len(checks.rated)), kind.sym("multipliers", rows.size1_out(0))
    rate, values = rates(x, u, c), rows(x, u, c)
    H = ca.dot(ca.vertcat(costates, 1), rate)
    gradient = ca.gradient(H + ca.dot(multipliers, values), u)
    given = [x, u, c, costates, multipliers]
    slopes = ca.densify(ca.jacobian(ca.vertcat(rate, values), x)[:, checks.rated])
    alone = [r.expression for r in (*phase.rows, *phase.node_rows) if of_nodes(made, phase, r)]
    alone = ca.veccat(ca.MX(0, 1), *alone, *(w.constraint.expression for w in phase.within))
    free = [
        may and not ca.depends_on(alone, v.symbol)
        for v, may in zip(made.controls, free_controls(made, phase), strict=True)
        for _ in range(v.size)
    ]
    return _Functions(
        expanded(ca.Function("slopes", [x, u, c], [slopes])),
        rows,
        expanded(ca.Function("H", [x, u, c, costates], [H])),
        expanded(ca.Function("gradient", given, [ca.densify(ca.veccat(gradient, ca.jacobian(values, u)))])),
        expanded(ca.Function("curve", given, [ca.densify(ca.vec(ca.jacobian(gradient, u)))])),
        np.array(free, bool),
        _joins(checks) if checks.joined else None,
    )


def _joins(checks):
    x, u, c = checks.joins.mx_in()
    return ca.Function("joins", [x, u, c], [ca.densify(ca.jacobian(checks.joins(x, u, c), x))])


def _slopes(f, x, u, constants):
    """(N, m + 1 + rows, m): derivative of rates, cost and limits of every interval."""
    found, N = columns(f.slopes, x, u, constants), x.shape[1]
    return found.reshape(len(found), N, -1).transpose(1, 0, 2)


class _States:
    """States (n, N) at any share of the intervals of a Part: cubics through states and rates at both ends, straight
    lines where the dynamics are stiff."""

    def __init__(self, part, flow):
        self.part, self.start, self.end = part, part.x[part.f.rated], flow.end[:-1]
        self.slopes = None
        if not flow.implicit:
            zero = np.zeros((1, part.N))
            self.slopes = [part.rates(s, np.vstack([y, zero]))[:-1] for s, y in ((0.0, self.start), (1.0, self.end))]

    def __call__(self, s):
        x, _ = self.part.within(s, self.part.polynomial(s))
        if self.slopes is None:
            x[self.part.f.rated] = self.start + s * (self.end - self.start)
        else:
            x[self.part.f.rated] = hermite(np.array([0.0, 1.0]), (self.start, self.end), self.slopes, s)
        return x


def _before(c, right, middle, left, d):
    """(costates (N, m) a share d of the interval earlier, those half-way): by the method of Hermite and Simpson, which
    is stable for stiff dynamics too."""
    (M1, b1), (Mm, bm), (M0, b0) = right, middle, left
    times = lambda M, y: np.einsum("kij,kj->ki", M, y)  # noqa: E731
    slope = times(M1, c) + b1
    known = c + d / 6 * (slope + b0 + 4 * bm + 4 * times(Mm, c / 2 + d / 8 * (slope - b0)))
    matrix = np.eye(c.shape[1]) - d / 6 * M0 - d / 3 * Mm + d**2 / 12 * Mm @ M0
    before = np.linalg.solve(matrix, known[:, :, None])[:, :, 0]
    return before, (before + c) / 2 + d / 8 * (slope - times(M0, before) - b0)


def _convex(W, least):
    """The same with the sizes of all eigenvalues, none of them zero. least: what they are small against at least."""
    values, vectors = np.linalg.eigh((W + W.transpose(0, 2, 1)) / 2)
    largest = max(np.abs(values).max(), least) or 1.0
    return np.einsum("kij,kj,klj->kil", vectors, np.maximum(np.abs(values), _FLAT * largest), vectors)


def _least(g, W, C, left, lower, upper, free, most):
    """(N, nu): the step that minimises g' d + d' W d / 2 within bounds, and takes C d + left to zero. most: of g."""
    N, nu = g.shape
    largest = max(np.abs(W).max(), most)
    size = (C**2).sum(axis=2, keepdims=True)  # zero of rows that hold nothing
    weight = np.divide(_HELD * largest, size, out=np.zeros_like(size), where=size > 1e-300)
    W, g = W + np.einsum("kri,krj->kij", weight * C, C), g + np.einsum("kri,kr->ki", weight * C, left)
    flat = np.einsum("kii->ki", W) <= 10 * _FLAT * largest
    held = ~free | (flat & ~(np.isfinite(lower) & np.isfinite(upper)))
    d, places = np.zeros((N, nu)), np.arange(nu)
    for _ in range(nu + 1):
        moved = W.copy()
        right = -g - np.einsum("kij,kj->ki", W, np.where(held, d, 0.0))
        k, i = np.nonzero(held)
        moved[k, i, :], moved[k, :, i] = 0.0, 0.0
        moved[:, places, places] += held
        right[k, i] = d[k, i]
        d = np.linalg.solve(moved, right[:, :, None])[:, :, 0]
        out = ~held & ((d < lower) | (d > upper))
        d, held = np.where(held, d, np.clip(d, lower, upper)), held | out
        if not out.any():
            break
    return d
