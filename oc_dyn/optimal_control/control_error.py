"""What a Solution loses by its kind of controls, as constants or polynomials on intervals, to first order.

With the costates c between nodes, H = L + c' f, and v the controls within their bounds that minimise H at a time, the
optimum of the same problem with any controls lies below the cost J of controls u by

    integral of H(x, u, c) - H(x, v, c)

but for what the states move by, which is of second order in u - v, and less as these alternate within an interval. Of
linear problems it is the gap between a solution and its dual. Limits that read controls count with their multipliers,
as in the program; controls that maps read, as those of chains, are what they are. Where controls leave their bounds
between the points of the method, it is negative.
Source: Meidner and Vexler, SIAM J. Control Optim. 46, 2007, 116-142 (residuals of the control).
"""

from dataclasses import dataclass
from itertools import pairwise

import casadi as ca
import numpy as np

from .check_functions import columns, evaluated, slopes_of
from .check_rows import joined

PLACES = 6  # in an interval where controls are compared
_FLAT, _HELD, _ACTIVE = 1e-9, 1e4, 1e-6  # curvatures of H that are none, of limits that hold; multipliers that are none


@dataclass(frozen=True, eq=False)
class _Functions:
    """Of a phase. slopes (x, u, c): see slopes_of. value (x, u, c, costates): H. curves (..., multipliers): derivative
    by the controls of H and what limits add, its derivative, that of the limits. limits: those that read controls.
    free: rows of the controls that no map reads."""

    slopes: ca.Function
    value: ca.Function
    curves: ca.Function
    limits: tuple
    free: np.ndarray


def gains(solution, part, flow, costates):
    """(N,): what other controls would gain on every interval of a Part whose integration ends in a Flow. costates
    (n, N): at the ends of the intervals."""
    made, key = solution.transcribed, ("control error", part.phase.number)
    f = made.kept(key, lambda: _functions(made, part.phase, part.f))
    total, c = np.zeros(part.N), costates[part.f.rated]
    if not f.free.any():
        return total
    multipliers, of = _multipliers(solution, part, f.limits), _States(part, flow)
    density = multipliers / part.h
    active = np.abs(multipliers) > _ACTIVE * np.abs(multipliers).max(initial=0.0)
    bounds = tuple(joined(getattr(v, b) for v in made.controls) for b in ("lower", "upper"))
    for share in (np.arange(PLACES) + 0.5)[::-1] / PLACES:
        x, u = of(share), part.polynomial(share)
        before = _before(columns(f.slopes, x, u, part.constants), c, part.h / PLACES)
        c, middle = before, (c + before) / 2
        g, W, C = _split(columns(f.curves, x, u, part.constants, middle, density), len(u), len(density))
        g, W, C = g * made.u_scale, W * np.outer(made.u_scale, made.u_scale), C * made.u_scale * active.T[:, :, None]
        lower, upper = ((bound - u.T) / made.u_scale for bound in bounds)
        W = _convex(W)
        change = _least(g, W, C, lower, upper, f.free)
        gain = -(g * change).sum(axis=1) - np.einsum("ki,kij,kj->k", change, W, change) / 2
        if not f.limits:
            other = u + made.u_scale[:, None] * change.T
            gain = np.subtract(*(columns(f.value, x, w, part.constants, middle)[0] for w in (u, other)))
        within = ((lower <= 0) & (upper >= 0)).all(axis=1)
        total += part.h / PLACES * np.where(within, np.maximum(gain, 0.0), gain)
    return total


def _functions(made, phase, checks):
    """_Functions of a phase."""
    rates, limits = checks.rates, tuple(r for r in phase.rows if made._controlled(r.expression))
    rows = evaluated(made, [r.expression for r in limits], "rows")
    kind = ca.SX if rates.is_a("SXFunction") and rows.is_a("SXFunction") else ca.MX
    x, u, c = (kind.sym(name, rates.size1_in(k)) for k, name in enumerate("xuc"))
    costates, multipliers = kind.sym("costates", len(checks.rated)), kind.sym("multipliers", rows.size1_out(0))
    rate, values = rates(x, u, c), rows(x, u, c)
    H = ca.dot(ca.vertcat(costates, 1), rate)
    gradient = ca.gradient(H + ca.dot(multipliers, values), u)
    curves = ca.densify(ca.veccat(gradient, ca.jacobian(gradient, u), ca.jacobian(values, u)))
    maps = ca.veccat(ca.MX(0, 1), *phase.steps.values(), *(x for body in made.description.bodies for x in (body.dv,)))
    free = [not ca.depends_on(maps, v.symbol) for v in made.controls for _ in range(v.size)]
    return _Functions(
        slopes_of(checks),
        ca.Function("H", [x, u, c, costates], [H]),
        ca.Function("curves", [x, u, c, costates, multipliers], [curves]),
        limits,
        np.array(free, bool),
    )


