"""Motions of joints within their limits by a method of interior points that knows their structure: joint_blocks.py.

In pieces of length h a limit of the derivative d reads B_d x <= limit h^d. With h = h_0 p^(1 / s), where s is the
highest d that has a limit, the right-hand side, limit h_0^d p^(d / s), is a concave function of p: from rest to rest
motions and times are a convex set, and the least time has no other one near it. Joints share p alone, so that one step
of Newton's method is one of each joint, and an equation for p.

Source: Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2(4), 1992.
"""

from dataclasses import dataclass
from math import factorial

import numpy as np

from .joint_blocks import Factor, stationarity

ITERATIONS = 80
_GAP, _RESIDUAL = 1e-10, 1e-9
_DUAL = 2e-5  # share of the cost that it may be off for derivatives that are not zero
_ROUNDED = 4  # derivative, from which on rounding in a factor counts
_ENOUGH = 1e3  # times these, where rounding lets it not get on
_ROOM = 1.3  # over the limits, to begin with
_MOST = 0.7  # share of p that a step may be
_NEAR = 0.995  # share of the way to a limit that a step may take


@dataclass(frozen=True, eq=False)
class Joints:
    """Numbers of J joints, or of the same ones in several times.

    start (J, k), goal (J, l): q, v, ... that are fixed. lower, upper (J, r + 1): limits of q, v, .... reach (J,): scale
    of the way. weight (J,): of the roughness in the cost. blocks: their Blocks.
    """

    blocks: object
    start: np.ndarray
    goal: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    reach: np.ndarray
    weight: np.ndarray

    def of(self, which):
        """Some of them."""
        return Joints(
            self.blocks, *(getattr(self, k)[which] for k in ("start", "goal", "lower", "upper", "reach", "weight"))
        )


@dataclass(eq=False)
class Found:
    """success (J,). T (J,): times. z (J, m, r + b): unknowns, ends included. widened (J,): share by which limits were
    widened. slope (J,): derivative of the cost by the logarithm of a time that was given. iterations."""

    success: np.ndarray
    T: np.ndarray
    z: np.ndarray
    widened: np.ndarray
    slope: np.ndarray
    iterations: int


def power(joints):
    """The s of p."""
    limited = np.isfinite(joints.lower[:, 1:]) | np.isfinite(joints.upper[:, 1:])
    return 1 + int(np.max(np.flatnonzero(limited.any(axis=0)), initial=0))


class _Rows:
    """Rows of joints in times T (J,): bounds at p = 1, and the motion that meets the ends."""

    def __init__(self, joints, T):
        B, self.joints, self.T = joints.blocks, joints, T
        r = B.r
        unit = (T[:, None] / 2) ** np.arange(r + 1) / joints.reach[:, None]
        low, high = joints.lower.copy(), joints.upper.copy()
        low[:, 0], high[:, 0] = low[:, 0] - joints.start[:, 0], high[:, 0] - joints.start[:, 0]
        keep = B.rows & ~B.fixed
        with np.errstate(invalid="ignore"):
            low, high = ((x * unit)[:, B.order][:, None, :] for x in (low, high))
        self.low, self.high = np.broadcast_to(low, (len(T), *keep.shape)), np.broadcast_to(high, (len(T), *keep.shape))
        self.below, self.above = np.isfinite(self.low) & keep, np.isfinite(self.high) & keep
        self.low, self.high = np.where(self.below, self.low, 0.0), np.where(self.above, self.high, 0.0)
        ends, orders = [], []
        for state in (joints.start, joints.goal):
            j = np.arange(state.shape[1])
            value = state * (T[:, None] / 2) ** j / np.array([factorial(i) for i in j])
            value[:, 0] -= joints.start[:, 0]
            ends.append(value / joints.reach[:, None])
            orders.append(j)
        self.power = power(joints)
        self.ends, self.orders = np.concatenate(ends, axis=1), np.concatenate(orders)

    def motion(self, p):
        """(rows, their first and second derivatives by p) of the motion that meets the ends."""
        basic, e = self.joints.blocks.basic[0], self.orders / self.power
        values = [self.ends * f for f in (p**e, e * p ** (e - 1), e * (e - 1) * p ** (e - 2))]
        return [np.tensordot(v, basic, 1) for v in values]

    def bounds(self, p):
        """{"low", "high": (values, first and second derivatives by p)}."""
        e, p = self.joints.blocks.order / self.power, p[:, :, None]
        powers = [p**e, e * p ** (e - 1), e * (e - 1) * p ** (e - 2)]
        return [[x * f for f in powers] for x in (self.low, self.high)]

    def roomy(self, by_time):
        """(J,) by what the time, or limits of all but q, are to be multiplied so that the motion that meets the ends,
        as these are now, has room to those limits."""
        order, most = self.joints.blocks.order, np.full(len(self.T), 1e-6)
        rho = np.tensordot(self.ends, self.joints.blocks.basic[0], 1)
        for sign, bound, keep in ((1, self.high, self.above), (-1, self.low, self.below)):
            keep = keep & (order > 0) & (bound != 0)
            share = np.where(keep, _ROOM * sign * rho / np.where(keep, sign * bound, 1.0), 0.0)
            most = np.maximum(most, np.max(share.clip(0) ** (1 / order.clip(1) if by_time else 1.0), axis=(1, 2)))
        return most

    def widened(self, p):
        """The same where limits of all but q are multiplied by p."""
        e, p = (self.joints.blocks.order > 0).astype(float), p[:, :, None]
        powers = [np.where(e > 0, p, 1.0), e, 0.0 * e]
        return [[x * f for f in powers] for x in (self.low, self.high)]


