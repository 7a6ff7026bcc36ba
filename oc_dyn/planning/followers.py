"""Joints of robots with loops that follow: their motion, what their limits leave of it, and whether loops close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from ..errors import LimitError, ModelError
from ..function import function
from ..loops.closing import closing
from ..loops.functions import closing_check
from ..loops.joint_motion import joint_motion
from ..model.loops import LoopRobot
from ..types import Array, Indices
from .extremes import intervals, on_grid
from .limits import Limits, limits_of_followers
from .quantities import BY_NAME, KINEMATIC, RATES
from .report import Report, ReportRow, share_of_range, share_of_rate

_SAME = 1e-6  # [rad or m] between dependent coordinates that are reached from home and from the sample before


@dataclass(frozen=True, eq=False)
class Followers:
    """limits: of all joints of a LoopRobot that follow, of one coordinate each; rows: (quantity, number of the joint)
    of those that there are."""

    robot: LoopRobot
    limits: Limits
    rows: tuple[tuple[str, int], ...]

    @property
    def order(self) -> int:
        """Of the highest derivative of q that has a limit."""
        return max(BY_NAME[k].order for k, _ in self.rows)

    def unit(self) -> Array:
        """(rows,) what the rows are measured in: limits, or half the range."""
        out = []
        for k, i in self.rows:
            low, high = (x[i] for x in self.limits.bounds(k))
            half = (high - low) / 2
            out.append(float(self.limits.unit(k)[i]) if k != "q" else half if 0 < half < np.inf else 1.0)
        return np.array(out)

    def bounds(self, margins: Array | None = None) -> tuple[Array, Array]:
        """(lower, upper), each (rows,), over the units; margins (rows,): what shares of the limits may be used."""
        use, ends = np.ones(len(self.rows)) if margins is None else margins, []
        for (k, i), share in zip(self.rows, use, strict=True):
            low, high = (x[i] for x in self.limits.bounds(k))
            if k != "q":
                ends.append((low * share, high * share))
            elif np.isfinite(low) and np.isfinite(high):
                ends.append(((low + high) / 2 - share * (high - low) / 2, (low + high) / 2 + share * (high - low) / 2))
            else:  # with one limit a share is 1 plus what is over it
                ends.append((low + 1 - share, high - 1 + share))
        both = np.array(ends).T / self.unit()
        return both[0], both[1]

    def values(self, motion: Sequence[Any]) -> Any:
        """(rows,) expressions of the limited quantities, from those of [q, v, dv, ...]."""
        _, *jets = joint_motion(self.robot, self.limits.joints, self.order).call(list(motion[: self.order + 1]))
        return ca.vertcat(*(jets[BY_NAME[k].order][i] for k, i in self.rows))

    def at(self, derivatives: Sequence[Array]) -> Array:
        """(K, rows) of the limited quantities from [q, v, dv, ...], each (K, n)."""
        jets = followed(self.robot, self.limits.joints, derivatives, self.order)
        return np.column_stack([jets[BY_NAME[k].order][:, i] for k, i in self.rows])

    def shares(self, values: Array) -> Array:
        """(K, rows) shares of their limits that values (K, rows) use."""
        out = []
        for (k, i), x in zip(self.rows, values.T, strict=True):
            low, high = (np.full(len(x), y[i]) for y in self.limits.bounds(k))
            out.append((share_of_range if k == "q" else share_of_rate)(x, low, high))
        return np.array(out).T

    def refuse(self, where: str, derivatives: Sequence[Array]) -> None:
        """LimitError for a state [q, v, ...], each (n,), that takes a joint which follows out of its limits."""
        known = [x[None] for x in derivatives]
        known += [np.zeros_like(known[0])] * (self.order + 1 - len(known))
        values = self.at(known)[0]
        for (k, i), x, share in zip(self.rows, values, self.shares(values[None])[0], strict=True):
            if share > 1 + 1e-9 and BY_NAME[k].order < len(derivatives):
                low, high = (y[i] for y in self.limits.bounds(k))
                raise LimitError(
                    f"{where}: joint {self.limits.joints[i]!r}, which follows, has {k} = {x:.6g}, outside its limits "
                    f"{low:.6g} to {high:.6g}"
                )


def followers_of(robot: Any, limits: Limits | None) -> Followers | None:
    """Followers of a robot with loops where they have limits: those of `limits`, or the robot's own; else None."""
    if not isinstance(robot, LoopRobot):
        return None
    theirs = limits_of_followers(robot) if limits is None or limits.followers is None else limits.followers
    if theirs is None:
        return None
    unknown = [name for name in theirs.joints if name not in robot.dependent or robot.tree.joint(name).nq != 1]
    if unknown:
        text = f"limits of followers: {unknown[0]!r} is no joint of one coordinate that follows"
        raise ModelError(robot.name, [f"{text}; there are {', '.join(robot.dependent)}"])
    rows = tuple((k, int(i)) for k in KINEMATIC for i in np.flatnonzero(theirs.bounded(k)))
    return Followers(robot, theirs, rows) if rows else None


