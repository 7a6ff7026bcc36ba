"""Motions of joints within their limits by a method of interior points that knows their structure: joint_blocks.py.

In pieces of length h a limit of the derivative d reads B_d x <= limit h^d. With h = h_0 p^(1 / s), where s is the
highest d that has a limit, the right-hand side, limit h_0^d p^(d / s), is a concave function of p: from rest to rest
motions and times are a convex set, and the least time has no other one near it. Joints share p alone, so that one step
of Newton's method is one of each joint, and an equation for p.

Source: Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2(4), 1992.
"""

from dataclasses import dataclass

import numpy as np

from .joint_blocks import Factor, stationarity
from .joint_rows import SIGN, Joints, Rows, power  # noqa: F401, tests and others take these from here

ITERATIONS = 80
_GAP, _RESIDUAL = 1e-10, 1e-9
_DUAL = 2e-5  # share of the cost that it may be off for derivatives that are not zero
_ENOUGH = 1e3  # times these, where rounding lets it not get on
_STUCK = 12  # iterations with these and derivatives that are not zero: rounding lets it not get there
_MOST = 0.7  # share of p that a step may be
_NEAR = 0.995  # share of the way to a limit that a step may take


@dataclass(eq=False)
class Found:
    """success (J,). T (J,): times. z (J, m, r + b): unknowns, ends included. widened (J,): share by which limits were
    widened. slope (J,): derivative of the cost by the logarithm of a time that was given. off (J,): by how much rows
    are off their limits at most. iterations."""

    success: np.ndarray
    T: np.ndarray
    z: np.ndarray
    widened: np.ndarray
    slope: np.ndarray
    off: np.ndarray
    iterations: int


class _Iterate:
    """Where the iterations are: p (J, 1), unknowns z (J, m, r + b) that are zero at the ends, their rows y; slacks s
    and multipliers v (2, J, m, R) of the (upper, lower) limits, 1 and 0 where there is none; multipliers w of the
    (upper, lower) end of p."""

    def __init__(self, rows, cost, border, shared, p, span):
        self.rows, self.cost, self.border, self.shared, self.span = rows, cost, border, shared, span
        B = rows.joints.blocks
        self.idle = np.zeros(p.shape, bool)  # joints that are done with
        # limits are those at p = 1 times p to these powers
        self.powers = {"time": B.order / rows.power, "width": (B.order > 0) * 1.0}.get(border, 0.0 * B.order)
        self.keep_signed = SIGN * rows.mask
        self.p, self.z = p, np.zeros((len(p), len(B.rows), B.G.shape[1]))
        self.y = np.zeros(rows.limit.shape[1:])
        self.mask, self.keep, self.k, self.s = rows.mask, rows.mask.astype(float), None, 1.0
        self.calm = 2 * rows.joints.weight[:, None, None] * B.calm
        self.look()
        least = np.where(np.abs(rows.limit) > 0, 0.02 * np.abs(rows.limit), 1e-3)
        self.s = np.where(self.mask, np.maximum(self.gaps, least), 1.0)
        self.residuals = self.gaps - self.s * self.keep
        self.w = [np.zeros_like(p)] * 2
        self.count = self.total(self.keep.sum(axis=(0, 2, 3))[:, None]) + 2.0 * (border is not None)
        mu = self._first()
        self.v = self.keep * mu[:, :, None] / self.s
        self.w = [mu / t for t in self.room] if border else self.w

    def total(self, x):
        """Of all joints where they share p."""
        return np.broadcast_to(x.sum(axis=0, keepdims=True), x.shape) if self.shared else x

    def least(self, x):
        """Of all joints where they share p."""
        return np.broadcast_to(x.min(axis=0, keepdims=True), x.shape) if self.shared else x

    def look(self):
        """Take in p and y."""
        rows, time = self.rows, self.border == "time"
        if time or self.k is None:
            self.k = rows.motion(self.p if time else np.ones_like(self.p))
            self.k[1:] *= time
        e, p = self.powers, self.p[:, :, None]
        self.limits = (p**e) * rows.signed
        self.bends = e / p, e * (e - 1) / p**2  # times the limits: their first and second derivatives by p
        self.rho = self.y + self.k[0]
        self.gaps = self.limits - self.keep_signed * self.rho
        self.residuals = self.gaps - self.s * self.keep
        self.room = [self.span[1] - self.p, self.p - self.span[0]]
        e = 1 / rows.power if time else 1.0
        self.costs = [self.cost * e * self.p ** (e - 1), self.cost * e * (e - 1) * self.p ** (e - 2)]

    def kept(self, which, before):
        """(p, z, y, v), of joints that are not in which (J, 1) as they were before."""
        now = self.p, self.z, self.y, self.v
        return now if before is None else [_chosen(which, x, y) for x, y in zip(now, before, strict=True)]

    def restore(self, which, kept):
        """Take joints back to what they were when kept: rounding may lead away from an optimum."""
        if which.any():
            self.p, self.z, self.y, self.v = self.kept(~which, kept)
            self.look()

    @property
    def complementarity(self):
        """Sum of slacks times multipliers."""
        ends = sum(t * w for t, w in zip(self.room, self.w, strict=True)) if self.border else 0.0
        return self.total(_of_sides(self.s, self.v)) + ends

    @property
    def dual(self):
        """By how much the cost may be off because its derivatives by unknowns and by p are not zero."""
        q = np.where(self.rows.joints.blocks.rows, self.calm * self.rho + self.v[0] - self.v[1], 0.0)
        off = self.total(stationarity(self.rows.joints.blocks, q, self.z)[:, None])
        if not self.border:
            return off
        slope = self.total(_inner(self.k[1], q) - _of_sides(self.limits * self.bends[0], self.v))
        return off + np.abs(self.costs[0] + self.w[0] - self.w[1] + slope) * self.p

    def _first(self):
        """The barrier to begin with: what balances the cost of the time, or is as large as the roughness."""
        if self.border is None:
            return (
                np.maximum(_inner(self.calm * self.rho, self.rho), 1e-3 * self.rows.joints.weight[:, None]) / self.count
            )
        pull = _of_sides(self.limits * self.bends[0], 1 / self.s)
        return self.costs[0] / np.maximum(np.abs(self.total(pull)), 1e-300)


