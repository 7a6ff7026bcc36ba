"""Robots from SDF files: links and joints of one model, links with several parents, gearboxes, springs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import ModelError, UnknownName
from ..lie.se3 import Ad_inv
from ..lie.so3 import axis_frame
from ..types import Array, Numbers
from .builder import RobotBuilder, _vector
from .canonical import CLEAN
from .robot import Robot, checked_tolerance
from .sdf_read import KINDS, Pose, SdfAxis, SdfFile, SdfJoint, SdfLink, Spring, compose, inverse

_LOOPS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "weld",
    "ball": "position",
}


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
    above are none. `sdf_springs` gives the springs of joints. <fluid_added_mass> is the link's added_inertia, see
    RobotBuilder.add_link. Sensors, plugins, visuals and collision shapes are not read; nested models and <include> are
    refused. `robot.report` tells what was assumed, and what changes the motion but is not read, such as <mimic>.
    Raises FileNotFoundError; ModelError with the line, element and name of what is wrong; UnknownName for joints that
    are not there. Source: SDFormat specification (sdformat.org/spec).
    """
    independent = (independent,) if isinstance(independent, str) else tuple(independent or ())
    file = SdfFile(path_or_xml, checked_tolerance("load_sdf: snap_angles", snap_angles))
    for name in independent:
        if name not in file.joints:
            raise UnknownName(f"joint of {file.source} to be independent", name, file.joints)
    if not floating_base:
        gravity = _seen_from_root(file, _vector("load_sdf: gravity", gravity))
    builder = RobotBuilder(file.name, gravity, check_inertia=check_inertia)
    try:
        _Building(file, builder, independent).build()
        return builder.build(floating_base, lock, start)
    except ModelError as error:
        raise ModelError(file.source, error.problems) from None


def sdf_springs(path_or_xml: str | bytes | os.PathLike[str]) -> tuple[Spring, ...]:
    """The springs of joints of an SDF file, <spring_stiffness> and <spring_reference>; see load_sdf, whose errors it
    raises."""
    return tuple(SdfFile(path_or_xml).springs)