class _Iterate:
    """Where the iterations are: p (J, 1), unknowns z (J, m, r + b) that are zero at the ends, their rows y; slacks s
    and multipliers v of the (upper, lower) limits, multipliers w of the (upper, lower) end of p."""

    def __init__(self, rows, cost, border, shared, p, span):
        self.rows, self.cost, self.border, self.shared, self.span = rows, cost, border, shared, span
        B = rows.joints.blocks
        self.idle = np.zeros(p.shape, bool)  # joints that are done with
        self.p, self.z = p, np.zeros((len(p), len(B.rows), B.G.shape[1]))
        self.y = np.zeros(rows.low.shape)
        self.masks = [rows.above, rows.below]
        self.calm = 2 * rows.joints.weight[:, None, None] * B.calm
        self.look()
        least = [np.where(np.abs(x) > 0, 0.02 * np.abs(x), 1e-3) for x in (rows.high, rows.low)]
        self.s = [np.where(k, np.maximum(g, f), 1.0) for k, g, f in zip(self.masks, self.gaps, least, strict=True)]
        self.v, self.w = [np.zeros_like(x) for x in self.s], [np.zeros_like(p)] * 2
        self.count = self.total(sum(k.sum(axis=(1, 2))[:, None] for k in self.masks)) + 2.0 * (border is not None)
        mu = self._first()
        self.v = [np.where(k, mu[:, :, None] / s, 0.0) for k, s in zip(self.masks, self.s, strict=True)]
        self.w = [mu / t for t in self.room] if border else self.w

    def total(self, x):
        """Of all joints where they share p."""
        return np.broadcast_to(x.sum(axis=0, keepdims=True), x.shape) if self.shared else x

    def least(self, x):
        """Of all joints where they share p."""
        return np.broadcast_to(x.min(axis=0, keepdims=True), x.shape) if self.shared else x

    def look(self):
        """Take in p and y."""
        rows, one, time = self.rows, np.ones_like(self.p), self.border == "time"
        self.k = rows.motion(self.p if time else one)
        if not time:
            self.k[1:] = [np.zeros_like(self.y)] * 2
        low, high = rows.widened(self.p) if self.border == "width" else rows.bounds(self.p if time else one)
        self.limits = [high, low]
        self.rho = self.y + self.k[0]
        self.gaps = [high[0] - self.rho, self.rho - low[0]]
        self.room = [self.span[1] - self.p, self.p - self.span[0]]
        e = 1 / rows.power if time else 1.0
        self.costs = [self.cost * e * self.p ** (e - 1), self.cost * e * (e - 1) * self.p ** (e - 2)]

    @property
    def complementarity(self):
        """Sum of slacks times multipliers."""
        inner = sum((s * v * k).sum(axis=(1, 2)) for s, v, k in zip(self.s, self.v, self.masks, strict=True))
        ends = sum(t * w for t, w in zip(self.room, self.w, strict=True)) if self.border else 0.0
        return self.total(inner[:, None]) + ends

    @property
    def residuals(self):
        """Of the limits with their slacks."""
        return [np.where(k, g - s, 0.0) for k, g, s in zip(self.masks, self.gaps, self.s, strict=True)]

    @property
    def dual(self):
        """By how much the cost may be off because its derivatives by unknowns and by p are not zero."""
        q = np.where(self.rows.joints.blocks.rows, self.calm * self.rho + self.v[0] - self.v[1], 0.0)
        off = self.total(stationarity(self.rows.joints.blocks, q, self.z)[:, None])
        if not self.border:
            return off
        (_, up, _), (_, down, _) = self.limits
        slope = self.total(_inner(self.k[1], q) - _inner(up, self.v[0]) + _inner(down, self.v[1]))
        return off + np.abs(self.costs[0] + self.w[0] - self.w[1] + slope) * self.p

    def _first(self):
        """The barrier to begin with: what balances the cost of the time, or is as large as the roughness."""
        if self.border is None:
            return (
                np.maximum(_inner(self.calm * self.rho, self.rho), 1e-3 * self.rows.joints.weight[:, None]) / self.count
            )
        pull = sum(
            sign * _inner(k[1] / s, m) for sign, k, s, m in zip((1, -1), self.limits, self.s, self.masks, strict=True)
        )
        return self.costs[0] / np.maximum(np.abs(self.total(pull)), 1e-300)