def _inner(a, b):
    """(J, 1) sums of products of (J, m, R)."""
    return np.einsum("jkr,jkr->j", a, b)[:, None]


def _of_sides(a, b):
    """(J, 1) sums of products of (2, J, m, R)."""
    return np.einsum("ijkr,ijkr->j", a, b)[:, None]


class _Newton:
    """Newton's steps at an iterate, factorised once."""

    def __init__(self, at):
        self.at = at
        self.W = W = at.v / at.s
        M = at.calm + W[0] + W[1]
        if at.idle.any():
            M = np.where(at.idle[:, :, None], 1.0 * at.rows.joints.blocks.rows, M)
        self.factor, self.M = Factor(at.rows.joints.blocks, M), M
        self.pushed = W * at.residuals  # what slacks have to make up for, times W
        q = at.calm * at.rho - self.pushed[0] + self.pushed[1]
        if at.border is None:
            self.affine = self._refined(q)
            return
        self.up = at.limits * at.bends[0]  # what limits, and in front of them slacks, grow by with p
        ahead = W * self.up
        c = ahead[0] - ahead[1]
        self.beta = M * at.k[1] - c
        (self.z_p, z), (self.y_p, y) = self._refined(np.array([self.beta, q]))
        self.affine = z, y
        q = at.calm * at.rho + at.v[0] - at.v[1]
        pull = (at.limits[0] * at.v[0] + at.limits[1] * at.v[1]) * at.bends[1]
        bent = at.costs[1] + at.total(_inner(at.k[2], q) - pull.sum(axis=(1, 2))[:, None])
        S = at.total(_inner(self.beta - c, at.k[1]) + _of_sides(ahead, self.up) + _inner(self.beta, self.y_p))
        S = S + sum(w / t for w, t in zip(at.w, at.room, strict=True))
        self.S = np.where(S + bent > 0.1 * S, S + bent, S)

    def _refined(self, rows):
        """(z, its rows): -K^-1 G^T rows; what rounding leaves of it is taken off, more often of high orders."""
        B = self.at.rows.joints.blocks
        z = -self.factor.solve(rows)
        y = _rows_of(B, z)
        for _ in range(max(1, 2 * B.r - 7)):
            off = self.factor.solve(rows + self.M * y)
            z, y = z - off, y - _rows_of(B, off)
        return z, y

    def step(self, barrier, affine=None, share=1.0):
        """{p, z, y, s, v, w}: changes. barrier (J, 1). affine: the step whose second order is to be corrected."""
        at, A = self.at, -self.pushed
        if affine is not None:
            A = A + (barrier[:, :, None] * at.keep - share[:, :, None] * affine["s"] * affine["v"]) / at.s
        z, y = self.affine if affine is None else self._refined(at.calm * at.rho + A[0] - A[1])
        p, w = np.zeros_like(at.p), at.w
        if at.border:
            dt, dw = (affine[k] for k in ("t", "w")) if affine else ([0.0, 0.0],) * 2
            ends = [(barrier - share * a * b) / t for a, b, t in zip(dt, dw, at.room, strict=True)]
            q = at.calm * at.rho + A[0] - A[1]
            slope = at.total(_inner(at.k[1], q) - _of_sides(self.up, A) + _inner(self.beta, y))
            p = -(at.costs[0] + ends[0] - ends[1] + slope) / self.S
            z, y = z + self.z_p * p[:, :, None], y + self.y_p * p[:, :, None]
        s = -at.keep_signed * (y + at.k[1] * p[:, :, None] if at.border else y)
        if at.border:
            s += self.up * p[:, :, None]
        v = A - self.W * s - at.v
        t = [-p, p]
        if at.border:
            w = [e - old - old / r * d for e, old, r, d in zip(ends, at.w, at.room, t, strict=True)]
        return {"p": p, "z": z, "y": y, "s": s + at.residuals, "v": v, "t": t, "w": w}

    def lengths(self, step, near):
        """Shares (J, 1) of a step in (slacks, multipliers) that keep all of them positive."""
        at, out = self.at, []
        multipliers = at.v + ~at.mask
        for now, change, ends, of_ends in (
            (at.s, step["s"], at.room, step["t"]),
            (multipliers, step["v"], at.w, step["w"]),
        ):
            most = -np.minimum((change / now).min(axis=(0, 2, 3)), 0.0)[:, None]
            for x, d in zip(ends, of_ends, strict=True) if at.border else ():
                most = np.maximum(most, -d / x)
            out.append(at.least(np.minimum(1.0, near / np.maximum(most, 1e-300))))
        return out


