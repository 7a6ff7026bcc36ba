"""Coordinates, velocities and forces in the orders and conventions of Pinocchio, MuJoCo and Drake.

    theirs = to_pinocchio(robot, model)       # or to_mujoco, to_drake
    x = theirs.q(q);  q = theirs.from_q(x)    # likewise v, dv and tau

Joints are matched by name, so the order of either side does not matter. Only what stands here permutes anything; the
rest of the package knows one convention: twists [angular; linear] of the body, quaternions (w, x, y, z).

| library   | free joint: q | free joint: v                     | ball joint: q, v | planar joint: q, v               |
|-----------|---------------|-----------------------------------|------------------|----------------------------------|
| here      | [wxyz; p]     | [angular; linear], both body axes | wxyz, body axes  | angle x y, wz vx vy in body axes |
| Pinocchio | [p; xyzw]     | [linear; angular], both body axes | xyzw, body axes  | x y cos sin, vx vy wz body axes  |
| MuJoCo    | [p; wxyz]     | [linear world; angular body axes] | wxyz, body axes  | none                             |
| Drake     | [wxyz; p]     | [angular; linear], both world     | none             | x y angle, and their rates       |

"World" is the frame in which the joint rests; MuJoCo measures a free joint from its own world instead, which is allowed
for, as is a reference angle there. Pinocchio may store the angle of a continuous joint as (cos, sin).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from .errors import ModelError, ShapeError
from .lie import so3
from .model.quaternions import check_quaternions, check_rotation, quaternions
from .model.robot import Joint, Mimic, Robot
from .numbers import as_floats
from .types import Array, Expression, ExpressionLike, Matrix, Numbers
from .validation import options_of


@dataclass(frozen=True, eq=False)
class Conversion:
    """Maps between a robot here ("ours") and a model of another library ("theirs"), of nq and nv coordinates.

    q, v, dv, tau take ours and return theirs; from_q, from_v, from_dv, from_tau go back. All arguments of one call are
    of the side it starts from: v(v, q) takes our q, from_v(v, q) theirs. Values may be numbers (numpy arrays come
    back), SX or MX. Where their velocity of a free or planar joint is in other axes than ours, q must be given, and for
    accelerations v as well; ShapeError says so, as it does for numbers whose quaternions are not of unit length.
    A joint that follows another one here and has a coordinate of its own there is filled by its rule; a force on it
    counts, by the same rule, at the joint it follows.
    """

    robot: Robot
    library: str
    nq: int
    nv: int
    places: tuple[_Place, ...]

    def q(self, q: ExpressionLike) -> Expression:
        """Their configuration (nq,) from ours."""
        q = self._unit(self._column("q", q, self.robot.nq))
        return _result(p.map.to(p.our_q(q)) for p in sorted(self.places, key=lambda p: p.q_index))

    def from_q(self, q: ExpressionLike) -> Expression:
        """Our configuration from theirs (nq,). Angles stored as (cos, sin) come back between -pi and pi."""
        q = self._column("q", q, self.nq)
        return self._unit(_result(p.map.back(p.their_q(q)) for p in self._ours()))

    def v(self, v: ExpressionLike, q: ExpressionLike | None = None) -> Expression:
        """Their velocity (nv,) from ours at our q."""
        v = self._column("v", v, self.robot.nv)
        return _result(p.scale * (self._turn(p, q) @ p.our_v(v)) for p in self._theirs())

    def from_v(self, v: ExpressionLike, q: ExpressionLike | None = None) -> Expression:
        """Our velocity from theirs (nv,) at their q."""
        v = self._column("v", v, self.nv)
        return _result(self._turn(p, self._our_q(p, q)).T @ p.their_v(v) for p in self._ours())

    def dv(self, dv: ExpressionLike, v: ExpressionLike | None = None, q: ExpressionLike | None = None) -> Expression:
        """Their acceleration (nv,), the time derivative of their velocity, from ours at our v and q."""
        dv = self._column("dv", dv, self.robot.nv)
        parts = []
        for p in self._theirs():
            extra = p.map.extra(p.our_v(self._column("v", v, self.robot.nv))) if p.map.extra else 0
            parts.append(p.scale * (self._turn(p, q) @ (p.our_v(dv) + extra)))
        return _result(parts)

    def from_dv(
        self, dv: ExpressionLike, v: ExpressionLike | None = None, q: ExpressionLike | None = None
    ) -> Expression:
        """Our acceleration from theirs (nv,) at their v and q."""
        dv = self._column("dv", dv, self.nv)
        parts = []
        for p in self._ours():
            back = self._turn(p, self._our_q(p, q)).T
            extra = p.map.extra(back @ p.their_v(self._column("v", v, self.nv))) if p.map.extra else 0
            parts.append(back @ p.their_v(dv) - extra)
        return _result(parts)

    def tau(self, tau: ExpressionLike, q: ExpressionLike | None = None) -> Expression:
        """Their generalised force (nv,) from ours at our q; none on joints that follow another one."""
        tau = self._column("tau", tau, self.robot.nv)
        return _result((0 if p.follows else 1) * (self._turn(p, q) @ p.our_v(tau)) for p in self._theirs())

    def from_tau(self, tau: ExpressionLike, q: ExpressionLike | None = None) -> Expression:
        """Our generalised force from theirs (nv,) at their q."""
        tau = self._column("tau", tau, self.nv)
        parts = []
        for p in self._ours():
            force = self._turn(p, self._our_q(p, q)).T @ p.their_v(tau)
            for f in self.places:
                if f.follows and f.joint.v_index == p.joint.v_index:
                    force = force + f.scale * f.their_v(tau)
            parts.append(force)
        return _result(parts)

    def velocity_matrix(self, q: ExpressionLike | None = None) -> Expression:
        """T (nv, robot.nv) with their v = T v, at our q. Unless a joint follows another one T is orthogonal, and their
        mass matrix is T M T'."""
        rows = []
        for p in self._theirs():
            j = p.joint
            blocks = ca.DM(j.nv, j.v_index), p.scale * self._turn(p, q), ca.DM(j.nv, self.robot.nv - j.v_index - j.nv)
            rows.append(ca.horzcat(*blocks))
        T = ca.densify(ca.vertcat(ca.DM(0, self.robot.nv), *rows))
        return np.array(T) if isinstance(T, ca.DM) else T

    def _ours(self) -> list[_Place]:
        return sorted((p for p in self.places if not p.follows), key=lambda p: p.joint.q_index)

    def _theirs(self) -> list[_Place]:
        return sorted(self.places, key=lambda p: p.v_index)

    def _turn(self, p: _Place, q: ExpressionLike | None) -> Any:
        """Block of velocity_matrix of one joint."""
        return p.map.turn(p.our_q(self._unit(self._column("q", q, self.robot.nq), p)) if p.map.turns else None)

    def _our_q(self, p: _Place, q: ExpressionLike | None) -> Any:
        """Our q with nothing but the coordinates of one joint filled in, from theirs."""
        if not p.map.turns:
            return None
        part = p.map.back(p.their_q(self._column("q", q, self.nq)))
        j = p.joint
        return ca.vertcat(ca.DM(j.q_index, 1), part, ca.DM(self.robot.nq - j.q_index - j.nq, 1))

    def _unit(self, q: Any, place: _Place | None = None) -> Any:
        """Our q, whose quaternions are of unit length where they are numbers; of one joint alone, if one is given."""
        if isinstance(q, (ca.DM, np.ndarray)):
            rotations = quaternions(self.robot)
            rotations = [x for x in rotations if x[0] == place.joint.name] if place else rotations
            check_quaternions(self.library, rotations, np.asarray(q))
        return q

    def _column(self, name: str, value: ExpressionLike | None, n: int) -> Any:
        if value is None:
            raise ShapeError(f"{self.library}: {name} is missing; the axes of a free or planar joint turn, give {name}")
        if not isinstance(value, (ca.SX, ca.MX)):
            value = ca.DM(as_floats(f"{self.library}: {name}", value).reshape(-1))
        if value.numel() != n:
            raise ShapeError(f"{self.library}: {name}: got {value.numel()} entries, expected {n}")
        return ca.vec(value)