def _inner(a, b):
    """(J, 1) sums of products."""
    return np.einsum("jkr,jkr->j", a, np.asarray(b, float))[:, None]


class _Newton:
    """Newton's steps at an iterate, factorised once."""

    def __init__(self, at):
        self.at = at
        self.W = [np.where(k, v / s, 0.0) for k, v, s in zip(at.masks, at.v, at.s, strict=True)]
        M = np.where(at.idle[:, :, None], 1.0 * at.rows.joints.blocks.rows, at.calm + self.W[0] + self.W[1])
        self.factor, self.G, self.M = Factor(at.rows.joints.blocks, M), at.rows.joints.blocks.G, M
        if at.border is None:
            return
        up, down = (x[1] for x in at.limits)
        c = self.W[0] * up + self.W[1] * down
        self.beta = M * at.k[1] - c
        self.z_p = self._refined(self.beta)
        self.y_p = self.z_p @ self.G.T
        q = at.calm * at.rho + at.v[0] - at.v[1]
        bent = at.costs[1] + at.total(
            _inner(at.k[2], q) - _inner(at.v[0], at.limits[0][2]) + _inner(at.v[1], at.limits[1][2])
        )
        S = at.total(
            _inner(M * at.k[1] - 2 * c, at.k[1]) + _inner(self.W[0] * up, up) + _inner(self.W[1] * down, down)
            + _inner(self.beta, self.y_p)
        )  # fmt: skip
        S = S + sum(w / t for w, t in zip(at.w, at.room, strict=True))
        self.S = np.where(S + bent > 0.1 * S, S + bent, S)

    def _refined(self, rows):
        """-K^-1 G^T rows; what rounding leaves of it is taken off once."""
        z = -self.factor.solve(rows)
        if self.at.rows.joints.blocks.r < _ROUNDED:
            return z
        return z - self.factor.solve(rows + self.M * (z @ self.G.T))

    def step(self, barrier, affine=None, share=1.0):
        """{p, z, y, s, v, w}: changes. barrier (J, 1). affine: the step whose second order is to be corrected."""
        at, none = self.at, [0.0, 0.0]
        ds, dv, dt, dw = (affine[k] for k in ("s", "v", "t", "w")) if affine else (none,) * 4
        residuals, free = at.residuals, barrier[:, :, None]
        part = share[:, :, None] if affine else share
        A = [
            np.where(k, (free - part * a * b) / s - W * x, 0.0)
            for k, a, b, s, W, x in zip(at.masks, ds, dv, at.s, self.W, residuals, strict=True)
        ]
        q = at.calm * at.rho + A[0] - A[1]
        z = self._refined(q)
        y, p = z @ self.G.T, np.zeros_like(at.p)
        if at.border:
            (_, up, _), (_, down, _) = at.limits
            ends = [(barrier - share * a * b) / t for a, b, t in zip(dt, dw, at.room, strict=True)]
            slope = at.costs[0] + ends[0] - ends[1]
            slope = slope + at.total(_inner(at.k[1], q) - _inner(up, A[0]) + _inner(down, A[1]) + _inner(self.beta, y))
            p = -slope / self.S
            z, y = z + self.z_p * p[:, :, None], y + self.y_p * p[:, :, None]
        rho = y + at.k[1] * p[:, :, None] if at.border else y
        moved = [x[1] * p[:, :, None] for x in at.limits] if at.border else none
        s = [residuals[0] + moved[0] - rho, residuals[1] + rho - moved[1]]
        v = [
            np.where(k, a - W * (d - x) - old, 0.0)
            for k, a, W, d, x, old in zip(at.masks, A, self.W, s, residuals, at.v, strict=True)
        ]
        t = [-p, p]
        w = [e - old - old / r * d for e, old, r, d in zip(ends, at.w, at.room, t, strict=True)] if at.border else none
        return {"p": p, "z": z, "y": y, "s": s, "v": v, "t": t, "w": w}

    def lengths(self, step, near):
        """Shares (J, 1) of a step in (slacks, multipliers) that keep all of them positive."""
        at, out = self.at, []
        for now, change, ends, of_ends in ((at.s, step["s"], at.room, step["t"]), (at.v, step["v"], at.w, step["w"])):
            most = np.zeros(at.p.shape)
            for k, x, d in zip(at.masks, now, change, strict=True):
                most = np.maximum(most, np.max(np.where(k, -d / np.where(k, x, 1.0), 0.0), axis=(1, 2))[:, None])
            for x, d in zip(ends, of_ends, strict=True) if at.border else ():
                most = np.maximum(most, -d / x)
            out.append(at.least(np.minimum(1.0, near / np.maximum(most, 1e-300))))
        return out


