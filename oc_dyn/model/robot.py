"""The robot: an immutable tree of bodies and joints, in the frames its author wrote.

`assemble` makes it from links and joints in any order: checks the tree, holds locked joints, lumps what is rigidly
fixed, and numbers bodies depth first from the root, children in the order given. Algorithms do not read this
class; they read its canonical form (canonical.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, ModelWarning, ShapeError, UnknownName
from ..lie.so3 import axis_frame
from ..numbers import are_sane, as_floats, shortened
from ..types import Array, Expression, ExpressionLike, Numbers, VelocityLimits
from ..validation import count
from . import canonical_report, describe, parameters
from . import joints as jt
from .cache import cached
from .canonical import CLEAN
from .check import definite_problems, tree_problems
from .collision import Collision
from .fluid import in_fluid
from .inertia import PARAMETERS, Inertia, unphysical
from .quaternions import check_quaternions, check_rotation, normalized, quaternions
from .read_only import ReadOnlyArrays
from .robot_function import RobotFunction

_INF = float("inf")
LIMITS = ("lower", "upper", "velocity", "effort", "acceleration", "jerk", "effort_rate")


@dataclass(frozen=True)
class Mimic:
    """This joint's coordinate is multiplier times that of `joint`, plus offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Joint(ReadOnlyArrays):
    """One joint as described: parent and child link, resting pose in the parent link, axis, limits.

    The child link's frame coincides with the joint's frame at rest. Units: rad or m and their time derivatives,
    Nm or N; a limit that was not given is infinite.
    """

    name: str
    kind: str  # a kind of joints.KINDS, or "fixed"
    parent: str
    child: str
    rotation: Array = field(default_factory=lambda: np.eye(3))
    translation: Array = field(default_factory=lambda: np.zeros(3))
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    pitch: float = 0.0
    lower: float = -_INF
    upper: float = _INF
    velocity: float = _INF
    effort: float = _INF
    acceleration: float = _INF
    jerk: float = _INF
    effort_rate: float = _INF
    armature: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    mimic: Mimic | None = None
    motion: Any = None  # transform joints: casadi.Function q -> (R (3, 3), p (3,)), in the joint's frame
    q_index: int = None  # type: ignore[assignment]  # first coordinate and first velocity, which assemble sets
    v_index: int = None  # type: ignore[assignment]

    @property
    def nq(self) -> int:
        """Number of its coordinates."""
        return self.motion.size1_in(0) if self.kind == "transform" else jt.NQ.get(self.kind, 0)

    @property
    def nv(self) -> int:
        """Number of its velocities."""
        return self.motion.size1_in(0) if self.kind == "transform" else jt.NV.get(self.kind, 0)


@dataclass(frozen=True, eq=False)
class Body(ReadOnlyArrays):
    """A moving body: the link moved by `joint` and all that is fixed to it. Index 1, 2, ...; 0 is the ground."""

    name: str
    index: int
    parent: int
    joint: Joint
    rotation: Array  # resting pose of the joint frame in the parent body's frame
    translation: Array
    inertia: Inertia


@dataclass(frozen=True, eq=False)
class Frame(ReadOnlyArrays):
    """A named frame (every link is one): the body that carries it and its pose in that body's frame."""

    name: str
    body: int
    rotation: Array
    translation: Array


