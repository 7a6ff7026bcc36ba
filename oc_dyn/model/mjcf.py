"""Robots from MJCF files, compiled by MuJoCo: bodies, joints, inertias, limits, equalities, shapes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError
from ..lie.so3 import quat_to_rot
from ..types import Array, Numbers
from .builder import RobotBuilder
from .mjcf_read import MjcfFile, read_mjcf
from .robot import Robot

_FREE, _BALL, _SLIDE, _HINGE = range(4)
_PLANE, _HFIELD, _SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = range(8)
_CONNECT, _WELD, _JOINT = range(3)
_ON_JOINT = (0, 1)  # kinds of transmission: joint, joint in the parent's frame
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
    between. Damping, friction loss, armature, ranges, and limits of force, of joints and of actuators on joints through
    their gears (the smaller of both directions), are read. Equalities: joint (a mimic joint where the polynomial is
    straight, else a coupling), connect and weld (loops). Collision shapes are those of geoms that collide; excluded
    pairs may touch. Includes and meshes are read in the folder of the file and below it. `robot.report` tells what
    changes the motion but is not read: springs, tendons, equalities of tendons and flexes, fluid, plugins.
    Raises FileNotFoundError; ModelError with MuJoCo's words, and where mujoco is not installed.
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
    Q = np.array(quaternion, float)
    return np.array(ca.DM(quat_to_rot(ca.DM(Q / np.linalg.norm(Q))))), np.array(position, float)


def _times(a: Pose, b: Pose) -> Pose:
    return a[0] @ b[0], a[1] + a[0] @ b[1]


def _inverse(a: Pose) -> Pose:
    return a[0].T, -a[0].T @ a[1]


class _Building:
    """A compiled model, in a RobotBuilder. body: names; at: {body: pose of its frame in the frame of its link}."""

    def __init__(self, file: MjcfFile, model: Any, builder: RobotBuilder) -> None:
        self.file, self.m, self.b = file, model, builder
        m = model
        self.body = [self._name(m.name_bodyadr, i, f"body_{i}") for i in range(m.nbody)]
        self.joint = [self._name(m.name_jntadr, j, f"{self.body[m.jnt_bodyid[j]]}_joint_{j}") for j in range(m.njnt)]
        self.notes = list(file.notes)
        self.locked: dict[str, float] = {}
        self.mimic = {int(m.eq_obj1id[i]): self._rule(i) for i in range(m.neq) if self._is_mimic(i)}

    def _is_mimic(self, i: int) -> bool:
        m = self.m
        return bool(m.eq_active0[i] and m.eq_type[i] == _JOINT and m.eq_obj2id[i] >= 0 and not m.eq_data[i][2:5].any())

    def _rule(self, i: int) -> tuple[str, float, float]:
        """(joint, multiplier, offset) of a straight equality."""
        offset, multiplier = (float(x) for x in self.m.eq_data[i][:2])
        return self.joint[self.m.eq_obj2id[i]], multiplier, offset

    def _reference(self, j: int) -> float:
        """Value [rad, m] of a joint's qpos where the file draws it, and its coordinate here is zero."""
        return float(self.m.qpos0[self.m.jnt_qposadr[j]])

    def _name(self, addresses: Any, i: int, other: str) -> str:
        return _named(self.m.names, int(addresses[i])) or other

    def build(self, lock: Mapping[str, Numbers] | None) -> Robot:
        """All of it."""
        m, b = self.m, self.b
        b.add_link("world")
        for i in range(1, m.nbody):
            self._add_body(i)
        for i in range(m.nsite):
            name = self._name(m.name_siteadr, i, "")
            if name and name not in b._links:
                R, p = _pose(m.site_pos[i], m.site_quat[i])
                b.add_frame(name, self.body[m.site_bodyid[i]], xyz=p, rotation=R)
        for i in range(m.ngeom):
            self._add_shape(i)
        for i in range(m.nexclude):
            pair = divmod(int(m.exclude_signature[i]), 1 << 16)
            b.let_touch(*(self.body[x] for x in pair))
        for i in range(m.neq):
            if m.eq_active0[i]:
                self._add_equality(i)
        self._note_what_is_not_read()
        b._notes.extend(self.notes)
        return replace(b.build(lock={**self.locked, **(lock or {})} or None), folder=self.file.folder)

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
            child = name if plain else self._between(f"{name}_{count}")
            b.add_joint(self.joint[j], self._kind(j), parent, child, xyz=p, rotation=R, **self._facts(j))
            if not plain:
                b.add_link(child)
            parent, at = child, _inverse(anchor)
        if parent != name:  # nothing has carried the body itself yet
            b.add_joint(f"{name}_fixed", "fixed", parent, name, xyz=at[1], rotation=at[0])
        self._add_inertia(i)

    def _between(self, name: str) -> str:
        """Name of a link between two joints of a body, which no other has."""
        while name in self.body or name in self.b._links:
            name += "_"
        return name

    def _add_inertia(self, i: int) -> None:
        m = self.m
        R, p = _pose(m.body_ipos[i], m.body_iquat[i])[0], np.array(m.body_ipos[i], float)
        tensor = R @ np.diag(m.body_inertia[i]) @ R.T
        self.b.add_link(self.body[i], float(m.body_mass[i]), p, (tensor + tensor.T) / 2)

    def _kind(self, j: int) -> str:
        limited = bool(self.m.jnt_limited[j])
        hinge = "revolute" if limited else "continuous"
        return {_FREE: "free", _BALL: "spherical", _SLIDE: "prismatic", _HINGE: hinge}[int(self.m.jnt_type[j])]

    def _facts(self, j: int) -> dict[str, Any]:
        """Axis, limits and drive of a joint."""
        m, kind, dof = self.m, int(self.m.jnt_type[j]), int(self.m.jnt_dofadr[j])
        if kind == _FREE:
            if np.any(m.dof_armature[dof : dof + 6]) or np.any(m.dof_damping[dof : dof + 6]):
                self.notes.append(f"joint {self.joint[j]!r} (6 velocities): armature and damping are not read")
            return {}
        drive = {"armature": m.dof_armature, "damping": m.dof_damping, "friction": m.dof_frictionloss}
        facts: dict[str, Any] = {key: float(values[dof]) for key, values in drive.items()}  # alike on all of a ball
        if kind == _BALL:
            if m.jnt_limited[j]:
                self.notes.append(f"joint {self.joint[j]!r}: the range of a ball joint is not read")
            return facts
        facts["axis"] = np.array(m.jnt_axis[j], float)
        if m.jnt_limited[j]:
            low, high = (float(x) - self._reference(j) for x in m.jnt_range[j])
            facts |= {"lower": low, "upper": high}
        if j in self.mimic:
            facts["mimic"] = self.mimic[j]
        effort = self._effort(j)
        if np.isfinite(effort):
            facts["effort"] = effort
        return facts

    def _effort(self, j: int) -> float:
        """Limit [Nm, N] of what the actuators give a joint, infinite without one."""
        m, least = self.m, np.inf
        if m.jnt_actfrclimited[j]:
            least = float(np.abs(m.jnt_actfrcrange[j]).min())
        on = [k for k in range(m.nu) if m.actuator_trntype[k] in _ON_JOINT and m.actuator_trnid[k][0] == j]
        total = sum(abs(float(m.actuator_gear[k][0])) * self._force(k) for k in on)
        return min(least, total) if on else least

    def _force(self, k: int) -> float:
        """Largest force of an actuator in both directions, infinite without a limit."""
        m, force = self.m, np.inf
        if m.actuator_forcelimited[k]:
            force = float(np.abs(m.actuator_forcerange[k]).min())
        straight = m.actuator_gaintype[k] == 0 and m.actuator_biastype[k] == 0 and m.actuator_dyntype[k] == 0
        if straight and m.actuator_ctrllimited[k]:
            force = min(force, abs(float(m.actuator_gainprm[k][0])) * float(np.abs(m.actuator_ctrlrange[k]).min()))
        return force

    # -- shapes and equalities --------------------------------------------------------------------------------------

    def _add_shape(self, i: int) -> None:
        m = self.m
        kind, (a, b, c) = int(m.geom_type[i]), (float(x) for x in m.geom_size[i])
        if not (m.geom_contype[i] or m.geom_conaffinity[i]) or (m.geom_bodyid[i] == 0 and kind == _PLANE):
            return
        at = _pose(m.geom_pos[i], m.geom_quat[i])
        shapes = {
            _SPHERE: ("sphere", a), _CAPSULE: ("capsule", a, 2 * b), _ELLIPSOID: ("ellipsoid", a, b, c),
            _CYLINDER: ("cylinder", a, 2 * b), _BOX: ("box", 2 * a, 2 * b, 2 * c),
        }  # fmt: skip
        shape: Any = shapes.get(kind)
        if kind == _MESH:
            mesh = int(m.geom_dataid[i])
            name = self._name(m.name_meshadr, mesh, "")
            at = _times(at, _inverse(_pose(m.mesh_pos[mesh], m.mesh_quat[mesh])))  # MuJoCo moves meshes to their centre
            path, scale = self.file.files.get(name, ("", ()))
            shape = ("mesh", path, *scale) if path else None
        if shape is None:
            self.notes.append(f"a collision shape of body {self.body[m.geom_bodyid[i]]!r} is not read")
            return
        name = self._name(m.name_geomadr, i, "")
        self.b.add_collision(self.body[m.geom_bodyid[i]], shape, xyz=at[1], rotation=at[0], name=name)

    def _add_equality(self, i: int) -> None:
        m, kind = self.m, int(self.m.eq_type[i])
        name = self._name(m.name_eqadr, i, f"equality_{i}")
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

    def _note_what_is_not_read(self) -> None:
        m = self.m
        for j in range(m.njnt):
            if m.jnt_stiffness[j]:
                self.notes.append(f"joint {self.joint[j]!r}: its spring, {m.jnt_stiffness[j]:g} per unit, is not read")
            if m.jnt_actgravcomp[j]:
                self.notes.append(f"joint {self.joint[j]!r}: compensation of gravity is not read")
        for count, what in ((m.ntendon, "tendons"), (m.nflex, "flexes"), (m.nplugin, "plugins")):
            if count:
                self.notes.append(f"{count} {what}: they are not read")
        if np.any(m.body_gravcomp):
            self.notes.append("compensation of gravity by bodies (gravcomp) is not read")
        if m.opt.density or m.opt.viscosity:
            self.notes.append("forces of the medium (density, viscosity) are not read")
