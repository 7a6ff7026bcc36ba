"""A robot as MJCF, MuJoCo's own format: bodies, joints, inertias, drives, limits, frames, collision shapes."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from .. import files
from ..errors import ModelError
from ..interop import quaternion_of
from ..lie.so3 import axis_frame
from ..model.collision import Collision
from ..model.fluid import in_fluid
from ..model.inertia import Inertia, unphysical
from ..model.robot import Body, Joint, Robot, check_robot
from ..scene.meshes import found_path
from ..types import Array, StrPath
from ..validation import flag
from .mjcf_joints import FIRST, axes_of, equality_of

_SMALLEST = 1e-14  # mass and moments of inertia: MuJoCo refuses moving bodies below 1e-15
_MESHES = (".stl", ".obj", ".msh")  # that MuJoCo reads
_SITE = "0.005"  # radius [m] of the dot that shows a frame
Pose = tuple[Array, Array]


def mjcf(robot: Robot, path: StrPath | None = None, *, motors: bool = True) -> str:
    """The robot as text of an MJCF file, which is written to `path` where one is given.

    motors: whether joints of one coordinate that own it get a motor of gear 1 with their effort limit.
    The text holds bodies with what is fixed to them, joints with ranges, efforts, armature, damping and friction,
    frames as sites, gravity, pairs that may touch, and collision shapes; meshes only with a `path`, beside which their
    files are copied to "<stem>_meshes". od.load of it is the same robot: its inverse dynamics agree to rounding.
    Joints that MJCF does not have are several of its own in one body: planar "<joint>.x", ".y", ".angle"; cylindrical
    ".angle", ".distance"; universal ".1", ".2"; helical a hinge and "<joint>.slide" tied to it by an equality, as
    joints that follow another one are. od.interop.to_mujoco knows these names. A body without inertia that carries
    one body is put into that one, and its frames are left out.
    Left out, as MJCF has no place for them: limits of velocity, acceleration, jerk and effort rate, limits of effort
    that are 0 or without a force, and ranges of no width. Moments of inertia of flat bodies are made larger by
    rounding, up to 1e-6, where MuJoCo asks for it.
    Raises ModelError, naming joint or body: a transform joint, a free joint that is not on the ground, bodies that
    MuJoCo would refuse (no mass or inertia, or one that no body has), forces of a fluid.
    """
    check_robot("export.mjcf", robot)
    motors = flag("export.mjcf: motors", motors)
    chains = _chains(robot)
    _refuse(robot, chains)
    writer = _Writer(robot, chains, None if path is None else Path(path))
    text = writer.text(motors)
    if path is not None:
        files.write_text(path, text)
    return text


def _without_inertia(inertia: Inertia) -> bool:
    return inertia.mass == 0 and not np.any(inertia.tensor) and not np.any(inertia.moment)


def _chains(robot: Robot) -> dict[int, list[Body]]:
    """{body: bodies that its element in the file holds, itself last}: those in front of it have no inertia."""
    children: dict[int, list[int]] = {}
    for b in robot.bodies:
        children.setdefault(b.parent, []).append(b.index)
    shapes = {robot.frame(x.link).body for x in robot.collisions}
    waiting: dict[int, list[Body]] = {}
    out = {}
    for b in robot.bodies:  # parents first
        chain = [*waiting.pop(b.parent, []), b]
        passes = b.joint.kind not in ("spherical", "free") and b.index not in shapes
        if passes and _without_inertia(b.inertia) and len(children.get(b.index, [])) == 1:
            below = robot.bodies[children[b.index][0] - 1]
            if below.joint.kind != "free":
                waiting[b.index] = chain
                continue
        out[b.index] = chain
    return out


def _refuse(robot: Robot, chains: dict[int, list[Body]]) -> None:
    problems = []
    if in_fluid(robot):
        problems.append("forces of a fluid on single links have no place in MJCF")
    for b in robot.bodies:
        if b.joint.kind not in FIRST:
            problems.append(f"joint {b.joint.name!r} is {b.joint.kind}; MJCF has no joint like it")
        if b.joint.kind == "free" and b.parent:
            carrier = robot.bodies[b.parent - 1].name
            problems.append(f"free joint {b.joint.name!r} is on {carrier!r}; MuJoCo has them on the ground alone")
        if b.name == "world":
            problems.append("body 'world': MuJoCo calls the ground so; rename it")
    for i in chains:
        b = robot.bodies[i - 1]
        moments = np.linalg.eigvalsh(b.inertia.tensor_com)
        why = unphysical(b.inertia.mass, b.inertia.tensor_com)
        if b.inertia.mass < _SMALLEST or moments[0] < _SMALLEST:
            problems.append(
                f"body {b.name!r} has mass {b.inertia.mass:g} kg and smallest moment of inertia {moments[0]:.3g} "
                "kg m^2; MuJoCo wants both positive: give it some"
            )
        elif why:
            problems.append(f"body {b.name!r}: {why}")
    if problems:
        raise ModelError(f"export.mjcf({robot.name})", problems)


class _Writer:
    """The document that is being made."""

    def __init__(self, robot: Robot, chains: dict[int, list[Body]], path: Path | None) -> None:
        self.robot, self.chains, self.path = robot, chains, path
        self.root = etree.Element("mujoco", model=robot.name)
        element(self.root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false", strippath="false")
        element(self.root, "option", gravity=robot.gravity)
        self.assets = etree.SubElement(self.root, "asset")
        self.elements: dict[int, Any] = {0: etree.SubElement(self.root, "worldbody")}
        self.names: set[str] = set()  # of shapes
        self.meshes: dict[tuple[str, tuple[float, ...]], str] = {}

    def text(self, motors: bool) -> str:
        for i, chain in self.chains.items():
            self._body(self.robot.bodies[i - 1], chain)
        self._frames()
        for shape in self.robot.collisions:
            self._shape(shape)
        self._pairs()
        self._equalities()
        if motors:
            self._motors()
        for section in [e for e in self.root if e.tag in ("asset", "contact", "equality", "actuator") and not len(e)]:
            self.root.remove(section)
        etree.indent(self.root, "  ")
        return str(etree.tostring(self.root, encoding="unicode")) + "\n"

    def _body(self, body: Body, chain: list[Body]) -> None:
        """A body, with the joints of all bodies of its chain in its own frame."""
        R, p = _rest(chain)
        e = element(self.elements[chain[0].parent], "body", name=body.name, pos=p, quat=quaternion_of(R))
        self.elements[body.index] = e
        at: Pose = (np.eye(3), np.zeros(3))  # of a link of the chain in the body, at rest, from the last one up
        poses = []
        for b in reversed(chain):
            poses.append(at)
            inverse = b.rotation.T, -b.rotation.T @ b.translation
            at = at[0] @ inverse[0], at[1] + at[0] @ inverse[1]
        for b, (turn, place) in zip(chain, reversed(poses), strict=True):
            self._joint(e, b.joint, turn, place)
        self._inertia(e, body.inertia)

    def _joint(self, e: Any, j: Joint, turn: Array, place: Array) -> None:
        facts: dict[str, Any] = {}
        for key, value in (("armature", j.armature), ("damping", j.damping), ("frictionloss", j.friction)):
            if value:
                facts[key] = value
        axis = axis_frame(j.axis, 0.0)
        for k, (suffix, kind, direction) in enumerate(axes_of(j)):
            own = dict(facts)
            if kind in ("hinge", "slide"):
                own["axis"] = turn @ (j.axis / np.linalg.norm(j.axis) if direction is None else axis @ direction)
            if j.nq == 1 and k == 0:
                own |= _limits(j)
            if suffix == ".slide":
                own = {"axis": own["axis"]}
            if kind != "free" and place.any():
                own["pos"] = place
            element(e, "joint", name=j.name + suffix, type=kind, **own)

    def _inertia(self, e: Any, inertia: Inertia) -> None:
        moments, axes = np.linalg.eigh(inertia.tensor_com)
        if np.linalg.det(axes) < 0:
            axes[:, 0] *= -1
        short = moments[2] - moments[0] - moments[1]
        if short >= 0:  # a flat body, up to rounding: MuJoCo wants A + B >= C in its own arithmetic
            moments[:2] += short * 0.5 + 4e-16 * moments[2]
        element(
            e, "inertial", pos=inertia.com, quat=quaternion_of(axes), mass=inertia.mass, diaginertia=moments,
        )  # fmt: skip

    def _frames(self) -> None:
        bodies = {b.name for b in self.robot.bodies}
        for f in self.robot.frames.values():
            if f.name in bodies or f.name == "world" or f.body not in self.elements:
                continue
            quat = quaternion_of(f.rotation)
            element(
                self.elements[f.body], "site", name=f.name, pos=f.translation, quat=quat, size=_SITE, group="4",
            )  # fmt: skip

    def _shape(self, shape: Collision) -> None:
        frame = self.robot.frame(shape.link)
        pose = shape.matrix
        R, p = frame.rotation @ pose[:3, :3], frame.rotation @ pose[:3, 3] + frame.translation
        size = np.array(shape.sizes)
        facts: dict[str, Any] = {}
        if shape.kind == "mesh":
            mesh = self._mesh(shape)
            if mesh is None:
                return
            facts["mesh"] = mesh
        elif not np.all(size > 0):
            return  # MuJoCo has no points and sheets
        else:
            facts["size"] = size * {"box": 0.5, "cylinder": (1, 0.5), "capsule": (1, 0.5)}.get(shape.kind, 1)
        if shape.name and shape.name not in self.names:
            self.names.add(shape.name)
            facts["name"] = shape.name
        element(
            self.elements[frame.body], "geom", type=shape.kind, pos=p, quat=quaternion_of(R), group="3", **facts,
        )  # fmt: skip

    def _mesh(self, shape: Collision) -> str | None:
        """Name of a mesh, whose file is copied beside the text; None where there is no place, or no such file."""
        key = shape.mesh, shape.sizes
        if self.path is None:
            return None
        if key not in self.meshes:
            try:
                file = found_path(shape.mesh, self.robot.folder, {})
            except ModelError:
                return None
            if file.suffix.lower() not in _MESHES or not file.is_file():
                return None
            name = f"mesh{len(self.meshes)}"
            copy = Path(f"{self.path.stem}_meshes") / f"{name}_{file.name}"
            (self.path.parent / copy).parent.mkdir(parents=True, exist_ok=True)
            with files.replacing(self.path.parent / copy) as part:
                shutil.copyfile(file, part)
            element(self.assets, "mesh", name=name, file=copy.as_posix(), scale=shape.sizes)
            self.meshes[key] = name
        return self.meshes[key]

    def _pairs(self) -> None:
        section, seen = etree.SubElement(self.root, "contact"), set()
        for links in self.robot.may_touch:
            a, b = sorted(self.robot.frame(x).body for x in links)
            if a != b and (a, b) not in seen and {a, b} <= self.elements.keys():
                seen.add((a, b))
                names = ["world" if not i else self.robot.bodies[i - 1].name for i in (a, b)]
                element(section, "exclude", body1=names[0], body2=names[1])

    def _equalities(self) -> None:
        section = etree.SubElement(self.root, "equality")
        for b in self.robot.bodies:
            for follower, owner, offset, multiplier in equality_of(b.joint):
                element(section, "joint", joint1=follower, joint2=owner, polycoef=[offset, multiplier, 0, 0, 0])

    def _motors(self) -> None:
        section = etree.SubElement(self.root, "actuator")
        for j in self.robot.joints:
            if j.nq == 1 and j.effort > 0:
                range_ = {"ctrlrange": [-j.effort, j.effort]} if np.isfinite(j.effort) else {}
                element(section, "motor", name=j.name, joint=j.name, **range_)


def _rest(chain: Sequence[Body]) -> Pose:
    """Pose of the last body of a chain in what carries the first, at rest."""
    R, p = np.eye(3), np.zeros(3)
    for b in chain:
        R, p = R @ b.rotation, p + R @ b.translation
    return R, p


def _limits(j: Joint) -> dict[str, Any]:
    """Range and effort of a joint of one coordinate."""
    facts = {}
    if j.kind != "continuous" and j.lower < j.upper and np.isfinite([j.lower, j.upper]).any():
        facts["range"] = [j.lower, j.upper]
    if 0 < j.effort < np.inf:
        facts["actuatorfrcrange"] = [-j.effort, j.effort]
    return facts


def element(parent: Any, tag: str, **attributes: Any) -> Any:
    """A new element; numbers are written so that they are read as they were."""
    written = {key: x if isinstance(x, str) else _text(x) for key, x in attributes.items()}
    return etree.SubElement(parent, tag, attrib=written)


def _text(value: float | Iterable[float]) -> str:
    return " ".join(format(x + 0.0, ".17g") for x in np.ravel(np.asarray(value, float)))  # + 0.0: no -0