def roomy_time(joints):
    """(J,) times in which smooth motions from rest to rest have room to all limits but those of q."""
    one = np.ones(len(joints.start))
    return _Rows(joints, one).roomy(True)


def solve(
    joints, T, cost=0.0, border=None, shared=False, span=None, within=False, watch=None, gap=_GAP, most=ITERATIONS
):
    """Found for Joints in times T (J,), at the least cost.

    border: None, the roughness alone; "time": cost times the time over T, which is free, and the roughness; "width":
    cost times what limits of all but q are multiplied by, and the roughness. shared: whether the time is one for all.
    span: ends of p, the time over T to the power s, or what limits are multiplied by. within: stay
    within limits, which is slower and surer. watch: called at every iteration. gap: share
    of the cost that it may be off. most: iterations.
    """
    rows = _Rows(joints, T)
    p = np.ones((len(T), 1)) if border == "time" else rows.roomy(False)[:, None]
    at = _Iterate(rows, cost, border, shared, p, (1e-9 * p, 100 * p) if span is None else span)
    scale = cost if border else np.maximum(_inner(at.calm * at.rho, at.rho), 1e-12 * joints.weight[:, None])
    done = success = np.zeros((len(T), 1), bool)
    with np.errstate(all="ignore"):
        for iteration in range(most + 1):
            open_ = at.complementarity
            worst = np.max([np.abs(x).max(axis=(1, 2)) for x in at.residuals], axis=0)[:, None]
            errors = np.maximum(-at.least(-worst) / _RESIDUAL, open_ / (gap * scale))
            still = (errors < _ENOUGH) & (at.dual < _DUAL * scale) if (errors < _ENOUGH).any() else errors < 0
            done = done | ((errors < 1) & still)
            success = done | still
            at.idle = at.idle | done
            if at.idle.all() or iteration == most:
                break
            if watch is not None:
                watch()
            try:
                _iterate(at, open_ / at.count, within)
            except np.linalg.LinAlgError:
                break
    return _found(joints, rows, at, T, success[:, 0], iteration)


