"""What a motion asks of each limit."""

from dataclasses import dataclass

import numpy as np

from ..text import terminal
from .limits import QUANTITIES, order_name, velocity_bounds

_MEANING = {
    "q": "position",
    "v": "velocity",
    "dv": "acceleration",
    "d2v": "jerk",
    "d3v": "snap",
    "tau": "torque",
    "dtau": "torque rate",
    "v_of_q": "velocity at position",
    "tau_m": "motor torque",
    "dtau_m": "motor torque rate",
    "dtheta": "motor speed",
    "deflection": "spring",
}


@dataclass(frozen=True)
class Row:
    """The largest share of its limit that a quantity reaches: by which joint, when, value and limit there.

    Without any limit share is 0 and the row tells the largest value.
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

    def __str__(self):
        what = f"joint {self.joint!r}, {_MEANING[self.quantity]}"
        return f"{what} at t = {self.time:.4g} s: {self.amount:.3g} over its limit {self.limit:.6g}"


@dataclass(frozen=True)
class Report:
    """One row per quantity; print it for a table.

    rows: tuple of Row. jumps: {quantity: largest jump at the breakpoints} of q and the derivatives that should be
    continuous. ends: {quantity: largest miss of the start and goal asked for}. shares: {quantity: (n,) per joint}.
    """

    rows: tuple
    jumps: dict
    ends: dict
    shares: dict
    joints: tuple
    dt: float

    @property
    def worst(self):
        """Largest share of any limit: 1 is on the limit."""
        return max((row.share for row in self.rows), default=0.0)

    def ok(self, tolerance=0.005):
        """Whether no limit is exceeded by more than this share of it."""
        return self.worst <= 1 + tolerance

    def __str__(self):
        names = [f"{_MEANING[r.quantity]} {r.quantity}" for r in self.rows]
        joints = [terminal(r.joint) for r in self.rows]
        wide, widest = max(map(len, names)), max(5, *map(len, joints))
        lines = [f"{'quantity':{wide}}{'of limit':>10}  {'joint':{widest}}{'time [s]':>10}{'value':>13}{'limit':>13}"]
        for name, joint, r in zip(names, joints, self.rows, strict=True):
            share = f"{100 * r.share:.2f} %" if np.isfinite(r.limit) else "no limit"
            limit = f"{r.limit:.6g}" if np.isfinite(r.limit) else "-"
            over = "  over" if r.share > 1.005 else ""
            lines.append(f"{name:{wide}}{share:>10}  {joint:{widest}}{r.time:>10.4f}{r.value:>13.6g}{limit:>13}{over}")
        lines.append("jumps at breakpoints: " + ", ".join(f"{k} {x:.1e}" for k, x in self.jumps.items()))
        if self.ends:
            lines.append("start and goal missed by: " + ", ".join(f"{k} {x:.1e}" for k, x in self.ends.items()))
        verdict = "within all limits" if self.ok() else "limits exceeded"
        return "\n".join([*lines, f"{verdict} (every {self.dt:g} s, both sides of the breakpoints)"])


def report(trajectory, limits, dt):
    """Report of a Trajectory against Limits (None: none)."""
    samples = trajectory.both_sides(dt)
    rows, shares = [], {}
    for quantity, value, low, high, share in quantities(samples, limits):
        shares[quantity] = share.max(axis=0)
        limited = bool(np.any(np.isfinite(low) | np.isfinite(high)))
        k, i = np.unravel_index(np.argmax(share if limited else np.abs(value)), share.shape)
        upper_side = value[k, i] >= _middle(low, high)[k, i] if np.isfinite(low[k, i]) else True
        bound = high[k, i] if upper_side else low[k, i]
        row = (float(share[k, i]), samples.joints[i], float(samples.t[k]), float(value[k, i]))
        rows.append(Row(quantity, *row, float(bound)))
    return Report(tuple(rows), trajectory.jumps(), _ends(trajectory), shares, samples.joints, dt)


def quantities(samples, limits):
    """[(quantity, values, lower, upper, share)], arrays (K, n), of what can be limited; v_of_q last if there is one."""
    shape = samples.q.shape
    dynamics = samples.robot is not None or samples._torques is not None
    out = []
    for quantity in QUANTITIES:
        if quantity == "d3v" and (limits is None or not np.isfinite(limits.d3v).any()):
            continue
        if quantity in ("tau", "dtau") and not dynamics:
            continue
        if limits is None:
            low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        elif quantity == "q":
            low, high = (np.broadcast_to(x, shape) for x in limits.q)
        else:
            high = np.broadcast_to(getattr(limits, quantity), shape)
            low = -high
        value = getattr(samples, quantity)
        out.append((quantity, value, low, high, _share(value, low, high)))
    if limits is not None and limits.v_of_q is not None:
        low, high = (np.array(x).T for x in velocity_bounds(limits)(samples.q.T))
        out.append(("v_of_q", samples.v, low, high, _share_at_position(samples.v, limits.v, low, high)))
    return out


def _share(value, low, high):
    """Share of a limit used: 1 at a limit, 0 in the middle between two; with one limit, 1 plus what is over it."""
    middle = _middle(low, high)
    with np.errstate(invalid="ignore", divide="ignore"):
        half = np.where(np.isfinite(low) & np.isfinite(high), (high - low) / 2, np.inf)
        share = np.abs(value - middle) / half
        share = np.where(np.abs(value - middle) <= 1e-9 * np.maximum(1.0, np.abs(value)), 0.0, share)  # 0 of 0
        one_sided = np.where(np.isfinite(high), value - high, np.where(np.isfinite(low), low - value, -np.inf))
    only_one = np.isfinite(low) ^ np.isfinite(high)
    return np.where(only_one, np.maximum(1 + one_sided, 0.0), share)


def _share_at_position(v, limit, low, high):
    """Share of velocity limits that depend on position; an excess counts by a quarter of the plain limit at least."""
    least = 0.25 * np.where(np.isfinite(limit) & (limit > 0), limit, 1.0)
    bound = np.where(v >= 0, high, -low)
    over = np.abs(v) - bound
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = np.where(bound > 0, np.abs(v) / bound, 1.0 * (v != 0))
    return np.where(over > 0, 1 + over / np.maximum(bound, least), inside)


def _middle(low, high):
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(low) & np.isfinite(high), (low + high) / 2, 0.0)


def _ends(trajectory):
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