@dataclass(frozen=True, eq=False)
class Robot(ReadOnlyArrays):
    """An immutable kinematic tree. Make it with load_urdf, RobotBuilder or od.robots; print it for a table.

    Sizes: nq coordinates, nv velocities, `bodies` moving bodies. `joints` are those that own coordinates, in
    their order; `mimics` are those that follow another joint.
    """

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    mimics: tuple[Joint, ...]
    frames: MappingProxyType[str, Frame]
    gravity: Array
    nq: int
    nv: int
    root: str
    description: tuple[dict[str, Inertia | None], tuple[Joint, ...], bool, dict[str, Any]]
    # (links, joints, floating_base, lock): what assemble was given
    base_parts: Inertia = field(default_factory=Inertia.zero)  # what is fixed to the ground
    velocity_limits: VelocityLimits | None = None  # q -> (lower, upper), where they depend on the position
    report: tuple[str, ...] = ()  # what reading it noticed and assumed
    snap_angles: float = CLEAN  # rotation entries this close to 0 or 1 are taken as exact by the canonical form
    collisions: tuple[Collision, ...] = ()  # shapes on links, in frames of the links as written; od.Scene.of reads them
    may_touch: tuple[tuple[str, str], ...] = ()  # pairs of links whose shapes the description lets overlap
    folder: str | None = None  # of the file, where relative paths of meshes start; no part of digests
    visuals: tuple[Collision, ...] = ()  # shapes that are only seen, as od.view shows them; no part of digests
    _made: dict[Any, Any] = field(
        default_factory=dict, init=False, repr=False
    )  # canonical form and Functions made of it

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "frames": dict(self.frames), "_made": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, frames=MappingProxyType(state["frames"]))
        self.__post_init__()

    # -- names ------------------------------------------------------------------------------------------------

    def joint(self, name: str) -> Joint:
        """The joint of this exact name; UnknownName lists near ones."""
        for j in self.joints + self.mimics:
            if isinstance(name, str) and j.name == name:
                return j
        raise UnknownName(f"joint of {self.name}", name, [j.name for j in self.joints + self.mimics])

    def frame(self, name: str) -> Frame:
        """The frame of this exact name; UnknownName lists near ones."""
        if not isinstance(name, str) or name not in self.frames:
            raise UnknownName(f"frame of {self.name}", name, self.frames)
        return self.frames[name]

    def body(self, name: str) -> Body:
        """The moving body of this exact name; UnknownName lists near ones."""
        for b in self.bodies:
            if isinstance(name, str) and b.name == name:
                return b
        raise UnknownName(f"moving body of {self.name}", name, [b.name for b in self.bodies])

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the nq coordinates: the joint's, with a suffix where it has several."""
        return tuple(n for j in self.joints for n in _component_names(j.name, j.kind, j.nq, jt.Q_NAMES))

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the nv velocities: the joint's, with a suffix where it has several."""
        return tuple(n for j in self.joints for n in _component_names(j.name, j.kind, j.nv, jt.V_NAMES))

    # -- mass -------------------------------------------------------------------------------------------------

    @property
    def total_mass(self) -> float:
        """Mass [kg] of all moving bodies; what is fixed to the ground does not count."""
        return float(sum(b.inertia.mass for b in self.bodies))

    @property
    def parameters(self) -> Array:
        """(10 bodies,) inertial parameters, body after body: mass, moment xyz, tensor xx xy yy xz yz zz (about the
        body frame's origin). The column order of the regressors."""
        return np.concatenate([b.inertia.parameters for b in self.bodies]) if self.bodies else np.zeros(0)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of `parameters`: "link1.mass", "link1.mx", ..., "link1.Izz"; moments and tensors are about the origin
        of the body's frame and in its axes, as its author wrote it."""
        return tuple(f"{b.name}.{x}" for b in self.bodies for x in PARAMETERS)

    def parameter_values(self, parts: str | Iterable[str] = "symbolic") -> Array:
        """The robot's own values for the port params of a Function with parameters=parts: "symbolic" (the same as
        `parameters`) or some of "inertia", "armature" (nv,) [kg m2, kg], "viscous" (nv,) [Nm s/rad, N s/m]."""
        return parameters.values(self, parameters.checked_parts("parameter_values: parts", parts))

    def parameter_rows(self, parts: str | Iterable[str] = "symbolic") -> tuple[str, ...]:
        """Names of parameter_values(parts): those of `parameter_names`, "joint1.armature", "joint1.viscous"."""
        return parameters.names(self, parameters.checked_parts("parameter_rows: parts", parts))

    @property
    def features(self) -> frozenset[str]:
        """What is special about this robot: kinds of joints, "mimic", "floating", "fluid"."""
        found = {j.kind for j in self.joints + self.mimics}
        if self.mimics:
            found.add("mimic")
        if any(b.parent == 0 and b.joint.kind == "free" for b in self.bodies):
            found.add("floating")
        if in_fluid(self):
            found.add("fluid")
        return frozenset(found)

    # -- limits -----------------------------------------------------------------------------------------------

    def limit(self, kind: str) -> Array:
        """(nv,) limits of one kind: lower, upper, velocity, effort, acceleration, jerk, effort_rate.

        lower and upper belong to the nq coordinates; joints of several coordinates have no limits (infinite).
        Joints that follow another one bind it: with q' = m q + b its range is the part of its own in which q' is within
        the follower's, |m| v keeps the follower's velocity, and so on. A coordinate has one drive, at the joint that
        owns it, and its torque is what the drive gives for all: tau = tau_0 + sum m tau'. A follower passes tau / m on
        at most, so that |tau| keeps |m| times the follower's effort. Files write 0 for velocity and effort of
        followers, which have no drive of their own: that does not bind. `joint(name)` tells what a joint has by itself.
        Raises ModelError where followers leave a joint no range, or stand outside their own.
        """
        if not isinstance(kind, str) or kind not in LIMITS:
            raise UnknownName("kind of limit", kind, LIMITS)
        if kind in ("lower", "upper"):
            return self._range()[LIMITS.index(kind)]
        out = np.array([x for j in self.joints for x in [getattr(j, kind)] * j.nv], float)
        for j, rule in _rules(self.mimics):
            m, own = abs(rule.multiplier), getattr(j, kind)
            if m and own:
                out[j.v_index] = min(out[j.v_index], own * m if kind in ("effort", "effort_rate") else own / m)
        return out

    def _range(self) -> tuple[Array, Array]:
        """(lower, upper), each (nq,), of the coordinates in which followers are within theirs, too."""
        lower, upper = (np.array([x for j in self.joints for x in [getattr(j, k)] * j.nq], float) for k in LIMITS[:2])
        for j, rule in _rules(self.mimics):
            m, b, i = rule.multiplier, rule.offset, j.q_index
            if not m and max(j.lower - b, b - j.upper) > 1e-9 * max(1.0, abs(b)):
                problem = f"joint {j.name!r} is never in range: it follows with multiplier 0 and stands at {b:g}"
                raise ModelError(self.name, [f"{problem}, its range is from {j.lower:g} to {j.upper:g}"])
            if m:
                ends = sorted(((j.lower - b) / m, (j.upper - b) / m))
                lower[i], upper[i] = max(lower[i], ends[0]) + 0.0, min(upper[i], ends[1]) + 0.0  # no -0
        for i in np.flatnonzero(lower > upper):
            if lower[i] - upper[i] <= 1e-9 * max(1.0, abs(lower[i])):  # rounding
                lower[i] = upper[i]
                continue
            followers = ", ".join(repr(j.name) for j in self.mimics if j.q_index == i)
            name = self.coordinate_names[i]
            problem = f"joint {name!r} has no position in which it and what follows it ({followers}) are in range"
            raise ModelError(self.name, [f"{problem}: from {lower[i]:g} to {upper[i]:g}"])
        return lower, upper

    # -- configurations ---------------------------------------------------------------------------------------

    def neutral(self) -> Array:
        """(nq,) configuration without displacement; quaternions are (1, 0, 0, 0)."""
        return np.concatenate([jt.neutral(j.kind, j.nq) for j in self.joints]) if self.joints else np.zeros(0)

    def random_configuration(self, seed: int | np.random.Generator | None = None) -> Array:
        """(nq,) configuration, uniform within the limits, those of followers too (within pi or 1 m without).

        seed: an integer of at least 0, a numpy.random.Generator to draw from, or None for another one at each call.
        """
        if seed is not None and not isinstance(seed, np.random.Generator):
            seed = count("random_configuration: seed", seed, most=None)
        rng = np.random.default_rng(seed)
        lowest, highest = self._range()
        parts: list[Any] = []
        for j in self.joints:
            if j.nq == 1:
                reach = 1.0 if j.kind == "prismatic" else np.pi
                lower, upper = lowest[j.q_index], highest[j.q_index]
                lower = lower if np.isfinite(lower) else min(-reach, upper - reach)
                upper = upper if np.isfinite(upper) else max(reach, lower + reach)
                parts.append([rng.uniform(lower, upper)])
            elif j.kind == "planar":
                parts.append([rng.uniform(-np.pi, np.pi), *rng.uniform(-1, 1, 2)])
            elif j.kind not in jt.QUATERNIONS:
                parts.append(rng.uniform(-1, 1, j.nq))
            else:
                Q = rng.normal(size=4)
                parts.append([*(Q / np.linalg.norm(Q)), *rng.uniform(-1, 1, j.nq - 4)])
        return np.concatenate(parts) if parts else np.zeros(0)

    def normalized(self, q: Numbers) -> Array:
        """q, numbers (nq,) or (nq, N), with quaternions of unit length; ShapeError for those without a direction, zero
        or infinite."""
        q = as_floats("q", q)
        if q.ndim not in (1, 2) or q.shape[0] != self.nq:
            raise ShapeError(f"normalized: q got shape {q.shape}, expected ({self.nq},) or ({self.nq}, N)")
        return normalized(f"normalized({self.name})", quaternions(self), q)

    def integrate(self, q: ExpressionLike, dv: ExpressionLike) -> Expression:
        """(nq,) configuration reached from q (nq,) by the step dv (nv,): joint angles add, bodies follow exp.

        Takes numpy arrays, DM, SX or MX; numbers in give a numpy array, and their quaternions must be of unit length.
        Symbols of another length keep it and are turned as normalised ones.
        """
        _check_one_kind("integrate", q=q, dv=dv)
        return self._by_joint(jt.integrate, self._split_q("q", q), self._split_v("dv", dv))

    def difference(self, q0: ExpressionLike, q1: ExpressionLike) -> Expression:
        """(nv,) the step for which integrate(q0, step) is q1. Takes numpy arrays, DM, SX or MX.

        No step makes a planar joint travel in whole turns, as the arc it runs along closes: ShapeError for numbers that
        are next to it.
        """
        _check_one_kind("difference", q0=q0, q1=q1)
        parts = self._split_q("q0", q0), self._split_q("q1", q1)
        for j, a, b in zip(self.joints, *parts, strict=True):
            if j.kind == "planar" and isinstance(a, ca.DM) and isinstance(b, ca.DM):
                _check_turn(f"difference({self.name}): joint {j.name}", *np.asarray(b - a).ravel())
        return self._by_joint(jt.difference, *parts)

    def configuration_rate(self, q: ExpressionLike, v: ExpressionLike) -> Expression:
        """(nq,) time derivative of q at velocity v (nv,); equal to v but for quaternions and planar positions."""
        _check_one_kind("configuration_rate", q=q, v=v)
        return self._by_joint(jt.rate, self._split_q("q", q), self._split_v("v", v))

    def integrate_function(self) -> RobotFunction:
        """RobotFunction (q (nq,), dv (nv,)) -> q_next (nq,); see integrate. Numbers whose quaternions are of another
        length are for integrate_function().normalizing(), which keeps it."""
        return self._step_function("integrate", self.integrate, ("q", self.nq), ("dv", self.nv), "q_next")

    def difference_function(self) -> RobotFunction:
        """RobotFunction (q0 (nq,), q1 (nq,)) -> dv (nv,); see difference, whose check of planar joints it lacks."""
        return self._step_function("difference", self.difference, ("q0", self.nq), ("q1", self.nq), "dv")

    def _step_function(
        self, name: str, step: Callable[[Any, Any], Any], first: tuple[str, int], second: tuple[str, int], out: str
    ) -> RobotFunction:
        def make() -> RobotFunction:
            x, y = ca.SX.sym(*first), ca.SX.sym(*second)
            names = {"q": self.coordinate_names, "dv": self.velocity_names}
            names |= dict.fromkeys(("q0", "q1"), self.coordinate_names)
            base = ca.Function(name, [x, y], [step(x, y)], [first[0], second[0]], [out])
            return RobotFunction(base, names, rotations=quaternions(self))

        return cached(self, ("step", name), make)  # complete: the name says which of the two it is

    def _split_q(self, name: str, q: ExpressionLike) -> list[Any]:
        q = _column(name, q, self.nq)
        if isinstance(q, ca.DM):
            check_quaternions(f"{self.name}: {name}", quaternions(self), np.asarray(q))
        return [q[j.q_index : j.q_index + j.nq] for j in self.joints]

    def _split_v(self, name: str, v: ExpressionLike) -> list[Any]:
        v = _column(name, v, self.nv)
        return [v[j.v_index : j.v_index + j.nv] for j in self.joints]

    def _by_joint(self, function: Callable[..., Any], first: list[Any], second: list[Any]) -> Expression:
        out = ca.vertcat(
            ca.DM.zeros(0, 1), *(function(j.kind, a, b) for j, a, b in zip(self.joints, first, second, strict=True))
        )
        return out if isinstance(out, (ca.SX, ca.MX)) else np.array(out, float).ravel()

    # -- variants ---------------------------------------------------------------------------------------------

    def locked(self, joints: Mapping[str, Numbers]) -> Robot:
        """The same robot with the named joints held at the given values: {joint: value}. Frames are kept.

        Joints held before stay so, unless they are named again.
        """
        links, raw, floating, held = self.description
        joints = _checked_lock(joints)
        lock = {**held, **joints}
        new = assemble(
            self.name, links, raw, gravity=self.gravity, floating_base=floating, lock=lock, collisions=self.collisions
        )
        again = [repr(name) for name in joints if name in held]
        if again and self.velocity_limits:
            problem = f"{', '.join(again)} is held already, and velocity limits depend on it; start from the free robot"
            raise ModelError(self.name, [problem])
        limits = self.velocity_limits and _held_limits(self, new, joints)
        return replace(new, **{**kept(self), "velocity_limits": limits})

    def with_payload(self, frame: str, inertia: Inertia, name: str = "payload", *, check_inertia: bool = True) -> Robot:
        """The same robot carrying a body: Inertia `inertia`, fixed to the named frame and seen from it, as link `name`.

        without_payload(name) of the result has exactly the parameters of this robot. Where only the numbers change, and
        not the robot, pass the difference of the two `parameters` to a Function with the port params instead.
        Warns (ModelWarning) of an inertia that no body has, and raises ModelError where it makes the mass matrix
        indefinite, unless check_inertia is False.
        """
        frame = self.frame(frame).name
        if not isinstance(inertia, Inertia):
            raise ShapeError(f"payload of {self.name}: got a {type(inertia).__name__}, expected an Inertia")
        if not isinstance(name, str) or not name:
            raise ModelError(self.name, [f"the name of a payload is {name!r}, expected text"])
        links, joints, floating, held = self.description
        if name in links or any(j.name == name for j in joints):
            raise ModelError(self.name, [f"payload {name!r}: there is a link or joint of this name; give another one"])
        weld = Joint(name, "fixed", frame, name)
        new = self._assembled({**links, name: inertia}, (*joints, weld), floating, held)
        why = unphysical(inertia.mass, inertia.tensor_com) if check_inertia else None
        if why:
            problems = definite_problems(new)
            if problems:
                raise ModelError(self.name, problems)
            warnings.warn(f"{self.name}: link {name!r}: {why}", ModelWarning, stacklevel=2)
        return new

    def without_payload(self, name: str = "payload") -> Robot:
        """The same robot without what with_payload(..., name) put on it, exactly as before."""
        links, joints, floating, held = self.description
        welds = [j.name for j in joints if j.kind == "fixed" and j.child == j.name]
        if not isinstance(name, str) or name not in welds:
            raise UnknownName(f"payload of {self.name}", name, welds)
        links = {link: x for link, x in links.items() if link != name}
        return self._assembled(links, [j for j in joints if j.name != name], floating, held)

    def with_frame(
        self, name: str, frame: str, translation: Numbers = (0.0, 0.0, 0.0), rotation: Numbers | None = None,
    ) -> Robot:  # fmt: skip
        """The same robot with one more frame `name`, such as the tip of a tool, fixed to the named one.

        translation (3,) [m], rotation (3, 3): of the new frame in that one; None: its axes are the same.
        """
        frame = self.frame(frame).name
        if not isinstance(name, str) or not name:
            raise ModelError(self.name, [f"the name of a frame is {name!r}, expected text"])
        links, joints, floating, held = self.description
        if name in self.frames or name in links or any(j.name == name for j in joints):
            raise ModelError(self.name, [f"frame {name!r}: there is one of this name; give another one"])
        translation = _vector3("with_frame: translation", translation)
        R = np.eye(3) if rotation is None else np.array(as_floats("with_frame: rotation", rotation))
        check_rotation("with_frame: rotation", R)
        weld = Joint(name, "fixed", frame, name, R, translation)
        return self._assembled({**links, name: None}, (*joints, weld), floating, held)

    def _assembled(
        self, links: dict[str, Inertia | None], joints: Iterable[Joint], floating: bool, held: dict[str, Any]
    ) -> Robot:
        shapes = [x for x in self.collisions if x.link in links]
        new = assemble(
            self.name, links, joints, gravity=self.gravity, floating_base=floating, lock=held, collisions=shapes
        )
        return replace(new, **kept(self))

    def with_gravity(self, gravity: Numbers) -> Robot:
        """The same robot under another gravity vector (3,) [m/s^2], in the root frame."""
        return replace(self, gravity=_vector3("gravity", gravity))

    def with_snapped_angles(self, tolerance: float = 1e-5) -> Robot:
        """The same robot, rotation entries within `tolerance` of 0 or 1 taken as exact: for files that write 1.5708 for
        a quarter turn. Results differ by as much from those of the robot as written; 0 leaves all numbers as they
        are, for results to rounding and some more instructions; the default is 1e-9."""
        return replace(self, snap_angles=checked_tolerance("with_snapped_angles", tolerance))

    def canonical_report(self) -> str:
        """Text: what the canonical form that the algorithms read aligns, makes exact and regroups, body by body, and
        what that saves in instructions."""
        return canonical_report.report(self)

    def __str__(self) -> str:
        return describe.table(self)

    def __repr__(self) -> str:
        return f"<oc_dyn.Robot {self.name!r}: {len(self.bodies)} bodies, nq = {self.nq}, nv = {self.nv}>"


