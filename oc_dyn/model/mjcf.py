"""Robots from MJCF files, compiled by MuJoCo: bodies, joints, inertias, limits, equalities, shapes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError
from ..types import Array, Numbers
from .builder import RobotBuilder
from .collision import Collision, checked_shape, pose_rows
from .loops import LoopRobot
from .mjcf_drives import effort, is_limited, is_off, notes_of_model, notes_of_several, of_ball, passive
from .mjcf_read import MjcfFile, read_mjcf
from .robot import Robot

_FREE, _BALL, _SLIDE, _HINGE = range(4)
_PLANE, _HFIELD, _SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = range(8)
_CONNECT, _WELD, _JOINT = range(3)
_SHOWN_GROUPS = 3  # groups of geoms, from 0 on, that MuJoCo's viewer shows where nothing else is asked for
Pose = tuple[Array, Array]  # (R, p)


def load_mjcf(
    path_or_xml: str | bytes | os.PathLike[str],
    *,
    lock: Mapping[str, Numbers] | None = None,
    gravity: Numbers | None = None,
    check_inertia: bool = True,
) -> Robot:
    """Robot of an MJCF file, which MuJoCo compiles (extra `mjcf`): its defaults, angles, ranges and gears hold.

    path_or_xml: path (str, Path) or XML itself (str, bytes). lock: {joint: value}. gravity: (3,) [m/s^2], default that
    of the file. check_inertia: as of load_urdf.
    Links are bodies, "world" the root; sites are frames. Coordinates are measured from where the file draws the robot:
    MuJoCo's qpos less `ref`; od.interop.to_mujoco converts. Several joints of a body become links "<body>_1", ..
    between; names that the file does not give differ from all that it gives. Damping, friction loss, armature, ranges,
    and limits of force, of joints and of actuators on joints through their gears (the smaller of both directions, of
    all together), are read; armature and damping of actuators count to those of their joints. Flags that disable
    limits, friction, damping, actuation or equalities hold. Equalities: joint (a mimic joint where the polynomial is
    straight, else a coupling), connect and weld (loops). Collision shapes are those of geoms that collide,
    `robot.visuals` geoms of the groups 0 to 2; excluded pairs may touch. Includes and meshes are read in the folder of
    the file and below it; MuJoCo opens no file.
    `robot.report` tells what changes the motion but is not read: springs, damping that is not linear, tendons,
    equalities of tendons and flexes, fluid, plugins.
    Raises FileNotFoundError; ModelError with MuJoCo's words, for two equalities of one joint, bodies of other documents
    (<attach>), files beyond the bounds of mjcf_read (10 000 elements), and where mujoco is not installed.
    Source: MJCF reference of MuJoCo (mujoco.readthedocs.io).
    """
    file = read_mjcf(path_or_xml)
    model, gravity_of_file = _compiled(file)
    name = _named(model.names, 0) or file.stem
    builder = RobotBuilder(name, gravity_of_file if gravity is None else gravity, check_inertia=check_inertia)
    try:
        return _Building(file, model, builder).build(lock)
    except ModelError as error:
        raise ModelError(file.source, error.problems) from None


def _compiled(file: MjcfFile) -> tuple[Any, Array]:
    """(MjModel, gravity (3,))."""
    try:
        import mujoco
    except ImportError:
        how = 'pip install "oc-dyn[mjcf]"'
        raise ModelError(file.source, [f"MJCF is compiled by MuJoCo, and mujoco is not installed; {how}"]) from None
    try:
        model = mujoco.MjModel.from_xml_string(file.text, file.assets)
    except ValueError as error:
        raise ModelError(file.source, [f"MuJoCo: {' '.join(str(error).split())[:500]}"]) from None
    weightless = model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY
    return model, np.zeros(3) if weightless else np.array(model.opt.gravity)


def _named(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode("utf-8", "replace")


def _pose(position: Any, quaternion: Any) -> Pose:
    w, x, y, z = np.array(quaternion, float) / np.linalg.norm(quaternion)
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return R, np.array(position, float)


def _times(a: Pose, b: Pose) -> Pose:
    return a[0] @ b[0], a[1] + a[0] @ b[1]


def _inverse(a: Pose) -> Pose:
    return a[0].T, -a[0].T @ a[1]


def _new(name: str, taken: set[str]) -> str:
    """The name, or with a number where it is taken; it is taken then."""
    found, k = name, 1
    while found in taken:
        found, k = f"{name}_{k}", k + 1
    taken.add(found)
    return found


class _Building:
    """A compiled model, in a RobotBuilder. body: names; at: {body: pose of its frame in the frame of its link}."""

    def __init__(self, file: MjcfFile, model: Any, builder: RobotBuilder) -> None:
        self.file, self.m, self.b = file, model, builder
        m = model
        self.links = {self._given(m.name_bodyadr, i) for i in range(m.nbody)}
        self.links |= {self._given(m.name_siteadr, i) for i in range(m.nsite)}
        self.joints = {self._given(m.name_jntadr, j) for j in range(m.njnt)}
        self.closures = {self._given(m.name_eqadr, i) for i in range(m.neq)}
        self.body = [self._given(m.name_bodyadr, i) or _new(f"body_{i}", self.links) for i in range(m.nbody)]
        self.joint = [
            self._given(m.name_jntadr, j) or _new(f"{self.body[m.jnt_bodyid[j]]}_joint_{j}", self.joints)
            for j in range(m.njnt)
        ]
        self.equality = [self._given(m.name_eqadr, i) or _new(f"equality_{i}", self.closures) for i in range(m.neq)]
        self.notes = list(file.notes)
        self.visuals: list[Collision] = []
        self.locked: dict[str, float] = {}
        self.active = [] if is_off(m, "EQUALITY") else [i for i in range(m.neq) if m.eq_active0[i]]
        if not self.active and np.any(m.eq_active0):
            self.notes.append("equalities are disabled by a flag; they are not read")
        self._refuse_two_equalities_of_a_joint()
        self.mimic = {int(m.eq_obj1id[i]): self._rule(i) for i in self.active if self._is_mimic(i)}

    def _refuse_two_equalities_of_a_joint(self) -> None:
        held: dict[int, int] = {}
        for i in self.active:
            if self.m.eq_type[i] == _JOINT:
                j = int(self.m.eq_obj1id[i])
                if j in held:
                    both = f"{self.equality[held[j]]!r} and {self.equality[i]!r}"
                    how = "make one of them an equality of the other joints"
                    raise ModelError(self.file.source, [f"equalities {both} both hold joint {self.joint[j]!r}; {how}"])
                held[j] = i

    def _is_mimic(self, i: int) -> bool:
        m = self.m
        return bool(m.eq_type[i] == _JOINT and m.eq_obj2id[i] >= 0 and not m.eq_data[i][2:5].any())

    def _rule(self, i: int) -> tuple[str, float, float]:
        """(joint, multiplier, offset) of a straight equality."""
        offset, multiplier = (float(x) for x in self.m.eq_data[i][:2])
        return self.joint[self.m.eq_obj2id[i]], multiplier, offset

    def _reference(self, j: int) -> float:
        """Value [rad, m] of a joint's qpos where the file draws it, and its coordinate here is zero."""
        return float(self.m.qpos0[self.m.jnt_qposadr[j]])

    def _given(self, addresses: Any, i: int) -> str:
        """The name in the file, empty without one."""
        return _named(self.m.names, int(addresses[i]))

    def build(self, lock: Mapping[str, Numbers] | None) -> Robot:
        """All of it."""
        m, b = self.m, self.b
        b.add_link("world")
        for i in range(1, m.nbody):
            self._add_body(i)
        for i in range(m.nsite):
            name = self._given(m.name_siteadr, i)
            if name in self.body:
                self.notes.append(f"site {name!r} is no frame: a body has its name")
            elif name:
                R, p = _pose(m.site_pos[i], m.site_quat[i])
                b.add_frame(name, self.body[m.site_bodyid[i]], xyz=p, rotation=R)
        for i in range(m.ngeom):
            self._add_shape(i)
        for i in range(m.nexclude):
            pair = divmod(int(m.exclude_signature[i]), 1 << 16)
            b.let_touch(*(self.body[x] for x in pair))
        for i in self.active:
            self._add_equality(i)
        b._notes.extend([*self.notes, *notes_of_model(m, self.joint)])
        robot = b.build(lock={**self.locked, **(lock or {})} or None)
        facts: dict[str, Any] = {"folder": self.file.folder, "visuals": tuple(self.visuals)}
        if isinstance(robot, LoopRobot):
            facts["tree"] = replace(robot.tree, **facts)
        return replace(robot, **facts)

    # -- bodies and joints ------------------------------------------------------------------------------------------

    def _add_body(self, i: int) -> None:
        m, b, name = self.m, self.b, self.body[i]
        parent = self.body[m.body_parentid[i]]
        at = _pose(m.body_pos[i], m.body_quat[i])  # of the next joint, or the body, in the frame of `parent`
        joints = range(m.body_jntadr[i], m.body_jntadr[i] + m.body_jntnum[i]) if m.body_jntnum[i] else range(0)
        for count, j in enumerate(joints, 1):
            anchor = (np.eye(3), np.array(m.jnt_pos[j], float))
            kind = int(m.jnt_type[j])
            if kind == _FREE:
                at, anchor = (np.eye(3), np.zeros(3)), (np.eye(3), np.zeros(3))
            R, p = _times(at, anchor)
            plain = count == len(joints) and not anchor[1].any()
            child = name if plain else _new(f"{name}_{count}", self.links)
            b.add_joint(self.joint[j], self._kind(j), parent, child, xyz=p, rotation=R, **self._facts(j))
            if not plain:
                b.add_link(child)
            parent, at = child, _inverse(anchor)
        if parent != name:  # nothing has carried the body itself yet
            b.add_joint(_new(f"{name}_fixed", self.joints), "fixed", parent, name, xyz=at[1], rotation=at[0])
        self._add_inertia(i)

    def _add_inertia(self, i: int) -> None:
        m = self.m
        R, p = _pose(m.body_ipos[i], m.body_iquat[i])[0], np.array(m.body_ipos[i], float)
        tensor = R @ np.diag(m.body_inertia[i]) @ R.T
        self.b.add_link(self.body[i], float(m.body_mass[i]), p, (tensor + tensor.T) / 2)

    def _kind(self, j: int) -> str:
        limited = is_limited(self.m, j)
        hinge = "revolute" if limited else "continuous"
        return {_FREE: "free", _BALL: "spherical", _SLIDE: "prismatic", _HINGE: hinge}[int(self.m.jnt_type[j])]

    def _facts(self, j: int) -> dict[str, Any]:
        """Axis, limits and drive of a joint."""
        m = self.m
        if m.jnt_type[j] in (_FREE, _BALL):
            self.notes += notes_of_several(m, j, self.joint[j])
            return of_ball(m, j) if m.jnt_type[j] == _BALL else {}
        facts: dict[str, Any] = {"axis": np.array(m.jnt_axis[j], float), **passive(m, j)}
        if is_limited(m, j):
            low, high = (float(x) - self._reference(j) for x in m.jnt_range[j])
            facts |= {"lower": low, "upper": high}
        if j in self.mimic:
            facts["mimic"] = self.mimic[j]
        facts |= effort(m, j, self.joint[j], self.notes)
        return facts

    # -- shapes and equalities --------------------------------------------------------------------------------------

    def _add_shape(self, i: int) -> None:
        """What collides, and what is seen: geoms of the groups that MuJoCo shows by itself."""
        m = self.m
        kind, (a, b, c) = int(m.geom_type[i]), (float(x) for x in m.geom_size[i])
        solid, seen = m.geom_contype[i] or m.geom_conaffinity[i], 0 <= m.geom_group[i] < _SHOWN_GROUPS
        if not (solid or seen) or (m.geom_bodyid[i] == 0 and kind == _PLANE):
            return
        at = _pose(m.geom_pos[i], m.geom_quat[i])
        shapes = {
            _SPHERE: ("sphere", a), _CAPSULE: ("capsule", a, 2 * b), _ELLIPSOID: ("ellipsoid", a, b, c),
            _CYLINDER: ("cylinder", a, 2 * b), _BOX: ("box", 2 * a, 2 * b, 2 * c),
        }  # fmt: skip
        shape: Any = shapes.get(kind)
        if kind == _MESH:
            k = int(m.geom_dataid[i])
            at = _times(at, _inverse(_pose(m.mesh_pos[k], m.mesh_quat[k])))  # MuJoCo moves meshes to their centre
            path, scale = self.file.files.get(self._given(m.name_meshadr, k), ("", ()))
            shape = ("mesh", path, *scale) if path else None
        name, link = self._given(m.name_geomadr, i), self.body[m.geom_bodyid[i]]
        if shape is None and solid:
            self.notes.append(f"a collision shape of body {link!r} is not read")
        if shape is not None and solid:
            self.b.add_collision(link, shape, xyz=at[1], rotation=at[0], name=name)
        if shape is not None and seen:
            word, sizes, mesh = checked_shape(f"geom {name!r} of body {link!r}", shape)
            self.visuals.append(Collision(name, link, word, sizes, pose_rows(*at), mesh))

    def _add_equality(self, i: int) -> None:
        name, kind = self.equality[i], int(self.m.eq_type[i])
        if kind == _JOINT:
            self._couple(i)
        elif kind in (_CONNECT, _WELD):
            self._close(name, i, kind)
        else:
            self.notes.append(f"equality {name!r} is not one of connect, weld and joint; it is not read")

    def _couple(self, i: int) -> None:
        data = [float(x) for x in self.m.eq_data[i][:5]]
        j, k = int(self.m.eq_obj1id[i]), int(self.m.eq_obj2id[i])
        if k < 0:
            self.locked[self.joint[j]] = data[0]
        elif any(data[2:]):  # straight ones are mimic joints, as they were added
            self.b.couple(self.joint[j], self.joint[k], lambda x: ca.polyval(ca.SX(data[::-1]), x))

    def _close(self, name: str, i: int, kind: int) -> None:
        m, data = self.m, np.array(self.m.eq_data[i], float)
        a, b = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
        if int(m.eq_objtype[i]) == 6:  # sites: their bodies, and places in them
            ends = [(self.body[m.site_bodyid[x]], _pose(m.site_pos[x], m.site_quat[x])) for x in (a, b)]
        else:
            relative = _pose(data[3:6], data[6:10]) if kind == _WELD else None
            if relative is None:
                ends = [(self.body[a], (np.eye(3), data[:3])), (self.body[b], (np.eye(3), data[3:6]))]
            else:
                ends = [(self.body[a], relative), (self.body[b], (np.eye(3), np.zeros(3)))]
        (link_a, (R_a, p_a)), (link_b, (R_b, p_b)) = ends
        kinds = {_CONNECT: "position", _WELD: "weld"}
        self.b.close_loop(name, link_a, link_b, kinds[kind], xyz_a=p_a, rotation_a=R_a, xyz_b=p_b, rotation_b=R_b)