def _result(parts: Iterable[Any]) -> Any:
    out = ca.densify(ca.vertcat(ca.DM(0, 1), *parts))
    return np.array(out).ravel() if isinstance(out, ca.DM) else out


@dataclass(frozen=True, eq=False)
class _Place:
    """One of their joints: its first coordinate and velocity, what moves it here, and the map between the two."""

    joint: Joint
    q_index: int
    v_index: int
    map: _JointMap
    rule: Mimic | None = None  # of a joint that follows another one

    @property
    def follows(self) -> bool:
        """Whether its joint follows another one here, and has a coordinate of its own there."""
        return self.rule is not None

    @property
    def scale(self) -> float:
        return self.rule.multiplier if self.rule else 1.0

    def our_q(self, q: Any) -> Any:
        q = q[self.joint.q_index : self.joint.q_index + self.joint.nq]
        return self.rule.multiplier * q + self.rule.offset if self.rule else q

    def our_v(self, v: Any) -> Any:
        return v[self.joint.v_index : self.joint.v_index + self.joint.nv]

    def their_q(self, q: Any) -> Any:
        return q[self.q_index : self.q_index + self.map.nq]

    def their_v(self, v: Any) -> Any:
        return v[self.v_index : self.v_index + self.joint.nv]


# -- what a joint looks like over there -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _JointMap:
    """Between our and their coordinates of one joint: to, back, and their v = turn(our q) v with turn orthogonal.

    Their acceleration is turn(q) (dv + extra(v)); `turns` where turn depends on q, and only then is there an extra.
    """

    nq: int
    to: Callable[[Any], Any]
    back: Callable[[Any], Any]
    turn: Callable[[Any], Any]
    extra: Callable[[Any], Any] | None = None

    @property
    def turns(self) -> bool:
        return self.extra is not None