def followed(robot: LoopRobot, names: Sequence[str], derivatives: Sequence[Array], order: int) -> list[Array]:
    """[q_f, v_f, ...], each (K, names), up to derivative `order`, from [q, v, ...], each (K, n)."""
    found = joint_motion(robot, names, order)(*(ca.DM(x.T) for x in derivatives[: order + 1]))
    found = found if isinstance(found, (tuple, list)) else [found]
    return [np.array(x).T for x in found[1:]]


@dataclass(frozen=True, eq=False)
class FollowerRanges:
    """Ranges (m,) of the joints of a robot with loops that follow, for searches of configurations."""

    robot: LoopRobot
    names: tuple[str, ...]
    lower: Array
    upper: Array

    @classmethod
    def followers(cls, robot: Any) -> FollowerRanges | None:
        """Of those that have a range; None where there are none."""
        limits = limits_of_followers(robot)
        kept = [] if limits is None else np.flatnonzero(limits.bounded("q")).tolist()
        if limits is None or not kept:
            return None
        lower, upper = (x[kept] for x in limits.bounds("q"))
        return cls(robot, tuple(limits.joints[i] for i in kept), lower, upper)

    def at(self, q: Array) -> Array:
        """(K, m) positions at q (K, nq)."""
        return followed(self.robot, self.names, [q], 0)[0]

    def beyond(self, q: Array) -> tuple[Array, Array]:
        """(k,) way back into their ranges of those that are beyond at q (nq,), and its Jacobian (k, nv) by v."""
        x = self.at(q[None])[0]
        back = np.clip(x, self.lower, self.upper) - x
        out = np.flatnonzero(back)
        if not out.size:
            return np.zeros(0), np.zeros((0, self.robot.nv))
        G = np.array(function(self.robot, "loop_closure")(q)[1])
        return back[out], G[self.robot.rows("v", [self.names[i] for i in out])]

    def told(self, q: Array) -> str:
        """The joint that is farthest beyond its range at q, in words."""
        x = self.at(q[None])[0]
        i = int(np.argmax(np.maximum(self.lower - x, x - self.upper)))
        range_ = f"{self.lower[i]:.6g} to {self.upper[i]:.6g}"
        return f"joint {self.names[i]!r}, which follows, is at {x[i]:.6g}, outside {range_}"


def closes(robot: Any, q: Array) -> bool:
    """Whether loops close at q (nq,), assembled as at robot.home; True of robots without loops."""
    if not isinstance(robot, LoopRobot):
        return True
    return all(bool((np.array(x) <= 0).all()) for x in closing_check(robot)[0](q))


def check_closing(where: str, robot: Any, t: Array, q: Array, at: str = "t = {:.4g} s") -> None:
    """ModelError, naming loops and time, where loops of a robot open, or change their mode of assembly, at samples q
    (K, n) of a motion, or between two; t (K,) [s], told as `at`."""
    found = first_open(robot, q)
    if found is not None:
        raise ModelError(robot.name, [f"{where}: {found[1].format(at.format(t[found[0]]))}"])


def check_samples(where: str, robot: Any, t: Array, q: Array, at: str = "t = {:.4g} s") -> None:
    """As check_closing, at the samples alone, for those that are not near each other."""
    found = open_at(robot, q)
    if found is not None:
        raise ModelError(robot.name, [f"{where}: {found[1].format(at.format(t[found[0]]))}"])


def check_closed(where: str, robot: Any, q: Array) -> None:
    """ModelError, which says where, for a single q (n,) at which loops of a robot are open, or in another mode."""
    found = open_at(robot, np.reshape(q, (1, -1)))
    if found is not None:
        loops, closed = found[2:]
        what = "are there in another mode of assembly than at robot.home" if closed else "cannot be closed there"
        raise ModelError(robot.name, [f"{where}: loops {loops} {what}"])


def first_open(robot: Any, q: Array) -> tuple[int, str] | None:
    """(number of the sample of q (K, n), words with a place for the time) where loops open, or change their mode of
    assembly, at samples of a motion or between two; None where all is well, and of robots without loops."""
    found = open_at(robot, q)
    if found is not None:
        return found[:2]
    return _other_branch(robot, q) if isinstance(robot, LoopRobot) and len(q) > 1 else None