def _rows_of(B, z):
    """(..., m, R) of unknowns (..., m, d)."""
    return (z.reshape(-1, z.shape[-1]) @ B.G.T).reshape(*z.shape[:-1], len(B.G))


def roomy_time(joints):
    """(J,) times in which smooth motions from rest to rest have room to all limits but those of q."""
    one = np.ones(len(joints.start))
    return Rows(joints, one).roomy(True)


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
    rows = Rows(joints, T)
    p = np.ones((len(T), 1)) if border == "time" else rows.roomy(False)[:, None]
    at = _Iterate(rows, cost, border, shared, p, (1e-9 * p, 100 * p) if span is None else span)
    scale = cost if border else np.maximum(_inner(at.calm * at.rho, at.rho), 1e-12 * joints.weight[:, None])
    done = success = np.zeros((len(T), 1), bool)
    stuck = np.zeros((len(T), 1))
    least, kept = np.full((len(T), 1), np.inf), None  # of errors that are small enough, and what had them
    with np.errstate(all="ignore"):
        for iteration in range(most + 1):
            open_ = at.complementarity
            worst = np.abs(at.residuals).max(axis=(0, 2, 3))[:, None]
            errors = np.maximum(-at.least(-worst) / max(_RESIDUAL, 0.1 * gap), open_ / (gap * scale))
            still = (errors < _ENOUGH) & (at.dual < _DUAL * scale) if (errors < _ENOUGH).any() else errors < 0
            done = done | ((errors < 1) & still)
            success = done | still
            better = still & (errors < least)
            if better.any():
                least, kept = np.where(better, errors, least), at.kept(better, kept)
            stuck += (errors < _ENOUGH) & ~still
            at.idle = at.idle | done | (stuck > _STUCK)
            if at.idle.all() or iteration == most:
                break
            if watch is not None:
                watch()
            try:
                _iterate(at, open_ / at.count, within)
            except np.linalg.LinAlgError:
                break
        at.restore(~success & np.isfinite(least), kept)
    return _found(joints, rows, at, T, (success | np.isfinite(least))[:, 0], iteration)


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
    if at.idle.any():
        step = {
            k: [_still(x, at.idle) for x in v] if isinstance(v, list) else _still(v, at.idle) for k, v in step.items()
        }
        primal, dual = (_still(x, at.idle) for x in (primal, dual))
    _move(at, step, primal, dual, within)