def _rules(joints: Iterable[Joint]) -> list[tuple[Joint, Mimic]]:
    """The joints that follow another one, each with its rule."""
    return [(j, j.mimic) for j in joints if j.mimic is not None]


def _component_names(name: str, kind: str, n: int, names_of: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return (name,) if n == 1 else tuple(f"{name}.{s}" for s in names_of.get(kind, range(1, n + 1)))


def _column(name: str, value: ExpressionLike, n: int) -> Any:
    if not isinstance(value, (ca.SX, ca.MX)):
        value = ca.DM(_numbers(name, value))
    if value.numel() != n:
        raise ShapeError(f"{name}: got {value.numel()} entries, expected {n}")
    return ca.vec(value)


def _numbers(name: str, value: Any) -> Array:
    """Flat numpy array; ShapeError for what is none."""
    return as_floats(name, value).reshape(-1)


def checked_tolerance(where: str, value: Any) -> float:
    """A float of at least 0 and below 1; ShapeError for anything else."""
    number = _numbers(where, value)
    if number.size != 1 or not 0 <= number[0] < 1:
        raise ShapeError(f"{where}: got {value!r}, expected a number from 0 to 1")
    return float(number[0])


def _checked_lock(lock: Any) -> dict[str, Any]:
    """{joint: value} as a dict; ShapeError for what is none."""
    if not isinstance(lock, Mapping):
        raise ShapeError(f"lock: got {lock!r}, expected {{joint: value}}")
    return dict(lock)


def _check_turn(where: str, angle: float, x: float, y: float) -> None:
    """ShapeError where a planar joint is to travel by (x, y), not zero, while it turns by next to whole turns."""
    half = 0.5 * angle
    if (x or y) and abs(np.sin(half)) < 1e-6 * abs(half):  # the arc is as much longer than its chord
        turns = "whole turns, on which an arc returns to its start"
        raise ShapeError(
            f"{where}: from q0 to q1 it travels ({x:g}, {y:g}) m while it turns by {angle:.9g} rad: {turns}; "
            "give angles less than a turn apart"
        )


def _vector3(name: str, value: Any) -> Array:
    value = _numbers(name, value)
    if value.size != 3 or not are_sane(value):
        raise ShapeError(f"{name}: got {value.tolist()}, expected three finite numbers")
    return value


def kept(robot: Robot) -> dict[str, Any]:
    """What robots made of this one take from it beyond what assemble is given."""
    names = "velocity_limits", "report", "snap_angles", "may_touch", "folder", "visuals"
    return {name: getattr(robot, name) for name in names}


def assemble(
    name: str,
    links: Mapping[str, Inertia | None],
    joints: Iterable[Joint],
    *,
    gravity: Numbers = (0.0, 0.0, -9.81),
    floating_base: bool = False,
    lock: Mapping[str, Numbers] | None = None,
    source: str | None = None,
    report: Iterable[str] = (),
    collisions: Iterable[Collision] = (),
) -> Robot:
    """Robot from links {name: Inertia or None} and joints (iterable of Joint), in any order.

    Fixed and locked joints are lumped, their frames kept. `floating_base` puts a free joint named "root_joint" above
    the root link. Raises ModelError listing every problem of the tree; UnknownName for a locked joint that is
    not there.
    """
    joints = tuple(joints)
    problems = tree_problems(links, joints)
    if problems:
        raise ModelError(source or name, problems)
    moved_links = {j.child for j in joints}
    root = next(link for link in links if link not in moved_links)
    raw = joints
    lock = {} if lock is None else _checked_lock(lock)
    if lock:  # before rules are composed: what follows a held follower stands still with it
        joints = _hold(name, joints, lock)
    joints = _direct_mimics(joints)
    tree = _Tree(links, joints)
    if floating_base and not _floats_already(source or name, links, tree.children[root], root):
        if any(j.name == "root_joint" and j.kind != "fixed" for j in joints):
            text = "joint 'root_joint': a floating base needs this name; rename the joint, or omit floating_base"
            raise ModelError(source or name, [text])
        tree.attach(Joint("root_joint", "free", "", root), 0, np.eye(3), np.zeros(3))
    else:
        tree.grow(root, 0, np.eye(3), np.zeros(3))
    while tree.waiting:
        tree.attach(*tree.waiting.pop())

    bodies = tree.bodies_with_coordinates()
    robot = Robot(
        name=name,
        bodies=bodies,
        joints=tuple(tree.owners),
        mimics=tuple(b.joint for b in bodies if b.joint.mimic is not None),
        frames=MappingProxyType(tree.frames),
        gravity=_vector3("gravity", gravity),
        nq=tree.nq,
        nv=tree.nv,
        root=root,
        description=(dict(links), raw, floating_base, lock),
        base_parts=tree.base_parts,
        report=tuple(report),
        collisions=tuple(collisions),
    )
    return replace(robot, report=(*robot.report, *_notes_on_followers(robot)))


class _Tree:
    """What `assemble` has put together so far: bodies, the joints that own coordinates, frames, and what is fixed to
    the ground. `waiting` are joints still to be attached, the next one last: long chains must not need recursion."""

    def __init__(self, links: Mapping[str, Inertia | None], joints: Iterable[Joint]) -> None:
        self.links = links
        self.children: dict[str, list[Joint]] = {link: [] for link in links}
        for j in joints:
            self.children[j.parent].append(j)
        self.bodies: list[Body] = []
        self.owners: list[Joint] = []
        self.frames: dict[str, Frame] = {}
        self.base_parts = Inertia.zero()
        self.nq = self.nv = 0
        self.waiting: list[tuple[Joint, int, Array, Array]] = []

    def grow(self, link: str, body: int, R: Array, p: Array) -> None:
        """Put `link`, whose frame has pose (R, p) in body number `body`, into the tree; its joints come next."""
        self.frames[link] = Frame(link, body, R, p)
        inertia = self.links[link]
        if inertia is not None:
            moved = inertia.expressed_in(R, p)
            if body:
                b = self.bodies[body - 1]
                self.bodies[body - 1] = replace(b, inertia=b.inertia + moved)
            else:
                self.base_parts = self.base_parts + moved
        self.waiting.extend((j, body, R @ j.rotation, R @ j.translation + p) for j in reversed(self.children[link]))

    def attach(self, j: Joint, body: int, R: Array, p: Array) -> None:
        """Put a joint, whose frame rests at (R, p) in body number `body`, and its child link into the tree."""
        if j.kind == "fixed":
            self.grow(j.child, body, R, p)
            return
        if j.mimic is None:
            j = replace(j, q_index=self.nq, v_index=self.nv)
            self.owners.append(j)
            self.nq, self.nv = self.nq + j.nq, self.nv + j.nv
        self.bodies.append(Body(j.child, len(self.bodies) + 1, body, j, R, p, Inertia.zero()))
        self.grow(j.child, len(self.bodies), np.eye(3), np.zeros(3))

    def bodies_with_coordinates(self) -> tuple[Body, ...]:
        """The bodies; a joint that follows another one reads the coordinate of that one."""
        place = {j.name: (j.q_index, j.v_index) for j in self.owners}
        out = []
        for b in self.bodies:
            if b.joint.mimic is not None:
                q, v = place[b.joint.mimic.joint]
                b = replace(b, joint=replace(b.joint, q_index=q, v_index=v))
            out.append(b)
        return tuple(out)


def _notes_on_followers(robot: Robot) -> list[str]:
    """What to say of joints whose followers leave them one position or none, though their own range is wider."""
    if not robot.mimics:
        return []
    try:
        lower, upper = robot._range()
    except ModelError as error:
        return list(error.problems)
    held = [j for j in robot.joints if j.nq == 1 and lower[j.q_index] == upper[j.q_index] and j.lower < j.upper]
    text = "joint {0!r}: the ranges of joints that follow it leave it the one position {1:g}"
    return [text.format(j.name, lower[j.q_index]) for j in held]


def _direct_mimics(joints: Sequence[Joint]) -> tuple[Joint, ...]:
    """Joints whose mimic rule names a joint that owns its coordinate, chains of rules composed."""
    by_name = {j.name: j for j in joints}
    rules: dict[str, Mimic] = {}
    for j in joints:
        chain = []  # of rules not known yet, the last one of a joint whose master owns its coordinate or is known
        while j.mimic is not None and j.name not in rules:
            chain.append((j.name, j.mimic))
            j = by_name[j.mimic.joint]
        for follower, rule in reversed(chain):
            then = rules.get(rule.joint)
            if then is not None:
                offset = rule.multiplier * then.offset + rule.offset
                rule = Mimic(then.joint, rule.multiplier * then.multiplier, offset)
            rules[follower] = rule
    return tuple(replace(j, mimic=rules[j.name]) if j.mimic is not None else j for j in joints)


def _floats_already(source: str, links: Mapping[str, Inertia | None], above: list[Joint], root: str) -> bool:
    """Whether the root is a massless scene whose only joint is already free; anything else with one is refused."""
    free = [j.name for j in above if j.kind == "free"]
    if not free:
        return False
    base = links[root]
    massless = base is None or base.mass == 0
    if len(above) == 1 and massless:
        return True
    raise ModelError(source, [f"joint {free[0]} is floating already; load without floating_base=True"])


def _hold(name: str, joints: Sequence[Joint], lock: dict[str, Any]) -> tuple[Joint, ...]:
    """Joints with the locked ones made fixed, displaced by their values; what follows these too, along the rules as
    written, unless it is locked itself."""
    by_name = {j.name: j for j in joints}
    for key in lock:
        if key not in by_name:
            raise UnknownName(f"joint to lock in {name}", key, by_name)
    values = {key: _numbers(f"lock: joint {key}", x) for key, x in lock.items()}
    followers: dict[str, list[tuple[str, Mimic]]] = {}
    for j, rule in _rules(joints):
        if j.name not in lock:
            followers.setdefault(rule.joint, []).append((j.name, rule))
    waiting = list(lock)
    while waiting:
        master = waiting.pop()
        for follower, rule in followers.get(master, ()):
            values[follower] = rule.multiplier * values[master] + rule.offset
            waiting.append(follower)
    out = []
    for j in joints:
        if j.name not in values or j.kind == "fixed":
            out.append(j)
            continue
        q = values[j.name]
        if q.size != j.nq or not are_sane(q):
            raise ShapeError(f"lock: joint {j.name} ({j.kind}) got {q.tolist()}, expected {j.nq} finite number(s)")
        check_quaternions("lock", [(j.name, 0)] if j.kind in jt.QUATERNIONS else (), q)
        R, p = (np.array(x) for x in displaced(j, ca.DM(q)))
        p = p.reshape(3)
        out.append(
            replace(j, kind="fixed", rotation=j.rotation @ R, translation=j.rotation @ p + j.translation, mimic=None)
        )
    return tuple(out)


def _held_limits(robot: Robot, new: Robot, held: dict[str, Any]) -> VelocityLimits:
    """Velocity limits, as a function of its q, of `new`: `robot` with the joints `held` {name: value} locked."""
    place = {j.name: j for j in new.joints}
    full_limits: Any = robot.velocity_limits

    def velocity_limits(q: ExpressionLike) -> tuple[Any, Any]:
        q = _column("q", q, new.nq)
        parts: list[Any] = []
        rows: list[int] = []
        for j in robot.joints:
            if j.name in held:
                parts.append(ca.DM(np.asarray(held[j.name], float).reshape(-1)))
            else:
                at = place[j.name].q_index
                parts.append(q[at : at + j.nq])
                rows += range(j.v_index, j.v_index + j.nv)
        full = ca.vertcat(*parts)
        lower, upper = full_limits(np.array(full).ravel() if isinstance(full, ca.DM) else full)
        return lower[rows], upper[rows]

    return velocity_limits


def _check_one_kind(what: str, **given: object) -> None:
    if {ca.SX, ca.MX} <= {type(x) for x in given.values()}:
        names = " and ".join(given)
        raise ShapeError(f"{what}: {names} are SX and MX symbols; give one kind")


def displaced(joint: Joint, q: Any) -> tuple[Any, Any]:
    """Pose (R, p) of a joint's child at its coordinates q, in the frame that it has at rest; the axis as written."""
    R, p = jt.displacement(joint.kind, q, joint.pitch, joint.motion)
    A = ca.DM(np.eye(3) if joint.kind in jt.WITHOUT_AXIS else axis_frame(joint.axis, 0.0))
    return A @ R @ A.T, A @ p


def tangent_map(robot: Robot, q: Any) -> Any:
    """(nq, nv) what a step on the tangent space does to the coordinates, at SX symbols q (nq,): q' = tangent_map v."""
    v = ca.SX.sym("v", robot.nv)
    rate: Any = robot.configuration_rate(q, v)
    return ca.jacobian(rate, v)


def check_robot(what: str, robot: object) -> None:
    """Raise ModelError, which `what` begins, unless it is a Robot."""
    if isinstance(robot, Robot):
        return
    hint = "; the robot made of its links is its attribute links" if hasattr(robot, "links") else ""
    raise ModelError(what, [f"robot is {shortened(robot)}, expected a Robot{hint}"])
