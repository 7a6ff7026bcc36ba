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
from ..model.robot import Robot, check_robot
from ..numbers import as_floats
from ..text import json_text
from ..types import Array, Numbers, StrPath, VelocityLimits
from .quantities import BOUNDED, QUANTITIES, TABLE

_LARGEST = 10_000_000  # bytes of a file of limits


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of n joints; infinite where there is none.

    joints: their names. q: (lower, upper), each (n,) [rad or m], both ends allowed. v, dv, d2v, d3v (n,): largest
    velocity, acceleration, jerk, snap. tau, dtau (n,): largest torque or force [Nm or N] and its rate.
    v_of_q: None, or a function q -> (lower, upper) of velocities that depend on the position, written so that it
    takes CasADi symbols. Arrays left out are infinite; numbers stand for all joints.
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
            value = _row(quantity, getattr(self, quantity), names)
            if np.any(value < 0):
                i = int(np.argmin(value))
                problem = f"joint {names[i]!r}: limit {quantity} is {value[i]:g}, expected a number of at least 0"
                raise ModelError("limits", [problem])
            object.__setattr__(self, quantity, value)
        if self.v_of_q is not None and not callable(self.v_of_q):
            raise ShapeError("limits: v_of_q is a function q -> (lower, upper), or None")

    @classmethod
    def of(cls, robot: Robot) -> Limits:
        """What the robot can do: its own limits, joints that follow others included; see Robot.limit."""
        check_robot("Limits.of", robot)
        names = robot.coordinate_names if robot.nq == robot.nv else robot.velocity_names
        found: dict[str, Any] = {x.name: robot.limit(x.of_robot) for x in TABLE if x.of_robot}
        if robot.nq == robot.nv:
            found["q"] = (robot.limit("lower"), robot.limit("upper"))
        return cls(names, v_of_q=robot.velocity_limits, **found)

    def scaled(self, **factors: Numbers) -> Limits:
        """The limits times a factor each, numbers, or one per joint: scaled(v=0.5, dtau=0.3). Not for q."""
        new: dict[str, Any] = {}
        for quantity, factor in factors.items():
            if quantity not in BOUNDED:
                raise UnknownName("limit to scale", quantity, BOUNDED)
            factor = _row(f"scale of {quantity}", factor, self.joints)
            if not np.all(np.isfinite(factor) & (factor >= 0)):
                raise ShapeError(f"limits: scale of {quantity} is {factor.tolist()}, expected numbers of at least 0")
            limit = np.array(getattr(self, quantity))
            finite = np.isfinite(limit)
            limit[finite] *= factor[finite]
            new[quantity] = limit
            if quantity == "v" and self.v_of_q is not None:
                new["v_of_q"] = _scaled_function(self.v_of_q, factor)
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
        return replace(self, **new)

    def updated(self, by_joint: Mapping[str, Mapping[str, Any]]) -> Limits:
        """The limits with some replaced, by joint name: updated({"elbow": {"v": 1.5, "q": (-2, 2)}}); None lifts one.

        Raises UnknownName for a joint or a quantity that is not there.
        """
        new: dict[str, Any] = {k: np.array(getattr(self, k)) for k in QUANTITIES}  # q as (2, n)
        if not isinstance(by_joint, dict):
            raise ShapeError(f"limits: got {by_joint!r}, expected {{joint: {{quantity: number}}}}")
        for joint, entries in by_joint.items():
            if joint not in self.joints:
                raise UnknownName("joint of these limits", joint, self.joints)
            i = self.joints.index(joint)
            if not isinstance(entries, dict):
                raise ShapeError(f"limits: joint {joint!r} got {entries!r}, expected {{quantity: number}}")
            for quantity, value in entries.items():
                if quantity not in QUANTITIES:
                    raise UnknownName(f"limit of joint {joint!r}", quantity, QUANTITIES)
                if quantity == "q":
                    new["q"][:, i] = _pair(joint, value)
                else:
                    new[quantity][i] = np.inf if value is None else _number(joint, quantity, value)
        return replace(self, **{**new, "q": tuple(new["q"])})

    def assert_within(self, where: str, **values: Numbers) -> None:
        """LimitError, naming joint, value and limit, if a value is not within them: assert_within("start", q=q).

        where: how the message begins. values: any of q, v, dv, d2v, d3v, tau, dtau, each (n,), or a number for all
        joints; a share of 1e-9 of a limit is left to rounding.
        """
        for quantity, value in values.items():
            if quantity not in QUANTITIES:
                raise UnknownName("limit", quantity, QUANTITIES)
            value, limit = _row(f"{where}: {quantity}", value, self.joints), getattr(self, quantity)
            ends = limit if quantity == "q" else (-limit, limit)
            for name, x, lower, upper in zip(self.joints, value, *ends, strict=True):
                slack = 1e-9 * max(1.0, abs(x))
                if not lower - slack <= x <= upper + slack:
                    range_ = f"outside its limits {lower:.6g} to {upper:.6g}"
                    range_ = range_ if quantity == "q" else f"over its limit {upper:.6g}"
                    raise LimitError(f"{where}: {quantity} of joint {name!r} is {x:.6g}, {range_}")

    def require(self, where: str, **values: Numbers) -> None:
        """Deprecated name of assert_within."""
        warnings.warn("Limits.require is called assert_within now", DeprecationWarning, stacklevel=2)
        self.assert_within(where, **values)

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """{joint: {quantity: number}}, infinite ones left out; an end of q without a limit is None."""
        out: dict[str, dict[str, Any]] = {}
        for i, joint in enumerate(self.joints):
            lower, upper = self.q[0][i], self.q[1][i]
            entries: dict[str, Any] = {}
            if np.isfinite(lower) or np.isfinite(upper):
                entries["q"] = [float(x) if np.isfinite(x) else None for x in (lower, upper)]
            entries |= {k: float(getattr(self, k)[i]) for k in BOUNDED if np.isfinite(getattr(self, k)[i])}
            out[joint] = entries
        return out

    def write(self, path: StrPath) -> None:
        """Write them as text, JSON keyed by joint name; a function v_of_q is not written."""
        lines = [f"  {json_text(k)}: {json_text(v)}" for k, v in self.as_dict().items()]
        write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")

    @classmethod
    def read(cls, path: StrPath, robot: Robot) -> Limits:
        """The robot's limits with those of a text file on top, as `write` makes it: {joint: {quantity: number}}.

        A joint of the file that the robot has not, and a joint of the robot that the file has not, are reported by
        a ModelWarning and left as they are. Raises FileError, naming the file, for anything that cannot be read.
        """
        source = os.fspath(path)
        entries = read_json(path, _LARGEST)
        if not isinstance(entries, dict):
            raise FileError(source, ["expected an object {joint: {quantity: number}}"])
        limits = cls.of(robot)
        unknown = [j for j in entries if j not in limits.joints]
        missing = [j for j in limits.joints if j not in entries]
        try:
            limits = limits.updated({j: e for j, e in entries.items() if j in limits.joints})
        except (ValueError, TypeError) as error:
            raise FileError(source, [str(error)]) from None
        reports = [f"joints {robot.name} does not have: {', '.join(unknown)}"] if unknown else []
        reports += [f"no entry for: {', '.join(missing)}; the robot's own limits are kept"] if missing else []
        if reports:
            warnings.warn(f"{source}: {'; '.join(reports)}", ModelWarning, stacklevel=2)
        return limits


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


def _number(joint: str, quantity: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ShapeError(f"limits: joint {joint!r}: {quantity} is {value!r}, expected a number")
    return float(as_floats(f"limits: joint {joint!r}: {quantity}", value))


def _is_pair(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.shape[:1] == (2,)
    return isinstance(value, (tuple, list)) and len(value) == 2


def _pair(joint: str, value: Any) -> list[float]:
    if not _is_pair(value):
        raise ShapeError(f"limits: joint {joint!r}: q is {value!r}, expected [lower, upper]")
    ends = (-np.inf, np.inf)
    return [end if x is None else _number(joint, "q", x) for x, end in zip(value, ends, strict=True)]


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
