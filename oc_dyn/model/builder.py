"""Robots written in code: links and joints added by name, in any order."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import casadi as ca
import numpy as np

from ..errors import ModelError, ModelWarning, ShapeError, UnknownName
from ..lie import so3
from ..lie.so3 import axis_frame
from ..numbers import HUGE, are_sane, as_floats
from ..types import Array, Numbers
from . import joints as jt
from .check import definite_problems, motion_doubts
from .collision import Collision, checked_shape, pose_rows
from .fluid import checked_fluid, refuse_fluid
from .inertia import Inertia, unphysical
from .loop_joints import Coupling, Loop, coupling, directions_of
from .loops import close_tree
from .robot import Joint, Mimic, Robot, assemble

_LIMITS = ("velocity", "effort", "acceleration", "jerk", "effort_rate")
_INF = float("inf")


class RobotBuilder:
    """Collects links and joints of a robot; build() makes the immutable Robot.

    Args: name (str); gravity (3,) [m/s^2] in the frame of the root link; check_inertia=False accepts masses and
    inertias that no real body has and mentions them in robot.report only.
    SI units throughout. Wrong values are refused at once with the name of the link or joint (ModelError, ShapeError);
    whether the parts form a tree is checked by build(), so joints may be added before the links they connect.
    """

    def __init__(self, name: str, gravity: Numbers = (0.0, 0.0, -9.81), *, check_inertia: bool = True) -> None:
        self.name, self.check_inertia = str(name), bool(check_inertia)
        self.gravity = _vector(f"{self.name}: gravity", gravity)
        self._links: dict[str, Inertia | None] = {}
        self._joints: dict[str, Joint] = {}
        self._collisions: list[Collision] = []
        self._may_touch: list[tuple[str, str]] = []
        self._loops: dict[str, Loop] = {}
        self._couplings: list[Coupling] = []
        self._notes: list[str] = []

    def add_link(
        self, name: str, mass: float = 0.0, com: Numbers = (0.0, 0.0, 0.0), inertia: Numbers | None = None, *,
        added_inertia: Numbers | None = None, drag: Numbers | None = None, quadratic_drag: Numbers | None = None,
    ) -> None:  # fmt: skip
        """A link; its frame is that of the joint that moves it.

        Args: mass [kg]; com (3,) [m] centre of mass in the link frame; inertia [kg m^2] about the centre of mass, in
        the link's axes: (3, 3), or six numbers in the order of URDF: xx, xy, xz, yy, yz, zz. None is a point mass.
        added_inertia (6, 6) symmetric, drag (6, 6), quadratic_drag (6,), entries or diagonals [kg m^2, kg m, kg] and
        for rates [rad/s; m/s]: what a still fluid adds to the link in its frame, twists [angular; linear]; see
        model/fluid.py. Dynamics, energies and partials that cannot count it refuse the robot by name.
        Raises: ModelError for a duplicate name, a negative mass, a tensor that is not symmetric; ShapeError.
        Warns: ModelWarning when no real body has this inertia.
        """
        self._new("link", name, self._links)
        where = f"{self.name}: link {name!r}"
        mass = self._number(f"link {name!r}: mass", mass)
        if not (0 if self.check_inertia else -HUGE) <= mass < HUGE:
            self._refuse(f"link {name!r}: mass is {mass:g}, expected a finite number of at least 0")
        com = _vector(f"{where}: com", com)
        tensor = np.zeros((3, 3)) if inertia is None else self._tensor(name, inertia)
        massless = "it has no mass but an inertia tensor" if mass == 0 and tensor.any() else None
        note = unphysical(mass, tensor) or massless
        if note:
            self._notes.append(f"link {name!r}: {note}")
        if note and self.check_inertia:
            warnings.warn(f"{where}: {note}", ModelWarning, stacklevel=2)
        fluid = checked_fluid(where, added_inertia, drag, quadratic_drag, self.check_inertia)
        body = Inertia.from_com(mass, com, tensor)
        self._links[name] = replace(body, fluid=fluid) if mass or tensor.any() or fluid else None

    # its length is that of its signature and of what it says of each argument; it checks by methods below
    def add_joint(
        self,
        name: str,
        kind: str | None = None,
        parent: str | None = None,
        child: str | None = None,
        *,
        transform: Callable[[Any], Any] | None = None,
        coordinates: int | None = None,
        xyz: Numbers = (0.0, 0.0, 0.0),
        rpy: Numbers | None = None,
        rotation: Numbers | None = None,
        axis: Numbers | None = None,
        pitch: float | None = None,
        lower: float | None = None,
        upper: float | None = None,
        velocity: float | None = None,
        effort: float | None = None,
        acceleration: float | None = None,
        jerk: float | None = None,
        effort_rate: float | None = None,
        armature: float = 0.0,
        rotor_inertia: float | None = None,
        gear_ratio: float | None = None,
        damping: float = 0.0,
        friction: float = 0.0,
        mimic: Mimic | str | Sequence[Any] | None = None,
    ) -> None:
        """A joint that carries link `child` on link `parent`.

        Args:
            kind: revolute, continuous, prismatic, helical, cylindrical, universal, spherical, planar, free, transform
                or fixed. "transform" may be left out when `transform` is given.
            transform: for a joint given by its motion: a casadi.Function or callable q -> (R (3, 3), p (3,)), the pose
                of the moved frame in the joint's frame, smooth in its `coordinates` (a callable needs their number).
            xyz (3,) [m], rpy (3,) [rad] (fixed axes x, y, z in turn) or rotation (3, 3): pose of the joint's frame, and
                of the child's at rest, in the parent's frame.
            axis (3,): direction in the joint's frame, default z; of a planar joint the normal of its plane. Spherical,
                free and fixed joints have none.
            pitch [m/rad]: advance of a helical joint along its axis.
            lower, upper [rad, m], velocity, acceleration, jerk (rates of the coordinate), effort [Nm, N] and
                effort_rate: limits, for joints of one coordinate; without end where not given.
            armature [kg m^2, kg]: inertia of the drive as seen at the joint; `rotor_inertia` about the rotor's axis
                adds rotor_inertia * gear_ratio**2 to it (gear_ratio defaults to 1).
            damping [Nm s/rad, N s/m], friction [Nm, N] (Coulomb): count in plans, and in functions that are asked to.
            mimic: (joint, multiplier, offset): this joint's coordinate is multiplier times that of the other joint,
                plus offset; the last two default to 1 and 0.
        Raises: ModelError naming the joint; ShapeError for vectors of the wrong size.
        """
        where = f"{self.name}: joint {name!r}"
        self._new("joint", name, self._joints)
        kind = "transform" if kind is None and transform is not None else kind
        if not isinstance(kind, str) or kind not in ("fixed", *jt.KINDS):
            self._refuse(f"joint {name!r} has kind {kind!r}; supported: fixed, {', '.join(jt.KINDS)}")
        limits = {"lower": lower, "upper": upper}
        limits |= dict(zip(_LIMITS, (velocity, effort, acceleration, jerk, effort_rate), strict=True))
        joint = Joint(
            name=name,
            kind=kind,
            parent=self._end(name, "parent", parent),
            child=self._end(name, "child", child),
            rotation=self._rotation(name, rpy, rotation),
            translation=_vector(f"{where}: xyz", xyz),
            axis=self._axis(name, kind, axis),
            pitch=self._pitch(name, kind, pitch),
            mimic=self._mimic(name, mimic),
            motion=self._motion(name, kind, transform, coordinates),
            **self._limits(name, kind, limits),
            **self._drive(name, kind, armature, rotor_inertia, gear_ratio, damping, friction),
        )
        self._joints[name] = joint

    def add_body(
        self,
        name: str,
        kind: str,
        parent: str,
        *,
        joint: str | None = None,
        mass: float = 0.0,
        com: Numbers = (0.0, 0.0, 0.0),
        inertia: Numbers | None = None,
        added_inertia: Numbers | None = None,
        drag: Numbers | None = None,
        quadratic_drag: Numbers | None = None,
        **options: Any,
    ) -> None:
        """A link and the joint that carries it, in one call; `options` are those of add_joint.

        The joint is called "<name>_joint" unless `joint` is given.
        """
        self._new("link", name, self._links)
        joint = f"{name}_joint" if joint is None else joint
        self.add_joint(joint, kind, parent, name, **options)
        try:
            fluid = {"added_inertia": added_inertia, "drag": drag, "quadratic_drag": quadratic_drag}
            self.add_link(name, mass, com, inertia, **fluid)
        except (ModelError, ShapeError):
            del self._joints[joint]  # all or nothing
            raise

    def add_frame(
        self,
        name: str,
        parent: str,
        *,
        xyz: Numbers = (0.0, 0.0, 0.0),
        rpy: Numbers | None = None,
        rotation: Numbers | None = None,
    ) -> None:
        """A named frame fixed to link `parent`: a link without mass on a fixed joint called "<name>_fixed"."""
        self.add_body(name, "fixed", parent, joint=f"{name}_fixed", xyz=xyz, rpy=rpy, rotation=rotation)

    def add_collision(
        self,
        link: str,
        shape: Any,
        *,
        xyz: Numbers = (0.0, 0.0, 0.0),
        rpy: Numbers | None = None,
        rotation: Numbers | None = None,
        name: str = "",
    ) -> None:
        """A collision shape on link `link`, placed in its frame: xyz (3,) [m], and rpy (3,) [rad] or rotation (3, 3).

        shape: a Sphere, Box, Cylinder, Capsule or Ellipsoid of od.shapes; or its kind and sizes [m], as ("capsule",
        0.05, 0.3), radius and length; or ("mesh", "file.stl"), with three scales behind if there are any.
        name: of the shape, without one it is called after the link. Dynamics do not depend on it; od.Scene.of reads it.
        Raises: ShapeError for what is no such shape or pose, ModelError for names that are none.
        """
        if not isinstance(link, str) or not link:
            self._refuse(f"the link of a collision shape is {link!r}, expected its name")
        if not isinstance(name, str):
            self._refuse(f"link {link!r}: the name of a collision shape is {name!r}, expected text")
        where = f"{self.name}: link {link!r}: collision shape"
        kind, sizes, mesh = checked_shape(where, shape)
        p, R = _vector(f"{where}: xyz", xyz), self._rotation(f"shape of {link}", rpy, rotation)
        self._collisions.append(Collision(name, link, kind, sizes, pose_rows(R, p), mesh))

    def let_touch(self, first: str, second: str) -> None:
        """Lets the collision shapes of two links overlap: wide ones of links that cannot meet."""
        for link in (first, second):
            if not isinstance(link, str) or not link:
                self._refuse(f"let_touch: the name of a link is {link!r}, expected text")
        self._may_touch.append((first, second))

    def close_loop(
        self,
        name: str,
        link_a: str,
        link_b: str,
        kind: str | Sequence[str] = "revolute",
        *,
        xyz_a: Numbers = (0.0, 0.0, 0.0),
        rotation_a: Numbers | None = None,
        xyz_b: Numbers = (0.0, 0.0, 0.0),
        rotation_b: Numbers | None = None,
        axis: Numbers | None = None,
        independent: Sequence[str] = (),
    ) -> None:
        """A joint that closes a loop: frame a, in `link_a`, and frame b, in `link_b`, cannot move apart.

        kind: "revolute" (5 directions held), "position" (3, a ball joint), "weld" (6), "planar" (3), "cylindrical" (4),
            "prismatic" (5), or the directions held, some of "x", "y", "z", "rx", "ry", "rz" of frame a.
        xyz_a, xyz_b (3,) [m], rotation_a, rotation_b (3, 3): poses of the frames in their links.
        axis (3,): in both frames, of kinds that have one: of the hinge, the slide, or the normal of the plane; default
            z.
        independent: names of joints whose coordinates are to be the robot's; the others on loops follow. Without them,
            those are chosen with which the others are best determined.
        build() then makes a LoopRobot: its q are the independent coordinates, its tree has all.
        Raises ModelError, ShapeError, UnknownName for a kind that is not there.
        """
        self._new("loop", name, self._loops)
        where = f"{self.name}: loop {name!r}"
        directions = directions_of(where, kind)
        a, b = self._rotation(name, None, rotation_a), self._rotation(name, None, rotation_b)
        if axis is not None:
            turn = axis_frame(self._axis(name, "revolute", axis), 0.0)
            a, b = a @ turn, b @ turn
        links = self._end(name, "first link", link_a), self._end(name, "second link", link_b)
        independent = () if independent is None else independent
        several = np.iterable(independent) and not isinstance(independent, str)
        if not several or not all(isinstance(x, str) for x in independent):
            self._refuse(f"loop {name!r}: independent is {independent!r}, expected names of joints")
        p_a, p_b = _vector(f"{where}: xyz_a", xyz_a), _vector(f"{where}: xyz_b", xyz_b)
        named = kind if isinstance(kind, str) else ", ".join(directions)
        self._loops[name] = Loop(name, named, directions, links, (-1, -1), a, p_a, b, p_b, tuple(independent))

    def couple(self, joint: str, of: str | Sequence[str], function: Callable[[Any], Any]) -> None:
        """The coordinate of `joint` is function(x), x (n,) those of the joints `of` [rad, m]: gears, belts, ropes.

        function: a casadi.Function or a callable that casadi symbols pass through, twice differentiable. All these
        joints have one coordinate. A linear rule of one joint is add_joint(mimic=). Raises ModelError.
        """
        self._couplings.append(coupling(self.name, joint, of, function))

    def build(
        self,
        floating_base: bool = False,
        lock: Mapping[str, Numbers] | None = None,
        start: Numbers | Mapping[str, Numbers] | None = None,
    ) -> Robot:
        """The Robot. `floating_base` lets the root link float on a free joint "root_joint"; `lock` {joint: value}
        holds joints at a value. A robot with loops is assembled from `start` on, {joint: value}, zero for others.
        Raises ModelError listing everything wrong with the tree, or the links whose inertia makes the mass matrix
        indefinite, or loops that cannot be closed; UnknownName for a joint to lock, or the link of a shape, that is not
        there.
        """
        named = [x.link for x in self._collisions] + [link for pair in self._may_touch for link in pair]
        strange = [link for link in named if link not in self._links]
        if strange:
            raise UnknownName(f"link of {self.name} with a collision shape", strange[0], self._links)
        robot = assemble(
            self.name,
            dict(self._links),
            tuple(self._joints.values()),
            gravity=self.gravity,
            floating_base=floating_base,
            lock=lock,
            report=self._notes,
            collisions=self._collisions,
        )
        problems = definite_problems(robot) if self.check_inertia else []
        if problems:
            raise ModelError(self.name, problems)
        doubts = motion_doubts(robot)
        for some in filter(None, doubts):
            warnings.warn(f"{self.name}: {'; '.join(some)}", ModelWarning, stacklevel=2)
        report = (*robot.report, *(text for some in doubts for text in some))
        robot = replace(robot, report=report, may_touch=tuple(self._may_touch))
        if not self._loops and not self._couplings:
            if start is not None:
                self._refuse("start is for assembling loops, and there are none")
            return robot
        refuse_fluid("a robot with loops", robot)
        return close_tree(robot, [self._placed(robot, x) for x in self._loops.values()], self._couplings, start=start)

    def _placed(self, robot: Robot, loop: Loop) -> Loop:
        """A loop, its frames in the bodies that carry its links."""
        a, b = (robot.frame(link) for link in loop.links)
        if a.body == b.body:
            self._refuse(f"loop {loop.name!r}: {a.name!r} and {b.name!r} are one body; a loop is between two")
        return replace(
            loop,
            bodies=(a.body, b.body),
            rotation_a=a.rotation @ loop.rotation_a,
            translation_a=a.rotation @ loop.translation_a + a.translation,
            rotation_b=b.rotation @ loop.rotation_b,
            translation_b=b.rotation @ loop.translation_b + b.translation,
        )

    # -- checks -----------------------------------------------------------------------------------------------

    def _refuse(self, problem: str) -> NoReturn:
        raise ModelError(self.name, [problem])

    def _new(self, what: str, name: object, known: Container[object]) -> None:
        if not isinstance(name, str) or not name:
            self._refuse(f"the name of a {what} is {name!r}, expected text")
        if name in known:
            self._refuse(f"{what} {name!r} is defined more than once; give every {what} its own name")

    def _end(self, name: str, end: str, link: str | None) -> str:
        if not isinstance(link, str) or not link:
            self._refuse(f"joint {name!r}: its {end} is {link!r}, expected the name of a link")
        return link

    def _number(self, what: str, value: Any) -> float:
        """A float that is not NaN."""
        try:
            number = as_floats(what, value)
        except ShapeError:
            number = np.array(np.nan)
        if number.size != 1 or np.isnan(number).any():
            self._refuse(f"{what} is {value!r}, expected a number")
        return float(number.reshape(-1)[0])

    def _tensor(self, name: str, value: Any) -> Array:
        where = f"{self.name}: link {name!r}: inertia"
        value = _array(where, value)
        if value.shape == (6,):
            xx, xy, xz, yy, yz, zz = value
            value = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if value.shape != (3, 3):
            raise ShapeError(
                f"{where}: got shape {value.shape}, expected (3, 3) or six numbers xx, xy, xz, yy, yz, zz; "
                "np.diag makes a matrix of three principal moments"
            )
        if not are_sane(value):
            self._refuse(f"link {name!r}: inertia is {value.tolist()}, expected finite numbers")
        if np.max(np.abs(value - value.T)) > 1e-9 * np.max(np.abs(value)):
            self._refuse(f"link {name!r}: inertia is not symmetric: {value.tolist()}")
        return 0.5 * (value + value.T)

    def _rotation(self, name: str, rpy: Any, rotation: Any) -> Array:
        where = f"{self.name}: joint {name!r}"
        if rpy is not None and rotation is not None:
            self._refuse(f"joint {name!r}: both rpy and rotation are given; give one")
        if rotation is None:
            return np.array(so3.rpy(*_vector(f"{where}: rpy", (0.0, 0.0, 0.0) if rpy is None else rpy)))
        R = _array(f"{where}: rotation", rotation)
        if R.shape != (3, 3):
            raise ShapeError(f"{where}: rotation: got shape {R.shape}, expected (3, 3)")
        if not are_sane(R) or np.max(np.abs(R @ R.T - np.eye(3))) > 1e-9 or np.linalg.det(R) < 0:
            self._refuse(f"joint {name!r}: rotation is not a rotation matrix: {R.tolist()}")
        return R

    def _axis(self, name: str, kind: str, axis: Any) -> Array:
        if axis is None:
            return np.array([0.0, 0.0, 1.0])
        if kind in ("fixed", *jt.WITHOUT_AXIS):
            self._refuse(f"joint {name!r} is {kind} and has no axis; leave it out, turn the joint by rpy instead")
        axis = _vector(f"{self.name}: joint {name!r}: axis", axis)
        if np.linalg.norm(axis) < 1e-9:
            self._refuse(f"joint {name!r}: its axis is zero; give a direction such as (0, 0, 1)")
        return axis / np.linalg.norm(axis)

    def _motion(self, name: str, kind: str, transform: Any, coordinates: Any) -> ca.Function | None:
        if kind != "transform":
            if transform is not None:
                self._refuse(f"joint {name!r} is {kind}; only a transform joint takes transform=")
            return None
        if transform is None:
            self._refuse(f"joint {name!r} is of kind transform and needs transform=, its pose as a function of q")
        n = transform.size1_in(0) if isinstance(transform, ca.Function) else coordinates
        if not isinstance(n, int) or n < 1:
            self._refuse(f"joint {name!r}: coordinates is {n!r}, expected the number of coordinates of transform")
        q = ca.SX.sym("q", n)
        try:
            R, p = (ca.densify(ca.SX(x)) for x in transform(q))
            motion = ca.Function("motion", [q], [R, p], ["q"], ["R", "p"])
        except Exception as error:
            self._refuse(f"joint {name!r}: transform(q) with {n} symbols does not give (R, p): {error}")
        if motion.size_out(0) != (3, 3) or motion.size_out(1) != (3, 1):
            self._refuse(
                f"joint {name!r}: transform gives shapes {motion.size_out(0)} and {motion.size_out(1)}, "
                "expected (3, 3) and (3, 1)"
            )
        R = np.array(motion(np.linspace(0.1, 0.2, n))[0])
        if not np.max(np.abs(R @ R.T - np.eye(3))) <= 1e-9 or np.linalg.det(R) < 0:
            self._refuse(f"joint {name!r}: transform gives no rotation matrix: {R.tolist()}")
        return motion

    def _pitch(self, name: str, kind: str, pitch: Any) -> float:
        if kind == "helical":
            if pitch is None:
                self._refuse(f"joint {name!r} is helical and needs pitch [m/rad]")
            pitch = self._number(f"joint {name!r}: pitch", pitch)
            if not are_sane(pitch):
                self._refuse(f"joint {name!r}: pitch is {pitch}, expected a finite number")
            return pitch
        if pitch is not None:
            self._refuse(f"joint {name!r} is {kind}; only a helical joint has a pitch")
        return 0.0

    def _limits(self, name: str, kind: str, limits: dict[str, Any]) -> dict[str, Any]:
        given = {key: self._number(f"joint {name!r}: limit {key}", x) for key, x in limits.items() if x is not None}
        if given and jt.NQ.get(kind) != 1:
            self._refuse(f"joint {name!r} is {kind}; only joints of one coordinate have limits, got {', '.join(given)}")
        if kind == "continuous" and ("lower" in given or "upper" in given):
            self._refuse(f"joint {name!r} is continuous and turns without end; with lower or upper it is revolute")
        for key in _LIMITS:
            if given.get(key, 0) < 0:
                self._refuse(f"joint {name!r}: limit {key} is {given[key]:g}, expected a number of at least 0")
        lower, upper = given.get("lower", -_INF), given.get("upper", _INF)
        if lower > upper:
            self._refuse(f"joint {name!r}: lower limit {lower:g} is above the upper limit {upper:g}")
        return given

    def _drive(
        self, name: str, kind: str, armature: Any, rotor_inertia: Any, gear_ratio: Any, damping: Any, friction: Any
    ) -> dict[str, Any]:
        if gear_ratio is not None and rotor_inertia is None:
            self._refuse(f"joint {name!r}: gear_ratio is given without rotor_inertia")
        values = {"armature": armature, "rotor_inertia": rotor_inertia, "damping": damping, "friction": friction}
        values = {key: self._number(f"joint {name!r}: {key}", 0.0 if x is None else x) for key, x in values.items()}
        for key, value in values.items():
            if not 0 <= value < HUGE:
                self._refuse(f"joint {name!r}: {key} is {value:g}, expected a finite number of at least 0")
        if any(values.values()) and kind in ("fixed", "planar", "free"):
            named = ", ".join(key for key, value in values.items() if value)
            self._refuse(f"joint {name!r} is {kind} and cannot have {named}")
        ratio = self._number(f"joint {name!r}: gear_ratio", 1.0 if gear_ratio is None else gear_ratio)
        if not are_sane(ratio):
            self._refuse(f"joint {name!r}: gear_ratio is {ratio:g}, expected a finite number")
        values["armature"] += values.pop("rotor_inertia") * ratio**2
        return values

    def _mimic(self, name: str, rule: Any) -> Mimic | None:
        if rule is None or isinstance(rule, Mimic):
            return rule
        rule = tuple(rule) if isinstance(rule, (tuple, list)) else (rule,)
        if not 1 <= len(rule) <= 3 or not isinstance(rule[0], str):
            self._refuse(f"joint {name!r}: mimic is {rule!r}, expected (joint, multiplier, offset)")
        numbers = [self._number(f"joint {name!r}: mimic", x) for x in rule[1:]]
        if not are_sane(numbers):
            self._refuse(f"joint {name!r}: mimic is {rule!r}, expected finite numbers")
        return Mimic(rule[0], *numbers)


def _array(where: str, value: Any) -> Array:
    return np.array(as_floats(where, value))


def _vector(where: str, value: Any) -> Array:
    value = _array(where, value).reshape(-1)
    if value.size != 3 or not are_sane(value):
        raise ShapeError(f"{where}: got {value.tolist()}, expected three finite numbers")
    return value
