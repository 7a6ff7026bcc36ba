"""Iterations of a primal-dual interior-point method on stages: a start for the augmented Lagrangian where many limits
change at once, in a number of steps that hardly depends on how many.

A side of a limit, a <= b, that costs a price w where it is exceeded by e: slack s = b - a + e >= 0, multiplier
0 <= y <= w, v = w - y >= 0, and s y = e v = mu on the way to 0. Eliminated they are weights y / (s + y e / v) of the
same Riccati recursion. Steps by Mehrotra's predictor and corrector; equations have their augmented Lagrangian. Source:
Mehrotra, SIAM J. Optimization 1992; Wright, "Primal-Dual Interior-Point Methods", 1997, chapter 10.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..types import Array
from .riccati import Sweeps

_BOUNDARY = 0.995  # share of the way to where a number would become zero
_START = 0.1  # slacks to start from at least, in units of the limits, and multipliers, over the scale
_SMALL = 1e-11  # mu over the scale at which it is a start for others
_NEAR, _GROWS = 1e-3, 2.0  # mu over the scale below which it no more grows, by as much, but by rounding


class Sides:
    """The sides of inequalities that have a bound: upper ones, then lower ones, as signed rows of the limits."""

    def __init__(self, above: Any, below: Any, equal: Any) -> None:
        self.upper, self.lower = np.flatnonzero(above & ~equal), np.flatnonzero(below & ~equal)
        self.rows = np.concatenate([self.upper, self.lower])
        self.signs = np.concatenate([np.ones(self.upper.size), -np.ones(self.lower.size)])
        count = self.rows.size
        self.to_limits = ca.DM.triplet(self.rows.tolist(), list(range(count)), ca.DM.ones(count), above.size, count)
        self.size = count

    def of(self, a: Any) -> Any:
        """Signed rows of a column of limits."""
        return ca.DM(self.signs) * self.picked(a)

    def picked(self, a: Any) -> Any:
        """Rows of a column of limits; of a single limit CasADi gives a row for several."""
        return ca.vec(a[self.rows.tolist()])

    def summed(self, sides: Any, signed: bool = True) -> Any:
        """Column of limits from one of sides."""
        return ca.mtimes(self.to_limits, ca.DM(self.signs) * sides if signed else sides)


def interior(name: str, s: Sweeps, blocks: Any, sides: Sides, equal: Array, prepared: int, options: Any) -> Any:
    """casadi.Function (z, y, h, a, prepared, g, lower, upper) -> (z, y, h, a): where limits keep, or nearly.

    h = H z + g, a = C z. blocks: of what is prepared, see stage_qp. options: "interior", iterations at most, and
    "small", mu over the scale at the end; without it that of double precision.
    """
    m = s.n_limits
    sizes = [s.n, m, s.n, m, prepared, s.n, m, m]
    given = [ca.MX.sym(f"i{k}", size) for k, size in enumerate(sizes)]
    z, y, h, a, all_of, g, low, up = given
    *_, price = blocks(all_of)
    w = sides.picked(price)
    b = ca.vertcat(up[sides.upper.tolist()], -low[sides.lower.tolist()])
    scale = ca.fmax(ca.norm_inf(g), 1e-12)
    gap = b - sides.of(a)
    slack = ca.if_else(gap > _START, gap, _START)
    mu = _START**2 * scale
    dual = ca.if_else(mu / slack < w / 2, mu / slack, w / 2)
    excess = mu / (w - dual)
    one = _iteration(name, s, blocks, sides, equal, sizes, options.get("small"))
    state = [z, h, a, dual, slack, excess, ca.DM(equal.astype(float)) * y, ca.vertcat(1, scale)]
    shapes = [ca.MX.sym(f"s{k}", x.numel()) for k, x in enumerate([*state, all_of, g, low, up])]
    idle = ca.Function(f"{name}_interior_idle", shapes, shapes[:8], {"never_inline": True})
    more = ca.Function.if_else(f"{name}_interior_more", one, idle)
    for k in range(int(options["interior"])):
        data = [all_of, g, low, up]
        state = one.call([*state, *data]) if k == 0 else more.call([state[-1][0], *state, *data])
    z, h, a, dual, _, _, y, _ = state
    return ca.Function(f"{name}_interior", given, [z, y + sides.summed(dual), h, a], {"never_inline": True})


def _iteration(
    name: str, s: Sweeps, blocks: Any, sides: Sides, equal: Array, sizes: list[int], small: float | None
) -> ca.Function:
    """(z, h, a, y, s, e, multipliers of equations, [running, scale], prepared, g, lower, upper) -> the first eight."""
    n_sides, m = sides.size, s.n_limits
    shapes = [s.n, s.n, m, *[n_sides] * 3, m, 2, *sizes[4:]]
    given = [ca.MX.sym(f"i{k}", size) for k, size in enumerate(shapes)]
    z, h, a, y, slack, e, y_equal, info, prepared, g, low, up = given
    J, H, rho, _, _, eps, price = blocks(prepared)
    w = sides.picked(price)
    b = ca.vertcat(up[sides.upper.tolist()], -low[sides.lower.tolist()])
    v, off = w - y, b - sides.of(a) + e - slack
    below = slack + y * e / v
    weights = rho * ca.DM(equal.astype(float))
    factor = s.factor(J, H, weights + sides.summed(y / below, signed=False), eps)
    # equations are at their upper bound, which is the lower one
    equations = y_equal + ca.if_else(ca.DM(equal.astype(float)), rho * (a - up), 0)
    nothing = ca.MX.zeros(s.n_next), ca.MX.zeros(len(s.runs[0].signature.states))
    gradient = s.transposed(J, h, equations + sides.summed(y))

    def step(c1: Any, c2: Any) -> tuple[Any, ...]:
        q = (c1 - y * c2 / v - y * off) / below
        r = s.transposed(J, gradient, sides.summed(q))
        d = s.forward(J, factor, s.backward(J, factor, r), *nothing)
        h1, a1 = s.times(J, H, z + d, g)
        da = sides.of(a1 - a)
        dy = y / below * da + q
        de = (c2 + e * dy) / v
        return d, h1, a1, dy, de, -da + de + off

    def longest(dy: Any, de: Any, ds: Any) -> Any:
        out = ca.MX(1)
        for x, dx in ((y, dy), (v, -dy), (e, de), (slack, ds)):
            out = ca.fmin(out, ca.mmin(ca.if_else(dx < 0, -x / ca.if_else(dx < 0, dx, -1), 1)))
        return out

    mu = (ca.dot(slack, y) + ca.dot(e, v)) / (2 * n_sides)
    _, _, _, dy, de, ds = step(-slack * y, -e * v)
    t = longest(dy, de, ds)
    ahead = (ca.dot(slack + t * ds, y + t * dy) + ca.dot(e + t * de, v - t * dy)) / (2 * n_sides)
    centre = ca.fmin((ahead / mu) ** 3, 1) * mu
    d, h1, a1, dy, de, ds = step(centre - slack * y - ds * dy, centre - e * v + de * dy)
    t = ca.fmin(1, _BOUNDARY * longest(dy, de, ds))
    z, h, a = z + t * d, h + t * (h1 - h), a + t * (a1 - a)
    y, slack, e = y + t * dy, slack + t * ds, e + t * de
    y_equal = y_equal + ca.if_else(ca.DM(equal.astype(float)), rho * (a - up), 0)
    before, mu = mu, (ca.dot(slack, y) + ca.dot(e, w - y)) / (2 * n_sides)
    running = ca.logic_or(mu > (small or _SMALL) * info[1], (1 - t) * ca.norm_inf(off) > 1e-6)
    # rounding ends it, too, earlier in single precision: there multipliers of no meaning follow, up to the prices
    sound = ca.norm_1(ca.vertcat(z, y, slack, e, y_equal)) < ca.inf
    if small:
        sound = ca.logic_and(sound, ca.logic_or(mu <= _GROWS * before, before > _NEAR * info[1]))
    out = [z, h, a, y, slack, e, y_equal, ca.vertcat(running, info[1])]
    out = [ca.if_else(sound, new, old) for new, old in zip(out, [*given[:7], info * ca.DM([0, 1])], strict=True)]
    return ca.Function(f"{name}_interior_iteration", given, out, {"never_inline": True})
