"""A quadratic program on stages by an augmented Lagrangian whose Newton steps are Riccati recursions.

Limits lower <= C z <= upper have multipliers y and a price w of what is beyond them, |y| <= w: with a finite price no
program is infeasible (exact penalty). With weights rho and t = y + rho C z

    y(z) = clip(max(t - rho upper, 0) + min(t - rho lower, 0), -w, w)

is piecewise linear, and min over z of the augmented Lagrangian is found by Newton's method with an exact line search;
then y = y(z). Steps keep the dynamics. The factorisation is made again where the set of active limits changes, and only
there: warm-started, one or two do. Sources: Bambade et al., "ProxQP", RSS 2022; Hermans et al., "QPALM", Mathematical
Programming Computation 2022; Li et al. on semismooth Newton augmented Lagrangians, SIAM J. Optimization 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..types import Array
from .interior import Sides, interior
from .riccati import Sweeps
from .stage_program import StageProgram, stage_ends

STIFFNESS, OF_EQUATIONS = 1e2, 1e2  # weights of limits over the Hessian; of equations over those
_NOTHING = 1e-6  # scale of prices at least: below it an objective is damping, and no more
_LINEAR = 1e-4  # of the gradient: what curvature counts for at least where weights are multiples of it
_LEAST = 1.0  # square of the entries of a row below which its weight does not grow
_EPS = 1e-10  # what is added to the diagonal of S, over the Hessian
_LENGTHS, _TOGETHER = 32, 4  # tries of the line search at most, and until it looks whether it has ended
_FAR = 1e4  # length of a first step, over the unknowns, that has it looked at
_SLOW, _HARDER = 0.25, 10.0  # ratio of a gap to the one before from which on weights grow, and by how much
_LONG = 500.0  # length of a step from which on what limits may be exceeded by does not grow with it
_STILL = 1e-6  # length of a step over the unknowns that is no more than rounding in single precision
_NEVER = 1e30  # price of what does not give way: beyond all multipliers, and a number, in single precision too
_GAVE = 0.3  # of its price: a multiplier of the program before this one, whose limit has given way
DEFAULTS = {"max_iter": 40, "tol": 1e-9, "early": 8, "interior": 20}
# what single precision can reach; hardest: weights over what they begin with, beyond which rounding is all there is;
# small: of the interior-point method, whose multipliers are rounding of high prices from there on
OF_FLOATS = {
    "tol": 1e-5, "exact": 1e-7, "eps": 1e-8, "eps_linear": 5e-9, "linear": 1e-2, "hardest": 10.0, "small": 1e-5,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class StageQp:
    """Functions of a quadratic program.

    prepare: (J, H, g, lam) -> (prepared (k,), scale): its stages, factorised with the limits active that multipliers
    lam tell of; prices are multiples of the scale. solve: (prepared, g, lower, upper, lam) -> (dz, lam, error, beyond,
    factorisations, iterations), with bounds of [unknowns; rows] and multipliers of both. error: what is left of the
    equations of limits, beyond: the largest violation of one.
    """

    prepare: ca.Function
    solve: ca.Function


def stage_qp(name: str, program: StageProgram, J: Any, H: Any, price: Array, equal: Array, options: Any) -> StageQp:
    """StageQp. J, H: sparsities. price, equal: of all limits, see StageProgram."""
    return _Builder(name, program, J, H, price, equal, {**DEFAULTS, **options}).made()


def curvature_of(H: Any) -> Any:
    """Largest entry of the diagonal."""
    return ca.fmax(ca.mmax(ca.fabs(ca.diag(H))), 1e-12)


def scale_of(H: Any, g: Any) -> Any:
    """What prices of limits are multiples of: it grows with the objective."""
    return ca.fmax(ca.fmax(curvature_of(H), ca.norm_inf(g)), _NOTHING)


class _Builder:
    def __init__(self, name: str, program: StageProgram, J: Any, H: Any, price: Any, equal: Any, options: Any) -> None:
        self.name, self.program, self.J, self.H = name, program, J, H
        self.sweeps, self.equal, self.options = Sweeps(program), equal, options
        self.price = ca.DM(np.where(np.isinf(price), 0, price))
        self.never = ca.sparsify(ca.DM(np.where(np.isinf(price), _NEVER, 0.0)))
        self.equations = ca.DM(np.array(equal, float))
        self.sides = Sides(program.above, program.below, equal)
        self.n, self.m = H.size1(), J.size1()
        s = self.sweeps
        # what is prepared: entries of J and H, weights of limits, those that are in the factor, the factor
        self.entries = [sum(r.J.size for r in s.runs), sum(r.H.size for r in s.runs)]
        self.sizes = [*self.entries, s.n_limits, s.n_limits, s.n_factor, 1, s.n_limits]

    def made(self) -> StageQp:
        J, H = ca.MX.sym("J", self.J), ca.MX.sym("H", self.H)
        return StageQp(self._prepare(J, H), self._solve())

    def _blocks(self, prepared: Any) -> list[Any]:
        """[J of every run, H of every run, rho, D, factor, eps, prices]."""
        j, h, *rest = ca.vertsplit(prepared, stage_ends(self.sizes))
        return [self._runs(j, "J"), self._runs(h, "H"), *rest]

    def _runs(self, column: Any, which: str) -> list[Any]:
        places = [getattr(r, which) for r in self.sweeps.runs]
        parts = ca.vertsplit(column, stage_ends([p.size for p in places]))
        return [ca.reshape(x, *p.shape) for x, p in zip(parts, places, strict=True)]

    def _prepare(self, J: Any, H: Any) -> ca.Function:
        s, g, lam = self.sweeps, ca.MX.sym("g", self.n), ca.MX.sym("lam", self.n + self.m)
        j = ca.vertcat(ca.MX(0, 1), *(J.nz[r.J.ravel(order="F").tolist()] for r in s.runs if r.J.size))
        h = ca.vertcat(ca.MX(0, 1), *(H.nz[r.H.ravel(order="F").tolist()] for r in s.runs if r.H.size))
        own, second = self._runs(j, "J"), self._runs(h, "H")
        most = scale_of(H, g)
        scale = ca.fmax(curvature_of(H), self.options.get("linear", _LINEAR) * most)
        stiffness = STIFFNESS * np.where(self.equal, OF_EQUATIONS, 1.0)
        rho = scale * ca.DM(stiffness) / ca.fmax(s.norms(own), _LEAST)
        eps = self.options.get("eps", _EPS) * scale
        if "eps_linear" in self.options:  # where there is no curvature it decides, and more of it distorts nothing
            eps = ca.fmax(eps, self.options["eps_linear"] * most)
        price = most * self.price + self.never if self.never.nnz() else most * self.price
        y = self._begun(lam, price)
        D = rho * ca.logic_or(self.equations, ca.logic_and(y != 0, ca.fabs(y) < price))
        prepared = ca.vertcat(j, h, rho, D, s.factor(own, second, D, eps), eps, price)
        return ca.Function(f"{self.name}_prepare", [J, H, g, lam], [prepared, most], {"never_inline": True})

    def _solve(self) -> ca.Function:
        s, program = self.sweeps, self.program
        prepared = ca.MX.sym("prepared", sum(self.sizes))
        g, lam = ca.MX.sym("g", self.n), ca.MX.sym("lam", self.n + self.m)
        lower, upper = ca.MX.sym("lower", self.n + self.m), ca.MX.sym("upper", self.n + self.m)
        J, H, rho, D, factor, _, price = self._blocks(prepared)
        limits = program.limits.tolist()
        low, up, y = lower[limits], upper[limits], self._begun(lam, price)
        c = lower[(self.n + program.dynamics).tolist()]
        x = lower[program.fixed.tolist()] / program.coefficients if program.fixed.size else ca.MX(0, 1)
        zero = ca.MX.zeros(sum(len(r.signature.controls) * r.count for r in s.runs))
        z = s.forward(J, factor, zero, c, x)
        h, a = s.times(J, H, z, g)
        end = ca.if_else(ca.logic_or(y > 0, self.equations), up, low)
        yp = y + D * ca.if_else(D > 0, a - end, 0)
        never = ca.MX.ones(s.n_limits) * ca.inf
        state = [z, y, h, a, yp, D, D, factor, rho, never, ca.vertcat(1, ca.inf, 1, 0)]
        data = [prepared, g, low, up]
        state = self._iteration("first", True).call([*state, *data])
        state = self._iterated(state, data, int(self.options["max_iter"]) - 1)
        z, y, h, a, yp, *_, ended = state
        residual = s.adjoint(J, s.transposed(J, h, y))
        beyond = ca.mmax(ca.vertcat(0, low - a, a - up))
        out = [z, self._multipliers(y, residual), ended[1], beyond, ended[2], ended[3]]
        return ca.Function(f"{self.name}_solve", [prepared, g, lower, upper, lam], out, {"never_inline": True})

    def _begun(self, lam: Any, price: Any) -> Any:
        """Multipliers of limits to start from: what has given way does so at the price of today."""
        y = lam[self.program.limits.tolist()]
        return ca.if_else(ca.fabs(y) > _GAVE * price, price * ca.sign(y), y)

    def _iterated(self, state: list[Any], data: list[Any], left: int) -> list[Any]:
        """State after `left` iterations; after the first ones it goes on from where an interior-point method ends."""
        further, size = self._iteration("further", False), 1
        shapes = [ca.MX.sym(f"s{k}", y.numel()) for k, y in enumerate([*state, *data])]
        idle = ca.Function(f"{self.name}_idle", shapes, shapes[: len(state)], {"never_inline": True})
        early = min(left, int(self.options["early"]))
        for count, inside in ((early, False), (left - early, True)):
            if inside and count and self.sides.size:
                again = self._inside()
                state = ca.Function.if_else(f"{self.name}_inside_or_not", again, idle).call(
                    [state[-1][0], *state, *data]
                )
            while count > 0:
                size = min(size, count)
                block = self._repeated(further, size, idle)
                name = f"{self.name}_more{count}_{inside}"
                state = ca.Function.if_else(name, block, idle).call([state[-1][0], *state, *data])
                count, size = count - size, 2 * size
            size = 1
        return state

    def _inside(self) -> ca.Function:
        """(*state, *data) -> state, by an interior-point method."""
        s = self.sweeps
        given = self._symbols()
        z, y, h, a, _, _, _, factor, _, _, ended, prepared, g, low, up = given
        inside = interior(self.name, s, self._blocks, self.sides, self.equal, sum(self.sizes), self.options)
        z, y, h, a = inside.call([z, y, h, a, prepared, g, low, up])
        _, _, rho, _, _, _, price = self._blocks(prepared)
        limits = rho, low, up, price, self.equations
        y = s.shrink(y, a, *limits)[0]
        yp, D = s.shrink(y, a, *limits)
        never = ca.MX.ones(s.n_limits) * ca.inf
        state = [z, y, h, a, yp, D, ca.MX.zeros(s.n_limits) - 1, factor, rho, never, ended]
        return ca.Function(f"{self.name}_inside", given, state, {"never_inline": True})

    def _repeated(self, further: ca.Function, size: int, idle: ca.Function) -> ca.Function:
        """`size` iterations, of which those after the end do nothing."""
        inputs = [ca.MX.sym(f"i{k}", further.size1_in(k)) for k in range(further.n_in())]
        state, data = inputs[:-4], inputs[-4:]
        one = ca.Function.if_else(f"{self.name}_one", further, idle)
        for k in range(size):
            state = further.call([*state, *data]) if k == 0 else one.call([state[-1][0], *state, *data])
        return ca.Function(f"{self.name}_block{size}", inputs, state, {"never_inline": True})

    def _multipliers(self, y: Any, residual: Any) -> Any:
        """Multipliers of [unknowns; rows]."""
        program, total = self.program, self.n + self.m
        behind = np.concatenate(
            [np.zeros(0, int), *(a + np.arange(k) for a, k in zip(program.first[1:], self._next_sizes(), strict=False))]
        )
        values = [y, -residual[behind.tolist()]]
        places = [program.limits, self.n + program.dynamics]
        if program.fixed.size:
            states = list(self.sweeps.runs[0].signature.states)
            values.append(-residual[states] / program.coefficients)
            places.append(program.fixed)
        order = np.full(total, sum(p.size for p in places))
        order[np.concatenate(places)] = np.arange(order[0])
        return ca.vertcat(*values, 0)[order.tolist()]

    def _next_sizes(self) -> list[int]:
        return [r.signature.n_next for r in self.sweeps.runs for _ in range(r.count)]

    def _iteration(self, name: str, first: bool) -> ca.Function:
        """(z, y, h, a, y(z), D, D of the factor, factor, rho, gaps of the limits, [running, error, factorisations,
        iterations], prepared, g, lower, upper) -> all but the last four after a Newton step."""
        s, inputs = self.sweeps, self._symbols()
        z, y, h, a, yp, D, of_factor, factor, rho, gaps, ended, prepared, g, low, up = inputs
        J, H, begun, _, _, eps, price = self._blocks(prepared)
        limits = rho, low, up, price, self.equations
        count = ended[2]
        if not first:
            changed = ca.norm_1(D - of_factor) > 0
            factor, count = self._refactor().call([changed, D, factor, prepared])[0], count + changed
        r = s.transposed(J, h, yp)
        nothing = ca.MX.zeros(s.n_next), ca.MX.zeros(self.program.fixed.size)
        d = s.forward(J, factor, s.backward(J, factor, r), *nothing)
        h1, a1 = s.times(J, H, z + d, g)
        y1, da = s.shrink(y, a1, *limits)[0], a1 - a
        # of the first step the limits that are active were a guess, which is good unless it leads far away
        at = s.shrink(y, a, *limits)[0] if first else yp
        before, after = ca.dot(h, d) + ca.dot(at, da), ca.dot(h1, d) + ca.dot(y1, da)
        length = ca.norm_inf(d)
        whole = ca.logic_or(after <= -1e-4 * before, length <= 1e-7 * (1 + ca.norm_inf(z)))
        if first:
            whole = ca.logic_or(whole, length <= _FAR * (1 + ca.norm_inf(z)))
        t = self._search().call([whole, y, a, da, *limits[:4], ca.dot(h, d), ca.dot(h1, d)])[0]
        step, h1, a1 = z + t * d, h + t * (h1 - h), a + t * da
        y1, D1 = s.shrink(y, a1, *limits)
        off = ca.norm_inf((y1 - (yp + D * (a1 - a))) / rho)
        exact = off <= self.options.get("exact", 1e-10) * (1 + ca.norm_inf(a1))
        exact = ca.logic_and(whole, ca.logic_or(ca.norm_1(D1 - D) == 0, exact))
        now = ca.fabs(y1 - y) / rho
        error = ca.if_else(exact, ca.norm_inf(now), ca.inf)
        size = ca.fmin(1 + ca.norm_inf(step), _LONG)
        left = ca.fmax(error / size, 0.1 * eps * length / (1 + ca.norm_inf(g)))
        # where rounding holds gaps open, as in single precision, steps end before they close
        still = ca.logic_and(length <= _STILL * (1 + ca.norm_inf(z)), error > _SLOW * ca.norm_inf(gaps))
        running = ca.logic_and(left > self.options["tol"], ca.logic_not(ca.logic_and(exact, still)))
        # where gaps hardly close, the multiplier is far from what it has to be
        slow = ca.logic_and(ca.logic_and(exact, running), now > _SLOW * gaps)
        if "hardest" in self.options:  # weights that are harder leave nothing of the rest to rounding
            slow = ca.logic_and(slow, rho < self.options["hardest"] * begun)
        rho = ca.if_else(slow, _HARDER * rho, rho)
        y, gaps = ca.if_else(exact, y1, y), ca.if_else(exact, now, gaps)
        y2, D2 = s.shrink(y, a1, rho, *limits[1:])
        state = [step, y, h1, a1, y2, D2, D, factor, rho, gaps, ca.vertcat(running, error, count, ended[3] + 1)]
        return ca.Function(f"{self.name}_{name}", inputs, state, {"never_inline": True})

    def _symbols(self) -> list[Any]:
        """Inputs of an iteration."""
        s = self.sweeps
        m = s.n_limits
        sizes = [s.n, m, s.n, *[m] * 4, s.n_factor, m, m, 4, sum(self.sizes), s.n, m, m]
        return [ca.MX.sym(f"i{k}", size) for k, size in enumerate(sizes)]

    def _refactor(self) -> ca.Function:
        """(D, factor, prepared) -> factor."""
        s = self.sweeps
        D, factor, prepared = (
            ca.MX.sym(k, n) for k, n in (("D", s.n_limits), ("F", s.n_factor), ("p", sum(self.sizes)))
        )
        J, H, _, _, _, eps, _ = self._blocks(prepared)
        again = ca.Function(
            f"{self.name}_factor", [D, factor, prepared], [s.factor(J, H, D, eps)], {"never_inline": True}
        )
        keep = ca.Function(f"{self.name}_keep", [D, factor, prepared], [factor], {"never_inline": True})
        return ca.Function.if_else(f"{self.name}_refactor", again, keep)

    def _search(self) -> ca.Function:
        """(y, a, da, rho, lower, upper, slopes of the smooth part at 0 and 1) -> length where the slope is zero."""
        m = self.sweeps.n_limits
        inputs = [ca.MX.sym(f"i{k}", size) for k, size in enumerate((m, m, m, m, m, m, m, 1, 1))]
        *given, s0, s1 = inputs
        t = ca.MX.sym("t")
        first, second = self.sweeps.slope(t, *given, self.equations)
        slopes = [s0 + t * (s1 - s0) + first, s1 - s0 + second]
        slope = ca.Function(f"{self.name}_slope", [t, *inputs], slopes, {"never_inline": True})
        # left, right, middle, slopes at the first two, whether the slope is still far from zero
        state = [ca.MX(0), ca.MX(1), ca.MX(1), slope(0, *inputs)[0], ca.MX(1), ca.MX(1)]
        some = self._tries(slope, inputs)
        symbols = [ca.MX.sym(f"l{k}") for k in range(6)]
        idle = ca.Function(f"{self.name}_search_idle", [*symbols, *inputs], symbols, {"never_inline": True})
        more = ca.Function.if_else(f"{self.name}_search_more", some, idle)
        for k in range(_LENGTHS // _TOGETHER):
            state = some.call([*state, *inputs]) if k == 0 else more.call([state[-1], *state, *inputs])
        search = ca.Function(f"{self.name}_search", inputs, [state[2]], {"never_inline": True})
        one = ca.Function(f"{self.name}_whole", inputs, [ca.MX(1)], {"never_inline": True})
        return ca.Function.if_else(f"{self.name}_length", one, search)

    def _tries(self, slope: ca.Function, inputs: list[Any]) -> ca.Function:
        """Some tries of the line search: left and right are around the zero of a slope that grows, piece by piece."""
        symbols = [ca.MX.sym(f"l{k}") for k in range(6)]
        left, right, middle, at_left, at_right, _ = symbols
        begun = at_left
        for k in range(_TOGETHER):
            at, curvature = slope(middle, *inputs)
            below = at < 0
            left, at_left = ca.if_else(below, middle, left), ca.if_else(below, at, at_left)
            right, at_right = ca.if_else(below, right, middle), ca.if_else(below, at_right, at)
            trial = middle - at / ca.if_else(curvature > 0, curvature, ca.inf)
            if k == _TOGETHER - 1:
                trial = left - at_left * (right - left) / ca.if_else(at_right > at_left, at_right - at_left, ca.inf)
            inside = ca.logic_and(trial > left, trial < right)
            middle = ca.if_else(at == 0, middle, ca.if_else(inside, trial, (left + right) / 2))
        far = ca.fabs(at) > 1e-9 * ca.fabs(begun)
        out = [left, right, middle, at_left, at_right, far]
        return ca.Function(f"{self.name}_tries", [*symbols, *inputs], out, {"never_inline": True})