def _sized(what: str, x: ExpressionLike, n: int) -> Any:
    """Column of n entries, expressions or numbers; ShapeError for another size."""
    x = x if isinstance(x, (ca.SX, ca.MX, ca.DM)) else as_floats(what, x)
    size = x.size if isinstance(x, np.ndarray) else x.numel()
    if size != n:
        raise ShapeError(f"{what}: got {size} entries, expected {n}")
    return x.ravel() if isinstance(x, np.ndarray) else ca.vec(x)


def xyzw(Q: ExpressionLike) -> Matrix:
    """Quaternion (x, y, z, w) from (w, x, y, z). (4,) -> (4,)."""
    Q = _sized("xyzw: Q", Q, 4)
    return ca.vertcat(Q[1], Q[2], Q[3], Q[0])


def wxyz(Q: ExpressionLike) -> Matrix:
    """Quaternion (w, x, y, z) from (x, y, z, w). (4,) -> (4,)."""
    Q = _sized("wxyz: Q", Q, 4)
    return ca.vertcat(Q[3], Q[0], Q[1], Q[2])


def linear_first(x: ExpressionLike) -> Matrix:
    """Twist, wrench or Jacobian (6, n) with its upper and lower three rows exchanged; its own inverse.
    (6,) or (6, n); ShapeError for other shapes."""
    rows: Any = x if isinstance(x, (ca.SX, ca.MX, ca.DM)) else as_floats("linear_first", x)
    if len(rows.shape) not in (1, 2) or rows.shape[0] != 6:
        raise ShapeError(f"linear_first: got shape {rows.shape}, expected (6,) or (6, n): one column each")
    return ca.vertcat(rows[3:6, :], rows[0:3, :]) if len(rows.shape) == 2 else ca.vertcat(rows[3:6], rows[0:3])


def _same(q: Any) -> Any:
    return q


_SWAP = ca.DM(np.roll(np.eye(6), 3, axis=0))  # [angular; linear] to [linear; angular]