def _multipliers(solution, part, limits):
    """(rows, N): multipliers of limits on every interval, at all points of the method."""
    made, first, lam_g = solution.transcribed, part.first, np.append(solution.multipliers[1], 0.0)
    places = {id(r): place for r, place in zip(limits, _places(limits), strict=True)}
    out, at = np.zeros((sum(r.lower.size for r in limits), part.N)), 0
    for group in made.assembly.groups if limits else ():
        here = range(max(at, first), min(at + group.count, first + part.N + made.nodal))
        at += group.count
        if not len(here):
            continue
        rows = np.stack([made.assembly.stage_rows[k] for k in here])
        ends = np.cumsum([block.size for block in made.row_blocks[here[0]]])
        of_nodes = {id(b.constraint): k for k, b in enumerate(made.row_blocks[here[0]])}  # the last one of each
        for k, (block, end) in enumerate(zip(made.row_blocks[here[0]], ends, strict=True)):
            if id(block.constraint) not in places or block.where:
                continue
            found = lam_g[rows[:, end - block.size : end]].T  # the last one where a row is left out: 0
            place, where = places[id(block.constraint)], np.array(here) - first
            shared = made.nodal and of_nodes[id(block.constraint)] == k  # by the intervals on both sides
            for shift in (0, 1) if shared else (0,):
                inside = (where >= shift) & (where - shift < part.N)
                out[place, where[inside] - shift] += found[:, inside] * (0.5 if shared else 1.0)
    return out


def _places(limits):
    ends = np.cumsum([0, *(r.lower.size for r in limits)])
    return [slice(a, b) for a, b in pairwise(ends)]


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
        a, d = self.start, self.end - self.start
        x, _ = self.part.within(s, self.part.polynomial(s))
        if self.slopes is None:
            x[self.part.f.rated] = a + s * d
        else:
            m, n = self.slopes
            x[self.part.f.rated] = a + s * (m + s * (3 * d - 2 * m - n + s * (m + n - 2 * d)))
        return x


def _before(slopes, c, step):
    """Costates (m, N) a step earlier, by the implicit midpoint rule. slopes (m + 1, m N): of rates and cost."""
    m, N = c.shape
    A = slopes.reshape(m + 1, N, m).transpose(1, 2, 0) * step[:, None, None]  # transposed, interval by interval
    half = A[:, :, :m] / 2
    right = c.T + np.einsum("kij,jk->ki", half, c) + A[:, :, m]
    return np.linalg.solve(np.eye(m) - half, right[:, :, None])[:, :, 0].T


def _split(columns_of, nu, rows):
    """(gradient (N, nu), second derivative (N, nu, nu), derivative of the limits (N, rows, nu))."""
    g, W, C = np.split(columns_of, [nu, nu + nu * nu])
    N = columns_of.shape[1]
    return g.T, W.T.reshape(N, nu, nu), C.T.reshape(N, nu, rows).transpose(0, 2, 1)


def _convex(W):
    """The same with the sizes of all eigenvalues, none of them zero."""
    values, vectors = np.linalg.eigh((W + W.transpose(0, 2, 1)) / 2)
    largest = np.abs(values).max(initial=0.0) or 1.0
    return np.einsum("kij,kj,klj->kil", vectors, np.maximum(np.abs(values), _FLAT * largest), vectors)


def _least(g, W, C, lower, upper, free):
    """(N, nu): the step that minimises g' d + d' W d / 2 within bounds, and along the limits with derivatives C."""
    N, nu = g.shape
    largest = np.abs(W).max()
    weight = _HELD * largest / np.maximum((C**2).sum(axis=2, keepdims=True), 1e-300)
    W = W + np.einsum("kri,krj->kij", weight * C, C)
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