def open_at(robot: Any, q: Array) -> tuple[int, str, str, bool] | None:
    """As first_open, at the samples alone, for those that are not near each other; then names of the loops, and whether
    they close, in another mode."""
    if not isinstance(robot, LoopRobot):
        return None
    check, names = closing_check(robot)
    off, mode = (np.array(x) for x in check(ca.DM(q.T)))
    for bad, closed in ((~(off <= 0), False), (~(mode <= 0), True)):
        if bad.any():
            k = int(np.argmax(bad.any(axis=0)))
            loops = ", ".join(n for n, hit in zip(names, bad[:, k], strict=True) if hit)
            what = "change their mode of assembly" if closed else "cannot be closed"
            return k, f"loops {_plain(loops)} {what} at {{}}", loops, closed
    return None


def _plain(text: str) -> str:
    """Text that str.format leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")


def _other_branch(robot: LoopRobot, q: Array) -> tuple[int, str] | None:
    """As first_open, where dependent coordinates of a sample are not those to which the sample before leads."""
    close = closing(robot)
    apart = np.array(close(ca.DM(q.T), robot.home)[0])
    along = np.array(close(ca.DM(q[1:].T), ca.DM(apart[:, :-1]))[0])
    miss = np.abs(along - apart[:, 1:])
    coupled = {n for c in robot.couplings for n in (c.joint, *c.of)}
    for j in robot.tree.joints:
        if j.kind in ("revolute", "continuous") and j.name not in coupled:
            miss[j.q_index] = np.abs(np.sin(miss[j.q_index] / 2)) * 2  # whole turns are the same
    rows = robot.rows("q", robot.dependent)
    bad = ~(miss[rows] <= _SAME)
    if not bad.any():
        return None
    k = int(np.argmax(bad.any(axis=0)))
    owners = [n for n in robot.dependent for _ in range(robot.tree.joint(n).nq)]
    joint = owners[int(np.argmax(bad[:, k]))]
    return k, f"loops change their mode of assembly behind {{}}, at joint {_plain(repr(joint))}"


def check_motion(where: str, motion: Any, dt: float) -> None:
    """ModelError, naming loops and time, where loops of the robot open, or change their mode, along a Trajectory that
    is looked at every dt [s] and closer; of a robot without loops nothing is looked at."""
    if not isinstance(motion.robot, LoopRobot):
        return
    grid = _grid(motion, dt)
    piece = np.repeat(np.arange(len(grid)), grid)
    s = (np.arange(len(piece)) - np.repeat(np.cumsum(grid) - grid, grid)) * (np.diff(motion.t) / grid)[piece]
    last = motion.on_pieces(np.array([len(grid) - 1]), np.diff(motion.t)[-1:])
    samples = motion.on_pieces(piece, s)
    check_closing(where, motion.robot, np.append(samples.t, last.t), np.vstack([samples.q, last.q]))


def with_followers(report: Report, motion: Any, dt: float, limits: Limits | None = None) -> Report:
    """The Report with a row for each limit of a joint that follows, looked at as torques are; of other robots as it is.
    That the loops close is for check_motion to say, before.

    limits: that `followers` are of; default those of the motion, or else of the robot.
    """
    robot = motion.robot
    if not isinstance(robot, LoopRobot) or "followers" in report.shares:
        return report
    found = followers_of(robot, limits or motion.limits)
    if found is None:
        return report
    rows = _rows(found, motion, _grid(motion, dt))
    shares = report.shares | {"followers": np.array([r.share for r in rows])}
    return replace(report, rows=(*report.rows, *rows), shares=shares)


def _grid(motion: Any, dt: float) -> Indices:
    """Numbers of samples in the pieces of a motion."""
    return intervals(motion.t, np.abs(np.diff(motion.q, axis=0)).max(axis=1), dt)


def _rows(found: Followers, motion: Any, grid: Any) -> list[ReportRow]:
    def measured(piece: Indices, s: Array, _: bool) -> dict[str, tuple[Array, Array, Array]]:
        values = found.at(motion.on_pieces(piece, s).derivatives)
        low, high = np.array([[x[i] for x in found.limits.bounds(k)] for k, i in found.rows]).T
        middle = np.where(np.isfinite(low + high), (low + high) / 2, 0.0)
        up = ((values >= middle) & np.isfinite(high)) | ~np.isfinite(low)
        return {"followers": (found.shares(values), values, np.where(up, high, low))}

    worst = on_grid(motion.t, grid, measured)["followers"]
    share = worst.share.copy()
    rough = motion.impulses()
    for r, (k, _) in enumerate(found.rows):
        if any(BY_NAME[x].order <= BY_NAME[k].order for x in rough if x in RATES):
            share[r] = np.inf  # the rate of what jumps
    numbers = zip(share, worst.time, worst.value, worst.limit, strict=True)
    return [
        ReportRow(k, float(x), found.limits.joints[i], float(time), float(value), float(limit))
        for (k, i), (x, time, value, limit) in zip(found.rows, numbers, strict=True)
    ]