def _plain(nv: int, reference: float = 0.0) -> _JointMap:
    """As here, apart from a coordinate's value at rest."""
    return _JointMap(nv, lambda q: q + reference, lambda x: x - reference, lambda q: ca.DM.eye(nv))


_CIRCLE = _JointMap(
    2, lambda q: ca.vertcat(ca.cos(q), ca.sin(q)), lambda x: ca.atan2(x[1], x[0]), lambda q: ca.DM.eye(1)
)
_PINOCCHIO_BALL = _JointMap(4, xyzw, wxyz, lambda q: ca.DM.eye(3))
_PINOCCHIO_FREE = _JointMap(
    7, lambda q: ca.vertcat(q[4:7], xyzw(q[0:4])), lambda x: ca.vertcat(wxyz(x[3:7]), x[0:3]), lambda q: _SWAP
)
_PINOCCHIO_PLANAR = _JointMap(
    4,
    lambda q: ca.vertcat(q[1:3], ca.cos(q[0]), ca.sin(q[0])),
    lambda x: ca.vertcat(ca.atan2(x[3], x[2]), x[0:2]),
    lambda q: ca.DM([[0, 1, 0], [0, 0, 1], [1, 0, 0]]),
)
_MUJOCO_BALL = _JointMap(4, _same, _same, lambda q: ca.DM.eye(3))


def _cross_term(v: Any) -> Any:
    """What a point of the moving body accelerates by beyond the derivative of its velocity's components: w x v."""
    return ca.vertcat(ca.DM(3, 1), ca.cross(v[0:3], v[3:6]))


def _mujoco_free(rotation: Array, translation: Array) -> _JointMap:
    """A free joint that rests at a pose (numbers) in the world, from which MuJoCo measures."""
    R0, p0, Q0 = ca.DM(rotation), ca.DM(translation), ca.DM(quaternion_of(rotation))

    def to(q: Any) -> Any:
        return ca.vertcat(p0 + R0 @ q[4:7], so3.quat_mul(Q0, q[0:4]))

    def back(x: Any) -> Any:
        return ca.vertcat(so3.quat_mul(so3.quat_conj(Q0), x[3:7]), R0.T @ (x[0:3] - p0))

    def turn(q: Any) -> Any:
        R = R0 @ so3.quat_to_rot(q[0:4])
        return ca.vertcat(ca.horzcat(ca.DM(3, 3), R), ca.horzcat(ca.DM.eye(3), ca.DM(3, 3)))

    return _JointMap(7, to, back, turn, _cross_term)


_DRAKE_FREE = _JointMap(7, _same, _same, lambda q: ca.diagcat(*[so3.quat_to_rot(q[0:4])] * 2), _cross_term)
_DRAKE_PLANAR = _JointMap(
    3,
    lambda q: ca.vertcat(q[1:3], q[0]),
    lambda x: ca.vertcat(x[2], x[0:2]),
    lambda q: ca.vertcat(ca.horzcat(ca.DM(2, 1), so3.rot_z(q[0])[0:2, 0:2]), ca.DM([[1, 0, 0]])),
    lambda v: ca.vertcat(0, -v[0] * v[2], v[0] * v[1]),
)


def rotation_to_quaternion(R: Numbers) -> Array:
    """Unit quaternion (w, x, y, z) of a rotation matrix (3, 3) of numbers; ShapeError for what is none."""
    R = as_floats("rotation_to_quaternion: R", R)
    check_rotation("rotation_to_quaternion: R", R)
    return quaternion_of(R)


def quaternion_of(R: Array) -> Array:
    """rotation_to_quaternion of what is known to be a rotation matrix."""
    # the matrix 4 Q Q' has Q as its longest row, up to length
    a = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    outer = np.empty((4, 4))
    outer[0, 0], outer[0, 1:], outer[1:, 0] = 1 + np.trace(R), a, a
    outer[1:, 1:] = R + R.T + (1 - np.trace(R)) * np.eye(3)
    row = outer[np.argmax(np.diag(outer))]
    return row / np.linalg.norm(row)