def _iterate(at, mu, within):
    """One step of the joints that are not done."""
    newton = _Newton(at)
    affine = newton.step(np.zeros_like(mu))
    lengths = newton.lengths(affine, 1.0)
    sigma = _centring(at, affine, lengths, mu)
    step = newton.step(sigma * mu, affine, lengths[0] * lengths[1])
    primal, dual = newton.lengths(step, _NEAR)
    primal = np.minimum(primal, _MOST / np.maximum(np.abs(step["p"]) / at.p, _MOST))
    sound = np.isfinite(primal) & np.isfinite(dual) & np.isfinite(step["z"]).all(axis=(1, 2))[:, None]
    at.idle = at.idle | (at.least(sound.astype(float)) < 1)  # where rounding lets it not get on
    step = {k: [_still(x, at.idle) for x in v] if isinstance(v, list) else _still(v, at.idle) for k, v in step.items()}
    primal, dual = (_still(x, at.idle) for x in (primal, dual))
    _move(at, step, primal, dual, within)


def _still(x, idle):
    """Zero for joints that are idle."""
    return np.where(idle if np.ndim(x) == 2 else idle[:, :, None], 0.0, x) if np.ndim(x) else x


def _centring(at, step, lengths, mu):
    """Mehrotra's share of the barrier."""
    a, b = (x[:, :, None] for x in lengths)
    inner = sum(
        ((s + a * ds) * (v + b * dv) * k).sum(axis=(1, 2))
        for s, ds, v, dv, k in zip(at.s, step["s"], at.v, step["v"], at.masks, strict=True)
    )
    after = at.total(inner[:, None])
    if at.border:
        after = after + sum((t + lengths[0] * dt) * (w + lengths[1] * dw)
                            for t, dt, w, dw in zip(at.room, step["t"], at.w, step["w"], strict=True))  # fmt: skip
    return np.clip(after / at.count / mu, 0.0, 1.0) ** 3


def _move(at, step, primal, dual, within):
    """Take a step. within: a shorter one where limits bend too much, so that slacks that were right stay so."""
    before, right = (at.p, at.z, at.y), [np.abs(x) <= _RESIDUAL for x in at.residuals]
    for _ in range(10 if within else 1):
        a = primal[:, :, None]
        at.p, at.z, at.y = (x + share * step[k] for x, k, share in zip(before, "pzy", (primal, a, a), strict=True))
        at.look()
        ahead = [s + a * d for s, d in zip(at.s, step["s"], strict=True)]
        least = [np.minimum(x, s) for x, s in zip(ahead, at.s, strict=True)]
        bent = [
            (k & e & (g < (1 - _NEAR) * x)).any(axis=(1, 2))
            for k, e, g, x in zip(at.masks, right, at.gaps, least, strict=True)
        ]
        bent = -at.least(-(bent[0] | bent[1]).astype(float)[:, None]) > 0
        if not (within and bent.any()):
            break
        primal = np.where(bent, primal / 2, primal)
    at.s = [
        np.where(k, np.where(within & e & (g > 0), g, x), 1.0)
        for k, e, g, x in zip(at.masks, right, at.gaps, ahead, strict=True)
    ]
    b = dual[:, :, None]
    at.v = [v + b * d for v, d in zip(at.v, step["v"], strict=True)]
    at.w = [w + dual * d for w, d in zip(at.w, step["w"], strict=True)]


def _found(joints, rows, at, T, success, iterations):
    B = joints.blocks
    time = at.p[:, 0] ** (1 / rows.power) if at.border == "time" else np.ones(len(T))
    basic = np.tensordot(rows.ends * time[:, None] ** rows.orders, B.basic[1], 1)
    q = at.calm * at.rho + at.v[0] - at.v[1]
    (_, bends, _) = rows.motion(np.ones_like(at.p))
    bends = rows.power * bends
    slope = _inner(bends, q) - _inner(B.order * at.limits[0][0], at.v[0]) + _inner(B.order * at.limits[1][0], at.v[1])
    wide = at.p[:, 0] if at.border == "width" else np.ones(len(T))
    return Found(success, T * time, at.z + basic, wide, slope[:, 0], iterations)