class _Building:
    """What an SDF file says, in a RobotBuilder."""

    def __init__(self, file: SdfFile, builder: RobotBuilder, independent: tuple[str, ...]) -> None:
        self.file, self.b, self.independent = file, builder, independent

    def build(self) -> None:
        """All of it: links whose joint is elsewhere than their frame hang on it by a fixed joint."""
        b, independent = self.b, self.independent
        moved = {"world"}
        tree: list[SdfJoint] = []
        others: list[SdfJoint] = []
        joints = [j for j in self.file.joints.values() if j.kind != "gearbox"]
        for j in sorted(joints, key=lambda j: j.kind == "ball"):  # balls last: loops are best cut there
            (others if j.child in moved else tree).append(j)
            moved.add(j.child)
        tree, others = (sorted(some, key=joints.index) for some in (tree, others))
        roots = [n for n in self.file.links if n not in moved]
        grounded = any(j.parent == "world" for j in tree)
        if len(roots) + grounded != 1:
            shown = ", ".join(map(repr, roots[:8])) or "none"
            self.file.wrong(
                self.file.model, f"expected one link that no joint moves, found {len(roots) + grounded}: {shown}"
            )
        placed: dict[str, Pose] = {}  # frames in the model of links of the builder
        if grounded:
            b.add_link("world")
            placed["world"] = self.file.poses["world"]
        for name in roots:
            self._add_link(b, self.file.links[name], self.file.links[name].pose)
            placed[name] = self.file.links[name].pose
        ends = {link: j.pose[1] for j in others for link in (j.child, j.parent)}
        self._grow(b, [_split(j, ends) for j in tree], placed)
        for j in others:
            self._close(b, j, placed, independent)
        for j in self.file.joints.values():
            if j.kind == "gearbox":
                self._gear(b, j, independent)
        b._notes.extend(self.file.notes)

    def _grow(self, b: RobotBuilder, tree: list[SdfJoint], placed: dict[str, Pose]) -> None:
        waiting = list(tree)
        while waiting:
            ready = [j for j in waiting if j.parent in placed]
            if not ready:
                self.file.wrong(
                    self.file.model, f"joints {', '.join(repr(j.name) for j in waiting[:8])} hang on no root"
                )
            for j in ready:
                self._add_joint(b, j, placed)
                waiting.remove(j)

    def _add_link(self, b: RobotBuilder, link: SdfLink, frame: Pose) -> None:
        """A link whose frame in the builder is `frame`, its own where no joint moves it."""
        R, p = compose(inverse(frame), link.pose)
        added = link.added
        if added is not None:
            twist = np.array(Ad_inv((R, p)), float)  # of the link's frame, from one of `frame`
            added = twist.T @ added @ twist
        b.add_link(link.name, link.mass, p + R @ link.com, R @ link.tensor @ R.T, added_inertia=added)

    def _add_joint(self, b: RobotBuilder, j: SdfJoint, placed: dict[str, Pose]) -> None:
        link = self.file.links[j.child]
        if j.kind == "rod":
            self._add_rod(b, j, placed)
            return
        frame, axis = _joint_frame(j)
        own = j.kind == "fixed" or np.allclose(frame[1], link.pose[1], atol=1e-12)
        frame = link.pose if j.kind == "fixed" else (link.pose[0], frame[1]) if j.kind != "universal" else frame
        R, p = compose(inverse(placed[j.parent]), frame)
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
            self.file.notes.append(f"joint {j.name!r} is {j.kind}; its limits, damping and friction are not read")
        own = own and j.kind != "universal"
        child = j.child if own else f"{j.name}_frame"
        b.add_joint(j.name, KINDS[j.kind], j.parent, child, **facts)
        if own:
            self._add_link(b, link, frame)
            placed[j.child] = frame
            return
        b.add_link(child)
        R, p = compose(inverse(frame), link.pose)
        b.add_joint(f"{j.name}_fixed", "fixed", child, j.child, xyz=p, rotation=R)
        self._add_link(b, link, link.pose)
        placed[j.child] = link.pose

    def _add_rod(self, b: RobotBuilder, j: SdfJoint, placed: dict[str, Pose]) -> None:
        """A ball joint that carries a rod to where a loop is closed: two turns across the rod and its spin, which loops
        may determine."""
        link, along = self.file.links[j.child], j.axes[0].direction
        A = axis_frame(along, 0.0)
        across = np.column_stack([A[:, 0], along, np.cross(A[:, 0], along)]), j.pose[1]
        R, p = compose(inverse(placed[j.parent]), across)
        b.add_joint(j.name, "universal", j.parent, f"{j.name}_swing", xyz=p, rotation=R)
        b.add_link(f"{j.name}_swing")
        b.add_joint(f"{j.name}_spin", "continuous", f"{j.name}_swing", f"{j.name}_rod", axis=(0, 1, 0))
        b.add_link(f"{j.name}_rod")
        R, p = compose(inverse(across), link.pose)
        b.add_joint(f"{j.name}_fixed", "fixed", f"{j.name}_rod", j.child, xyz=p, rotation=R)
        self._add_link(b, link, link.pose)
        placed[j.child] = link.pose
        self.file.notes.append(
            f"ball joint {j.name!r} on a loop is read as a universal joint and the spin {j.name}_spin"
        )

    def _close(self, b: RobotBuilder, j: SdfJoint, placed: dict[str, Pose], independent: tuple[str, ...]) -> None:
        if j.kind not in _LOOPS:
            problem = f"joint {j.name!r} gives link {j.child!r} a second parent; a {j.kind} joint cannot close a loop"
            raise ModelError(self.file.source, [problem])
        frame, axis = _joint_frame(j)
        if j.axes:
            frame = axis_frame(axis, 0.0), frame[1]
        ends = [compose(inverse(placed[x]), frame) for x in (j.parent, j.child)]
        (Ra, pa), (Rb, pb) = ends
        b.close_loop(
            j.name, j.parent, j.child, _LOOPS[j.kind], xyz_a=pa, rotation_a=Ra, xyz_b=pb, rotation_b=Rb,
            independent=independent,
        )  # fmt: skip
        if j.axes and (j.axes[0].damping or j.axes[0].friction or j.axes[0].limits):
            self.file.notes.append(f"joint {j.name!r} closes a loop; its limits, damping and friction are not read")

    def _gear(self, b: RobotBuilder, g: SdfJoint, independent: tuple[str, ...]) -> None:
        """theta_2 = -ratio theta_1, the turns of its parent and its child against its reference body."""
        body = g.reference_body
        found = []
        for link, axis in ((g.parent, g.axes[0]), (g.child, g.axes[1])):
            j = next((j for j in self.file.joints.values() if j.child == link and j.parent == body and j.axes), None)
            along = None if j is None else float(j.axes[0].direction @ axis.direction)
            if j is None or along is None or abs(abs(along) - 1) > 1e-6:
                what = f"gearbox {g.name!r}: between {body!r} and {link!r} there is no joint about its axis"
                raise ModelError(self.file.source, [what])
            found.append((j.name, np.sign(along)))
        (first, s1), (second, s2) = found
        factor = -g.ratio * s1 * s2
        if abs(factor) < 1e-12:
            raise ModelError(self.file.source, [f"gearbox {g.name!r}: its ratio is zero"])
        if second in independent and first not in independent:
            b.couple(first, second, lambda x: x[0] / factor)
        else:
            b.couple(second, first, lambda x: factor * x[0])


def _joint_frame(j: SdfJoint) -> tuple[Pose, Array]:
    """(frame of the joint in the model, its axis in the model); of universal joints x is turned to the second axis."""
    if j.kind == "universal":
        z, x = j.axes[0].direction, j.axes[1].direction
        if abs(z @ x) > 1e-9:
            raise ModelError(j.name, ["its two axes are not at right angles; other universal joints are not read"])
        return (np.column_stack([x, np.cross(z, x), z]), j.pose[1]), z
    return j.pose, j.axes[0].direction if j.axes else np.zeros(3)


def _split(j: SdfJoint, ends: Mapping[str, Array]) -> SdfJoint:
    """A ball joint whose link ends where a loop is closed as a rod to there; others as they are."""
    if j.kind != "ball" or j.child not in ends:
        return j
    along = ends[j.child] - j.pose[1]
    length = float(np.linalg.norm(along))
    return j if length < 1e-6 else replace(j, kind="rod", axes=[SdfAxis(along / length)])


def _seen_from_root(file: SdfFile, gravity: Array) -> Array:
    """Gravity in the frame of the link that no joint moves, which stands in the world as its pose says."""
    moved = {j.child for j in file.joints.values()}
    roots = [x for n, x in file.links.items() if n not in moved]
    if len(roots) != 1 or any(j.parent == "world" for j in file.joints.values()):
        return gravity
    return (file.place[0] @ roots[0].pose[0]).T @ gravity