# -- the libraries --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _TheirJoint:
    """A joint read from their model: what it is called, its shape, its places, and its angle at rest."""

    name: str
    shape: str
    q_index: int
    v_index: int
    reference: float = 0.0


_FITS = {
    "revolute": ("turn", "circle"),
    "continuous": ("turn", "circle"),
    "prismatic": ("slide",),
    "helical": ("screw",),
    "spherical": ("ball",),
    "planar": ("planar", "planar of three"),
    "free": ("free",),
    "cylindrical": ("cylindrical",),
    "universal": ("universal",),
}
# joints that od.export writes as several: (suffixes of their names, shapes, shape of them all)
_SEVERAL = {
    "planar": ((".x", ".y", ".angle"), ("slide", "slide", "turn"), "planar of three"),
    "cylindrical": ((".angle", ".distance"), ("turn", "slide"), "cylindrical"),
    "universal": ((".1", ".2"), ("turn", "turn"), "universal"),
}
_OF_SEVERAL = {"planar of three": _DRAKE_PLANAR, "cylindrical": _plain(2), "universal": _plain(2)}


def to_pinocchio(robot: Robot, model: Any, names: Mapping[str, str] | None = None) -> Conversion:
    """Conversion to a pinocchio.Model (of `pin`), matched by joint names.

    Args: names {ours: theirs} for joints called otherwise. A free joint not found by name is the model's only one.
    Raises: ModelError listing joints that are missing on either side (build the model with the same joints locked,
    pinocchio.buildReducedModel) or differ in kind.
    """
    their_joints = []
    for i in range(1, model.njoints):
        j = model.joints[i]
        if j.nq:  # a mimic joint may own nothing
            their_joints.append(_TheirJoint(model.names[i], _pinocchio_shape(j.shortname()), j.idx_q, j.idx_v))
    maps = {"circle": _CIRCLE, "ball": _PINOCCHIO_BALL, "free": _PINOCCHIO_FREE, "planar": _PINOCCHIO_PLANAR}
    return _match("to_pinocchio", robot, their_joints, names, model.nq, model.nv, lambda f, j: maps.get(f.shape))


def _pinocchio_shape(short: str) -> str:
    kind = short.removeprefix("JointModel")
    whole = {"FreeFlyer": "free", "Spherical": "ball", "Planar": "planar"}
    if kind in whole:
        return whole[kind]
    starts = {"RUB": "circle", "RevoluteUnbounded": "circle", "Revolute": "turn", "Prismatic": "slide"}
    starts |= {"Helical": "screw", **dict.fromkeys(("RX", "RY", "RZ"), "turn")}
    starts |= {**dict.fromkeys(("PX", "PY", "PZ"), "slide"), **dict.fromkeys(("HX", "HY", "HZ"), "screw")}
    return next((shape for start, shape in starts.items() if kind.startswith(start)), kind)


def to_mujoco(robot: Robot, model: Any, names: Mapping[str, str] | None = None) -> Conversion:
    """Conversion to a mujoco.MjModel (qpos, qvel, qacc, qfrc), matched by joint names; see to_pinocchio."""
    shapes = ("free", "ball", "slide", "turn")  # in the order of mjtJoint
    their_joints = []
    for i in range(model.njnt):
        shape, address = shapes[int(model.jnt_type[i])], int(model.jnt_qposadr[i])
        rest = float(model.qpos0[address]) if shape in ("slide", "turn") else 0.0
        their_joints.append(_TheirJoint(model.joint(i).name, shape, address, int(model.jnt_dofadr[i]), rest))
    home = {b.joint.name: b for b in robot.bodies}

    def map_of(f: _TheirJoint, joint: Joint) -> _JointMap | None:
        if f.shape == "free":
            body = home[joint.name]
            if body.parent:
                raise ModelError(f"to_mujoco({robot.name})", [f"free joint {joint.name!r} is not on the ground"])
            return _mujoco_free(body.rotation, body.translation)
        return _MUJOCO_BALL if f.shape == "ball" else None

    return _match("to_mujoco", robot, their_joints, names, model.nq, model.nv, map_of)