def _still(x, idle):
    """Zero for joints that are idle."""
    return _chosen(idle, np.zeros_like(x), x) if np.ndim(x) else x


def _chosen(which, x, y):
    """x for joints in which (J, 1), y for others."""
    return np.where(which if np.ndim(x) == 2 else which[:, :, None], x, y)


def _centring(at, step, lengths, mu):
    """Mehrotra's share of the barrier."""
    a, b = (x[:, :, None] for x in lengths)
    after = at.total(_of_sides(at.s + a * step["s"], at.v + b * step["v"]))
    if at.border:
        after = after + sum((t + lengths[0] * dt) * (w + lengths[1] * dw)
                            for t, dt, w, dw in zip(at.room, step["t"], at.w, step["w"], strict=True))  # fmt: skip
    return np.clip(after / at.count / mu, 0.0, 1.0) ** 3


def _move(at, step, primal, dual, within):
    """Take a step. within: a shorter one where limits bend too much, so that slacks that were right stay so."""
    before, right = (at.p, at.z, at.y), at.mask & (np.abs(at.residuals) <= _RESIDUAL)
    now = at.s
    for _ in range(10 if within else 1):
        a = primal[:, :, None]
        at.p, at.z, at.y = (x + share * step[k] for x, k, share in zip(before, "pzy", (primal, a, a), strict=True))
        at.s = ahead = now + a * step["s"]
        at.look()
        if not within:
            break
        bent = (right & (at.gaps < (1 - _NEAR) * np.minimum(ahead, now))).any(axis=(0, 2, 3))
        bent = -at.least(-bent.astype(float)[:, None]) > 0
        if not bent.any():
            break
        primal = np.where(bent, primal / 2, primal)
    if within:
        at.s = np.where(right & (at.gaps > 0), at.gaps, ahead)
        at.residuals = at.gaps - at.s * at.keep
    at.v = at.v + dual[:, :, None] * step["v"]
    at.w = [w + dual * d for w, d in zip(at.w, step["w"], strict=True)]


def _found(joints, rows, at, T, success, iterations):
    B = joints.blocks
    time = at.p[:, 0] ** (1 / rows.power) if at.border == "time" else np.ones(len(T))
    basic = np.tensordot(rows.ends * time[:, None] ** rows.orders, B.basic[1], 1)
    q = at.calm * at.rho + at.v[0] - at.v[1]
    (_, bends, _) = rows.motion(np.ones_like(at.p))
    bends = rows.power * bends
    slope = _inner(bends, q) - _of_sides(B.order * at.limits, at.v)
    wide = at.p[:, 0] if at.border == "width" else np.ones(len(T))
    off = np.abs(at.residuals).max(axis=(0, 2, 3))
    return Found(success, T * time, at.z + basic, wide, slope[:, 0], off, iterations)
