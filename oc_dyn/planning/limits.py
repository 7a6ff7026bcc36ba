"""Limits of a motion, joint by joint: from the robot, by hand, or from a small text file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import casadi as ca
import numpy as np

from ..errors import FileError, LimitError, ModelError, ModelWarning, ShapeError, UnknownName
from ..files import read_json, write_text
from ..model.loops import LoopRobot
from ..model.robot import Robot, check_robot
from ..numbers import as_floats
from ..text import json_text
from ..types import Array, Numbers, StrPath, VelocityLimits
from .quantities import BOUNDED, DYNAMIC, QUANTITIES, TABLE

_LARGEST = 10_000_000  # bytes of a file of limits


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of n joints; infinite where there is none.

    joints: their names. q: (lower, upper), each (n,) [rad or m], both ends allowed. v, dv, d2v, d3v (n,): largest
    velocity, acceleration, jerk, snap. tau, dtau (n,): largest torque or force [Nm or N] and its rate.
    Each of these may be a pair (lower, upper) with lower <= 0 <= upper, numbers or (n,): dv=(-5, 20); two numbers of
    two joints are a pair where the first is negative. Where the two sides differ the attribute is that pair, else (n,);
    `bounds` gives a pair always.
    v_of_q: None, or a function q -> (lower, upper) of velocities that depend on the position, written so that it
    takes CasADi symbols. Arrays left out are infinite; numbers stand for all joints.
    followers: Limits of the joints of a robot with loops that follow, of q and its derivatives; None: the robot's own.
    """

    joints: tuple[str, ...]
    q: tuple[Any, Any] = (-np.inf, np.inf)
    v: Any = np.inf
    dv: Any = np.inf
    d2v: Any = np.inf
    d3v: Any = np.inf
    tau: Any = np.inf
    dtau: Any = np.inf
    v_of_q: VelocityLimits | None = None
    followers: Limits | None = None

    def __post_init__(self) -> None:
        names = tuple(self.joints)
        object.__setattr__(self, "joints", names)
        if not _is_pair(self.q):
            raise ShapeError("limits: q is a pair (lower, upper)")
        lower, upper = (_row(f"q {end}", x, names) for end, x in zip(("lower", "upper"), self.q, strict=True))
        object.__setattr__(self, "q", (lower, upper))
        for name, a, b in zip(names, lower, upper, strict=True):
            if a > b:
                raise ModelError("limits", [f"joint {name!r}: lower limit {a:g} is above the upper limit {b:g}"])
        for quantity in BOUNDED:
            object.__setattr__(self, quantity, _checked_sides(quantity, getattr(self, quantity), names))
        if self.v_of_q is not None and not callable(self.v_of_q):
            raise ShapeError("limits: v_of_q is a function q -> (lower, upper), or None")
        if self.followers is not None:
            _check_followers(self.followers, names)

    def bounds(self, quantity: str) -> tuple[Array, Array]:
        """(lower, upper), each (n,), of "q", "v", "dv", ..., "tau", "dtau"; infinite where there is no limit."""
        if quantity not in QUANTITIES:
            raise UnknownName("limit", quantity, QUANTITIES)
        value = getattr(self, quantity)
        return value if isinstance(value, tuple) else (-value, value)

    def bounded(self, quantity: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """(n,) whether a quantity has a limit, on one side at least."""
        lower, upper = self.bounds(quantity)
        return cast(Any, np.isfinite(lower) | np.isfinite(upper))

    def larger(self, quantity: str) -> Array:
        """(n,) the larger of the sizes of both limits; infinite where one of them is."""
        return np.maximum(*np.abs(self.bounds(quantity)))

    def smaller(self, quantity: str) -> Array:
        """(n,) the smaller of the sizes of both limits."""
        return np.minimum(*np.abs(self.bounds(quantity)))

    def unit(self, quantity: str) -> Array:
        """(n,) what a quantity is measured in: the larger of its limits that are finite and not 0, else 1."""
        sizes = np.abs(self.bounds(quantity))
        sizes = np.where(np.isfinite(sizes), sizes, 0.0).max(axis=0)
        return np.where(sizes > 0, sizes, 1.0)

    @classmethod
    def of(cls, robot: Robot) -> Limits:
        """What the robot can do: its own limits, joints that follow others included; see Robot.limit. Joints of a robot
        with loops that follow have limits of their own, in `followers`; of torques only what has a drive has limits."""
        check_robot("Limits.of", robot)
        names = robot.coordinate_names if robot.nq == robot.nv else robot.velocity_names
        found: dict[str, Any] = {x.name: robot.limit(x.of_robot) for x in TABLE if x.of_robot}
        if robot.nq == robot.nv:
            found["q"] = (robot.limit("lower"), robot.limit("upper"))
        return cls(names, v_of_q=robot.velocity_limits, followers=limits_of_followers(robot), **found)

    def scaled(self, **factors: Numbers) -> Limits:
        """The limits times a factor each, numbers, or one per joint: scaled(v=0.5, dtau=0.3). Not for q. Those of
        followers are scaled by numbers alone."""
        new: dict[str, Any] = {}
        for quantity, factor in factors.items():
            if quantity not in BOUNDED:
                raise UnknownName("limit to scale", quantity, BOUNDED)
            factor = _row(f"scale of {quantity}", factor, self.joints)
            if not np.all(np.isfinite(factor) & (factor >= 0)):
                raise ShapeError(f"limits: scale of {quantity} is {factor.tolist()}, expected numbers of at least 0")
            with np.errstate(invalid="ignore"):
                new[quantity] = tuple(np.where(np.isfinite(x), x * factor, x) for x in self.bounds(quantity))
            if quantity == "v" and self.v_of_q is not None:
                new["v_of_q"] = _scaled_function(self.v_of_q, factor)
        if self.followers is not None:
            new["followers"] = self.followers.scaled(**{k: x for k, x in factors.items() if np.ndim(x) == 0})
        return replace(self, **new)

    def without(self, *quantities: str) -> Limits:
        """The limits with the named ones lifted: without("tau", "dtau"). Without v, v_of_q is lifted too."""
        new: dict[str, Any] = {}
        for quantity in quantities:
            if not isinstance(quantity, str) or quantity not in (*QUANTITIES, "v_of_q"):
                raise UnknownName("limit to leave out", quantity, (*QUANTITIES, "v_of_q"))
            if quantity == "v_of_q":
                new["v_of_q"] = None
            else:
                new[quantity] = (-np.inf, np.inf) if quantity == "q" else np.inf
            if quantity == "v":
                new["v_of_q"] = None
        if self.followers is not None:
            new["followers"] = self.followers.without(*quantities)
        return replace(self, **new)

    def updated(self, by_joint: Mapping[str, Mapping[str, Any]], robot: Robot | None = None) -> Limits:
        """The limits with some replaced, by joint name: updated({"elbow": {"v": 1.5, "q": (-2, 2), "tau": (-30, 10)}});
        None lifts one, or one end of a pair.

        robot: with it, joints that follow another one (mimic) can be named, too. What they are given binds the joint
        that they follow, besides its own limits: with q' = m q + b, v' within (-1, 3) and m = -2 it is v within
        (-1.5, 0.5); its torque is within m times theirs, see Robot.limit. Joints of a robot with loops that follow can
        be named, too, where these limits, or the robot, tell of them.
        Raises UnknownName for a joint or a quantity that is not there.
        """
        new: dict[str, Any] = {k: np.array(self.bounds(k)) for k in QUANTITIES}  # (2, n)
        if not isinstance(by_joint, dict):
            raise ShapeError(f"limits: got {by_joint!r}, expected {{joint: {{quantity: number}}}}")
        followers, on_loops = {}, self.followers
        if robot is not None:
            check_robot("Limits.updated", robot)
            on_loops = on_loops or limits_of_followers(robot)
            followers = {j.name: (j.v_index, j.mimic.multiplier, j.mimic.offset) for j in robot.mimics if j.mimic}
        of_loops = () if on_loops is None else on_loops.joints
        for joint in by_joint:
            if joint not in (*self.joints, *followers, *of_loops):
                raise UnknownName("joint of these limits", joint, (*self.joints, *followers, *of_loops))
        theirs = {joint: by_joint[joint] for joint in by_joint if joint in of_loops}
        by_joint = {joint: x for joint, x in by_joint.items() if joint not in theirs}
        for joint, entries in sorted(by_joint.items(), key=lambda x: x[0] in followers):  # they narrow what is replaced
            if not isinstance(entries, dict):
                raise ShapeError(f"limits: joint {joint!r} got {entries!r}, expected {{quantity: number}}")
            for quantity, value in entries.items():
                if quantity not in QUANTITIES:
                    raise UnknownName(f"limit of joint {joint!r}", quantity, QUANTITIES)
                ends = _pair(joint, quantity, value)
                if joint in self.joints:
                    new[quantity][:, self.joints.index(joint)] = ends
                else:
                    _bind(new[quantity], quantity, ends, *followers[joint])
        sides: dict[str, Any] = {k: tuple(x) for k, x in new.items()}
        if theirs and on_loops is not None:
            sides["followers"] = on_loops.updated(theirs)
        return replace(self, **sides)

    def assert_within(self, where: str, **values: Numbers) -> None:
        """LimitError, naming joint, value and limit, if a value is not within them: assert_within("start", q=q).

        where: how the message begins. values: any of q, v, dv, d2v, d3v, tau, dtau, each (n,), or a number for all
        joints; a share of 1e-9 of a limit is left to rounding.
        """
        for quantity, value in values.items():
            if quantity not in QUANTITIES:
                raise UnknownName("limit", quantity, QUANTITIES)
            value = _row(f"{where}: {quantity}", value, self.joints)
            for name, x, lower, upper in zip(self.joints, value, *self.bounds(quantity), strict=True):
                slack = 1e-9 * max(1.0, abs(x))
                if not lower - slack <= x <= upper + slack:
                    range_ = f"outside its limits {lower:.6g} to {upper:.6g}"
                    range_ = range_ if quantity == "q" or lower != -upper else f"over its limit {upper:.6g}"
                    raise LimitError(f"{where}: {quantity} of joint {name!r} is {x:.6g}, {range_}")

    def require(self, where: str, **values: Numbers) -> None:
        """Deprecated name of assert_within."""
        warnings.warn("Limits.require is called assert_within now", DeprecationWarning, stacklevel=2)
        self.assert_within(where, **values)

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """{joint: {quantity: number}}, infinite ones left out; q, and what has unequal limits, as [lower, upper], in
        which an end without a limit is None. Joints of `followers` are among them."""
        out: dict[str, dict[str, Any]] = {joint: {} for joint in self.joints}
        for quantity in QUANTITIES:
            for joint, *ends in zip(self.joints, *self.bounds(quantity), strict=True):
                if not np.isfinite(ends).any():
                    continue
                pair = [float(x) if np.isfinite(x) else None for x in ends]
                out[joint][quantity] = pair if quantity == "q" or -ends[0] != ends[1] else pair[1]
        return out if self.followers is None else out | self.followers.as_dict()

    def write(self, path: StrPath) -> None:
        """Write them as text, JSON keyed by joint name; a function v_of_q is not written."""
        lines = [f"  {json_text(k)}: {json_text(v)}" for k, v in self.as_dict().items()]
        write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")

    @classmethod
    def read(cls, path: StrPath, robot: Robot) -> Limits:
        """The robot's limits with those of a text file on top, as `write` makes it: {joint: {quantity: number}}, or
        [lower, upper] for a number.

        Joints that follow another one bind it, see updated. A joint of the file that the robot has not, and a joint of
        the robot that the file has not, are reported by a ModelWarning and left as they are. Raises FileError, naming
        the file, for anything that cannot be read.
        """
        source = os.fspath(path)
        entries = read_json(path, _LARGEST)
        if not isinstance(entries, dict):
            raise FileError(source, ["expected an object {joint: {quantity: number}}"])
        limits = cls.of(robot)
        known = (*limits.joints, *(j.name for j in robot.mimics))
        known += () if limits.followers is None else limits.followers.joints
        unknown = [j for j in entries if j not in known]
        missing = [j for j in limits.joints if j not in entries]
        try:
            limits = limits.updated({j: e for j, e in entries.items() if j in known}, robot)
        except (ValueError, TypeError) as error:
            raise FileError(source, [str(error)]) from None
        reports = [f"joints {robot.name} does not have: {', '.join(unknown)}"] if unknown else []
        reports += [f"no entry for: {', '.join(missing)}; the robot's own limits are kept"] if missing else []
        if reports:
            warnings.warn(f"{source}: {'; '.join(reports)}", ModelWarning, stacklevel=2)
        return limits


def limits_of_followers(robot: Robot) -> Limits | None:
    """Limits of the joints of a robot with loops that follow, those of one coordinate; None where there are none.

    Of q and its derivatives alone, as these joints have no drive; a limit of 0, as files write it then, binds nothing.
    """
    if not isinstance(robot, LoopRobot):
        return None
    tree, names = robot.tree, tuple(n for n in robot.dependent if robot.tree.joint(n).nq == 1)
    if not names:
        return None
    rows = robot.rows("v", names)
    found: dict[str, Any] = {}
    for x in TABLE:
        if x.of_robot and not x.dynamic:
            limit = tree.limit(x.of_robot)[rows]
            found[x.name] = np.where(limit == 0, np.inf, limit)
    at = robot.rows("q", names)
    return Limits(names, q=(tree.limit("lower")[at], tree.limit("upper")[at]), **found)


def _check_followers(followers: Any, own: tuple[str, ...]) -> None:
    if not isinstance(followers, Limits):
        raise ShapeError(f"limits: followers is {type(followers).__name__}, expected Limits, or None")
    both = [name for name in followers.joints if name in own]
    if both:
        raise ShapeError(f"limits: followers has joint {both[0]!r}, which is a joint of these limits itself")
    unfit = [k for k in DYNAMIC if followers.bounded(k).any()]
    if unfit or followers.v_of_q is not None or followers.followers is not None:
        what = unfit[0] if unfit else "v_of_q" if followers.v_of_q is not None else "followers"
        raise ShapeError(f"limits: followers has {what}; joints that follow have limits of q and its derivatives alone")


def _row(what: str, value: Any, names: Sequence[str]) -> Array:
    value = np.array(as_floats(f"limits: {what}", value)).reshape(-1)
    if value.size == 1 and len(names) != 1:
        value = np.full(len(names), value[0])
    if value.size != len(names):
        raise ShapeError(f"limits: {what} has {value.size} values, expected {len(names)}: {', '.join(names)}")
    if np.any(np.isnan(value)):
        raise ShapeError(f"limits: {what} of joint {names[int(np.argmax(np.isnan(value)))]!r} is not a number")
    value.flags.writeable = False
    return value


def _checked_sides(quantity: str, value: Any, names: Sequence[str]) -> Any:
    """(n,) the limit, or (lower, upper) where its sides differ."""
    if not _has_sides(value, len(names)):
        upper = _row(quantity, value, names)
        lower = -upper
    else:
        lower, upper = (_row(f"{quantity} {end}", x, names) for end, x in zip(("lower", "upper"), value, strict=True))
    for name, a, b in zip(names, lower, upper, strict=True):
        if -a == b >= 0 or a <= 0 <= b:
            continue
        problem = f"joint {name!r}: limit {quantity} is {b:g}, expected a number of at least 0"
        if -a != b:
            problem = f"joint {name!r}: limits {quantity} are {a:g} to {b:g}, expected a range that holds 0"
        raise ModelError("limits", [problem])
    if np.array_equal(-lower, upper):
        return upper
    return lower, upper


def _has_sides(value: Any, n: int) -> bool:
    """Whether a limit is a pair (lower, upper), not one per joint."""
    if not _is_pair(value) or (isinstance(value, np.ndarray) and n == 2 and value.shape in ((2,), (2, 1))):
        return isinstance(value, np.ndarray) and n == 2 and value.shape == (2,) and bool(value[0] < 0 <= value[1])
    if any(np.ndim(x) for x in value):
        return not (n == 2 and all(np.size(x) == 1 for x in value))
    try:
        return bool(value[0] < 0 if n == 2 else value[0] <= 0)
    except TypeError:
        return False


def _bind(ends: Array, quantity: str, own: list[float], i: int, multiplier: float, offset: float) -> None:
    """Narrow ends (2, n) of joint i by those of a joint that follows it."""
    if not multiplier or (quantity != "q" and not np.any(own)):  # files write 0 for followers, which have no drive
        return
    shift = offset if quantity == "q" else 0.0
    found = sorted(x * multiplier if quantity in DYNAMIC else (x - shift) / multiplier for x in own)
    ends[0, i], ends[1, i] = max(ends[0, i], found[0]), min(ends[1, i], found[1])


def _number(joint: str, quantity: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ShapeError(f"limits: joint {joint!r}: {quantity} is {value!r}, expected a number")
    return float(as_floats(f"limits: joint {joint!r}: {quantity}", value))


def _is_pair(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.shape[:1] == (2,)
    return isinstance(value, (tuple, list)) and len(value) == 2


def _pair(joint: str, quantity: str, value: Any) -> list[float]:
    """[lower, upper] of a limit as it is given: one number, a pair, None."""
    if quantity != "q" and (value is None or not _is_pair(value)):
        limit = np.inf if value is None else _number(joint, quantity, value)
        return [-limit, limit]
    if not _is_pair(value):
        raise ShapeError(f"limits: joint {joint!r}: q is {value!r}, expected [lower, upper]")
    ends = (-np.inf, np.inf)
    return [end if x is None else _number(joint, quantity, x) for x, end in zip(value, ends, strict=True)]


def velocity_bounds(limits: Limits) -> ca.Function:
    """casadi.Function q -> (lower, upper) of limits.v_of_q; ModelError if it cannot take symbols."""
    n = len(limits.joints)
    q, of_position = ca.SX.sym("q", n), cast(VelocityLimits, limits.v_of_q)
    try:
        lower, upper = (ca.vertcat(*x) if isinstance(x, (tuple, list)) else ca.SX(x) for x in of_position(q))
    except Exception as error:
        problem = f"v_of_q cannot be called with CasADi symbols ({error}); write it with casadi.fmin and the like"
        raise ModelError("limits", [problem]) from error
    if lower.numel() != n or upper.numel() != n:
        raise ShapeError(f"limits: v_of_q gave {lower.numel()} and {upper.numel()} values, expected {n} each")
    return ca.Function("v_of_q", [q], [ca.densify(ca.vec(lower)), ca.densify(ca.vec(upper))])


def _scaled_function(v_of_q: VelocityLimits, factor: Array) -> VelocityLimits:
    def scaled(q: Any) -> tuple[list[Any], list[Any]]:
        lower, upper = v_of_q(q)
        return [f * lower[i] for i, f in enumerate(factor)], [f * upper[i] for i, f in enumerate(factor)]

    return scaled