def to_drake(robot: Robot, plant: Any, names: Mapping[str, str] | None = None) -> Conversion:
    """Conversion to a finalized pydrake MultibodyPlant, matched by joint names; see to_pinocchio."""
    shapes = {"revolute": "turn", "prismatic": "slide", "screw": "screw", "quaternion_floating": "free"}
    their_joints = []
    for index in plant.GetJointIndices():
        j = plant.get_joint(index)
        if j.num_positions():
            shape = shapes.get(j.type_name(), j.type_name())
            their_joints.append(_TheirJoint(j.name(), shape, j.position_start(), j.velocity_start()))
    maps = {"free": _DRAKE_FREE, "planar": _DRAKE_PLANAR}
    nq, nv = plant.num_positions(), plant.num_velocities()
    return _match("to_drake", robot, their_joints, names, nq, nv, lambda f, j: maps.get(f.shape))


def _match(
    library: str,
    robot: Robot,
    their_joints: list[_TheirJoint],
    names: Mapping[str, str] | None,
    nq: int,
    nv: int,
    map_of: Callable[[_TheirJoint, Joint], _JointMap | None],
) -> Conversion:
    names = options_of(f"{library}: names", names)
    for name in names:
        robot.joint(name)  # UnknownName
    their_joints, slides = _joined(robot, their_joints, names)
    theirs = {f.name: f for f in their_joints}
    free = [f for f in their_joints if f.shape == "free"]
    places, problems, used = [], [], set()
    for j in robot.joints + robot.mimics:
        called = names.get(j.name, j.name)
        f = theirs.get(called)
        if f is None and j.kind == "free" and j.name not in names and len(free) == 1:
            f = free[0]
        if f is None:
            if j.mimic is None:
                problems.append(f"joint {called!r} of the robot is not in the model, which has {_listed(theirs)}")
            continue
        used.add(id(f))
        unfit = _unfit(j, f)
        if unfit:
            problems.append(unfit)
        else:
            there = _OF_SEVERAL.get(f.shape) or map_of(f, j) or _plain(1, f.reference)
            places.append(_Place(j, f.q_index, f.v_index, there, j.mimic))
            if j.name in slides:
                places.append(_Place(j, slides[j.name].q_index, slides[j.name].v_index, _plain(1), _slide_of(j)))
    for f in their_joints:
        if id(f) not in used:
            ours = _listed(j.name for j in robot.joints)
            problems.append(
                f"joint {f.name!r} of the model is not among the joints that move in the robot, {ours}; "
                "lock it there as well, or pass names={ours: theirs}"
            )
    if problems:
        raise ModelError(f"{library}({robot.name})", problems)
    return Conversion(robot, library, int(nq), int(nv), tuple(places))


def _unfit(j: Joint, f: _TheirJoint) -> str:
    """Why a joint here cannot be that one there, "" where it can."""
    if j.kind not in _FITS:
        known = ", ".join(_FITS)
        return f"joint {j.name!r} is {j.kind}, which cannot be converted; what can be: {known}"
    if f.shape not in _FITS[j.kind]:
        return f"joint {j.name!r} is {j.kind} here and {f.shape!r} there"
    if f.shape == "planar" and not np.allclose(j.axis / np.linalg.norm(j.axis), [0, 0, 1], atol=1e-9):
        return f"joint {j.name!r}: only planar joints with axis (0, 0, 1) can be converted"
    return ""


