"""Robots from SDF files: links and joints of one model, links with several parents, gearboxes, springs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import ModelError, UnknownName
from ..lie import so3
from ..lie.so3 import axis_frame
from ..numbers import HUGE
from ..types import Array, Numbers
from .builder import RobotBuilder, _vector
from .canonical import CLEAN
from .robot import Robot, checked_tolerance
from .xml_read import read_xml

KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "ball": "spherical",
    "universal": "universal",
    "screw": "helical",
}
_LOOPS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "weld",
    "ball": "position",
}
_MOST, _CHAIN = 10_000, 200  # links, joints and frames together; poses relative to each other
_INF = 1e15  # limits from here on are none: files write 1e16
Pose = tuple[Array, Array]


@dataclass(frozen=True)
class Spring:
    """A spring at a joint: torque = stiffness (reference - q) [Nm/rad or N/m, rad or m]."""

    joint: str
    stiffness: float
    reference: float


def load_sdf(
    path_or_xml: str | bytes | os.PathLike[str],
    *,
    floating_base: bool = False,
    lock: Mapping[str, Numbers] | None = None,
    gravity: Numbers = (0.0, 0.0, -9.81),
    independent: tuple[str, ...] = (),
    start: Mapping[str, Numbers] | None = None,
    snap_angles: float = CLEAN,
    check_inertia: bool = True,
) -> Robot:
    """Robot of an SDF file; a LoopRobot where links have several parents, or there are gearboxes.

    path_or_xml: path (str, Path) or XML itself (str, bytes), one model in it. floating_base: puts a free joint above
    the root link. lock: {joint: value [rad or m]}. gravity: (3,) [m/s^2] in the world, where the model's pose counts.
    independent: joints whose coordinates the robot's shall be, where there are loops; start: where these are assembled
    from, {joint: value}. snap_angles: entries of rotations this close to 0 or 1 are taken as exact, such as 1e-5 for a
    file that writes 1.5708 for a quarter turn: loops in a plane may not close otherwise. check_inertia: False accepts
    inertias that no real body has.

    The first joint of the file that moves a link is the tree's, a ball joint only where there is no other; all others
    close loops: revolute, prismatic, fixed and ball joints can. A gearbox couples the joints between its reference
    body and its two links. Poses are
    those of SDF 1.2 to 1.12, in frames too; angles in radians, or degrees where the pose says so. Limits of 1e15 and
    above are none. `sdf_springs` gives the springs of joints. Sensors, plugins, visuals and collision shapes are not
    read; nested models and <include> are refused. `robot.report` tells what was assumed.
    Raises FileNotFoundError; ModelError with the line, element and name of what is wrong; UnknownName for joints that
    are not there. Source: SDFormat specification (sdformat.org/spec).
    """
    independent = (independent,) if isinstance(independent, str) else tuple(independent or ())
    file = _File(path_or_xml, checked_tolerance("load_sdf: snap_angles", snap_angles))
    for name in independent:
        if name not in file.joints:
            raise UnknownName(f"joint of {file.source} to be independent", name, file.joints)
    if not floating_base:
        gravity = file.seen_from_root(_vector("load_sdf: gravity", gravity))
    builder = RobotBuilder(file.name, gravity, check_inertia=check_inertia)
    try:
        file.build(builder, independent)
        return builder.build(floating_base, lock, start)
    except ModelError as error:
        raise ModelError(file.source, error.problems) from None


def sdf_springs(path_or_xml: str | bytes | os.PathLike[str]) -> tuple[Spring, ...]:
    """The springs of joints of an SDF file, <spring_stiffness> and <spring_reference>; see load_sdf, whose errors it
    raises."""
    return tuple(_File(path_or_xml).springs)


@dataclass
class _Link:
    name: str
    pose: Pose
    mass: float
    com: Array
    tensor: Array


@dataclass
class _Axis:
    direction: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))  # in model axes
    limits: dict[str, float] = field(default_factory=dict)
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    reference: float = 0.0


@dataclass
class _Joint:
    name: str
    kind: str
    parent: str
    child: str
    pose: Pose  # in the model
    axes: list[_Axis]
    pitch: float = 0.0
    ratio: float = 0.0
    reference_body: str = ""
    line: int | None = None


class _File:
    """What an SDF file says: links, joints, springs. All poses are in the frame of the model, at rest."""

    def __init__(self, path_or_xml: Any, snap: float = CLEAN) -> None:
        self.snap = snap
        self.source, stem, root, self.offset = read_xml(path_or_xml, "SDF")
        self.notes: list[str] = []
        self.version = self._version(root)
        self.model = self._model(root)
        self.name = self.model.get("name") or stem
        children = list(self.model.iterchildren("*"))
        if len(children) > _MOST:
            self.wrong(self.model, f"has {len(children)} elements; more than {_MOST} are not read")
        for e in children:
            if e.tag in ("include", "model"):
                self.wrong(e, f"<{e.tag}> is not read; write the file out with its parts in it (gz sdf -p FILE)")
        self._raw = {kind: self._named(kind) for kind in ("link", "joint", "frame")}
        self._poses: dict[str, Pose] = {"__model__": (np.eye(3), np.zeros(3)), "world": (np.eye(3), np.zeros(3))}
        self._waiting: list[str] = []
        self.place = self._pose(self.model, "the model", "__model__")  # in the world
        self._poses["world"] = _inverse(self.place)
        self._of_joints = {n: self._text(e, "child") for n, e in self._raw["joint"].items()}
        self.links = {n: self._link(n, e) for n, e in self._raw["link"].items()}
        self.joints = {n: self._joint(n, e) for n, e in self._raw["joint"].items()}
        self.springs = [
            Spring(j.name, a.stiffness, a.reference) for j in self.joints.values() for a in j.axes if a.stiffness
        ]

    # -- reading ------------------------------------------------------------------------------------------------------

    def wrong(self, e: Any, text: str) -> Any:
        line = "" if e is None or e.sourceline is None else f"line {e.sourceline + self.offset}: "
        raise ModelError(self.source, [f"{line}{text}"])

    def _version(self, root: Any) -> tuple[int, int]:
        if root.tag != "sdf":
            self.wrong(root, f"begins with <{root.tag}>; an SDF file holds an <sdf> element")
        found = re.fullmatch(r"1\.(\d{1,2})", root.get("version") or "")
        minor = int(found[1]) if found else 0
        if not 2 <= minor <= 12:
            self.wrong(root, f"version is {root.get('version')!r}; versions 1.2 to 1.12 are read")
        return 1, minor

    def _model(self, root: Any) -> Any:
        models = [*root.findall("model"), *root.findall("world/model")]
        if len(models) != 1:
            names = ", ".join(repr(m.get("name")) for m in models[:8]) or "none"
            self.wrong(root, f"holds {len(models)} models ({names}); give a file with one")
        return models[0]

    def _named(self, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for e in self.model.findall(kind):
            name = (e.get("name") or "").strip()
            if not name or len(name) > 200:
                self.wrong(e, f"a <{kind}> has no name, or one of more than 200 letters")
            if name in found or (kind == "frame" and name in self._raw_links()):
                self.wrong(e, f"{kind} {name!r} is defined more than once")
            found[name] = e
        return found

    def _raw_links(self) -> set[str]:
        return {e.get("name") for e in self.model.findall("link")}

    def _text(self, e: Any, tag: str, default: str = "") -> str:
        found = e.find(tag)
        return default if found is None or found.text is None else found.text.strip()

    def _numbers(self, e: Any, count: int, what: str) -> Array:
        words = (e.text or "").split()
        try:
            values = np.array([float(x) for x in words])
        except ValueError:
            values = np.zeros(0)
        if values.size != count or not np.all(np.abs(values) < HUGE):
            shown = " ".join(words)[:60]
            self.wrong(e, f"{what}: <{e.tag}> is {shown!r}, expected {count} finite number{'s' if count > 1 else ''}")
        return values

    def _number(self, e: Any, tag: str, what: str, default: float = 0.0) -> float:
        found = e.find(tag)
        return default if found is None else float(self._numbers(found, 1, what)[0])

    # -- poses --------------------------------------------------------------------------------------------------------

    def _pose(self, e: Any, what: str, default_frame: str) -> Pose:
        """Pose of <pose> in an element, in the model."""
        found = e.find("pose")
        values, frame, unit = np.zeros(6), "", 1.0
        if found is not None:
            form = found.get("rotation_format", "euler_rpy")
            quaternion = form == "quat_xyzw"
            if form not in ("euler_rpy", "quat_xyzw"):
                self.wrong(found, f"{what}: rotation_format is {form!r}, expected euler_rpy or quat_xyzw")
            unit = np.pi / 180 if found.get("degrees", "false") in ("true", "1") else 1.0
            if (found.text or "").strip() or quaternion:
                values = self._numbers(found, 7 if quaternion else 6, what)
            frame = found.get("relative_to") or found.get("frame") or ""
            if quaternion:
                x, y, z, w = values[3:]
                norm = np.linalg.norm(values[3:])
                if norm < 1e-6:
                    self.wrong(found, f"{what}: its quaternion is zero")
                R = np.array(so3.quat_to_rot(np.array([w, x, y, z]) / norm))
                return _compose(self.pose_of(frame or default_frame, found, what), (R, values[:3]))
        R = np.array(so3.rpy(*(unit * values[3:])), float) if values[3:].any() else np.eye(3)
        return _compose(self.pose_of(frame or default_frame, found, what), (R, values[:3]))

    def pose_of(self, frame: str, e: Any, what: str, chain: tuple[str, ...] = ()) -> Pose:
        """Pose in the model of a link, joint or frame."""
        if frame in self._poses:
            return self._poses[frame]
        if frame in self._waiting:
            self.wrong(e, f"{what}: the pose of {frame!r} depends on itself")
        if len(self._waiting) > _CHAIN:
            self.wrong(e, f"{what}: more than {_CHAIN} poses are relative to each other")
        self._waiting.append(frame)
        for kind, default in (("link", "__model__"), ("joint", ""), ("frame", "")):
            if frame in self._raw[kind]:
                own = self._raw[kind][frame]
                if kind == "joint":
                    default = self._of_joints[frame]
                elif kind == "frame":
                    default = own.get("attached_to") or "__model__"
                R, p = self._pose(own, f"{kind} {frame!r}", default)
                found = _snapped(R, self.snap), p
                break
        else:
            self.wrong(e, f"{what}: there is no link, joint or frame {frame!r}")
        self._waiting.pop()
        self._poses[frame] = found
        return found

    # -- links and joints ---------------------------------------------------------------------------------------------

    def _link(self, name: str, e: Any) -> _Link:
        what = f"link {name!r}"
        self._waiting = []
        pose, inertial = self.pose_of(name, e, what), e.find("inertial")
        if inertial is None:
            return _Link(name, pose, 1.0, np.zeros(3), np.eye(3)) if self._default_mass(name) else _massless(name, pose)
        mass = self._number(inertial, "mass", what, 1.0)
        tensor = np.eye(3)
        given = inertial.find("inertia")
        if given is not None:
            keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
            xx, xy, xz, yy, yz, zz = (
                self._number(given, k, what, 1.0 if k in ("ixx", "iyy", "izz") else 0.0) for k in keys
            )
            tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        R, p = self._relative_pose(inertial, what)
        return _Link(name, pose, mass, p, R @ tensor @ R.T)

    def _default_mass(self, name: str) -> bool:
        self.notes.append(f"link {name!r} has no <inertial>: SDF gives it 1 kg and 1 kg m^2")
        return True

    def _relative_pose(self, e: Any, what: str) -> Pose:
        """Pose of an inertial in its link, whose frame alone it can be seen from."""
        found = e.find("pose")
        if found is not None and (found.get("relative_to") or found.get("frame")):
            self.wrong(found, f"{what}: the pose of <inertial> in another frame than the link's is not read")
        identity = np.eye(3), np.zeros(3)
        self._poses["__own__"] = identity
        return self._pose(e, what, "__own__")

    def _joint(self, name: str, e: Any) -> _Joint:
        kind, what = e.get("type") or "", f"joint {name!r}"
        if kind not in (*KINDS, "gearbox", "revolute2"):
            known = ", ".join((*KINDS, "revolute2", "gearbox"))
            self.wrong(e, f"{what} has type {kind!r}; supported: {known}")
        parent, child = self._text(e, "parent"), self._text(e, "child")
        for end, link in (("parent", parent), ("child", child)):
            if link not in self._raw["link"] and not (end == "parent" and link == "world"):
                self.wrong(e, f"{what}: its {end} is {link!r}, which is no link of the model")
        self._waiting = []
        R, p = self._pose(e, what, child)  # a link may have the same name
        pose = _snapped(R, self.snap), p
        axes = [self._axis(x, pose, what) for x in (e.find("axis"), e.find("axis2")) if x is not None]
        needed = {"fixed": 0, "ball": 0, "universal": 2, "revolute2": 2, "gearbox": 2}.get(kind, 1)
        axes = axes[:needed] if needed else []
        if len(axes) < needed:
            self.wrong(e, f"{what} is {kind} and needs {needed} axes, it has {len(axes)}")
        joint = _Joint(name, "universal" if kind == "revolute2" else kind, parent, child, pose, axes, line=e.sourceline)
        if kind == "screw":
            joint.pitch = self._pitch(e, what)
        if kind == "gearbox":
            joint.ratio = self._number(e, "gearbox_ratio", what, 1.0)
            joint.reference_body = self._text(e, "gearbox_reference_body")
        if kind in ("revolute", "continuous"):  # a joint without limits turns round
            limits = axes[0].limits
            joint.kind = "revolute" if "lower" in limits or "upper" in limits else "continuous"
        return joint

    def _pitch(self, e: Any, what: str) -> float:
        if e.find("screw_thread_pitch") is not None:
            return self._number(e, "screw_thread_pitch", what) / (2 * np.pi)  # [m] a turn
        pitch = self._number(e, "thread_pitch", what, 1.0)  # [rad/m], against the axis
        if not pitch:
            self.wrong(e, f"{what}: its thread_pitch is zero")
        return -1.0 / pitch

    def _axis(self, e: Any, pose: Pose, what: str) -> _Axis:
        xyz = e.find("xyz")
        direction = np.array([0.0, 0.0, 1.0]) if xyz is None else self._numbers(xyz, 3, what)
        if np.linalg.norm(direction) < 1e-9:
            self.wrong(xyz, f"{what}: its axis is zero")
        seen_from = "" if xyz is None else xyz.get("expressed_in") or ""
        if self.version < (1, 5) or self._text(e, "use_parent_model_frame") in ("1", "true"):
            R: Array = np.eye(3)
        else:
            R = self.pose_of(seen_from, xyz, what)[0] if seen_from else pose[0]
        along = R @ direction / np.linalg.norm(direction)
        along[np.abs(along) < self.snap] = 0.0
        out = _Axis(along / np.linalg.norm(along))
        limit, dynamics = e.find("limit"), e.find("dynamics")
        if limit is not None:
            for key, of in (("lower", "lower"), ("upper", "upper"), ("effort", "effort"), ("velocity", "velocity")):
                if limit.find(key) is not None:
                    words = (limit.find(key).text or "").strip().lower()
                    value = float(words) if words in ("inf", "-inf") else self._number(limit, key, what)
                    if abs(value) < _INF and not (of in ("effort", "velocity") and value < 0):  # -1: none
                        out.limits[of] = value
        if dynamics is not None:
            out.damping, out.friction = (self._number(dynamics, k, what) for k in ("damping", "friction"))
            out.stiffness = self._number(dynamics, "spring_stiffness", what)
            out.reference = self._number(dynamics, "spring_reference", what)
        return out

    # -- building -----------------------------------------------------------------------------------------------------

    def seen_from_root(self, gravity: Array) -> Array:
        """Gravity in the frame of the link that no joint moves, which stands in the world as its pose says."""
        moved = {j.child for j in self.joints.values()}
        roots = [x for n, x in self.links.items() if n not in moved]
        if len(roots) != 1 or any(j.parent == "world" for j in self.joints.values()):
            return gravity
        return (self.place[0] @ roots[0].pose[0]).T @ gravity

    def build(self, b: RobotBuilder, independent: tuple[str, ...]) -> None:
        """All of it in a RobotBuilder: links whose joint is elsewhere than their frame hang on it by a fixed joint."""
        moved = {"world"}
        tree: list[_Joint] = []
        others: list[_Joint] = []
        joints = [j for j in self.joints.values() if j.kind != "gearbox"]
        for j in sorted(joints, key=lambda j: j.kind == "ball"):  # balls last: loops are best cut there
            (others if j.child in moved else tree).append(j)
            moved.add(j.child)
        tree, others = (sorted(some, key=joints.index) for some in (tree, others))
        roots = [n for n in self.links if n not in moved]
        grounded = any(j.parent == "world" for j in tree)
        if len(roots) + grounded != 1:
            shown = ", ".join(map(repr, roots[:8])) or "none"
            self.wrong(self.model, f"expected one link that no joint moves, found {len(roots) + grounded}: {shown}")
        placed: dict[str, Pose] = {}  # frames in the model of links of the builder
        if grounded:
            b.add_link("world")
            placed["world"] = self._poses["world"]
        for name in roots:
            self._add_link(b, self.links[name], self.links[name].pose)
            placed[name] = self.links[name].pose
        ends = {link: j.pose[1] for j in others for link in (j.child, j.parent)}
        self._grow(b, [_split(j, ends) for j in tree], placed)
        for j in others:
            self._close(b, j, placed, independent)
        for j in self.joints.values():
            if j.kind == "gearbox":
                self._gear(b, j, independent)
        b._notes.extend(self.notes)

    def _grow(self, b: RobotBuilder, tree: list[_Joint], placed: dict[str, Pose]) -> None:
        waiting = list(tree)
        while waiting:
            ready = [j for j in waiting if j.parent in placed]
            if not ready:
                self.wrong(self.model, f"joints {', '.join(repr(j.name) for j in waiting[:8])} hang on no root")
            for j in ready:
                self._add_joint(b, j, placed)
                waiting.remove(j)

    def _add_link(self, b: RobotBuilder, link: _Link, frame: Pose) -> None:
        """A link whose frame in the builder is `frame`, its own where no joint moves it."""
        R, p = _compose(_inverse(frame), link.pose)
        b.add_link(link.name, link.mass, p + R @ link.com, R @ link.tensor @ R.T)

    def _add_joint(self, b: RobotBuilder, j: _Joint, placed: dict[str, Pose]) -> None:
        link = self.links[j.child]
        if j.kind == "rod":
            self._add_rod(b, j, placed)
            return
        frame, axis = _joint_frame(j)
        own = j.kind == "fixed" or np.allclose(frame[1], link.pose[1], atol=1e-12)
        frame = link.pose if j.kind == "fixed" else (link.pose[0], frame[1]) if j.kind != "universal" else frame
        R, p = _compose(_inverse(placed[j.parent]), frame)
        facts: dict[str, Any] = {"xyz": p, "rotation": R}
        if j.kind not in ("fixed", "ball"):
            facts["axis"] = frame[0].T @ axis
        if j.kind == "screw":
            facts["pitch"] = j.pitch
        if len(j.axes) == 1:
            a = j.axes[0]
            facts |= {"damping": a.damping, "friction": a.friction, **a.limits}
            if j.kind == "continuous":
                facts = {k: x for k, x in facts.items() if k not in ("lower", "upper")}
        elif any(a.limits or a.damping or a.friction for a in j.axes):
            self.notes.append(f"joint {j.name!r} is {j.kind}; its limits, damping and friction are not read")
        own = own and j.kind != "universal"
        child = j.child if own else f"{j.name}_frame"
        b.add_joint(j.name, KINDS[j.kind], j.parent, child, **facts)
        if own:
            self._add_link(b, link, frame)
            placed[j.child] = frame
            return
        b.add_link(child)
        R, p = _compose(_inverse(frame), link.pose)
        b.add_joint(f"{j.name}_fixed", "fixed", child, j.child, xyz=p, rotation=R)
        self._add_link(b, link, link.pose)
        placed[j.child] = link.pose

    def _add_rod(self, b: RobotBuilder, j: _Joint, placed: dict[str, Pose]) -> None:
        """A ball joint that carries a rod to where a loop is closed: two turns across the rod and its spin, which loops
        may determine."""
        link, along = self.links[j.child], j.axes[0].direction
        A = axis_frame(along, 0.0)
        across = np.column_stack([A[:, 0], along, np.cross(A[:, 0], along)]), j.pose[1]
        R, p = _compose(_inverse(placed[j.parent]), across)
        b.add_joint(j.name, "universal", j.parent, f"{j.name}_swing", xyz=p, rotation=R)
        b.add_link(f"{j.name}_swing")
        b.add_joint(f"{j.name}_spin", "continuous", f"{j.name}_swing", f"{j.name}_rod", axis=(0, 1, 0))
        b.add_link(f"{j.name}_rod")
        R, p = _compose(_inverse(across), link.pose)
        b.add_joint(f"{j.name}_fixed", "fixed", f"{j.name}_rod", j.child, xyz=p, rotation=R)
        self._add_link(b, link, link.pose)
        placed[j.child] = link.pose
        self.notes.append(f"ball joint {j.name!r} on a loop is read as a universal joint and the spin {j.name}_spin")

    def _close(self, b: RobotBuilder, j: _Joint, placed: dict[str, Pose], independent: tuple[str, ...]) -> None:
        if j.kind not in _LOOPS:
            problem = f"joint {j.name!r} gives link {j.child!r} a second parent; a {j.kind} joint cannot close a loop"
            raise ModelError(self.source, [problem])
        frame, axis = _joint_frame(j)
        if j.axes:
            frame = axis_frame(axis, 0.0), frame[1]
        ends = [_compose(_inverse(placed[x]), frame) for x in (j.parent, j.child)]
        (Ra, pa), (Rb, pb) = ends
        b.close_loop(
            j.name, j.parent, j.child, _LOOPS[j.kind], xyz_a=pa, rotation_a=Ra, xyz_b=pb, rotation_b=Rb,
            independent=independent,
        )  # fmt: skip
        if j.axes and (j.axes[0].damping or j.axes[0].friction or j.axes[0].limits):
            self.notes.append(f"joint {j.name!r} closes a loop; its limits, damping and friction are not read")

    def _gear(self, b: RobotBuilder, g: _Joint, independent: tuple[str, ...]) -> None:
        """theta_2 = -ratio theta_1, the turns of its parent and its child against its reference body."""
        body = g.reference_body
        found = []
        for link, axis in ((g.parent, g.axes[0]), (g.child, g.axes[1])):
            j = next((j for j in self.joints.values() if j.child == link and j.parent == body and j.axes), None)
            along = None if j is None else float(j.axes[0].direction @ axis.direction)
            if j is None or along is None or abs(abs(along) - 1) > 1e-6:
                what = f"gearbox {g.name!r}: between {body!r} and {link!r} there is no joint about its axis"
                raise ModelError(self.source, [what])
            found.append((j.name, np.sign(along)))
        (first, s1), (second, s2) = found
        factor = -g.ratio * s1 * s2
        if abs(factor) < 1e-12:
            raise ModelError(self.source, [f"gearbox {g.name!r}: its ratio is zero"])
        if second in independent and first not in independent:
            b.couple(first, second, lambda x: x[0] / factor)
        else:
            b.couple(second, first, lambda x: factor * x[0])


def _massless(name: str, pose: Pose) -> _Link:
    return _Link(name, pose, 0.0, np.zeros(3), np.zeros((3, 3)))


def _joint_frame(j: _Joint) -> tuple[Pose, Array]:
    """(frame of the joint in the model, its axis in the model); of universal joints x is turned to the second axis."""
    if j.kind == "universal":
        z, x = j.axes[0].direction, j.axes[1].direction
        if abs(z @ x) > 1e-9:
            raise ModelError(j.name, ["its two axes are not at right angles; other universal joints are not read"])
        return (np.column_stack([x, np.cross(z, x), z]), j.pose[1]), z
    return j.pose, j.axes[0].direction if j.axes else np.zeros(3)


def _split(j: _Joint, ends: Mapping[str, Array]) -> _Joint:
    """A ball joint whose link ends where a loop is closed as a rod to there; others as they are."""
    if j.kind != "ball" or j.child not in ends:
        return j
    along = ends[j.child] - j.pose[1]
    length = float(np.linalg.norm(along))
    return j if length < 1e-6 else replace(j, kind="rod", axes=[_Axis(along / length)])


def _snapped(R: Array, tolerance: float) -> Array:
    """The rotation nearest to R with entries that are almost 0 or 1 made so."""
    out = np.where(np.abs(R) < tolerance, 0.0, R)
    out = np.where(np.abs(np.abs(R) - 1) < tolerance, np.sign(R), out)
    U, _, V = np.linalg.svd(out)
    near = U @ V
    return np.where(np.abs(near) < 1e-15, 0.0, near)


def _compose(a: Pose, b: Pose) -> Pose:
    return a[0] @ b[0], a[0] @ b[1] + a[1]


def _inverse(a: Pose) -> Pose:
    return a[0].T, -a[0].T @ a[1]
