"""What an SDF file says: links, joints, axes, springs, all poses in the frame of its model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from ..errors import ModelError
from ..lie import so3
from ..numbers import HUGE
from ..types import Array
from .canonical import CLEAN
from .sdf_unread import unread_of_joint, unread_of_link, unread_of_model
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
_MOST, _CHAIN = 10_000, 200  # links, joints and frames together; poses relative to each other
_INF = 1e15  # limits from here on are none: files write 1e16
Pose = tuple[Array, Array]


@dataclass(frozen=True)
class Spring:
    """A spring at a joint: torque = stiffness (reference - q) [Nm/rad or N/m, rad or m]."""

    joint: str
    stiffness: float
    reference: float


@dataclass
class SdfLink:
    """A link: its pose in the model, mass, centre of mass and tensor in its frame; added (6, 6): the inertia that a
    fluid adds, [angular; linear], in its frame, None if there is none."""

    name: str
    pose: Pose
    mass: float
    com: Array
    tensor: Array
    added: Array | None = None


@dataclass
class SdfAxis:
    """An axis of a joint, in the model's axes, with its limits, damping, friction and spring."""

    direction: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))  # in model axes
    limits: dict[str, float] = field(default_factory=dict)
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    reference: float = 0.0


@dataclass
class SdfJoint:
    """A joint; pose: of its frame in the model."""

    name: str
    kind: str
    parent: str
    child: str
    pose: Pose  # in the model
    axes: list[SdfAxis]
    pitch: float = 0.0
    ratio: float = 0.0
    reference_body: str = ""


class SdfFile:
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
        self.poses: dict[str, Pose] = {"__model__": (np.eye(3), np.zeros(3)), "world": (np.eye(3), np.zeros(3))}
        self._waiting: list[str] = []
        self.place = self._pose(self.model, "the model", "__model__")  # in the world
        self.poses["world"] = inverse(self.place)
        self._of_joints = {n: self._text(e, "child") for n, e in self._raw["joint"].items()}
        self.links = {n: self._link(n, e) for n, e in self._raw["link"].items()}
        self.joints = {n: self._joint(n, e) for n, e in self._raw["joint"].items()}
        self.springs = [
            Spring(j.name, a.stiffness, a.reference) for j in self.joints.values() for a in j.axes if a.stiffness
        ]
        self.notes += [f"joint {s.joint!r}: its spring is in no quantity; sdf_springs gives it" for s in self.springs]
        self.notes += unread_of_model(self.model)

    # -- reading ------------------------------------------------------------------------------------------------------

    def wrong(self, e: Any, text: str) -> Any:
        """Raise ModelError with the line of an element."""
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
                return compose(self.pose_of(frame or default_frame, found, what), (R, values[:3]))
        R = np.array(so3.rpy(*(unit * values[3:])), float) if values[3:].any() else np.eye(3)
        return compose(self.pose_of(frame or default_frame, found, what), (R, values[:3]))

    def pose_of(self, frame: str, e: Any, what: str, chain: tuple[str, ...] = ()) -> Pose:
        """Pose in the model of a link, joint or frame."""
        if frame in self.poses:
            return self.poses[frame]
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
        self.poses[frame] = found
        return found

    # -- links and joints ---------------------------------------------------------------------------------------------

    def _link(self, name: str, e: Any) -> SdfLink:
        what = f"link {name!r}"
        self._waiting = []
        pose, inertial = self.pose_of(name, e, what), e.find("inertial")
        self.notes += unread_of_link(what, e)
        if inertial is None:
            self.notes.append(f"link {name!r} has no <inertial>: SDF gives it 1 kg and 1 kg m^2")
            return SdfLink(name, pose, 1.0, np.zeros(3), np.eye(3))
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
        return SdfLink(name, pose, mass, p, R @ tensor @ R.T, self._added_mass(inertial, what))

    def _added_mass(self, inertial: Any, what: str) -> Array | None:
        """<fluid_added_mass>, which is seen from the link's frame, not from that of <inertial>; x y z are forces and
        accelerations along its axes, p q r about them."""
        given, letters = inertial.find("fluid_added_mass"), "pqrxyz"  # [angular; linear]
        if given is None:
            return None
        added = np.zeros((6, 6))
        for pair in combinations_with_replacement("xyzpqr", 2):
            i, j = map(letters.index, pair)
            added[i, j] = added[j, i] = self._number(given, "".join(pair), f"{what}: fluid_added_mass")
        return added if added.any() else None

    def _relative_pose(self, e: Any, what: str) -> Pose:
        """Pose of an inertial in its link, whose frame alone it can be seen from."""
        found = e.find("pose")
        if found is not None and (found.get("relative_to") or found.get("frame")):
            self.wrong(found, f"{what}: the pose of <inertial> in another frame than the link's is not read")
        identity = np.eye(3), np.zeros(3)
        self.poses["__own__"] = identity
        return self._pose(e, what, "__own__")

    def _joint(self, name: str, e: Any) -> SdfJoint:
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
        self.notes += unread_of_joint(what, e)
        axes = [self._axis(x, pose, what) for x in (e.find("axis"), e.find("axis2")) if x is not None]
        needed = {"fixed": 0, "ball": 0, "universal": 2, "revolute2": 2, "gearbox": 2}.get(kind, 1)
        axes = axes[:needed] if needed else []
        if len(axes) < needed:
            self.wrong(e, f"{what} is {kind} and needs {needed} axes, it has {len(axes)}")
        joint = SdfJoint(name, "universal" if kind == "revolute2" else kind, parent, child, pose, axes)
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

    def _axis(self, e: Any, pose: Pose, what: str) -> SdfAxis:
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
        out = SdfAxis(along / np.linalg.norm(along))
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


def _snapped(R: Array, tolerance: float) -> Array:
    """The rotation nearest to R with entries that are almost 0 or 1 made so."""
    out = np.where(np.abs(R) < tolerance, 0.0, R)
    out = np.where(np.abs(np.abs(R) - 1) < tolerance, np.sign(R), out)
    U, _, V = np.linalg.svd(out)
    near = U @ V
    return np.where(np.abs(near) < 1e-15, 0.0, near)


def compose(a: Pose, b: Pose) -> Pose:
    """Pose b, given in frame a, where a is given."""
    return a[0] @ b[0], a[0] @ b[1] + a[1]


def inverse(a: Pose) -> Pose:
    """Pose of where a is given, in a."""
    return a[0].T, -a[0].T @ a[1]