def _joined(
    robot: Robot, their_joints: list[_TheirJoint], names: Mapping[str, str]
) -> tuple[list[_TheirJoint], dict[str, _TheirJoint]]:
    """Their joints, those that od.export wrote for one of ours made one again; {helical joint: its slide}."""
    theirs, slides = {f.name: f for f in their_joints}, {}
    for j in robot.joints + robot.mimics:
        called = names.get(j.name, j.name)
        if j.kind == "helical" and f"{called}.slide" in theirs and called in theirs:
            slides[j.name] = theirs.pop(f"{called}.slide")
            theirs[called] = replace(theirs[called], shape="screw")
        if j.kind not in _SEVERAL or called in theirs:
            continue
        suffixes, shapes, shape = _SEVERAL[j.kind]
        parts = [theirs.get(called + suffix) for suffix in suffixes]
        found = [f for f in parts if f is not None and not f.reference]
        first, count = found[0] if found else None, range(len(suffixes))
        if first is None or tuple(f.shape for f in found) != shapes:
            continue
        if [(f.q_index - first.q_index, f.v_index - first.v_index) for f in found] == [(k, k) for k in count]:
            for f in found:
                del theirs[f.name]
            theirs[called] = _TheirJoint(called, shape, first.q_index, first.v_index)
    return list(theirs.values()), slides


def _slide_of(joint: Joint) -> Mimic:
    """The rule by which the slide of a helical joint follows the coordinate of that."""
    rule = joint.mimic or Mimic(joint.name)
    return Mimic(rule.joint, joint.pitch * rule.multiplier, joint.pitch * rule.offset)


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(str, names)) or "none"


# -- roll, pitch and yaw --------------------------------------------------------------------------------------


def rpy_to_quaternion(rpy: ExpressionLike) -> Matrix:
    """Quaternion (w, x, y, z) of turns about the fixed axes x, y, z in turn (URDF) [rad]. (3,) -> (4,)."""
    rpy = _sized("rpy_to_quaternion: rpy", rpy, 3)
    (a, b, c), (x, y, z) = ([f(0.5 * rpy[i]) for i in range(3)] for f in (ca.cos, ca.sin))
    roll, pitch, yaw = ca.vertcat(a, x, 0, 0), ca.vertcat(b, 0, y, 0), ca.vertcat(c, 0, 0, z)
    return so3.quat_mul(yaw, so3.quat_mul(pitch, roll))


def quaternion_to_rpy(Q: ExpressionLike) -> Matrix:
    """Roll, pitch, yaw [rad] of a quaternion (w, x, y, z), pitch within a quarter turn. (4,) -> (3,).

    The length does not matter; ShapeError for numbers that are zero or not finite. The angles make the same rotation
    everywhere; at a pitch of a quarter turn roll and yaw are one freedom, shared anyhow.
    """
    if not isinstance(Q, (ca.SX, ca.MX)):
        Q = as_floats("quaternion_to_rpy: Q", Q).ravel()
        largest = np.abs(Q).max(initial=0.0)
        if Q.size != 4 or not 0 < largest < np.inf:
            raise ShapeError(f"quaternion_to_rpy: Q is {Q.tolist()}, expected four finite numbers, not all zero")
        Q = ca.DM(Q / largest)  # squares of large ones overflow
    return so3.quat_to_rpy(Q)


def rpy_rate_matrix(rpy: ExpressionLike) -> Matrix:
    """E (3, 3) with body angular velocity = E d(rpy)/dt; singular where the pitch is a quarter turn."""
    rpy = _sized("rpy_rate_matrix: rpy", rpy, 3)
    r, p = rpy[0], rpy[1]
    return ca.vertcat(
        ca.horzcat(1, 0, -ca.sin(p)),
        ca.horzcat(0, ca.cos(r), ca.cos(p) * ca.sin(r)),
        ca.horzcat(0, -ca.sin(r), ca.cos(p) * ca.cos(r)),
    )


def rpy_rate(rpy: ExpressionLike, w: ExpressionLike) -> Matrix:
    """Rates (3,) [rad/s] of roll, pitch, yaw (3,) [rad] of a body turning at body angular velocity w (3,) [rad/s]."""
    rpy, w = _sized("rpy_rate: rpy", rpy, 3), _sized("rpy_rate: w", w, 3)
    r, p = rpy[0], rpy[1]
    yaw = (ca.sin(r) * w[1] + ca.cos(r) * w[2]) / ca.cos(p)
    return ca.vertcat(w[0] + ca.sin(p) * yaw, ca.cos(r) * w[1] - ca.sin(r) * w[2], yaw)
