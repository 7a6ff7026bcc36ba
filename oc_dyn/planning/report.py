"""What a motion asks of each limit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._moved import renamed
from ..friction import coulomb, coulomb_bounds, counts
from ..text import terminal
from ..types import Array, Indices
from .clearance import Clearance
from .extremes import Extreme, intervals, of_polynomials, on_grid
from .limits import Limits, velocity_bounds
from .quantities import BY_NAME, DYNAMIC, KINEMATIC, QUANTITIES, order_name


@dataclass(frozen=True)
class ReportRow:
    """The largest share of its limit that a quantity reaches: by which joint, when, value and limit there.

    Without any limit share is 0 and the row tells the largest value. Of the quantity "clearance" `joint` names the pair
    of shapes that comes nearest, `value` [m] is what is certified, `limit` what was asked for; see Clearance.
    """

    quantity: str
    share: float
    joint: str
    time: float
    value: float
    limit: float


@dataclass(frozen=True)
class Violation:
    """A limit exceeded by `amount` (in the quantity's unit), `share` of the limit."""

    joint: str
    quantity: str
    time: float
    amount: float
    limit: float
    share: float

    def __str__(self) -> str:
        what = f"joint {self.joint!r}, {BY_NAME[self.quantity].title}"
        return f"{what} at t = {self.time:.4g} s: {self.amount:.3g} over its limit {self.limit:.6g}"


@dataclass(frozen=True)
class Report:
    """One row per quantity; print it for a table.

    rows: tuple of ReportRow. jumps: {quantity: largest jump at the breakpoints} of q and the derivatives that should be
    continuous. ends: {quantity: largest miss of the start and goal asked for}. shares: {quantity: (n,) per joint}.
    unchecked: limited quantities that only the robot can tell, where it is not at hand; ok() is False then.
    braking: (time [s] until which joints brake that started faster than a limit, their names): their velocities count
    from then on; None where none does. wrapped: {joint: full turns added to its goal} of those that went the short way
    round. clearance: of shapes along the whole motion, where a scene was given.
    """

    rows: tuple[ReportRow, ...]
    jumps: dict[str, float]
    ends: dict[str, float]
    shares: dict[str, Array]
    joints: tuple[str, ...]
    dt: float
    unchecked: tuple[str, ...] = ()
    braking: tuple[float, tuple[str, ...]] | None = None
    wrapped: dict[str, int] = field(default_factory=dict)
    clearance: Clearance | None = None

    @property
    def worst(self) -> float:
        """Largest share of any limit: 1 is on the limit."""
        return max((row.share for row in self.rows), default=0.0)

    def ok(self, tolerance: float = 0.005) -> bool:
        """Whether no limit is exceeded by more than this share of it."""
        return self.worst <= 1 + tolerance and not self.unchecked

    def __str__(self) -> str:
        names = [f"{BY_NAME[r.quantity].title} {r.quantity}" for r in self.rows]
        joints = [terminal(r.joint) for r in self.rows]
        wide, widest = max(map(len, names)), max(5, *map(len, joints))
        lines = [f"{'quantity':{wide}}{'of limit':>10}  {'joint':{widest}}{'time [s]':>10}{'value':>13}{'limit':>13}"]
        for name, joint, r in zip(names, joints, self.rows, strict=True):
            share = f"{100 * r.share:.2f} %" if np.isfinite(r.share) else "infinite"
            share = share if np.isfinite(r.limit) else "no limit"
            limit = f"{r.limit:.6g}" if np.isfinite(r.limit) else "-"
            over = "  over" if r.share > 1.005 else ""
            lines.append(f"{name:{wide}}{share:>10}  {joint:{widest}}{r.time:>10.4f}{r.value:>13.6g}{limit:>13}{over}")
        lines.append("jumps at breakpoints: " + ", ".join(f"{k} {x:.1e}" for k, x in self.jumps.items()))
        if self.ends:
            lines.append("start and goal missed by: " + ", ".join(f"{k} {x:.1e}" for k, x in self.ends.items()))
        if self.braking:
            too_fast = ", ".join(terminal(x) for x in self.braking[1])
            lines.append(f"started faster than a limit: {too_fast}; velocities count from {self.braking[0]:.4g} s on")
        if self.wrapped:
            turns = ", ".join(f"{terminal(k)} ({n:+d} turns)" for k, n in self.wrapped.items())
            lines.append(f"went the short way round: {turns}")
        if self.clearance:
            lines.append(str(self.clearance))
        if self.unchecked:
            lines.append(f"not checked: {', '.join(self.unchecked)}, as the robot is missing; load with robot=...")
        return "\n".join([*lines, f"{self._verdict()} (every {self.dt:g} s, both sides of the breakpoints)"])

    def _verdict(self) -> str:
        over = 100 * (self.worst - 1)
        if self.worst > 1.005:
            return "limits exceeded"
        if over > 1e-4:
            return f"over a limit by {over:.2g} %, 0.5 % is tolerated"
        return "within the other limits" if self.unchecked else "within all limits"


def with_clearance(report: Report, clearance: Clearance) -> Report:
    """The Report with a row of what a certificate says, if the scene has pairs."""
    nearest = clearance.short[0] if clearance.short else clearance.nearest
    if nearest is None:
        return replace(report, clearance=clearance)
    numbers = clearance.share, nearest.name, nearest.time, clearance.certified, clearance.asked
    return replace(report, rows=(*report.rows, ReportRow("clearance", *numbers)), clearance=clearance)


def report(motion: Any, limits: Limits | None, dt: float, unlimited: bool = True) -> Report:
    """Report of a Trajectory or PathMotion against Limits (None: none).

    Polynomials are looked at where they are largest, the rest on a grid: every dt [s], as far as that is some hundred
    thousand samples, several in every piece, on both sides of breakpoints, and closer about the worst. Coulomb friction
    is of either sign where a joint turns round. A quantity is infinite where that which it is the rate of jumps, inside
    the motion: what is before and after it is for `ends` to say. unlimited: whether torques without limits have rows.
    """
    limits = Limits(motion.joints) if limits is None else limits
    found = _exact(motion, limits) if hasattr(motion, "pieces") else {}
    braking = _braking(motion)
    if braking and "v" in found:
        _skip_braking(motion, limits, found, braking)
    moved = np.abs(np.diff(motion.q, axis=0)).max(axis=1)
    steps = intervals(motion.t, moved, dt)
    asked = [k for k in _asked(motion, limits) if unlimited or k not in DYNAMIC or limits.bounded(k).any()]
    rest = [k for k in asked if k not in found]
    seen = on_grid(motion.t, steps, lambda *at: _measured(motion, limits, rest, *at)) if rest else {}
    _add_jumps(motion, limits, {**found, **seen})
    rows, shares = [], {}
    for quantity in asked:
        x = {**found, **seen}[quantity]
        shares[quantity] = x.share
        i = int(np.argmax(x.share if np.isfinite(x.limit).any() or (x.share > 0).any() else np.abs(x.value)))
        numbers = (float(y[i]) for y in (x.time, x.value, x.limit))
        rows.append(ReportRow(quantity, float(x.share[i]), motion.joints[i], *numbers))
    step = max(dt, float((np.diff(motion.t) / steps).max()))
    torque = [k for k in DYNAMIC if limits.bounded(k).any()]
    return Report(
        tuple(rows), motion.jumps(), _ends(motion), shares, motion.joints, step,
        tuple(k for k in torque if k not in shares), braking, _wrapped(motion),
    )  # fmt: skip


def _asked(motion: Any, limits: Limits) -> list[str]:
    """Quantities that a report has rows of."""
    out = [k for k in QUANTITIES if _is_told(k, limits) and (k not in DYNAMIC or motion.robot is not None)]
    return out + ["v_of_q"] * (limits.v_of_q is not None)


def _is_told(quantity: str, limits: Limits | None) -> bool:
    """Whether a quantity has a row and a column though it may have no limit."""
    limited = limits is not None and quantity != "q" and limits.bounded(quantity).any()
    return BY_NAME[quantity].usual or bool(limited)


def _exact(motion: Any, limits: Limits) -> dict[str, Extreme]:
    """{quantity: Extreme} of those that are polynomials."""
    out = {}
    for quantity in KINEMATIC:
        if quantity not in _asked(motion, limits):
            continue
        out[quantity] = _exact_of(motion.t, motion.pieces, limits, quantity)
    return out


def _exact_of(t: Array, pieces: Array, limits: Limits, quantity: str) -> Extreme:
    """The worst of q or a derivative of polynomials."""
    low, at_low, high, at_high = of_polynomials(t, pieces, BY_NAME[quantity].order)
    lower, upper = limits.bounds(quantity)
    limited, share = limits.bounded(quantity), share_of_range if quantity == "q" else share_of_rate
    of_low, of_high = share(low, lower, upper), share(high, lower, upper)
    side = high + low >= 2 * (_middle(lower, upper) if quantity == "q" else 0.0)  # of equal shares, as of a constant
    side = (side & np.isfinite(upper)) | ~np.isfinite(lower)
    up = np.where(limited, np.where(of_high == of_low, side, of_high > of_low), np.abs(high) >= np.abs(low))
    parts = ((of_high, of_low), (high, low), (upper, lower), (at_high, at_low))
    return Extreme(*(np.where(up, a, b) for a, b in parts))


def _braking(motion: Any) -> tuple[float, tuple[str, ...]] | None:
    """Until when joints brake, and their names."""
    told = motion.info.get("braking")
    if not isinstance(told, dict) or not isinstance(told.get("until"), float):
        return None
    joints = told.get("joints")
    return told["until"], tuple(str(x) for x in joints) if isinstance(joints, (list, tuple)) else ()


def _wrapped(motion: Any) -> dict[str, int]:
    """{joint: turns} of those that went the short way round."""
    told = motion.info.get("wrapped")
    return {str(k): n for k, n in told.items() if isinstance(n, int)} if isinstance(told, dict) else {}


def _skip_braking(
    motion: Any, limits: Limits, found: dict[str, Extreme], braking: tuple[float, tuple[str, ...]],
) -> None:  # fmt: skip
    """Replace what is told of velocities of joints that brake by what they are afterwards."""
    k = int(np.argmin(np.abs(motion.t - motion.t[0] - braking[0])))
    if not 0 < k < len(motion.pieces):
        return
    rest = _exact_of(motion.t[k:], motion.pieces[k:], limits, "v")
    braked = np.isin(motion.joints, braking[1])
    for name, x in vars(found["v"]).items():
        setattr(found["v"], name, np.where(braked, getattr(rest, name), x))


def _measured(
    motion: Any, limits: Limits, asked: list[str], piece: Indices, s: Array, in_order: bool,
) -> dict[str, tuple[Array, Array, Array]]:  # fmt: skip
    """{quantity: (share, value, limit)}, each (K, n), at times s after the start of pieces."""
    samples = motion.on_pieces(piece, s)
    braking, out = _braking(motion), {}
    for quantity, value, low, high, share in quantities(samples, limits, asked):
        if quantity == "tau" and counts(motion.robot, motion.friction):
            values = [value + x for x in coulomb_bounds(motion.robot, samples.v, in_order)]
            both = [share_of_rate(x, low, high) for x in values]
            up = both[1] >= both[0]
            value, share = np.where(up, *values[::-1]), np.maximum(*both)
        if quantity == "dtau" and in_order and counts(motion.robot, motion.friction):
            share, value = _at_turns(motion, limits, samples, piece, s, share, value)
        if quantity == "v_of_q" and braking:
            brakes = samples.t[:, None] < motion.t[0] + braking[0] * (1 - 1e-9)
            share = np.where(brakes & np.isin(motion.joints, braking[1]), 0.0, share)
        middle = _middle(low, high) if quantity == "q" else 0.0
        up = ((value >= middle) & np.isfinite(high)) | ~np.isfinite(low)
        out[quantity] = share, value, np.where(up, high, low)
    return out


def _at_turns(
    motion: Any, limits: Limits, samples: Any, piece: Indices, s: Array, share: Array, value: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """Shares and values of dtau, those of samples in front of a turn replaced by what it is there if that is more: the
    smoothed jump of Coulomb friction may be over between two samples."""
    share, value = share.copy(), value.copy()
    for i, *_ in coulomb(motion.robot):
        v = samples.v[:, i]
        k = np.flatnonzero((v[:-1] * v[1:] < 0) & (piece[:-1] == piece[1:]))
        if k.size:
            there = motion.on_pieces(piece[k], s[k] + (s[k + 1] - s[k]) * v[k] / (v[k] - v[k + 1]))
            ((_, x, _, _, of_x),) = quantities(there, limits, ["dtau"])
            more = of_x > share[k]
            share[k], value[k] = np.where(more, of_x, share[k]), np.where(more, x, value[k])
    return share, value


def _add_jumps(motion: Any, limits: Limits, found: dict[str, Extreme]) -> None:
    """Make infinite what is the rate of something that jumps at breakpoints inside the motion."""
    for quantity, (time, joints) in motion.impulses().items():
        if quantity not in found:
            continue
        worst = found[quantity]
        hit, (low, high) = joints & limits.bounded(quantity), limits.bounds(quantity)
        worst.share, worst.value = np.where(hit, np.inf, worst.share), np.where(hit, np.inf, worst.value)
        worst.limit = np.where(hit, np.where(np.isfinite(high), high, low), worst.limit)
        worst.time = np.where(hit, time, worst.time)


def quantities(
    samples: Any,
    limits: Limits | None,
    asked: list[str] | None = None,
) -> list[tuple[str, Array, Array, Array, Array]]:
    """[(quantity, values, lower, upper, share)], arrays (K, n), of what can be limited; v_of_q last if there is one.
    asked: names, if not all."""
    shape = samples.q.shape
    dynamics = samples.robot is not None or samples._torques is not None
    out = []
    for quantity in QUANTITIES:
        if asked is not None and quantity not in asked:
            continue
        if not _is_told(quantity, limits) or (quantity in DYNAMIC and not dynamics):
            continue
        if limits is None:
            low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        else:
            low, high = (np.broadcast_to(x, shape) for x in limits.bounds(quantity))
        value, share = getattr(samples, quantity), share_of_range if quantity == "q" else share_of_rate
        out.append((quantity, value, low, high, share(value, low, high)))
    if limits is not None and limits.v_of_q is not None and (asked is None or "v_of_q" in asked):
        low, high = (np.array(x).T for x in velocity_bounds(limits)(samples.q.T))
        out.append(("v_of_q", samples.v, low, high, _share_at_position(samples.v, limits.unit("v"), low, high)))
    return out


def share_of_rate(value: Array, low: Array, high: Array) -> Array:
    """Share of the limit on its side that a value uses, 0 at 0. What is over a small limit, with a large one on the
    other side, counts as over a tenth of that at least."""
    if np.array_equal(-np.asarray(low), high):
        return share_of_range(value, low, high)
    sizes = np.abs([low, high])
    larger = np.where(np.isfinite(sizes), sizes, 0.0).max(axis=0)
    near = np.where(value >= 0, high, -low)
    over = np.abs(value) - near
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        beyond = 1 + over / np.maximum(near, 0.1 * larger)
        share = np.where(over > 0, beyond, np.where(near > 0, np.abs(value) / near, 0.0))
    return np.where(np.abs(value) <= 1e-9, np.where(near > 0, share, 0.0), share)


def share_of_range(value: Array, low: Array, high: Array) -> Array:
    """Share of a limit used: 1 at a limit, 0 in the middle between two; with one limit, 1 plus what is over it. What is
    over a range of more than 2 counts as over one of 2, so that wide ranges make no light of it."""
    middle = _middle(low, high)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        half = np.where(np.isfinite(low) & np.isfinite(high), (high - low) / 2, np.inf)
        share = np.abs(value - middle) / half
        unequal = np.isfinite(half) & (low != -high)
        share = np.where(unequal & (share > 1), 1 + (np.abs(value - middle) - half) / np.minimum(half, 1.0), share)
        share = np.where(np.abs(value - middle) <= 1e-9 * np.maximum(1.0, np.abs(value)), 0.0, share)  # 0 of 0
        one_sided = np.where(np.isfinite(high), value - high, np.where(np.isfinite(low), low - value, -np.inf))
    only_one = np.isfinite(low) ^ np.isfinite(high)
    return np.where(only_one, np.maximum(1 + one_sided, 0.0), share)


def _share_at_position(v: Array, unit: Array, low: Array, high: Array) -> Array:
    """Share of velocity limits that depend on position; an excess counts by a quarter of the plain limit at least."""
    least = 0.25 * unit
    over = np.maximum(v - high, low - v)
    bound = np.where(v - high >= low - v, high, -low)
    with np.errstate(invalid="ignore", divide="ignore"):
        near = np.where(v >= 0, high, -low)
        inside = np.where(near > 0, np.abs(v) / near, 1.0 * (v != 0))
    return np.where(over > 0, 1 + over / np.maximum(np.abs(bound), least), np.minimum(inside, 1.0))


def _middle(low: Array, high: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(low) & np.isfinite(high), (low + high) / 2, 0.0)


def _ends(trajectory: Any) -> dict[str, float]:
    asked = trajectory.info.get("request")
    if not asked:
        return {}
    out = {}
    for k in range(max(len(asked["start"]), len(asked["goal"]))):
        misses = [0.0]
        for row, side in ((0, "start"), (-1, "goal")):
            if k < len(asked[side]):
                misses.append(float(np.max(np.abs(trajectory.derivatives[k][row] - np.array(asked[side][k])))))
        out[order_name(k)] = max(misses)
    return out


__getattr__ = renamed(__name__, {"Row": "ReportRow"})
